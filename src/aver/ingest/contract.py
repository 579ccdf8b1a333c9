"""The contract of an adapter: three functions that turn one agent's transcripts into events, and the event itself.

    locate(around)    list the transcripts that exist now on this machine
    read(source)      open a reader; each call of the reader returns the records that are new since the last call
    parser(source)    make a parser; it is fed each record in order and returns the events that the record completes

A record is kept as the bytes of the transcript, so that Aver can hash it as it arrived. A parser returns an event when
it is whole, for example a call with its result. The event's key comes from ids in the transcript, never from the time
of reading. So reading a transcript again from its beginning gives the same events with the same keys.

An adapter never fails because of a transcript's content. A record of an unknown kind, or one that cannot be read,
becomes an event that keeps the record raw (`build_unknown_event`). A source that is gone reads as empty.

An `AgentEvent` is one action of an agent or a person, in a form that is the same for all agents:

    AgentEvent(what="call", key="toolu_2", summary="Bash: pytest -q", call=AgentCall(tool="Bash", id="toolu_2", …))

Adapters and hooks make events and know nothing of capsules. `draft` makes capsules from events and knows nothing of
agents. An unknown value is left out and never guessed: time, duration, tokens, permission.

Other packages can add an agent: an entry point in the group `aver.ingest` names an `Adapter`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Protocol

from aver.fast_dataclass import NamedTuple, dataclass
from aver.files.user_dirs import UserEnvironment

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

    def read_text(self) -> Any:
        """Return the record as text, for one that cannot be read; of one that is too large, its digest and size."""
        return self.data.decode("utf-8", "replace") if self.data else {"sha256": self.sha256, "size": self.size}


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


EventKind = Literal["prompt", "call", "answer", "session", "note", "unknown"]
"""The kinds of events: a person's prompt; a tool call; an answer of the model; a session's beginning, end or settings;
a note about anything else that the agent recorded (a compaction, an attachment, a rollback); an unknown record."""


INFERRED_OUTCOME = MappingProxyType({"outcome_from": "words"})
"""In the environment of a call: the adapter made its result and diff from the arguments and from the text that the
model got. A hook that saw the call itself knows more."""


SAID_BY_WORDS = MappingProxyType({"said_by": "words"})
"""In the environment of a call: the agent states only in words how the call ended or who allowed it. No field of the
transcript says it. Where a tool's output could contain the same words, they never make the call look refused."""


SESSION_COST = "session_cost_usd"
"""In the environment of a record: the cost of the whole session so far, subagents included, as the agent states it.
Such totals are never added up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A person's prompt. Every event until the next prompt follows from it."""

    key: str
    """The key of the prompt's own event."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCall:
    """A tool call and its outcome."""

    tool: str
    """The tool's name, as the agent writes it."""
    id: str
    """The agent's own id of the call."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    result: Any = None
    """The whole result: text, or an object such as {stdout, stderr, exit_code}. For an edit this is the tool's message;
    the change itself is in `diff`."""
    ok: bool | None = None
    """Whether the call succeeded; None if that is unknown."""
    error: str | None = None
    """Why it failed, in the tool's words."""
    diff: str | None = None
    """For an edit: the unified diff, `--- a/...`, `+++ b/...`, `@@`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """The cost of one API message. It is counted once: at the first event of the message."""

    input: int | None = None
    """All input tokens, cached or not."""
    output: int | None = None
    cost_usd: float | None = None
    native: Mapping[str, Any] = field(default_factory=dict)
    """The agent's own counts, under its own names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """Who or what allowed the event, as far as it is known."""

    by: Literal["human_approved", "policy", "autonomous", "unknown"] = "unknown"
    reference: str | None = None
    """Under which rule or mode: `permission_mode=acceptEdits`."""
    denied: bool = False
    """A person, a rule or a hook refused it, so it did not happen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEvent:
    """One thing that an agent or a person did or said."""

    what: EventKind
    key: str
    """Stable within the session: a call's id, a record's own id. The same from a hook and from the transcript."""
    summary: str
    """One line for a person: `Edit: src/app.py (+3/-1)`."""
    at: str | None = None
    """The time as the transcript has it, in any form of ISO 8601."""
    duration_ms: int | None = None
    prompt: Prompt | None = None
    """The prompt that it follows from."""
    text: str = ""
    """The visible text: the whole answer, or what the model wrote before a call."""
    thinking: str = ""
    """The model's reasoning, if the agent keeps it."""
    signatures: tuple[str, ...] = ()
    """The signatures of the reasoning, whole."""
    redacted: bool = False
    """Whether there was reasoning whose text the agent does not keep."""
    model: str | None = None
    tokens: Tokens | None = None
    allowed: Permission = Permission()
    call: AgentCall | None = None
    status: Literal["success", "failure", "partial", "blocked", "pending"] | None = None
    """The status; None means that it follows from the call."""
    side_effects: tuple[str, ...] = ()
    """Lines of the form `edited PATH`, `wrote PATH`, `deleted PATH`, `ran COMMAND`, `delegated to NAME`."""
    result: Any = None
    """For events that are no call: more to keep beside the text."""
    environment: Mapping[str, Any] = field(default_factory=dict)
    """Provenance: cwd, git_branch, version, request_id, context_window, checkpoint and so on, if known."""
    cause: str = ""
    """The key of the event that caused it. For a subagent: the call in the parent's session that launched it."""
    agent: str = ""
    """The subagent's id, if its records are in the parent's transcript. Its events go to a chain of its own."""
    launched: str = ""
    """The id of the subagent that this call launched."""
    title: str | None = None
    """The session's title, if this record sets it."""
    places: tuple[str, ...] = ()
    """The `place` of every raw record from which the event was made."""
    ends_session: bool = False


def build_unknown_event(place: str, sort: str, record: Any, *, key: str, at: str | None = None) -> AgentEvent:
    """Make an event that keeps a record raw, because the adapter does not know its kind or cannot read it."""
    named = sort[:RECORD_KIND_MAX] or "unreadable"
    return AgentEvent(
        what="unknown",
        key=key,
        summary=f"unknown record: {named}",
        at=at,
        result=record,
        environment={"unknown_record": named},
        places=(place,),
    )


RECORD_KIND_MAX = 80
"""The most characters of an unknown record's kind."""
