"""`aver sessions`: lists the sessions of coding agents, newest first, each with its figures and verdict."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from aver.cli.options import add_json, add_ledger, add_tenant, parse_count, parse_time
from aver.cli.read_only import print_read_only_note, verdict_entry
from aver.cli.terminal import LinePart, Progress, Screen, StderrScreen, StyledText, clip, format_time, print_json
from aver.cli.verdict_text import STATUS_STYLES, exit_code
from aver.text import plural, to_one_line

if TYPE_CHECKING:
    from aver.sessions.figures import SessionTotals
    from aver.verdict import Verdict

EXAMPLES = """\
  aver sessions                                 verify and list the newest twenty
  aver sessions --tool claude-code --since 7d
  aver sessions -n 0 --no-verify                list all quickly, without verifying
  aver show 5d2e                                read one of them"""

DEFAULT_LIMIT = 20
"""Sessions listed by default: they fill one screen and are verified quickly."""

SESSION_WIDTH, TITLE_WIDTH = 13, 44
"""Columns for the id and the title. `aver show` accepts the beginning of an id."""

HEADER = (
    *("tool", "session", "started (UTC)", "actions", "gated", "edits", "tokens", "cost", "denied", "verdict"),
    "title",
)

NOT_CHECKED = "not checked"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tool", metavar="NAME", help="only sessions of this tool, such as claude-code")
    parser.add_argument(
        "--since",
        type=parse_time,
        metavar="TIME",
        help="only sessions active after this time: 2026-05-31T09:00, or 7d for 7 days ago",
    )
    parser.add_argument(
        "-n",
        "--limit",
        type=parse_count,
        default=DEFAULT_LIMIT,
        metavar="N",
        help=f"list the newest N; 0 lists all (default: {DEFAULT_LIMIT})",
    )
    parser.add_argument("--no-verify", action="store_true", help="do not verify the sessions")
    add_ledger(parser)
    add_tenant(parser)
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.check import open_ledger
    from aver.sessions.figures import compute_totals
    from aver.sessions.sessions import find_sessions, verify_session

    with open_ledger(given.ledger, tenant=given.tenant, create=False) as ledger:
        found = find_sessions(ledger, tool=given.tool, since=given.since)
        shown = found[: given.limit] if given.limit else found
        listed: list[tuple[SessionTotals, Verdict | None]] = []
        with Progress("reading sessions") as progress:
            for number, chains in enumerate(shown):
                verdict = None if given.no_verify else verify_session(ledger, chains)
                listed.append((compute_totals(ledger, chains), verdict))
                progress(number + 1, len(shown))
        if given.json:
            json_found = len(found)
            sessions: list[dict[str, Any]] = [
                {**asdict(session), "verdict": NOT_CHECKED if verdict is None else verdict.to_dict()}
                for session, verdict in listed
            ]
            found_in = {"ledger": ledger.id, "tenant": ledger.tenant, **verdict_entry(ledger)}
            print_json({**found_in, "found": json_found, "sessions": sessions})
        else:
            _print_table(screen, listed)
        code = print_read_only_note(ledger)
    if not given.json:
        remarks_found = len(found)
        errors = StderrScreen()
        if listed and not screen.terminal:  # There the table has its headings.
            errors.print_note(f"columns: {', '.join(HEADER)}; for programs: --json")
        if not remarks_found:
            errors.print_note("no sessions yet: aver ingest --all records them from the transcripts on this machine")
        elif len(listed) < remarks_found:
            errors.print_note(f"{plural(remarks_found - len(listed), 'older session')} not listed; -n 0 lists all")
        if any(session.tokens_in is None and session.actions and not session.prompts for session, _ in listed):
            errors.print_note("tokens -: not known. Hooks do not report them; aver ingest reads them from transcripts")
        for session, remarks_verdict in listed:
            if session.observed:
                words = f"{plural(session.observed, 'decision')} in the mode observe: nothing was held back"
                errors.print_note(f"{session.tool} {session.session}: {words}")
            if remarks_verdict is not None and remarks_verdict.first_bad is not None:
                errors.print_note(f"{session.tool} {session.session}: {remarks_verdict.first_bad}")
    return code or exit_code([verdict.status for _, verdict in listed if verdict is not None], strict=False)


def _gated_text(session: SessionTotals) -> LinePart:
    """How many of the actions the gate decided about: all, 3/5, or none."""
    if not session.actions:
        return "-"
    if session.gated >= session.actions:
        return StyledText("observed", "warn") if session.observed else "all"
    return StyledText(f"{session.gated}/{session.actions}" if session.gated else "not gated", "warn")


def _compact_number(number: int | None) -> str:
    """A number in few columns: 950, 12.3k, 4.1M. `-` if it is not known."""
    if number is None:
        return "-"
    for size, letter in ((10**6, "M"), (10**3, "k")):
        if number >= size:
            return f"{number / size:.1f}{letter}"
    return str(number)


def _print_table(screen: Screen, listed: list[tuple[SessionTotals, Verdict | None]]) -> None:
    from aver.sessions.labels import format_money

    rows: list[list[LinePart]] = []
    for session, verdict in listed:
        rows.append(
            [
                session.tool,
                clip(to_one_line(session.session), SESSION_WIDTH),
                format_time(session.started)[:16],
                str(session.actions),
                _gated_text(session),
                f"{session.edits} (+{session.lines_added}/-{session.lines_removed})" if session.edits else "-",
                f"{_compact_number(session.tokens_in)}/{_compact_number(session.tokens_out)}",
                "-" if session.cost_usd is None else format_money(session.cost_usd),
                StyledText(str(session.denials), "warn") if session.denials else "-",
                StyledText(NOT_CHECKED, "dim")
                if verdict is None
                else StyledText(verdict.status, STATUS_STYLES[verdict.status]),
                clip(to_one_line(session.title), TITLE_WIDTH),
            ]
        )
    screen.print_table(rows, header=HEADER)
