"""The options of the commands that run one part of the gateway, and the serving of a part."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from aver.cli.options import Usage, add_ledger, add_tenant, parse_count
from aver.cli.terminal import StderrScreen

if TYPE_CHECKING:
    from aver.gateway.settings import GatewaySettings
    from aver.ledger import Ledger
    from aver.serving.part_server import PartServer
    from aver.serving.sockets import PartAddress


def add_listen(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument(
        "--listen",
        metavar="ADDRESS",
        help=f"unix:/PATH or http://127.0.0.1:PORT (default: as [gateway] says, else {default})",
    )
    parser.add_argument("--group", action="store_true", help="let users of the socket's group connect, too (mode 0660)")
    parser.add_argument("--stop-on-eof", action="store_true", help=argparse.SUPPRESS)


def add_part(parser: argparse.ArgumentParser, default: str) -> None:
    """Add the options of a part that the gateway calls."""
    add_listen(parser, f"{default}.sock in AVER_HOME/gateway/run")
    parser.add_argument(
        "--directory", metavar="DIR", help=f"the part's directory (default: AVER_HOME/gateway/{default})"
    )
    parser.add_argument(
        "--peer-uid", type=parse_count, metavar="UID", help="the user id of the gateway (default: that of this process)"
    )


def add_place(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where acts happen and are recorded."""
    parser.add_argument("--workspace", default=os.curdir, metavar="DIR", help="where acts happen (default: here)")
    add_ledger(parser)
    add_tenant(parser)


def check_workspace(given: argparse.Namespace) -> str:
    if not os.path.isdir(given.workspace):
        raise Usage(f"the workspace {given.workspace} is not a directory")
    return str(os.path.realpath(given.workspace))


def find_address(given: argparse.Namespace, part: str) -> PartAddress:
    """Return the address of `--listen`, or that of the settings."""
    from aver.config import load_config
    from aver.gateway.parts.part_directories import PartDirectories
    from aver.gateway.settings import read_gateway_settings
    from aver.serving.sockets import parse_address

    if given.listen:
        return parse_address(given.listen)
    config = load_config()
    return PartDirectories(config.home).find_address(part, read_gateway_settings(config))


def open_with_settings(given: argparse.Namespace) -> tuple[Ledger, GatewaySettings]:
    """Open the ledger of a part, and read the gateway's settings."""
    from aver.check import open_ledger
    from aver.gateway.settings import read_gateway_settings

    ledger = open_ledger(given.ledger, tenant=given.tenant)
    try:
        return ledger, read_gateway_settings(ledger.config)
    except BaseException:
        ledger.close()
        raise


def serve_part(given: argparse.Namespace, server: PartServer, address: PartAddress, name: str) -> None:
    """Listen and serve until SIGTERM, SIGINT or, for a child of `aver gateway up`, the end of standard input."""
    from aver.gateway.parts.supervisor import stop_on_eof
    from aver.serving.part_server import serve_until_signal
    from aver.serving.sockets import listen_on

    listener = listen_on(address, mode=0o660 if given.group else 0o600)
    if given.stop_on_eof:
        stop_on_eof(server.stop)
    else:
        StderrScreen().print_note(f"{name} listens on {listener.address}")
    serve_until_signal(server, [listener])
