"""Whose a bundle's chains are: what is signed decides, and what the unsigned index says excuses nothing."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from aver import Ledger, open_ledger
from aver.check import verify
from aver.errors import IntegrityError
from aver.keys import Ring
from aver.ledger.bundle import export_bundle, import_bundle
from aver.ledger.bundle.layout import read_index
from aver.ledger.bundle.verify import BundleJudge
from aver.ledger.meta_chain import build_import_entry
from aver.ledger.seen_heads import META_CHAIN
from aver.verdict import VerifyOptions
from support.agent_capsules import AgentCapsules
from support.bundles import bad, change_index, draft, load, make_old, save, summary_of

INDEX_ALONE = "rests on the index alone"


def _present_as(bundle: Path, chain: str, name: str, **summary: Any) -> None:
    """Give a chain's file and summary another id."""
    whole = load(bundle / f"{chain}.json")
    (bundle / f"{chain}.json").unlink()
    summary = {"id": name, "tool": name.partition(".")[0], **summary}
    save(bundle / f"{name}.json", whole | {"id": name, "tool": summary["tool"]})
    change_index(lambda index: summary_of(index, chain).update(summary))(bundle)


def _bring_in(bundle: Path, theirs: Path, chain: str, **summary: Any) -> None:
    """Add a chain of another bundle, with counts that are in order."""
    shutil.copy(theirs / f"{chain}.json", bundle / f"{chain}.json")
    entry = summary_of(load(theirs / "index.json"), chain) | summary

    def change(index: dict[str, Any]) -> None:
        index["chains"].append(entry)
        index["chain_count"] += 1
        index["capsule_count"] += entry["length"]

    change_index(change)(bundle)


def _keys(*bundles: Path) -> list[str]:
    return [load(path / "index.json")["public_key"] for path in bundles]


@pytest.fixture
def theirs(other: Ledger, tmp_path: Path) -> Path:
    """A bundle of someone else's ledger."""
    other.append_many("demo.theirs", [draft(f"step {n}") for n in range(3)])
    return export_bundle(other, tmp_path / "theirs").path


@pytest.fixture
def of_another_tenant(filled: Ledger, tmp_path: Path) -> Path:
    with open_ledger(tenant="bob") as bobs:
        bobs.append_many("demo.bobs", [draft(f"step {n}") for n in range(3)])
        return export_bundle(bobs, tmp_path / "bobs").path


# --- a chain of the exporting ledger itself


@pytest.mark.parametrize("forgotten", [(), ("ledger",), ("tenant",), ("ledger", "tenant")], ids=str)
def test_calling_a_chain_imported_does_not_rename_it(bundle: Path, forgotten: tuple[str, ...]) -> None:
    _present_as(bundle, "codex.two", "prod.pay", origin="codex.two")
    change_index(lambda index: index.update({"meta": None} | dict.fromkeys(forgotten)))(bundle)
    assert bad(verify(bundle)) == ("CHAIN_IDENTITY", "prod.pay", 0)


def test_a_chain_renamed_alone_in_a_part_is_found_by_the_ledger_in_the_index(filled: Ledger, tmp_path: Path) -> None:
    out = export_bundle(filled, tmp_path / "out", chains=["codex.two"]).path
    _present_as(out, "codex.two", "prod.pay", origin="codex.two")
    assert bad(verify(out)) == ("CHAIN_IDENTITY", "prod.pay", 0)
    change_index(lambda index: index.update(ledger=None, tenant=None))(out)
    # The chain `keys`, which every bundle has, names the ledger as well.
    assert bad(verify(out)) == ("CHAIN_IDENTITY", "prod.pay", 0)
    make_old(out)
    assert bad(verify(out)) == ("CHAIN_IDENTITY", "prod.pay", 0)


