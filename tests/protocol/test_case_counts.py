"""JUnit and TAP files: counted from the cases, and hostile ones refused in bounded time."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.protocol import case_counts
from aver.protocol.case_counts import CaseCounts, NotCounted, count_junit, count_tap
from aver.protocol.predicates import REASONS

JUNIT = b"""<?xml version="1.0" encoding="utf-8"?>
<testsuites tests="99" failures="0"><testsuite name="a" tests="99" failures="0" errors="0">
  <properties><property name="x" value="a &gt; b"/></properties>
  <testcase name="one" time="0.1"/>
  <testcase name="two"><failure message="m">text &lt;testcase/&gt;</failure></testcase>
  <testcase name="three"><error/><failure/></testcase>
  <testcase name="four"><skipped/></testcase>
  <testcase name="five"><system-out><![CDATA[<testcase/><failure/>]]></system-out></testcase>
  <testcase name="six" status="notrun"/>
  <testsuite name="inner"><testcase name="seven"/></testsuite>
</testsuite></testsuites>"""


def reason_of(count: object, data: bytes) -> str:
    with pytest.raises(NotCounted) as caught:
        count(data)  # type: ignore[operator]
    return caught.value.reason


def test_junit_is_counted_from_the_cases_and_not_from_its_totals() -> None:
    counts = count_junit(JUNIT)
    assert counts == CaseCounts(passed=3, failed=1, errors=1, skipped=2)
    assert counts.to_dict() == {"passed": 3, "failed": 1, "errors": 1, "skipped": 2, "total": 7}


def test_a_byte_order_mark_is_no_part_of_the_file() -> None:
    assert count_junit(b"\xef\xbb\xbf" + JUNIT).total == 7


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not_tests"),
        (b"<testsuite>", "not_tests"),
        (b"<html/>", "not_tests"),
        (b"<testcase/>", "not_tests"),
        (b"<testsuite><testcase><testcase/></testcase></testsuite>", "not_tests"),
        (b"<testsuite><properties><testcase/></properties></testsuite>", "not_tests"),
        (b"<testsuite>&undefined;</testsuite>", "not_tests"),
        (b"<testsuite/><testsuite/>", "not_tests"),
        (b"<!DOCTYPE testsuite><testsuite/>", "has_doctype"),
        (b'<!DOCTYPE t [<!ENTITY a "b">]><testsuite>&a;</testsuite>', "has_doctype"),
        (b'<!DOCTYPE t SYSTEM "file:///etc/passwd"><testsuite/>', "has_doctype"),
        (b"\xff\xfe<\x00t\x00", "not_text"),
        (b"<testsuite name='\xe9'/>", "not_text"),
        (b'<?xml version="1.0" encoding="utf-7"?><testsuite/>', "not_text"),
        (b'<?xml version="1.0" encoding="iso-8859-1"?><testsuite/>', "not_text"),
        (b'<?xml version="1.0" encoding="utf-16"?><testsuite/>', "not_text"),
    ],
)
def test_other_files_are_refused(data: bytes, reason: str) -> None:
    assert reason_of(count_junit, data) == reason


def test_billion_laughs_are_refused_before_the_first_one() -> None:
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))
    data = f'<!DOCTYPE t [<!ENTITY l0 "ha">{laughs}]><testsuite>&l11;</testsuite>'.encode()
    assert reason_of(count_junit, data) == "has_doctype"


def test_deep_files_and_files_with_many_attributes_are_too_large() -> None:
    deep = b"<testsuite>" * 65 + b"</testsuite>" * 65
    assert reason_of(count_junit, deep) == "too_large"
    assert count_junit(b"<testsuite>" * 64 + b"</testsuite>" * 64).total == 0
    wide = "<testsuite {}/>"
    fits = wide.format(" ".join(f"a{n}='>'" for n in range(case_counts.ATTRIBUTES_MAX)))
    assert count_junit(fits.encode()).total == 0
    assert reason_of(count_junit, fits.replace("/>", " b='1'/>").encode()) == "too_large"


def test_many_quotes_in_text_are_no_attributes() -> None:
    log = '{"a": "b"} ' * 5000
    data = f"<testsuite><testcase><system-out><![CDATA[{log}]]></system-out>{log}</testcase></testsuite>"
    assert count_junit(data.encode()).passed == 1


def test_limits_of_size_and_number(monkeypatch: pytest.MonkeyPatch) -> None:
    assert reason_of(count_junit, b" " * (case_counts.PARSED_MAX + 1)) == "too_large"
    assert reason_of(count_tap, b" " * (case_counts.PARSED_MAX + 1)) == "too_large"
    monkeypatch.setattr(case_counts, "ELEMENTS_MAX", 5)
    assert reason_of(count_junit, b"<testsuite>" + b"<testcase/>" * 5 + b"</testsuite>") == "too_large"
    assert count_junit(b"<testsuite>" + b"<testcase/>" * 4 + b"</testsuite>").passed == 4
    assert reason_of(count_tap, b"1..6\n" + b"ok\n" * 6) == "too_large"


TAP = b"""TAP version 14
# a comment
1..6
ok 1 - opens
not ok 2 - closes
  ---
  message: "ok 9"
  ...
    # Subtest
    ok 1 - inner
    not ok 2 - inner
    1..2
