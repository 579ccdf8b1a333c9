"""Test reports from outside: JUnit and TAP, counted case by case. Pure.

A test tool writes its own totals into such a file, and a file can say anything. So nothing here reads a total. Each
case is counted once, under one of four words; `total` is their sum:

    passed    it ran and did not fail
    failed    an assertion failed
    errors    it broke for another reason
    skipped   it did not run, or its result does not count (`TODO` of TAP)

*JUnit*: `<testcase>` elements below `<testsuite>` or `<testsuites>`. A direct child `<error>`, `<failure>` or
`<skipped>` decides, in this order; so does an attribute `status` that says so. The `status="notrun"` of GoogleTest is
skipped. A failure outside of a case belongs to none of them: such a file is not counted.

*TAP*: lines `ok` and `not ok` at the beginning of a line. A subtest is indented and does not count: its parent does.
The file has one plan, and every planned case is there once. Else the file was cut, and nothing is counted. Readers of
TAP differ. So `not ok` is a failure unless all of them see its `TODO`. A file in which one of them could see another
case is not counted.

    >>> count_tap(b"1..3\\nok 1 - opens\\nnot ok 2 - closes\\nok 3 # SKIP no disk\\n").to_dict()
    {'passed': 1, 'failed': 1, 'errors': 0, 'skipped': 1, 'total': 3}

A file is hostile until it was counted. UTF-8 alone is read. A document type and with it every entity of the file's own
is refused, before anything is expanded. Time and memory are linear in the file's size.
"""

from __future__ import annotations

import re
from typing import Any
from xml.parsers import expat

from aver.fast_dataclass import dataclass

PARSED_MAX = 16 * 1024 * 1024
"""Bytes that are parsed for the checks of one event. A test report of 50,000 cases has about 10 MB."""

ELEMENTS_MAX = 1_000_000
"""XML elements or TAP cases in one file. Each costs a call of Python code, or some memory."""

XML_DEPTH_MAX = 64
"""Nesting of XML elements. Real reports have three to six levels."""

ATTRIBUTES_MAX = 1024
"""Attributes of one XML element. The parser makes objects of all of them before the element can be refused."""

COUNT_NAMES = ("passed", "failed", "errors", "skipped", "total")
"""The counts that a check can compare."""


