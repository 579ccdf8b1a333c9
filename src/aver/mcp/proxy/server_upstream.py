"""The request of an act to the server behind the proxy: sent once, by the executor, in the thread of the act.

The executor knows the inputs that were judged. The rest of a call is known to the proxy alone: the client's id, the
keys of the protocol in `_meta`, whether the client has cancelled it. `CURRENT_CALL` leads from one to the other: an act
and its effect run in one thread, because the proxy's executor is in this process.

A request ends in one of these ways:

    the server answers                          the result; `EFFECT_FAILED` for an error of JSON-RPC
    the client cancelled it before it was sent  `EFFECT_FAILED`: it was not sent
    the tool has another definition now         `TOOL_CHANGED`: it was not sent
    the server takes no messages any more       `EFFECT_FAILED`: it was not sent
    the server ends, or the client cancels it   `OUTCOME_UNKNOWN`: nobody knows whether it happened
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from aver.errors import Refused, Unavailable
from aver.gateway.calls.upstream import ToolDefinition, UpstreamCall
from aver.gateway.executor.executor import EFFECT_FAILED, OUTCOME_UNKNOWN
from aver.mcp.proxy.messages import keep_protocol_meta
from aver.mcp.proxy.relay import ClientCall, Relay
from aver.mcp.proxy.tool_book import ToolBook

CALL_METHOD = "tools/call"
READ_METHOD = "resources/read"

ERROR_WORDS_MAX = 400
"""Characters of a server's own words about an error that a record and a refusal repeat."""

CURRENT_CALL: ContextVar[ClientCall] = ContextVar("CURRENT_CALL")
"""The call whose act runs in this thread."""


class ServerUpstream:
    """The server behind a relay, as a gateway sees it."""

    def __init__(self, relay: Relay, book: ToolBook) -> None:
        self._relay = relay
        self._book = book

    def find_tool(self, name: str) -> ToolDefinition | None:
        """Return the present definition of a tool, as the server has given it last."""
        return self._book.find(name)

    def call(self, call: UpstreamCall) -> Mapping[str, Any]:
        """Send a call, and return the server's result. Raises `Refused`, as the table above says."""
        if self._book.find_digest(call.tool) != CURRENT_CALL.get().definition:
            words = "the server has changed the definition of the tool since the call was judged, and it was not sent"
            raise Refused("TOOL_CHANGED", words, advice="list the tools again, then make the call again")
        return self._request(CALL_METHOD, {**call.params, "name": call.tool, "arguments": call.arguments})

    def read(self, uri: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Read a resource, and return the server's result. Raises `Refused`."""
        return self._request(READ_METHOD, {**params, "uri": uri})

    def _request(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        call = CURRENT_CALL.get()
        if call.cancelled.is_set():
            raise Refused(EFFECT_FAILED, "the client has cancelled the call before it was sent")
        meta = keep_protocol_meta(call.params.get("_meta"))
        try:
            waiting = self._relay.request(method, {**params, "_meta": meta} if meta else params, call)
        except Unavailable as error:
            raise Refused(EFFECT_FAILED, f"the call was not sent: {error.message}") from error
        message = self._relay.await_answer(waiting, cancelled=call.cancelled)
        if message is None:
            raise Refused(OUTCOME_UNKNOWN, f"the call was sent, and nobody knows what became of it: {waiting.failure}")
        call.answer = message
        reported, result = message.value.get("error"), message.value.get("result")
        if reported is not None:
            words = reported.get("message") if isinstance(reported, dict) else reported
            raise Refused(EFFECT_FAILED, f"the server reports an error: {str(words)[:ERROR_WORDS_MAX]}")
        if not isinstance(result, dict):
            raise Refused(EFFECT_FAILED, "the server's answer has no result that is an object")
        return result
