"""Calls of a run side by side: which may be, in which order, killed at any event, interrupted, resumed by two."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from aver.errors import Unavailable
from aver.files.locks import Pace, wait_until
from aver.ledger import Ledger, open_ledger
from aver.protocol.events import Event
from aver.protocol.roles import call_batch
from aver.protocol.roles.call_batch import WaitingCall, run_calls
from aver.protocol.roles.protocol_run import RunNote, run_session
from aver.protocol.runner import CallDescription, ToolFailure, ToolResult
from aver.protocol.session import ProtocolSession
from aver.protocol.tools.command_tool import CommandTool
from aver.protocol.tools.standard_tools import protocol_tools
from aver.protocol.tools.tool import ToolOrder
from aver.protocol.view import Said, View
from support.forks import exit_of, in_child
from support.protocol_sessions import TASK, EasyRunner, open_session, reach_executing

KILLED = -signal.SIGKILL
PACE = Pace(0.02, 0.02)
TRACE = "beside"
CALLS = 3


@pytest.fixture(autouse=True)
def four_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine with processors enough."""
    monkeypatch.setattr(call_batch.os, "cpu_count", lambda: 8)


class BesideRunner(EasyRunner):
    """Its calls may run side by side. It notes how many did, and each call in a file."""

    def __init__(self, log: Path | None = None) -> None:
        super().__init__()
        self.log = log
        self.meet: Callable[[Mapping[str, Any]], None] = lambda _: None
        """Called in every call, with its arguments."""
        self.most = self.running = 0
        self._lock = threading.Lock()
        self.order: list[Any] = []

    def find_places(self, tool: str, arguments: Mapping[str, Any]) -> frozenset[str] | None:
        return frozenset({arguments["place"]}) if "place" in arguments else frozenset()

    def run(
        self, tool: str, arguments: Mapping[str, Any], *, seconds: float, output_max: int
    ) -> ToolResult | ToolFailure:
        with self._lock:
            self.running += 1
            self.most = max(self.most, self.running)
            self.order.append(arguments["call"])
            if self.log is not None:
                with self.log.open("a") as file:
                    file.write(f"{arguments['call']}\n")
        try:
            self.meet(arguments)
            return ToolResult(0, {"stdout": (f"call {arguments['call']}".encode(), "text/plain")})
        finally:
            with self._lock:
                self.running -= 1


def intend(session: ProtocolSession, proposal: str, *calls: dict[str, Any]) -> list[WaitingCall]:
    """Sign an intent for each of some calls. One with `erase` deletes; the others read."""
    found = []
    for number, call in enumerate(calls):
        tool = "erase" if "erase" in call else "count"
        signed = session.executor.intend(proposal, tool, {"call": number, **call}, justification="to count")
        if tool == "erase":
            session.critic.review(signed.id, "approved", rationale="it may go")
        found.append(WaitingCall("agent:executor", signed.id))
    return found


def run_all(session: ProtocolSession, calls: list[WaitingCall]) -> list[str]:
    """Make calls. Returns why some were not made."""
    notes: list[str] = []
    run_calls(session, calls, note=lambda _, error: notes.append(error.code), show=lambda: None)
    return notes


def names(session: ProtocolSession) -> list[str]:
    return [event.name for event in session.events]


# --- which calls run side by side


def test_independent_calls_run_side_by_side_and_every_start_comes_before_the_first_call(tmp_path: Path) -> None:
    runner, together = BesideRunner(), threading.Barrier(3)
    seen: list[int] = []

    def meet(_: Mapping[str, Any]) -> None:
        together.wait(60)  # Broken, if they run one after the other.
        seen.append(names(session).count("tool_execution_started"))

    runner.meet = meet
    with open_session(tmp_path, tools=runner) as session:
        calls = intend(session, reach_executing(session).id, {}, {}, {})
        assert run_all(session, calls) == []
        assert [intent.code for intent in session.fold.intents.values()] == ["COMPLETED"] * 3
        assert seen == [3, 3, 3]
        assert session.verify().status != "failed"


