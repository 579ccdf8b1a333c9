"""What is known of a conversation with Claude Code between two of its records.

A message of the model is written in several lines, one for each block, with the same id and the same usage, which may
grow from line to line; and the results of its calls may stand between them.

What a `user`, `system` or `attachment` record of Claude Code says: who speaks there, and what about.

Not everything under the name of the user comes from a person. The program puts its own words there: what a local
command printed, what an editor shows, reminders, what became of a background task, summaries of what was said before.
Here they are told apart, by the marks that the program puts around its words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal, NamedTuple

from aver.agents.claude_code.results import (
    Json,
    count_or_none,
    list_or_empty,
    one_line,
    replace_files,
    shorten_if_bulky,
    string_or_empty,
)
from aver.fast_dataclass import dataclass
from aver.ingest.contract import AgentCall, AgentEvent, EventKind, Permission, Prompt, Tokens
from aver.ingest.foreign_json import content_text

_TOKEN_FIELDS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")


class Origin(NamedTuple):
    """Where an event comes from: what its record says before it says anything."""

    place: str
    key: str
    """What the record calls itself. An event's own key follows from it."""
    at: str | None
    environment: Mapping[str, Any]
    prompt: Prompt | None
    agent: str
    cause: str
    model: str | None = None

    def event(self, what: EventKind, key: str, summary: str, **more: Any) -> AgentEvent:
        facts: dict[str, Any] = {
            "at": self.at,
            "environment": self.environment,
            "prompt": self.prompt,
            "agent": self.agent,
            "cause": self.cause,
            "model": self.model,
            "places": (self.place,),
        }
        return AgentEvent(what=what, key=key, summary=summary, **facts | more)

    def with_number(self, number: int) -> Origin:
        """Of a record that gives more than one event: the one with this number."""
        return self._replace(key=f"{self.key}:{number}") if number else self


@dataclass(slots=True)
class PendingMessage:
    """What the model has written and thought in a message, and what was not told yet."""

    message: str
    origin: Origin
    failed: bool = False
    """The program speaks in the model's place: the message never came."""
    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    signatures: list[str] = field(default_factory=list)
    redacted: bool = False
    places: list[str] = field(default_factory=list)

    def add(self, block: Json, place: str) -> None:
        """A block `text`, `thinking` or `redacted_thinking`."""
        self.places.append(place)
        if block.get("type") == "text":
            if text := string_or_empty(block.get("text")):
                self.texts.append(text)
            return
        if thought := string_or_empty(block.get("thinking")):
            self.thoughts.append(thought)
        else:
            self.redacted = True
        if signature := string_or_empty(block.get("signature")) or string_or_empty(block.get("data")):
            self.signatures.append(signature)

    def event_fields(self) -> dict[str, Any]:
        """Return the fields of an event that come from this message."""
        return {
            "text": "\n".join(self.texts),
            "thinking": "\n".join(self.thoughts),
            "signatures": tuple(self.signatures),
            "redacted": self.redacted,
        }


@dataclass(slots=True)
class Conversation:
    """One conversation: the session's own, or that of a subagent whose records stand among its."""

    agent: str = ""
    cause: str = ""
    """The call that launched the subagent."""
    prompt: Prompt | None = None
    held: PendingMessage | None = None


@dataclass(slots=True)
class StartedCall:
    """A call whose result has not come."""

    origin: Origin
    call: AgentCall
    message: str
    summary: str
    allowed: Permission
    said: dict[str, Any]
    """What the model said and thought before it."""
    places: list[str]
    launched: str = ""
    denied_by: str = ""
    """The hook that refused it."""
    given_up: bool = False
    """It was told as one without a result. One may still come: sessions are resumed."""


