"""Bounds, settings and classes of risk."""

from __future__ import annotations

from typing import Any

import pytest

from aver.errors import BadInput
from aver.gate.effects.findings import EFFECTS
from aver.gate.effects.routine_commands import ROUTINE_EFFECTS
from aver.protocol.bounds import (
    RISKS,
    Bounds,
    derive_risk,
    find_loosened_bound,
    is_risk_from,
    read_protocol_settings,
    tighten_bounds,
    worst_risk,
)


def test_the_defaults_are_those_of_the_protocol() -> None:
    profile, bounds = read_protocol_settings({})
    assert profile == "default"
    assert bounds.to_dict() == {
        "review_from": "high",
        "attempts": 3,
        "evidence_min": 1,
        "proposals": 20,
        "tool_seconds": 600,
        "output_max": 16777216,
        "wait": 0,
        "tool_calls": None,
        "time_budget": None,
    }
    assert Bounds.from_dict(bounds.to_dict()) == bounds


@pytest.mark.parametrize(
    "table",
    [
        {"profile": "harsh"},
        {"review_from": "never"},
        {"attempts": 0},
        {"attempts": True},
        {"attempts": 1.5},
        {"evidence_min": 0},
        {"tool_seconds": "600"},
        {"tool_seconds": -1},
        {"wait": float("nan")},
        {"output_max": 2**40},
        {"tool_calls": 3},
        {"nonsense": 1},
    ],
)
def test_a_wrong_setting_is_named(table: dict[str, Any]) -> None:
    with pytest.raises(BadInput) as caught:
        read_protocol_settings(table)
    assert next(iter(table)) in str(caught.value)


@pytest.mark.parametrize(
    ("task", "is_good"),
    [
        ({"bounds": {"attempts": 2}}, True),
        ({"bounds": {"attempts": 4}}, False),
        ({"bounds": {"review_from": "low"}}, True),
        ({"bounds": {"review_from": "critical"}}, False),
        ({"bounds": {"evidence_min": 2}}, True),
        ({"bounds": {"tool_seconds": 601}}, False),
        ({"bounds": {"proposals": "5"}}, False),
        ({"bounds": []}, False),
        ({"max_tool_calls": 5}, True),
        ({"max_tool_calls": 0}, False),
        ({"time_budget_seconds": 5}, True),
    ],
)
def test_a_task_may_only_tighten(task: dict[str, Any], is_good: bool) -> None:
    if is_good:
        assert tighten_bounds(Bounds(), task) != Bounds()
    else:
        with pytest.raises(BadInput):
            tighten_bounds(Bounds(), task)


def test_risk_is_the_worst_of_the_effects() -> None:
    assert derive_risk([]) == "low"
    assert derive_risk(["read", "arrange"]) == "low"
    assert derive_risk(["read", "build"]) == "medium"
    assert derive_risk(["write", "delete"]) == "high"
    assert derive_risk(["read", "egress"]) == "critical"
    assert derive_risk(["read"], is_unclear=True) == "high"
    assert derive_risk(["egress"], is_unclear=True) == "critical"
    for unknown in (None, "read", 3, ["a class of tomorrow"]):
        assert derive_risk(unknown) == "high"


def test_every_effect_class_of_the_gate_has_a_risk() -> None:
    """A class that the gate gets must be put into the table on purpose: until then it is at least high."""
    known = {**EFFECTS, **ROUTINE_EFFECTS}
    below = {name for name in known if derive_risk([name]) in ("low", "medium")}
    assert below == {"read", "arrange", "write", "file-state", "git-state", *ROUTINE_EFFECTS}
    critical = {name for name in known if derive_risk([name]) == "critical"}
    assert critical == {"secret", "egress", "privilege", "system", "persist", "agent-config"}
    assert {name for name in known if derive_risk([name]) == "low"} == {"read", "arrange"}


def test_risks_are_ordered() -> None:
    assert worst_risk() == "low"
    assert worst_risk("medium", None, "critical", "high") == "critical"
    for at, risk in enumerate(RISKS):
        assert [is_risk_from(other, risk) for other in RISKS] == [index >= at for index in range(len(RISKS))]


@pytest.mark.parametrize(
    "task", [{"bounds": []}, {"bounds": {"x": 1}}, {"max_tool_calls": 1, "bounds": {"tool_calls": "1"}}]
)
def test_bounds_of_a_task_that_make_no_sense_are_refused(task: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        find_loosened_bound(Bounds(), task)
