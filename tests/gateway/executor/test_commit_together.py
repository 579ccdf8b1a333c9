"""PREVIEW and COMMIT in one call, with the executor in this process: one durable commit has decision, PREVIEW and mark.

All of them are there, or none: whenever the process dies, whoever comes first. Nothing that the executor refuses is
different from a COMMIT by itself.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aver import Action, Ledger, ask, open_ledger
from aver.gateway import gateway as gateway_module
from aver.gateway.act_records import mark_key
from aver.gateway.executor.executor import EffectDone, Executor
from aver.ledger import Entry
from support.acts import Office, open_office

STEPS = frozenset({"execute", "executemany", "fsync", "link", "open", "rename", "replace", "unlink", "write"})
"""Functions of the system and of SQLite by which an act changes, or may change, something."""

LAST_STEP = 200
"""More than an act has."""


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    with open_office(tmp_path / "work") as opened:
        yield opened


def list_kinds(ledger: Ledger, chain: str) -> list[str]:
    return [str(record.kind) for record in ledger.read(chain)]


class TestOneCommit:
    def test_an_act_takes_two_durable_commits(self, office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
        office.write("first.txt")
        commits: list[list[str]] = []
        append = office.ledger.append_together

        def note(entries: list[Entry], **more: Any) -> Any:
            commits.append([entry.chain for entry in entries])
            return append(entries, **more)

        monkeypatch.setattr(office.ledger, "append_together", note)
        assert office.write("second.txt")["reason_code"] == "ALLOW"
        assert commits == [["gate.s1", "gateway.s1", "gateway.s1"], ["gateway.s1"]]
        assert list_kinds(office.ledger, "gateway.s1")[-3:] == ["act.preview", "act.commit", "act.outcome"]
        assert office.ledger.verify().status == "verified"

    def test_the_records_are_those_of_two_calls(self, office: Office) -> None:
        """The same keys, links and statements, whether PREVIEW and COMMIT come together or apart."""
        office.write("first.txt")  # The first record of a chain says more.
        assert office.write("a.txt")["reason_code"] == "ALLOW"
        assert office.commit(office.preview("b.txt")["data"]["tx_id"])["reason_code"] == "ALLOW"
        first, second = (
            {str(record.kind): record.to_dict() for record in records}
            for records in (
                [*office.ledger.read("gateway.s1", 3, 6)],
                [*office.ledger.read("gateway.s1", 6, 9)],
            )
        )
        assert first.keys() == second.keys() == {"act.preview", "act.commit", "act.outcome"}
        for kind, content in first.items():
            assert shape(content) == shape(second[kind])
        for acts in (first, second):
            assert acts["act.commit"]["parent_id"] == acts["act.preview"]["id"]
            assert acts["act.outcome"]["parent_id"] == acts["act.commit"]["id"]

    def test_a_refusal_of_the_executor_is_recorded_after_the_preview(self, office: Office) -> None:
        executor: Any = office.gateway._executor
        executor._effects = {}
        assert office.write()["reason_code"] == "EXECUTOR_UNAVAILABLE"
        assert office.kinds() == ["act.preview", "act.outcome"]
        assert office.ledger.verify().status == "verified"

    def test_evidence_that_does_not_hold_burns_nothing(self, office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
        executor: Any = office.gateway._executor
        honest = executor._program_id
        executor._program_id = lambda: "another program"
        assert office.write()["reason_code"] == "BAD_COMMIT_PROOF"
        assert office.kinds() == ["act.preview", "act.outcome"]
        executor._program_id = honest
        tx_id = f"tx_{next(office.ledger.read('gateway.s1')).id}"
        assert office.commit(tx_id)["reason_code"] == "ALLOW"
        assert office.ledger.verify().status == "verified"

    def test_a_result_that_no_record_can_hold_is_no_act_that_did_not_happen(self, office: Office) -> None:
        """The mark is there and the effect is done: the answer must not say that nothing was done."""
        deep: Any = "x"
        for _ in range(5000):
            deep = [deep]
        executor: Any = office.gateway._executor
        executor._effects = {"WriteWorkspaceFile": lambda order: EffectDone("done", {"deep": deep})}
        answer = office.write()
        assert answer["reason_code"] == "EXECUTOR_UNAVAILABLE"
        assert "nothing was done" not in answer["summary"]
        assert office.kinds() == ["act.preview", "act.commit"]


def shape(content: Any) -> Any:
    """The keys of a record, and the types of its values."""
    if isinstance(content, dict):
        return {name: shape(value) for name, value in content.items()}
    if isinstance(content, list):
        return [shape(value) for value in content]
    return type(content).__name__


class TestRaces:
    def test_another_decision_of_the_session_comes_first(self, office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
        """The ledger refuses the commit (`HeadMoved`), and Aver decides anew: with new records, all of them once."""
        append = office.ledger.append_together
        attempts: list[int] = []

        def overtake(entries: list[Entry], **more: Any) -> Any:
            if len(entries) == 3:
                attempts.append(1)
            if len(attempts) <= 2 and len(entries) == 3:
                action = Action(type="file_read", tool="Read", workspace=office.gateway.workspace, session="s1")
                ask(office.ledger, action)
            return append(entries, **more)

        monkeypatch.setattr(office.ledger, "append_together", overtake)
        answer = office.write()
        assert (answer["reason_code"], len(attempts)) == ("ALLOW", 3)
        assert office.kinds() == ["act.preview", "act.commit", "act.outcome"]
        assert list_kinds(office.ledger, "gate.s1") == ["gate.decision"] * 3
        assert (office.workspace / "notes.txt").read_text() == "one\n"
        assert office.ledger.verify().status == "verified"

    def test_an_act_of_the_same_id_was_carried_out_before(
        self, office: Office, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(gateway_module, "new_action_id", lambda: "a_AAAAAAAAAAAAAAAA")
        assert office.write("a.txt")["reason_code"] == "ALLOW"
        assert office.write("b.txt")["reason_code"] == "REPLAY_DENY"
        assert not (office.workspace / "b.txt").exists()
        assert office.kinds() == ["act.preview", "act.commit", "act.outcome", "act.preview", "act.outcome"]

    def test_of_acts_with_one_id_at_the_same_time_one_is_carried_out(
        self, office: Office, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(gateway_module, "new_action_id", lambda: "a_BBBBBBBBBBBBBBBB")
        start, answers = threading.Barrier(4), list[str]()

        def act(number: int) -> None:
            start.wait()
            answers.append(office.write(f"{number}.txt")["reason_code"])

        threads = [threading.Thread(target=act, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert Counter(answers) == {"ALLOW": 1, "REPLAY_DENY": 3}
        assert len(list(office.workspace.iterdir())) == 1
        assert office.kinds().count("act.commit") == 1
        assert office.ledger.get(mark_key("a_BBBBBBBBBBBBBBBB")) is not None

    def test_a_commit_that_fails_leaves_no_part_of_itself(
        self, office: Office, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The mark's key is taken between the executor's checks and the commit: the PREVIEW is sealed alone then."""
        prepare, keys = Executor.prepare_commit, list[str]()

        def take_key(self: Executor, *given: Any) -> Any:
            found = prepare(self, *given)
            if found is not None and not keys:
                keys.append(str(found.mark.key))
                office.ledger.append(found.mark.chain, found.mark.draft, key=found.mark.key)
            return found

        monkeypatch.setattr(Executor, "prepare_commit", take_key)
        assert office.write()["reason_code"] == "REPLAY_DENY"
        assert office.kinds() == ["act.commit", "act.preview", "act.outcome"]
        assert not (office.workspace / "notes.txt").exists()


