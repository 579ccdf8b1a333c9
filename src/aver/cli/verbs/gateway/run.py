"""`aver gateway run`: runs an agent confined, with the gateway's socket as its only way out."""

from __future__ import annotations

import argparse
import os

from aver.cli.options import Usage, add_ledger, add_new_session, add_tenant
from aver.cli.terminal import Screen, StderrScreen
from aver.cli.verbs.gateway.confinement_options import add_contract, open_run, print_verdict

EXAMPLES = """\
  aver gateway run -- python agent.py
  aver gateway run --contract contract.json --workspace ~/src/app --session build-7 -- node agent.js
  aver gateway run --prompt 'tidy the notes' --caller agent:notes -- python agent.py

exit code: that of the agent; 1 if the confinement does not hold, 2 if this machine cannot confine."""

BROKEN = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_contract(parser)
    add_new_session(parser)
    parser.add_argument("--workspace", default=os.curdir, metavar="DIR", help="where acts happen (default: here)")
    parser.add_argument(
        "--caller",
        action="append",
        metavar="NAME",
        help="a caller that the agent may name; a * may stand at the end; may be given several times (default: any)",
    )
    parser.add_argument("--prompt", metavar="TEXT", help="what the user asked for: acts are judged by it")
    parser.add_argument(
        "--env", action="append", default=[], metavar="NAME", help="give the agent this variable, too; several times"
    )
    add_ledger(parser)
    add_tenant(parser)
    parser.add_argument("command", nargs="+", metavar="COMMAND", help="-- and the agent's command")


def run(given: argparse.Namespace, screen: Screen) -> int:
    for name in given.env:
        if name not in os.environ:
            raise Usage(f"--env {name}: there is no such variable")
    notes = StderrScreen()
    with open_run(given, passed=tuple(given.env), callers=tuple(given.caller or ("*",))) as confined:
        confined.check_command(given.command)
        verdict = confined.verify()
        print_verdict(verdict, notes)
        if not verdict["ok"]:
            notes.print_note("the agent was not started: its confinement does not hold")
            return BROKEN
        if given.prompt is not None:
            confined.open_session(given.prompt)
        notes.print_note(f"session {confined.session}")
        return confined.start(given.command)
