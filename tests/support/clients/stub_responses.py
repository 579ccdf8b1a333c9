"""A model behind OpenAI's Responses API that streams a script: https://platform.openai.com/docs/api-reference/responses.

Which turn is due the conversation itself tells: the first whose calls are not all in it. So a request that is sent
twice is answered twice, and alike.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from support.clients.stub_server import Body, StubServer, event, serving

__all__ = ["MODEL", "Turns", "answer", "call", "heard", "model_that_says", "patch"]

MODEL = "gpt-5.5"
"""One that Codex knows to take patches."""

Item = Mapping[str, Any]
Turns = Sequence[Sequence[Item]]

_CALLS = ("function_call", "custom_tool_call", "tool_search_call")


def call(identifier: str, tool: str, **arguments: Any) -> Item:
    """A call of a function."""
    item = {"type": "function_call", "id": f"fc_{identifier}", "call_id": identifier, "name": tool}
    return {**item, "arguments": json.dumps(arguments)}


def patch(identifier: str, text: str) -> Item:
    """A call of `apply_patch`, which takes free text."""
    item = {"type": "custom_tool_call", "id": f"ctc_{identifier}", "call_id": identifier, "name": "apply_patch"}
    return {**item, "status": "completed", "input": text}


def answer(text: str) -> Item:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": "msg_stub", "role": "assistant", "status": "completed", "content": content}


def model_that_says(turns: Turns) -> AbstractContextManager[StubServer]:
    """A running model that says these items, turn by turn. Each turn but the last calls a tool."""
    called = [{item["call_id"] for item in turn if item["type"] in _CALLS} for turn in turns]

    def speak(body: Body) -> bytes:
        done = {item.get("call_id") for item in body["input"]}
        turn = next((number for number, calls in enumerate(called) if not calls <= done or not calls), len(turns) - 1)
        return b"".join(event(data) for data in _events(turns[turn], turn))

    return serving("/v1/responses", speak)


def heard(stub: StubServer, identifier: str) -> str:
    """What the model was told that came of a call, as one text."""
    for body in reversed(stub.asked):
        for item in body["input"]:
            if item.get("call_id") == identifier and str(item["type"]).endswith("_output"):
                output = item["output"]
                return output if isinstance(output, str) else "\n".join(one.get("text", "") for one in output)
    raise AssertionError(f"the model was told nothing of {identifier}")


def _events(items: Sequence[Item], number: int) -> Iterator[Mapping[str, Any]]:
    response = {"id": f"resp_stub_{number}", "object": "response", "model": MODEL, "status": "in_progress"}
    yield {"type": "response.created", "response": response}
    for index, item in enumerate(items):
        yield {"type": "response.output_item.added", "output_index": index, "item": item}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    used = {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 10},
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 5},
        "total_tokens": 120,
    }
    yield {"type": "response.completed", "response": {**response, "status": "completed", "usage": used}}
