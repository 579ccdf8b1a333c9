"""The checks that a claim, a condition or a challenge can make: a closed set of pure predicates.

    {"sha256": "<64 hex>"}                                    the artifact has this digest
    {"exit_code": ["==", 0]}                                  the execution ended with such a code
    {"json": {"pointer": "/totals/covered", "is": [">=", 80]}}    RFC 6901; the value there is a scalar
    {"tests": {"format": "junit", "counts": {"failed": ["==", 0], "total": [">", 0]}}}
    {"text": {"contains": "0 errors"}}, {"text": {"lacks": "Traceback"}}, {"text": {"lines": ["<=", 10]}}
    {"git": {"revision": "<40 or 64 hex>", "clean": true}}    the workspace in which the execution began; either or both

The operators are `== != < <= > >=`. Only numbers have an order; texts, booleans and null know `==` and `!=`. A boolean
is no number, and values of two types are never compared: neither operator holds for them.

`judge_check` returns whether a check holds, the value that was recomputed (`found`), and where it does not hold a
`reason` of the closed list `REASONS`. It never raises for content from outside. A check that Aver does not know does
not hold. Bytes that two readers could read in two ways (JSON with a key twice, a file in another encoding than it
declares) make no check of their content hold, not even a negative one. Of an output that was cut, only the beginning is
known. So it shows what it contains, and nothing else about its content.
"""

from __future__ import annotations

import hashlib
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from aver.capsule.canonical import has_surrogate
from aver.capsule.json_reader import DuplicateKey, Unreadable, read_json
from aver.fast_dataclass import dataclass
from aver.protocol.case_counts import (
    COUNT_NAMES,
    PARSED_MAX,
    CaseCounts,
    NotCounted,
    count_junit,
    count_tap,
    decode_text,
)
from aver.text import clip_text

FOUND_MAX = 256
"""Characters of a recomputed text that a report keeps."""

REASONS: Mapping[str, str] = {
    "differs": "the recomputed value is another one",
    "other_type": "the recomputed value has another type, and values of two types are not compared",
    "unknown_check": "this Aver does not know the check, or its form is wrong",
    "no_artifact": "the item names no artifact",
    "artifact_missing": "the artifact is not here",
    "artifact_changed": "the bytes of the artifact do not have its digest",
    "not_evidence": "the artifact is no output of a completed execution, nor recorded, in this trace before",
    "no_execution": "the item names no execution of this trace that has ended",
    "too_large": "the content is larger than what is parsed",
    "not_text": "the content is not UTF-8",
    "not_json": "the content is not JSON",
    "ambiguous": "the content is JSON that two readers can read in two ways",
    "no_value": "the pointer leads to no value",
    "not_a_scalar": "the pointer leads to an object or array",
    "not_tests": "the content is no test report of this format",
    "has_doctype": "the test report has a document type, which could define entities",
    "incomplete": "the output was cut, the test report was, or the run was ended early",
    "contradictory": "the test report numbers its cases in a way that cannot be",
    "no_revision": "the execution did not run in a git workspace",
}
"""Why a check does not hold, in words for people. Reports have the keys."""


COUNTERS: Mapping[str, Callable[[bytes], CaseCounts]] = {"junit": count_junit, "tap": count_tap}
"""The readers of test reports, by format."""


class ParsedArtifacts:
    """Remembers what was parsed of artifacts, by digest, so that many checks of one artifact parse it once.

    A hostile trace can name one large file in thousands of items of evidence. Of JSON documents only the last one is
    kept: a document takes many times the memory of its bytes. The caller has compared the bytes with the digest.
    """

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], CaseCounts | NotCounted] = {}
        self._unreadable: dict[str, Unreadable] = {}
        self._document: tuple[str, Any] | None = None

    def count_cases(self, digest: str, form: str, data: bytes) -> CaseCounts:
        """Count the cases of a test report. Raises `NotCounted`."""
        found = self._counts.get((digest, form))
        if found is None:
            try:
                found = COUNTERS[form](data)
            except NotCounted as error:
                found = error.with_traceback(None)
            self._counts[digest, form] = found
        if isinstance(found, NotCounted):
            raise found
        return found

    def read_document(self, digest: str, data: bytes) -> Any:
        """Read a JSON document. Raises `Unreadable`."""
        if digest in self._unreadable:
            raise self._unreadable[digest]
        if self._document is None or self._document[0] != digest:
            self._document = None  # Two at once would take twice the memory.
            try:
                self._document = digest, read_json(data)
            except Unreadable as error:
                self._unreadable[digest] = error.with_traceback(None)
                raise
        return self._document[1]


