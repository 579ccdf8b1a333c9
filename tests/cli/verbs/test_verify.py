"""`aver verify`: the verdict in words and as JSON, on a ledger, a chain, a record, a file; and its exit code."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from aver.verdict import load_codes
from support.aver_command import ONE_DRAFT, Aver, tampering


def edit_a_record(path: Path) -> None:
    with tampering(path) as file:
        file.execute("UPDATE records SET canonical = replace(canonical, 'ran', 'RAN') WHERE type = 'tool'")
        file.execute("UPDATE records SET canonical = CAST(canonical AS BLOB)")


def test_a_ledger_that_holds(sealed: Aver) -> None:
    ran = sealed("verify")
    lines = ran.out.splitlines()
    assert ran.code == 0
    assert lines[0].startswith("✓ intact, verified: ledger ")
    assert lines[0].endswith(", 4 records in 2 chains")
    assert "  ✓ signature  4 checked" in lines
    assert ran.err == ""


def test_what_was_not_checked_is_always_said(sealed: Aver) -> None:
    out = sealed("verify").out
    assert "not checked: meta (no chain was closed or swept yet)" in out
    assert "not checked: rollback" in out
    shown = sealed("verify", "--json").json
    unchecked = {check["name"] for check in shown["checks"] if check["status"] == "not_checked"}
    assert unchecked == {"signature_pq", "blobs", "meta"}  # The second time there is something to compare with.
    for name in unchecked:
        assert name in out


def test_a_change_is_named_with_its_place_its_meaning_and_what_to_do(sealed: Aver) -> None:
    edit_a_record(sealed.home / "ledger.db")
    ran = sealed("verify")
    assert ran.code == 1
    assert ran.out.startswith("✗ failed: ledger ")
    assert "first bad place: chain notes.today, sequence 0" in ran.out
    assert "  HASH_MISMATCH: the content does not have the stored hash" in ran.out
    words = " ".join(ran.out.split())
    assert load_codes()["HASH_MISMATCH"].meaning in words
    assert load_codes()["HASH_MISMATCH"].advice in words


def test_as_json_it_is_the_verdict(sealed: Aver) -> None:
    edit_a_record(sealed.home / "ledger.db")
    ran = sealed("verify", "notes.today", "--json")
    assert ran.code == 1
    assert ran.json["status"] == "failed"
    assert ran.json["first_bad"]["code"] == "HASH_MISMATCH"
    assert ran.json["first_bad"]["place"] == {"chain": "notes.today", "sequence": 0, "source": None}


def test_one_chain_or_one_record(sealed: Aver) -> None:
    assert sealed("verify", "notes.today").out.startswith("✓ intact, verified: chain notes.today, 3 records\n")
    assert sealed("verify", "capsule://notes.today/1").out.startswith(
        "✓ intact, verified: record 1 of chain notes.today, 1 record\n"
    )


def test_a_record_in_a_file_held_to_a_key(sealed: Aver) -> None:
    (sealed.directory / "one.json").write_text(
        json.dumps(sealed("show", "capsule://notes.today/0", "--json").json["capsule"])
    )
    assert sealed("keys", "export", "--out", "our-keys.json").code == 0
    stranger = {"AVER_HOME": str(sealed.directory / "elsewhere")}
    ran = sealed("verify", "one.json", **stranger)
    assert (ran.code, ran.out.split(":")[0]) == (0, "! unsigned, qualified")
    assert "UNKNOWN_SIGNER" in ran.out
    assert sealed("verify", "one.json", "--strict", **stranger).code == 1
    assert sealed("verify", "one.json", "--key", "our-keys.json", "--strict", **stranger).code == 0
    assert not (sealed.directory / "elsewhere").exists()


def test_levels(sealed: Aver) -> None:
    edit_a_record(sealed.home / "ledger.db")
    ran = sealed("verify", "--level", "structural")
    assert ran.code == 0
    assert ran.out.startswith("! unsigned, qualified")
    assert "content" in ran.out
    assert "not checked: structural level: stored hashes were trusted" in ran.out
    assert sealed("verify", "--level", "content").code == 1


def test_post_quantum_signatures_may_be_required(sealed: Aver) -> None:
    ran = sealed("verify", "--require-pq", "--json")
    assert (ran.code, ran.json["first_bad"]["code"]) == (1, "SIG_MISSING")


# --- tenants


@pytest.fixture
def two_tenants(sealed: Aver) -> Aver:
    ran = sealed("seal", "-", "--chain", "a.1", "--tenant", "blue", stdin=json.dumps(ONE_DRAFT))
    assert ran.code == 0
    return sealed


def test_every_tenant_gets_its_verdict(two_tenants: Aver) -> None:
    ran = two_tenants("verify")
    assert ran.code == 0
    heads = [line for line in ran.out.splitlines() if line.startswith("✓ intact, verified")]
    assert [head.split("tenant ")[1].split(",")[0] for head in heads] == ["blue", "default"]
    shown = two_tenants("verify", "--json").json
    assert (shown["status"], shown["records"], shown["first_bad"]) == ("verified", 6, None)
    assert [one["tenant"] for one in shown["tenants"]] == ["blue", "default"]


def test_one_bad_tenant_is_enough(two_tenants: Aver) -> None:
    with tampering(two_tenants.home / "ledger.db") as file:
        file.execute("UPDATE records SET signed_at = '2020-01-01T00:00:00+00:00' WHERE tenant = 'blue'")
    for ran in (two_tenants("verify", "--json"), two_tenants("verify", two_tenants.home, "--json")):
        assert ran.code == 1
        assert (ran.json["status"], ran.json["first_bad"]["code"]) == ("failed", "SEAL_MISMATCH")
        assert [one["status"] for one in ran.json["tenants"]] == ["failed", "verified"]
    assert two_tenants("verify", "--tenant", "default").code == 0
    assert two_tenants("verify", "--tenant", "blue").code == 1


# --- from a trusted head on


def test_since_a_head(sealed: Aver) -> None:
    head = sealed("log", "notes.today", "--json").json["records"][1]["hash"]
    ran = sealed("verify", "notes.today", "--since", f"2:{head}", "--json")
    assert (ran.code, ran.json["records"]) == (0, 1)


def test_since_a_head_that_is_not_there(sealed: Aver) -> None:
    ran = sealed("verify", "notes.today", "--since", f"2:{'0' * 64}", "--json")
    assert (ran.code, ran.json["first_bad"]["code"]) == (1, "ROLLBACK")


@pytest.mark.more
def test_since_a_head_in_a_file(sealed: Aver) -> None:
    listed = sealed("log", "--json").json
    head = {"ledger": listed["ledger"], "tenant": "default", "chain": "notes.today"}
    head |= {"count": 3, "hash": listed["chains"][1]["head"]}
    (sealed.directory / "head.json").write_text(json.dumps(head))
    ran = sealed("verify", "notes.today", "--since", "head.json", "--json")
    assert (ran.code, ran.json["status"]) == (1, "empty")
    sealed.seal(ONE_DRAFT)
    ran = sealed("verify", "notes.today", "--since", "head.json", "--json")
    assert (ran.code, ran.json["records"]) == (0, 1)


@pytest.mark.parametrize("since", ["2", "2:xyz", "nowhere.json"])
def test_since_what_is_no_head(since: str, sealed: Aver) -> None:
    assert sealed("verify", "notes.today", "--since", since).code == 2
    assert sealed("verify", "--since", since).code == 2


# --- held to a checkpoint


def test_a_ledger_held_to_its_checkpoint(sealed: Aver) -> None:
    assert sealed("checkpoint", "--out", "heads.json").code == 0
    sealed.seal(ONE_DRAFT)
    ran = sealed("verify", "--checkpoint", "heads.json")
    assert ran.code == 0
    assert "checkpoint  2 chains match the checkpoint of" in ran.out


@pytest.mark.more
def test_a_checkpoint_finds_what_was_cut_off(sealed: Aver) -> None:
    assert sealed("checkpoint", "--out", "heads.json").code == 0
    with tampering(sealed.home / "ledger.db") as file:
        (last,) = file.execute("SELECT hash FROM records WHERE type = 'chat'").fetchone()
        file.execute("DELETE FROM records WHERE type = 'agent'")
        file.execute("UPDATE chains SET count = 2, head = ? WHERE name = 'notes.today'", (last,))
    assert sealed("verify").code == 0
    ran = sealed("verify", "--checkpoint", "heads.json", "--json")
    assert (ran.code, ran.json["status"], ran.json["first_bad"]["code"]) == (1, "failed", "TRUNCATED")
    assert ran.json["checks"][-1]["name"] == "checkpoint"


@pytest.mark.more
def test_a_tenant_that_was_deleted_whole_is_missed(two_tenants: Aver) -> None:
    assert two_tenants("checkpoint", "--tenant", "blue", "--out", "heads.json").code == 0
    with tampering(two_tenants.home / "ledger.db") as file:
        file.execute("DELETE FROM records WHERE tenant = 'blue'")
        file.execute("DELETE FROM chains WHERE tenant = 'blue'")
    assert two_tenants("verify").code == 0
    ran = two_tenants("verify", "--checkpoint", "heads.json", "--json")
    assert (ran.code, ran.json["first_bad"]["code"]) == (1, "CHAIN_MISSING")


def test_a_checkpoint_of_another_ledger(sealed: Aver) -> None:
    assert sealed("checkpoint", "--out", "heads.json").code == 0
    shutil.move(sealed.home / "ledger.db", sealed.home / "old.db")
    sealed.seal(ONE_DRAFT)
    ran = sealed("verify", "--checkpoint", "heads.json", "--json")
    assert (ran.code, ran.json["first_bad"]["code"]) == (1, "CHAIN_IDENTITY")


def test_what_is_no_checkpoint(sealed: Aver) -> None:
    (sealed.directory / "no.json").write_text('{"heads": {}}')
    assert sealed("verify", "--checkpoint", "no.json").code == 2
    assert sealed("verify", "notes.today", "--checkpoint", "no.json").code == 2


def test_verifying_a_copy_makes_no_home(sealed: Aver) -> None:
    other = {"AVER_HOME": str(sealed.directory / "elsewhere")}
    ran = sealed("verify", sealed.home / "ledger.db", **other)
    assert ran.code == 0
    assert "UNKNOWN_SIGNER" in ran.out
    assert not (sealed.directory / "elsewhere").exists()


def test_an_existing_path_is_a_file_unless_the_ledger_is_named(sealed: Aver) -> None:
    (sealed.directory / "notes.today").write_bytes((sealed.home / "ledger.db").read_bytes())
    assert "ledger" in sealed("verify", "notes.today").out.splitlines()[0]
    assert "ledger" in sealed("verify", "./notes.today").out.splitlines()[0]
    ledger = sealed.home / "ledger.db"
    assert "chain notes.today" in sealed("verify", "notes.today", "--ledger", ledger).out.splitlines()[0]


# --- the meta chain


def cut_the_tail(path: Path) -> None:
    with tampering(path) as file:
        (last,) = file.execute("SELECT hash FROM records WHERE type = 'chat'").fetchone()
        file.execute("DELETE FROM records WHERE type = 'agent'")
        file.execute("UPDATE chains SET count = 2, head = ? WHERE name = 'notes.today'", (last,))


def test_meta_holds_every_chain_to_its_head(sealed: Aver) -> None:
    assert sealed("checkpoint", "--sweep", "--out", "heads.json").code == 0
    ran = sealed("verify", "meta")
    assert ran.code == 0
    assert ran.out.startswith("✓ intact, verified: chain meta, 1 record\n")
    assert "meta       2 chains match their recorded heads (0 grown since, 0 not recorded yet)" in ran.out
    assert "not checked: chains (the records of 2 other chains were not verified; use --deep)" in ran.out
    sealed.seal(ONE_DRAFT)
    assert "1 grown since" in sealed("verify", "meta").out
    assert sealed("verify", "meta", "--checkpoint", "heads.json", "--json").json["checks"][-1]["name"] == "checkpoint"


def test_meta_finds_a_cut_tail_and_deep_a_change(sealed: Aver) -> None:
    assert sealed("checkpoint", "--sweep").code == 0
    edit_a_record(sealed.home / "ledger.db")
    assert sealed("verify", "meta").code == 0
    ran = sealed("verify", "meta", "--deep", "--json")
    assert (ran.code, ran.json["first_bad"]["code"]) == (1, "HASH_MISMATCH")
    cut_the_tail(sealed.home / "ledger.db")
    ran = sealed("verify", "meta", "--json")
    assert (ran.code, ran.json["first_bad"]["code"]) == (1, "TRUNCATED")
    assert ran.json["first_bad"]["proof"]["remembered"]["count"] == 3


def test_without_a_meta_chain_its_verdict_is_empty(sealed: Aver) -> None:
    ran = sealed("verify", "meta", "--json")
    assert (ran.code, ran.json["status"]) == (1, "empty")
    (check,) = (one for one in ran.json["checks"] if one["name"] == "meta")
    assert check["reason"] == "no chain was closed or swept yet"


def test_a_file_called_meta_is_a_file_unless_the_ledger_is_named(sealed: Aver) -> None:
    assert sealed("checkpoint", "--sweep", "--out", "meta").code == 0
    for name in ("meta", "./meta"):
        assert "checkpoint in meta" in sealed("verify", name).out
    assert "chain meta" in sealed("verify", "meta", "--ledger", sealed.home / "ledger.db").out


# --- several things, and bundles held to checkpoints


def test_several_things_at_once(sealed: Aver) -> None:
    assert sealed("export", "--out", "bundle").code == 0
    assert sealed("checkpoint", "--out", "heads.json").code == 0
    ran = sealed("verify", "bundle", "notes.today", "heads.json")
    assert ran.code == 0
    heads = [line for line in ran.out.splitlines() if line.startswith("✓ intact, verified: ")]
    assert [head.split(": ")[1].split(",")[0] for head in heads] == [
        "bundle bundle",
        "chain notes.today",
        "checkpoint in heads.json",
    ]
    shown = sealed("verify", "bundle", "notes.today", "--json").json
    assert (shown["status"], shown["records"]) == ("verified", 7)
    assert [one["thing"] for one in shown["things"]] == ["bundle", "notes.today"]
    edit_a_record(sealed.home / "ledger.db")
    ran = sealed("verify", "bundle", "notes.today", "--json")
    assert (ran.code, ran.json["status"], ran.json["first_bad"]["code"]) == (1, "failed", "HASH_MISMATCH")
    assert [one["status"] for one in ran.json["things"]] == ["verified", "failed"]
    assert sealed("verify", "bundle", "nowhere").code == 2


def test_a_bundle_held_to_a_checkpoint(sealed: Aver) -> None:
    assert sealed("export", "--out", "bundle").code == 0
    assert sealed("checkpoint", "--out", "heads.json").code == 0
    ran = sealed("verify", "bundle", "--checkpoint", "heads.json")
    assert ran.code == 0
    assert "checkpoint  2 chains match the checkpoint of" in ran.out
    sealed.seal(ONE_DRAFT)
    assert sealed("checkpoint", "--out", "newer.json").code == 0
    ran = sealed("verify", "bundle", "--checkpoint", "heads.json", "--checkpoint", "newer.json", "--json")
    assert (ran.code, ran.json["first_bad"]["code"]) == (1, "TRUNCATED")
    assert sealed("verify", "notes.today", "--checkpoint", "heads.json").code == 2
    assert sealed("verify", "heads.json", "--checkpoint", "heads.json").code == 2


def test_a_file_with_checkpoints_of_every_tenant(two_tenants: Aver) -> None:
    lines = [two_tenants("checkpoint", "--tenant", tenant).out for tenant in ("default", "blue")]
    (two_tenants.directory / "heads.jsonl").write_text("".join(lines))
    shown = two_tenants("verify", "--checkpoint", "heads.jsonl", "--json").json
    assert shown["status"] == "verified"
    assert [one["checks"][-1]["name"] for one in shown["tenants"]] == ["checkpoint", "checkpoint"]
    with tampering(two_tenants.home / "ledger.db") as file:
        file.execute("DELETE FROM records WHERE tenant = 'blue'")
        file.execute("DELETE FROM chains WHERE tenant = 'blue'")
    elsewhere = {"AVER_HOME": str(two_tenants.directory / "elsewhere")}
    ledger = two_tenants.home / "ledger.db"
    ran = two_tenants("verify", ledger, "--checkpoint", "heads.jsonl", "--json", **elsewhere)
    assert ran.code == 1
    assert {one["tenant"]: one["status"] for one in ran.json["tenants"]} == {"default": "qualified", "blue": "failed"}


def test_files_of_aver_that_hold_no_records_are_named(aver: Aver) -> None:
    """They were called damaged records, with the advice to restore them."""
    from aver.keys import SeedSigner, sign_statement

    assert aver("keys", "new", "agent:one").code == 0
    assert aver("keys", "export", "agent:one", "--out", "keys.json").code == 0
    statement = sign_statement("protocol-join", {"a": 1}, (SeedSigner(b"x" * 32),)).to_dict()
    documents = {
        "a list of keys": None,
        "the report on a trace": {"artifacts": [], "checks": [], "claims": []},
        "a contribution to a trace": {"artifacts": [], "payload": {}, "statement": statement, "v": 1},
        "the join of a participant": {"v": 1, "join": statement, "rotations": []},
        "a signed statement": statement,
    }
    for name, document in documents.items():
        if document is not None:
            (aver.directory / "keys.json").write_text(json.dumps(document))
        ran = aver("verify", "keys.json")
        assert (ran.code, ran.out) == (2, ""), ran
        assert f"keys.json is {name}" in ran.err
    # Anything else in JSON is a damaged record, as before.
    (aver.directory / "keys.json").write_text('{"artifacts": [], "hash": "0"}')
    assert aver("verify", "keys.json").code == 1
