"""Serving over HTTP, for clients that cannot start a program: on this machine only, and only with the token.

A web page may send requests to a server on the reader's own machine. So every request is refused, before anything reads
it, that has not the token, that asks for another host (a page that gave itself our address by DNS), or that comes from
a page (`Origin`): no page of ours is served here.
"""

from __future__ import annotations

import hmac
import os
import secrets
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import PlainTextResponse

from aver.config import ensure_home
from aver.errors import BadInput, Unavailable
from aver.files.atomic import replace_file
from aver.files.regular import open_regular

__all__ = ["HOST", "PATH", "TOKEN_FILE", "bind_socket", "read_token", "serve_http"]

HOST = "127.0.0.1"
PATH = "/mcp"
TOKEN_FILE = "mcp-token"  # noqa: S105 - the name of the file that holds it
"""In `AVER_HOME`, for whoever configures a client."""

TOKEN_MIN, TOKEN_MAX = 32, 512
"""Characters of a token: as many as nobody guesses, and no more than a header carries."""

GRACE_SECONDS = 30
"""For how long calls in flight are waited for when the server is stopped."""

AsgiScope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


def read_token(path: Path | None = None) -> tuple[str, Path]:
    """The token that clients must show, and where it is kept. Made at the first use, readable by its owner alone."""
    path = path or ensure_home() / TOKEN_FILE
    try:
        file = open_regular(path, follow=False)
    except FileNotFoundError:
        token = secrets.token_urlsafe(32)
        replace_file(path, f"{token}\n".encode("ascii"))
        return token, path
    except OSError as error:
        raise BadInput(f"cannot read the token in {path}: {error.strerror}") from error
    with file:
        status = os.fstat(file.fileno())
        if status.st_mode & 0o077 or status.st_uid != os.geteuid():
            raise BadInput(f"{path} is not ours alone to read", advice=f"chmod 600 {path}, or remove it")
        text = file.read(TOKEN_MAX + 2).decode("ascii", "replace").strip()
    if not TOKEN_MIN <= len(text) <= TOKEN_MAX or not text.isprintable() or " " in text or not text.isascii():
        raise BadInput(f"{path} holds no token of {TOKEN_MIN} to {TOKEN_MAX} characters", advice="remove it")
    return text, path


def bind_socket(port: int) -> socket.socket:
    """A socket on this machine's own address; port 0 is any that is free."""
    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        raise Unavailable(
            f"cannot listen on {HOST}:{port}: {error.strerror}", advice="choose another --port"
        ) from error


async def serve_http(server: Server[Any], listening: socket.socket, token: str) -> None:
    """Serve until told to stop (SIGINT, SIGTERM); calls in flight are finished first."""
    port = listening.getsockname()[1]
    hosts = [f"{name}:{port}" for name in (HOST, "localhost")]
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        transport_security=TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=[]),
    )
    config = uvicorn.Config(
        TokenGuard(app, token, hosts),
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
        server_header=False,
    )
    await uvicorn.Server(config).serve(sockets=[listening])


class TokenGuard:
    """Lets through to an application what comes from a client that knows the token."""

    def __init__(self, app: Any, token: str, hosts: list[str]) -> None:
        self._app = app
        self._token = token.encode("ascii")
        self._hosts = {host.encode("ascii") for host in hosts}

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if refusal is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await refusal(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    def _refusal(self, scope: AsgiScope) -> PlainTextResponse | None:
        headers = scope["headers"]
        if [value for name, value in headers if name == b"host"] not in [[host] for host in self._hosts]:
            return PlainTextResponse("wrong Host", status_code=421)
        if any(name == b"origin" for name, _ in headers):
            return PlainTextResponse("not for web pages", status_code=403)
        shown = [value for name, value in headers if name == b"authorization"]
        word, _, token = shown[0].partition(b" ") if len(shown) == 1 else (b"", b"", b"")
        if word.lower() != b"bearer" or not hmac.compare_digest(token.strip(), self._token):
            return PlainTextResponse("a token is needed", status_code=401, headers={"WWW-Authenticate": "Bearer"})
        return None
