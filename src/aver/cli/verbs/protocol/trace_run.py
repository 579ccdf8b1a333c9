"""Running a trace on the command line: its roles, its lines, its summary and its exit code.

`AVER_HOME/protocol/<trace>.run.json` keeps who plays the roles and where, so that `resume` needs no task file:

    {"v": 1, "workspace": "/work/shop", "directory": "/work/tasks", "roles": {"planner": {"role": "planner", ...}}}
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from aver.cli.terminal import Screen, StderrScreen, StyledText, Terminated, print_json, raise_on_sigterm
from aver.cli.verbs.protocol.trace_access import print_event
from aver.errors import AverError, NotFound
from aver.text import plural, to_one_line

if TYPE_CHECKING:
    from aver.ledger import Ledger
    from aver.protocol.events import Event
    from aver.protocol.roles.protocol_run import RunNote
    from aver.protocol.roles.role import RoleFunction
    from aver.protocol.roles.task_file import RoleSpec
    from aver.protocol.session import ProtocolSession

COMPLETED, FAILED, UNFINISHED, NOTHING_ALLOWED = 0, 1, 3, 5

RUN_FILE_MAX = 1024 * 1024


class SavedRun(NamedTuple):
    """Who plays the roles of a trace, and where."""

    workspace: str
    directory: str
    roles: tuple[RoleSpec, ...]


def save_run_files(session: ProtocolSession, roles: Iterable[RoleSpec], *, workspace: str, directory: str) -> None:
    """Write down who plays the roles, for `resume`."""
    from aver.files.atomic import make_directory, replace_file

    path = _run_path(session)
    make_directory(path.parent)
    named = {spec.agent.removeprefix("agent:"): spec.to_dict() for spec in roles}
    content = {"v": 1, "workspace": workspace, "directory": directory, "roles": named}
    replace_file(path, json.dumps(content, indent=2).encode())


def load_saved_run(session: ProtocolSession, missing: str = "--task FILE") -> SavedRun:
    """Read who plays the roles, and where. Raises `NotFound` if this home did not run the trace.

    `missing` is the option that would have made this needless.
    """
    from aver.files.regular import open_file
    from aver.protocol.roles.task_file import read_task

    path = _run_path(session)
    try:
        with open_file(path) as file:
            found = json.loads(file.read(RUN_FILE_MAX))
        roles = read_task({"objective": "-", "roles": found["roles"]}, str(path)).roles
        return SavedRun(str(found["workspace"]), str(found["directory"]), roles)
    except NotFound:
        words = f"this home does not know who plays the roles of {session.trace}, and where"
        raise NotFound(words, advice=f"run it where it was begun, or give {missing}; {path} is not there") from None
    except (ValueError, KeyError, TypeError) as error:
        raise NotFound(f"{path} cannot be read", advice=f"give {missing}") from error


def _run_path(session: ProtocolSession) -> Path:
    return session.home / "protocol" / f"{session.trace}.run.json"


def load_roles(
    ledger: Ledger, roles: tuple[RoleSpec, ...], *, workspace: str, directory: str
) -> dict[str, RoleFunction]:
    """Return the functions of the roles. Wrong options, and programs that are not there, raise `BadInput`."""
    from aver.protocol.roles.role_sources import build_roles

    def read_blob(digest: str) -> bytes | None:
        try:
            return ledger.blob(digest)
        except AverError:
            return None

    return build_roles(roles, workspace=workspace, directory=directory, blob=read_blob)


def run_and_report(
    session: ProtocolSession,
    roles: tuple[RoleSpec, ...],
    functions: Mapping[str, RoleFunction],
    given: argparse.Namespace,
    screen: Screen,
) -> int:
    """Run an open session, print what happens, and return the exit code."""
    from aver.protocol.roles.protocol_run import run_session

    shown = None if given.json else screen

    def watch(note: RunNote) -> None:
        if shown is not None and note.event is not None:
            print_event(shown, note.event)
        elif note.waits_for:
            StderrScreen().print_note(_describe_wait(note, given.wait))
        elif note.event is None:
            StderrScreen().print_note(f"refused: {note.agent}: {note.refusal}")

    session.tools = build_tools(session.workspace, roles)
    if shown is not None:
        shown.print_line(StyledText(f"trace {session.trace}", "strong"), f"  profile {session.fold.profile}")
        for event in session.events:
            print_event(shown, event)
    try:
        with raise_on_sigterm():
            run_session(session, functions, watch=watch, wait=float(given.wait))
    except Terminated:
        # The commands of its calls have been ended on the way here.
        StderrScreen().print_note(f"ended by SIGTERM; go on with: aver protocol resume {session.trace}")
        return UNFINISHED
    except AverError as error:
        if given.json:
            raise
        StderrScreen().print_error(error.message, error.advice.replace("TRACE", session.trace))
        _print_state(session, screen)
        return error.exit_code
    if given.json:
        print_json(summarise(session))
    else:
        _print_state(session, screen)
        _print_next_steps(session, functions)
    return find_exit_code(session)


def build_tools(workspace: str, roles: Iterable[RoleSpec]) -> Any:
    """Return the tools of a run: the standard ones, and those of the built-in roles that take part."""
    from aver.protocol.tools.standard_tools import protocol_tools

    tools = protocol_tools(workspace)
    if any(spec.source == "use" and spec.value == "review" for spec in roles):
        from aver.protocol.roles.range_review import REVIEW_TOOL, build_review_tool
        from aver.protocol.tools.function_tools import function_tools

        tools = tools.with_tools(function_tools({REVIEW_TOOL: build_review_tool(workspace)}))
    return tools


def find_exit_code(session: ProtocolSession) -> int:
    """Return the exit code for where a trace stands."""
    if session.state == "completed":
        executions = session.fold.intents.values()
        if executions and all(intent.code == "REFUSED" for intent in executions):
            return NOTHING_ALLOWED
        return COMPLETED
    if session.state == "failed":
        return FAILED
    ended = [intent.code for intent in session.fold.intents.values() if intent.end is not None]
    return NOTHING_ALLOWED if ended and all(code == "REFUSED" for code in ended) else UNFINISHED


def summarise(session: ProtocolSession) -> dict[str, Any]:
    """Return the answer of `run --json`."""
    report, digest = read_report(session)
    judged = {claim["id"]: claim["evidence"] for claim in report.get("claims", [])}
    claims = [
        {
            "id": claim.id,
            "text": claim.text,
            "standing": claim.standing,
            "evidence": judged.get(claim.id, [dict(item) for item in claim.evidence]),
        }
        for claim in session.fold.claims.values()
    ]
    return {
        "trace": session.trace,
        "chain": session.chain,
        "state": session.state,
        "status": session.fold.status,
        "claims": claims,
        "report_sha256": digest,
        "verdict": session.verify().to_dict(),
    }


def read_report(session: ProtocolSession) -> tuple[dict[str, Any], str | None]:
    """Return the auditor's report and its digest; an empty one where the trace was not audited."""
    audit = _find_audit(session)
    if audit is None:
        return {}, None
    digest = audit.payload["report"]["blob"]["digest"]
    try:
        return json.loads(session.ledger.blob(digest)), digest
    except (AverError, ValueError):
        return {}, digest