@dataclass(frozen=True, slots=True)
class Material:
    """The content that a check is applied to: an artifact, and facts of an execution. None where there is none."""

    data: bytes | None = None
    exit_code: int | None = None
    revision: str | None = None
    is_clean: bool = False
    has_execution: bool = False
    """Whether `exit_code`, `revision` and `is_clean` are those of an execution."""
    is_cut: bool = False
    """Whether the artifact is only the beginning of an output."""
    digest: str = ""
    """The digest of `data`, where `parsed` is to remember what is in it."""
    parsed: ParsedArtifacts | None = None

    def read_document(self) -> Any:
        """Read the artifact as JSON. Raises `Unreadable`."""
        assert self.data is not None
        return (self.parsed or ParsedArtifacts()).read_document(self.digest, self.data)

    def count_cases(self, form: str) -> dict[str, int]:
        """Count the artifact as a test report. Raises `NotCounted`."""
        assert self.data is not None
        return (self.parsed or ParsedArtifacts()).count_cases(self.digest, form, self.data).to_dict()


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Whether a check holds. `found` is the recomputed value or None; `reason` is empty where the check holds."""

    holds: bool
    found: Any = None
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {"holds": self.holds, "found": self.found, "reason": self.reason}


def judge_check(check: Any, material: Material) -> CheckResult:
    """Apply a check to a material. Any value can be given as the check."""
    if not isinstance(check, dict) or len(check) != 1:
        return _fail("unknown_check")
    ((name, wanted),) = check.items()
    judge = _JUDGES.get(name)
    return _fail("unknown_check") if judge is None else judge(wanted, material)


def reads_content(check: Any) -> bool:
    """Whether a check looks into an artifact's bytes, beyond their digest."""
    return isinstance(check, dict) and any(name in check for name in ("json", "tests", "text"))


def is_known_check(check: Any) -> bool:
    """Whether the check is one of the closed set and its form is right."""
    return judge_check(check, _NOTHING).reason != "unknown_check"


def needs_execution(check: Any) -> bool:
    """Whether a check is about an execution, not about an artifact."""
    return isinstance(check, dict) and any(name in check for name in ("exit_code", "git"))


def _fail(reason: str, found: Any = None) -> CheckResult:
    return CheckResult(False, found, reason)


# --- comparing


_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ORDER_FREE = ("==", "!=")


