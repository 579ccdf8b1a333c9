"""The PydanticAI adapter, with the released package and its function model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from support.workplace import Workplace

pytest.importorskip("pydantic_ai", reason="needs the extra `pydantic-ai`")

from pydantic_ai import (
    Agent,
    ApprovalRequired,
    CallDeferred,
    DeferredToolRequests,
    DeferredToolResults,
    FunctionToolset,
    ModelRetry,
    RunContext,
    Tool,
)
from pydantic_ai.capabilities import AbstractCapability, Hooks
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from aver import AgentRuntime, NotRecorded
from aver.actions.action import value_hash
from aver.adapters.pydantic_ai import AverCapability, gate_toolset

pytestmark = pytest.mark.more

Calls = list[tuple[str, dict[str, Any]]]


def answers_in(messages: list[ModelMessage]) -> list[ToolReturnPart]:
    return [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]


def model_for(calls: Calls) -> FunctionModel:
    """A model that makes these calls at once, and then is done."""

    def respond(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        if answers_in(messages):
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(
            parts=[ToolCallPart(name, args, tool_call_id=f"c{number}") for number, (name, args) in enumerate(calls, 1)]
        )

    async def stream(messages: list[ModelMessage], _: AgentInfo) -> AsyncIterator[Any]:
        if answers_in(messages):
            yield "done"
            return
        for number, (name, args) in enumerate(calls, 1):
            text = json.dumps(args)
            yield {number: DeltaToolCall(name=name, json_args=text[:5], tool_call_id=f"c{number}")}
            yield {number: DeltaToolCall(json_args=text[5:], tool_call_id=f"c{number}")}

    return FunctionModel(respond, stream_function=stream)


def agent_for(work: Workplace, *calls: tuple[str, dict[str, Any]], more: list[Any] | None = None) -> Agent[None, str]:
    return Agent(
        model_for(list(calls)),
        tools=[work.read_file, work.delete_file, work.think],
        capabilities=[AverCapability(work.run), *(more or [])],
    )


def run_at_once(agent: Agent[None, str]) -> list[ModelMessage]:
    return agent.run_sync("go on").all_messages()


def streamed(agent: Agent[None, str]) -> list[ModelMessage]:
    async def main() -> list[ModelMessage]:
        async with agent.run_stream("go on") as result:
            assert "".join([text async for text in result.stream_text(delta=True)]) == "done"
            return result.all_messages()

    return asyncio.run(main())


def iterated(agent: Agent[None, str]) -> list[ModelMessage]:
    async def main() -> list[ModelMessage]:
        async with agent.iter("go on") as steps:
            async for _ in steps:
                pass
        assert steps.result is not None
        return steps.result.all_messages()

    return asyncio.run(main())


WAYS = [run_at_once, streamed, iterated]


@pytest.mark.parametrize("go", WAYS)
def test_a_call_is_gated_made_and_recorded_once(work: Workplace, go: Any) -> None:
    (answer,) = answers_in(go(agent_for(work, ("read_file", {"path": work.notes}))))
    assert answer.content == "buy milk"
    work.hold_to_one_read("pydantic-ai", "c1")
    work.hold_to_a_sound_run()


@pytest.mark.parametrize("go", WAYS)
def test_a_refused_call_is_not_made_and_the_model_is_told(work: Workplace, go: Any) -> None:
    (answer,) = answers_in(go(agent_for(work, ("delete_file", {"path": work.notes}))))
    assert (answer.outcome, answer.tool_call_id) == ("failed", "c1")
    work.hold_to_a_refusal(str(answer.content))


@pytest.mark.parametrize("go", WAYS)
def test_an_exception_is_recorded_and_raised(work: Workplace, go: Any) -> None:
    with pytest.raises(FileNotFoundError):
        go(agent_for(work, ("read_file", {"path": work.missing})))
    work.hold_to_a_failure("FileNotFoundError", "missing.txt")


@pytest.mark.parametrize("go", WAYS)
def test_what_cannot_be_recorded_raises(work: Workplace, go: Any) -> None:
    work.run.record_simple("observation", "first", {}, "")
    with pytest.raises(NotRecorded, match="think"):
        go(agent_for(work, ("think", {"about": "x"})))


def test_a_call_that_the_tool_wants_done_again_is_a_failure(work: Workplace) -> None:
    def read_file(path: str) -> str:
        work.read_file(work.notes)
        raise ModelRetry("name another file")

    agent = Agent(
        model_for([("read_file", {"path": work.notes})]), tools=[read_file], capabilities=[AverCapability(work.run)]
    )
    agent.run_sync("go on")
    (action,) = work.run.actions
    assert action.success is False
    assert action.metadata is not None
    assert action.metadata["error"] == {"type": "pydantic_ai.exceptions.ModelRetry", "text": "name another file"}


def test_several_calls_side_by_side(work: Workplace) -> None:
    reads = [("read_file", {"path": work.notes})] * 4
    answers = answers_in(run_at_once(agent_for(work, *reads, ("delete_file", {"path": work.notes}))))
    assert sorted(answer.outcome for answer in answers) == ["failed"] + ["success"] * 4
    assert len(work.made) == len(work.run.actions) == 4
    work.hold_to_a_sound_run()


@pytest.mark.parametrize("is_first", [True, False])
def test_it_judges_what_other_capabilities_have_made_of_a_call(work: Workplace, is_first: bool) -> None:
    hooks: AbstractCapability[Any] = Hooks()

    @hooks.on.before_tool_execute
    async def elsewhere(ctx: Any, *, call: Any, tool_def: Any, args: dict[str, Any]) -> dict[str, Any]:
        return {"path": "/etc/shadow"}

    capabilities = [AverCapability(work.run), hooks]
    agent = Agent(
        model_for([("read_file", {"path": work.notes})]),
        tools=[work.read_file],
        capabilities=capabilities if is_first else capabilities[::-1],
    )
    (answer,) = answers_in(run_at_once(agent))
    assert answer.outcome == "failed"
    assert "a secret" in str(answer.content)
    assert work.made == []


def test_validated_arguments_are_judged_as_the_json_they_came_from(work: Workplace) -> None:
    def read_file(path: Path, since: date) -> str:
        return f"{path.name} since {since:%Y}"

    given = {"path": work.notes, "since": "2026-05-31"}
    toolset = gate_toolset(FunctionToolset([read_file]), work.run)
    run_at_once(Agent(model_for([("read_file", given)]), toolsets=[toolset]))
    (action,) = work.run.actions
    assert action.policy_verdict == "POLICY_ENFORCED"
    assert action.input_hash == value_hash(given)


def circle() -> Any:
    items: list[Any] = []
    items.append(items)
    return items


@pytest.mark.parametrize(
    "output", [b"\xff", object(), {1: date(2026, 5, 31)}, circle()], ids=["bytes", "object", "dict", "circle"]
)
def test_outputs_of_any_kind_are_recorded(work: Workplace, output: Any) -> None:
    class Given(FunctionToolset[Any]):
        async def call_tool(self, *_: Any) -> Any:
            return output

    def think() -> str:
        return ""

    toolset = gate_toolset(Given([think]), work.run)
    assert asyncio.run(toolset.call_tool("think", {}, Context(), None)) is output
    assert work.run.actions[0].success is True


class Context:
    tool_call_id = "c1"


@pytest.mark.parametrize("renamed", [False, True])
def test_a_declared_tool_passes_and_another_asks(work: Workplace, renamed: bool) -> None:
    def mystery(order: str) -> str:
        raise AssertionError("this must not be called")

    prefix = "shop_" if renamed else ""
    tools = FunctionToolset([work.lookup_order, mystery])
    agent = Agent(
        model_for([(f"{prefix}lookup_order", {"order": "17"}), (f"{prefix}mystery", {"order": "17"})]),
        toolsets=[tools.prefixed("shop") if renamed else tools],
        capabilities=[AverCapability(work.run)],
    )
    first, second = answers_in(run_at_once(agent))
    assert first.content == "order 17"
    assert f"[gate.tools] {prefix}mystery" in str(second.content)
    assert sorted(work.decisions) == ["human_review", "pass"]


def test_a_capability_that_only_observes_holds_nothing_back(work: Workplace) -> None:
    agent = Agent(
        model_for([("delete_file", {"path": work.notes})]),
        tools=[work.delete_file],
        capabilities=[AverCapability(work.run, enforce=False)],
    )
    (answer,) = answers_in(run_at_once(agent))
    assert answer.content == "deleted"
    work.hold_to_one_observed_deletion()


def test_a_toolset_that_only_observes_holds_nothing_back(work: Workplace) -> None:
    toolset = gate_toolset(FunctionToolset([work.delete_file]), work.run, enforce=False)
    run_at_once(Agent(model_for([("delete_file", {"path": work.notes})]), toolsets=[toolset]))
    work.hold_to_one_observed_deletion()


# --- calls that wait for a person by PydanticAI's own means


def raising_tool(work: Workplace, error: type[Exception]) -> Any:
    def read_file(ctx: RunContext[None], path: str) -> str:
        if not ctx.tool_call_approved:
            raise error
        return work.read_file(path)

    return Agent(
        model_for([("read_file", {"path": work.notes})]),
        tools=[read_file],
        capabilities=[AverCapability(work.run)],
        output_type=[str, DeferredToolRequests],
    )


def declaring_tool(work: Workplace, name: str = "read_file") -> Any:
    return Agent(
        model_for([(name, {"path": work.notes})]),
        tools=[Tool(getattr(work, name), requires_approval=True)],
        capabilities=[AverCapability(work.run)],
        output_type=[str, DeferredToolRequests],
    )


@pytest.mark.parametrize("make", [lambda work: raising_tool(work, ApprovalRequired), declaring_tool])
@pytest.mark.parametrize("is_new_run", [False, True])
def test_a_call_that_waits_for_an_approval(work: Workplace, make: Any, is_new_run: bool) -> None:
    first = make(work).run_sync("go on")
    assert list(first.output.approvals)
    waited = work.hold_to_a_wait("")
    assert work.made == []
    if is_new_run:
        work.run.finalize()
        assert work.run.verify().check("answers").matters is False
        work.run = AgentRuntime(work.place.parent / "later", ledger=work.ledger, workspace=work.place)
    answers = DeferredToolResults(approvals={"c1": True})
    done = make(work).run_sync(message_history=first.all_messages(), deferred_tool_results=answers)
    assert (done.output, work.made) == ("done", [f"read {work.notes}"])
    work.hold_to_an_answered_wait(waited)
    work.run.close()


def test_a_call_that_the_person_declines_stays_waiting(work: Workplace) -> None:
    agent = declaring_tool(work)
    first = agent.run_sync("go on")
    agent.run_sync(
        message_history=first.all_messages(), deferred_tool_results=DeferredToolResults(approvals={"c1": False})
    )
    work.hold_to_a_wait("DeferredToolRequests")
    assert work.made == []
    work.hold_to_a_sound_run()
    assert "1 calls waited" in work.run.verify().check("answers").reason


def test_a_deferred_call_waits(work: Workplace) -> None:
    assert raising_tool(work, CallDeferred).run_sync("go on").output.calls
    work.hold_to_a_wait("CallDeferred")


def test_nobody_is_asked_about_a_call_that_is_refused(work: Workplace) -> None:
    done = declaring_tool(work, "delete_file").run_sync("go on")
    assert done.output == "done"
    (answer,) = answers_in(done.all_messages())
    assert (answer.outcome, work.run.actions, work.made) == ("denied", [], [])
    assert "deletes files" in str(answer.content)
