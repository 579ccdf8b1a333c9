"""What all adapters share: the gate before a call, the record after it, and nothing more after a gap."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from aver import NotRecorded, Refused
from aver.actions.action import value_hash
from aver.adapters.tool_calls import ERROR_MAX, Failure, ToolCallGate
from support.workplace import Workplace


@pytest.fixture
def calls(work: Workplace) -> ToolCallGate:
    return ToolCallGate(work.run, library="test")


def never(*_: Any) -> Any:
    raise AssertionError("this must not be called")


def read(work: Workplace, calls: ToolCallGate, path: str) -> Any:
    execute = lambda: work.read_file(path)  # noqa: E731
    return calls.run_gated("read_file", {"path": path}, "c1", execute=execute, refuse=never)


def delete(work: Workplace, calls: ToolCallGate) -> Any:
    execute = lambda: work.delete_file(work.notes)  # noqa: E731
    return calls.run_gated("delete_file", {"path": work.notes}, "c1", execute=execute, refuse=lambda reason: reason)


def test_a_call_is_gated_made_and_recorded(work: Workplace, calls: ToolCallGate) -> None:
    assert read(work, calls, work.notes) == "buy milk"
    work.hold_to_one_read("test", "c1")
    work.hold_to_a_sound_run()


def test_a_refused_call_is_not_made(work: Workplace, calls: ToolCallGate) -> None:
    work.hold_to_a_refusal(delete(work, calls))


def test_an_exception_is_recorded_and_goes_on(work: Workplace, calls: ToolCallGate) -> None:
    with pytest.raises(FileNotFoundError):
        read(work, calls, work.missing)
    work.hold_to_a_failure("FileNotFoundError", "missing.txt")
    work.hold_to_a_sound_run()


def test_a_tool_that_changes_what_it_is_given_did_what_was_gated(work: Workplace, calls: ToolCallGate) -> None:
    given: dict[str, Any] = {"path": work.notes, "lines": [1]}
    calls.run_gated("read_file", given, "c1", execute=lambda: given["lines"].append(given.pop("path")), refuse=never)
    assert work.run.actions[0].input_hash == value_hash({"path": work.notes, "lines": [1]})
    work.hold_to_a_sound_run()


def test_an_approved_call_goes_through_when_it_is_asked_again(work: Workplace, calls: ToolCallGate) -> None:
    ada = work.enrol_ada()
    assert "aver approvals show" in delete(work, calls)
    work.approve_the_request(ada)
    assert delete(work, calls) == "deleted"
    assert work.run.actions[0].gate_decision == "human_approved"
    assert not Path(work.notes).exists()
    work.hold_to_a_sound_run()


def test_waiting_for_a_human(work: Workplace) -> None:
    ada = work.enrol_ada()
    human = threading.Thread(target=work.approve_when_asked, args=(ada,))
    human.start()
    assert delete(work, ToolCallGate(work.run, library="test", wait=60)) == "deleted"
    human.join()


@pytest.mark.parametrize("arguments", [{"path": float("nan")}, {"path": b"x"}, {"path": "\ud800"}, ["x"], None])
def test_arguments_that_are_not_json_are_refused_and_recorded(
    work: Workplace, calls: ToolCallGate, arguments: Any
) -> None:
    told = calls.run_gated("read_file", arguments, "c1", execute=never, refuse=lambda reason: reason)
    assert told
    (action,) = work.run.actions
    assert action.success is False
    assert action.gate_decision is None
    assert action.metadata is not None
    assert action.metadata["error"] == {"type": "BadInput", "text": told}
    assert read(work, calls, work.notes) == "buy milk"


@pytest.mark.parametrize("tool", ["x" * 100_000, "read_file" + "_" * 300 + "delete", "read\ud800"])
def test_names_that_no_tool_has_are_refused_and_recorded(work: Workplace, calls: ToolCallGate, tool: str) -> None:
    assert calls.run_gated(tool, {"path": work.notes}, "c1", execute=never, refuse=lambda reason: reason)
    (action,) = work.run.actions
    assert (action.success, action.gate_decision) == (False, None)
    work.hold_to_a_sound_run()


def test_large_arguments_and_outputs(work: Workplace, calls: ToolCallGate) -> None:
    given = {"path": work.notes, "text": "x" * 60_000}
    calls.run_gated("read_file", given, "c1", execute=lambda: ["y" * 1_000_000] * 2, refuse=never)
    (action,) = work.run.actions
    assert action.input_hash == value_hash(given)
    assert action.output_hash == value_hash(["y" * 1_000_000] * 2)
    work.hold_to_a_sound_run()


@pytest.mark.parametrize("output", [object(), b"x", float("nan"), {1: 2}, Path("x"), "\ud800", {"a"}])
def test_outputs_of_any_kind_are_recorded(work: Workplace, calls: ToolCallGate, output: Any) -> None:
    assert calls.run_gated("read_file", {"path": work.notes}, "c1", execute=lambda: output, refuse=never) is output
    assert work.run.actions[0].success is True


def test_what_cannot_be_recorded_raises_and_ends_it(work: Workplace, calls: ToolCallGate) -> None:
    read(work, calls, work.notes)
    with pytest.raises(NotRecorded, match="think") as raised:
        calls.run_gated("think", {"about": "x"}, "c2", execute=lambda: work.think("x"), refuse=never)
    assert (raised.value.ran, raised.value.result) == (True, "sealed")
    with pytest.raises(NotRecorded, match="earlier call") as after:
        read(work, calls, work.notes)
    assert after.value.ran is False
    assert len(work.made) == 2


def test_a_sealed_run_lets_nothing_through(work: Workplace, calls: ToolCallGate) -> None:
    read(work, calls, work.notes)
    work.run.finalize()
    with pytest.raises(Refused, match="sealed"):
        read(work, calls, work.notes)
    assert len(work.made) == 1


def test_a_cancelled_task_is_recorded(work: Workplace, calls: ToolCallGate) -> None:
    async def main() -> None:
        begun = asyncio.Event()

        async def execute() -> str:
            begun.set()
            await asyncio.Event().wait()
            return "never"

        around = calls.run_gated_async("read_file", {"path": work.notes}, "c1", execute=execute, refuse=never)
        task = asyncio.create_task(around)
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    (action,) = work.run.actions
    assert action.metadata is not None
    assert action.metadata["error"]["type"] == "asyncio.exceptions.CancelledError"


def test_calls_side_by_side_are_all_recorded(work: Workplace, calls: ToolCallGate) -> None:
    async def one(number: int) -> str:
        async def execute() -> str:
            return str(number)

        return await calls.run_gated_async(
            "read_file", {"path": work.notes}, str(number), execute=execute, refuse=never
        )

    async def main() -> list[str]:
        return await asyncio.gather(*(one(number) for number in range(8)))

    assert asyncio.run(main()) == [str(number) for number in range(8)]
    ids = [action.metadata["tool_call_id"] for action in work.run.actions if action.metadata]
    assert sorted(ids) == [str(number) for number in range(8)]
    work.hold_to_a_sound_run()


@pytest.mark.parametrize("before", [0, ERROR_MAX - 20])
def test_secrets_in_errors_are_masked_and_long_ones_cut(work: Workplace, calls: ToolCallGate, before: int) -> None:
    def fail() -> str:
        raise ValueError("x " * (before // 2) + "token=ghp_0123456789abcdefghijABCDEFGHIJ456789 " + "x" * 10_000)

    with pytest.raises(ValueError, match="token"):
        calls.run_gated("read_file", {"path": work.notes}, "c1", execute=fail, refuse=never)
    (action,) = work.run.actions
    assert action.metadata is not None
    text = action.metadata["error"]["text"]
    assert "ghp_0" not in text
    assert len(text) <= ERROR_MAX + 64  # a mask that was cut is masked anew


def test_a_failure_that_came_back_as_a_result(work: Workplace, calls: ToolCallGate) -> None:
    found = Failure("Timeout", "too slow")
    calls.run_gated("read_file", {"path": work.notes}, "c1", execute=str, refuse=never, failure_in=lambda _: found)
    (action,) = work.run.actions
    assert action.success is False
    assert action.metadata is not None
    assert action.metadata["error"] == {"type": "Timeout", "text": "too slow"}
