"""What was verified before: when it is noted, when it may be gone on from, and that every chain is held to it."""

from __future__ import annotations

import json
import shutil
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from aver import Capsule, Ledger, SeedSigner, open_ledger
from aver.ledger import verified_heads as module
from aver.ledger.imports.history import ImportHistory
from aver.ledger.verified_heads import VerifiedChains, VerifiedHead, load_verified, verified_tenants
from aver.ledger.verify import examine_ledger
from support.tamper import codes_at, first_bad, forget, unguarded

pytestmark = pytest.mark.both_stores

CHAIN = "demo.habit"
OTHER = "demo.other"


def fill(ledger: Ledger, chain: str = CHAIN, count: int = 3, **options: Any) -> None:
    for _ in range(count):
        ledger.append(chain, Capsule(type="tool"), **options)


def noted(ledger: Ledger) -> Any:
    return json.loads(path_of(ledger).read_text())


def path_of(ledger: Ledger) -> Path:
    return ledger.config.home / "verified" / f"{ledger.id}.{ledger.tenant}.json"


def cut(ledger: Ledger, chain: str, length: int) -> None:
    attacker = unguarded(ledger)
    (number,) = attacker.execute("SELECT chain FROM chains WHERE name = ?", (chain,)).fetchone()
    attacker.execute("DELETE FROM records WHERE chain = ? AND sequence >= ?", (number, length))
    (last,) = attacker.execute(
        "SELECT hash FROM records WHERE chain = ? AND sequence = ?", (number, length - 1)
    ).fetchone()
    attacker.execute("UPDATE chains SET count = ?, head = ? WHERE chain = ?", (length, last, number))
    attacker.close()


def unsign(ledger: Ledger, chain: str, sequence: int) -> None:
    attacker = unguarded(ledger)
    place = "chain = (SELECT chain FROM chains WHERE name = ?) AND sequence = ?"
    attacker.execute(f"UPDATE records SET signature = '' WHERE {place}", (chain, sequence))
    attacker.close()


# --- what is noted


