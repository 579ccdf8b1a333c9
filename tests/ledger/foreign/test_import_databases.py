"""Importing other tools' databases: one of them, one that sessions share, or all that agent-capsule keeps."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from aver import Ledger, PublicKey
from aver.errors import BadInput, IntegrityError, NotFound
from aver.ledger.bundle import import_bundle
from aver.ledger.foreign.import_databases import import_databases, is_foreign_database
from support.agent_capsules import AgentCapsules, write_database

pytestmark = pytest.mark.both_stores


def names_of(done: object) -> dict[str, str]:
    """The names of imported chains without the digits of their source, which is one for all of them."""
    prefix = f"import.{done.source.digits}."  # type: ignore[attr-defined]
    assert all(chain.name.startswith(prefix) for chain in done.chains)  # type: ignore[attr-defined]
    return {chain.origin: chain.name.removeprefix(prefix) for chain in done.chains}  # type: ignore[attr-defined]


def trust(ledger: Ledger, *publics: str) -> None:
    for public in publics:
        ledger.keys.import_keys([PublicKey(public)], trust={public})


def execute(path: Path, sql: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute(sql)
    connection.commit()
    connection.close()


# --- agent-capsule


def test_all_that_a_machine_keeps(public_tool: AgentCapsules, other: Ledger, tmp_path: Path) -> None:
    """Records with 12 keys and with 13, two keys, several entries for one session, one that grew after the last."""
    home = public_tool.write_home(tmp_path / "theirs")
    done = import_databases(other, home)
    assert done.verdict.check("meta").reason == "3 chains match their recorded heads (1 grown since, 1 not recorded)"
    names = names_of(done)
    assert names == {
        "meta": "meta",
        "claude-code-5d2e": "claude-code.5d2e",
        "claude-code-old": "claude-code.old",
        "cline-1717000000000": "cline.1717000000000",
        "codex-019d": "codex.019d",
    }
    for chain in public_tool.chains:
        stored = [record.canonical.decode() for record in other.read(done.source.name_chain(names[chain.id]))]
        assert stored == [entry["canonical"] for entry in chain.entries]
    assert other.verify().status == "qualified"
    assert set(done.unknown_signers) == {public[:16] for public in public_tool.publics}
    trust(other, *public_tool.publics)
    assert other.verify().status == "verified"


def test_the_next_import_brings_what_is_new(public_tool: AgentCapsules, other: Ledger, tmp_path: Path) -> None:
    import_databases(other, public_tool.write_home(tmp_path / "before"))
    public_tool.grow(public_tool.chains[0], 2)
    public_tool.session("codex", "new", 3)
    done = import_databases(other, public_tool.write_home(tmp_path / "after"))
    assert {chain.origin: chain.beyond for chain in done.chains if chain.beyond} == {"claude-code-5d2e": 2, "meta": 1}
    assert [chain.origin for chain in done.chains if not chain.existed] == ["codex-new"]
    assert other.verify().first_bad is None


def test_one_database_says_whose_session_it_is(public_tool: AgentCapsules, other: Ledger, tmp_path: Path) -> None:
    home = public_tool.write_home(tmp_path / "theirs")
    done = import_databases(other, home / "chains" / "codex" / "019d.db")
    assert names_of(done) == {"codex-019d": "codex.019d"}
    copied = tmp_path / "copied.db"
    copied.write_bytes((home / "chains" / "codex" / "019d.db").read_bytes())
    again = import_databases(other, copied)
    assert [(chain.name, chain.existed) for chain in again.chains] == [(done.chains[0].name, True)]


def test_a_database_that_sessions_share(public_tool: AgentCapsules, other: Ledger, tmp_path: Path) -> None:
    one, two = public_tool.chains[0], public_tool.chains[1]
    path = write_database(tmp_path / "shared.db", {one.stem: one.entries, two.stem: two.entries})
    done = import_databases(other, path)
    assert set(names_of(done).values()) == {"claude-code.5d2e", "codex.019d"}
    assert other.head(done.source.name_chain("claude-code.5d2e")).count == 7


def test_only_some_chains(public_tool: AgentCapsules, other: Ledger, tmp_path: Path) -> None:
    home = public_tool.write_home(tmp_path / "theirs")
    done = import_databases(other, home, only=["codex-019d"])
    assert names_of(done) == {"codex-019d": "codex.019d"}
    with pytest.raises(NotFound, match="no chain codex-none"):
        import_databases(other, home, only=["codex-none"])


def test_what_does_not_hold_is_not_imported(public_tool: AgentCapsules, other: Ledger, tmp_path: Path) -> None:
    home = public_tool.write_home(tmp_path / "theirs")
    execute(home / "chains" / "codex" / "019d.db", "DELETE FROM capsules WHERE sequence = 1")
    with pytest.raises(IntegrityError) as refused:
        import_databases(other, home)
    assert refused.value.code == "TRUNCATED"
    assert other.chains() == []


def test_a_session_of_ours_is_not_mixed_with_theirs(public_tool: AgentCapsules, other: Ledger, tmp_path: Path) -> None:
    from support.bundles import draft

    other.append("codex.019d", draft())
    mine = other.head("codex.019d")
    done = import_databases(other, public_tool.write_home(tmp_path / "theirs"))
    assert other.head("codex.019d") == mine
    assert other.head(done.source.name_chain("codex.019d")).count == 2


def test_what_is_no_such_database(other: Ledger, tmp_path: Path) -> None:
    execute(tmp_path / "other.db", "CREATE TABLE capsules (a TEXT)")
    assert not is_foreign_database(tmp_path / "other.db")
    assert not is_foreign_database(tmp_path / "none.db")
    with pytest.raises(BadInput, match="no database"):
        import_databases(other, tmp_path / "other.db")


# --- qp-capsule


@pytest.fixture
def peer(tmp_path: Path) -> tuple[Path, str]:
    pytest.importorskip("qp_capsule")
    from support.peer_databases import write_peer

    return write_peer(tmp_path, 5)


def test_a_database_of_the_reference_implementation(peer: tuple[Path, str], other: Ledger) -> None:
    path, key = peer
    assert is_foreign_database(path)
    done = import_databases(other, path)
    [name] = [chain.name for chain in done.chains]
    records = list(other.read(name))
    assert [record.to_dict()["trigger"]["request"] for record in records] == [f"step {number} ü" for number in range(5)]
    verdict = other.verify(name)
    assert (verdict.status, verdict.records) == ("qualified", 5)
    assert verdict.check("profile").reason == "cps: 5"
    trust(other, key)
    assert other.verify(name).status == "verified"
    assert [chain.existed for chain in import_databases(other, path).chains] == [True]


def test_what_it_exports_is_imported_again(
    peer: tuple[Path, str], other: Ledger, ledger: Ledger, tmp_path: Path
) -> None:
    from aver.ledger.bundle import export_bundle

    [name] = [chain.name for chain in import_databases(other, peer[0]).chains]
    done = import_bundle(ledger, export_bundle(other, tmp_path / "out", chains=[name]).path)
    again = f"import.{done.source.digits}.{name}"
    assert [chain.name for chain in done.chains if chain.origin != "keys"] == [again]
    assert list(ledger.read(again)) == list(other.read(name))


def test_a_peer_database_that_does_not_hold(peer: tuple[Path, str], other: Ledger) -> None:
    execute(peer[0], "UPDATE capsules SET data = replace(data, 'step 2', 'step X') WHERE sequence = 2")
    with pytest.raises(IntegrityError, match="HASH_MISMATCH"):
        import_databases(other, peer[0])
    assert other.chains() == []
