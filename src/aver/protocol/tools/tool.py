"""A tool of an executor: what the gate is asked about a call, and what the call gives back.

A session never runs anything itself. It gets a runner of tools from its caller (`protocol.runner.ToolRunner`).
`ToolBox` is that runner: tools by their names, in one workspace.

    tools = ToolBox("/work/shop", {"command": CommandTool()})
    tools.describe("command", {"argv": ["pytest", "-q"]})                     # the action that the gate judges
    tools.run("command", {"argv": ["pytest", "-q"]}, seconds=60, output_max=1 << 24)

`describe` causes nothing. It raises `BadInput` for a call that the tool cannot make, so that such an intent is refused
before anybody decides about it. `run` raises nothing of its own: a tool that breaks down gives a `ToolFailure`. A
command that ends with another number than 0 has come to its end: that is a `ToolResult`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from aver.errors import AverError, BadInput
from aver.fast_dataclass import dataclass
from aver.log import debug
from aver.protocol.runner import CallDescription, FailureCode, ToolFailure, ToolOutputs, ToolResult

NAME_MAX = 128
"""Longest name of a tool, in characters."""

WORDS_MAX = 1000
"""Characters of the words about a failure. The rest is in the outputs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long a tool may run, and how many bytes are kept of its outputs together."""

    seconds: float = 600.0
    output_max: int = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ToolOrder:
    """One call of a tool: its name, its arguments (JSON values), the workspace (absolute, no link), its limits."""

    tool: str
    arguments: Mapping[str, Any]
    workspace: str
    limits: Limits = Limits()


class Tool(Protocol):
    """A tool. Both methods get the same order."""

    def describe(self, order: ToolOrder) -> CallDescription:
        """Say what the gate must judge. Raises `BadInput` for arguments that the tool does not take."""
        ...

    def run(self, order: ToolOrder) -> ToolResult | ToolFailure:
        """Make the call."""
        ...


@runtime_checkable
class ParallelTool(Protocol):
    """A tool whose calls may run beside those of other tools, on threads of their own."""

    def find_places(self, order: ToolOrder) -> frozenset[str]:
        """Return what a call needs for itself: no two calls that need the same thing run side by side."""
        ...


class ToolBox:
    """Tools by their names, in one workspace. A session knows of no other tool."""

    def __init__(self, workspace: str, tools: Mapping[str, Tool]) -> None:
        for name in tools:
            if not name or len(name) > NAME_MAX or not name.isprintable():
                raise BadInput(f"{ascii(name)[:80]} is no name of a tool", advice=f"use 1 to {NAME_MAX} characters")
        self._workspace = os.path.realpath(workspace)
        self._tools = dict(tools)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tools, sorted."""
        return tuple(sorted(self._tools))

    def describe(self, tool: str, arguments: Mapping[str, Any]) -> CallDescription:
        """Say what the gate must judge. Raises `BadInput` for an unknown tool or wrong arguments."""
        found = self._tools.get(tool)
        if found is None:
            advice = f"known are {', '.join(self.names)}" if self._tools else "this session has no tools"
            raise BadInput(f"there is no tool {ascii(tool)[:80]}", advice=advice)
        return found.describe(ToolOrder(tool, arguments, self._workspace))

    def find_places(self, tool: str, arguments: Mapping[str, Any]) -> frozenset[str] | None:
        """Return what a call needs for itself; None if the tool does not say that it may run beside others."""
        found = self._tools.get(tool)
        if not isinstance(found, ParallelTool):
            return None
        return found.find_places(ToolOrder(tool, arguments, self._workspace))

    def run(
        self, tool: str, arguments: Mapping[str, Any], *, seconds: float, output_max: int
    ) -> ToolResult | ToolFailure:
        """Make the call. A tool that raises gives the failure `ERROR`."""
        order = ToolOrder(tool, arguments, self._workspace, Limits(seconds=seconds, output_max=output_max))
        try:
            return self._tools[tool].run(order)
        except AverError as error:
            debug("protocol", "tool %s failed: %s", tool, error)
            return fail_tool("ERROR", str(error))
        except Exception as error:  # noqa: BLE001 - a tool is foreign code; its failure is a result
            debug("protocol", "tool %s raised %s", tool, type(error).__name__)
            return fail_tool("ERROR", f"{type(error).__name__}: {error}")

    def in_workspace(self, workspace: str) -> ToolBox:
        """Return a box with the same tools in another directory: for an audit that repeats calls."""
        return ToolBox(workspace, self._tools)

    def with_tools(self, more: Mapping[str, Tool]) -> ToolBox:
        """Return a box with more tools. A name that is there already is replaced."""
        return ToolBox(self._workspace, {**self._tools, **more})


def fail_tool(
    code: FailureCode, words: str, outputs: ToolOutputs | None = None, cut: tuple[str, ...] = ()
) -> ToolFailure:
    """Return the end of a call that did not come to its own."""
    return ToolFailure(code, words[:WORDS_MAX], outputs or {}, cut)


def read_arguments(order: ToolOrder, required: Mapping[str, type], optional: Mapping[str, type]) -> dict[str, Any]:
    """Return the arguments of an order. Raises `BadInput` for a missing, unknown or wrongly typed one."""
    known = {**required, **optional}
    for name in order.arguments:
        if name not in known:
            raise BadInput(f"{order.tool} takes no argument {ascii(name)[:80]}", advice=f"it takes {', '.join(known)}")
    for name in required:
        if name not in order.arguments:
            raise BadInput(f"{order.tool} needs the argument {name}")
    for name, value in order.arguments.items():
        if not isinstance(value, known[name]) or isinstance(value, bool):
            raise BadInput(f"{order.tool}: {name} must be a {_TYPE_WORDS[known[name]]}")
    return dict(order.arguments)


_TYPE_WORDS: Mapping[type, str] = {str: "text", list: "list", dict: "table", int: "number"}


def read_words(value: Sequence[Any], where: str, most: int) -> list[str]:
    """Return a list of texts without NUL. Raises `BadInput`, which names `where`."""
    if not value or len(value) > most:
        raise BadInput(f"{where} must have 1 to {most} words")
    for word in value:
        if not isinstance(word, str) or "\0" in word:
            raise BadInput(f"{where}: every word must be a text without NUL")
    return list(value)
