"""The closed set of checks: each holds for what it says and for nothing else."""

from __future__ import annotations

import hashlib
import json
import operator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.capsule.canonical import canonical_json
from aver.protocol.case_counts import PARSED_MAX
from aver.protocol.predicates import (
    CHECK_NAMES,
    FOUND_MAX,
    REASONS,
    Material,
    is_known_check,
    judge_check,
    parse_pointer,
)
from support.strategies import json_objects, json_values, scalars

REVISION = "ab" * 20
RUN = Material(b"", 3, REVISION, is_clean=True, has_execution=True)


def judge(check: Any, data: bytes | None = None, material: Material | None = None) -> tuple[bool, Any, str]:
    result = judge_check(check, material or Material(data))
    return result.holds, result.found, result.reason


def at(pointer: str, sign: str, value: Any) -> dict[str, Any]:
    return {"json": {"pointer": pointer, "is": [sign, value]}}


def test_the_set_is_closed() -> None:
    assert CHECK_NAMES == ("sha256", "exit_code", "json", "tests", "text", "git")
    for check in ({}, {"md5": "x"}, {"sha256": "a" * 64, "text": {"contains": "x"}}, [], None, "x", 1):
        assert judge(check, b"x") == (False, None, "unknown_check")


def test_sha256() -> None:
    digest = hashlib.sha256(b"x").hexdigest()
    assert judge({"sha256": digest}, b"x") == (True, digest, "")
    assert judge({"sha256": digest}, b"y") == (False, hashlib.sha256(b"y").hexdigest(), "differs")
    assert judge({"sha256": digest}) == (False, None, "no_artifact")
    assert judge({"sha256": digest.upper()}, b"x") == (False, None, "unknown_check")


def test_exit_code() -> None:
    assert judge({"exit_code": ["==", 3]}, material=RUN) == (True, 3, "")
    assert judge({"exit_code": ["<", 3]}, material=RUN) == (False, 3, "differs")
    assert judge({"exit_code": ["==", 3]}, b"3") == (False, None, "no_execution")
    assert judge({"exit_code": ["==", 3]}, material=Material(has_execution=True)) == (False, None, "no_execution")
    for wrong in (["==", True], ["==", 3.0], ["==", "3"], ["=", 3], ["=="], 3, ["==", 3, 3]):
        assert judge({"exit_code": wrong}, material=RUN) == (False, None, "unknown_check")


@pytest.mark.parametrize("sign", ["==", "!=", "<", "<=", ">", ">="])
@given(found=st.integers(-5, 5) | st.floats(-5, 5), wanted=st.integers(-5, 5) | st.floats(-5, 5))
def test_numbers_compare_as_numbers(sign: str, found: float, wanted: float) -> None:
    functions = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
    expected = getattr(operator, functions[sign])(found, wanted)
    assert judge(at("", sign, wanted), json.dumps(found).encode())[0] == expected


@given(found=scalars, wanted=scalars)
def test_two_types_are_never_compared(found: Any, wanted: Any) -> None:
    def kind(value: Any) -> str:
        return "number" if type(value) in (int, float) else type(value).__name__

    data = canonical_json(found)
    for sign in ("==", "!="):
        holds, _, reason = judge(at("", sign, wanted), data)
        if kind(found) != kind(wanted):
            assert (holds, reason) == (False, "other_type")
        else:
            assert holds == ((found == wanted) == (sign == "=="))


def test_a_boolean_is_no_number() -> None:
    assert judge(at("/a", "==", 1), b'{"a": true}') == (False, True, "other_type")
    assert judge(at("/a", "!=", 0), b'{"a": true}') == (False, True, "other_type")
    assert judge(at("/a", "==", True), b'{"a": true}') == (True, True, "")
    assert judge(at("/a", ">", True), b'{"a": true}') == (False, None, "unknown_check")
    assert judge(at("/a", "<", "b"), b'{"a": "a"}') == (False, None, "unknown_check")


EXAMPLE = {"foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, "e^f": 3, "g|h": 4, "i\\j": 5, 'k"l': 6, " ": 7, "m~n": 8}


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("/foo/0", "bar"),
        ("/", 0),
        ("/a~1b", 1),
        ("/c%d", 2),
        ("/e^f", 3),
        ("/g|h", 4),
        ("/i\\j", 5),
        ('/k"l', 6),
        ("/ ", 7),
        ("/m~0n", 8),
    ],
)
def test_the_pointers_of_rfc_6901(pointer: str, value: Any) -> None:
    assert judge(at(pointer, "==", value), json.dumps(EXAMPLE).encode()) == (True, value, "")


def test_pointers_that_lead_nowhere() -> None:
    data = json.dumps(EXAMPLE).encode()
    for pointer in ("/foo/2", "/foo/-", "/foo/-1", "/foo/01", "/foo/+1", "/foo/" + "9" * 30, "/x", "//", "/foo/0/0"):
        assert judge(at(pointer, "==", 0), data) == (False, None, "no_value"), pointer
    for pointer in ("", "/foo"):
        assert judge(at(pointer, "==", 0), data) == (False, None, "not_a_scalar")
    for pointer in ("foo", "/~", "/~2", "/a~", 1, None):
        assert judge(at(pointer, "==", 0), data) == (False, None, "unknown_check")  # type: ignore[arg-type]
    assert parse_pointer("/~01") == ["~1"]


