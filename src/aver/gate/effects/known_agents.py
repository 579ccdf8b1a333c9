"""What the gate knows about coding agents: the names of their tools, and of the files that steer them.

The data stands in `agents/<name>/names.py`, as one `AgentNames` for each agent. `agents/registry` joins them to one
`KnownAgents`, and the gate looks names up in that value: as `Gate.known`, and as `PathRoots.known` for paths. It also
has the guarded names that belong to no agent, so that one value answers.

The gate is a room below `agents` and does not import it. The program that puts the rooms together calls
`set_default_known_agents` once: `aver` does so for its public names, and `cli` for its verbs. A caller may also give a
value of its own. Without any, the gate knows no agent: every tool has the effect `unknown`.

`effects_version` names the tables and the code that say what an action does. Aver seals it with each decision. A
decision of another version cannot be made again here, and says nothing about forgery.

    >>> from aver.gate.effects.tools import READS
    >>> known = build_known_agents([AgentNames(tools={READS: "Read view"}, files={"agent-config": "claude.md"})])
    >>> known.find_profile("read").on_paths
    ('read',)
    >>> known.find_profile("Bash") is None
    True
    >>> known.files["claude.md"]
    ('agent-config',)
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, field
from typing import Any

from aver.errors import BadInput
from aver.fast_dataclass import dataclass
from aver.gate.effects.guarded_names import GUARDED_DIRECTORIES, GUARDED_FILES, GUARDED_PAIRS
from aver.gate.effects.tools import ToolProfile, mcp_server, normalise_name

__all__ = [
    *("NO_AGENTS", "AgentNames", "KnownAgents", "build_known_agents", "default_known_agents"),
    "set_default_known_agents",
]

READERS_VERSION = 1
"""The version of the code in `gate/effects` and `gate/shell`. Raise it when the same action gets other effects."""

NamesByClass = Mapping[str, str]
"""Names, separated by white space, under the class of guarded things that they belong to (`guarded_names`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentNames:
    """The names of one agent's tools and of the files that steer it."""

    tools: Mapping[ToolProfile, str] = field(default_factory=dict)
    """Names of tools, separated by white space, under what they do."""
    mcp_callers: str = ""
    """Tools that call the tools of MCP servers, and name the server in their arguments."""
    directories: NamesByClass = field(default_factory=dict)
    """Directories anywhere in a path."""
    pairs: NamesByClass = field(default_factory=dict)
    """Two names that follow each other, such as `.codex/auth.json`."""
    files: NamesByClass = field(default_factory=dict)
    """Names of files, in lower case."""


class KnownAgents:
    """The names of all known agents, ready to be looked up. Immutable; compared and hashed by identity."""

    __slots__ = ("_effects_version", "_mcp_callers", "_profiles", "directories", "files", "pairs")

    def __init__(
        self,
        profiles: Mapping[str, ToolProfile],
        mcp_callers: frozenset[str],
        directories: Mapping[str, tuple[str, ...]],
        pairs: Mapping[str, tuple[str, ...]],
        files: Mapping[str, tuple[str, ...]],
    ) -> None:
        self._profiles = profiles
        self._mcp_callers = mcp_callers
        self.directories = directories
        self.pairs = pairs
        self.files = files
        self._effects_version = ""

    def find_profile(self, tool: str) -> ToolProfile | None:
        """What a tool does; None where Aver does not know the tool. No tool of an MCP server is known by its name."""
        return None if mcp_server(tool) else self._profiles.get(normalise_name(tool))

    def is_mcp_caller(self, tool: str) -> bool:
        """Whether a tool calls the tools of MCP servers, and names the server in its arguments."""
        return normalise_name(tool) in self._mcp_callers

    def is_tool_of_server(self, tool: str, server: str) -> bool:
        """Whether an MCP tool is of this server: `mcp__a__b__c` may be of `a` and of `a__b`."""
        return self.is_mcp_caller(tool) or "__" not in tool.removeprefix(f"mcp__{server}__")

    @property
    def effects_version(self) -> str:
        """`<version of the readers>.<16 hex digits over the tables>`. Worked out once, and only where it is needed."""
        if not self._effects_version:
            from aver.capsule.canonical import canonical_bytes  # Not above: who only looks names up needs no JSON.

            tables: dict[str, Any] = {
                "tools": {name: asdict(profile) for name, profile in self._profiles.items()},
                "mcp_callers": sorted(self._mcp_callers),
                "directories": {name: sorted(classes) for name, classes in self.directories.items()},
                "pairs": {name: sorted(classes) for name, classes in self.pairs.items()},
                "files": {name: sorted(classes) for name, classes in self.files.items()},
            }
            digest = hashlib.sha256(canonical_bytes(tables)).hexdigest()
            self._effects_version = f"{READERS_VERSION}.{digest[:16]}"
        return self._effects_version


def build_known_agents(agents: Iterable[AgentNames]) -> KnownAgents:
    """Join the names of several agents. Raises `BadInput` where two agents say different things of one tool."""
    profiles: dict[str, ToolProfile] = {}
    callers: set[str] = set()
    directories, pairs, files = dict(GUARDED_DIRECTORIES), dict(GUARDED_PAIRS), dict(GUARDED_FILES)
    for agent in agents:
        for profile, names in agent.tools.items():
            for name in map(normalise_name, names.split()):
                if profiles.setdefault(name, profile) != profile:
                    raise BadInput(f"two coding agents have a tool {name!r} that does different things")
        callers.update(map(normalise_name, agent.mcp_callers.split()))
        for table, named in ((directories, agent.directories), (pairs, agent.pairs), (files, agent.files)):
            for kind, names in named.items():
                table.update({name: tuple({*table.get(name, ()), kind}) for name in names.split()})
    return KnownAgents(profiles, frozenset(callers), directories, pairs, files)


NO_AGENTS = build_known_agents(())


def _load_no_agents() -> KnownAgents:
    return NO_AGENTS


_load_default: Callable[[], KnownAgents] = _load_no_agents


def set_default_known_agents(load: Callable[[], KnownAgents]) -> None:
    """Have `load` called where a caller of the gate gives no `KnownAgents`. It returns the same value each time."""
    global _load_default
    _load_default = load


def default_known_agents() -> KnownAgents:
    """The value for callers that give none."""
    return _load_default()
