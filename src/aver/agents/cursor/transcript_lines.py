"""What Cursor's transcript files say, which it keeps for conversations that are in no database.

    {"role": "user", "message": {"content": [{"type": "text", "text": "<user_query>…</user_query>"}]}}
    {"role": "assistant", "message": {"content": [{"type": "text", …}, {"type": "tool_use", "name": …, "input": …}]}}
    {"type": "turn_ended", "status": "success"}

Lines have no ids, and only ever grow: their numbers are the keys. Results are not written, or only by some versions: a
call that has none when its turn ends is told as one whose outcome was never learned.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from aver.agents.cursor import calls
from aver.agents.cursor.edits import EDIT_TOOLS, build_diff, find_path
from aver.ingest.agent_event import AgentCall, AgentEvent, Prompt, build_unknown_event
from aver.ingest.attachments import replace_images
from aver.ingest.contract import RawRecord, TranscriptSource, line_key
from aver.ingest.times import to_utc
from aver.ingest.tolerant_json import UNREADABLE, content_text, parse_embedded_json, parse_json

__all__ = ["CursorLineParser"]

_TIMESTAMP = re.compile(r"<timestamp>([^<]{1,64})</timestamp>").search


class CursorLineParser:
    """What of a transcript has been read."""

    def __init__(self, source: TranscriptSource) -> None:
        self._prompt: Prompt | None = None
        self._project = source.hints.get("project")
        self._open: dict[str, AgentEvent] = {}
        self._owners: set[str] = set()

    def feed(self, raw: RawRecord) -> Iterable[AgentEvent]:
        record = parse_json(raw)
        if not isinstance(record, dict):
            kept: Any = raw.data.decode("utf-8", "replace") if record is UNREADABLE else record
            kept = kept if raw.data else {"sha256": raw.sha256, "size": raw.size}
            yield build_unknown_event(raw.place, "unreadable", kept, key=line_key(raw))
            return
        message = record.get("message")
        content = message.get("content") if isinstance(message, dict) else message
        if record.get("role") == "user" and isinstance(content, str | list):
            yield from self._read_prompt(raw, content)
        elif record.get("role") == "assistant" and isinstance(content, str | list):
            yield from self._read_answer(raw, content)
        elif record.get("type") == "turn_ended":
            yield from self.finish()
            yield self._build_turn_end(raw, record)
        else:
            sort = str(record.get("type") or record.get("role") or "unknown")
            yield build_unknown_event(raw.place, sort, record, key=line_key(raw))

    def finish(self) -> Iterable[AgentEvent]:
        begun = list(self._open.values())
        self._open.clear()
        return begun

    def _read_prompt(self, raw: RawRecord, content: str | list[Any]) -> Iterator[AgentEvent]:
        yield from self._read_results(raw, content)
        text = content_text(content)
        if not text:
            return
        yield from self.finish()
        asked, when = _extract_query(text), _TIMESTAMP(text)
        self._prompt = Prompt(key=line_key(raw), text=asked)
        yield AgentEvent(
            what="prompt",
            key=line_key(raw),
            summary=f"prompt: {asked.strip().partition(chr(10))[0]}",
            text=asked,
            at=to_utc(when[1]) if when else None,
            result=None if asked == text or len(asked) + QUERY_TAGS_SIZE >= len(text.strip()) else {"as_sent": text},
            environment=self._build_environment(),
            places=(raw.place,),
        )

    def _read_answer(self, raw: RawRecord, content: str | list[Any]) -> Iterator[AgentEvent]:
        text = content_text(
            [block for block in content if not _is_thinking(block)] if isinstance(content, list) else content
        )
        thinking = "\n".join(filter(None, map(_thinking_text, content if isinstance(content, list) else ())))
        said = AgentEvent(
            what="answer",
            key=line_key(raw),
            summary=f"answer: {text.strip().partition(chr(10))[0]}" if text.strip() else "thinking",
            text=text,
            thinking=thinking,
            prompt=self._prompt,
            environment=self._build_environment(),
            places=(raw.place,),
        )
        uses = [
            (number, block)
            for number, block in enumerate(content if isinstance(content, list) else ())
            if isinstance(block, dict) and block.get("type") in ("tool_use", "tool_call")
        ]
        if not uses and (text or thinking):
            yield said
        for number, block in uses:
            event = self._build_call(replace(said, what="call"), f"{line_key(raw)}.{number}", block)
            self._open[event.key] = event
            said = replace(said, text="", thinking="")

    def _build_call(self, event: AgentEvent, place: str, block: dict[str, Any]) -> AgentEvent:
        told = block.get("id") or block.get("toolCallId")
        key = told if isinstance(told, str) and told and told not in self._owners else place
        self._owners.add(key)
        name = str(block.get("name") or block.get("toolName") or "tool")
        asked = parse_embedded_json(block.get("input") if "input" in block else block.get("args"))
        arguments = asked if isinstance(asked, dict) else {} if asked in (None, "") else {"raw": asked}
        path = find_path(arguments)
        diff = build_diff(name, arguments, None, {}, path) if name.lower() in EDIT_TOOLS else None
        return replace(
            event,
            key=key,
            summary=calls.build_summary(name, arguments, path, diff, None),
            call=AgentCall(tool=name, id=key, arguments=arguments, diff=diff),
            status="pending",
            environment={**event.environment, **({} if key == told else {"call_id_known": False})},
        )

    def _read_results(self, raw: RawRecord, content: str | list[Any]) -> Iterator[AgentEvent]:
        for block in content if isinstance(content, list) else ():
            answered = block.get("tool_use_id") if isinstance(block, dict) else None
            if isinstance(answered, str) and block.get("type") == "tool_result" and answered in self._open:
                begun = self._open.pop(answered)
                call = begun.call
                if call is None:
                    continue
                held = block.get("content")
                result = replace_images(parse_embedded_json(content_text(held) or held))
                code = calls.find_exit_code(result)
                ok = block.get("is_error") is not True and not code
                done = tuple(calls.list_effects(call.tool, call.arguments, find_path(call.arguments))) if ok else ()
                error = None if ok else f"exit code {code}" if code else content_text(held) or None
                yield replace(
                    begun,
                    call=replace(call, result=calls.normalize_streams(call.tool, result), ok=ok, error=error),
                    status=None,
                    side_effects=done,
                    places=(*begun.places, raw.place),
                )

    def _build_turn_end(self, raw: RawRecord, record: dict[str, Any]) -> AgentEvent:
        status = str(record.get("status") or "unknown")
        return AgentEvent(
            what="note",
            key=line_key(raw),
            summary=f"turn ended: {status}",
            prompt=self._prompt,
            result=record if set(record) - {"type", "status"} else None,
            status="success" if status in ("success", "completed") else "failure",
            environment=self._build_environment(),
            places=(raw.place,),
        )

    def _build_environment(self) -> dict[str, Any]:
        return {"project": self._project} if self._project else {}


def _extract_query(text: str) -> str:
    """What a person wrote, without what Cursor put around it."""
    _, opening, rest = text.partition("<user_query>")
    query, closing, _ = rest.partition("</user_query>")
    return query.strip() if opening and closing else text


QUERY_TAGS_SIZE = len("<user_query>\n\n</user_query>")
"""Characters around a prompt that say nothing besides."""


def _is_thinking(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") in ("thinking", "reasoning")


def _thinking_text(block: Any) -> str:
    text = (block.get("thinking") or block.get("text")) if _is_thinking(block) else None
    return text if isinstance(text, str) else ""
