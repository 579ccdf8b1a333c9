"""Reading a source on, as a follower does, without a ledger."""

from __future__ import annotations

from aver.ingest.contract import Adapter, Reader, Source, Turn
from aver.ingest.deed import Deed


class Follower:
    """Reads a source on, and keeps what it says."""

    def __init__(self, adapter: Adapter, source: Source) -> None:
        self.reader: Reader = adapter.read(source)
        self.turn: Turn = adapter.turn(source)
        self.places: list[str] = []

    def step(self) -> list[Deed]:
        deeds: list[Deed] = []
        for record in self.reader():
            self.places.append(record.place)
            deeds += self.turn.take(record)
        return deeds

    def all(self) -> list[Deed]:
        return [*self.step(), *self.turn.end()]
