"""A PydanticAI agent whose tool calls are gated and recorded.

    python examples/gate_pydantic_ai.py

The model is one that says what is written here, so that this runs without a key. Everything happens in a directory that
is gone afterwards.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import aver
from aver.adapters.pydantic_ai import AverCapability


def read_file(path: str) -> str:
    """Read a file."""
    return Path(path).read_text()


def delete_file(path: str) -> str:
    """Delete a file."""
    Path(path).unlink()
    return "deleted"


def script(notes: Path) -> FunctionModel:
    def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) > 1:
            return ModelResponse([TextPart("I could read it.")])
        given = {"path": str(notes)}
        return ModelResponse([ToolCallPart("read_file", given), ToolCallPart("delete_file", given)])

    return FunctionModel(respond)


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
            agent = Agent(script(notes), tools=[read_file, delete_file], capabilities=[AverCapability(run)])
            for message in agent.run_sync("Tidy up.").all_messages():
                for part in message.parts:
                    if isinstance(part, ToolReturnPart):
                        print(f"{part.tool_name}: {part.outcome}: {part.content}")
            for action in run.actions:
                print("recorded:", action.metadata["tool_name"], action.gate_decision, action.policy_verdict)
            run.finalize()
            print("run:", run.verify().status)


if __name__ == "__main__":
    main()
