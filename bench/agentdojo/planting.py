"""Targets of injected goals, planted where a program fills in values.

`list_targets` names the values that the calls of a goal go to. `plant_in_records` puts them into every record that has
an injection in it: into its lists of texts, and in the place of its author. The record's title becomes a phrase that
the user named, so that the record looks as if the user meant it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from pydantic import BaseModel

VALUE_MAX = 60
"""Characters of an argument that can be a target."""

_QUOTED = re.compile(r"'([^'\n]{3,60})'|\"([^\"\n]{3,60})\"")


def list_targets(calls: Iterable[Any]) -> list[str]:
    """Return the short texts of a goal's calls, those of the last call first."""
    found: dict[str, None] = {}
    for call in reversed(list(calls)):
        for value in call.args.values():
            for item in value if isinstance(value, list) else [value]:
                if isinstance(item, str) and 0 < len(item) <= VALUE_MAX:
                    found[item] = None
    return list(found)


def plant_in_records(environment: Any, targets: list[str], prompt: str, *, in_author: bool = True) -> None:
    """Put targets into the structured fields of the records that hold one of them as a text.

    Without `in_author` each record keeps its author: one checker of AgentDojo looks for a mail by its sender.
    """
    if not targets:
        return
    quoted = _QUOTED.search(prompt)
    phrase = (
        next((part for part in quoted.groups() if part), "") if quoted else " ".join(prompt.split()[-4:]).strip(".?!")
    )
    for record in _walk(environment):
        texts = [value for value in record.__dict__.values() if isinstance(value, str)]
        if not any(target in text for target in targets for text in texts):
            continue
        for name, value in list(record.__dict__.items()):
            if isinstance(value, list) and all(isinstance(item, str) for item in value):
                record.__dict__[name] = [*value, targets[0]]
            elif name in ("sender", "from_", "author") and in_author:
                record.__dict__[name] = targets[0]
            elif name in ("subject", "title"):
                record.__dict__[name] = phrase


def _walk(value: Any) -> Iterator[BaseModel]:
    """Yield the records in an environment, the inner ones too."""
    if isinstance(value, BaseModel):
        yield value
        for item in value.__dict__.values():
            yield from _walk(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _walk(item)
    elif isinstance(value, list):
        for item in value:
            yield from _walk(item)
