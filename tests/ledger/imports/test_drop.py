"""Dropping an import: all of it, with a sealed entry, nothing of one's own, and every later verdict knows it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from aver import Blob, Ledger, PublicKey, open_ledger
from aver.check import verify
from aver.errors import BadInput, IntegrityError, NotFound, Refused
from aver.ledger.bundle import export_bundle, import_bundle
from aver.ledger.checkpoint import make_checkpoint
from aver.ledger.checkpoint_files import append_checkpoint, to_checkpoint_line
from aver.ledger.imports.drop import drop_import, find_squatters
from aver.ledger.meta_chain import build_drop_entries, build_import_entry
from aver.ledger.stores.copy import copy_ledger
from aver.ledger.stores.urls import open_store
from support.agent_capsules import AgentCapsules
from support.bundles import draft, load
from support.old_imports import as_an_older_aver_did
from support.tamper import codes_at, forget, unguarded

pytestmark = pytest.mark.both_stores

BIG = b"x" * 50_000
"""The blob in the bundle."""


@pytest.fixture
def client(bundle: Path, other: Ledger) -> str:
    """The source of a bundle that was imported into `other`, whose signer is known there."""
    key = PublicKey(load(bundle / "index.json")["public_key"])
    other.keys.import_keys([key], trust={key.ed25519})
    other.append("demo.mine", draft("before"))
    return import_bundle(other, bundle).source.digits


# --- what it does


def test_an_import_is_dropped_as_a_whole(other: Ledger, bundle: Path, client: str) -> None:
    assert other.verify().status == "verified"
    mine = other.head("demo.mine")
    count = len(other.chains())
    done = drop_import(other, client)
    assert other.chains() == ["demo.mine", "keys", "meta"]
    assert len(done.chains) == count - 3
    assert {chain.name for chain in done.chains} == {f"import.{client}.{chain.origin}" for chain in done.chains}
    assert done.blobs == 1
    assert other.head("demo.mine") == mine
    [entry] = other.find(chain="meta", kind="chain.drop")
    result = entry.to_dict()["outcome"]["result"]
    assert (result["kind"], result["source"]) == ("chain_drop", client)
    assert result["chains"].keys() == {chain.name for chain in done.chains}
    verdict = other.verify()
    assert verdict.status == "verified"
    assert "imported chains were dropped" in verdict.check("meta").reason
    with pytest.raises(NotFound, match="nothing was imported"):
        drop_import(other, client)


@pytest.mark.parametrize("form", ["{}", "import.{}", "import.{}.", "import.{}.codex.two"])
def test_an_import_is_named_by_its_digits_or_by_one_of_its_chains(other: Ledger, client: str, form: str) -> None:
    assert drop_import(other, form.format(client)).source == client
    assert other.chains() == ["demo.mine", "keys", "meta"]


def test_a_dropped_import_can_be_made_and_dropped_again(other: Ledger, bundle: Path, client: str) -> None:
    heads = {head.chain: head for head in other.heads() if head.chain != "meta"}
    for _ in range(2):
        other.sweep()
        assert other.verify().status == "verified"
        drop_import(other, client)
        other.sweep()
        assert other.verify(since="last").status == "verified"
        assert not any(chain.existed for chain in import_bundle(other, bundle).chains)
        assert {head.chain: head for head in other.heads() if head.chain != "meta"} == heads
        assert other.verify(since="last").status == "verified"
        assert other.verify().status == "verified"
    assert other.blob(next((bundle / "blobs").iterdir()).name) == BIG


def test_another_import_and_blobs_that_others_need_stay(
    other: Ledger, client: str, filled: Ledger, tmp_path: Path, new_ledger_url: Callable[[], str]
) -> None:
    """Two clients with chains of the same names, and a blob that one of our own records has, too."""
    home = tmp_path / "second-home"
    home.mkdir()
    with open_ledger(new_ledger_url(), home=home) as second:
        second.append("codex.two", draft("another client"))
        second.append("claude-code.one", draft())
        theirs = export_bundle(second, tmp_path / "second").path
    kept = import_bundle(other, theirs)
    big = Blob(BIG)
    other.append("demo.mine", draft(outcome={"status": "success", "result": big.reference}), blobs=[big])
    assert drop_import(other, client).blobs == 0
    assert other.blob(big.digest) == BIG
    assert [name for name in other.chains() if name.startswith("import.")] == [
        chain.name for chain in sorted(kept.chains, key=lambda chain: chain.name)
    ]
    assert other.verify().first_bad is None


def test_readers_that_go_on_from_a_row_miss_nothing(other: Ledger, client: str) -> None:
    """The newest rows are those of the import: the next records must not get their numbers."""
    newest = max(
        number for number, _, _ in other.store.read_page(other.tenant, import_search(), newer_than=0, limit=999)
    )
    drop_import(other, client)
    other.append("codex.later", draft(context={"session_id": "later"}))
    found = other.find_newer(newest, session="later", since="", limit=10)
    assert [record.chain for _, record in found] == ["codex.later"]


def import_search() -> Any:
    from aver.ledger.stores.protocol import Search

    return Search()


# --- every memory of the ledger knows it


def test_checkpoints_and_rotations_from_before_still_hold(other: Ledger, client: str, tmp_path: Path) -> None:
    before = tmp_path / "before.jsonl"
    before.write_bytes(to_checkpoint_line(make_checkpoint(other)))
    (tmp_path / "history" / ".git").mkdir(parents=True)
    append_checkpoint(tmp_path / "history", other)
    other.keys.rotate("ledger")
    other.append("demo.mine", draft("after the rotation"))
    other.sweep()
    assert other.verify().status == "verified"
    drop_import(other, client)
    for number in range(2):
        assert other.verify().status == "verified"
        assert verify(other, checkpoints=[before]).status == "verified"
        out = export_bundle(other, tmp_path / f"out{number}").path
        assert verify(out, home=other.config.home, checkpoints=[before]).status == "verified"
        assert append_checkpoint(tmp_path / "history", other) is not None
        forget(other)
        other.sweep()
        other.append("demo.mine", draft("more"))


def test_a_bundle_of_the_ledger_tells_of_the_drop(other: Ledger, client: str, tmp_path: Path) -> None:
    other.sweep()
    drop_import(other, client)
    out = export_bundle(other, tmp_path / "after").path
    assert verify(out, home=other.config.home).status == "verified"
    assert verify(out, keys=[other.signer().public]).status == "verified"  # type: ignore[union-attr]
    stranger = tmp_path / "stranger"
    stranger.mkdir()
    verdict = verify(out, home=stranger)
    assert verdict.status == "qualified"
    assert "by an unknown signer" in verdict.check("meta").reason


# --- what it never does


def test_a_chain_of_our_own_is_never_dropped(other: Ledger, client: str) -> None:
    for name in ("demo.mine", "keys", "meta"):
        with pytest.raises(Refused, match="was made here"):
            drop_import(other, name)
    for name in ("codex.none", "0" * 16, "", "import", "import."):
        with pytest.raises(NotFound):
            drop_import(other, name)
    assert other.head("demo.mine").count == 1


def test_marking_a_chain_of_our_own_as_imported_does_not_let_it_be_dropped(other: Ledger, client: str) -> None:
    attacker = unguarded(other)
    attacker.execute("UPDATE chains SET frozen = 1, origin = 'demo.mine' WHERE name = 'demo.mine'")
    with pytest.raises(IntegrityError, match="no signed entry"):
        drop_import(other, "demo.mine")
    attacker.execute("UPDATE chains SET name = ? WHERE name = 'demo.mine'", (f"import.{client}.demo.mine",))
    with pytest.raises(IntegrityError, match="no signed entry"):
        drop_import(other, client)
    attacker.close()
    assert other.head(f"import.{client}.demo.mine").count == 1
    assert other.head(f"import.{client}.codex.two").count == 3


def test_records_of_our_own_in_the_place_of_imported_ones_are_not_dropped(other: Ledger, client: str) -> None:
    other.append_many("demo.mine", [draft(), draft()])
    attacker = unguarded(other)
    numbers = dict(attacker.execute("SELECT name, chain FROM chains").fetchall())
    mine, theirs = numbers["demo.mine"], numbers[f"import.{client}.codex.two"]
    attacker.run(
        [
            ("UPDATE records SET chain = -1 WHERE chain = ?", (theirs,)),
            ("UPDATE records SET chain = ? WHERE chain = ?", (theirs, mine)),
            ("UPDATE records SET chain = ? WHERE chain = -1", (mine,)),
        ]
    )
    attacker.close()
    with pytest.raises(IntegrityError, match="does not have the records that were imported"):
        drop_import(other, client)
    assert len(list(other.read(f"import.{client}.codex.two"))) == 3


def remove(ledger: Ledger, chain: str) -> None:
    """Remove a chain behind the ledger's back."""
    attacker = unguarded(ledger)
    attacker.run(
        [
            ("DELETE FROM records WHERE chain = (SELECT chain FROM chains WHERE name = ?)", (chain,)),
            ("DELETE FROM chains WHERE name = ?", (chain,)),
        ]
    )
    attacker.close()


