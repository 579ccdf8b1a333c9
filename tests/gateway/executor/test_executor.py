"""The executor believes nobody: orders that a hostile gateway could send, marks of dead executors, lock files."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aver import Ledger, open_ledger
from aver.errors import OutcomeUnknown, Unavailable
from aver.files.locks import open_lock_file, try_lock
from aver.gateway.act_records import outcome_key, read_preview
from aver.gateway.executor import executor_life
from aver.gateway.executor.commit_order import CommitOrder
from aver.gateway.executor.executor import EffectDone
from aver.gateway.executor.executor_life import ExecutorLife
from aver.ledger import Entry
from aver.ledger.bundle.export import export_bundle
from support.act_ledgers import add_rules, prepare_home
from support.acts import Office, open_office


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    with open_office(tmp_path / "work") as opened:
        yield opened


def change_orders(office: Office, change: Callable[[CommitOrder], CommitOrder]) -> None:
    """Let the gateway change every order before the executor gets it."""
    execute = office.gateway._executor.execute
    hostile: Any = type("Hostile", (), {"execute": lambda self, order: execute(change(order))})()
    office.gateway._executor = hostile


def decision_of(office: Office, answer: dict[str, Any]) -> str:
    record = office.ledger.get(answer["data"]["tx_id"].removeprefix("tx_"))
    assert record is not None
    return read_preview(record, office.ledger.blob).decision_id


class TestDecision:
    def test_a_decision_about_another_act_of_the_same_request_is_refused(self, office: Office) -> None:
        first, second = office.preview(), office.preview()
        change_orders(office, lambda order: replace(order, decision=decision_of(office, second)))
        answer = office.commit(first["data"]["tx_id"])
        assert answer["reason_code"] == "POLICY_DENY"
        assert "another act" in answer["summary"]
        assert office.ledger.verify().status == "verified"

    def test_the_flag_does_not_stand_for_a_decision_about_another_request(self, tmp_path: Path) -> None:
        with open_office(tmp_path / "work", confirm="flag") as office:
            for name in ("a.txt", "b.txt"):
                (office.workspace / name).write_text("x")
            first = office.act("CheckDeleteWorkspaceFile", {"relpath": "a.txt"})
            second = office.act("CheckDeleteWorkspaceFile", {"relpath": "b.txt"})
            change_orders(office, lambda order: replace(order, decision=decision_of(office, second)))
            answer = office.act("DeleteWorkspaceFile", {"tx_id": first["data"]["tx_id"]}, user_confirm=True)
            assert answer["reason_code"] == "POLICY_DENY"
            assert (office.workspace / "a.txt").exists()

    def test_a_decision_that_is_not_there_is_missing_evidence(self, office: Office) -> None:
        tx_id = office.preview()["data"]["tx_id"]
        change_orders(office, lambda order: replace(order, decision=""))
        assert office.commit(tx_id)["reason_code"] == "MISSING_EVIDENCE"


class TestPatch:
    @pytest.mark.parametrize("wanted", ['@patch("CLAMP_LEN 1")', '@patch("REDACT")', ""])
    def test_a_patch_that_the_rules_have_changed_since_the_preview_is_not_applied(
        self, aver_home: Path, tmp_path: Path, wanted: str
    ) -> None:
        """Shares name a patch without its parameter, so the parameter of the PREVIEW could be an old one."""
        prepare_home(aver_home)
        add_rules(aver_home)
        rules = aver_home / "policy" / "90-office.cedar"
        with open_ledger(home=aver_home) as ledger, open_office(tmp_path / "work", ledger) as office:
            shown = office.preview("a.txt", "123456\n", caller="agent:clipped")
            assert shown["data"]["patch"]["params"] == {"max_chars": 3}
            rules.write_text(rules.read_text().replace('@patch("CLAMP_LEN 3")', wanted))
            answer = office.commit(shown["data"]["tx_id"], caller="agent:clipped")
            assert answer["reason_code"] == "POLICY_DENY"
            assert not list(office.workspace.iterdir())
            assert ledger.verify().status == "verified"


class TestOrderOfChecks:
    def test_evidence_comes_before_an_approval_that_does_not_hold(self, office: Office) -> None:
        tx_id = office.preview()["data"]["tx_id"]
        change_orders(office, lambda order: replace(order, commit=None, approval=order.decision))
        assert office.commit(tx_id)["reason_code"] == "MISSING_EVIDENCE"

    def test_an_approval_that_is_none_is_refused_although_none_is_needed(self, office: Office) -> None:
        tx_id = office.preview()["data"]["tx_id"]
        change_orders(office, lambda order: replace(order, approval=order.decision))
        answer = office.commit(tx_id)
        assert (answer["reason_code"], "no such use" in answer["summary"]) == ("REQUIRE_CONFIRM", True)

    def test_a_replay_comes_before_the_confirmation(self, office: Office) -> None:
        tx_id = office.preview()["data"]["tx_id"]
        assert office.commit(tx_id)["reason_code"] == "ALLOW"
        kept: list[CommitOrder] = []
        change_orders(office, lambda order: kept.append(order) or order)  # type: ignore[func-returns-value]
        office.write("b.txt")
        change_orders(office, lambda order: replace(order, approval="x"))
        assert office.gateway._executor.execute(kept[0])["reason_code"] == "REPLAY_DENY"


def leave_open_act(office: Office) -> str:
    """Have the executor of an office die between mark and outcome, in a child process. Returns the act's id."""
    child = os.fork()
    if not child:
        office.gateway._executor._effects = {"WriteWorkspaceFile": lambda order: os._exit(0)}  # type: ignore[attr-defined]
        office.write("open.txt")
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    marks = list(office.ledger.find(kind="act.commit"))
    return str(marks[-1].to_dict()["outcome"]["result"]["action_id"])


