"""Imports go one way: read from the source, lazy imports and names of modules in strings included."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import aver
from support.pending import hold_for_each
from support.source_tree import FILES, imports_in, name_of, room_of, strings_in

ORDER: list[set[str]] = [
    {
        "errors",
        "clock",
        "config",
        "text",
        "html",
        "fast_dataclass",
        "lazy_pattern",
        "submodule",
        "log",
        "diffs",
        "files",
    },
    {"capsule"},
    {"keys"},
    {"verdict"},
    {"ledger"},
    {"recording", "serving"},
    {"gate"},
    {"actions", "gateway", "protocol", "ingest"},
    {"hooks", "sessions", "events", "install"},
    {"agents"},
    {"adapters"},
    {"check"},
    {"mcp", "explorer"},
    {"cli"},
]
"""Each room imports from the sets before its own. Rooms of one set do not import each other, but for the first set."""

RANK = {room: rank for rank, rooms in enumerate(ORDER) for room in rooms}
ROOM_FILES = [path for path in FILES if room_of(path) not in ("__init__", "__main__")]
"""`aver/__init__.py` names every room, because it loads the public names from them."""

MODULE_IN_TEXT = re.compile(r"\baver\.([a-z_]+)")


def may_import(room: str, other: str) -> bool:
    return other == room or RANK[other] < RANK[room] or RANK[other] == RANK[room] == 0


def room_of_public_name(name: str) -> str:
    """The room of a name that was imported from `aver` itself."""
    if name == "__version__":
        return "errors"
    return str(aver._HOME_OF[name]).split(".")[1]


def references(path: Path) -> Iterator[tuple[int, str, str]]:
    """Line, text and room of every import of Aver, and of every string that names one of Aver's rooms."""
    for line, module in imports_in(path):
        parts = module.split(".")
        if parts[0] == "aver" and len(parts) > 1:
            yield line, module, parts[1] if parts[1] in RANK else room_of_public_name(parts[1])
    for line, text in strings_in(path):
        for room in MODULE_IN_TEXT.findall(text):
            if room in RANK:
                yield line, repr(text), room


def test_every_room_has_its_place_in_the_order() -> None:
    assert {room_of(path) for path in ROOM_FILES} <= set(RANK)


@hold_for_each("imports", ROOM_FILES, name_of)
def test_imports_go_one_way(path: Path) -> None:
    room = room_of(path)
    upward = [f"{line}: {text}" for line, text, other in references(path) if not may_import(room, other)]
    assert upward == [], name_of(path)


def test_a_string_that_names_a_higher_room_is_found() -> None:
    """The guard itself: the ledger once loaded a module of the gate by its name in a tuple."""
    found = [room for room in MODULE_IN_TEXT.findall('EXAMINERS = ("aver.gate.replay",)') if room in RANK]
    assert [may_import("ledger", room) for room in found] == [False]
    assert may_import("cli", "gate")
    assert not may_import("actions", "ingest")
