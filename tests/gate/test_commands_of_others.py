"""Commands that others wrote, where they are at hand: strict caution is as strict as the rules were before balanced."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

from commands import HARMFUL, TARGETS, asked_share, find_collections, judge_collection, starter_gate


@pytest.mark.more
@pytest.mark.parametrize("name", [*TARGETS, HARMFUL])
def test_strict_passes_only_what_passed_before_there_was_caution(name: str) -> None:
    """Before, a command passed if it was clear, and read, arranged or built in the workspace or a temporary place."""
    directory = find_collections()
    if directory is None:
        pytest.skip("the collections of commands are not beside the repository")
    strict = judge_collection(directory / f"{name}.jsonl", starter_gate("strict"))
    for item in strict:
        if not item.passes:
            continue
        effects = item.decision.effects
        assert effects is not None
        assert not effects.unclear, item.command
        assert effects.classes <= {"read", "arrange", "build"}, item.command
        for effect in effects.effects:
            assert effect.where in ("", "workspace", "temporary"), item.command
            assert not effect.classes, item.command
    # Balanced asks about nothing that strict lets pass, and about less.
    balanced = judge_collection(directory / f"{name}.jsonl", starter_gate())
    for before, after in zip(strict, balanced, strict=True):
        assert after.passes or not before.passes, after.command
    assert asked_share(balanced) < asked_share(strict) or name == HARMFUL
