"""A git history as a stream of commits and their changes, oldest first.

Merges are left out: what they bring in is in the commits they join. Times are those of committing, as the history
tells them, which need not be true and need not be in order.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Iterator
from itertools import count

from aver.errors import BadInput
from aver.fast_dataclass import dataclass
from aver.gate.risk.diff import LineWindow, read_diff_lines
from aver.gate.risk.diff_model import DiffPart
from aver.gate.risk.history.git import DIFF_OPTIONS, GitReader
from aver.gate.risk.state import TIME_MAX

__all__ = ["COMMITS_MAX", "Commit", "CommitChange", "list_commits", "read_changes"]

COMMITS_MAX = 200_000
"""The newest commits of a history that are looked at."""

MESSAGE_LINES_MAX = 2000
"""Lines of a commit's message that are looked at."""

REVERTS_MAX = 20
"""Commits that one commit says it reverts."""

SUBJECT_MAX = 1000

_REVERTS = re.compile(r"This reverts commit ([0-9a-f]{7,64})\b").search


@dataclass(frozen=True, slots=True)
class Commit:
    id: str
    time: int
    """Seconds since 1970."""
    parent: str = ""
    """The commit it changes; empty for a first one."""
    subject: str = ""


@dataclass(frozen=True, slots=True)
class CommitChange:
    """A commit, what it says of itself, and its diff, to be read before the next one is asked for."""

    commit: Commit
    reverts: tuple[str, ...]
    """The beginnings of the ids of commits that it says it reverts."""
    parts: Iterator[DiffPart]


def list_commits(git: GitReader, *, since: int = 0, without: str = "") -> list[Commit]:
    """The commits that HEAD has, but for merges, older ones, and those that the commit `without` has; oldest first."""
    options = ["--no-merges", f"--max-count={COMMITS_MAX}", "--format=%ct %H %P%x00%s"]
    options += [f"--since={since}"] if since else []
    options += [f"^{without}"] if without else []
    found = []
    for rows in git.lines("rev-list", *options, git.repository.head, "--"):
        for row in rows:
            facts, is_one, subject = row.partition("\0")
            if is_one:  # Between them are lines that say `commit`.
                time, commit, parent, *_ = (*facts.split(" "), "")
                found.append(Commit(commit, max(0, min(int(time), TIME_MAX)), parent, subject[:SUBJECT_MAX]))
    # git lists children first. Sorting keeps that order, turned round, where times are the same.
    found.reverse()
    found.sort(key=lambda commit: commit.time)
    return found


def read_changes(git: GitReader, wanted: Iterable[Commit]) -> Iterator[CommitChange]:
    """What each of these commits changed, in the order given."""
    listed = list(wanted)
    # Nobody can have put this into a message or a file before.
    mark = secrets.token_hex(16)
    form = f"--format={mark} %H%n%B%n{mark} end"
    lines = LineWindow(
        git.lines("diff-tree", "--stdin", "--always", *DIFF_OPTIONS, form, given=(item.id for item in listed))
    )
    for commit in listed:
        reverts = _read_reverts(lines, mark, commit)
        diff = _read_until_mark(lines, mark)
        yield CommitChange(commit, reverts, read_diff_lines(diff))
        for _ in diff:
            pass


def _read_reverts(lines: LineWindow, mark: str, commit: Commit) -> tuple[str, ...]:
    """What a commit's message says it reverts. Leaves the lines at the end of the message."""
    if not lines.has(1) or lines.rows[lines.at] != f"{mark} {commit.id}":
        raise BadInput(f"git tells nothing of commit {commit.id}")
    lines.at += 1
    found: list[str] = []
    for number in count():
        if not lines.has(1) or (line := lines.rows[lines.at]) == f"{mark} end":
            break
        lines.at += 1
        if number < MESSAGE_LINES_MAX and len(found) < REVERTS_MAX and (named := _REVERTS(line)):
            found.append(named[1])
    lines.at += 1
    return tuple(found)


def _read_until_mark(lines: LineWindow, mark: str) -> Iterator[list[str]]:
    """The lines before the next that begins with the mark."""
    while lines.has(1):
        rows = lines.rows[lines.at :]
        end = next((index for index, row in enumerate(rows) if row.startswith(mark)), None)
        lines.at += len(rows) if end is None else end
        if end != 0:
            yield rows[:end]
        if end is not None:
            return
