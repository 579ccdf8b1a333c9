"""Interfaces that a session needs others to fill: a runner of tools, an auditor's engine, the description of a call.

The session guards a call, seals its start, has the runner make it, and seals its end. A runner knows tools: commands,
files, callables, MCP tools. It decides nothing and seals nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, runtime_checkable

from aver.capsule.blobs import TEXT_MEDIA
from aver.capsule.canonical import canonical_json
from aver.errors import NotCanonical

if TYPE_CHECKING:
    from aver.protocol.session import ProtocolSession

JSON = "application/json"
BYTES = "application/octet-stream"

FailureCode = Literal["TIMEOUT", "ERROR"]

ToolOutputs = Mapping[str, tuple[bytes, str]]
"""The outputs of a call: bytes and media type, by name, such as `stdout`."""


class CallDescription(NamedTuple):
    """A call as the gate judges it. The fields are those of `aver.Action`, and the declared effects of an own tool."""

    type: str = "tool_call"
    tool: str = ""
    arguments: Mapping[str, Any] = MappingProxyType({})
    files: tuple[str, ...] = ()
    diff: str | None = None
    declared: tuple[str, ...] | None = None
    annotations: Mapping[str, Any] | None = None


class ToolResult(NamedTuple):
    """A call that came to its end, whatever its exit code."""

    exit_code: int | None
    outputs: ToolOutputs
    cut: tuple[str, ...] = ()
    """The outputs of which only the beginning was kept, by name."""


def encode_value(value: Any) -> tuple[bytes, str]:
    """Return the value of a call as bytes, with their media type: bytes and texts as they are, others as JSON.

    A value that has no JSON is kept in its Python form. A text stays a text in any case, so that secrets in it are
    found and masked.
    """
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value), BYTES
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace"), TEXT_MEDIA
    try:
        return canonical_json(value), JSON
    except NotCanonical:
        return repr(value).encode("utf-8", "backslashreplace"), TEXT_MEDIA


class ToolFailure(NamedTuple):
    """A call that did not come to its end: it took too long, or could not be made."""

    code: FailureCode
    words: str
    outputs: ToolOutputs = MappingProxyType({})
    cut: tuple[str, ...] = ()


class ToolRunner(Protocol):
    """Makes calls. It raises nothing for a call that fails: it returns a `ToolFailure`."""

    @property
    def names(self) -> Iterable[str]:
        """The tools that it knows."""

    def describe(self, tool: str, arguments: Mapping[str, Any]) -> CallDescription:
        """Say what the gate must judge. Raises `BadInput` for a tool that it does not know."""

    def run(
        self, tool: str, arguments: Mapping[str, Any], *, seconds: float, output_max: int
    ) -> ToolResult | ToolFailure:
        """Make the call, for at most `seconds`, and keep at most `output_max` bytes of each output."""


@runtime_checkable
class ParallelRunner(Protocol):
    """A runner whose calls may run side by side. The calls of any other runner run one after the other."""

    def find_places(self, tool: str, arguments: Mapping[str, Any]) -> frozenset[str] | None:
        """Return what a call needs for itself, such as a file that it writes; None if it must run alone."""


class AuditOutcome(NamedTuple):
    """The result of an audit: the status, the bytes of the report, and which participants' keys the auditor knows."""

    status: str
    """`pass`, `pass-with-warnings` or `fail`."""
    report: bytes
    """The report, as canonical JSON."""
    known: tuple[str, ...] = ()
    """Fingerprints of participants' keys that the auditor knows."""
    unknown: tuple[str, ...] = ()
    rerun: list[dict[str, Any]] | None = None


class AuditEngine(Protocol):
    """Judges a trace for its auditor. `aver.protocol.judgement.audit` offers one."""

    def __call__(self, session: ProtocolSession, *, rerun: bool) -> AuditOutcome:
        """Judge the trace up to its present head."""
