"""Bundles that cost a verifier more than their bytes: the verdict names the limit, and honest bundles keep below it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from aver import Capsule, Ledger
from aver.check import verify
from aver.ledger.bundle import blob_check, export_bundle
from aver.ledger.bundle.layout import SHORTEST_CHAIN, read_index
from aver.ledger.bundle.verify import SHORT_CHAINS_MAX
from aver.verdict import Place, Tally
from aver.verdict.chain import UNREADABLE_MAX
from support.agent_capsules import AgentCapsules
from support.bundles import bad, change_index, load, save
from support.hostile_forms import write_form


def write_chains(bundle: Path, count: int, text: str) -> Path:
    """A bundle of so many chains, each with this text as its file."""
    bundle.mkdir()
    save(bundle / "index.json", {"chains": [{"id": f"x.{number}"} for number in range(count)]})
    for number in range(count):
        (bundle / f"x.{number}.json").write_text(text)
    return bundle


@pytest.mark.more
@pytest.mark.parametrize("text", ['{"capsules":[]}', "", '{"capsules":[{}]}'], ids=["empty", "no text", "bad record"])
def test_reading_stops_after_too_many_short_chains(tmp_path: Path, text: str) -> None:
    verdict = verify(write_chains(tmp_path / "bundle", SHORT_CHAINS_MAX + 500, text))
    assert verdict.status == "failed"
    stopped = [finding for finding in verdict.findings if finding.code == "NOT_READ"]
    assert [finding.place.source for finding in stopped] == ["index.json"]
    assert "more than 1000 chains" in stopped[0].words
    assert "the rest was not read" in stopped[0].words
    assert verdict.records == (0 if text.endswith("[]}") else SHORT_CHAINS_MAX + 1)


@pytest.mark.more
def test_tiny_chains_with_their_hashes_are_too_many(tmp_path: Path) -> None:
    verdict = verify(write_form("bundle of tiny chains", tmp_path, 600_000).path)
    assert verdict.status == "failed"
    assert verdict.records == SHORT_CHAINS_MAX + 1


@pytest.mark.more
def test_reading_stops_after_too_many_chains_that_fail(tmp_path: Path) -> None:
    text = '{"capsules":[{}],"title":"' + "x" * SHORTEST_CHAIN + '"}'
    verdict = verify(write_chains(tmp_path / "bundle", UNREADABLE_MAX + 500, text))
    assert verdict.records == UNREADABLE_MAX + 1
    assert any("more than 1000 chains failed" in finding.words for finding in verdict.findings)


@pytest.mark.long
def test_more_short_honest_chains_than_the_limit_are_verified(ledger: Ledger, tmp_path: Path) -> None:
    for number in range(SHORT_CHAINS_MAX + 1):
        ledger.append(f"x.{number}", Capsule(type="tool", trigger={"source": "s", "request": "r"}))
    export_bundle(ledger, tmp_path / "out")
    sizes = [(tmp_path / "out" / claim.file).stat().st_size for claim in read_index(tmp_path / "out").chains]
    assert min(sizes) > SHORTEST_CHAIN
    assert verify(tmp_path / "out").status == "verified"


def test_the_shortest_chain_of_the_public_tool_is_long_enough(tmp_path: Path) -> None:
    public = AgentCapsules()
    public.session("codex", "s", 1)
    for write, name in ((public.write_bundle, "codex-s.json"), (public.write_old_bundle, "s.json")):
        bundle = write(tmp_path / name)
        assert (bundle / name).stat().st_size > SHORTEST_CHAIN


# --- one file under several names


@pytest.mark.parametrize("other", ["codex.two.json", "meta.json", "head.json"])
def test_two_names_of_one_file_are_refused(bundle: Path, other: str) -> None:
    (bundle / other).unlink()
    os.link(bundle / "claude-code.one.json", bundle / other)
    verdict = verify(bundle)
    assert bad(verdict) == ("SCHEMA_INVALID", None, None)
    words = verdict.first_bad.words if verdict.first_bad else ""
    assert "claude-code.one.json" in words
    assert other in words
    assert verdict.records == 0


def test_a_copy_of_hard_links_is_verified(bundle: Path, tmp_path: Path) -> None:
    """Backups are made so: each file has two names, but no two files of the bundle are one."""
    shutil.copytree(bundle, tmp_path / "copy", copy_function=os.link)
    assert verify(tmp_path / "copy").status == "verified"


def test_one_blob_under_many_names_is_read_once(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = next((bundle / "blobs").iterdir())
    digests = [f"{number:064x}" for number in range(50)]
    for digest in digests:
        os.link(real, bundle / "blobs" / digest)
    size, read = real.stat().st_size, 0
    read_chunks = blob_check.read_chunks

    def count(file):  # type: ignore[no-untyped-def]
        nonlocal read
        for chunk in read_chunks(file):
            read += len(chunk)
            yield chunk

    monkeypatch.setattr(blob_check, "read_chunks", count)
    check, tally = blob_check.BlobCheck(bundle, are_left_out=False), Tally()
    for digest in [*digests, real.name]:
        check.check({"output": {"blob": {"alg": "sha256", "digest": digest, "size": size}}}, Place(), tally)
    assert {check.sizes[digest] for digest in digests} == {blob_check.OTHER_BYTES}
    assert check.sizes[real.name] == size
    assert [each.code for each in tally.findings] == ["ARTIFACT_HASH_MISMATCH"] * len(digests)
    assert read == size


def test_one_database_under_many_names_is_read_once(tmp_path: Path) -> None:
    public = AgentCapsules()
    public.session("codex", "s", 3, finish=False)
    home = public.write_home(tmp_path / "home")
    for number in range(5):
        os.link(home / "chains/codex/s.db", home / f"chains/codex/t{number}.db")
    (home / "chains/codex/u.db").symlink_to(home / "chains/codex/s.db")
    verdict = verify(home)
    assert bad(verdict) == ("CHAIN_IDENTITY", "codex.t0", None)
    assert verdict.records == 3
    assert len([finding for finding in verdict.findings if finding.code == "CHAIN_IDENTITY"]) == 6


# --- members that nobody signed


@pytest.mark.parametrize("thing", ["", "codex.two.json"])
def test_members_of_a_record_that_nobody_signed_are_named(bundle: Path, thing: str) -> None:
    chain = load(bundle / "codex.two.json")
    chain["capsules"][1] |= {"approved_by": "ann", "content\n": {"outcome": "success"}}
    save(bundle / "codex.two.json", chain)
    verdict = verify(bundle / thing)
    assert verdict.status == "qualified"
    found = [finding for finding in verdict.findings if finding.code == "INDEX_MISMATCH"]
    assert [finding.place.sequence for finding in found] == [1]
    assert found[0].status == "warning"
    assert "approved_by, content\\n" in found[0].words


def test_many_unknown_members_are_named_in_part(bundle: Path) -> None:
    chain = load(bundle / "codex.two.json")
    for number, record in enumerate(chain["capsules"]):
        record |= {f"more{number}{other:04}": 1 for other in range(2000)}
    save(bundle / "codex.two.json", chain)
    verdict = verify(bundle)
    assert verdict.status == "qualified"
    assert sum(finding.words.count("more") for finding in verdict.findings) == 10


def test_a_bundle_with_no_unknown_members_has_no_warning(bundle: Path) -> None:
    change_index(lambda index: None)(bundle)
    assert [finding for finding in verify(bundle).findings if finding.code == "INDEX_MISMATCH"] == []
