"""The adapter for the OpenAI Agents SDK, with the released package and its scripted model."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from support.workplace import Workplace

pytest.importorskip("agents.testing", reason="needs the extra `openai-agents`")

from agents import Agent, FunctionTool, ModelSettings, RunConfig, Runner, function_tool, set_tracing_disabled
from agents.exceptions import UserError
from agents.testing import ScriptedModel, assistant_message, function_call

from aver import NotRecorded, Refused
from aver.adapters.openai_agents import AverTools

pytestmark = pytest.mark.more

set_tracing_disabled(True)

Call = tuple[str, dict[str, Any] | str]


def scripted(*calls: Call) -> ScriptedModel:
    made = [function_call(name, args, call_id=f"c{number}") for number, (name, args) in enumerate(calls, 1)]
    return ScriptedModel([made, [assistant_message("done")]])


def agent_for(work: Workplace, *calls: Call, tools: list[Any] | None = None, **options: Any) -> Agent[Any]:
    make = AverTools(work.run).function_tool
    own = [make(tool, **options) for tool in (work.read_file, work.delete_file, work.think)]
    return Agent(name="tester", tools=own if tools is None else tools, model=scripted(*calls))


def told(model: Any) -> list[str]:
    """What the model was given as outputs of its calls."""
    return [item["output"] for item in model.last_call.input if item.get("type") == "function_call_output"]


def run_at_once(agent: Agent[Any], **more: Any) -> list[str]:
    asyncio.run(Runner.run(agent, "go on", **more))
    return told(agent.model)


def streamed(agent: Agent[Any], **more: Any) -> list[str]:
    async def main() -> None:
        async for _ in Runner.run_streamed(agent, "go on", **more).stream_events():
            pass

    asyncio.run(main())
    return told(agent.model)


WAYS = [run_at_once, streamed]


def causes(error: BaseException | None) -> list[type]:
    return [] if error is None else [type(error), *causes(error.__cause__)]


@pytest.mark.parametrize("go", WAYS)
def test_a_call_is_gated_made_and_recorded_once(work: Workplace, go: Any) -> None:
    assert go(agent_for(work, ("read_file", {"path": work.notes}))) == ["buy milk"]
    work.hold_to_one_read("openai-agents", "c1")
    work.hold_to_a_sound_run()


@pytest.mark.parametrize("go", WAYS)
def test_a_refused_call_is_not_made_and_the_model_is_told(work: Workplace, go: Any) -> None:
    (answer,) = go(agent_for(work, ("delete_file", {"path": work.notes})))
    work.hold_to_a_refusal(answer)


@pytest.mark.parametrize("go", WAYS)
def test_an_exception_is_recorded_and_the_model_told_as_the_sdk_does(work: Workplace, go: Any) -> None:
    (answer,) = go(agent_for(work, ("read_file", {"path": work.missing})))
    assert answer == "An error occurred while running the tool. Please try again."
    work.hold_to_a_failure("FileNotFoundError", "missing.txt")
    work.hold_to_a_sound_run()


def test_an_exception_is_told_in_the_callers_words(work: Workplace) -> None:
    async def explain(_: Any, error: Exception) -> str:
        return f"sorry: {type(error).__name__}"

    agent = agent_for(work, ("read_file", {"path": work.missing}), failure_error_function=explain)
    assert run_at_once(agent) == ["sorry: FileNotFoundError"]


@pytest.mark.parametrize("go", WAYS)
def test_without_a_handler_an_exception_is_raised(work: Workplace, go: Any) -> None:
    with pytest.raises((FileNotFoundError, UserError)) as raised:
        go(agent_for(work, ("read_file", {"path": work.missing}), failure_error_function=None))
    assert FileNotFoundError in causes(raised.value)
    work.hold_to_a_failure("FileNotFoundError", "missing.txt")


@pytest.mark.parametrize("go", WAYS)
def test_what_cannot_be_recorded_raises(work: Workplace, go: Any) -> None:
    work.run.record_simple("observation", "first", {}, "")
    with pytest.raises((NotRecorded, UserError)) as raised:
        go(agent_for(work, ("think", {"about": "x"})))
    assert NotRecorded in causes(raised.value)


@pytest.mark.parametrize("arguments", ["not json", '{"path": "a", "path": "b"}', '["x"]', '{"path": NaN}'])
def test_arguments_that_are_not_clear_are_refused_and_recorded(work: Workplace, arguments: str) -> None:
    (answer,) = run_at_once(agent_for(work, ("read_file", arguments)))
    assert "must be an object" in answer
    assert work.made == []
    (action,) = work.run.actions
    assert action.success is False


def test_several_calls_of_one_message(work: Workplace) -> None:
    reads = [("read_file", {"path": work.notes})] * 4
    answers = run_at_once(agent_for(work, *reads, ("delete_file", {"path": work.notes})))
    assert answers[:4] == ["buy milk"] * 4
    assert "deletes files" in answers[4]
    assert len(work.made) == len(work.run.actions) == 4
    work.hold_to_a_sound_run()


def test_a_call_that_takes_too_long_is_a_failure(work: Workplace) -> None:
    async def read_file(path: str) -> str:
        work.made.append(f"read {path}")
        await asyncio.Event().wait()
        return "never"

    tool = AverTools(work.run).function_tool(read_file, timeout=2.0)
    (answer,) = run_at_once(agent_for(work, ("read_file", {"path": work.notes}), tools=[tool]))
    assert "timed out" in answer
    (action,) = work.run.actions
    assert action.success is False
    assert action.metadata is not None
    assert action.metadata["error"]["type"] == "asyncio.exceptions.CancelledError"


def test_a_tool_made_elsewhere(work: Workplace) -> None:
    async def invoke(_: Any, arguments: str) -> str:
        return work.read_file(json.loads(arguments)["path"])

    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    tool = FunctionTool(name="read_file", description="", params_json_schema=schema, on_invoke_tool=invoke)
    tools = AverTools(work.run)
    agent = agent_for(work, ("read_file", {"path": work.notes}), tools=[tools.gate_tool(tool)])
    assert run_at_once(agent, hooks=tools.hooks) == ["buy milk"]
    work.hold_to_one_read("openai-agents", "c1")


@pytest.mark.parametrize("go", WAYS)
def test_the_hooks_end_a_run_before_a_tool_that_is_not_gated(work: Workplace, go: Any) -> None:
    tools = AverTools(work.run)
    agent = agent_for(work, ("read_file", {"path": work.notes}), tools=[function_tool(work.read_file)])
    with pytest.raises((Refused, UserError)) as raised:
        go(agent, hooks=tools.hooks, run_config=RunConfig(model_settings=ModelSettings()))
    assert Refused in causes(raised.value)
    assert work.made == []


def test_as_a_decorator_with_options(work: Workplace) -> None:
    tools = AverTools(work.run)

    @tools.function_tool(name_override="read_file", description_override="reads")
    def look(path: str) -> str:
        return work.read_file(path)

    assert (look.name, look.description) == ("read_file", "reads")
    assert run_at_once(agent_for(work, ("read_file", {"path": work.notes}), tools=[look])) == ["buy milk"]


@pytest.mark.parametrize("go", WAYS)
def test_a_declared_tool_passes_and_another_asks(work: Workplace, go: Any) -> None:
    def mystery(order: str) -> str:
        raise AssertionError("this must not be called")

    made = AverTools(work.run)
    tools = [made.function_tool(work.lookup_order), made.function_tool(mystery)]
    given = {"order": "17"}
    first, second = go(agent_for(work, ("lookup_order", given), ("mystery", given), tools=tools))
    assert first == "order 17"
    assert "[gate.tools] mystery" in second
    assert sorted(work.decisions) == ["human_review", "pass"]


def test_a_tool_that_was_made_elsewhere_is_given_with_its_function(work: Workplace) -> None:
    made = AverTools(work.run)
    elsewhere = function_tool(work.lookup_order)
    agent = agent_for(work, ("lookup_order", {"order": "17"}), tools=[made.gate_tool(elsewhere, work.lookup_order)])
    assert run_at_once(agent, hooks=made.hooks) == ["order 17"]
    (told,) = run_at_once(agent_for(work, ("lookup_order", {"order": "18"}), tools=[made.gate_tool(elsewhere)]))
    assert "unknown tool lookup_order" in told


@pytest.mark.parametrize("go", WAYS)
def test_tools_that_only_observe_hold_nothing_back(work: Workplace, go: Any) -> None:
    made = AverTools(work.run, enforce=False)
    agent = agent_for(work, ("delete_file", {"path": work.notes}), tools=[made.function_tool(work.delete_file)])
    assert go(agent, hooks=made.hooks) == ["deleted"]
    work.hold_to_one_observed_deletion()


def test_hooks_that_only_observe_let_an_ungated_tool_go_on(work: Workplace) -> None:
    tools = [function_tool(work.lookup_order)]
    for enforce in (False, True):
        agent = agent_for(work, ("lookup_order", {"order": "17"}), tools=tools)
        hooks = AverTools(work.run, enforce=enforce).hooks
        if enforce:
            with pytest.raises((Refused, UserError)):
                run_at_once(agent, hooks=hooks)
        else:
            assert run_at_once(agent, hooks=hooks) == ["order 17"]


async def ask_always(*_: Any) -> bool:
    return True


@pytest.mark.parametrize("needed", [True, ask_always])
@pytest.mark.parametrize("is_approved", [True, False])
def test_a_call_that_needs_an_approval_waits(work: Workplace, needed: Any, is_approved: bool) -> None:
    agent = agent_for(work, ("read_file", {"path": work.notes}), needs_approval=needed)
    first = asyncio.run(Runner.run(agent, "go on"))
    (interruption,) = first.interruptions
    waited = work.hold_to_a_wait("needs_approval")
    assert work.made == []
    state = first.to_state()
    (state.approve if is_approved else state.reject)(interruption)
    done = asyncio.run(Runner.run(agent, state))
    assert done.final_output == "done"
    if is_approved:
        assert told(agent.model) == ["buy milk"]
        work.hold_to_an_answered_wait(waited)
    else:
        assert work.hold_to_a_wait("needs_approval") == waited
        assert work.made == []
        work.hold_to_a_sound_run()


def test_a_refused_call_stays_refused_whatever_the_person_says(work: Workplace) -> None:
    agent = agent_for(work, ("delete_file", {"path": work.notes}), needs_approval=True)
    first = asyncio.run(Runner.run(agent, "go on"))
    state = first.to_state()
    state.approve(first.interruptions[0])
    asyncio.run(Runner.run(agent, state))
    assert (work.made, work.run.actions, work.decisions) == ([], [], ["human_review"] * 2)
    assert "deletes files" in told(agent.model)[0]


def test_a_call_that_needs_no_approval_is_made_at_once(work: Workplace) -> None:
    async def ask_never(*_: Any) -> bool:
        return False

    agent = agent_for(work, ("read_file", {"path": work.notes}), needs_approval=ask_never)
    assert run_at_once(agent) == ["buy milk"]
    work.hold_to_one_read("openai-agents", "c1")
