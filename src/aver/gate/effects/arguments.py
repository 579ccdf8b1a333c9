"""The effects of a tool, and the commands, paths and URLs that its arguments name.

A `ToolProfile` says what a tool does, and which arguments say to what. Aver knows tools by their names. The names are
data about coding agents: they stand in `agents/<name>/names.py`, and the gate gets all of them as one
`known_agents.KnownAgents`.

The agent writes the arguments, and a tool may understand more of them than Aver knows. Aver therefore compares names
without regard to case, hyphens and underscores (`filePath` is `file_path`), and looks inside lists and objects. A text
that looks like a path to elsewhere counts as a path, unless its name is known to hold prose.

    >>> texts = find_argument_texts({"options": {"filePath": ["a.py"]}})
    >>> [found.text for found in texts if found.is_under(PATH_ARGUMENTS)]
    ['a.py']

Commands are returned as texts that a shell reads. Aver does not guess: arguments of an unknown shape give no command,
and the caller reports the command as unknown.

    >>> read_single_command({"command": ["rm", "a b"]})
    "rm 'a b'"
    >>> read_command_list({"commands": ["ls -l", {"command": "rm", "args": ["a b"]}]})
    ['ls -l', "rm 'a b'"]
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from aver.fast_dataclass import dataclass
from aver.lazy_pattern import lazy_pattern

PATH_KEYS = (
    *("file_path", "path", "paths", "file", "files", "filename", "filepath", "notebook_path", "target_file", "source"),
    *("destination", "directory", "dir", "folder", "dir_path", "absolute_path", "relative_workspace_path", "dest"),
    *("file_paths", "old_path", "new_path", "output_path", "output_file", "input_path", "input_file", "uri"),
    *("local_path", "script_path"),
)
"""Arguments that hold paths, of tools that are not listed too."""

URL_KEYS = (
    "url",
    "uri",
    "urls",
    "endpoint",
    "href",
    "link",
    "webhook",
    "base_url",
    "address",
    "host",
    "hostname",
    "domain",
)
COMMAND_KEYS = ("command", "cmd", "commands", "shell_command", "script", "command_line")


@dataclass(frozen=True, slots=True)
class ToolProfile:
    """The effects of a tool: those on the paths it names (`on_paths`), others, and whether it takes a command."""

    on_paths: tuple[str, ...] = ()
    always: tuple[str, ...] = ()
    takes_command: bool = False
    takes_url: bool = False
    takes_patch: bool = False
    works_here: bool = False
    """Without a path it acts on the workspace."""
    takes_pattern: bool = False
    """Its `pattern` is one of paths."""
    may_name_none: bool = False
    """Without a path it acts on none."""
    may_only_look: bool = False
    """Its `command` is one of its own: `view` only reads."""
    takes_several: bool = False
    """Its commands are a list of them, each for a shell of its own in the workspace; a list is not one's words."""
    own_commands: bool = False
    """Its `command` or `script` is in a language of its own. No shell reads it."""


