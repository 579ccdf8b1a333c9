"""`aver report`: writes sessions as one printable HTML file with their records inside, signed by the ledger's key."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from aver.cli.options import Usage, add_force, add_json, add_ledger, add_tenant, parse_time
from aver.cli.terminal import Screen, StderrScreen, print_json
from aver.cli.verdict_text import exit_code, print_verdict
from aver.text import plural, to_one_line

if TYPE_CHECKING:
    from aver.ledger import Ledger
    from aver.sessions.sessions import SessionChains

EXAMPLES = """\
  aver report 5d2e --out report.html             one session
  aver report --since 7d --out week.html         all sessions of the last seven days
  aver report --since 2026-05-01 --until 2026-06-01 --tool codex --out may.html
  aver verify report.html --key keys.json        what its receiver runs"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", nargs="?", metavar="SESSION", help="a session: its id, its chain, or the beginning")
    parser.add_argument("--since", type=parse_time, metavar="TIME", help="all sessions active at or after this time")
    parser.add_argument("--until", type=parse_time, metavar="TIME", help="with --since: that ended before this time")
    parser.add_argument("--tool", metavar="NAME", help="with --since: only sessions of this tool")
    parser.add_argument("--out", required=True, metavar="FILE", help="the HTML file to write")
    add_force(parser)
    add_ledger(parser)
    add_tenant(parser)
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.check import open_ledger
    from aver.sessions.report import make_report

    if (given.session is None) == (given.since is None):
        raise Usage("name a session, or give --since", advice="aver sessions lists the sessions")
    if given.session is not None and (given.until or given.tool):
        raise Usage("--until and --tool go with --since", advice="leave them out")
    with open_ledger(given.ledger, tenant=given.tenant, create=False) as ledger:
        sessions = _select_sessions(ledger, given)
        made = make_report(ledger, sessions, Path(given.out), since=given.since, until=given.until, force=given.force)
    if given.json:
        described = {**asdict(made), "path": given.out, "verdict": made.verdict.to_dict()}
        print_json(described)
    else:
        screen.print_line(to_one_line(f"wrote {given.out}: {plural(made.sessions, 'session')}"))
        print_verdict(screen, made.verdict)
        StderrScreen().print_note(f"signed by {made.signed_by}; its receiver runs: aver verify {given.out} --key KEY")
    return exit_code([made.verdict.status], strict=False)


def _select_sessions(ledger: Ledger, given: argparse.Namespace) -> list[SessionChains]:
    from aver.errors import BadInput
    from aver.ledger.lookup import locate
    from aver.sessions.sessions import find_session_by_chain, find_sessions

    if given.session is None:
        found = find_sessions(ledger, tool=given.tool, since=given.since)
        # The oldest first: a report is read from its beginning.
        return [chains for chains in reversed(found) if given.until is None or chains.latest < given.until]
    session = find_session_by_chain(ledger, locate(ledger, given.session).chain)
    if session is None:
        raise BadInput(f"{given.session} is no session of a coding agent", advice="aver sessions lists the sessions")
    return [session]
