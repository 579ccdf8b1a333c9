"""The documentation and the source agree: every folder is on the map, and examples use the public interface alone."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import aver
from support.doc_pages import blocks_of, pages
from support.pending import hold_for_each
from support.source_tree import FOLDERS, REPOSITORY, SOURCE, name_of

ARCHITECTURE = REPOSITORY / "docs" / "architecture.md"


def folders_on_the_map() -> set[str]:
    """The first column of the tables in `docs/architecture.md`: names in backquotes, one or more to a row."""
    rows = re.findall(r"^\|((?: `[^`|]+`)+) \|", ARCHITECTURE.read_text("utf-8"), flags=re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row)}


def test_every_folder_is_on_the_map() -> None:
    there = {name_of(folder) for folder in FOLDERS}
    there |= {path.stem for path in SOURCE.glob("*.py") if not path.stem.startswith("__")}
    assert there - folders_on_the_map() == set()


def test_the_map_shows_no_folder_that_is_gone() -> None:
    listed = folders_on_the_map()
    there = {name for name in listed if (SOURCE / name).is_dir() or (SOURCE / f"{name}.py").is_file()}
    assert listed - there == set()


NO_MODULES = re.compile(r"gate\.(decision|outcome|change)|ledger\.db(\..*)?|.*\.(jsonl?|toml|md|py)")
"""Names that look like modules: kinds of records, and files."""


def is_defined(name: str) -> bool:
    """Whether a dotted name such as `gate.ask.ask` is a folder or module of Aver, or a name at the top of a module."""
    path = SOURCE.joinpath(*name.split("."))
    if path.is_dir() or path.with_suffix(".py").is_file():
        return True
    module = path.parent.with_suffix(".py")
    return (
        module.is_file()
        and re.search(rf"^(def|class) {path.name}\b|^{path.name}\b", module.read_text(), re.M) is not None
    )


def test_modules_that_the_architecture_names_exist() -> None:
    rooms = {name_of(folder) for folder in FOLDERS if folder.parent == SOURCE}
    for page in (ARCHITECTURE, *sorted((REPOSITORY / "docs" / "decisions").glob("*.md"))):
        for name in re.findall(r"`([a-z_]+(?:\.[a-z_]+)+)`", page.read_text("utf-8")):
            if name.split(".")[0] in rooms and not NO_MODULES.fullmatch(name):
                assert is_defined(name), f"{page.name} names {name}"


PLUG_IN_MODULES: dict[str, str] = {}
"""Modules besides `aver` and `aver.adapters.*` that are documented for those who extend Aver."""


def aver_imports(code: str) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.split(".")[0] == "aver"]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "aver":
            if node.module == "aver":
                found += [f"aver:{alias.name}" for alias in node.names]
            else:
                found.append(str(node.module))
    return found


def is_public(name: str) -> bool:
    if name.startswith("aver:"):
        return name.removeprefix("aver:") in aver.__all__
    return name == "aver" or name.startswith("aver.adapters.") or name in PLUG_IN_MODULES


EXAMPLES = sorted((REPOSITORY / "examples").glob("*.py"))


def path_of(page: Path) -> str:
    return page.relative_to(REPOSITORY).as_posix()


@hold_for_each("pages", pages(), path_of)
def test_documentation_imports_public_names_only(page: Path) -> None:
    code = [block.text for block in blocks_of(page) if block.language == "python"]
    found = sorted({name for text in code for name in aver_imports(text) if not is_public(name)})
    assert found == []


@hold_for_each("pages", EXAMPLES, path_of)
def test_examples_import_public_names_only(example: Path) -> None:
    assert [name for name in aver_imports(example.read_text("utf-8")) if not is_public(name)] == []
