"""The ledger for asyncio: the same methods, as coroutines.

Every call runs on a thread of the ledger's own pool, so that the event loop never waits for a disk. Appends that are
awaited at the same time share commits, because their threads wait at the same time (see `append.GroupCommit`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from aver.capsule.sealed import Sealed
from aver.ledger.head import Head
from aver.ledger.ledger import SLICE, Ledger, open_ledger
from aver.verdict import Verdict

THREADS = 64
"""Most calls at the same time; so also the most single appends that can share one commit."""

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class AsyncLedger:
    """Use it as `async with aver.open_ledger_async() as ledger`. `Ledger` documents the methods."""

    def __init__(self, open_ledger: Callable[[], Ledger]) -> None:
        self._open = open_ledger
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="aver-ledger")
        self._ledger: Ledger | None = None

    async def __aenter__(self) -> Self:
        self._ledger = await self._call(self._open)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        if self._ledger is not None:
            await self._call(self._ledger.close)
        self._threads.shutdown(wait=False)

    @property
    def ledger(self) -> Ledger:
        """The synchronous ledger, for calls that may block."""
        if self._ledger is None:
            raise RuntimeError("open it first: async with aver.open_ledger_async() as ledger")
        return self._ledger

    async def append(self, *args: Any, **options: Any) -> Sealed:
        return await self._call(self.ledger.append, *args, **options)

    async def append_many(self, *args: Any, **options: Any) -> list[Sealed]:
        return await self._call(self.ledger.append_many, *args, **options)

    async def append_together(self, *args: Any, **options: Any) -> list[Sealed]:
        """Append entries to several chains in one durable commit: all of them or none."""
        return await self._call(self.ledger.append_together, *args, **options)

    async def close_chain(self, chain: str) -> Sealed:
        return await self._call(self.ledger.close_chain, chain)

    async def sweep(self) -> list[Sealed]:
        """Record in `meta` the heads of all chains that changed since they were last recorded."""
        return await self._call(self.ledger.sweep)

    async def head(self, chain: str) -> Head:
        return await self._call(self.ledger.head, chain)

    async def heads(self) -> list[Head]:
        return await self._call(self.ledger.heads)

    async def chains(self) -> list[str]:
        return await self._call(self.ledger.chains)

    async def get(self, reference: str) -> Sealed | None:
        return await self._call(self.ledger.get, reference)

    async def blob(self, digest: str) -> bytes:
        return await self._call(self.ledger.blob, digest)

    async def verify(self, *args: Any, **options: Any) -> Verdict:
        return await self._call(self.ledger.verify, *args, **options)

    def read(self, chain: str, start: int = 0, stop: int | None = None) -> AsyncIterator[Sealed]:
        return self._iterate(partial(self.ledger.read, chain, start, stop))

    def find(self, **conditions: Any) -> AsyncIterator[Sealed]:
        return self._iterate(partial(self.ledger.find, **conditions))

    async def _iterate(self, begin: Callable[[], Iterator[Sealed]]) -> AsyncIterator[Sealed]:
        records = await self._call(begin)
        # A slice at a time: one call to a thread for every record would cost more than reading it.
        while batch := await self._call(lambda: list(islice(records, SLICE))):
            for record in batch:
                yield record

    async def _call(
        self, work: Callable[Parameters, Result], *args: Parameters.args, **options: Parameters.kwargs
    ) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._threads, partial(work, *args, **options))


def open_ledger_async(*args: Any, **options: Any) -> AsyncLedger:
    """Takes the arguments of `open_ledger`. Use the result with `async with`."""
    return AsyncLedger(partial(open_ledger, *args, **options))