def seal_drop(ledger: Ledger, *heads: Any) -> None:
    """Seal an entry that says that these chains were dropped."""
    dropped = {head.chain: (head.count, head.hash) for head in heads}
    for entry in build_drop_entries("forged", dropped):
        ledger.append_reserved("meta", entry, key=None)


def test_an_entry_about_a_drop_does_not_hide_a_chain_of_our_own(other: Ledger, client: str) -> None:
    other.sweep()
    seal_drop(other, other.head("demo.mine"))
    remove(other, "demo.mine")
    assert ("CHAIN_MISSING", "demo.mine", None) in codes_at(other.verify())


def test_an_import_that_is_claimed_over_a_recorded_chain_does_not_hide_it(other: Ledger, client: str) -> None:
    """Even the holder of the key cannot say afterwards that a recorded chain was only an import."""
    other.append("demo.mine", draft())
    other.sweep()
    claimed = build_import_entry("demo.mine", "demo.mine", "x/y", 1, "0" * 64)
    other.append_reserved("meta", claimed, key=None)
    for entry in build_drop_entries("x", {"demo.mine": (1, "0" * 64)}):
        other.append_reserved("meta", entry, key=None)
    remove(other, "demo.mine")
    assert ("CHAIN_MISSING", "demo.mine", None) in codes_at(other.verify())


