"""The registry of coding agents: one line for each, and what callers ask for by an agent's name.

Rooms below `agents` never import it. `cli` asks the registry for the parts of an agent and hands them to `ingest`,
`hooks` and `install`.

Installed packages can bring adapters of their own for transcripts, in the entry-point group `aver.ingest`. Aver leaves
out an adapter that cannot be loaded or has the name of a built-in agent, and reports it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING

from aver.errors import BadInput, NotFound
from aver.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from aver.agents.agent import Agent
    from aver.gate.effects.known_agents import KnownAgents
    from aver.hooks.contract import Hook
    from aver.ingest.contract import Adapter
    from aver.install.client import Client

AGENTS = {
    "claude-code": "aver.agents.claude_code",
    "codex": "aver.agents.codex",
    "cursor": "aver.agents.cursor",
    "cline": "aver.agents.cline",
}
"""The package that holds the `AGENT` of each name."""

ENTRY_POINT_GROUP = "aver.ingest"

_TOOL_NAME = lazy_pattern(r"[a-z0-9-]{1,32}")


def load_agent(name: str) -> Agent:
    """Load a built-in agent. Raises `NotFound` for a name that is not in `AGENTS`."""
    if name not in AGENTS:
        raise NotFound(f"Aver knows no coding agent {name!r}", advice=f"known are {', '.join(AGENTS)}")
    agent: Agent = import_module(AGENTS[name]).AGENT
    return agent


def load_hook(name: str) -> Hook:
    """Load an agent's hook. Raises `BadInput` where there is no such agent."""
    if name not in AGENTS:
        raise BadInput(f"{name!r} has no hooks that Aver knows", advice=f"known are {', '.join(AGENTS)}")
    return load_agent(name).load_hook()


@lru_cache(maxsize=1)
def _join_names(names: tuple[str, ...]) -> KnownAgents:
    from aver.agents.other_names import OTHER_NAMES
    from aver.gate.effects.known_agents import build_known_agents

    return build_known_agents([*(load_agent(name).load_names() for name in names), OTHER_NAMES])


def load_known_agents() -> KnownAgents:
    """Join the names of all agents' tools and files to the one value that the gate looks them up in."""
    return _join_names(tuple(AGENTS))


def provide_known_agents() -> None:
    """Have the gate in this process look names up in `load_known_agents()`, where its caller gives no other value.

    The programs that put the rooms together call this: `aver` for its public names, and `cli`.
    """
    from aver.gate.effects.known_agents import set_default_known_agents

    set_default_known_agents(load_known_agents)


# --- transcripts


def load_adapters(report: Callable[[str], None] = lambda _: None) -> list[Adapter]:
    """Load the adapters of all agents and of installed packages. `report` gets a line for each that is left out."""
    return [*(load_agent(name).load_adapter() for name in AGENTS), *_load_installed(report)]


def load_adapter(name: str) -> Adapter:
    """Load the adapter for an agent's transcripts. Raises `NotFound` where there is none."""
    if name in AGENTS:
        return load_agent(name).load_adapter()
    for adapter in _load_installed(lambda _: None):
        if adapter.tool == name:
            return adapter
    raise NotFound(f"there is no adapter for {name}", advice=f"there are {', '.join(AGENTS)}")


def _load_installed(report: Callable[[str], None]) -> Iterator[Adapter]:
    from importlib.metadata import entry_points

    from aver.ingest.contract import Adapter

    for entry in entry_points(group=ENTRY_POINT_GROUP):
        try:
            adapter = entry.load()
        except Exception as error:  # noqa: BLE001 - the package may raise anything
            report(f"the adapter {entry.name} cannot be loaded: {error}")
            continue
        if not isinstance(adapter, Adapter) or not _TOOL_NAME.fullmatch(adapter.tool) or adapter.tool in AGENTS:
            report(f"the adapter {entry.name} is left out: it is none, or has the name of one of Aver's")
            continue
        yield adapter


# --- settings


def client_names() -> tuple[str, ...]:
    """The names of all clients that Aver can be installed into: the agents, and VS Code."""
    return (*AGENTS, "vscode")


def load_client(name: str) -> Client:
    """Load the description of a client's settings. Raises `NotFound` where there is no such client."""
    if name == "vscode":
        from aver.agents.vscode.install import CLIENT

        return CLIENT
    return load_agent(name).load_client()
