"""Python functions as tools of an executor.

    @aver.tool(effects=["read"])
    def lookup_order(order: str) -> dict: ...

    tools = function_tools({"lookup_order": lookup_order})

The gate knows a function by its name and by what `aver.tool` declares; one without a declaration counts as unknown. The
function gets the intent's arguments by name. Its value becomes the output `result`: bytes and texts as they are, all
else as JSON. An exception is the failure `ERROR`.

A function runs on a thread of its own. Python cannot end a thread, so a function that takes too long is left behind:
the failure says that it may still run.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Mapping
from typing import Any

from aver.errors import BadInput
from aver.gate.own_tools import find_declared_effects
from aver.protocol.runner import CallDescription, ToolFailure, ToolResult, encode_value
from aver.protocol.tools.tool import Tool, ToolOrder, fail_tool


class FunctionTool:
    """One function."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        if not callable(function) or inspect.iscoroutinefunction(function):
            raise BadInput(f"the tool {name} must be a plain function", advice="wrap a coroutine in asyncio.run")
        self._name = name
        self._function = function
        try:
            self._signature: inspect.Signature | None = inspect.signature(function)
        except (TypeError, ValueError):  # Some built-in functions have none.
            self._signature = None

    def describe(self, order: ToolOrder) -> CallDescription:
        """Return the question for the gate. Raises `BadInput` where the function does not take these arguments."""
        if self._signature is not None:
            try:
                self._signature.bind(**order.arguments)
            except TypeError as error:
                raise BadInput(f"{self._name}: {error}") from error
        return CallDescription(
            type="tool_call",
            tool=self._name,
            arguments=dict(order.arguments),
            declared=find_declared_effects(self._function),
        )

    def run(self, order: ToolOrder) -> ToolResult | ToolFailure:
        """Call the function."""
        ended: list[ToolResult | ToolFailure] = []

        def call() -> None:
            try:
                ended.append(build_result(self._function(**order.arguments), order.limits.output_max))
            except BaseException as error:  # noqa: BLE001 - foreign code; its failure is a result
                ended.append(fail_tool("ERROR", f"{type(error).__name__}: {error}"))

        thread = threading.Thread(target=call, name=f"aver-tool-{self._name}", daemon=True)
        thread.start()
        thread.join(order.limits.seconds)
        if not ended:
            words = f"it did not end within {order.limits.seconds:g} seconds, and may still run"
            return fail_tool("TIMEOUT", words)
        return ended[0]


def function_tools(functions: Mapping[str, Callable[..., Any]]) -> dict[str, Tool]:
    """Return the functions as tools, by their names."""
    return {name: FunctionTool(name, function) for name, function in functions.items()}


def build_result(value: Any, output_max: int) -> ToolResult | ToolFailure:
    """Return the result of a function from its value. A `ToolResult` or `ToolFailure` is taken as it is."""
    if isinstance(value, ToolResult | ToolFailure):
        return value
    data, media = encode_value(value)
    cut = ("result",) if len(data) > output_max else ()
    return ToolResult(0, {"result": (data[:output_max], media)}, cut)
