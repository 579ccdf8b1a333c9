"""What counts as a bug fix, and how many there were lately to which file.

A commit is one if its subject says so, it touches source files, and it changes at most 60 lines of them. Fixes of docs
or tests alone are none, and neither are those of typing errors, style and the like.

Bug fixes of the last 180 days, by file: what the gate asks about a repository's past.

    risk/<name>.fixes.json     {"head": <commit>, "fixes": {<path>: [<time>, ...]}}, in a document as in `state`

It is brought up to date whenever HEAD has moved, from the commits that are new; as long as it has not, git is not even
started. A repository that cannot be read has no fixes that are known, and `note` says why.
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
from typing import Any

from aver.config import ensure_home
from aver.errors import AverError, NotFound
from aver.fast_dataclass import dataclass
from aver.gate.risk.diff_model import DiffPart, FileChange, Hunk
from aver.gate.risk.features import code_lines, comment_style, is_source
from aver.gate.risk.history.repository import Repository, open_repository
from aver.gate.risk.state import TIME_MAX, decode_path, encode_path, read_document, state_path, write_document

__all__ = [
    "DAY",
    "FIX_LINES_MAX",
    "FIX_WINDOW",
    "FixScanner",
    "FixTimes",
    "RecentFixes",
    "is_fix_subject",
    "load_recent_fixes",
]


DAY = 86_400
FIX_WINDOW = 180 * DAY
"""Seconds for which a fix counts: to what it repairs, and to the files it touches."""

FIX_LINES_MAX = 60
"""Changed lines of a fix. In larger ones too much else is changed to tell what was repaired."""

_FIX_PATTERN = (
    r"\b(?:fix(?:e[sd]|ing)?|(?:hot|bug)[- ]?fix(?:es|ed)?|bugs?|regressions?|crash(?:es|ed|ing)?|deadlocks?|broken)\b"
)
_COSMETIC_PATTERN = (
    r"\b(?:typos?|spelling|grammar|whitespaces?|lint(?:er|ing|s)?|flake8|pylint|mypy|ruff|clippy|eslint|isort)\b"
    r"|\bfix(?:e[sd]|ing)?:?\s+(?:\w+\s+)?"
    r"(?:docs?|docstrings?|documentation|comments?|readme|changelog|tests?|ci|format(?:ting)?|style|indent(?:ation)?"
    r"|imports?\s+order|copyright|licen[cs]e|links?|warnings?|annotations?|type\s+hints?)\b"
)
"""Both are compiled when a history is read, which takes long anyway; a decision reads none."""


def is_fix_subject(subject: str) -> bool:
    """Whether a commit's subject says that it repairs a bug."""
    is_fix, is_cosmetic = (re.search(pattern, subject, re.IGNORECASE) for pattern in (_FIX_PATTERN, _COSMETIC_PATTERN))
    return is_fix is not None and is_cosmetic is None


class FixScanner:
    """Looks at a change as it passes by, and tells afterwards whether it was small enough, and what it took away."""

    def __init__(self) -> None:
        self._style_path: str | None = None
        self._old: str | None = None
        self._lines = 0
        self._files: dict[str, None] = {}
        self.removed: dict[str, list[int]] = {}
        """By old path: the numbers of the lines of code that were removed."""

    def scan_parts(self, parts: Iterable[DiffPart]) -> Iterator[DiffPart]:
        for part in parts:
            if isinstance(part, FileChange):
                self._scan_file(part)
            elif isinstance(part, Hunk):
                self._scan_hunk(part)
            yield part

    @property
    def files(self) -> tuple[str, ...]:
        """The source files that were fixed; none if too much was changed for a fix."""
        return tuple(self._files) if self._lines <= FIX_LINES_MAX else ()

    def _scan_file(self, file: FileChange) -> None:
        sources = [path for path in (file.new, file.old) if path is not None and is_source(path)]
        self._style_path = sources[0] if sources else None
        self._old = file.old
        if self._lines <= FIX_LINES_MAX:
            self._files.update(dict.fromkeys(sources))

    def _scan_hunk(self, hunk: Hunk) -> None:
        if self._style_path is None:
            return
        self._lines += sum(line[0] != " " for line in hunk.lines)
        if self._lines <= FIX_LINES_MAX and self._old is not None and hunk.old_start:
            style = comment_style(self._style_path)
            numbers = [number for number, line in hunk.numbered_removed_lines() if code_lines([line], style)]
            if numbers:
                self.removed.setdefault(self._old, []).extend(numbers)


