"""`aver events`: shows the live events of a workspace: gate decisions, records and seals."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import deque
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aver.cli.options import Usage, add_json, add_ledger, add_tenant, parse_count
from aver.cli.terminal import Screen, StderrScreen, StyledText, print_json
from aver.text import plural, to_one_line

if TYPE_CHECKING:
    from aver.events.event import LiveEvent

EXAMPLES = """\
  aver events                        show the events of this workspace
  aver events --follow               then print new events as they happen
  aver events ~/src/app -n 20
  aver events --rebuild              rebuild the event file from the ledger first"""

POLL_SECONDS = 0.2
"""How often `--follow` looks. A look only reads the file's size."""

FOLLOW_FIRST = 10
"""How many existing events `--follow` prints first, unless `-n` is given."""

_TYPE_STYLES = {"gate": "strong", "record": "dim", "seal": "good"}
_DECISION_STYLES = {"approve": "good", "flag": "warn", "deny": "bad"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("workspace", nargs="?", default=os.curdir, metavar="DIR", help="the workspace (default: here)")
    parser.add_argument("-n", "--limit", type=parse_count, metavar="N", help="show only the newest N")
    parser.add_argument("--follow", "-f", action="store_true", help="then wait, and print new events as they happen")
    parser.add_argument("--rebuild", action="store_true", help="rebuild the event file from the ledger first")
    add_ledger(parser)
    add_tenant(parser)
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.errors import NotFound
    from aver.events.log import EVENTS_FILE, EventFollower, EventLog

    if given.follow and given.json:
        raise Usage("--follow cannot be combined with --json", advice="leave out --json, or read .capseal/events.jsonl")
    place = Path(given.workspace) / ".capseal"
    if not place.is_dir():
        raise NotFound(
            f"{given.workspace} has no .capseal directory", advice="aver mcp creates it when an agent first works there"
        )
    if given.rebuild:
        from aver.events.log import rebuild_log
        from aver.ledger import open_ledger

        with open_ledger(given.ledger, tenant=given.tenant, create=False) as ledger:
            runs = rebuild_log(ledger, place)
        StderrScreen().print_note(f"rebuilt from {plural(runs, 'run')} in the ledger")
    limit = given.limit if given.limit is not None else FOLLOW_FIRST if given.follow else None
    follower = EventFollower(place)
    events = deque(EventLog(place).read(), maxlen=limit)
    if given.json:
        print_json({"file": str(place / EVENTS_FILE), "events": [_event_to_dict(event) for event in events]})
        return 0
    _print_events(screen, events)
    if not events:
        StderrScreen().print_note("no events yet")
    while given.follow:
        _print_events(screen, follower.read_new())
        sys.stdout.flush()
        time.sleep(POLL_SECONDS)
    return 0


def _print_events(screen: Screen, events: Iterable[LiveEvent]) -> None:
    for event in events:
        word, colon, rest = event.summary.partition(":")
        summary = (
            (StyledText(word, _DECISION_STYLES[word]), to_one_line(colon + rest))
            if word in _DECISION_STYLES
            else (to_one_line(event.summary),)
        )
        screen.print_line(
            StyledText(_format_time(event), "dim"),
            "  ",
            StyledText(f"{event.type:<6}", _TYPE_STYLES[event.type]),
            "  ",
            *summary,
        )


def _format_time(event: LiveEvent) -> str:
    try:
        return f"{datetime.fromtimestamp(event.timestamp, UTC):%Y-%m-%d %H:%M:%S}"
    except (OverflowError, ValueError, OSError):
        return "no time"


def _event_to_dict(event: LiveEvent) -> dict[str, Any]:
    return {"type": event.type, "timestamp": event.timestamp, "summary": event.summary}
