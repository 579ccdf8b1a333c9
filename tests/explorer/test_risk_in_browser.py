"""How reliable the gate's scores were, on the page: from outcomes that are sealed, and not below 30 of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aver import Capsule, Ledger
from aver.capsule.aver_block import of_kind
from aver.gate.action import Action
from aver.gate.ask import ask
from aver.gate.outcomes.reports import find_decision, record_outcome
from support.browser_pages import go, wait_for_verdict
from support.explorer_servers import serve

pytestmark = [pytest.mark.browser, pytest.mark.long]

OUTCOMES_MIN = 30
FAILED_EACH = 3
"""Each third action fails."""


def act_and_seal(ledger: Ledger, number: int, workspace: Path) -> None:
    """Ask the gate, and seal what came of it: a failure as it is reported, a success with the call that names it."""
    line = f"pytest -q tests/part{number}"
    action = Action(
        type="shell_exec",
        tool="Bash",
        arguments={"command": line},
        session="one",
        workspace=str(workspace),
        caller="claude-code",
    )
    decision = ask(ledger, action).decision
    decided = find_decision(ledger, decision.gate_id)
    assert decided.allows
    assert decision.score is not None
    if number % FAILED_EACH == 0:
        record_outcome(ledger, decision.gate_id, "failed")
        return
    call = Capsule(type="tool", trigger={"request": line}, outcome={"status": "success", "summary": line})
    ledger.append("claude-code.one", of_kind(call, "call", {"decision": decided.record_id}))


def test_reliability_is_told_from_the_thirtieth_outcome_on(page: Any, ledger: Ledger, tmp_path: Path) -> None:
    for number in range(1, OUTCOMES_MIN):
        act_and_seal(ledger, number, tmp_path)
    with serve(ledger) as running:
        page.goto(running.server.link)
        wait_for_verdict(page)
        go(page, "#/risk")
        page.get_by_text(f"Too few to say: {OUTCOMES_MIN - 1} outcomes of scored actions are sealed here").wait_for()
        assert page.locator(".reliability").count() == 0
        act_and_seal(ledger, OUTCOMES_MIN, tmp_path)  # The page sees it as it is sealed.
        page.get_by_text(f"{OUTCOMES_MIN} scored actions with an outcome that is sealed here").wait_for()
        assert page.get_by_text("Too few to say").count() == 0
        page.get_by_role("img", name="Failed actions against predicted risk").wait_for()
        page.get_by_role("button", name="Show as a table").click()
        table = page.locator("table").filter(has_text="95 % interval")
        rows = [row.locator("td").all_inner_texts() for row in table.locator("tbody tr").all()]
        counts = [int(row[0]) for row in rows]
        assert sum(counts) == OUTCOMES_MIN
        failed = sum(round(int(row[0]) * float(row[2])) for row in rows)
        assert failed == OUTCOMES_MIN // FAILED_EACH
