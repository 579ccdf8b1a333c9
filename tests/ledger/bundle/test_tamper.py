"""Bundles that were tampered with, forged or broken: each is found, and named at its place."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aver import Ledger, SeedSigner, seal
from aver.check import verify
from aver.ledger.bundle import export_bundle
from support.agent_capsules import AgentCapsules
from support.bundles import Expected, bad, change_chain, change_index, draft, load, make_old, save, summary_of


def _drop_chain(bundle: Path) -> None:
    (bundle / "codex.two.json").unlink()
    change_index(_without("codex.two"))(bundle)


def _without(chain: str) -> Callable[[dict[str, Any]], None]:
    def change(index: dict[str, Any]) -> None:
        index["chains"] = [item for item in index["chains"] if item["id"] != chain]
        index["chain_count"] -= 1
        index["capsule_count"] -= 3

    return change


def _rename(bundle: Path) -> None:
    (bundle / "codex.two.json").rename(bundle / "codex.three.json")
    chain = load(bundle / "codex.three.json")
    save(bundle / "codex.three.json", chain | {"id": "codex.three"})
    change_index(lambda index: summary_of(index).update(id="codex.three"))(bundle)


def _swap_files(bundle: Path) -> None:
    one, two = (bundle / "codex.two.json").read_text(), (bundle / "claude-code.one.json").read_text()
    (bundle / "codex.two.json").write_text(two)
    (bundle / "claude-code.one.json").write_text(one)


def _blob(bundle: Path) -> Path:
    return next((bundle / "blobs").iterdir())


def _link_away(bundle: Path) -> None:
    copy = bundle.parent / "copy.json"
    shutil.copy(bundle / "codex.two.json", copy)
    (bundle / "codex.two.json").unlink()
    (bundle / "codex.two.json").symlink_to(copy)


TAMPERED: list[tuple[str, Callable[[Path], None], Expected]] = [
    (
        "content changed",
        change_chain(lambda c: c[1].update(canonical=c[1]["canonical"].replace("step 1", "step X"))),
        ("HASH_MISMATCH", "codex.two", 1),
    ),
    (
        "one space added",
        change_chain(lambda c: c[1].update(canonical=c[1]["canonical"] + " ")),
        ("HASH_MISMATCH", "codex.two", 1),
    ),
    ("hash changed", change_chain(lambda c: c[1].update(hash="0" * 64)), ("HASH_MISMATCH", "codex.two", 1)),
    (
        "signature of another",
        change_chain(lambda c: c[1].update(signature=c[0]["signature"])),
        ("SIG_INVALID", "codex.two", 1),
    ),
    ("signature dropped", change_chain(lambda c: c[1].update(signature="")), ("SIG_MISSING", "codex.two", 1)),
    ("signature null", change_chain(lambda c: c[1].update(signature=None)), ("SIG_MISSING", "codex.two", 1)),
    (
        "time rewritten",
        change_chain(lambda c: c[1].update(signed_at="2020-01-01T00:00:00+00:00")),
        ("SEAL_MISMATCH", "codex.two", 1),
    ),
    ("signer unnamed", change_chain(lambda c: c[1].update(signed_by="")), ("SEAL_MISMATCH", "codex.two", 1)),
    ("record dropped", change_chain(lambda c: c.pop(1)), ("SEQUENCE_GAP", "codex.two", 1)),
    ("record repeated", change_chain(lambda c: c.insert(1, c[0])), ("SEQUENCE_GAP", "codex.two", 1)),
    ("records swapped", change_chain(lambda c: c.reverse()), ("SEQUENCE_GAP", "codex.two", 0)),
    ("tail cut", change_chain(lambda c: c.pop()), ("TRUNCATED", "codex.two", 2)),
    ("emptied", change_chain(lambda c: c.clear()), ("TRUNCATED", "codex.two", 0)),
    ("not a capsule", change_chain(lambda c: c.__setitem__(1, 7)), ("SCHEMA_INVALID", "codex.two", 1)),
    (
        "control characters in a seal",
        change_chain(lambda c: c[1].update(signed_by="\x1b[2J")),
        ("SCHEMA_INVALID", "codex.two", 1),
    ),
    (
        "surrogate in canonical",
        change_chain(lambda c: c[1].update(canonical="\ud800")),
        ("SCHEMA_INVALID", "codex.two", 1),
    ),
    ("file gone", lambda bundle: (bundle / "codex.two.json").unlink(), ("CHAIN_MISSING", "codex.two", None)),
    ("chain gone from index too", _drop_chain, ("CHAIN_MISSING", "codex.two", None)),
    ("meta file gone", lambda bundle: (bundle / "meta.json").unlink(), ("CHAIN_MISSING", "meta", None)),
    ("meta cut", change_chain(lambda c: c.pop(), "meta"), ("TRUNCATED", "meta", 1)),
    ("renamed", _rename, ("CHAIN_IDENTITY", "codex.three", 0)),
    ("files swapped", _swap_files, ("CHAIN_IDENTITY", "codex.two", 0)),
    ("file not JSON", lambda bundle: (bundle / "codex.two.json").write_text("{"), ("SCHEMA_INVALID", "codex.two", 0)),
    (
        "file cut short",
        lambda bundle: (bundle / "codex.two.json").write_text((bundle / "codex.two.json").read_text()[:-300]),
        ("SCHEMA_INVALID", "codex.two", 3),
    ),
    ("a link instead of a file", _link_away, ("SCHEMA_INVALID", "codex.two", None)),
    (
        "a pipe instead of a file",
        lambda bundle: ((bundle / "codex.two.json").unlink(), os.mkfifo(bundle / "codex.two.json")),
        ("SCHEMA_INVALID", "codex.two", None),
    ),
    ("claim of another length", change_index(lambda i: summary_of(i).update(length=9)), ("TRUNCATED", "codex.two", 3)),
    ("claim of a shorter chain", change_index(lambda i: summary_of(i).update(length=1)), ("ROLLBACK", "codex.two", 1)),
    (
        "claim of another head",
        change_index(lambda i: summary_of(i).update(head_hash="0" * 64)),
        ("ROLLBACK", "codex.two", 2),
    ),
    (
        "claim of another genesis",
        change_index(lambda i: summary_of(i).update(genesis_hash="0" * 64)),
        ("CHAIN_IDENTITY", "codex.two", 0),
    ),
    ("claim of more chains", change_index(lambda i: i.update(chain_count=9)), ("CHAIN_MISSING", None, None)),
    ("claim of more capsules", change_index(lambda i: i.update(capsule_count=99)), ("TRUNCATED", None, None)),
    ("claim of fewer capsules", change_index(lambda i: i.update(capsule_count=1)), ("ROLLBACK", None, None)),
    ("another ledger's name", change_index(lambda i: i.update(ledger="x")), ("CHAIN_IDENTITY", "meta", 0)),
    (
        "a name with ..",
        change_index(lambda i: summary_of(i).update(id="../bundle/codex.two")),
        ("SCHEMA_INVALID", None, None),
    ),
    (
        "an absolute name",
        change_index(lambda i: summary_of(i).update(id="/etc/passwd")),
        ("SCHEMA_INVALID", None, None),
    ),
    ("a name with NUL", change_index(lambda i: summary_of(i).update(id="a\x00b")), ("SCHEMA_INVALID", None, None)),
    ("no name", change_index(lambda i: summary_of(i).update(id=None)), ("SCHEMA_INVALID", None, None)),
    (
        "one name twice",
        change_index(lambda i: summary_of(i).update(id="claude-code.one")),
        ("SCHEMA_INVALID", None, None),
    ),
    ("meta as a chain", change_index(lambda i: summary_of(i).update(id="meta")), ("SCHEMA_INVALID", None, None)),
    ("index not JSON", lambda bundle: (bundle / "index.json").write_text("{x"), ("SCHEMA_INVALID", None, None)),
    (
        "index with a key twice",
        lambda bundle: (bundle / "index.json").write_text('{"chains":[],"chains":[]}'),
        ("DUPLICATE_KEY", None, None),
    ),
    ("index a list", lambda bundle: (bundle / "index.json").write_text("[]"), ("SCHEMA_INVALID", None, None)),
    (
        "index far too deep",
        lambda bundle: (bundle / "index.json").write_text('{"chains":' + "[" * 9999),
        ("SCHEMA_INVALID", None, None),
    ),
    (
        "blob changed",
        lambda bundle: _blob(bundle).write_bytes(b"y" * 50_000),
        ("ARTIFACT_HASH_MISMATCH", "claude-code.blob", 0),
    ),
    (
        "blob cut",
        lambda bundle: _blob(bundle).write_bytes(b"x" * 49_999),
        ("ARTIFACT_HASH_MISMATCH", "claude-code.blob", 0),
    ),
    ("blob gone", lambda bundle: _blob(bundle).unlink(), ("ARTIFACT_MISSING", "claude-code.blob", 0)),
    (
        "blobs through a link",
        lambda bundle: (
            (bundle / "blobs").rename(bundle.parent / "moved"),
            (bundle / "blobs").symlink_to(bundle.parent / "moved"),
        ),
        ("ARTIFACT_MISSING", "claude-code.blob", 0),
    ),
]


@pytest.mark.sample(8)
@pytest.mark.parametrize(("what", "tamper", "expected"), TAMPERED, ids=[case[0] for case in TAMPERED])
def test_each_tampering_is_named_at_its_place(
    bundle: Path, what: str, tamper: Callable[[Path], None], expected: Expected
) -> None:
    assert verify(bundle).status == "verified"
    tamper(bundle)
    assert bad(verify(bundle)) == expected


def test_calling_a_whole_bundle_a_part_does_not_hide_a_dropped_chain(bundle: Path) -> None:
    _drop_chain(bundle)
    change_index(lambda index: index.update(part=True))(bundle)
    assert bad(verify(bundle)) == ("CHAIN_MISSING", "codex.two", None)
    make_old(bundle)
    verdict = verify(bundle)
    assert verdict.status == "qualified"
    assert verdict.check("meta").reason == "not all: 1 chains that the meta chain knows are not in this part"


def test_chains_of_two_ledgers_are_not_one_bundle(bundle: Path, other: Ledger, tmp_path: Path) -> None:
    """The same name and an unknown key: only the ledger's id in the first record tells them apart."""
    other.append_many("codex.two", [draft(f"step {n}") for n in range(3)])
    theirs = export_bundle(other, tmp_path / "theirs", chains=["codex.two"]).path
    shutil.copy(theirs / "codex.two.json", bundle / "codex.two.json")
    replaced = load(theirs / "index.json")["chains"][0]

    def change(index: dict[str, Any]) -> None:
        index.update(ledger=None, tenant=None, meta=None)
        summary_of(index).update(replaced)

    change_index(change)(bundle)
    keys = [load(path / "index.json")["public_key"] for path in (bundle, theirs)]
    assert bad(verify(bundle, keys=keys))[0] == "CHAIN_IDENTITY"


