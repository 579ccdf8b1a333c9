"""The two engines: `atheris`, which is guided by coverage, and mutation, which needs nothing.

Both draw hostile inputs with the target's own `mutate`, begin with its seeds and its corpus, and print a seed with
which a run can be repeated. A defect does not end a run: its input is written to a file, and inputs that fail in the
same way are counted only.
"""

from __future__ import annotations

import hashlib
import re
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import FrameType
from typing import NoReturn

from fuzz.byte_edits import INPUT_MAX
from fuzz.oracles import Defect
from fuzz.target import Target

HANG_SECONDS = 60
"""Seconds after which one input counts as a hang. Every target needs less than one on an idle machine."""

POOL_MAX = 500
"""Inputs that the mutation engine keeps to mutate further."""


@dataclass
class Outcome:
    """What a run on one target found."""

    runs: int = 0
    defects: dict[str, Path] = field(default_factory=dict)
    """The file with the input, by the kind of defect."""


class Recorder:
    """Runs inputs, and keeps one input of each kind of defect."""

    def __init__(self, target: Target, directory: Path, report: Callable[[str], None]) -> None:
        self.outcome = Outcome()
        self._target = target
        self._directory = directory
        self._report = report

    def run(self, data: bytes) -> None:
        """Run one input."""
        self.outcome.runs += 1
        try:
            with _stop_hangs():
                self._target.run(data)
        except Defect as defect:
            self._keep(data, defect)

    def _keep(self, data: bytes, defect: Defect) -> None:
        kind = _describe_kind(defect)
        if kind in self.outcome.defects:
            return
        self._directory.mkdir(parents=True, exist_ok=True)
        name = f"{self._target.name}-{hashlib.sha256(data).hexdigest()[:12]}"
        path = self._directory / name
        path.write_bytes(data)
        self.outcome.defects[kind] = path
        self._target.write_damaged(data, self._directory / f"{name}.damaged")
        self._report(f"  DEFECT  {defect}")
        if defect.__cause__ is not None:
            last = traceback.extract_tb(defect.__cause__.__traceback__)[-1]
            self._report(f"          at {last.filename}:{last.lineno} in {last.name}")
        self._report(f"          input   {path}")
        self._report(f"          replay  python fuzz/run.py --replay {self._target.name} {path}")


def _describe_kind(defect: Defect) -> str:
    """The same words for inputs that fail in the same way."""
    cause = defect.__cause__
    if cause is not None and cause.__traceback__ is not None:
        last = traceback.extract_tb(cause.__traceback__)[-1]
        return f"{type(cause).__name__} at {last.filename}:{last.lineno}"
    return re.sub(r"[0-9a-f]{16,}|[0-9]+|: .*", "", str(defect), flags=re.DOTALL)


@contextmanager
def _stop_hangs() -> Iterator[None]:
    def interrupt(number: int, frame: FrameType | None) -> None:
        raise Defect(f"a hang: no answer after {HANG_SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.alarm(HANG_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def fuzz_by_mutation(target: Target, recorder: Recorder, *, runs: int, seed: int) -> None:
    """Run so many inputs: first seeds and corpus, then mutations of these and of earlier mutations."""
    random = Random(f"{seed} {target.name}")
    pool = [*target.seeds(), *target.corpus().values()]
    honest = len(pool)
    for number in range(runs):
        if number < honest:
            recorder.run(pool[number])
            continue
        data = target.mutate(random.choice(pool), random)
        recorder.run(data)
        if random.random() < 0.2:
            pool[honest:] = [*pool[honest:], data][-POOL_MAX:]


def fuzz_by_coverage(
    target: Target, recorder: Recorder, *, runs: int, seed: int, corpus: Path, finish: Callable[[], NoReturn]
) -> NoReturn:
    """Run so many inputs under atheris, and then `finish`. Aver must have been imported under its instrumentation.

    This never returns: libFuzzer ends the process in which it ran, without any of Python's ends of a process.
    """
    import atheris

    corpus.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate([*target.seeds(), *target.corpus().values()]):
        (corpus / f"seed-{number}").write_bytes(data)

    def mutate(data: bytes, size: int, seed: int) -> bytes:
        return target.mutate(bytes(data), Random(seed))[:size]

    def run(data: bytes) -> None:
        recorder.run(data)
        if recorder.outcome.runs >= runs:
            finish()

    options = [
        f"-runs={2 * runs}",
        f"-seed={seed % 2**32 or 1}",
        f"-max_len={INPUT_MAX}",
        "-len_control=0",
        "-verbosity=0",
    ]
    options += [f"-timeout={2 * HANG_SECONDS}", "-rss_limit_mb=4096", f"-artifact_prefix={corpus}/"]
    atheris.Setup([sys.argv[0], *options, str(corpus)], run, custom_mutator=mutate, internal_libfuzzer=True)
    atheris.Fuzz()
    finish()
