"""Evidence of claims, conditions of reviews, expected evidence of proposals: their form and their judging. Pure.

An item of evidence names what it is about, and a check that must hold for it (`aver.protocol.predicates`):

    {"artifact": "<64 hex>", "check": {"tests": {"format": "junit", "counts": {"failed": ["==", 0]}}}}
    {"execution": "<id of its tool_execution_started>", "check": {"exit_code": ["==", 0]}}
    {"artifact": "<64 hex>"}                          the artifact is here and unchanged; nothing in it is checked

An item that names both says that the artifact is one of the execution.

An *expectation* is an item without an artifact: nobody knows the artifact yet. It is met if one execution of the
proposal that it belongs to, or one artifact of that execution, makes its check hold.

An artifact is evidence of a claim if it is output of a completed execution, or was recorded, in the same trace and
before the claim. The input of a tool is no evidence: the executor chose it.

Limits: at most `ITEMS_MAX` items an event, and `PARSED_MAX` bytes that are parsed for it. Items beyond do not hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import field
from typing import Any, Protocol

from aver.errors import BadInput, IntegrityError, NotFound
from aver.fast_dataclass import dataclass
from aver.log import debug
from aver.protocol.case_counts import PARSED_MAX
from aver.protocol.predicates import (
    CheckResult,
    Material,
    ParsedArtifacts,
    is_known_check,
    judge_check,
    needs_execution,
    reads_content,
)

ITEMS_MAX = 64
"""Items of evidence in one event. Each can make a verifier parse a file."""

_DIGEST = re.compile(r"[0-9a-f]{64}").fullmatch
_ID_MAX = 128
_KEYS = frozenset({"artifact", "execution", "check"})


@dataclass(frozen=True, slots=True)
class EvidenceItem:
    """One item, as it stands in a payload. `check` is None where nothing is to be checked."""

    artifact: str | None = None
    execution: str | None = None
    check: Any = None

    def to_dict(self) -> dict[str, Any]:
        given = {"artifact": self.artifact, "execution": self.execution, "check": self.check}
        return {name: value for name, value in given.items() if value is not None}


def read_item(value: Any) -> EvidenceItem | None:
    """Read an item; None if its form is wrong. Its check may still be one that Aver does not know."""
    if not isinstance(value, dict) or not value or value.keys() - _KEYS:
        return None
    artifact, execution = value.get("artifact"), value.get("execution")
    if "artifact" in value and not (isinstance(artifact, str) and _DIGEST(artifact)):
        return None
    if "execution" in value and not (isinstance(execution, str) and 0 < len(execution) <= _ID_MAX):
        return None
    if "check" in value and not isinstance(value["check"], dict):
        return None
    return EvidenceItem(artifact, execution, value.get("check"))


def require_items(values: Any, *, are_expectations: bool = False) -> list[EvidenceItem]:
    """Read the items that somebody is about to say. Raises `BadInput` for one that could never hold."""
    if not isinstance(values, list | tuple) or len(values) > ITEMS_MAX:
        raise BadInput(f"evidence is a list of at most {ITEMS_MAX} items")
    items = []
    for place, value in enumerate(values):
        item = read_item(value)
        where = f"item {place} of the evidence"
        if item is None:
            raise BadInput(f"{where} has a form that Aver does not know", advice="see docs/protocol-report.md")
        if item.check is not None and not is_known_check(item.check):
            raise BadInput(f"{where} has a check that Aver does not know", advice="see docs/protocol-report.md")
        if are_expectations and (item.artifact is not None or item.check is None):
            raise BadInput(f"{where} is an expectation: it has a check, and names no artifact")
        if (
            not are_expectations
            and item.artifact is None
            and (item.execution is None or not needs_execution(item.check))
        ):
            raise BadInput(f"{where} names no artifact to apply its check to")
        if not are_expectations and needs_execution(item.check) and item.execution is None:
            raise BadInput(f"{where} names no execution to apply its check to")
        items.append(item)
    return items


# --- judging


class EndedExecution(Protocol):
    """An execution of the trace that has ended."""

    @property
    def exit_code(self) -> int | None: ...

    @property
    def revision(self) -> str | None:
        """The commit of the workspace in which it began; None outside of git."""

    @property
    def is_clean(self) -> bool:
        """Whether the workspace had no uncommitted change."""

    @property
    def outputs(self) -> Collection[str]:
        """The digests of its outputs, and of artifacts that were recorded for it, in their order."""


@dataclass(frozen=True, slots=True)
class EvidenceSource:
    """The things that items can refer to: blobs, ended executions, artifacts that count. Each function takes an id."""

    blob: Callable[[str], bytes]
    """Raises `NotFound`, and `IntegrityError` or `BadInput` for bytes of another digest."""
    execution: Callable[[str], EndedExecution | None]
    is_evidence: Callable[[str], bool]
    is_cut: Callable[[str], bool] = lambda digest: False
    """Whether the artifact is only the beginning of an output."""
    parsed: ParsedArtifacts = field(default_factory=ParsedArtifacts)
    """Remembers contents. Judges of several events may share it."""


class EvidenceJudge:
    """Judges the items of one event. Make one for each event: the limits are an event's."""

    def __init__(self, source: EvidenceSource) -> None:
        self._source = source
        self._items = 0
        self._parsed: dict[str, bytes] = {}
        """The content that was parsed for this event, by digest. Each counts once."""
        self._left = PARSED_MAX

    def judge(self, value: Any) -> CheckResult:
        """Judge one item of evidence, whatever it is."""
        self._items += 1
        item = read_item(value)
        if item is None or self._items > ITEMS_MAX:
            return CheckResult(False, None, "unknown_check" if item is None else "too_large")
        execution = None if item.execution is None else self._source.execution(item.execution)
        if item.execution is not None and execution is None:
            return CheckResult(False, None, "no_execution")
        if item.artifact is None and item.check is not None and not needs_execution(item.check):
            return CheckResult(False, None, "no_artifact")
        if item.artifact is not None:
            is_foreign = execution is not None and item.artifact not in execution.outputs
            if is_foreign or not self._source.is_evidence(item.artifact):
                return CheckResult(False, None, "not_evidence")
        return self._apply(item.check, item.artifact, execution)

    def judge_expectation(self, value: Any, executions: Iterable[tuple[str, EndedExecution]]) -> CheckResult:
        """Judge an expectation over the executions that can meet it. Returns the first that does, or else the last."""
        self._items += 1
        item = read_item(value)
        if item is None or item.check is None or item.artifact is not None or self._items > ITEMS_MAX:
            return CheckResult(False, None, "unknown_check")
        last = CheckResult(False, None, "no_execution")
        for name, execution in executions:
            if item.execution not in (None, name):
                continue
            for artifact in [None] if needs_execution(item.check) else execution.outputs:
                last = self._apply(item.check, artifact, execution)
                if last.holds:
                    return last
        return last

    def _apply(self, check: Any, artifact: str | None, execution: EndedExecution | None) -> CheckResult:
        data: bytes | None = None
        if artifact is not None:
            try:
                data = self._load(artifact, is_parsed=reads_content(check))
            except NotFound:
                return CheckResult(False, None, "artifact_missing")
            except (BadInput, IntegrityError) as error:
                debug("protocol", "artifact %s: %s", artifact, error)
                return CheckResult(False, None, "artifact_changed")
            if data is None:
                return CheckResult(False, None, "too_large")
        if check is None:
            return CheckResult(True, artifact)
        is_cut = artifact is not None and self._source.is_cut(artifact)
        content: dict[str, Any] = {"is_cut": is_cut, "digest": artifact or "", "parsed": self._source.parsed}
        if execution is None:
            return judge_check(check, Material(data, **content))
        facts = execution.exit_code, execution.revision, execution.is_clean
        return judge_check(check, Material(data, *facts, has_execution=True, **content))

    def _load(self, digest: str, *, is_parsed: bool) -> bytes | None:
        """The bytes of an artifact; None if no more may be parsed for this event."""
        data = self._parsed.get(digest)
        if data is not None:
            return data
        data = self._source.blob(digest)
        if is_parsed:
            if len(data) > self._left:
                return None
            self._left -= len(data)
            self._parsed[digest] = data
        return data


def read_values(payload: Any, name: str) -> Iterator[Any]:
    """The items under a key of a payload; none where there is no list."""
    values = payload.get(name) if isinstance(payload, dict) else None
    yield from values if isinstance(values, list) else ()
