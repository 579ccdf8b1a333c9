"""Whole traces: the loop asks each role, runs what may run, audits, and ends."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import aver
from aver import Said, View
from aver.errors import BadInput
from aver.protocol.roles import protocol_run
from aver.protocol.roles.built_in import build_role
from aver.protocol.roles.protocol_run import run_session
from aver.protocol.roles.role_process import CommandRole, RoleBroken, read_answer
from aver.protocol.roles.role_sources import build_roles, import_role
from aver.protocol.roles.said_events import say_for
from aver.protocol.roles.task_file import RoleSpec
from aver.protocol.session import ProtocolSession
from aver.protocol.tools.standard_tools import protocol_tools
from support.small_projects import OPTIONS, make_project

RoleMaker = Callable[[ProtocolSession], dict[str, Any]]


def open_here(project: Path, **more: Any) -> ProtocolSession:
    session: ProtocolSession = aver.ProtocolSession(
        "all tests pass", workspace=project, tools=protocol_tools(project), **more
    )
    return session


def built_in(session: ProtocolSession, use: str = "checks", options: Any = OPTIONS) -> dict[str, Any]:
    specs = tuple(RoleSpec(f"agent:{role}", role, "use", use, options) for role in ("planner", "executor", "critic"))
    return build_roles(specs, workspace=session.workspace, directory=".", blob=session.ledger.blob)


def names(session: ProtocolSession) -> list[str]:
    return [event.name for event in session.events]


# --- checks


@pytest.mark.more
def test_checks_prove_the_counts_of_a_project(tmp_path: Path) -> None:
    with open_here(make_project(tmp_path / "shop")) as session:
        run_session(session, built_in(session))
        assert session.state == "completed"
        assert names(session) == [
            "session_initialized",
            "proposal_created",
            "proposal_reviewed",
            "tool_intent_signed",
            "intent_reviewed",  # A script that the gate has not looked into yet counts as high risk.
            "tool_execution_started",
            "tool_execution_completed",
            "claim_issued",
            "final_statement_signed",
            "verification_run_started",
            "verification_run_completed",
        ]
        (claim,) = session.fold.claims.values()
        assert claim.text == "unit: 3 tests: 3 passed, 0 failed, 0 errors, 0 skipped; exit code 0"
        assert session.events[-1].payload["status"] == "pass"
        assert session.verify().status == "verified"


@pytest.mark.more
def test_a_failing_check_is_claimed_as_it_is(tmp_path: Path) -> None:
    with open_here(make_project(tmp_path / "shop", body="return sum(prices) + len(prices) // 2")) as session:
        run_session(session, built_in(session))
        (claim,) = session.fold.claims.values()
        assert claim.text == "unit: 3 tests: 2 passed, 1 failed, 0 errors, 0 skipped; exit code 1"
        # The proposal expected the exit code 0: that is a warning of the default profile.
        assert session.events[-1].payload["status"] == "pass-with-warnings"
        assert session.state == "completed"


class WrongAtFirst:
    """An executor that claims one test more than there is, once. Then it goes on as the built-in one."""

    def __init__(self, executor: Callable[[View], Said | None]) -> None:
        self._executor = executor

    def __call__(self, view: View) -> Said | None:
        said = self._executor(view)
        if said is None or said.event != "claim_issued":
            return said
        evidence = [dict(item) for item in said.payload["evidence"]]
        counts = {"tests": {"format": "tap", "counts": {"passed": ["==", 4]}}}
        evidence[0] = {**evidence[0], "check": counts}
        return Said(
            event="claim_issued", payload={**said.payload, "text": "4 tests pass", "evidence": evidence}, refs=said.refs
        )


@pytest.mark.more
def test_a_wrong_count_is_challenged_and_revised(tmp_path: Path) -> None:
    with open_here(make_project(tmp_path / "shop")) as session:
        roles = built_in(session)
        roles["agent:executor"] = WrongAtFirst(roles["agent:executor"])
        run_session(session, roles)
        dispute = session.events[7:11]
        assert [event.name for event in dispute] == [
            "claim_issued",
            "claim_challenged",
            "claim_revised",
            "challenge_resolved",
        ]
        challenge = dispute[1]
        counts = challenge.payload["evidence"][0]["check"]["tests"]["counts"]
        assert counts["passed"] == ["==", 3]
        assert dispute[3].payload["outcome"] == "withdrawn"
        assert session.state == "completed"
        assert session.events[-1].payload["status"] == "pass"


def test_what_the_critic_does_not_expect_does_not_run(tmp_path: Path) -> None:
    project = make_project(tmp_path / "shop")
    with open_here(project) as session:
        roles = built_in(session)
        other = {"checks": [{"name": "other", "argv": ["touch", "sprung"]}]}
        roles["agent:planner"] = built_in(session, options=other)["agent:planner"]
        roles["agent:executor"] = built_in(session, options=other)["agent:executor"]
        run_session(session, roles)
        assert names(session) == ["session_initialized", "proposal_created", "proposal_reviewed"]
        assert session.events[-1].payload["verdict"] == "rejected"
        assert not (project / "sprung").exists()


def test_a_call_that_never_completes_becomes_a_claim_of_failure(tmp_path: Path) -> None:
    options = {"checks": [{"name": "gone", "argv": ["python3", "gone/../none"], "report": "tap"}]}
    options["checks"][0]["argv"] = ["pytest-that-is-not-installed", "-q"]
    with open_here(make_project(tmp_path / "shop")) as session:
        run_session(session, built_in(session, options=options))
        intents = list(session.fold.intents.values())
        assert len(intents) == session.fold.bounds.attempts == 3
        assert {intent.code for intent in intents} <= {"ERROR", "REFUSED"}
        assert [intent.retry_of for intent in intents] == [None, intents[0].id, intents[1].id]
        (claim,) = session.fold.claims.values()
        assert (claim.about, claim.text) == ("failure", "gone: pytest-that-is-not-installed -q did not complete")
        assert session.state in ("completed", "failed")


def test_nothing_to_check(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no tests and no linters"):
        build_role("planner", "checks", workspace=str(tmp_path), options={}, blob=lambda _: None)


# --- review


@pytest.mark.more
def test_a_range_is_reviewed(tmp_path: Path) -> None:
    from support.small_projects import git

    project = make_project(tmp_path / "shop")
    (project / "shop.py").write_text("def total(prices):\n    # all of them\n    return sum(prices)\n")
    git(project, "commit", "-qam", "second")
    from aver.protocol.roles.range_review import REVIEW_TOOL, build_review_tool

    tools = protocol_tools(project, functions={REVIEW_TOOL: build_review_tool(str(project))})
    with aver.ProtocolSession("review it", workspace=project, tools=tools) as session:
        run_session(session, built_in(session, "review", {**OPTIONS, "range": "HEAD~1..HEAD"}))
        texts = [claim.text for claim in session.fold.claims.values()]
        assert texts[0].endswith("changes 1 file: +1 -0 lines")
        assert texts[1:3] == ["no secret on the added lines", "the change touches no test"]
        assert texts[3].startswith("estimated risk of a later repair: ")
        assert texts[4].startswith("unit: 3 tests: 3 passed")
        assert session.events[-1].payload["status"] == "pass"
        assert session.fold.proposals[session.events[1].id].standing(session.fold.critics) == "conditional"


# --- the loop


def test_run_protocol_is_the_short_way(tmp_path: Path) -> None:
    project = make_project(tmp_path / "shop")

    def plan(view: View) -> Said | None:
        if view.proposals:
            return None
        return Said(event="proposal_created", payload={"objective": "read the file"})

    def criticise(view: View) -> Said | None:
        for proposal in view.open["reviews"]:
            payload = {"verdict": "approved", "rationale": "it only reads"}
            return Said(event="proposal_reviewed", payload=payload, refs={"proposal": proposal})
        return None

    def execute(view: View) -> Said | None:
        if not view.proposals or not view.proposals[0]["executable"]:
            return None
        proposal = {"proposal": view.proposals[0]["id"]}
        if not view.intents:
            payload = {"tool": "read_file", "arguments": {"path": "shop.py"}, "justification": "to look at it"}
            return Said(event="tool_intent_signed", payload=payload, refs=proposal)
        if not view.executions or view.state != "claiming":
            return None
        if not view.claims:
            artifact = view.executions[0]["output"]["content"]
            evidence = [{"artifact": artifact, "check": {"text": {"contains": "def total"}}}]
            payload = {"text": "total is defined", "confidence": 1.0, "evidence": evidence}
            return Said(event="claim_issued", payload=payload, refs=proposal)
        return Said(event="final_statement_signed", payload={"text": "done"})

    roles = {"planner": plan, "executor": execute, "critic": criticise}
    with aver.run_protocol({"objective": "look"}, roles, workspace=project) as session:
        assert session.state == "completed"
        assert session.verify().status == "verified"


def test_every_role_gets_its_turn_and_a_silent_round_ends_the_run(tmp_path: Path) -> None:
    asked: list[str] = []

    def listen(view: View) -> None:
        asked.append(view.agent)

    with open_here(make_project(tmp_path / "shop")) as session:
        run_session(session, {f"agent:{role}": listen for role in ("planner", "executor", "critic")})
        assert asked == ["agent:planner"]  # Nobody else may say anything in `planning`.
        assert session.state == "planning"


def test_two_that_never_stop_are_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol_run, "EVENTS_MAX", 6)

    def propose(view: View) -> Said:
        return Said(event="proposal_created", payload={"objective": f"proposal {len(view.proposals)}"})

    with open_here(make_project(tmp_path / "shop")) as session:
        run_session(session, {"agent:planner": propose})
        assert len(session.fold.proposals) == 6


def test_a_role_that_says_what_it_may_not_is_broken_in_the_end(tmp_path: Path) -> None:
    notes: list[str] = []

    def usurp(view: View) -> Said:
        payload = {"verdict": "approved", "rationale": "I approve of myself"}
        return Said(event="proposal_reviewed", payload=payload, refs={"proposal": view.proposals[0]["id"]})

    with open_here(make_project(tmp_path / "shop")) as session:
        session.planner.propose("anything")
        with pytest.raises(RoleBroken, match="refused 3 times in a row"):
            run_session(session, {"agent:planner": usurp}, watch=lambda note: notes.append(note.refusal))
        assert len(notes) == 3
        assert names(session) == ["session_initialized", "proposal_created"]


@pytest.mark.parametrize("answer", [{"event": "proposal_created"}, "proposal_created", 7])
def test_a_function_that_returns_anything_else_is_broken(tmp_path: Path, answer: Any) -> None:
    with open_here(make_project(tmp_path / "shop")) as session, pytest.raises(RoleBroken, match="not a Said"):
        run_session(session, {"agent:planner": lambda _: answer})


@pytest.mark.more
def test_a_function_that_raises_is_broken_and_the_trace_goes_on_later(tmp_path: Path) -> None:
    project = make_project(tmp_path / "shop")

    def crash(view: View) -> None:
        raise ValueError("no model today")

    with open_here(project) as session:
        roles = built_in(session)
        with pytest.raises(RoleBroken, match="ValueError: no model today"):
            run_session(session, {**roles, "agent:critic": crash})
        trace = session.trace
    with aver.ProtocolSession(None, trace=trace, workspace=project, tools=protocol_tools(project)) as session:
        run_session(session, built_in(session))
        assert session.state == "completed"


# --- programs and modules


def program(session: ProtocolSession, code: str, **more: Any) -> CommandRole:
    argv = [sys.executable, "-c", code]
    return CommandRole("agent:planner", argv, directory=".", blob=session.ledger.blob, **more)


PLANNER = """if True:
    import json, sys
    view = json.load(sys.stdin)
    assert view["agent"] == "agent:planner" and "proposal_created" in view["may_say"]
    assert "objective" in view["schemas"]["proposal_created"]["properties"]
    if not view["proposals"]:
        print(json.dumps({"event": "proposal_created", "payload": {"objective": "look around"}}))
