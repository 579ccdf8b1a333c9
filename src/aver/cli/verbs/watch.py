"""`aver watch`: seals the sessions of coding agents while the agents write their transcripts."""

from __future__ import annotations

import argparse
import sys
import threading
import time
from typing import TYPE_CHECKING

from aver.cli.options import add_ledger, add_tenant
from aver.cli.terminal import Screen, StderrScreen, StyledText, Terminated, raise_on_sigterm
from aver.text import plural, to_one_line

if TYPE_CHECKING:
    from aver.ingest.watch import TranscriptUpdate

EXAMPLES = """\
  aver watch                        watch all tools, until Ctrl-C or SIGTERM
  aver watch --tool claude-code --tool codex

Aver continues the sessions in the ledger and starts on others when their transcripts change. aver ingest --all
records sessions that have ended. Hooks and several watchers may run at the same time: each step is sealed once."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tool", action="append", metavar="TOOL", help="watch only this tool; repeatable")
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
        titles = ", ".join(adapter.title for adapter in chosen)
        StderrScreen().print_note(f"watching {plural(len(watching.places()), 'folder')} of {titles}")
        try:
            with raise_on_sigterm():
                watching.run(lambda seen: _print_sealed(seen, screen), stop)
        except (Terminated, KeyboardInterrupt):
            return 0
    return 0


def _print_sealed(seen: TranscriptUpdate, screen: Screen) -> None:
    """Print a line for a transcript with new records."""
    source, sealing = seen
    for note in sealing.notes:
        StderrScreen().print_error(note)
    sealed = sealing.sealed + sealing.children
    if not sealed:
        return
    clock = StyledText(f"{time.strftime('%H:%M:%S')} ", "dim")
    agent = f" ({source.agent})" if source.agent else ""
    unknown = f", {sealing.unknown} of an unknown kind" if sealing.unknown else ""
    screen.print_line(
        clock, to_one_line(f"{source.tool} {source.session}{agent}: {plural(sealed, 'record')} sealed{unknown}")
    )
    sys.stdout.flush()
