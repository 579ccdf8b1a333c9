"""Seal the records of audited calls, requests and log records, and report those that were lost.

A recorder belongs to one ledger. `seal` returns when the record is durable, or raises. If a record cannot be sealed and
the caller gets no exception, `note_loss` logs and counts it. A `dropped` record in its chain reports the loss as soon
as the ledger works again, or when the process ends. The notes are in memory: a process that is killed loses them.

The default ledger is opened at its first use and closed when the process ends. After a fork, parent and child both
continue to use it. A forked child starts without notes, because its parent reports its own losses. It also starts its
own threads for coroutines, because threads do not survive a fork.
"""

from __future__ import annotations

import atexit
import logging
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Protocol

from aver.clock import now
from aver.errors import BadInput, IntegrityError, Refused, Unavailable
from aver.ledger.ledger import Ledger, open_ledger
from aver.ledger.stores.forks import register_for_forks
from aver.recording import drafts
from aver.recording.drafts import ChainLoss, ReadyDraft
from aver.recording.render import exception_text, type_name

if TYPE_CHECKING:
    from aver.ledger.async_ledger import AsyncLedger

THREADS_MAX = 64
"""Most records that are sealed at once for coroutines. They can share one commit."""

_PROCESS_LOG = logging.getLogger("aver.audit")


