"""Judge records on all cores, by worker processes.

Threads do not help: they pass the interpreter's lock between two signature checks, which costs more than it gains.
A worker is a Python process of its own that runs `run_worker`. It receives once how to judge, then one piece of work
after the other, and answers each with a `Tally`.

A worker and its owner can never wait for each other: a worker answers only after it has read a piece to its end, and
its owner, a thread for each worker, sends the next piece only after it has read the answer to its end.

A worker that cannot be started, or that dies, costs time and nothing else: its pieces are judged here.
"""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import islice
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Generic, NamedTuple, Self, TypeVar

from aver.capsule.sealed import Sealed
from aver.errors import BadInput
from aver.log import debug
from aver.verdict.chain import JUDGED_TOGETHER, REST_UNREAD, UNREADABLE_MAX, ChainJudge, Rules
from aver.verdict.verdict import Finding, Place, Tally

CHAIN_PARALLEL_FROM = 4_000
"""Records of a chain below which one process is done sooner than a worker has started."""

SLICE_RECORDS = 200
"""Records that are handed over at a time: some hundredths of a second of work."""

SLICE_BYTES = 4 * 1024 * 1024
"""A slice ends at so many bytes, too. It is in memory several times: here, pickled, and in the worker."""

GC_THRESHOLD = 50_000
"""Objects after which a worker looks for cycles. Records have none, and are freed without looking."""

Piece = TypeVar("Piece")
JudgePiece = Callable[[Piece], Tally]
OpenJudge = Callable[[], AbstractContextManager[JudgePiece[Piece]]]
"""Opens a function that judges pieces. It is pickled for the workers, so it must be importable by name."""


class WorkerPool(Generic[Piece]):
    """Worker processes that judge pieces. `judge_here` does the same in this process."""

    def __init__(self, open_judge: OpenJudge[Piece], judge_here: JudgePiece[Piece], workers: int) -> None:
        self.workers = workers
        self._judge_here = judge_here
        self._is_closed = False
        self._workers = [_Worker(open_judge) for _ in range(workers)]
        self._idle: SimpleQueue[_Worker] = SimpleQueue()
        for worker in self._workers:
            self._idle.put(worker)
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="aver-verify")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def submit(self, piece: Piece) -> Future[Tally]:
        return self._threads.submit(self._judge, piece)

    def close(self) -> None:
        """End the workers, also in the middle of their work."""
        self._is_closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        for worker in self._workers:
            worker.stop()

    def _judge(self, piece: Piece) -> Tally:
        """Have a worker judge a piece, or judge it here if the worker has died."""
        worker = self._idle.get()
        try:
            tally = worker.ask(piece)
        finally:
            self._idle.put(worker)
        if tally is None and not self._is_closed:
            return self._judge_here(piece)
        return tally or Tally()  # After `close` no caller reads the result.


def judge_pieces(
    open_judge: OpenJudge[Piece], judge_here: JudgePiece[Piece], pieces: Iterable[Piece]
) -> Iterator[Tally]:
    """Judge pieces on all cores. Gives their tallies in the order of the pieces; few of them are kept at a time."""
    cores = available_cores()
    if cores < 2:
        yield from map(judge_here, pieces)
        return
    with WorkerPool(open_judge, judge_here, cores) as pool:
        running: deque[Future[Tally]] = deque()
        for piece in pieces:
            running.append(pool.submit(piece))
            # Two pieces per core keep all workers busy, and bound how many tallies wait in memory.
            if len(running) > 2 * cores:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()


def available_cores() -> int:
    """Cores to use; 1 where no worker can be started, because Python does not know its own program."""
    return (os.cpu_count() or 1) if sys.executable else 1


