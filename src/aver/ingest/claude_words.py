"""What a `user`, `system` or `attachment` record of Claude Code says: who speaks there, and what about.

Not everything under the name of the user comes from a person. The program puts its own words there: what a local
command printed, what an editor shows, reminders, what became of a background task, summaries of what was said before.
Here they are told apart, by the marks that the program puts around its words.
"""

from __future__ import annotations

import re
from typing import Any, Literal

from aver.ingest.claude_values import Json, items, light, one_line, summarised, words
from aver.ingest.records import text_in
from aver.values import dataclass

__all__ = ["Said", "of_attachment", "of_system", "of_user"]

_CONTEXT = ("ide_opened_file", "ide_selection", "ide_diagnostics", "system-reminder")
"""Marks of text blocks that an editor or the program adds to a prompt."""

_PROGRAM = {
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
_MARK = re.compile(r"\s*<([a-z_-]{1,40})[ >]").match
_COMMAND = re.compile(r"<command-name>([^<]{0,200})</command-name>").search

_ENDS_SESSION = ("/exit", "/quit", "/logout")


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a record says."""

    what: Literal["prompt", "note", "session"]
    summary: str
    text: str = ""
    result: Any = None
    status: Literal["failure", "blocked"] | None = None
    resets: bool = False
    """What was asked before no longer counts: the conversation was cleared."""
    ends_session: bool = False


def of_user(record: Json, content: Any) -> Said | None:
    """What is said besides results of tools; None where that is nothing."""
    blocks = [content] if isinstance(content, str) else [block for block in items(content) if not _is_result(block)]
    texts = [text for text in map(_text, blocks) if text.strip()]
    others = [light(block) for block in blocks if not isinstance(block, str) and not _is_text(block)]
    if not texts and not others:
        return None
    if record.get("isCompactSummary") is True:
        return Said(what="note", summary="summary of what was said before", text="\n".join(texts))
    origin = record.get("origin")
    kind = words(origin.get("kind")) if isinstance(origin, dict) else ""
    if kind not in ("", "human"):
        return _of_program(texts, others, kind)
    if record.get("isMeta") is True:
        return _of_program(texts, others, "from the program")
    own = [text for text in texts if not _is_context(text)]
    more: dict[str, Any] = {}
    if len(own) < len(texts):
        more["context"] = [summarised(text) for text in texts if _is_context(text)]
    if others:
        more["attached"] = others
    return _of_person("\n".join(own), more or None)


def of_attachment(attachment: Json) -> Said:
    sort = words(attachment.get("type")) or "unnamed"
    if sort == "queued_command":
        prompt = attachment.get("prompt")
        text = prompt if isinstance(prompt, str) else text_in(prompt)
        rest = {name: light(value) for name, value in attachment.items() if name != "prompt" or not text}
        return Said(what="note", summary=f"queued: {one_line(text)}", text=text, result=rest)
    if "hook" in sort:
        name = words(attachment.get("hookName")) or words(attachment.get("hookEvent")) or "hook"
        failed = "error" in sort
        return Said(
            what="note",
            summary=f"{sort.replace('_', ' ')}: {one_line(name)}",
            result=light(attachment),
            status=None if not failed else "blocked" if "blocking" in sort and "non" not in sort else "failure",
        )
    if sort == "edited_text_file":
        file = one_line(words(attachment.get("filename")))
        return Said(what="note", summary=f"changed by others: {file}", result=light(attachment))
    return Said(
        what="note", summary=f"attachment: {one_line(sort)}", result={"type": sort, "is": summarised(attachment)}
    )


def of_system(record: Json, rest: Json) -> Said:
    """What the program tells. `rest` is the record without what all records have."""
    sort = words(record.get("subtype")) or "unnamed"
    content = words(record.get("content"))
    if sort == "compact_boundary":
        about = record.get("compactMetadata")
        trigger = words(about.get("trigger")) if isinstance(about, dict) else ""
        return Said(
            what="note", summary=f"conversation compacted{f' ({trigger})' if trigger else ''}", result=light(rest)
        )
    if sort == "local_command":
        said = _of_person(content, None)
        return (
            said
            if said.what != "prompt" or _COMMAND(content)
            else Said(what="note", summary=f"local command: {one_line(content)}", text=content)
        )
    failed = record.get("level") == "error" or sort == "api_error"
    summary = f"{sort.replace('_', ' ')}: {one_line(content)}" if content else sort.replace("_", " ")
    return Said(what="note", summary=summary, text=content, result=light(rest), status="failure" if failed else None)


def _of_person(text: str, more: Any) -> Said:
    mark = _MARK(text)
    name = mark[1] if mark else ""
    if name in ("command-name", "command-message"):
        return _of_command(text, more)
    if name in _PROGRAM:
        return Said(what="note", summary=f"{_PROGRAM[name]}: {one_line(_inside(text))}", text=text, result=more)
    if text.startswith("[Request interrupted by user"):
        return Said(what="note", summary="interrupted by the user", text=text, result=more, status="blocked")
    if not text:
        return Said(
            what="prompt" if more and "attached" in more else "note", summary="no words, only context", result=more
        )
    return Said(what="prompt", summary=f"prompt: {one_line(text)}", text=text, result=more)


def _of_command(text: str, more: Any) -> Said:
    named = _COMMAND(text)
    command = named[1].strip() if named else ""
    arguments, closing, _ = text.partition("<command-args>")[2].partition("</command-args>")
    line = one_line(f"{command} {arguments if closing else ''}") or one_line(text)
    if command == "/clear":
        return Said(what="session", summary="conversation cleared", text=text, result=more, resets=True)
    if command in _ENDS_SESSION:
        return Said(what="session", summary=f"ended by {command}", text=text, result=more, ends_session=True)
    return Said(what="prompt", summary=f"prompt: {line}", text=text, result=more)


def _of_program(texts: list[str], others: list[Any], who: str) -> Said:
    kept = [summarised(text) for text in texts]
    whole = all(isinstance(text, str) for text in kept)
    more: dict[str, Any] = {} if whole else {"texts": kept}
    if others:
        more["attached"] = others
    return Said(
        what="note",
        summary=f"{one_line(who)}: {one_line(_inside(texts[0]) if texts else '')}",
        text="\n".join(texts) if whole else "",
        result=more or None,
    )


def _inside(text: str) -> str:
    """A text without the marks around it."""
    return re.sub(r"</?[a-z_-]{1,40}>", " ", text[:2000])


def _is_context(text: str) -> bool:
    mark = _MARK(text)
    return mark is not None and mark[1] in _CONTEXT and text.rstrip().endswith(f"</{mark[1]}>")


def _is_result(block: Any) -> bool:
    return isinstance(block, dict) and words(block.get("type")).endswith("tool_result")


def _is_text(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str)


def _text(block: Any) -> str:
    return block if isinstance(block, str) else words(block.get("text")) if _is_text(block) else ""
