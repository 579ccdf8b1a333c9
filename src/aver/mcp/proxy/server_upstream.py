"""The request of an act to the server behind the proxy: sent once, by the executor, in the thread of the act.

The executor knows the inputs that were judged. The rest of a call is known to the proxy alone: the client's id, the
keys of the protocol in `_meta`, whether the client has cancelled it. `CURRENT_CALL` leads from one to the other: an act
and its effect run in one thread, because the proxy's executor is in this process.

A request ends in one of these ways:

    the server answers                          the answer
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
from aver.gateway.executor.executor import EFFECT_FAILED, OUTCOME_UNKNOWN
from aver.gateway.executor.tool_effects import CALL_METHOD, UpstreamAnswer
from aver.mcp.proxy.messages import keep_protocol_meta
from aver.mcp.proxy.relay import ClientCall, Relay
from aver.mcp.proxy.tool_book import ToolBook

CURRENT_CALL: ContextVar[ClientCall] = ContextVar("CURRENT_CALL")
"""The call whose act runs in this thread."""


class ServerUpstream:
    """The server behind a relay, as an executor sees it."""

    def __init__(self, relay: Relay, book: ToolBook) -> None:
        self._relay = relay
        self._book = book

    def request(self, method: str, params: Mapping[str, Any]) -> UpstreamAnswer:
        """Send the request of the current call, and wait for its answer. Raises `Refused`."""
        call = CURRENT_CALL.get()
        if call.cancelled.is_set():
            raise Refused(EFFECT_FAILED, "the client has cancelled the call before it was sent")
        if method == CALL_METHOD and self._book.find_digest(str(params["name"])) != call.definition:
            words = "the server has changed the definition of the tool since the call was judged, and it was not sent"
            raise Refused("TOOL_CHANGED", words, advice="list the tools again, then make the call again")
        meta = keep_protocol_meta(call.params.get("_meta"))
        try:
            waiting = self._relay.request(method, {**params, "_meta": meta} if meta else params, call)
        except Unavailable as error:
            raise Refused(EFFECT_FAILED, f"the call was not sent: {error.message}") from error
        message = self._relay.await_answer(waiting, cancelled=call.cancelled)
        if message is None:
            raise Refused(OUTCOME_UNKNOWN, f"the call was sent, and nobody knows what became of it: {waiting.failure}")
        call.answer = message
        reported = message.value.get("error")
        if reported is not None:
            return UpstreamAnswer(error=reported if isinstance(reported, dict) else {"message": str(reported)})
        return UpstreamAnswer(result=message.value.get("result"), raw=message.line)
