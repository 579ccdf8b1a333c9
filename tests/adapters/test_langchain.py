"""The LangChain adapter, with the released packages and a model that says what it is told to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from support.workplace import Workplace

pytest.importorskip("langchain", reason="needs the extra `langchain`")

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, ToolCallChunk, ToolMessage
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, interrupt

import aver
from aver import NotRecorded
from aver.adapters.langchain import AverMiddleware

pytestmark = pytest.mark.more


class Scripted(GenericFakeChatModel):
    """Says what is on its list; streams it in two pieces, so that a call's arguments come in parts."""

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self

    def _stream(self, messages: Any, *_: Any, **__: Any) -> Iterator[ChatGenerationChunk]:
        message = next(self.messages)
        assert isinstance(message, AIMessage)
        for half in (0, 1):
            pieces = [
                ToolCallChunk(
                    name=None if half else call["name"],
                    id=None if half else call["id"],
                    args=json.dumps(call["args"])[5:] if half else json.dumps(call["args"])[:5],
                    index=number,
                )
                for number, call in enumerate(message.tool_calls)
            ]
            content = "" if half else message.content
            yield ChatGenerationChunk(message=AIMessageChunk(content=content, tool_call_chunks=pieces))


def calling(*calls: tuple[str, dict[str, Any]]) -> AIMessage:
    listed = [{"name": name, "args": args, "id": f"c{number}"} for number, (name, args) in enumerate(calls, 1)]
    return AIMessage(content="", tool_calls=listed)


def tools_of(work: Workplace) -> list[Any]:
    return [tool(work.read_file), tool(work.delete_file), tool(work.think)]


def agent_for(work: Workplace, *calls: tuple[str, dict[str, Any]]) -> Any:
    model = Scripted(messages=iter([calling(*calls), AIMessage(content="done")]))
    return create_agent(model, tools_of(work), middleware=[AverMiddleware(work.run)])


QUESTION = {"messages": [("user", "go on")]}


def told(messages: list[Any]) -> list[ToolMessage]:
    return [message for message in messages if isinstance(message, ToolMessage)]


def invoked(agent: Any) -> list[Any]:
    return agent.invoke(QUESTION)["messages"]


def invoked_async(agent: Any) -> list[Any]:
    return asyncio.run(agent.ainvoke(QUESTION))["messages"]


def streamed(agent: Any) -> list[Any]:
    return [part["messages"][-1] for part in agent.stream(QUESTION, stream_mode="values")]


def streamed_by_token(agent: Any) -> list[Any]:
    async def main() -> list[Any]:
        return [message async for message, _ in agent.astream(QUESTION, stream_mode="messages")]

    return asyncio.run(main())


WAYS = [invoked, invoked_async, streamed, streamed_by_token]


@pytest.mark.parametrize("go", WAYS)
def test_a_call_is_gated_made_and_recorded_once(work: Workplace, go: Any) -> None:
    (answer,) = told(go(agent_for(work, ("read_file", {"path": work.notes}))))
    assert answer.content == "buy milk"
    work.hold_to_one_read("langchain", "c1")
    work.hold_to_a_sound_run()


@pytest.mark.parametrize("go", WAYS)
def test_a_refused_call_is_not_made_and_the_model_is_told(work: Workplace, go: Any) -> None:
    (answer,) = told(go(agent_for(work, ("delete_file", {"path": work.notes}))))
    assert (answer.status, answer.tool_call_id) == ("error", "c1")
    work.hold_to_a_refusal(str(answer.content))


@pytest.mark.parametrize("go", WAYS)
def test_an_exception_is_recorded_and_raised(work: Workplace, go: Any) -> None:
    with pytest.raises(FileNotFoundError):
        go(agent_for(work, ("read_file", {"path": work.missing})))
    work.hold_to_a_failure("FileNotFoundError", "missing.txt")


def test_arguments_that_the_tool_does_not_take_are_a_failure(work: Workplace) -> None:
    (answer,) = told(
        invoked(agent_for(work, ("read_file", {"path": work.notes, "lines": 3, "wrong": 1} | {"path": 5})))
    )
    assert answer.status == "error"
    assert work.made == []
    assert [action.success for action in work.run.actions] in ([], [False])


@pytest.mark.parametrize("go", WAYS)
def test_what_cannot_be_recorded_raises(work: Workplace, go: Any) -> None:
    work.run.record_simple("observation", "first", {}, "")
    with pytest.raises(NotRecorded, match="think"):
        go(agent_for(work, ("think", {"about": "x"})))