def _type_of(value: Any) -> str:
    """The JSON type of a scalar; empty for anything else."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "text" if isinstance(value, str) else ""


def _is_comparison(value: Any, *types: str) -> bool:
    """Whether a value is `[operator, scalar]`, the scalar of one of these types and the operator one of its own."""
    if not isinstance(value, list) or len(value) != 2 or not isinstance(value[0], str) or value[0] not in _OPERATORS:
        return False
    kind = _type_of(value[1])
    return kind in types and (kind == "number" or value[0] in _ORDER_FREE)


def _is_count_comparison(value: Any) -> bool:
    return _is_comparison(value, "number") and isinstance(value[1], int)


def _compare(found: Any, wanted: list[Any], shown: Any) -> CheckResult:
    if _type_of(found) != _type_of(wanted[1]):
        return _fail("other_type", shown)
    holds = _OPERATORS[wanted[0]](found, wanted[1])
    return CheckResult(holds, shown, "" if holds else "differs")


# --- the checks, by name


_DIGEST = re.compile(r"[0-9a-f]{64}").fullmatch
_REVISION = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}").fullmatch
_NOTHING = Material()


def _judge_sha256(wanted: Any, material: Material) -> CheckResult:
    if not isinstance(wanted, str) or not _DIGEST(wanted):
        return _fail("unknown_check")
    if material.data is None:
        return _fail("no_artifact")
    found = hashlib.sha256(material.data).hexdigest()
    return CheckResult(found == wanted, found, "" if found == wanted else "differs")


def _judge_exit_code(wanted: Any, material: Material) -> CheckResult:
    if not _is_count_comparison(wanted):
        return _fail("unknown_check")
    if not material.has_execution or material.exit_code is None:
        return _fail("no_execution")
    return _compare(material.exit_code, wanted, material.exit_code)


def _judge_json(wanted: Any, material: Material) -> CheckResult:
    if not isinstance(wanted, dict) or wanted.keys() != {"pointer", "is"}:
        return _fail("unknown_check")
    steps = parse_pointer(wanted["pointer"])
    if steps is None or not _is_comparison(wanted["is"], "number", "text", "boolean", "null"):
        return _fail("unknown_check")
    if material.data is None:
        return _fail("no_artifact")
    if len(material.data) > PARSED_MAX:
        return _fail("too_large")
    if material.is_cut:
        return _fail("incomplete")
    try:
        found = _follow(material.read_document(), steps)
    except DuplicateKey:
        return _fail("ambiguous")
    except Unreadable:
        return _fail("not_json")
    except LookupError:
        return _fail("no_value")
    if not _type_of(found):
        return _fail("not_a_scalar")
    if isinstance(found, str) and has_surrogate(found):
        return _fail("not_text")  # No report could state this value: half a character has no UTF-8 form.
    return _compare(found, wanted["is"], clip_text(found, FOUND_MAX) if isinstance(found, str) else found)


def parse_pointer(pointer: Any) -> list[str] | None:
    """The steps of a JSON pointer (RFC 6901), with its escapes replaced; None if it is not one."""
    if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")) or _BAD_ESCAPE(pointer):
        return None
    # In this order: `~01` stands for `~1`, not for `/`.
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


_BAD_ESCAPE = re.compile(r"~(?![01])").search
_INDEX = re.compile(r"0|[1-9][0-9]{0,9}").fullmatch


def _follow(value: Any, steps: list[str]) -> Any:
    """The value that a pointer leads to. Raises `LookupError`."""
    for step in steps:
        if isinstance(value, dict):
            value = value[step]
        elif isinstance(value, list) and _INDEX(step):  # Not `01`, `-1` or `-`: RFC 6901, section 4.
            value = value[int(step)]
        else:
            raise LookupError(step)
    return value


def _judge_tests(wanted: Any, material: Material) -> CheckResult:
    if not isinstance(wanted, dict) or wanted.keys() != {"format", "counts"}:
        return _fail("unknown_check")
    name, counts = wanted["format"], wanted["counts"]
    if not isinstance(name, str) or name not in COUNTERS or not isinstance(counts, dict) or not counts:
        return _fail("unknown_check")
    if not all(each in COUNT_NAMES and _is_count_comparison(counts[each]) for each in counts):
        return _fail("unknown_check")
    if material.data is None:
        return _fail("no_artifact")
    if material.is_cut:
        return _fail("incomplete")
    try:
        found = material.count_cases(name)
    except NotCounted as error:
        return _fail(error.reason)
    holds = all(_OPERATORS[sign](found[each], number) for each, (sign, number) in counts.items())
    return CheckResult(holds, found, "" if holds else "differs")


def _judge_text(wanted: Any, material: Material) -> CheckResult:
    if not isinstance(wanted, dict) or len(wanted) != 1:
        return _fail("unknown_check")
    ((name, value),) = wanted.items()
    if name == "lines":
        is_known = _is_count_comparison(value)
    else:
        # Every text contains the empty one, so a check for it would prove nothing.
        is_known = name in ("contains", "lacks") and isinstance(value, str) and value != ""
    if not is_known:
        return _fail("unknown_check")
    if material.data is None:
        return _fail("no_artifact")
    if material.is_cut and name != "contains":
        return _fail("incomplete")
    try:
        text = decode_text(material.data)
    except NotCounted as error:
        return _fail(error.reason)
    if name == "lines":
        count = text.count("\n") + (text != "" and not text.endswith("\n"))
        return _compare(count, value, count)
    occurs = value in text
    holds = occurs == (name == "contains")
    return CheckResult(holds, occurs, "" if holds else "differs")


def _judge_git(wanted: Any, material: Material) -> CheckResult:
    if not isinstance(wanted, dict) or not wanted or wanted.keys() - {"revision", "clean"}:
        return _fail("unknown_check")
    revision, is_clean = wanted.get("revision"), wanted.get("clean")
    if "revision" in wanted and not (isinstance(revision, str) and _REVISION(revision)):
        return _fail("unknown_check")
    if "clean" in wanted and not isinstance(is_clean, bool):
        return _fail("unknown_check")
    if not material.has_execution:
        return _fail("no_execution")
    if material.revision is None:
        return _fail("no_revision")
    found = {"revision": material.revision, "clean": material.is_clean}
    holds = all(found[name] == value for name, value in wanted.items())
    return CheckResult(holds, found, "" if holds else "differs")


_JUDGES: Mapping[str, Callable[[Any, Material], CheckResult]] = {
    "sha256": _judge_sha256,
    "exit_code": _judge_exit_code,
    "json": _judge_json,
    "tests": _judge_tests,
    "text": _judge_text,
    "git": _judge_git,
}
CHECK_NAMES = tuple(_JUDGES)
"""Every check that there is."""
