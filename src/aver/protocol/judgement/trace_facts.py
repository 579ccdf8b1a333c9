"""The facts that a report on a trace is made from: the fold, artifacts, the gate's decisions, the first broken record.

The module `trace_judge` gathers them from stored records. The module `report` makes the report of them, and reads
nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from aver.fast_dataclass import dataclass
from aver.protocol.statements import SeenHead, TracePlace
from aver.protocol.trace import ProtocolTrace

FindingStatus = Literal["failed", "warning", "note"]


@dataclass(frozen=True, slots=True)
class ReportFinding:
    """One weakness or failure, by code and place."""

    check: str
    status: FindingStatus
    code: str
    sequence: int | None = None
    event: str | None = None
    subject: str | None = None
    """The claim, proposal, execution, agent or artifact that it is about."""
    item: int | None = None
    """The place in the list of evidence, conditions or expectations."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "check": self.check,
            "status": self.status,
            "code": self.code,
            "sequence": self.sequence,
            "event": self.event,
            "subject": self.subject,
            "item": self.item,
        }


@dataclass(frozen=True, slots=True)
class GateWord:
    """A sealed decision of the gate, as far as an execution rests on it."""

    id: str
    call_id: str
    allows: bool
    risk: str
    """The class of risk that the sealed effects come to."""
    signed_by: str
    digest: str = ""
    signature: str = ""
    """The hash of its record, and the signature over it: for an executor's own key, which the caller may not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFacts:
    """Everything that a report is made from."""

    place: TracePlace
    head: SeenHead
    profile: str
    trace: ProtocolTrace
    """The fold over all records that hold, up to the first that does not."""
    broken: ReportFinding | None
    """The first record that does not hold; None if all hold."""
    last: tuple[int, str, str] | None
    """Sequence, id and hash of the last record that holds."""
    sequences: Mapping[str, int]
    """The place of each event, by its id."""
    produced: Mapping[str, ProducedArtifact]
    """The artifacts that events brought, by digest, in order."""
    blob: Callable[[str], bytes]
    decision: Callable[[str], GateWord | None]
    """The gate's decision with this id; None if there is none."""
    rerun: tuple[Mapping[str, Any], ...] = ()
    """The result of each execution that the auditor repeated."""
    are_artifacts_intact: bool = False
    """Whether the caller has compared all artifacts with their digests. Then they are not read for that again."""


@dataclass(slots=True)
class ProducedArtifact:
    """An artifact, and from which record on it is evidence."""

    size: int
    sequence: int
    """The first event that brought it."""
    evidence_from: int | None = None
    """The first event by which it is evidence of any claim: an output of a completed execution, or recorded."""
    failure_from: int | None = None
    """The first event by which it is evidence of a failure: output of an execution that failed."""
