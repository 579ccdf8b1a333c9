"""Finds what an action does: its effects, the paths and hosts that it touches, and what is unclear about it.

Aver looks at four things, and adds up their effects:

1. the type of the action;
2. the tool, if the tables know it;
3. the paths, URLs and commands in the arguments (`effects.arguments`);
4. the annotations of an MCP tool, or the declaration of an own tool (`gate.own_tools`).

An action that carries out a request of the gateway is found by its inputs alone (`effects.intents`).

`gate.shell.understand` analyses a shell command. `effects.routine_commands` then names its routine effects. A tool that
is not in the tables has the effect `unknown`, whatever the type of the action. Annotations of an MCP server can make an
action worse. They make it better only if the user trusts the server by name.

Aver locates paths by their text alone. If the facts say that a path is a symbolic link, its target gets the same
effects.

    >>> from aver.gate.action import Action, Facts
    >>> facts = Facts(now="2026-01-05T09:00:00+00:00")
    >>> action = Action(type="file_write", files=("/work/.git/hooks/pre-push",), workspace="/work")
    >>> sorted(find_effects(action, facts).classes)
    ['persist', 'write']
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import asdict
from itertools import chain
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
    ToolProfile,
    find_argument_texts,
    mcp_server,
    normalise_keys,
    normalise_name,
)
from aver.gate.effects.file_writes import WRITING_PROGRAMS, FileWrite
from aver.gate.effects.findings import Effect, EffectReport, UnclearPart
from aver.gate.effects.git_moves import GitMoves, find_git_moves
from aver.gate.effects.intents import (
    IntentProfile,
    Recipient,
    find_intent,
    has_secret,
    is_request,
    normalise_authority,
    read_recipient,
    split_uri,
)
from aver.gate.effects.known_agents import KnownAgents, default_known_agents
from aver.gate.effects.listings import find_hidden_reads
from aver.gate.effects.paths import (
    PATH_MAX,
    UNKNOWN_LOCATION,
    WORKSPACE_ENV,
    PathLocation,
    build_path_roots,
    has_glob,
    locate_path,
)
from aver.gate.effects.routine_commands import mark_routine_effects, mark_scratch_files
from aver.gate.effects.shown_changes import mark_creations
from aver.gate.own_tools import read_declaration
from aver.gate.shell.invocation import parse_host
from aver.gate.shell.model import CommandAnalysis
from aver.lazy_pattern import lazy_pattern

_Item = TypeVar("_Item")

FollowPaths = Callable[[Iterable[str], Collection[str]], Mapping[str, str]]
"""Gets the targets of effects, and those of them that are patterns of listed files, hidden ones included. Returns the
targets that lead elsewhere, or to a guarded file, each with the path that it leads to."""

PATHS_MAX = 1000
"""Paths of one action that are located. An action with more is unclear."""

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
"""Profiles by type of action. The other types have none."""

_FILE_EFFECTS = frozenset({"read", "write", "delete", "execute", "file-state", "unknown"})
_CWD_ARGUMENTS = normalise_keys("cwd", "workdir", "working_directory", "working_dir")
_ESCALATION_ARGUMENTS = normalise_keys(
    *("dangerouslyDisableSandbox", "with_escalated_permissions", "requires_root", "sudo", "elevated")
)
_HARMLESS_VALUES = {
    "shell": frozenset(("bash", "sh", "zsh", "/bin/bash", "/bin/sh", "/bin/zsh", "/usr/bin/bash", "/usr/bin/zsh")),
    "sandboxpermissions": frozenset(("use_default",)),
}
NESTED_MAX = 64 * 1024
"""Characters of a text in the arguments of an own tool that are searched for paths, if it looks like JSON."""

CHANGED_TOOL_HINT = "aver/changed"
"""The annotation by which the proxy says that a tool's definition is not the one first seen. A call is unclear then."""

