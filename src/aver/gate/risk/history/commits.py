"""The commits of a git history and their changes, oldest first.

Merges are left out, because their contents are in the commits that they join. Times are commit times as the history
states them. They may be wrong, and need not be in order.
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
from aver.gate.risk.features import Features
from aver.gate.risk.history.git import DIFF_OPTIONS, GitReader
from aver.gate.risk.state import TIME_MAX

__all__ = ["COMMITS_MAX", "Commit", "CommitChange", "MinedCommit", "list_commits", "read_changes"]

COMMITS_MAX = 200_000
"""Commits of a history that Aver reads: the newest ones."""

MESSAGE_LINES_MAX = 2000
"""Lines of a commit message that Aver reads."""

REVERTS_MAX = 20
"""Reverted commits that one commit may name."""

SUBJECT_MAX = 1000

_REVERTS = re.compile(r"This reverts commit ([0-9a-f]{7,64})\b").search


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit of a history, without its change."""

    id: str
    time: int
    """Seconds since 1970."""
    parent: str = ""
    """The commit it is based on; empty for a first commit."""
    subject: str = ""


@dataclass(frozen=True, slots=True)
class CommitChange:
    """A commit with its diff. Read `parts` before you ask for the next commit: both come from one stream."""

    commit: Commit
    reverts: tuple[str, ...]
    """The (shortened) ids of commits that its message says it reverts."""
    parts: Iterator[DiffPart]


@dataclass(frozen=True, slots=True)
class MinedCommit:
    """A commit, its features as known at its time, and what it says about other commits."""

    commit: Commit
    features: Features
    subject: str
    """A digest of the subject line. A revert may name a commit by its subject instead of its id."""
    fixed: tuple[str, ...] = ()
    """The source files it fixed; none if it is not a bug fix."""
    blamed: tuple[str, ...] = ()
    """The commits whose lines it repaired."""
    reverts: tuple[str, ...] = ()
    reverted_subject: str = ""


def list_commits(git: GitReader, *, since: int = 0, without: str = "") -> list[Commit]:
    """List the commits of HEAD without merges, oldest first.

    Leaves out commits before `since`, and all commits that the commit `without` contains.
    """
    options = ["--no-merges", f"--max-count={COMMITS_MAX}", "--format=%ct %H %P%x00%s"]
    options += [f"--since={since}"] if since else []
    options += [f"^{without}"] if without else []
    found = []
    for rows in git.read_output("rev-list", *options, git.repository.head, "--"):
        for row in rows:
            facts, separator, subject = row.partition("\0")
            if separator:  # rev-list also prints `commit <id>` lines, which have no NUL
                time, commit, parent, *_ = (*facts.split(" "), "")
                found.append(Commit(commit, max(0, min(int(time), TIME_MAX)), parent, subject[:SUBJECT_MAX]))
    # git lists children before parents. Reverse that; the stable sort then keeps parents first for equal times.
    found.reverse()
    found.sort(key=lambda commit: commit.time)
    return found


def read_changes(git: GitReader, wanted: Iterable[Commit]) -> Iterator[CommitChange]:
    """Yield the change of each commit, in the given order."""
    listed = list(wanted)
    # A random separator cannot occur in a message or a file.
    mark = secrets.token_hex(16)
    form = f"--format={mark} %H%n%B%n{mark} end"
    lines = LineWindow(
        git.read_output("diff-tree", "--stdin", "--always", *DIFF_OPTIONS, form, given=(item.id for item in listed))
    )
    for commit in listed:
        reverts = _read_reverts(lines, mark, commit)
        diff = _read_until_mark(lines, mark)
        yield CommitChange(commit, reverts, read_diff_lines(diff))
        for _ in diff:  # skip what the caller did not read
            pass


def _read_reverts(lines: LineWindow, mark: str, commit: Commit) -> tuple[str, ...]:
    """Read a commit message. Returns the ids that it says it reverts, and leaves `lines` after the message."""
    if not lines.has_lines(1) or lines.rows[lines.at] != f"{mark} {commit.id}":
        raise BadInput(f"git tells nothing of commit {commit.id}")
    lines.at += 1
    found: list[str] = []
    for number in count():
        if not lines.has_lines(1) or (line := lines.rows[lines.at]) == f"{mark} end":
            break
        lines.at += 1
        if number < MESSAGE_LINES_MAX and len(found) < REVERTS_MAX and (named := _REVERTS(line)):
            found.append(named[1])
    lines.at += 1
    return tuple(found)


def _read_until_mark(lines: LineWindow, mark: str) -> Iterator[list[str]]:
    """Yield the lines before the next line that begins with the mark."""
    while lines.has_lines(1):
        rows = lines.rows[lines.at :]
        end = next((index for index, row in enumerate(rows) if row.startswith(mark)), None)
        lines.at += len(rows) if end is None else end
        if end != 0:
            yield rows[:end]
        if end is not None:
            return
