"""Group commit: appends that wait at the same time share one durable commit.

The first caller to come becomes the leader: it takes every request that is waiting, writes them in one
transaction, and wakes their callers. Requests that come meanwhile wait; the first of them leads next. A lone
caller therefore pays for nothing but its own commit, and there is no thread in the background.

A request that is refused (its key exists, its head moved) fails its own caller only. A commit that fails, fails
every request in it: none of them was recorded.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from aver.errors import Unavailable
from aver.ledger.forks import mind_forks

__all__ = ["GROUP_MAX", "GroupCommit", "Request"]

GROUP_MAX = 256
"""Most requests in one commit, so that the first of them does not wait for ever."""

Result = TypeVar("Result")


class Request(Generic[Result]):
    """Something to be written, and then its result or the reason why not."""

    __slots__ = ("_woken", "failure", "leads", "result")

    def __init__(self) -> None:
        self.result: Result | None = None
        self.failure: BaseException | None = None
        self.leads = False
        self._woken = threading.Event()

    def succeed(self, result: Result) -> None:
        self.result = result

    def refuse(self, failure: BaseException) -> None:
        self.failure = failure

    def wake(self) -> None:
        self._woken.set()

    def wait(self) -> None:
        self._woken.wait()
        self._woken.clear()


AnyRequest = TypeVar("AnyRequest", bound="Request[Any]")


class GroupCommit(Generic[AnyRequest]):
    """`write` gets a batch, writes it durably and sets each request's result or refusal; or raises for all."""

    def __init__(self, write: Callable[[Sequence[AnyRequest]], None]) -> None:
        self._write = write
        self._with_no_one_waiting()
        mind_forks(self)

    def _with_no_one_waiting(self) -> None:
        self._guard = threading.Lock()
        self._waiting: list[AnyRequest] = []
        self._led = False

    def before_fork(self) -> None:
        self._guard.acquire()

    def after_fork_in_parent(self) -> None:
        self._guard.release()

    def after_fork_in_child(self) -> None:
        """Whoever waited or led is a thread of the parent."""
        self._with_no_one_waiting()

    def submit(self, request: AnyRequest) -> None:
        """Return when the request was written; raise if it was not."""
        with self._guard:
            self._waiting.append(request)
            lead = not self._led
            self._led = True
        if not lead:
            request.wait()
            lead = request.leads
        if lead:
            self._lead()
        if request.failure is not None:
            raise request.failure

    def _lead(self) -> None:
        with self._guard:
            batch = self._waiting[:GROUP_MAX]
            del self._waiting[:GROUP_MAX]
        try:
            self._write(batch)
        except Exception as failure:  # noqa: BLE001 - every caller in the batch must hear of it
            for request in batch:
                request.refuse(failure)
        except BaseException:
            for request in batch:
                request.refuse(Unavailable("the commit was interrupted", advice="look the record up by its key"))
            raise
        finally:
            with self._guard:
                successor = self._waiting[0] if self._waiting else None
                self._led = successor is not None
            for request in batch:
                request.wake()
            if successor is not None:
                successor.leads = True
                successor.wake()
