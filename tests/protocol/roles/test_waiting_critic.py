"""A critic who speaks by itself gets its turn before the final statement, for as long as the run waits."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import aver
from aver.errors import BadInput
from aver.protocol.roles import protocol_run
from aver.protocol.roles.protocol_run import RunNote, run_session
from aver.protocol.roles.role import stay_silent
from aver.protocol.roles.role_process import CommandRole, RoleBroken
from aver.protocol.roles.role_sources import build_roles
from aver.protocol.roles.task_file import RoleSpec
from aver.protocol.session import ProtocolSession
from aver.protocol.tools.standard_tools import protocol_tools
from aver.protocol.view import Said, View
from support.small_projects import OPTIONS, make_project

CRITIC = "agent:critic"


class FakeTime:
    """A clock that only goes on while the run sleeps. `at_sleep` is called then: somebody else may speak."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.at_sleep: list[Any] = []
        self.slept = 0
        # The run alone gets this clock: the tools that it starts need the real one.
        monkeypatch.setattr(protocol_run, "time", SimpleNamespace(monotonic=lambda: self.now, sleep=self.sleep))

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.slept += 1
        for speak in self.at_sleep:
            speak()


@pytest.fixture
def fake_time(monkeypatch: pytest.MonkeyPatch) -> FakeTime:
    return FakeTime(monkeypatch)


@pytest.fixture
def session(tmp_path: Path) -> Any:
    project = make_project(tmp_path / "shop")
    with aver.ProtocolSession("all tests pass", workspace=project, tools=protocol_tools(project)) as session:
        yield session


def play_all_but_the_critic(session: ProtocolSession) -> dict[str, Any]:
    specs = [RoleSpec(f"agent:{role}", role, "use", "checks", OPTIONS) for role in ("planner", "executor")]
    specs.append(RoleSpec(CRITIC, "critic", "waits", True))
    return build_roles(tuple(specs), workspace=session.workspace, directory=".", blob=session.ledger.blob)


def approve_all(other: ProtocolSession) -> None:
    """Approve, in a session of its own, what is open for the critic."""
    view = other.view(CRITIC)
    for subject in (*view.open["reviews"], *view.open["intent_reviews"]):
        other.critic.review(subject, "approved", rationale="fine")


def names(session: ProtocolSession) -> list[str]:
    return [event.name for event in session.events]


@pytest.mark.more
def test_a_critic_who_waits_challenges_and_the_claim_is_settled_before_the_end(
    session: ProtocolSession, fake_time: FakeTime
) -> None:
    notes: list[RunNote] = []
    with aver.ProtocolSession(None, trace=session.trace, workspace=session.workspace) as other:

        def speak() -> None:
            approve_all(other)
            view = other.view(CRITIC)
            if view.claims and not view.challenges:
                other.critic.challenge(view.claims[0]["id"], "did you look at all files?")
            elif view.open["disputes"] and fake_time.slept % 3 == 0:
                other.critic.withdraw(view.open["disputes"][0], "I see: yes")

        fake_time.at_sleep.append(speak)
        run_session(session, play_all_but_the_critic(session), watch=notes.append, wait=5.0)
    assert session.state == "completed"
    claimed = names(session).index("claim_issued")
    assert names(session)[claimed:] == [
        *("claim_issued", "claim_challenged", "challenge_resolved", "final_statement_signed"),
        *("verification_run_started", "verification_run_completed"),
    ]
    # Every event was shown once, in order, also those of the critic.
    assert [note.event for note in notes if note.event is not None] == list(session.events[1:])
    told = [note for note in notes if note.waits_for]
    assert {note.waits_for for note in told} == {(CRITIC,)}
    assert [note.agent for note in told].count("agent:executor") == 2  # After the claim, and after the withdrawal.


@pytest.mark.more
def test_a_critic_who_says_nothing_is_waited_for_and_no_longer(session: ProtocolSession, fake_time: FakeTime) -> None:
    with aver.ProtocolSession(None, trace=session.trace, workspace=session.workspace) as other:
        fake_time.at_sleep.append(lambda: approve_all(other))
        claimed_at: list[float] = []
        ended_at: list[float] = []

        def watch(note: RunNote) -> None:
            if note.event is not None and note.event.name == "claim_issued":
                claimed_at.append(fake_time.now)
            if note.event is not None and note.event.name == "final_statement_signed":
                ended_at.append(fake_time.now)

        run_session(session, play_all_but_the_critic(session), watch=watch, wait=5.0)
    assert session.state == "completed"
    assert ended_at[0] - claimed_at[0] == pytest.approx(5.0, abs=protocol_run.POLL_SECONDS)


def test_without_a_wait_the_executor_concludes_at_once(session: ProtocolSession, fake_time: FakeTime) -> None:
    roles = play_all_but_the_critic(session)
    while not session.fold.is_over:
        run_session(session, roles)
        approve_all(session)
    assert fake_time.slept == 0
    assert session.state == "completed"


