"""The commands that a call's arguments say, as texts that a shell reads: one, or several of which each is judged.

Nothing is guessed. Arguments of another shape than is known give no texts, and then nobody knows what runs.

    >>> one_text({"command": ["rm", "a b"]})
    "rm 'a b'"
    >>> several_texts({"commands": ["ls -l", {"command": "rm", "args": ["a b"]}]})
    ['ls -l', "rm 'a b'"]
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aver.gate.arguments import COMMANDS, USUAL, values_in
from aver.gate.tool_names import plain

__all__ = ["one_text", "several_texts"]

SEVERAL_MAX = 100
"""Commands in one call. Models send a handful; more would take longer to judge than a hook may."""

_ENTRY = frozenset({"command", "args"})


def one_text(arguments: Mapping[str, Any]) -> str | None:
    """The command of a tool that takes one. A list of words is what a program gets: quoted, so that a shell would give
    it the same."""
    given = _given(arguments)
    if len(given) != 1 or _has_more_inside(arguments):
        return None
    value = given[0]
    return value if isinstance(value, str) else _quoted(value)


def several_texts(arguments: Mapping[str, Any]) -> list[str] | None:
    """The commands of a tool that takes several, all of them run in the workspace. What it is told besides it drops,
    and a directory would mislead us: then there are no texts. Nor where one begins a here-document, for those after it
    may be the document."""
    given = [value for key, value in arguments.items() if value and plain(str(key)) not in USUAL]
    if len(given) != 1 or given != _given(arguments):
        return None
    entries = given[0] if isinstance(given[0], list) else given
    texts = [text for entry in entries[: SEVERAL_MAX + 1] if (text := _entry(entry)) is not None]
    if len(texts) != len(entries) or len(texts) > SEVERAL_MAX:
        return None
    return None if len(texts) > 1 and any("<<" in text for text in texts) else texts


def _given(arguments: Mapping[str, Any]) -> list[Any]:
    return [value for key, value in arguments.items() if value and plain(str(key)) in COMMANDS]


def _has_more_inside(arguments: Mapping[str, Any]) -> bool:
    return any(value is not None and value.is_nested and value.keys[-1] in COMMANDS for value in values_in(arguments))


def _entry(entry: Any) -> str | None:
    """One of several: a text for a shell, or a program and its words, for none."""
    if isinstance(entry, str):
        return entry
    if not isinstance(entry, Mapping) or not entry.keys() <= _ENTRY or not isinstance(entry.get("command"), str):
        return None
    if "args" not in entry:
        return str(entry["command"])
    return _quoted([entry["command"], *entry["args"]]) if isinstance(entry["args"], list) else None


def _quoted(words: Any) -> str | None:
    if not isinstance(words, list | tuple) or not words or not all(isinstance(word, str) for word in words):
        return None
    import shlex

    return shlex.join(words)
