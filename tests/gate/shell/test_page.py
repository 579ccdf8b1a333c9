"""The page about commands tells all effects, classes, reasons and limits as they are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from aver.gate.effects.findings import EFFECTS, UNCLEAR
from aver.gate.effects.known_agents import GUARDED_CLASSES
from aver.gate.shell.model import CHOICES_MAX, COMMAND_MAX, COMMANDS_MAX, NESTING_MAX, WORDS_MAX
from aver.gate.shell.parser.cross_check import SYNTAX_MAX

PAGE = Path(__file__).resolve().parents[3] / "docs" / "gate" / "commands.md"


@pytest.fixture
def page() -> str:
    if not PAGE.is_file():
        pytest.skip("the documentation is not part of this copy")
    return PAGE.read_text(encoding="utf-8")


def table(page: str, heading: str) -> dict[str, str]:
    section = page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return dict(re.findall(r"^\| `([a-z-]+)` \| (.*) \|$", section, re.MULTILINE))


def test_effects(page: str) -> None:
    told = table(page, "Effects")
    assert told.pop("unknown").startswith(EFFECTS["unknown"])
    assert told == {name: meaning for name, meaning in EFFECTS.items() if name != "unknown"}


def test_reasons(page: str) -> None:
    assert table(page, "What is unclear") == UNCLEAR


def test_classes(page: str) -> None:
    assert tuple(table(page, "Places")) == GUARDED_CLASSES


def test_limits(page: str) -> None:
    limits = page.partition("Limits keep the time short:")[2].partition("\n\n")[0]
    numbers = [int(number.replace(",", "")) for number in re.findall(r"[0-9,]*[0-9]", limits)]
    assert numbers == [COMMAND_MAX, SYNTAX_MAX, WORDS_MAX, COMMANDS_MAX, NESTING_MAX, CHOICES_MAX]
