"""Bundles: what Aver exports anyone can verify, wherever it was written and whatever broke off meanwhile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aver import Ledger, Sealed, open_ledger
from aver.check import verify
from aver.errors import BadInput, NotFound, Unavailable
from aver.ledger.bundle import export_bundle
from aver.ledger.bundle.summary import TITLE_MAX, ChainFacts
from support.bundles import bad, draft, load, save
from support.tamper import unguarded

pytestmark = pytest.mark.both_stores

INDEX_KEYS = {
    *("generated_at", "public_key", "fingerprint", "keys", "pq_keys", "chain_count", "capsule_count", "meta"),
    *("chains", "ledger", "tenant", "part", "blobs"),
}
SUMMARY_KEYS = {
    *("id", "tool", "title", "length", "head_hash", "genesis_hash", "all_hashes_ok", "signed_by"),
    *("started_at", "ended_at"),
}


# --- what is written


def test_a_bundle_has_every_key_of_the_public_shape(bundle: Path, filled: Ledger) -> None:
    index = load(bundle / "index.json")
    assert set(index) == INDEX_KEYS
    assert {item["id"] for item in index["chains"]} == {"claude-code.one", "codex.two", "claude-code.blob", "keys"}
    assert index["chain_count"] == 4
    assert index["capsule_count"] == 4 + 3 + 1 + 1
    ended = [item["ended_at"] for item in index["chains"]]
    assert ended == sorted(ended, reverse=True)
    assert set(index["meta"]) == {"length", "head_hash", "all_hashes_ok"}
    for summary in index["chains"]:
        assert set(summary) == SUMMARY_KEYS
        chain = load(bundle / f"{summary['id']}.json")
        assert {key: chain[key] for key in SUMMARY_KEYS} == summary
        assert chain["db_path"] == ""
        assert len(chain["capsules"]) == summary["length"]
        assert set(chain["capsules"][0]) == {
            *("hash", "signature", "signature_pq", "signed_at", "signed_by", "canonical")
        }
        assert (bundle / f"{summary['id']}.json").read_text().count("\n") == 1
    assert set(load(bundle / "meta.json")) == {"length", "head_hash", "genesis_hash", "all_hashes_ok", "capsules"}
    assert len(list((bundle / "blobs").iterdir())) == index["blobs"] == 1


def test_titles_and_index_hold_no_address_and_no_path(ledger: Ledger, tmp_path: Path) -> None:
    request = "\n\n  mail bob.o'neil+x@mail.example.co.uk about /home/bob/shop and C:\\Users\\bob\\x " + "y" * 200
    ledger.append("demo.a", draft(request))
    out = export_bundle(ledger, tmp_path / "out").path
    index = (out / "index.json").read_text()
    assert "@" not in index
    assert "bob/" not in index
    assert str(tmp_path) not in index
    title = next(item["title"] for item in load(out / "index.json")["chains"] if item["id"] == "demo.a")
    assert title.startswith("mail bob.o'[e-mail] about ~/shop and ~\\x yyy")
    assert len(title) == 90


def test_what_is_written_is_for_its_owner_only(bundle: Path) -> None:
    assert oct(bundle.stat().st_mode)[-3:] == "700"
    assert all(oct(item.stat().st_mode)[-3:] == "600" for item in bundle.rglob("*") if item.is_file())


def test_post_quantum_keys_have_a_place_of_their_own(aver_home: Path, tmp_path: Path) -> None:
    aver_home.mkdir()
    (aver_home / "config.toml").write_text("post_quantum = true\n")
    with open_ledger() as ledger:
        ledger.append("demo.a", draft())
        out = export_bundle(ledger, tmp_path / "out").path
        index = load(out / "index.json")
        assert set(index["pq_keys"]) == set(index["keys"]) == {index["fingerprint"]}
        assert verify(out, require_pq=True).status == "verified"


def test_a_bundle_can_be_verified_by_hashlib_and_nacl_alone(bundle: Path) -> None:
    program = """
