"""An ASGI middleware that seals every request: an intent before the application sees it, an outcome afterwards.

    app = AuditMiddleware(app, chain="web.shop")

It is plain ASGI, for any framework and server. An HTTP request or a websocket session is one audited call. The intent
has method, path, query and chosen headers. The outcome has status, route, sizes and times, and bodies if configured.
Audited functions of the application nest in it, and `aver.current()` returns the request's call.

The client is not trusted. Its `traceparent` or `x-request-id` becomes the correlation id only without unusual
characters, and the record says where the id came from. Secrets are masked as in all records.
"""

from __future__ import annotations

import codecs
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Iterable, MutableMapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from aver.capsule.aver_block import check_chain_name
from aver.capsule.json_reader import read_json
from aver.capsule.masking.mask import NOTE_KEY, mask, masking_note
from aver.clock import new_id
from aver.errors import BadInput
from aver.recording.drafts import CallEnding
from aver.recording.recorder import get_recorder
from aver.recording.render import clean_text, type_name
from aver.recording.run import CallPlan, CallRun, OnFailure, ending_from_error
from aver.recording.scope import current_scope

if TYPE_CHECKING:
    from aver.ledger.async_ledger import AsyncLedger
    from aver.ledger.ledger import Ledger

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

DEFAULT_HEADERS = ("content-type", "user-agent")
"""Headers that are recorded by default."""

MASK_MARGIN = 4096
"""Bytes of a body that are kept beyond the limit until masking, which would not recognise half a secret."""

CORRELATION_MAX = 128
"""Longest correlation id that a client may choose, in characters."""

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-(?P<trace>[0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}").fullmatch
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9._:/+=@-]")
_DENIED_STATUSES = frozenset({401, 403, 407, 451})


