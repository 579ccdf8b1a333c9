"""Repeating executions: an auditor makes repeatable calls again, through the gate, on the recorded commit.

Only a call whose intent was signed as repeatable is made again. The workspace must be as it was: the same commit, the
same uncommitted change. Else the call is made in a fresh checkout of the commit, if its runner can work there and
nothing was uncommitted. The gate decides about each call anew, and seals its decision in `gate.<trace>`.

Outputs of two honest runs are seldom the same bytes: they hold times and temporary paths. So a rerun is the *same* if

1. it ends with the same exit code, and
2. every check that a claim makes of this execution, or of one of its outputs, gives the same result.

Each entry says what came of one execution:

    {"execution", "same": true | false, "exit_code", "outputs": {name: sha256}}
    {"execution", "skipped": "REFUSED" | "OTHER_COMMIT" | "ARGUMENTS_MASKED" | "NO_TOOL"}

Nobody can recompute this from the trace. It is the auditor's word, and stands in the event that it seals.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from aver import clock
from aver.capsule.blobs import Blob
from aver.errors import AverError, Refused
from aver.gate.action import Action
from aver.log import debug
from aver.protocol.bounds import REPEATABLE_EFFECTS
from aver.protocol.calls import mask_bytes, read_workspace_state
from aver.protocol.evidence import read_item
from aver.protocol.predicates import Material, judge_check
from aver.protocol.runner import ToolFailure, ToolResult, ToolRunner
from aver.protocol.standings import ExecutionStanding
from aver.protocol.trace import ProtocolTrace

if TYPE_CHECKING:
    from aver.protocol.session import ProtocolSession

RERUNS_MAX = 1000
"""Executions that one audit repeats: as many as its event can list."""

CHECKOUT_SECONDS = 120
"""Time for a checkout of the recorded commit."""


@runtime_checkable
class MovableRunner(Protocol):
    """A runner that can make its calls in another directory."""

    def in_workspace(self, workspace: str) -> ToolRunner: ...


class _Skipped(Exception):
    """The call is not repeated. The only argument is the reason's code."""


def rerun_executions(session: ProtocolSession, trace: ProtocolTrace) -> list[dict[str, Any]]:
    """Repeat the repeatable executions of a trace that completed. Returns an entry for each."""
    found: list[dict[str, Any]] = []
    for execution in trace.executions.values():
        intent = trace.intents[execution.intent]
        if execution.code != "COMPLETED" or not intent.payload["repeatable"] or len(found) >= RERUNS_MAX:
            continue
        try:
            entry = _rerun(session, trace, execution)
        except _Skipped as error:
            entry = {"skipped": str(error)}
        debug("protocol", "execution %s repeated: %s", execution.id, entry)
        found.append({"execution": execution.id, **entry})
    return found


def _rerun(session: ProtocolSession, trace: ProtocolTrace, execution: ExecutionStanding) -> dict[str, Any]:
    intent = trace.intents[execution.intent]
    if session.tools is None or intent.tool not in session.tools.names:
        raise _Skipped("NO_TOOL")
    try:
        arguments = session.find_arguments(intent)
    except Refused:
        raise _Skipped("ARGUMENTS_MASKED") from None
    with _open_workspace(session, session.tools, execution) as (tools, workspace):
        _ask_again(session, tools, workspace, intent.tool, arguments)
        bounds = trace.bounds
        result = tools.run(intent.tool, arguments, seconds=bounds.tool_seconds, output_max=bounds.output_max)
    if isinstance(result, ToolFailure):
        return {"same": False, "exit_code": None, "outputs": {}}
    outputs = {name: mask_bytes(data[: bounds.output_max]) for name, (data, _) in result.outputs.items()}
    is_same = result.exit_code == execution.exit_code and _are_checks_same(session, trace, execution, result, outputs)
    digests = {name: Blob(data).digest for name, data in outputs.items()}
    return {"same": is_same, "exit_code": result.exit_code, "outputs": digests}


