"""Waiting: it ends with what was decided, or with no."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from aver import Head, Ledger, Unavailable, open_ledger
from aver.gate.approvals import (
    ApprovalRequest,
    Person,
    WaitOutcome,
    approve,
    consume,
    deny,
    load_request_state,
    wait_for_answer,
    wait_for_answer_async,
)
from support.approvals import SHOWN, enrolled, opened, somebody, with_settings

LONG = 60.0
"""Longer than any of these takes, so that a timeout is never what ends it."""


def test_what_is_decided_already_needs_no_waiting(ledger: Ledger, ada: Person, request_: ApprovalRequest) -> None:
    approve(ledger, request_, ada, shown=SHOWN)
    outcome = wait_for_answer(ledger, request_, 0)
    assert outcome == WaitOutcome(state="approved", reason="approved by person:ada", approvers=("person:ada",))
    assert outcome.allows


@pytest.mark.parametrize(("answer", "state"), [(approve, "approved"), (deny, "denied")])
def test_the_answer_ends_it(answer: Any, state: str, ledger: Ledger, ada: Person, request_: ApprovalRequest) -> None:
    def decide() -> None:
        with open_ledger() as own:
            answer(own, request_, ada, shown=SHOWN)

    later = threading.Timer(0.1, decide)
    later.start()
    outcome = wait_for_answer(ledger, request_, LONG)
    later.join()
    assert outcome.state == state
    assert outcome.allows is (state == "approved")


def test_running_out_of_patience_denies_and_leaves_the_request_open(
    ledger: Ledger, ada: Person, request_: ApprovalRequest
) -> None:
    outcome = wait_for_answer(ledger, request_, 0.05)
    assert (outcome.state, outcome.code, outcome.allows) == ("timeout", "TIMEOUT", False)
    assert ledger.head(request_.chain).count == 1
    approve(ledger, request_, ada, shown=SHOWN)
    again = opened(ledger)
    assert again == request_
    assert wait_for_answer(ledger, again, 0).allows


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("-inf")])
def test_no_patience_at_all(timeout: float, ledger: Ledger, request_: ApprovalRequest) -> None:
    assert wait_for_answer(ledger, request_, timeout).state == "timeout"


@pytest.mark.more
def test_the_end_of_a_request_is_recorded_by_whoever_waits(aver_home: Path) -> None:
    with with_settings(aver_home, "[approvals]\nexpires = 1\n") as ledger:
        ada = somebody("ada")
        enrolled(ledger, ada)
        request = opened(ledger)
        outcome = wait_for_answer(ledger, request, LONG)
        assert (outcome.state, outcome.code, outcome.allows) == ("expired", "EXPIRED", False)
        last = list(ledger.read(request.chain))[-1].to_dict()
        assert last["outcome"]["result"]["decision"] == "expired"
        assert wait_for_answer(ledger, request, LONG).state == "expired"


@pytest.mark.more
def test_a_clock_that_is_set_back_while_somebody_waits_does_not_prolong_it(aver_home: Path, clock: Any) -> None:
    with with_settings(aver_home, "[approvals]\nexpires = 1\n") as ledger:
        enrolled(ledger, somebody("ada"))
        request = opened(ledger)
        back = threading.Timer(0.2, clock.forward, (-86_400,))
        back.start()
        assert wait_for_answer(ledger, request, LONG).state == "expired"
        back.join()
        assert load_request_state(ledger, request).state == "expired"


def test_a_clock_that_jumps_ahead_ends_it(ledger: Ledger, ada: Person, request_: ApprovalRequest, clock: Any) -> None:
    approve(ledger, request_, ada, shown=SHOWN)
    clock.forward(3601)
    assert wait_for_answer(ledger, request_, LONG).state == "expired"
    clock.forward(-3601)
    assert wait_for_answer(ledger, request_, LONG).state == "expired"


def test_what_was_used_is_not_approved_any_more(ledger: Ledger, ada: Person, request_: ApprovalRequest) -> None:
    approve(ledger, request_, ada, shown=SHOWN)
    consume(ledger, request_, request_.digest)
    outcome = wait_for_answer(ledger, request_, LONG)
    assert (outcome.state, outcome.code) == ("denied", "REPLAY")


def test_for_asyncio(ledger: Ledger, ada: Person, request_: ApprovalRequest) -> None:
    async def both() -> tuple[WaitOutcome, WaitOutcome]:
        waiting = asyncio.create_task(wait_for_answer_async(ledger, request_, LONG))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        await asyncio.to_thread(approve, ledger, request_, ada, shown=SHOWN)
        return await waiting, await wait_for_answer_async(ledger, request_, 0)

    assert [outcome.state for outcome in asyncio.run(both())] == ["approved", "approved"]


# --- a ledger that is not what it was


def changed(home: Path, sql: str, *values: Any) -> None:
    """Change the file as whoever may write it can."""
    connection = sqlite3.connect(home / "ledger.db")
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")]
    for name in names:
        connection.execute(f"DROP TRIGGER {name}")
    connection.execute(sql, values)
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM records WHERE kind = 'approval.request'",
        "DELETE FROM chains WHERE name = 'approvals.default'",
        "UPDATE chains SET count = 0, head = NULL WHERE name = 'approvals.default'",
        "UPDATE records SET canonical = X'7b7d' WHERE kind = 'approval.decision'",
        "UPDATE records SET canonical = X'ff' WHERE kind = 'approval.request'",
        "UPDATE records SET hash = printf('%064d', 1) WHERE kind = 'approval.request'",
        "UPDATE records SET signature = printf('%0128d', 1) WHERE kind = 'approval.decision'",
        "DELETE FROM records WHERE kind = 'key.create'",
        "UPDATE records SET canonical = X'7b7d' WHERE kind = 'key.create'",
    ],
)
def test_a_damaged_ledger_approves_nothing(
    sql: str, ledger: Ledger, aver_home: Path, ada: Person, request_: ApprovalRequest
) -> None:
    approve(ledger, request_, ada, shown=SHOWN)
    changed(aver_home, sql)
    outcome = wait_for_answer(ledger, request_, 0)
    assert not outcome.allows
    assert outcome.code


def test_a_decision_that_cannot_be_understood_is_no_approval(
    ledger: Ledger, ada: Person, request_: ApprovalRequest
) -> None:
    """It may have been a denial."""
    from aver import Capsule
    from aver.capsule.aver_block import of_kind
    from aver.capsule.model import Outcome as Result

    approve(ledger, request_, ada, shown=SHOWN)
    odd = Capsule(type="auth", outcome=Result(status="blocked", result={"request": request_.id, "decision": "deny"}))
    ledger.append(request_.chain, of_kind(odd, "approval.decision"))
    outcome = wait_for_answer(ledger, request_, LONG)
    assert (outcome.state, outcome.code) == ("denied", "EVIDENCE_INVALID")


def test_a_ledger_that_cannot_be_read_is_waited_for(
    ledger: Ledger, ada: Person, request_: ApprovalRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And if it does not come back in time, the answer is no."""
    approve(ledger, request_, ada, shown=SHOWN)
    there = ledger.head
    failing = iter(range(3))

    def head(chain: str) -> Head:
        if next(failing, None) is not None:
            raise Unavailable("the disk is busy")
        return there(chain)

    monkeypatch.setattr(ledger, "head", head)
    assert wait_for_answer(ledger, request_, LONG).allows
    ledger.close()
    outcome = wait_for_answer(ledger, request_, 0.05)
    assert (outcome.state, outcome.code, outcome.allows) == ("denied", "UNAVAILABLE", False)
