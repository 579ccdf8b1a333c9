"""What a commit would change: the difference between HEAD and git's index, read without the repository's settings."""

from __future__ import annotations

import os
from pathlib import Path

from aver.errors import BadInput, NotFound
from aver.gate.action import DIFF_MAX
from aver.gate.risk.git import asking
from aver.gate.risk.repository import Repository, open_repository

__all__ = ["staged_diff"]

_OPTIONS = (
    *("--cached", "-p", "--unified=3", "--find-renames", "-l400", "--no-ext-diff", "--no-textconv", "--no-color"),
    *("--src-prefix=a/", "--dst-prefix=b/", "--no-relative", "--submodule=short", "--ignore-submodules=none"),
)


def staged_diff(workspace: str | Path) -> tuple[str, Path]:
    """The staged change, and the root that its paths begin at. Inside a hook it is what the commit at hand would be."""
    repository = open_repository(workspace)
    lines: list[str] = []
    size = 0
    with asking(repository, index=_index_of(repository)) as git:
        for some in git.lines("diff-index", *_OPTIONS, repository.head, "--"):
            size += sum(map(len, some)) + len(some)
            if size > DIFF_MAX:
                raise BadInput(f"what is staged has more than {DIFF_MAX} characters", advice="commit it in parts")
            lines += some
    text = "".join(f"{line}\n" for line in lines)
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace"), repository.root


def _index_of(repository: Repository) -> Path:
    """The index that git would commit: during `git commit FILE` not the usual one, and git says which."""
    given = os.environ.get("GIT_INDEX_FILE")
    index = repository.root / given if given else repository.index
    if not Path(os.path.realpath(index.parent)).is_relative_to(os.path.realpath(repository.index.parent)):
        raise BadInput(f"GIT_INDEX_FILE names {given!r}, which is not in this repository")
    if not index.is_file():
        raise NotFound(f"{repository.root} has nothing staged", advice="git add what the commit is to hold")
    return index
