"""Functions that the subcommands share: they name a trace by the beginning of its id, open its session, show events."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aver.cli.options import Usage
from aver.cli.terminal import LinePart, Screen, StyledText
from aver.errors import BadInput, NotFound
from aver.text import to_one_line

if TYPE_CHECKING:
    from aver.ledger import Ledger
    from aver.protocol.events import Event
    from aver.protocol.session import ProtocolSession
    from aver.protocol.statements import ContributionFile

SHORTEST_PREFIX = 4
"""Characters that name a trace at the least."""

AGENT_WIDTH = 18
EVENT_WIDTH = 26


def add_trace(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "trace",
        metavar="TRACE",
        help=f"the trace's id, or its beginning ({SHORTEST_PREFIX} characters at least); aver protocol list shows them",
    )


def add_agent(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--as", dest="agent", required=True, metavar="agent:NAME", help="the participant who speaks")


def read_agent(name: str) -> str:
    """Return the identity of an agent: `critic` stands for `agent:critic`."""
    return name if ":" in name else f"agent:{name}"


def find_trace(ledger: Ledger, text: str) -> str:
    """Return the id of the one trace that begins with a text. Raises `NotFound`, or `Usage` if there are several."""
    from aver.capsule.aver_block import TRACE_PREFIX

    wanted = text.removeprefix(TRACE_PREFIX)
    chains = [row.name for row in ledger.store.chains(ledger.tenant)]
    names = [name.removeprefix(TRACE_PREFIX) for name in chains if name.startswith(TRACE_PREFIX)]
    if wanted in names:
        return wanted
    found = [name for name in names if name.startswith(wanted)]
    if found and len(wanted) < SHORTEST_PREFIX:
        advice = f"give its id, or at least {SHORTEST_PREFIX} characters of its beginning"
        raise Usage(f"{ascii(wanted)[:80]} is too short for the name of a trace", advice=advice)
    if len(found) > 1:
        raise Usage(f"{len(found)} traces begin with {wanted}", advice="give more of the id")
    if not found:
        raise NotFound(f"there is no trace {ascii(text)[:80]} in this ledger", advice="aver protocol list shows them")
    return found[0]


def open_session(given: argparse.Namespace, **options: Any) -> ProtocolSession:
    """Open the session of the trace that the command line names. It closes its ledger."""
    import aver
    from aver.check import open_ledger

    ledger = open_ledger(given.ledger, tenant=given.tenant, create=False)
    try:
        session: ProtocolSession = aver.ProtocolSession(
            None, ledger=ledger, trace=find_trace(ledger, given.trace), **options
        )
    except BaseException:
        ledger.close()
        raise
    return session


@contextmanager
def open_bundle_session(path: str, tenant: str | None) -> Iterator[ProtocolSession]:
    """Open the one trace of a bundle, to read and to sign for it. Raises `Usage` if it has none, or several."""
    import aver
    from aver.capsule.aver_block import TRACE_PREFIX
    from aver.check import open_read_only

    ledger = open_read_only(path, tenant=tenant)
    if ledger is None:
        raise Usage(f"{path} is no bundle")
    with ledger:
        names = [name for name in ledger.chains() if name.startswith(TRACE_PREFIX)]
        if len(names) != 1:
            raise Usage(f"{path} has {len(names)} traces, and must have one")
        with aver.ProtocolSession(None, ledger=ledger, trace=find_trace(ledger, names[0])) as session:
            yield session


def write_signed(path: str, signed: ContributionFile, *, force: bool) -> None:
    """Write what a participant has signed for the operator."""
    from aver.capsule.json_document import dump_document
    from aver.files.new_file import write_new_file

    write_new_file(Path(path), dump_document(signed.to_dict()), force=force)


def print_event(screen: Screen, event: Event) -> None:
    """Print an event as one line: its place, who said it, its name, and its gist."""
    style = _find_style(event)
    name: LinePart = StyledText(f"{event.name:<{EVENT_WIDTH}}", style) if style else f"{event.name:<{EVENT_WIDTH}}"
    screen.print_line(f"{event.sequence:>4}  {event.agent:<{AGENT_WIDTH}}  ", name, f"  {describe_event(event)}")


def _find_style(event: Event) -> str:
    payload = event.payload
    if event.name in ("claim_challenged", "session_failed", "tool_execution_failed", "session_aborted"):
        return "warn"
    if payload.get("verdict") in ("rejected", "blocked") or payload.get("status") == "fail":
        return "bad"
    if event.name == "verification_run_completed":
        return "good" if payload["status"] == "pass" else "warn"
    return ""


def describe_event(event: Event) -> str:
    """Return the gist of an event, on one line."""
    payload: dict[str, Any] = dict(event.payload)
    gists: dict[str, Callable[[], Any]] = {
        "session_initialized": lambda: payload["task"]["objective"],
        "participant_joined": lambda: f"{payload['participant']['agent']} as {payload['participant']['role']}",
        "proposal_created": lambda: payload["objective"],
        "proposal_reviewed": lambda: f"{payload['verdict']}: {payload['rationale']}",
        "tool_intent_signed": lambda: f"{payload['tool']} {_show_arguments(payload['arguments'])}",
        "intent_reviewed": lambda: f"{payload['verdict']}: {payload['rationale']}",
        "tool_execution_started": lambda: f"at {(payload['workspace'].get('revision') or 'no commit')[:12]}",
        "tool_execution_completed": lambda: f"exit code {payload['exit_code']}, {', '.join(payload['output'])}",
        "tool_execution_failed": lambda: f"{payload['code']}: {payload['words']}",
        "artifact_recorded": lambda: payload["name"],
        "claim_issued": lambda: payload["text"],
        "claim_challenged": lambda: payload["reason"],
        "claim_revised": lambda: ("retracted: " if payload["retracted"] else "") + str(payload["text"]),
        "challenge_resolved": lambda: f"{payload['outcome']}: {payload['rationale']}",
        "final_statement_signed": lambda: payload["text"],
        "verification_run_started": lambda: f"profile {payload['profile']}",
        "verification_run_completed": lambda: payload["status"],
        "session_aborted": lambda: payload["reason"],
        "session_failed": lambda: payload["finding"].get("words", ""),
    }
    return to_one_line(str(gists[event.name]()))


def _show_arguments(arguments: Any) -> str:
    if isinstance(arguments, dict) and isinstance(arguments.get("argv"), list):
        import shlex

        return shlex.join(map(str, arguments["argv"]))
    return json.dumps(arguments, ensure_ascii=False)


def event_to_dict(event: Event) -> dict[str, Any]:
    """Return an event as JSON answers have it."""
    names = ("trace", "name", "role", "agent", "before", "after", "id", "sequence", "hash", "at")
    found = {name: getattr(event, name) for name in names}
    return {**found, "event": found.pop("name"), "refs": dict(event.refs), "payload": dict(event.payload)}


def read_workspace(given: argparse.Namespace) -> str:
    """Return the workspace of the command line, absolute. Raises `Usage` if it is no directory."""
    workspace: str = os.path.abspath(given.workspace)
    if not os.path.isdir(workspace):
        raise Usage(f"the workspace {given.workspace} is not a directory")
    return workspace


def read_object(raw: bytes, where: str) -> dict[str, Any]:
    """Read a JSON object from a file or standard input. Raises `BadInput`."""
    from aver.capsule.json_document import parse_document

    found = parse_document(raw, where, limit=DOCUMENT_MAX)
    if not isinstance(found, dict):
        raise BadInput(f"{where} must be a JSON object")
    return found


DOCUMENT_MAX = 16 * 1024 * 1024
"""Largest payload or contribution that is read, in bytes."""
