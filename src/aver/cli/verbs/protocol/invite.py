"""`aver protocol invite`: writes an invitation to take a role in a trace that is not begun yet."""

from __future__ import annotations

import argparse
from pathlib import Path

from aver.cli.options import Usage, add_force, add_json, add_ledger, add_tenant
from aver.cli.terminal import Screen, print_json
from aver.cli.verbs.protocol.run import PROFILES

EXAMPLES = """\
  aver protocol invite task.toml --role critic --out invitation.json
  aver protocol join invitation.json --role critic --as agent:carol --out carol.json      at carol's machine
  aver protocol run task.toml --trace 5d2e… --join carol.json --wait 600                  back here

The invitation says which ledger, which trace and which task. It holds no secret: send it by any channel."""

ROLES = ("planner", "executor", "critic", "auditor")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", metavar="TASK", help="the task file, .toml or .json")
    parser.add_argument("--role", required=True, choices=ROLES, help="the role to take")
    parser.add_argument("--out", required=True, metavar="FILE", help="the file to write")
    parser.add_argument("--trace", metavar="ID", help="the trace's id (default: a new one; use it for all invitations)")
    parser.add_argument("--profile", choices=PROFILES, help="the profile of the run (default: the task's)")
    add_force(parser)
    add_ledger(parser)
    add_tenant(parser)
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver import clock
    from aver.capsule.json_document import dump_document
    from aver.check import open_ledger
    from aver.files.new_file import write_new_file
    from aver.protocol.bounds import read_protocol_settings
    from aver.protocol.events import check_trace_id, trace_chain
    from aver.protocol.records.draft import prepare_task
    from aver.protocol.roles.task_file import read_task_file
    from aver.protocol.statements import digest_json

    task = prepare_task(read_task_file(Path(given.task)).task)
    trace = check_trace_id(given.trace or clock.new_id())
    with open_ledger(given.ledger, tenant=given.tenant) as ledger:
        if ledger.head(trace_chain(trace)).count:
            raise Usage(f"the trace {trace} has begun", advice=f"aver protocol join {trace} takes a role in it")
        default, _ = read_protocol_settings(ledger.config.protocol)
        profile = given.profile or str(task.get("policy_profile", default))
        invitation = {
            "v": 1,
            "ledger": ledger.id,
            "tenant": ledger.tenant,
            "trace": trace,
            "chain": trace_chain(trace),
            "role": given.role,
            "profile": profile,
            "task": task,
            "task_sha256": digest_json(task),
        }
    write_new_file(Path(given.out), dump_document(invitation), force=given.force)
    if given.json:
        print_json({"path": given.out, **invitation})
        return 0
    screen.print_line(f"wrote {given.out}: the role {given.role} in the trace {trace}")
    screen.print_line("Send it. The participant answers with a file; then begin:")
    more = f" --profile {given.profile}" if given.profile else ""
    screen.print_line(f"  aver protocol run {given.task} --trace {trace}{more} --join FILE")
    return 0
