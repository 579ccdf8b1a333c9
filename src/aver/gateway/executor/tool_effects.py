"""The effect of `CallTool`: the call of a tool, in this process or behind the proxy.

The server's result goes to the caller as it came. The record has the same result as JSON text, with secrets masked: the
session's later acts are judged by the values that were read (`aver.gateway.session_values`). Of a result beyond
`RESULT_MAX` the record has the digest and the size alone, so nothing in it can be the origin of a value.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from aver.capsule.canonical import canonical_bytes
from aver.errors import NotCanonical, Refused
from aver.gateway.executor.executor import ActEffect, EffectDone, EffectOrder
from aver.gateway.upstream import Upstream, UpstreamCall

RESULT_MAX = 4 * 1024 * 1024
"""Largest result that a record holds, in canonical bytes. It is a blob of the ledger."""


class ToolEffects:
    """Calls of the tools of these servers. The mapping is the gateway's own: servers may join while it is open."""

    def __init__(self, upstreams: Mapping[str, Upstream]) -> None:
        self._upstreams = upstreams

    @property
    def by_intent(self) -> dict[str, ActEffect]:
        """The effects by intent, as an executor takes them."""
        return {"CallTool": self.call}

    def call(self, order: EffectOrder) -> EffectDone:
        """Make the call that was judged, and return the server's result."""
        server, tool = order.inputs["server"], order.inputs["tool"]
        upstream = self._upstreams.get(server)
        if upstream is None:
            raise Refused("EFFECT_FAILED", f"no server {server!r} is connected to this gateway")
        result = dict(
            upstream.call(UpstreamCall(tool, order.inputs["arguments"], order.inputs["params"], order.action_id))
        )
        told = {"server": server, "tool": tool, "is_error": result.get("isError") is True}
        try:
            kept = canonical_bytes(result)
        except NotCanonical:  # The caller gets it. No value in it has an origin.
            return EffectDone(f"called {tool}", {**told, "result": result}, recorded={**told, "size": None})
        recorded = {**told, "size": len(kept), "sha256": hashlib.sha256(kept).hexdigest()}
        if len(kept) <= RESULT_MAX:
            recorded["result"] = kept.decode()
        return EffectDone(f"called {tool}", {**told, "result": result}, recorded=recorded)
