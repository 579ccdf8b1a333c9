"""What the arguments of a call name: commands, paths, addresses, by whatever name and at whatever depth.

Who asks has written the arguments, and a tool may understand more of them than is known here. So names are compared
without regard to case, hyphens and underscores (`filePath` is `file_path`), values are looked for inside of lists and
objects, and what looks like a path elsewhere counts as one under any name that is not known to hold mere words.

    >>> [value.text for value in values_in({"options": {"filePath": ["a.py"]}}) if value.is_under(PATHS)]
    ['a.py']
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from aver.gate.tool_names import COMMAND_KEYS, PATH_KEYS, URL_KEYS, plain
from aver.values import dataclass

__all__ = ["ADDRESSES", "COMMANDS", "DIRECTORIES", "PATHS", "URL", "USUAL", "Value", "plain_keys", "values_in"]

VALUES_MAX = 5000
DEPTH_MAX = 32
"""Values of one call that are looked at, and objects inside each other. What has more is unclear."""


def plain_keys(*keys: str) -> frozenset[str]:
    return frozenset(plain(key) for key in keys)


PATHS = plain_keys(*PATH_KEYS)
ADDRESSES = plain_keys(*URL_KEYS)
COMMANDS = plain_keys(*COMMAND_KEYS)
DIRECTORIES = plain_keys(
    *("cwd", "workdir", "working_directory", "working_dir", "directory", "dir", "dir_path", "path", "folder")
)
"""Where a command runs."""

_WORDS = plain_keys(
    *("content", "contents", "text", "old_string", "new_string", "old_str", "new_str", "old_text", "new_text", "body"),
    *("file_text", "insert_text", "code", "code_edit", "new_source", "new_content", "old_content", "source_code"),
    *("diff", "patch", "input", "instruction", "instructions", "description", "explanation", "justification", "reason"),
    *("prompt", "query", "queries", "pattern", "regex", "search", "search_term", "replace", "replacement", "message"),
    *("title", "goal", "thought", "summary", "result", "question", "fact", "data", "payload", "old", "new", "todos"),
    "plan",
)
"""Arguments that hold words, in which a path is only mentioned."""

USUAL = plain_keys(
    *("description", "explanation", "justification", "goal", "title", "timeout", "timeout_ms", "timeout_seconds"),
    *("run_in_background", "is_background", "background", "requires_approval", "yield_time_ms", "max_output_tokens"),
    *("login", "tty", "session_id"),
)
"""Arguments of a command that change nothing of what it does."""

URL = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*://|(?i:file:))\S*")
_LEADS_ELSEWHERE = re.compile(r"/|~|\.\.(?:/|$)|(?i:file:)")


@dataclass(frozen=True, slots=True)
class Value:
    """A text in the arguments, and the names that it stands under, from the outside in."""

    text: str
    keys: tuple[str, ...]

    def is_under(self, keys: frozenset[str]) -> bool:
        return not keys.isdisjoint(self.keys) and not self.is_words

    @property
    def is_words(self) -> bool:
        return self.keys[-1] in _WORDS

    @property
    def leads_elsewhere(self) -> bool:
        """Whether this would be a path to elsewhere, if it is one."""
        return not self.is_words and _LEADS_ELSEWHERE.match(self.text) is not None

    @property
    def is_nested(self) -> bool:
        return len(self.keys) > 1


def values_in(arguments: Mapping[str, Any]) -> Iterator[Value | None]:
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
                yield Value(value, keys)
        elif isinstance(value, Mapping):
            waiting += [(item, (*keys, plain(str(key)))) for key, item in reversed(list(value.items()))]
        elif isinstance(value, list | tuple):
            waiting += [(item, keys) for item in reversed(value)]
