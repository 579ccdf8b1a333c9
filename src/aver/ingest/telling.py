"""What one capsule of a session tells, for people: whoever made it, and whatever is wrong with it.

`told` reads our own capsules and those of the public agent-capsule tool, with 12 and with 13 keys, whose sections are
loose and whose token counts have each tool's own names. It never fails: a record that cannot be read is told as such.
Nothing here is verified. Long texts stand beside the record; a value is then a reference, and `in_full` fetches it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import lru_cache
from typing import Any, Literal

from aver.capsule.blobs import TEXT, blob_references
from aver.capsule.block import block_of
from aver.capsule.sealed import Sealed
from aver.errors import AverError
from aver.gate.tool_names import use_of
from aver.ingest.deed import SESSION_COST
from aver.ingest.diffs import counted
from aver.ingest.spending import Spent, cost_in, count_in, spent_in
from aver.ingest.times import utc
from aver.values import dataclass

__all__ = ["Addition", "Blobs", "Step", "in_full", "is_reference", "told", "whole_text"]

What = Literal["prompt", "call", "answer", "session", "note", "unknown", "addition", "unreadable"]

Blobs = Callable[[str], bytes]
"""Gives the bytes of a digest, or raises one of our errors."""

_TALLY = re.compile(r"\(\+([0-9]{1,9})/-([0-9]{1,9})\)").search
_EDITS = ("edited ", "wrote ", "added ", "deleted ")
_CUT_FIELDS = {
    "trigger.request": "asked",
    "reasoning.analysis": "text",
    "reasoning.reasoning": "thinking",
    "outcome.error": "error",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Addition:
    """What somebody who came later added to a record: the transcript to what a hook saw, or the other way round."""

    to: str
    """The id of the record."""
    via: str
    differs: tuple[str, ...]
    """What it says otherwise."""
    says: Mapping[str, Any]
    """What it says otherwise, and what the record left unsaid."""
    status: str = ""
    """How a call ended whose outcome was not known, and why."""
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing that happened in a session. Texts may be cut: then `cut` says which blob holds all of it."""

    what: What
    id: str = ""
    chain: str | None = None
    sequence: int | None = None
    hash: str = ""
    signed_by: str = ""
    signed_at: str = ""
    own: bool = False
    """Whether Aver sealed it; other tools' capsules repeat the prompt in everything that follows from it."""
    at: str | None = None
    """When it happened; None where the record does not say."""
    tool_name: str = ""
    """The coding agent: `claude-code`."""
    session: str = ""
    agent: str = ""
    key: str = ""
    summary: str = ""
    asked: str = ""
    """Of a prompt, what was asked; of other tools' records, the prompt that they follow from."""
    text: str = ""
    thinking: str = ""
    redacted: bool = False
    model: str = ""
    call: str = ""
    """The name of the tool that was called."""
    call_id: str = ""
    arguments: Any = None
    result: Any = None
    diff: Any = None
    lines: tuple[int, int] | None = None
    """Lines added and removed, where it is an edit that took place."""
    status: str = ""
    error: str = ""
    side_effects: tuple[str, ...] = ()
    authority: str = ""
    rule: str = ""
    duration_ms: int | None = None
    spent: Spent = Spent()
    message: str = ""
    """The API message that the tokens are of, where other tools' records name one: they may repeat the count."""
    title: str = ""
    subagent: str = ""
    """The chain of the subagent that this call launched."""
    addition: Addition | None = None
    more: Any = None
    """Of what is not a call: what else was kept."""
    session_cost: float | None = None
    """What the whole session had cost until then, where the tool tells."""
    cut: Mapping[str, str] = field(default_factory=dict)
    """By field, the digest of the whole text."""

    @property
    def took_place(self) -> bool:
        return self.status not in ("blocked", "failure")

    @property
    def is_bookkeeping(self) -> bool:
        """A note of our own that says nothing about what was done: how far was read, what launched a subagent."""
        own = self.key.removeprefix(f"{self.tool_name}:{self.session}:")
        return self.what == "note" and (own.startswith("read:") or own.endswith(":launched"))

    @property
    def is_edit(self) -> bool:
        return self.what == "call" and self.took_place and (self.lines is not None or self._did(_EDITS))

    @property
    def is_command(self) -> bool:
        return self.what == "call" and self.status != "blocked" and (self._did(("ran ",)) or _takes_command(self.call))

    def _did(self, beginnings: tuple[str, ...]) -> bool:
        return any(effect.startswith(beginnings) for effect in self.side_effects)


