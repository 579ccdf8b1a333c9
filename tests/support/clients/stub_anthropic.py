"""A model behind Anthropic's Messages API that streams a script: https://docs.claude.com/en/api/messages-streaming.

Which turn is due the conversation itself tells: the first without an answer of the model's. So a request that is sent
twice is answered twice, and alike. Subagents have conversations of their own, known by what they were asked. What a
client asks besides, such as a title for the session, has no tools and gets a few words.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Any

from support.clients.stub_server import Body, StubServer, event, serving

__all__ = ["MODEL", "Block", "Turns", "answer", "call", "heard", "model_that_says"]

MODEL = "claude-sonnet-4-5"

Block = Mapping[str, Any]
Turns = Sequence[Sequence[Block]]


def call(identifier: str, tool: str, **arguments: Any) -> Block:
    """A call of a tool."""
    return {"type": "tool_use", "id": identifier, "name": tool, "input": arguments}


def answer(text: str) -> Block:
    return {"type": "text", "text": text}


def model_that_says(
    turns: Turns, *, to_subagents: Mapping[str, Turns] = MappingProxyType({})
) -> AbstractContextManager[StubServer]:
    """A running model that says these blocks, turn by turn; and others to subagents, by what they were asked."""

    def speak(body: Body) -> bytes:
        if not body.get("tools"):
            return _message([answer("A stubbed session")], name="aside")
        asked = json.dumps(body["messages"][0])
        name = next((prompt for prompt in to_subagents if prompt in asked), "")
        mine = to_subagents[name] if name else turns
        turn = sum(message["role"] == "assistant" for message in body["messages"])
        blocks = mine[turn] if turn < len(mine) else [answer("There is nothing more to say.")]
        return _message(blocks, name=f"{turn}{name.replace(' ', '_')}")

    return serving("/v1/messages", speak)


def heard(stub: StubServer, identifier: str) -> str:
    """What the model was told that came of a call, as one text."""
    for body in reversed(stub.asked):
        for message in body["messages"]:
            for block in message["content"] if isinstance(message["content"], list) else []:
                if block.get("tool_use_id") == identifier:
                    content = block["content"]
                    return content if isinstance(content, str) else "\n".join(one.get("text", "") for one in content)
    raise AssertionError(f"the model was told nothing of {identifier}")


def _message(blocks: Sequence[Block], *, name: str) -> bytes:
    return b"".join(event(data) for data in _events(blocks, name))


def _events(blocks: Sequence[Block], name: str) -> Iterator[Mapping[str, Any]]:
    used = {"input_tokens": 100, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 10}
    message = {
        "id": f"msg_stub_{name}",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**used, "output_tokens": 1},
    }
    yield {"type": "message_start", "message": message}
    for index, block in enumerate(blocks):
        yield from _streamed(index, block)
    stopped = "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"
    delta = {"stop_reason": stopped, "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": {**used, "output_tokens": 20}}
    yield {"type": "message_stop"}


def _streamed(index: int, block: Block) -> Iterator[Mapping[str, Any]]:
    """A block as it comes: empty at first, then in pieces."""
    if block["type"] == "text":
        empty, name, kind, whole = {**block, "text": ""}, "text", "text_delta", block["text"]
    else:
        empty, name, kind = {**block, "input": {}}, "partial_json", "input_json_delta"
        whole = json.dumps(block["input"])
    yield {"type": "content_block_start", "index": index, "content_block": empty}
    half = len(whole) // 2
    for piece in (whole[:half], whole[half:]):
        yield {"type": "content_block_delta", "index": index, "delta": {"type": kind, name: piece}}
    yield {"type": "content_block_stop", "index": index}
