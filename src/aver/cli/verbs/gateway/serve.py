"""`aver gateway serve`: serves acts over HTTP, on a Unix socket or on this machine's TCP address."""

from __future__ import annotations

import argparse

from aver.cli.terminal import Screen
from aver.cli.verbs.gateway.part_options import add_listen, add_place, check_workspace, find_address, serve_part

EXAMPLES = """\
  aver gateway serve --workspace ~/src/app
  aver gateway serve --listen http://127.0.0.1:9000      the token is in AVER_HOME/gateway/gateway/link-token
  curl --unix-socket ~/.aver/gateway/run/gateway.sock http://localhost/act -H 'Aver-Session: s1' -d @act.json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_listen(parser, "gateway.sock in AVER_HOME/gateway/run")
    add_place(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.check import open_ledger
    from aver.config import ensure_home
    from aver.files.atomic import make_directory
    from aver.gate.ask import load_gate
    from aver.gateway.parts.entrance import open_gateway_of
    from aver.gateway.parts.http_door import HttpDoor
    from aver.gateway.parts.part_directories import GATEWAY, LINK_TOKEN, PartDirectories
    from aver.gateway.parts.part_services import describe_health
    from aver.gateway.policy_server import name_program
    from aver.serving.tokens import read_token

    workspace, address = check_workspace(given), find_address(given, GATEWAY)
    with open_ledger(given.ledger, tenant=given.tenant) as ledger:
        own = PartDirectories(ensure_home(ledger.config.home)).of(GATEWAY)
        make_directory(own)
        with open_gateway_of(ledger, workspace=workspace, close=lambda: None) as gateway:
            door = HttpDoor(gateway, read_token(own / LINK_TOKEN))
            server = door.build_server(
                lambda: describe_health(
                    GATEWAY, lambda: name_program(load_gate(ledger.config, workspace, ledger=ledger))
                )
            )
            serve_part(given, server, address, "the gateway")
    return 0
