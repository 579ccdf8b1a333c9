"""Going through a history: the features of every commit, and what it says about those before it.

Commits are taken in the order of their times, and the features of each rest on what was there before it: `fixes` counts
only fixes with an earlier time. Work is kept as it goes, so that an interrupted run goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from aver.gate.risk.features import measure_parts
from aver.gate.risk.history.commit_cache import CommitCache, MinedCommit, subject_digest
from aver.gate.risk.history.commits import Commit, CommitChange, list_commits, read_changes
from aver.gate.risk.history.fixes import FixScanner, FixTimes, is_fix_subject
from aver.gate.risk.history.git import GitReader, open_git
from aver.gate.risk.history.labels import find_blamed_commits, parse_reverted_subject
from aver.gate.risk.history.repository import Repository

__all__ = ["MiningProgress", "mine_history"]

MiningProgress = Callable[[int, int], None]
"""Called with how many commits are done, of how many."""

BATCH_COMMITS = 200
"""Commits that are kept at once: what an interruption costs at most."""


def mine_history(
    repository: Repository, *, progress: MiningProgress | None = None, home: Path | None = None
) -> list[MinedCommit]:
    """What is to be known of a history's commits, oldest first."""
    file = CommitCache(repository.root, home)
    known = file.read()
    with open_git(repository) as git:
        listed = list_commits(git)
        missing = [commit for commit in listed if commit.id not in known]
        done = len(listed) - len(missing)
        batch: list[MinedCommit] = []
        for item in _mine_commits(git, missing, known):
            known[item.commit.id] = item
            batch.append(item)
            done += 1
            if len(batch) == BATCH_COMMITS:
                file.add(batch)
                batch = []
            if progress:
                progress(done, len(listed))
        if batch:
            file.add(batch)
    return [known[commit.id] for commit in listed]


def _mine_commits(git: GitReader, missing: list[Commit], known: Mapping[str, MinedCommit]) -> Iterator[MinedCommit]:
    fixes = FixTimes()
    for item in known.values():
        fixes.add(item.fixed, item.commit.time)
    if not missing:
        return
    for change in read_changes(git, missing):
        item = _mine_commit(git, change, fixes)
        fixes.add(item.fixed, item.commit.time)
        yield item


def _mine_commit(git: GitReader, change: CommitChange, fixes: FixTimes) -> MinedCommit:
    commit = change.commit
    watch = FixScanner()
    is_fix = is_fix_subject(commit.subject)
    found = measure_parts(watch.scan_parts(change.parts) if is_fix else change.parts)
    reverted = parse_reverted_subject(commit.subject)
    fixed = watch.files if is_fix else ()
    return MinedCommit(
        commit=commit,
        features=replace(found.features, fixes=fixes.count(found.sources, commit.time)),
        subject=subject_digest(commit.subject),
        fixed=fixed,
        blamed=find_blamed_commits(git, commit, watch.removed) if fixed else (),
        reverts=change.reverts,
        reverted_subject=subject_digest(reverted) if reverted is not None else "",
    )
