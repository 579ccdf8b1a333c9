"""Serve MCP over HTTP, for clients that cannot start a program. The server listens on this machine only.

`aver.serving.guard` says which requests the server refuses before it reads them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.transport_security import DEFAULT_MAX_REQUEST_BODY_SIZE, TransportSecuritySettings

from aver.config import ensure_home
from aver.serving.guard import TokenGuard
from aver.serving.sockets import Listener
from aver.serving.tokens import read_token

PATH = "/mcp"
TOKEN_FILE = "mcp-token"  # noqa: S105 - the name of the file that holds it
"""In `AVER_HOME`. The person who configures a client copies the token from this file."""

GRACE_SECONDS = 30
"""How many seconds the server waits for running calls when it stops."""


def read_mcp_token() -> tuple[str, Path]:
    """Return the token that clients must send, and the path of its file. The first call creates the token."""
    path = ensure_home() / TOKEN_FILE
    return read_token(path), path


async def serve_http(server: Server[Any], listener: Listener, token: str) -> None:
    """Serve until SIGINT or SIGTERM. The server finishes running calls before it stops."""
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        transport_security=TransportSecuritySettings(allowed_hosts=list(listener.hosts), allowed_origins=[]),
    )
    config = uvicorn.Config(
        TokenGuard(app, token, listener.hosts, body_max=DEFAULT_MAX_REQUEST_BODY_SIZE),
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
        server_header=False,
    )
    await uvicorn.Server(config).serve(sockets=[listener.socket])
