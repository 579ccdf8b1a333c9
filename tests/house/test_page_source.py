"""The sources of the Explorer's page keep the rules of this house. `make web` runs this as the page's linter.

TypeScript's strict flags find unused names inside a file, unreachable code and implicit types. These tests hold what it
does not: the direction of imports, exports that nobody uses, explicit `any`, and the size of files.
"""

from __future__ import annotations

import re
from pathlib import Path

from support.page_source import (
    PAGE_FILES,
    PAGE_SOURCE,
    code_of,
    page_exports,
    page_imports,
    page_name,
    page_room,
    used_names,
)
from support.pending import hold_for_each

ORDER: list[set[str]] = [
    {"verify", "preferences.ts"},
    {"node", "worker"},
    {"source"},
    {"route.ts"},
    {"state.ts"},
    {"sessions"},
    {"door.ts", "records.ts"},
    {"parts"},
    {"views"},
    {"frame"},
    {"app.tsx"},
    {"entry.ts"},
]
"""Each room imports from the sets before its own. Rooms of one set do not import each other."""

RANK = {room: rank for rank, rooms in enumerate(ORDER) for room in rooms}

UPWARD = {
    ("worker", "sessions"): "the worker reads sessions for the page; `sessions` itself imports `verify` alone",
}
"""Imports against the order, by room, and why they may stay."""

ENTRIES = {"node/main.ts": "the verifier as a command; the tests of the corpus import its names from the built file"}
"""Files whose exports others use than the page and its tests."""

LINES_MAX = 500
LONGER: dict[str, str] = {}
"""Files with more lines, and why."""

ANY = re.compile(r"(?:[:<|&(,=?]|\bas|\bextends)\s*any\b(?=\s*(?:[>\[\],;)=|&}{]|$))", re.MULTILINE)
SILENCED = re.compile(r"@ts-(?:ignore|expect-error|nocheck)|eslint-|biome-ignore")
CONSOLE = re.compile(r"\bconsole\s*\.|\bdebugger\b")


def test_every_room_of_the_page_has_its_place_in_the_order() -> None:
    assert {page_room(path) for path in PAGE_FILES} == set(RANK)


def may_import(room: str, other: str) -> bool:
    return room == other or RANK[other] < RANK[room]


@hold_for_each("page imports", PAGE_FILES, page_name)
def test_imports_of_the_page_go_one_way(path: Path) -> None:
    room = page_room(path)
    others = {page_name(one.file): page_room(one.file) for one in page_imports(path)}
    upward = {name for name, other in others.items() if not may_import(room, other) and (room, other) not in UPWARD}
    assert not upward, f"it imports {', '.join(sorted(upward))}, of a room above its own"


def test_exceptions_of_the_order_are_still_needed() -> None:
    pairs = {(page_room(path), page_room(one.file)) for path in PAGE_FILES for one in page_imports(path)}
    assert set(UPWARD) <= pairs
    assert not any(may_import(*pair) for pair in UPWARD)


@hold_for_each("page exports", PAGE_FILES, page_name)
def test_every_exported_name_of_the_page_is_used(path: Path) -> None:
    name, used = page_name(path), used_names().get(path, set())
    unused = set() if used is None or name in ENTRIES else page_exports(path) - used
    assert not unused, f"nobody imports {', '.join(sorted(unused))}: drop the word `export`, or the name"


def test_exceptions_name_files_that_exist() -> None:
    assert {*LONGER, *ENTRIES} <= {page_name(path) for path in PAGE_FILES}


@hold_for_each("page types", PAGE_FILES, page_name)
def test_page_leaves_no_type_open_and_silences_no_checker(path: Path) -> None:
    found = [*ANY.findall(code_of(path)), *SILENCED.findall(path.read_text("utf-8"))]
    assert not found, f"it has {', '.join(found)}"


@hold_for_each("page console", PAGE_FILES, page_name)
def test_only_the_command_writes_to_the_console(path: Path) -> None:
    if page_room(path) != "node":
        found = CONSOLE.findall(code_of(path))
        assert not found, f"it has {', '.join(found)}"


@hold_for_each("page lines", PAGE_FILES, page_name)
def test_file_of_the_page_is_one_concept(path: Path) -> None:
    count = len(path.read_text("utf-8").splitlines())
    assert (count > LINES_MAX) == (page_name(path) in LONGER), f"it has {count} lines"


# --- the guards themselves


def test_guards_know_what_they_look_for() -> None:
    for wrong in (
        "const a: any = 1",
        "f(x as any)",
        "let b: any[]",
        "Map<string, any>",
        "type T = any;",
        "(x: any) => x",
    ):
        assert ANY.search(wrong), wrong
    for right in ("any of them", "// as any", 'text: "as any word"', "anything: Any", "<p>at any time</p>"):
        assert not ANY.search(right.partition("//")[0]), right
    assert SILENCED.search("// @ts-ignore")
    assert CONSOLE.search("console.log(1)")
    assert may_import("views", "verify")
    assert not may_import("verify", "views")
    assert not may_import("node", "worker")


def test_guards_read_imports_and_exports() -> None:
    main = PAGE_SOURCE / "worker" / "main.ts"
    assert page_name(main) in {page_name(one.file) for path in PAGE_FILES for one in page_imports(path)}
    assert sum(len(list(page_imports(path))) for path in PAGE_FILES) > 400
    assert sum(len(page_exports(path)) for path in PAGE_FILES) > 500
    assert {"BadInput", "readJson", "Json"} <= page_exports(PAGE_SOURCE / "verify" / "json.ts")
    used = used_names()
    assert used[PAGE_SOURCE / "source" / "passkey.ts"] is None  # A test gives all of it to a browser.
    assert {"BadInput", "Json"} <= (used[PAGE_SOURCE / "verify" / "json.ts"] or set())