@pytest.mark.more
def test_a_critic_of_the_run_is_not_waited_for(session: ProtocolSession, fake_time: FakeTime) -> None:
    specs = tuple(
        RoleSpec(f"agent:{role}", role, "use", "checks", OPTIONS) for role in ("planner", "executor", "critic")
    )
    roles = build_roles(specs, workspace=session.workspace, directory=".", blob=session.ledger.blob)
    run_session(session, roles, wait=60.0)
    assert session.state == "completed"
    assert fake_time.slept == 0


@pytest.mark.more
def test_the_executor_is_asked_again_only_when_there_is_news(session: ProtocolSession, fake_time: FakeTime) -> None:
    """A program that concludes is not started four times a second while a critic is waited for."""
    roles = play_all_but_the_critic(session)
    execute, asked = roles["agent:executor"], []

    def count(view: View) -> Said | None:
        said: Said | None = execute(view)
        if said is not None and said.event == "final_statement_signed":
            asked.append(view.head["count"])
        return said

    with aver.ProtocolSession(None, trace=session.trace, workspace=session.workspace) as other:
        fake_time.at_sleep.append(lambda: approve_all(other))
        run_session(session, {**roles, "agent:executor": count}, wait=5.0)
    assert session.state == "completed"
    assert len(asked) == 1


def test_a_challenge_in_the_last_moment_is_not_passed_over(session: ProtocolSession) -> None:
    """The challenge comes after the executor was asked, and before its statement is sealed."""
    roles = play_all_but_the_critic(session)
    execute, refusals = roles["agent:executor"], []
    with aver.ProtocolSession(None, trace=session.trace, workspace=session.workspace) as other:

        def conclude_late(view: View) -> Said | None:
            said: Said | None = execute(view)
            if said is not None and said.event == "final_statement_signed" and not view.challenges:
                other.critic.challenge(view.claims[0]["id"], "wait")
            return said

        while not session.fold.claims:
            roles = {**roles, "agent:executor": conclude_late}
            run_session(session, roles, watch=lambda note: refusals.append(note.refusal))
            approve_all(session)
    assert session.state == "claiming"
    assert names(session)[-1] == "claim_challenged"
    assert "final_statement_signed" not in names(session)
    assert any("it must list every claim" in refusal for refusal in refusals)


def test_a_role_that_is_refused_because_others_came_first_is_not_broken(session: ProtocolSession) -> None:
    """A refusal counts only against what the role has seen."""
    with aver.ProtocolSession(None, trace=session.trace, workspace=session.workspace) as other:
        proposal = session.planner.propose("look")
        turns: list[int] = []

        def revise(view: View) -> Said | None:
            turns.append(len(view.proposals))
            newest = view.proposals[-1]["id"]
            if len(turns) <= 5:
                other.planner.propose(f"look again {len(turns)}", revises=newest)
                return Said(event="proposal_created", payload={"objective": "mine"}, refs={"revises": newest})
            return None

        run_session(session, {"agent:planner": revise, CRITIC: stay_silent})
        assert len(turns) == 6
        wrong = Said(event="proposal_created", payload={"objective": "mine"}, refs={"revises": proposal.id})
        with pytest.raises(RoleBroken, match="refused 3 times"):
            run_session(session, {"agent:planner": lambda _: wrong})


def test_a_program_is_not_started_again_while_nothing_is_new(
    session: ProtocolSession, fake_time: FakeTime, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    code = f"import pathlib; file = pathlib.Path({str(log)!r}).open('a'); file.write('asked ')"
    silent = CommandRole("agent:planner", [sys.executable, "-c", code], directory=".", blob=session.ledger.blob)
    run_session(session, {"agent:planner": silent}, wait=5.0)
    assert fake_time.slept > 10
    assert log.read_text().split() == ["asked"]


def test_an_auditor_who_is_always_refused_is_broken(session: ProtocolSession) -> None:
    """Each try adds the start of a run. That is no excuse: nobody else has said anything."""
    proposal = session.planner.propose("look")
    session.critic.review(proposal.id, "approved", rationale="fine")
    call = {"path": "shop.py"}
    end = session.executor.run(session.executor.intend(proposal.id, "read_file", call, justification="to see").id)
    artifact = end.payload["output"]["content"]["blob"]["digest"]
    session.executor.claim("it is there", confidence=1.0, evidence=[{"artifact": artifact}])
    session.executor.conclude("done")

    def refuse(session: ProtocolSession, *, rerun: bool) -> Any:
        raise BadInput("the engine is not there")

    session.audit_engine = refuse
    start = Said(event="verification_run_started", payload={})
    with pytest.raises(RoleBroken, match="refused 3 times"):
        run_session(session, {"agent:auditor": lambda _: start})
    assert names(session).count("verification_run_started") == 3
