"""Learning a workspace's level from its git history, in the order in which its outcomes became known.

Each commit that touches source files is scored with what was known at its time. Ninety days later its outcome is known:
failed, if it was reverted or repaired until then; else survived. That outcome moves the level by the very features that
were scored. Nothing that lies in the future of a commit can change its score.

`learned_until` marks how far the stored state has learned. Learning again goes on from there, so that no outcome counts
twice, and what the gate itself has learned meanwhile stays.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from aver.gate.risk.features import Features
from aver.gate.risk.fixes import DAY
from aver.gate.risk.labels import failures
from aver.gate.risk.mined import Mined
from aver.gate.risk.mining import Progress, mined_history
from aver.gate.risk.model import CHANGE, PRIORS, Level, Score, State, change_offset, fixed_score, moved, score
from aver.gate.risk.repository import open_repository
from aver.gate.risk.state import change_state
from aver.values import dataclass

__all__ = ["MATURITY", "Sample", "Scored", "Summary", "advanced", "end_of", "learn_git", "prequential", "samples_of"]

MATURITY = 90 * DAY
"""Seconds after which a commit's outcome is learned from."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A commit that touches source files, and when it was known to have failed, if it was."""

    id: str
    time: int
    features: Features
    failed_at: int | None

    def failed_by(self, when: int) -> bool:
        return self.failed_at is not None and self.failed_at <= when


@dataclass(frozen=True, slots=True)
class Scored:
    """A sample with its scores as they were at its time: by the fixed prior, and at the moving level."""

    sample: Sample
    fixed: float
    score: Score


@dataclass(frozen=True, slots=True)
class Summary:
    """What learning a history did."""

    commits: int
    """Commits that touch source files."""
    failed: int
    learned: int
    """Outcomes that were new to the state."""
    state: State


def learn_git(path: str | Path, progress: Progress | None = None, *, home: Path | None = None) -> Summary:
    """Learn the history of the repository at `path` into its workspace's state."""
    repository = open_repository(path)
    history = mined_history(repository, progress=progress, home=home)
    samples = samples_of(history)
    until = end_of(history)
    before = 0

    def learn(state: State) -> State:
        nonlocal before
        before = state.level(CHANGE).observations
        return advanced(state, samples, until)

    state = change_state(repository.root, learn, home)
    failed = sum(sample.failed_at is not None for sample in samples)
    return Summary(len(samples), failed, state.level(CHANGE).observations - before, state)


def end_of(history: Iterable[Mined]) -> int:
    """Up to when a history tells what happened: its newest commit, but not the future."""
    return min(max((item.commit.time for item in history), default=0), int(time.time()))


def samples_of(history: Sequence[Mined]) -> list[Sample]:
    """The commits that touch source files, in the order of their times, with what became of them."""
    failed = failures(history)
    return [
        Sample(item.commit.id, item.commit.time, item.features, failed.get(item.commit.id))
        for item in history
        if item.features.files
    ]


def advanced(state: State, samples: Iterable[Sample], until: int) -> State:
    """The state after the outcomes that became known after `learned_until` and up to `until`."""
    level = state.level(CHANGE)
    learned = False
    for sample in samples:
        known = sample.time + MATURITY
        if state.learned_until < known <= until:
            level, learned = _learned(level, sample), True
    levels = {**state.levels, CHANGE: level} if learned else state.levels
    return State(levels, max(until, state.learned_until))


def prequential(samples: Iterable[Sample]) -> Iterator[Scored]:
    """Score each sample, in the order of time, by what was known before it; starting from the shipped prior."""
    level: Level = PRIORS[CHANGE]
    waiting: deque[Sample] = deque()
    for sample in samples:
        while waiting and waiting[0].time + MATURITY <= sample.time:
            level = _learned(level, waiting.popleft())
        yield Scored(sample, fixed_score(sample.features), score(sample.features, level))
        waiting.append(sample)


def _learned(level: Level, sample: Sample) -> Level:
    return moved(level, change_offset(sample.features), failed=sample.failed_by(sample.time + MATURITY))
