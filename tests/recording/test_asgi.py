"""The ASGI middleware: every request and websocket session an intent and an outcome, driven as a server drives it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest

import aver
from aver import AuditMiddleware, BadInput, Ledger, NotRecorded

CHAIN = "web.shop"


def scope_of(method: str = "GET", path: str = "/", *, kind: str = "http", **more: Any) -> dict[str, Any]:
    headers = [(name.encode(), value.encode("latin-1")) for name, value in more.pop("headers", [])]
    return {
        "type": kind,
        "method": method,
        "path": path,
        "query_string": b"",
        "scheme": "http",
        "client": ("10.0.0.7", 5000),
        "headers": headers,
        **more,
    }


def drive(app: Any, scope: dict[str, Any], *incoming: dict[str, Any]) -> list[dict[str, Any]]:
    """What a server does with one connection; returns what the application sent."""
    sent: list[dict[str, Any]] = []
    waiting = list(incoming) or [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> dict[str, Any]:
        return waiting.pop(0) if waiting else {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    return sent


async def read_body(receive: Any) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return body


def answering(status: int = 200, body: bytes = b"hello", media: str = "text/plain") -> Any:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await read_body(receive)
        headers = [(b"content-type", media.encode()), (b"set-cookie", b"sid=abcdef123")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body[:2], "more_body": True})
        await send({"type": "http.response.body", "body": body[2:]})

    return app


@pytest.fixture
def recorded(records: Any) -> Callable[[], list[dict[str, Any]]]:
    return lambda: records(chain=CHAIN)


def test_a_request_is_an_intent_and_an_outcome(ledger: Ledger, recorded: Any) -> None:
    seen = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(len(recorded()))
        scope["route"] = type("Route", (), {"path": "/orders/{id}"})()
        scope["endpoint"] = test_a_request_is_an_intent_and_an_outcome
        await answering()(scope, receive, send)

    wrapped = AuditMiddleware(app, chain=CHAIN, ledger=ledger)
    scope = scope_of(
        "POST",
        "/orders/7",
        query_string=b"page=2&api_key=abc123",
        headers=[("User-Agent", "curl/8"), ("Content-Type", "text/plain"), ("X-Other", "private")],
    )
    sent = drive(
        wrapped,
        scope,
        {"type": "http.request", "body": b"12345", "more_body": True},
        {"type": "http.request", "body": b"678", "more_body": False},
    )
    assert [message["type"] for message in sent] == ["http.response.start", *["http.response.body"] * 2]
    assert seen == [1], "the intent was sealed before the application saw the request"
    intent, outcome = recorded()
    asked = intent["context"]["environment"]["http"]
    assert (asked["method"], asked["path"], asked["client"]) == ("POST", "/orders/7", "10.0.0.7")
    assert asked["query"] == "page=2&api_key=[masked:assignment]"
    assert asked["headers"] == {"user-agent": "curl/8", "content-type": "text/plain"}
    assert intent["trigger"]["type"] == "user_request"
    assert (intent["trigger"]["source"], intent["trigger"]["request"]) == ("http", "POST /orders/7")
    answered = outcome["context"]["environment"]["http"]
    assert (answered["status"], answered["complete"]) == (200, True)
    assert answered["headers"] == {"content-type": "text/plain"}
    assert answered["route"] == "/orders/{id}"
    assert answered["endpoint"] == "test_a_request_is_an_intent_and_an_outcome"
    assert "request_body" not in answered
    metrics = outcome["outcome"]["metrics"]
    assert (metrics["bytes_in"], metrics["bytes_out"]) == (8, 5)
    assert 0 <= metrics["first_byte_ms"] <= outcome["execution"]["duration_ms"] + 1
    assert outcome["outcome"]["summary"] == "POST /orders/7 answered 200"
    assert outcome["parent_id"] == intent["id"]
    assert "private" not in str(recorded())
    assert ledger.verify().status == "verified"


@pytest.mark.parametrize(
    ("status", "went", "error"),
    [
        (200, "success", None),
        (304, "success", None),
        (401, "blocked", "HTTP 401"),
        (403, "blocked", "HTTP 403"),
        (404, "failure", "HTTP 404"),
        (503, "failure", "HTTP 503"),
    ],
)
def test_how_a_status_counts(ledger: Ledger, recorded: Any, status: int, went: str, error: str | None) -> None:
    drive(AuditMiddleware(answering(status), chain=CHAIN, ledger=ledger), scope_of())
    outcome = recorded()[1]["outcome"]
    assert (outcome["status"], outcome["error"]) == (went, error)


def test_no_answer_half_an_answer_and_an_exception(ledger: Ledger, recorded: Any) -> None:
    async def silent(scope: Any, receive: Any, send: Any) -> None: ...

    async def half(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"a", "more_body": True})

    async def failing(scope: Any, receive: Any, send: Any) -> None:
        raise error

    error = ValueError("v")
    for app in (silent, half):
        drive(AuditMiddleware(app, chain=CHAIN, ledger=ledger), scope_of())
    with pytest.raises(ValueError, match="v") as caught:
        drive(AuditMiddleware(failing, chain=CHAIN, ledger=ledger), scope_of())
    assert caught.value is error
    outcomes = [record["outcome"] for record in recorded()[1::2]]
    assert [outcome["status"] for outcome in outcomes] == ["failure"] * 3
    assert [outcome["error"] for outcome in outcomes] == [
        "got no answer",
        "answered 200, but not to the end",
        "ValueError: v",
    ]


TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.mark.parametrize(
    ("headers", "correlation", "origin"),
    [
        ([("traceparent", f"00-{TRACE}-00f067aa0ba902b7-01")], TRACE, "traceparent"),
        ([("traceparent", f"00-{TRACE}-00f067aa0ba902b7-01"), ("x-request-id", "r")], TRACE, "traceparent"),
        ([("traceparent", "00-" + "0" * 32 + "-00f067aa0ba902b7-01"), ("x-request-id", "r-1")], "r-1", "x-request-id"),
        ([("traceparent", f"00-{TRACE.upper()}-x")], None, "aver"),
        ([("X-Request-ID", "req/7:a=b@c+d")], "req/7:a=b@c+d", "x-request-id"),
        ([("x-request-id", "a\x1b[31m\u00e9\u00ff<script>b")], "a31mscriptb", "x-request-id"),
        ([("x-request-id", "x" * 5000)], "x" * 128, "x-request-id"),
        ([("x-request-id", "\u00e9")], None, "aver"),
        ([], None, "aver"),
    ],
)
def test_a_clients_correlation_id_is_taken_as_far_as_it_is_plain(
    ledger: Ledger, recorded: Any, headers: Any, correlation: str | None, origin: str
) -> None:
    drive(AuditMiddleware(answering(), chain=CHAIN, ledger=ledger), scope_of(headers=headers))
    intent, outcome = recorded()
    assert intent["context"]["environment"]["http"]["correlation_from"] == origin
    assert intent["trigger"]["correlation_id"] == outcome["trigger"]["correlation_id"]
    if correlation is not None:
        assert intent["trigger"]["correlation_id"] == correlation
    else:
        assert len(intent["trigger"]["correlation_id"]) == 36


def test_what_the_application_audits_hangs_under_the_request(ledger: Ledger, recorded: Any) -> None:
    @aver.audit(chain=CHAIN, ledger=ledger)
    def charge() -> None: ...

    async def app(scope: Any, receive: Any, send: Any) -> None:
        aver.current().reason(analysis="why")
        charge()
        await asyncio.to_thread(charge)
        await answering()(scope, receive, send)

    drive(AuditMiddleware(app, chain=CHAIN, ledger=ledger), scope_of(headers=[("x-request-id", "r-9")]))
    request, first, _, second, _, outcome = recorded()
    assert first["parent_id"] == second["parent_id"] == request["id"]
    assert {record["trigger"]["correlation_id"] for record in recorded()} == {"r-9"}
    assert outcome["reasoning"]["analysis"] == "why"


def test_bodies_are_captured_up_to_a_limit_and_masked(ledger: Ledger, recorded: Any) -> None:
    token = "ghp_" + "Ab1" * 12
    asked = json.dumps({"user": "ann", "password": "hunter2", "note": token}).encode()
    wrapped = AuditMiddleware(
        answering(body=b'{"access_token": "abc"}', media="application/json"),
        chain=CHAIN,
        ledger=ledger,
        body_limit=1000,
    )
    request = {"type": "http.request", "body": asked}
    drive(wrapped, scope_of("POST", headers=[("content-type", "application/json")]), request)
    outcome = recorded()[1]
    http = outcome["context"]["environment"]["http"]
    assert http["request_body"] == {"user": "ann", "password": "[masked:named]", "note": "[masked:github-token]"}
    assert http["response_body"] == {"access_token": "[masked:named]"}
    assert outcome["context"]["environment"]["masked"]["count"] == 3


@pytest.mark.parametrize("offset", [0, 5, 20, 39, 41])
def test_a_secret_at_the_edge_of_the_limit_is_not_shown_in_part(ledger: Ledger, recorded: Any, offset: int) -> None:
    token = "ghp_" + "Ab1" * 12
    limit = 100
    body = b"x" * (limit - offset - 1) + b" " + token.encode() + b" and more " * 1000
    wrapped = AuditMiddleware(answering(), chain=CHAIN, ledger=ledger, body_limit=limit)
    drive(wrapped, scope_of("POST"), {"type": "http.request", "body": body})
    shown = recorded()[1]["context"]["environment"]["http"]["request_body"]
    assert len(shown) == limit
    assert "Ab1" not in shown


@pytest.mark.parametrize(
    ("body", "media", "shown"),
    [
        (b"", "text/plain", ""),
        (b"\xff\xfe\x00", "image/png", {"$type": "bytes", "length": 3}),
        (b'{"a": ', "application/json", '{"a": '),
        (b'{"a": 1, "a": 2}', "application/json", '{"a": 1, "a": 2}'),
        (b"a=1&password=hunter2&b=2", "application/x-www-form-urlencoded", "a=1&password=[masked:assignment]&b=2"),
        ("é".encode() * 60, "text/plain", "é" * 50),
    ],
    ids=["empty", "binary", "torn-json", "ambiguous-json", "form", "cut"],
)
def test_bodies_of_every_sort(ledger: Ledger, recorded: Any, body: bytes, media: str, shown: Any) -> None:
    wrapped = AuditMiddleware(answering(), chain=CHAIN, ledger=ledger, body_limit=50)
    drive(wrapped, scope_of("POST", headers=[("content-type", media)]), {"type": "http.request", "body": body})
    assert recorded()[1]["context"]["environment"]["http"]["request_body"] == shown


def test_a_large_body_is_neither_kept_nor_held_up(ledger: Ledger, recorded: Any) -> None:
    wrapped = AuditMiddleware(answering(), chain=CHAIN, ledger=ledger, body_limit=10)
    chunks = [{"type": "http.request", "body": b"z" * 100_000, "more_body": number < 49} for number in range(50)]
    drive(wrapped, scope_of("POST"), *chunks)
    outcome = recorded()[1]
    assert outcome["outcome"]["metrics"]["bytes_in"] == 5_000_000
    assert outcome["context"]["environment"]["http"]["request_body"] == "z" * 10


def test_chosen_headers_are_masked_by_name(ledger: Ledger, recorded: Any) -> None:
    wrapped = AuditMiddleware(
        answering(), chain=CHAIN, ledger=ledger, headers=["Authorization", "X-Thing", "Set-Cookie"]
    )
    headers = [("authorization", "Digest abc"), ("x-thing", "a"), ("X-Thing", "b"), ("accept", "*/*")]
    drive(wrapped, scope_of(headers=headers))
    intent, outcome = recorded()
    assert intent["context"]["environment"]["http"]["headers"] == {"authorization": "[masked:named]", "x-thing": "a, b"}
    assert outcome["context"]["environment"]["http"]["headers"] == {"set-cookie": "[masked:named]"}


def test_a_websocket_session(ledger: Ledger, recorded: Any) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] == "websocket.receive":
            await send({"type": "websocket.send", "text": message.get("text") or "bytes"})

    drive(
        AuditMiddleware(app, chain=CHAIN, ledger=ledger),
        scope_of(kind="websocket", path="/live"),
        {"type": "websocket.connect"},
        {"type": "websocket.receive", "text": "hé"},
        {"type": "websocket.receive", "bytes": b"1234"},
        {"type": "websocket.disconnect", "code": 1001},
    )
    intent, outcome = recorded()
    assert intent["trigger"]["request"] == "WEBSOCKET /live"
    assert outcome["outcome"]["metrics"] == {"bytes_in": 7, "bytes_out": 8, "messages_in": 2, "messages_out": 2}
    http = outcome["context"]["environment"]["http"]
    assert (http["accepted"], http["close_code"]) == (True, 1001)
    assert outcome["outcome"]["status"] == "success"


def test_a_websocket_that_is_refused(ledger: Ledger, recorded: Any) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.close", "code": 4401})

    drive(AuditMiddleware(app, chain=CHAIN, ledger=ledger), scope_of(kind="websocket"), {"type": "websocket.connect"})
    outcome = recorded()[1]
    assert (outcome["outcome"]["status"], outcome["outcome"]["error"]) == ("blocked", "was not accepted")
    assert outcome["context"]["environment"]["http"]["close_code"] == 4401


def test_other_connections_and_skipped_paths_pass_by(ledger: Ledger) -> None:
    seen = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["type"])

    wrapped = AuditMiddleware(app, chain=CHAIN, ledger=ledger, skip=["/healthz"])
    drive(wrapped, {"type": "lifespan"})
    drive(wrapped, scope_of(path="/healthz"))
    assert seen == ["lifespan", "http"]
    assert ledger.chains() == []


def test_without_its_intent_the_application_is_not_called(
    impatient: Ledger, stuck: Callable[[], AbstractContextManager[None]]
) -> None:
    called = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        called.append(1)
        await answering()(scope, receive, send)

    with stuck(), pytest.raises(NotRecorded):
        drive(AuditMiddleware(app, chain=CHAIN, ledger=impatient), scope_of())
    assert called == []
    lax = AuditMiddleware(app, chain=CHAIN, ledger=impatient, on_failure="log")
    with stuck():
        assert len(drive(lax, scope_of())) == 3
    drive(lax, scope_of())
    assert [record.kind for record in impatient.read(CHAIN)] == ["audit.intent", "dropped", "audit.outcome"]


def test_requests_at_the_same_time(ledger: Ledger, recorded: Any) -> None:
    wrapped = AuditMiddleware(answering(), chain=lambda scope: f"web.{scope['path'][1:]}", ledger=ledger)

    async def one(number: int) -> None:
        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b""}

        async def send(message: dict[str, Any]) -> None:
            await asyncio.sleep(0)

        await wrapped(scope_of(path=f"/{number % 3}"), receive, send)

    async def scenario() -> None:
        await asyncio.gather(*(one(number) for number in range(60)))

    asyncio.run(scenario())
    assert {chain: ledger.head(chain).count for chain in ledger.chains() if chain.startswith("web.")} == {
        "web.0": 40,
        "web.1": 40,
        "web.2": 40,
    }
    assert ledger.verify().status == "verified"


def test_a_client_that_goes_away_is_recorded(ledger: Ledger, recorded: Any) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(3600)

    async def scenario() -> None:
        wrapped = AuditMiddleware(app, chain=CHAIN, ledger=ledger)
        task = asyncio.ensure_future(wrapped(scope_of(), None, None))  # type: ignore[arg-type]
        while not recorded():
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
    outcome = recorded()[1]["outcome"]
    assert (outcome["status"], outcome["error"]) == ("failure", "asyncio.exceptions.CancelledError")


@pytest.mark.parametrize("settings", [{"chain": "no chain"}, {"chain": CHAIN, "on_failure": "ignore"}])
def test_wrong_settings_are_refused_at_once(settings: Any) -> None:
    with pytest.raises(BadInput):
        AuditMiddleware(answering(), **settings)


def test_a_real_framework(ledger: Ledger, recorded: Any) -> None:
    starlette = pytest.importorskip("starlette.applications")
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    async def order(request: Any) -> JSONResponse:
        aver.current().summarise(f"looked up {request.path_params['id']}")
        return JSONResponse({"id": request.path_params["id"]})

    app = starlette.Starlette(routes=[Route("/orders/{id}", order)])
    app.add_middleware(AuditMiddleware, chain=CHAIN, ledger=ledger)
    sent = drive(app, scope_of(path="/orders/7", server=("host", 80), root_path="", http_version="1.1"))
    assert sent[0]["status"] == 200
    outcome = recorded()[1]
    assert outcome["outcome"]["summary"] == "looked up 7"
    assert outcome["context"]["environment"]["http"]["endpoint"].endswith("order")
