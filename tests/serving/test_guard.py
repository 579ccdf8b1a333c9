"""The guard of an ASGI server: what it refuses before anything reads it, and bodies that become too large."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import anyio
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from aver.serving.guard import TokenGuard, check_headers

HOST, TOKEN = (b"host", b"127.0.0.1:1"), (b"authorization", b"Bearer " + b"t" * 40)
BODY_MAX = 100


def send_through(
    app: Any, headers: Iterable[tuple[bytes, bytes]], body: Iterable[bytes] = (b"",), kind: str = "http"
) -> list[dict[str, Any]]:
    """Give a request to an application behind the guard. Returns the messages that reach the client."""
    guard = TokenGuard(app, "t" * 40, ["127.0.0.1:1"], body_max=BODY_MAX)
    pieces = list(body)
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(dict(message))

    async def receive() -> dict[str, Any]:
        if not pieces:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces)}

    scope = {
        "type": kind,
        "method": "POST",
        "path": "/",
        "raw_path": b"/",
        "query_string": b"",
        "root_path": "",
        "headers": list(headers),
    }
    anyio.run(guard, scope, receive, send)
    return sent


async def forbidden(scope: Any, receive: Any, send: Any) -> None:
    raise AssertionError("a refused request came through")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([HOST, HOST, TOKEN], 421),
        ([TOKEN], 421),
        ([(b"host", b"evil.example"), TOKEN], 421),
        ([(b"host", b"127.0.0.1:1, evil.example"), TOKEN], 421),
        ([HOST, TOKEN, (b"origin", b"")], 403),
        ([HOST, TOKEN, (b"origin", b"null")], 403),
        ([HOST], 401),
        ([HOST, TOKEN, TOKEN], 401),
        ([HOST, (b"authorization", b"Bearer " + b"t" * 39)], 401),
        ([HOST, TOKEN, (b"content-length", b"101")], 413),
        ([HOST, TOKEN, (b"content-length", b"-1")], 413),
        ([HOST, TOKEN, (b"content-length", b"9"), (b"content-length", b"101")], 413),
    ],
)
def test_what_is_refused_reaches_nobody(headers: list[tuple[bytes, bytes]], status: int) -> None:
    [start, body] = send_through(forbidden, headers)
    assert start["status"] == status
    assert body["body"]
    assert ((b"www-authenticate", b"Bearer") in start["headers"]) == (status == 401)


def test_a_websocket_is_closed() -> None:
    assert send_through(forbidden, [HOST], kind="websocket") == [{"type": "websocket.close", "code": 1008}]


def test_headers_alone_can_be_checked() -> None:
    assert check_headers([HOST], [b"127.0.0.1:1"]) is None
    assert check_headers([HOST], [])[0] == 421
    assert check_headers([HOST, (b"origin", b"x")], [b"127.0.0.1:1"])[0] == 403


def test_server_with_a_page_knows_its_own_origin() -> None:
    hosts, own = [b"127.0.0.1:1"], [b"http://127.0.0.1:1"]
    origin = (b"origin", own[0])
    assert check_headers([HOST, origin], hosts, own) is None
    assert check_headers([HOST, origin, origin], hosts, own)[0] == 403
    assert check_headers([HOST, (b"origin", b"http://127.0.0.1:2")], hosts, own)[0] == 403
    for site, is_refused in ((b"same-origin", False), (b"none", False), (b"same-site", True), (b"cross-site", True)):
        found = check_headers([HOST, (b"sec-fetch-site", site)], hosts, own)
        assert (found is not None) == is_refused


async def echo(request: Request) -> PlainTextResponse:
    return PlainTextResponse(await request.body())


async def answer_early(scope: Any, receive: Any, send: Any) -> None:
    """Begins its answer before it has read the body."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    while (message := await receive())["type"] == "http.request":
        await send({"type": "http.response.body", "body": message["body"], "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def hide_the_failure(request: Request) -> PlainTextResponse:
    try:
        await request.body()
    except Exception:
        return PlainTextResponse("all is well")
    raise AssertionError("the body was not cut off")


def starlette(endpoint: Any) -> Starlette:
    return Starlette(routes=[Route("/", endpoint, methods=["POST"])])


def test_a_body_within_the_limit_arrives() -> None:
    [start, body] = send_through(starlette(echo), [HOST, TOKEN], [b"x" * 60, b"y" * 40])
    assert (start["status"], body["body"]) == (200, b"x" * 60 + b"y" * 40)


@pytest.mark.parametrize("endpoint", [echo, hide_the_failure])
def test_a_body_that_grows_beyond_the_limit_is_cut_off(endpoint: Any) -> None:
    """Whatever the declared length, and whatever the application makes of it."""
    for headers in ([HOST, TOKEN], [HOST, TOKEN, (b"content-length", b"5")]):
        [start, body] = send_through(starlette(endpoint), headers, [b"x" * 60, b"y" * 41, b"z" * 1_000_000])
        assert (start["status"], body["body"]) == (413, b"the body is too large")


def test_an_answer_that_has_begun_is_not_mixed_with_a_refusal() -> None:
    sent = send_through(answer_early, [HOST, TOKEN], [b"x" * 60, b"y" * 41])
    assert [message["status"] for message in sent if message["type"] == "http.response.start"] == [200]
    assert b"y" not in b"".join(message.get("body", b"") for message in sent)


def test_a_failure_of_the_application_is_its_own() -> None:
    async def fail(scope: Any, receive: Any, send: Any) -> None:
        raise RuntimeError("a defect")

    with pytest.raises(RuntimeError, match="a defect"):
        send_through(fail, [HOST, TOKEN])
