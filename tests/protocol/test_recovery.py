"""Killed at any moment, resumed by anybody: nothing is lost, doubled or invented, and no call is made twice."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from aver import clock
from aver.capsule.blobs import Blob
from aver.capsule.canonical import canonical_json
from aver.errors import OutcomeUnknown, Unavailable
from aver.gate.ask import ask
from aver.ledger import Ledger, open_ledger
from aver.protocol.calls import begin_call, build_action
from aver.protocol.events import Event
from aver.protocol.records.trace_files import hold_run_lock
from aver.protocol.rules.step import EventRefused
from aver.protocol.runner import ToolFailure, ToolResult
from aver.protocol.session import ProtocolSession
from aver.protocol.statements import Join, digest_json, sign_join
from support.forks import exit_of, in_child
from support.protocol_sessions import TASK, EasyRunner, claim_count, open_session, reach_claiming, reach_executing

TRACE = "storm"
CALLS = 2
KILLED = -signal.SIGKILL


class LoggingRunner(EasyRunner):
    """Notes every call in a file, so that a call that was made twice shows."""

    def __init__(self, log: Path) -> None:
        super().__init__()
        self.log = log

    def run(
        self, tool: str, arguments: Mapping[str, Any], *, seconds: float, output_max: int
    ) -> ToolResult | ToolFailure:
        with self.log.open("a") as file:
            file.write(f"{arguments['call']}\n")
        return super().run(tool, arguments, seconds=seconds, output_max=output_max)


def do_next(session: ProtocolSession) -> bool:
    """Do the next step of a small task, by what the trace shows. Returns whether there is one more."""
    fold = session.fold
    if fold.is_over:
        return False
    if fold.state == "planning":
        session.planner.propose("count")
    elif fold.state == "reviewing":
        session.critic.review(next(reversed(fold.proposals)), "approved", rationale="fine")
    elif fold.state == "auditing":
        session.auditor.audit()
    elif fold.open_intents:
        session.executor.run(next(iter(fold.open_intents)))
    elif (number := count_calls(fold.intents.values())) < CALLS or not fold.may_claim:
        failed = next((each for each in reversed(fold.intents.values()) if each.code == "OUTCOME_UNKNOWN"), None)
        proposal = next(reversed(fold.proposals))
        retry = failed is not None and failed is next(reversed(fold.intents.values()))
        arguments = failed.payload["arguments"] if retry and failed is not None else {"call": number}
        session.executor.intend(
            proposal,
            "count",
            arguments,
            justification="to count",
            retry_of=failed.id if retry and failed is not None else None,
        )
    elif not fold.claims:
        claim_count(session)
    else:
        session.executor.conclude("done")
    return True


def count_calls(intents: Any) -> int:
    return len({each.payload["arguments"]["call"] for each in intents if each.code == "COMPLETED"})


def drive(workspace: Path, log: Path) -> list[Event]:
    """Begin or resume the trace, and go on to its end."""
    with open_session(workspace, trace=TRACE, task=TASK, tools=LoggingRunner(log)) as session:
        while do_next(session):
            pass
        return list(session.events)


def kill_at(moment: int, *, after: bool) -> None:
    """Have this process killed at its n-th append to a trace: just before, or just after it is durable."""
    append = Ledger.append
    count = 0

    def counting(self: Ledger, chain: str, *given: Any, **more: Any) -> Any:
        nonlocal count
        if not chain.startswith("protocol."):
            return append(self, chain, *given, **more)
        count += 1
        if count == moment and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        sealed = append(self, chain, *given, **more)
        if count == moment:
            os.kill(os.getpid(), signal.SIGKILL)
        return sealed

    Ledger.append = counting  # type: ignore[method-assign]


def check_trace(events: list[Event], log: Path) -> None:
    """Nothing lost, doubled or invented: every intent has at most one start and one end, every start one end."""
    assert events[-1].after == "completed"
    starts = Counter(event.refs["intent"] for event in events if event.name == "tool_execution_started")
    ended = ("tool_execution_completed", "tool_execution_failed")
    ends = Counter(event.refs["intent"] for event in events if event.name in ended)
    assert set(starts.values()) <= {1}
    assert starts == ends
    made = Counter(log.read_text().split()) if log.exists() else Counter()
    # A call is made again only as a retry of one whose end nobody knows.
    retried = {event.refs["retry_of"] for event in events if "retry_of" in event.refs}
    unknown = {event.refs["intent"] for event in events if event.payload.get("code") == "OUTCOME_UNKNOWN"}
    assert retried <= unknown
    assert sum(made.values()) <= sum(starts.values())
    with open_ledger() as ledger:
        assert ledger.verify().status != "failed"


def test_the_small_task_comes_to_its_end(tmp_path: Path) -> None:
    log = tmp_path / "log"
    events = drive(tmp_path, log)
    check_trace(events, log)
    assert [event.name for event in events].count("tool_execution_completed") == CALLS
    assert len(events) == 3 + 3 * CALLS + 4


def storm(workspace: Path, moment: int, *, after: bool) -> None:
    log = workspace / "log"

    def work() -> None:
        kill_at(moment, after=after)
        drive(workspace, log)

    assert exit_of(in_child(work)) == KILLED
    check_trace(drive(workspace, log), log)


@pytest.mark.sample(4)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("moment", [1, 5, 6])
def test_killed_around_an_event_the_trace_goes_on(tmp_path: Path, moment: int, after: bool) -> None:
    storm(tmp_path, moment, after=after)


@pytest.mark.sample(8)
@pytest.mark.more
@pytest.mark.both_stores
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("moment", range(1, 3 + 3 * CALLS + 4 + 1))
def test_killed_around_any_event_the_trace_goes_on(tmp_path: Path, moment: int, after: bool) -> None:
    storm(tmp_path, moment, after=after)


def test_killed_while_a_call_runs_its_end_is_unknown_and_it_is_not_made_again(tmp_path: Path) -> None:
    log = tmp_path / "log"

    def work() -> None:
        runner = LoggingRunner(log)
        runner.before = lambda: os.kill(os.getpid(), signal.SIGKILL)
        with open_session(tmp_path, trace=TRACE, task=TASK, tools=runner) as session:
            while do_next(session):
                pass

    assert exit_of(in_child(work)) == KILLED
    with open_session(tmp_path, trace=TRACE) as session:
        last = session.events[-1]
        assert (last.name, last.payload["code"]) == ("tool_execution_failed", "OUTCOME_UNKNOWN")
        record = session.ledger.get(last.hash)
        assert record is not None
        assert (record.content["outcome"]["status"], record.content["outcome"]["error"]) == (
            "pending",
            "OUTCOME_UNKNOWN",
        )
        assert session.fold.running == {}
    assert log.read_text().split() == ["0"]


def test_a_call_is_not_given_up_while_its_runner_lives(tmp_path: Path) -> None:
    runner = EasyRunner()
    with open_session(tmp_path, tools=runner) as session:
        proposal = reach_executing(session)
        intent = session.executor.intend(proposal.id, "count", {}, justification="to count")
        found: list[int] = []

        def look() -> None:
            with open_session(tmp_path, trace=session.trace) as other:
                found.append(len(other.fold.running))

        runner.before = look
        assert session.executor.run(intent.id).name == "tool_execution_completed"
        assert found == [1]
        with open_session(tmp_path, trace=session.trace) as other:
            assert other.fold.running == {}


def test_a_call_of_another_home_is_given_up_only_after_its_time(
    tmp_path: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether a process of another home lives, nobody here can tell: only the time limit of its call counts."""
    with open_session(tmp_path, ledger=ledger) as session:
        trace, operator = session.trace, session.fold.participants["operator"].key
        with open_ledger(ledger.config.ledger, home=tmp_path / "zoes") as elsewhere:
            elsewhere.keys.trust(operator)
            # The other home has an agent of the same name as this one, and another key.
            elsewhere.keys.signer("agent:executor").public  # noqa: B018 - makes the key
            zoe: Any = elsewhere.keys.signer("agent:zoe")
            fold = session.fold
            join = Join(session.place, fold.task_sha256, fold.profile, "executor", "agent:zoe", zoe.public, clock.now())
            session.accept(sign_join(zoe, join))
            proposal = reach_executing(session)
            with open_session(tmp_path, ledger=elsewhere, trace=trace) as zoes:
                assert zoes.executor.agent == "agent:zoe"
                intent = start_from_elsewhere(session, zoes, proposal.id)
    with open_session(tmp_path, ledger=ledger, trace=trace) as session:
        assert list(session.fold.running)
    later = clock.now().replace("20", "21", 1)
    monkeypatch.setattr("aver.protocol.records.recovery.clock.now", lambda: later)
    monkeypatch.setattr("aver.ledger.append.now", lambda: later)
    with open_session(tmp_path, ledger=ledger, trace=trace) as session:
        last = session.events[-1]
        assert (last.agent, last.payload["code"], last.refs["intent"]) == ("agent:executor", "OUTCOME_UNKNOWN", intent)


