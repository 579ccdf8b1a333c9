"""An agent: all that Aver knows about one coding agent, as one value.

Each folder `agents/<name>/` holds the knowledge, and its `__init__.py` lists it as `AGENT`:

    transcripts   where the agent keeps its sessions and how to read them       `aver ingest`, `aver watch`
    hook          the payloads that it sends to its hooks and the answers        `aver hook`
    client        the places of its settings                                     `aver install`
    names         the names of its tools and of the files that steer it          the gate
    demo          a short session, written as the agent itself would write it    `aver demo`

To add an agent, add a folder with an `AGENT` and one line in `agents/registry.py`.

`aver hook` runs before every call of a tool. So an `AGENT` holds functions that import what they return, and importing
the folder costs almost nothing.

The demo's coding session: every agent mends the same rounding of a sum. It looks, edits, and runs the tests.

`agents/<name>/demo.py` writes this session in the form and at the place in which that agent would write it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
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


PROMPT = "Make totals round half up, and run the tests"
FILE = "/work/shop/totals.py"
OLD, NEW = "    return round(total, 2)", "    return half_up(total)"
TEST_OUTPUT = "3 passed in 0.02s"
TIME_PREFIX = "2026-05-31T09:0"
"""The beginning of every timestamp: minute and second follow."""

Json = Mapping[str, Any]


def write_lines(path: Path, records: Iterable[Json]) -> None:
    """Write records as JSON Lines into a new directory."""
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
