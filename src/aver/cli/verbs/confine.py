"""`aver confine`: runs a shell command without network, and lets it write in its workspace and in caches only.

With `[gate] confine = "build"`, hooks put it before tests and builds. It also works by hand.
"""

from __future__ import annotations

import argparse
import os

from aver.cli.options import Usage
from aver.cli.terminal import Screen

EXAMPLES = """\
  aver confine -- 'npm test'                    run the tests without network
  aver confine --workspace ~/shop -- 'make'     allow writes below ~/shop

The exit code is that of the command."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--workspace", metavar="DIR", default=".", help="where the command may write (default: here)")
    parser.add_argument("command", metavar="COMMAND", help="the text of a shell command")


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.config import home_dir
    from aver.gate.confinement import build_wrapped_command

    if not given.command.strip():
        raise Usage("the command is empty")
    command = build_wrapped_command(given.command, given.workspace, aver_home=home_dir(), environment=dict(os.environ))
    # Nothing is left to do here, so the command takes this process's place: signals and the exit code are its own.
    os.execv(command[0], command)
