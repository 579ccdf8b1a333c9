"""Sealing what audited calls, requests and log records leave: now or not at all, and never silently.

A recorder belongs to one ledger. `seal` returns when the record is durable, or raises. A record that could not be
sealed and whose failure nobody was told is noted with `lose`: logged, counted, and made good by a `dropped` record in
its chain as soon as the ledger works again, or when the process ends. The notes are in memory: a process that is
killed before takes them with it.

A forked child has a recorder without notes: what its parent lost is the parent's to tell.
"""

from __future__ import annotations

import logging
import sys
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from aver.clock import now
from aver.errors import BadInput, IntegrityError, Refused, Unavailable
from aver.ledger.ledger import Ledger
from aver.recording import drafts, process
from aver.recording.drafts import ChainLoss, ReadyDraft
from aver.recording.process import ForkSafeLock
from aver.recording.render import exception_text, type_name

if TYPE_CHECKING:
    from aver.ledger.async_ledger import AsyncLedger

__all__ = ["PendingRecord", "Recorder", "dropped_count", "get_recorder"]

FALLBACK_CHAIN = "audit.dropped"
"""Where losses of a chain are told that cannot grow, such as one that was imported."""

SOURCE = "aver.audit"
_LOG = logging.getLogger(SOURCE)


class PendingRecord:
    """A record on its way into a chain. It is made ready once, on the thread that seals it."""

    __slots__ = ("_make", "_ready", "chain", "kind")

    def __init__(self, chain: str, kind: str, make: Callable[[], ReadyDraft]) -> None:
        self.chain = chain
        self.kind = kind
        self._make = make
        self._ready: ReadyDraft | None = None

    def ready(self) -> ReadyDraft:
        if self._ready is None:
            self._ready = self._make()
        return self._ready

    def known(self) -> ReadyDraft | None:
        """The draft, if it came as far as being one."""
        return self._ready


class Recorder(ForkSafeLock):
    """Seals into one ledger, or into the default one. Get it with `recorder_of`."""

    def __init__(self, ledger: Ledger | None) -> None:
        super().__init__()
        self._given = None if ledger is None else weakref.ref(ledger)
        self._clear_notes()

    def _get_ledger(self) -> Ledger:
        if self._given is None:
            return process.default_ledger()
        ledger = self._given()
        if ledger is None:
            raise Unavailable("the ledger to record in is gone", advice="keep it open as long as calls are audited")
        return ledger

    def _clear_notes(self) -> None:
        self._losses: dict[str, ChainLoss] = {}
        self._late: deque[PendingRecord] = deque()
        self._kept: Ledger | None = None
        """The ledger, kept alive while there is something to tell it."""
        self.dropped = 0
        """How many records were lost in this process, made good or not."""

    def after_fork_in_child(self) -> None:
        super().after_fork_in_child()
        self._clear_notes()

    # --- sealing

    def seal(self, entry: PendingRecord) -> None:
        """Return when the record is durable, or raise."""
        if _is_thread_busy():
            raise Unavailable(
                "this thread is in the middle of an append, and another one would wait for it for ever",
                advice="do not audit what the ledger itself calls, such as a signer",
            )
        self._append(entry)

    def _append(self, entry: PendingRecord) -> None:
        ready = entry.ready()
        self._get_ledger().append(entry.chain, ready.capsule, blobs=ready.blobs)
        if self._late or self._losses:
            self.settle()

    def seal_many(self, chain: str, entries: Sequence[tuple[str, PendingRecord]]) -> None:
        """Seal entries, each with its id, in one commit; return when they are durable, or raise. May be tried again."""
        ready = [entry.ready() for _, entry in entries]
        self._get_ledger().append_many(
            chain,
            [one.capsule for one in ready],
            keys=[f"log:{identifier}" for identifier, _ in entries],
            blobs=[blob for one in ready for blob in one.blobs],
        )
        if self._late or self._losses:
            self.settle()

    async def seal_async(self, entry: PendingRecord) -> None:
        """The same without holding up the event loop. A cancellation comes through when the record is safe or lost."""
        work = self._submit_to_thread(entry)
        if work is None:
            self.seal(entry)
            return
        try:
            cancelled = await _wait_until_done(work)
        except GeneratorExit:  # Nothing more can be awaited here; the thread goes on by itself.
            work.add_done_callback(lambda done: self._note_if_failed(entry, done))
            raise
        if cancelled is not None:
            self._note_if_failed(entry, work)
            raise cancelled
        work.result()

    def _note_if_failed(self, entry: PendingRecord, work: Future[None]) -> None:
        failure = work.exception()
        if failure is not None:
            self.note_loss(entry, failure)

    def seal_at_close(self, entry: PendingRecord) -> None:
        """Seal the outcome of what raised or was closed early, maybe by the garbage collector; a failure is noted.

        The collector may strike in the middle of an append on this very thread. The entry is then put aside until the
        next record, or the end of the process.
        """
        if _is_thread_busy():
            self._late.append(entry)
            self._keep_alive()
            return
        try:
            self._append(entry)
        except Exception as error:  # noqa: BLE001 - there is an exception on its way already
            self.note_loss(entry, error)

    def _submit_to_thread(self, entry: PendingRecord) -> Future[None] | None:
        """None where no asyncio runs (another library drives the coroutine), or where threads are over."""
        import asyncio

        try:
            asyncio.get_running_loop()
            return process.sealing_threads().submit(self.seal, entry)
        except RuntimeError:
            return None

    # --- what could not be sealed

    def note_loss(self, entry: PendingRecord, error: BaseException) -> None:
        """Note a record that could not be sealed."""
        words = f"{type_name(type(error))}: {exception_text(error)}"
        self.note_undrafted_loss(entry.chain, entry.kind, words, entry.known())
        _LOG.error("could not seal a record of kind %s in the chain %s: %s", entry.kind, entry.chain, words)

    def note_undrafted_loss(self, chain: str, kind: str, words: str, ready: ReadyDraft | None = None) -> None:
        """Note a record of which there may not even be a draft."""
        at = now()
        with self.lock:
            self.dropped += 1
            self._losses.setdefault(chain, ChainLoss(chain, at, words)).add(kind, ready, at)
            self._keep_alive()

    def _keep_alive(self) -> None:
        self._kept = None if self._given is None else self._given()
        _UNSETTLED.add(self)

    def settle(self) -> bool:
        """Seal what was put aside and what tells of losses, if the ledger works. True if nothing remains."""
        while (entry := self._pop_late()) is not None:
            try:
                self._get_ledger().append(entry.chain, entry.ready().capsule, blobs=entry.ready().blobs)
            except Exception as error:  # noqa: BLE001 - it is noted, and told with the others
                self.note_loss(entry, error)
        with self.lock:
            losses, self._losses = self._losses, {}
        for loss in losses.values():
            try:
                self._seal_loss(loss)
            except Exception:  # noqa: BLE001 - it stays noted until it can be told
                self._restore_loss(loss)
        with self.lock:
            settled = not self._losses and not self._late
            if settled:
                _UNSETTLED.discard(self)
                self._kept = None
        return settled

    def _pop_late(self) -> PendingRecord | None:
        try:
            return self._late.popleft()
        except IndexError:
            return None

    def _seal_loss(self, loss: ChainLoss) -> None:
        ledger = self._get_ledger()
        # A failed append may have come through all the same: a server's answer can be lost.
        found = [lost for lost in loss.lost if "id" in lost and _has_record(ledger, lost["id"])]
        loss.lost = [lost for lost in loss.lost if lost not in found]
        loss.count -= len(found)
        with self.lock:
            self.dropped -= len(found)
        if not loss.count:
            return
        ready = drafts.build_dropped(loss, SOURCE)
        try:
            ledger.append(loss.chain, ready.capsule, blobs=ready.blobs)
        except (BadInput, Refused):  # The chain takes nothing, which may be why there is a loss.
            ledger.append(FALLBACK_CHAIN, ready.capsule, blobs=ready.blobs)

    def _restore_loss(self, loss: ChainLoss) -> None:
        with self.lock:
            later = self._losses.get(loss.chain)
            if later is not None:
                loss.merge(later)
            self._losses[loss.chain] = loss

    def count_unsettled(self) -> int:
        """How many records are lost, or put aside, and not told of yet."""
        with self.lock:
            return len(self._late) + sum(loss.count for loss in self._losses.values())


