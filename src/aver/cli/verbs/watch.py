"""`aver watch`: seal what coding agents do, as their transcripts tell it."""

from __future__ import annotations

import argparse
import sys
import threading
import time
from typing import TYPE_CHECKING

from aver.cli.options import add_ledger, add_tenant
from aver.cli.sigterm import Terminated, raise_on_sigterm
from aver.cli.terminal import Screen, StderrScreen, StyledText
from aver.text import plural, to_one_line

if TYPE_CHECKING:
    from aver.ingest.watch import TranscriptUpdate

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = """\
  aver watch                        all tools, until Ctrl-C or SIGTERM
  aver watch --tool claude-code --tool codex

It goes on with the sessions that the ledger knows, and takes up others when they change; aver ingest --all seals those
that are over. Several may watch at once, and hooks may be installed besides: everything is sealed once."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tool", action="append", metavar="TOOL", help="only this tool; may be given again")
    add_ledger(parser)
    add_tenant(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.agents.registry import load_adapter, load_adapters
    from aver.files.user_dirs import current_user_environment
    from aver.ingest.watch import TranscriptWatcher
    from aver.ledger import open_ledger

    chosen = [load_adapter(tool) for tool in given.tool] if given.tool else load_adapters(StderrScreen().print_note)
    stop = threading.Event()
    with open_ledger(given.ledger, tenant=given.tenant) as ledger:
        watching = TranscriptWatcher(ledger, chosen, current_user_environment(), StderrScreen().print_error)
        places = watching.places()
        StderrScreen().print_note(
            f"watching {plural(len(places), 'place')} of {', '.join(one.title for one in chosen)}"
        )
        try:
            with raise_on_sigterm():
                watching.run(lambda seen: _print_sealed(seen, screen), stop)
        except (Terminated, KeyboardInterrupt):
            return 0
    return 0


def _print_sealed(seen: TranscriptUpdate, screen: Screen) -> None:
    """A line for each transcript in which there was something new."""
    source, sealing = seen
    for note in sealing.notes:
        StderrScreen().print_error(note)
    sealed = sealing.sealed + sealing.children
    if not sealed:
        return
    clock = StyledText(f"{time.strftime('%H:%M:%S')} ", "dim")
    agent = f" ({source.agent})" if source.agent else ""
    unknown = f", {sealing.unknown} of a sort that is not known" if sealing.unknown else ""
    screen.print_line(
        clock, to_one_line(f"{source.tool} {source.session}{agent}: {plural(sealed, 'record')} sealed{unknown}")
    )
    sys.stdout.flush()
