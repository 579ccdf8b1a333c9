"""`aver keys`: our keys and the ones we know. Looking creates nothing; importing trusts nobody by itself."""

from __future__ import annotations

import argparse
from typing import Any

from aver.cli.options import Parser, add_json, count
from aver.cli.output import Screen

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = """\
  aver keys show
  aver keys new agent:builder
  aver keys rotate                            a new key for the ledger, vouched for by the old one
  aver keys export --out our-keys.json        public keys, to give to whoever verifies
  aver keys import their-keys.json            lists what is in it; trusts nothing
  aver keys import their-keys.json --trust 3f0c9a1b2d4e5f60"""

IDENTITIES = "ledger, agent:NAME, person:NAME or policy:NAME"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=Parser)
    _action(actions, "show", "list our keys and the ones we know", "  aver keys show --json")
    _add_new(actions)
    _add_rotate(actions)
    _add_export(actions)
    _add_import(actions)
    _add_trust(actions)
    _add_forget(actions)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.cli import key_actions

    key_actions.ACTIONS[given.action](given, screen)
    return 0


def _action(actions: Any, name: str, summary: str, examples: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(name, help=summary, summary=summary, examples=examples)
    add_json(parser)
    return parser


def _add_new(actions: Any) -> None:
    examples = (
        "  aver keys new agent:builder\n"
        "  aver keys new person:ada             asks for a passphrase\n"
        "  aver keys new person:ada --ssh-agent registers the key that ssh-agent holds"
    )
    new = _action(actions, "new", "make a key for an identity", examples)
    new.add_argument("identity", metavar="IDENTITY", help=IDENTITIES)
    new.add_argument("--purpose", help="seal, approve, policy or checkpoint (default: by identity)")
    new.add_argument("--pq", action="store_true", help="with an ML-DSA-65 half beside Ed25519")
    new.add_argument(
        "--ssh-agent",
        nargs="?",
        const="",
        metavar="KEY",
        help="no new key: the Ed25519 key that ssh-agent holds, by fingerprint or comment where there are several",
    )
    _add_passphrase(new)


def _add_rotate(actions: Any) -> None:
    summary = "replace an identity's key; the old private key is destroyed"
    rotate = _action(actions, "rotate", summary, "  aver keys rotate\n  aver keys rotate agent:builder --pq")
    rotate.add_argument("identity", nargs="?", default="ledger", metavar="IDENTITY", help="(default: ledger)")
    rotate.add_argument("--pq", action="store_true", default=None, help="give the new key an ML-DSA-65 half")
    _add_passphrase(rotate)


def _add_passphrase(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--passphrase-fd", type=count, metavar="N", help="read the passphrase's line from this file descriptor"
    )


def _add_export(actions: Any) -> None:
    examples = "  aver keys export --out our-keys.json\n  aver keys export agent:builder"
    export = _action(actions, "export", "write public keys, for whoever verifies", examples)
    export.add_argument(
        "name", nargs="?", default="ledger", metavar="NAME", help="identity or fingerprint (default: ledger)"
    )
    export.add_argument("--out", metavar="FILE", help="write here (default: stdout)")


def _add_import(actions: Any) -> None:
    summary = "list the public keys in a file or directory, and trust those you name"
    examples = "  aver keys import bundle/index.json\n  aver keys import bundle/index.json --trust 3f0c9a1b2d4e5f60"
    importing = _action(actions, "import", summary, examples)
    importing.add_argument("path", metavar="PATH", help="an export, a keyring, a bundle's index, or their directory")
    importing.add_argument(
        "--trust", action="append", default=[], metavar="FINGERPRINT", help="register this key; repeat for more"
    )


def _add_trust(actions: Any) -> None:
    examples = "  aver keys trust their-keys.json\n  aver keys trust HEX                  64 hex digits"
    trust = _action(actions, "trust", "register other parties' public keys as known", examples)
    trust.add_argument("key", metavar="HEX|FILE", help="a public key in hex, or a file of keys, all of which you trust")


def _add_forget(actions: Any) -> None:
    forget = _action(actions, "forget", "stop knowing another party's key", "  aver keys forget 3f0c9a1b2d4e5f60")
    forget.add_argument("fingerprint", metavar="FINGERPRINT")
