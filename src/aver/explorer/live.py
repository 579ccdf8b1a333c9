"""The live stream: what has changed in the ledger, as server-sent events.

    event: heads
    id: 5f0c…
    data: {"moment": "5f0c…", "changed": [{"name": …, "count": …, …}], "gone": [], "reread": false}

    event: approvals
    data: {"waiting": 1, "requests": ["<id>"], "problem": null}

    event: index
    data: {"state": "ready", "records": 120, "of_records": 120, …}

Every stream begins with all three. The id of an event `heads` is that of its moment (see `moments`). A client that
comes back with it in `Last-Event-ID` gets the changes since then. Where the server no longer knows that moment, or
where too much has changed, `reread` is true: the client then reads the chains anew. A comment every `COMMENT_SECONDS`
shows that the server is alive. When the ledger cannot be read any more, the stream ends, and a new one is refused with
the reason.

The server asks the store once a second whether anything was written (`Store.change_mark`), and only while a stream is
open. It reads nothing else unless the answer has changed. A stream keeps no queue: a slow client skips what it missed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import anyio.to_thread
import orjson

from aver.errors import AverError, Unavailable
from aver.explorer.approval_places import approval_chains, list_waiting
from aver.explorer.index_keeper import IndexKeeper
from aver.explorer.moments import Moment, Moments, compare_moments
from aver.ledger import Ledger
from aver.log import debug

LOOK_SECONDS = 1.0
"""How often the store is asked for its mark."""

COMMENT_SECONDS = 15.0
"""How often a stream with nothing to tell sends a comment."""

CHANGES_MAX = 500
"""Chains that one event lists. With more, the client reads them page by page."""

STREAMS_MAX = 16
"""Open streams. Each page has one."""

COMMENT = b": still here\n\n"

_LOG = logging.getLogger("aver.explorer")


class LiveFeed:
    """Watches one ledger for all streams. Its methods belong to the event loop, but for `take_moment`."""

    def __init__(self, ledger: Ledger, moments: Moments, keeper: IndexKeeper) -> None:
        self._ledger = ledger
        self._moments = moments
        self._keeper = keeper
        self._latest: tuple[str, Moment] | None = None
        """The newest moment, and the store's mark from just before it was read."""
        self._moment: Moment | None = None
        self._approvals = b""
        self._approval_heads: tuple[Any, ...] | None = None
        self._next_expiry: datetime | None = None
        self._index = b""
        self._problem: AverError | None = None
        self._changed = asyncio.Condition()
        self._looking = asyncio.Lock()
        self._streams = 0
        self._is_stopping = False

    @property
    def is_full(self) -> bool:
        return self._streams >= STREAMS_MAX

    def take_moment(self) -> Moment:
        """The state of the ledger now. It is read only if something was written since the last call.

        Raises `Unavailable` or `IntegrityError`.
        """
        # Asked before the chains are read: a record that comes in between changes the mark once more.
        mark = self._ledger.store.change_mark()
        latest = self._latest
        if latest is None or latest[0] != mark:
            latest = mark, self._moments.add(self._ledger.store.chains(self._ledger.tenant))
            self._latest = latest
        return latest[1]

    async def watch(self) -> None:
        """Look at the ledger again and again, as long as there are streams. Ends when it is cancelled."""
        while not self._is_stopping:
            async with self._changed:
                await self._changed.wait_for(lambda: self._streams > 0 or self._is_stopping)
            with suppress(AverError):  # The streams have learnt it.
                await self.look()
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Look whether anything has changed, and wake the streams if so. Raises the error of a ledger that fails."""
        async with self._looking:
            before = (self._moment, self._approvals, self._index, self._problem)
            try:
                await anyio.to_thread.run_sync(self._read)
                self._problem = None
            except AverError as error:
                debug("explorer", "the live stream cannot read the ledger: %s", error)
                self._problem = error
            except Exception as error:  # noqa: BLE001 - without this, the streams would go on and tell nothing
                _LOG.exception("the ledger cannot be watched")
                self._problem = Unavailable(f"internal error: {type(error).__name__}")
            if before != (self._moment, self._approvals, self._index, self._problem):
                async with self._changed:
                    self._changed.notify_all()
        if self._problem is not None:
            raise self._problem

    def _read(self) -> None:
        """Read what may have changed. Runs in a thread, one at a time."""
        before, self._moment = self._moment, self.take_moment()
        if self._moment != before:
            self._keeper.want()
        heads = tuple(self._moment.by_name.get(name) for name in approval_chains(self._ledger.tenant))
        # A request expires without any record.
        is_expired = self._next_expiry is not None and datetime.now(UTC) >= self._next_expiry
        if heads != self._approval_heads or is_expired:
            self._approvals, self._next_expiry = _describe_waiting(self._ledger)
            self._approval_heads = heads
        self._index = orjson.dumps(self._keeper.describe())

    async def stream(self, last_id: str) -> AsyncIterator[bytes]:
        """The events for one client, which knows the moment `last_id`. The caller has called `look`."""
        self._streams += 1
        try:
            async with self._changed:
                self._changed.notify_all()
            # What was told is noted before it is sent: while a client receives it, more may happen.
            event = self._dump_heads(self._moments.find(last_id))
            seen, approvals, index = self._moment, b"", b""
            yield event
            while not self._is_stopping and self._problem is None:
                if self._moment != seen:
                    event = self._dump_heads(seen)
                    seen = self._moment
                elif self._approvals != approvals:
                    approvals = self._approvals
                    event = _dump_event("approvals", approvals)
                elif self._index != index:
                    index = self._index
                    event = _dump_event("index", index)
                elif await self._wait_for_news(seen, approvals, index):
                    continue
                else:
                    event = COMMENT
                yield event
        finally:
            self._streams -= 1

    async def _wait_for_news(self, *told: Any) -> bool:
        """Wait until there is something to tell, or until the next comment. Returns False for the comment."""

        def has_news() -> bool:
            has_ended = self._is_stopping or self._problem is not None
            return has_ended or told != (self._moment, self._approvals, self._index)

        try:
            async with asyncio.timeout(COMMENT_SECONDS), self._changed:
                await self._changed.wait_for(has_news)
        except TimeoutError:
            return False
        return True

    def _dump_heads(self, before: Moment | None) -> bytes:
        after = self._moment
        if after is None:
            raise Unavailable("the ledger was not read yet")
        document: dict[str, Any] = {"moment": after.id, "changed": [], "gone": [], "reread": True}
        if before is not None:
            difference = compare_moments(before, after)
            if len(difference.changed) + len(difference.gone) <= CHANGES_MAX:
                changed = [chain.to_dict() for chain in difference.changed]
                document |= {"changed": changed, "gone": list(difference.gone), "reread": False}
        return _dump_event("heads", orjson.dumps(document), after.id)

    async def stop(self) -> None:
        """End all streams."""
        self._is_stopping = True
        async with self._changed:
            self._changed.notify_all()


def _describe_waiting(ledger: Ledger) -> tuple[bytes, datetime | None]:
    """The data of an event `approvals`, and the time at which the next request expires."""
    try:
        waiting = list_waiting(ledger)
    except AverError as error:
        # Without the approvals, all else still works.
        debug("explorer", "the requests for approval cannot be read: %s", error)
        return orjson.dumps({"waiting": 0, "requests": [], "problem": error.message}), None
    ids = [request.id for request in waiting]
    next_expiry = min((datetime.fromisoformat(request.expires) for request in waiting), default=None)
    return orjson.dumps({"waiting": len(ids), "requests": ids, "problem": None}), next_expiry


def _dump_event(name: str, data: bytes, event_id: str = "") -> bytes:
    lines = [b"event: %b" % name.encode("ascii"), b"data: %b" % data]
    if event_id:
        lines.insert(1, b"id: %b" % event_id.encode("ascii"))
    return b"\n".join(lines) + b"\n\n"