def test_the_exporters_word_that_hashes_are_in_order_counts_for_nothing(bundle: Path) -> None:
    change_chain(lambda c: c[1].update(canonical=c[1]["canonical"].replace("step 1", "step X")))(bundle)
    assert all(item["all_hashes_ok"] for item in load(bundle / "index.json")["chains"])
    assert verify(bundle).status == "failed"


def test_a_retired_key_beyond_its_heads_is_found_in_a_bundle(filled: Ledger, tmp_path: Path) -> None:
    """The `keys` chain travels along and tells until where the old key was good, whatever time a record claims."""
    old_seed = next((filled.config.home / "keys").glob("*.key")).read_bytes()
    filled.keys.rotate("ledger")
    filled.append("codex.two", draft("after the rotation"))
    out = export_bundle(filled, tmp_path / "out").path
    assert verify(out).status == "verified"
    thief = SeedSigner(old_seed)
    chain = load(out / "codex.two.json")
    last = json.loads(chain["capsules"][-1]["canonical"])
    last["context"]["environment"]["aver"] |= {"by": thief.fingerprint, "at": "2020-01-01T00:00:00+00:00"}
    forged = seal(last, thief)
    chain["capsules"][-1] = {
        "hash": forged.hash,
        "signature": forged.signature,
        "signature_pq": "",
        "signed_at": "2020-01-01T00:00:00+00:00",
        "signed_by": thief.fingerprint,
        "canonical": forged.canonical.decode(),
    }
    save(out / "codex.two.json", chain | {"head_hash": forged.hash})
    change_index(lambda index: summary_of(index).update(head_hash=forged.hash))(out)
    assert bad(verify(out)) == ("KEY_RETIRED", "codex.two", 3)


