"""A ledger that cannot be read is not a ledger that was tampered with: an outage never makes a verdict `failed`."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import aver.verdict.chain as chain_module
from aver import Blob, Capsule, Ledger, Unavailable, open_ledger
from aver.cli.dispatch import run_command
from aver.errors import StoreDamaged
from aver.ledger.bundle import export_bundle, import_bundle

pytestmark = pytest.mark.sqlite

CHAIN = "demo.outages"


@pytest.fixture
def ledger(aver_home: Path, tmp_path: Path) -> Iterator[Ledger]:
    """A ledger with everything that a verification reads: blobs, heads in `meta`, an ended key, an import."""
    with open_ledger(tmp_path / "theirs.db") as theirs:
        theirs.append_many("their.chain", [Capsule(type="tool") for _ in range(3)])
        bundle = export_bundle(theirs, tmp_path / "bundle", chains=["their.chain"]).path
    with open_ledger() as opened:
        blob = Blob(b"x" * 100, "text/plain")
        with_blob = Capsule(type="tool", execution={"tool_calls": [{"tool": "read", "result": blob.reference}]})  # type: ignore[arg-type]
        opened.append(CHAIN, with_blob, blobs=[blob])
        opened.append_many(CHAIN, [Capsule(type="tool") for _ in range(20)])
        opened.sweep()
        opened.keys.rotate("ledger")
        opened.append(CHAIN, Capsule(type="tool"))
        import_bundle(opened, bundle)
        assert opened.verify().status != "failed"
        yield opened


READS = [
    "chain",
    "chains",
    "tenants",
    "read_rows",
    "next_sequence",
    "hash_at",
    "find_first",
    "read_page",
    "read_newest",
    "blob",
    "small_blobs",
    "has_record_beyond",
    "count_orphans",
    "find_repeated",
    "schema_differences",
    "find_damage",
    "limitations",
    "facts",
]


class Fails:
    """A method of a store that fails at one of its calls."""

    def __init__(self, method: Callable[..., Any], at: int, error: Exception) -> None:
        self.method, self.at, self.error = method, at, error
        self.calls = 0

    def __call__(self, *given: Any, **named: Any) -> Any:
        self.calls += 1
        if self.calls == self.at:
            raise self.error
        return self.method(*given, **named)


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", READS)
def test_a_read_that_fails_at_any_place(ledger: Ledger, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    at = 0
    while True:
        at += 1
        fault = Fails(getattr(ledger.store, name), at, Unavailable("the server is restarting"))
        with monkeypatch.context() as patched:
            patched.setattr(ledger.store, name, fault)
            try:
                status = ledger.verify().status
            except Unavailable:
                status = "unavailable"
        assert status != "failed", f"call {at} of {name}"
        if fault.calls < at:
            break


@pytest.mark.parametrize("name", ["read_rows", "hash_at", "find_damage", "blob"])
def test_damage_is_a_finding(ledger: Ledger, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def fail(*given: object, **named: object) -> None:
        raise StoreDamaged("database disk image is malformed")

    healthy = ledger.verify().status
    if name == "blob":
        monkeypatch.setattr(ledger.store, "small_blobs", fail)
        assert ledger.verify().status == healthy  # Each is read by itself then.
    monkeypatch.setattr(ledger.store, name, fail)
    assert ledger.verify().status != "verified"
    if name != "hash_at":
        assert ledger.verify().status == "failed"


@pytest.mark.parametrize(
    "error", [MemoryError(), OSError(errno.EMFILE, "Too many open files"), ImportError("cannot load the module")]
)
def test_a_judge_without_memory_or_files_judges_nothing(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object) -> bool:
        raise error

    monkeypatch.setattr(chain_module, "verify_ed25519", fail)
    with pytest.raises(Unavailable):
        ledger.verify()


def test_the_command_says_that_it_could_not_read(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise Unavailable("the server is restarting", advice="try again")

    monkeypatch.setattr(type(ledger.store), "hash_at", fail)
    assert run_command(["verify"]) == 3
    shown = capsys.readouterr()
    assert "failed" not in shown.out + shown.err
    assert run_command(["verify", "--json"]) == 3
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["type"], error["exit_code"]) == ("Unavailable", 3)


SCARCE_FILES = """
import resource
from aver import Unavailable, open_ledger

def answer():
    try:
        with open_ledger(create=False) as ledger:
            return ledger.verify().status
    except Unavailable:
        return "unavailable"

answers = [answer()]
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
for limit in range(3, 24):
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, most))
    answers.append(answer())
print(*answers)
"""

SCARCE_MEMORY = """
import sqlite3
from aver import Unavailable, open_ledger

answers = []
meter = sqlite3.connect(":memory:")
with open_ledger(create=False) as ledger:
    for size in range(1_000_000, 50_000, -25_000):
        try:
            meter.execute(f"PRAGMA hard_heap_limit = {size}")
        except MemoryError:
            break
        try:
            answers.append(ledger.verify().status)
        except Unavailable:
            answers.append("unavailable")
    print(*answers, flush=True)
    import os
    os._exit(0)  # There is no memory left to close the ledger with.
"""


@pytest.mark.more
@pytest.mark.parametrize("program", [SCARCE_FILES, SCARCE_MEMORY], ids=["files", "memory"])
def test_a_process_without_files_or_memory(ledger: Ledger, program: str) -> None:
    ledger.close()
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answers = done.stdout.split()
    assert "failed" not in answers
    assert "unavailable" in answers
    assert set(answers) - {"unavailable"}
