"""Serve MCP over HTTP, for clients that cannot start a program. The server listens on this machine only.

A web page can send requests to a server on the machine of its reader. So the server refuses a request, before anything
else reads it, in three cases:

1. The `Host` is not ours. A web page can use DNS to point its own name to our address.
2. The request has an `Origin`, so it comes from a web page. This server has no web pages.
3. The request does not have the token.
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

HOST = "127.0.0.1"
PATH = "/mcp"
TOKEN_FILE = "mcp-token"  # noqa: S105 - the name of the file that holds it
"""In `AVER_HOME`. The person who configures a client copies the token from this file."""

TOKEN_MIN, TOKEN_MAX = 32, 512
"""The length of a token in characters: too long to guess, and short enough for a header."""

GRACE_SECONDS = 30
"""How many seconds the server waits for running calls when it stops."""

AsgiScope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


def read_token(path: Path | None = None) -> tuple[str, Path]:
    """Return the token that clients must send, and the path of its file.

    The first call creates the token. Raises `BadInput` if other users can read the file, or if it has no valid token.
    """
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
        # Check the open file, not the path: the file behind the path could be replaced in between.
        status = os.fstat(file.fileno())
        if status.st_mode & 0o077 or status.st_uid != os.geteuid():
            raise BadInput(f"{path} can be read by other users", advice=f"chmod 600 {path}, or remove it")
        text = file.read(TOKEN_MAX + 2).decode("ascii", "replace").strip()
    if not TOKEN_MIN <= len(text) <= TOKEN_MAX or not text.isprintable() or " " in text or not text.isascii():
        raise BadInput(f"{path} holds no token of {TOKEN_MIN} to {TOKEN_MAX} characters", advice="remove it")
    return text, path


def bind_socket(port: int) -> socket.socket:
    """Open a socket on the local address. Port 0 selects a free port. Raise `Unavailable` if the port is in use."""
    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        raise Unavailable(
            f"cannot listen on {HOST}:{port}: {error.strerror}", advice="choose another --port"
        ) from error


async def serve_http(server: Server[Any], listening: socket.socket, token: str) -> None:
    """Serve until SIGINT or SIGTERM. The server finishes running calls before it stops."""
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
    """An ASGI wrapper that passes on only the requests of clients with the token."""

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
        # 1. Exactly one Host header, with one of our addresses.
        if [value for name, value in headers if name == b"host"] not in [[host] for host in self._hosts]:
            return PlainTextResponse("wrong Host", status_code=421)
        # 2. No Origin header.
        if any(name == b"origin" for name, _ in headers):
            return PlainTextResponse("not for web pages", status_code=403)
        # 3. Exactly one Authorization header, with the token. The comparison takes constant time.
        shown = [value for name, value in headers if name == b"authorization"]
        word, _, token = shown[0].partition(b" ") if len(shown) == 1 else (b"", b"", b"")
        if word.lower() != b"bearer" or not hmac.compare_digest(token.strip(), self._token):
            return PlainTextResponse("a token is needed", status_code=401, headers={"WWW-Authenticate": "Bearer"})
        return None
