"""The index of a bundle: every claim that can be computed from the records is, and a wrong one fails."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aver import IntegrityError, Ledger, SeedSigner, open_ledger
from aver.check import verify
from aver.ledger.bundle import export_bundle, import_bundle
from support.agent_capsules import AgentCapsules
from support.bundles import (
    CLAIM_PLACES,
    bad,
    change_index,
    claim_origin,
    draft,
    load,
    save,
    summary_of,
    wrong_origins,
)

STRANGER = SeedSigner(b"s" * 32)

WRONG_SUMMARIES: list[dict[str, Any]] = [
    {"title": "PWNED: deploy approved by the owner"},
    {"title": ""},
    {"signed_by": [STRANGER.fingerprint]},
    {"signed_by": []},
    {"started_at": "2020-01-01T00:00:00+00:00"},
    {"ended_at": "2030-01-01T00:00:00+00:00"},
    {"all_hashes_ok": False},
    {"tool": "claude-code"},
]


@pytest.mark.sample(4)
@pytest.mark.parametrize("wrong", WRONG_SUMMARIES, ids=str)
def test_a_wrong_claim_about_a_chain_fails(bundle: Path, wrong: dict[str, Any]) -> None:
    change_index(lambda index: summary_of(index).update(wrong))(bundle)
    verdict = verify(bundle)
    assert bad(verdict) == ("INDEX_MISMATCH", "codex.two", None)
    assert verdict.check("index").status == "failed"
    assert {finding.check for finding in verdict.findings} == {"index"}


@pytest.mark.sample(4)
@pytest.mark.parametrize("wrong", [*WRONG_SUMMARIES, {"db_path": "/home/ann/x.db"}], ids=str)
def test_a_wrong_claim_in_a_chains_own_file_fails(bundle: Path, wrong: dict[str, Any]) -> None:
    save(bundle / "codex.two.json", load(bundle / "codex.two.json") | wrong)
    assert bad(verify(bundle)) == ("INDEX_MISMATCH", "codex.two", None)
    assert bad(verify(bundle / "codex.two.json"))[0] == "INDEX_MISMATCH"


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", [None, ""])
@pytest.mark.parametrize("wrong", [*WRONG_SUMMARIES, {"db_path": "/home/ann/x.db"}], ids=str)
def test_a_chains_own_file_that_leaves_out_its_name_claims_the_rest(
    bundle: Path, wrong: dict[str, Any], name: str | None
) -> None:
    content = load(bundle / "codex.two.json") | wrong
    del content["id"]
    save(bundle / "codex.two.json", content if name is None else content | {"id": name})
    assert bad(verify(bundle)) == ("INDEX_MISMATCH", "codex.two", None)
    assert bad(verify(bundle / "codex.two.json"))[0] == "INDEX_MISMATCH"


@pytest.mark.parametrize(
    "wrong",
    [
        {"public_key": STRANGER.public.ed25519},
        {"fingerprint": STRANGER.fingerprint},
        {"public_key": STRANGER.public.ed25519, "fingerprint": STRANGER.fingerprint},
        {"public_key": ""},
        {"keys": {STRANGER.fingerprint: STRANGER.public.ed25519}},
        {"pq_keys": {STRANGER.fingerprint: "ab" * 1952}},
        {"blobs": 0},
        {"blobs": 7},
        {"part": True},
        {"meta": {"all_hashes_ok": False}},
    ],
    ids=lambda wrong: ",".join(wrong),
)
def test_a_wrong_claim_about_the_whole_fails(bundle: Path, wrong: dict[str, Any]) -> None:
    def change(index: dict[str, Any]) -> None:
        for key, value in wrong.items():
            if isinstance(value, dict) and isinstance(index[key], dict):
                index[key].update(value)
            else:
                index[key] = value

    change_index(change)(bundle)
    verdict = verify(bundle)
    assert (verdict.status, bad(verdict)[0]) == ("failed", "INDEX_MISMATCH")


@pytest.mark.parametrize("value", [0, 1, None, "false", [], {}])
@pytest.mark.parametrize("key", ["part", "unfinished"])
def test_a_flag_that_another_reader_may_take_otherwise_fails(bundle: Path, key: str, value: Any) -> None:
    change_index(lambda index: index.update({key: value}))(bundle)
    verdict = verify(bundle)
    assert (verdict.status, bad(verdict)[0]) == ("failed", "SCHEMA_INVALID")


def test_a_key_of_the_same_fingerprint_fails(bundle: Path) -> None:
    """The beginning of a key is its fingerprint, so another key of the same one is easily made."""

    def change(index: dict[str, Any]) -> None:
        other = index["fingerprint"] + "0" * 48
        index.update(public_key=other, keys={index["fingerprint"]: other})

    change_index(change)(bundle)
    assert bad(verify(bundle))[0] == "INDEX_MISMATCH"


@pytest.mark.parametrize(
    "change",
    [
        lambda index: summary_of(index).update(title=7),
        lambda index: summary_of(index).update(signed_by="me"),
        lambda index: summary_of(index).update(signed_by=[1]),
        lambda index: summary_of(index).update(all_hashes_ok="yes"),
        lambda index: summary_of(index).update(started_at={}),
        lambda index: index.update(keys=[]),
        lambda index: index.update(keys={"a": 1}),
        lambda index: index.update(blobs="1"),
        lambda index: index.update(blobs=True),
    ],
)
def test_a_claim_of_the_wrong_type_fails(bundle: Path, change: Callable[[dict[str, Any]], None]) -> None:
    change_index(change)(bundle)
    assert bad(verify(bundle)) == ("SCHEMA_INVALID", None, None)


def test_a_claim_that_is_left_out_claims_nothing(bundle: Path) -> None:
    def change(index: dict[str, Any]) -> None:
        for key in ("title", "signed_by", "started_at", "ended_at", "all_hashes_ok"):
            del summary_of(index)[key]

    change_index(change)(bundle)
    assert verify(bundle).status == "verified"


def test_a_wrong_title_is_never_printed_as_it_is(bundle: Path) -> None:
    change_index(lambda index: summary_of(index).update(title="\x1b[2Jgone"))(bundle)
    assert "\x1b" not in str(verify(bundle).first_bad)


@pytest.mark.parametrize("name", ["ci.extra.json", "notes.txt", ".hidden", "blobs/spare", "sub"])
def test_a_file_that_nobody_lists_is_a_warning(bundle: Path, name: str) -> None:
    if name == "sub":
        (bundle / name).mkdir()
    else:
        (bundle / name).write_text("mine")
    verdict = verify(bundle)
    assert verdict.status == "qualified"
    check = verdict.check("index")
    assert (check.status, check.code) == ("warning", "UNLISTED_FILE")
    assert check.place is not None
    assert check.place.source == name


def test_a_meta_file_that_the_index_does_not_list_is_a_warning(filled: Ledger, tmp_path: Path, bundle: Path) -> None:
    part = export_bundle(filled, tmp_path / "part", chains=["codex.two"]).path
    (part / "meta.json").write_bytes((bundle / "meta.json").read_bytes())
    assert verify(part).check("index").code == "UNLISTED_FILE"


def test_many_files_that_nobody_lists_do_not_fill_the_verdict(bundle: Path) -> None:
    for number in range(300):
        (bundle / f"{number}.txt").touch()
    verdict = verify(bundle)
    assert len(verdict.findings) == 100
    assert "(300 in all)" in verdict.check("index").reason


def test_post_quantum_keys_are_compared(aver_home: Path, tmp_path: Path) -> None:
    aver_home.mkdir()
    (aver_home / "config.toml").write_text("post_quantum = true\n")
    with open_ledger() as ledger:
        ledger.append("demo.a", draft())
        out = export_bundle(ledger, tmp_path / "out").path
    assert verify(out).status == "verified"
    change_index(lambda index: index.update(pq_keys=dict.fromkeys(index["pq_keys"], "00" * 1952)))(out)
    assert bad(verify(out))[0] == "INDEX_MISMATCH"


# --- where a chain comes from


def test_a_wrong_origin_is_named_and_nothing_is_imported(filled: Ledger, other: Ledger, tmp_path: Path) -> None:
    export_bundle(filled, tmp_path / "source")
    # One chain here; the page's verifier and Aver's agree on all (`tests/explorer/test_page_verdicts.py`).
    of_one = [claim for claim in wrong_origins(tmp_path / "source") if claim[0] == "codex.two"]
    assert len(of_one) > 10
    for number, (chain, origin, places) in enumerate(of_one):
        bundle = tmp_path / f"bundle{number}"
        shutil.copytree(tmp_path / "source", bundle)
        claim_origin(bundle, chain, origin, places)
        verdict = verify(bundle)
        assert verdict.status == "failed", (origin, places)
        assert ("index", "INDEX_MISMATCH") in {(found.check, found.code) for found in verdict.findings}
    with pytest.raises(IntegrityError):
        import_bundle(other, bundle)
    assert other.chains() == []


@pytest.mark.parametrize("places", CLAIM_PLACES)
def test_the_origin_of_an_imported_chain_is_that_of_its_first_record(
    filled: Ledger, tmp_path: Path, places: str
) -> None:
    export_bundle(filled, tmp_path / "first")
    with open_ledger(home=tmp_path / "home") as importer:
        import_bundle(importer, tmp_path / "first")
        export_bundle(importer, tmp_path / "again")
        origins = {item["id"]: item.get("origin") for item in load(tmp_path / "again/index.json")["chains"]}
        chain = next(chain for chain, origin in origins.items() if origin == "codex.two")
        assert verify(tmp_path / "again", home=importer.config.home).status == "qualified"  # filled's key is not known
        claim_origin(tmp_path / "again", chain, "codex.three", places)
        verdict = verify(tmp_path / "again", home=importer.config.home)
    assert "INDEX_MISMATCH" in {finding.code for finding in verdict.findings if finding.place.chain == chain}


# --- bundles of the public tool


def test_the_claims_of_the_public_tool_are_compared_too(public_tool: AgentCapsules, tmp_path: Path) -> None:
    for number, wrong in enumerate(({"signed_by": []}, {"started_at": "2020"}, {"all_hashes_ok": False})):
        out = public_tool.write_bundle(tmp_path / f"out{number}")
        before = verify(out, keys=public_tool.publics).status
        assert before != "failed"
        change_index(lambda index, wrong=wrong: index["chains"][0].update(wrong))(out)
        assert bad(verify(out, keys=public_tool.publics))[0] == "INDEX_MISMATCH"


def test_a_title_that_other_code_made_is_a_warning(public_tool: AgentCapsules, tmp_path: Path) -> None:
    out = public_tool.write_bundle(tmp_path / "out")
    change_index(lambda index: index["chains"][0].update(title="PWNED"))(out)
    verdict = verify(out, keys=public_tool.publics)
    assert (verdict.check("index").status, verdict.check("index").code) == ("warning", "INDEX_MISMATCH")


@pytest.mark.parametrize("whole", [True, False])
def test_the_part_is_compared_also_if_the_index_names_no_key(filled: Ledger, tmp_path: Path, whole: bool) -> None:
    out = export_bundle(filled, tmp_path / "out", chains=None if whole else ["codex.two"]).path
    change_index(lambda index: index.update(part=whole, public_key=None, fingerprint=None))(out)
    verdict = verify(out)
    assert bad(verdict) == ("INDEX_MISMATCH", None, None)
    assert "states otherwise" in str(verdict.first_bad)


def test_keys_that_aver_does_not_know_are_named(bundle: Path) -> None:
    """A misspelt key claims nothing, and another reader may show an invented one."""
    change_index(lambda index: index.update(approved_by="the owner"))(bundle)
    change_index(lambda index: summary_of(index).update(aproved="yes"))(bundle)
    save(bundle / "codex.two.json", load(bundle / "codex.two.json") | {"reviewed": True})
    verdict = verify(bundle)
    assert verdict.status == "qualified"
    named = " ".join(finding.words for finding in verdict.findings)
    assert all(key in named for key in ("approved_by", "aproved", "reviewed"))
    assert {finding.code for finding in verdict.findings} == {"INDEX_MISMATCH"}
