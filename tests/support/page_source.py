"""The sources of the Explorer's page as the house tests read them: files, rooms, imports and exported names.

The page is checked by TypeScript itself. These functions read only what its compiler does not judge, by patterns: every
import names its file with the ending, and every export stands at the beginning of a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from support.source_tree import REPOSITORY

WEB = REPOSITORY / "web"
PAGE_SOURCE = WEB / "src"
PAGE_FILES = sorted(path for path in PAGE_SOURCE.rglob("*.ts*") if path.suffix in (".ts", ".tsx"))
USERS = [*PAGE_FILES, *sorted((WEB / "tests").glob("*.mjs")), *sorted(WEB.glob("*.ts"))]
"""All files that may import a name: the page, its tests, and its build."""

_FROM = re.compile(
    r"^[ \t]*(?:import|export)\s+(?:type\s+)?(?P<names>\*(?:\s+as\s+\w+)?|\w*\s*,?\s*(?:\{[^}]*\})?)"
    r'\s*from\s+"(?P<file>[^"]+)"',
    re.MULTILINE,
)
_WHOLE = re.compile(r'\bimport\(\s*"(?P<file>[^"]+)"\s*\)|^import\s+"(?P<bare>[^"]+)"', re.MULTILINE)
_BUNDLED = re.compile(r'\bsource\("(?P<file>[^"]+)"\)')
"""How a script of the tests names a file of the page that it gives to a browser as a whole."""
_DEFINITION = re.compile(
    r"^export\s+(?:declare\s+)?(?:async\s+)?(?:abstract\s+)?(?:function\*?|const|let|class|type|interface|enum)\s+(\w+)",
    re.MULTILINE,
)
_LIST = re.compile(r"^export\s+(?:type\s+)?\{([^}]*)\}", re.MULTILINE)
_COMMENT = re.compile(r"/\*.*?\*/|(?<![:\"'`/])//[^\n]*", re.DOTALL)


@dataclass(frozen=True)
class PageImport:
    """An import of another file of the page. `names` is None if it takes the whole file."""

    file: Path
    names: frozenset[str] | None


def page_name(path: Path) -> str:
    """A file of the page as people write it: `verify/json.ts`."""
    return path.relative_to(PAGE_SOURCE).as_posix()


def page_room(path: Path) -> str:
    """The first folder below `web/src`, or the file itself: `verify`, `state.ts`."""
    return path.relative_to(PAGE_SOURCE).parts[0]


@cache
def code_of(path: Path) -> str:
    """The text of a file without its comments."""
    return _COMMENT.sub("", path.read_text("utf-8"))


def page_imports(path: Path) -> Iterator[PageImport]:
    """Every file of the page that a file imports, or exports again: statically, when needed, or for its effects."""
    code = code_of(path)
    for found in _FROM.finditer(code):
        yield from _resolve(path.parent / found["file"], found["file"], _read_names(found["names"]))
    for found in _WHOLE.finditer(code):
        name = found["file"] or found["bare"]
        yield from _resolve(path.parent / name, name, None)
    for found in _BUNDLED.finditer(code if path.suffix == ".mjs" else ""):
        yield from _resolve(PAGE_SOURCE / found["file"], ".", None)


def _resolve(path: Path, named: str, names: frozenset[str] | None) -> Iterator[PageImport]:
    file = path.resolve()
    if named.startswith(".") and file.is_relative_to(PAGE_SOURCE) and file.suffix in (".ts", ".tsx"):
        assert file.is_file(), f"{named}: there is no such file"
        yield PageImport(file, names)


def _read_names(clause: str) -> frozenset[str] | None:
    """The names between the braces of an import, as the other file calls them."""
    if clause.startswith("*"):
        return None
    inner = clause.partition("{")[2].partition("}")[0]
    return frozenset(each.split(" as ")[0].strip().removeprefix("type ").strip() for each in inner.split(",")) - {""}


def page_exports(path: Path) -> set[str]:
    """The names that a file exports."""
    code = code_of(path)
    listed = {each.split(" as ")[-1].strip() for found in _LIST.findall(code) for each in found.split(",")}
    return {*_DEFINITION.findall(code), *(name.removeprefix("type ").strip() for name in listed if name)}


@cache
def used_names() -> dict[Path, set[str] | None]:
    """For each file of the page, the names that others import from it; None if one of them takes all."""
    found: dict[Path, set[str] | None] = {}
    for path in USERS:
        for one in page_imports(path):
            before = found.setdefault(one.file, set())
            found[one.file] = None if before is None or one.names is None else before | one.names
    return found