ok 3 - # SKIP no disk
not ok 4 - later # TODO write it
ok 5 - escaped \\# SKIP is text
ok
"""


def test_tap_is_counted_from_its_lines() -> None:
    assert count_tap(TAP) == CaseCounts(passed=3, failed=1, errors=0, skipped=2)
    assert count_tap(TAP.replace(b"\n", b"\r\n")) == count_tap(TAP)
    assert count_tap(b"1..0 # skip all\n").total == 0


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not_tests"),
        (b"hello\n", "not_tests"),
        (b"okay\n", "not_tests"),
        (b"ok 1\n", "incomplete"),
        (b"1..3\nok 1\nok 2\n", "incomplete"),
        (b"1..1\nok 1\nBail out! disk\n", "incomplete"),
        (b"1..2\nok 1\nok 1\n", "contradictory"),
        (b"1..1\nok 1\nok 2\n", "contradictory"),
        (b"1..1\nok 0\n", "contradictory"),
        (b"1..1\n1..1\nok 1\n", "contradictory"),
        (b"1..1\nok " + b"9" * 5000 + b"\n", "contradictory"),
        (b"1..1\nok \xff\n", "not_text"),
        (b"1..1\nok 1\n    Bail out! disk\n", "incomplete"),
        (b"1..1\nok 1\nBAIL OUT! disk\n", "incomplete"),
        (b"1..1\nok 1\nnot ok# boom\n", "contradictory"),
        (b"1..1\nok 1\nnot ok-2\n", "contradictory"),
        (b"1..1\nok 1\nnot  ok 2\n", "contradictory"),
        (b"1..1\nok 1\rnot ok 2\n", "contradictory"),
        (b"1..1\nok 1\n\x0cnot ok 2\n", "contradictory"),
        ("1..1\nok 1\u2028not ok 2\n".encode(), "contradictory"),
        (b"\xef\xbb\xbfnot ok 1\n1..1\nok 1\n", "contradictory"),
    ],
)
def test_tap_that_was_cut_or_contradicts_itself_counts_nothing(data: bytes, reason: str) -> None:
    assert reason_of(count_tap, data) == reason


results = st.lists(st.sampled_from(["passed", "failed", "errors", "skipped"]), max_size=30)


@given(results)
def test_every_case_counts_once(results: list[str]) -> None:
    children = {"passed": "", "failed": "<failure/>", "errors": "<error/>", "skipped": "<skipped/>"}
    cases = "".join(f"<testcase>{children[result]}</testcase>" for result in results)
    found = count_junit(f"<testsuite>{cases}</testsuite>".encode()).to_dict()
    assert found == {**{name: results.count(name) for name in children}, "total": len(results)}
    lines = {"passed": "ok", "failed": "not ok", "errors": "not ok", "skipped": "ok # skip"}
    tap = f"1..{len(results)}\n" + "".join(f"{lines[result]}\n" for result in results)
    counted = count_tap(tap.encode())
    assert (counted.passed, counted.skipped, counted.total) == (found["passed"], found["skipped"], len(results))


@given(st.binary(max_size=200) | st.text("<>/!? testcasuifr&;\"'=[]", max_size=120).map(str.encode))
def test_any_bytes_are_counted_or_refused(data: bytes) -> None:
    for count in (count_junit, count_tap):
        reason = ""
        try:
            assert count(data).total >= 0
        except NotCounted as error:
            reason = error.reason
        assert reason in ("", *REASONS)


@pytest.mark.parametrize("name", ["testcase", "failure", "error", "skipped", "testsuite"])
def test_elements_with_a_prefix_that_some_readers_count_are_refused(name: str) -> None:
    inner = f"<a:{name}/>" if name in ("testcase", "testsuite") else f"<testcase><a:{name}/></testcase>"
    with pytest.raises(NotCounted) as caught:
        count_junit(f'<testsuite xmlns:a="u"><testcase/>{inner}</testsuite>'.encode())
    assert caught.value.reason == "not_tests"
    plain = b'<testsuite xmlns:a="u"><testcase><a:note/></testcase></testsuite>'
    assert count_junit(plain).passed == 1


@pytest.mark.parametrize(
    "line",
    [
        b"not ok 1 # SKIP it is broken",
        b"not ok 1 - bug #5 # TODO later",
        b"not ok 1 - x#todo",
        b"not ok 1 - reads \\# TODO",
        b"not ok 1 # todoist",
    ],
)
def test_tap_fails_unless_every_reader_sees_a_todo(line: bytes) -> None:
    assert count_tap(b"1..1\n" + line + b"\n") == CaseCounts(passed=0, failed=1, errors=0, skipped=0)


def test_a_tap_line_of_many_spaces_is_read_once() -> None:
    began = time.process_time()
    assert count_tap(b"1..1\nnot ok 1" + b" " * 8_000_000 + b"\\#" * 100).failed == 1
    assert time.process_time() - began < 20


@pytest.mark.parametrize(
    "data",
    [
        b"<testsuite><error/></testsuite>",
        b"<testsuite><testcase/><failure/></testsuite>",
        b"<testsuite><testcase><properties><failure/></properties></testcase></testsuite>",
        b"<testsuite><testcase><Failure/></testcase></testsuite>",
        b"<testsuite><TestCase><failure/></TestCase></testsuite>",
    ],
)
def test_a_failure_that_belongs_to_no_case_is_not_passed_over(data: bytes) -> None:
    assert reason_of(count_junit, data) == "not_tests"


@pytest.mark.parametrize(
    ("status", "name"), [("failed", "failed"), ("FAIL", "failed"), ("error", "errors"), ("run", "passed")]
)
def test_the_status_of_a_junit_case_counts(status: str, name: str) -> None:
    counts = count_junit(f'<testsuite><testcase status="{status}"/></testsuite>'.encode()).to_dict()
    assert (counts[name], counts["total"]) == (1, 1)
