"""Acts of a gateway as tools of an executor.

`protocol` knows no gateway. The caller hands in the gateway's `act`, which takes and returns JSON objects:

    tools = act_tools(gateway.act, ["WriteWorkspaceFile"])        # the tool `act.WriteWorkspaceFile`

The intent's arguments are the act's inputs. The two policy servers judge the act, besides the gate's decision about the
intent. The output `envelope` is the gateway's answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from aver.capsule.canonical import canonical_bytes
from aver.errors import BadInput
from aver.gate.effects.intents import INTENTS
from aver.protocol.runner import JSON, CallDescription, ToolFailure, ToolResult
from aver.protocol.tools.tool import Tool, ToolOrder, fail_tool

Act = Callable[[dict[str, Any]], dict[str, Any]]

PREFIX = "act."
CALLER = "protocol-executor"


class GatewayTool:
    """One intent of the gateway."""

    def __init__(self, act: Act, intent: str) -> None:
        if intent not in INTENTS:
            raise BadInput(f"{intent!r} is not an intent", advice=f"known are {', '.join(INTENTS)}")
        self._act = act
        self._intent = intent

    def describe(self, order: ToolOrder) -> CallDescription:
        """Return the question for the gate, by the intent's own table."""
        profile = INTENTS[self._intent]
        unknown = order.arguments.keys() - set(profile.inputs)
        if unknown:
            raise BadInput(f"{self._intent} takes {', '.join(profile.inputs)}, not {', '.join(sorted(unknown))}")
        path = order.arguments.get(profile.path) if profile.path else None
        return CallDescription(
            type=profile.type,
            # Without a tool's name, type and arguments say what happens; the intent's name is no tool of the tables.
            tool="" if profile.type in ("file_read", "code_edit", "file_delete", "shell_exec") else self._intent,
            arguments=dict(order.arguments),
            files=(path,) if isinstance(path, str) else (),
            declared=profile.effects or None,
        )

    def run(self, order: ToolOrder) -> ToolResult | ToolFailure:
        """Send the act. The gateway makes its PREVIEW and then its COMMIT, and answers with one envelope."""
        envelope = self._act(
            {"intent_id": self._intent, "inputs": dict(order.arguments), "constraints": {}, "caller": CALLER}
        )
        outputs = {"envelope": (canonical_bytes(envelope), JSON)}
        if envelope.get("status") == "OK":
            return ToolResult(0, outputs)
        return fail_tool("ERROR", f"{envelope.get('reason_code')}: {envelope.get('summary', '')}", outputs)


def act_tools(act: Act, intents: Iterable[str]) -> dict[str, Tool]:
    """Return a tool for each intent, named `act.<intent>`."""
    return {f"{PREFIX}{intent}": GatewayTool(act, intent) for intent in intents}
