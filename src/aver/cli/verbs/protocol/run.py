"""`aver protocol run`: runs a task with all its roles, and audits it."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aver.cli.options import Usage, add_json, add_ledger, add_tenant, parse_count
from aver.cli.terminal import Screen
from aver.cli.verbs.protocol.trace_access import read_workspace
from aver.errors import BadInput

if TYPE_CHECKING:
    from aver.keys.statement import Statement
    from aver.ledger import Ledger
    from aver.protocol.roles.task_file import TaskFile

EXAMPLES = """\
  aver protocol run task.toml                                run it here
  aver protocol run task.toml --workspace ~/src/shop --profile strict
  aver protocol run task.toml --trace 5d2e --join critic.json --wait 600
  aver protocol run task.toml --json                         one JSON object at the end

A task needs no more than: objective = "all checks pass". Aver then runs the project's own tests and linters.

exit code: 0 completed, 1 the audit failed or the trace is broken, 2 bad task, 3 aborted, waiting, or something broke
down, 5 nothing was allowed."""

PROFILES = ("strict", "default", "lenient")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", metavar="TASK", help="the task file, .toml or .json")
    parser.add_argument("--workspace", metavar="DIR", default=os.curdir, help="where the tools work (default: here)")
    parser.add_argument("--profile", choices=PROFILES, help="what the audit makes of weaknesses (default: the task's)")
    parser.add_argument("--trace", metavar="ID", help="the trace's id, as in an invitation (default: a new one)")
    parser.add_argument(
        "--join", action="append", default=[], metavar="FILE", help="take in a participant from elsewhere; repeatable"
    )
    add_wait(parser)
    add_ledger(parser)
    add_tenant(parser)
    add_json(parser)


def add_wait(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--wait",
        type=parse_count,
        default=0,
        metavar="SECONDS",
        help="how long to wait for a person's approval, and for participants who speak by themselves (default: 0)",
    )


def run(given: argparse.Namespace, screen: Screen) -> int:
    import aver
    from aver.capsule.aver_block import TRACE_PREFIX
    from aver.check import open_ledger
    from aver.cli.verbs.protocol.trace_run import load_roles, run_and_report, save_run_files
    from aver.protocol.roles.task_file import read_task_file

    path = Path(given.task)
    found = read_task_file(path)
    workspace = read_workspace(given)
    joins = [_read_join(name) for name in given.join]
    participants = _list_participants(found, joins)
    directory = str(path.parent.absolute())
    with open_ledger(given.ledger, tenant=given.tenant) as ledger:
        # Wrong options and programs that are not there end the run here, before a trace is begun.
        functions = load_roles(ledger, found.roles, workspace=workspace, directory=directory)
        if given.trace is not None and ledger.head(f"{TRACE_PREFIX}{given.trace}").count:
            raise _taken_error(ledger, given.trace)
        with aver.ProtocolSession(
            found.task,
            ledger=ledger,
            trace=given.trace,
            workspace=workspace,
            profile=given.profile,
            participants=participants,
            wait=float(given.wait),
        ) as session:
            save_run_files(session, found.roles, workspace=workspace, directory=directory)
            return run_and_report(session, found.roles, functions, given, screen)


def _taken_error(ledger: Ledger, trace: str) -> Usage:
    """The error for the name of a trace that is there. One that is over cannot be resumed."""
    from aver.capsule.aver_block import TRACE_PREFIX
    from aver.protocol.events import read_event

    chain = f"{TRACE_PREFIX}{trace}"
    last = next(ledger.read(chain, ledger.head(chain).count - 1), None)
    try:
        state = "" if last is None else read_event(last).after
    except BadInput:
        state = ""
    if state not in ("completed", "failed", "aborted"):
        return Usage(f"there is a trace {trace} already", advice=f"aver protocol resume {trace}")
    advice = f"aver show {trace} tells it; for a new one, give another --trace, or none"
    return Usage(f"there is a trace {trace} already, and it is {state}", advice=advice)


def _read_join(name: str) -> Statement:
    from aver.files.regular import open_file, read_limited
    from aver.keys.statement import read_statement_file

    with open_file(Path(name)) as file:
        return read_statement_file(read_limited(file, 1 << 20, name), name)


def _list_participants(found: TaskFile, joins: list[Statement]) -> dict[str, Any]:
    """Return the participants: those of the task with a key here, and those who have sent their join."""
    participants: dict[str, Any] = {spec.agent: spec.role for spec in found.roles}
    for join in joins:
        agent = str(join.content.get("agent"))
        role = next((spec.role for spec in found.roles if spec.agent == agent), None)
        if role is None:
            raise Usage(f"the task has no role for {agent}", advice=f"add [roles.{agent.removeprefix('agent:')}]")
        participants[agent] = join
    return participants
