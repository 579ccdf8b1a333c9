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

__all__ = ["GROUP", "OWN", "adapter_of", "adapters"]

GROUP = "aver.ingest"

OWN = {
    "claude-code": "aver.ingest.claude_code",
    "codex": "aver.ingest.codex",
    "cursor": "aver.ingest.cursor",
    "cline": "aver.ingest.cline",
}
"""Modules with an `ADAPTER`, by tool."""

_TOOL = re.compile(r"[a-z0-9-]{1,32}").fullmatch


def adapters(told: Callable[[str], None] = lambda _: None) -> list[Adapter]:
    """All of them. `told` hears of those that cannot be used."""
    return [*map(_own, OWN), *_brought(entry_points(group=GROUP), told)]


def adapter_of(tool: str) -> Adapter:
    """The adapter of a tool; `NotFound` where there is none."""
    if tool in OWN:
        return _own(tool)
    for adapter in _brought(entry_points(group=GROUP), lambda _: None):
        if adapter.tool == tool:
            return adapter
    raise NotFound(f"there is no adapter for {tool}", advice=f"there are {', '.join(OWN)}")


def _own(tool: str) -> Adapter:
    found: Adapter = import_module(OWN[tool]).ADAPTER
    return found


def _brought(entries: Iterable[EntryPoint], told: Callable[[str], None]) -> Iterable[Adapter]:
    for entry in entries:
        try:
            adapter = entry.load()
        except Exception as error:  # noqa: BLE001 - somebody else's code
            told(f"the adapter {entry.name} cannot be loaded: {error}")
            continue
        if not isinstance(adapter, Adapter) or not _TOOL(adapter.tool) or adapter.tool in OWN:
            told(f"the adapter {entry.name} is left out: it is none, or has the name of one of Aver's")
            continue
        yield adapter
