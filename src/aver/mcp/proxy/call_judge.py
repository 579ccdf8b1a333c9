"""One call of the client: it becomes an act of the gateway, and the act's end becomes the answer.

1. bind     server, tool, arguments and the rest of `params` but `_meta` are the inputs of the intent `CallTool`;
            server, URI and the rest are those of `ReadResource`
2. PREVIEW  both policy servers decide, with the annotations of the tool's present definition
3. ask      where a person must approve: wait for the answer, and send the client progress meanwhile
4. COMMIT   the executor in this process sends the request (`aver.mcp.proxy.server_upstream`), and seals the outcome
5. answer   the server's result as it came, but for secrets, which stay behind handles (`aver.gateway.handles`); for a
            refusal, a result with `isError`, the reason and the next step

If nobody has answered in time, the refusal names the request for approval. The same call, made again later, meets the
answer that came in the meantime.

The result of a call whose outcome could not be sealed is kept back: the client learns that the call was made.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from aver.errors import AverError
from aver.gate.approvals import load_request, wait_for_answer
from aver.gateway.act_records import IngressNote
from aver.gateway.acts.visit import Door
from aver.gateway.codes import OK, REQUIRE_CONFIRM, load_reason_codes
from aver.gateway.gateway import Gateway
from aver.log import debug
from aver.mcp.proxy.messages import (
    PROGRESS,
    REFUSED_ERROR,
    ServerMessage,
    build_error,
    build_tool_refusal,
    keep_protocol_meta,
    write_message,
)
from aver.mcp.proxy.relay import ClientCall, Relay
from aver.mcp.proxy.server_upstream import CURRENT_CALL
from aver.mcp.proxy.tool_book import ToolBook

LOOK_SECONDS = 1.0
"""How often the proxy looks for a person's answer, and whether the client has cancelled the call."""

PROGRESS_SECONDS = 5.0
"""Time between two messages of progress. Clients that give up on silent calls wait longer than that."""

PROGRESS_STEP = 1e-6
"""By how much the progress grows while a person is asked. It must stay below what the server reports later."""

_CALL = "tools/call"