_DECLARED_ON_PATHS = frozenset({"read", "write", "delete", "execute"})
_DECLARED_ON_HOSTS = frozenset({"network", "egress"})
_NEVER_DECLARED = frozenset({"secret", "aver"})
"""Classes of paths that count whatever an own tool is declared to do."""
_NESTED_WORDS = lazy_pattern(r"[\s=,;|\"'{}()\[\]<>]+")
_FILE_URL = lazy_pattern(r"^file:(?://[^/]*)?", re.IGNORECASE)
_PATH_MARK = lazy_pattern(r"[/.~]")
_BODY_ARGUMENTS = ("body", "data", "payload", "json", "form", "content", "files")
_FILE_FILTER_ARGUMENTS = normalise_keys("glob", "include", "include_pattern", "file_pattern")
"""Arguments of searches that select files."""
_EDITOR_COMMANDS = frozenset(("view", "create", "str_replace", "insert", "undo_edit"))
_PATCH_FILE = lazy_pattern(
    r"^[ \t]*\*\*\* (?P<verb>Update File|Add File|Delete File|Move to): (?P<path>[^\n]+)$", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Effects:
    """The effects of an action. If `unclear` is not empty, it may do more than is listed."""

    effects: tuple[Effect, ...]
    unclear: tuple[UnclearPart, ...]
    programs: tuple[str, ...] = ()
    """The programs of a command."""
    command: str = ""
    server: str = ""
    """The server of an MCP tool."""
    writes: tuple[FileWrite, ...] = ()
    """The writes into files that the commands show."""
    is_fully_listed: bool = False
    """Whether every part of a command matched a row that lists all options of its program."""
    recipients: tuple[Recipient, ...] = ()
    """Whom a message goes to."""
    git_moves: GitMoves = frozenset()
    """Which files the commands move in or out of git's store: see `effects.git_moves`."""

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
            **({"recipients": [asdict(recipient) for recipient in self.recipients]} if self.recipients else {}),
        }


def find_effects(
    action: Action,
    facts: Facts,
    *,
    trusted: frozenset[str] = frozenset(),
    known: KnownAgents | None = None,
    follow: FollowPaths | None = None,
) -> Effects:
    """Find what an action does.

    `trusted` are MCP servers whose annotations count. `known` has the names of agents' tools and files; without it the
    default ones count. `follow` gets the targets that were found and returns those that lead elsewhere, in place of
    `facts.links`: a caller that does not know the links yet need not parse a command twice.
    """
    known = known or default_known_agents()
    finder = _EffectFinder(action, facts, known, follow)
    intent = find_intent(action)
    if intent is not None and not intent.tool:
        if action.diff is not None:
            finder.add_diff(action.diff)
        server = _text_or_empty(action.arguments.get(intent.server))
        finder.add_intent(intent, read_declaration(facts.declared), is_trusted=server in trusted)
        return mark_creations(finder.conclude(server), action, facts)
    server = mcp_server(action.tool)
    if intent is not None:  # The request says of which server the tool is. The name alone may say two things.
        server = _text_or_empty(action.arguments[intent.server])
        if facts.meaning and action.diff is None:
            finder.add_judged_call(facts.meaning, facts.annotations, server)
            return finder.conclude(server)
        finder.add_secret(intent)
    if known.is_mcp_caller(action.tool):
        server = _text_or_empty(action.arguments.get("server_name"))
    by_type, by_tool = _PROFILE_BY_TYPE.get(action.type), known.find_profile(action.tool) if action.tool else None
    if intent is None and is_request(action):
        by_tool = None  # The gateway has no such request, and an agent's tool of this name is another one.
    if action.diff is not None:
        finder.add_diff(action.diff)
    if by_type is not None and by_tool is not None and by_tool.works_here and by_tool.on_paths == by_type.on_paths:
        by_type = None  # The profile of the tool says more: it also acts on the current directory.
    declared = read_declaration(facts.declared)
    if declared is not None and by_tool is not None and not by_tool.takes_command:
        by_tool = None  # The user's own tool has the name of a known one.
    # The caller names the type, so the type alone never makes an action better: the effects of both add up.
    profiles = [profile for profile in (by_type, by_tool) if profile is not None]
    for profile in profiles:
        finder.add_profile(profile)
    if declared is not None:
        finder.add_declared_tool(declared)
    elif server:
        finder.add_mcp_tool(server in trusted and known.is_tool_of_server(action.tool, server), facts.annotations)
    elif by_tool is None and (action.tool or by_type is None or facts.annotations):
        finder.add_unknown_tool()
    else:
        finder.add_remaining(profiles)
    # Annotations can always make an action worse, also those of an untrusted server.
    if facts.annotations.get("destructiveHint") is True:
        finder.report.add_effect("delete", (action.tool,))
    if facts.annotations.get("openWorldHint") is True:
        finder.report.add_effect("network", (action.tool,))
    if facts.annotations.get(CHANGED_TOOL_HINT) is True:
        finder.add_changed_tool(server)
    return mark_creations(finder.conclude(server), action, facts)