def _find_audit(session: ProtocolSession) -> Event | None:
    """The end of the audit; None where the trace was not audited."""
    return next((event for event in reversed(session.events) if event.name == "verification_run_completed"), None)


def _print_state(session: ProtocolSession, screen: Screen) -> None:
    """Print where a trace stands, its claims, and the findings about it."""
    from aver.protocol.judgement.report_text import describe_finding

    report, _ = read_report(session)
    audit = _find_audit(session)
    screen.print_line()
    style = {"completed": "good", "failed": "bad", "aborted": "warn"}.get(session.state, "warn")
    # The auditor's own word: it also weighs the keys that it does not know. The report does not.
    status = f", audit {audit.payload['status']}" if audit is not None else ""
    screen.print_line(StyledText(session.state, style), status)
    judged = {claim["id"]: claim["evidence"] for claim in report.get("claims", [])}
    for claim in session.fold.claims.values():
        evidence = judged.get(claim.id)
        mark = screen.status_mark("pending" if evidence is None else _judge_mark(claim.standing, evidence))
        screen.print_line("  ", mark, f" {to_one_line(claim.text)}", StyledText(f"  ({claim.standing})", "dim"))
    for found in report.get("findings", []):
        if found["status"] != "note":
            mark = screen.status_mark("failed" if found["status"] == "failed" else "warning")
            screen.print_hanging("  ", mark, f" {found['code']}: ", text=describe_finding(found, report))
    for fingerprint in audit.payload["keys"]["unknown"] if audit is not None else ():
        owner = session.fold.bound_keys[fingerprint].agent
        words = f"the auditor does not know the key {fingerprint} of {owner}: aver keys trust makes a key known"
        screen.print_hanging("  ", screen.status_mark("warning"), " UNKNOWN_SIGNER: ", text=words)