"""


@pytest.mark.more
def test_a_program_gets_a_view_and_says_an_event(tmp_path: Path) -> None:
    with open_here(make_project(tmp_path / "shop")) as session:
        run_session(session, {"agent:planner": program(session, PLANNER)})
        assert [proposal.payload["objective"] for proposal in session.fold.proposals.values()] == ["look around"]


LIAR = """if True:
    import json, sys
    view = json.load(sys.stdin)
    if "claim_issued" in view["refused"]:
        if not view["proposals"]:
            print(json.dumps({"event": "proposal_created", "payload": {"objective": "sorry"}}))
    elif not view["proposals"]:
        evidence = [{"artifact": "0" * 64}]
        payload = {"text": "all is well", "confidence": 1, "evidence": evidence}
        print(json.dumps({"event": "claim_issued", "payload": payload, "refs": {"proposal": view["trace"]}}))
"""


def test_a_program_that_lies_is_told_why_it_is_refused(tmp_path: Path) -> None:
    with open_here(make_project(tmp_path / "shop")) as session:
        run_session(session, {"agent:planner": program(session, LIAR)})
        assert names(session) == ["session_initialized", "proposal_created"]


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import sys; sys.exit(3)", "exit code 3"),
        ("import sys; print('no key', file=sys.stderr); sys.exit(1)", "it says: no key"),
        ("print('hello')", "broke down"),
        ("print('{} {}')", "broke down"),
        ('print(\'{"event": "a", "event": "b"}\')', "broke down"),
        ("print('{\"event\": 7}')", "an event's name"),
        ('print(\'{"say": "proposal_created"}\')', "event"),
        ("print('[1]')", "object"),
        ("print('{\"a\": ' * 100000)", "broke down"),
        ("while True: print('x' * 100000)", "at most"),
        ("import os; os.kill(os.getpid(), 9)", "exit code -9"),
        ("import sys\nwhile True: print('x' * 100000, file=sys.stderr)", "at most"),
        (
            'import os; print(\'{"event": "proposal_created", "pay\', flush=True); os.kill(os.getpid(), 9)',
            "exit code -9",
        ),
        ('import os; print(\'{"event": "proposal_created"}\', flush=True); os._exit(1)', "exit code 1"),
    ],
)
def test_a_program_that_is_broken(tmp_path: Path, code: str, words: str) -> None:
    with open_here(make_project(tmp_path / "shop")) as session:
        with pytest.raises(RoleBroken, match=words):
            run_session(session, {"agent:planner": program(session, code)})
        assert names(session) == ["session_initialized"]


FORKING = """
import os, time
for number in range(10):
    if os.fork() == 0:
        if number % 2:
            os.setsid()
        time.sleep(4 if number % 2 else 600)
        os._exit(0)