def test_a_retired_key_cannot_hide_behind_the_short_form_of_its_name(filled: Ledger, tmp_path: Path) -> None:
    old_seed = next((filled.config.home / "keys").glob("*.key")).read_bytes()
    filled.keys.rotate("ledger")
    thief = SeedSigner(old_seed)
    short = f"qp_key_{thief.public.ed25519[:4]}"
    last = list(filled.read("codex.two"))[-1].to_dict()
    last["context"]["environment"]["aver"] |= {"by": short, "at": "2999-01-01T00:00:00+00:00"}
    forged = seal(last, thief)
    forged.signed_by, forged.signed_at = short, "2999-01-01T00:00:00+00:00"
    verdict = verify(forged)
    assert verdict.first_bad is not None
    assert verdict.first_bad.code == "KEY_RETIRED"


# --- anything at all


INDEX_KEYS = (
    *("generated_at", "public_key", "fingerprint", "keys", "pq_keys", "chain_count", "capsule_count", "meta"),
    *("chains", "ledger", "tenant", "part", "blobs"),
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60)
@given(key=st.sampled_from([*INDEX_KEYS, "files", "unfinished"]), value=_JSON)
def test_no_index_brings_the_verifier_down(tmp_path_factory: pytest.TempPathFactory, key: str, value: Any) -> None:
    tool = AgentCapsules()
    tool.session("codex", "s", 2)
    out = tool.write_bundle(tmp_path_factory.mktemp("b") / "bundle")
    save(out / "index.json", load(out / "index.json") | {key: value})
    verdict = verify(out, keys=tool.publics)
    assert verdict.status in ("verified", "failed", "empty", "qualified")
    if verdict.status == "qualified":  # The index does not list the file, or not its title.
        assert verdict.check("index").code in ("UNLISTED_FILE", "INDEX_MISMATCH")
    json.dumps(verdict.to_dict()).encode()