def test_the_reserved_chains_are_never_imported_ones(bundle: Path, theirs: Path) -> None:
    shutil.copy(theirs / "keys.json", bundle / "keys.json")
    entry = summary_of(load(theirs / "index.json"), "keys") | {"origin": "keys"}
    change_index(lambda index: (summary_of(index, "keys").update(entry), index.update(meta=None)))(bundle)
    assert bad(verify(bundle, keys=_keys(bundle, theirs)))[:2] == ("CHAIN_IDENTITY", "keys")


def test_the_index_cannot_rename_the_meta_chain(bundle: Path) -> None:
    change_index(lambda index: index["meta"].update(id="other", origin="other"))(bundle)
    assert verify(bundle).status == "verified"


# --- chains from elsewhere


def test_a_chain_of_another_ledger_is_qualified_where_only_the_index_calls_it_imported(
    bundle: Path, theirs: Path
) -> None:
    keys = _keys(bundle, theirs)
    assert verify(bundle, keys=keys).status == "verified"
    _bring_in(bundle, theirs, "demo.theirs", origin="demo.theirs")
    assert bad(verify(bundle, keys=keys)) == ("HEAD_MISMATCH", "demo.theirs", None)
    make_old(bundle)
    verdict = verify(bundle, keys=keys)
    assert verdict.status == "qualified"
    assert INDEX_ALONE in verdict.check("identity").reason


def test_a_chain_of_another_ledger_that_is_not_called_imported_fails(bundle: Path, theirs: Path) -> None:
    _bring_in(bundle, theirs, "demo.theirs")
    assert bad(verify(bundle, keys=_keys(bundle, theirs))) == ("CHAIN_IDENTITY", "demo.theirs", 0)


@pytest.mark.parametrize("forgotten", [("tenant",), ("ledger", "tenant")], ids=str)
def test_an_index_that_names_no_tenant_does_not_let_another_tenants_chain_in(
    bundle: Path, of_another_tenant: Path, forgotten: tuple[str, ...]
) -> None:
    _bring_in(bundle, of_another_tenant, "demo.bobs")
    change_index(lambda index: index.update(dict.fromkeys(forgotten)))(bundle)
    assert bad(verify(bundle)) == ("CHAIN_IDENTITY", "demo.bobs", 0)
    change_index(lambda index: index.update(meta=None))(bundle)
    assert bad(verify(bundle))[0] == "CHAIN_IDENTITY"


def test_a_chain_without_a_block_is_none_of_an_aver_ledger(bundle: Path, tmp_path: Path) -> None:
    tool = AgentCapsules()
    tool.session("demo", "loose", 2)
    loose = tool.write_bundle(tmp_path / "loose")
    _bring_in(bundle, loose, "demo-loose")
    assert bad(verify(bundle, keys=[*_keys(bundle), tool.public])) == ("CHAIN_IDENTITY", "demo-loose", 0)


def test_what_was_imported_is_verified_where_the_meta_chain_says_so(
    bundle: Path, other: Ledger, tmp_path: Path
) -> None:
    done = import_bundle(other, bundle, only=["codex.two", "keys"])
    for chain in done.chains:
        head = other.head(chain.name)
        other.append_reserved(
            META_CHAIN,
            build_import_entry(chain.name, chain.origin, done.source.text, head.count, str(head.hash)),
            key=None,
        )
    again = export_bundle(other, tmp_path / "again").path
    keys = _keys(bundle, again)
    assert verify(again, keys=keys).status == "verified"
    _present_as(again, done.chains[0].name, "codex.three")
    change_index(lambda index: index.update(part=True))(again)
    assert bad(verify(again, keys=keys))[0] == "CHAIN_MISSING"
    make_old(again)
    verdict = verify(again, keys=keys)
    assert verdict.status == "qualified"
    assert INDEX_ALONE in verdict.check("identity").reason


# --- the meta chain


