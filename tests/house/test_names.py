"""Names say what a thing is or does: modules are nouns, functions are verbs or nouns, a class name has one meaning."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest

from support.pending import hold_for_each
from support.source_tree import FILES, SOURCE, classes_in, functions_in, name_of

PARTICIPLE = re.compile(
    r"[a-z]{2,}(?:ed|ing)"
    r"|told|made|held|kept|said|shown|seen|known|given|taken|begun|done|gone|sent|stood|meant|left|thrown|written|drawn"
)
"""A word that may be a participle or a gerund. Regular ones end in -ed and -ing; the rest is listed."""

NO_NAMES = {"utils", "util", "helpers", "helper", "manager", "common", "misc", "later", "plain", "pieces", "told"}

MODULES_ALLOWED = {
    "capsule/sealed.py": "holds the class Sealed, the record with its seal",
    "actions/binding.py": "a noun: the binding of an action to its decision",
    "cli/verbs/demo/tampering.py": "a noun: the tampering that the demo shows",
    "agents/codex/pending.py": "an adjective used as a noun: calls that have no result yet",
}
FUNCTIONS_ALLOWED = {
    "embed": "a verb",
    "string": "a noun",
    "setting": "a noun",
    "ending": "a noun",
    "succeed": "a verb",
    "proceed": "a verb",
    "feed": "a verb",
    "need": "a verb",
    "seed": "a noun",
    "heading": "a noun",
    "ping": "a verb",
    "ring": "a noun: the key ring",
    "missing": "an adjective: what is missing",
    "standing": "a noun: where a proposal or an intent stands",
}


@hold_for_each("modules", FILES, name_of)
def test_modules_are_nouns(path: Path) -> None:
    assert path.stem not in NO_NAMES
    assert not PARTICIPLE.fullmatch(path.stem) or name_of(path) in MODULES_ALLOWED, name_of(path)


def test_the_modules_that_are_excused_exist() -> None:
    assert [name for name in MODULES_ALLOWED if not (SOURCE / name).exists()] == []


@hold_for_each("functions", FILES, name_of)
def test_no_function_is_a_bare_participle(path: Path) -> None:
    found = []
    for function in functions_in(path):
        name = function.name.strip("_")
        if (PARTICIPLE.fullmatch(name) or name in NO_NAMES) and name not in FUNCTIONS_ALLOWED:
            found.append(f"{name_of(path)}::{function.name}")
    assert found == []


@pytest.mark.parametrize("word", ["told", "sealed", "judging", "made", "known", "watched"])
def test_the_guard_sees_what_it_is_for(word: str) -> None:
    assert PARTICIPLE.fullmatch(word)
    assert not PARTICIPLE.fullmatch(f"is_{word}")


def test_a_class_name_has_one_meaning() -> None:
    """Private classes, too: a reader who meets a name in a traceback finds one definition."""
    places = defaultdict(list)
    for path in FILES:
        for node in classes_in(path):
            places[node.name.strip("_")].append(f"{name_of(path)}:{node.lineno}")
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
