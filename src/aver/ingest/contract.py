"""What an adapter is: three functions that make deeds of one tool's transcripts.

    locate(around)    the transcripts that there are, now, on this machine
    read(source)      a reader of one: each call gives the records that were not there at the call before
    turn(source)      what those records say: each is taken in order, and gives the deeds that it completes

Records are kept as the bytes that stood in the transcript, so that they can be hashed as they arrived. A deed comes out
once it is whole (a call with its result), under a key that comes from the transcript's own ids and never from the time
of reading: reading a transcript again from its beginning gives the same deeds with the same keys.

An adapter never fails on what a transcript says. What it does not know becomes a deed that keeps the record raw
(`deed.unknown`), a record that cannot be read does too, and a source that is gone reads as empty.

Others can add a tool: an entry point in the group `aver.ingest` that names an `Adapter`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from aver.fast_dataclass import dataclass
from aver.files.user_dirs import UserEnvironment
from aver.ingest.agent_event import AgentEvent

__all__ = [
    "RECORD_MAX",
    "Adapter",
    "RawRecord",
    "RecordReader",
    "Source",
    "TranscriptParser",
    "line_key",
    "record_from_bytes",
]

RECORD_MAX = 64 * 1024 * 1024
"""Bytes of one record that are read. Tools write whole files and pictures into one line; what is larger is kept by its
digest alone."""


class RawRecord(NamedTuple):
    """One record as it stands in a transcript: a line without its end, an element of a list, a value in a database.
    `raw` makes one."""

    place: str
    """Where it stands, for a person and for reading it again: the number of a line (from 1), or the name of a value."""
    data: bytes
    """Empty where it is larger than `RECORD_MAX`: then only what follows is known of it."""
    sha256: str
    size: int


def record_from_bytes(place: str, data: bytes) -> RawRecord:
    return RawRecord(place, data, hashlib.sha256(data).hexdigest(), len(data))


def line_key(record: RawRecord) -> str:
    """The key of a line that has no id of its own: its number, and what it says. If another stands there, after the
    file was replaced, it is not taken for this one."""
    return f"at-{record.place}-{record.sha256[:16]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One transcript."""

    tool: str
    session: str
    path: Path
    """The file to watch. It may be shared with other sessions: a database."""
    agent: str = ""
    """Of a subagent: which. It has a chain of its own."""
    launched_by: str = ""
    """Of a subagent: the key of the deed that launched it, where the place of the transcript tells."""
    appends: bool = True
    """Whether records are only ever added at the end. If not, they may be rewritten, and are told apart by place."""
    stamp: str = ""
    """Of a source whose file is shared with others: something that changes when this one does."""
    hints: Mapping[str, Any] = field(default_factory=dict)
    """What the place tells besides (a project's directory, a parent session): for the adapter alone."""
    below: str = ""
    """The directory that tells it from other files of the same name, if there may be some in the same session."""

    @property
    def file(self) -> str:
        """How capsules name it."""
        return f"{self.below}/{self.path.name}" if self.below else self.path.name


class RecordReader(Protocol):
    """Reads a source from where it stopped the last time."""

    def __call__(self) -> Iterable[RawRecord]:
        """The records that are new. A last one that is still being written comes when it is whole."""
        ...

    @property
    def started_anew(self) -> bool:
        """Whether the last call found the source replaced or cut, and therefore began at its beginning again."""
        ...

    @property
    def unfinished(self) -> int:
        """Bytes at the end that are no whole record yet, as far as the last call found."""
        ...


class TranscriptParser(Protocol):
    """What has been read so far, and the deeds that it makes."""

    def take(self, raw: RawRecord) -> Iterable[AgentEvent]:
        """The deeds that this record completes, in order. Each names the places of the records that it rests on."""
        ...

    def end(self) -> Iterable[AgentEvent]:
        """What was begun and has no end, now that the session is over: calls whose outcome was never learned."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """One tool."""

    tool: str
    """Its name: the domain of its chains and the beginning of its keys, such as `claude-code`."""
    title: str
    """Its name for a person: `Claude Code`."""
    locate: Callable[[UserEnvironment], Iterable[Source]]
    read: Callable[[Source], RecordReader]
    turn: Callable[[Source], TranscriptParser]
    places: Callable[[UserEnvironment], Iterable[Path]]
    """The directories below which its transcripts appear, whether or not they exist: to be watched."""
    deletes_after: Callable[[UserEnvironment], int | None] = lambda _: None
    """After how many days the tool deletes its transcripts, if it does."""
    rewrites: Callable[[str], bool] = lambda _: False
    """Whether the tool goes on rewriting what stands at a place, such as the title and settings of a conversation: then
    another value there, later, contradicts nothing."""
