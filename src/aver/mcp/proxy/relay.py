"""The relay: every message of either side, and which request waits for which answer.

From the client:

    tools/call, resources/read          become acts (`aver.mcp.proxy.call_judge`), each in a thread of its own
    requests and notifications of MCP   go on to the server
    answers to the server's requests    go on, if the server waits for one with that id
    all else                            is refused, or dropped where nobody waits for an answer: batches, calls as
                                        notifications, methods that MCP does not have

From the server everything goes to the client, but answers with an id that nobody waits for, and messages that are a
request and an answer at once.

A request goes to the server with the client's own id, so that the answer can pass as it came. If an earlier request
with that id still waits, the proxy gives the new one an id of its own: both are answered.

The relay learns tools from each list that passes. Before the first call of a tool that it does not know, it asks for
the list itself.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from aver.errors import AverError, Unavailable
from aver.log import debug
from aver.mcp.proxy.messages import (
    CANCELLED,
    CLIENT_INFO_KEY,
    INTERNAL_ERROR,
    JUDGED,
    METHOD_NOT_FOUND,
    PASSED,
    PASSED_NOTIFICATIONS,
    PROTOCOL_VERSION_KEY,
    MessageProblem,
    RequestId,
    ServerMessage,
    build_error,
    build_request,
    find_progress_token,
    is_request_id,
    read_client_message,
    read_server_line,
    write_message,
)
from aver.mcp.proxy.server_link import LinkEvents, ServerLink
from aver.mcp.proxy.tool_book import TOOLS_MAX, ToolBook
from aver.text import clip_text, to_one_line

CALLS_AT_ONCE = 32
"""As many calls as Aver's own MCP server runs at a time. Further ones wait."""

LIST_SECONDS = 60.0
"""How long a server may take to list its tools, where the proxy asks for them."""

CANCEL_SECONDS = 5.0
"""How long the proxy waits for the answer to a call that the client has cancelled."""

SERVER_REQUESTS_MAX = 10_000
"""Most requests of a server that the client has not answered. A server can send any number."""

NAME_MAX = 100
"""Characters of a client's name that become part of the caller's name."""

TOLD_MAX = 20
"""How often the proxy tells of one kind of message that it drops. A server can send any number."""

_LIST_TOOLS = "tools/list"
_TASK_RESULT = "tasks/result"
_TOOLS_CHANGED = "notifications/tools/list_changed"


class ClientCall:
    """A call of the client, from its request to its answer."""

    def __init__(self, number: RequestId, method: str, params: Mapping[str, Any]) -> None:
        self.id = number
        self.method = method
        self.params = params
        self.progress_token = find_progress_token(params)
        meta = params.get("_meta")
        self.is_modern = isinstance(meta, dict) and PROTOCOL_VERSION_KEY in meta
        self.cancelled = threading.Event()
        self.definition = ""
        """The digest of the tool's definition by which the call is judged."""
        self.answer: ServerMessage | None = None
        """The server's answer, once there is one."""
        self.waiting: WaitingRequest | None = None
        """The request to the server, once it was sent."""

    def cancel(self) -> None:
        self.cancelled.set()
        if self.waiting is not None:
            self.waiting.changed.set()


class WaitingRequest:
    """A request that was sent to the server and has no answer yet."""

    def __init__(self, number: RequestId, method: str, client_id: RequestId | None) -> None:
        self.id = number
        self.method = method
        self.client_id = client_id
        """The id that the client gave to it; None for a request of the proxy itself."""
        self.is_passed = False
        """Whether its answer goes to the client as soon as it comes. No act waits for it."""
        self.answer: ServerMessage | None = None
        self.failure = ""
        """Why there will be no answer."""
        self.changed = threading.Event()


class AnswersCalls(Protocol):
    """Who answers calls of the client: `aver.mcp.proxy.call_judge.CallJudge`."""

    def answer(self, call: ClientCall) -> bytes | None:
        """Return the answer to a call; None where the client does not wait for one any more."""

    def cover(self, message: ServerMessage) -> ServerMessage:
        """Return an answer with handles in the place of secrets. Raises `AverError` where that cannot be done."""


