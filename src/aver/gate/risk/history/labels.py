"""Which commits failed, as a history shows it.

A commit failed if it was reverted, or if a bug fix changed lines that it had introduced, both within 180 days. Whose
lines a fix removes is found by blame; a commit is blamed if it owns at least a quarter of them. What counts as a fix is
in `fixes`. The label is right in about three cases out of four; that bounds what any model can be seen to do.

A label is known from the moment of the revert or fix on, and never before: `known_at` is part of it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from aver.errors import BadInput
from aver.gate.risk.history.commit_cache import MinedCommit
from aver.gate.risk.history.commits import Commit
from aver.gate.risk.history.fixes import FIX_WINDOW
from aver.gate.risk.history.git import GitReader

__all__ = ["BLAME_SHARE_MIN", "find_blamed_commits", "find_failures", "parse_reverted_subject"]

BLAME_SHARE_MIN = 0.25
"""The share of a fix's removed lines that a commit must own to be blamed."""

GIT_BARE_TIME_MIN = 100_000_000
"""From this many seconds since 1970 on, git takes a bare number for a time."""

_BLAME_HEADER = re.compile(r"([0-9a-f]{40}|[0-9a-f]{64}) [0-9]+ [0-9]+(?: ([0-9]+))?").fullmatch
_REVERT_SUBJECT = re.compile(r'Revert "(.+)"(?: \(#[0-9]+\))?$').match


def find_blamed_commits(git: GitReader, fix: Commit, removed: Mapping[str, Sequence[int]]) -> tuple[str, ...]:
    """The commits, not older than 180 days, that own at least a quarter of the lines that a fix removed."""
    total = sum(len(numbers) for numbers in removed.values())
    if not total or not fix.parent:
        return ()
    owners: Counter[str] = Counter()
    for path, numbers in removed.items():
        owners.update(_count_line_owners(git, fix, path, numbers))
    return tuple(sorted(commit for commit, lines in owners.items() if lines >= BLAME_SHARE_MIN * total))


def _count_line_owners(git: GitReader, fix: Commit, path: str, numbers: Sequence[int]) -> Counter[str]:
    """How many of these lines each commit owns. One odd file must not stop a history: it blames nobody."""
    options = [f"-L{first},{last}" for first, last in _group_ranges(numbers)]
    if fix.time - FIX_WINDOW >= GIT_BARE_TIME_MIN:
        # Lines from before the window belong to nobody who could be blamed: git need not look for their owners.
        options.append(f"--since={fix.time - FIX_WINDOW}")
    owners: Counter[str] = Counter()
    owner, boundary = "", set()
    try:
        for rows in git.lines("blame", "--porcelain", "--root", "--no-textconv", *options, fix.parent, "--", path):
            for row in rows:
                if row.startswith("\t"):
                    owners[owner] += 1
                elif found := _BLAME_HEADER(row):
                    owner = found[1]
                elif row == "boundary":
                    boundary.add(owner)
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
    """The subject of the commit that a commit with this subject reverts; None if it reverts none."""
    found = _REVERT_SUBJECT(subject)
    return found[1] if found else None


def find_failures(history: Iterable[MinedCommit]) -> dict[str, int]:
    """When each commit that failed was known to have, by its id. Of several times the first counts."""
    listed = list(history)
    times = {item.commit.id: item.commit.time for item in listed}
    ids = sorted(times)
    subjects: dict[str, str] = {}
    known: dict[str, int] = {}
    for item in sorted(listed, key=lambda item: item.commit.time):
        accused = [*item.blamed, *_find_reverted(item, ids, subjects)]
        for commit in accused:
            began = times.get(commit)
            if began is not None and commit != item.commit.id and item.commit.time - began <= FIX_WINDOW:
                # A clock that went wrong must not make a failure known before there was anything to fail.
                moment = max(item.commit.time, began)
                known[commit] = min(known.get(commit, moment), moment)
        subjects[item.subject] = item.commit.id
    return known


def _find_reverted(item: MinedCommit, ids: Sequence[str], subjects: Mapping[str, str]) -> Iterator[str]:
    for beginning in item.reverts:
        at = bisect_left(ids, beginning)
        if at < len(ids) and ids[at].startswith(beginning) and not "".join(ids[at + 1 : at + 2]).startswith(beginning):
            yield ids[at]
    if not item.reverts and item.reverted_subject in subjects:
        yield subjects[item.reverted_subject]
