"""`make fuzz`: hostile input to every parser of outside bytes, and to every verb on damaged stores.

    python fuzz/run.py                                 every target, in proportion to its share
    python fuzz/run.py --target ledger bundle          some of them; --list names them all
    python fuzz/run.py --runs 100000 --seed 7          more inputs; the seed repeats a run of the mutation engine
    python fuzz/run.py --engine mutation               without coverage, also where atheris is installed
    python fuzz/run.py --replay ledger FILE            one input again, with its traceback

The default engine is atheris, where it is installed: it keeps an input that reaches new code, and mutates that one
further. Elsewhere the mutation engine runs. Each prints target, engine, seed, runs and defects. The exit code is 1 if
there was a defect.

A defect's input is written below --out, with the command that replays it. Fix the cause, add a test to the folder that
is at fault, and put the input under a telling name into `fuzz/corpus/<target>/`: `make test` replays that for ever.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

DEFAULT_RUNS = 20_000
"""Inputs of a run without --runs, over all targets: some minutes."""


def main() -> int:
    given = parse_arguments()
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    if given.instrumented:
        import atheris

        with atheris.instrument_imports(include=["aver"]):
            from fuzz import targets
    else:
        from fuzz import targets

    if given.list:
        print("\n".join(f"{target.name:<24}{(target.__doc__ or '').partition(chr(10))[0]}" for target in targets.ALL))
        return 0
    if given.replay:
        return replay(*given.replay)
    chosen = [targets.BY_NAME[name] for name in given.target] if given.target else list(targets.ALL)
    total = sum(target.share for target in chosen)
    counts = {target.name: max(given.runs * target.share // total, 1) for target in chosen}
    if given.engine == "atheris" and not given.instrumented:
        return run_under_atheris(given, counts)
    return run_here(given, counts)


def run_here(given: argparse.Namespace, counts: dict[str, int]) -> int:
    """Fuzz in this process."""
    from fuzz.engine import Recorder, fuzz_by_coverage, fuzz_by_mutation
    from fuzz.honest import honest_things
    from fuzz.targets import BY_NAME

    found = 0
    with honest_things() as things:
        for name, runs in counts.items():
            target = BY_NAME[name](things)
            recorder = Recorder(target, given.out, lambda line: print(line, flush=True))
            start = time.perf_counter()

            def report(name: str = name, recorder: Recorder = recorder, start: float = start) -> None:
                outcome = recorder.outcome
                spent = time.perf_counter() - start
                words = f"seed {given.seed}  {outcome.runs:>7} runs  {len(outcome.defects)} defects  {spent:.0f} s"
                print(f"{name:<24}{given.engine:<10}{words}", flush=True)

            if given.engine == "atheris":

                def finish(recorder: Recorder = recorder, report: Callable[[], None] = report) -> NoReturn:
                    report()
                    things.remove()
                    os._exit(1 if recorder.outcome.defects else 0)

                corpus = things.new_path("libfuzzer")
                fuzz_by_coverage(target, recorder, runs=runs, seed=given.seed, corpus=corpus, finish=finish)
            else:
                fuzz_by_mutation(target, recorder, runs=runs, seed=given.seed)
            report()
            found += len(recorder.outcome.defects)
    return 1 if found else 0


def run_under_atheris(given: argparse.Namespace, counts: dict[str, int]) -> int:
    """Fuzz each target in a process of its own: libFuzzer ends the process that it ran in."""
    failed = False
    for name, runs in counts.items():
        arguments = ["--instrumented", "--target", name, "--runs", str(runs), "--seed", str(given.seed)]
        command = [sys.executable, __file__, *arguments, "--out", str(given.out), "--engine", "atheris"]
        # libFuzzer's own lines are on standard error. They are shown only if it ended by itself.
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode not in (0, 1):
            print(f"{name:<24}atheris   ended with {done.returncode}:\n{done.stderr[-4000:]}", flush=True)
        failed = failed or done.returncode != 0
    return 1 if failed else 0


def replay(name: str, file: str) -> int:
    """Run one input, and let its exception through."""
    from fuzz.honest import honest_things
    from fuzz.targets import BY_NAME

    data = Path(file).read_bytes()
    with honest_things() as things:
        BY_NAME[name](things).run(data)
    print(f"{name}: no defect")
    return 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = "atheris" if find_spec("atheris") else "mutation"
    parser.add_argument("--target", nargs="+", metavar="NAME", default=[])
    parser.add_argument("--runs", type=int, default=DEFAULT_RUNS, help=f"inputs in all (default {DEFAULT_RUNS})")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    parser.add_argument("--engine", choices=("atheris", "mutation"), default=default)
    parser.add_argument("--out", type=Path, default=Path(tempfile.gettempdir()) / "aver-fuzz-defects")
    parser.add_argument("--replay", nargs=2, metavar=("TARGET", "FILE"))
    parser.add_argument("--list", action="store_true", help="name the targets")
    parser.add_argument("--instrumented", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
