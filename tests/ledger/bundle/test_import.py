"""Importing bundles: verbatim, frozen, refused if anything fails, and harmless to the ledger they come into."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from aver import Ledger, PublicKey, open_ledger
from aver.check import verify
from aver.errors import BadInput, IntegrityError, NotFound, Refused
from aver.ledger.bundle import export_bundle, import_bundle
from aver.ledger.imports.source import ImportSource
from aver.ledger.stores.copy import copy_ledger
from aver.ledger.stores.urls import open_store
from support.agent_capsules import AgentCapsules
from support.bundles import change_chain, draft, load, save

pytestmark = pytest.mark.both_stores


def test_a_bundle_is_imported_verbatim_and_frozen(bundle: Path, filled: Ledger, other: Ledger) -> None:
    done = import_bundle(other, bundle)
    assert done.verdict.status == "qualified"
    assert done.unknown_signers == (load(bundle / "index.json")["fingerprint"],)
    names = {chain.origin: chain.name for chain in done.chains}
    prefix = f"import.{sha256(f'{filled.id}/{filled.tenant}'.encode()).hexdigest()[:16]}"
    assert names == {origin: f"{prefix}.{origin}" for origin in filled.chains()}
    assert {"codex.two", "claude-code.one", "keys", "meta"} < names.keys()
    for origin, name in names.items():
        assert list(other.read(name)) == list(filled.read(origin))
    digest = next((bundle / "blobs").iterdir()).name
    assert other.blob(digest) == b"x" * 50_000
    assert other.store.blob(other.tenant, digest).media == "text/x-log"  # type: ignore[union-attr]
    assert other.keys.ring().known == {}
    with pytest.raises(BadInput, match="are imports"):
        other.append(f"{prefix}.codex.two", draft())
    other.append("codex.two", draft())
    other.append("demo.mine", draft())
    verdict = other.verify()
    assert verdict.status == "qualified"
    assert verdict.check("columns").status == "passed"
    assert verdict.check("identity").status == "passed"


def test_importing_twice_changes_nothing(bundle: Path, other: Ledger) -> None:
    first = import_bundle(other, bundle)
    heads = other.heads()
    second = import_bundle(other, bundle)
    assert other.heads() == heads
    assert [chain.existed for chain in first.chains] == [False] * 5
    assert [chain.existed for chain in second.chains] == [True] * 5


def test_importing_into_the_same_ledger_finds_the_chains_there(bundle: Path, filled: Ledger) -> None:
    before = filled.heads()
    done = import_bundle(filled, bundle)
    assert {chain.name: chain.existed for chain in done.chains} == dict.fromkeys(filled.chains(), True)
    assert filled.heads() == before
    filled.append("codex.two", draft())
    assert all(chain.existed for chain in import_bundle(filled, bundle).chains)
    assert filled.verify().status == "verified"


def test_what_was_imported_can_be_exported_and_imported_again(
    bundle: Path, other: Ledger, tmp_path: Path, new_ledger_url: Callable[[], str]
) -> None:
    import_bundle(other, bundle)
    again = export_bundle(other, tmp_path / "again").path
    keys = [load(bundle / "index.json")["public_key"], other.signer().public]
    assert verify(again, keys=keys).status == "verified"
    third_home = tmp_path / "third"
    third_home.mkdir()
    with open_ledger(new_ledger_url(), home=third_home) as third:
        import_bundle(third, again)
        assert third.verify().first_bad is None


def test_chains_restored_after_a_rotation_are_not_held_to_its_heads(
    bundle: Path, filled: Ledger, new_ledger_url: Callable[[], str]
) -> None:
    with open_ledger(new_ledger_url()) as fresh:
        fresh.append("demo.a", draft())
        fresh.keys.rotate("ledger")
        fresh.append("demo.a", draft())
        import_bundle(fresh, bundle, only=["codex.two"])
        verdict = fresh.verify()
        assert verdict.status == "qualified"
        assert "only times were compared" in verdict.check("keys").reason


def test_a_public_tools_bundle_is_imported_under_our_names(
    public_tool: AgentCapsules, other: Ledger, tmp_path: Path
) -> None:
    public_tool.session("codex", "two words", 1)
    out = public_tool.write_bundle(tmp_path / "theirs")
    done = import_bundle(other, out)
    names = {chain.origin: chain.name for chain in done.chains}
    first_hash = load(out / "meta.json")["capsules"][0]["hash"]
    prefix = f"import.{sha256(first_hash.encode()).hexdigest()[:16]}"
    assert names["claude-code-5d2e"] == f"{prefix}.claude-code.5d2e"
    assert names["codex-two words"] == f"{prefix}.x-{sha256(b'codex.two words').hexdigest()[:32]}"
    assert [record.canonical.decode() for record in other.read(f"{prefix}.claude-code.5d2e")] == [
        entry["canonical"] for entry in public_tool.chains[0].entries
    ]
    for public in public_tool.publics:
        other.keys.import_keys([PublicKey(public)], trust={public})
    assert other.verify().status == "verified"


def test_a_bundle_that_fails_is_refused_whole(bundle: Path, other: Ledger) -> None:
    change_chain(lambda c: c[1].update(canonical=c[1]["canonical"].replace("step 1", "step X")))(bundle)
    with pytest.raises(IntegrityError) as refused:
        import_bundle(other, bundle)
    assert refused.value.code == "HASH_MISMATCH"
    assert refused.value.evidence.status == "failed"
    assert other.chains() == []
    done = import_bundle(other, bundle, only=["claude-code.one"])
    assert [chain.origin for chain in done.chains] == ["claude-code.one"]


def test_a_bad_signature_by_a_known_signer_is_refused(bundle: Path, other: Ledger) -> None:
    key = PublicKey(load(bundle / "index.json")["public_key"])
    other.keys.import_keys([key], trust={key.ed25519})
    change_chain(lambda c: c[1].update(signature=c[0]["signature"]))(bundle)
    with pytest.raises(IntegrityError, match="SIG_INVALID"):
        import_bundle(other, bundle)


def test_an_import_keeps_clear_of_every_name_of_our_own(bundle: Path, other: Ledger) -> None:
    other.append("codex.two", draft("mine"))
    mine = other.head("codex.two")
    import_bundle(other, bundle)
    assert other.head("codex.two") == mine
    assert {name.partition(".")[0] for name in other.chains()} == {"codex", "import", "keys", "meta"}


def test_other_records_under_a_taken_name_are_refused_before_anything_is_stored(
    bundle: Path, other: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    import_bundle(other, bundle, only=["codex.two"])
    monkeypatch.setattr(ImportSource, "name_chain", lambda source, name: f"import.{source.digits}.codex.two")
    before = other.heads()
    with pytest.raises(Refused, match="with other records"):
        import_bundle(other, bundle, only=["claude-code.one"])
    assert other.heads() == before


def test_digits_that_stand_for_another_source_are_refused(
    bundle: Path, other: Ledger, public_tool: AgentCapsules, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ImportSource, "digits", property(lambda source: "0" * 16))
    import_bundle(other, bundle, only=["codex.two"])
    import_bundle(other, bundle, only=["claude-code.one"])
    before = other.heads()
    with pytest.raises(Refused, match=r"0{16} stands for another source here") as refused:
        import_bundle(other, public_tool.write_bundle(tmp_path / "theirs"))
    assert refused.value.code == "NAME_TAKEN"
    assert other.heads() == before


def test_what_has_grown_since_is_told_and_does_not_keep_others_out(
    public_tool: AgentCapsules, other: Ledger, tmp_path: Path
) -> None:
    """Its meta chain grows with every session: it must not keep the next import from being made."""
    before = import_bundle(other, public_tool.write_bundle(tmp_path / "before"))
    heads = {head.chain: head for head in other.heads() if head.chain != "meta"}
    public_tool.grow(public_tool.chains[0], 2)
    public_tool.session("codex", "new", 3)
    after = import_bundle(other, public_tool.write_bundle(tmp_path / "after"))
    found = {chain.origin: (chain.existed, chain.beyond, chain.count) for chain in after.chains}
    assert found["claude-code-5d2e"] == (True, 2, 9)
    assert found["codex-new"] == (False, 0, 3)
    assert found["codex-019d"] == (True, 0, 2)
    assert found["meta"] == (True, 1, 5)
    now = {head.chain: head for head in other.heads() if head.chain != "meta"}
    assert {name: now[name] for name in heads} == heads
    assert [name.partition(".")[2].partition(".")[2] for name in now.keys() - heads.keys()] == ["codex.new"]
    assert other.verify().first_bad is None
    again = import_bundle(other, tmp_path / "before")
    assert [(chain.existed, chain.beyond) for chain in again.chains] == [(True, 0)] * len(before.chains)


def test_what_has_grown_otherwise_is_refused(public_tool: AgentCapsules, other: Ledger, tmp_path: Path) -> None:
    import_bundle(other, public_tool.write_bundle(tmp_path / "before"))
    grown = public_tool.chains[3]
    grown.entries.clear()
    public_tool.grow(grown, 4)
    before = other.heads()
    with pytest.raises(Refused, match=r"cline\.1717000000000 is here already, with other records"):
        import_bundle(other, public_tool.write_bundle(tmp_path / "after"))
    assert other.heads() == before


def test_a_bundle_does_not_lengthen_what_was_made_here(
    bundle: Path, filled: Ledger, tmp_path: Path, new_ledger_url: Callable[[], str]
) -> None:
    """Of a ledger that was set back, an earlier bundle tells nothing new. A later one shows that its end is gone."""
    earlier = new_ledger_url()
    with closing(open_store(earlier, create=True, timeout=30, facts=filled.store.facts())) as copy:
        copy_ledger(filled.store, copy)
    filled.append("codex.two", draft())
    longer = export_bundle(filled, tmp_path / "longer").path
    done = import_bundle(filled, bundle, only=["codex.two"])
    assert [(chain.existed, chain.beyond) for chain in done.chains] == [(True, 0)]
    with open_ledger(earlier) as set_back:
        with pytest.raises(Refused, match="was made here, and lacks 1 records"):
            import_bundle(set_back, longer, only=["codex.two"])
        assert set_back.head("codex.two").count == 3


def test_two_chains_that_would_have_one_name_here_are_refused(
    public_tool: AgentCapsules, other: Ledger, tmp_path: Path
) -> None:
    out = public_tool.write_old_bundle(tmp_path / "theirs")
    first, second = load(out / "index.json")["chains"][:2]
    odd = "two words"
    for summary, name in ((first, odd), (second, f"x-{sha256(odd.encode()).hexdigest()[:32]}")):
        save(out / f"{name}.json", load(out / f"{summary['id']}.json") | {"id": name})
        summary["id"] = name
    save(out / "index.json", {"chains": [first, second]})
    with pytest.raises(Refused, match=r"two chains would be called import\.[0-9a-f]{16}\.x-"):
        import_bundle(other, out)
    assert other.chains() == []


def test_an_imported_key_does_not_stand_in_for_ours(filled: Ledger, other: Ledger, tmp_path: Path) -> None:
    filled.append("codex.keyed", draft("theirs"), key="codex:s:t1")
    import_bundle(other, export_bundle(filled, tmp_path / "out", chains=["codex.keyed"]).path)
    mine = other.append("demo.mine", draft("mine"), key="codex:s:t1")
    assert mine.capsule.trigger.request == "mine"
    assert other.verify().first_bad is None


def test_a_record_whose_id_is_here_already_is_refused(filled: Ledger, other: Ledger, tmp_path: Path) -> None:
    taken = next(filled.read("codex.two")).id
    other.append("demo.mine", draft(id=taken))
    with pytest.raises(Refused, match=taken):
        import_bundle(other, export_bundle(filled, tmp_path / "out", chains=["codex.two"]).path)
    assert other.chains() == ["demo.mine", "keys"]


def test_blobs_that_were_left_out_are_asked_for(filled: Ledger, other: Ledger, tmp_path: Path) -> None:
    out = export_bundle(filled, tmp_path / "out", chains=["claude-code.blob"], blobs=False).path
    with pytest.raises(Refused, match="blob"):
        import_bundle(other, out)


def test_an_import_that_dies_half_way_is_repeated(bundle: Path, other: Ledger) -> None:
    """A real process, killed inside the second chain's transaction."""
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # A child that hangs must not hang the tests.
        try:
            with other.store.transaction() as transaction:
                kind = type(transaction)
            freeze, seen = kind.freeze, []

            def dying(self: Any, row: Any, origin: str) -> None:
                seen.append(row)
                if len(seen) == 2:
                    os._exit(9)
                freeze(self, row, origin)

            kind.freeze = dying  # type: ignore[method-assign]
            import_bundle(other, bundle)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert len([row for row in other.store.chains(other.tenant) if row.frozen]) == 1
    assert other.verify().first_bad is None
    done = import_bundle(other, bundle)
    assert sorted(chain.existed for chain in done.chains) == [False] * 4 + [True]
    assert other.verify().first_bad is None


