"""An agent of the OpenAI Agents SDK whose tool calls are gated and recorded.

    python examples/gate_openai_agents.py

The model is one that says what is written here, so that this runs without a key. Everything happens in a directory that
is gone afterwards.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from agents import Agent, Runner, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call

import aver
from aver.adapters.openai_agents import AverTools


def script(notes: Path) -> ScriptedModel:
    given = {"path": str(notes)}
    calls = [function_call(name, given, call_id=name) for name in ("read_file", "delete_file")]
    return ScriptedModel([calls, [assistant_message("I could read it.")]])


async def tidy_up(run: aver.AgentRuntime, notes: Path) -> None:
    tools = AverTools(run)

    @tools.function_tool
    def read_file(path: str) -> str:
        """Read a file."""
        return Path(path).read_text()

    @tools.function_tool
    def delete_file(path: str) -> str:
        """Delete a file."""
        Path(path).unlink()
        return "deleted"

    agent = Agent(name="helper", tools=[read_file, delete_file], model=script(notes))
    result = Runner.run_streamed(agent, "Tidy up.", hooks=tools.hooks)
    async for event in result.stream_events():
        if event.type == "run_item_stream_event" and event.item.type == "tool_call_output_item":
            print(f"{event.item.raw_item['call_id']}: {event.item.output}")


def main() -> None:
    set_tracing_disabled(True)
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory, "work")
        place.mkdir()
        notes = place / "notes.txt"
        notes.write_text("buy milk")
        with (
            aver.open_ledger(home=Path(directory, "home")) as ledger,
            aver.AgentRuntime(Path(directory, "run"), ledger=ledger, agent="helper", workspace=place) as run,
        ):
            asyncio.run(tidy_up(run, notes))
            for action in run.actions:
                print("recorded:", action.metadata["tool_name"], action.gate_decision, action.policy_verdict)
            run.finalize()
            print("run:", run.verify().status)


if __name__ == "__main__":
    main()
