"""An agent of the Claude Agent SDK whose tool calls are gated and recorded.

    python examples/gate_claude_agent_sdk.py

The model is a server on the loopback that says what is written here, so that this runs without a key. Everything
happens in a directory that is gone afterwards.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, ToolResultBlock, UserMessage, query

import aver
from aver.adapters.claude_agent_sdk import AverHooks


def scripted_model(notes: Path) -> ThreadingHTTPServer:
    calls = [("Read", {"file_path": str(notes)}), ("Bash", {"command": f"rm {notes}"})]

    class Model(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            is_first = "tool_result" not in json.dumps(asked["messages"]) and asked.get("tools")
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            for event in spoken(calls if is_first else []):
                self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())

        def log_message(self, *_: Any) -> None:
            pass

    return ThreadingHTTPServer(("127.0.0.1", 0), Model)


def spoken(calls: list[tuple[str, dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """A message of the model as it is streamed: these calls, or a last word."""
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "msg", "type": "message", "role": "assistant", "model": "scripted", "content": [], "usage": usage}
    yield {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None}}
    blocks: list[tuple[dict[str, Any], dict[str, Any]]] = [
        (
            {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": {}},
            {"type": "input_json_delta", "partial_json": json.dumps(given)},
        )
        for number, (name, given) in enumerate(calls, 1)
    ] or [({"type": "text", "text": ""}, {"type": "text_delta", "text": "I could read it."})]
    for index, (block, delta) in enumerate(blocks):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_delta", "delta": {"stop_reason": "tool_use" if calls else "end_turn"}, "usage": usage}
    yield {"type": "message_stop"}


async def tidy_up(run: aver.AgentRuntime, place: Path, environment: dict[str, str]) -> None:
    with AverHooks(run) as gated:
        options = ClaudeAgentOptions(
            cwd=place,
            hooks=gated.hooks,
            allowed_tools=["Read", "Bash"],  # The SDK would let both run; the gate does not.
            setting_sources=[],
            env=environment,
        )
        async for message in query(prompt="Tidy up.", options=options):
            if isinstance(message, UserMessage) and isinstance(message.content, list):
                for block in message.content:
                    if isinstance(block, ToolResultBlock):
                        print(f"{block.tool_use_id}: {'refused' if block.is_error else 'done'}: {block.content}")


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory, "work")
        place.mkdir()
        notes = place / "notes.txt"
        notes.write_text("buy milk")
        server = scripted_model(notes)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        environment = {
            "HOME": directory,
            "CLAUDE_CONFIG_DIR": str(Path(directory, "config")),
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{server.server_address[1]}",
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }
        with (
            aver.open_ledger(home=Path(directory, "home")) as ledger,
            aver.AgentRuntime(Path(directory, "run"), ledger=ledger, agent="helper", workspace=place) as run,
        ):
            asyncio.run(tidy_up(run, place, environment))
            for action in run.actions:
                print("recorded:", action.metadata["tool_name"], action.gate_decision, action.policy_verdict)
            run.finalize()
            print("run:", run.verify().status)
        server.shutdown()


if __name__ == "__main__":
    main()