def _print_next_steps(session: ProtocolSession, functions: Mapping[str, RoleFunction]) -> None:
    """Print who is waited for, and the commands that lead on."""
    from aver.protocol.roles.protocol_run import find_awaited

    errors = StderrScreen()
    if session.fold.is_over:
        errors.print_note(f"aver show {session.trace} tells the whole trace; aver verify {session.trace} checks it")
        return
    for challenge in session.fold.challenges.values():
        if challenge.standing == "open":
            errors.print_note(f"disputed: {challenge.reason}")
            advice = f"aver protocol resolve {session.trace} {challenge.id[:8]}; once more when the person has answered"
            errors.print_note(f"if executor and critic do not agree, let a person rule: {advice}")
    if session.fold.running:
        errors.print_note(f"another process is making a call; when it has ended: aver protocol resume {session.trace}")
        return
    if session.state == "auditing":
        errors.print_note(_describe_missing_audit(session))
        return
    awaited = find_awaited(session, functions)
    words = f"the trace waits for {', '.join(awaited)}" if awaited else "nobody has anything to say"
    errors.print_note(f"{words}; go on with: aver protocol resume {session.trace}")


def _describe_missing_audit(session: ProtocolSession) -> str:
    """Say who must audit a trace whose final statement is signed, and by which commands."""
    from aver.protocol.records.membership import is_held_here

    trace, parts = session.trace, session.fold.participants
    auditors = [agent for agent, participant in parts.items() if participant.role == "auditor"]
    if not auditors:
        join = f"aver protocol join {trace} --role auditor --as agent:NAME"
        return f"the trace waits for an audit and has no auditor: {join}; then: aver protocol audit {trace}"
    if any(is_held_here(session, agent) for agent in auditors):
        return f"the trace waits for {', '.join(auditors)}: aver protocol audit {trace}"
    words = f"the trace waits for {', '.join(auditors)}, whose key is elsewhere: aver export --out DIR {session.chain}"
    return f"{words}; the auditor runs: aver protocol audit DIR --contribute FILE"


def _judge_mark(standing: str, evidence: list[dict[str, Any]]) -> str:
    if standing in ("disputed", "refuted", "retracted"):
        return "warning"
    return "passed" if all(item.get("holds") for item in evidence) else "failed"


def _describe_wait(note: RunNote, seconds: int) -> str:
    words = f"waiting for {', '.join(note.waits_for)}, up to {plural(seconds, 'second')}"
    return f"{words}: the claims can be challenged until {note.agent} concludes" if note.agent else words
