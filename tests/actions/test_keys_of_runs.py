"""The keys of a `.cap` file: who may sign its head, and what a retired key may still have signed."""

from __future__ import annotations

from pathlib import Path

import pytest

import aver
from aver.errors import BadInput
from aver.keys import KeyStore, SeedSigner
from support.runs import codes_of, make_sealed_run, packed, record_actions, with_head_by


def test_only_the_ledgers_key_signs_the_head(tmp_path: Path) -> None:
    run = make_sealed_run(tmp_path, actions=3, gated=())
    store = KeyStore(run.home)
    for identity in ("policy:p", "agent:bob"):
        store.create(identity)
        signer = SeedSigner((run.home / "keys" / f"{identity.replace(':', '-')}.0.key").read_bytes())
        cap = packed(with_head_by(run.members, signer))
        exported = store.ring().entries
        assert codes_of(aver.verify(cap, home=run.home)) == {"KEY_MISMATCH"}
        assert codes_of(aver.verify(cap, keys=exported)) == {"KEY_MISMATCH"}


def test_a_run_that_a_retired_key_sealed_later_is_found_with_the_exported_keys(tmp_path: Path) -> None:
    run = make_sealed_run(tmp_path, actions=3, gated=())
    store = KeyStore(run.home)
    stolen = SeedSigner((run.home / "keys" / "ledger.0.key").read_bytes())
    store.rotate("ledger")
    exported = list(store.ring().entries)
    # What was sealed before is not forged, but only its own word says that it was sealed before.
    assert aver.verify(run.cap, keys=exported).status == "qualified"
    with aver.open_ledger(home=tmp_path / "thief", signer=stolen) as ledger:
        forged = aver.AgentRuntime(tmp_path / "forged", ledger=ledger, agent="thief", workspace=tmp_path)
        record_actions(forged, 2)
        forged.finalize()
        forged.close()
    cap = (tmp_path / "forged" / "run.cap").read_bytes()
    assert "KEY_RETIRED" in codes_of(aver.verify(cap, keys=exported))
    assert "KEY_RETIRED" in codes_of(aver.verify(cap, home=run.home))


def test_a_run_is_not_verified_with_keys_that_come_with_it(tmp_path: Path) -> None:
    from aver.cli.verbs.verify.key_source import build_source_check

    run = make_sealed_run(tmp_path, actions=1, gated=())
    for source in (run.path / "run.cap", run.path / "head.json"):
        for thing in (run.path, source):
            with pytest.raises(BadInput, match="prove nothing"):
                build_source_check(str(source), [str(thing)])(source, source.read_bytes())
