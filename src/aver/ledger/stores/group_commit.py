"""Group commit: writes that wait at the same time share one durable commit.

The first caller becomes the leader. It takes every waiting request, writes them in one transaction and wakes their
callers. Later requests wait; the first of them leads the next commit. So a lone caller pays only for its own commit,
and there is no background thread.

A signal may end any of these threads at any line. The others then learn what is known about their requests, and the
next of them leads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from aver.errors import AverError, OutcomeUnknown, Unavailable
from aver.ledger.stores.forks import register_for_forks
from aver.log import debug

GROUP_MAX = 256
"""Most requests in one commit. A limit, so that the first request does not wait for ever."""

SIGNALS_MAX = 100
"""Signals in a row during which a caller still tries to wake the others."""

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

    def wait(self) -> None:
        """Return after `set` was called. Only one thread may wait, and only once."""
        self._lock.acquire()

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


class GroupCommit(Generic[Result]):
    """`write` gets a batch, writes it durably and sets each request's result or failure; or raises for all."""

    def __init__(self, write: Callable[[Sequence[Any]], None]) -> None:
        self._write = write
        self._reset()
        register_for_forks(self)

    def _reset(self) -> None:
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
        try:
            with self._guard:
                self._waiting.append(request)
                self._leader = self._leader or request
            if self._leader is not request:
                # A leader wakes us either because our request is written, or to make us the next leader.
                request.woken.wait()
            if self._leader is request:
                self._commit_batch(batch)
        finally:
            interrupt: BaseException | None = None
            for _ in range(SIGNALS_MAX):
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
            raise Unavailable("the record was not written")
        return request.result

    def _commit_batch(self, batch: list[WriteRequest[Result]]) -> None:
        """Lead: move all waiting requests into `batch` and write them in one commit."""
        with self._guard:
            batch += self._waiting[:GROUP_MAX]
            del self._waiting[:GROUP_MAX]
        try:
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
            if each.result is None and each.failure is None:
                # A signal or a defect has ended the commit. This thread gets its exception, the others learn of it.
                each.failure = OutcomeUnknown("the commit was interrupted")
            each.woken.set()
        # The successor leads on its own thread: this caller returns now, and no caller leads for ever.
        if leader is not None:
            leader.woken.set()
