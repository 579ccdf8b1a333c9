"""Bug fixes: which commits are fixes, and how many recent fixes each file had.

A commit is a bug fix if its message says so, it touches source files, and it changes at most 60 lines of them. The
subject may say it in words (`Fix a crash`), and a line of the body by naming what it fixes (`Fixes #12`). Fixes of docs
or tests alone do not count, nor do fixes of spelling, style and similar things.

`load_recent_fixes` gives the gate the fixes of the last 180 days by file. It keeps them in

    risk/<name>.fixes.json     {"head": <commit>, "fixes": {<path>: [<time>, ...]}}, in a document as in `state`

If HEAD has moved, Aver adds the fixes of the new commits. If not, it does not even start git. If the repository cannot
be read, there are no known fixes, and `note` says why.
"""

from __future__ import annotations

import os
import re
import time
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from aver.config import ensure_home
from aver.errors import AverError, BadInput, NotFound
from aver.fast_dataclass import dataclass
from aver.gate.risk.diff_model import DiffPart, FileChange, Hunk
from aver.gate.risk.features import code_lines, comment_style, is_source
from aver.gate.risk.history.repository import Repository, open_repository
from aver.gate.risk.state import TIME_MAX, decode_path, encode_path, read_document, state_path, write_document

if TYPE_CHECKING:
    from aver.gate.risk.history.commits import Commit
    from aver.gate.risk.history.git import GitReader

DAY = 86_400
FIX_WINDOW = 180 * DAY
"""Seconds for which a fix counts, for the commits it blames and for the files it touches."""

FIX_LINES_MAX = 60
"""Changed lines of a fix. A larger change holds too much besides the fix."""

_FIX_PATTERN = (
    r"\b(?:fix(?:e[sd]|ing)?|(?:hot|bug)[- ]?fix(?:es|ed)?|bugs?|regressions?|crash(?:es|ed|ing)?|deadlocks?|broken)\b"
)
_COSMETIC_PATTERN = (
    r"\b(?:typos?|spelling|grammar|whitespaces?|lint(?:er|ing|s)?|flake8|pylint|mypy|ruff|clippy|eslint|isort)\b"
    r"|\bfix(?:e[sd]|ing)?:?\s+(?:\w+\s+)?"
    r"(?:docs?|docstrings?|documentation|comments?|readme|changelog|tests?|ci|format(?:ting)?|style|indent(?:ation)?"
    r"|imports?\s+order|copyright|licen[cs]e|links?|warnings?|annotations?|type\s+hints?)\b"
)
_FIXED_ISSUE_PATTERN = (
    r"\s*(?:[-*]\s+)?fix(?:e[sd])?\s*:?\s+"
    r"(?:(?:the\s+)?(?:issue|bug)\s+)?(?:(?:[\w.-]+/[\w.-]+)?#[0-9]+|gh-[0-9]+|https?://[^\s]+/[0-9]+|[0-9a-f]{7,64}\b)"
)
"""A line of a commit's body that names the issue or the commit that it fixes. The patterns are compiled at use: a
decision does not need them."""

FIX_WORDS = "fix|bug|regression|crash|deadlock|broken"
"""Every message of a fix has one of these. git can select the commits that have one."""


def is_fix_message(subject: str, body: Iterable[str] = ()) -> bool:
    """Whether a commit's message says that the commit repairs a bug."""
    if re.search(_COSMETIC_PATTERN, subject, re.IGNORECASE):
        return False
    return re.search(_FIX_PATTERN, subject, re.IGNORECASE) is not None or any(
        re.match(_FIXED_ISSUE_PATTERN, line, re.IGNORECASE) for line in body
    )


class FixScanner:
    """Watches the parts of a change as they pass, and collects the fixed files and the removed lines."""

    def __init__(self) -> None:
        self._style_path: str | None = None
        self._old: str | None = None
        self._lines = 0
        self._files: dict[str, None] = {}
        self.removed: dict[str, list[int]] = {}
        """The numbers of the removed lines of code, by old path."""

    def scan_parts(self, parts: Iterable[DiffPart]) -> Iterator[DiffPart]:
        for part in parts:
            if isinstance(part, FileChange):
                sources = [path for path in (part.new, part.old) if path is not None and is_source(path)]
                self._style_path = sources[0] if sources else None
                self._old = part.old
                if self._lines <= FIX_LINES_MAX:
                    self._files.update(dict.fromkeys(sources))
            elif isinstance(part, Hunk) and self._style_path is not None:
                self._lines += sum(line[0] != " " for line in part.lines)
                # A combined diff has no line numbers: `old_start` is then 0.
                if self._lines <= FIX_LINES_MAX and self._old is not None and part.old_start:
                    style = comment_style(self._style_path)
                    numbers = [number for number, line in part.numbered_removed_lines() if code_lines([line], style)]
                    if numbers:
                        self.removed.setdefault(self._old, []).extend(numbers)
            yield part

    @property
    def fixed_files(self) -> tuple[str, ...]:
        """The source files that were fixed; none if the change is too large for a fix."""
        return tuple(self._files) if self._lines <= FIX_LINES_MAX else ()


