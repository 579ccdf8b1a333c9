"""Every input of the corpus, given to its target: it once broke something, or is of the kind that could."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fuzz.engine import Recorder, fuzz_by_mutation
from fuzz.target import CORPUS
from fuzz.targets import ALL, BY_NAME

if TYPE_CHECKING:
    from pathlib import Path

    from fuzz.honest import HonestThings

LONG_RUNS = 400
"""Mutations of each target in `make test-all`. `make fuzz` runs as many as it is told to."""

INPUT_KEPT_MAX = 64 * 1024
"""Bytes of an input in the repository. A large input is made by a recipe, or is a test of its own."""


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_the_corpus_is_harmless(things: HonestThings, name: str) -> None:
    target = BY_NAME[name](things)
    for seed in target.seeds():
        target.run(seed)
    for file, data in target.corpus().items():
        try:
            target.run(data)
        except AssertionError as defect:
            raise AssertionError(f"{name}/{file}: {defect}") from defect


def test_every_input_belongs_to_a_target_and_is_small() -> None:
    assert {path.name for path in CORPUS.iterdir()} <= set(BY_NAME)
    files = [path for path in CORPUS.rglob("*") if path.is_file()]
    assert [path for path in files if path.stat().st_size > INPUT_KEPT_MAX] == []
    assert len({target.name for target in ALL}) == len(ALL)


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_mutations_are_harmless(things: HonestThings, name: str, tmp_path: Path) -> None:
    target, lines = BY_NAME[name](things), list[str]()
    recorder = Recorder(target, tmp_path, lines.append)
    fuzz_by_mutation(target, recorder, runs=LONG_RUNS, seed=1)
    assert recorder.outcome.runs == LONG_RUNS
    assert recorder.outcome.defects == {}, "\n".join(lines)