def test_no_more_calls_run_than_the_bound_allows(tmp_path: Path) -> None:
    runner, together = BesideRunner(), threading.Barrier(call_batch.CALLS_MAX)
    runner.meet = lambda call: together.wait(60) and None if call["call"] < 8 else None
    with open_session(tmp_path, tools=runner) as session:
        run_all(session, intend(session, reach_executing(session).id, *({} for _ in range(9))))
        assert runner.most == call_batch.CALLS_MAX == 4
        assert sorted(runner.order) == list(range(9))


@pytest.mark.parametrize("cores", [1, None])
def test_one_processor_makes_one_call_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cores: int | None
) -> None:
    monkeypatch.setattr(call_batch.os, "cpu_count", lambda: cores)
    runner = BesideRunner()
    with open_session(tmp_path, tools=runner) as session:
        run_all(session, intend(session, reach_executing(session).id, {}, {}, {}))
        assert (runner.most, runner.order) == (1, [0, 1, 2])


def test_a_call_that_changes_the_workspace_runs_alone_and_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "tests.txt").write_text("x")
    runner = BesideRunner()
    with open_session(tmp_path, tools=runner) as session:
        calls = intend(session, reach_executing(session).id, {}, {}, {"erase": 1}, {}, {})
        alone: list[int] = []
        runner.meet = lambda call: alone.append(runner.running) if "erase" in call else None
        run_all(session, calls)
        ended = [intent.code for intent in session.fold.intents.values()]
    assert ended[:2] + ended[3:] == ["COMPLETED"] * 4
    if ended[2] == "COMPLETED":  # The gate may refuse it; if not, nothing ran beside it.
        assert alone == [1]
        assert runner.order.index(2) == 2


def test_calls_that_need_the_same_thing_run_one_after_the_other(tmp_path: Path) -> None:
    runner = BesideRunner()
    with open_session(tmp_path, tools=runner) as session:
        run_all(session, intend(session, reach_executing(session).id, *({"place": "report.xml"} for _ in range(3))))
        assert (runner.most, runner.order) == (1, [0, 1, 2])


def test_the_calls_of_a_runner_that_says_nothing_about_it_run_one_after_the_other(tmp_path: Path) -> None:
    runner = EasyRunner()
    running: list[int] = []
    runner.before = lambda: running.append(threading.active_count())
    with open_session(tmp_path, tools=runner) as session:
        proposal = reach_executing(session)
        signed = [
            session.executor.intend(proposal.id, "count", {"call": number}, justification="to count")
            for number in range(3)
        ]
        run_all(session, [WaitingCall("agent:executor", each.id) for each in signed])
        assert names(session)[-6:] == ["tool_execution_started", "tool_execution_completed"] * 3


def test_what_the_tools_say_about_themselves(tmp_path: Path) -> None:
    tools = protocol_tools(tmp_path, functions={"look": lambda: 1})
    assert tools.find_places("read_file", {"path": "a"}) == frozenset()
    for tool in ("write_file", "delete_file", "look", "none"):
        assert tools.find_places(tool, {}) is None

    def find(*argv: str, **more: Any) -> frozenset[str]:
        return CommandTool().find_places(ToolOrder("command", {"argv": list(argv), **more}, str(tmp_path)))

    assert find("make", "test") & find("/usr/bin/make", "lint")
    assert find("python3", "-m", "pytest") & find("python3", "-m", "pytest", "-q")
    assert not find("python3", "-m", "pytest") & find("python3", "-m", "mypy")
    report = {"collect": {"tests": "junit.xml"}}
    assert find("python3", "-m", "pytest", **report) & find(
        "tox", collect={"other": "./x/../junit.xml"[:2] + "junit.xml"}
    )
    assert not find("python3", "-m", "pytest", **report) & find("tox", collect={"tests": "tox.xml"})


# --- a run


def plan(view: View) -> Said | None:
    if not view.proposals:
        return Said(event="proposal_created", payload={"objective": "count"})
    return None


def criticise(view: View) -> Said | None:
    for proposal in view.open["reviews"]:
        payload = {"verdict": "approved", "rationale": "it reads"}
        return Said(event="proposal_reviewed", payload=payload, refs={"proposal": proposal})
    return None