def told(record: Sealed) -> Step:
    """What a record tells."""
    seal: dict[str, Any] = {
        "chain": record.chain,
        "hash": record.hash,
        "signed_by": record.signed_by,
        "signed_at": record.signed_at,
    }
    try:
        content = record.to_dict()
    except AverError as error:
        return Step(what="unreadable", summary=f"this record cannot be read: {error.message}", **seal)
    sections = {name: _object(content.get(name)) for name in _SECTIONS}
    environment = _object(sections["context"].get("environment"))
    block = block_of(content)
    what = _what(content, sections, environment, block)
    call = _first_call(sections["execution"])
    outcome = sections["outcome"]
    diff, result, more = _results(call, outcome, own=block is not None)
    status = _text(outcome.get("status"))
    return Step(
        what=what,
        id=_text(content.get("id")),
        sequence=count_in(content.get("sequence")),
        own=block is not None,
        at=_time(sections["trigger"], environment),
        tool_name=_text(content.get("domain")),
        session=_text(sections["context"].get("session_id")),
        agent=_text(sections["context"].get("agent_id")).partition("/")[2],
        key=_text((block or {}).get("key")),
        summary=_text(outcome.get("summary")),
        asked=_text(sections["trigger"].get("request")) if what == "prompt" or block is None else "",
        text=_said(what, sections),
        thinking=_text(sections["reasoning"].get("reasoning")),
        redacted=environment.get("thinking_redacted") is True,
        model=_text(sections["reasoning"].get("model")) or _text(environment.get("model")),
        call=_text(call.get("tool")) if what == "call" else "",
        call_id=_text(environment.get("tool_call_id")),
        arguments=call.get("arguments"),
        result=result,
        diff=diff,
        lines=_lines(outcome, diff) if status not in ("blocked", "failure") else None,
        status=status,
        error=_text(outcome.get("error")) or _text(call.get("error")),
        side_effects=tuple(filter(None, map(_text, _list(outcome.get("side_effects"))))),
        authority=_text(sections["authority"].get("type")),
        rule=_text(sections["authority"].get("policy_reference")),
        duration_ms=_duration(sections["execution"], call, environment),
        spent=spent_in(_object(sections["execution"].get("resources_used"))),
        message="" if block else _text(environment.get("request_id")),
        title=_text(environment.get("title")),
        subagent=_text(_object(environment.get("subagent")).get("chain")),
        addition=_addition(block, outcome),
        more=more if what != "call" else None,
        session_cost=cost_in(environment.get(SESSION_COST)),
        cut=_cut(what, outcome, block),
        **seal,
    )


def in_full(value: Any, blob: Blobs, *, most: int | None = None) -> Any:
    """A value with the long texts back in it that stand beside the record. What cannot be had, or is said to have more
    than `most` bytes, stays a reference."""
    if not isinstance(value, dict | list):
        return value
    if isinstance(value, list):
        return [in_full(item, blob, most=most) for item in value]
    if not is_reference(value):
        return {name: in_full(item, blob, most=most) for name, item in value.items()}
    reference = value["blob"]
    if most is not None and reference["size"] > most:
        return value
    try:
        data = blob(str(reference.get("digest")))
        if reference.get("media") == TEXT:
            return data.decode("utf-8", "replace")
        if reference.get("media") == "application/json":
            from aver.capsule.reading import read_json

            return in_full(read_json(data), blob, most=most)
    except AverError:
        return value
    return value


def whole_text(step: Step, name: str, blob: Blobs) -> str:
    """All of a text of a step; what there is of it, where the rest cannot be had."""
    text = str(getattr(step, name))
    try:
        return blob(step.cut[name]).decode("utf-8", "replace") if name in step.cut else text
    except AverError:
        return text


@lru_cache(maxsize=256)
def _takes_command(tool: str) -> bool:
    use = use_of(tool)
    return use is not None and use.takes_command


_SECTIONS = ("trigger", "context", "reasoning", "authority", "execution", "outcome")


