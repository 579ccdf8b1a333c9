"""The signed heads of a bundle: chains that were dropped, cut or added are found without the meta chain."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aver import KeyStore, Ledger, SeedSigner, open_ledger
from aver.check import verify
from aver.errors import BadInput, IntegrityError
from aver.keys import Statement, check_statement, sign_statement
from aver.ledger.bundle import export_bundle, import_bundle
from aver.ledger.bundle.head_file import read_head
from aver.ledger.checkpoint import make_checkpoint
from aver.ledger.checkpoint_files import to_checkpoint_line
from support.bundles import Expected, bad, change_index, draft, load, make_old, save, summary_of


def _head(bundle: Path) -> Statement:
    return Statement.from_dict(load(bundle / "head.json"))


def _drop_meta(bundle: Path) -> None:
    (bundle / "meta.json").unlink()
    change_index(lambda index: index.update(meta=None))(bundle)


def _drop(bundle: Path, chain: str) -> None:
    """Drop a chain as a careful attacker does: with its file, its summary and all counts."""
    length = len(load(bundle / f"{chain}.json")["capsules"])
    (bundle / f"{chain}.json").unlink()

    def change(index: dict[str, Any]) -> None:
        index["chains"] = [item for item in index["chains"] if item["id"] != chain]
        index["chain_count"] -= 1
        index["capsule_count"] -= length

    change_index(change)(bundle)


def _cut(bundle: Path, chain: str, to: int) -> None:
    """Cut a chain as a careful attacker does."""
    whole = load(bundle / f"{chain}.json")
    kept = whole["capsules"][:to]
    gone = len(whole["capsules"]) - to
    claims = {"length": to, "head_hash": kept[-1]["hash"], "ended_at": kept[-1]["signed_at"]}
    save(bundle / f"{chain}.json", whole | claims | {"capsules": kept})

    def change(index: dict[str, Any]) -> None:
        if chain == "meta":
            index["meta"].update(length=to, head_hash=kept[-1]["hash"])
        else:
            summary_of(index, chain).update(claims)
            index["capsule_count"] -= gone

    change_index(change)(bundle)


STRIPPED: list[tuple[str, Callable[[Path], object], Expected]] = [
    ("meta dropped", _drop_meta, ("CHAIN_MISSING", "meta", None)),
    ("meta cut", lambda bundle: _cut(bundle, "meta", 1), ("TRUNCATED", "meta", 1)),
    ("keys dropped", lambda bundle: (_drop_meta(bundle), _drop(bundle, "keys")), ("CHAIN_MISSING", "keys", None)),
    (
        "meta and a chain dropped",
        lambda bundle: (_drop(bundle, "codex.two"), _drop_meta(bundle)),
        ("CHAIN_MISSING", "codex.two", None),
    ),
    (
        "meta dropped and a chain cut",
        lambda bundle: (_cut(bundle, "codex.two", 2), _drop_meta(bundle)),
        ("TRUNCATED", "codex.two", 2),
    ),
]


@pytest.mark.parametrize(("what", "tamper", "expected"), STRIPPED, ids=[case[0] for case in STRIPPED])
def test_what_was_taken_out_is_named_at_its_place(
    bundle: Path, other: Ledger, what: str, tamper: Callable[[Path], object], expected: Expected
) -> None:
    tamper(bundle)
    found = verify(bundle)
    assert found.status == "failed"
    assert expected in {
        (finding.code, finding.place.chain, finding.place.sequence)
        for finding in found.findings
        if finding.status == "failed" and finding.check == "head"
    }
    with pytest.raises(IntegrityError):
        import_bundle(other, bundle)
    # Without `head.json` it may pass, but never as verified.
    make_old(bundle)
    assert verify(bundle).status in ("qualified", "failed")


def test_a_head_states_exactly_the_exported_chains(bundle: Path, filled: Ledger) -> None:
    statement = _head(bundle)
    assert statement.purpose == "checkpoint"
    assert set(statement.content) == {"v", "ledger", "tenant", "part", "heads", "at"}
    assert (statement.content["v"], statement.content["part"]) == (1, False)
    assert (statement.content["ledger"], statement.content["tenant"]) == (filled.id, filled.tenant)
    assert statement.content["heads"] == {
        head.chain: {"count": head.count, "hash": head.hash} for head in filled.heads()
    }
    assert [result.outcome for result in check_statement(statement, filled.keys.ring())] == ["valid"]
    verdict = verify(bundle)
    assert verdict.status == "verified"
    assert verdict.check("head").reason.startswith("5 chains, the whole ledger, as signed at ")


def test_a_part_says_so_and_has_the_keys(filled: Ledger, tmp_path: Path) -> None:
    out = export_bundle(filled, tmp_path / "out", chains=["codex.two"]).path
    content = _head(out).content
    assert (set(content["heads"]), content["part"]) == ({"codex.two", "keys"}, True)
    verdict = verify(out)
    assert verdict.status == "verified"
    assert "a part of the ledger" in verdict.check("head").reason
    change_index(lambda index: index.update(part=False))(out)
    assert bad(verify(out)) == ("INDEX_MISMATCH", None, None)


def test_the_head_of_a_part_is_no_checkpoint(filled: Ledger, bundle: Path, tmp_path: Path) -> None:
    part = export_bundle(filled, tmp_path / "part", chains=["codex.two"]).path
    with pytest.raises(BadInput, match="only a part"):
        verify(filled, checkpoints=[part / "head.json"])
    with pytest.raises(BadInput, match="only a part"):
        verify(bundle, checkpoints=[part / "head.json"])
    assert verify(filled, checkpoints=[bundle / "head.json"]).check("checkpoint").status == "passed"
    assert verify(part / "head.json").status == "verified"


def test_an_old_bundle_is_qualified_and_says_why(bundle: Path) -> None:
    make_old(bundle)
    verdict = verify(bundle)
    assert verdict.status == "qualified"
    assert verdict.check("head").status == "not_checked"
    assert "there is no head.json" in verdict.check("head").reason


def test_an_added_chain_is_found(bundle: Path, filled: Ledger, tmp_path: Path) -> None:
    filled.append("codex.late", draft())
    later = export_bundle(filled, tmp_path / "later").path
    shutil.copy(later / "codex.late.json", bundle)
    entry = summary_of(load(later / "index.json"), "codex.late")

    def change(index: dict[str, Any]) -> None:
        index["chains"].append(entry)
        index["chain_count"] += 1
        index["capsule_count"] += 1

    change_index(change)(bundle)
    assert bad(verify(bundle)) == ("HEAD_MISMATCH", "codex.late", None)


def test_chains_of_a_later_export_are_not_those_of_the_head(bundle: Path, filled: Ledger, tmp_path: Path) -> None:
    filled.append("codex.two", draft())
    later = export_bundle(filled, tmp_path / "later").path
    shutil.copy(bundle / "head.json", later / "head.json")
    assert bad(verify(later)) == ("HEAD_MISMATCH", "codex.two", 3)


def _resign(bundle: Path, signer: SeedSigner, purpose: str = "checkpoint", **content: Any) -> None:
    save(bundle / "head.json", sign_statement(purpose, _head(bundle).content | content, [signer]).to_dict())


def test_a_head_by_a_stranger_is_never_verified(bundle: Path, tmp_path: Path) -> None:
    stranger = SeedSigner.generate()
    _resign(bundle, stranger)
    verdict = verify(bundle)
    assert (verdict.status, verdict.check("head").code) == ("failed", "UNKNOWN_SIGNER")
    assert bad(verdict) == ("INDEX_MISMATCH", None, None)  # The index says that another key seals this ledger.
    public = load(bundle / "index.json")["public_key"]
    assert bad(verify(bundle, keys=[public]))[0] == "INDEX_MISMATCH"
    # A stranger who is known here, and who also rewrites the index, is still none of this ledger's keys.
    change_index(
        lambda index: index.update(
            public_key=stranger.public.ed25519,
            fingerprint=stranger.fingerprint,
            keys=index["keys"] | {stranger.fingerprint: stranger.public.ed25519},
        )
    )(bundle)
    verdict = verify(bundle)
    assert (verdict.status, verdict.check("head").code) == ("qualified", "UNKNOWN_SIGNER")
    verdict = verify(bundle, keys=[public, stranger.public])
    assert (verdict.status, verdict.check("head").code) == ("qualified", "UNKNOWN_SIGNER")
    assert "does not record" in verdict.check("head").reason


@pytest.mark.parametrize("identity", ["agent:bob", "policy:main"])
def test_a_head_by_another_identity_fails(bundle: Path, filled: Ledger, identity: str) -> None:
    keys = filled.keys
    keys.create(identity)
    with keys.signer(identity, create=False).hold() as signer:
        _resign(bundle, signer)
    assert ("KEY_MISMATCH", "head.json") in {(f.code, f.place.source) for f in verify(bundle).findings}
    assert verify(bundle).status == "failed"


def test_a_head_of_another_ledger_or_tenant_fails(bundle: Path, other: Ledger, tmp_path: Path) -> None:
    other.append("codex.two", draft())
    theirs = export_bundle(other, tmp_path / "theirs").path
    shutil.copy(theirs / "head.json", bundle / "head.json")
    assert verify(bundle).check("head").code == "CHAIN_IDENTITY"
    assert verify(bundle).status == "failed"
    with open_ledger(tenant="bob") as bobs:
        bobs.append("codex.two", draft())
        tenants = export_bundle(bobs, tmp_path / "bobs").path
    shutil.copy(tenants / "head.json", bundle / "head.json")
    assert bad(verify(bundle))[0] == "CHAIN_IDENTITY"


def test_a_statement_of_another_purpose_or_form_is_no_head(bundle: Path, filled: Ledger) -> None:
    before = (bundle / "head.json").read_bytes()
    with filled.keys.signer("ledger", create=False).hold() as signer:
        for purpose in ("cap", "report", "rotation"):
            (bundle / "head.json").write_bytes(before)
            _resign(bundle, signer, purpose)
            assert bad(verify(bundle)) == ("SCHEMA_INVALID", None, None)
        for content in ({"since": "2026-01-01T00:00:00+00:00"}, {"part": 0}, {"v": 2}, {"heads": []}):
            (bundle / "head.json").write_bytes(before)
            _resign(bundle, signer, **content)
            assert bad(verify(bundle)) == ("SCHEMA_INVALID", None, None)
    # An ordinary checkpoint has no `part`.
    (bundle / "head.json").write_bytes(to_checkpoint_line(make_checkpoint(filled)))
    assert bad(verify(bundle)) == ("SCHEMA_INVALID", None, None)


@pytest.mark.sample(4)
@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"{}", b"\xff", b'{"v":1,"v":1}', b"[" * 100_000])
def test_a_damaged_head_fails(bundle: Path, raw: bytes) -> None:
    (bundle / "head.json").write_bytes(raw)
    assert verify(bundle).check("head").status == "failed"


def test_a_head_without_signatures_or_with_changed_content_fails(bundle: Path) -> None:
    head = load(bundle / "head.json")
    save(bundle / "head.json", head | {"signatures": []})
    assert bad(verify(bundle))[0] == "SIG_MISSING"
    head["content"]["heads"].pop("codex.two")
    save(bundle / "head.json", head)
    assert bad(verify(bundle))[0] == "SIG_INVALID"


def test_a_link_instead_of_a_head_fails(bundle: Path, tmp_path: Path) -> None:
    shutil.move(bundle / "head.json", tmp_path / "copy.json")
    (bundle / "head.json").symlink_to(tmp_path / "copy.json")
    assert bad(verify(bundle)) == ("SCHEMA_INVALID", None, None)


@pytest.mark.parametrize("name", ["head", "index", "meta", "Head", "META"])
def test_no_chain_may_have_the_id_of_a_file_of_the_bundle(bundle: Path, name: str) -> None:
    change_index(lambda index: summary_of(index).update(id=name))(bundle)
    assert bad(verify(bundle)) == ("SCHEMA_INVALID", None, None)


def test_without_the_ledgers_key_there_is_no_head(filled: Ledger, tmp_path: Path) -> None:
    """On another machine: it has a copy of the ledger, and a key of its own that never sealed in it."""
    home = tmp_path / "elsewhere"
    KeyStore(home).create("ledger")
    with open_ledger(filled.store.url, home=home) as copy:
        done = export_bundle(copy, tmp_path / "out")
    assert not done.head_signed
    assert not (done.path / "head.json").exists()
    verdict = verify(done.path)
    assert (verdict.status, verdict.check("head").status) == ("qualified", "not_checked")
    with open_ledger(filled.store.url, home=tmp_path / "keyless") as copy:
        done = export_bundle(copy, tmp_path / "none")
    assert (done.head_signed, done.fingerprint) == (False, "")
    assert not (tmp_path / "keyless").exists()


def test_the_level_says_that_the_signature_was_not_checked(bundle: Path) -> None:
    head = load(bundle / "head.json")
    head["content"]["heads"].pop("codex.two")
    save(bundle / "head.json", head)
    assert bad(verify(bundle, level="content")) == ("HEAD_MISMATCH", "codex.two", None)
    save(bundle / "head.json", head | {"signatures": []})
    verdict = verify(bundle, level="structural")
    assert verdict.check("head").status == "failed"


def test_a_head_is_read_by_its_parts(bundle: Path) -> None:
    found = read_head(bundle)
    assert found is not None
    assert found.part is False
    assert len(found.heads) == 5


def test_a_retired_key_cannot_state_the_heads_of_later_records(filled: Ledger, tmp_path: Path) -> None:
    """The thief of an old key gives his statement an old time. The records that he lists are newer."""
    with filled.keys.signer("ledger", create=False).hold() as signer:
        thief = signer
    filled.keys.rotate("ledger")
    filled.append("codex.two", draft())
    out = export_bundle(filled, tmp_path / "out").path
    assert verify(out).status == "verified"
    _resign(out, thief, at="2020-01-01T00:00:00+00:00")
    assert ("head", "KEY_RETIRED") in {(finding.check, finding.code) for finding in verify(out).findings}


def test_a_key_that_was_rotated_and_has_not_sealed_yet_is_qualified(filled: Ledger, tmp_path: Path) -> None:
    filled.keys.rotate("ledger")
    done = export_bundle(filled, tmp_path / "out")
    assert done.head_signed
    verdict = verify(done.path)
    assert (verdict.status, verdict.check("head").status) == ("qualified", "warning")


def test_without_a_meta_chain_the_verdict_says_what_states_the_chains(filled: Ledger, tmp_path: Path) -> None:
    out = export_bundle(filled, tmp_path / "out", chains=["codex.two"]).path
    assert verify(out).check("meta").reason == "the bundle has no meta chain; head.json states which chains there are"
    make_old(out)
    assert "may have been cut or left out" in verify(out).check("meta").reason