@dataclass(slots=True)
class FixTimes:
    """The times at which each file was fixed, sorted. A question about a time sees only earlier fixes."""

    times: dict[str, list[int]] = field(default_factory=dict)

    def add(self, paths: Iterable[str], time: int) -> None:
        for path in paths:
            known = self.times.setdefault(path, [])
            known.insert(bisect_left(known, time), time)

    def count(self, paths: Collection[str], now: int) -> int:
        """Count the fixes in the 180 days before `now`, summed over the files."""
        total = 0
        for path in paths:
            known = self.times.get(path)
            if known:
                total += bisect_left(known, now) - bisect_left(known, now - FIX_WINDOW)
        return total


FORMAT, VERSION = "aver-risk-fixes", 2

DOCUMENT_MAX = 16 * 1024 * 1024
"""Bytes of the document: enough for a hundred thousand fixed files."""

COMMITS_MAX = 2000
"""Fixes that Aver reads, the newest ones. Even a busy project has fewer in 180 days."""


@dataclass(frozen=True, slots=True)
class RecentFixes:
    """The `FixHistory` that the gate gives to `estimate`."""

    times: FixTimes = field(default_factory=FixTimes)
    prefix: str = ""
    """The path of the workspace in its repository. Paths in a diff may start there or at the top."""
    note: str = ""

    def fixes_before(self, paths: Collection[str], now: str) -> int:
        if not self.times.times:
            return 0
        known = self.times.times
        # A diff may name paths from the workspace, or from the top of the repository.
        names = [path if path in known else self.prefix + path for path in paths]
        # An invalid time becomes the current time.
        try:
            seconds = int(datetime.fromisoformat(now).timestamp())
        except (ValueError, OverflowError):
            seconds = int(time.time())
        return self.times.count(names, seconds)


def load_recent_fixes(workspace: str | Path, home: Path | None = None, *, root: Path | None = None) -> RecentFixes:
    """Load the recent fixes of a workspace's repository. Returns none, with a note, if it cannot be read.

    `root` is the workspace's root, if the caller has found it.
    """
    try:
        repository = open_repository(workspace, root=root)
        times = _load_fix_times(repository, home)
    except NotFound:
        return RecentFixes()
    except AverError as error:
        return RecentFixes(note=f"the repository's history is not known: {error.message}")
    # The workspace may be a directory below the root of the repository.
    inside = os.path.relpath(os.path.realpath(workspace), repository.root)
    return RecentFixes(times, "" if inside == "." else f"{inside}/")


def _load_fix_times(repository: Repository, home: Path | None) -> FixTimes:
    path = state_path(repository.root, home).with_suffix(".fixes.json")
    head, times = _read_stored_fixes(path, repository)
    # HEAD has not moved: git need not even start.
    if head == repository.head:
        return times
    try:
        _add_new_fixes(repository, times, without=head)
    except AverError:
        if not head:
            raise
        times = FixTimes()  # the commit that was HEAD is gone: start from the beginning
        _add_new_fixes(repository, times, without="")
    with suppress(AverError):  # if the file cannot be written, the next decision reads the history again
        ensure_home(home)
        fixes = {encode_path(name): known for name, known in times.times.items()}
        write_document(path, FORMAT, VERSION, repository.root, {"head": repository.head, "fixes": fixes})
    return times


def _add_new_fixes(repository: Repository, times: FixTimes, *, without: str) -> None:
    # Imported here: a decision should not load `subprocess` if HEAD has not moved.
    from aver.gate.risk.history.commits import list_commits, split_unreadable
    from aver.gate.risk.history.git import open_git

    oldest = int(time.time()) - FIX_WINDOW
    with open_git(repository) as git:
        listed = list_commits(git, since=oldest, without=without, words=FIX_WORDS)[-COMMITS_MAX:]
        try:
            fixes = _read_fixes(git, listed)
        except BadInput:
            # An object is missing, as in a partial clone. The other commits still count.
            fixes = _read_fixes(git, split_unreadable(git, listed)[0])
    for files, moment in fixes:
        times.add(files, moment)
    # Drop fixes that are too old to count.
    for name, known in list(times.times.items()):
        kept = [moment for moment in known if moment >= oldest]
        if kept:
            times.times[name] = kept
        else:
            del times.times[name]


def _read_fixes(git: GitReader, commits: list[Commit]) -> list[tuple[tuple[str, ...], int]]:
    """Return the files that each fix among the commits fixed, and the time of the fix."""
    from aver.gate.risk.history.commits import read_changes

    found = []
    for change in read_changes(git, commits) if commits else ():
        scanner = FixScanner()
        for _ in scanner.scan_parts(change.parts) if change.is_fix else ():
            pass
        found.append((scanner.fixed_files, change.commit.time))
    return found


def _read_stored_fixes(path: Path, repository: Repository) -> tuple[str, FixTimes]:
    """Return the HEAD of the stored fixes, and the fixes. Both are empty if the file cannot be used."""
    try:
        document = read_document(path, FORMAT, VERSION, repository.root, limit=DOCUMENT_MAX) or {}
    except AverError:
        document = {}
    head, fixes = document.get("head"), document.get("fixes")
    is_commit = isinstance(head, str) and len(head) in (40, 64) and set(head) <= set("0123456789abcdef")
    if not is_commit or not isinstance(fixes, dict):
        return "", FixTimes()
    for known in fixes.values():
        # The times must be sorted: `FixTimes` searches them by halves.
        are_times = isinstance(known, list) and all(type(at) is int and 0 <= at <= TIME_MAX for at in known)
        if not are_times or known != sorted(known):
            return "", FixTimes()
    return str(head), FixTimes({decode_path(name): known for name, known in fixes.items()})