def start_from_elsewhere(session: ProtocolSession, zoes: ProtocolSession, proposal: str) -> str:
    """Have an executor elsewhere contribute an intent and a start. The gate of the operator's home decides."""
    call = {"tool": "count", "arguments": {}}
    payload = {
        **call,
        "input_sha256": digest_json(call),
        "risk": {"declared": None, "derived": "low"},
        "justification": "to count",
        "repeatable": False,
    }
    sent = zoes.contribute("agent:zoe", "tool_intent_signed", payload, refs={"proposal": proposal})
    intent = session.accept(sent.to_dict())
    assert session.tools is not None
    action = build_action(session, "agent:zoe", session.tools.describe("count", {}), intent.id)
    decision = ask(session.ledger, action)
    assert decision.allows
    blob = Blob(canonical_json(call), "application/json")
    until = "2030-01-05T09:00:00+00:00"
    start = {"input": blob.reference, "workspace": {"revision": None, "change": None}, "until": until}
    refs = {"intent": intent.id, "decision": decision.record.id}
    session.accept(zoes.contribute("agent:zoe", "tool_execution_started", start, refs=refs, artifacts=[blob]).to_dict())
    return intent.id


def start_and_leave(session: ProtocolSession) -> str:
    """Begin a call, and lose its runner without an end."""
    proposal = reach_executing(session)
    handle = session.executor
    intent = handle.intend(proposal.id, "count", {}, justification="to count")
    assert session.tools is not None
    begun = begin_call(session, handle.agent, intent.id, {}, session.tools.describe("count", {}))
    assert not isinstance(begun, Event)
    begun.held.close()
    return intent.id


