"""One session in the form that was asked for: a story on the screen, one JSON object, or a page."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from aver.check import Found, verify
from aver.cli.options import Usage
from aver.cli.output import Screen, one_line, print_json
from aver.cli.sessions import verdict_on
from aver.cli.story import described, print_story
from aver.cli.verdicts import exit_code, print_verdict
from aver.errors import NotFound, Unavailable
from aver.ingest.page import page
from aver.ingest.sessions import Session, chains_of, chains_of_records, session_of, summed_up
from aver.ingest.story import Beat, story, story_of_records
from aver.ingest.telling import Blobs, told
from aver.ledger import open_ledger
from aver.values import dataclass
from aver.verdict import Verdict

__all__ = ["show_session"]


@dataclass(frozen=True, slots=True)
class _Session:
    """A session, ready to be told."""

    session: Session
    beats: Iterator[Beat]
    verify: Callable[[], Verdict]
    blob: Blobs


def show_session(found: Found, given: argparse.Namespace, screen: Screen) -> int | None:
    """Show the session that was found. Returns the exit code, or None where it is no session."""
    if given.json and given.html:
        raise Usage("--json and --html are two different outputs", advice="choose one")
    opened = _in_ledger(found.chain, given) if found.chain is not None else _in_file(found, given)
    with opened as shown:
        if shown is None:
            return None
        verdict = _shown(shown, given, screen)
        return exit_code([verdict.status], strict=False)


def _shown(shown: _Session, given: argparse.Namespace, screen: Screen) -> Verdict:
    if given.html:
        verdict = shown.verify()
        _write_whole(Path(given.html), page(shown.session, shown.beats, verdict, shown.blob))
        screen.line(one_line(f"wrote {given.html}"))
        print_verdict(screen, verdict)
        return verdict
    if given.json:
        verdict = shown.verify()
        print_json(described(shown.session, shown.beats, verdict))
        return verdict
    print_story(screen, shown.session, shown.beats, shown.blob, full=given.full)
    verdict = shown.verify()
    print_verdict(screen, verdict)
    return verdict


@contextmanager
def _in_ledger(chain: str, given: argparse.Namespace) -> Iterator[_Session | None]:
    with open_ledger(given.ledger, tenant=given.tenant, create=False) as ledger:
        chains = chains_of(ledger, chain)
        if chains is None:
            yield None
            return
        session = session_of(ledger, chains)
        yield _Session(session, story(ledger, chains), lambda: verdict_on(ledger, chains), ledger.blob)


@contextmanager
def _in_file(found: Found, given: argparse.Namespace) -> Iterator[_Session | None]:
    """A session in a file: a database or bundle of the public tool, or one of ours."""
    chains = chains_of_records(found.read(), found.name)
    if chains is None:
        yield None
        return
    session = summed_up(map(told, found.read()), chains)
    yield _Session(
        session,
        story_of_records(found.read, chains),
        lambda: verify(given.thing, tenant=given.tenant, ledger=given.ledger),
        _nothing_beside,
    )


def _nothing_beside(digest: str) -> bytes:
    raise NotFound(f"the blob {digest} is not in this file")


def _write_whole(path: Path, pieces: Iterable[str]) -> None:
    """Whole or not at all: a page that breaks off would look like a session that does."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with beside.open("x", encoding="utf-8", errors="replace", newline="\n") as file:
            file.writelines(pieces)
        beside.replace(path)
    except OSError as error:
        words = one_line(f"cannot write {path}: {error.strerror or error}")
        raise Unavailable(words, advice="choose another place") from error
    finally:
        beside.unlink(missing_ok=True)
