"""`aver mcp`: the MCP server, for an agent's client to start, or over HTTP on this machine."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from aver.cli.options import Usage, add_ledger, add_tenant, parse_count
from aver.cli.terminal import Screen, StderrScreen
from aver.errors import Unavailable

if TYPE_CHECKING:
    from aver.mcp.service import Service

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = """\
  aver mcp                                  for a client that starts it: speaks on stdin and stdout
  aver mcp --workspace ~/src/app --agent claude-code
  aver mcp --http --port 8790               for clients that connect; the token is in AVER_HOME/mcp-token
  aver install claude-code                  have a client start it"""

PORT_MAX = 65535


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--workspace", metavar="DIR", default=os.curdir, help="where the agent works (default: here)")
    parser.add_argument("--agent", metavar="NAME", default="", help="who acts (default: what the client calls itself)")
    parser.add_argument(
        "--session", metavar="NAME", default="", help="one session for all calls, shared by servers that name it"
    )
    parser.add_argument(
        "--wait", type=parse_count, default=0, metavar="SECONDS", help="let the gate wait so long for a human"
    )
    parser.add_argument("--http", action="store_true", help="serve over HTTP on this machine instead")
    parser.add_argument("--port", type=parse_count, metavar="PORT", help="with --http (default: any that is free)")
    add_ledger(parser)
    add_tenant(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    if given.port is not None and (not given.http or given.port > PORT_MAX):
        raise Usage("--port is for --http, and at most 65535")
    if not os.path.isdir(given.workspace):
        raise Usage(f"the workspace {given.workspace} is not a directory")
    try:
        import anyio

        from aver.mcp.server import build_server
    except ImportError as error:
        raise Unavailable(
            f"the MCP server needs a package that is not installed: {error.name}", advice="pip install 'aver[mcp]'"
        ) from error
    opened: list[Service] = []
    server = build_server(lambda: _open_service(given, opened))
    try:
        if given.http:
            from aver.mcp.http import HOST, PATH, bind_socket, read_token, serve_http

            token, path = read_token()
            listening = bind_socket(given.port or 0)
            StderrScreen().print_note(
                f"listening on http://{HOST}:{listening.getsockname()[1]}{PATH}; the token is in {path}"
            )
            anyio.run(serve_http, server, listening, token)
        else:
            from aver.mcp.stdio import serve_stdio

            anyio.run(serve_stdio, server)
    finally:
        for service in opened:
            service.close()
    return 0


def _open_service(given: argparse.Namespace, opened: list[Service]) -> Service:
    from aver.mcp.service import Service
    from aver.mcp.workspace import Workspace

    opened.append(
        Service(
            Workspace(given.workspace),
            agent=given.agent,
            session=given.session,
            ledger=given.ledger,
            tenant=given.tenant,
            wait=float(given.wait),
        )
    )
    return opened[-1]
