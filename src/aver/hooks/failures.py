"""Failures of hooks: remembered in `AVER_HOME/hook-failures.jsonl`, and sealed by the next hook that works.

    {"id": …, "at": …, "tool": "codex", "event": "Stop", "session": …, "call": …, "why": "the disk is full",
     "payload": {"sha256": …, "size": 812}}

Of the payload a line has only the digest, the size and the call's id: Aver could not mask the rest. The transcript
still has the call, and a watcher seals it from there.

Remembering never raises and waits a few seconds at most. A failure that cannot be remembered was still reported on
standard error.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aver.clock import new_id, now
from aver.config import ensure_home
from aver.files.locks import lock
from aver.files.regular import open_descriptor

if TYPE_CHECKING:
    from aver.ledger import Ledger

FILE_NAME = "hook-failures.jsonl"

SIZE_MAX = 1024 * 1024
"""Bytes of the file: thousands of failures. Aver does not add to a larger file."""

TEXT_MAX = 2000
"""Characters of the reason, and of every other text, that are kept."""

LOCK_SECONDS = 5.0
"""Seconds to wait for another hook that has the file. A hook must not hang: the agent would go on without it."""


def remember_failure(home: Path, tool: str, event: str, session: str, why: str, payload: bytes, call: str = "") -> None:
    """Remember that a hook failed, for the next hook that works."""
    import hashlib

    import orjson

    texts = {"event": event, "session": session, "call": call, "why": why}
    failure = {
        "id": new_id(),
        "at": now(),
        "tool": tool,
        # A short part of each text, without halves of surrogate pairs, which JSON cannot hold.
        **{name: text[:TEXT_MAX].encode("utf-8", "backslashreplace").decode() for name, text in texts.items()},
        "payload": {"sha256": hashlib.sha256(payload).hexdigest(), "size": len(payload)},
    }
    with suppress(Exception):
        ensure_home(home)
        with _open_locked(home / FILE_NAME, os.O_CREAT, LOCK_SECONDS) as handle:
            if os.fstat(handle).st_size < SIZE_MAX:
                os.lseek(handle, 0, os.SEEK_END)
                os.write(handle, orjson.dumps(failure) + b"\n")


def seal_failures(ledger: Ledger, agents: Collection[str]) -> int:
    """Seal the remembered failures of these agents, each in the chain of its session, and empty the file.

    Returns how many there were; 0 where another hook has the file.
    """
    path = ledger.config.home / FILE_NAME
    try:
        if not path.stat().st_size:
            return 0
    except OSError:
        return 0
    from aver.ingest.contract import AgentEvent
    from aver.ingest.seal import seal_event

    with suppress(BlockingIOError), _open_locked(path, 0) as handle:
        failures = [failure for failure in _parse_failures(handle) if failure["tool"] in agents]
        for failure in failures:
            event = AgentEvent(
                what="note",
                key=f"hook-failure-{failure['id']}",
                summary=f"hook {failure['event']} failed: {failure['why']}",
                at=failure["at"],
                status="failure",
                result=failure,
            )
            seal_event(ledger, failure["tool"], failure["session"] or "unknown", event)
        # Only now: after a crash in between, the next hook seals all again, under the same keys, so none twice.
        os.ftruncate(handle, 0)
        return len(failures)
    return 0


def read_failures(home: Path) -> list[dict[str, Any]]:
    """Return the failures that are not sealed yet, the oldest first. Raises `OSError` for what is no plain file."""
    try:
        handle = open_descriptor(home / FILE_NAME, follow=False)
    except FileNotFoundError:
        return []
    try:
        return list(_parse_failures(handle))
    finally:
        os.close(handle)


_REQUIRED_FIELDS = ("id", "at", "tool", "event", "session", "why")


def _parse_failures(handle: int) -> Iterator[dict[str, Any]]:
    """Read the lines of the file, and skip those that are no failure: a line may be torn, or somebody else's."""
    from aver.ingest.foreign_json import parse_json

    os.lseek(handle, 0, os.SEEK_SET)
    # The last line may go beyond SIZE_MAX, by far less than as much again.
    for line in os.read(handle, 2 * SIZE_MAX).splitlines():
        failure = parse_json(line)
        if isinstance(failure, dict) and all(isinstance(failure.get(name), str) for name in _REQUIRED_FIELDS):
            yield failure


@contextmanager
def _open_locked(path: Path, more: int, patience: float = 0.0) -> Iterator[int]:
    """Open the file under its lock. Raises `BlockingIOError` where another hook has it for longer than `patience`."""
    handle = open_descriptor(path, os.O_RDWR | more, follow=False)
    try:
        lock(handle, timeout=patience)
        yield handle
    finally:
        os.close(handle)
