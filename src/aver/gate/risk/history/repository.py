"""Finds the parts of a git repository without running git and without reading its settings.

Aver reads only a few plain files, each up to a limit: `.git` (a directory, or a file that points to one), `commondir`,
`HEAD`, the branch it names, `packed-refs` and `shallow`. It never opens a repository's `config`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from aver.errors import BadInput, NotFound
from aver.fast_dataclass import dataclass
from aver.files.regular import open_file
from aver.gate.risk.state import find_workspace_root

POINTER_MAX = 8 * 1024
"""Bytes of a file that holds one path or one name."""

LIST_MAX = 64 * 1024 * 1024
"""Bytes of `packed-refs` and `shallow`: enough for half a million refs."""

REF_HOPS_MAX = 5
"""Refs that name other refs. git follows as many."""

_ID = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})").fullmatch
_REF = re.compile(r"refs/[^\x00-\x20\x7f~^:?*\[\\]{1,1000}").fullmatch


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository: its paths, its HEAD commit, and the commits at which a shallow history ends."""

    root: Path
    objects: Path
    index: Path
    head: str
    shallow: tuple[str, ...] = ()


def open_repository(path: str | Path) -> Repository:
    """Open the repository at or above `path`. Raises NotFound if there is none, BadInput if it cannot be read."""
    root = find_workspace_root(path)
    git = _find_git_directory(root)
    common = _find_common_directory(git)
    objects = common / "objects"
    if not objects.is_dir():
        raise BadInput(f"{git} has no objects, so it is no git repository")
    head = _read_head(git, common)
    shallow = tuple(line for line in _read_list_lines(common / "shallow") if _ID(line))
    return Repository(root, objects, git / "index", head, shallow)


def _find_git_directory(root: Path) -> Path:
    found = root / ".git"
    if found.is_dir():
        return found
    if found.is_file():
        words = _read_pointer(found)
        if not words.startswith("gitdir: "):
            raise BadInput(f"{found} points to no repository")
        return root / words.removeprefix("gitdir: ")
    if (root / "HEAD").is_file() and (root / "objects").is_dir():
        return root
    raise NotFound(f"{root} is no git repository", advice="name a directory inside one")


def _find_common_directory(git: Path) -> Path:
    """Return the directory that all working trees of a repository share."""
    try:
        return git / _read_pointer(git / "commondir")
    except NotFound:
        return git


def _read_head(git: Path, common: Path) -> str:
    name = "HEAD"
    for _ in range(REF_HOPS_MAX):
        words = _read_ref(name, git, common)
        if words is None:
            raise BadInput(f"{git} has no commit yet, or keeps its refs in a form that is not read here")
        if _ID(words):
            return words
        name = words.removeprefix("ref:").strip()
        if not words.startswith("ref:") or not _REF(name) or ".." in name:
            raise BadInput(f"{git} has a HEAD that names no branch")
    raise BadInput(f"{git} has a HEAD that names itself")


def _read_ref(name: str, git: Path, common: Path) -> str | None:
    for directory in dict.fromkeys((git, common)):
        try:
            return _read_pointer(directory / name)
        except NotFound:
            continue
    for line in _read_list_lines(common / "packed-refs"):
        commit, _, packed = line.partition(" ")
        if packed == name:
            return commit
    return None


def _read_pointer(path: Path) -> str:
    with open_file(path) as file:
        raw = file.read(POINTER_MAX + 1)
    if len(raw) > POINTER_MAX:
        raise BadInput(f"{path} is larger than {POINTER_MAX} bytes")
    return os.fsdecode(raw).rstrip("\r\n")


def _read_list_lines(path: Path) -> Iterator[str]:
    try:
        with open_file(path) as file:
            for line in file.read(LIST_MAX).split(b"\n"):
                yield os.fsdecode(line)
    except NotFound:
        return