def _what(
    content: Mapping[str, Any],
    sections: Mapping[str, Mapping[str, Any]],
    environment: Mapping[str, Any],
    block: Mapping[str, Any] | None,
) -> What:
    if block is not None and _object(block.get("refs")).get("adds_to"):
        return "addition"
    if "unknown_record" in environment:
        return "unknown"
    kind = content.get("type")
    if kind == "tool":
        return "call"
    if kind == "chat":
        if block is None:
            return "prompt" if environment.get("role") == "user" else "answer"
        key = block.get("key")
        return "prompt" if key is not None and key == sections["trigger"].get("correlation_id") else "answer"
    return "session" if kind == "workflow" else "note"


def _said(what: What, sections: Mapping[str, Mapping[str, Any]]) -> str:
    analysis = _text(sections["reasoning"].get("analysis"))
    return _text(_answer(sections["outcome"])) or analysis if what == "answer" else analysis


def _answer(outcome: Mapping[str, Any]) -> Any:
    result = outcome.get("result")
    return result.get("text", result) if isinstance(result, dict) else result


def _results(call: Mapping[str, Any], outcome: Mapping[str, Any], *, own: bool) -> tuple[Any, Any, Any]:
    """The diff, what the tool gave back, and what else is kept. Other tools put the diff where the result stands."""
    kept = outcome.get("result")
    result = call.get("result")
    if own:
        mapping = _object(kept)
        return mapping.get("diff"), result, mapping.get("more", None if "diff" in mapping else kept)
    if isinstance(result, str) and _looks_like_a_diff(result):
        return result, None, kept
    return None, result, kept


def _looks_like_a_diff(text: str) -> bool:
    return text.startswith(("--- ", "@@ ")) and "@@ " in text


def _lines(outcome: Mapping[str, Any], diff: Any) -> tuple[int, int] | None:
    metrics = _object(outcome.get("metrics"))
    added, removed = count_in(metrics.get("lines_added")), count_in(metrics.get("lines_removed"))
    if added is not None and removed is not None:
        return added, removed
    if isinstance(diff, str):
        return counted(diff)
    tally = _TALLY(_text(outcome.get("summary")))
    return (int(tally[1]), int(tally[2])) if tally else None


def _addition(block: Mapping[str, Any] | None, outcome: Mapping[str, Any]) -> Addition | None:
    to = _text(_object((block or {}).get("refs")).get("adds_to"))
    if not to:
        return None
    result = _object(outcome.get("result"))
    ended = _object(result.get("outcome"))
    return Addition(
        to=to,
        via=_text(result.get("via")),
        differs=tuple(filter(None, map(_text, _list(result.get("differs"))))),
        says=_object(result.get("says")),
        status=_text(ended.get("status")),
        error=_text(ended.get("error")),
    )


def _time(trigger: Mapping[str, Any], environment: Mapping[str, Any]) -> str | None:
    if environment.get("time_known") is False:
        return None
    return utc(trigger.get("timestamp")) or utc(environment.get("timestamp"))


def _duration(execution: Mapping[str, Any], call: Mapping[str, Any], environment: Mapping[str, Any]) -> int | None:
    if environment.get("duration_known") is False:
        return None
    return count_in(execution.get("duration_ms")) or count_in(call.get("duration_ms")) or None


def _cut(what: What, outcome: Mapping[str, Any], block: Mapping[str, Any] | None) -> dict[str, str]:
    found = {}
    if what == "answer" and is_reference(answer := _answer(outcome)):
        found["text"] = next(blob_references(answer))[0]
    for path, reference in _object((block or {}).get("whole")).items():
        name = _CUT_FIELDS.get(path)
        for digest, _ in blob_references(reference):
            if name is not None and (name != "asked" or what == "prompt"):
                found[name] = digest
    return found


def is_reference(value: Any) -> bool:
    """Whether a value stands beside the record, and only a reference to it in its place."""
    return isinstance(value, dict) and value.keys() == {"blob"} and next(blob_references(value), None) is not None


def _first_call(execution: Mapping[str, Any]) -> Mapping[str, Any]:
    calls = _list(execution.get("tool_calls"))
    return _object(calls[0]) if calls else {}


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
