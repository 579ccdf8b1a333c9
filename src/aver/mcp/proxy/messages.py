"""Messages of JSON-RPC as the proxy reads and writes them, and which methods of MCP it lets pass.

A message from the client is read strictly, and never goes on as it came: the proxy writes it anew from the value that
it has read. So the server cannot read another message than the proxy did, for example by another choice of two equal
keys.

A message from the server goes to the client as it came if it can be read strictly. If not, but some reader accepts it,
the proxy writes it anew. A longer one is not read strictly, because that takes long, and is written anew, too.

The tables name every method of every version that the MCP SDK 2.x knows. A test compares them with the SDK.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from aver.capsule.json_reader import Unreadable, read_json

STRICT_MAX = 1024 * 1024
"""Most bytes of a server's message that are read strictly."""

MESSAGE_MAX = 256 * 1024 * 1024
"""Most bytes of one message of a server. A server that sends more without an end of line is stopped."""

CLIENT_MESSAGE_MAX = 16 * 1024 * 1024
"""Most bytes of one message of a client: the most that the strict reader takes."""

ID_MAX = 256
"""Most characters of a request's id."""

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INTERNAL_ERROR = -32700, -32600, -32601, -32603
REFUSED_ERROR = -32003
"""The code of a refusal where the protocol has no result for it: of a resource that may not be read."""

JUDGED = frozenset({"tools/call", "resources/read"})
"""Requests of a client that become acts."""

PASSED = frozenset(
    (
        *("initialize", "ping", "logging/setLevel", "completion/complete", "server/discover", "subscriptions/listen"),
        *("tools/list", "prompts/list", "prompts/get", "resources/list", "resources/templates/list"),
        *("resources/subscribe", "resources/unsubscribe"),
        # Tasks of calls that were judged, in the versions that have them.
        *("tasks/get", "tasks/result", "tasks/list", "tasks/cancel"),
    )
)
"""Requests of a client that go on to the server."""

CANCELLED = "notifications/cancelled"
PROGRESS = "notifications/progress"

PASSED_NOTIFICATIONS = frozenset(
    {CANCELLED, PROGRESS, "notifications/initialized", "notifications/roots/list_changed", "notifications/tasks/status"}
)
"""Notifications of a client that go on to the server."""

_META_PREFIX = "io.modelcontextprotocol/"
_META_KEYS = frozenset(
    (
        "progressToken",
        *(
            _META_PREFIX + name
            for name in (
                *("protocolVersion", "clientInfo", "clientCapabilities", "logLevel", "related-task"),
                "subscriptionId",
            )
        ),
        *("traceparent", "tracestate", "baggage"),
    )
)
"""The keys of `_meta` that belong to the protocol. It is not judged, so nothing else in it goes on."""

PROTOCOL_VERSION_KEY = _META_PREFIX + "protocolVersion"
CLIENT_INFO_KEY = _META_PREFIX + "clientInfo"

RequestId = str | int


class ServerMessage(NamedTuple):
    """A message of the server: its value, and the bytes that the client gets."""

    value: dict[str, Any]
    line: bytes


class MessageProblem(Exception):
    """A message that cannot be used: the error's code, words, and the id of the request as far as it is known."""

    def __init__(self, code: int, words: str, ids: tuple[RequestId | None, ...] = (None,)) -> None:
        super().__init__(words)
        self.code = code
        self.words = words
        self.ids = ids


