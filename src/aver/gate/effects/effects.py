"""What an action does: the classes of its effects, the paths and hosts it touches, and what is unclear about it.

Four things are asked, and the strictest answer counts: what the type of the action says, what its tool is known to do,
what its arguments name (`effects.arguments`), and what the tool says of itself. A shell command is taken apart
(`gate.shell.understand`), and its daily work told apart from the rest (`effects.routine_commands`). A tool that is not
in the table has the effect `unknown`, whatever its type. What an MCP server says of its tools can make an action worse;
it makes nothing better unless the server is among those that were trusted by name.

Paths are placed by their letters alone. Where the facts say that one leads elsewhere by a symbolic link, what happens
to the one happens to the other, too.

    >>> from aver.gate.action import Action, Facts
    >>> facts = Facts(now="2026-01-05T09:00:00+00:00")
    >>> action = Action(type="tool_call", tool="Write", arguments={"file_path": "/work/.git/hooks/pre-push"},
    ...                 workspace="/work")
    >>> sorted(find_effects(action, facts).classes)
    ['persist', 'write']
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from aver.fast_dataclass import dataclass
from aver.gate.action import Action, Facts
from aver.gate.effects.arguments import (
    COMMAND_ARGUMENTS,
    DIRECTORY_ARGUMENTS,
    HARMLESS_ARGUMENTS,
    PATH_ARGUMENTS,
    URL_ARGUMENTS,
    URL_PATTERN,
    ArgumentText,
    find_argument_texts,
    normalise_keys,
)
from aver.gate.effects.findings import Effect, EffectReport, UnclearPart
from aver.gate.effects.known_agents import KnownAgents, default_known_agents
from aver.gate.effects.paths import UNKNOWN_LOCATION, PathLocation, build_path_roots, locate_path
from aver.gate.effects.routine_commands import mark_routine_effects
from aver.gate.effects.tools import ToolProfile, mcp_server, normalise_name
from aver.gate.shell.invocation import parse_host
from aver.gate.shell.model import CommandAnalysis

__all__ = ["Effects", "find_effects"]

_Item = TypeVar("_Item")

PATHS_MAX = 1000
"""Paths of one action that are placed; one that has more is unclear."""

_PROFILE_BY_TYPE: Mapping[str, ToolProfile] = {
    "file_read": ToolProfile(("read",)),
    "file_write": ToolProfile(("write",)),
    "code_edit": ToolProfile(("write",)),
    "file_delete": ToolProfile(("delete",)),
    "shell_exec": ToolProfile(takes_command=True),
    "command": ToolProfile(takes_command=True),
    "web_request": ToolProfile(always=("network",), takes_url=True),
    "api_request": ToolProfile(always=("network",), takes_url=True),
    "browser_action": ToolProfile(always=("network", "egress"), takes_url=True),
    "decision": ToolProfile(),
    "observation": ToolProfile(),
    "code_gen": ToolProfile(("write",), may_name_none=True),
}
"""What the type of an action says. The others say nothing."""

_FILE_EFFECTS = frozenset({"read", "write", "delete", "execute", "unknown"})
_CWD_ARGUMENTS = normalise_keys("cwd", "workdir", "working_directory", "working_dir")
_ESCALATION_ARGUMENTS = normalise_keys(
    *("dangerouslyDisableSandbox", "with_escalated_permissions", "requires_root", "sudo", "elevated")
)
_HARMLESS_VALUES = {
    "shell": frozenset(("bash", "sh", "zsh", "/bin/bash", "/bin/sh", "/bin/zsh", "/usr/bin/bash", "/usr/bin/zsh")),
    "sandboxpermissions": frozenset(("use_default",)),
}
_BODY_ARGUMENTS = ("body", "data", "payload", "json", "form", "content", "files")
_FILE_FILTER_ARGUMENTS = normalise_keys("glob", "include", "include_pattern", "file_pattern")
"""Arguments of searches that say which files are looked into."""
_EDITOR_COMMANDS = frozenset(("view", "create", "str_replace", "insert", "undo_edit"))
_PATCH_FILE = re.compile(
    r"^[ \t]*\*\*\* (?P<verb>Update File|Add File|Delete File|Move to): (?P<path>[^\n]+)$", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Effects:
    """What an action does. Where `unclear` is not empty, it may do more than is listed."""

    effects: tuple[Effect, ...]
    unclear: tuple[UnclearPart, ...]
    programs: tuple[str, ...] = ()
    """Of a command."""
    command: str = ""
    server: str = ""
    """Of an MCP tool."""

    @property
    def classes(self) -> frozenset[str]:
        return frozenset(effect.name for effect in self.effects)

    @property
    def is_clear(self) -> bool:
        return not self.unclear

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(effect.target for effect in self.effects if effect.is_host and effect.target))

    def to_dict(self) -> dict[str, Any]:
        return {
            "classes": sorted(self.classes),
            "effects": [effect.to_dict() for effect in self.effects],
            "unclear": [unclear.to_dict() for unclear in self.unclear],
            "programs": list(self.programs),
            "server": self.server,
        }


def find_effects(
    action: Action,
    facts: Facts,
    *,
    trusted: frozenset[str] = frozenset(),
    known: KnownAgents | None = None,
) -> Effects:
    """What an action does. `trusted` are MCP servers whose word is taken; `known` are the names of agents' tools and
    files, where they are not the default ones."""
    known = known or default_known_agents()
    looked = _EffectFinder(action, facts, known)
    server = mcp_server(action.tool)
    if known.is_mcp_caller(action.tool):
        server = _text_or_empty(action.arguments.get("server_name"))
    by_type, by_tool = _PROFILE_BY_TYPE.get(action.type), known.find_profile(action.tool) if action.tool else None
    if action.diff is not None:
        looked.diff(action.diff)
    if by_type is not None and by_tool is not None and by_tool.works_here and by_tool.on_paths == by_type.on_paths:
        by_type = None  # The tool says more: on what it acts where no path is named.
    uses = [use for use in (by_type, by_tool) if use is not None]
    for use in uses:
        looked.add_profile(use)
    if server:
        looked.add_mcp_tool(server in trusted and known.is_tool_of_server(action.tool, server), facts.annotations)
    elif by_tool is None and (action.tool or by_type is None or facts.annotations):
        looked.unknown()
    else:
        looked.rest(uses)
    if facts.annotations.get("destructiveHint") is True:
        looked.report.add_effect("delete", (action.tool,))
    if facts.annotations.get("openWorldHint") is True:
        looked.report.add_effect("network", (action.tool,))
    return looked.conclude(server)


class _EffectFinder:
    """What is found while an action is looked at."""

    def __init__(self, action: Action, facts: Facts, known: KnownAgents) -> None:
        self._action = action
        self._known = known
        self._env = facts.environment
        self._links = facts.links
        self._arguments = action.arguments
        self._ground = build_path_roots(action.workspace, self._env, known)
        self.report = EffectReport(self._ground)
        self._values = self._collect_texts()
        self._cwd = self._find_directory(_CWD_ARGUMENTS)
        use = known.find_profile(action.tool)
        self._takes_several = use is not None and use.takes_several
        self._understood: list[CommandAnalysis] = []
        """Of each command."""
        self._command = ""
        self._shown: set[str] = set()
        """Paths that the diff shows."""
        self._changed: dict[str, None] = {}
        """Paths that are changed by what is said besides."""

    def _collect_texts(self) -> list[ArgumentText]:
        values: list[ArgumentText] = []
        for value in find_argument_texts(self._arguments):
            if value is None:
                self.report.add_unclear("too-much", "its arguments are too many, or too deep inside each other")
            else:
                values.append(value)
        return values

    def _find_directory(self, keys: frozenset[str]) -> str | None:
        """The directory that relative paths begin at; None where it is not known."""
        workspace = self._action.workspace if self._action.workspace.startswith("/") else None
        given = list({repr(value): value for value in self._argument_values(keys)}.values())
        if not given:
            return workspace
        place = locate_path(_text_or_empty(given[0]), workspace, self._ground)
        if len(given) > 1 or place.where == "unknown":
            self.report.add_unclear("unknown-target", "which directory this stands in is not said in one text")
            return None
        return place.path

    def _argument_values(self, keys: frozenset[str]) -> list[Any]:
        """What the arguments hold under these names, on the outside."""
        return [value for key, value in self._arguments.items() if value and normalise_name(str(key)) in keys]

    def conclude(self, server: str) -> Effects:
        own = [effect for one in self._understood for effect in one.effects]
        self._add_link_targets((*self.report.effects, *own))
        self._check_diff_coverage()
        effects, unclear = self.report.effects, self.report.unclear
        programs: tuple[str, ...] = ()
        routine_roots = build_path_roots(self._action.workspace, None, self._known)
        for one in self._understood:
            effects = tuple(dict.fromkeys((*effects, *mark_routine_effects(one, routine_roots))))
            unclear = tuple(dict.fromkeys((*unclear, *one.unclear)))
            programs = tuple(dict.fromkeys((*programs, *one.programs)))
        return Effects(effects, unclear, programs, self._command, server)

    def _add_link_targets(self, effects: Iterable[Effect]) -> None:
        """What happens to a link happens to what it leads to."""
        for effect in effects if self._links else ():
            leads_to = self._links.get(effect.target)
            if leads_to is not None and effect.where and effect.name in _FILE_EFFECTS:
                self.report.add_path(effect.name, locate_path(leads_to, None, self._ground), effect.words)

    def add_profile(self, use: ToolProfile) -> None:
        """A tool, or a type of action, of which is known what it does."""
        for effect in use.always:
            self.report.add_effect(effect, (self._action.tool or self._action.type,))
        if use.takes_command:
            self._check_command_options()
            self._analyse_commands()
        if use.takes_url:
            self._add_hosts(self._find_urls())
        if use.on_paths:
            self._add_path_effects(use)
        if use.takes_url and self._can_send_data():
            self.report.add_effect("egress", (self._action.tool or self._action.type,))

    def unknown(self) -> None:
        """A tool of which nothing is known: whatever its arguments name, it may do anything to."""
        self.report.add_effect("unknown", (self._action.tool or self._action.type,))
        for path in self._limit_items(self._find_paths()):
            place = locate_path(path, self._cwd, self._ground)
            self.report.add_path("unknown", place, (path,))
            self.report.add_path("read", place, (path,))
        self._add_hosts(self._find_urls())
        if self._argument_values(COMMAND_ARGUMENTS):
            self._analyse_commands()

    def rest(self, uses: Iterable[ToolProfile]) -> None:
        """What is named and is no business of the type and the tool, as far as these are known: a command, files."""
        given = self._argument_values(COMMAND_ARGUMENTS)
        is_own = any(use.may_only_look for use in uses) and given and _text_or_empty(given[0]) in _EDITOR_COMMANDS
        if given and not is_own:
            self._analyse_commands()
        if not any(use.on_paths for use in uses):
            for path in self._limit_items(self._action.files):
                self._add_path(path, ToolProfile(("read",)))

    def add_mcp_tool(self, is_trusted: bool, annotations: Mapping[str, Any]) -> None:
        """A tool of an MCP server. If that is trusted, its word counts; a hint that is missing means the worst."""
        if not is_trusted:
            self.unknown()
            if annotations.get("readOnlyHint") is False:
                self.report.add_effect("write", (self._action.tool,))
            return
        reads_only = annotations.get("readOnlyHint") is True
        use = ToolProfile(("read",) if reads_only else ("read", "write"))
        names = ["read"] if reads_only else ["write"]
        if not reads_only and annotations.get("destructiveHint") is not False:
            names.append("delete")
        if annotations.get("openWorldHint") is not False:
            names += ["network"] if reads_only else ["network", "egress"]
        for name in names:
            self.report.add_effect(name, (self._action.tool,))
        for path in self._limit_items(self._find_paths()):
            self._add_path(path, use)
        self._add_hosts(self._find_urls())

    # --- commands

    def _check_command_options(self) -> None:
        """Whatever else is said about a command may change what it does."""
        for key, value in self._arguments.items():
            name = normalise_name(str(key))
            if name in _ESCALATION_ARGUMENTS and value:
                self.report.add_effect("privilege", (self._action.tool,))
            elif (
                value
                and name not in COMMAND_ARGUMENTS | DIRECTORY_ARGUMENTS | HARMLESS_ARGUMENTS
                and not _is_harmless(name, value)
            ):
                self.report.add_unclear(
                    "unknown-option", f"what {str(key)[:80]!r} changes about a command is not known"
                )

    def _analyse_commands(self) -> None:
        if self._understood:
            return
        from aver.gate.effects.arguments import read_command_list, read_single_command
        from aver.gate.shell.understand import understand

        one = None if self._takes_several else read_single_command(self._arguments)
        texts = read_command_list(self._arguments) if self._takes_several else None if one is None else [one]
        if texts is None:
            self.report.add_effect("execute", (self._action.tool,))
            self.report.add_unclear("dynamic-code", "which command runs is not said in one text or list of texts")
            return
        self._command = "\n".join(texts)
        cwd = self._find_directory(DIRECTORY_ARGUMENTS) or ""
        workspace = self._action.workspace
        self._understood = [
            understand(text, cwd=cwd, workspace=workspace, env=self._env, known=self._known) for text in texts
        ]

    # --- hosts

    def _find_urls(self) -> Iterator[str]:
        for value in self._values:
            if value.is_under(URL_ARGUMENTS) or (URL_PATTERN.fullmatch(value.text) and not value.is_prose):
                yield value.text

    def _add_hosts(self, urls: Iterable[str]) -> None:
        for url in dict.fromkeys(self._limit_items(urls)):
            if url.lower().startswith("file:"):
                path = re.sub(r"^file:(//[^/]*)?", "", url, flags=re.IGNORECASE) or "/"
                self._add_path(path, ToolProfile(("read",)))
            elif URL_PATTERN.match(url) or not url.startswith((".", "/", "~")):
                self.report.add_host("network", parse_host(url) or url[:200], (url[:200],))

    def _can_send_data(self) -> bool:
        method = _text_or_empty(self._arguments.get("method")).upper()
        return method not in ("", "GET", "HEAD", "OPTIONS") or any(self._arguments.get(key) for key in _BODY_ARGUMENTS)

    # --- paths

    def _find_paths(self) -> Iterator[str]:
        for value in self._values:
            if (value.is_under(PATH_ARGUMENTS) or value.is_outside_path) and not URL_PATTERN.match(value.text):
                yield value.text
        yield from self._action.files

    def _add_path_effects(self, use: ToolProfile) -> None:
        use = self._narrow_profile(use)
        paths = dict.fromkeys(self._limit_items(self._find_paths()))
        for path in paths:
            self._add_named_path(path, use)
        self._add_hosts(value.text for value in self._values if URL_PATTERN.match(value.text) and not value.is_prose)
        named = bool(paths) or self._add_patch_files(use) or bool((self._action.diff or "").strip())
        for value in self._values:
            is_pattern = use.takes_pattern and value.keys == ("pattern",)
            for pattern in (
                self._expand_braces(value.text) if is_pattern or value.is_under(_FILE_FILTER_ARGUMENTS) else ()
            ):
                if not is_pattern or pattern.startswith(("/", "~")) or ".." in pattern.split("/"):
                    self._add_path(pattern, use)
        if named or use.may_name_none:
            return
        if use.works_here:
            self._add_path(self._cwd or "", use)
        else:
            for effect in use.on_paths:
                self.report.add_path(effect, UNKNOWN_LOCATION, (self._action.tool or self._action.type,))
            self.report.add_unclear("unknown-target", "it names no file", (self._action.tool or self._action.type,))

    def _expand_braces(self, pattern: str) -> list[str]:
        """The patterns that the braces in a pattern stand for."""
        if "{" not in pattern:
            return [pattern]
        from aver.gate.shell.expand import expand_braces

        found = expand_braces(pattern)
        if found is None:
            self.report.add_unclear("too-much", f"what {pattern[:80]!r} stands for cannot be told")
        return found or []

    def _narrow_profile(self, use: ToolProfile) -> ToolProfile:
        """An editor may be told by an argument to only look."""
        if use.may_only_look and self._arguments.get("command") == "view":
            return ToolProfile(("read",))
        return use

    def _add_patch_files(self, use: ToolProfile) -> bool:
        """Whether a patch in the arguments names files; those are placed."""
        found = False
        texts = [self._arguments.get(key) for key in ("patch", "input", "diff")] if use.takes_patch else []
        for text in texts:
            if isinstance(text, str):
                for match in self._limit_items(_PATCH_FILE.finditer(text)):
                    found = True
                    self._add_named_path(
                        match["path"].rstrip(),
                        ToolProfile(("delete",) if match["verb"] == "Delete File" else ("write",)),
                    )
        return found

    def diff(self, text: str) -> None:
        """A change to files: those that it names are written, or deleted."""
        from aver.gate.effects.diff_files import DiffProblem, read_diff_files

        for part in read_diff_files(text):
            if isinstance(part, DiffProblem):
                self.report.add_unclear(part.code, part.words)
            else:
                self._shown.add(self._add_path(part.path, ToolProfile((part.effect,))).path)

    def _check_diff_coverage(self) -> None:
        """A diff is what an action is judged by, so it must show all that the action changes."""
        for path in self._changed if (self._action.diff or "").strip() else ():
            if path not in self._shown:
                self.report.add_unclear("unknown-target", f"the diff does not show what happens to {path[:80]!r}")

    def _add_named_path(self, path: str, use: ToolProfile) -> None:
        """A path that is named outside of the diff."""
        place = self._add_path(path, use)
        if use.on_paths != ("read",):
            self._changed[place.path] = None

    def _add_path(self, path: str, use: ToolProfile) -> PathLocation:
        place = locate_path(path, self._cwd, self._ground)
        for effect in use.on_paths:
            self.report.add_path(effect, place, (path[:200],))
        if place.where == "unknown":
            self.report.add_unclear("unknown-target", f"where {path[:80]!r} lies is not known")
        return place

    def _limit_items(self, items: Iterable[_Item]) -> Iterator[_Item]:
        for count, item in enumerate(items):
            if count >= PATHS_MAX:
                self.report.add_unclear("too-much", f"more than {PATHS_MAX} paths")
                return
            yield item


def _is_harmless(name: str, value: Any) -> bool:
    return _text_or_empty(value) in _HARMLESS_VALUES.get(name, ())


def _text_or_empty(value: Any) -> str:
    return value if isinstance(value, str) else ""
