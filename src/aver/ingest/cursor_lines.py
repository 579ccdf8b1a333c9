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

from aver.ingest import cursor_calls as calls
from aver.ingest.contract import Raw, Source, line_key
from aver.ingest.cursor_edits import EDITS, diff_of, path_in
from aver.ingest.deed import Call, Deed, Prompt, unknown
from aver.ingest.heavy import without_pictures
from aver.ingest.records import UNREADABLE, as_json, parsed, text_in
from aver.ingest.times import utc

__all__ = ["LineTurn"]

_TIMESTAMP = re.compile(r"<timestamp>([^<]{1,64})</timestamp>").search


class LineTurn:
    """What of a transcript has been read."""

    def __init__(self, source: Source) -> None:
        self._prompt: Prompt | None = None
        self._project = source.hints.get("project")
        self._open: dict[str, Deed] = {}
        self._owners: set[str] = set()

    def take(self, raw: Raw) -> Iterable[Deed]:
        record = parsed(raw)
        if not isinstance(record, dict):
            kept: Any = raw.data.decode("utf-8", "replace") if record is UNREADABLE else record
            kept = kept if raw.data else {"sha256": raw.sha256, "size": raw.size}
            yield unknown(raw.place, "unreadable", kept, key=line_key(raw))
            return
        message = record.get("message")
        content = message.get("content") if isinstance(message, dict) else message
        if record.get("role") == "user" and isinstance(content, str | list):
            yield from self._asked(raw, content)
        elif record.get("role") == "assistant" and isinstance(content, str | list):
            yield from self._answered(raw, content)
        elif record.get("type") == "turn_ended":
            yield from self.end()
            yield self._ended(raw, record)
        else:
            sort = str(record.get("type") or record.get("role") or "unknown")
            yield unknown(raw.place, sort, record, key=line_key(raw))

    def end(self) -> Iterable[Deed]:
        begun = list(self._open.values())
        self._open.clear()
        return begun

    def _asked(self, raw: Raw, content: str | list[Any]) -> Iterator[Deed]:
        yield from self._results(raw, content)
        text = text_in(content)
        if not text:
            return
        yield from self.end()
        asked, when = _query_in(text), _TIMESTAMP(text)
        self._prompt = Prompt(key=line_key(raw), text=asked)
        yield Deed(
            what="prompt",
            key=line_key(raw),
            summary=f"prompt: {asked.strip().partition(chr(10))[0]}",
            text=asked,
            at=utc(when[1]) if when else None,
            result=None if asked == text or len(asked) + TAGS >= len(text.strip()) else {"as_sent": text},
            environment=self._environment(),
            places=(raw.place,),
        )

    def _answered(self, raw: Raw, content: str | list[Any]) -> Iterator[Deed]:
        text = text_in(
            [block for block in content if not _is_thinking(block)] if isinstance(content, list) else content
        )
        thinking = "\n".join(filter(None, map(_thought, content if isinstance(content, list) else ())))
        said = Deed(
            what="answer",
            key=line_key(raw),
            summary=f"answer: {text.strip().partition(chr(10))[0]}" if text.strip() else "thinking",
            text=text,
            thinking=thinking,
            prompt=self._prompt,
            environment=self._environment(),
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
            deed = self._called(replace(said, what="call"), f"{line_key(raw)}.{number}", block)
            self._open[deed.key] = deed
            said = replace(said, text="", thinking="")

    def _called(self, deed: Deed, place: str, block: dict[str, Any]) -> Deed:
        told = block.get("id") or block.get("toolCallId")
        key = told if isinstance(told, str) and told and told not in self._owners else place
        self._owners.add(key)
        name = str(block.get("name") or block.get("toolName") or "tool")
        asked = as_json(block.get("input") if "input" in block else block.get("args"))
        arguments = asked if isinstance(asked, dict) else {} if asked in (None, "") else {"raw": asked}
        path = path_in(arguments)
        diff = diff_of(name, arguments, None, {}, path) if name.lower() in EDITS else None
        return replace(
            deed,
            key=key,
            summary=calls.summary(name, arguments, path, diff, None),
            call=Call(tool=name, id=key, arguments=arguments, diff=diff),
            status="pending",
            environment={**deed.environment, **({} if key == told else {"call_id_known": False})},
        )

    def _results(self, raw: Raw, content: str | list[Any]) -> Iterator[Deed]:
        for block in content if isinstance(content, list) else ():
            answered = block.get("tool_use_id") if isinstance(block, dict) else None
            if isinstance(answered, str) and block.get("type") == "tool_result" and answered in self._open:
                begun = self._open.pop(answered)
                call = begun.call
                if call is None:
                    continue
                held = block.get("content")
                result = without_pictures(as_json(text_in(held) or held))
                code = calls.exit_code(result)
                ok = block.get("is_error") is not True and not code
                done = tuple(calls.effects(call.tool, call.arguments, path_in(call.arguments))) if ok else ()
                error = None if ok else f"exit code {code}" if code else text_in(held) or None
                yield replace(
                    begun,
                    call=replace(call, result=calls.as_streams(call.tool, result), ok=ok, error=error),
                    status=None,
                    side_effects=done,
                    places=(*begun.places, raw.place),
                )

    def _ended(self, raw: Raw, record: dict[str, Any]) -> Deed:
        status = str(record.get("status") or "unknown")
        return Deed(
            what="note",
            key=line_key(raw),
            summary=f"turn ended: {status}",
            prompt=self._prompt,
            result=record if set(record) - {"type", "status"} else None,
            status="success" if status in ("success", "completed") else "failure",
            environment=self._environment(),
            places=(raw.place,),
        )

    def _environment(self) -> dict[str, Any]:
        return {"project": self._project} if self._project else {}


def _query_in(text: str) -> str:
    """What a person wrote, without what Cursor put around it."""
    _, opening, rest = text.partition("<user_query>")
    query, closing, _ = rest.partition("</user_query>")
    return query.strip() if opening and closing else text


TAGS = len("<user_query>\n\n</user_query>")
"""Characters around a prompt that say nothing besides."""


def _is_thinking(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") in ("thinking", "reasoning")


def _thought(block: Any) -> str:
    text = (block.get("thinking") or block.get("text")) if _is_thinking(block) else None
    return text if isinstance(text, str) else ""