class CallJudge:
    """Answers the calls of one client. Safe to use from several threads."""

    def __init__(
        self,
        relay: Relay,
        book: ToolBook,
        *,
        server: str,
        open_gateway: Callable[[], Gateway],
        find_session: Callable[[], str],
        wait: float,
    ) -> None:
        """`open_gateway` is called at the first call, `find_session` at each: it names the session of the client."""
        self._relay = relay
        self._book = book
        self._server = server
        self._open_gateway = open_gateway
        self._find_session = find_session
        self._wait = wait
        self._opening = threading.Lock()
        self._gateway: Gateway | None = None

    def close(self) -> None:
        if self._gateway is not None:
            self._gateway.close()

    def answer(self, call: ClientCall) -> bytes | None:
        """Judge a call, carry it out where it may be, and return the answer to the client."""
        token = CURRENT_CALL.set(call)
        try:
            gateway = self._get_gateway()
            door = Door(session=self._find_session(), ingress=IngressNote("proxy", self._server))
            document = self._bind(call)
            if call.method == _CALL:
                tool = str(call.params.get("name", ""))
                self._relay.learn_tools(tool, keep_protocol_meta(call.params.get("_meta")))
                call.definition = self._book.find_digest(tool)
            if call.cancelled.is_set():
                return None
            envelope = gateway.act(document, door=door)
            if envelope["reason_code"] == REQUIRE_CONFIRM and self._await_person(gateway, call, envelope):
                envelope = self._commit(gateway, document, envelope, door)
        except AverError as error:
            debug("mcp", "refused a call: %s", error.message)
            return self._refuse(call, "EXECUTOR_UNAVAILABLE", f"nothing was done: {error}", {})
        finally:
            CURRENT_CALL.reset(token)
        if call.answer is not None and (envelope["status"] == OK or "error" in call.answer.value):
            assert call.waiting is not None
            shown = call.answer.value
            if "result" in shown:  # The gateway has put handles in the place of secrets.
                shown = {**shown, "result": envelope["data"].get("result")}
            if "error" in shown:
                told = gateway.cover_secrets(shown["error"], session=door.session, **self._name_caller())
                shown = {**shown, "error": told}
            return self._relay.address(_replace_value(call.answer, shown), call.waiting)
        return self._refuse(call, envelope["reason_code"], envelope["summary"], envelope["data"])

    def cover(self, message: ServerMessage) -> ServerMessage:
        """Return an answer that ends no call of this client, such as the result of a task, with handles for secrets."""
        gateway, session = self._get_gateway(), self._find_session()
        whose = {"session": session, **self._name_caller()}
        covered = {
            name: gateway.cover_secrets(value, **whose) if name in ("result", "error") else value
            for name, value in message.value.items()
        }
        return _replace_value(message, covered)

    def _name_caller(self) -> dict[str, str]:
        return {"caller": f"agent:{self._relay.client_name or 'unknown'}", "label": f"mcp__{self._server}"}

    def _get_gateway(self) -> Gateway:
        with self._opening:
            self._gateway = self._gateway or self._open_gateway()
            return self._gateway

    def _bind(self, call: ClientCall) -> dict[str, Any]:
        """Build the act of a call. The gateway refuses one whose values it cannot bind."""
        rest = {name: value for name, value in call.params.items() if name != "_meta"}
        inputs: dict[str, Any] = {"server": self._server}
        if call.method == _CALL:
            inputs |= {"tool": rest.pop("name", None), "arguments": rest.pop("arguments", None) or {}}
        else:
            inputs |= {"uri": rest.pop("uri", None)}
        intent = "CallTool" if call.method == _CALL else "ReadResource"
        caller = self._name_caller()["caller"]
        return {"intent_id": intent, "inputs": {**inputs, "params": rest}, "constraints": {}, "caller": caller}

    # --- a person's answer

    def _await_person(self, gateway: Gateway, call: ClientCall, envelope: Mapping[str, Any]) -> bool:
        """Wait for a person, as long as the client does. Returns whether the call was approved."""
        approval = envelope["data"].get("approval")
        if not approval or self._wait <= 0:
            return False
        request = load_request(gateway.ledger, str(approval))
        ends = time.monotonic() + self._wait
        told, steps = -PROGRESS_SECONDS, 0
        while (left := ends - time.monotonic()) > 0 and not self._relay.closing.is_set():
            if call.cancelled.is_set():
                return False
            if time.monotonic() - told >= PROGRESS_SECONDS:
                told, steps = time.monotonic(), steps + 1
                self._tell_progress(call, steps, f"waits for a person's approval: aver approvals show {request.id[:8]}")
            outcome = wait_for_answer(gateway.ledger, request, min(left, LOOK_SECONDS))
            if outcome.state != "timeout":
                return outcome.allows
        return False

    def _tell_progress(self, call: ClientCall, step: int, words: str) -> None:
        if call.progress_token is None:
            return
        params = {"progressToken": call.progress_token, "progress": step * PROGRESS_STEP, "message": words}
        self._relay.reply({"jsonrpc": "2.0", "method": PROGRESS, "params": params})

    def _commit(
        self, gateway: Gateway, document: Mapping[str, Any], envelope: Mapping[str, Any], door: Door
    ) -> dict[str, Any]:
        """Commit the PREVIEW that a person has approved; where it has expired meanwhile, send the act again."""
        inputs = {**document["inputs"], "tx_id": envelope["data"]["tx_id"]}
        done = gateway.act({**document, "inputs": inputs}, door=door)
        return gateway.act(document, door=door) if done["reason_code"] == "TX_INVALID" else done

    # --- refusals

    def _refuse(self, call: ClientCall, code: str, summary: str, data: Mapping[str, Any]) -> bytes:
        """Build the answer to a call that was not made, or whose outcome nobody knows."""
        known = load_reason_codes()[code]
        approval = data.get("approval")
        next_step = NEXT_STEPS.get(code, known.advice)
        if code == REQUIRE_CONFIRM and approval:
            next_step = f"A person approves it with: aver approvals approve {approval}. Then make the same call again."
        text = f"Aver: {code}: {summary}. {next_step}"
        told = {"reason_code": code, "action_id": data.get("action_id"), "approval": approval}
        told = {name: value for name, value in told.items() if value}
        if call.method == _CALL:
            return write_message(build_tool_refusal(call.id, text, told, is_modern=call.is_modern))
        return write_message(build_error(call.id, REFUSED_ERROR, text, told))


NEXT_STEPS = {
    REQUIRE_CONFIRM: "Tell the user: once a person can approve calls, make the same call again.",
    "EFFECT_FAILED": "The outcome's record says how. The same call can be made again.",
    "OUTCOME_UNKNOWN": "Look whether it happened before you make the call again: Aver does not try it again.",
    "EXECUTOR_UNAVAILABLE": "If the call was made, aver show says what became of it.",
    "WORKSPACE_CHANGED": "Make the call again.",
    "BAD_COMMIT_PROOF": "Make the call again. If it happens again, the operator looks up the detail.",
    "MISSING_EVIDENCE": "Make the call again. If it happens again, the operator looks at aver gateway status.",
    "REPLAY_DENY": "Look at the outcome of the first call. To do it again, make the call again.",
    "CAPSULE_REQUIRED": "The settings want a confined agent: the operator starts it with aver gateway run.",
}
"""The advice of codes whose own speaks of PREVIEW and COMMIT, which a client of MCP does not have."""


def _replace_value(message: ServerMessage, value: dict[str, Any]) -> ServerMessage:
    """Return a message with another value; the message itself, as it came, where the value is the same."""
    return message if value == message.value else ServerMessage(value, write_message(value))
