"""`aver protocol audit`: audits a trace as its auditor, or judges an audited one again. Writes the report as files."""

from __future__ import annotations

import argparse

from aver.cli.options import add_force, add_json, add_ledger, add_tenant
from aver.cli.terminal import Screen
from aver.cli.verbs.protocol.run import PROFILES
from aver.cli.verbs.protocol.trace_access import add_trace

EXAMPLES = """\
  aver protocol audit 5d2e                         as the auditor, if the final statement is signed; else only judge
  aver protocol audit 5d2e --profile strict        judge by a stricter profile; nothing is appended
  aver protocol audit 5d2e --rerun                 repeat the repeatable calls on the recorded commit, too
  aver protocol audit 5d2e --out report            write report.json report.txt report.html statement.json keys.json

exit code: 0 pass or pass-with-warnings, 1 fail."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_trace(parser)
    parser.add_argument("--profile", choices=PROFILES, help="judge by this profile, if it is stricter than the trace's")
    parser.add_argument("--rerun", action="store_true", help="repeat the repeatable calls, through the gate")
    parser.add_argument("--out", metavar="DIR", help="write the report into this new directory")
    add_force(parser)
    add_ledger(parser)
    add_tenant(parser)
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.cli.verbs.protocol.trace_audit import audit

    return audit(given, screen)
