"""Labels: which commits of a history failed, and when that became known.

A commit failed if it was reverted within 180 days, or if a bug fix within 180 days removed lines that it had
introduced. `git blame` finds the owners of the removed lines. A commit is blamed if it owns at least a quarter of them.
`fixes` defines a bug fix. The label is right in about three of four cases, which limits the figures of every model.

A label becomes known at the time of the revert or fix. Nothing before that time may use it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from aver.errors import BadInput
from aver.gate.risk.history.commits import Commit, MinedCommit
from aver.gate.risk.history.fixes import FIX_WINDOW
from aver.gate.risk.history.git import GitReader

__all__ = ["BLAME_SHARE_MIN", "find_blamed_commits", "find_failures", "parse_reverted_subject"]

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
        accused = [*item.blamed, *_find_reverted(item, ids, subjects)]
        for commit in accused:
            began = times.get(commit)
            if began is not None and commit != item.commit.id and item.commit.time - began <= FIX_WINDOW:
                # With wrong clocks a fix may seem older than its cause. A failure is not known before its commit.
                moment = max(item.commit.time, began)
                known[commit] = min(known.get(commit, moment), moment)
        subjects[item.subject] = item.commit.id
    return known


def _find_reverted(item: MinedCommit, ids: Sequence[str], subjects: Mapping[str, str]) -> Iterator[str]:
    # A shortened id must be unambiguous: the next id in order must not begin with it, too.
    for beginning in item.reverts:
        at = bisect_left(ids, beginning)
        if at < len(ids) and ids[at].startswith(beginning) and not "".join(ids[at + 1 : at + 2]).startswith(beginning):
            yield ids[at]
    if not item.reverts and item.reverted_subject in subjects:
        yield subjects[item.reverted_subject]
