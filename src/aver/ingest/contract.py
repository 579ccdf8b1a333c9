"""The contract of an adapter: three functions that turn one agent's transcripts into events.

    locate(around)    list the transcripts that exist now on this machine
    read(source)      open a reader; each call of the reader returns the records that are new since the last call
    parser(source)    make a parser; it is fed each record in order and returns the events that the record completes

A record is kept as the bytes of the transcript, so that Aver can hash it as it arrived. A parser returns an event when
it is whole, for example a call with its result. The event's key comes from ids in the transcript, never from the time
of reading. So reading a transcript again from its beginning gives the same events with the same keys.

An adapter never fails because of a transcript's content. A record of an unknown sort, or one that cannot be read,
becomes an event that keeps the record raw (`build_unknown_event`). A source that is gone reads as empty.

Other packages can add an agent: an entry point in the group `aver.ingest` names an `Adapter`.
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
    "TranscriptParser",
    "TranscriptSource",
    "line_key",
    "record_from_bytes",
]

RECORD_MAX = 64 * 1024 * 1024
"""Most bytes of one record that are read. Agents write whole files and pictures into one line. Of a larger record only
the digest is kept."""


class RawRecord(NamedTuple):
    """One record of a transcript: a line without its end, an element of a list, a value in a database."""

    place: str
    """The number of a line (from 1), or the name of a value."""
    data: bytes
    """The record's bytes; empty if there are more than `RECORD_MAX`."""
    sha256: str
    size: int


def record_from_bytes(place: str, data: bytes) -> RawRecord:
    """Make a raw record and compute its digest."""
    return RawRecord(place, data, hashlib.sha256(data).hexdigest(), len(data))


def line_key(record: RawRecord) -> str:
    """Return a key for a line that has no id of its own: its number and its digest.

    If the file is replaced and has another line at this number, that line gets another key.
    """
    return f"at-{record.place}-{record.sha256[:16]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptSource:
    """One transcript."""

    tool: str
    session: str
    path: Path
    """The file to watch. Several sessions may share it, if it is a database."""
    agent: str = ""
    """The subagent's id, if this is a subagent's transcript. A subagent has a chain of its own."""
    launched_by: str = ""
    """The key of the event that launched the subagent, if the transcript's path contains it."""
    appends: bool = True
    """Whether records are only added at the end. If not, the agent may rewrite them; they are identified by place."""
    stamp: str = ""
    """For a source that shares its file: a text that changes when this source changes."""
    hints: Mapping[str, Any] = field(default_factory=dict)
    """More that the path contains (a project's directory, a parent session); only the adapter reads it."""
    below: str = ""
    """The parent directory's name, if one session can have several files with the same name."""

    @property
    def file(self) -> str:
        """The transcript's name in capsules."""
        return f"{self.below}/{self.path.name}" if self.below else self.path.name


class RecordReader(Protocol):
    """Reads a source; each call continues where the last one stopped."""

    def __call__(self) -> Iterable[RawRecord]:
        """Return the new records. A last record that is still being written comes when it is whole."""
        ...

    @property
    def started_anew(self) -> bool:
        """Whether the last call found the source replaced or cut, and began again at its beginning."""
        ...

    @property
    def unfinished(self) -> int:
        """How many bytes at the end were no whole record at the last call."""
        ...


class TranscriptParser(Protocol):
    """Turns the records of one source into events. It remembers calls whose result has not come yet."""

    def feed(self, raw: RawRecord) -> Iterable[AgentEvent]:
        """Return the events that this record completes, in order. Each names the places of its records."""
        ...

    def finish(self) -> Iterable[AgentEvent]:
        """Return the events that are still open when the session is over: calls without a known outcome."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """The adapter of one coding agent."""

    tool: str
    """The agent's name in chains and keys, such as `claude-code`: lower-case letters, digits and hyphens."""
    title: str
    """The agent's name for people: `Claude Code`."""
    locate: Callable[[UserEnvironment], Iterable[TranscriptSource]]
    read: Callable[[TranscriptSource], RecordReader]
    parser: Callable[[TranscriptSource], TranscriptParser]
    places: Callable[[UserEnvironment], Iterable[Path]]
    """The directories to watch for transcripts, whether or not they exist."""
    deletes_after: Callable[[UserEnvironment], int | None] = lambda _: None
    """After how many days the agent deletes its transcripts; None if it keeps them."""
    rewrites: Callable[[str], bool] = lambda _: False
    """Whether the agent keeps rewriting the record at a place, such as a conversation's title. Then a later, different
    value there is no contradiction."""
