"""`aver protocol resolve`: lets a person rule on a dispute."""

from __future__ import annotations

import argparse

from aver.cli.options import Usage, add_json, add_ledger, add_tenant, parse_count
from aver.cli.terminal import Screen, StderrScreen, print_json
from aver.cli.verbs.protocol.trace_access import add_trace, event_to_dict, open_session, print_event

EXAMPLES = """\
  aver protocol resolve 5d2e 3f0c                ask; a person then answers with: aver approvals approve
  aver protocol resolve 5d2e 3f0c --wait 600     ask and wait for the answer

Approving lets the claim stand and dismisses the challenge. Denying upholds the challenge.

exit code: 0 ruled, 3 nobody has answered yet."""

UNANSWERED = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_trace(parser)
    parser.add_argument("challenge", metavar="CHALLENGE", help="the challenge's id, or its beginning")
    parser.add_argument(
        "--wait", type=parse_count, default=0, metavar="SECONDS", help="wait so long for the answer (default: 0)"
    )
    add_ledger(parser)
    add_tenant(parser)
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    with open_session(given) as session:
        found = [name for name in session.fold.challenges if name.startswith(given.challenge)]
        if len(found) != 1:
            words = "several challenges begin" if found else "no challenge of this trace begins"
            raise Usage(f"{words} with {ascii(given.challenge)[:80]}", advice="aver protocol view shows their ids")
        event = session.resolve(found[0], wait=float(given.wait))
    if event is None:
        if given.json:
            print_json({"challenge": found[0], "outcome": None})
        StderrScreen().print_note("nobody has answered yet: aver approvals list shows the request; then run this again")
        return UNANSWERED
    if given.json:
        print_json(event_to_dict(event))
    else:
        print_event(screen, event)
    return 0
