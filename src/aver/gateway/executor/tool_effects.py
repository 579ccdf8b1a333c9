"""The effects of `CallTool` and `ReadResource`: one request to an MCP server, or to functions that stand for one.

An `Upstream` is whoever answers the request. `aver proxy` has one for the server behind it. A program that has its
tools as functions of its own has one, too; then its calls are acts like all others:

    effects = ToolEffects({"shop": upstream}).by_intent
    gateway = open_embedded(ledger, settings, workspace=".", effects=effects, annotate=…, close=ledger.close)
    gateway.act({"intent_id": "CallTool", "inputs": {"server": "shop", "tool": "refund", "arguments": {"order": 7}}, …})

The upstream gets the bound inputs as they were judged, and nothing else. The act's outcome has, as its result:

    {"sha256": …, "size": 2150, "is_error": false, "json": "{\\"content\\":…}"}

`sha256` and `size` are those of the answer's bytes. `json` is the answer as JSON text, masked like all of a record. It
is left out where it has more than `RESULT_KEPT_MAX` bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Protocol

from aver.errors import Refused
from aver.fast_dataclass import dataclass
from aver.gateway.executor.executor import EFFECT_FAILED, EXECUTOR_UNAVAILABLE, ActEffect, EffectDone, EffectOrder

CALL_METHOD = "tools/call"
READ_METHOD = "resources/read"

RESULT_KEPT_MAX = 1024 * 1024
"""Most bytes of an answer that a record keeps. Of a longer one it has the digest and the size."""

ERROR_WORDS_MAX = 400
"""Characters of a server's own words about an error that a record and a refusal repeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamAnswer:
    """The answer to a request: a result, or the error of JSON-RPC that came in its place."""

    result: Any = None
    error: Mapping[str, Any] | None = None
    raw: bytes = b""
    """The bytes of the answer as they came; empty where it came as a value."""

    @property
    def is_error(self) -> bool:
        """Whether the tool itself reports an error."""
        return isinstance(self.result, Mapping) and self.result.get("isError") is True


class Upstream(Protocol):
    """An MCP server, or functions in this process that stand for one."""

    def request(self, method: str, params: Mapping[str, Any]) -> UpstreamAnswer:
        """Send one request, once, and return its answer.

        Raises `Refused`: with `EFFECT_FAILED` where it has certainly not reached the server, with `TOOL_CHANGED` where
        the tool is not the one that was judged, with `OUTCOME_UNKNOWN` where nobody knows what became of it.
        """


class ToolEffects:
    """The two effects, for upstreams by the names of their servers."""

    def __init__(self, upstreams: Mapping[str, Upstream]) -> None:
        self._upstreams = upstreams

    @property
    def by_intent(self) -> dict[str, ActEffect]:
        """The effects by intent, as an executor takes them."""
        return {"CallTool": self.call_tool, "ReadResource": self.read_resource}

    def call_tool(self, order: EffectOrder) -> EffectDone:
        """Call a tool, once."""
        inputs = order.inputs
        params = {**inputs["params"], "name": inputs["tool"], "arguments": inputs["arguments"]}
        return self._send(order, CALL_METHOD, params, f"called {inputs['tool']}")

    def read_resource(self, order: EffectOrder) -> EffectDone:
        """Read a resource."""
        return self._send(order, READ_METHOD, {**order.inputs["params"], "uri": order.inputs["uri"]}, "read a resource")

    def _send(self, order: EffectOrder, method: str, params: Mapping[str, Any], summary: str) -> EffectDone:
        upstream = self._upstreams.get(order.inputs["server"])
        if upstream is None:
            raise Refused(EXECUTOR_UNAVAILABLE, f"this executor has no server {order.inputs['server']!r}")
        answer = upstream.request(method, params)
        if answer.error is not None:
            words = str(answer.error.get("message", ""))[:ERROR_WORDS_MAX]
            raise Refused(EFFECT_FAILED, f"the server reports an error: {words}")
        text = json.dumps(answer.result, separators=(",", ":")) if len(answer.raw) <= RESULT_KEPT_MAX else ""
        data = answer.raw or text.encode("ascii")
        recorded: dict[str, Any] = {
            "sha256": hashlib.sha256(data).hexdigest(),
            "size": len(data),
            "is_error": answer.is_error,
        }
        # As a text: an object in it must not pass for a reference to a value of the ledger.
        if text and len(text) <= RESULT_KEPT_MAX:
            recorded["json"] = text
        return EffectDone(summary, {"result": answer.result}, recorded=recorded)
