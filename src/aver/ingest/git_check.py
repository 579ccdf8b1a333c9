"""Compare the files that were committed during a session with its sealed edits.

Git can show that an edit is missing: a file changed although no sealed edit names it. It cannot show that an edit took
place, because an edit may have been undone or never committed. A session that ran commands may have changed any file;
then nothing is said about files that no edit names.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from aver.errors import AverError
from aver.gate.risk.history.git import open_git
from aver.gate.risk.history.repository import open_repository
from aver.verdict import Finding, Place, Tally

__all__ = ["GIT_CHECK", "FileActivity", "check_git", "find_committed_files"]

GIT_CHECK = "git"

COMMITS_MAX = 2000
"""Commits of one session that are looked at."""


class FileActivity(NamedTuple):
    """A session's sealed edits and commands, and when they happened."""

    directory: str
    paths: frozenset[str]
    commands: int
    since: str
    until: str


def check_git(touched: FileActivity | None, tally: Tally) -> None:
    """Name the files that were committed meanwhile although nothing that is sealed changed them."""
    if touched is None:
        tally.skip(GIT_CHECK, "no working directory is known", matters=False)
        return
    try:
        root, found = find_committed_files(touched.directory, touched.since, touched.until)
    except (AverError, OSError, ValueError) as error:
        tally.skip(GIT_CHECK, str(error), matters=False)
        return
    edited = {os.path.relpath(os.path.join(touched.directory, path), root) for path in touched.paths}
    tally.count_done(GIT_CHECK, len(found))
    tally.notes[GIT_CHECK] = (
        f"{len(found & edited)} of {len(found)} files committed meanwhile were edited by sealed calls"
    )
    if touched.commands:
        return
    for path in sorted(found - edited):
        words = f"{path} was committed while the session lasted, and nothing that is sealed changed it"
        tally.add(Finding(GIT_CHECK, "warning", "NOT_SEALED", words, Place(source=path)))


def find_committed_files(directory: str, since: str, until: str) -> tuple[str, set[str]]:
    """The root of the repository that a directory is in, and the files that commits between two times changed."""
    repository = open_repository(directory)
    with open_git(repository) as git:
        times = (f"--since={since}", f"--until={until}", f"--max-count={COMMITS_MAX}")
        commits = [line for lines in git.read_output("rev-list", *times, repository.head) for line in lines if line]
        options = ("--stdin", "--root", "-r", "-m", "--name-only", "--no-commit-id", "--no-renames")
        changed = git.read_output("diff-tree", *options, given=commits) if commits else ()
        return str(repository.root), {line for lines in changed for line in lines if line}
