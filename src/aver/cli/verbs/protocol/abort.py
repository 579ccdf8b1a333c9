"""`aver protocol abort`: ends a trace as its operator."""

from __future__ import annotations

import argparse

from aver.cli.options import add_json, add_ledger, add_tenant
from aver.cli.terminal import Screen, print_json
from aver.cli.verbs.protocol.trace_access import add_trace, event_to_dict, open_session, print_event

EXAMPLES = """\
  aver protocol abort 5d2e --because "the wrong workspace" """


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_trace(parser)
    parser.add_argument("--because", required=True, metavar="TEXT", help="the reason; it is sealed")
    add_ledger(parser)
    add_tenant(parser)
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    with open_session(given) as session:
        event = session.abort(given.because)
    if given.json:
        print_json(event_to_dict(event))
    else:
        print_event(screen, event)
    return 0
