"""`aver ingest`: seals past sessions of coding agents from the transcripts that still exist."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aver.cli.options import Usage, add_json, add_ledger, add_tenant
from aver.cli.terminal import Progress, Screen, StderrScreen, StyledText, print_json
from aver.text import plural, to_one_line

if TYPE_CHECKING:
    from aver.files.user_dirs import UserEnvironment
    from aver.ingest.contract import Adapter, TranscriptSource
    from aver.ingest.seal import SealReport

EXAMPLES = """\
  aver ingest --all                      record every transcript of every tool on this machine
  aver ingest --all --tool claude-code
  aver ingest 5d2e4c1a                   record one session, by its id or the beginning of it
  aver ingest path/to/session.jsonl      record one transcript
  aver ingest --final 5d2e4c1a           the session is over: seal its last answer and open calls, too

Each step is sealed once, however often you run this. aver watch records sessions as they happen."""

WARN_AGE_SHARE = 0.8
"""A transcript that has reached this share of the age at which its tool deletes it gets a warning."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "sessions", nargs="*", metavar="SESSION", help="a session's id or the beginning of it, or a transcript"
    )
    parser.add_argument("--all", action="store_true", help="all transcripts on this machine")
    parser.add_argument("--tool", metavar="TOOL", help="only transcripts of this tool, such as codex")
    parser.add_argument(
        "--again", action="store_true", help="also read transcripts that have not changed since the last time"
    )
    parser.add_argument(
        "--final", action="store_true", help="the sessions are over: also seal what waits for a result or for more"
    )
    add_ledger(parser)
    add_tenant(parser)
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.errors import AverError
    from aver.files.user_dirs import current_user_environment
    from aver.ingest.json_lines import read_file_status
    from aver.ingest.seal import SealReport
    from aver.ingest.watch import IngestCache, catch_up
    from aver.ledger import open_ledger

    if bool(given.sessions) == given.all:
        raise Usage("name sessions, or give --all", advice="aver ingest --all")
    found = list(_select_sources(given, current_user_environment()))
    total, reports, failed = SealReport(), list[dict[str, Any]](), 0
    with open_ledger(given.ledger, tenant=given.tenant) as ledger, Progress("reading transcripts") as progress:
        stamps = IngestCache(ledger)
        sizes = [0 if (status := read_file_status(source.path)) is None else status.size for _, source in found]
        done = 0
        for (adapter, source), size in zip(found, sizes, strict=True):
            progress(done, sum(sizes))
            done += size
            if not (given.again or given.final) and stamps.is_read(source):
                reports.append(_transcript_to_dict(source, SealReport(), "unchanged"))
                continue
            try:
                sealing = catch_up(ledger, adapter, source, stamps, is_final=given.final)
            except AverError as error:
                failed += 1
                StderrScreen().print_error(f"{source.path}: {error.message}", error.advice)
                reports.append(_transcript_to_dict(source, SealReport(), error.message))
                continue
            total += sealing
            reports.append(_transcript_to_dict(source, sealing, "read"))
        stamps.save()
    _print_report(given, screen, found, total, reports)
    return 1 if failed else 0


def _print_report(
    given: argparse.Namespace,
    screen: Screen,
    found: list[tuple[Adapter, TranscriptSource]],
    total: SealReport,
    reports: list[dict[str, Any]],
) -> None:
    from aver.files.user_dirs import current_user_environment

    warnings = [*total.notes, *_deletion_warnings(found, current_user_environment())]
    if given.json:
        counts = {"records": total.records, "sealed": total.sealed + total.children, "unknown": total.unknown}
        print_json({"transcripts": reports, **counts, "warnings": warnings})
        return
    read = sum(entry["state"] == "read" for entry in reports)
    unchanged = sum(entry["state"] == "unchanged" for entry in reports)
    for entry in reports:
        if entry["sealed"]:
            more = f", {entry['unknown']} unknown" if entry["unknown"] else ""
            session = to_one_line(entry["session"][:36])
            screen.print_line(f"{entry['tool']:<12} {session:<36}  {plural(entry['sealed'], 'record')} sealed{more}")
    screen.print_line(
        f"{plural(total.sealed + total.children, 'record')} sealed from {plural(read, 'transcript')}"
        + (f"; {unchanged:,} unchanged" if unchanged else "")
    )
    if total.waiting:
        words = f"{plural(total.waiting, 'record')} not sealed yet: the session may go on"
        screen.print_line(StyledText(f"{words}. If it is over: aver ingest --final", "warn"))
    if total.unknown:
        screen.print_line(StyledText(f"{plural(total.unknown, 'record')} of an unknown kind, sealed unread", "warn"))
    for warning in warnings:
        StderrScreen().print_note(f"warning: {warning}")


def _transcript_to_dict(source: TranscriptSource, sealing: SealReport, state: str) -> dict[str, Any]:
    return {
        "tool": source.tool,
        "session": source.session,
        "agent": source.agent,
        "records": sealing.records,
        "sealed": sealing.sealed + sealing.children,
        "unknown": sealing.unknown,
        "waiting": sealing.waiting,
        "state": state,
    }


def _select_sources(given: argparse.Namespace, around: UserEnvironment) -> Iterator[tuple[Adapter, TranscriptSource]]:
    """The transcripts that the options select. Raises `NotFound` if a named one does not exist."""
    from aver.agents.registry import load_adapter, load_adapters
    from aver.errors import NotFound
    from aver.ingest.watch import locate_sources

    chosen = [load_adapter(given.tool)] if given.tool else load_adapters(StderrScreen().print_note)
    located = list(locate_sources(chosen, around, StderrScreen().print_error))
    if given.all:
        yield from located
        return
    for name in given.sessions:
        path = Path(name).absolute()
        # A path first, then a whole id, then the beginning of an id.
        named = [(adapter, source) for adapter, source in located if source.path == path]
        named = named or [(adapter, source) for adapter, source in located if source.session == name]
        named = named or [(adapter, source) for adapter, source in located if source.session.startswith(name)]
        if not named:
            raise NotFound(f"there is no transcript of {name}", advice="aver ingest --all records all transcripts")
        if len({(source.tool, source.session) for _, source in named}) > 1 and not path.exists():
            raise NotFound(f"several sessions begin with {name}", advice="be more specific: a longer id, or --tool")
        yield from named


def _deletion_warnings(found: list[tuple[Adapter, TranscriptSource]], around: UserEnvironment) -> Iterator[str]:
    """Warnings that a tool will soon delete transcripts by itself."""
    import time

    from aver.ingest.json_lines import read_file_status

    adapters = {adapter.tool: adapter for adapter, _ in found}
    for adapter in adapters.values():
        days = adapter.deletes_after(around)
        if days is None:
            continue
        before = time.time() - WARN_AGE_SHARE * days * 86_400
        statuses = [read_file_status(source.path) for its_adapter, source in found if its_adapter is adapter]
        old = sum(status is None or status.time_ns < before * 1e9 for status in statuses)
        these = f"; {plural(old, 'transcript')} will be deleted soon" if old else ""
        yield f"{adapter.title} deletes its transcripts after {days} days{these}. Sealed records stay"