READS = ToolProfile(("read",))
READS_WORKSPACE = ToolProfile(("read",), works_here=True)
GLOBS = ToolProfile(("read",), works_here=True, takes_pattern=True)
EDITS = ToolProfile(("read", "write"))
EDITOR = ToolProfile(("read", "write"), may_only_look=True)
WRITES = ToolProfile(("write",))
DELETES = ToolProfile(("delete",))
RUNS = ToolProfile(takes_command=True)
RUNS_SEVERAL = ToolProfile(takes_command=True, takes_several=True)
PATCHES = ToolProfile(("write",), takes_patch=True)
FETCHES = ToolProfile(always=("network",), takes_url=True)
SEARCHES = ToolProfile(always=("network",))
BROWSES = ToolProfile(always=("network", "egress"), takes_url=True)
NO_EFFECTS = ToolProfile()
"""Of tools that ask, think, or start another agent. The gate judges the other agent's actions in turn."""
STARTS_SKILL = ToolProfile(own_commands=True)
"""Of tools that load instructions which the user or the project has set up. The gate judges what the agent then does,
and guards the files that hold them."""
READS_SERVICE = ToolProfile(always=("service-read",), takes_url=True)
"""Of tools that list or read what an MCP server offers. An address of a file counts as that file."""
EXECUTES = ToolProfile(always=("execute",), own_commands=True)
SENDS = ToolProfile(always=("network", "egress"))
"""Of tools that send a text elsewhere: to a service, or to an agent of another session."""
PUBLISHES = ToolProfile(("read",), always=("network", "egress"), takes_url=True, may_name_none=True)
SCHEDULES = ToolProfile(always=("persist",))
SETS_ASIDE = ToolProfile(always=("git-state",))
DISCARDS = ToolProfile(always=("delete",))
ESCALATES = ToolProfile(always=("privilege",))
STEERS_AGENT = ToolProfile(("write",), always=("agent-config",), may_name_none=True)


def normalise_name(name: str) -> str:
    """Return a name in lower case without separators: agents spell one tool in several ways.

    A name that is not ASCII may only look like a known one. It stays as it is, and so matches no table.
    """
    return name.translate(_SEPARATORS).lower() if name.isascii() else name


_SEPARATORS = str.maketrans("", "", "-_. ")


_MCP = lazy_pattern(r"mcp__(?P<server>.+?)__(?P<tool>.+)")


def mcp_server(tool: str) -> str:
    """The server in the name of an MCP tool, `mcp__server__tool`; empty for other tools."""
    found = _MCP.fullmatch(tool)
    return found["server"] if found else ""


VALUES_MAX = 5000
DEPTH_MAX = 32
"""Values of one call that Aver looks at, and levels of nesting. A call with more is unclear."""


def normalise_keys(*keys: str) -> frozenset[str]:
    return frozenset(normalise_name(key) for key in keys)


PATH_ARGUMENTS = normalise_keys(*PATH_KEYS)
URL_ARGUMENTS = normalise_keys(*URL_KEYS)
COMMAND_ARGUMENTS = normalise_keys(*COMMAND_KEYS)
DIRECTORY_ARGUMENTS = normalise_keys(
    *("cwd", "workdir", "working_directory", "working_dir", "directory", "dir", "dir_path", "path", "folder")
)
"""Arguments that name the directory in which a command runs."""

_PROSE_ARGUMENTS = normalise_keys(
    *("content", "contents", "text", "old_string", "new_string", "old_str", "new_str", "old_text", "new_text", "body"),
    *("file_text", "insert_text", "code", "code_edit", "new_source", "new_content", "old_content", "source_code"),
    *("diff", "patch", "input", "instruction", "instructions", "description", "explanation", "justification", "reason"),
    *("prompt", "query", "queries", "pattern", "regex", "search", "search_term", "replace", "replacement", "message"),
    *("title", "goal", "thought", "summary", "result", "question", "fact", "data", "payload", "old", "new", "todos"),
    "plan",
)
"""Arguments that hold prose or code, which may mention a path without using it."""

HARMLESS_ARGUMENTS = normalise_keys(
    *("description", "explanation", "justification", "goal", "title", "timeout", "timeout_ms", "timeout_seconds"),
    *("run_in_background", "is_background", "background", "requires_approval", "yield_time_ms", "max_output_tokens"),
    *("login", "tty", "session_id"),
)
"""Arguments beside a command that do not change what it does."""

URL_PATTERN = lazy_pattern(r"(?:[A-Za-z][A-Za-z0-9+.-]*://|(?i:file:))\S*")
_OUTSIDE_PATH = lazy_pattern(r"/|~|\.\.(?:/|$)|(?i:file:)")