@pytest.mark.more
@settings(max_examples=60)
@given(
    at=st.integers(0, 1), key=st.sampled_from(["hash", "signature", "signed_at", "signed_by", "canonical"]), value=_JSON
)
def test_no_record_brings_the_verifier_down_or_passes_changed(
    tmp_path_factory: pytest.TempPathFactory, at: int, key: str, value: Any
) -> None:
    tool = AgentCapsules()
    tool.session("codex", "s", 2)
    out = tool.write_bundle(tmp_path_factory.mktemp("b") / "bundle")
    change_chain(lambda c: c[at].update({key: value}), "codex-s")(out)
    verdict = verify(out, keys=tool.publics)
    json.dumps(verdict.to_dict()).encode()
    if key in ("hash", "signature", "canonical"):
        assert verdict.status == "failed"


@settings(max_examples=40)
@given(at=st.integers(0), noise=st.binary(min_size=1, max_size=8))
def test_no_flipped_byte_in_a_chain_file_passes_for_other_content(
    tmp_path_factory: pytest.TempPathFactory, at: int, noise: bytes
) -> None:
    tool = AgentCapsules()
    chain = tool.session("codex", "s", 2)
    out = tool.write_bundle(tmp_path_factory.mktemp("b") / "bundle")
    path = out / "codex-s.json"
    raw = bytearray(path.read_bytes())
    at %= len(raw)
    raw[at : at + len(noise)] = noise
    path.write_bytes(bytes(raw))
    verdict = verify(out, keys=tool.publics)
    if verdict.status != "failed":
        kept = [entry["canonical"] for entry in load(path)["capsules"]]
        assert kept == [entry["canonical"] for entry in chain.entries]


def test_a_blob_of_another_size_is_not_read(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file with a hole of terabytes takes no room, and hours to hash."""
    blob = next((bundle / "blobs").iterdir())
    os.truncate(blob, 2**40)
    monkeypatch.setattr("aver.ledger.bundle.blob_check.read_chunks", lambda file: pytest.fail("the blob was read"))
    verdict = verify(bundle)
    assert verdict.first_bad is not None
    assert (verdict.first_bad.check, verdict.first_bad.code) == ("blobs", "ARTIFACT_HASH_MISMATCH")
    assert {finding.code for finding in verdict.findings} == {"ARTIFACT_HASH_MISMATCH"}
