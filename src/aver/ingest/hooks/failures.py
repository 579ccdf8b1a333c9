"""Hooks that Aver failed in: remembered in `AVER_HOME/hook-failures.jsonl`, and sealed by the next that works.

A line says when, in which hook of which session, and why; of the payload only its digest, size and call's id, because
what could not be masked must not lie around. The transcript still has the call, and a watcher seals it from there.

Remembering never fails: what cannot even be remembered was said on stderr.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aver.clock import new_id, now
from aver.home import ensure_home

if TYPE_CHECKING:
    from aver.ledger import Ledger

__all__ = ["remember", "seal_remembered"]

NAME = "hook-failures.jsonl"

SIZE_MAX = 1024 * 1024
"""Bytes that are kept: thousands of failures, after which one more says nothing new."""

WORDS_MAX = 2000
"""Characters of what went wrong."""


def remember(home: Path, tool: str, event: str, session: str, why: str, payload: bytes, call: str = "") -> None:
    """Keep that a hook failed, for the next one that works."""
    import hashlib

    import orjson

    failure = {
        "id": new_id(),
        "at": now(),
        "tool": tool,
        "event": event[:WORDS_MAX],
        "session": session[:WORDS_MAX],
        "call": call[:WORDS_MAX],
        "why": why[:WORDS_MAX],
        "payload": {"sha256": hashlib.sha256(payload).hexdigest(), "size": len(payload)},
    }
    with suppress(Exception):
        ensure_home(home)
        with _held(home / NAME, os.O_CREAT) as handle:
            if os.fstat(handle).st_size < SIZE_MAX:
                os.lseek(handle, 0, os.SEEK_END)
                os.write(handle, orjson.dumps(failure) + b"\n")


def seal_remembered(ledger: Ledger) -> int:
    """Seal what is remembered, each in the chain of its session, and forget it. Gives how many there were."""
    path = ledger.config.home / NAME
    try:
        if not path.stat().st_size:
            return 0
    except OSError:
        return 0
    with _held(path, 0) as handle:
        failures = list(_read(handle))
        for failure in failures:
            _seal(ledger, failure)
        os.ftruncate(handle, 0)
    return len(failures)


def _seal(ledger: Ledger, failure: dict[str, Any]) -> None:
    from aver.ingest.deed import Deed
    from aver.ingest.sealing import seal_deed

    deed = Deed(
        what="note",
        key=f"hook-failure-{failure['id']}",
        summary=f"hook {failure['event']} failed: {failure['why']}",
        at=failure["at"],
        status="failure",
        result=failure,
    )
    seal_deed(ledger, failure["tool"], failure["session"] or "unknown", deed)


def _read(handle: int) -> Iterator[dict[str, Any]]:
    from aver.ingest.records import parsed

    os.lseek(handle, 0, os.SEEK_SET)
    for line in os.read(handle, 2 * SIZE_MAX).splitlines():
        failure = parsed(line)
        if isinstance(failure, dict) and all(isinstance(failure.get(name), str) for name in _NAMES):
            yield failure


_NAMES = ("id", "at", "tool", "event", "session", "why")


@contextmanager
def _held(path: Path, more: int) -> Iterator[int]:
    """The file, which nobody else of us has while this lasts."""
    handle = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | more, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield handle
    finally:
        os.close(handle)
