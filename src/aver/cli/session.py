"""One session in the form that was asked for: a story on the screen, one JSON object, or a page."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from aver.cli.options import Usage
from aver.cli.output import Screen, one_line, print_json
from aver.cli.sessions import verdict_on
from aver.cli.verdicts import exit_code, print_verdict
from aver.errors import NotFound, Unavailable
from aver.values import dataclass

if TYPE_CHECKING:
    from aver.check import Found
    from aver.ingest.sessions import Session
    from aver.ingest.story import Beat
    from aver.ingest.telling import Blobs
    from aver.verdict import Verdict

__all__ = ["show_session"]


@dataclass(frozen=True, slots=True)
class _Session:
    """A session, ready to be told."""

    session: Session
    beats: Iterator[Beat]
    verdict: Verdict
    blob: Blobs


def show_session(found: Found, given: argparse.Namespace, screen: Screen) -> int | None:
    """Show the session that was found. Returns the exit code, or None where it is no session."""
    if given.json and given.html:
        raise Usage("--json and --html are two different outputs", advice="choose one")
    opened = _in_ledger(found.chain, given) if found.chain is not None else _in_file(found, given)
    with opened as shown:
        if shown is None:
            return None
        if given.html:
            _write_page(Path(given.html), shown)
            screen.line(f"wrote {given.html}")
            print_verdict(screen, shown.verdict)
        elif given.json:
            from aver.cli.story import described

            print_json(described(shown.session, shown.beats, shown.verdict))
        else:
            from aver.cli.story import print_story

            print_story(screen, shown.session, shown.beats, shown.verdict, shown.blob, full=given.full)
        return exit_code([shown.verdict.status], strict=False)


@contextmanager
def _in_ledger(chain: str, given: argparse.Namespace) -> Iterator[_Session | None]:
    from aver.ingest.sessions import chains_of, session_of
    from aver.ingest.story import story
    from aver.ledger import open_ledger

    with open_ledger(given.ledger, tenant=given.tenant, create=False) as ledger:
        chains = chains_of(ledger, chain)
        if chains is None:
            yield None
            return
        yield _Session(session_of(ledger, chains), story(ledger, chains), verdict_on(ledger, chains), ledger.blob)


@contextmanager
def _in_file(found: Found, given: argparse.Namespace) -> Iterator[_Session | None]:
    """A session in a file: a database or bundle of the public tool, or one of ours."""
    from aver.check import verify
    from aver.ingest.sessions import chains_of_records, summed_up
    from aver.ingest.story import story_of_records
    from aver.ingest.telling import told

    chains = chains_of_records(found.read(), found.name)
    if chains is None:
        yield None
        return
    verdict = verify(given.thing, tenant=given.tenant, ledger=given.ledger)
    session = summed_up(map(told, found.read()), chains)
    yield _Session(session, story_of_records(found.read, chains), verdict, _nothing_beside)


def _nothing_beside(digest: str) -> bytes:
    raise NotFound(f"the blob {digest} is not in this file")


def _write_page(path: Path, shown: _Session) -> None:
    """Whole or not at all: a page that breaks off would look like a session that does."""
    from aver.ingest.page import page

    _write_whole(path, page(shown.session, shown.beats, shown.verdict, shown.blob))


def _write_whole(path: Path, pieces: Iterable[str]) -> None:
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
