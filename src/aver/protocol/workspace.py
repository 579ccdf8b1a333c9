"""The state of a workspace at one moment: the commit that it stands on, and its uncommitted change.

`read_workspace_state` runs git without reading anything that the repository's settings name (`gate.risk.history.git`).
The change is a text of bytes: the unified diff of tracked files against HEAD, then one line for each untracked file
that the repository does not ignore:

    diff --git a/app.py b/app.py
    ...
    ? 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 notes.txt

A clean workspace has the change b"". A workspace that is no git repository has neither. The change is bounded; `cut`
says that its end is missing. Aver masks secrets later, where the state becomes part of a record.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator

from aver.errors import AverError, NotFound
from aver.fast_dataclass import dataclass
from aver.files.regular import open_descriptor
from aver.gate.risk.history.git import GitReader, open_git
from aver.gate.risk.history.repository import open_repository
from aver.log import debug

CHANGE_MAX = 1024 * 1024
"""Bytes of a change that are kept. A larger one is rarely read, and would fill the ledger at every execution."""

UNTRACKED_MAX = 1000
"""Most untracked files that are listed."""

UNTRACKED_SIZE_MAX = 8 * 1024 * 1024
"""Largest untracked file that is hashed, in bytes."""

UNREAD_DIGEST = "-" * 64
"""Stands for the digest of an untracked file that is too large, or no regular file."""

_DIFF_OPTIONS = (
    *("--no-ext-diff", "--no-textconv", "--no-color", "--find-renames", "-l400", "--src-prefix=a/", "--dst-prefix=b/"),
    *("--no-relative", "--submodule=short", "--ignore-submodules=all"),
)


@dataclass(frozen=True, slots=True)
class WorkspaceState:
    """The commit (None outside git), the change (None if it is not known), and whether the change's end is missing."""

    revision: str | None
    change: bytes | None
    cut: bool = False

    @property
    def is_clean(self) -> bool:
        """Whether the workspace is exactly the commit, ignored files aside."""
        return self.revision is not None and self.change == b""


NO_REPOSITORY = WorkspaceState(None, None)


def read_workspace_state(workspace: str) -> WorkspaceState:
    """Return the state of a workspace. A repository that cannot be read has no revision; the log says why."""
    try:
        repository = open_repository(workspace)
    except NotFound:
        return NO_REPOSITORY
    except AverError as error:
        debug("protocol", "the workspace's revision is not known: %s", error)
        return NO_REPOSITORY
    try:
        with open_git(repository, index=repository.index if repository.index.is_file() else None) as git:
            pieces, size = [], 0
            for piece in _list_changes(git, str(repository.root)):
                size += len(piece)
                pieces.append(piece)
                if size > CHANGE_MAX:
                    return WorkspaceState(repository.head, b"".join(pieces)[:CHANGE_MAX], cut=True)
            return WorkspaceState(repository.head, b"".join(pieces))
    except AverError as error:
        debug("protocol", "the workspace's change is not known: %s", error)
        return WorkspaceState(repository.head, None)


def _list_changes(git: GitReader, root: str) -> Iterator[bytes]:
    tree = f"--work-tree={root}"
    # `diff` looks into files whose times changed, and says nothing of those whose content did not.
    for lines in git.read_output("-C", root, tree, "diff", *_DIFF_OPTIONS, git.repository.head, "--"):
        yield "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
    count = 0
    for lines in git.read_output("-C", root, tree, "ls-files", "--others", "--exclude-standard", "--full-name", "-z"):
        # Names are separated by NUL; a name with a line break comes in several pieces, and is joined again.
        for name in "\n".join(lines).split("\0"):
            if not name:
                continue
            count += 1
            if count > UNTRACKED_MAX:
                yield b"? more untracked files\n"
                return
            yield f"? {_digest(os.path.join(root, name))} {name!a}\n".encode()


def _digest(path: str) -> str:
    try:
        with os.fdopen(open_descriptor(path, follow=False), "rb") as file:
            data = file.read(UNTRACKED_SIZE_MAX + 1)
    except OSError:
        return UNREAD_DIGEST
    return UNREAD_DIGEST if len(data) > UNTRACKED_SIZE_MAX else hashlib.sha256(data).hexdigest()