@pytest.mark.parametrize("go", [invoked, invoked_async])
def test_several_calls_of_one_message(work: Workplace, go: Any) -> None:
    reads = [("read_file", {"path": work.notes})] * 4
    answers = told(go(agent_for(work, *reads, ("delete_file", {"path": work.notes}))))
    assert [answer.status for answer in answers] == ["success"] * 4 + ["error"]
    assert len(work.made) == len(work.run.actions) == 4
    work.hold_to_a_sound_run()


def graph_that_catches_errors(work: Workplace) -> Any:
    gated = AverMiddleware(work.run)
    node = ToolNode(
        tools_of(work),
        handle_tool_errors=True,
        wrap_tool_call=gated.wrap_tool_call,
        awrap_tool_call=gated.awrap_tool_call,
    )
    graph = StateGraph(MessagesState)
    graph.add_node("tools", node)
    graph.add_edge(START, "tools")
    graph.add_edge("tools", END)
    return graph.compile()


def test_a_graph_whose_tool_node_makes_messages_of_errors(work: Workplace) -> None:
    done = graph_that_catches_errors(work).invoke({"messages": [calling(("read_file", {"path": work.missing}))]})
    assert told(done["messages"])[0].status == "error"
    work.hold_to_a_failure("ToolMessage", "FileNotFoundError")


def test_such_a_graph_makes_no_further_call_after_a_gap(work: Workplace) -> None:
    work.run.record_simple("observation", "first", {}, "")
    graph = graph_that_catches_errors(work)
    for name, given in (("think", {"about": "x"}), ("read_file", {"path": work.notes})):
        done = graph.invoke({"messages": [calling((name, given))]})
        assert "NotRecorded" in str(told(done["messages"])[-1].content)
    assert work.made == ["think x"]


@pytest.mark.parametrize("go", [invoked, invoked_async])
def test_a_declared_tool_passes_and_another_asks(work: Workplace, go: Any) -> None:
    def mystery(order: str) -> str:
        """Do something."""
        raise AssertionError("this must not be called")

    model = Scripted(
        messages=iter([calling(("lookup_order", {"order": "17"}), ("mystery", {"order": "17"})), AIMessage("done")])
    )
    agent = create_agent(model, [tool(work.lookup_order), tool(mystery)], middleware=[AverMiddleware(work.run)])
    first, second = told(go(agent))
    assert (first.content, first.status) == ("order 17", "success")
    assert "[gate.tools] mystery" in str(second.content)
    assert sorted(work.decisions) == ["human_review", "pass"]
    work.hold_to_a_sound_run()


def test_the_declaration_of_an_async_tool_and_of_a_subclass_is_found(work: Workplace) -> None:
    @tool
    @aver.tool(effects=[])
    async def roll_dice(sides: int) -> str:
        """Roll a die."""
        return str(sides)

    class Dice(BaseTool):
        name: str = "dice"
        description: str = "Roll a die."

        @aver.tool(effects=[])
        def _run(self, sides: int) -> str:
            return str(sides)

    model = Scripted(messages=iter([calling(("roll_dice", {"sides": 6}), ("dice", {"sides": 4})), AIMessage("done")]))
    agent = create_agent(model, [roll_dice, Dice()], middleware=[AverMiddleware(work.run)])
    assert [answer.content for answer in told(invoked_async(agent))] == ["6", "4"]
    assert work.decisions == ["pass", "pass"]


@pytest.mark.parametrize("go", WAYS)
def test_a_middleware_that_only_observes_holds_nothing_back(work: Workplace, go: Any) -> None:
    model = Scripted(messages=iter([calling(("delete_file", {"path": work.notes})), AIMessage(content="done")]))
    agent = create_agent(model, tools_of(work), middleware=[AverMiddleware(work.run, enforce=False)])
    (answer,) = told(go(agent))
    assert (answer.content, answer.status) == ("deleted", "success")
    work.hold_to_one_observed_deletion()


@pytest.mark.parametrize("is_async", [False, True])
def test_a_call_whose_tool_asks_a_person_waits(work: Workplace, is_async: bool) -> None:
    @tool
    def read_file(path: str) -> str:
        """Read a file, if a person agrees."""
        return work.read_file(path) if interrupt("May I?") == "yes" else "never mind"

    model = Scripted(messages=iter([calling(("read_file", {"path": work.notes})), AIMessage(content="done")]))
    agent = create_agent(model, [read_file], middleware=[AverMiddleware(work.run)], checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}}

    def go(given: Any) -> Any:
        return asyncio.run(agent.ainvoke(given, config)) if is_async else agent.invoke(given, config)

    assert go(QUESTION)["__interrupt__"]
    waited = work.hold_to_a_wait("GraphInterrupt")
    assert work.made == []
    (answer,) = told(go(Command(resume="yes"))["messages"])
    assert answer.content == "buy milk"
    work.hold_to_an_answered_wait(waited)
