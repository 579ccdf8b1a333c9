"""Keys that come with the thing to verify: `--key` must not name them.

Whoever forges a bundle also writes the keys into its index. A verdict by those keys says `verified` about any forgery.
So a key source is refused if it is the thing itself, or a file in it, however it is named: by a symbolic link, by a
hard link, or as a copy with the same bytes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from aver.errors import AverError, BadInput
from aver.files.regular import open_without_blocking
from aver.keys.exchange import list_key_files
from aver.ledger.bundle.layout import HEAD, INDEX, META, read_index

COPY_MAX = 16 * 1024 * 1024
"""Largest key source, in bytes, that is compared with the files of the thing. No larger one is read as keys."""

FILES_MAX = 100_000
"""Most files of a thing that a key source is compared with."""


def check_key_source(source: str, thing: object) -> None:
    """Raise `BadInput` if the keys in `source` are part of `thing`. Hex digits, and things in memory, have no place."""
    if not isinstance(thing, str | Path) or not os.path.exists(source) or not Path(thing).expanduser().exists():
        return
    inside = Path(thing).expanduser()
    # These stand for the bundle around them: its index has the keys of all its chains.
    if inside.name == INDEX or _is_part_of_bundle(inside):
        inside = inside.parent
    real_thing, real_source = os.path.realpath(inside), os.path.realpath(source)
    for file in list_key_files(Path(source)):
        real = os.path.realpath(file)
        if real == real_thing or real.startswith(f"{real_thing.rstrip(os.sep)}{os.sep}"):
            raise _own_keys_error(source, inside)
        if any(_is_same(real, other) for other in _list_files(real_thing)):
            raise _own_keys_error(source, inside)
    if real_source == real_thing:
        raise _own_keys_error(source, inside)


def _is_part_of_bundle(file: Path) -> bool:
    """Whether the index beside a file lists it."""
    try:
        index = read_index(file.parent) if file.is_file() else None
    except AverError:
        return False
    return index is not None and file.name in (META, HEAD, *(claim.file for claim in index.chains))


def _list_files(thing: str) -> Iterator[os.DirEntry[str] | str]:
    """The thing itself if it is a file, else the files in it. A bundle has its index beside its chains."""
    if not os.path.isdir(thing):
        yield thing
        return
    with os.scandir(thing) as entries:
        for number, entry in enumerate(entries):
            if number >= FILES_MAX:
                return
            yield entry


def _is_same(source: str, other: os.DirEntry[str] | str) -> bool:
    """Whether two paths name one file, or files with the same bytes."""
    try:
        ours, theirs = os.stat(source), os.stat(other)
        if os.path.samestat(ours, theirs):
            return True
        if ours.st_size != theirs.st_size or not 0 < ours.st_size <= COPY_MAX:
            return False
        return _read(source) == _read(os.fspath(other))
    except OSError:
        return False  # What cannot be read is no source of keys.


def _read(path: str) -> bytes:
    with os.fdopen(open_without_blocking(Path(path), follow=True), "rb") as file:
        return file.read(COPY_MAX) or b""


def _own_keys_error(source: str, thing: Path) -> BadInput:
    return BadInput(
        f"the keys in {source} come with {thing} itself, so they prove nothing about it",
        advice="ask the owner, by another way, for the file that this writes: aver keys export --out keys.json",
    )