@given(json_values)
def test_every_scalar_is_found_by_its_pointer(document: Any) -> None:
    def walk(value: Any, pointer: str) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                walk(inner, pointer + "/" + key.replace("~", "~0").replace("/", "~1"))
        elif isinstance(value, list):
            for index, inner in enumerate(value):
                walk(inner, f"{pointer}/{index}")
        else:
            assert judge(at(pointer, "==", value), data)[0]

    data = canonical_json(document)
    walk(document, "")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b'{"a": 1, "a": 1}', "ambiguous"),
        (b'{"a": 1, "b": {"c": 0, "c": 1}}', "ambiguous"),
        (b'{"a": 1', "not_json"),
        (b'{"a": 1} x', "not_json"),
        (b'{"a": NaN}', "not_json"),
        (b'{"a": 1e999}', "not_json"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not_json"),
        (b"[" * 100_000, "not_json"),
        (b'{"a":' * 2000 + b"1" + b"}" * 2000, "not_json"),
        (b"\xff", "not_json"),
        ('{"a": 1}'.encode("utf-16"), "not_json"),
        (b'{"a": "\\ud800"}', "not_text"),
        (b"[" + b"0," * 1_000_001 + b"0]", "not_json"),
        (b" " * PARSED_MAX + b"1", "too_large"),
    ],
)
def test_ambiguous_and_hostile_json_holds_nothing(data: bytes, reason: str) -> None:
    for sign in ("==", "!="):
        assert judge(at("/a", sign, 1), data) == (False, None, reason)


def test_a_long_text_is_compared_whole_and_shown_in_part() -> None:
    text = "x" * 1000
    holds, found, _ = judge(at("", "==", text), json.dumps(text).encode())
    assert holds
    assert len(found) == FOUND_MAX
    assert not judge(at("", "==", text), json.dumps(text + "y").encode())[0]


def test_tests() -> None:
    data = b"<testsuite><testcase/><testcase><failure/></testcase></testsuite>"
    counts = {"passed": 1, "failed": 1, "errors": 0, "skipped": 0, "total": 2}

    def check(wanted: Any, name: Any = "junit") -> dict[str, Any]:
        return {"tests": {"format": name, "counts": wanted}}

    assert judge(check({"failed": ["==", 1], "total": [">", 1]}), data) == (True, counts, "")
    assert judge(check({"failed": ["==", 1], "passed": [">", 1]}), data) == (False, counts, "differs")
    assert judge(check({"failed": ["==", 0]}, "tap"), data) == (False, None, "not_tests")
    assert judge(check({"total": ["==", 1]}, "tap"), b"1..1\nok\n")[0]
    for wanted in ({}, {"fine": ["==", 1]}, {"failed": ["==", True]}, {"failed": 1}, None, []):
        assert judge(check(wanted), data) == (False, None, "unknown_check")
    for name in ("xunit", None, 1, ["junit"]):
        assert judge(check({"total": ["==", 2]}, name), data) == (False, None, "unknown_check")


def test_text() -> None:
    assert judge({"text": {"contains": "é"}}, "café".encode()) == (True, True, "")
    assert judge({"text": {"contains": "E"}}, b"e") == (False, False, "differs")
    assert judge({"text": {"lacks": "E"}}, b"e") == (True, False, "")
    assert judge({"text": {"lacks": "e"}}, b"e") == (False, True, "differs")
    for data, lines in ((b"", 0), (b"a", 1), (b"a\n", 1), (b"a\nb", 2), (b"\n\n", 2), (b"a\r\nb\r\n", 2)):
        assert judge({"text": {"lines": ["==", lines]}}, data) == (True, lines, "")
    for name in ("contains", "lacks"):  # Bytes that are no text contain nothing, and lack nothing either.
        assert judge({"text": {name: "x"}}, b"\xff") == (False, None, "not_text")
        assert judge({"text": {name: ""}}, b"x") == (False, None, "unknown_check")
    for wrong in ({}, {"has": "x"}, {"contains": "x", "lacks": "y"}, {"lines": ["==", "1"]}, {"contains": 1}, "x"):
        assert judge({"text": wrong}, b"x") == (False, None, "unknown_check")


def test_git() -> None:
    found = {"revision": REVISION, "clean": True}
    assert judge({"git": found}, material=RUN) == (True, found, "")
    assert judge({"git": {"clean": True}}, material=RUN) == (True, found, "")
    assert judge({"git": {"clean": False}}, material=RUN) == (False, found, "differs")
    assert judge({"git": {"revision": "cd" * 20}}, material=RUN) == (False, found, "differs")
    assert judge({"git": found}, b"") == (False, None, "no_execution")
    assert judge({"git": found}, material=Material(has_execution=True)) == (False, None, "no_revision")
    for wrong in ({}, {"revision": "main"}, {"clean": 1}, {"revision": None}, {"branch": "x"}, [], None):
        assert judge({"git": wrong}, material=RUN) == (False, None, "unknown_check")


checks = json_values | st.builds(
    lambda name, value: {name: value},
    st.sampled_from(CHECK_NAMES),
    json_values
    | st.builds(lambda pointer, sign, value: {"pointer": pointer, "is": [sign, value]}, json_values, scalars, scalars)
    | st.builds(lambda name, counts: {"format": name, "counts": counts}, scalars, json_objects),
)


@given(checks, json_values.map(canonical_json) | st.binary(max_size=60))
def test_any_check_of_any_content_gives_a_result_that_a_report_can_state(check: Any, data: bytes) -> None:
    result = judge_check(check, Material(data, 0, REVISION, has_execution=True))
    assert result.holds == (result.reason == "")
    assert result.reason in ("", *REASONS)
    canonical_json(result.to_dict())
    if not is_known_check(check):
        assert not result.holds
