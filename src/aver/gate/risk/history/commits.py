"""The commits of a git history, their changes, and which of them failed.

Commits come oldest first. Merges are left out, because their contents are in the commits that they join. Times are
commit times as the history states them. They may be wrong, and need not be in order.

A commit failed if it was reverted within 180 days, or if a bug fix within 180 days removed lines that it had
introduced. `git blame` finds the owners of the removed lines. A commit is blamed if it owns at least a quarter of them.
`fixes` defines a bug fix. The label is right in about three of four cases, which limits the figures of every model.

A failure becomes known at the time of the revert or fix. Nothing before that time may use it.
"""

from __future__ import annotations

import re
import secrets
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count

from aver.errors import BadInput
from aver.fast_dataclass import dataclass
from aver.gate.risk.diff import LineWindow, read_diff_lines
from aver.gate.risk.diff_model import DiffPart
from aver.gate.risk.features import Features
from aver.gate.risk.history.fixes import FIX_WINDOW, is_fix_message
from aver.gate.risk.history.git import DIFF_OPTIONS, GitReader
from aver.gate.risk.state import TIME_MAX

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
    is_fix: bool
    """Whether its message says that it repairs a bug."""
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


def list_commits(git: GitReader, *, since: int = 0, without: str = "", words: str = "") -> list[Commit]:
    """List the commits of HEAD without merges, oldest first.

    Leaves out commits before `since`, all commits that the commit `without` contains, and those whose messages do not
    match the pattern `words`.
    """
    options = ["--no-merges", f"--max-count={COMMITS_MAX}", "--format=%ct %H %P%x00%s"]
    options += [f"--since={since}"] if since else []
    options += [f"^{without}"] if without else []
    options += ["--extended-regexp", "--regexp-ignore-case", f"--grep={words}"] if words else []
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
    # One git process for all commits: starting one for each would take most of the time.
    lines = LineWindow(
        git.read_output("diff-tree", "--stdin", "--always", *DIFF_OPTIONS, form, given=(item.id for item in listed))
    )
    for commit in listed:
        # The commit message, between the marks: the ids that it says it reverts, and what it says it fixes.
        if not lines.has_lines(1) or lines.rows[lines.at] != f"{mark} {commit.id}":
            raise BadInput(f"git has no information about commit {commit.id}")
        lines.at += 1
        found: list[str] = []
        body: list[str] = []
        for number in count():
            if not lines.has_lines(1) or (line := lines.rows[lines.at]) == f"{mark} end":
                break
            lines.at += 1
            if number >= MESSAGE_LINES_MAX:
                continue
            body.append(line[:SUBJECT_MAX])
            if len(found) < REVERTS_MAX and (named := _REVERTS(line)):
                found.append(named[1])
        lines.at += 1
        diff = _read_until_mark(lines, mark)
        # The subject is the beginning of the message.
        is_fix = is_fix_message(commit.subject, body[1:])
        yield CommitChange(commit, tuple(found), is_fix, read_diff_lines(diff))
        for _ in diff:  # skip what the caller did not read
            pass


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


CHECKED_COMMITS = 2000
"""Commits whose objects are looked for at once. This bounds the memory for their ids."""

_RAW_ROW = re.compile(r":[0-7]{6} ([0-7]{6}) ([0-9a-f]+) ([0-9a-f]+) ").match
_SUBMODULE = "160000"


def split_unreadable(git: GitReader, commits: Sequence[Commit]) -> tuple[list[Commit], list[Commit]]:
    """Split commits into those whose changes can be read, and those for which this clone lacks a file's content.

    A partial clone lacks contents by design, a damaged one because objects were lost.
    """
    readable: list[Commit] = []
    unreadable: list[Commit] = []
    for begin in range(0, len(commits), CHECKED_COMMITS):
        chunk = commits[begin : begin + CHECKED_COMMITS]
        needed = _list_needed_contents(git, chunk)
        ids = dict.fromkeys(content for contents in needed.values() for content in contents)
        missing = {
            row.partition(" ")[0]
            for rows in git.read_output("cat-file", "--batch-check", given=ids)
            for row in rows
            if row.endswith(" missing")
        }
        for commit in chunk:
            (readable if missing.isdisjoint(needed[commit.id]) else unreadable).append(commit)
    return readable, unreadable