class _EffectFinder:
    """Collects the effects of one action. Each `add_…` method looks at one source of effects."""

    def __init__(
        self,
        action: Action,
        facts: Facts,
        known: KnownAgents,
        follow: FollowPaths | None,
    ) -> None:
        self._action = action
        self._known = known
        self._follow = follow
        self._env = facts.environment
        self._links = facts.links
        self._is_judged = bool(facts.meaning)
        self._arguments = action.arguments
        # The arguments with a value, under names that one spelling stands for.
        self._named = [(normalise_name(str(key)), value) for key, value in action.arguments.items() if value]
        self._path_roots = build_path_roots(action.workspace, self._env, known)
        self.report = EffectReport(self._path_roots)
        self._texts: list[ArgumentText] = []
        for value in find_argument_texts(self._arguments):
            if value is None:
                self.report.add_unclear("too-much", "its arguments are too many, or too deep inside each other")
            else:
                self._texts.append(value)
        self._cwd = self._find_directory(_CWD_ARGUMENTS)
        profile = known.find_profile(action.tool)
        self._takes_several = profile is not None and profile.takes_several
        self._analyses: list[CommandAnalysis] = []
        """The analysis of each command."""
        self._command = ""
        self._shown: set[str] = set()
        """Paths that the diff shows."""
        self._changed: dict[str, None] = {}
        """Paths that something else than the diff changes. The diff must show them, too."""
        self._recipients: tuple[Recipient, ...] = ()

    def _find_directory(self, keys: frozenset[str]) -> str | None:
        """Return the directory that relative paths start at; None if it is not known."""
        workspace = self._action.workspace if self._action.workspace.startswith("/") else None
        # Two arguments may name one directory. Values need not be hashable, so compare their `repr`.
        given = list({repr(value): value for name, value in self._named if name in keys}.values())
        if not given:
            return workspace
        place = locate_path(_text_or_empty(given[0]), workspace, self._path_roots)
        if len(given) > 1 or place.where == "unknown":
            self.report.add_unclear("unknown-target", "which directory this stands in is not said in one text")
            return None
        return place.path

    def conclude(self, server: str) -> Effects:
        """Join the findings of the arguments with those of the commands."""
        own = [effect for analysis in self._analyses for effect in analysis.effects]
        commands = [command for analysis in self._analyses for command in analysis.commands]
        seen = (*self.report.effects, *own)
        if self._follow is not None:
            patterns = find_hidden_reads(own, commands)
            self._links = self._follow(dict.fromkeys(effect.target for effect in seen), patterns)
        # Add each effect on a symbolic link also for the link's target.
        for effect in seen if self._links else ():
            leads_to = self._links.get(effect.target)
            if leads_to is not None and effect.where and effect.name in _FILE_EFFECTS:
                # The mode of the target is changed, too. That is routine only for the file that the command names.
                name = "write" if effect.name == "file-state" else effect.name
                self.report.add_path(name, locate_path(leads_to, None, self._path_roots), effect.words)
        # Report changed paths that the diff does not show. Risk is judged by the diff, so it must show all.
        for path in self._changed if (self._action.diff or "").strip() else ():
            if path not in self._shown:
                self.report.add_unclear("unknown-target", f"the diff does not show what happens to {path[:80]!r}")
        effects, unclear = tuple(self.report.effects), tuple(self.report.unclear)
        programs: tuple[str, ...] = ()
        names = {WORKSPACE_ENV: self._env[WORKSPACE_ENV]} if WORKSPACE_ENV in self._env else None
        routine_roots = build_path_roots(self._action.workspace, names, self._known)
        for analysis in self._analyses:
            effects = tuple(dict.fromkeys((*effects, *mark_routine_effects(analysis, routine_roots))))
            unclear = tuple(dict.fromkeys((*unclear, *analysis.unclear)))
            programs = tuple(dict.fromkeys((*programs, *analysis.programs)))
        effects = mark_scratch_files(effects)
        writes = [write for analysis in self._analyses for write in analysis.writes]
        # A program that another one starts (`nice tee f`) writes without being followed.
        if any(command.program in (None, *WRITING_PROGRAMS) for command in commands if command.via):
            writes = []
        listed = bool(self._analyses) and all(analysis.is_fully_listed for analysis in self._analyses)
        return Effects(
            effects,
            unclear,
            programs,
            self._command,
            server,
            tuple(writes),
            listed,
            recipients=self._recipients,
            git_moves=find_git_moves(commands),
        )

    def add_intent(self, intent: IntentProfile, declared: tuple[str, ...] | None, *, is_trusted: bool) -> None:
        """Add the effects of a request that the gateway carries out: all that its inputs say, and nothing else.

        `declared` is what the user says of a server's resources, and `is_trusted` whether the server is trusted.
        """
        words = (self._action.tool,)
        texts = {name: _text_or_empty(value) for name, value in self._arguments.items()}
        self.add_secret(intent)
        for effect in intent.effects:
            self.report.add_effect(effect, words)
        if intent.path:
            for path in dict.fromkeys((texts[intent.path], *self._action.files)):
                place = self._add_named_path(path, ToolProfile(intent.on_path))
                if place.where != "workspace":
                    self.report.add_unclear("unknown-target", f"{path[:80]!r} is no file of the workspace")
        if intent.host:
            # Rules compare the host alone, as they do for URLs.
            domain = (normalise_authority(texts[intent.host]) or "").partition(":")[0]
            self.report.add_host("network", domain or texts[intent.host][:200], words)
            if not domain:
                why = f"the domain {texts[intent.host][:80]!r} is not in lower-case ASCII, or no name of a host"
                self.report.add_unclear("unknown-target", why)
        if intent.recipient:
            recipient, why = read_recipient(intent, self._arguments)
            self._recipients = (recipient,)
            if why:
                self.report.add_unclear("unknown-target", why)
        if intent.leaves and not all(isinstance(value, str) for value in self._arguments.values()):
            self.report.add_unclear("too-much", "not all of what is sent is one text that can be looked at")
        if intent.command:
            self._analyse_words(intent)
        if intent.uri:
            self._add_resource(texts[intent.uri], declared, is_trusted=is_trusted)

    def add_secret(self, intent: IntentProfile) -> None:
        """Add the effects of a secret in the inputs of a request. A request to another machine takes it along."""
        # The user may see the answer. `gate.origins` has judged it, and the secrets in a call.
        if self._is_judged:
            return
        # Content that is written into a file of the workspace stays here.
        if intent.on_path or intent.command or not has_secret(self._arguments, intent.inputs):
            return
        for effect in ("secret", "egress") if intent.leaves else ("secret",):
            self.report.add_effect(effect, (self._action.tool,))

    def _analyse_words(self, intent: IntentProfile) -> None:
        """Add the effects of a command whose words are given. No shell reads them, so nothing in them is expanded."""
        from aver.gate.effects.arguments import quote_words
        from aver.gate.shell.understand import understand

        words = self._arguments[intent.command]
        command = quote_words(words)
        if command is None or not words[0] or any("\0" in word for word in words):
            self.report.add_effect("execute", (self._action.tool,))
            self.report.add_unclear("dynamic-code", "which program runs is not said in a list of words")
            return
        self._command = command
        cwd = self._find_directory(frozenset({normalise_name(intent.directory)})) or ""
        workspace = self._action.workspace
        self._analyses = [understand(command, cwd=cwd, workspace=workspace, env=self._env, known=self._known)]

    def _add_resource(self, uri: str, declared: tuple[str, ...] | None, *, is_trusted: bool) -> None:
        """Add the effects of reading a resource of an MCP server. Nobody knows what an untrusted server does."""
        for effect in ("read", "unknown") if declared is None and not is_trusted else ("read", *(declared or ())):
            self.report.add_effect(effect, (self._action.tool,))
        kind, name = split_uri(uri)
        if kind == "file":
            self._add_path(name, ToolProfile(("read",)))
        elif kind == "host":
            self._add_hosts((name,))

    def add_profile(self, profile: ToolProfile) -> None:
        """Add the effects of a known tool or type of action."""
        for effect in profile.always:
            self.report.add_effect(effect, (self._action.tool or self._action.type,))
        if profile.takes_command:
            # Report arguments besides the command that may change what it does.
            for key, value in self._arguments.items():
                name = normalise_name(str(key))
                if name in _ESCALATION_ARGUMENTS and value:
                    self.report.add_effect("privilege", (self._action.tool,))
                elif (
                    value
                    and name not in COMMAND_ARGUMENTS | DIRECTORY_ARGUMENTS | HARMLESS_ARGUMENTS
                    and _text_or_empty(value) not in _HARMLESS_VALUES.get(name, ())
                ):
                    self.report.add_unclear(
                        "unknown-option", f"what {str(key)[:80]!r} changes about a command is not known"
                    )
            self._analyse_commands()
        if profile.takes_url:
            self._add_hosts(self._find_urls())
        if profile.on_paths:
            self._add_path_effects(profile)
        if profile.takes_url:
            # A request with a body, or with a method that has one, sends data to the host.
            method = _text_or_empty(self._arguments.get("method")).upper()
            bodies = [key for key in _BODY_ARGUMENTS if self._arguments.get(key)]
            if bodies or method not in ("", "GET", "HEAD", "OPTIONS"):
                self.report.add_effect("egress", (self._action.tool or self._action.type,))

    def add_unknown_tool(self) -> None:
        """Add the effects of an unknown tool, which may do anything to all that its arguments name."""
        self.report.add_effect("unknown", (self._action.tool or self._action.type,))
        for path in self._limit_items(self._find_paths()):
            place = locate_path(path, self._cwd, self._path_roots)
            # Also `read`: it brings the effect `secret` for a guarded path.
            self.report.add_path("unknown", place, (path,))
            self.report.add_path("read", place, (path,))
        self._add_hosts(self._find_urls())
        if any(name in COMMAND_ARGUMENTS for name, _ in self._named):
            self._analyse_commands()

    def add_changed_tool(self, server: str) -> None:
        """Say that a tool is not the one that was first seen, so that a person looks at it."""
        words = f"the definition of this tool is not the one first seen; look at it: aver proxy trust {server}"
        self.report.add_unclear("changed-tool", words)

    def add_judged_call(self, meaning: Mapping[str, Any], annotations: Mapping[str, Any], server: str) -> None:
        """Add the effects of a call whose meaning is known: rules ask for its class, origins and doubts instead.

        Guarded paths and hosts in its arguments stay targets of their own.
        """
        if annotations.get(CHANGED_TOOL_HINT) is True:
            self.add_changed_tool(server)
        name = "call-read" if meaning.get("class") == "read" else "call"
        self.report.add_effect(name, (self._action.tool,))
        if "SENSITIVE" in meaning.get("doubts", ()):
            self.report.add_effect("secret", (self._action.tool,))
        for path in dict.fromkeys(self._limit_items(self._find_guarded_paths(_NEVER_DECLARED))):
            self._add_path(path, ToolProfile(("read",)))
        for url in dict.fromkeys(self._limit_items(self._find_urls())):
            if host := parse_host(url):
                self.report.add_host(name, host, (url[:200],))

    def add_declared_tool(self, effects: tuple[str, ...]) -> None:
        """Add the effects that an own tool is declared to have, on all that its arguments name.

        No declaration makes a guarded path harmless: whatever names one reads it, at least.
        """
        for effect in effects:
            self.report.add_effect(effect, (self._action.tool,))
        on_paths = tuple(effect for effect in effects if effect in _DECLARED_ON_PATHS)
        for path in dict.fromkeys(self._limit_items(self._find_paths())) if on_paths else ():
            self._add_path(path, ToolProfile(on_paths))
        changes = any(effect != "read" for effect in on_paths)
        for path in dict.fromkeys(self._limit_items(self._find_guarded_paths(None if changes else _NEVER_DECLARED))):
            self._add_path(path, ToolProfile(on_paths or ("read",)))
        if not _DECLARED_ON_HOSTS.isdisjoint(effects):
            self._add_hosts(self._find_urls())
        elif on_paths:
            self._add_hosts(value.text for value in self._texts if URL_PATTERN.match(value.text) and not value.is_prose)
        if "execute" in effects and any(name in COMMAND_ARGUMENTS for name, _ in self._named):
            self._analyse_commands()

    def _find_guarded_paths(self, classes: frozenset[str] | None) -> Iterator[str]:
        """Yield the texts that are paths of these guarded classes, or of any, whatever their arguments are called.

        An own tool may open any text. In one that looks like JSON, each word is looked at.
        """
        for text in (*(value.text for value in self._texts), *self._action.files):
            words = [text.strip()]
            if words[0].startswith(("{", "[", '"')):
                words = _NESTED_WORDS.split(text[:NESTED_MAX])
                if len(text) > NESTED_MAX:
                    self.report.add_unclear("too-much", "a text in its arguments is too long to look for paths in it")
            for word in words:
                path = _FILE_URL.sub("", word)
                # Most texts are no paths. A bare name such as `credentials` is more often a word than a path, and so is
                # a sentence with a question mark, which would count as a pattern.
                is_path = 0 < len(path) <= PATH_MAX and _PATH_MARK.search(path) is not None and "\n" not in path
                if is_path and not (" " in path and has_glob(path)):
                    found = locate_path(path, self._cwd, self._path_roots).classes
                    if found if classes is None else found & classes:
                        yield path

    def add_remaining(self, profiles: Iterable[ToolProfile]) -> None:
        """Add commands and files that the arguments name, but that the known profiles do not use."""
        given = [value for name, value in self._named if name in COMMAND_ARGUMENTS]
        is_editor = any(profile.may_only_look for profile in profiles)
        # An editor has commands of its own, such as `view`. No shell runs those.
        is_own = is_editor and bool(given) and _text_or_empty(given[0]) in _EDITOR_COMMANDS
        if given and not is_own and not any(profile.own_commands for profile in profiles):
            self._analyse_commands()
        if not any(profile.on_paths for profile in profiles):
            for path in self._limit_items(self._action.files):
                self._add_path(path, ToolProfile(("read",)))

    def add_mcp_tool(self, is_trusted: bool, annotations: Mapping[str, Any]) -> None:
        """Add the effects of an MCP tool. Annotations of a trusted server count; a missing hint means the worst."""
        if not is_trusted:
            self.add_unknown_tool()
            if annotations.get("readOnlyHint") is False:
                self.report.add_effect("write", (self._action.tool,))
            return
        reads_only = annotations.get("readOnlyHint") is True
        profile = ToolProfile(("read",) if reads_only else ("read", "write"))
        names = ["read"] if reads_only else ["write"]
        if not reads_only and annotations.get("destructiveHint") is not False:
            names.append("delete")
        if annotations.get("openWorldHint") is not False:
            names += ["network"] if reads_only else ["network", "egress"]
        for name in names:
            self.report.add_effect(name, (self._action.tool,))
        for path in self._limit_items(self._find_paths()):
            self._add_path(path, profile)
        self._add_hosts(self._find_urls())

    # --- commands

    def _analyse_commands(self) -> None:
        if self._analyses:  # The type and the tool may both take a command: it is the same one.
            return
        from aver.gate.effects.arguments import read_command_list, read_single_command
        from aver.gate.shell.understand import understand

        if self._takes_several:
            texts = read_command_list(self._arguments)
        else:
            command = read_single_command(self._arguments)
            texts = None if command is None else [command]
        if texts is None:
            self.report.add_effect("execute", (self._action.tool,))
            self.report.add_unclear("dynamic-code", "which command runs is not said in one text or list of texts")
            return
        self._command = "\n".join(texts)
        cwd = self._find_directory(DIRECTORY_ARGUMENTS) or ""
        workspace = self._action.workspace
        self._analyses = [
            understand(text, cwd=cwd, workspace=workspace, env=self._env, known=self._known) for text in texts
        ]

    # --- hosts

    def _find_urls(self) -> Iterator[str]:
        for value in self._texts:
            if value.is_under(URL_ARGUMENTS) or (URL_PATTERN.fullmatch(value.text) and not value.is_prose):
                yield value.text

    def _add_hosts(self, urls: Iterable[str]) -> None:
        for url in dict.fromkeys(self._limit_items(urls)):
            if url.lower().startswith("file:"):
                path = re.sub(r"^file:(//[^/]*)?", "", url, flags=re.IGNORECASE) or "/"
                self._add_path(path, ToolProfile(("read",)))
            # Arguments for URLs also take host names such as `example.org`, and local paths, which are no hosts.
            elif URL_PATTERN.match(url) or not url.startswith((".", "/", "~")):
                self.report.add_host("network", parse_host(url) or url[:200], (url[:200],))

    # --- paths

    def _find_paths(self) -> Iterator[str]:
        for value in self._texts:
            if (value.is_under(PATH_ARGUMENTS) or value.is_outside_path) and not URL_PATTERN.match(value.text):
                yield value.text
        yield from self._action.files

    def _add_path_effects(self, profile: ToolProfile) -> None:
        if profile.may_only_look and self._arguments.get("command") == "view":
            profile = ToolProfile(("read",))  # The editor only shows the file.
        paths = dict.fromkeys(self._limit_items(self._find_paths()))
        for path in paths:
            self._add_named_path(path, profile)
        self._add_hosts(value.text for value in self._texts if URL_PATTERN.match(value.text) and not value.is_prose)
        named = bool(paths) or self._add_patch_files(profile) or bool((self._action.diff or "").strip())
        for value in self._texts:
            is_pattern = profile.takes_pattern and value.keys == ("pattern",)
            if not is_pattern and not value.is_under(_FILE_FILTER_ARGUMENTS):
                continue
            patterns: list[str] | None = [value.text]
            if "{" in value.text:
                from aver.gate.shell.expand import expand_braces

                patterns = expand_braces(value.text)
                if patterns is None:
                    self.report.add_unclear("too-much", f"what {value.text[:80]!r} stands for cannot be told")
            for pattern in patterns or ():
                # A pattern of names inside the directory that is searched adds nothing: that directory counts already.
                if not is_pattern or pattern.startswith(("/", "~")) or ".." in pattern.split("/"):
                    self._add_path(pattern, profile)
        if named or profile.may_name_none:
            return
        # No path is named: the tool acts on the current directory, or on something that Aver cannot see.
        if profile.works_here:
            self._add_path(self._cwd or "", profile)
        else:
            for effect in profile.on_paths:
                self.report.add_path(effect, UNKNOWN_LOCATION, (self._action.tool or self._action.type,))
            self.report.add_unclear("unknown-target", "it names no file", (self._action.tool or self._action.type,))

    def _add_patch_files(self, profile: ToolProfile) -> bool:
        """Add the files that a patch in the arguments names. Returns whether there are any."""
        found = False
        texts = [self._arguments.get(key) for key in ("patch", "input", "diff")] if profile.takes_patch else []
        for text in texts:
            if isinstance(text, str):
                for match in self._limit_items(_PATCH_FILE.finditer(text)):
                    found = True
                    self._add_named_path(
                        match["path"].rstrip(),
                        ToolProfile(("delete",) if match["verb"] == "Delete File" else ("write",)),
                    )
        return found

    def add_diff(self, text: str) -> None:
        """Add the files that a diff writes or deletes, and report where it does not show enough to judge it."""
        from aver.gate.risk.diff import read_diff
        from aver.gate.risk.diff_model import FileChange, UnclearLines

        empty: FileChange | None = None  # A file that needs lines, and has none so far.
        for part in chain(read_diff(text), (None,)):
            if isinstance(part, UnclearLines):
                why = f"line {part.number} of the diff does not fit: {part.why}"
                self.report.add_unclear("syntax", why)
                continue
            if part is not None and not isinstance(part, FileChange):  # Lines of the file before.
                empty = None
                continue
            # The next file, or the end: no lines of the file before will come.
            if empty is not None:
                why = f"the diff names {empty.path[:80]!r} and shows no change of it"
                self.report.add_unclear("unknown-target", why)
            if part is None:
                return
            # A file that keeps its name, mode and kind changes only by lines.
            is_kept = part.old is not None and part.old == part.new and part.old_mode == part.new_mode
            empty = part if is_kept and not part.binary else None
            if part.old is not None and part.old != part.new:
                self._shown.add(self._add_path(part.old, ToolProfile(("delete",))).path)
            if part.new is not None:
                self._shown.add(self._add_path(part.new, ToolProfile(("write",))).path)

    def _add_named_path(self, path: str, profile: ToolProfile) -> PathLocation:
        """Add a path that something else than the diff names."""
        place = self._add_path(path, profile)
        if profile.on_paths != ("read",):
            self._changed[place.path] = None
        return place

    def _add_path(self, path: str, profile: ToolProfile) -> PathLocation:
        place = locate_path(path, self._cwd, self._path_roots)
        for effect in profile.on_paths:
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


def _text_or_empty(value: Any) -> str:
    return value if isinstance(value, str) else ""
