"""The page about policy tells all that can be asked, all that a case may have, and the bounds as they are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from aver.gate.action import ACTION_TYPES
from aver.gate.effects.routine_commands import ROUTINE_EFFECTS
from aver.gate.policy import cases
from aver.gate.policy.bundle import FILES_MAX, SCHEMA_FILE, STARTER_DIRECTORY
from aver.gate.policy.query import DEPTH_MAX, TAGS_MAX, TARGETS_MAX
from aver.gate.policy.rules import NESTING_MAX, OPERATORS_MAX

PAGE = Path(__file__).resolve().parents[3] / "docs" / "gate" / "policy.md"


@pytest.fixture
def page() -> str:
    if not PAGE.is_file():
        pytest.skip("the documentation is not part of this copy")
    return PAGE.read_text(encoding="utf-8")


def section(page: str, heading: str) -> str:
    return page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def first_cells(text: str) -> set[str]:
    rows = re.findall(r"^\| (`[^|]+`) \|", text, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row)}


def test_every_field_and_kind_is_told(page: str) -> None:
    schema = SCHEMA_FILE.read_text(encoding="utf-8")
    fields = re.findall(r"^    (\w+)\??: ", schema.partition("type Circumstances")[2], re.MULTILINE)
    kinds = re.search(r"resource: \[([^\]]+)\]", schema)
    assert kinds is not None
    told = first_cells(section(page, "What rules can use"))
    assert told == {*fields, *kinds[1].split(", "), *ROUTINE_EFFECTS} - {"principal", "resource", "context"}


def test_every_type_of_action_is_told(page: str) -> None:
    assert {name for name in ACTION_TYPES if f"`{name}`" not in section(page, "What rules can use")} == set()


def test_the_two_effects_are_told_as_they_are(page: str) -> None:
    for name, meaning in ROUTINE_EFFECTS.items():
        assert re.search(rf"^\| `{name}` \| .* \| {re.escape(meaning)} \|$", page, re.MULTILINE)


def test_every_key_of_a_case_is_told(page: str) -> None:
    told = set(re.findall(r"`(\w+)`", section(page, "Testing")))
    assert {*cases._ACTION_KEYS, *cases._FACT_KEYS, *cases.EXPECTATIONS, "name", "expect", "rule"} <= told


def test_every_optional_file_is_told(page: str) -> None:
    assert {path.name for path in STARTER_DIRECTORY.glob("optional/*.cedar")} <= first_cells(
        section(page, "The rules in force")
    )


def test_bounds(page: str) -> None:
    limits = section(page, "Safety of rules")
    for number in (FILES_MAX, NESTING_MAX, OPERATORS_MAX, TARGETS_MAX):
        assert re.search(rf"\b{number}\b", limits)
    arguments = section(page, "What rules can use")
    assert f"{TAGS_MAX:,} values" in arguments
    assert f"{DEPTH_MAX}\nlevels" in arguments
