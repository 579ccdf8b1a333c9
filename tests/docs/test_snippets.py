"""Every command and program that the documentation shows is run, page by page, in an empty directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.doc_pages import ROOT, Block, blocks_of, hold_to_output, pages, run_page, runs_here

LANGUAGES = {"sh", "python", "text", "json", "js", "toml", "sql", "yaml"}


def runnable(page: Path) -> bool:
    return any(block.language in ("sh", "python") and runs_here(block) for block in blocks_of(page))


FIRST = {"README.md", "docs/start.md", "docs/verify-it-yourself.md"}
"""What newcomers read: run by `make test`. The other pages are run by `make test-more`."""


def page_cases() -> list[object]:
    names = {page: str(page.relative_to(ROOT)) for page in filter(runnable, pages())}
    return [
        pytest.param(page, id=name, marks=() if name in FIRST else pytest.mark.more) for page, name in names.items()
    ]


@pytest.mark.more
@pytest.mark.parametrize("page", page_cases())
def test_a_page_does_what_it_shows(page: Path, cwd: Path, environment: dict[str, str]) -> None:
    assert run_page(page, cwd, environment) > 0


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_names_its_language(page: Path) -> None:
    """A block without one would look like a command and never be run."""
    assert [block.where for block in blocks_of(page) if block.language not in LANGUAGES] == []


def test_output_is_held_line_by_line() -> None:
    shown = Block(ROOT / "README.md", 1, "text", frozenset({"output"}), "a … c\nd\n")
    hold_to_output(shown, "before\na b c\nbetween\nd\n")
    for printed in ("d\na b c\n", "a b c\n", "a b cc\nd\n"):
        with pytest.raises(AssertionError, match="was not printed"):
            hold_to_output(shown, printed)
