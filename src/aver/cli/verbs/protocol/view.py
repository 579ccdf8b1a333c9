"""`aver protocol view`: shows what a participant sees of a trace, and what it may say now."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from aver.cli.options import add_json, add_ledger, add_tenant, parse_count
from aver.cli.terminal import Screen, StyledText, print_json
from aver.cli.verbs.protocol.trace_access import add_agent, add_trace, open_session, read_agent
from aver.text import to_one_line

if TYPE_CHECKING:
    from aver.protocol.session import ProtocolSession
    from aver.protocol.view import View

EXAMPLES = """\
  aver protocol view 5d2e --as agent:critic
  aver protocol view 5d2e --as agent:critic --wait 60 --json      wait for something new, then print it with schemas"""

POLL_SECONDS = 0.25

OPEN_WORDS = {
    "reviews": ("proposal to review", "proposals to review"),
    "intent_reviews": ("intent to review", "intents to review"),
    "revisions": ("rejected proposal", "rejected proposals"),
    "blocked": ("blocked intent", "blocked intents"),
    "runs": ("intent that may run", "intents that may run"),
    "running": ("call that runs", "calls that run"),
    "disputes": ("open challenge", "open challenges"),
}
"""What waits for an agent: one of the sort, and several."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_trace(parser)
    add_agent(parser)
    parser.add_argument(
        "--wait", type=parse_count, default=0, metavar="SECONDS", help="wait so long for the next event (default: 0)"
    )
    add_ledger(parser)
    add_tenant(parser)
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    with open_session(given) as session:
        view = _wait_for_view(session, read_agent(given.agent), given.wait)
    if given.json:
        print_json(view.to_dict())
        return 0
    screen.print_line(StyledText(f"trace {view.trace}", "strong"), f"  {view.agent} as {view.role}, state {view.state}")
    screen.print_hanging("task  ", text=str(view.task["objective"]))
    for title, things, words in (
        ("proposals", view.proposals, "objective"),
        ("intents", view.intents, "tool"),
        ("claims", view.claims, "text"),
        ("challenges", view.challenges, "reason"),
    ):
        if things:
            screen.print_line(StyledText(title, "strong"))
        for one in things:
            code = f" {one['code']}" if one.get("code") else ""
            gist = f"{one['standing']}{code}: {one[words]}"
            screen.print_line(StyledText(f"  {one['id']}  ", "dim"), to_one_line(gist))
    waiting = [f"{len(ids)} {OPEN_WORDS[sort][len(ids) > 1]}" for sort, ids in view.open.items() if ids]
    screen.print_line("open  ", ", ".join(waiting) or "nothing")
    screen.print_line("may say  ", ", ".join(view.may_say) or "nothing")
    return 0


def _wait_for_view(session: ProtocolSession, agent: str, wait: int) -> View:
    view = session.view(agent)
    until = time.monotonic() + wait
    while time.monotonic() < until and not session.fold.is_over:
        time.sleep(POLL_SECONDS)
        later = session.view(agent)
        if later.head != view.head:
            return later
    return view
