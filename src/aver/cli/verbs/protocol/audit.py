"""`aver protocol audit`: audits a trace as its auditor, or judges it again. Writes the report as files."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from aver.cli.options import Usage, add_force, add_json, add_ledger, add_tenant
from aver.cli.terminal import Screen, StderrScreen, print_json
from aver.cli.verbs.protocol.run import PROFILES
from aver.cli.verbs.protocol.trace_access import add_trace, open_session

if TYPE_CHECKING:
    from aver.protocol.session import ProtocolSession

EXAMPLES = """\
  aver protocol audit 5d2e                         as its auditor, if the final statement is signed; else only judge
  aver protocol audit 5d2e --profile strict        judge by a stricter profile; nothing is appended
  aver protocol audit 5d2e --rerun                 repeat the repeatable calls on the recorded commit, too
  aver protocol audit 5d2e --out report            write report.json report.txt report.html statement.json keys.json

exit code: 0 pass or pass-with-warnings, 1 fail."""

FAILED = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_trace(parser)
    parser.add_argument("--profile", choices=PROFILES, help="judge by this profile; nothing is appended then")
    parser.add_argument("--rerun", action="store_true", help="repeat the repeatable calls, through the gate")
    parser.add_argument("--workspace", metavar="DIR", help="the repository for --rerun (default: where the trace ran)")
    parser.add_argument("--out", metavar="DIR", help="write the report into this directory")
    add_force(parser)
    add_ledger(parser)
    add_tenant(parser)
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.protocol.judgement.audit import report_trace, write_report_files
    from aver.protocol.judgement.report_text import render_report_text

    with open_session(given) as session:
        is_due = session.state == "auditing" and given.profile is None
        if given.rerun and not is_due:
            words = f"calls are repeated while the trace is audited, and it is {session.state}"
            raise Usage(words, advice="leave --rerun and --profile out")
        if is_due:
            _audit(session, given)
        made = report_trace(session.ledger, session.trace, profile=given.profile)
        state = session.state
    report = made.report
    paths = []
    if given.out is not None:
        paths = write_report_files(Path(given.out), made, force=given.force)
    if given.json:
        found = {"trace": session.trace, "state": state, "report": dict(report.content), "sha256": report.sha256}
        print_json({**found, "signed": made.statement is not None, "files": [str(path) for path in paths]})
    else:
        for line in render_report_text(report.content, made.texts).splitlines():
            screen.print_line(line)
        errors = StderrScreen()
        signed = (
            "signed by the auditor" if made.statement is not None else "not signed: nobody has audited exactly this"
        )
        errors.print_note(f"report {report.sha256[:16]}, {signed}")
        if paths:
            errors.print_note(f"wrote {', '.join(path.name for path in paths)} into {given.out}")
    return FAILED if report.status == "fail" else 0


def _audit(session: ProtocolSession, given: argparse.Namespace) -> None:
    """Audit as the auditor whose key is in this home."""
    if given.rerun:
        from aver.cli.verbs.protocol.trace_run import build_tools, load_saved_run

        saved = load_saved_run(session)
        session.workspace = os.path.abspath(given.workspace or saved.workspace)
        session.tools = build_tools(session.workspace, saved.roles)
    session.auditor.audit(rerun=given.rerun)