class AuditMiddleware:
    """Wraps an ASGI application; every HTTP request and websocket session in it is an audited call.

    `chain` is a chain's name, or a function that makes one from the ASGI scope. `headers` are the request and response
    headers to record. Of a body only its size is recorded, or up to `body_limit` bytes. Paths in `skip` are not
    recorded. With `on_failure="raise"`, the application is not called if the intent cannot be sealed.
    """

    def __init__(
        self,
        app: Application,
        *,
        chain: str | Callable[[Message], str],
        ledger: Ledger | AsyncLedger | None = None,
        headers: Collection[str] = DEFAULT_HEADERS,
        body_limit: int = 0,
        skip: Collection[str] = (),
        source: str = "http",
        agent_id: str | None = None,
        on_failure: OnFailure = "raise",
    ) -> None:
        if on_failure not in ("raise", "log"):
            raise BadInput(f"on_failure is 'raise' or 'log', not {on_failure!r}")
        if isinstance(chain, str):
            check_chain_name(chain)
        self.app = app
        self._chain = chain
        self._ledger = ledger
        self._headers = frozenset(name.lower() for name in headers)
        self._body_limit = body_limit
        self._skip = frozenset(skip)
        self._source = source
        self._agent_id = agent_id
        self._on_failure: OnFailure = on_failure

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Handle one connection, as the ASGI specification defines it."""
        if scope["type"] not in ("http", "websocket") or scope.get("path") in self._skip:
            await self.app(scope, receive, send)
            return
        connection = (_HttpConnection if scope["type"] == "http" else _WebsocketConnection)(
            scope, self._headers, self._body_limit
        )

        async def receive_and_note() -> Message:
            message = await receive()
            connection.note_received(message)
            return message

        async def send_and_note(message: Message) -> None:
            await send(message)
            connection.note_sent(message)

        run = self._build_run(scope, connection)
        await run.seal_intent_async()
        connection.began = time.monotonic()
        try:
            with run.make_current():
                await self.app(scope, receive_and_note, send_and_note)
        except GeneratorExit as error:  # The coroutine is being closed: it must not await any more.
            run.seal_raised(_add_facts(ending_from_error(error, run.elapsed_ms()), connection))
            raise
        except BaseException as error:
            await run.seal_raised_async(_add_facts(ending_from_error(error, run.elapsed_ms()), connection))
            raise
        await run.seal_returned_async(_add_facts(connection.build_ending(run.elapsed_ms()), connection), None)

    def _build_run(self, scope: Message, connection: _AuditedConnection) -> CallRun:
        here = current_scope()
        correlation, origin = _read_correlation(scope)
        return CallRun(
            CallPlan(
                chain=self._chain if isinstance(self._chain, str) else self._chain(scope),
                name=connection.name,
                recorder=get_recorder(self._ledger or here.ledger),
                on_failure=self._on_failure,
                scope=replace(
                    here,
                    trigger=here.trigger or "user_request",
                    source=here.source or self._source,
                    agent_id=self._agent_id or here.agent_id,
                    correlation_id=here.correlation_id or correlation,
                ),
                request=connection.name,
                facts={
                    "http": {
                        **connection.request_facts(),
                        "correlation_from": "scope" if here.correlation_id else origin,
                    }
                },
                environment={},
            )
        )


def _add_facts(ending: CallEnding, connection: _AuditedConnection) -> CallEnding:
    return replace(ending, facts=connection.outcome_facts(), metrics=connection.connection_metrics())


def _read_correlation(scope: Message) -> tuple[str, str]:
    """The correlation id of a request without unusual characters, and where it came from."""
    headers = _select_headers(scope.get("headers", ()), frozenset({"traceparent", "x-request-id"}))
    trace = _TRACEPARENT(headers.get("traceparent", ""))
    if trace and trace["trace"].strip("0"):
        return trace["trace"], "traceparent"
    given = _NOT_PLAIN.sub("", headers.get("x-request-id", ""))[:CORRELATION_MAX]
    return (given, "x-request-id") if given else (new_id(), "aver")


def _select_headers(headers: Iterable[tuple[bytes, bytes]], names: frozenset[str]) -> dict[str, str]:
    chosen: dict[str, str] = {}
    for raw_name, raw_value in headers:
        name = bytes(raw_name).decode("latin-1").lower()
        if name in names:
            value = bytes(raw_value).decode("latin-1")
            chosen[name] = f"{chosen[name]}, {value}" if name in chosen else value
    return chosen


class _BodyCapture:
    """Counts the bytes of a body and keeps its beginning."""

    def __init__(self, limit: int) -> None:
        self.size = 0
        self.limit = limit
        self._kept = bytearray()

    def add(self, data: bytes) -> None:
        self.size += len(data)
        if self.limit and len(self._kept) < self.limit + MASK_MARGIN:
            self._kept += data[: self.limit + MASK_MARGIN - len(self._kept)]

    def render_masked(self, media: str) -> tuple[Any, dict[str, int]]:
        """The masked body for the record, and how often each rule masked something in it."""
        whole = len(self._kept) == self.size
        try:
            if whole and self.size <= self.limit and "json" in media:
                masked = mask(read_json(bytes(self._kept)))
                return masked.value, dict(masked.by_rule)
        except BadInput:
            pass  # Not JSON after all: record it as text.
        try:
            text = codecs.getincrementaldecoder("utf-8")().decode(bytes(self._kept), final=whole)
        except UnicodeDecodeError:
            return {"$type": "bytes", "length": self.size}, {}
        masked = mask(text)
        return masked.value[: self.limit], dict(masked.by_rule)


class _AuditedConnection(ABC):
    """One connection: its request, and the bytes that went in and out."""

    name: str

    def __init__(self, scope: Message, headers: frozenset[str], body_limit: int) -> None:
        self._scope = scope
        self._names = headers
        self.began = time.monotonic()
        self._in, self._out = _BodyCapture(body_limit), _BodyCapture(body_limit)
        self._answer_headers: dict[str, str] = {}

    def request_facts(self) -> dict[str, Any]:
        """The facts for the intent."""
        scope, client = self._scope, self._scope.get("client")
        return {
            "path": clean_text(str(scope.get("path", ""))),
            "query": bytes(scope.get("query_string", b"")).decode("latin-1"),
            "scheme": str(scope.get("scheme", "")),
            "client": clean_text(str(client[0])) if client else None,
            "headers": _select_headers(scope.get("headers", ()), self._names),
        }

    def outcome_facts(self) -> dict[str, Any]:
        """The facts for the outcome, and the note about masking in bodies."""
        asked = _select_headers(self._scope.get("headers", ()), frozenset({"content-type"}))
        counts: dict[str, int] = {}
        bodies = {}
        if self._in.limit:
            for name, body, media in (
                ("request_body", self._in, asked.get("content-type", "")),
                ("response_body", self._out, self._answer_headers.get("content-type", "")),
            ):
                bodies[name], by_rule = body.render_masked(media)
                for rule, count in by_rule.items():
                    counts[rule] = counts.get(rule, 0) + count
        headers = {name: value for name, value in self._answer_headers.items() if name in self._names}
        # The route and endpoint that the framework put into the ASGI scope, if it did.
        route, endpoint = getattr(self._scope.get("route"), "path", None), self._scope.get("endpoint")
        named = getattr(endpoint, "__qualname__", None) or (type_name(type(endpoint)) if endpoint is not None else None)
        found = {"route": route, "endpoint": named}
        routed = {name: clean_text(value) for name, value in found.items() if isinstance(value, str)}
        facts = {**self._response_facts(), "headers": headers, **routed, **bodies}
        return {"http": facts, NOTE_KEY: masking_note(counts)}

    def connection_metrics(self) -> dict[str, Any]:
        return {"bytes_in": self._in.size, "bytes_out": self._out.size}

    @abstractmethod
    def _response_facts(self) -> dict[str, Any]:
        """The part of the outcome's facts that depends on the protocol."""

    @abstractmethod
    def build_ending(self, duration_ms: int) -> CallEnding:
        """The ending of a connection whose application returned."""

    @abstractmethod
    def note_received(self, message: Message) -> None:
        """Note a message from the client."""

    @abstractmethod
    def note_sent(self, message: Message) -> None:
        """Note a message to the client."""


