"""The effects of `CallTool` and `ReadResource`: a call of a server's tool, in this process or behind the proxy.

The server's result goes to the caller as it came. The record has the same result as JSON text, with secrets masked: the
session's later acts are judged by the values that were read (`aver.gateway.calls.session_origins`). Of a result beyond
`RESULT_MAX` the record has the digest and the size alone, so nothing in it can be the origin of a value.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from aver.capsule.canonical import canonical_bytes
from aver.errors import NotCanonical
from aver.gateway.calls.upstream import Upstream, UpstreamCall
from aver.gateway.effects.preconditions import check_server
from aver.gateway.executor.executor import ActEffect, EffectDone, EffectOrder

RESULT_MAX = 4 * 1024 * 1024
"""Largest result that a record holds, in canonical bytes. It is a blob of the ledger."""


class ToolEffects:
    """Calls of the tools of these servers. The mapping is the gateway's own: servers may join while it is open."""

    def __init__(self, upstreams: Mapping[str, Upstream]) -> None:
        self._upstreams = upstreams

    @property
    def by_intent(self) -> dict[str, ActEffect]:
        """The effects by intent, as an executor takes them."""
        return {"CallTool": self.call, "ReadResource": self.read}

    def call(self, order: EffectOrder) -> EffectDone:
        """Make the call that was judged, and return the server's result."""
        inputs = order.inputs
        call = UpstreamCall(inputs["tool"], inputs["arguments"], inputs["params"], order.action_id)
        result = dict(self._find_upstream(order).call(call))
        told = {"server": inputs["server"], "tool": call.tool, "is_error": result.get("isError") is True}
        return _report(f"called {call.tool}", told, result)

    def read(self, order: EffectOrder) -> EffectDone:
        """Read the resource that was judged, and return the server's result."""
        inputs = order.inputs
        result = dict(self._find_upstream(order).read(inputs["uri"], inputs["params"]))
        return _report("read a resource", {"server": inputs["server"], "uri": inputs["uri"]}, result)

    def _find_upstream(self, order: EffectOrder) -> Upstream:
        check_server(order.inputs["server"], self._upstreams)
        return self._upstreams[order.inputs["server"]]


def _report(summary: str, told: dict[str, Any], result: dict[str, Any]) -> EffectDone:
    """Build the report of an effect: the result for the caller, and as much of it as the record holds."""
    try:
        kept = canonical_bytes(result)
    except NotCanonical:  # The caller gets it. No value in it has an origin.
        return EffectDone(summary, {**told, "result": result}, recorded={**told, "size": None})
    recorded = {**told, "size": len(kept), "sha256": hashlib.sha256(kept).hexdigest()}
    if len(kept) <= RESULT_MAX:
        recorded["result"] = kept.decode()
    return EffectDone(summary, {**told, "result": result}, recorded=recorded)
