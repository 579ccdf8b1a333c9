"""`evidence.jsonl`: every change is found, missing evidence qualifies the verdict, and earlier files still open."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import aver
from aver.actions import run_evidence
from aver.gate.action import Action
from aver.gate.approvals import approve, recent_requests
from support.approvals import enrolled, somebody
from support.runs import (
    DIFF,
    EVIDENCE_FILE,
    MEMBERS,
    Members,
    SealedRun,
    lines_of,
    packed,
    record_actions,
    unpacked,
    with_owners_head,
    with_strangers_head,
    with_true_manifest,
)

ADA = somebody("ada")
EARLIER = Path(__file__).parent / "earlier"

Lines = list[bytes]
Change = Callable[[Lines], Lines]


@pytest.fixture(scope="module")
def asking_run(tmp_path_factory: pytest.TempPathFactory) -> SealedRun:
    """A run with a gated change, and a command that a person approved."""
    at = tmp_path_factory.mktemp("asking")
    with aver.open_ledger(home=at / "home") as ledger:
        enrolled(ledger, ADA)
        ledger.keys.trust(ADA.public)
        run = aver.AgentRuntime(at / "run", ledger=ledger, workspace=at, run_id="run_1")
        record_actions(run, 3, gated=(1, 2))
        removal: dict[str, Any] = {"tool": "Bash", "arguments": {"command": "rm -r build"}}
        run.gate(action_type="shell_exec", **removal)
        approve(ledger, list(recent_requests(ledger))[-1], ADA, shown="rm -r build")
        answer = run.gate(action_type="shell_exec", **removal)
        run.record_simple("shell_exec", "", removal["arguments"], "done", gate_id=answer["gate_id"])
        summary = run.finalize()
        run.close()
        key = ledger.keys.ring().active("ledger").key
    assert summary["verdict"] == "verified"
    return SealedRun(at / "run", at / "home", run.run_id, run.chain, key, summary)


def judge(members: Members, run: SealedRun) -> aver.Verdict:
    return aver.verify(packed(members), keys=[run.key, ADA.public], home=run.home)


def is_blob(line: bytes) -> bool:
    return b'"sha256"' in line[:12]


def first(lines: Lines, matches: Callable[[bytes], bool]) -> int:
    return next(number for number, line in enumerate(lines) if matches(line))


def edit_json(line: bytes, **values: Any) -> bytes:
    return json.dumps({**json.loads(line), **values}, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def edit_first_blob(**values: Any) -> Change:
    def change(lines: Lines) -> Lines:
        at = first(lines, is_blob)
        return [*lines[:at], edit_json(lines[at], **values), *lines[at + 1 :]]

    return change


def drop(matches: Callable[[bytes], bool]) -> Change:
    def change(lines: Lines) -> Lines:
        at = first(lines, matches)
        return lines[:at] + lines[at + 1 :]

    return change


def of_chain(name: str) -> Callable[[bytes], bool]:
    return lambda line: line.startswith(f'{{"chain":"{name}'.encode())


def is_use(line: bytes) -> bool:
    return of_chain("approvals.")(line) and b'\\"kind\\":\\"approval.use\\"' in line


def swap(one: int, other: int) -> Change:
    def change(lines: Lines) -> Lines:
        lines[one], lines[other] = lines[other], lines[one]
        return lines

    return change


EMPTY_BLOB = b'{"sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","text":""}\n'

FOUND_EVEN_WITH_THE_KEY: dict[str, Change] = {
    "the text of a blob": edit_first_blob(text="{}"),
    "the digest of a blob": edit_first_blob(sha256="0" * 64),
    "a blob with a key more": edit_first_blob(note="trust me"),
    "a blob that is no text": edit_first_blob(text=7),
    "a blob that nothing refers to": lambda lines: [*lines, EMPTY_BLOB],
    "a blob twice": lambda lines: [*lines, lines[-1]],
    "a line of something else": lambda lines: [*lines, b"[]\n"],
    "a line that is no JSON": lambda lines: [*lines, b"{\n"],
    "a line that is too long": lambda lines: [*lines, b" " * (run_evidence.BLOB_LINE_MAX + 2) + b"\n"],
    "the roster's first record dropped": drop(of_chain("approvers.")),
    "a request dropped": drop(of_chain("approvals.")),
    "the use of an approval dropped": drop(is_use),
    "the use of an approval twice": lambda lines: [*lines, lines[first(lines, is_use)]],
    "a roster record twice": lambda lines: [*lines, lines[0]],
    "two approval records swapped": swap(1, 2),
    "a record of another chain": lambda lines: [*lines, lines[0].replace(b'"approvers.', b'"meta.approvers.', 1)],
    "the content of a record": lambda lines: [lines[0].replace(b"person:ada", b"person:bob"), *lines[1:]],
    "the signature of a record": lambda lines: [edit_json(lines[0], signature="0" * 128), *lines[1:]],
    "the hash of a record": lambda lines: [edit_json(lines[0], hash="0" * 64), *lines[1:]],
}


def changed(run: SealedRun, change: Change) -> Members:
    members = run.members
    lines = change(lines_of(members, EVIDENCE_FILE))
    assert b"".join(lines) != members[EVIDENCE_FILE]
    return {**members, EVIDENCE_FILE: b"".join(lines)}


@pytest.mark.sample(4)
@pytest.mark.parametrize("row", FOUND_EVEN_WITH_THE_KEY)
def test_a_change_is_found_even_if_the_owner_signs_it(asking_run: SealedRun, row: str) -> None:
    members = changed(asking_run, FOUND_EVEN_WITH_THE_KEY[row])
    for other in (members, with_true_manifest(members), with_owners_head(members, asking_run)):
        verdict = judge(other, asking_run)
        assert verdict.status == "failed", verdict.to_dict()
        assert verdict.first_bad is not None


def test_lines_belong_where_they_are(asking_run: SealedRun) -> None:
    """Without the key, no two lines can be swapped, and none can be dropped."""
    count = len(lines_of(asking_run.members, EVIDENCE_FILE))
    assert count > 6
    for at in range(count):
        others: list[Change] = [lambda lines, at=at: lines[:at] + lines[at + 1 :]]  # type: ignore[misc]
        if at:
            others.append(swap(0, at))
        for change in others:
            members = changed(asking_run, change)
            assert judge(members, asking_run).status == "failed"
            assert judge(with_true_manifest(members), asking_run).status == "failed"


@pytest.mark.more
def test_no_byte_can_be_changed(asking_run: SealedRun) -> None:
    raw = asking_run.members[EVIDENCE_FILE]
    for at in range(0, len(raw), max(1, len(raw) // 40)):
        flipped = raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]
        members = {**asking_run.members, EVIDENCE_FILE: flipped}
        assert judge(members, asking_run).status == "failed"
        assert judge(with_true_manifest(members), asking_run).status == "failed"


def test_the_member_cannot_be_dropped_renamed_or_moved(asking_run: SealedRun) -> None:
    members = asking_run.members
    evidence = members.pop(EVIDENCE_FILE)
    for other in (
        members,
        {**members, "evidence.json": evidence},
        {**members, "blobs.jsonl": evidence},
        {EVIDENCE_FILE: evidence, **members},
        {**members, EVIDENCE_FILE: b""},
        {**members, EVIDENCE_FILE: evidence + evidence},
    ):
        assert judge(other, asking_run).status == "failed"


def test_evidence_that_the_manifest_does_not_list_fails() -> None:
    """A run without decisions has no evidence, and takes none."""
    verdict = aver.verify(EARLIER / "plain.cap", keys=[key_of_earlier()])
    assert verdict.status == "verified"
    members = {**unpacked((EARLIER / "plain.cap").read_bytes()), EVIDENCE_FILE: b""}
    assert aver.verify(packed(members), keys=[key_of_earlier()]).status == "failed"


@pytest.mark.parametrize("matches", [is_blob, lambda line: True], ids=["blobs", "all lines"])
def test_evidence_that_the_owner_leaves_out(asking_run: SealedRun, matches: Callable[[bytes], bool]) -> None:
    """Without blobs the verdict names the check; without approvals the approved decision fails."""
    members = changed(asking_run, lambda lines: [line for line in lines if not matches(line)])
    verdict = judge(with_owners_head(members, asking_run), asking_run)
    assert verdict.status == ("qualified" if matches is is_blob else "failed"), verdict.to_dict()
    if matches is is_blob:
        assert "could not be made again" in verdict.check("decisions").reason


def test_a_file_without_evidence_is_qualified(asking_run: SealedRun) -> None:
    """As earlier versions wrote it: both checks are named."""
    members = asking_run.members
    del members[EVIDENCE_FILE]
    verdict = judge(with_owners_head(members, asking_run), asking_run)
    assert verdict.status == "qualified", verdict.to_dict()
    for check in ("decisions", "approvals"):
        assert verdict.check(check).status == "not_checked"
        assert verdict.check(check).matters


def key_of_earlier() -> str:
    return (EARLIER / "key.txt").read_text().strip()


def test_files_of_earlier_versions_still_open() -> None:
    """Written before there was an evidence file: the actions are loaded, and the missing check is named."""
    assert list(unpacked((EARLIER / "gated.cap").read_bytes())) == list(MEMBERS)
    assert aver.verify(EARLIER / "plain.cap", keys=[key_of_earlier()]).status == "verified"
    verdict = aver.verify(EARLIER / "gated.cap", keys=[key_of_earlier()])
    assert verdict.status == "qualified"
    assert [check.name for check in verdict.checks if check.matters] == ["decisions"]
    assert "is not in the run's files" in verdict.check("decisions").reason
    assert verdict.check("gates").status == "passed"


def test_a_strangers_head_over_changed_evidence_is_not_trusted(asking_run: SealedRun) -> None:
    members = changed(asking_run, drop(is_blob))
    verdict = judge(with_strangers_head(members), asking_run)
    assert (verdict.status, verdict.integrity) == ("qualified", "unsigned")


# --- writing


def test_the_same_ledger_gives_the_same_bytes(asking_run: SealedRun) -> None:
    cap = asking_run.cap
    with aver.open_ledger(home=asking_run.home) as ledger:
        (asking_run.path / EVIDENCE_FILE).unlink()
        aver.AgentRuntime(asking_run.path, ledger=ledger, workspace=asking_run.path.parent).close()
    assert (asking_run.path / EVIDENCE_FILE).read_bytes() == asking_run.members[EVIDENCE_FILE]
    assert asking_run.cap == cap


def test_a_run_without_decisions_has_six_files(tmp_path: Path) -> None:
    with aver.open_ledger(home=tmp_path / "home") as ledger:
        run = aver.AgentRuntime(tmp_path / "run", ledger=ledger, workspace=tmp_path)
        record_actions(run, 2)
        assert run.finalize()["verdict"] == "verified"
        run.close()
    assert list(unpacked((tmp_path / "run" / "run.cap").read_bytes())) == list(MEMBERS)


@pytest.mark.parametrize("limit", ["BLOBS_MAX", "BLOB_LINE_MAX"])
def test_evidence_that_is_too_large_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(run_evidence, limit, 1000)
    with aver.open_ledger(home=tmp_path / "home") as ledger:
        run = aver.AgentRuntime(tmp_path / "run", ledger=ledger, workspace=tmp_path)
        record_actions(run, 2, gated=(1,))
        assert run.finalize()["verdict"] == "qualified"
        check = run.verify().check("decisions")
        run.close()
    assert (check.status, check.matters) == ("not_checked", True)
    assert "is not in the run's files" in check.reason
    assert DIFF.splitlines()[0] in (tmp_path / "run" / EVIDENCE_FILE).read_text()  # Small blobs are there.


def test_a_blob_that_is_not_text_is_carried(tmp_path: Path) -> None:
    """A lone surrogate has no UTF-8 form, so the diff's bytes are written as base64."""
    with aver.open_ledger(home=tmp_path / "home") as ledger:
        run = aver.AgentRuntime(tmp_path / "run", ledger=ledger, workspace=tmp_path)
        record_actions(run, 1)
        run.gate(DIFF.replace("fast", "f\udc00st"))
        assert run.finalize()["verdict"] == "verified"
        run.close()
    assert '"base64":' in (tmp_path / "run" / EVIDENCE_FILE).read_text()


