"""The guard of the Explorer's server: which requests its application sees at all.

A request is judged in this order, and the first refusal is the answer:

1. `Host`, `Origin` and `Sec-Fetch-Site` (421, 403), see `aver.serving.guard`. A person may reach the page itself from
   anywhere: by a link in another page, or by the file that `aver serve --open` writes. So a navigation of a whole
   window to `/` passes, whatever its site. That file holds nothing, and cannot be framed.
2. The files of the page need no token. Everything below `/api/` needs one (401).
3. Requests come faster than `Rates` lets them (429). Requests without a token have a small share of their own, so that
   they cannot slow down a page that has one.
4. More than `REQUESTS_MAX` requests are at work (429).
5. The body is larger than its route takes (413).

An exception of the application becomes an error in the common form.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection
from typing import Any

from starlette.requests import ClientDisconnect

from aver.explorer.answers import error_answer, send_refusal
from aver.log import debug
from aver.serving.guard import (
    BODY_TOO_LARGE,
    NO_TOKEN,
    AsgiMessage,
    AsgiScope,
    BodyLimit,
    HttpRefusal,
    Receive,
    Send,
    check_headers,
)
from aver.serving.tokens import find_bearer_token, is_same_token

API = "/api/v1/"

BODY_MAX = 64 * 1024
"""Largest body of a request, in bytes."""

APPROVAL_BODY_MAX = 16 * 1024 * 1024
"""Largest body of an answer to a request for approval: it has the whole text that the person saw."""

REQUESTS_MAX = 64
"""Requests at work at a time, live streams included. Each may hold some MiB."""

KNOWN_RATE = 500.0
"""Requests a second of those with a token. A page that verifies a chain with many blobs makes some hundred."""

UNKNOWN_RATE = 20.0
"""Requests a second of those without a token: the page's few files, and wrong tokens."""

BURST_SECONDS = 4.0
"""How many seconds' worth of requests may come at once."""

_WINDOW = (b"navigate", b"document")
"""`Sec-Fetch-Mode` and `Sec-Fetch-Dest` of a request that fills a whole window or tab."""

_LOG = logging.getLogger("aver.explorer")


class Rates:
    """How many requests may come: a bucket that fills with time, and that each request takes one from."""

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._left = rate * BURST_SECONDS
        self._at = clock()

    def take(self) -> bool:
        """Count one request. Returns False if it is one too many."""
        now = self._clock()
        self._left = min(self._left + (now - self._at) * self._rate, self._rate * BURST_SECONDS)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class ExplorerGuard:
    """An ASGI wrapper that passes on only the requests that the rules of this module allow."""

    def __init__(self, app: Any, token: str, *, hosts: Collection[str], origins: Collection[str]) -> None:
        self._app = app
        self._token = token.encode("ascii")
        self._hosts = frozenset(host.encode("ascii") for host in hosts)
        self._origins = frozenset(origin.encode("ascii") for origin in origins)
        self._known = Rates(KNOWN_RATE)
        self._unknown = Rates(UNKNOWN_RATE)
        self._at_work = 0

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)  # Only the start and the end of the server: there are no WebSockets.
            return
        refusal = self._find_refusal(scope)
        if refusal is not None:
            debug("explorer", "refused %s with %s: %s", scope["path"], refusal.status, refusal.words)
            await send_refusal(refusal, send)
            return
        limit = body_limit(scope["path"])
        self._at_work += 1
        try:
            await BodyLimit(self._run, limit, send_refusal).run(scope, receive, send)
        finally:
            self._at_work -= 1

    def _find_refusal(self, scope: AsgiScope) -> HttpRefusal | None:
        headers = scope["headers"]
        # 1. For a window, the site that it comes from does not count.
        judged = headers if not _is_window(scope) else [pair for pair in headers if pair[0] != b"sec-fetch-site"]
        if (refusal := check_headers(judged, self._hosts, self._origins)) is not None:
            return refusal
        # 2. and 3.
        is_known = is_same_token(find_bearer_token(headers), self._token)
        if not (self._known if is_known else self._unknown).take():
            return HttpRefusal(429, "too many requests")
        if not is_known and scope["path"].startswith("/api/"):
            return NO_TOKEN
        # 4.
        if self._at_work >= REQUESTS_MAX:
            return HttpRefusal(429, "too many requests are at work")
        # 5. A request that declares too much need not arrive.
        sizes = [value for name, value in headers if name == b"content-length"]
        limit = body_limit(scope["path"])
        return BODY_TOO_LARGE if any(not size.isdigit() or int(size) > limit for size in sizes) else None

    async def _run(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        started = False

        async def send_noting(message: AsgiMessage) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, send_noting)
        except ClientDisconnect:
            debug("explorer", "the client of %s went away, or sent too much", scope["path"])
        except Exception as error:
            _LOG.exception("%s %s failed", scope["method"], scope["path"])
            if started:
                raise  # The answer has begun: uvicorn ends the connection, so that the client sees it cut.
            await error_answer(error)(scope, receive, send)


def body_limit(path: str) -> int:
    """How many bytes the body of a request may have."""
    return APPROVAL_BODY_MAX if path.startswith(f"{API}approvals/") else BODY_MAX


def _is_window(scope: AsgiScope) -> bool:
    """Whether a request fills a window with the page."""
    shown = {name: value for name, value in scope["headers"] if name.startswith(b"sec-fetch-")}
    asked = shown.get(b"sec-fetch-mode"), shown.get(b"sec-fetch-dest")
    return scope["path"] == "/" and scope["method"] == "GET" and asked == _WINDOW