@pytest.mark.parametrize("memory", ["meta", "checkpoint", "rotation", "bundle"])
def test_a_chain_that_was_here_before_its_claimed_import_is_not_hidden(
    other: Ledger, client: str, tmp_path: Path, memory: str
) -> None:
    """The holder of the ledger's key says afterwards that a chain was imported, with its very head, and drops it."""
    checkpoints: list[Path] = []
    if memory in ("meta", "bundle"):
        other.sweep()
    elif memory == "checkpoint":
        checkpoints = [tmp_path / "checkpoint.json"]
        checkpoints[0].write_bytes(to_checkpoint_line(make_checkpoint(other)))
    else:
        other.keys.rotate("ledger")
        other.append("demo.later", draft())
    head = other.head("demo.mine")
    claimed = build_import_entry("demo.mine", "demo.mine", "x/y", head.count, str(head.hash))
    other.append_reserved("meta", claimed, key=None)
    seal_drop(other, head)
    remove(other, "demo.mine")
    verdict = verify(ledger=other, checkpoints=checkpoints)
    if memory == "bundle":
        export_bundle(other, tmp_path / "after")
        verdict = verify(tmp_path / "after", home=other.config.home)
    assert ("CHAIN_MISSING", "demo.mine", None) in codes_at(verdict)


@pytest.mark.parametrize("known", [False, True])
def test_a_drop_that_another_party_sealed_hides_nothing(
    other: Ledger, client: str, tmp_path: Path, known: bool
) -> None:
    """Somebody who can write the store seals the entry with a key of his own, which may even be known here."""
    other.sweep()
    home = tmp_path / "mallory"
    home.mkdir()
    target = f"import.{client}.codex.two"
    with open_ledger(other.store.url, home=home) as forged:
        seal_drop(forged, other.head(target), other.head("demo.mine"))
        public = forged.keys.ring().entries[0].key
    if known:
        other.keys.import_keys([public], trust={public.ed25519})
    remove(other, target)
    remove(other, "demo.mine")
    missing = {("CHAIN_MISSING", target, None), ("CHAIN_MISSING", "demo.mine", None)}
    assert missing <= codes_at(other.verify())
    forget(other)
    assert missing <= codes_at(other.verify())