def test_an_alias_does_not_use_up_a_chains_meta_entry(bundle: Path) -> None:
    """A whole copy under another id that means the same name, beside the chain that was cut."""
    whole = load(bundle / "codex.two.json")
    kept = whole["capsules"][:1]
    cut = {"length": 1, "head_hash": kept[0]["hash"]}
    save(bundle / "codex.two.json", whole | cut | {"capsules": kept})
    save(bundle / "codex-two.json", whole | {"id": "codex-two"})

    def change(index: dict[str, Any]) -> None:
        index["chains"].insert(0, summary_of(index) | {"id": "codex-two", "tool": "codex", "origin": "codex.two"})
        summary_of(index).update(cut)
        index["chain_count"] += 1
        index["capsule_count"] += 1

    change_index(change)(bundle)
    assert bad(verify(bundle)) == ("SCHEMA_INVALID", None, None)
    change_index(lambda index: summary_of(index, "codex-two").update(tool=""))(bundle)
    codes = {(found.code, found.place.chain) for found in verify(bundle).findings if found.check != "index"}
    assert codes == {("CHAIN_IDENTITY", "codex-two"), ("TRUNCATED", "codex.two"), ("HEAD_MISMATCH", "codex-two")}


def test_the_tool_in_an_index_does_not_lead_a_chain_past_its_meta_entry(bundle: Path, other: Ledger) -> None:
    """`claude-code.one` of a tool `claude` would be `claude.code.one`."""
    change_index(lambda index: summary_of(index, "claude-code.one").update(tool="claude"))(bundle)
    verdict = verify(bundle)
    assert bad(verdict) == ("INDEX_MISMATCH", "claude-code.one", None)
    assert verdict.check("meta").reason == "4 chains match their recorded heads (0 grown since, 0 not recorded)"
    with pytest.raises(IntegrityError):
        import_bundle(other, bundle, only=["claude-code.one"])


def test_what_is_kept_elsewhere_is_remembered_only_of_known_chains(tmp_path: Path) -> None:
    """Entries that name a database and no head would otherwise fill the memory."""
    tool = AgentCapsules()
    chain = tool.session("codex", "s", 1, finish=False)
    for number in range(20):
        tool.finish(chain, db=f"/elsewhere/{number}.db", session_id=f"s{number}", head_hash="none")
    out = tool.write_bundle(tmp_path / "out")
    bundle = BundleJudge(out, read_index(out), VerifyOptions(Ring(), tmp_path))
    bundle.judge()
    assert bundle._elsewhere == set()


# --- a chain's file by itself


def test_a_chain_file_that_calls_itself_by_another_name_fails(bundle: Path, tmp_path: Path) -> None:
    whole = load(bundle / "codex.two.json")
    alone = tmp_path / "alone.json"
    save(alone, whole | {"id": "prod.pay", "tool": "prod"})
    verdict = verify(alone)
    assert bad(verdict) == ("CHAIN_IDENTITY", None, 0)
    assert verdict.check("identity").reason == "the file calls it 'prod.pay', its first record 'codex.two'"
    save(alone, whole | {"id": "prod.pay", "origin": "prod.pay"})
    assert bad(verify(alone)) == ("CHAIN_IDENTITY", None, 0)
    save(alone, whole | {"id": "prod.pay", "tool": "prod", "origin": "codex.two"})
    verdict = verify(alone)
    assert verdict.status == "qualified"
    assert "rests on the file's summary alone" in verdict.check("identity").reason
    save(alone, whole)
    verdict = verify(alone)
    assert (verdict.status, verdict.check("identity").status) == ("verified", "passed")
    assert verify(bundle / "meta.json").status == "verified"


def test_a_chain_file_of_the_public_tool_names_nothing_and_verifies(tmp_path: Path) -> None:
    tool = AgentCapsules()
    tool.session("codex", "s", 2)
    verdict = verify(tool.write_bundle(tmp_path / "out") / "codex-s.json", keys=[tool.public])
    assert (verdict.status, verdict.check("identity").status) == ("verified", "not_checked")