print('{"event": "proposal_created", "payload": {"objective": "forked"}}', flush=True)
"""


@pytest.mark.more
def test_a_program_that_forks_is_not_waited_for(tmp_path: Path) -> None:
    """Its children hold the pipe open, some of them in sessions of their own. The answer counts all the same."""
    with open_here(make_project(tmp_path / "shop")) as session:
        said = program(session, FORKING)(session.view("agent:planner"))
        assert said is not None
        assert said.payload == {"objective": "forked"}


@pytest.mark.more
def test_a_program_that_stops_itself_is_ended(tmp_path: Path) -> None:
    with open_here(make_project(tmp_path / "shop")) as session:
        stopped = program(session, "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", seconds=1.0)
        with pytest.raises(RoleBroken, match="no answer within 1 seconds"):
            run_session(session, {"agent:planner": stopped})


@pytest.mark.parametrize("arguments", [None, 7, "text", [1], True])
def test_the_arguments_of_an_intent_are_an_object(tmp_path: Path, arguments: Any) -> None:
    with open_here(make_project(tmp_path / "shop")) as session:
        proposal = session.planner.propose("look")
        session.critic.review(proposal.id, "approved", rationale="fine")
        payload = {"tool": "read_file", "arguments": arguments, "justification": "to see it"}
        said = Said(event="tool_intent_signed", payload=payload, refs={"proposal": proposal.id})
        with pytest.raises(BadInput, match="an object as arguments"):
            say_for(session, "agent:executor", said)


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("event", {}), ("event", None), ("payload", "text"), ("payload", None), ("refs", ["a"]), ("refs", {"a": 1})),
        *(("artifacts", b"bytes"), ("artifacts", ["text"]), ("artifacts", None)),
    ],
)
def test_a_function_that_says_a_wrong_type_is_broken(tmp_path: Path, field: str, value: Any) -> None:
    said = Said(**{"event": "proposal_created", "payload": {"objective": "x"}, field: value})
    with open_here(make_project(tmp_path / "shop")) as session:
        with pytest.raises(RoleBroken, match=f"the {field} of what it said"):
            run_session(session, {"agent:planner": lambda view: said})
        assert names(session) == ["session_initialized"]


@pytest.mark.more
def test_a_program_that_says_nothing_for_too_long(tmp_path: Path) -> None:
    with open_here(make_project(tmp_path / "shop")) as session:
        silent = program(session, "import time; time.sleep(600)", seconds=1.0)
        with pytest.raises(RoleBroken, match="no answer within 1 seconds"):
            run_session(session, {"agent:planner": silent})


def test_an_answer_may_bring_artifacts() -> None:
    raw = b'{"event": "artifact_recorded", "artifacts": [{"text": "hi"}, {"base64": "aGk=", "media": "image/png"}]}'
    found = read_answer(raw)
    assert found is not None
    assert [(blob.data, blob.media) for blob in found.artifacts] == [
        (b"hi", "text/plain; charset=utf-8"),
        (b"hi", "image/png"),
    ]
    assert read_answer(b" \n") is None
    assert read_answer(b"null") is None
    for wrong in (b'[{"text": "a", "base64": "aGk="}]', b'[{"base64": "???"}]', b"[{}]", b'[{"text": 1}]', b"{}"):
        with pytest.raises(BadInput):
            read_answer(b'{"event": "artifact_recorded", "artifacts": ' + wrong + b"}")


def test_a_function_of_a_module(tmp_path: Path) -> None:
    (tmp_path / "my_agents_for_test.py").write_text("def plan(view):\n    return None\n\nnumber = 7\n")
    assert import_role("my_agents_for_test:plan", str(tmp_path))(None) is None  # type: ignore[arg-type]
    for name in ("my_agents_for_test:criticise", "no_such_module_here:plan", "my_agents_for_test:number"):
        with pytest.raises(BadInput, match=name.partition(":")[0]):
            import_role(name, str(tmp_path))
