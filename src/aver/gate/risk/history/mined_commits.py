"""The miner of a git history: it measures every commit once, and caches the result.

Aver takes commits in the order of their times. The features of a commit use only what came before it: `fixes` counts
only fixes with an earlier time. Results are written to the cache in batches, so an interrupted run continues where it
stopped.

The cache is `risk/<name>.history.jsonl`, with one line per commit:

    <16 hex digits of SHA-256 of RULES and JSON> <JSON>

A line follows from the commit's id and from the rules of `RULES`, so it never changes. New lines are appended. Aver
skips a line with a wrong checksum, such as a torn last line or one of older rules, and mines its commit again.

A clone may lack objects: a partial clone, or one that lost some. Aver leaves out the commits that need them, counts
them, and goes on.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import astuple, fields, replace
from pathlib import Path

import orjson

from aver.config import ensure_home
from aver.errors import AverError, BadInput, Unavailable
from aver.fast_dataclass import dataclass
from aver.files.regular import read_public_file
from aver.gate.risk.features import COUNT_MAX, Features, measure_parts
from aver.gate.risk.history.commits import (
    COMMITS_MAX,
    Commit,
    CommitChange,
    MinedCommit,
    find_blamed_commits,
    list_commits,
    parse_reverted_subject,
    read_changes,
    split_unreadable,
)
from aver.gate.risk.history.fixes import FixScanner, FixTimes
from aver.gate.risk.history.git import GitReader, open_git
from aver.gate.risk.history.repository import Repository
from aver.gate.risk.state import TIME_MAX, decode_path, encode_path, state_path

MiningProgress = Callable[[int, int], None]
"""Called with the number of commits done, and the number of all."""

BATCH_COMMITS = 200
"""Commits that are written at once. An interruption loses at most so many."""

LINE_MAX = 256 * 1024
"""Bytes of a line. A fix has at most 60 changed lines, so it touches few files."""

FILE_MAX = COMMITS_MAX * 4096
"""Bytes of the file that Aver reads. A commit takes about 300."""


RULES = b"2 "
"""Part of every checksum: the version of the rules by which commits are measured and fixes are found."""

RETRIES_MAX = 1000
"""Commits that git fails on, beyond those that `split_unreadable` finds. Each costs two processes."""


@dataclass(frozen=True, slots=True)
class MinedHistory:
    """The commits of a history that can be read, oldest first."""

    commits: list[MinedCommit]
    unreadable: int = 0
    """Commits that were left out, because this clone lacks objects of theirs."""


def mine_history(
    repository: Repository, *, progress: MiningProgress | None = None, home: Path | None = None
) -> MinedHistory:
    """Mine the commits of a history. Reads known commits from the cache, and adds new ones."""
    cache = CommitCache(repository.root, home)
    known = cache.read()
    with open_git(repository) as git:
        listed = list_commits(git)
        missing = [commit for commit in listed if commit.id not in known]
        # Commits in the cache count as done at once.
        done = len(listed) - len(missing)
        batch: list[MinedCommit] = []
        for item in _mine_commits(git, missing, known):
            known[item.commit.id] = item
            batch.append(item)
            done += 1
            if len(batch) == BATCH_COMMITS:
                cache.add(batch)
                batch = []
            if progress:
                progress(done, len(listed))
        if batch:
            cache.add(batch)
    readable = [known[commit.id] for commit in listed if commit.id in known]
    return MinedHistory(readable, len(listed) - len(readable))


def _mine_commits(git: GitReader, missing: list[Commit], known: Mapping[str, MinedCommit]) -> Iterator[MinedCommit]:
    fixes = FixTimes()
    # Fixes that were mined before count as well.
    for item in known.values():
        fixes.add(item.fixed, item.commit.time)
    retries = 0
    while missing:
        done = 0
        try:
            for change in read_changes(git, missing):
                item = _mine_change(git, change, fixes)
                done += 1
                yield item
            return
        except BadInput:
            # git ends at the first object that it cannot find, perhaps before it has printed all of the commit before.
            retries += 1
            if retries > RETRIES_MAX:
                raise
        suspect, missing = missing[done : done + 1], missing[done + 1 :]
        if retries == 1:
            # It finds all missing contents at once. Where a directory is missing, it fails: only retries find those.
            with suppress(BadInput):
                missing, _ = split_unreadable(git, missing)
        with suppress(BadInput):
            mined = [_mine_change(git, change, fixes) for change in read_changes(git, suspect)]
            yield from mined


def _mine_change(git: GitReader, change: CommitChange, fixes: FixTimes) -> MinedCommit:
    """Measure one commit. A fix is added to `fixes` for the commits after it."""
    commit = change.commit
    scanner = FixScanner()
    # One pass over the diff serves both: the scanner watches the parts while they are measured.
    found = measure_parts(scanner.scan_parts(change.parts) if change.is_fix else change.parts)
    fixed = scanner.fixed_files if change.is_fix else ()
    reverted = parse_reverted_subject(commit.subject)
    mined = MinedCommit(
        commit=commit,
        features=replace(found.features, fixes=fixes.count(found.sources, commit.time)),
        subject=_subject_digest(commit.subject),
        fixed=fixed,
        blamed=find_blamed_commits(git, commit, scanner.removed) if fixed else (),
        reverts=change.reverts,
        reverted_subject=_subject_digest(reverted) if reverted is not None else "",
    )
    fixes.add(fixed, commit.time)
    return mined


def _subject_digest(subject: str) -> str:
    return hashlib.sha256(subject.encode("utf-8", "surrogateescape")).hexdigest()[:16]


# --- the cache


class CommitCache:
    """The cache file of one workspace."""

    def __init__(self, workspace: str | Path, home: Path | None = None) -> None:
        self._path = state_path(workspace, home).with_suffix(".history.jsonl")
        self._home = home

    def read(self) -> dict[str, MinedCommit]:
        """Return the cached commits by id."""
        try:
            raw = read_public_file(self._path, limit=FILE_MAX) or b""
        except AverError:
            return {}  # the cache only saves time
        found = (_parse_line(line) for line in raw.split(b"\n") if 0 < len(line) <= LINE_MAX)
        return {item.commit.id: item for item in found if item is not None}

    def add(self, mined: Iterable[MinedCommit]) -> None:
        """Append commits durably. Two processes may append the same commit: their lines are equal."""
        data = b"".join(_format_line(item) for item in mined)
        ensure_home(self._home)
        try:
            self._path.parent.mkdir(mode=0o700, exist_ok=True)
            handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                # One write, so lines of two processes do not mix. The newline ends a torn line of an earlier write.
                written = os.write(handle, b"\n" + data)
                os.fsync(handle)
            finally:
                os.close(handle)
        except OSError as error:
            raise Unavailable(f"cannot write {self._path}: {error.strerror}") from error
        if written <= len(data):
            raise Unavailable(f"cannot write all of {self._path}", advice="see whether the disk is full")


def _format_line(item: MinedCommit) -> bytes:
    names = [encode_path(path) for path in item.fixed]
    body = orjson.dumps(
        [
            item.commit.id,
            item.commit.time,
            list(astuple(item.features)),
            item.subject,
            names,
            item.blamed,
            item.reverts,
            item.reverted_subject,
        ]
    )
    return b"%s %s\n" % (_checksum(body), body)


def _parse_line(line: bytes) -> MinedCommit | None:
    checksum, _, body = line.partition(b" ")
    if checksum != _checksum(body):
        return None
    try:
        # The checksum finds accidents. A wrong shape would come from another version.
        commit, time, numbers, subject, names, blamed, reverts, reverted = orjson.loads(body)
        texts = [commit, subject, reverted, *names, *blamed, *reverts]
        are_counts = len(numbers) == len(fields(Features)) and all(
            type(number) is int and 0 <= number <= COUNT_MAX for number in numbers
        )
        is_time = type(time) is int and 0 <= time <= TIME_MAX
        if not is_time or not are_counts or not all(type(text) is str for text in texts):
            return None
        return MinedCommit(
            Commit(commit, time),
            Features(*numbers),
            subject,
            tuple(decode_path(name) for name in names),
            tuple(blamed),
            tuple(reverts),
            reverted,
        )
    except (ValueError, TypeError):
        return None


def _checksum(body: bytes) -> bytes:
    return hashlib.sha256(RULES + body).hexdigest()[:16].encode("ascii")
