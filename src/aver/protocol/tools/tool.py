"""A tool of an executor: what it is given, what the gate is asked about it, and what it gives back.

The session never runs anything itself. It gets a `ToolBox` from its caller, and does two things with it, in this order:

    order = ToolOrder("command", {"argv": ["pytest", "-q"]}, "/work/shop", Limits(seconds=60), call_id=intent)
    question = tools.ask_about(order)           # the action that the gate judges
    result = tools.run(order)                   # only after the gate allowed that action

`ask_about` causes nothing. It raises `BadInput` for an order that the tool cannot carry out, so that such an intent is
refused before anybody decides about it. `run` raises nothing of its own: a tool that breaks down gives a result with
`failure`. A result is

    exit_code   the number that the tool ended with; None where it has none
    outputs     the bytes that it gave, by name, each with its media type
    cut         the names of outputs whose end is missing, because they were too large
    failure     "" where the tool ended by itself; `TIMEOUT` or `ERROR`, with `words`, where it did not

A command that ends with another number than 0 has ended by itself: its result has no `failure`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Literal, Protocol

from aver.errors import AverError, BadInput
from aver.fast_dataclass import dataclass
from aver.gate.action import Action
from aver.log import debug

Failed = Literal["", "TIMEOUT", "ERROR"]

NAME_MAX = 128
"""Longest name of a tool, in characters."""

WORDS_MAX = 1000
"""Characters of the words about a failure. The rest is in the outputs."""

TEXT = "text/plain; charset=utf-8"
JSON = "application/json"
BYTES = "application/octet-stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long a tool may run, and how many bytes are kept of its outputs together."""

    seconds: float = 600.0
    output_max: int = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ToolOrder:
    """One run of a tool: its name, its arguments (JSON values), the workspace (absolute), and its limits."""

    tool: str
    arguments: Mapping[str, Any]
    workspace: str
    limits: Limits = field(default_factory=Limits)
    call_id: str = ""
    """The intent's id. The gateway's acts and the gate's decision carry it."""


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """One output: its bytes and its media type."""

    data: bytes
    media: str = BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """The end of a run."""

    exit_code: int | None = None
    outputs: Mapping[str, ToolOutput] = field(default_factory=dict)
    cut: tuple[str, ...] = ()
    failure: Failed = ""
    words: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateQuestion:
    """What the gate is asked about an order. `annotations` and `declared` are those of `aver.ask`."""

    type: str
    """One of the gate's action types."""
    tool: str = ""
    """The name by which the gate knows the tool; empty where type and arguments say everything."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    diff: str | None = None
    annotations: Mapping[str, Any] = field(default_factory=dict)
    declared: tuple[str, ...] | None = None

    def build_action(self, order: ToolOrder, *, caller: str, session: str, description: str = "") -> Action:
        """Build the action that the gate judges. `session` is the trace, `caller` the executor's name."""
        return Action(
            type=self.type,
            tool=self.tool,
            arguments=dict(self.arguments),
            files=self.files,
            diff=self.diff,
            description=description,
            caller=caller,
            session=session,
            workspace=order.workspace,
            call_id=order.call_id,
        )


class Tool(Protocol):
    """A tool. Both methods get the same order."""

    def ask_about(self, order: ToolOrder) -> GateQuestion:
        """Return the question for the gate. Raises `BadInput` for arguments that the tool does not take."""
        ...

    def run(self, order: ToolOrder) -> ToolResult:
        """Carry the order out."""
        ...


class ToolBox:
    """Tools by their names. A session takes one, and knows of no other tool."""

    def __init__(self, tools: Mapping[str, Tool]) -> None:
        for name in tools:
            if not name or len(name) > NAME_MAX or not name.isprintable():
                raise BadInput(f"{ascii(name)[:80]} is no name of a tool", advice=f"use 1 to {NAME_MAX} characters")
        self._tools = dict(tools)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tools, sorted."""
        return tuple(sorted(self._tools))

    def ask_about(self, order: ToolOrder) -> GateQuestion:
        """Return the question for the gate. Raises `BadInput` for an unknown tool or wrong arguments."""
        found = self._tools.get(order.tool)
        if found is None:
            advice = f"known are {', '.join(self.names)}" if self._tools else "this session has no tools"
            raise BadInput(f"there is no tool {ascii(order.tool)[:80]}", advice=advice)
        return found.ask_about(order)

    def run(self, order: ToolOrder) -> ToolResult:
        """Carry the order out. A tool that raises gives a result with the failure `ERROR`."""
        try:
            # Once more: the caller may have asked about another order.
            self.ask_about(order)
            return self._tools[order.tool].run(order)
        except AverError as error:
            debug("protocol", "tool %s failed: %s", order.tool, error)
            return fail_tool("ERROR", str(error))
        except Exception as error:  # noqa: BLE001 - a tool is foreign code; its failure is a result
            debug("protocol", "tool %s raised %s", order.tool, type(error).__name__)
            return fail_tool("ERROR", f"{type(error).__name__}: {error}")

    def with_tools(self, more: Mapping[str, Tool]) -> ToolBox:
        """Return a box with more tools. A name that is there already is replaced."""
        return ToolBox({**self._tools, **more})


def fail_tool(
    code: Literal["TIMEOUT", "ERROR"], words: str, outputs: Mapping[str, ToolOutput] | None = None
) -> ToolResult:
    """Return the result of a tool that did not end by itself."""
    return ToolResult(failure=code, words=words[:WORDS_MAX], outputs=outputs or {})


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
