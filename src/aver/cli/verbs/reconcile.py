"""`aver reconcile`: compares a sealed session with its transcript and with the git history."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from aver.cli.options import add_json, add_ledger, add_tenant
from aver.cli.terminal import Screen, print_json
from aver.cli.verdict_text import exit_code, print_verdict

EXAMPLES = """\
  aver reconcile 5d2e4c1a                  name the session by its id, or the beginning of it
  aver reconcile claude-code.5d2e4c1a      name the session by its chain
  aver reconcile 5d2e4c1a --json

exit code: 0 verified or qualified, 1 failed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION", help="a session's id or its beginning, or its chain")
    parser.add_argument("--strict", action="store_true", help="exit with 1 when the verdict is only qualified")
    add_ledger(parser)
    add_tenant(parser)
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.agents.registry import load_adapter
    from aver.check import open_ledger
    from aver.errors import NotFound
    from aver.files.user_dirs import current_user_environment
    from aver.ingest.reconcile import reconcile_session
    from aver.sessions.sessions import find_named_session

    with open_ledger(given.ledger, tenant=given.tenant, create=False) as ledger:
        found = find_named_session(ledger, given.session)
        if found is None or found.imported:
            words = f"there is no session {given.session} of this ledger that can be read"
            raise NotFound(words, advice="aver sessions lists the sessions; aver verify names damaged records")
        adapter = load_adapter(found.tool)
        verdict, counts = reconcile_session(ledger, adapter, current_user_environment(), found.session, found.recorded)
    if given.json:
        print_json({**verdict.to_dict(), "reconciled": asdict(counts)})
        return exit_code([verdict.status], strict=given.strict)
    print_verdict(screen, verdict)
    screen.print_line()
    rows = [(name.replace("_", " "), f"{number:,}") for name, number in asdict(counts).items()]
    screen.print_table(rows, indent=2)
    return exit_code([verdict.status], strict=given.strict)
