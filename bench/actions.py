"""Actions, runs and `.cap` files: the speed and size targets, each as a ratio within one run on one machine.

    python bench/actions.py                 10,000 actions, some minutes
    python bench/actions.py --actions 2000  fewer

The floor of verification is its hashing and signature checks alone: SHA-256 of every receipt, SHA3-256 and Ed25519 of
every capsule, SHA-256 of every row and node, and of the files that the manifest lists. The reference's size is that of
the public tool's own layout for the same actions, written by `tests/support/capseal_files.py`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from measuring import Line, in_turns, table
from nacl.bindings import crypto_sign_open

import aver
from aver.actions.encodings import encode_action, receipt_bytes
from aver.actions.proofs.trace import WIDTH
from aver.actions.run_state import load_run_from_path
from support import capseal_files


def record(run: aver.AgentRuntime, number: int) -> str:
    return run.record_simple(
        "code_edit",
        f"change number {number}",
        {"tool_name": "Edit", "files_affected": ["src/app.py"], "n": number},
        {"output": f"changed {number}", "duration_ms": number % 500},
        duration_ms=number % 500,
        metadata={
            "description": f"change number {number}",
            "tool_name": "Edit",
            "files_affected": ["src/app.py"],
            "risk_label": "simple + single-file + behavioral",
            "grid_cell": 0,
        },
    )


def bench_record(directory: Path, rounds: int) -> Line:
    """What recording costs beside the append that it makes: taken within each call, since appends wander."""
    times: list[tuple[float, float]] = []
    with aver.open_ledger(directory / "record.db", home=directory / "home") as ledger:
        append, appending = ledger.append, [0.0]

        def timed(*given: Any, **named: Any) -> Any:
            began = time.perf_counter()
            sealed = append(*given, **named)
            appending[0] = time.perf_counter() - began
            return sealed

        run = aver.AgentRuntime(directory / "record", ledger=ledger)
        record(run, 0)
        ledger.append = timed  # type: ignore[method-assign]
        for number in range(100 * rounds):
            began = time.perf_counter()
            record(run, number)
            whole = time.perf_counter() - began
            times.append((appending[0], whole - appending[0]))
        run.close()
    bare, beside = (statistics.median(column) for column in zip(*times, strict=True))
    return Line(
        "record an action",
        f"{bare * 1e6:.0f} µs (append)",
        f"{(bare + beside) * 1e6:.0f} µs",
        "131 µs, not durable",
        f"{beside * 1e6:.0f} µs beside",
        "≤ 400 µs",
    )


def floor_of(cap: Path, public: bytes) -> tuple[list[bytes], list[tuple[bytes, str, str]], bytes, list[bytes]]:
    """What there is to hash and to check, taken out beforehand."""
    from aver.actions.archive import open_archive
    from aver.actions.encodings import read_capsule_line

    with cap.open("rb") as file, open_archive(file) as archive:
        actions = iter(load_run_from_path(cap).actions)
        files = [file.read() for file in archive.members.values()]
        archive.members["capsules.jsonl"].seek(0)
        capsules = []
        for raw in archive.members["capsules.jsonl"]:
            line = read_capsule_line(raw.rstrip())
            action = next(actions) if line.has_action else None
            sealed = line.rebuild(None if action is None else encode_action(action).seal_form(action))
            capsules.append((sealed.canonical, sealed.hash, sealed.signature))
    return [receipt_bytes(action) for action in load_run_from_path(cap).actions], capsules, public, files


def floor(receipts: list[bytes], capsules: list[tuple[bytes, str, str]], public: bytes, files: list[bytes]) -> float:
    row = bytes(1 + 8 * WIDTH)
    began = time.perf_counter()
    for file in files:
        hashlib.sha256(file).digest()
    for receipt in receipts:
        hashlib.sha256(receipt).hexdigest()
        hashlib.sha256(row).digest()
        hashlib.sha256(row[:65]).digest()
    for canonical, digest, signature in capsules:
        if hashlib.sha3_256(canonical).hexdigest() != digest:
            raise SystemExit("a capsule has another hash")
        crypto_sign_open(bytes.fromhex(signature) + digest.encode(), public)
    return time.perf_counter() - began


def bench_verify(directory: Path, actions: int, rounds: int) -> list[Line]:
    with aver.open_ledger(directory / "run.db", home=directory / "home") as ledger:
        run = aver.AgentRuntime(directory / "run", ledger=ledger)
        for number in range(actions):
            record(run, number)
        began = time.perf_counter()
        told = run.finalize()
        sealing = time.perf_counter() - began
        run.close()
        key = ledger.keys.ring().active("ledger").key  # type: ignore[union-attr]
    if told["verdict"] != "verified":
        raise SystemExit("the run does not verify")
    cap = directory / "run" / "run.cap"
    given = floor_of(cap, key.ed25519_bytes)

    def verify(thing: Path) -> float:
        began = time.perf_counter()
        if aver.verify(thing, keys=[key]).status != "verified":
            raise SystemExit(f"{thing} does not verify")
        return time.perf_counter() - began

    bare, packed, plain = in_turns(
        rounds, lambda: floor(*given), lambda: verify(cap), lambda: verify(directory / "run")
    )
    theirs = len(capseal_files.cap(capseal_files.files(as_theirs(run.actions))))
    size = cap.stat().st_size
    return [
        Line(
            f"verify a .cap of {actions}", f"{bare:.2f} s", f"{packed:.2f} s", "–", f"{packed / bare:.2f} x", "≤ 1.5 x"
        ),
        Line("verify its directory", f"{bare:.2f} s", f"{plain:.2f} s", "–", f"{plain / bare:.2f} x", "≤ 1.5 x"),
        Line("size of the .cap", "–", f"{size:,} B", f"{theirs:,} B", f"{size / theirs:.0%}", "≤ 95 %"),
        Line("seal, write and verify it", "–", f"{sealing:.2f} s", "–", "", ""),
    ]


def as_theirs(actions: list[aver.AgentAction]) -> list[aver.AgentAction]:
    """The same actions, chained by the public tool's receipts."""
    chained: list[aver.AgentAction] = []
    for action in actions:
        parent = capseal_files.receipt(chained[-1]) if chained else None
        chained.append(replace(action, parent_receipt_hash=parent))
    return chained


def bench_proofs(directory: Path) -> Line:
    from aver.actions.proofs.inclusion import inclusion_document

    found = load_run_from_path(directory / "run")
    began = time.perf_counter()
    document = inclusion_document(found.actions, len(found.actions) // 2, found.seal)
    made = time.perf_counter() - began
    text = json.dumps(document)
    times = []
    for _ in range(20):
        began = time.perf_counter()
        aver.verify(text)
        times.append(time.perf_counter() - began)
    return Line(
        "prove one action; verify that",
        "–",
        f"{made:.2f} s; {statistics.median(times) * 1e3:.1f} ms",
        "–",
        f"{len(text):,} B",
        "",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--actions", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    work = Path(__file__).parent.parent / "build"
    work.mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="bench-actions-", dir=work))
    try:
        lines = [bench_record(directory, options.rounds), *bench_verify(directory, options.actions, options.rounds)]
        lines.append(bench_proofs(directory))
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    print(table(lines).replace("qp-capsule", "public tool"))


if __name__ == "__main__":
    main()