class Death:
    """Kills this process before the N-th step of an act."""

    def __init__(self, number: int) -> None:
        self._left = number

    def __call__(self, frame: Any, event: str, function: Any) -> None:
        if event == "c_call" and getattr(function, "__name__", "") in STEPS:
            self._left -= 1
            if not self._left:
                os.kill(os.getpid(), signal.SIGKILL)


def act_and_die(home: Path, work: Path, number: int) -> bool:
    """Do an act in a child process, which dies before its N-th step. Returns whether it died."""
    child = os.fork()
    if not child:
        try:
            with open_ledger(home=home) as ledger, open_office(work, ledger) as office:
                office.write(f"before-{number}.txt")
                sys.setprofile(Death(number))
                office.write(f"{number}.txt", "whole\n")
                sys.setprofile(None)
                os._exit(0)
        finally:
            os._exit(1)
    status = os.waitpid(child, 0)[1]
    assert status == 0 or os.WTERMSIG(status) == signal.SIGKILL, status
    return status != 0


def require_all_or_none(ledger: Ledger, work: Path, number: int) -> None:
    """Decisions, PREVIEWs and marks are as many; a file needs a mark; no act is without an outcome any more."""
    kinds = Counter(list_kinds(ledger, "gateway.s1"))
    assert len(list_kinds(ledger, "gate.s1")) == kinds["act.preview"] == kinds["act.commit"] == kinds["act.outcome"]
    marks = Counter(record.to_dict()["trigger"]["correlation_id"] for record in ledger.find(kind="act.commit"))
    assert set(marks.values()) == {1}
    path = work / f"{number}.txt"
    assert not path.exists() or path.read_text() == "whole\n"
    assert len([each for each in work.iterdir() if not each.name.startswith(".")]) <= len(marks)
    verdict = ledger.verify()
    assert {(found.status, found.code) for found in verdict.findings} <= {("warning", "OUTCOME_UNKNOWN")}


def crash(tmp_path: Path, choose: Callable[[int], bool]) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    for number in range(1, LAST_STEP):
        if not choose(number):
            continue
        has_died = act_and_die(home, work, number)
        with open_ledger(home=home) as ledger, open_office(work, ledger) as office:
            require_all_or_none(ledger, work, number)
            assert office.write(f"after-{number}.txt")["reason_code"] == "ALLOW"
        if not has_died:
            assert number > 20  # Else the steps were not counted.
            return
    raise AssertionError(f"an act has more than {LAST_STEP} steps")


@pytest.mark.more
def test_a_crash_between_some_steps_leaves_all_or_none(tmp_path: Path) -> None:
    crash(tmp_path, lambda number: number % 7 == 0)


@pytest.mark.long
def test_a_crash_between_more_steps_leaves_all_or_none(tmp_path: Path) -> None:
    crash(tmp_path, lambda number: number % 3 == 1)


@pytest.mark.long
def test_a_crash_between_any_two_steps_leaves_all_or_none(tmp_path: Path) -> None:
    crash(tmp_path, lambda number: True)
