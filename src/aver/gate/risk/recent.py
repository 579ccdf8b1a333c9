"""Bug fixes of the last 180 days, by file: what the gate asks about a repository's past.

    risk/<name>.fixes.json     {"head": <commit>, "fixes": {<path>: [<time>, ...]}}, in a document as in `state`

It is brought up to date whenever HEAD has moved, from the commits that are new; as long as it has not, git is not even
started. A repository that cannot be read has no fixes that are known, and `note` says why.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from contextlib import suppress
from dataclasses import field
from datetime import datetime
from pathlib import Path
from typing import Any

from aver.errors import AverError, NotFound
from aver.gate.risk.fixes import WINDOW, FixTimes, FixWatch, says_fix
from aver.gate.risk.repository import Repository, open_repository
from aver.gate.risk.state import TIME_MAX, read_document, read_path, state_path, write_document, written_path
from aver.home import ensure_home
from aver.values import dataclass

__all__ = ["RecentFixes", "recent_fixes"]

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
        return self.times.count(names, _seconds(now))


def recent_fixes(workspace: str | Path, home: Path | None = None) -> RecentFixes:
    """What is known of a workspace's repository; nothing, with a note, if it cannot be read."""
    try:
        repository = open_repository(workspace)
        times = _times(repository, home)
    except NotFound:
        return RecentFixes()
    except AverError as error:
        return RecentFixes(note=f"the repository's history is not known: {error.message}")
    inside = os.path.relpath(os.path.realpath(workspace), repository.root)
    return RecentFixes(times, "" if inside == "." else f"{inside}/")


def _times(repository: Repository, home: Path | None) -> FixTimes:
    path = state_path(repository.root, home).with_suffix(".fixes.json")
    head, times = _stored(path, repository)
    if head == repository.head:
        return times
    try:
        _bring_up_to_date(repository, times, without=head)
    except AverError:
        if not head:
            raise
        times = FixTimes()  # The commit that was HEAD is gone: begin anew.
        _bring_up_to_date(repository, times, without="")
    with suppress(AverError):  # Without a place to keep it, it is found out again next time.
        ensure_home(home)
        fixes = {written_path(name): known for name, known in times.times.items()}
        write_document(path, FORMAT, VERSION, repository.root, {"head": repository.head, "fixes": fixes})
    return times


def _bring_up_to_date(repository: Repository, times: FixTimes, *, without: str) -> None:
    # Only here, because starting programs takes modules that a decision can do without.
    from aver.gate.risk.git import asking
    from aver.gate.risk.history import changes, commits

    oldest = int(time.time()) - WINDOW
    with asking(repository) as git:
        listed = [commit for commit in commits(git, since=oldest, without=without) if says_fix(commit.subject)]
        if listed:
            for change in changes(git, listed[-COMMITS_MAX:]):
                watch = FixWatch()
                for _ in watch.passing(change.parts):
                    pass
                times.add(watch.files, change.commit.time)
    for name, known in list(times.times.items()):
        kept = [moment for moment in known if moment >= oldest]
        if kept:
            times.times[name] = kept
        else:
            del times.times[name]


def _stored(path: Path, repository: Repository) -> tuple[str, FixTimes]:
    """What was known, and at which HEAD; nothing at none, if it cannot be used."""
    try:
        document = read_document(path, FORMAT, VERSION, repository.root, limit=DOCUMENT_MAX)
    except AverError:
        return "", FixTimes()
    if document is None or not _is_sound(document):
        return "", FixTimes()
    return document["head"], FixTimes({read_path(name): known for name, known in document["fixes"].items()})


def _is_sound(document: dict[str, Any]) -> bool:
    head, fixes = document.get("head"), document.get("fixes")
    return (
        isinstance(head, str)
        and len(head) in (40, 64)
        and set(head) <= set("0123456789abcdef")
        and isinstance(fixes, dict)
        and all(isinstance(known, list) and known == sorted(map(_moment, known)) for known in fixes.values())
    )


def _moment(value: Any) -> int:
    return value if type(value) is int and 0 <= value <= TIME_MAX else -1


def _seconds(now: str) -> int:
    """A time as `aver.clock.now()` writes it. What is none is taken for the latest, before which everything was."""
    try:
        return int(datetime.fromisoformat(now).timestamp())
    except (ValueError, OverflowError):
        return int(time.time())
