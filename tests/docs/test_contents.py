"""What pages list is all there is: codes, public names, checks, kinds, limits."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import aver
from aver.capsule.aver_block import KINDS
from aver.capsule.validate import AUTHORITY_TYPES, STATUSES, TRIGGER_TYPES, TYPES
from aver.verdict import CHECKS, LEVELS, load_codes
from support.doc_pages import DOCS, ROOT
from support.many_cases import for_each


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def in_code(text: str) -> set[str]:
    """Every word that stands in code in the prose and tables of a page, whole and in its parts."""
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    words = {word for code in re.findall(r"`([^`]+)`", prose) for word in re.findall(r"[\w.]+", code)}
    return words | {part for word in words for part in word.split(".")}


def test_the_table_of_codes_is_that_of_the_program() -> None:
    table = page("formats/verdict.md").partition("<!-- codes -->")[2].partition("<!-- /codes -->")[0]
    rows = [line.strip("| ").split(" | ") for line in table.strip().splitlines()[2:]]
    assert rows == [[f"`{code.name}`", code.meaning, code.advice] for code in load_codes().values()]


def test_every_check_and_level_is_explained() -> None:
    told = in_code(page("formats/verdict.md"))
    assert {*CHECKS, *LEVELS, "rollback", "checkpoint", "index"} - told == set()


@for_each(sorted(set(aver.__all__)))
def test_every_public_name_is_in_the_api_page(name: str) -> None:
    assert name in in_code(page("api.md")), f"docs/api.md does not mention {name}"


def test_every_public_name_loads() -> None:
    assert [name for name in aver.__all__ if not hasattr(aver, name)] == []


def test_every_method_of_a_ledger_is_in_the_api_page() -> None:
    shared = {name for name in vars(aver.AsyncLedger) if not name.startswith("_")} - {"ledger", "close"}
    assert shared - in_code(page("api.md")) == set()


def test_every_kind_and_enumeration_is_in_the_capsule_page() -> None:
    told = in_code(page("formats/capsule.md"))
    assert {*KINDS, *TYPES, *TRIGGER_TYPES, *AUTHORITY_TYPES, *STATUSES} - told == set()


@pytest.mark.parametrize("path", sorted((DOCS / "decisions").glob("0*.md")), ids=lambda path: path.stem)
def test_a_decision_is_short_and_complete(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["Context", "Decision", "Consequence"]
    assert text.startswith(f"# {int(path.stem[:4])}. ")
    assert len(text.split()) < 300


def test_decisions_are_numbered_without_gaps() -> None:
    numbers = [int(path.stem[:4]) for path in sorted((DOCS / "decisions").glob("0*.md"))]
    assert numbers == list(range(1, len(numbers) + 1))


def test_the_limitations_are_one_page() -> None:
    """Details belong to the pages of their features."""
    assert len(page("limitations.md").split()) <= 1_500


def test_the_licence_is_the_one_named() -> None:
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in text
    assert "END OF TERMS AND CONDITIONS" in text
    assert 'license = "Apache-2.0"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_the_changelog_has_the_version() -> None:
    assert f"[{aver.__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