class ForkSafeLock:
    """A lock that is safe to fork with: it is held during the fork, and the child gets a new one."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        register_for_forks(self)

    def before_fork(self) -> None:
        self.lock.acquire()

    def after_fork_in_parent(self) -> None:
        self.lock.release()

    def after_fork_in_child(self) -> None:
        self.lock = threading.Lock()


class _ProcessState(ForkSafeLock):
    """The default ledger, and the threads that seal records for coroutines. Both are created at their first use."""

    def __init__(self) -> None:
        super().__init__()
        self._ledger: Ledger | None = None
        self._threads: ThreadPoolExecutor | None = None

    def after_fork_in_child(self) -> None:
        super().after_fork_in_child()
        self._threads = None

    def ledger(self) -> Ledger:
        with self.lock:
            if self._ledger is None:
                self._ledger = open_ledger()
            return self._ledger

    def threads(self) -> ThreadPoolExecutor:
        with self.lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(THREADS_MAX, thread_name_prefix="aver-audit")
            return self._threads

    def close_ledger(self) -> None:
        """Close the default ledger if it is open. The next use opens it again."""
        with self.lock:
            opened, self._ledger = self._ledger, None
        if opened is not None:
            opened.close()


_STATE = _ProcessState()


class Closable(Protocol):
    """An object that is closed when the process ends."""

    def close(self) -> None: ...


_TO_CLOSE: weakref.WeakSet[Closable] = weakref.WeakSet()
_EXIT_WORK: list[Callable[[], None]] = []
"""Functions to call when the process ends, before the default ledger is closed."""


def close_at_exit(thing: Closable) -> None:
    """Close an object when the process ends, if it still exists, while records can still be sealed."""
    _TO_CLOSE.add(thing)


def _finish_process() -> None:
    for work in [*(thing.close for thing in list(_TO_CLOSE)), *_EXIT_WORK, _STATE.close_ledger]:
        try:
            work()
        except Exception:  # noqa: BLE001 - the rest must still be done
            _PROCESS_LOG.exception("recording could not finish at the end of the process")


atexit.register(_finish_process)


FALLBACK_CHAIN = "audit.dropped"
"""The chain that reports losses of a chain that cannot grow, such as an imported one."""

SOURCE = "aver.audit"
_LOG = logging.getLogger(SOURCE)


class PendingRecord:
    """A record that is about to be sealed. Its draft is built once, on the thread that seals it."""

    __slots__ = ("_make", "chain", "kind", "ready")

    def __init__(self, chain: str, kind: str, make: Callable[[], ReadyDraft]) -> None:
        self.chain = chain
        self.kind = kind
        self._make = make
        self.ready: ReadyDraft | None = None
        """The draft, once it was built."""

    def prepare(self) -> ReadyDraft:
        """The draft, built at the first call."""
        if self.ready is None:
            self.ready = self._make()
        return self.ready


class Recorder(ForkSafeLock):
    """Seals into one ledger, or into the default ledger. `get_recorder` returns it."""

    def __init__(self, ledger: Ledger | None) -> None:
        super().__init__()
        self._given = None if ledger is None else weakref.ref(ledger)
        self._clear_notes()

    def _get_ledger(self) -> Ledger:
        if self._given is None:
            return _STATE.ledger()
        ledger = self._given()
        if ledger is None:
            raise Unavailable("the ledger to record in is gone", advice="keep it open as long as calls are audited")
        return ledger

    def _clear_notes(self) -> None:
        self._losses: dict[str, ChainLoss] = {}
        self._late: deque[PendingRecord] = deque()
        self._kept: Ledger | None = None
        """The ledger, kept alive while there are losses to report."""
        self.dropped = 0
        """How many records were lost in this process, reported or not."""

    def after_fork_in_child(self) -> None:
        super().after_fork_in_child()
        self._clear_notes()

    # --- sealing

    def seal(self, entry: PendingRecord) -> None:
        """Seal a record. Returns when it is durable, or raises."""
        if _is_thread_busy():
            _LOG.debug("refused to seal a record of kind %s inside an append", entry.kind)
            raise Unavailable(
                "this thread is in the middle of an append, and another append would wait for it for ever",
                advice="do not audit functions that the ledger calls, such as a signer",
            )
        self._append(entry)

    def _append(self, entry: PendingRecord) -> None:
        ready = entry.prepare()
        self._get_ledger().append(entry.chain, ready.capsule, blobs=ready.blobs)
        if self._late or self._losses:
            self.settle()

    def seal_many(self, chain: str, entries: Sequence[tuple[str, PendingRecord]]) -> None:
        """Seal entries, each with its id, in one commit. Returns when they are durable, or raises. May be repeated."""
        ready = [entry.prepare() for _, entry in entries]
        self._get_ledger().append_many(
            chain,
            [draft.capsule for draft in ready],
            keys=[f"log:{identifier}" for identifier, _ in entries],
            blobs=[blob for draft in ready for blob in draft.blobs],
        )
        if self._late or self._losses:
            self.settle()

    async def seal_async(self, entry: PendingRecord) -> None:
        """The same without blocking the event loop. A cancellation is raised when the record is durable or lost."""
        import asyncio

        try:
            asyncio.get_running_loop()
            work = _STATE.threads().submit(self.seal, entry)
        except RuntimeError:
            # Another library than asyncio runs the coroutine, or the interpreter shuts down: seal on this thread.
            self.seal(entry)
            return
        try:
            cancelled = await _wait_until_done(work)
        except GeneratorExit:  # Nothing can be awaited any more; the thread continues alone.
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
        """Seal the outcome of a call that raised or was closed early. A failure is noted, not raised.

        The garbage collector may close a generator in the middle of an append on this same thread. Then the entry is
        set aside until the next record, or the end of the process.
        """
        if _is_thread_busy():
            self._late.append(entry)
            self._keep_alive()
            return
        try:
            self._append(entry)
        except Exception as error:  # noqa: BLE001 - another exception is already being raised
            self.note_loss(entry, error)

    # --- losses

    def note_loss(self, entry: PendingRecord, error: BaseException) -> None:
        """Log and count a record that could not be sealed."""
        words = f"{type_name(type(error))}: {exception_text(error)}"
        self.note_undrafted_loss(entry.chain, entry.kind, words, entry.ready)
        _LOG.error("could not seal a record of kind %s in the chain %s: %s", entry.kind, entry.chain, words)

    def note_undrafted_loss(self, chain: str, kind: str, words: str, ready: ReadyDraft | None = None) -> None:
        """Count a lost record that may not even have a draft."""
        at = now()
        with self.lock:
            self.dropped += 1
            self._losses.setdefault(chain, ChainLoss(chain, at, words)).add(kind, ready, at)
            self._keep_alive()

    def _keep_alive(self) -> None:
        self._kept = None if self._given is None else self._given()
        _UNSETTLED.add(self)

    def settle(self) -> bool:
        """Seal records that were set aside, and report losses, if the ledger works. Returns whether nothing remains."""
        while True:
            try:
                entry = self._late.popleft()  # Another thread may take the last one first: look by taking it.
            except IndexError:
                break
            try:
                self._get_ledger().append(entry.chain, entry.prepare().capsule, blobs=entry.prepare().blobs)
            except Exception as error:  # noqa: BLE001 - it is noted, and reported with the others
                self.note_loss(entry, error)
        with self.lock:
            losses, self._losses = self._losses, {}
        for loss in losses.values():
            try:
                self._seal_loss(loss)
            except Exception as error:  # noqa: BLE001 - it stays noted until it can be reported
                _LOG.debug("the losses of %s cannot be reported yet: %s", loss.chain, error)
                with self.lock:  # Put it back, together with losses that were noted meanwhile.
                    later = self._losses.get(loss.chain)
                    if later is not None:
                        loss.merge(later)
                    self._losses[loss.chain] = loss
        with self.lock:
            settled = not self._losses and not self._late
            if settled:
                _UNSETTLED.discard(self)
                self._kept = None
        return settled

    def _seal_loss(self, loss: ChainLoss) -> None:
        ledger = self._get_ledger()
        # An append that seemed to fail may have been committed: the server's answer can get lost.
        found = []
        for lost in loss.lost:
            try:
                if "id" in lost and ledger.get(lost["id"]) is not None:
                    found.append(lost)
            except IntegrityError:
                found.append(lost)  # It is there; a verdict will report that it is damaged.
        loss.lost = [lost for lost in loss.lost if lost not in found]
        loss.count -= len(found)
        with self.lock:
            self.dropped -= len(found)
        if not loss.count:
            return
        ready = drafts.build_dropped(loss, SOURCE)
        try:
            ledger.append(loss.chain, ready.capsule, blobs=ready.blobs)
        except (BadInput, Refused) as error:  # The chain cannot grow, which may be the cause of the loss.
            _LOG.debug("the chain %s takes no dropped record: %s", loss.chain, error)
            ledger.append(FALLBACK_CHAIN, ready.capsule, blobs=ready.blobs)

    def count_unsettled(self) -> int:
        """How many records are lost or set aside, and not reported yet."""
        with self.lock:
            return len(self._late) + sum(loss.count for loss in self._losses.values())


_LOCKING_MODULES = (
    "aver.ledger.append",
    "aver.ledger.stores.sqlite.transaction",
    "aver.ledger.stores.sqlite.connections",
    "aver.ledger.stores.sqlite.store",
    "aver.ledger.stores.postgres",
    "aver.recording.recorder",
    "aver.keys.",
)
"""Modules whose code may run while this thread holds a lock that a second append would wait for."""


def _is_thread_busy() -> bool:
    """Whether this thread is already recording: its stack contains the ledger, the keys or a recorder."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") == __name__:
        frame = frame.f_back  # Skip the recorder's own frames, which are asking.
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith(_LOCKING_MODULES):
            return True
        frame = frame.f_back
    return False


