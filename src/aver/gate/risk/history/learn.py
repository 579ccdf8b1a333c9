"""Learns the level of a workspace from its git history, in the order in which outcomes became known.

Each commit that touches source files is scored with what was known at its time. Ninety days later its outcome is known:
it failed if it was reverted or repaired by then, else it survived. The outcome updates the level with the same features
that were scored. Nothing in the future of a commit can change its score.

`learned_until` says how far the stored state has learned. Learning again continues from there, so no outcome counts
twice. It also keeps what the gate itself has learned in the meantime.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from aver.fast_dataclass import dataclass
from aver.gate.risk.features import Features
from aver.gate.risk.history.commits import MinedCommit, find_failures
from aver.gate.risk.history.fixes import DAY
from aver.gate.risk.history.mined_commits import MiningProgress, mine_history
from aver.gate.risk.history.repository import open_repository
from aver.gate.risk.model import (
    CHANGE,
    PRIORS,
    RiskLevel,
    RiskState,
    Score,
    change_offset,
    score_change,
    score_with_prior,
    update_level,
)
from aver.gate.risk.state import update_state

MATURITY = 90 * DAY
"""Seconds after which the outcome of a commit counts as known."""


@dataclass(frozen=True, slots=True)
class CommitSample:
    """A commit that touches source files, and the time at which its failure became known, if it failed."""

    id: str
    time: int
    features: Features
    failed_at: int | None


@dataclass(frozen=True, slots=True)
class ScoredSample:
    """A sample with its scores at its time: by the fixed prior, and by the moving level."""

    sample: CommitSample
    fixed: float
    score: Score


@dataclass(frozen=True, slots=True)
class LearnSummary:
    """The result of learning a history."""

    commits: int
    """Commits that touch source files."""
    failed: int
    learned: int
    """Outcomes that were new to the state."""
    state: RiskState
    unreadable: int = 0
    """Commits that were left out, because this clone lacks objects of theirs."""


def learn_history(
    path: str | Path, progress: MiningProgress | None = None, *, home: Path | None = None
) -> LearnSummary:
    """Learn the history of the repository at `path` into its workspace's state."""
    repository = open_repository(path)
    history = mine_history(repository, progress=progress, home=home)
    samples = build_samples(history.commits)
    until = find_history_end(history.commits)
    before = 0

    def learn(state: RiskState) -> RiskState:
        nonlocal before
        before = state.level(CHANGE).observations
        return learn_samples(state, samples, until)

    # The lock on the state is taken only now: mining may have taken minutes.
    state = update_state(repository.root, learn, home)
    failed = sum(sample.failed_at is not None for sample in samples)
    learned = state.level(CHANGE).observations - before
    return LearnSummary(len(samples), failed, learned, state, history.unreadable)


def find_history_end(history: Iterable[MinedCommit]) -> int:
    """Return the time of the newest commit, but no time in the future."""
    return min(max((item.commit.time for item in history), default=0), int(time.time()))


def build_samples(history: Sequence[MinedCommit]) -> list[CommitSample]:
    """Return the commits that touch source files, in the order of their times, with their outcomes."""
    failed = find_failures(history)
    return [
        CommitSample(item.commit.id, item.commit.time, item.features, failed.get(item.commit.id))
        for item in history
        if item.features.files
    ]


def learn_samples(state: RiskState, samples: Iterable[CommitSample], until: int) -> RiskState:
    """Return the state after the outcomes that became known after `learned_until` and up to `until`."""
    level = state.level(CHANGE)
    learned = False
    for sample in samples:
        # The stored state has learned all outcomes up to `learned_until`, and no later one.
        known = sample.time + MATURITY
        if state.learned_until < known <= until:
            level, learned = _learn_sample(level, sample), True
    levels = {**state.levels, CHANGE: level} if learned else state.levels
    return RiskState(levels, max(until, state.learned_until))


def score_in_time_order(samples: Iterable[CommitSample]) -> Iterator[ScoredSample]:
    """Score each sample in the order of time, with what was known before it. Starts from the shipped prior."""
    level: RiskLevel = PRIORS[CHANGE]
    waiting: deque[CommitSample] = deque()
    for sample in samples:
        # Learn first from all samples whose outcome became known before this one.
        while waiting and waiting[0].time + MATURITY <= sample.time:
            level = _learn_sample(level, waiting.popleft())
        yield ScoredSample(sample, score_with_prior(sample.features), score_change(sample.features, level))
        waiting.append(sample)


def _learn_sample(level: RiskLevel, sample: CommitSample) -> RiskLevel:
    # A failure that became known later than the outcome counts as none: the score may not see the future.
    failed = sample.failed_at is not None and sample.failed_at <= sample.time + MATURITY
    return update_level(level, change_offset(sample.features), failed=failed)