class _Worker:
    """One worker process, or none where it could not be started or has died."""

    def __init__(self, open_judge: object) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        # A worker gets the options of this Python that keep it from running other people's code.
        options = {"-I": sys.flags.isolated, "-E": sys.flags.ignore_environment, "-s": sys.flags.no_user_site}
        flags = [flag for flag, is_set in options.items() if is_set]
        try:
            self._process = subprocess.Popen(
                [sys.executable, *flags, "-P", "-c", f"from {__name__} import run_worker; run_worker()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
            self._send(open_judge)
        except OSError:
            self.stop()

    def ask(self, piece: object) -> Tally | None:
        """Return the worker's tally of a piece; None if there is no worker."""
        try:
            self._send(piece)
            if self._process is None or self._process.stdout is None:
                return None
            # Unpickling is safe here: the bytes come only from a worker of this process.
            tally: Tally = pickle.load(self._process.stdout)
            return tally
        except MemoryError:
            self.stop()
            raise
        except Exception as error:  # noqa: BLE001 - half an answer of a dying worker can raise anything
            debug("verdict", "a worker gave no answer, its work is done here: %r", error)
            self.stop()
            return None

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:
                    pass  # Closing writes out the buffer, and the worker no longer reads.
        process.wait()

    def _send(self, message: object) -> None:
        if self._process is None or self._process.stdin is None:
            raise EOFError
        pickle.dump(message, self._process.stdin, protocol=pickle.HIGHEST_PROTOCOL)
        self._process.stdin.flush()


def run_worker() -> None:
    """Run as a worker: receive how to judge, then judge pieces until the pipe closes."""
    pieces, tallies = sys.stdin.buffer, sys.stdout.buffer
    gc.set_threshold(GC_THRESHOLD)
    # Unpickling is safe here: the bytes come only from the process that started this worker.
    with pickle.load(pieces)() as judge:
        while True:
            try:
                piece = pickle.load(pieces)
            except EOFError:
                return
            pickle.dump(judge(piece), tallies, protocol=pickle.HIGHEST_PROTOCOL)
            tallies.flush()


# --- a chain whose records come one by one


class _RecordSlice(NamedTuple):
    """Consecutive records. A slice continues from the hash before it, so slices can be judged independently."""

    start: int
    previous: str | None
    records: list[tuple[bytes, str, str, str, str, str]]


_UNREADABLE_CODES = frozenset({"SCHEMA_INVALID", "DUPLICATE_KEY", "HASH_MISMATCH"})


class ParallelChainJudge:
    """Judges one chain from its beginning, record by record; a long chain with the help of workers.

    `expected` is how many records there may be: a hint that need not be true.
    """

    def __init__(self, rules: Rules, *, chain: str, identity: Mapping[str, str], expected: int) -> None:
        self._chain = chain
        self._judge_slice = partial(_judge_record_slice, rules, chain, identity)
        self._next = 0
        self._last: str | None = None
        self._slice = _RecordSlice(0, None, [])
        self._size = 0
        self._tally = Tally()
        self._pending: deque[Future[Tally] | Tally] = deque()
        self._pool: WorkerPool[_RecordSlice] | None = None
        self._here: ChainJudge | None = None
        cores = available_cores()
        if expected >= CHAIN_PARALLEL_FROM and rules.level == "signature" and cores > 1:
            # This process reads lines and computes rows meanwhile, so it needs a core, too.
            self._pool = WorkerPool(partial(_open_judge, self._judge_slice), self._judge_slice, cores - 1)
        else:
            self._here = _new_judge(rules, chain, identity, 0, None)

    def take(self, record: Sealed) -> dict[str, Any] | None:
        """Take the next record. Returns its content; None where it is known already that it does not hold."""
        if self._here is not None:
            failed = count_failures(self._here.tally)
            content = self._here.judge(record)
            return None if count_failures(self._here.tally) > failed else content
        values = (
            *(record.canonical, record.hash, record.signature),
            *(record.signature_pq, record.signed_at, record.signed_by),
        )
        self._slice.records.append(values)
        self._size += sum(map(len, values))
        self._next += 1
        self._last = record.hash
        if len(self._slice.records) >= SLICE_RECORDS or self._size >= SLICE_BYTES:
            self._dispatch_slice()
        try:
            return record.to_dict()
        except BadInput:
            return None  # Its tally has the reason.

    def stops_reading(self) -> bool:
        """Whether so many records cannot be read that the caller must stop. Then a finding says so."""
        if self._here is not None:
            return self._here.stops_reading()
        bad = sum(count for (_, _, code), count in self._tally.counts.items() if code in _UNREADABLE_CODES)
        if bad > UNREADABLE_MAX:
            self._tally.add(Finding("schema", "failed", "NOT_READ", REST_UNREAD, Place(self._chain, self._next)))
        return bad > UNREADABLE_MAX

    def finish(self) -> Tally:
        """The tally of all records, in order."""
        if self._here is not None:
            return self._here.finish()
        self._dispatch_slice()
        for piece in self._pending:
            self._tally.merge(piece if isinstance(piece, Tally) else piece.result())
        self.close()
        return self._tally

    def close(self) -> None:
        """End the workers, where there are any still."""
        if self._pool is not None:
            self._pool.close()

    def _dispatch_slice(self) -> None:
        """Have the collected slice judged: by a worker or, where these have enough to do, here."""
        piece, self._slice, self._size = self._slice, _RecordSlice(self._next, self._last, []), 0
        if not piece.records or self._pool is None:
            return
        # Merged as soon as their turn comes, so that the findings of a hostile file do not pile up.
        while self._pending and (isinstance(first := self._pending[0], Tally) or first.done()):
            self._tally.merge(first if isinstance(first, Tally) else first.result())
            self._pending.popleft()
        running = sum(not isinstance(piece, Tally) and not piece.done() for piece in self._pending)
        is_busy = running >= 2 * self._pool.workers
        self._pending.append(self._judge_slice(piece) if is_busy else self._pool.submit(piece))


def _open_judge(judge: JudgePiece[Piece]) -> AbstractContextManager[JudgePiece[Piece]]:
    return nullcontext(judge)


def _new_judge(rules: Rules, chain: str, identity: Mapping[str, str], start: int, previous: str | None) -> ChainJudge:
    return ChainJudge(rules, chain=chain, start=start, previous=previous, identity=identity, needs_block=True)


def _judge_record_slice(rules: Rules, chain: str, identity: Mapping[str, str], piece: _RecordSlice) -> Tally:
    judge = _new_judge(rules, chain, identity, piece.start, piece.previous)
    records = (Sealed(*record, chain=chain) for record in piece.records)
    while together := list(islice(records, JUDGED_TOGETHER)):
        judge.verify_ahead(together)
        for record in together:
            judge.judge(record)
    return judge.finish()


def count_failures(tally: Tally) -> int:
    return sum(count for (_, status, _), count in tally.counts.items() if status == "failed")
