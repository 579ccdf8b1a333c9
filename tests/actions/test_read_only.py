"""A `.cap` file opened as a ledger."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import aver
from aver.actions import verify_files
from aver.errors import BadInput, IntegrityError, NotFound
from aver.ledger.read_only import ReadOnlyLedger
from support.runs import SealedRun
from support.runs import packed as pack_members


@pytest.fixture
def packed(tmp_path: Path) -> tuple[Path, str]:
    """A sealed run's `.cap` file and the name of its chain."""
    with aver.AgentRuntime(output_dir=tmp_path / "run") as run:
        for number in range(3):
            run.record_simple("observation", f"step {number}", {"n": number}, "done")
        run.finalize()
        chain = f"actions.{run.run_id}"
    cap = tmp_path / "away.cap"
    shutil.copy(tmp_path / "run" / "run.cap", cap)
    return cap, chain


def test_a_cap_file_reads_as_the_ledger_that_it_was_made_from(packed: tuple[Path, str]) -> None:
    cap, chain = packed
    with aver.open_ledger() as own, aver.open_ledger(cap) as ledger:
        assert isinstance(ledger, ReadOnlyLedger)
        assert (ledger.id, ledger.tenant, ledger.left_out) == (own.id, own.tenant, 0)
        assert [r.canonical for r in ledger.read(chain)] == [r.canonical for r in own.read(chain)]
        assert ledger.head(chain) == own.head(chain)
        assert ledger.verify().status == ledger.verdict.status == ledger.verify(chain).status
        with pytest.raises(BadInput, match="can only be read"):
            ledger.append(chain, aver.Capsule(type="tool"))


def test_a_damaged_cap_file_is_refused_with_its_verdict(packed: tuple[Path, str]) -> None:
    cap, _ = packed
    cap.write_bytes(cap.read_bytes()[:-40])
    with pytest.raises(IntegrityError):
        aver.open_ledger(cap)


def test_a_file_that_is_replaced_after_its_verdict_is_not_read(
    packed: tuple[Path, str], sealed_run: SealedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The records that are shown are those of the verdict."""
    cap, chain = packed
    conclude = verify_files.conclude

    def conclude_and_replace(*given: Any, **options: Any) -> Any:
        cap.write_bytes(sealed_run.cap)
        return conclude(*given, **options)

    monkeypatch.setattr(verify_files, "conclude", conclude_and_replace)
    with aver.open_ledger(cap) as ledger:
        assert chain in ledger.chains()
        assert sealed_run.chain not in ledger.chains()


def test_a_blob_is_only_read_from_the_line_that_has_its_digest(sealed_run: SealedRun, tmp_path: Path) -> None:
    wanted = hashlib.sha256(b"wanted").hexdigest()
    line = {"text": wanted, "sha256": hashlib.sha256(wanted.encode()).hexdigest()}
    evidence = json.dumps(line, separators=(",", ":")).encode() + b"\n"
    cap = tmp_path / "run.cap"
    cap.write_bytes(pack_members({**sealed_run.members, "evidence.jsonl": evidence}))
    with aver.open_ledger(cap) as ledger:
        with pytest.raises(NotFound):
            ledger.blob(wanted)
