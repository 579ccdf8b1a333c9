"""`aver gateway revoke`: records that a delegation counts no more."""

from __future__ import annotations

import argparse

from aver.cli.options import add_json, add_ledger, add_tenant
from aver.cli.terminal import Screen, StderrScreen, print_json

EXAMPLES = """\
  aver gateway revoke dlg_7Qm2Zr9TqT0f4C1x
  aver gateway revoke dlg_7Qm2Zr9TqT0f4C1x --reason 'the laptop was lost'"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("jti", metavar="JTI", help="the id of the token")
    parser.add_argument("--reason", default="", metavar="TEXT", help="why, for the record")
    add_ledger(parser)
    add_tenant(parser)
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.check import open_ledger
    from aver.errors import Exists
    from aver.gateway.act_records import revocation_key
    from aver.gateway.delegation_records import build_revocation_draft, delegations_chain, issue_key

    with open_ledger(given.ledger, tenant=given.tenant) as ledger:
        draft, is_new = build_revocation_draft(given.jti, given.reason), True
        try:
            record = ledger.append(delegations_chain(ledger.tenant), draft, key=revocation_key(given.jti))
        except Exists as error:
            record, is_new = error.record, False
        is_issued = ledger.get(issue_key(given.jti)) is not None
    if given.json:
        print_json({"jti": given.jti, "record": record.id, "new": is_new, "issued_here": is_issued})
    elif is_new:
        screen.print_line(f"{given.jti} is revoked: no act by it, or by a token derived from it, is allowed any more")
    else:
        screen.print_line(f"{given.jti} was revoked before")
    if not is_issued:
        StderrScreen().print_note(
            f"no token {given.jti} was issued here: compare the id, unless its principal signed it elsewhere"
        )
    return 0