def read_client_message(line: bytes) -> dict[str, Any]:
    """Read a line of the client. Raises `MessageProblem` for anything but one message of JSON-RPC 2.0."""
    try:
        value = read_json(line)
    except Unreadable as error:
        raise MessageProblem(PARSE_ERROR, f"this cannot be read: {error.message}", (_find_id(line),)) from None
    if isinstance(value, list):
        ids = tuple(each["id"] for each in value if isinstance(each, dict) and is_request_id(each.get("id")))
        raise MessageProblem(INVALID_REQUEST, "a batch is not passed on: send its messages one by one", ids or (None,))
    if not isinstance(value, dict) or value.get("jsonrpc") != "2.0":
        raise MessageProblem(INVALID_REQUEST, "this is no message of JSON-RPC 2.0")
    number, method = value.get("id"), value.get("method")
    if "id" in value and not is_request_id(number):
        raise MessageProblem(INVALID_REQUEST, f"an id is a whole number, or a text of at most {ID_MAX} characters")
    if method is None and ("id" not in value or ("result" in value) == ("error" in value)):
        raise MessageProblem(INVALID_REQUEST, "this is neither a request nor an answer")
    if method is not None and ("result" in value or "error" in value):
        raise MessageProblem(INVALID_REQUEST, "this is a request and an answer at once", (number,))
    if "method" in value and not isinstance(method, str):
        raise MessageProblem(INVALID_REQUEST, "the method of a message is a text", (number,))
    if method is not None and not isinstance(value.get("params", {}), dict):
        raise MessageProblem(INVALID_REQUEST, "the params of a message are an object", (number,))
    return value


def is_request_id(value: Any) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, str) and len(value) <= ID_MAX)


def _find_id(line: bytes) -> RequestId | None:
    """Find the id of a request that cannot be read strictly, for the error that answers it."""
    try:
        value = orjson.loads(line)
    except ValueError:
        return None
    number = value.get("id") if isinstance(value, dict) else None
    return number if is_request_id(number) else None


def read_server_line(line: bytes) -> list[ServerMessage]:
    """Read a line of the server: one message, or those of a batch. Raises `MessageProblem` where it has none."""
    if len(line) <= STRICT_MAX:
        try:
            value = read_json(line)
            if isinstance(value, dict):
                return [ServerMessage(value, line)]
        except Unreadable:
            pass  # Not all that a server may send is canonical. It is written anew below.
    try:
        value = orjson.loads(line)
    except ValueError as error:
        raise MessageProblem(PARSE_ERROR, f"not JSON: {error}") from None
    found = [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, dict)]
    if not found:
        raise MessageProblem(INVALID_REQUEST, "no message of JSON-RPC")
    try:
        return [ServerMessage(each, orjson.dumps(each)) for each in found]
    except orjson.JSONEncodeError as error:  # orjson reads deeper nesting than it writes.
        raise MessageProblem(PARSE_ERROR, f"this cannot be passed on: {error}") from None


def write_message(message: Mapping[str, Any]) -> bytes:
    """Write a message, without an end of line. Half a character stays an escape: UTF-8 has none."""
    return json.dumps(message, separators=(",", ":")).encode("ascii")


def build_request(number: RequestId, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": dict(params)}


def build_error(
    number: RequestId | None, code: int, words: str, data: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    error: dict[str, Any] = {"code": code, "message": words}
    return {"jsonrpc": "2.0", "id": number, "error": {**error, "data": dict(data)} if data else error}


def build_tool_refusal(number: RequestId, text: str, data: Mapping[str, Any], *, is_modern: bool) -> dict[str, Any]:
    """Build the result of a call that was refused: an error of the tool, with words that a model can act on."""
    result: dict[str, Any] = {
        "content": [{"type": "text", "text": text}],
        "isError": True,
        "_meta": {f"aver/{name}": value for name, value in data.items()},
    }
    if is_modern:  # Versions from 2026-07-28 on want it. Some clients of earlier ones refuse what they do not know.
        result["resultType"] = "complete"
    return {"jsonrpc": "2.0", "id": number, "result": result}


def keep_protocol_meta(meta: Any) -> dict[str, Any]:
    """Return the part of `_meta` that goes on to the server: the protocol's own keys."""
    return {name: value for name, value in meta.items() if name in _META_KEYS} if isinstance(meta, dict) else {}


def find_progress_token(params: Mapping[str, Any]) -> RequestId | None:
    """Return the token by which the client wants to hear of a request's progress; None where it wants none."""
    meta = params.get("_meta")
    token = meta.get("progressToken") if isinstance(meta, dict) else None
    return token if is_request_id(token) else None
