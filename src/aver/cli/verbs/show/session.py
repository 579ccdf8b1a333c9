"""`aver show SESSION`: prints a session as a story, as one JSON object, or as an HTML page."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from aver.check import ResolvedTarget, open_ledger, verify
from aver.cli.options import Usage
from aver.cli.terminal import Screen, print_json
from aver.cli.verbs.show.story import print_story, story_to_dict
from aver.cli.verdict_text import exit_code, print_verdict
from aver.errors import NotFound, Unavailable
from aver.fast_dataclass import dataclass
from aver.sessions.html_page import render_page
from aver.sessions.sessions import (
    SessionTotals,
    chains_from_records,
    compute_step_totals,
    compute_totals,
    find_session_by_chain,
)
from aver.sessions.step import ReadBlob, read_step
from aver.sessions.story import StoryEntry, read_story, story_from_records
from aver.sessions.verify import verify_session
from aver.text import to_one_line
from aver.verdict import Verdict

__all__ = ["show_session"]


@dataclass(frozen=True, slots=True)
class _SessionView:
    """A session with everything that is needed to print it."""

    session: SessionTotals
    entries: Iterator[StoryEntry]
    verify: Callable[[], Verdict]
    blob: ReadBlob


def show_session(found: ResolvedTarget, given: argparse.Namespace, screen: Screen) -> int | None:
    """Show the session that was found. Returns the exit code, or None if it is no session."""
    if given.json and given.html:
        raise Usage("--json and --html are two different outputs", advice="choose one")
    opened = _open_from_ledger(found.chain, given) if found.chain is not None else _open_from_file(found, given)
    with opened as shown:
        if shown is None:
            return None
        verdict = _present_session(shown, given, screen)
        return exit_code([verdict.status], strict=False)


def _present_session(shown: _SessionView, given: argparse.Namespace, screen: Screen) -> Verdict:
    if given.html:
        verdict = shown.verify()
        _write_page(Path(given.html), render_page(shown.session, shown.entries, verdict, shown.blob))
        screen.print_line(to_one_line(f"wrote {given.html}"))
        print_verdict(screen, verdict)
        return verdict
    if given.json:
        verdict = shown.verify()
        print_json(story_to_dict(shown.session, shown.entries, verdict))
        return verdict
    print_story(screen, shown.session, shown.entries, shown.blob, full=given.full)
    verdict = shown.verify()
    print_verdict(screen, verdict)
    return verdict


@contextmanager
def _open_from_ledger(chain: str, given: argparse.Namespace) -> Iterator[_SessionView | None]:
    with open_ledger(given.ledger, tenant=given.tenant, create=False) as ledger:
        chains = find_session_by_chain(ledger, chain)
        if chains is None:
            yield None
            return
        session = compute_totals(ledger, chains)
        yield _SessionView(session, read_story(ledger, chains), lambda: verify_session(ledger, chains), ledger.blob)


@contextmanager
def _open_from_file(found: ResolvedTarget, given: argparse.Namespace) -> Iterator[_SessionView | None]:
    """Open a session in a file: a database or bundle of agent-capsule, or one of Aver's files."""
    chains = chains_from_records(found.read(), found.name)
    if chains is None:
        yield None
        return
    session = compute_step_totals(map(read_step, found.read()), chains)
    yield _SessionView(
        session,
        story_from_records(found.read, chains),
        lambda: verify(given.thing, tenant=given.tenant, ledger=given.ledger),
        _refuse_blob,
    )


def _refuse_blob(digest: str) -> bytes:
    raise NotFound(f"the blob {digest} is not in this file")


def _write_page(path: Path, pieces: Iterable[str]) -> None:
    """Write the page completely or not at all. Half a page would look like a session that broke off."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with temporary.open("x", encoding="utf-8", errors="replace", newline="\n") as file:
            file.writelines(pieces)
        temporary.replace(path)
    except OSError as error:
        words = to_one_line(f"cannot write {path}: {error.strerror or error}")
        raise Unavailable(words, advice="choose another file") from error
    finally:
        temporary.unlink(missing_ok=True)
