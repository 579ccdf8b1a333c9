"""`aver protocol list`: lists traces, newest first. Reads of each trace only what it prints, and verifies nothing."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, NamedTuple

from aver.cli.options import add_json, add_ledger, add_tenant, parse_count
from aver.cli.terminal import LinePart, Screen, StderrScreen, StyledText, clip, format_time, print_json
from aver.text import plural, to_one_line

if TYPE_CHECKING:
    from aver.ledger import Ledger
    from aver.ledger.stores.protocol import ChainRow

EXAMPLES = """\
  aver protocol list                     the newest 20 traces
  aver protocol list --state claiming    those that wait for claims
  aver protocol list -n 0 --json         all of them, as JSON"""

DEFAULT_LIMIT = 20
OBJECTIVE_WIDTH = 60

STATES = ("planning", "reviewing", "executing", "claiming", "auditing", "completed", "failed", "aborted")
_STYLES = {"completed": "good", "failed": "bad", "aborted": "warn"}
HEADER = ("trace", "last event", "state", "events", "objective")


class TraceLine(NamedTuple):
    """The fields of a trace that one line shows."""

    trace: str
    chain: str
    state: str
    events: int
    at: str
    """When its last event was sealed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--state", choices=STATES, help="only traces in this state")
    parser.add_argument(
        "-n",
        "--limit",
        type=parse_count,
        default=DEFAULT_LIMIT,
        metavar="N",
        help=f"list the newest N; 0 lists all (default: {DEFAULT_LIMIT})",
    )
    add_ledger(parser)
    add_tenant(parser)
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.ledger import open_ledger

    with open_ledger(given.ledger, tenant=given.tenant, create=False) as ledger:
        found = sorted(_read_lines(ledger, given.state), key=lambda line: line.at, reverse=True)
        shown = found[: given.limit] if given.limit else found
        objectives = [_read_objective(ledger, line.chain) for line in shown]
    if given.json:
        traces: list[dict[str, Any]] = [
            {**line._asdict(), "objective": objective} for line, objective in zip(shown, objectives, strict=True)
        ]
        print_json({"found": len(found), "traces": traces})
        return 0
    rows: list[list[LinePart]] = [
        [
            line.trace,
            format_time(line.at)[:16],
            StyledText(line.state, _STYLES[line.state]) if line.state in _STYLES else line.state,
            str(line.events),
            clip(to_one_line(objective), OBJECTIVE_WIDTH),
        ]
        for line, objective in zip(shown, objectives, strict=True)
    ]
    screen.print_table(rows, header=HEADER)
    errors = StderrScreen()
    if not found:
        errors.print_note("no traces: aver protocol run TASK begins one")
    elif len(shown) < len(found):
        errors.print_note(f"{plural(len(found) - len(shown), 'older trace')} not listed; -n 0 lists all")
    return 0


def _read_lines(ledger: Ledger, state: str | None) -> list[TraceLine]:
    """Read the last record of every trace: it says in which state the trace stands."""
    from aver.capsule.aver_block import TRACE_PREFIX

    found = []
    for row in ledger.store.chains(ledger.tenant):
        if not row.count or not (row.origin or row.name).startswith(TRACE_PREFIX):
            continue
        last = _read_record(ledger, row, row.count - 1)
        context = last.get("context", {})
        block = context.get("environment", {}).get("protocol", {})
        at = context.get("environment", {}).get("aver", {}).get("at", "")
        trace = row.name.removeprefix(TRACE_PREFIX)
        line = TraceLine(trace, row.name, str(block.get("after", "?")), row.count, str(at))
        if state in (None, line.state):
            found.append(line)
    return found


def _read_objective(ledger: Ledger, chain: str) -> str:
    row = ledger.store.chain(ledger.tenant, chain)
    result = {} if row is None else _read_record(ledger, row, 0).get("outcome", {}).get("result")
    task = result.get("task") if isinstance(result, dict) else None
    return str(task.get("objective", "")) if isinstance(task, dict) else ""


def _read_record(ledger: Ledger, row: ChainRow, sequence: int) -> dict[str, Any]:
    """Read one record without verifying it; empty if it cannot be read. `aver verify` says why."""
    from aver.errors import AverError

    try:
        # From the store itself: `Ledger.read` would look up the head row of every chain once more.
        with ledger.store.read_rows(row, sequence, sequence + 1) as rows:
            for stored in rows:
                return dict(stored.sealed.content)
    except (AverError, ValueError):
        pass
    return {}