class NotCounted(Exception):
    """The file is no test report that can be counted. `reason` is one of the reasons of `aver.protocol.predicates`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class CaseCounts:
    """The number of cases by result."""

    passed: int
    failed: int
    errors: int
    skipped: int

    @property
    def total(self) -> int:
        return self.passed + self.failed + self.errors + self.skipped

    def to_dict(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in COUNT_NAMES}


def decode_text(data: bytes) -> str:
    """Decode UTF-8. Raises `NotCounted` for other bytes, and for more than `PARSED_MAX`."""
    if len(data) > PARSED_MAX:
        raise NotCounted("too_large")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise NotCounted("not_text") from None


# --- JUnit


def count_junit(data: bytes) -> CaseCounts:
    """Count the cases of a JUnit file. Raises `NotCounted`."""
    text = decode_text(data).removeprefix("\ufeff")
    if _MANY_ATTRIBUTES(text):
        raise NotCounted("too_large")
    reader = _CaseReader()
    parser = expat.ParserCreate(encoding="utf-8")
    parser.XmlDeclHandler = reader.check_declaration
    # A document type can define entities. It is refused at its first word, so no entity is ever defined.
    parser.StartDoctypeDeclHandler = reader.refuse_doctype
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    try:
        parser.Parse(text, True)
    except expat.ExpatError:
        raise NotCounted("not_tests") from None
    return CaseCounts(**reader.counts)


_MANY_ATTRIBUTES = re.compile(
    rf"""<[^\s<>/!?"'][^<>"']*+(?:(?:"[^"<]*+"|'[^'<]*+')[^<>"']*+){{{ATTRIBUTES_MAX + 1}}}"""
).search
"""A start tag with too many attributes. `<` cannot stand in an attribute, so no start is tried beyond the next one."""

_SUITES = ("testsuites", "testsuite")
_RESULTS = {"error": "errors", "failure": "failed", "skipped": "skipped"}
_RESULT_BY_STATUS = {
    "notrun": "skipped",
    "error": "errors",
    **dict.fromkeys(("fail", "failed", "failure"), "failed"),
}
"""The results that the attribute `status` of a case can tell. It may tell others, such as `run`."""
_COUNTED = frozenset({*_SUITES, "testcase", *_RESULTS})
_WORST_FIRST = ("errors", "failed", "skipped")


class _CaseReader:
    """Takes the elements of a JUnit file in order."""

    def __init__(self) -> None:
        self.counts = {"passed": 0, "failed": 0, "errors": 0, "skipped": 0}
        self._open: list[str] = []
        self._elements = 0
        self._results: set[str] = set()

    def check_declaration(self, version: str, encoding: str | None, standalone: int) -> None:
        # Another reader would believe the declaration, and could see other elements in the same bytes.
        if encoding is not None and encoding.lower() not in ("utf-8", "us-ascii", "ascii"):
            raise NotCounted("not_text")

    def refuse_doctype(self, *parts: Any) -> None:
        raise NotCounted("has_doctype")

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._elements += 1
        if self._elements > ELEMENTS_MAX or len(self._open) >= XML_DEPTH_MAX:
            raise NotCounted("too_large")
        # With a namespace prefix, or in other letters, some readers count the element, and others do not.
        if name not in _COUNTED and name.rpartition(":")[2].lower() in _COUNTED:
            raise NotCounted("not_tests")
        parent = self._open[-1] if self._open else ""
        if not parent and name not in _SUITES:
            raise NotCounted("not_tests")
        if name == "testcase":
            # A case inside a case, or hidden in some other element, would be counted by one reader only.
            if any(each not in _SUITES for each in self._open):
                raise NotCounted("not_tests")
            result = _RESULT_BY_STATUS.get(attributes.get("status", "").lower())
            self._results = set() if result is None else {result}
        elif name in _RESULTS:
            if parent == "testcase":
                self._results.add(_RESULTS[name])
            elif name != "skipped":
                raise NotCounted("not_tests")
        self._open.append(name)

    def end(self, name: str) -> None:
        self._open.pop()
        if name == "testcase":
            self.counts[next((each for each in _WORST_FIRST if each in self._results), "passed")] += 1


# --- TAP


def count_tap(data: bytes) -> CaseCounts:
    """Count the cases of a TAP file (versions 12 to 14). Raises `NotCounted`."""
    counts = {"passed": 0, "failed": 0, "errors": 0, "skipped": 0}
    plans: list[int] = []
    seen: set[int] = set()
    last = 0
    text = decode_text(data).removeprefix("\ufeff")
    if _TAP_HIDDEN(text):
        raise NotCounted("contradictory")
    for match in _TAP_LINE(text):
        if match["bail"]:
            raise NotCounted("incomplete")
        if match["odd"]:
            raise NotCounted("contradictory")
        if match["plan"]:
            plans.append(_read_number(match["plan"]))
            continue
        # A case without a number has the number after the last one.
        last = _read_number(match["number"]) if match["number"] else last + 1
        if last in seen:
            raise NotCounted("contradictory")
        seen.add(last)
        if len(seen) > ELEMENTS_MAX:
            raise NotCounted("too_large")
        if match["not"] is None:
            counts["skipped" if _TAP_SKIP(match["rest"]) else "passed"] += 1
        else:
            counts["skipped" if _TAP_TODO(match["rest"]) else "failed"] += 1
    if not plans:
        raise NotCounted("incomplete" if seen else "not_tests")
    if len(plans) > 1 or any(number > plans[0] or number < 1 for number in seen):
        raise NotCounted("contradictory")
    if len(seen) < plans[0]:
        raise NotCounted("incomplete")
    return CaseCounts(**counts)


_TAP_LINE = re.compile(
    r"^(?:(?P<not>not )?ok(?=\s|$)(?:[ \t]+(?P<number>[0-9]+)\b)?(?P<rest>[^\r\n]*+)"
    r"|1\.\.(?P<plan>[0-9]+)[^\r\n]*+|(?P<odd>(?:not[ \t]++)?ok\b)|(?P<bail>(?i:[ \t]*+Bail out!)))",
    re.MULTILINE | re.ASCII,
).finditer
"""`odd` is a case for some readers: `ok-1`, `not ok#2`. A subtest that bails out ends the whole run."""

_TAP_HIDDEN = re.compile("[\r\v\f\x1c-\x1e\x85\u2028\u2029](?=(?:not[ \t]++)?ok\\b|1\\.\\.[0-9]|Bail out!)").search
"""A case, plan or end after a character that ends a line for some readers only."""

_TAP_SKIP = re.compile(r"(?:^|[^\\])#[ \t]*+skip", re.IGNORECASE | re.ASCII).search
_TAP_TODO = re.compile(r"(?:[^\\#]++|\\.)*+(?<!\S)#[ \t]*+todo(?=\s|$)", re.IGNORECASE | re.ASCII).match
"""The directive is the first `#` that is not escaped, after a space."""


def _read_number(digits: str) -> int:
    # Ten digits are more than any file of 16 MiB can number, and `int` refuses thousands of them.
    if len(digits) > 10:
        raise NotCounted("contradictory")
    return int(digits)
