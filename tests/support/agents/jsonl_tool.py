"""A tool of our own for tests of what all tools share: one JSON object a line, one event for most of them.

{"say": "..."}                      a prompt
{"call": ID, "tool": T, "in": {}}   a call begins
{"done": ID, "out": ...}            ... and ends; "bad": true if it failed
{"junk": ...}                       known, and says nothing
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from aver.files.user_dirs import UserEnvironment
from aver.ingest.contract import (
    Adapter,
    AgentCall,
    AgentEvent,
    Prompt,
    RawRecord,
    TranscriptSource,
    build_unknown_event,
    line_key,
)
from aver.ingest.foreign_json import UNREADABLE, parse_json
from aver.ingest.json_lines import LineReader

TOOL = "ticker"


class Ticker:
    def __init__(self, source: TranscriptSource) -> None:
        self._source = source
        self._prompt: Prompt | None = None
        self._begun: dict[str, tuple[dict[str, Any], str]] = {}

    def feed(self, raw: RawRecord) -> Iterator[AgentEvent]:
        record = parse_json(raw)
        if record is UNREADABLE or not isinstance(record, dict):
            yield build_unknown_event(raw.place, "", raw.data.decode("utf-8", "replace"), key=line_key(raw))
        elif "say" in record:
            self._prompt = Prompt(key=f"p{raw.place}", text=record["say"])
            yield AgentEvent(
                what="prompt", key=f"p{raw.place}", summary=record["say"], text=record["say"], places=(raw.place,)
            )
        elif "call" in record:
            self._begun[record["call"]] = record, raw.place
        elif "done" in record:
            begun, place = self._begun.pop(record["done"], ({}, raw.place))
            yield deed_of(record["done"], begun, record, self._prompt, tuple(dict.fromkeys((place, raw.place))))
        elif "junk" not in record:
            yield build_unknown_event(raw.place, next(iter(record), ""), record, key=line_key(raw))

    def finish(self) -> Iterator[AgentEvent]:
        for key, (begun, place) in self._begun.items():
            call = AgentCall(tool=begun["tool"], id=key, arguments=begun.get("in", {}))
            yield AgentEvent(
                what="call", key=key, summary=begun["tool"], prompt=self._prompt, call=call, places=(place,)
            )


def deed_of(
    key: str, begun: Mapping[str, Any], done: Mapping[str, Any], prompt: Prompt | None, places: tuple[str, ...]
) -> AgentEvent:
    call = AgentCall(
        tool=begun.get("tool", "?"),
        id=key,
        arguments=begun.get("in", {}),
        result=done.get("out"),
        ok=not done.get("bad"),
        diff=done.get("diff"),
    )
    return AgentEvent(
        what="call", key=key, summary=call.tool, prompt=prompt, call=call, places=places, launched=done.get("agent", "")
    )


def located(around: UserEnvironment) -> Iterable[TranscriptSource]:
    for path in sorted((around.home / "ticks").glob("*.jsonl")):
        yield source_at(path)


def source_at(path: Path) -> TranscriptSource:
    session, _, agent = path.stem.partition("~")
    return TranscriptSource(tool=TOOL, session=session, path=path, agent=agent)


ADAPTER = Adapter(
    tool=TOOL,
    title="Ticker",
    locate=located,
    read=lambda source: LineReader(source.path),
    parser=Ticker,
    places=lambda around: [around.home / "ticks"],
)


def write(path: Path, *records: Mapping[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)
    return path


def call(key: str, tool: str = "Bash", **arguments: Any) -> dict[str, Any]:
    return {"call": key, "tool": tool, "in": arguments}


def done(key: str, out: Any = "ok", **more: Any) -> dict[str, Any]:
    return {"done": key, "out": out, **more}