def execute(view: View) -> Said | None:
    """Make `CALLS` calls, again where nobody knows the end, claim each, and conclude."""
    if not view.proposals or not view.proposals[0]["executable"]:
        return None
    refs = {"proposal": view.proposals[0]["id"]}
    for number in range(CALLS):
        tried = [each for each in view.intents if each["arguments"]["call"] == number]
        if any(each["code"] != "OUTCOME_UNKNOWN" for each in tried):
            continue
        payload = {"tool": "count", "arguments": {"call": number}, "justification": "to count"}
        more = {"retry_of": tried[-1]["id"]} if tried else {}
        return Said(event="tool_intent_signed", payload=payload, refs={**refs, **more})
    if any(each["standing"] != "ended" for each in view.intents):
        return None
    done = [each for each in view.executions if each["code"] == "COMPLETED"]
    if len(view.claims) < len(done):
        evidence = [{"artifact": done[len(view.claims)]["output"]["stdout"]}]
        payload = {"text": "it was counted", "confidence": 1.0, "evidence": evidence}
        return Said(event="claim_issued", payload=payload, refs=refs)
    return Said(event="final_statement_signed", payload={"text": "counted"})


ROLES = {"agent:planner": plan, "agent:executor": execute, "agent:critic": criticise}


def execute_alone(view: View) -> Said | None:
    """The same, where no other run is under way."""
    assert not view.open["running"], "a role sees no call of its own run half done"
    return execute(view)


def drive(workspace: Path, log: Path, watch: Callable[[RunNote], None] | None = None) -> list[Event]:
    """Begin or resume the trace, and run it as far as it goes."""
    with open_session(workspace, trace=TRACE, task=TASK, tools=BesideRunner(log)) as session:
        run_session(session, ROLES, watch=watch)
        return list(session.events)


def test_a_run_signs_all_intents_before_the_calls_run_side_by_side(tmp_path: Path) -> None:
    runner = BesideRunner()
    runner.meet = lambda _: together.wait(60) and None
    together = threading.Barrier(CALLS)
    shown: list[Event] = []
    with open_session(tmp_path, tools=runner) as session:
        roles = {**ROLES, "agent:executor": execute_alone}
        run_session(session, roles, watch=lambda note: shown.append(note.event) if note.event else None)
        assert session.state == "completed"
        assert names(session) == [
            *("session_initialized", "proposal_created", "proposal_reviewed"),
            *["tool_intent_signed"] * CALLS,
            *["tool_execution_started"] * CALLS,
            *["tool_execution_completed"] * CALLS,
            *["claim_issued"] * CALLS,
            *("final_statement_signed", "verification_run_started", "verification_run_completed"),
        ]
        assert shown == list(session.events[1:])


def check_trace(events: list[Event], log: Path) -> None:
    """Nothing lost, doubled or invented."""
    assert events[-1].after == "completed"
    starts = Counter(event.refs["intent"] for event in events if event.name == "tool_execution_started")
    ended = ("tool_execution_completed", "tool_execution_failed")
    ends = Counter(event.refs["intent"] for event in events if event.name in ended)
    assert set(starts.values()) == {1}
    assert starts == ends
    made = Counter(log.read_text().split())
    retried = Counter(event.payload["arguments"]["call"] for event in events if "retry_of" in event.refs)
    for number in range(CALLS):  # Only a call whose end nobody knows was made again.
        assert 1 <= made[str(number)] <= 1 + retried[number]
    done = [event for event in events if event.name == "tool_execution_completed"]
    claims = [event for event in events if event.name == "claim_issued"]
    assert len(done) == len(claims) == CALLS
    outputs = {event.payload["output"]["stdout"]["blob"]["digest"] for event in done}
    assert {event.payload["evidence"][0]["artifact"] for event in claims} == outputs
    with open_ledger() as ledger:
        assert ledger.verify().status != "failed"


def kill_at(moment: int, *, after: bool) -> None:
    """Have this process killed at its n-th append to a trace, on whichever thread: just before, or just after."""
    append, lock = Ledger.append, threading.Lock()
    count = 0

    def counting(self: Ledger, chain: str, *given: Any, **more: Any) -> Any:
        nonlocal count
        if not chain.startswith("protocol."):
            return append(self, chain, *given, **more)
        with lock:
            count += 1
            is_last = count == moment
        if is_last and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        sealed = append(self, chain, *given, **more)
        if is_last:
            os.kill(os.getpid(), signal.SIGKILL)
        return sealed

    Ledger.append = counting  # type: ignore[method-assign]