class _HttpConnection(_AuditedConnection):
    def __init__(self, scope: Message, headers: frozenset[str], body_limit: int) -> None:
        super().__init__(scope, headers, body_limit)
        self.name = f"{scope.get('method', '')} {clean_text(str(scope.get('path', '')))}"
        self._status: int | None = None
        self._complete = False
        self._first_byte_ms: int | None = None

    def request_facts(self) -> dict[str, Any]:
        return {"method": str(self._scope.get("method", "")), **super().request_facts()}

    def note_received(self, message: Message) -> None:
        if message["type"] == "http.request":
            self._in.add(message.get("body", b""))

    def note_sent(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._answer_headers = _select_headers(message.get("headers", ()), self._names | {"content-type"})
            self._first_byte_ms = round((time.monotonic() - self.began) * 1000)
        elif message["type"] == "http.response.body":
            self._out.add(message.get("body", b""))
            self._complete = not message.get("more_body", False)
        elif message["type"].startswith("http.response."):
            self._complete = True  # An extension by which the server itself sends a file.

    def connection_metrics(self) -> dict[str, Any]:
        first = {} if self._first_byte_ms is None else {"first_byte_ms": self._first_byte_ms}
        return {**super().connection_metrics(), **first}

    def _response_facts(self) -> dict[str, Any]:
        return {"status": self._status, "complete": self._complete}

    def build_ending(self, duration_ms: int) -> CallEnding:
        status = self._status
        if status is None or not self._complete:
            words = "got no answer" if status is None else f"answered {status}, but not to the end"
            return CallEnding(status="failure", words=words, error=words, duration_ms=duration_ms)
        error = None if status < 400 else f"HTTP {status}"
        outcome = "success" if status < 400 else "blocked" if status in _DENIED_STATUSES else "failure"
        return CallEnding(status=outcome, words=f"answered {status}", error=error, duration_ms=duration_ms)


class _WebsocketConnection(_AuditedConnection):
    def __init__(self, scope: Message, headers: frozenset[str], body_limit: int) -> None:
        super().__init__(scope, headers, body_limit)
        self.name = f"WEBSOCKET {clean_text(str(scope.get('path', '')))}"
        self._messages_in = self._messages_out = 0
        self._accepted = False
        self._code: int | None = None

    def note_received(self, message: Message) -> None:
        if message["type"] == "websocket.receive":
            self._messages_in += 1
            self._in.add(_message_payload(message))
        elif message["type"] == "websocket.disconnect":
            self._code = message.get("code", 1005)

    def note_sent(self, message: Message) -> None:
        if message["type"] == "websocket.accept":
            self._accepted = True
        elif message["type"] == "websocket.send":
            self._messages_out += 1
            self._out.add(_message_payload(message))
        elif message["type"] == "websocket.close":
            self._code = message.get("code", 1000)

    def connection_metrics(self) -> dict[str, Any]:
        return {**super().connection_metrics(), "messages_in": self._messages_in, "messages_out": self._messages_out}

    def _response_facts(self) -> dict[str, Any]:
        return {"accepted": self._accepted, "close_code": self._code}

    def build_ending(self, duration_ms: int) -> CallEnding:
        if not self._accepted:
            words = "was not accepted"
            return CallEnding(status="blocked", words=words, error=words, duration_ms=duration_ms)
        return CallEnding(status="success", words=f"closed with {self._code}", duration_ms=duration_ms)


def _message_payload(message: Message) -> bytes:
    text = message.get("text")
    return text.encode("utf-8", "backslashreplace") if isinstance(text, str) else message.get("bytes") or b""
