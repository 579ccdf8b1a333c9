"""Group commit: writes that wait at the same time share one durable commit.

The first caller becomes the leader. It takes every waiting request, writes them in one transaction and wakes their
callers. Later requests wait; the first of them leads the next commit. So a lone caller pays only for its own commit,
and there is no background thread.

A signal may end any of these threads at any line. The others then learn what is known about their requests, and the
next of them leads. If the signal strikes in the very line that would tell them, they notice it by themselves: a waiting
caller looks now and then whether anybody leads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from aver.errors import AverError, OutcomeUnknown
from aver.ledger.stores.forks import register_for_forks
from aver.log import debug

GROUP_MAX = 256
"""Most requests in one commit. A limit, so that the first request does not wait for ever."""

SIGNALS_MAX = 100
"""Signals in a row during which a caller still tries to wake the others."""

LOOK_SECONDS = 1.0
"""How long a caller waits before it looks whether anybody leads. Only after a signal may there be nobody."""

Result = TypeVar("Result")


class WakeUp:
    """Lets one thread wait until another calls `set`.

    It is one lock, whose methods a signal cannot interrupt halfway. `threading.Event` is written in Python: if a signal
    raises an exception inside it, its inner lock may stay taken for ever.
    """

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def wait(self, seconds: float) -> bool:
        """Wait until `set` is called, at most so long. Returns whether it was. Only one thread may wait."""
        return self._lock.acquire(timeout=seconds)

    def set(self) -> None:
        """Wake the thread that waits. It may be called any number of times."""
        try:
            self._lock.release()
        except RuntimeError:
            return  # It was set before.


class WriteRequest(Generic[Result]):
    """A request to write something. The leader of its batch sets `result` or `failure`, and then wakes the caller."""

    __slots__ = ("failure", "result", "woken")

    def __init__(self) -> None:
        self.result: Result | None = None
        self.failure: BaseException | None = None
        self.woken = WakeUp()

    @property
    def is_done(self) -> bool:
        return self.result is not None or self.failure is not None


class GroupCommit(Generic[Result]):
    """`write` gets a batch, writes it durably and sets each request's result or failure; or raises for all."""

    def __init__(self, write: Callable[[Sequence[Any]], None]) -> None:
        self._write = write
        self._reset()
        register_for_forks(self)

    def _reset(self) -> None:
        self._turn = threading.Lock()  # Held by the leader while it writes.
        self._guard = threading.Lock()  # Guards the two below; never taken while writing.
        self._waiting: list[WriteRequest[Result]] = []
        self._leader: WriteRequest[Result] | None = None

    def before_fork(self) -> None:
        self._guard.acquire()

    def after_fork_in_parent(self) -> None:
        self._guard.release()

    def after_fork_in_child(self) -> None:
        self._reset()  # All waiting and leading threads belong to the parent.

    def submit(self, request: WriteRequest[Result]) -> Result:
        """Return the request's result when it is durable. Raises its failure if it was not written.

        A signal may raise an exception at any line here. The request then leaves the queue, the other callers learn
        what is known about theirs, and the next of them leads.
        """
        batch: list[WriteRequest[Result]] = []
        turns = range(SIGNALS_MAX)  # Made here: a signal may strike after any call, also in the `finally` below.
        try:
            with self._guard:
                self._waiting.append(request)
                self._leader = self._leader or request
            while not request.is_done:
                if self._leader is request:
                    with self._turn:
                        self._commit_batch(batch)
                    break
                # A leader wakes us either because our request is written, or to make us the next leader.
                if not request.woken.wait(LOOK_SECONDS) and not self._turn.locked():
                    # A signal ended the leader before it could wake us. If the next one has just been named, two of
                    # us lead: they take turns, and each request is in the batch of one.
                    with self._guard:
                        self._leader = request
        finally:
            interrupt: BaseException | None = None
            for _ in turns:
                try:
                    self._hand_on(request, batch)
                    break
                except BaseException as signal:  # noqa: BLE001 - raised again below
                    interrupt = signal
            if interrupt is not None:
                raise interrupt
        if request.failure is not None:
            raise request.failure
        if request.result is None:
            # A leader took the request along, and ended without a word.
            raise OutcomeUnknown("the commit was interrupted")
        return request.result

    def _commit_batch(self, batch: list[WriteRequest[Result]]) -> None:
        """Lead: move all waiting requests into `batch` and write them in one commit."""
        with self._guard:
            batch += self._waiting[:GROUP_MAX]
            del self._waiting[:GROUP_MAX]
        try:
            if batch:
                self._write(batch)
        except AverError as failure:
            debug("ledger", "a commit of %d requests failed: %s", len(batch), failure)
            for request in batch:
                request.failure = failure

    def _hand_on(self, request: WriteRequest[Result], batch: list[WriteRequest[Result]]) -> None:
        """Leave the queue, make the next request the leader if this one led, and wake the callers of its batch.

        It may be called again after a signal has ended it.
        """
        # Under the guard: a request that comes now must find either a leader or none, never a gap.
        with self._guard:
            if request in self._waiting:
                self._waiting.remove(request)
            if self._leader is request:
                self._leader = self._waiting[0] if self._waiting else None
            leader = self._leader
        for each in batch:
            if not each.is_done:
                # A signal or a defect has ended the commit. This thread gets its exception, the others learn of it.
                each.failure = OutcomeUnknown("the commit was interrupted")
            each.woken.set()
        # The successor leads on its own thread: this caller returns now, and no caller leads for ever.
        if leader is not None:
            leader.woken.set()
