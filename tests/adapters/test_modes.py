"""Own tools and the mode `observe`, for what all adapters share."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import aver
from aver.adapters.tool_calls import ToolCallGate
from support.workplace import Workplace


@aver.tool(effects=["read"])
def lookup_order(order: str) -> str:
    return f"order {order}"


def never(*_: Any) -> Any:
    raise AssertionError("this must not be called")


def test_the_declaration_of_a_function_counts_for_its_call(work: Workplace) -> None:
    calls = ToolCallGate(work.run, library="test")
    given = {"execute": lambda: "found", "refuse": lambda reason: reason}
    told = calls.run_gated("lookup_order", {"order": "17"}, "c1", **given)
    assert "unknown tool lookup_order: tell Aver what it does: [gate.tools] lookup_order" in told
    assert calls.run_gated("lookup_order", {"order": "17"}, "c2", function=lookup_order, **given) == "found"
    assert "secret" in calls.run_gated("lookup_order", {"order": ".env"}, "c3", function=lookup_order, **given)
    assert work.decisions == ["human_review", "pass", "human_review"]
    work.hold_to_a_sound_run()


def test_an_async_call_is_declared_too(work: Workplace) -> None:
    async def execute() -> str:
        return "found"

    calls = ToolCallGate(work.run, library="test")
    around = calls.run_gated_async(
        "lookup_order", {"order": "17"}, "c1", function=lookup_order, execute=execute, refuse=never
    )
    assert asyncio.run(around) == "found"
    work.hold_to_a_sound_run()


def test_an_adapter_that_only_observes_holds_nothing_back(work: Workplace) -> None:
    calls = ToolCallGate(work.run, library="test", enforce=False, wait=60)
    done = calls.run_gated(
        "delete_file", {"path": work.notes}, "c1", execute=lambda: work.delete_file(work.notes), refuse=never
    )
    assert done == "deleted"
    assert not Path(work.notes).exists()
    work.hold_to_one_observed_deletion()
    # The next run, whose adapters are others, still enforces.
    with aver.AgentRuntime(work.run.output_dir, ledger=work.ledger) as run:
        assert not run.gate(action_type="tool_call", tool="delete_file", arguments={"path": "x"})["allows"]


@pytest.mark.parametrize("arguments", [{"path": float("nan")}, ["x"], None])
def test_what_cannot_be_judged_goes_on_and_its_record_names_no_decision(work: Workplace, arguments: Any) -> None:
    calls = ToolCallGate(work.run, library="test", enforce=False)
    assert calls.run_gated("read_file", arguments, "c1", execute=lambda: "read", refuse=never) == "read"
    (action,) = work.run.actions
    assert (action.success, action.gate_decision, action.policy_verdict) == (True, None, None)
