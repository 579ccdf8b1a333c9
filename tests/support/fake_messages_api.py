"""A Messages API on the loopback that says what it is told to, for the program that the Claude Agent SDK brings."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class FakeApi(ThreadingHTTPServer):
    """Answers the first question with the calls, every later one with "done". `told` are the results it was given."""

    daemon_threads = True

    def __init__(self, calls: list[tuple[str, dict[str, Any]]]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.calls = calls
        self.told: list[dict[str, Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def answer(self, question: dict[str, Any]) -> list[dict[str, Any]]:
        blocks = [block for message in question["messages"] for block in _blocks(message)]
        results = [block for block in blocks if block["type"] == "tool_result"]
        if results:
            self.told = results
        if results or not question.get("tools"):
            return [{"type": "text", "text": "done"}]
        return [
            {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": given}
            for number, (name, given) in enumerate(self.calls, 1)
        ]


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    return message["content"] if isinstance(message["content"], list) else []


class _Handler(BaseHTTPRequestHandler):
    server: FakeApi

    def do_POST(self) -> None:
        question = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if not self.path.startswith("/v1/messages") or "messages" not in question:
            self.send_error(404)
            return
        if "count_tokens" in self.path:
            self._send("application/json", json.dumps({"input_tokens": 1}))
            return
        content = self.server.answer(question)
        stop = "tool_use" if content[0]["type"] == "tool_use" else "end_turn"
        usage = {"input_tokens": 1, "output_tokens": 1}
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": question["model"], "usage": usage}
        if not question.get("stream"):
            whole = {**message, "content": content, "stop_reason": stop, "stop_sequence": None}
            self._send("application/json", json.dumps(whole))
            return
        begun = {**message, "content": [], "stop_reason": None, "stop_sequence": None}
        events = [{"type": "message_start", "message": begun}, *_streamed(content)]
        events.append({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage})
        events.append({"type": "message_stop"})
        self._send("text/event-stream", "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events))

    def _send(self, kind: str, text: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def do_HEAD(self) -> None:
        self._send("text/plain", "")

    do_GET = do_HEAD

    def log_message(self, *_: Any) -> None:
        pass


def _streamed(content: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for index, block in enumerate(content):
        if block["type"] == "text":
            start, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            start = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield {"type": "content_block_start", "index": index, "content_block": start}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}


@contextmanager
def serving(calls: list[tuple[str, dict[str, Any]]]) -> Iterator[FakeApi]:
    server = FakeApi(calls)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
