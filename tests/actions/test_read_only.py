"""A `.cap` file opened as a ledger."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import aver
from aver.errors import BadInput, IntegrityError
from aver.ledger.read_only import ReadOnlyLedger


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
