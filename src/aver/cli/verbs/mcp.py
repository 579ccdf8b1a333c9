"""`aver mcp`: runs the MCP server, on stdin and stdout for a client that starts it, or over local HTTP."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from aver.cli.options import Usage, add_ledger, add_tenant, parse_count
from aver.cli.terminal import Screen, StderrScreen
from aver.errors import Unavailable, install_advice

if TYPE_CHECKING:
    from aver.mcp.service import Service

EXAMPLES = """\
  aver mcp                                  serve a client on stdin and stdout; the client starts this
  aver mcp --workspace ~/src/app --agent claude-code
  aver mcp --http --port 8790               serve clients over HTTP; the token is in AVER_HOME/mcp-token
  aver mcp --trace 5d2e --as agent:critic   let an agent take part in a trace, with the tools of its role
  aver install claude-code                  make Claude Code start the server by itself"""

PORT_MAX = 65535


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--workspace", metavar="DIR", default=os.curdir, help="where the agent works (default: here)")
    parser.add_argument("--agent", metavar="NAME", default="", help="the agent's name (default: the client's name)")
    parser.add_argument(
        "--session", metavar="NAME", default="", help="one session for all calls; servers with the same name share it"
    )
    parser.add_argument(
        "--wait", type=parse_count, default=0, metavar="SECONDS", help="how long the gate waits for a person's approval"
    )
    parser.add_argument("--http", action="store_true", help="serve over HTTP, to this machine only")
    parser.add_argument("--port", type=parse_count, metavar="PORT", help="the port for --http (default: any free port)")
    parser.add_argument("--trace", metavar="TRACE", help="serve one participant of this trace instead; needs --as")
    parser.add_argument("--as", dest="participant", metavar="agent:NAME", help="the participant, whose key is here")
    add_ledger(parser)
    add_tenant(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    if (given.trace is None) != (given.participant is None):
        raise Usage("--trace and --as belong together", advice="aver mcp --trace TRACE --as agent:NAME")
    if given.trace is not None and given.http:
        raise Usage("--trace is served on stdin and stdout only")
    if given.port is not None and (not given.http or given.port > PORT_MAX):
        raise Usage("--port needs --http, and is at most 65535")
    if not os.path.isdir(given.workspace):
        raise Usage(f"the workspace {given.workspace} is not a directory")
    try:
        import anyio

        from aver.mcp.server import build_server
    except ImportError as error:
        raise Unavailable(
            f"the MCP server needs a package that is not installed: {error.name}",
            advice=install_advice("mcp"),
        ) from error
    if given.trace is not None:
        return _serve_participant(given)
    opened: list[Service] = []
    server = build_server(lambda: _open_service(given, opened))
    try:
        if given.http:
            from aver.mcp.http import PATH, read_mcp_token, serve_http
            from aver.serving.sockets import bind_loopback

            token, path = read_mcp_token()
            listener = bind_loopback(given.port or 0)
            StderrScreen().print_note(f"listening on {listener.address}{PATH}; the token is in {path}")
            anyio.run(serve_http, server, listener, token)
        else:
            from aver.mcp.stdio import serve_stdio

            anyio.run(serve_stdio, server)
    finally:
        for service in opened:
            service.close()
    return 0


def _serve_participant(given: argparse.Namespace) -> int:
    """Serve the tools of one role of a trace on stdin and stdout."""
    import anyio

    from aver.cli.verbs.protocol.trace_access import open_session, read_agent
    from aver.mcp.role_door import build_role_server
    from aver.mcp.stdio import serve_stdio
    from aver.protocol.tools.standard_tools import protocol_tools

    agent, workspace = read_agent(given.participant), os.path.abspath(given.workspace)
    tools = protocol_tools(workspace)
    # Opened before serving: who has no part in the trace must learn it at once.
    with open_session(given, workspace=workspace, tools=tools, wait=float(given.wait)) as session:
        role = session.find_participant(agent).role
        anyio.run(serve_stdio, build_role_server(lambda: session, agent, role))
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
