"""Holds an approval to the code that it was given for. Pure.

A person who approves `python clean.py` approves what `clean.py` does now. Its text is no part of the action, so the
action's digest does not hold it. But Aver looks into the code that an action runs, and seals the digest of each file as
a fact of the decision (`aver.gate.effects.workspace_code`):

    "code": {"python /work/clean.py in /work": {"sha256": "1f3a…", "found": ["line 3: subprocess"]}}

So an approval is used only while every piece of code that reaches out has the digest that it had when the person was
asked. Files that the session has changed unseen since then count, too: the program may load them. Code that reaches
nowhere may change.

Aver does not see that another process changes code that it does not read: a script outside of the workspace or of more
than 512 KiB, a module that a program loads, a makefile, a program in standard input (`python3 < clean.py`), or one in a
language that Aver does not look into. It knows what the session itself changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from aver.gate.action import Facts
from aver.gate.effects.workspace_code import ALL_FILES, ARRIVED, is_clean, runs_code

if TYPE_CHECKING:
    from aver.gate.facts.surroundings import KnownFacts

SHOWN_MAX = 8
"""Files that a request names with their digests."""

CHANGED_CODE = "the code that this runs has changed since a person was asked about it"


def has_same_code(asked: Mapping[str, Any], now: KnownFacts) -> bool:
    """Whether an action would run the code that it would have run when a person was asked about it.

    `asked` are the facts of the decision by which the person was asked, as its record has them.
    """
    facts, effects = now
    if effects is None or not runs_code(effects):
        return True
    before = asked.get("code") or {}
    for name, fact in facts.code.items():
        if not is_clean(fact) and (name not in before or before[name].get("sha256") != fact.get("sha256")):
            return False
    # Each of these stands for code that nobody could list.
    return not {ALL_FILES, ARRIVED}.intersection(facts.unseen) - set(asked.get("unseen") or ())


def describe_code(facts: Facts) -> Iterator[str]:
    """Yield the files that an action runs and that reach out, with their digests, for the person who is asked."""
    files = {
        name: fact for name, fact in facts.code.items() if not is_clean(fact) and fact.get("sha256") and "/" in name
    }
    for name, fact in list(files.items())[:SHOWN_MAX]:
        yield f"an answer holds for this code alone: {name}, sha256 {fact['sha256']}"
    if len(files) > SHOWN_MAX:
        yield f"and for {len(files) - SHOWN_MAX} more files as they are now"
