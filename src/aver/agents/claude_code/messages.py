"""Messages in Claude Code's transcripts: the state of a conversation, and the classification of its records.

Claude Code writes a message of the model in several lines, one for each block. They have the same `message.id`. Each
repeats `usage`, whose counts may grow from line to line. Results of its calls may stand between these lines.

A record of type `user` is not always from a person. Claude Code also writes its own texts there, with marks around
them. `classify_user` separates them:

    fix the rounding                                                            a prompt
    <command-name>/clear</command-name>                                         a command of the person
    <local-command-stdout>…</local-command-stdout>                              output that the program inserted
    <ide_opened_file>The user opened totals.py</ide_opened_file>                context that the editor added
    [Request interrupted by user]                                               an interruption
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
    """The facts of a record that every event made from it has."""

    place: str
    key: str
    """The record's `uuid`, or its line. The key of the event is made from it."""
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
        """Return the origin of the event with this number, for a record that gives several events."""
        return self._replace(key=f"{self.key}:{number}") if number else self


@dataclass(slots=True)
class PendingMessage:
    """The text and thinking of a message of the model that no event has yet."""

    message: str
    origin: Origin
    failed: bool = False
    """The API failed, and the text is Claude Code's error message."""
    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    signatures: list[str] = field(default_factory=list)
    redacted: bool = False
    places: list[str] = field(default_factory=list)

    def add(self, block: Json, place: str) -> None:
        """Add a block `text`, `thinking` or `redacted_thinking`."""
        self.places.append(place)
        if block.get("type") == "text":
            if text := string_or_empty(block.get("text")):
                self.texts.append(text)
            return
        if thought := string_or_empty(block.get("thinking")):
            self.thoughts.append(thought)
        else:
            # The API returned only the signature, or the encrypted `data` of a `redacted_thinking` block.
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
    """The session's conversation, or that of a subagent whose records are in the same file."""

    agent: str = ""
    cause: str = ""
    """The call that launched the subagent."""
    prompt: Prompt | None = None
    pending: PendingMessage | None = None


@dataclass(slots=True)
class StartedCall:
    """A call without a result."""

    origin: Origin
    call: AgentCall
    message: str
    summary: str
    allowed: Permission
    output: dict[str, Any]
    """The text and thinking of the model before the call, as fields of its event."""
    places: list[str]
    launched: str = ""
    denied_by: str = ""
    """The hook that refused the call."""


class MessageUsage:
    """Counts the tokens of each message once, although every line of the message repeats them.

    The first event of a message gets the counts so far. A later event gets only what was added since. So no event has
    to wait for a line that may never come, and the sum over all events is the count of the last line.
    """

    def __init__(self) -> None:
        self._latest: dict[str, Json] = {}
        self._counted: dict[str, tuple[int, ...]] = {}

    def note(self, message: str, usage: Json) -> None:
        self._latest[message] = usage

    def take(self, message: str) -> Tokens | None:
        """Return the tokens of the message that were not taken before; None if there are none."""
        usage = self._latest.pop(message, None)
        if usage is None:
            return None
        counts = tuple(count_or_none(usage.get(name)) or 0 for name in _TOKEN_FIELDS)
        counted = self._counted.get(message)
        if counted is None:
            self._counted[message] = counts
        else:
            # `max`, because a repeated line may have smaller counts than one before it.
            self._counted[message] = tuple(map(max, counts, counted))
            counts = tuple(max(0, now - then) for now, then in zip(counts, counted, strict=True))
            usage = {name: count for name, count in zip(_TOKEN_FIELDS, counts, strict=True) if count}
        return Tokens(input=sum(counts[:3]), output=counts[3], native=usage) if any(counts) else None


_CONTEXT_TAGS = ("ide_opened_file", "ide_selection", "ide_diagnostics", "system-reminder")
"""Tags around text blocks that an editor or Claude Code adds to a prompt."""

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
    """A record, as the event that it becomes."""

    what: Literal["prompt", "note", "session"]
    summary: str
    text: str = ""
    result: Any = None
    status: Literal["failure", "blocked"] | None = None
    resets: bool = False
    """The conversation was cleared: later events do not belong to the earlier prompt."""
    ends_session: bool = False