def _ask_again(
    session: ProtocolSession, tools: ToolRunner, workspace: str, tool: str, arguments: Mapping[str, Any]
) -> None:
    """Ask the gate about the call, as a call of its own."""
    from aver.gate.ask import ask  # Not above: it loads the policy engine.

    try:
        call = tools.describe(tool, arguments)
        action = Action(
            type=call.type,
            tool=call.tool,
            arguments=dict(call.arguments),
            files=tuple(call.files),
            diff=call.diff,
            caller="auditor",
            session=session.trace,
            workspace=workspace,
            call_id=clock.new_id(),
        )
        answer = ask(session.ledger, action, annotations=call.annotations, declared=call.declared)
    except AverError as error:
        debug("protocol", "the gate did not decide: %s", error)
        raise _Skipped("REFUSED") from error
    effects = answer.decision.effects
    # The executor's word that a call is repeatable does not count here: the gate has found out what it does.
    is_repeatable = effects is not None and not effects.unclear and effects.classes <= REPEATABLE_EFFECTS
    if not answer.allows or not is_repeatable:
        raise _Skipped("REFUSED")


@contextmanager
def _open_workspace(
    session: ProtocolSession, tools: ToolRunner, execution: ExecutionStanding
) -> Iterator[tuple[ToolRunner, str]]:
    """The runner and the directory in which the call can be repeated on its recorded commit."""
    recorded = execution.payload["workspace"]
    if read_workspace_state(session.workspace).to_dict() == recorded:
        yield tools, session.workspace
        return
    revision = recorded["revision"]
    if revision is None or recorded["change"] is not None or not isinstance(tools, MovableRunner):
        raise _Skipped("OTHER_COMMIT")
    with tempfile.TemporaryDirectory(prefix="aver-rerun-") as name:
        checkout = Path(name) / "checkout"
        _check_out(session.workspace, revision, checkout)
        yield tools.in_workspace(str(checkout)), str(checkout)


def _check_out(repository: str, revision: str, target: Path) -> None:
    """Clone a repository without its hooks, and check out a commit. The repository itself stays as it is."""
    clone = (
        "-c",
        "core.hooksPath=/dev/null",
        "clone",
        "--quiet",
        "--no-checkout",
        "--no-hardlinks",
        "--template=",
        "--",
        repository,
        str(target),
    )
    switch = ("-C", str(target), "-c", "core.hooksPath=/dev/null", "checkout", "--quiet", "--detach", revision)
    for command in (clone, switch):
        try:
            subprocess.run(
                ("git", *command), check=True, capture_output=True, timeout=CHECKOUT_SECONDS, stdin=subprocess.DEVNULL
            )
        except (OSError, subprocess.SubprocessError) as error:
            debug("protocol", "the commit %s cannot be checked out: %r", revision, error)
            raise _Skipped("OTHER_COMMIT") from error


def _are_checks_same(
    session: ProtocolSession,
    trace: ProtocolTrace,
    execution: ExecutionStanding,
    result: ToolResult,
    outputs: Mapping[str, bytes],
) -> bool:
    """Whether every check of a claim gives the same for the new outputs as for the recorded ones."""
    names = {digest: name for name, digest in execution.outputs.items()}
    workspace = execution.payload["workspace"]
    revision, is_clean = workspace["revision"], workspace["change"] is None
    too_long = {name for name, (data, _) in result.outputs.items() if len(data) > trace.bounds.output_max}
    for claim in trace.claims.values():
        for value in claim.evidence if claim.standing != "retracted" else ():
            item = read_item(value)
            if item is None or item.check is None:
                continue
            name = names.get(item.artifact or "")
            if name is None and item.execution != execution.id:
                continue
            try:
                old = None if name is None else session.ledger.blob(execution.outputs[name])
            except AverError:
                return False  # What was recorded is gone, so nothing can be compared with it.
            new = None if name is None else outputs.get(name)
            is_cut = name is not None and execution.outputs[name] in trace.cut
            before = Material(old, execution.exit_code, revision, is_clean, has_execution=True, is_cut=is_cut)
            is_cut = name in result.cut or name in too_long
            after = Material(new, result.exit_code, revision, is_clean, has_execution=True, is_cut=is_cut)
            if judge_check(item.check, before) != judge_check(item.check, after):
                return False
    return True