EVENTS = 3 + 4 * CALLS + 3


def storm(workspace: Path, moment: int, *, after: bool, resumers: int) -> None:
    """Kill a run around an event; then resume it in several processes at once, until it has come to its end."""
    log = workspace / "log"

    def work() -> None:
        kill_at(moment, after=after)
        drive(workspace, log)

    assert exit_of(in_child(work)) == KILLED
    go, gone = os.pipe()

    def resume() -> None:
        os.read(go, 1)
        drive(workspace, log)

    children = [in_child(resume) for _ in range(resumers)]
    os.write(gone, b"." * resumers)
    assert [exit_of(child) for child in children] == [0] * resumers
    check_trace(drive(workspace, log), log)


@pytest.mark.more
@pytest.mark.sample(4)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("moment", [3 + CALLS + 2, 3 + 2 * CALLS + 1, 3 + 2 * CALLS + 2])
def test_killed_while_calls_run_side_by_side_the_trace_goes_on(tmp_path: Path, moment: int, after: bool) -> None:
    storm(tmp_path, moment, after=after, resumers=2)


@pytest.mark.sample(8)
@pytest.mark.more
@pytest.mark.both_stores
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("moment", range(1, EVENTS + 1))
def test_killed_around_any_event_two_resume_and_nothing_is_doubled(tmp_path: Path, moment: int, after: bool) -> None:
    storm(tmp_path, moment, after=after, resumers=2)


@pytest.mark.more
@pytest.mark.both_stores
def test_four_runs_of_one_trace_say_and_do_everything_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    children = [in_child(lambda: drive(tmp_path, log)) for _ in range(4)]
    assert [exit_of(child) for child in children] == [0] * 4
    events = drive(tmp_path, log)
    check_trace(events, log)
    assert Counter(log.read_text().split()) == {str(number): 1 for number in range(CALLS)}
    assert len([event for event in events if event.name == "tool_intent_signed"]) == CALLS
    assert len([event for event in events if event.name == "proposal_created"]) == 1


# --- when something breaks down


def is_event(draft: Any, name: str) -> bool:
    return bool(draft.context.environment.get("protocol", {}).get("event") == name)


def test_a_store_that_fails_at_one_start_lets_the_calls_that_have_begun_come_to_their_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, starts = Ledger.append, []
    with open_session(tmp_path, tools=BesideRunner()) as session:
        calls = intend(session, reach_executing(session).id, {}, {}, {})

        def fail_at_the_third_start(self: Ledger, chain: str, draft: Any, *given: Any, **more: Any) -> Any:
            if is_event(draft, "tool_execution_started"):
                starts.append(1)
                if len(starts) == 3:
                    raise Unavailable("the disk is full")
            return append(self, chain, draft, *given, **more)

        monkeypatch.setattr(Ledger, "append", fail_at_the_third_start)
        with pytest.raises(Unavailable, match="the disk is full"):
            run_all(session, calls)
        monkeypatch.setattr(Ledger, "append", append)
        assert [intent.code for intent in session.fold.intents.values()] == ["COMPLETED", "COMPLETED", ""]
        assert session.fold.running == {}
        run_all(session, calls[2:])
        assert [intent.code for intent in session.fold.intents.values()] == ["COMPLETED"] * 3


def test_an_end_that_cannot_be_sealed_is_told_and_the_others_have_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, lock, ends = Ledger.append, threading.Lock(), []
    with open_session(tmp_path, tools=BesideRunner()) as session:
        calls = intend(session, reach_executing(session).id, {}, {}, {})

        def fail_at_the_first_end(self: Ledger, chain: str, draft: Any, *given: Any, **more: Any) -> Any:
            if is_event(draft, "tool_execution_completed"):
                with lock:
                    ends.append(1)
                    is_first = len(ends) == 1
                if is_first:
                    raise Unavailable("the disk is full")
            return append(self, chain, draft, *given, **more)

        monkeypatch.setattr(Ledger, "append", fail_at_the_first_end)
        with pytest.raises(Unavailable, match="the disk is full"):
            run_all(session, calls)
        monkeypatch.setattr(Ledger, "append", append)
        assert sorted(str(intent.code) for intent in session.fold.intents.values()).count("COMPLETED") == 2
        trace = session.trace
    with open_session(tmp_path, trace=trace) as session:
        assert [intent.code for intent in session.fold.intents.values()].count("OUTCOME_UNKNOWN") == 1


