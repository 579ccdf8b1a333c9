"""A bundle or a `.cap` file opened as a ledger: read as usual, verified before, and never written."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import aver
from aver import Entry, Ledger, SeedSigner
from aver.capsule.draft import prepare_draft
from aver.capsule.sealed import SEAL_KEYS, Sealed
from aver.errors import BadInput, IntegrityError, NotFound
from aver.ledger.bundle import export_bundle
from aver.ledger.bundle import read_only as read_only_bundle
from aver.ledger.read_only import ReadOnlyLedger
from support.agent_capsules import AgentCapsules
from support.bundles import change_chain, change_index, draft, load, make_old, save


def _open(path: Path, **options: object) -> ReadOnlyLedger:
    ledger = aver.open_ledger(path, **options)  # type: ignore[arg-type]
    assert isinstance(ledger, ReadOnlyLedger)
    return ledger


def _bytes(records: object) -> list[tuple[bytes, str]]:
    return [(record.canonical, record.hash) for record in records]  # type: ignore[attr-defined]


def test_a_bundle_reads_as_the_ledger_that_it_was_made_from(filled: Ledger, bundle: Path) -> None:
    with _open(bundle) as ledger:
        assert (ledger.verdict.status, ledger.left_out) == ("verified", 0)
        assert (ledger.id, ledger.tenant) == (filled.id, filled.tenant)
        assert ledger.chains() == filled.chains()
        assert ledger.heads() == filled.heads()
        for chain in filled.chains():
            assert _bytes(ledger.read(chain)) == _bytes(filled.read(chain))
        # In the order of their times, as in the ledger. Records of one moment may come in another order.
        times = [record.signed_at for record in ledger.find()]
        assert times == sorted(times)
        assert len(times) == ledger.verdict.records
        record = next(filled.read("codex.two", 1))
        for reference in (record.hash, record.id, record.uri, "capsule://codex.two/1"):
            found = ledger.get(reference)
            assert isinstance(found, Sealed)
            assert found.hash == record.hash
        digest = next((bundle / "blobs").iterdir()).name
        assert ledger.blob(digest) == filled.blob(digest)
        assert ledger.verify().status == "verified"
        assert ledger.verify("codex.two").records == 3


def test_nothing_can_be_appended(bundle: Path) -> None:
    before = {path.name: path.read_bytes() for path in bundle.iterdir() if path.is_file()}
    with _open(bundle) as ledger:
        for attempt in (
            lambda: ledger.append("codex.two", draft()),
            lambda: ledger.append_many("codex.two", [draft()]),
            lambda: ledger.append_together([Entry("codex.two", draft())]),
            lambda: ledger.close_chain("codex.two"),
            lambda: ledger.sweep(),
            lambda: ledger.record_keys(),
            lambda: ledger.signer(),
        ):
            with pytest.raises(BadInput, match="can only be read"):
                attempt()
    assert {path.name: path.read_bytes() for path in bundle.iterdir() if path.is_file()} == before


def test_nothing_is_left_behind_and_nothing_is_noted(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    home = tmp_path / "auditor"
    with _open(bundle, home=home) as ledger:
        assert ledger.verdict.status == "qualified"
        list(ledger.find())
        ledger.verify("codex.two")
    assert list((tmp_path / "tmp").iterdir()) == []
    assert not home.exists()


def test_a_record_that_does_not_hold_is_not_shown(bundle: Path) -> None:
    change_chain(lambda c: c[1].update(canonical=c[1]["canonical"].replace("step 1", "step X")))(bundle)
    change_chain(lambda c: c[2].update(signature="00" * 64))(bundle)
    with _open(bundle) as ledger:
        assert (ledger.verdict.status, ledger.left_out) == ("failed", 2)
        assert [record.sequence for record in ledger.read("codex.two")] == [0]
        assert not any(b"step X" in record.canonical for record in ledger.find())
        assert ledger.verify("codex.two").status == "failed"
        assert ledger.verify("claude-code.one").status != "failed"


def test_what_is_wrong_with_the_whole_is_in_the_verdict(bundle: Path) -> None:
    chain = load(bundle / "codex.two.json")
    save(bundle / "codex.two.json", chain | {"capsules": chain["capsules"][:2]})
    with _open(bundle) as ledger:
        assert ledger.verdict.status == "failed"
        assert ledger.verify("codex.two").first_bad is not None
    make_old(bundle)
    change_index(lambda index: index.update(chains="none"))(bundle)
    with pytest.raises(IntegrityError):
        _open(bundle)


def test_hostile_records_neither_stop_the_reading_nor_squat(bundle: Path) -> None:
    stranger = SeedSigner.generate()
    capsule = aver.seal(draft(), stranger)
    loose = {key: getattr(capsule, key) for key in ("hash", "signature", "signature_pq", "signed_at", "signed_by")}
    change_chain(lambda c: c.insert(0, {**loose, "canonical": capsule.canonical.decode()}))(bundle)
    change_chain(lambda c: c.append(7))(bundle)
    with _open(bundle) as ledger:
        assert ledger.verdict.status == "failed"
        assert ledger.left_out >= 1
        list(ledger.find())


def test_the_tenant_must_be_that_of_the_bundle(bundle: Path) -> None:
    with _open(bundle, tenant="default") as ledger:
        assert ledger.tenant == "default"
    with pytest.raises(NotFound, match="tenant"):
        _open(bundle, tenant="bob")


def test_a_bundle_of_the_public_tool_is_read_by_avers_names(public_tool: AgentCapsules, tmp_path: Path) -> None:
    out = public_tool.write_bundle(tmp_path / "out")
    with _open(out) as ledger:
        assert "claude-code.5d2e" in ledger.chains()
        assert len(list(ledger.read("claude-code.5d2e"))) == 7
        assert ledger.verify("claude-code.5d2e").records == 7


def test_imported_chains_keep_their_origin(filled: Ledger, other: Ledger, bundle: Path, tmp_path: Path) -> None:
    from aver.ledger.bundle import import_bundle

    import_bundle(other, bundle, only=["codex.two"])
    again = export_bundle(other, tmp_path / "again").path
    with _open(again) as ledger:
        frozen = [row for row in ledger.store.chains(ledger.tenant) if row.frozen]
        assert [row.origin for row in frozen] == ["codex.two"]


def test_names_in_a_bundle_are_found_by_verify_and_resolve(bundle: Path, tmp_path: Path) -> None:
    from aver.check import resolve, verify

    assert verify("codex.two", ledger=bundle).records == 3
    assert verify("capsule://codex.two/1", ledger=bundle).status == "verified"
    assert resolve("codex.two", ledger=bundle).chain == "codex.two"
    with pytest.raises(NotFound):
        verify("codex.none", ledger=bundle)
    # A path is still judged as a file, and a directory without an index is no bundle.
    assert verify(bundle).status == "verified"
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput):
        aver.open_ledger(tmp_path / "empty")


def test_the_environment_may_name_a_bundle(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AVER_LEDGER", os.fspath(bundle))
    with aver.open_ledger() as ledger:
        assert isinstance(ledger, ReadOnlyLedger)
    assert aver.verify().subject == "bundle bundle"


def test_a_bundle_in_the_place_of_a_ledger_is_verified_as_a_bundle(bundle: Path) -> None:
    assert aver.verify(ledger=bundle).subject == aver.verify(bundle).subject
    change_chain(lambda c: c[1].update(signature="00" * 64))(bundle)
    assert aver.verify(ledger=str(bundle)).status == "failed"


def test_a_copy_of_the_bundle_elsewhere_reads_the_same(bundle: Path, tmp_path: Path) -> None:
    shutil.copytree(bundle, tmp_path / "copy")
    shutil.rmtree(bundle)
    with _open(tmp_path / "copy" / "index.json") as ledger:
        assert len(list(ledger.find())) == 11


def test_a_stranger_cannot_take_the_place_of_a_record(bundle: Path) -> None:
    """Both records hold by themselves. The stranger's claims the place, and an earlier time."""
    stranger = SeedSigner.generate()
    genuine = Sealed(**load_first(bundle))
    forged = prepare_draft(draft("forged")).seal(
        stranger, at="2001-01-01T00:00:00.000001+00:00", sequence=0, previous_hash=None, chain={}
    )
    entry = {key: getattr(forged, key) for key in SEAL_KEYS} | {"canonical": forged.canonical.decode()}
    change_chain(lambda c: c.append(entry))(bundle)
    with _open(bundle) as ledger:
        assert (ledger.verdict.status, ledger.left_out) == ("failed", 1)
        assert next(ledger.read("codex.two")).hash == genuine.hash
        assert [record.sequence for record in ledger.read("codex.two")] == [0, 1, 2]
        assert ledger.held["codex.two"] == 3


def load_first(bundle: Path, name: str = "codex.two") -> dict[str, Any]:
    entry = load(bundle / f"{name}.json")["capsules"][0]
    return {**entry, "canonical": entry["canonical"].encode()}


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "change",
    [
        change_chain(lambda c: c[1].update(canonical=c[1]["canonical"].replace("step 1", "step X"))),
        change_chain(lambda c: c[1].update(signature="00" * 64)),
        change_chain(lambda c: c.pop()),
        change_chain(lambda c: c.append(c[2])),
        change_chain(lambda c: c[1].update(signature="00" * 64), "meta"),
        lambda bundle: (bundle / "codex.two.json").unlink(),
        lambda bundle: (bundle / "codex.two.json").write_text("{"),
    ],
)
def test_a_bundle_that_changes_after_its_verdict_is_not_read(
    bundle: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], object]
) -> None:
    """The records that are shown are those of the verdict."""
    conclude = read_only_bundle._conclude

    def conclude_and_change(*given: Any) -> Any:
        verdict = conclude(*given)
        change(bundle)
        return verdict

    monkeypatch.setattr(read_only_bundle, "_conclude", conclude_and_change)
    with pytest.raises(IntegrityError, match="changed while it was read"):
        _open(bundle)
