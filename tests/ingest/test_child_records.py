"""What somebody adds who comes later says whether both tell the same, and no more than can be said."""

from __future__ import annotations

from typing import Any

import pytest

from aver.ingest.child_records import build_child_record
from aver.ingest.contract import INFERRED_OUTCOME, AgentCall, AgentEvent
from aver.ingest.draft import draft_event
from aver.ingest.seal import seal_event
from aver.ledger import Ledger

STREAMS = {"stdout": "a\nb", "stderr": "", "exit_code": 0}


def told(result: Any, *, diff: str | None = None, words_only: bool = False) -> AgentEvent:
    call = AgentCall(tool="Bash", id="c1", arguments={"command": "ls"}, result=result, ok=True, diff=diff)
    environment = dict(INFERRED_OUTCOME) if words_only else {}
    return AgentEvent(what="call", key="c1", summary="Bash", call=call, environment=environment)


def compared(ledger: Ledger, first: AgentEvent, later: AgentEvent) -> dict[str, Any]:
    sealed = seal_event(ledger, "tool", "one", first)
    child = build_child_record(sealed, draft_event("tool", "one", later), "transcript")
    result: dict[str, Any] = child.capsule.to_dict()["outcome"]["result"]
    return result


@pytest.mark.parametrize(
    ("first", "later"),
    [
        ("a", "a"),
        (STREAMS, {"output": "a\nb"}),
        ([1, 2], {"said": "one, two", "data": [1, 2]}),
        ({"status": "done"}, {"status": "done", "content": "all of it"}),
    ],
)
def test_one_may_tell_less_than_the_other(ledger: Ledger, first: Any, later: Any) -> None:
    assert compared(ledger, told(first), told(later))["agrees"] is True


@pytest.mark.parametrize(
    ("first", "later"),
    [
        ("a", "b"),
        (STREAMS, {"output": "a"}),
        (STREAMS, {"output": ""}),
        (STREAMS, {**STREAMS, "exit_code": 1}),
        ({"status": "done"}, {"status": "failed", "content": "done"}),
        ([1, 2], {"said": "one, two", "data": [1]}),
    ],
)
def test_what_contradicts_is_named(ledger: Ledger, first: Any, later: Any) -> None:
    result = compared(ledger, told(first), told(later))
    assert (result["agrees"], result["differs"]) == (False, ["result"])
    assert result["says"] == {"result": later}


def test_what_is_made_of_words_is_not_held_against_what_was_seen(ledger: Ledger) -> None:
    first, later = told({"content": "a\n"}, diff="@@ -7 +7 @@"), told({"content": "7\ta"}, diff="@@", words_only=True)
    assert compared(ledger, first, later) == {
        "via": "transcript",
        "agrees": True,
        "not_compared": ["diff", "result"],
    }


def test_words_that_are_the_same_are_compared(ledger: Ledger) -> None:
    result = compared(ledger, told(STREAMS), told({"output": "a\nb"}, words_only=True))
    assert result == {"via": "transcript", "agrees": True}