async def _wait_until_done(work: Future[None]) -> BaseException | None:
    """Wait until the work is done, even if cancelled. Returns the cancellation that came meanwhile, or None."""
    import asyncio

    future = asyncio.wrap_future(work)
    # The caller reads a failure from `work`. Without this, asyncio would warn that it was never retrieved.
    future.add_done_callback(lambda done: done.cancelled() or done.exception())
    cancelled: BaseException | None = None
    while not work.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError as error:
            cancelled = error
    return cancelled


# --- the recorder of a ledger


_RECORDERS: weakref.WeakKeyDictionary[Ledger, Recorder] = weakref.WeakKeyDictionary()
_UNSETTLED: set[Recorder] = set()
"""Recorders with losses to report, kept alive until then."""


_DEFAULT_RECORDER = Recorder(None)
_RECORDERS_LOCK = ForkSafeLock()


def get_recorder(ledger: Ledger | AsyncLedger | None) -> Recorder:
    """The recorder of a ledger, or of the default ledger."""
    if ledger is None:
        return _DEFAULT_RECORDER
    plain = ledger if isinstance(ledger, Ledger) else ledger.ledger
    with _RECORDERS_LOCK.lock:
        recorder = _RECORDERS.get(plain)
        if recorder is None:
            recorder = _RECORDERS[plain] = Recorder(plain)
        return recorder


def dropped_count(ledger: Ledger | AsyncLedger | None = None) -> int:
    """How many records were lost in this process, whether a `dropped` record has reported them or not."""
    return get_recorder(ledger).dropped


def _settle_at_exit() -> None:
    for recorder in {*_UNSETTLED, *_RECORDERS.values(), _DEFAULT_RECORDER}:
        if recorder.count_unsettled() and not recorder.settle():
            _LOG.error("the process ends, and %d records could not be sealed", recorder.count_unsettled())


_EXIT_WORK.append(_settle_at_exit)
