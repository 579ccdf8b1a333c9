"""Which tools there are: our own adapters, and those that installed packages bring in the group `aver.ingest`.

A module is imported when its tool is asked for. A package's adapter that cannot be loaded, or has the name of one of
ours, is left out and told of.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points

from aver.errors import NotFound
from aver.ingest.contract import Adapter

__all__ = ["BUILT_IN", "ENTRY_POINT_GROUP", "load_adapter", "load_adapters"]

ENTRY_POINT_GROUP = "aver.ingest"

BUILT_IN = {
    "claude-code": "aver.agents.claude_code.transcripts",
    "codex": "aver.agents.codex.rollouts",
    "cursor": "aver.agents.cursor.conversations",
    "cline": "aver.agents.cline.tasks",
}
"""Modules with an `ADAPTER`, by tool."""

_matches_tool_name = re.compile(r"[a-z0-9-]{1,32}").fullmatch


def load_adapters(told: Callable[[str], None] = lambda _: None) -> list[Adapter]:
    """All of them. `told` hears of those that cannot be used."""
    return [*map(_load_built_in, BUILT_IN), *_load_installed(entry_points(group=ENTRY_POINT_GROUP), told)]


def load_adapter(tool: str) -> Adapter:
    """The adapter of a tool; `NotFound` where there is none."""
    if tool in BUILT_IN:
        return _load_built_in(tool)
    for adapter in _load_installed(entry_points(group=ENTRY_POINT_GROUP), lambda _: None):
        if adapter.tool == tool:
            return adapter
    raise NotFound(f"there is no adapter for {tool}", advice=f"there are {', '.join(BUILT_IN)}")


def _load_built_in(tool: str) -> Adapter:
    found: Adapter = import_module(BUILT_IN[tool]).ADAPTER
    return found


def _load_installed(entries: Iterable[EntryPoint], told: Callable[[str], None]) -> Iterable[Adapter]:
    for entry in entries:
        try:
            adapter = entry.load()
        except Exception as error:  # noqa: BLE001 - somebody else's code
            told(f"the adapter {entry.name} cannot be loaded: {error}")
            continue
        if not isinstance(adapter, Adapter) or not _matches_tool_name(adapter.tool) or adapter.tool in BUILT_IN:
            told(f"the adapter {entry.name} is left out: it is none, or has the name of one of Aver's")
            continue
        yield adapter
