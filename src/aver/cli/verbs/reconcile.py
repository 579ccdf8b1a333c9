"""`aver reconcile`: hold what was sealed of a session to its transcript, and to git."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from aver.cli.options import add_json, add_ledger, add_tenant
from aver.cli.terminal import Screen, print_json
from aver.cli.verdict_text import exit_code, print_verdict

if TYPE_CHECKING:
    from aver.ingest.reconcile import Reconciliation
    from aver.ledger import Ledger

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = """\
  aver reconcile 5d2e4c1a                  a session, by its id or the beginning of it
  aver reconcile claude-code.5d2e4c1a      by its chain
  aver reconcile 5d2e4c1a --json

exit code: that of the verdict: 0 verified or qualified, 1 failed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION", help="a session's id or its beginning, or its chain")
    parser.add_argument("--strict", action="store_true", help="exit with 1 also where the verdict is qualified")
    add_ledger(parser)
    add_tenant(parser)
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.ledger import open_ledger

    with open_ledger(given.ledger, tenant=given.tenant, create=False) as ledger:
        verdict, counts = _reconcile_session(ledger, given.session)
    if given.json:
        print_json({**verdict.to_dict(), "reconciled": asdict(counts)})
        return exit_code([verdict.status], strict=given.strict)
    print_verdict(screen, verdict)
    screen.print_line()
    rows = [(name.replace("_", " "), f"{number:,}") for name, number in asdict(counts).items()]
    screen.print_table(rows, indent=2)
    return exit_code([verdict.status], strict=given.strict)


def _reconcile_session(ledger: Ledger, name: str) -> Reconciliation:
    from aver.agents.registry import load_adapter
    from aver.files.user_dirs import current_user_environment
    from aver.ingest.reconcile import reconcile
    from aver.sessions.find import find_session, list_session_chains

    tool, session = find_session(ledger, name)
    adapter = load_adapter(tool)
    sources = [source for source in adapter.locate(current_user_environment()) if source.session == session]
    return reconcile(ledger, adapter, sources, list_session_chains(ledger, tool, session))