def test_only_the_machine_that_imported_drops(other: Ledger, client: str, tmp_path: Path) -> None:
    """A drop that others do not count would look to them like a loss."""
    home = tmp_path / "colleague"
    home.mkdir()
    with open_ledger(other.store.url, home=home) as theirs:
        public = other.keys.ring().entries[0].key
        theirs.keys.import_keys([public], trust={public.ed25519})
        with pytest.raises(Refused, match="of another machine made this import"):
            drop_import(theirs, client)
    assert other.head(f"import.{client}.codex.two").count == 3


def test_an_earlier_copy_says_why_it_cannot_go_on(
    other: Ledger, client: str, new_ledger_url: Callable[[], str]
) -> None:
    url = new_ledger_url()
    with closing(open_store(url, create=True, timeout=30, facts=other.store.facts())) as copy:
        copy_ledger(other.store, copy)
        drop_import(other, client)
        with pytest.raises(Refused, match="which the original does not have any more"):
            copy_ledger(other.store, copy)
    with closing(open_store(new_ledger_url(), create=True, timeout=30, facts=other.store.facts())) as fresh:
        copy_ledger(other.store, fresh)
        assert [row.name for row in fresh.chains(other.tenant)] == other.chains()


def test_a_chain_that_was_imported_again_is_compared_again(other: Ledger, bundle: Path, client: str) -> None:
    other.sweep()
    drop_import(other, client)
    import_bundle(other, bundle)
    target = f"import.{client}.codex.two"
    remove(other, target)
    assert ("CHAIN_MISSING", target, None) in codes_at(other.verify())


def test_a_drop_that_dies_half_way_leaves_everything(other: Ledger, client: str) -> None:
    """A real process, killed when the rows are gone and before the commit."""
    before = other.heads()
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # A child that hangs must not hang the tests.
        try:
            with other.store.transaction() as transaction:
                kind = type(transaction)
            remove_chains = kind.remove_chains

            def dying(self: Any, *given: Any) -> int:
                remove_chains(self, *given)
                os._exit(9)

            kind.remove_chains = dying  # type: ignore[method-assign]
            drop_import(other, client)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert other.heads() == before
    assert other.verify().status == "verified"
    drop_import(other, client)
    assert other.verify().status == "verified"


def test_the_guards_are_there_again(other: Ledger, client: str) -> None:
    drop_import(other, client)
    assert other.store.schema_differences() == []
    with pytest.raises(Exception, match="never"):
        delete_a_record(other)


def delete_a_record(ledger: Ledger) -> None:
    import sqlite3

    import psycopg

    from aver.ledger.stores.postgres import PostgresStore

    if isinstance(ledger.store, PostgresStore):
        with psycopg.connect(ledger.store.url) as connection:
            connection.execute("DELETE FROM aver.records")
    else:
        connection = sqlite3.connect(ledger.store.path)  # type: ignore[assignment]
        try:
            connection.execute("DELETE FROM records")
        finally:
            connection.close()


# --- ledgers whose own names an older version has given to an import