class Relay:
    """Stands between one client and one server. `write` sends a line to the client, `tell` a note to the person."""

    def __init__(
        self, link: ServerLink, book: ToolBook, *, write: Callable[[bytes], None], tell: Callable[[str], None]
    ) -> None:
        self._link = link
        self._book = book
        self._write = write
        self._tell = tell
        self._judge: AnswersCalls | None = None
        self._calls: dict[str, list[ClientCall]] = {}
        self._waiting: dict[str, WaitingRequest] = {}
        self._server_requests: set[str] = set()
        self._guard = threading.Lock()
        """Guards the three tables above."""
        self._listing = threading.Lock()
        self._pool = ThreadPoolExecutor(CALLS_AT_ONCE, thread_name_prefix="call")
        self._own_ids = 0
        self._told: dict[str, int] = {}
        self.client_name = ""
        self.ended = ""
        """Why the server sends nothing any more; empty while it does."""
        self.closing = threading.Event()
        """Set as soon as nobody waits for answers any more."""
        self.finished = threading.Event()
        """Set when there is nothing left to relay."""

    def start(self, judge: AnswersCalls) -> None:
        """Begin. Raises `Unavailable` where the server cannot be started."""
        self._judge = judge
        self._link.start(LinkEvents(self.take_from_server, self._lose_answer, self._end_server))

    # --- from the client

    def take_from_client(self, line: bytes) -> None:
        """Handle one line of the client."""
        if not line.strip():
            return
        try:
            message = read_client_message(line)
        except MessageProblem as problem:
            debug("mcp", "refused a message of the client: %s", problem.words)
            for number in problem.ids:
                self.reply(build_error(number, problem.code, problem.words))
            return
        method, number = message.get("method"), message.get("id")
        if method is None:
            self._pass_answer(message)
        elif "id" not in message:
            self._pass_notification(message)
        elif method in JUDGED:
            self._begin_call(ClientCall(message["id"], method, message.get("params", {})))
        elif method in PASSED:
            self._pass_request(message)
        else:
            words = (
                f"Aver passes no request of the method {clip_text(to_one_line(method), NAME_MAX)!r}: it is not of MCP"
            )
            debug("mcp", "refused: %s", words)
            self.reply(build_error(number, METHOD_NOT_FOUND, words))

    def _pass_answer(self, message: Mapping[str, Any]) -> None:
        key = _key(message["id"])
        with self._guard:
            is_known = key in self._server_requests
            self._server_requests.discard(key)
        if is_known:
            self._send_on(message)
        else:
            self._tell_of("an answer of the client was dropped: the server waits for none with its id")

    def _pass_notification(self, message: Mapping[str, Any]) -> None:
        method = str(message["method"])
        if method not in PASSED_NOTIFICATIONS:
            self._tell_of(f"a notification of the client was dropped: {clip_text(to_one_line(method), NAME_MAX)}")
        elif method == CANCELLED:
            self._cancel(message)
        else:
            self._send_on(message)

    def _cancel(self, message: Mapping[str, Any]) -> None:
        """Cancel a call before it reaches the server, or tell the server, by the id that it knows."""
        params = message.get("params", {})
        number = params.get("requestId")
        with self._guard:
            calls = list(self._calls.get(_key(number), ()))
            sent = [each for each in self._waiting.values() if each.client_id == number and each.client_id is not None]
            for each in sent:
                if each.is_passed:  # The server does not answer it any more.
                    self._waiting.pop(_key(each.id), None)
        for each in sent:
            self._send_on({**message, "params": {**params, "requestId": each.id}})
        for call in calls:
            debug("mcp", "the client has cancelled the call %r", call.id)
            call.cancel()

    def _pass_request(self, message: Mapping[str, Any]) -> None:
        if message["method"] == "initialize":
            self._note_client(message.get("params", {}).get("clientInfo"))
        waiting = self._register(message["method"], message["id"], is_passed=True)
        try:
            self._link.send(write_message({**message, "id": waiting.id}))
        except Unavailable as error:
            with self._guard:
                self._waiting.pop(_key(waiting.id), None)
            self.reply(build_error(message["id"], INTERNAL_ERROR, error.message))

    def _send_on(self, message: Mapping[str, Any]) -> None:
        try:
            self._link.send(write_message(message))
        except Unavailable as error:
            debug("mcp", "a message was not sent: %s", error.message)

    def _note_client(self, info: Any) -> None:
        name = info.get("name") if isinstance(info, dict) else None
        if isinstance(name, str) and name.strip():
            self.client_name = clip_text(to_one_line(name), NAME_MAX)

    # --- calls

    def _begin_call(self, call: ClientCall) -> None:
        meta = call.params.get("_meta")
        if call.is_modern and isinstance(meta, dict):
            self._note_client(meta.get(CLIENT_INFO_KEY))
        with self._guard:
            self._calls.setdefault(_key(call.id), []).append(call)
        try:
            self._pool.submit(self._answer_call, call)
        except RuntimeError:  # The pool was closed meanwhile: nobody waits any more.
            self._forget_call(call)

    def _answer_call(self, call: ClientCall) -> None:
        assert self._judge is not None
        try:
            line = self._judge.answer(call)
        except Exception as error:  # noqa: BLE001 - a defect here must not leave the client without an answer
            debug("mcp", "a call failed: %r", error)
            # Only the type: the text of an unexpected error may contain a secret, and the agent would see it.
            words = f"internal error: {type(error).__name__}; nothing may be taken as done"
            line = write_message(build_error(call.id, INTERNAL_ERROR, words))
        finally:
            self._forget_call(call)
        if line is not None and not call.cancelled.is_set():
            self._write(line)

    def _forget_call(self, call: ClientCall) -> None:
        with self._guard:
            same = self._calls.get(_key(call.id), [])
            if call in same:
                same.remove(call)
            if not same:
                self._calls.pop(_key(call.id), None)

    def request(self, method: str, params: Mapping[str, Any], call: ClientCall | None = None) -> WaitingRequest:
        """Send a request to the server, for a call or for the proxy itself. The caller waits with `await_answer`.

        Raises `Unavailable` where the server has certainly not got it.
        """
        waiting = self._register(method, None if call is None else call.id)
        if call is not None:
            call.waiting = waiting
        try:
            self._link.send(write_message(build_request(waiting.id, method, params)))
        except Unavailable:
            with self._guard:
                self._waiting.pop(_key(waiting.id), None)
            raise
        return waiting

    def await_answer(
        self, waiting: WaitingRequest, *, seconds: float | None = None, cancelled: threading.Event | None = None
    ) -> ServerMessage | None:
        """Wait for the answer to a request. None where none comes; then `failure` says why."""
        try:
            waiting.changed.wait(seconds)
            if waiting.answer is None and not waiting.failure and cancelled is not None and cancelled.is_set():
                # A server need not answer a cancelled request, and may have been faster.
                waiting.changed.clear()
                if waiting.answer is None and not waiting.failure:
                    waiting.changed.wait(CANCEL_SECONDS)
                waiting.failure = waiting.failure or "the client has cancelled the call, and no answer came"
            waiting.failure = waiting.failure or ("" if waiting.answer is not None else "no answer came in time")
            return waiting.answer
        finally:
            with self._guard:
                self._waiting.pop(_key(waiting.id), None)

    def _register(self, method: str, client_id: RequestId | None, *, is_passed: bool = False) -> WaitingRequest:
        with self._guard:
            number = client_id
            if number is None or _key(number) in self._waiting:
                self._own_ids += 1
                number = f"aver-{self._own_ids}-{secrets.token_hex(8)}"
            waiting = WaitingRequest(number, method, client_id)
            waiting.is_passed = is_passed
            self._waiting[_key(number)] = waiting
            if self.ended:
                waiting.failure = self.ended
                waiting.changed.set()
        return waiting

    def learn_tools(self, tool: str, meta: Mapping[str, Any]) -> None:
        """Make sure that the present definition of a tool is known, if the server gives one.

        `meta` is the `_meta` of the call: servers of newer versions want it on every request. Raises `AverError` where
        the definitions that were first seen cannot be read or kept.
        """
        with self._listing:
            cursor, count = None, 0
            while not self._book.has(tool) and count <= TOOLS_MAX:
                given = {"_meta": {name: value for name, value in meta.items() if name != "progressToken"}}
                asked = given if given["_meta"] else {}
                waiting = self.request(_LIST_TOOLS, asked if cursor is None else {**asked, "cursor": cursor})
                message = self.await_answer(waiting, seconds=LIST_SECONDS)
                result = None if message is None else message.value.get("result")
                if not isinstance(result, dict) or not isinstance(result.get("tools"), list):
                    return
                self._learn(result["tools"])
                cursor, count = result.get("nextCursor"), count + len(result["tools"]) + 1
                if not isinstance(cursor, str):
                    return

    def _learn(self, tools: Any) -> None:
        changed = self._book.learn(tools if isinstance(tools, list) else ())
        if changed:
            names = clip_text(to_one_line(", ".join(changed)), 400)
            self._tell_of(f"tools are not as they were first seen, and a person must approve their calls: {names}")

    # --- from the server

    def take_from_server(self, line: bytes) -> None:
        """Handle one line of the server."""
        try:
            messages = read_server_line(line)
        except MessageProblem as problem:
            shown = clip_text(to_one_line(line[:400].decode("utf-8", "replace")), 80)
            self._tell_of(f"a line of the server was dropped, because it is no message ({problem.words}): {shown}")
            return
        for message in messages:
            self._take_message(message)

    def _take_message(self, message: ServerMessage) -> None:
        value = message.value
        method, number = value.get("method"), value.get("id")
        if method is None:
            self._take_answer(message)
            return
        # A message that is a request and an answer at once: a client could take it for the result of a call, which
        # nobody would have sealed, and whose secrets no handle would cover.
        if not isinstance(method, str) or "result" in value or "error" in value:
            self._tell_of("a message of the server was dropped: it is neither a request nor an answer")
            return
        if "id" in value and not is_request_id(number):
            self._tell_of("a request of the server was dropped: its id is none")
            return
        if method == _TOOLS_CHANGED:
            self._book.forget_present()
        if "id" in value:
            with self._guard:
                is_full = len(self._server_requests) >= SERVER_REQUESTS_MAX
                if not is_full:
                    self._server_requests.add(_key(number))
            if is_full:
                self._tell_of("a request of the server was dropped: too many of its requests have no answer")
                return
        self._write(message.line)

    def _take_answer(self, message: ServerMessage) -> None:
        with self._guard:
            waiting = self._waiting.get(_key(message.value.get("id")))
            if waiting is not None and (waiting.is_passed or waiting.answer is not None):
                del self._waiting[_key(waiting.id)]
        if waiting is None or waiting.answer is not None:
            self._tell_of("an answer of the server was dropped: nobody waits for one with its id")
        elif waiting.is_passed:
            if waiting.method == _LIST_TOOLS and isinstance(message.value.get("result"), dict):
                try:
                    self._learn(message.value["result"].get("tools"))
                except AverError as error:  # A call finds the same trouble, and is refused.
                    self._tell_of(f"definitions of tools cannot be kept: {error.message}")
            self._pass_result(message, waiting)
        else:
            waiting.answer = message
            waiting.changed.set()

    def _pass_result(self, message: ServerMessage, waiting: WaitingRequest) -> None:
        """Send an answer of the server on. The result of a task is that of a call, so its secrets stay behind."""
        if waiting.method == _TASK_RESULT:
            assert self._judge is not None
            try:
                message = self._judge.cover(message)
            except AverError as error:
                self.reply(build_error(waiting.client_id, INTERNAL_ERROR, f"the result is kept back: {error.message}"))
                return
        self._write(self.address(message, waiting))

    @staticmethod
    def address(message: ServerMessage, waiting: WaitingRequest) -> bytes:
        """Return an answer for the client: as it came, unless the request had an id of the proxy's own."""
        if waiting.id == waiting.client_id:
            return message.line
        return write_message({**message.value, "id": waiting.client_id})

    def _lose_answer(self, number: RequestId, reason: str) -> None:
        """Tell the one who waits for an answer that it will not come."""
        with self._guard:
            waiting = self._waiting.get(_key(number))
        if waiting is not None:
            self._fail(waiting, reason)

    def _fail(self, waiting: WaitingRequest, reason: str) -> None:
        if waiting.is_passed:
            with self._guard:
                self._waiting.pop(_key(waiting.id), None)
            self.reply(build_error(waiting.client_id, INTERNAL_ERROR, reason))
        else:
            waiting.failure = reason
            waiting.changed.set()

    def _end_server(self, reason: str) -> None:
        """Tell everyone who waits that no answer will come."""
        with self._guard:
            self.ended = reason
            left = list(self._waiting.values())
        for waiting in left:
            self._fail(waiting, reason)
        self.finished.set()

    # --- the end

    def reply(self, message: Mapping[str, Any]) -> None:
        """Send a message of the proxy itself to the client."""
        self._write(write_message(message))

    def drain(self, seconds: float) -> None:
        """Wait for the calls that have begun; those that wait for a person end at once."""
        self.closing.set()
        deadline = threading.Event()
        for _ in range(max(1, int(seconds * 20))):
            with self._guard:
                if not self._calls:
                    return
            deadline.wait(0.05)

    def close(self) -> int:
        """End the server, let all calls end, and return the server's exit code."""
        self.closing.set()
        code = self._link.close()
        if not self.ended:
            self._end_server("the server was ended")
        self._pool.shutdown(wait=True, cancel_futures=True)
        return code

    def _tell_of(self, words: str) -> None:
        """Tell the person, but not for ever."""
        kind = words.partition(":")[0]
        self._told[kind] = self._told.get(kind, 0) + 1
        if self._told[kind] <= TOLD_MAX:
            self._tell(words)
        debug("mcp", "%s", words)


def _key(number: Any) -> str:
    """An id as a key: `1` and `"1"` are two ids."""
    return json.dumps(number)
