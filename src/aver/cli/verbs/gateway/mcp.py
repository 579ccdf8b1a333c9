"""`aver gateway mcp`: serves the gateway to one agent on stdin and stdout, as an MCP server with the one tool `act`."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from aver.cli.options import Usage, add_ledger, add_new_session, add_tenant
from aver.cli.terminal import Screen
from aver.cli.verbs.gateway.act import add_connect, connect_gateway, open_command_gateway
from aver.errors import Unavailable, install_advice

if TYPE_CHECKING:
    from aver.gateway.gateway import Gateway

EXAMPLES = """\
  aver gateway mcp                            serve a client on stdin and stdout; the client starts this
  aver gateway mcp --workspace ~/src/app --session build-7
  aver gateway mcp --connect unix:/PATH       pass acts on to a gateway that runs elsewhere"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_new_session(parser)
    parser.add_argument("--workspace", default=os.curdir, metavar="DIR", help="where acts happen (default: here)")
    add_connect(parser)
    add_ledger(parser)
    add_tenant(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    if not os.path.isdir(given.workspace):
        raise Usage(f"the workspace {given.workspace} is not a directory")
    try:
        import anyio

        from aver.mcp.gateway_door import build_act_server, build_gateway_server
        from aver.mcp.stdio import serve_stdio
    except ImportError as error:
        raise Unavailable(
            f"the MCP server needs a package that is not installed: {error.name}",
            advice=install_advice("gateway"),
        ) from error
    opened: list[Gateway] = []

    def open_gateway() -> Gateway:
        opened.append(open_command_gateway(given))
        return opened[-1]

    is_elsewhere = bool(given.connect)
    server = build_act_server(lambda: connect_gateway(given)) if is_elsewhere else build_gateway_server(open_gateway)
    try:
        anyio.run(serve_stdio, server)
    finally:
        for gateway in opened:
            gateway.close()
    return 0