def classify_user(record: Json, content: Any) -> ClassifiedMessage | None:
    """Classify a `user` record without its tool results; None if it has nothing else."""
    texts: list[str] = []
    others: list[Any] = []
    for block in [content] if isinstance(content, str) else list_or_empty(content):
        text = block.get("text") if isinstance(block, dict) and block.get("type") == "text" else block
        if isinstance(text, str):
            texts += [text] if text.strip() else []
        elif not isinstance(block, dict) or not string_or_empty(block.get("type")).endswith("tool_result"):
            others.append(replace_files(block))
    if not texts and not others:
        return None
    if record.get("isCompactSummary") is True:
        return ClassifiedMessage(what="note", summary="summary of what was said before", text="\n".join(texts))
    origin = record.get("origin")
    origin_kind = string_or_empty(origin.get("kind")) if isinstance(origin, dict) else ""
    # Newer versions name the author in `origin.kind`. Older ones only mark their own texts with `isMeta`.
    if origin_kind not in ("", "human"):
        return _classify_program_text(texts, others, origin_kind)
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
    kind = string_or_empty(attachment.get("type")) or "unnamed"
    if kind == "queued_command":
        prompt = attachment.get("prompt")
        text = prompt if isinstance(prompt, str) else content_text(prompt)
        rest = {name: replace_files(value) for name, value in attachment.items() if name != "prompt" or not text}
        return ClassifiedMessage(what="note", summary=f"queued: {one_line(text)}", text=text, result=rest)
    if "hook" in kind:
        name = string_or_empty(attachment.get("hookName")) or string_or_empty(attachment.get("hookEvent")) or "hook"
        failed = "error" in kind
        return ClassifiedMessage(
            what="note",
            summary=f"{kind.replace('_', ' ')}: {one_line(name)}",
            result=replace_files(attachment),
            status=None if not failed else "blocked" if "blocking" in kind and "non" not in kind else "failure",
        )
    if kind == "edited_text_file":
        file = one_line(string_or_empty(attachment.get("filename")))
        return ClassifiedMessage(what="note", summary=f"changed by others: {file}", result=replace_files(attachment))
    return ClassifiedMessage(
        what="note", summary=f"attachment: {one_line(kind)}", result={"type": kind, "is": shorten_if_bulky(attachment)}
    )


def classify_system(record: Json, rest: Json) -> ClassifiedMessage:
    """Classify a `system` record. `rest` is the record without the fields that all records have."""
    kind = string_or_empty(record.get("subtype")) or "unnamed"
    content = string_or_empty(record.get("content"))
    if kind == "compact_boundary":
        about = record.get("compactMetadata")
        trigger = string_or_empty(about.get("trigger")) if isinstance(about, dict) else ""
        return ClassifiedMessage(
            what="note",
            summary=f"conversation compacted{f' ({trigger})' if trigger else ''}",
            result=replace_files(rest),
        )
    if kind == "local_command":
        person = _classify_person_text(content, None)
        return (
            person
            if person.what != "prompt" or _COMMAND_NAME(content)
            else ClassifiedMessage(what="note", summary=f"local command: {one_line(content)}", text=content)
        )
    failed = record.get("level") == "error" or kind == "api_error"
    summary = f"{kind.replace('_', ' ')}: {one_line(content)}" if content else kind.replace("_", " ")
    return ClassifiedMessage(
        what="note", summary=summary, text=content, result=replace_files(rest), status="failure" if failed else None
    )


def _classify_person_text(text: str, more: Any) -> ClassifiedMessage:
    mark = _TAG(text)
    name = mark[1] if mark else ""
    if name in ("command-name", "command-message"):
        named = _COMMAND_NAME(text)
        command = named[1].strip() if named else ""
        arguments, closing, _ = text.partition("<command-args>")[2].partition("</command-args>")
        line = one_line(f"{command} {arguments if closing else ''}") or one_line(text)
        if command == "/clear":
            return ClassifiedMessage(
                what="session", summary="conversation cleared", text=text, result=more, resets=True
            )
        if command in _ENDING_COMMANDS:
            return ClassifiedMessage(
                what="session", summary=f"ended by {command}", text=text, result=more, ends_session=True
            )
        return ClassifiedMessage(what="prompt", summary=f"prompt: {line}", text=text, result=more)
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
    """Return the beginning of a text without its tags."""
    return re.sub(r"</?[a-z_-]{1,40}>", " ", text[:2000])


def _is_context(text: str) -> bool:
    mark = _TAG(text)
    return mark is not None and mark[1] in _CONTEXT_TAGS and text.rstrip().endswith(f"</{mark[1]}>")
