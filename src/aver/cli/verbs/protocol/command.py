"""`aver protocol`: finds the module of a subcommand. To add one, write its module and add a line to `SUBCOMMANDS`.

`aver.cli.subcommands` says what such a module has. It imports the protocol inside of `run`: `--help` loads none of it.
"""

from __future__ import annotations

import argparse

from aver.cli.subcommands import add_subcommands, run_subcommand
from aver.cli.terminal import Screen

SUBCOMMANDS = {
    "run": ("aver.cli.verbs.protocol.run", "run a task with all its roles, and audit it"),
    "resume": ("aver.cli.verbs.protocol.resume", "go on with a trace that was interrupted"),
    "abort": ("aver.cli.verbs.protocol.abort", "end a trace as its operator"),
    "list": ("aver.cli.verbs.protocol.list", "list traces, newest first"),
    "view": ("aver.cli.verbs.protocol.view", "show what a participant sees, and what it may say now"),
    "say": ("aver.cli.verbs.protocol.say", "say one event as a participant"),
    "invite": ("aver.cli.verbs.protocol.invite", "write an invitation to take a role in a new trace"),
    "join": ("aver.cli.verbs.protocol.join", "accept an invitation with a key of your own"),
    "accept": ("aver.cli.verbs.protocol.accept", "take in what participants elsewhere have signed"),
    "resolve": ("aver.cli.verbs.protocol.resolve", "let a person rule on a dispute"),
    "audit": ("aver.cli.verbs.protocol.audit", "audit a trace, or judge one again and write the report"),
    "schema": ("aver.cli.verbs.protocol.schema", "print the JSON Schema of an event"),
}
"""Each subcommand with its module and its summary."""

EXAMPLES = """\
  aver protocol run task.toml --workspace ~/src/shop
  aver protocol list
  aver protocol view 5d2e --as agent:critic
  aver protocol say 5d2e claim_challenged challenge.json --as agent:critic
  aver protocol audit 5d2e --out report
  aver show 5d2e --html trace.html"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_subcommands(parser, SUBCOMMANDS)


def run(given: argparse.Namespace, screen: Screen) -> int:
    return run_subcommand(SUBCOMMANDS, given, screen)