@pytest.mark.more
def test_two_resumers_give_a_lost_call_up_once(tmp_path: Path) -> None:
    with open_session(tmp_path) as session:
        intent = start_and_leave(session)
        trace = session.trace
    go, gone = os.pipe()

    def resume() -> None:
        os.read(go, 1)
        with open_session(tmp_path, trace=trace):
            pass

    children = [in_child(resume) for _ in range(4)]
    os.write(gone, b"....")
    assert [exit_of(child) for child in children] == [0] * 4
    with open_session(tmp_path, trace=trace) as session:
        ends = [event for event in session.events if event.refs.get("intent") == intent and "start" in event.refs]
        assert [event.payload["code"] for event in ends] == ["OUTCOME_UNKNOWN"]


def test_the_lock_of_a_runner_that_died_is_free(tmp_path: Path, aver_home: Path) -> None:
    def hold() -> None:
        with hold_run_lock(aver_home, "t"):
            os.kill(os.getpid(), signal.SIGKILL)

    assert exit_of(in_child(hold)) == KILLED
    from aver.protocol.records.trace_files import try_exclusive_lock

    with try_exclusive_lock(aver_home, "t") as is_free:
        assert is_free
    with hold_run_lock(aver_home, "t"), try_exclusive_lock(aver_home, "t") as is_free:
        assert not is_free


@pytest.mark.more
@pytest.mark.both_stores
def test_four_processes_work_in_one_trace(tmp_path: Path) -> None:
    with open_session(tmp_path) as session:
        reach_claiming(session)
        trace, before = session.trace, len(session.events)
    each = 8

    def work(number: int) -> Callable[[], None]:
        def record() -> None:
            with open_session(tmp_path, trace=trace) as session:
                for index in range(each):
                    session.executor.record(f"{number}.{index}", b"%d.%d" % (number, index), "text/plain")

        return record

    children = [in_child(work(number)) for number in range(4)]
    assert [exit_of(child) for child in children] == [0] * 4
    with open_session(tmp_path, trace=trace) as session:
        names = [event.payload["name"] for event in session.events[before:]]
        assert sorted(names) == sorted(f"{number}.{index}" for number in range(4) for index in range(each))
        for number in range(4):
            assert [name for name in names if name.startswith(f"{number}.")] == [f"{number}.{i}" for i in range(each)]
        assert session.verify().status != "failed"


def test_two_processes_that_end_one_call_end_it_once(tmp_path: Path) -> None:
    with open_session(tmp_path) as session:
        intent = start_and_leave(session)
        start = next(iter(session.fold.running))
        with open_session(tmp_path, trace=session.trace) as other:
            assert other.fold.running == {}
        payload = {"exit_code": 0, "output": {}, "cut": []}
        with pytest.raises(EventRefused) as caught:
            session.say("agent:executor", "tool_execution_completed", payload, refs={"intent": intent, "start": start})
        assert caught.value.code == "STATE_VIOLATION"


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_commit_whose_outcome_is_unknown_is_looked_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_kept: bool
) -> None:
    append = Ledger.append

    def fail_at_the_end(self: Ledger, *given: Any, **more: Any) -> Any:
        monkeypatch.setattr(Ledger, "append", append)
        if is_kept:
            append(self, *given, **more)
        raise OutcomeUnknown("the disk failed")

    with open_session(tmp_path) as session:
        monkeypatch.setattr(Ledger, "append", fail_at_the_end)
        if is_kept:
            assert session.planner.propose("one").sequence == 1
        else:
            with pytest.raises(OutcomeUnknown):
                session.planner.propose("one")
        session.planner.propose("two")
        assert len(session.events) == 2 + is_kept


def test_a_full_disk_loses_nothing_that_was_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append = Ledger.append

    def refuse(self: Ledger, *given: Any, **more: Any) -> Any:
        raise Unavailable("no space left on device")

    with open_session(tmp_path) as session:
        proposal = reach_executing(session)
        before = session.events
        intent = session.executor.intend(proposal.id, "count", {}, justification="to count")
        monkeypatch.setattr(Ledger, "append", refuse)
        for say in (lambda: session.planner.propose("more"), lambda: session.executor.run(intent.id)):
            with pytest.raises(Unavailable):
                say()
        assert session.events == (*before, intent)
        monkeypatch.setattr(Ledger, "append", append)
        assert session.executor.run(intent.id).name == "tool_execution_completed"
