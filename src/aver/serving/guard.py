"""The guard of every HTTP server of Aver: whose requests are read at all.

A web page can send requests to a server on the machine of its reader. So a server refuses a request, before anything
else reads it, in these cases:

1. The `Host` is not ours (421). A web page can use DNS to point its own name to our address.
2. The request comes from a web page that is not the server's own (403): it has an `Origin` that is not ours, or a
   `Sec-Fetch-Site` that is neither `same-origin` nor `none`. Most servers have no page, and so no `Origin` is theirs.
3. The request does not have the token (401).
4. The body is larger than the server takes (413). The guard counts the bytes that arrive: a request may declare less.

`check_headers` has rules 1 and 2 as a function, for servers of any kind. `TokenGuard` has all of them, for ASGI.
`BodyLimit` has rule 4 for an ASGI server with another guard.
A header that decides must not come twice, because two readers could obey two different ones.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, MutableMapping, Sequence
from typing import Any, NamedTuple

from aver.log import debug
from aver.serving.tokens import find_bearer_token, is_same_token

AsgiScope = MutableMapping[str, Any]
AsgiMessage = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[AsgiMessage]]
Send = Callable[[AsgiMessage], Awaitable[None]]

POLICY_VIOLATION = 1008
"""How a WebSocket is closed whose request is refused."""


class HttpRefusal(NamedTuple):
    """The answer to a request that is not carried out: a status, one sentence, and headers for the client."""

    status: int
    words: str
    headers: tuple[tuple[bytes, bytes], ...] = ()


NO_TOKEN = HttpRefusal(401, "a token is needed", ((b"www-authenticate", b"Bearer"),))
BODY_TOO_LARGE = HttpRefusal(413, "the body is too large")


OWN_SITES = frozenset({b"same-origin", b"none"})
"""The values of `Sec-Fetch-Site` in a request of our own page, and of an address that a person has typed."""


def check_headers(
    headers: Sequence[tuple[bytes, bytes]], hosts: Collection[bytes], origins: Collection[bytes] = ()
) -> HttpRefusal | None:
    """Apply rules 1 and 2 to headers whose names are in lower case. Returns None if the request may be read.

    `origins` are those of the server's own page.
    """
    # 1. Exactly one Host header, with one of our addresses.
    shown = [value for name, value in headers if name == b"host"]
    if len(shown) != 1 or shown[0] not in hosts:
        return HttpRefusal(421, "wrong Host")
    # 2. No Origin header, or one of our own page. Browsers send `Sec-Fetch-Site` also where they send no Origin.
    shown = [value for name, value in headers if name == b"origin"]
    if len(shown) > 1 or not all(value in origins for value in shown):
        return HttpRefusal(403, "not for other web pages" if origins else "not for web pages")
    if any(value not in OWN_SITES for name, value in headers if name == b"sec-fetch-site"):
        return HttpRefusal(403, "not for other web pages")
    return None


class TokenGuard:
    """An ASGI wrapper that passes on only the requests of clients with the token."""

    def __init__(self, app: Any, token: str, hosts: Iterable[str], *, body_max: int) -> None:
        self._app = app
        self._token = token.encode("ascii")
        self._hosts = frozenset(host.encode("ascii") for host in hosts)
        self._body_max = body_max

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        refusal = self._find_refusal(scope["headers"])
        if refusal is None and scope["type"] == "http":
            await BodyLimit(self._app, self._body_max, _send_refusal).run(scope, receive, send)
        elif refusal is None:
            await self._app(scope, receive, send)
        else:
            debug("serving", "refused with %s: %s", refusal.status, refusal.words)
            if scope["type"] == "http":
                await _send_refusal(refusal, send)
            else:
                await send({"type": "websocket.close", "code": POLICY_VIOLATION})

    def _find_refusal(self, headers: list[tuple[bytes, bytes]]) -> HttpRefusal | None:
        if (refusal := check_headers(headers, self._hosts)) is not None:
            return refusal
        # 3. Exactly one Authorization header, with the token.
        if not is_same_token(find_bearer_token(headers), self._token):
            return NO_TOKEN
        # 4. A request that declares too much need not arrive.
        sizes = [value for name, value in headers if name == b"content-length"]
        return BODY_TOO_LARGE if any(not size.isdigit() or int(size) > self._body_max for size in sizes) else None


SendRefusal = Callable[[HttpRefusal, Send], Awaitable[None]]
"""Sends a refusal as the whole answer to a request."""


class BodyLimit:
    """One request whose body is counted while the application reads it.

    When the body becomes too large, the application is told that the client has gone, and nothing that it then sends
    reaches the client. The client gets the refusal.
    """

    def __init__(self, app: Any, limit: int, send_refusal: SendRefusal) -> None:
        self._app = app
        self._left = limit
        self._send_refusal = send_refusal
        self._exceeded = False
        self._started = False

    async def run(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        async def receive_counted() -> AsgiMessage:
            if self._exceeded:
                return {"type": "http.disconnect"}
            message = await receive()
            self._left -= len(message.get("body", b""))
            if self._left < 0:
                debug("serving", "refused with 413: the body is larger than it may be")
                self._exceeded = True
                return {"type": "http.disconnect"}
            return message

        async def send_unless_exceeded(message: AsgiMessage) -> None:
            if self._started or not self._exceeded:
                self._started = True
                await send(message)

        try:
            await self._app(scope, receive_counted, send_unless_exceeded)
        except Exception:
            if not self._exceeded:
                raise
            # An application may well raise when its client goes away.
            debug("serving", "the application raised after its client was cut off")
        if self._exceeded and not self._started:
            await self._send_refusal(BODY_TOO_LARGE, send)


async def _send_refusal(refusal: HttpRefusal, send: Send) -> None:
    body = refusal.words.encode("ascii")
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", b"%d" % len(body)),
        *refusal.headers,
    ]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
