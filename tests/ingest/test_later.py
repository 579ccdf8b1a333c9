"""What somebody adds who comes later says whether both tell the same, and no more than can be said."""

from __future__ import annotations

from typing import Any

import pytest

from aver.ingest.deed import FROM_WORDS, Call, Deed
from aver.ingest.drafting import drafted
from aver.ingest.later import child_of
from aver.ingest.told import seal_deed
from aver.ledger import Ledger

STREAMS = {"stdout": "a\nb", "stderr": "", "exit_code": 0}


def told(result: Any, *, diff: str | None = None, words_only: bool = False) -> Deed:
    call = Call(tool="Bash", id="c1", arguments={"command": "ls"}, result=result, ok=True, diff=diff)
    environment = dict(FROM_WORDS) if words_only else {}
    return Deed(what="call", key="c1", summary="Bash", call=call, environment=environment)


def compared(ledger: Ledger, first: Deed, later: Deed) -> dict[str, Any]:
    sealed = seal_deed(ledger, "tool", "one", first)
    child = child_of(sealed, drafted("tool", "one", later), "transcript")
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
