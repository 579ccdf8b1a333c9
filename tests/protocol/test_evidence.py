"""Items of evidence: their form, what counts as evidence, and the limits of an event."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given

from aver.errors import BadInput, IntegrityError, NotFound
from aver.fast_dataclass import dataclass
from aver.protocol import predicates
from aver.protocol.case_counts import PARSED_MAX, NotCounted
from aver.protocol.evidence import ITEMS_MAX, EvidenceJudge, EvidenceSource, read_item, require_items
from support.strategies import json_values


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True, slots=True)
class Ended:
    exit_code: int | None = 0
    revision: str | None = "ab" * 20
    is_clean: bool = True
    outputs: tuple[str, ...] = ()


OUTPUT, INPUT, GONE = b"all is well\n", b"the input\n", b"gone"
LARGE = b"x" * (PARSED_MAX // 2 + 1)
HERE = {digest(data): data for data in (OUTPUT, INPUT, LARGE, LARGE + b"y")}


def make_judge(blob: Callable[[str], bytes] | None = None) -> EvidenceJudge:
    def read(name: str) -> bytes:
        if name not in HERE:
            raise NotFound("not here")
        return HERE[name]

    counted = {digest(OUTPUT), digest(GONE), digest(LARGE), digest(LARGE + b"y")}
    return EvidenceJudge(
        EvidenceSource(blob or read, {"run": Ended(outputs=(digest(OUTPUT),))}.get, counted.__contains__)
    )


def judge(item: Any, **given: Any) -> tuple[bool, str]:
    result = make_judge(**given).judge(item)
    return result.holds, result.reason


def test_an_artifact_without_a_check_holds_if_it_is_here() -> None:
    result = make_judge().judge({"artifact": digest(OUTPUT)})
    assert (result.holds, result.found) == (True, digest(OUTPUT))
    assert judge({"artifact": digest(GONE)}) == (False, "artifact_missing")


def test_the_input_of_a_tool_is_no_evidence() -> None:
    assert judge({"artifact": digest(INPUT)}) == (False, "not_evidence")
    assert judge({"artifact": digest(INPUT), "check": {"sha256": digest(INPUT)}}) == (False, "not_evidence")


@pytest.mark.parametrize("error", [BadInput("other bytes"), IntegrityError("ARTIFACT_HASH_MISMATCH", "other bytes")])
def test_a_changed_artifact_proves_nothing(error: Exception) -> None:
    def read(name: str) -> bytes:
        raise error

    for check in ({}, {"check": {"sha256": digest(OUTPUT)}}, {"check": {"text": {"lacks": "x"}}}):
        assert judge({"artifact": digest(OUTPUT), **check}, blob=read) == (False, "artifact_changed")


def test_checks_of_executions_need_an_execution_of_this_trace() -> None:
    check = {"check": {"exit_code": ["==", 0]}}
    assert judge({"execution": "run", **check}) == (True, "")
    assert judge({"execution": "another", **check}) == (False, "no_execution")
    assert judge({"artifact": digest(OUTPUT), **check}) == (False, "no_execution")
    assert judge(check) == (False, "no_execution")
    assert judge({"execution": "run", "check": {"text": {"lacks": "x"}}}) == (False, "no_artifact")
    assert judge({"execution": "run"}) == (True, "")
    assert judge({"execution": "run", "artifact": digest(OUTPUT)}) == (True, "")
    assert judge({"execution": "run", "artifact": digest(GONE)}) == (False, "not_evidence")


def test_an_event_has_so_many_items_and_no_more() -> None:
    judge = make_judge()
    item = {"artifact": digest(OUTPUT)}
    assert [judge.judge(item).holds for _ in range(ITEMS_MAX + 1)] == [True] * ITEMS_MAX + [False]


def test_an_event_has_so_many_bytes_parsed_and_no_more() -> None:
    judge = make_judge()
    check = {"check": {"text": {"contains": "x"}}}
    assert judge.judge({"artifact": digest(LARGE), **check}).holds
    assert judge.judge({"artifact": digest(LARGE), **check}).holds  # The same content counts once.
    assert judge.judge({"artifact": digest(LARGE + b"y"), **check}).reason == "too_large"
    assert judge.judge({"artifact": digest(LARGE + b"y"), "check": {"sha256": digest(LARGE + b"y")}}).holds


def test_an_expectation_is_met_by_one_execution() -> None:
    good, bad = Ended(outputs=(digest(GONE), digest(OUTPUT))), Ended(exit_code=1)
    runs = [("a", bad), ("b", good)]
    for check in ({"exit_code": ["==", 0]}, {"text": {"contains": "well"}}, {"git": {"clean": True}}):
        assert make_judge().judge_expectation({"check": check}, runs).holds
    assert not make_judge().judge_expectation({"check": {"exit_code": ["==", 2]}}, runs).holds
    assert make_judge().judge_expectation({"check": {"exit_code": ["==", 0]}, "execution": "a"}, runs).found == 1
    assert make_judge().judge_expectation({"check": {"exit_code": ["==", 0]}}, []).reason == "no_execution"
    for wrong in ({"artifact": digest(OUTPUT)}, {"execution": "b"}, {}, None):
        assert make_judge().judge_expectation(wrong, runs).reason == "unknown_check"


@pytest.mark.more
@given(json_values)
def test_any_item_is_judged(value: Any) -> None:
    result = make_judge().judge(value)
    if read_item(value) is None:
        assert result.reason == "unknown_check"
    assert not make_judge().judge_expectation(value, [("run", Ended())]).holds


def test_what_could_never_hold_is_refused_when_it_is_said() -> None:
    artifact, exit_code = {"artifact": "a" * 64}, {"check": {"exit_code": ["==", 0]}}
    assert len(require_items([artifact, {"execution": "x", **exit_code}])) == 2
    assert len(require_items([exit_code], are_expectations=True)) == 1
    for wrong in (
        *([1], [{}], [{"artifact": "A" * 64}], [{"artifact": None}], [{"check": {"sha256": "a" * 64}}], [exit_code]),
        *([{**artifact, "check": {"md5": "x"}}], [{**artifact, "note": "x"}], "x", None, [artifact] * (ITEMS_MAX + 1)),
        *([{**artifact, **exit_code}],),
    ):
        with pytest.raises(BadInput):
            require_items(wrong)
    for wrong in ([artifact], [{**artifact, **exit_code}], [{"execution": "x"}]):
        with pytest.raises(BadInput):
            require_items(wrong, are_expectations=True)


def test_many_checks_of_one_artifact_parse_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hostile trace names one large file in many items, and in the outputs of many executions."""
    parsed = []

    def read_json(data: bytes) -> Any:
        parsed.append("json")
        if data == b"no json":
            raise predicates.Unreadable("no")
        return [0, 1, 2]

    def count(data: bytes) -> Any:
        parsed.append("junit")
        raise NotCounted("not_tests")

    monkeypatch.setattr(predicates, "read_json", read_json)
    monkeypatch.setattr(predicates, "COUNTERS", {"junit": count})
    files = {digest(data): data for data in (b"json", b"no json")}
    runs = [(str(number), Ended(outputs=(digest(b"no json"),))) for number in range(50)]
    source = EvidenceSource(files.__getitem__, lambda name: None, lambda name: True)
    for _ in range(5):  # Several events.
        one = EvidenceJudge(source)
        for number in range(3):
            check = {"json": {"pointer": f"/{number}", "is": ["==", number]}}
            assert one.judge({"artifact": digest(b"json"), "check": check}).holds
            assert one.judge_expectation({"check": check}, runs).reason == "not_json"
        for number in range(3):
            tests = {"tests": {"format": "junit", "counts": {"failed": ["==", number]}}}
            assert one.judge({"artifact": digest(b"json"), "check": tests}).reason == "not_tests"
    assert sorted(parsed) == ["json", "json", "json", "junit"]  # Only the last document is kept.