def test_every_chain_s_head_is_noted_for_its_owner_alone(ledger: Ledger) -> None:
    fill(ledger)
    fill(ledger, OTHER, 2)
    assert ledger.verify().status == "verified"
    written = noted(ledger)
    assert {name: (head["count"], head["hash"]) for name, head in written["chains"].items()} == {
        head.chain: (head.count, head.hash) for head in ledger.heads()
    }
    assert all(head["trusted"] and not head["post_quantum"] for head in written["chains"].values())
    assert written["keys"] == [entry.key.ed25519 for entry in ledger.keys.ring().entries]
    assert written["whole_at"] == max(head["at"] for head in written["chains"].values())
    assert stat.S_IMODE(path_of(ledger).stat().st_mode) == 0o600
    assert stat.S_IMODE(path_of(ledger).parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("options", [{"level": "structural"}, {"level": "content"}, {"keys": "own"}])
def test_lower_levels_and_given_keys_are_not_noted(ledger: Ledger, options: dict[str, Any]) -> None:
    fill(ledger)
    if "keys" in options:
        options = {"keys": [entry.key for entry in ledger.keys.ring().entries]}
    assert ledger.verify(**options).status in ("verified", "qualified")
    assert not path_of(ledger).exists()


def test_what_fails_is_not_noted(ledger: Ledger) -> None:
    fill(ledger)
    unsign(ledger, CHAIN, 1)
    assert ledger.verify().status == "failed"
    assert not path_of(ledger).exists()


def test_a_trusted_head_from_elsewhere_is_not_noted(ledger: Ledger) -> None:
    fill(ledger)
    head = ledger.head(CHAIN)
    fill(ledger)
    assert ledger.verify(CHAIN, since=head).status == "verified"
    assert not path_of(ledger).exists()


def test_one_chain_is_noted_beside_the_others(ledger: Ledger) -> None:
    fill(ledger)
    fill(ledger, OTHER)
    assert ledger.verify(CHAIN).status == "verified"
    assert noted(ledger)["chains"].keys() == {CHAIN}
    assert noted(ledger)["whole_at"] is None
    ledger.verify()
    fill(ledger)
    ledger.verify(CHAIN)
    assert {name: head["count"] for name, head in noted(ledger)["chains"].items()} == {CHAIN: 6, OTHER: 3, "keys": 1}


@pytest.mark.sqlite
def test_nothing_is_noted_where_there_is_no_home(ledger: Ledger, tmp_path: Path) -> None:
    fill(ledger)
    with open_ledger(ledger.store.path, home=tmp_path / "nowhere", create=False) as elsewhere:
        assert elsewhere.verify().status == "qualified"
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.sqlite
def test_tenants_and_ledgers_are_kept_apart(ledger: Ledger, aver_home: Path, tmp_path: Path) -> None:
    for url, tenant in ((None, "a"), (None, "b.c"), (str(tmp_path / "second.db"), "a")):
        with open_ledger(url, tenant=tenant) as one:
            fill(one)
            assert one.verify().status == "verified"
            assert noted(one)["tenant"] == tenant
    assert len(list((aver_home / "verified").iterdir())) == 3
    assert verified_tenants(aver_home, ledger.id) == ["a", "b.c"]
    assert verified_tenants(aver_home, "../verified") == []


def test_the_number_of_chains_and_files_is_bounded(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHAINS_MAX", 3)
    monkeypatch.setattr(module, "FILES_MAX", 2)
    for number in range(4):
        fill(ledger, f"demo.{number}", 1)
        ledger.verify()
    assert len(noted(ledger)["chains"]) == 3
    assert noted(ledger)["entries"] == 0
    for tenant in ("a", "b"):
        with open_ledger(tenant=tenant) as one:
            fill(one, count=1)
            one.verify()
    assert verified_tenants(ledger.config.home, ledger.id) == ["a", "b"]


def test_what_another_process_noted_further_on_stays(ledger: Ledger) -> None:
    fill(ledger)
    early = examine_ledger(ledger, None, level="signature", since=None, ring=ledger.ring(), require_pq=False).verified
    fill(ledger)
    ledger.verify()
    module.save_verified(ledger, early, ImportHistory())
    assert load_verified(ledger).heads[CHAIN].count == 6


# --- going on


def test_only_what_is_new_is_read(ledger: Ledger) -> None:
    fill(ledger)
    first = ledger.verify(since="last")
    assert (first.status, first.records, first.earlier) == ("verified", 4, 0)
    idle = ledger.verify(since="last")
    assert (idle.status, idle.records, idle.earlier) == ("verified", 0, 4)
    fill(ledger, count=2)
    fill(ledger, "demo.new", 1)
    verdict = ledger.verify(since="last")
    assert (verdict.status, verdict.records, verdict.earlier) == ("verified", 3, 4)
    assert verdict.check("earlier").status == "not_checked"
    assert "4 records were verified earlier" in verdict.check("earlier").reason
    assert noted(ledger)["whole_at"] in verdict.check("earlier").reason
    assert verdict.check("store").status == "not_checked"
    assert verdict.check("rollback").status == "passed"


def test_one_chain_goes_on_from_where_it_was(ledger: Ledger) -> None:
    fill(ledger)
    ledger.verify()
    fill(ledger, count=2)
    verdict = ledger.verify(CHAIN, since="last")
    assert (verdict.status, verdict.records, verdict.earlier) == ("verified", 2, 3)
    verdict = ledger.verify(CHAIN, since="last")
    assert (verdict.status, verdict.records, verdict.earlier) == ("verified", 0, 5)


def test_how_much_is_read_follows_what_is_new(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted at the store: a thousand old records cost an incremental verification nothing."""
    ledger.append_many(CHAIN, [Capsule(type="tool") for _ in range(1000)])
    ledger.sweep()
    ledger.verify()
    fill(ledger, count=3)
    read: list[int] = []
    rows = type(ledger.store).read_rows

    def counting(store: Any, chain: Any, start: int, stop: int) -> Any:
        read.append(stop - start)
        return rows(store, chain, start, stop)

    monkeypatch.setattr(type(ledger.store), "read_rows", counting)
    assert ledger.verify(since="last").records == 3
    assert sum(read) <= 3 + ledger.head("keys").count


def test_new_records_are_judged_like_any(ledger: Ledger) -> None:
    fill(ledger)
    ledger.verify()
    fill(ledger)
    unsign(ledger, CHAIN, 4)
    assert first_bad(ledger.verify(since="last")) == ("SIG_MISSING", CHAIN, 4)


def test_the_first_new_record_must_continue_what_was_verified(ledger: Ledger) -> None:
    fill(ledger)
    ledger.verify()
    cut(ledger, CHAIN, 2)
    fill(ledger, count=3)
    assert first_bad(ledger.verify(since="last")) == ("ROLLBACK", CHAIN, 2)


def test_a_chain_that_is_shorter_than_it_was(ledger: Ledger) -> None:
    fill(ledger)
    ledger.verify()
    cut(ledger, CHAIN, 2)
    for verdict in (ledger.verify(since="last"), ledger.verify(), ledger.verify(CHAIN), ledger.verify("meta")):
        assert first_bad(verdict) == ("TRUNCATED", CHAIN, 2)
        assert verdict.first_bad is not None
        assert verdict.first_bad.proof["remembered"]["count"] == 3


def test_a_change_below_the_head_is_found_whole_and_then_not_forgotten(ledger: Ledger) -> None:
    """Going on does not see it; once it was seen, going on does not let it be forgotten."""
    fill(ledger)
    ledger.verify()
    unsign(ledger, CHAIN, 1)
    assert ledger.verify(since="last").status == "verified"
    assert first_bad(ledger.verify()) == ("SIG_MISSING", CHAIN, 1)
    verdict = ledger.verify(since="last")
    assert first_bad(verdict) == ("SIG_MISSING", CHAIN, 1)
    assert verdict.earlier == 0


def test_a_failure_of_one_chain_leaves_trust_in_the_others(ledger: Ledger) -> None:
    fill(ledger)
    fill(ledger, OTHER)
    ledger.verify()
    unsign(ledger, CHAIN, 1)
    assert ledger.verify(CHAIN).status == "failed"
    assert {name: head["trusted"] for name, head in noted(ledger)["chains"].items()} == {
        CHAIN: False,
        OTHER: True,
        "keys": True,
    }


def test_other_given_keys_take_no_trust_away(ledger: Ledger) -> None:
    fill(ledger)
    ledger.verify()
    assert ledger.verify(keys=[SeedSigner.generate().public]).status == "qualified"
    assert ledger.verify(since="last").earlier == 4


def test_a_doubtful_chain_is_read_whole_each_time(ledger: Ledger) -> None:
    fill(ledger)
    fill(ledger, OTHER, signer=SeedSigner.generate())
    for _ in range(2):
        verdict = ledger.verify(since="last")
        assert verdict.status == "qualified"
        assert verdict.check("signature").code == "UNKNOWN_SIGNER"
    assert (verdict.records, verdict.earlier) == (3, 4)
    assert noted(ledger)["chains"].keys() == {CHAIN, "keys"}


def test_a_doubtful_chain_is_held_to_all_entries_of_meta(ledger: Ledger) -> None:
    fill(ledger)
    fill(ledger, OTHER, signer=SeedSigner.generate())
    ledger.sweep()
    ledger.verify()
    assert ledger.verify(since="last").status == "qualified"
    cut(ledger, OTHER, 2)
    assert codes_at(ledger.verify(since="last")) == {("TRUNCATED", OTHER, 2)}


@pytest.mark.sqlite
def test_what_a_stranger_signed_is_not_held_against_us(ledger: Ledger, tmp_path: Path) -> None:
    """A file with our ledger's id, and a chain of ours in it that nobody known has signed."""
    fill(ledger)
    ledger.verify()
    ledger.close()
    shutil.copy(ledger.config.home / "ledger.db", tmp_path / "theirs.db")
    with open_ledger(tmp_path / "theirs.db") as theirs:
        fill(theirs, count=5, signer=SeedSigner.generate())
        assert theirs.verify().status == "qualified"
    with open_ledger() as ours:
        assert ours.verify().status == "verified"
        fill(ours, count=5)
        assert ours.verify(since="last").status == "verified"


def test_doubt_is_not_lost_among_many_findings(ledger: Ledger) -> None:
    """Of one sort a verdict keeps a hundred findings; the chains of the others are no less doubtful."""
    stranger = SeedSigner.generate()
    ledger.append_many("a.first", [Capsule(type="tool") for _ in range(150)], signer=stranger)
    fill(ledger, "z.last", 1, signer=stranger)
    fill(ledger, "m.ours", 1)
    assert ledger.verify().status == "qualified"
    assert noted(ledger)["chains"].keys() == {"keys", "m.ours"}


def test_a_key_that_was_forgotten_is_not_trusted_by_memory(ledger: Ledger) -> None:
    friend = SeedSigner.generate()
    ledger.keys.trust(friend.public)
    fill(ledger, signer=friend)
    assert ledger.verify().status == "verified"
    assert ledger.verify(since="last").earlier == 4
    ledger.keys.forget(friend.fingerprint)
    verdict = ledger.verify(since="last")
    assert (verdict.status, verdict.earlier) == ("qualified", 0)
    assert verdict.check("signature").code == "UNKNOWN_SIGNER"


def test_a_key_that_came_since_is_no_reason_to_begin_anew(ledger: Ledger) -> None:
    fill(ledger)
    ledger.verify()
    ledger.keys.trust(SeedSigner.generate().public)
    assert ledger.verify(since="last").earlier == 4
    ledger.keys.rotate("ledger")
    fill(ledger)
    verdict = ledger.verify(since="last")
    assert (verdict.status, verdict.earlier, verdict.records) == ("verified", 4, 4)


def test_what_was_not_required_then_is_verified_anew(ledger: Ledger) -> None:
    ledger.keys.create("ledger", post_quantum=True)
    fill(ledger)
    assert ledger.verify().status == "verified"
    assert ledger.verify(since="last", require_pq=True).earlier == 0
    assert ledger.verify(since="last", require_pq=True).earlier == 4
    fill(ledger, count=1)
    assert ledger.verify(since="last").earlier == 4
    assert ledger.verify(since="last", require_pq=True).earlier == 1  # the `keys` chain, which has not grown


# --- the meta chain while going on


def test_new_entries_are_held_to_and_old_ones_stay_so(ledger: Ledger) -> None:
    fill(ledger)
    fill(ledger, OTHER)
    ledger.sweep()
    ledger.verify()
    fill(ledger)
    ledger.close_chain(CHAIN)
    verdict = ledger.verify(since="last")
    assert verdict.check("meta").status == "passed"
    assert "entries before sequence 1 were compared earlier" in verdict.check("meta").reason
    assert ledger.verify(since="last").check("meta").reason == "no chain was closed or swept since"
    cut(ledger, OTHER, 2)
    assert codes_at(ledger.verify(since="last")) == {("TRUNCATED", OTHER, 2)}


def test_entries_about_chains_that_were_not_noted_are_held_to(ledger: Ledger) -> None:
    """Noting the meta chain alone must not make its entries about other chains forgotten."""
    fill(ledger)
    fill(ledger, OTHER)
    ledger.sweep()
    ledger.verify("meta")
    ledger.verify(CHAIN)
    cut(ledger, OTHER, 2)
    assert codes_at(ledger.verify(since="last")) == {("TRUNCATED", OTHER, 2)}


def test_an_entry_that_grew_after_its_meta_head_was_verified_is_not_noted_as_seen(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is remembered of `meta` is the head that was verified, not one that came meanwhile."""
    fill(ledger)
    ledger.sweep()
    judged = ledger.head("meta")
    stray = type(ledger.store).find_repeated

    def growing(store: Any, tenant: str) -> Any:
        fill(ledger, OTHER, 1)
        ledger.sweep()
        return stray(store, tenant)

    monkeypatch.setattr(type(ledger.store), "find_repeated", growing)
    assert ledger.verify().status == "verified"
    (seen,) = json.loads((ledger.config.home / "seen.json").read_text())
    assert (seen["count"], seen["hash"]) == (judged.count, judged.hash)
    assert load_verified(ledger).heads["meta"].count == judged.count


# --- a file that is not ours


DAMAGED = [
    b"",
    b"x",
    b"[]",
    b"{}",
    b"\xff",
    b"[" * 1000,
    b'{"v":1,"ledger":"x","tenant":"default","whole_at":null,"entries":0,"keys":[],"chains":{}}',
]


@pytest.mark.parametrize("content", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_file_qualifies_and_is_left_as_it_is(ledger: Ledger, content: bytes) -> None:
    fill(ledger)
    ledger.verify()
    path_of(ledger).write_bytes(content)
    for verdict in (ledger.verify(), ledger.verify(since="last")):
        assert verdict.status == "qualified"
        assert verdict.earlier == 0
        assert "remove it; verifying creates it again" in verdict.check("rollback").reason
    assert path_of(ledger).read_bytes() == content
    path_of(ledger).unlink()
    assert ledger.verify().status == "verified"


@pytest.mark.parametrize(
    ("key", "value"),
    [("count", -1), ("count", True), ("count", 0), ("hash", "A" * 64), ("hash", None), ("at", 1), ("trusted", 1)],
)
def test_a_head_that_is_none(ledger: Ledger, key: str, value: Any) -> None:
    fill(ledger)
    ledger.verify()
    document = noted(ledger)
    document["chains"][CHAIN][key] = value
    path_of(ledger).write_text(json.dumps(document))
    assert ledger.verify().status == "qualified"


def test_the_file_of_another_tenant_is_no_help(ledger: Ledger) -> None:
    fill(ledger)
    ledger.verify()
    with open_ledger(tenant="other") as other:
        fill(other)
        other.verify()
        path_of(other).write_bytes(path_of(ledger).read_bytes())
        assert other.verify(since="last").status == "qualified"


def test_a_link_in_its_place_is_not_followed(ledger: Ledger, tmp_path: Path) -> None:
    fill(ledger)
    ledger.verify()
    shutil.move(path_of(ledger), tmp_path / "elsewhere.json")
    path_of(ledger).symlink_to(tmp_path / "elsewhere.json")
    assert ledger.verify(since="last").status == "qualified"


def test_verifying_at_the_same_time_leaves_a_whole_file(ledger: Ledger) -> None:
    fill(ledger)
    threads = [threading.Thread(target=lambda: ledger.verify(since="last")) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert load_verified(ledger).heads[CHAIN].count == 3
    assert [path.name for path in path_of(ledger).parent.iterdir()] == [path_of(ledger).name]


def test_distrusting_keeps_the_heads() -> None:
    head = VerifiedHead(1, "0" * 64, "2026-01-01T00:00:00+00:00", trusted=True, post_quantum=False)
    verified = VerifiedChains({"a.1": head, "a.2": head})
    assert [one.trusted for one in verified.distrust(["a.1"]).heads.values()] == [False, True]
    assert [one.trusted for one in verified.distrust([None]).heads.values()] == [False, False]
    assert verified.distrust([None]).heads.keys() == verified.heads.keys()


def test_forgetting_begins_anew(ledger: Ledger) -> None:
    fill(ledger)
    ledger.verify()
    forget(ledger)
    cut(ledger, CHAIN, 2)
    assert ledger.verify(since="last").status == "verified"
