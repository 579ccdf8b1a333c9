"""`aver seal`: drafts from a file into a chain; all of them or none."""

from __future__ import annotations

import json

import pytest

from support.aver_command import ONE_DRAFT, Aver

pytestmark = pytest.mark.both_stores

LINE = json.dumps(ONE_DRAFT)


def test_one_object(aver: Aver) -> None:
    (aver.directory / "one.json").write_text(json.dumps(ONE_DRAFT, indent=2))
    ran = aver("seal", "one.json", "--chain", "notes.today")
    assert ran.code == 0
    assert ran.out.startswith("sealed   capsule://notes.today/0  ")
    assert ran.err == "1 sealed\n"
    assert aver("verify", "--json").json["status"] == "verified"


def test_an_array(aver: Aver) -> None:
    (aver.directory / "three.json").write_text(json.dumps([ONE_DRAFT] * 3))
    records = aver("seal", "three.json", "--chain", "notes.today", "--json").json["records"]
    assert [record["uri"] for record in records] == [f"capsule://notes.today/{n}" for n in range(3)]


def test_lines_from_stdin_with_blank_ones_between(aver: Aver) -> None:
    ran = aver("seal", "-", "--chain", "notes.today", "--json", stdin=f"\n{LINE}\n\n{LINE}\n")
    assert (ran.json["sealed"], ran.json["existing"]) == (2, 0)


def test_a_draft_may_say_where_it_goes_and_what_it_is(aver: Aver) -> None:
    first = aver.seal(ONE_DRAFT)[0]
    draft = {**ONE_DRAFT, "chain": "runs.a-1", "key": "once", "kind": "action", "refs": {"cause": first["id"]}}
    record = aver.seal(draft)[0]
    assert (record["chain"], record["key"]) == ("runs.a-1", "once")
    block = aver("show", record["uri"], "--json").json["capsule"]["context"]["environment"]["aver"]
    assert (block["key"], block["kind"], block["refs"]) == ("once", "action", {"cause": first["id"]})


