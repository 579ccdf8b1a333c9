"""Sessions of the protocol for tests: a runner that needs no process, and the way to each state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from aver.capsule.blobs import Blob
from aver.errors import BadInput
from aver.protocol.events import Event
from aver.protocol.runner import AuditOutcome, CallDescription, ToolFailure, ToolResult
from aver.protocol.session import ProtocolSession

TASK = {"objective": "count the tests"}
OUTPUT = b"3 passed"
DIGEST = Blob(OUTPUT).digest


class EasyRunner:
    """Knows the tool `count`, which reads, and `erase`, which deletes. What they return can be set."""

    def __init__(self, result: ToolResult | ToolFailure | None = None) -> None:
        self.result = result or ToolResult(0, {"stdout": (OUTPUT, "text/plain")})
        self.calls: list[tuple[str, Mapping[str, Any]]] = []
        self.before: Callable[[], None] = lambda: None
        """Called while a call runs."""

    @property
    def names(self) -> Iterable[str]:
        return ("count", "erase", "observe")

    def describe(self, tool: str, arguments: Mapping[str, Any]) -> CallDescription:
        if tool == "count":
            return CallDescription(type="file_read", tool="Read", arguments={"file_path": "tests.txt", **arguments})
        if tool == "erase":
            return CallDescription(type="file_delete", tool="Delete", arguments=arguments, files=("tests.txt",))
        raise BadInput(f"there is no tool {tool}")

    def run(
        self, tool: str, arguments: Mapping[str, Any], *, seconds: float, output_max: int
    ) -> ToolResult | ToolFailure:
        self.calls.append((tool, arguments))
        self.before()
        return self.result


def pass_everything(session: ProtocolSession, *, rerun: bool) -> AuditOutcome:
    """An audit that finds nothing: for tests that are not about audits."""
    return AuditOutcome("pass", b"{}")


def open_session(workspace: Path, **more: Any) -> ProtocolSession:
    """A session in the default ledger, with the easy runner."""
    given = {"tools": EasyRunner(), **more}
    task = None if "trace" in more and "task" not in more else given.pop("task", TASK)
    session = ProtocolSession(task, workspace=workspace, **given)
    session.audit_engine = pass_everything
    return session


def reach_executing(session: ProtocolSession) -> Event:
    """Go on to an approved proposal."""
    proposal = session.planner.propose("read the file")
    session.critic.review(proposal.id, "approved", rationale="harmless")
    return proposal


def reach_claiming(session: ProtocolSession) -> Event:
    """Go on to a call that has completed."""
    proposal = reach_executing(session)
    intent = session.executor.intend(proposal.id, "count", {}, justification="to count")
    end = session.executor.run(intent.id)
    assert end.name == "tool_execution_completed", end
    return proposal


def claim_count(session: ProtocolSession) -> Event:
    evidence = [{"artifact": DIGEST, "check": {"text": {"contains": "3 passed"}}}]
    return session.executor.claim("three tests pass", confidence=0.9, evidence=evidence)