@pytest.mark.more
@pytest.mark.parametrize("moment", [1, 2, 4])
def test_a_screen_that_is_gone_does_not_leave_calls_without_an_end(tmp_path: Path, moment: int) -> None:
    """`aver protocol run | head`: nobody reads the lines any more. The calls that have begun come to their end."""
    shown = 0

    def show() -> None:
        nonlocal shown
        shown += 1
        if shown == moment:
            raise BrokenPipeError

    with open_session(tmp_path, tools=BesideRunner()) as session:
        calls = intend(session, reach_executing(session).id, {}, {}, {})
        with pytest.raises(BrokenPipeError):
            run_calls(session, calls, note=lambda *_: None, show=show)
        session.catch_up()
        assert session.fold.running == {}
        assert {intent.code for intent in session.fold.intents.values()} <= {"COMPLETED", ""}


def test_a_call_of_tools_that_only_another_process_has_is_left_to_it(tmp_path: Path) -> None:
    notes: list[str] = []
    with open_session(tmp_path, tools=BesideRunner()) as session:
        calls = intend(session, reach_executing(session).id, {}, {})
        session.tools = protocol_tools(tmp_path)
        run_calls(session, calls, note=lambda _, error: notes.append(error.message), show=lambda: None)
        assert len(notes) == 2
        assert "there is no tool 'count'" in notes[0]
        assert len(session.fold.open_intents) == 2


def test_a_trace_that_is_aborted_meanwhile_gets_no_more_ends(tmp_path: Path) -> None:
    runner, together = BesideRunner(), threading.Barrier(2)
    with open_session(tmp_path, tools=runner) as session:
        calls = intend(session, reach_executing(session).id, {}, {})

        def abort(call: Mapping[str, Any]) -> None:
            together.wait(60)
            if call["call"] == 0:
                session.abort("enough")
            together.wait(60)

        runner.meet = abort
        assert run_all(session, calls) == ["STATE_VIOLATION"] * 2
        assert session.events[-1].name == "session_aborted"


SLEEPER = "import pathlib, time, sys; pathlib.Path(sys.argv[1]).touch(); time.sleep(600)"


class SleepRunner(BesideRunner):
    """Runs a real program that sleeps for ten minutes, in each call."""

    def __init__(self, workspace: Path) -> None:
        super().__init__()
        self._tool, self._workspace = CommandTool(), str(workspace)

    def describe(self, tool: str, arguments: Mapping[str, Any]) -> CallDescription:
        return super().describe("count", {})

    def run(
        self, tool: str, arguments: Mapping[str, Any], *, seconds: float, output_max: int
    ) -> ToolResult | ToolFailure:
        argv = ["python3", "-c", SLEEPER, f"started{arguments['call']}"]
        return self._tool.run(ToolOrder(tool, {"argv": argv}, self._workspace))


@pytest.mark.more
def test_an_interruption_ends_the_programs_of_all_threads(tmp_path: Path) -> None:
    """Python interrupts the main thread alone. The programs must not run on for their ten minutes."""

    def work() -> None:
        # A shell starts a command in the background with this signal ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with open_session(tmp_path, trace=TRACE, task=TASK, tools=SleepRunner(tmp_path)) as session:
            calls = intend(session, reach_executing(session).id, {}, {})
            with pytest.raises(KeyboardInterrupt):
                run_all(session, calls)

    child = in_child(work)
    while not all((tmp_path / f"started{number}").exists() for number in range(2)):
        pass
    # Python drops an interruption that comes while it removes a weak reference. Somebody presses the keys again then.
    for _ in range(10):
        os.kill(child, signal.SIGINT)
        if wait_until(lambda: os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None, 5, PACE):
            break
    assert exit_of(child) == 0
    with open_session(tmp_path, trace=TRACE) as session:
        assert [intent.code for intent in session.fold.intents.values()] == ["OUTCOME_UNKNOWN"] * 2