@pytest.mark.more
def test_interleaved_chains_keep_the_order_of_the_file(aver: Aver) -> None:
    drafts = [{**ONE_DRAFT, "chain": f"runs.{n % 3}", "key": f"k{n}"} for n in range(1200)]
    records = aver.seal(*drafts)
    assert [record["key"] for record in records] == [f"k{n}" for n in range(1200)]
    assert [record["sequence"] for record in records] == [n // 3 for n in range(1200)]
    assert aver("verify", "--json").json["status"] == "verified"


def test_what_was_sealed_before_is_not_sealed_again(aver: Aver) -> None:
    lines = "\n".join(json.dumps({**ONE_DRAFT, "key": f"k{n}"}) for n in range(3))
    first = aver("seal", "-", "--chain", "notes.today", stdin=lines)
    again = aver("seal", "-", "--chain", "notes.today", stdin=lines)
    assert (first.code, again.code) == (0, 0)
    assert again.out == first.out.replace("sealed ", "existed")
    assert again.err == "0 sealed, 3 already in the ledger\n"
    assert aver("log", "notes.today", "--json").json["records"][-1]["sequence"] == 2


def test_one_draft_can_get_its_key_on_the_command_line(aver: Aver) -> None:
    for expected in (False, True):
        ran = aver("seal", "-", "--chain", "notes.today", "--key", "nightly", "--json", stdin=LINE)
        assert ran.json["records"][0]["existed"] is expected
    ran = aver("seal", "-", "--chain", "notes.today", "--key", "nightly", stdin=f"{LINE}\n{LINE}")
    assert ran.code == 2
    assert "--key is for one draft" in ran.err


BAD_LINES = {
    "not JSON": ("{oops", "not valid JSON"),
    "no object": ("[1]", "a draft must be an object"),
    "no type": ("{}", "type: is missing"),
    "unknown type": ('{"type": "nope"}', "type: 'nope' is not one of"),
    "unknown key": ('{"type": "tool", "tiger": {}}', "tiger: is not a key of a capsule"),
    "a key twice": ('{"type": "tool", "type": "tool"}', "occurs twice"),
    "wrong section": ('{"type": "tool", "outcome": 5}', "outcome: must be an object"),
    "wrong status": ('{"type": "tool", "outcome": {"status": "great"}}', "outcome.status"),
    "a place": ('{"type": "tool", "sequence": 4}', "a draft has no place in a chain yet"),
    "a bad chain": ('{"type": "tool", "chain": "../x"}', "is not a chain name"),
    "a reserved chain": ('{"type": "tool", "chain": "meta"}', "only Aver itself writes"),
    "a bad key": ('{"type": "tool", "key": "a\\u0000b"}', "idempotency key"),
    "an unknown kind": ('{"type": "tool", "kind": "weird"}', "unknown kind"),
    "kind in a wrong context": ('{"type": "tool", "kind": "call", "context": 5}', "context: must be an object"),
    "a blob that is nowhere": (
        json.dumps(
            {
                "type": "tool",
                "outcome": {
                    "result": {"blob": {"alg": "sha256", "digest": "0" * 64, "size": 1, "media": "text/plain"}}
                },
            }
        ),
        "refers to the blob",
    ),
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("case", BAD_LINES)
def test_one_bad_line_and_nothing_is_sealed(case: str, sealed: Aver) -> None:
    line, words = BAD_LINES[case]
    before = sealed("log", "--json").json
    ran = sealed("seal", "-", "--chain", "notes.today", "--json", stdin=f"{LINE}\n{LINE}\n{line}\n{LINE}\n")
    assert ran.code == 2
    error = ran.json["error"]
    assert error["line"] == 3
    assert error["message"].startswith("stdin, line 3: ")
    assert words in error["message"]
    assert sealed("log", "--json").json == before


def test_a_bad_first_file_creates_nothing(aver: Aver) -> None:
    assert aver("seal", "-", "--chain", "notes.today", stdin="{}").code == 2
    assert aver("seal", "-", stdin=LINE).code == 2
    assert aver("seal", "-", "--chain", "notes.today", stdin="\n\n").code == 2
    assert aver("seal", "-", "--chain", "notes.today", stdin="[]").code == 2
    assert aver.listing() == []


def test_a_bad_element_of_an_array_is_counted_from_one(aver: Aver) -> None:
    ran = aver("seal", "-", "--chain", "notes.today", "--json", stdin=f"[{LINE}, {{}}]")
    assert ran.json["error"]["message"].startswith("stdin, draft 2: type: is missing")
    cut = aver("seal", "-", "--chain", "notes.today", "--json", stdin=f"[{LINE}, {{")
    assert cut.code == 2
    assert aver.listing() == []


def test_bytes_that_are_not_text(aver: Aver) -> None:
    ran = aver("seal", "-", "--chain", "notes.today", stdin=b"\xff\xfe{}")
    assert ran.code == 2
    assert "UTF-8" in ran.err
    assert aver.listing() == []


def test_a_frozen_chain_is_told_before_anything_is_sealed(sealed: Aver) -> None:
    assert sealed("export", "--out", "bundle").code == 0
    other = {"AVER_HOME": str(sealed.directory / "other"), "AVER_LEDGER": str(sealed.directory / "other.db")}
    digits = sealed("import", "bundle", "--json", **other).json["source"]
    drafts = f'{{"type": "tool", "chain": "mine.1"}}\n{LINE}'
    for name in (f"import.{digits}.notes.today", "import.new"):
        ran = sealed("seal", "-", "--chain", name, stdin=drafts, **other)
        assert ran.code == 2
        assert "is the name of an import" in ran.err
    assert "mine.1" not in sealed("log", **other).out


@pytest.mark.more
def test_a_reader_that_goes_away_does_not_decide_what_is_sealed(aver: Aver) -> None:
    (aver.directory / "many.jsonl").write_text(f"{LINE}\n" * 2000)
    child = aver.started("seal", "many.jsonl", "--chain", "notes.today")
    assert child.stdout is not None
    child.stdout.close()
    assert child.wait() == 141
    assert aver("verify", "notes.today", "--json").json["records"] == 2000


def test_another_ledger_and_tenant(aver: Aver) -> None:
    ran = aver("seal", "-", "--chain", "a.1", "--ledger", "team.db", "--tenant", "blue", stdin=LINE)
    assert ran.code == 0
    assert aver("log", "--ledger", "team.db", "--tenant", "blue", "--json").json["chains"][0]["chain"] == "a.1"
    assert aver("log", "--ledger", "team.db", "--json").json["chains"] == []