@pytest.fixture
def squatted(other: Ledger, filled: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    filled.append("claude-code.5d2e", draft())
    other.append("demo.mine", draft())
    with as_an_older_aver_did(monkeypatch):
        import_bundle(other, export_bundle(filled, tmp_path / "squatting").path)
    return other


def test_an_old_import_still_verifies(squatted: Ledger) -> None:
    verdict = squatted.verify()
    assert verdict.first_bad is None
    assert verdict.check("identity").status == "passed"
    assert {row.name for row in find_squatters(squatted.store.chains(squatted.tenant))} >= {
        "claude-code.5d2e",
        "codex.two",
    }


def test_the_refusal_names_the_command(squatted: Ledger) -> None:
    with pytest.raises(Refused, match="was imported and does not grow here") as refused:
        squatted.append("codex.two", draft())
    assert "aver import --drop codex.two" in str(refused.value)


def test_dropping_an_old_import_gives_the_names_back(squatted: Ledger, filled: Ledger, tmp_path: Path) -> None:
    squatted.sweep()
    squatted.keys.rotate("ledger")
    squatted.append("demo.mine", draft())
    assert squatted.verify().first_bad is None
    done = drop_import(squatted, "codex.two")
    assert {chain.name for chain in done.chains} >= {"claude-code.one", "codex.two", "claude-code.5d2e"}
    assert squatted.chains() == ["demo.mine", "keys", "meta"]
    assert squatted.verify().status == "verified"
    for name in ("claude-code.5d2e", "codex.two"):
        squatted.append(name, draft("mine"))
    squatted.sweep()
    assert squatted.verify(since="last").status == "verified"
    assert squatted.verify().status == "verified"
    squatted.append("codex.two", draft("more"))
    assert squatted.verify(since="last").status == "verified"
    again = import_bundle(squatted, tmp_path / "squatting")
    assert not any(chain.existed for chain in again.chains)
    assert squatted.verify().first_bad is None


def test_an_old_import_is_not_made_twice(squatted: Ledger, tmp_path: Path) -> None:
    before = squatted.heads()
    done = import_bundle(squatted, tmp_path / "squatting")
    assert all(chain.existed for chain in done.chains)
    assert squatted.heads() == before


def test_a_chain_of_the_own_name_is_read_from_its_beginning_after_the_drop(squatted: Ledger) -> None:
    """The head that was verified before is that of the import: nothing of the new chain may count as verified."""
    assert squatted.verify().first_bad is None
    drop_import(squatted, "claude-code.5d2e")
    squatted.append_many("codex.two", [draft(f"mine {n}") for n in range(5)])
    attacker = unguarded(squatted)
    attacker.execute(
        "UPDATE records SET signed_at = 'x' WHERE sequence = 1"
        " AND chain = (SELECT chain FROM chains WHERE name = 'codex.two')"
    )
    attacker.close()
    assert any(place[1:] == ("codex.two", 1) for place in codes_at(squatted.verify(since="last")))


def test_an_old_import_that_names_no_ledger_is_dropped_chain_by_chain(
    other: Ledger, public_tool: AgentCapsules, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing tells which chains came together. One of them has a name that looks like digits of a source."""
    with as_an_older_aver_did(monkeypatch):
        import_bundle(other, public_tool.write_bundle(tmp_path / "theirs"))
    names = [row.name for row in other.store.chains(other.tenant) if row.frozen]
    for name in names:
        assert [chain.name for chain in drop_import(other, name).chains] == [name]
        assert other.verify().first_bad is None
    assert other.chains() == ["keys", "meta"]
    other.append("claude-code.5d2e", draft())


# --- sources


def test_a_chain_that_names_this_ledger_and_is_not_here_is_refused(
    filled: Ledger, bundle: Path, other: Ledger, tmp_path: Path
) -> None:
    """Somebody else could claim anything about this ledger; what it has lost comes back with a copy."""
    import_bundle(other, bundle)
    roundabout = export_bundle(other, tmp_path / "roundabout").path
    done = import_bundle(filled, roundabout)
    assert {chain.name for chain in done.chains if chain.existed} == set(bundle_chains(bundle))
    assert filled.verify().first_bad is None
    remove(filled, "codex.two")
    with pytest.raises(Refused, match=r"says that it was made in this ledger") as refused:
        import_bundle(filled, bundle)
    assert refused.value.code == "CHAIN_MISSING"


def bundle_chains(bundle: Path) -> list[str]:
    return [*(summary["id"] for summary in load(bundle / "index.json")["chains"]), "meta"]


def test_a_bundle_of_another_tenant_of_this_ledger(filled: Ledger, bundle: Path) -> None:
    with open_ledger(filled.store.url, tenant="second") as second:
        source = import_bundle(second, bundle).source
        assert source.text == f"{filled.id}/default"
        assert second.verify().status == "verified"
        drop_import(second, source.digits)
        assert second.verify().status == "verified"


def test_appending_to_the_domain_of_imports_is_refused(ledger: Ledger) -> None:
    for name in ("import.mine", "import.0123456789abcdef.codex.two"):
        with pytest.raises(BadInput, match="are imports"):
            ledger.append(name, draft())
        with pytest.raises(BadInput, match="are imports"):
            ledger.append_many(name, [draft()])
    assert ledger.chains() == []
