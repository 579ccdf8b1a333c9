"""Keys that come with the thing to verify: `--key` must not name them.

A person who forges a bundle also writes the keys into its index. A verdict by those keys says `verified` about any
forgery. Two rules keep them out:

1. The index of a bundle is no key source, whatever its path, and whether it is a file, a copy or a pipe. Nobody needs
   one: the owner of the keys writes them with `aver keys export`.
2. No other file is one if it is the thing itself or a file in it, however it is named: by a symbolic link, by a hard
   link, through a pipe, or as a copy with the same bytes, apart from white space at its ends.

Each source is read once, and these bytes are both examined and used. Aver cannot see that somebody took the digits of a
key out of the thing by hand.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from aver.errors import AverError, BadInput
from aver.files.regular import open_without_blocking
from aver.keys.exchange import is_bundle_index
from aver.ledger.bundle.layout import HEAD, INDEX, META, read_index

COPY_MAX = 16 * 1024 * 1024
"""Largest file of a thing, in bytes, that a key source is compared with. No larger source is read as keys."""

BLANKS_MAX = 4096
"""Most bytes of white space by which a copy may differ in its length."""

FILES_MAX = 100_000
"""Most files of a thing that a key source is compared with."""


def build_source_check(source: str, things: Sequence[object]) -> Callable[[Path, bytes], None]:
    """A function that raises `BadInput` for a file of keys that comes with one of the things.

    `source` is the option's value. Things in memory have no place that a file could be compared with.
    """
    places = [place for thing in things if (place := _find_place(thing)) is not None]

    def check(file: Path, raw: bytes) -> None:
        if is_bundle_index(raw):
            raise _index_error(source)
        for place in places:
            if _is_inside(file, place) or any(_is_same(file, raw, other) for other in _list_files(place)):
                raise _own_keys_error(source, place)

    return check


def _find_place(thing: object) -> Path | None:
    """The file or directory that a thing is; of a part of a bundle, the whole bundle."""
    if not isinstance(thing, str | Path) or not Path(thing).expanduser().exists():
        return None
    place = Path(thing).expanduser()
    return place.parent if place.name == INDEX or _is_part_of_bundle(place) else place


def _is_part_of_bundle(file: Path) -> bool:
    """Whether the index beside a file lists it."""
    try:
        index = read_index(file.parent) if file.is_file() else None
    except AverError:
        return False
    return index is not None and file.name in (META, HEAD, *(claim.file for claim in index.chains))


def _is_inside(file: Path, place: Path) -> bool:
    inner, outer = os.path.realpath(file), os.path.realpath(place)
    return inner == outer or inner.startswith(f"{outer.rstrip(os.sep)}{os.sep}")


def _list_files(place: Path) -> Iterator[Path]:
    """The thing itself if it is a file, else the files in it. A bundle has its index beside its chains."""
    if not os.path.isdir(place):
        yield place
        return
    with os.scandir(place) as entries:
        for number, entry in enumerate(entries):
            if number >= FILES_MAX:
                return
            yield Path(entry.path)


def _is_same(file: Path, raw: bytes, other: Path) -> bool:
    """Whether a source is another file, or has the same bytes."""
    try:
        theirs = os.stat(other)
        # A pipe has a path, too, but no file that could be the same.
        if os.path.exists(file) and os.path.samestat(os.stat(file), theirs):
            return True
        if abs(len(raw) - theirs.st_size) > BLANKS_MAX or not 0 < theirs.st_size <= COPY_MAX:
            return False
        return _read(other).strip() == raw.strip()
    except OSError:
        return False  # What cannot be read is no source of keys.


def _read(path: Path) -> bytes:
    with os.fdopen(open_without_blocking(path, follow=True), "rb") as file:
        return file.read(COPY_MAX) or b""


def _own_keys_error(source: str, thing: Path) -> BadInput:
    return BadInput(
        f"the keys in {source} come with {thing} itself, so they prove nothing about it",
        advice="ask the owner, by another way, for the file that this writes: aver keys export --out keys.json",
    )


def _index_error(source: str) -> BadInput:
    return BadInput(
        f"{source} is the index of a bundle. Its keys come with a bundle, so they prove nothing about it",
        advice="ask the owner, by another way, for the file that this writes: aver keys export --out keys.json",
    )