CHANGED_MEANWHILE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "canonical": lambda capsule: capsule["canonical"].replace("step 2", "step X"),
    "signature": lambda capsule: "00" * 64,
    "signature_pq": lambda capsule: "00" * 3309,
    "signed_at": lambda capsule: "2020-01-01T00:00:00+00:00",
    "signed_by": lambda capsule: "0" * 16,
}


@pytest.mark.parametrize("part", CHANGED_MEANWHILE)
def test_a_bundle_that_changes_while_it_is_imported_is_not_stored(
    bundle: Path, other: Ledger, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    """No hash covers the seal of a record. It must still be the one that was verified."""
    transaction = other.store.transaction

    def changed(*expected: Any) -> Any:
        change_chain(lambda c: c[2].update({part: CHANGED_MEANWHILE[part](c[2])}))(bundle)
        return transaction(*expected)

    monkeypatch.setattr(other.store, "transaction", changed)
    with pytest.raises(IntegrityError, match="changed while"):
        import_bundle(other, bundle, only=["codex.two"])
    assert other.chains() == []


def test_import_of_what_is_not_there(bundle: Path, other: Ledger, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no bundle"):
        import_bundle(other, tmp_path)
    with pytest.raises(NotFound, match=r"codex\.none"):
        import_bundle(other, bundle, only=["codex.none"])