@dataclass(frozen=True, slots=True)
class ArgumentText:
    """A text in the arguments, and the names that lead to it, from the outside in."""

    text: str
    keys: tuple[str, ...]

    def is_under(self, keys: frozenset[str]) -> bool:
        return not keys.isdisjoint(self.keys) and not self.is_prose

    @property
    def is_prose(self) -> bool:
        return self.keys[-1] in _PROSE_ARGUMENTS

    @property
    def is_outside_path(self) -> bool:
        """Whether the text looks like a path that leads out of the current directory."""
        return not self.is_prose and _OUTSIDE_PATH.match(self.text) is not None


def find_argument_texts(arguments: Mapping[str, Any]) -> Iterator[ArgumentText | None]:
    """Yield all texts in the arguments. Yields None at the end if there are too many, or nested too deep."""
    # A stack instead of recursion. It is filled in reverse, so that texts come in their order.
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
"""Commands in one call. More would take longer to judge than a hook may take."""

_ENTRY_KEYS = frozenset({"command", "args"})


def read_single_command(arguments: Mapping[str, Any]) -> str | None:
    """Return the command of a tool that takes one; None if the arguments do not hold exactly one.

    A list of words is quoted, so that a shell reads the same words.
    """
    given = [value for key, value in arguments.items() if value and normalise_name(str(key)) in COMMAND_ARGUMENTS]
    # A second command deeper in the arguments could be the one that runs.
    has_nested = any(
        found is not None and len(found.keys) > 1 and found.keys[-1] in COMMAND_ARGUMENTS
        for found in find_argument_texts(arguments)
    )
    if len(given) != 1 or has_nested:
        return None
    value = given[0]
    return value if isinstance(value, str) else quote_words(value)


def read_command_list(arguments: Mapping[str, Any]) -> list[str] | None:
    """Return the commands of a tool that takes several; None if Aver cannot tell what runs.

    Such a tool runs all commands in the workspace and ignores other arguments. An argument for another directory would
    mislead Aver, so it gives None. So does a here-document, because the commands after it may be its text.
    """
    named = [(normalise_name(str(key)), value) for key, value in arguments.items() if value]
    given = [value for name, value in named if name not in HARMLESS_ARGUMENTS]
    if len(given) != 1 or given != [value for name, value in named if name in COMMAND_ARGUMENTS]:
        return None
    entries = given[0] if isinstance(given[0], list) else given
    # One entry that cannot be read makes all of them unreadable: it could be the one that matters.
    texts = [text for entry in entries[: CALL_COMMANDS_MAX + 1] if (text := _read_list_entry(entry)) is not None]
    if len(texts) != len(entries) or len(texts) > CALL_COMMANDS_MAX:
        return None
    return None if len(texts) > 1 and any("<<" in text for text in texts) else texts


def _read_list_entry(entry: Any) -> str | None:
    """Read one entry of a list: a text for a shell, or a program with its words."""
    if isinstance(entry, str):
        return entry
    if not isinstance(entry, Mapping) or not entry.keys() <= _ENTRY_KEYS or not isinstance(entry.get("command"), str):
        return None
    if "args" not in entry:
        return str(entry["command"])
    return quote_words([entry["command"], *entry["args"]]) if isinstance(entry["args"], list) else None


_NOT_A_PROGRAM = lazy_pattern(
    r"[A-Za-z_]\w*\+?=.*|!|\{|\}|\[\[|case|coproc|do|done|elif|else|esac|fi|for|function|if|in|select|then|time|until|while",
    re.DOTALL,
)
"""A first word that a shell takes for an assignment or a word of its own, unless it is quoted."""


def quote_words(words: Any) -> str | None:
    """Return the command whose words these are, as a shell reads exactly them; None if they are no words."""
    if not isinstance(words, list | tuple) or not words or not all(isinstance(word, str) for word in words):
        return None
    import shlex

    first, *others = words
    program = f"'{first}'" if _NOT_A_PROGRAM.fullmatch(first) and "'" not in first else shlex.quote(first)
    return " ".join((program, *map(shlex.quote, others)))