class MessageUsage:
    """What messages used, each counted once.

    The first event of a message that is told carries what the message used up to then, and a later one what has been
    added since, if anything. So nothing has to wait for a line that may never come, and over all events the sum is what
    the last line says.
    """

    def __init__(self) -> None:
        self._untold: dict[str, Json] = {}
        self._told: dict[str, tuple[int, ...]] = {}

    def note(self, message: str, usage: Json) -> None:
        self._untold[message] = usage

    def take(self, message: str) -> Tokens | None:
        """What the message used, less what was taken before."""
        usage = self._untold.pop(message, None)
        if usage is None:
            return None
        counts = tuple(count_or_none(usage.get(name)) or 0 for name in _TOKEN_FIELDS)
        told = self._told.get(message)
        if told is None:
            self._told[message] = counts
        else:
            self._told[message] = tuple(map(max, counts, told))
            counts = tuple(max(0, now - then) for now, then in zip(counts, told, strict=True))
            usage = {name: count for name, count in zip(_TOKEN_FIELDS, counts, strict=True) if count}
        return Tokens(input=sum(counts[:3]), output=counts[3], native=usage) if any(counts) else None


_CONTEXT_TAGS = ("ide_opened_file", "ide_selection", "ide_diagnostics", "system-reminder")
"""Marks of text blocks that an editor or the program adds to a prompt."""

_PROGRAM_TAGS = {
    "local-command-stdout": "output of a local command",
    "local-command-stderr": "output of a local command",
    "local-command-caveat": "note on local commands",
    "bash-stdout": "output of a command of the user",
    "bash-stderr": "output of a command of the user",
    "bash-input": "command of the user",
    "user-memory-input": "memory of the user",
    "task-notification": "notice of a background task",
    "teammate-message": "message of another agent",
    "system-reminder": "reminder",
    "tick": "tick",
}
_TAG = re.compile(r"\s*<([a-z_-]{1,40})[ >]").match
_COMMAND_NAME = re.compile(r"<command-name>([^<]{0,200})</command-name>").search

_ENDING_COMMANDS = ("/exit", "/quit", "/logout")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassifiedMessage:
    """What a record says."""

    what: Literal["prompt", "note", "session"]
    summary: str
    text: str = ""
    result: Any = None
    status: Literal["failure", "blocked"] | None = None
    resets: bool = False
    """What was asked before no longer counts: the conversation was cleared."""
    ends_session: bool = False


def classify_user(record: Json, content: Any) -> ClassifiedMessage | None:
    """What is said besides results of tools; None where that is nothing."""
    blocks = (
        [content] if isinstance(content, str) else [block for block in list_or_empty(content) if not _is_result(block)]
    )
    texts = [text for text in map(_block_text, blocks) if text.strip()]
    others = [replace_files(block) for block in blocks if not isinstance(block, str) and not _is_text(block)]
    if not texts and not others:
        return None
    if record.get("isCompactSummary") is True:
        return ClassifiedMessage(what="note", summary="summary of what was said before", text="\n".join(texts))
    origin = record.get("origin")
    kind = string_or_empty(origin.get("kind")) if isinstance(origin, dict) else ""
    if kind not in ("", "human"):
        return _classify_program_text(texts, others, kind)
    if record.get("isMeta") is True:
        return _classify_program_text(texts, others, "from the program")
    own = [text for text in texts if not _is_context(text)]
    more: dict[str, Any] = {}
    if len(own) < len(texts):
        more["context"] = [shorten_if_bulky(text) for text in texts if _is_context(text)]
    if others:
        more["attached"] = others
    return _classify_person_text("\n".join(own), more or None)


def classify_attachment(attachment: Json) -> ClassifiedMessage:
    sort = string_or_empty(attachment.get("type")) or "unnamed"
    if sort == "queued_command":
        prompt = attachment.get("prompt")
        text = prompt if isinstance(prompt, str) else content_text(prompt)
        rest = {name: replace_files(value) for name, value in attachment.items() if name != "prompt" or not text}
        return ClassifiedMessage(what="note", summary=f"queued: {one_line(text)}", text=text, result=rest)
    if "hook" in sort:
        name = string_or_empty(attachment.get("hookName")) or string_or_empty(attachment.get("hookEvent")) or "hook"
        failed = "error" in sort
        return ClassifiedMessage(
            what="note",
            summary=f"{sort.replace('_', ' ')}: {one_line(name)}",
            result=replace_files(attachment),
            status=None if not failed else "blocked" if "blocking" in sort and "non" not in sort else "failure",
        )
    if sort == "edited_text_file":
        file = one_line(string_or_empty(attachment.get("filename")))
        return ClassifiedMessage(what="note", summary=f"changed by others: {file}", result=replace_files(attachment))
    return ClassifiedMessage(
        what="note", summary=f"attachment: {one_line(sort)}", result={"type": sort, "is": shorten_if_bulky(attachment)}
    )


