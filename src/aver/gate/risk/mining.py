"""Going through a history: the features of every commit, and what it says about those before it.

Commits are taken in the order of their times, and the features of each rest on what was there before it: `fixes` counts
only fixes with an earlier time. Work is kept as it goes, so that an interrupted run goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from aver.gate.risk.features import measured
from aver.gate.risk.fixes import FixTimes, FixWatch, says_fix
from aver.gate.risk.git import Git, asking
from aver.gate.risk.history import Change, Commit, changes, commits
from aver.gate.risk.labels import blamed, reverted_subject
from aver.gate.risk.mined import Mined, MinedFile, subject_digest
from aver.gate.risk.repository import Repository

__all__ = ["Progress", "mined_history"]

Progress = Callable[[int, int], None]
"""Called with how many commits are done, of how many."""

BATCH = 200
"""Commits that are kept at once: what an interruption costs at most."""


def mined_history(repository: Repository, *, progress: Progress | None = None, home: Path | None = None) -> list[Mined]:
    """What is to be known of a history's commits, oldest first."""
    file = MinedFile(repository.root, home)
    known = file.read()
    with asking(repository) as git:
        listed = commits(git)
        missing = [commit for commit in listed if commit.id not in known]
        done = len(listed) - len(missing)
        batch: list[Mined] = []
        for item in _mine(git, missing, known):
            known[item.commit.id] = item
            batch.append(item)
            done += 1
            if len(batch) == BATCH:
                file.add(batch)
                batch = []
            if progress:
                progress(done, len(listed))
        if batch:
            file.add(batch)
    return [known[commit.id] for commit in listed]


def _mine(git: Git, missing: list[Commit], known: Mapping[str, Mined]) -> Iterator[Mined]:
    fixes = FixTimes()
    for item in known.values():
        fixes.add(item.fixed, item.commit.time)
    if not missing:
        return
    for change in changes(git, missing):
        item = _mined(git, change, fixes)
        fixes.add(item.fixed, item.commit.time)
        yield item


def _mined(git: Git, change: Change, fixes: FixTimes) -> Mined:
    commit = change.commit
    watch = FixWatch()
    is_fix = says_fix(commit.subject)
    found = measured(watch.passing(change.parts) if is_fix else change.parts)
    reverted = reverted_subject(commit.subject)
    fixed = watch.files if is_fix else ()
    return Mined(
        commit=commit,
        features=replace(found.features, fixes=fixes.count(found.sources, commit.time)),
        subject=subject_digest(commit.subject),
        fixed=fixed,
        blamed=blamed(git, commit, watch.removed) if fixed else (),
        reverts=change.reverts,
        reverted_subject=subject_digest(reverted) if reverted is not None else "",
    )
