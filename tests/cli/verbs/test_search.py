"""`aver search`: hits are shown from the ledger, verified, and a fault of the index concerns nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from aver import open_ledger
from support.agents import sample_session as sample
from support.aver_command import ONE_DRAFT, Aver
from support.tamper import unguarded


@pytest.fixture
def worked(aver: Aver, tmp_path: Path) -> Aver:
    with open_ledger(home=aver.home) as ledger:
        sample.rich(ledger, tmp_path / "t")
    return aver


def test_hits_are_shown_as_lines(worked: Aver) -> None:
    ran = worked("search", "half", "up")
    assert ran.code == 0
    first, second, excerpt, third = ran.out.splitlines()
    assert first.split()[:2] == [f"claude-code.{sample.SESSION}", "7"]
    assert first.endswith("✓ Done: totals round half up.")
    assert second.endswith("✓ Edit: sum.py (+1/-1)")
    # A line that has the words itself needs no excerpt.
    assert excerpt.startswith("    ")
    assert "Half up is asked for." in excerpt
    assert third.endswith("✓ Make totals round half up")
    assert (worked.home / "index.db").exists()


def test_json_has_the_query_the_records_and_how_much_is_indexed(worked: Aver) -> None:
    ran = worked("search", "outcome:denied", "--json")
    (hit,) = ran.json["hits"]
    assert (hit["chain"], hit["sequence"], hit["status"]) == (f"claude-code.{sample.SESSION}", 4, "verified")
    assert hit["record"]["summary"] == "Bash: rm -rf /"
    assert ran.json["query"]["outcome"] == ["blocked"]
    assert ran.json["indexed"]["complete"] is True
    assert ran.json["next"] is None


def test_a_few_words_around_the_hit_come_from_the_record(aver: Aver) -> None:
    told = f"{'before ' * 20}The \x1b[2J\u202e needle\nlies here. {'after ' * 20}"
    aver.seal({"type": "tool", "reasoning": {"analysis": told}, "outcome": {"status": "success", "summary": "short"}})
    (hit,) = aver("search", "NEEDLE", "--json").json["hits"]
    before, found, after = hit["excerpt"].values()
    assert before.startswith("… ")
    assert before.endswith("before The \x1b[2J\u202e ")
    assert (found, after[:12], after[-2:]) == ("needle", " lies here. ", " …")
    assert len(before) + len(found) + len(after) < 150
    _, line = aver("search", "need*").out.splitlines()
    assert line.startswith("    … ")
    assert "The \\x1b[2J\\u202e need" in line
    (only,) = aver("search", "kind:call").out.splitlines()
    assert only.endswith("short")


def test_the_next_page(worked: Aver) -> None:
    ran = worked("search", "half", "-n", "2")
    assert len([line for line in ran.out.splitlines() if not line.startswith(" ")]) == 2
    cursor = ran.err.split("--cursor ")[1].strip()
    assert worked("search", "half", "--cursor", cursor).out.endswith("✓ Make totals round half up\n")
    assert worked("search", "other", "--cursor", cursor).code == 2


@pytest.mark.parametrize("given", [(), ("->",), ("since:never",), ("half", "-n", "501"), ("half", "--cursor", "x")])
def test_wrong_usage(worked: Aver, given: tuple[str, ...]) -> None:
    ran = worked("search", *given)
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err


def test_a_record_that_does_not_verify_is_named(worked: Aver) -> None:
    assert worked("search", "half").code == 0
    with open_ledger(home=worked.home) as ledger:
        unguarded(ledger).execute(
            "UPDATE records SET canonical = replace(canonical, 'half', 'fish') WHERE sequence = 1"
        )
    ran = worked("search", "half")
    assert ran.code == 1
    assert "this record does not verify: HASH_MISMATCH" in " ".join(ran.out.split())
    broken = [hit for hit in worked("search", "half", "--json").json["hits"] if hit["status"] == "failed"]
    assert [(hit["sequence"], hit["finding"]["code"]) for hit in broken] == [(1, "HASH_MISMATCH")]


def test_a_record_that_is_gone_is_named(worked: Aver) -> None:
    assert worked("search", "half").code == 0
    with open_ledger(home=worked.home) as ledger:
        unguarded(ledger).execute("DELETE FROM records WHERE sequence = 1")
    ran = worked("search", "half", "--as-is")
    assert ran.code == 1
    assert "this record cannot be read any more" in ran.out


def test_it_reads_a_bundle_and_leaves_nothing(worked: Aver) -> None:
    assert worked("export", "--out", "bundle").code == 0
    ran = worked("search", "half", "--ledger", "bundle", "--json")
    assert (ran.code, len(ran.json["hits"]), ran.json["verdict"]["status"]) == (0, 3, "verified")
    assert not (worked.home / "index.db").exists()
    assert "bundle bundle, read-only: verified" in worked("search", "half", "--ledger", "bundle").err


def test_what_a_bundle_does_not_hold_is_not_found(worked: Aver) -> None:
    assert worked("export", "--out", "bundle").code == 0
    path = worked.directory / "bundle" / f"claude-code.{sample.SESSION}.json"
    path.write_text(path.read_text().replace("Make totals round half up", "Make totals round half down", 1))
    ran = worked("search", "half", "--ledger", "bundle")
    assert ran.code == 1
    assert "Make totals" not in ran.out
    assert "first bad place" in ran.err


def test_a_broken_index_is_said_and_rebuilt(worked: Aver) -> None:
    (worked.home / "index.db").write_bytes(b"no database at all")
    ran = worked("search", "half")
    assert ran.code == 3
    assert "aver search --rebuild" in ran.err
    assert worked("sessions").code == worked("log").code == worked("verify").code == 0
    ran = worked("search", "--rebuild")
    assert (ran.code, ran.out) == (0, "the index has 16 of 16 records\n")
    assert worked("search", "half").code == 0


def test_a_directory_in_its_place_is_said(worked: Aver) -> None:
    (worked.home / "index.db").mkdir()
    for given in (("half",), ("--rebuild",)):
        ran = worked("search", *given)
        assert ran.code == 3
        assert "not a regular file" in ran.err
    assert worked("verify").code == 0


def test_hostile_texts_reach_no_terminal(aver: Aver) -> None:
    aver.seal({**ONE_DRAFT, "outcome": {"status": "success", "summary": "needle \x1b[31m\u202e\x07"}})
    ran = aver("search", "needle")
    assert "needle \\x1b[31m\\u202e\\x07" in ran.out
    ran = aver("search", "\x1b[31m\u202e...")
    assert "\x1b" not in ran.out + ran.err
    assert "\u202e" not in ran.out + ran.err


def test_a_request_that_is_no_prompt_is_found_and_quoted(aver: Aver) -> None:
    """The first example of docs/explorer.md: a record that tells nothing but its request."""
    aver.seal({"type": "tool", "trigger": {"source": "ci", "request": "run the tests"}})
    (hit,) = aver("search", "tests", "--json").json["hits"]
    assert (hit["excerpt"]["before"], hit["excerpt"]["hit"]) == ("run the ", "tests")


def test_words_of_a_later_call_are_quoted(aver: Aver) -> None:
    calls = [{"tool": "Compile", "result": "fine"}, {"tool": "Link", "error": "an undefined symbol"}]
    aver.seal({"type": "agent", "execution": {"tool_calls": calls}, "outcome": {"status": "failure", "summary": "no"}})
    (hit,) = aver("search", "undefined", "tool:link", "--json").json["hits"]
    assert hit["excerpt"]["hit"] == "undefined"
    assert hit["excerpt"]["after"].startswith(" symbol")
