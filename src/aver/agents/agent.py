"""An agent: all that Aver knows about one coding agent, as one value.

Each folder `agents/<name>/` holds the knowledge, and its `__init__.py` lists it as `AGENT`:

    transcripts   where the agent keeps its sessions and how to read them       `aver ingest`, `aver watch`
    hook          the payloads that it sends to its hooks and the answers        `aver hook`
    client        the places of its settings                                     `aver install`
    names         its tools, and the files and variables that steer it           the gate
    demo          a short session, written as the agent itself would write it    `aver demo`

To add an agent, add a folder with an `AGENT` and one line in `agents/registry.py`. The smallest example is
`tests/support/agents/ticker`; the smallest real folder is `claude_code`. Some tests have a row for each agent, and name
the row that is missing. If the agent has a program of its own, add its name to `gate/shell/programs/tables/tools.py`:
without it the gate takes the program for an unknown one.

`aver hook` runs before every call of a tool. So an `AGENT` holds functions that import what they return, and importing
the folder costs almost nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from aver.fast_dataclass import dataclass

if TYPE_CHECKING:
    from pathlib import Path

    from aver.files.user_dirs import UserEnvironment
    from aver.gate.effects.known_agents import AgentNames
    from aver.hooks.contract import Hook
    from aver.ingest.contract import Adapter
    from aver.install.client import Client


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """One coding agent."""

    name: str
    """Its name on the command line and the domain of its chains, such as `claude-code`."""
    title: str
    """Its name for a person: `Claude Code`."""
    load_adapter: Callable[[], Adapter]
    load_hook: Callable[[], Hook]
    load_client: Callable[[], Client]
    load_names: Callable[[], AgentNames]
    write_demo: Callable[[UserEnvironment], Path]
    """Writes the demo's session below the user's home, and returns the transcript."""


def agent_in_folder(package: str, *, name: str, title: str, transcripts_module: str) -> Agent:
    """The agent whose folder has the modules `hooks`, `install`, `names` and `demo`, and a module for its transcripts.

    `package` is the folder's `__name__`, and `transcripts_module` the name of the module that has the `ADAPTER`. A
    module is imported when its value is first asked for.
    """

    def load(module: str, value: str) -> Any:
        return getattr(import_module(f"{package}.{module}"), value)

    return Agent(
        name=name,
        title=title,
        load_adapter=lambda: load(transcripts_module, "ADAPTER"),
        load_hook=lambda: load("hooks", "HOOK"),
        load_client=lambda: load("install", "CLIENT"),
        load_names=lambda: load("names", "NAMES"),
        write_demo=lambda around: load("demo", "write_demo")(around),
    )