def _has_record(ledger: Ledger, identifier: str) -> bool:
    try:
        return ledger.get(identifier) is not None
    except IntegrityError:
        return True  # It is there, and a verdict will say what is wrong with it.


_LOCKING_MODULES = (
    *(
        "aver.ledger.append",
        "aver.ledger.stores.sqlite.transaction",
        "aver.ledger.stores.sqlite.write_lock",
    ),
    *("aver.ledger.stores.sqlite.store", "aver.ledger.stores.postgres", "aver.recording.recorder", "aver.keys."),
)


def _is_thread_busy() -> bool:
    """Whether this thread is in the middle of recording something, below the call that asks."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") == __name__:
        frame = frame.f_back  # the call that asks
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith(_LOCKING_MODULES):
            return True
        frame = frame.f_back
    return False


async def _wait_until_done(work: Future[None]) -> BaseException | None:
    """Wait until it is done, whatever happens. Returns the cancellation that came meanwhile, if one did."""
    import asyncio

    future = asyncio.wrap_future(work)
    # Whoever asks `work` is told of a failure; asyncio need not complain that nobody asked this one.
    future.add_done_callback(lambda done: done.cancelled() or done.exception())
    cancelled: BaseException | None = None
    while not work.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError as error:
            cancelled = error
    return cancelled


# --- which ledger


_RECORDERS: weakref.WeakKeyDictionary[Ledger, Recorder] = weakref.WeakKeyDictionary()
_UNSETTLED: set[Recorder] = set()
"""Recorders that have something to tell, kept alive for it."""


_DEFAULT_RECORDER = Recorder(None)
_RECORDERS_LOCK = ForkSafeLock()


def get_recorder(ledger: Ledger | AsyncLedger | None) -> Recorder:
    """The recorder of a ledger; of the default one, if none is given."""
    if ledger is None:
        return _DEFAULT_RECORDER
    plain = ledger if isinstance(ledger, Ledger) else ledger.ledger
    with _RECORDERS_LOCK.lock:
        recorder = _RECORDERS.get(plain)
        if recorder is None:
            recorder = _RECORDERS[plain] = Recorder(plain)
        return recorder


def dropped_count(ledger: Ledger | AsyncLedger | None = None) -> int:
    """How many records could not be sealed in this process, whether a `dropped` record tells of them yet or not."""
    return get_recorder(ledger).dropped


def _settle_at_exit() -> None:
    for recorder in {*_UNSETTLED, *_RECORDERS.values(), _DEFAULT_RECORDER}:
        if recorder.count_unsettled() and not recorder.settle():
            _LOG.error("the process ends, and %d records could not be sealed", recorder.count_unsettled())


process.run_at_exit(_settle_at_exit)