def classify_system(record: Json, rest: Json) -> ClassifiedMessage:
    """What the program tells. `rest` is the record without what all records have."""
    sort = string_or_empty(record.get("subtype")) or "unnamed"
    content = string_or_empty(record.get("content"))
    if sort == "compact_boundary":
        about = record.get("compactMetadata")
        trigger = string_or_empty(about.get("trigger")) if isinstance(about, dict) else ""
        return ClassifiedMessage(
            what="note",
            summary=f"conversation compacted{f' ({trigger})' if trigger else ''}",
            result=replace_files(rest),
        )
    if sort == "local_command":
        said = _classify_person_text(content, None)
        return (
            said
            if said.what != "prompt" or _COMMAND_NAME(content)
            else ClassifiedMessage(what="note", summary=f"local command: {one_line(content)}", text=content)
        )
    failed = record.get("level") == "error" or sort == "api_error"
    summary = f"{sort.replace('_', ' ')}: {one_line(content)}" if content else sort.replace("_", " ")
    return ClassifiedMessage(
        what="note", summary=summary, text=content, result=replace_files(rest), status="failure" if failed else None
    )


def _classify_person_text(text: str, more: Any) -> ClassifiedMessage:
    mark = _TAG(text)
    name = mark[1] if mark else ""
    if name in ("command-name", "command-message"):
        return _classify_command(text, more)
    if name in _PROGRAM_TAGS:
        return ClassifiedMessage(
            what="note", summary=f"{_PROGRAM_TAGS[name]}: {one_line(_strip_tags(text))}", text=text, result=more
        )
    if text.startswith("[Request interrupted by user"):
        return ClassifiedMessage(
            what="note", summary="interrupted by the user", text=text, result=more, status="blocked"
        )
    if not text:
        return ClassifiedMessage(
            what="prompt" if more and "attached" in more else "note", summary="no words, only context", result=more
        )
    return ClassifiedMessage(what="prompt", summary=f"prompt: {one_line(text)}", text=text, result=more)


def _classify_command(text: str, more: Any) -> ClassifiedMessage:
    named = _COMMAND_NAME(text)
    command = named[1].strip() if named else ""
    arguments, closing, _ = text.partition("<command-args>")[2].partition("</command-args>")
    line = one_line(f"{command} {arguments if closing else ''}") or one_line(text)
    if command == "/clear":
        return ClassifiedMessage(what="session", summary="conversation cleared", text=text, result=more, resets=True)
    if command in _ENDING_COMMANDS:
        return ClassifiedMessage(
            what="session", summary=f"ended by {command}", text=text, result=more, ends_session=True
        )
    return ClassifiedMessage(what="prompt", summary=f"prompt: {line}", text=text, result=more)


def _classify_program_text(texts: list[str], others: list[Any], who: str) -> ClassifiedMessage:
    kept = [shorten_if_bulky(text) for text in texts]
    whole = all(isinstance(text, str) for text in kept)
    more: dict[str, Any] = {} if whole else {"texts": kept}
    if others:
        more["attached"] = others
    return ClassifiedMessage(
        what="note",
        summary=f"{one_line(who)}: {one_line(_strip_tags(texts[0]) if texts else '')}",
        text="\n".join(texts) if whole else "",
        result=more or None,
    )


def _strip_tags(text: str) -> str:
    """A text without the marks around it."""
    return re.sub(r"</?[a-z_-]{1,40}>", " ", text[:2000])


def _is_context(text: str) -> bool:
    mark = _TAG(text)
    return mark is not None and mark[1] in _CONTEXT_TAGS and text.rstrip().endswith(f"</{mark[1]}>")


def _is_result(block: Any) -> bool:
    return isinstance(block, dict) and string_or_empty(block.get("type")).endswith("tool_result")


def _is_text(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str)


def _block_text(block: Any) -> str:
    return block if isinstance(block, str) else string_or_empty(block.get("text")) if _is_text(block) else ""
