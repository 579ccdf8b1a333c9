"""A LangChain agent whose tool calls are gated and recorded.

    python examples/gate_langchain.py

The model is one that says what is written here, so that this runs without a key. Everything happens in a directory that
is gone afterwards.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool

import aver
from aver.adapters.langchain import AverMiddleware


class ScriptedModel(GenericFakeChatModel):
    def bind_tools(self, tools: Any, **_: Any) -> ScriptedModel:
        return self


@tool
def read_file(path: str) -> str:
    """Read a file."""
    return Path(path).read_text()


@tool
def delete_file(path: str) -> str:
    """Delete a file."""
    Path(path).unlink()
    return "deleted"


def script(notes: Path) -> ScriptedModel:
    calls = [
        {"name": "read_file", "args": {"path": str(notes)}, "id": "call_1"},
        {"name": "delete_file", "args": {"path": str(notes)}, "id": "call_2"},
    ]
    return ScriptedModel(messages=iter([AIMessage("", tool_calls=calls), AIMessage("I could read it.")]))


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory, "work")
        place.mkdir()
        notes = place / "notes.txt"
        notes.write_text("buy milk")
        with (
            aver.open_ledger(home=Path(directory, "home")) as ledger,
            aver.AgentRuntime(Path(directory, "run"), ledger=ledger, agent="helper", workspace=place) as run,
        ):
            agent = create_agent(script(notes), [read_file, delete_file], middleware=[AverMiddleware(run)])
            for part in agent.stream({"messages": [("user", "Tidy up.")]}, stream_mode="updates"):
                for message in part.get("tools", {}).get("messages", []):
                    if isinstance(message, ToolMessage):
                        print(f"{message.name}: {message.status}: {message.content}")
            for action in run.actions:
                print("recorded:", action.metadata["tool_name"], action.gate_decision, action.policy_verdict)
            run.finalize()
            print("run:", run.verify().status)


if __name__ == "__main__":
    main()
