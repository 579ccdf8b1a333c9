"""A call that passed and printed a secret: the session has seen one from then on. A refused read marks nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aver import open_ledger
from aver.gate.call_decisions import SHOWED_SECRET
from aver.gate.facts.session_state import state_after_secret
from aver.ingest.contract import AgentCall, AgentEvent
from aver.ingest.seal import seal_event
from support.agent_session import AgentSession
from support.hook_calls import fire, sealed

LINE = "./.env:AWS_SECRET_ACCESS_KEY=" + "wJa1rXUt4nFEM9" + "bPxRfi7CYzKq2Lm"
MARKS_LABEL = ["secret"]


@pytest.fixture
def agent(tmp_path: Path) -> AgentSession:
    (tmp_path / "shop").mkdir()
    return AgentSession(tmp_path / "shop")


def show(agent: AgentSession, command: str, printed: str) -> None:
    """Report the last call as made, with what it printed."""
    response = {"tool_response": {"stdout": printed, "stderr": "", "interrupted": False}}
    fire("claude-code", "PostToolUse", agent.payload("Bash", {"command": command}, **response))


def marks(agent: AgentSession) -> list[dict[str, Any]]:
    results = [record["outcome"]["result"] for record in sealed(f"gate.{agent.session}")]
    return [result for result in results if result.get("outcome") == SHOWED_SECRET]


def assert_verified() -> None:
    with open_ledger() as ledger:
        assert ledger.verify().status == "verified"


@pytest.mark.parametrize("command", ["grep -r AWS .", "git log -p"])
def test_a_search_that_prints_a_secret_marks_the_session(agent: AgentSession, command: str) -> None:
    assert agent.bash("pytest -q") == "pass"
    assert agent.bash(command) == "pass"
    show(agent, command, f"a.py: x = 1\n{LINE}\n")
    assert agent.bash("pytest -q") == "ask"
    assert "seen a secret" in agent.reason
    [mark] = marks(agent)
    assert mark["session"]["labels"] == ["secret"]
    # The second one changes nothing any more.
    show(agent, "pytest -q", LINE)
    assert len(marks(agent)) == 1
    assert_verified()


@pytest.mark.parametrize(
    "printed",
    [
        *(
            "no secret at all",
            "password: str = field()",
            "POSTGRES_PASSWORD=postgres",
            "AWS_ACCESS=[masked:assignment]",
        ),
        *(
            "secretKey: Uint8Array",
            "API_KEY=AKIAIOSFODNN7" + "EXAMPLE",
            'token = "your-token-here"',
            "commit " + "a1" * 20,
        ),
    ],
)
def test_ordinary_output_marks_nothing(agent: AgentSession, printed: str) -> None:
    assert agent.bash("grep -r x .") == "pass"
    show(agent, "grep -r x .", printed)
    assert marks(agent) == []
    assert agent.bash("pytest -q") == "pass"


def test_what_the_agent_wrote_itself_is_not_shown_to_it(agent: AgentSession) -> None:
    command = f"grep -r '{LINE}' ."
    agent.bash(command)
    show(agent, command, LINE)
    assert marks(agent) == []


def test_a_question_that_is_refused_later_does_not_take_the_mark_back(agent: AgentSession) -> None:
    """The open call had the label; the search has it for good."""
    assert agent.bash("cat .env") == "ask"
    assert agent.bash("grep -r AWS .") == "pass"
    show(agent, "grep -r AWS .", LINE)
    [mark] = marks(agent)
    assert mark["session"]["asked"] == []
    assert_verified()


def test_the_mark_does_not_hang_on_who_reports_the_call(agent: AgentSession) -> None:
    """A transcript that is followed tells of a result that no hook had, also after half an hour."""
    assert agent.bash("grep -r AWS .") == "pass"
    call = AgentCall(
        id="toolu_1", tool="Bash", arguments={"command": "grep -r AWS ."}, result={"stdout": LINE}, ok=True
    )
    with open_ledger() as ledger:
        seal_event(ledger, "claude-code", agent.session, AgentEvent(what="call", key="toolu_1", summary="x", call=call))
    assert agent.bash("pytest -q") == "ask"
    assert_verified()


def test_a_session_without_decisions_gets_no_chain_of_them(agent: AgentSession) -> None:
    show(agent, "grep -r AWS .", LINE)
    with open_ledger() as ledger:
        assert [chain for chain in ledger.chains() if chain.startswith("gate.")] == []


def test_the_state_after_a_secret_keeps_all_else() -> None:
    state = {
        "labels": [],
        "changed": {"files": 1},
        "changed_files": ["a.py"],
        "unseen": ["/w/a.py"],
        "asked": [
            {"gate_id": "1", "call_id": "a", "labels": ["secret"], "unseen": []},
            {"gate_id": "2", "call_id": "b", "labels": ["secret"], "unseen": ["/w/a.py"]},
        ],
        "git": {"fetched": True},
    }
    after = state_after_secret(state)
    kept = {"gate_id": "2", "call_id": "b", "labels": [], "unseen": ["/w/a.py"]}
    assert after == {**state, "labels": MARKS_LABEL, "asked": [kept]}
    assert state_after_secret(after) == after
