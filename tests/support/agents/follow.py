"""Reading a source on, as a follower does, without a ledger."""

from __future__ import annotations

from aver.ingest.contract import Adapter, AgentEvent, RecordReader, TranscriptParser, TranscriptSource


class Follower:
    """Reads a source on, and keeps what it says."""

    def __init__(self, adapter: Adapter, source: TranscriptSource) -> None:
        self.reader: RecordReader = adapter.read(source)
        self.turn: TranscriptParser = adapter.parser(source)
        self.places: list[str] = []

    def step(self) -> list[AgentEvent]:
        events: list[AgentEvent] = []
        for record in self.reader():
            self.places.append(record.place)
            events += self.turn.feed(record)
        return events

    def all(self) -> list[AgentEvent]:
        return [*self.step(), *self.turn.finish()]
