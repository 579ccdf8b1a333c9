"""`aver gateway evidence`: writes the evidence of one act as the two files that `verify-evidence` judges."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from aver.cli.options import add_force, add_json, add_ledger, add_tenant
from aver.cli.terminal import Screen, print_json
from aver.errors import NotFound

EXAMPLES = """\
  aver gateway evidence a_kR3vX0aQ9sTn2LbE --commit commit.json --request request.json
  aver gateway verify-evidence --commit commit.json --request request.json --program-id ID --now UNIX"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("act", metavar="ACTION", help="the act's action_id or tx_id, or the id of one of its records")
    parser.add_argument("--commit", required=True, metavar="FILE", help="the file to write the commit to")
    parser.add_argument("--request", required=True, metavar="FILE", help="the file to write the request to")
    add_force(parser)
    add_ledger(parser)
    add_tenant(parser)
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.capsule.json_document import dump_document
    from aver.files.new_file import check_new_path, write_new_file
    from aver.gateway.act_records import COMMIT_KIND, PREVIEW_KIND, read_preview
    from aver.gateway.judgement.act_file import find_act, find_attestations
    from aver.ledger import open_ledger

    for path in (given.commit, given.request):
        check_new_path(Path(path), force=given.force)
    with open_ledger(given.ledger, tenant=given.tenant, create=False) as ledger:
        action_id, records = find_act(ledger, given.act)
        preview = read_preview(next(one for one in records if one.kind == PREVIEW_KIND), ledger.blob)
    shares = dict(zip(("policy0", "policy1"), preview.shares or (), strict=False))
    program, source, is_confirmed = preview.program_id, PREVIEW_KIND, False
    if commits := [record.to_dict()["outcome"]["result"] for record in records if record.kind == COMMIT_KIND]:
        # The shares of a COMMIT may be fresher than those of its PREVIEW.
        shares, program, source = commits[-1]["commit"], commits[-1]["program_id"], COMMIT_KIND
        is_confirmed = bool(commits[-1]["approval_use"])
    if not shares or preview.inputs is None:
        words = "it was refused" if not shares else "its inputs were not kept, or had a secret"
        raise NotFound(f"the act {action_id} has no evidence to write: {words}")
    signed = find_attestations([record for record in records if record.kind == source])
    names = ("action_id", "intent_id", "caller", "session", "inputs", "context")
    request = {name: getattr(preview, name) for name in names}
    request["attestations"] = [statement.to_dict() for _, statement in sorted(signed, key=lambda one: one[0])]
    for path, content in ((given.commit, shares), (given.request, request)):
        write_new_file(Path(path), dump_document(content), force=given.force)
    options = ["--commit", given.commit, "--request", given.request, "--program-id", program]
    # The shares are good for seconds: judge them at the time at which they were made.
    options += ["--now", str(max(share["ts"] for share in shares.values())), *["--user-confirm"] * is_confirmed]
    if given.json:
        print_json({"action_id": action_id, "verify_evidence": options})
        return 0
    screen.print_line(f"wrote {given.commit} and {given.request}. Where the gateway's MAC keys are, judge them by:")
    screen.print_line(f"  aver gateway verify-evidence {shlex.join(options)}")
    return 0