import hashlib, json, pathlib, sys
from nacl.signing import VerifyKey
out = pathlib.Path(sys.argv[1])
index = json.loads((out / "index.json").read_text())
files = ["meta.json"] + [c["id"] + ".json" for c in index["chains"]]
count = 0
for name in files:
    before = None
    for number, c in enumerate(json.loads((out / name).read_text())["capsules"]):
        assert hashlib.sha3_256(c["canonical"].encode()).hexdigest() == c["hash"]
        key = VerifyKey(bytes.fromhex(index["keys"][c["signed_by"]]))
        key.verify(c["hash"].encode(), bytes.fromhex(c["signature"]))
        content = json.loads(c["canonical"])
        assert content["sequence"] == number and content["previous_hash"] == before
        before = c["hash"]
        count += 1
for blob in (out / "blobs").iterdir():
    assert hashlib.sha256(blob.read_bytes()).hexdigest() == blob.name
assert not any(name.startswith("aver") for name in sys.modules)
print(count)
"""
    ran = subprocess.run([sys.executable, "-I", "-c", program, str(bundle)], capture_output=True, text=True)
    assert ran.stderr == ""
    index = load(bundle / "index.json")
    assert int(ran.stdout) == index["capsule_count"] + index["meta"]["length"]


# --- where it is written


def test_an_export_goes_only_where_nothing_else_is(filled: Ledger, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("mine")
    with pytest.raises(BadInput, match="not empty"):
        export_bundle(filled, tmp_path / "full")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(BadInput, match="not a directory"):
        export_bundle(filled, tmp_path / "file")
    (tmp_path / "empty").mkdir()
    assert export_bundle(filled, tmp_path / "empty").chains == 5
    assert (tmp_path / "full" / "thesis.txt").read_text() == "mine"


def test_a_bundle_is_replaced_only_by_force_and_never_with_other_files(filled: Ledger, tmp_path: Path) -> None:
    out = export_bundle(filled, tmp_path / "out").path
    with pytest.raises(BadInput, match="exists already"):
        export_bundle(filled, out, chains=["codex.two"])
    assert verify(out).records == 11
    (out / "notes.txt").write_text("mine")
    with pytest.raises(BadInput, match=r"notes\.txt"):
        export_bundle(filled, out, chains=["codex.two"], force=True)
    (out / "notes.txt").unlink()
    done = export_bundle(filled, out, chains=["codex.two"], force=True)
    assert (done.path, done.chains, done.capsules) == (out, 2, 4)
    assert {item.name for item in out.iterdir()} == {"index.json", "head.json", "codex.two.json", "keys.json"}
    assert {item.name for item in tmp_path.iterdir() if "out" in item.name} == {"out"}
    verdict = verify(out)
    assert (verdict.status, verdict.records, verdict.chains) == ("verified", 4, 2)
    assert verdict.check("meta").status == "not_checked"


def test_a_forced_export_through_a_link_replaces_the_directory_behind_it(filled: Ledger, tmp_path: Path) -> None:
    out = export_bundle(filled, tmp_path / "out").path
    (tmp_path / "link").symlink_to(out)
    export_bundle(filled, tmp_path / "link", chains=["codex.two"], force=True)
    assert (tmp_path / "link").is_symlink()
    assert verify(out).records == 4


def test_a_forced_export_that_fails_leaves_the_old_bundle_whole(
    filled: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = export_bundle(filled, tmp_path / "out").path
    before = {item.name: item.read_bytes() for item in out.iterdir() if item.is_file()}
    renamed = os.rename
    left = 0

    def rename(*args: Any) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise OSError(5, "Input/output error")
        renamed(*args)

    monkeypatch.setattr(os, "rename", rename)
    for failing in (1, 2):
        left = failing
        with pytest.raises(Unavailable, match="cannot replace"):
            export_bundle(filled, out, chains=["codex.two"], force=True)
        assert {item.name: item.read_bytes() for item in out.iterdir() if item.is_file()} == before
        assert verify(out).status == "verified"
    left = 0
    export_bundle(filled, out, chains=["codex.two"], force=True)
    assert verify(out).records == 4


def test_a_bundle_that_a_power_cut_left_aside_is_put_back(filled: Ledger, tmp_path: Path) -> None:
    out = export_bundle(filled, tmp_path / "out").path
    out.rename(tmp_path / ".out.aver-old")
    with pytest.raises(BadInput, match="exists already"):
        export_bundle(filled, out, chains=["codex.two"])
    assert verify(out).records == 11


def test_a_bundle_of_another_ledger_is_not_overwritten(bundle: Path, new_ledger_url: Callable[[], str]) -> None:
    with open_ledger(new_ledger_url()) as other:
        other.append("demo.a", draft())
        for force in (False, True):
            with pytest.raises(BadInput, match="another ledger"):
                export_bundle(other, bundle, force=force)
    assert verify(bundle).status == "verified"


def test_an_export_never_writes_through_a_link(filled: Ledger, tmp_path: Path) -> None:
    out = export_bundle(filled, tmp_path / "out").path
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (out / "codex.two.json").unlink()
    (out / "codex.two.json").symlink_to(victim)
    export_bundle(filled, out, force=True)
    assert victim.read_text() == "mine"
    assert verify(out).status == "verified"


@pytest.mark.sample(4)
@pytest.mark.parametrize("calls", range(1, 10))
def test_an_export_that_breaks_off_anywhere_is_no_bundle_and_can_be_repeated(
    filled: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: int
) -> None:
    """Killed before the n-th file takes its place: over an old bundle and into a new directory."""

    class Killed(BaseException):
        pass

    replaced = os.replace
    for out, before in ((tmp_path / "new", False), (tmp_path / "old", True)):
        if before:
            export_bundle(filled, out, chains=["codex.two"])
        left = calls

        def replace(*args: Any) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise Killed
            replaced(*args)

        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", replace)
            try:
                export_bundle(filled, out, force=before)
            except Killed:
                pass
        if left > 0:
            assert verify(out).status == "verified"  # it had fewer files than that
            continue
        if before:
            assert (verify(out).status, verify(out).records) == ("verified", 4)  # nothing was touched
            # As after a kill that cannot be caught.
            (tmp_path / ".old.aver-new").mkdir()
            (tmp_path / ".old.aver-new" / "index.json").write_text("half")
        else:
            if calls > 1:
                assert bad(verify(out))[0] == "CHAIN_MISSING"
            begun = (out / "index.json").exists()
            (out / f".{'codex.two' if begun else 'index'}.json.left-by-a-kill").write_text("half")
        export_bundle(filled, out, force=before)
        assert not [item for item in (*out.iterdir(), *tmp_path.iterdir()) if item.name.startswith(".")]
        verdict = verify(out)
        assert (verdict.status, verdict.chains) == ("verified", 5)


def test_export_of_what_is_not_there(filled: Ledger, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        export_bundle(filled, tmp_path / "out", chains=["codex.none"])
    assert not (tmp_path / "out").exists()


# --- what verifies


def test_a_whole_ledger_verifies_and_is_held_to_its_meta_chain(bundle: Path) -> None:
    verdict = verify(bundle)
    assert verdict.status == "verified"
    assert (verdict.chains, verdict.records) == (5, 4 + 3 + 1 + 1 + 2)
    assert verdict.check("meta").reason == "4 chains match their recorded heads (0 grown since, 0 not recorded)"
    assert verdict.check("index").status == "passed"
    assert verdict.check("blobs").count == 1
    assert verdict.check("identity").count == 5
    assert verify(bundle / "index.json").status == "verified"
    assert verify(str(bundle)).status == "verified"


def test_elsewhere_its_signers_are_unknown_whatever_keys_it_brings(bundle: Path, tmp_path: Path) -> None:
    verdict = verify(bundle, home=tmp_path / "stranger")
    assert verdict.status == "qualified"
    assert verdict.check("signature").code == "UNKNOWN_SIGNER"
    assert not (tmp_path / "stranger").exists()
    public = load(bundle / "index.json")["public_key"]
    assert verify(bundle, home=tmp_path / "stranger", keys=[public]).status == "verified"


def test_resigning_everything_with_a_new_key_is_found(bundle: Path) -> None:
    from nacl.signing import SigningKey

    key = SigningKey(b"e" * 32)
    public = key.verify_key.encode().hex()
    index = load(bundle / "index.json")
    for name in ["meta.json", *(f"{item['id']}.json" for item in index["chains"])]:
        chain = load(bundle / name)
        for capsule in chain["capsules"]:
            capsule["signature"] = key.sign(capsule["hash"].encode()).signature.hex()
        save(bundle / name, chain)
    index |= {"public_key": public, "keys": dict.fromkeys(index["keys"], public)}
    save(bundle / "index.json", index)
    assert bad(verify(bundle))[0] == "SIG_INVALID"


def test_some_chains_only_with_and_without_the_meta_chain(filled: Ledger, tmp_path: Path) -> None:
    without = export_bundle(filled, tmp_path / "a", chains=["codex.two"]).path
    assert load(without / "index.json")["meta"] is None
    assert not (without / "meta.json").exists()
    assert verify(without).check("meta").status == "not_checked"
    with_meta = export_bundle(filled, tmp_path / "b", chains=["codex.two"], with_meta=True).path
    verdict = verify(with_meta)
    assert verdict.status == "qualified"
    assert verdict.check("meta").reason == "not all: 2 chains that the meta chain knows are not in this part"
    chain = load(with_meta / "codex.two.json")
    chain["capsules"].pop()
    save(with_meta / "codex.two.json", chain | {"length": 2, "head_hash": chain["capsules"][-1]["hash"]})
    index = load(with_meta / "index.json")
    index["chains"][0] |= {"length": 2, "head_hash": chain["capsules"][-1]["hash"]}
    save(with_meta / "index.json", index | {"capsule_count": 2})
    assert bad(verify(with_meta)) == ("TRUNCATED", "codex.two", 2)


def test_without_its_blobs_it_is_qualified(filled: Ledger, tmp_path: Path) -> None:
    out = export_bundle(filled, tmp_path / "out", blobs=False).path
    assert not (out / "blobs").exists()
    verdict = verify(out)
    assert verdict.status == "qualified"
    assert verdict.check("blobs").status == "not_checked"


def test_one_chain_by_its_file(bundle: Path) -> None:
    verdict = verify(bundle / "codex.two.json")
    assert (verdict.status, verdict.records) == ("verified", 3)
    assert verdict.check("meta").reason == "only one chain was verified: it may have been cut at its end"
    chain = load(bundle / "codex.two.json")
    chain["capsules"].pop()
    save(bundle / "codex.two.json", chain)
    assert bad(verify(bundle / "codex.two.json")) == ("TRUNCATED", None, 2)


def test_levels_say_what_they_left_out(bundle: Path) -> None:
    assert verify(bundle, level="content").check("signature").status == "not_checked"
    chain = load(bundle / "codex.two.json")
    chain["capsules"][1]["canonical"] = chain["capsules"][1]["canonical"].replace("step 1", "step X")
    save(bundle / "codex.two.json", chain)
    assert verify(bundle, level="structural").status == "qualified"
    assert bad(verify(bundle, level="content")) == ("HASH_MISMATCH", "codex.two", 1)


def test_the_ledger_and_its_damage_are_exported_as_they_are(filled: Ledger, tmp_path: Path) -> None:
    unguarded(filled).execute(
        "DELETE FROM records WHERE sequence = 2 AND chain = (SELECT chain FROM chains WHERE name = 'codex.two')"
    )
    done = export_bundle(filled, tmp_path / "out")
    verdict = verify(done.path)
    assert bad(verdict) == ("TRUNCATED", "codex.two", 2)
    assert (done.capsules, done.missing) == (verdict.records, 1)


def test_titles_are_bounded_however_long_a_request_is() -> None:
    content = {"trigger": {"request": "a@" * 100_000}}
    facts = ChainFacts()
    facts.add_record(Sealed(json.dumps(content).encode(), "", ""))
    assert 0 < len(facts.title) <= TITLE_MAX
