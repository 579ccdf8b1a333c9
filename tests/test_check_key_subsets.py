"""Knowing more keys never makes a verdict worse, whichever keys they are: in Python, and in the page."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pytest

import aver
from aver.keys import PublicKey, RingEntry, SeedSigner
from aver.ledger.bundle import export_bundle, import_bundle
from aver.ledger.imports.drop import drop_import
from support.page_verdicts import VERIFIER, find_node
from support.shop_ledger import write_shop_ledger

BEST_FIRST = ("verified", "qualified", "failed")
INTEGRITY_BEST_FIRST = ("intact", "unsigned", "failed")
STRANGER = SeedSigner(b"s" * 32).public

Key = PublicKey | RingEntry
Judge = Callable[[frozenset[int]], tuple[str, str]]


class Rich:
    """A ledger with one of everything: its keys, and what can be verified of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with write_shop_ledger(folder) as ledger:
            for name in ("kept", "dropped"):
                with aver.open_ledger(folder / f"{name}.db", home=folder / name) as other:
                    other.append("notes.today", aver.Capsule(type="tool"))
                    theirs = other.keys.ring().entries
                    export_bundle(other, folder / f"{name}-bundle")
                source = import_bundle(ledger, folder / f"{name}-bundle").source
                if name == "kept":
                    kept = theirs
            # The import is dropped by another key than the one that made it.
            for hybrid in (False, True):
                ledger.keys.rotate("ledger", post_quantum=hybrid)
                ledger.append("notes.after", aver.Capsule(type="tool"))
            drop_import(ledger, source.digits)
            ledger.sweep()
            self.keys: list[Key] = [*ledger.keys.ring().entries, *kept, STRANGER]
            self.bundle = export_bundle(ledger, folder / "bundle").path
        self.ledger = folder / "home" / "ledger.db"
        self.cap = self._pack_run()

    def _pack_run(self) -> Path:
        """A run of its own ledger, whose key was rotated while it was open."""
        home = self.folder / "run-home"
        with aver.open_ledger(home / "ledger.db", home=home) as ledger:
            with aver.AgentRuntime(self.folder / "run", ledger=ledger) as run:
                run.record_simple("tool_call", "look", "at it", "seen")
                ledger.keys.rotate("ledger", post_quantum=True)
                run.record_simple("tool_call", "look again", "at it", "seen")
                run.finalize()
            self.run_keys: list[Key] = [*ledger.keys.ring().entries, STRANGER]
        return self.folder / "run" / "run.cap"

    def of(self, name: str) -> tuple[Path, list[Key]]:
        """A thing to verify, and the keys that it uses."""
        things = {"ledger": self.ledger, "bundle": self.bundle, "run": self.cap}
        return things[name], self.run_keys if name == "run" else self.keys

    def judge(self, thing: Path, keys: Iterable[Key]) -> tuple[str, str]:
        verdict = aver.verify(thing, keys=list(keys), home=self.folder / "elsewhere")
        return verdict.status, verdict.integrity


@pytest.fixture(scope="module")
def rich(tmp_path_factory: pytest.TempPathFactory) -> Rich:
    return Rich(tmp_path_factory.mktemp("rich"))


def expect_no_worse(judge: Judge, subsets: Iterable[Sequence[frozenset[int]]]) -> None:
    """Judge sets of keys of which each has one key more than the one before."""
    for growing in subsets:
        for fewer, more in pairwise(growing):
            (before, intact_before), (after, intact_after) = judge(fewer), judge(more)
            words = f"by {sorted(fewer)} {before}, {intact_before}; by {sorted(more)} {after}, {intact_after}"
            assert BEST_FIRST.index(after) <= BEST_FIRST.index(before), words
            assert INTEGRITY_BEST_FIRST.index(intact_after) <= INTEGRITY_BEST_FIRST.index(intact_before), words


def growing_sets(count: int, times: int) -> list[list[frozenset[int]]]:
    """Ways to learn all keys, one after the other, in a random order."""
    orders = [random.Random(seed).sample(range(count), count) for seed in range(times)]
    return [[frozenset(order[:known]) for known in range(count + 1)] for order in orders]


def bare(keys: Iterable[Key]) -> list[PublicKey]:
    return [key.key if isinstance(key, RingEntry) else key for key in keys]


@pytest.mark.more
@pytest.mark.parametrize("form", [list, bare])
@pytest.mark.parametrize("name", ["ledger", "bundle", "run"])
def test_each_further_key_makes_no_verdict_worse(
    rich: Rich, name: str, form: Callable[[list[Key]], Sequence[Key]]
) -> None:
    thing, known_keys = rich.of(name)
    keys = form(known_keys)
    judge = cache(lambda known: rich.judge(thing, [keys[at] for at in known]))
    expect_no_worse(judge, growing_sets(len(keys), 2))
    assert judge(frozenset())[1] == "unsigned"
    assert judge(frozenset(range(len(keys))))[1] == "intact"
    assert "failed" not in {judge(frozenset({at}))[0] for at in range(len(keys))}


@pytest.mark.long
def test_no_set_of_keys_is_worse_than_one_of_its_subsets(rich: Rich) -> None:
    """All subsets. Three of the agents, who do the same sort of thing, are known together or not at all."""
    alike = [key for key in rich.keys if isinstance(key, RingEntry) and key.identity.startswith("agent:")][1:]
    units = [[key] for key in rich.keys if key not in alike and key != STRANGER] + [alike]
    judge = cache(lambda known: rich.judge(rich.bundle, [key for at in known for key in units[at]]))
    everything = range(len(units))
    sets = [frozenset(chosen) for size in everything for chosen in combinations(everything, size)]
    expect_no_worse(judge, ((known, known | {at}) for known in sets for at in everything if at not in known))


@pytest.mark.more
@pytest.mark.parametrize("name", ["bundle", "run"])
def test_each_further_key_makes_no_verdict_of_the_page_worse(rich: Rich, name: str) -> None:
    thing, known_keys = rich.of(name)
    keys = [key.ed25519 for key in bare(known_keys)]

    @cache
    def judge(known: frozenset[int]) -> tuple[str, str]:
        options = [word for at in known for word in ("--key", keys[at])]
        command = [find_node(), str(VERIFIER), str(thing), *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        verdict: dict[str, Any] = json.loads(done.stdout)
        assert done.returncode == int(verdict["status"] == "failed" or (bool(known) and not _has_held(verdict)))
        return verdict["status"], verdict["integrity"]

    expect_no_worse(judge, growing_sets(len(keys), 1))
    assert judge(frozenset())[1] == "unsigned"


def _has_held(verdict: dict[str, Any]) -> bool:
    """Whether one of the given keys has signed a record."""
    signature = next(check for check in verdict["checks"] if check["name"] == "signature")
    return bool(signature["status"] == "passed" or signature["count"] < verdict["records"])
