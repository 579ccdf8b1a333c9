"""What the arguments of a call name: commands, paths, addresses, by whatever name and at whatever depth.

Who asks has written the arguments, and a tool may understand more of them than is known here. So names are compared
without regard to case, hyphens and underscores (`filePath` is `file_path`), values are looked for inside of lists and
objects, and what looks like a path elsewhere counts as one under any name that is not known to hold mere words.

    >>> [value.text for value in values_in({"options": {"filePath": ["a.py"]}}) if value.is_under(PATHS)]
    ['a.py']

The commands that a call's arguments say, as texts that a shell reads: one, or several of which each is judged.

Nothing is guessed. Arguments of another shape than is known give no texts, and then nobody knows what runs.

    >>> one_text({"command": ["rm", "a b"]})
    "rm 'a b'"
    >>> several_texts({"commands": ["ls -l", {"command": "rm", "args": ["a b"]}]})
    ['ls -l', "rm 'a b'"]
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from aver.fast_dataclass import dataclass
from aver.gate.effects.tools import COMMAND_KEYS, PATH_KEYS, URL_KEYS, normalise_name

__all__ = [
    "COMMAND_ARGUMENTS",
    "DIRECTORY_ARGUMENTS",
    "HARMLESS_ARGUMENTS",
    "PATH_ARGUMENTS",
    "URL_ARGUMENTS",
    "URL_PATTERN",
    "ArgumentText",
    "find_argument_texts",
    "normalise_keys",
    "read_command_list",
    "read_single_command",
]


VALUES_MAX = 5000
DEPTH_MAX = 32
"""Values of one call that are looked at, and objects inside each other. What has more is unclear."""


def normalise_keys(*keys: str) -> frozenset[str]:
    return frozenset(normalise_name(key) for key in keys)


PATH_ARGUMENTS = normalise_keys(*PATH_KEYS)
URL_ARGUMENTS = normalise_keys(*URL_KEYS)
COMMAND_ARGUMENTS = normalise_keys(*COMMAND_KEYS)
DIRECTORY_ARGUMENTS = normalise_keys(
    *("cwd", "workdir", "working_directory", "working_dir", "directory", "dir", "dir_path", "path", "folder")
)
"""Where a command runs."""

_PROSE_ARGUMENTS = normalise_keys(
    *("content", "contents", "text", "old_string", "new_string", "old_str", "new_str", "old_text", "new_text", "body"),
    *("file_text", "insert_text", "code", "code_edit", "new_source", "new_content", "old_content", "source_code"),
    *("diff", "patch", "input", "instruction", "instructions", "description", "explanation", "justification", "reason"),
    *("prompt", "query", "queries", "pattern", "regex", "search", "search_term", "replace", "replacement", "message"),
    *("title", "goal", "thought", "summary", "result", "question", "fact", "data", "payload", "old", "new", "todos"),
    "plan",
)
"""Arguments that hold words, in which a path is only mentioned."""

HARMLESS_ARGUMENTS = normalise_keys(
    *("description", "explanation", "justification", "goal", "title", "timeout", "timeout_ms", "timeout_seconds"),
    *("run_in_background", "is_background", "background", "requires_approval", "yield_time_ms", "max_output_tokens"),
    *("login", "tty", "session_id"),
)
"""Arguments of a command that change nothing of what it does."""

URL_PATTERN = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*://|(?i:file:))\S*")
_OUTSIDE_PATH = re.compile(r"/|~|\.\.(?:/|$)|(?i:file:)")


@dataclass(frozen=True, slots=True)
class ArgumentText:
    """A text in the arguments, and the names that it stands under, from the outside in."""

    text: str
    keys: tuple[str, ...]

    def is_under(self, keys: frozenset[str]) -> bool:
        return not keys.isdisjoint(self.keys) and not self.is_prose

    @property
    def is_prose(self) -> bool:
        return self.keys[-1] in _PROSE_ARGUMENTS

    @property
    def is_outside_path(self) -> bool:
        """Whether this would be a path to elsewhere, if it is one."""
        return not self.is_prose and _OUTSIDE_PATH.match(self.text) is not None

    @property
    def is_nested(self) -> bool:
        return len(self.keys) > 1


def find_argument_texts(arguments: Mapping[str, Any]) -> Iterator[ArgumentText | None]:
    """All texts in the arguments; None at the end if there are too many, or too deep inside each other."""
    waiting: list[tuple[Any, tuple[str, ...]]] = [(arguments, ())]
    count = 0
    while waiting:
        value, keys = waiting.pop()
        count += 1
        if count > VALUES_MAX or len(keys) > DEPTH_MAX:
            yield None
            return
        if isinstance(value, str):
            if value:
                yield ArgumentText(value, keys)
        elif isinstance(value, Mapping):
            waiting += [(item, (*keys, normalise_name(str(key)))) for key, item in reversed(list(value.items()))]
        elif isinstance(value, list | tuple):
            waiting += [(item, keys) for item in reversed(value)]


CALL_COMMANDS_MAX = 100
"""Commands in one call. Models send a handful; more would take longer to judge than a hook may."""

_ENTRY_KEYS = frozenset({"command", "args"})


def read_single_command(arguments: Mapping[str, Any]) -> str | None:
    """The command of a tool that takes one. A list of words is what a program gets: quoted, so that a shell would give
    it the same."""
    given = _command_values(arguments)
    if len(given) != 1 or _has_nested_command(arguments):
        return None
    value = given[0]
    return value if isinstance(value, str) else _quote_words(value)


def read_command_list(arguments: Mapping[str, Any]) -> list[str] | None:
    """The commands of a tool that takes several, all of them run in the workspace. What it is told besides it drops,
    and a directory would mislead us: then there are no texts. Nor where one begins a here-document, for those after it
    may be the document."""
    given = [value for key, value in arguments.items() if value and normalise_name(str(key)) not in HARMLESS_ARGUMENTS]
    if len(given) != 1 or given != _command_values(arguments):
        return None
    entries = given[0] if isinstance(given[0], list) else given
    texts = [text for entry in entries[: CALL_COMMANDS_MAX + 1] if (text := _read_list_entry(entry)) is not None]
    if len(texts) != len(entries) or len(texts) > CALL_COMMANDS_MAX:
        return None
    return None if len(texts) > 1 and any("<<" in text for text in texts) else texts


def _command_values(arguments: Mapping[str, Any]) -> list[Any]:
    return [value for key, value in arguments.items() if value and normalise_name(str(key)) in COMMAND_ARGUMENTS]


def _has_nested_command(arguments: Mapping[str, Any]) -> bool:
    return any(
        value is not None and value.is_nested and value.keys[-1] in COMMAND_ARGUMENTS
        for value in find_argument_texts(arguments)
    )


def _read_list_entry(entry: Any) -> str | None:
    """One of several: a text for a shell, or a program and its words, for none."""
    if isinstance(entry, str):
        return entry
    if not isinstance(entry, Mapping) or not entry.keys() <= _ENTRY_KEYS or not isinstance(entry.get("command"), str):
        return None
    if "args" not in entry:
        return str(entry["command"])
    return _quote_words([entry["command"], *entry["args"]]) if isinstance(entry["args"], list) else None


def _quote_words(words: Any) -> str | None:
    if not isinstance(words, list | tuple) or not words or not all(isinstance(word, str) for word in words):
        return None
    import shlex

    return shlex.join(words)