def _list_needed_contents(git: GitReader, commits: Iterable[Commit]) -> dict[str, set[str]]:
    """Return the ids of the contents that git needs for the diff of each commit, by the commit's id."""
    needed: dict[str, set[str]] = {commit.id: set() for commit in commits}
    found: set[str] = set()
    for rows in git.read_output("diff-tree", "--stdin", "-r", "--root", "--raw", "--no-renames", given=needed):
        for row in rows:
            if (raw := _RAW_ROW(row)) is None:
                found = needed.get(row, found)  # a line with a commit's id begins its part
                continue
            old_mode = row[1:7]
            found.update(
                content
                for mode, content in ((old_mode, raw[2]), (raw[1], raw[3]))
                if mode != _SUBMODULE and content.strip("0")
            )
    return needed


BLAME_SHARE_MIN = 0.25
"""The share of a fix's removed lines that a commit must own to be blamed."""

GIT_BARE_TIME_MIN = 100_000_000
"""git reads a bare number as a time only from this many seconds since 1970 on."""

_BLAME_HEADER = re.compile(r"([0-9a-f]{40}|[0-9a-f]{64}) [0-9]+ [0-9]+(?: ([0-9]+))?").fullmatch
_REVERT_SUBJECT = re.compile(r'Revert "(.+)"(?: \(#[0-9]+\))?$').match


def find_blamed_commits(git: GitReader, fix: Commit, removed: Mapping[str, Sequence[int]]) -> tuple[str, ...]:
    """Return the commits of the last 180 days that own at least a quarter of the lines that a fix removed."""
    total = sum(len(numbers) for numbers in removed.values())
    if not total or not fix.parent:
        return ()
    owners: Counter[str] = Counter()
    for path, numbers in removed.items():
        owners.update(_count_line_owners(git, fix, path, numbers))
    return tuple(sorted(commit for commit, lines in owners.items() if lines >= BLAME_SHARE_MIN * total))


def _count_line_owners(git: GitReader, fix: Commit, path: str, numbers: Sequence[int]) -> Counter[str]:
    """Count how many of these lines each commit owns. A file that git cannot blame counts for no commit."""
    options = [f"-L{first},{last}" for first, last in _group_ranges(numbers)]
    if fix.time - FIX_WINDOW >= GIT_BARE_TIME_MIN:
        # git need not find the owners of older lines. It marks them as boundary.
        options.append(f"--since={fix.time - FIX_WINDOW}")
    owners: Counter[str] = Counter()
    owner, boundary = "", set()
    try:
        for rows in git.read_output(
            "blame", "--porcelain", "--root", "--no-textconv", *options, fix.parent, "--", path
        ):
            for row in rows:
                if row.startswith("\t"):
                    owners[owner] += 1
                elif found := _BLAME_HEADER(row):
                    owner = found[1]
                elif row == "boundary":
                    boundary.add(owner)
    # The file may not exist in the parent under this name.
    except BadInput:
        return Counter()
    for commit in boundary:
        del owners[commit]
    return owners


def _group_ranges(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    first = last = -1
    for number in sorted(set(numbers)):
        if number == last + 1:
            last = number
            continue
        if first > 0:
            yield first, last
        first = last = number
    if first > 0:
        yield first, last


def parse_reverted_subject(subject: str) -> str | None:
    """Return the subject of the commit that a revert names; None if the subject is not that of a revert."""
    found = _REVERT_SUBJECT(subject)
    return found[1] if found else None


def find_failures(history: Iterable[MinedCommit]) -> dict[str, int]:
    """Return when the failure of each failed commit became known, by id. The first time counts."""
    listed = list(history)
    times = {item.commit.id: item.commit.time for item in listed}
    ids = sorted(times)
    subjects: dict[str, str] = {}
    known: dict[str, int] = {}
    for item in sorted(listed, key=lambda item: item.commit.time):
        accused = list(item.blamed)
        for beginning in item.reverts:
            # A shortened id must be unambiguous: the next id in order must not begin with it, too.
            at = bisect_left(ids, beginning)
            named = [commit for commit in ids[at : at + 2] if commit.startswith(beginning)]
            accused += named if len(named) == 1 else []
        if not item.reverts and item.reverted_subject in subjects:
            accused.append(subjects[item.reverted_subject])
        for commit in accused:
            began = times.get(commit)
            if began is not None and commit != item.commit.id and item.commit.time - began <= FIX_WINDOW:
                # With wrong clocks a fix may seem older than its cause. A failure is not known before its commit.
                moment = max(item.commit.time, began)
                known[commit] = min(known.get(commit, moment), moment)
        # The newest commit with a subject is the one that a later revert means.
        subjects[item.subject] = item.commit.id
    return known