class TestRecovery:
    def test_marks_in_an_import_do_not_keep_an_executor_from_starting(self, tmp_path: Path, aver_home: Path) -> None:
        with open_ledger(home=tmp_path / "other") as other, open_office(tmp_path / "elsewhere", other) as office:
            office.write()
            export_bundle(other, tmp_path / "bundle")
        with open_ledger() as ledger:
            with open_office(tmp_path / "work", ledger) as office:
                action_id = leave_open_act(office)
            imported = subprocess.run(
                [sys.executable, "-m", "aver", "import", str(tmp_path / "bundle")], capture_output=True, text=True
            )
            assert imported.returncode == 0, imported.stderr
            # As if the dead executor had begun before the acts of the bundle were done.
            (lock,) = (aver_home / "gateway" / "run").glob("*.lock")
            lock.write_text(lock.read_text().replace('"started": "20', '"started": "19'))
            with open_office(tmp_path / "work", ledger) as office:
                closed = ledger.get(outcome_key(action_id))
                assert closed is not None
                assert closed.to_dict()["outcome"]["result"]["reason_code"] == "OUTCOME_UNKNOWN"
                assert office.write()["reason_code"] == "ALLOW"

    @pytest.mark.parametrize("way", ["together", "apart"])
    def test_an_act_whose_mark_is_not_known_to_be_kept_is_closed_by_the_next_executor(
        self, tmp_path: Path, aver_home: Path, monkeypatch: pytest.MonkeyPatch, way: str
    ) -> None:
        with open_ledger() as ledger:
            with open_office(tmp_path / "work", ledger) as office:
                tx_id = office.preview()["data"]["tx_id"]
                with monkeypatch.context() as patch:
                    fail_after_the_commit_of_a_mark(ledger, patch)
                    answer = office.write("b.txt") if way == "together" else office.commit(tx_id)
                assert answer["status"] != "OK"
                (mark,) = ledger.find(kind="act.commit")
                action_id = str(mark.to_dict()["outcome"]["result"]["action_id"])
                assert office.write("c.txt")["reason_code"] == "ALLOW"  # Its end says nothing about the other act.
            assert ledger.get(outcome_key(action_id)) is None
            with open_office(tmp_path / "work", ledger):
                closed = ledger.get(outcome_key(action_id))
            assert closed is not None
            assert closed.to_dict()["outcome"]["result"]["reason_code"] == "OUTCOME_UNKNOWN"
            assert not list((aver_home / "gateway" / "run").glob("*.lock"))

    def test_an_act_whose_outcome_no_record_can_hold_is_closed_by_the_next_executor(self, tmp_path: Path) -> None:
        deep: Any = "x"
        for _ in range(5000):
            deep = [deep]
        with open_ledger() as ledger:
            with open_office(tmp_path / "work", ledger) as office:
                executor: Any = office.gateway._executor
                executor._effects = {"WriteWorkspaceFile": lambda order: EffectDone("done", {"deep": deep})}
                office.write()
            with open_office(tmp_path / "work", ledger) as office:
                assert office.kinds() == ["act.preview", "act.commit", "act.outcome"]

    def test_a_replay_and_a_refusal_leave_no_file(self, tmp_path: Path, aver_home: Path) -> None:
        with open_ledger() as ledger, open_office(tmp_path / "work", ledger) as office:
            tx_id = office.preview()["data"]["tx_id"]
            assert office.commit(tx_id)["reason_code"] == "ALLOW"
            assert office.commit(tx_id)["reason_code"] == "REPLAY_DENY"
        assert not list((aver_home / "gateway" / "run").glob("*.lock"))


def fail_after_the_commit_of_a_mark(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the ledger keep a mark, and say that it does not know."""
    append, append_together = ledger.append, ledger.append_together

    def append_one(chain: str, draft: Any, **more: Any) -> Any:
        sealed = append(chain, draft, **more)
        if str(more.get("key")).startswith("act:"):
            raise OutcomeUnknown("the disk failed")
        return sealed

    def append_some(entries: list[Entry], **more: Any) -> Any:
        sealed = append_together(entries, **more)
        if any(str(entry.key).startswith("act:") for entry in entries):
            raise OutcomeUnknown("the disk failed")
        return sealed

    monkeypatch.setattr(ledger, "append", append_one)
    monkeypatch.setattr(ledger, "append_together", append_some)


class TestLife:
    def test_first_marks_of_many_threads_take_one_lock(self, office: Office) -> None:
        answers: list[str] = []
        start = threading.Barrier(8)

        def act(number: int) -> None:
            start.wait()
            answers.append(office.write(f"{number}.txt")["reason_code"])

        threads = [threading.Thread(target=act, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert answers == ["ALLOW"] * 8
        (path,) = (office.ledger.config.home / "gateway" / "run").glob("*.lock")
        handle = open_lock_file(path)
        assert not try_lock(handle)
        os.close(handle)

    def test_an_executor_waits_for_another_one_that_looks_at_its_new_file(self, office: Office) -> None:
        life = ExecutorLife(office.ledger)
        life._directory.mkdir(parents=True, exist_ok=True)
        looker = open_lock_file(life._path)
        assert try_lock(looker)
        threading.Timer(0.2, lambda: os.close(looker)).start()
        life.begin()
        again = open_lock_file(life._path)
        assert not try_lock(again)
        os.close(again)
        life.end()

    def test_without_its_lock_an_executor_marks_nothing(self, office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(executor_life, "BEGIN_SECONDS", 0.05)
        life = ExecutorLife(office.ledger)
        life._directory.mkdir(parents=True, exist_ok=True)
        looker = open_lock_file(life._path)
        assert try_lock(looker)
        with pytest.raises(Unavailable):
            life.begin()
        os.close(looker)
