"""Finds the parts of a git repository without running git and without reading its settings.

Aver reads only a few plain files, each up to a limit: `.git` (a directory, or a file that points to one), `commondir`,
`HEAD`, the branch it names, `packed-refs` and `shallow`. It never opens a repository's `config`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from aver.errors import BadInput, NotFound
from aver.fast_dataclass import dataclass
from aver.files.regular import open_file
from aver.gate.risk.state import find_workspace_root
from aver.lazy_pattern import lazy_pattern

POINTER_MAX = 8 * 1024
"""Bytes of a file that holds one path or one name."""

LIST_MAX = 64 * 1024 * 1024
"""Bytes of `packed-refs` and `shallow`: enough for half a million refs."""

REF_HOPS_MAX = 5
"""Refs that name other refs. git follows as many."""

_ID = lazy_pattern(r"(?:[0-9a-f]{40}|[0-9a-f]{64})")
_REF = lazy_pattern(r"refs/[^\x00-\x20\x7f~^:?*\[\\]{1,1000}")


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository: its paths, its HEAD commit, and the commits at which a shallow history ends."""

    root: Path
    objects: Path
    index: Path
    head: str
    shallow: tuple[str, ...] = ()


def open_repository(path: str | Path, *, root: Path | None = None) -> Repository:
    """Open the repository at or above `path`. Raises NotFound if there is none, BadInput if it cannot be read.

    `root` is `find_workspace_root(path)`, if the caller has found it.
    """
    root = root or find_workspace_root(path)
    git = root / ".git"
    if git.is_file():
        # A further working tree or a submodule: the file names the directory.
        words = _read_pointer(git)
        if not words.startswith("gitdir: "):
            raise BadInput(f"{git} points to no repository")
        git = root / words.removeprefix("gitdir: ")
    elif not git.is_dir():
        if not ((root / "HEAD").is_file() and (root / "objects").is_dir()):
            raise NotFound(f"{root} is no git repository", advice="name a directory inside one")
        git = root  # a bare repository
    # All working trees of a repository share one directory.
    try:
        common = git / _read_pointer(git / "commondir")
    except NotFound:
        common = git
    objects = common / "objects"
    if not objects.is_dir():
        raise BadInput(f"{git} has no objects, so it is no git repository")
    head = _read_head(git, common)
    shallow = tuple(line for line in _read_list_lines(common / "shallow") if _ID.fullmatch(line))
    return Repository(root, objects, git / "index", head, shallow)


def _read_head(git: Path, common: Path) -> str:
    """Return the commit that HEAD names. Follows refs that name other refs."""
    name = "HEAD"
    for _ in range(REF_HOPS_MAX):
        words: str | None = None
        # A ref is a file of its own, in this working tree or in the shared directory, or a line of `packed-refs`.
        for directory in dict.fromkeys((git, common)):
            with suppress(NotFound):
                words = _read_pointer(directory / name)
                break
        else:
            packed = (line.partition(" ") for line in _read_list_lines(common / "packed-refs"))
            words = next((commit for commit, _, ref in packed if ref == name), None)
        if words is None:
            raise BadInput(f"{git} has no commit yet, or keeps its refs in a form that is not read here")
        if _ID.fullmatch(words):
            return words
        name = words.removeprefix("ref:").strip()
        if not words.startswith("ref:") or not _REF.fullmatch(name) or ".." in name:
            raise BadInput(f"{git} has a HEAD that names no branch")
    raise BadInput(f"{git} has a HEAD that names itself")


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
