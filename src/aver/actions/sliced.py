"""Judging the capsules of a run, those of a long run on two cores.

Most of verifying a run is checking signatures. For a long run a helper process, forked from this one, judges slices of
the chain while this process reads lines and computes rows; whenever the helper has enough to do, the next slice is
judged here. A slice begins where the one before ended, so slices are independent, and their tallies merge in order.

A helper is not forked where other threads are running: a fork copies their locks, held or not. One that cannot be
started, or dies, costs time and nothing else.
"""

from __future__ import annotations

import fcntl
import os
import pickle
import select
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import IO, Any, NamedTuple

from aver.capsule.sealed import Sealed
from aver.errors import BadInput
from aver.verdict import ChainJudge, Rules, Tally

__all__ = ["PARALLEL_FROM", "ParallelJudge"]

PARALLEL_FROM = 2_000
"""Fewer records than this are judged sooner by one process."""

SLICE_SIZE = 200
"""Records that are handed over at a time: some hundred kilobytes, some hundredths of a second."""

PIPE_SIZE = 1024 * 1024
"""Bytes that a pipe should hold: a slice, so that handing it over does not wait until the helper takes it."""

PENDING_SLICES_MAX = 2
"""Slices that the helper has at a time: one to judge, and one to go on with."""

_SET_PIPE_SIZE = getattr(fcntl, "F_SETPIPE_SZ", None)


class _RecordSlice(NamedTuple):
    start: int
    previous: str | None
    records: list[tuple[bytes, str, str, str, str, str]]


class ParallelJudge:
    """Judges one chain from its beginning. `expected` is how many records there may be."""

    def __init__(self, rules: Rules, *, chain: str, identity: Mapping[str, str], expected: int) -> None:
        self._rules = rules
        self._chain = chain
        self._identity = identity
        self._count = 0
        self._last: str | None = None
        self._slice = _RecordSlice(0, None, [])
        self._tallies: list[Tally | None] = []
        self._helper: _JudgeProcess | None = None
        self._here: ChainJudge | None = None
        if expected >= PARALLEL_FROM and rules.level == "signature":
            self._helper = _JudgeProcess.fork(self)
        if self._helper is None:
            self._here = self._new_judge(0, None)

    def take(self, record: Sealed) -> dict[str, Any] | None:
        """Take the next record. Returns its content; None where it is known already that it does not hold."""
        if self._here is not None:
            failed = count_failures(self._here.tally)
            content = self._here.judge(record)
            return None if count_failures(self._here.tally) > failed else content
        taken = record.canonical, record.hash, record.signature, record.signature_pq, record.signed_at, record.signed_by
        self._slice.records.append(taken)
        self._count += 1
        self._last = record.hash
        if len(self._slice.records) >= SLICE_SIZE:
            self._dispatch_slice()
        try:
            return record.to_dict()
        except BadInput:
            return None  # Its tally will tell why.

    def finish(self) -> Tally:
        """The tally of all records, in order."""
        if self._here is not None:
            return self._here.finish()
        self._dispatch_slice()
        if self._helper is not None:
            self._collect_tallies(self._helper, wait=True)
            self._helper.stop()
        tally = Tally()
        for piece in self._tallies:
            tally.merge(piece or Tally())
        return tally

    def close(self) -> None:
        """End the helper, where there is one still."""
        if self._helper is not None:
            self._helper.stop()

    def judged(self, piece: _RecordSlice) -> Tally:
        """The tally of a slice."""
        judge = self._new_judge(piece.start, piece.previous)
        for record in piece.records:
            judge.judge(Sealed(*record, chain=self._chain))
        return judge.finish()

    def _new_judge(self, start: int, previous: str | None) -> ChainJudge:
        return ChainJudge(
            self._rules, chain=self._chain, start=start, previous=previous, identity=self._identity, needs_block=True
        )

    def _dispatch_slice(self) -> None:
        """Have the slice that was collected judged, there or here."""
        piece, self._slice = self._slice, _RecordSlice(self._count, self._last, [])
        if not piece.records:
            return
        helper = self._helper
        if helper is not None:
            self._collect_tallies(helper, wait=False)
        at = len(self._tallies)
        self._tallies.append(None)
        if helper is None or not helper.takes(at, piece):
            self._tallies[at] = self.judged(piece)

    def _collect_tallies(self, helper: _JudgeProcess, *, wait: bool) -> None:
        """Note what the helper has judged. What a helper that died has left is judged here."""
        for at, piece, tally in helper.done(wait=wait):
            self._tallies[at] = self.judged(piece) if tally is None else tally


def count_failures(tally: Tally) -> int:
    return sum(count for (_, status, _), count in tally.counts.items() if status == "failed")


class _JudgeProcess:
    """A forked process that judges slices. It ends when the pipe that it is told through is closed."""

    def __init__(self, process: int, heard: IO[bytes], told: IO[bytes]) -> None:
        self._process = process
        self._heard = heard
        self._told = told
        self._waiting: list[tuple[int, _RecordSlice]] = []
        self._alive = True

    @classmethod
    def fork(cls, judge: ParallelJudge) -> _JudgeProcess | None:
        """A helper; None where there can be none."""
        if threading.active_count() > 1 or (os.cpu_count() or 1) < 2:
            return None
        try:
            for_helper, told = os.pipe()
            heard, by_helper = os.pipe()
            if _SET_PIPE_SIZE is not None:
                with suppress(OSError):
                    fcntl.fcntl(told, _SET_PIPE_SIZE, PIPE_SIZE)
            process = os.fork()
        except OSError:
            return None
        if process == 0:
            status = 1
            try:
                os.close(told)
                os.close(heard)
                _serve_slices(judge, os.fdopen(for_helper, "rb"), os.fdopen(by_helper, "wb"))
                status = 0
            finally:
                os._exit(status)
        os.close(for_helper)
        os.close(by_helper)
        return cls(process, os.fdopen(heard, "rb", buffering=0), os.fdopen(told, "wb", buffering=0))

    def takes(self, at: int, piece: _RecordSlice) -> bool:
        """Hand a slice over, if the helper has not enough to do."""
        if not self._alive or len(self._waiting) >= PENDING_SLICES_MAX:
            return False
        try:
            pickle.dump(piece, self._told, protocol=pickle.HIGHEST_PROTOCOL)
        except OSError:
            self._alive = False
            return False
        self._waiting.append((at, piece))
        return True

    def done(self, *, wait: bool) -> list[tuple[int, _RecordSlice, Tally | None]]:
        """What has been judged, in order; with `wait` all of it. No tally for what a helper that died has left."""
        found: list[tuple[int, _RecordSlice, Tally | None]] = []
        while self._waiting and self._alive and (wait or select.select([self._heard], [], [], 0)[0]):
            try:
                found.append((*self._waiting[0], pickle.load(self._heard)))
                del self._waiting[0]
            except (OSError, EOFError, pickle.UnpicklingError):
                self._alive = False
        if not self._alive:
            found += [(at, piece, None) for at, piece in self._waiting]
            self._waiting.clear()
        return found

    def stop(self) -> None:
        if self._process:
            self._told.close()
            self._heard.close()
            with suppress(ChildProcessError):
                os.waitpid(self._process, 0)
            self._process = 0


def _serve_slices(judge: ParallelJudge, heard: IO[bytes], told: IO[bytes]) -> None:
    while True:
        try:
            piece = pickle.load(heard)
        except EOFError:
            return
        pickle.dump(judge.judged(piece), told, protocol=pickle.HIGHEST_PROTOCOL)
        told.flush()
