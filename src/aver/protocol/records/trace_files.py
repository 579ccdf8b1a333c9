"""The files of traces in `AVER_HOME/protocol/`: the lock of running calls, and the heads that were seen.

    <trace>.lock           every process that runs a call of the trace holds it, shared, from before the start is sealed
                           until the end is. Who gets it exclusively knows that no call runs in this home
    <trace>.<16 hex>.seen  the newest head of the trace that this home has verified; the digits stand for the ledger and
                           the tenant

A trace's id has no slash and no leading dot, so it is a file name as it stands. The kernel drops a lock with the
process that held it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson

from aver.errors import AverError, BadInput, NotFound, Unavailable
from aver.files.atomic import make_directory, replace_file
from aver.files.locks import Pace, open_lock_file, try_lock, wait_until
from aver.files.regular import open_file
from aver.ledger import Head
from aver.log import debug
from aver.protocol.events import check_trace_id
from aver.protocol.statements import SeenHead, TracePlace, read_seen

DIRECTORY = "protocol"
LOCK_WAIT = 30.0
"""Seconds that a runner waits for those who give up lost calls. They need a few appends."""
_PACE = Pace(0.005, 0.1)

SEEN_BYTES = 4096
"""Largest file of a seen head that is read. Ours have some hundred bytes."""


@contextmanager
def hold_run_lock(home: Path, trace: str) -> Iterator[None]:
    """Show that a call of the trace runs in this process. Raises `Unavailable`."""
    handle = _open_lock(home, trace)
    try:
        # Only who gives up lost calls holds it exclusively, and only for a moment.
        if not wait_until(lambda: try_lock(handle, shared=True), LOCK_WAIT, _PACE):
            raise Unavailable(f"the lock of the trace {trace} was not free for {LOCK_WAIT:g} seconds")
        yield
    finally:
        os.close(handle)


@contextmanager
def try_exclusive_lock(home: Path, trace: str) -> Iterator[bool]:
    """Give whether no call of the trace runs in this home. While the context lasts, none can begin."""
    handle = _open_lock(home, trace)
    try:
        yield try_lock(handle)
    finally:
        os.close(handle)


def _open_lock(home: Path, trace: str) -> int:
    path = home / DIRECTORY / f"{check_trace_id(trace)}.lock"
    try:
        make_directory(path.parent)
        return open_lock_file(path)
    except OSError as error:
        raise Unavailable(f"cannot open the lock {path}: {error.strerror}") from error


def read_seen_head(home: Path, place: TracePlace, trace: str) -> SeenHead | None:
    """Return the newest head of a trace that this home has verified; None if it has seen none.

    Raises `BadInput` for a file that cannot be read: without it nobody would notice another history.
    """
    path = _seen_path(home, place, trace)
    try:
        with open_file(path) as file:
            raw = file.read(SEEN_BYTES)
    except NotFound:
        return None
    except (AverError, OSError) as error:
        raise BadInput(f"cannot read {path}", advice="move it away, if you know why") from error
    try:
        return read_seen(orjson.loads(raw), str(path))
    except (BadInput, ValueError) as error:
        raise BadInput(f"{path} does not hold a head", advice="move it away, if you know why") from error


def save_seen_head(home: Path, place: TracePlace, trace: str, head: Head) -> None:
    """Remember a head of a trace. A failure is only logged: the trace itself is not at fault."""
    path = _seen_path(home, place, trace)
    try:
        make_directory(path.parent)
        replace_file(path, orjson.dumps({"count": head.count, "hash": head.hash}))
    except (AverError, OSError) as error:
        debug("protocol", "cannot remember the head of %s: %s", trace, error)


def _seen_path(home: Path, place: TracePlace, trace: str) -> Path:
    digits = hashlib.sha256(f"{place.ledger}/{place.tenant}".encode()).hexdigest()[:16]
    return home / DIRECTORY / f"{check_trace_id(trace)}.{digits}.seen"
