"""`aver protocol audit`: audits a trace as its auditor, or judges it again. Writes the report as files.

An auditor elsewhere has the trace only as a bundle. It signs the two events of its audit for the operator: the start of
the run, and, on a new export that has the start, its end with the report.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from aver.cli.options import Usage, add_force, add_json, add_ledger, add_tenant
from aver.cli.terminal import Screen, StderrScreen, print_json
from aver.cli.verbs.protocol.run import PROFILES
from aver.cli.verbs.protocol.trace_access import open_bundle_session, open_session, write_signed

if TYPE_CHECKING:
    from aver.protocol.session import ProtocolSession

EXAMPLES = """\
  aver protocol audit 5d2e                         as its auditor, if the final statement is signed; else only judge
  aver protocol audit 5d2e --profile strict        judge by a stricter profile; nothing is appended
  aver protocol audit 5d2e --rerun                 repeat the repeatable calls on the recorded commit, too
  aver protocol audit 5d2e --out report            write report.json report.txt report.html statement.json keys.json
  aver protocol audit bundle --contribute start.json     as an auditor elsewhere: sign the start for the operator;
  aver protocol audit bundle2 --contribute end.json      then, on an export that has it, the end with the report

exit code: 0 pass or pass-with-warnings, 1 fail."""

FAILED = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("trace", metavar="TRACE|BUNDLE", help="a trace here, or a bundle of a trace elsewhere")
    parser.add_argument("--profile", choices=PROFILES, help="judge by this profile; nothing is appended then")
    parser.add_argument("--rerun", action="store_true", help="repeat the repeatable calls, through the gate")
    parser.add_argument("--workspace", metavar="DIR", help="the repository for --rerun (default: where the trace ran)")
    parser.add_argument("--out", metavar="DIR", help="write the report into this directory")
    parser.add_argument(
        "--contribute", metavar="FILE", help="sign the next event of the audit for the operator; append nothing"
    )
    add_force(parser)
    add_ledger(parser)
    add_tenant(parser)
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.protocol.judgement.audit import report_trace, write_report_files
    from aver.protocol.judgement.report_text import render_report_text

    is_bundle = os.path.isdir(given.trace)
    with open_bundle_session(given.trace, given.tenant) if is_bundle else open_session(given) as session:
        if given.contribute is not None:
            return _contribute(session, given, screen)
        is_due = session.state == "auditing" and given.profile is None and not is_bundle
        if given.rerun and not is_due:
            raise _rerun_error(session.state, given, is_bundle=is_bundle)
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
        if given.rerun and not any(each["rerun"] for each in report.content["executions"]):
            errors.print_note("no call was repeated: none was signed as repeatable and has completed")
        if paths:
            errors.print_note(f"wrote {', '.join(path.name for path in paths)} into {given.out}")
    return FAILED if report.status == "fail" else 0


def _rerun_error(state: str, given: argparse.Namespace, *, is_bundle: bool) -> Usage:
    """The error where --rerun cannot be used. An audit repeats calls while it is made, and a trace has one audit."""
    if is_bundle:
        return Usage("calls are repeated where the trace was run", advice="leave --rerun out")
    if state == "auditing":
        return Usage("--profile judges and appends nothing, so it repeats nothing", advice="leave --profile out")
    words = f"calls are repeated while the trace is audited, and it is {state}"
    if state not in ("completed", "failed", "aborted"):
        return Usage(words, advice="wait for the final statement")
    advice = (
        "leave --rerun out; in the task of a new trace, give the auditor waits = true: then the run leaves the audit"
    )
    return Usage(words, advice=f"{advice} to aver protocol audit TRACE --rerun")


def _contribute(session: ProtocolSession, given: argparse.Namespace, screen: Screen) -> int:
    """Sign the next event of an audit, for the operator to accept."""
    if given.rerun or given.profile is not None or given.out is not None:
        raise Usage("--contribute signs one event", advice="leave --rerun, --profile and --out out")
    signed = session.auditor.contribute()
    write_signed(given.contribute, signed, force=given.force)
    event, status = signed.statement.content["event"], signed.payload.get("status")
    if given.json:
        print_json({"path": given.contribute, "event": event, "status": status})
    else:
        name = os.path.basename(given.contribute)
        screen.print_line(f"wrote {given.contribute}: {event}{f', {status}' if status else ''}")
        screen.print_line(f"The operator runs: aver protocol accept {name}")
        if status is None:
            screen.print_line("Then get a new export, and run this on it: it signs the report.")
    return FAILED if status == "fail" else 0


def _audit(session: ProtocolSession, given: argparse.Namespace) -> None:
    """Audit as the auditor whose key is in this home."""
    if given.rerun:
        from aver.cli.verbs.protocol.trace_run import build_tools, load_saved_run

        saved = load_saved_run(session)
        session.workspace = os.path.abspath(given.workspace or saved.workspace)
        session.tools = build_tools(session.workspace, saved.roles)
    session.auditor.audit(rerun=given.rerun)