def test_a_decision_of_another_session_comes_without_its_past(tmp_path: Path) -> None:
    """The decision is made again; the decisions before it are not here, and the verdict names that."""
    with aver.open_ledger(home=tmp_path / "home") as ledger:
        gates = [ask_elsewhere(ledger, tmp_path, f"step {number}") for number in range(3)]
        run = aver.AgentRuntime(tmp_path / "run", ledger=ledger, workspace=tmp_path)
        run.record_simple("code_edit", "step 0", {}, "done", gate_id=gates[0], diff_text=DIFF)
        assert run.finalize()["verdict"] == "verified"  # The first of its session has no past.
        run.close()
        run = aver.AgentRuntime(tmp_path / "other", ledger=ledger, workspace=tmp_path)
        run.record_simple("code_edit", "step 2", {}, "done", gate_id=gates[2], diff_text=DIFF)
        assert run.finalize()["verdict"] == "qualified"
        check = run.verify().check("decisions")
        run.close()
    assert "1 could not be compared with the decisions before" in check.reason


def ask_elsewhere(ledger: aver.Ledger, at: Path, description: str) -> str:
    action = Action(type="code_edit", diff=DIFF, description=description, session="s1", workspace=str(at))
    answer = aver.ask(ledger, action)
    assert answer.allows
    return str(answer.decision.gate_id)
