"""`aver gateway policy-server`: runs one of the two policy servers, from its own directory."""

from __future__ import annotations

import argparse
from pathlib import Path

from aver.cli.terminal import Screen
from aver.cli.verbs.gateway.part_options import add_part, find_address, serve_part

EXAMPLES = """\
  aver gateway policy-server 0
  aver gateway policy-server 1 --directory /home/policy1/part --peer-uid 1000 --group \\
      --listen unix:/run/aver/policy1.sock
  aver gateway policy-server 1 --listen http://127.0.0.1:9001"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("server", type=int, choices=(0, 1), help="which of the two servers")
    add_part(parser, "policy0 or policy1")


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.config import load_config
    from aver.gateway.parts.part_directories import PartDirectories
    from aver.gateway.parts.part_services import build_policy_part

    part = f"policy{given.server}"
    address = find_address(given, part)
    directory = Path(given.directory) if given.directory else PartDirectories(load_config().home).of(part)
    server = build_policy_part(directory.absolute(), given.server, address, peer_uid=given.peer_uid)
    serve_part(given, server, address, f"policy server {given.server}")
    return 0