@dataclass(slots=True)
class FixTimes:
    """When each file was fixed. Grows as a history is read; asking about a time sees only what was before it."""

    times: dict[str, list[int]] = field(default_factory=dict)

    def add(self, paths: Iterable[str], time: int) -> None:
        for path in paths:
            known = self.times.setdefault(path, [])
            known.insert(bisect_left(known, time), time)

    def count(self, paths: Collection[str], now: int) -> int:
        """Fixes in the 180 days before `now`, summed over the files."""
        total = 0
        for path in paths:
            known = self.times.get(path)
            if known:
                total += bisect_left(known, now) - bisect_left(known, now - FIX_WINDOW)
        return total


FORMAT, VERSION = "aver-risk-fixes", 1

DOCUMENT_MAX = 16 * 1024 * 1024
"""Bytes: a hundred thousand fixed files."""

COMMITS_MAX = 2000
"""The newest fixes that are looked at: even a busy project has fewer in 180 days."""


@dataclass(frozen=True, slots=True)
class RecentFixes:
    """A `History`: what the gate hands to `estimate`."""

    times: FixTimes = field(default_factory=FixTimes)
    prefix: str = ""
    """Where the workspace lies in its repository: paths in a diff may begin there or at the top."""
    note: str = ""

    def fixes_before(self, paths: Collection[str], now: str) -> int:
        if not self.times.times:
            return 0
        known = self.times.times
        names = [path if path in known else self.prefix + path for path in paths]
        return self.times.count(names, _to_seconds(now))


def load_recent_fixes(workspace: str | Path, home: Path | None = None) -> RecentFixes:
    """What is known of a workspace's repository; nothing, with a note, if it cannot be read."""
    try:
        repository = open_repository(workspace)
        times = _load_fix_times(repository, home)
    except NotFound:
        return RecentFixes()
    except AverError as error:
        return RecentFixes(note=f"the repository's history is not known: {error.message}")
    inside = os.path.relpath(os.path.realpath(workspace), repository.root)
    return RecentFixes(times, "" if inside == "." else f"{inside}/")


def _load_fix_times(repository: Repository, home: Path | None) -> FixTimes:
    path = state_path(repository.root, home).with_suffix(".fixes.json")
    head, times = _read_stored_fixes(path, repository)
    if head == repository.head:
        return times
    try:
        _add_new_fixes(repository, times, without=head)
    except AverError:
        if not head:
            raise
        times = FixTimes()  # The commit that was HEAD is gone: begin anew.
        _add_new_fixes(repository, times, without="")
    with suppress(AverError):  # Without a place to keep it, it is found out again next time.
        ensure_home(home)
        fixes = {encode_path(name): known for name, known in times.times.items()}
        write_document(path, FORMAT, VERSION, repository.root, {"head": repository.head, "fixes": fixes})
    return times


def _add_new_fixes(repository: Repository, times: FixTimes, *, without: str) -> None:
    # Only here, because starting programs takes modules that a decision can do without.
    from aver.gate.risk.history.commits import list_commits, read_changes
    from aver.gate.risk.history.git import open_git

    oldest = int(time.time()) - FIX_WINDOW
    with open_git(repository) as git:
        listed = [
            commit for commit in list_commits(git, since=oldest, without=without) if is_fix_subject(commit.subject)
        ]
        if listed:
            for change in read_changes(git, listed[-COMMITS_MAX:]):
                watch = FixScanner()
                for _ in watch.scan_parts(change.parts):
                    pass
                times.add(watch.files, change.commit.time)
    for name, known in list(times.times.items()):
        kept = [moment for moment in known if moment >= oldest]
        if kept:
            times.times[name] = kept
        else:
            del times.times[name]


def _read_stored_fixes(path: Path, repository: Repository) -> tuple[str, FixTimes]:
    """What was known, and at which HEAD; nothing at none, if it cannot be used."""
    try:
        document = read_document(path, FORMAT, VERSION, repository.root, limit=DOCUMENT_MAX)
    except AverError:
        return "", FixTimes()
    if document is None or not _is_valid_document(document):
        return "", FixTimes()
    return document["head"], FixTimes({decode_path(name): known for name, known in document["fixes"].items()})


def _is_valid_document(document: dict[str, Any]) -> bool:
    head, fixes = document.get("head"), document.get("fixes")
    return (
        isinstance(head, str)
        and len(head) in (40, 64)
        and set(head) <= set("0123456789abcdef")
        and isinstance(fixes, dict)
        and all(isinstance(known, list) and known == sorted(map(_time_or_invalid, known)) for known in fixes.values())
    )


def _time_or_invalid(value: Any) -> int:
    return value if type(value) is int and 0 <= value <= TIME_MAX else -1


def _to_seconds(now: str) -> int:
    """A time as `aver.clock.now()` writes it. What is none is taken for the latest, before which everything was."""
    try:
        return int(datetime.fromisoformat(now).timestamp())
    except (ValueError, OverflowError):
        return int(time.time())
