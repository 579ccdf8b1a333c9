"""Reads one capsule of a session as a `Step` for people, with the tokens and the money that it used.

`read_step` reads Aver's capsules and those of the agent-capsule tool, which have 12 or 13 keys and loose sections. It
never raises: an unreadable record becomes a step that says so. Nothing is verified here.

Long texts are stored as blobs beside the record. A value is then a reference, which `fetch_blobs` and `full_text`
replace with the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Literal

from aver.capsule.aver_block import BLOCK_KEY, read_block, read_kind
from aver.capsule.blobs import TEXT_MEDIA, blob_references
from aver.capsule.sealed import Sealed
from aver.diffs import count_changed_lines
from aver.errors import AverError
from aver.fast_dataclass import dataclass
from aver.gate.effects.known_agents import default_known_agents
from aver.ingest.contract import SESSION_COST
from aver.ingest.foreign_json import parse_cost, parse_count, to_utc


@dataclass(frozen=True, slots=True)
class Consumption:
    """Tokens and money. None means not known, which is not zero."""

    tokens_in: int | None = None
    tokens_out: int | None = None
    cost_usd: float | None = None

    def __add__(self, other: Consumption) -> Consumption:
        return Consumption(
            _add_known(self.tokens_in, other.tokens_in),
            _add_known(self.tokens_out, other.tokens_out),
            _add_known(self.cost_usd, other.cost_usd),
        )

    def max_with(self, other: Consumption) -> Consumption:
        """The larger value of each count, for tools that report running totals."""
        return Consumption(
            _max_known(self.tokens_in, other.tokens_in),
            _max_known(self.tokens_out, other.tokens_out),
            _max_known(self.cost_usd, other.cost_usd),
        )


def read_consumption(used: Mapping[str, Any]) -> Consumption:
    """Read `execution.resources_used`, with the names of CPS or those of a tool."""
    if not used:
        return _NOTHING_KNOWN
    cost = next((cost for name in _COST if (cost := parse_cost(used.get(name))) is not None), None)
    return Consumption(_first_count_sum(used, _TOKENS_IN), _first_count_sum(used, _TOKENS_OUT), cost)


_NOTHING_KNOWN = Consumption()

_TOKENS_IN = (
    ("tokens_in",),
    ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "cache_writes", "cache_reads"),
    ("tokensIn", "cacheWrites", "cacheReads"),
    ("inputTokens",),
)
"""Names of input tokens, cached or not. The first group with any known name is summed."""
_TOKENS_OUT = (("tokens_out",), ("output_tokens",), ("tokensOut",), ("outputTokens",))
_COST = ("cost_usd", "cost", "total_cost_usd")


def _first_count_sum(used: Mapping[str, Any], names: tuple[tuple[str, ...], ...]) -> int | None:
    for group in names:
        found = [number for name in group if (number := parse_count(used.get(name))) is not None]
        if found:
            return sum(found)
    return None


def _add_known(first: Any, second: Any) -> Any:
    return second if first is None else first if second is None else first + second


def _max_known(first: Any, second: Any) -> Any:
    return second if first is None else first if second is None else max(first, second)


StepKind = Literal["prompt", "call", "answer", "session", "note", "unknown", "addition", "unreadable"]

ReadBlob = Callable[[str], bytes]
"""Returns the bytes of a blob by its digest, or raises an `AverError`."""

_search_line_counts = re.compile(r"\(\+([0-9]{1,9})/-([0-9]{1,9})\)").search
_EDIT_VERBS = ("edited ", "wrote ", "added ", "deleted ")
_CUT_FIELDS = {
    "trigger.request": "asked",
    "reasoning.analysis": "text",
    "reasoning.reasoning": "thinking",
    "outcome.error": "error",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Addition:
    """The fields that a later record adds to an earlier one: the transcript to a hook's, or the other way round."""

    to: str
    """The id of the earlier record."""
    via: str
    """Where the addition comes from: `transcript` or `hook`."""
    differs: tuple[str, ...]
    """The names of fields in which the two disagree."""
    says: Mapping[str, Any]
    """The fields that differ, and those that the earlier record lacks."""
    status: str = ""
    """The outcome of a call that was pending, and its error."""
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a session. A text may be cut; `cut` then names the blob with the whole text."""

    what: StepKind
    kind: str = ""
    """The kind of the record, such as `call` or `gate.decision`."""
    id: str = ""
    chain: str | None = None
    sequence: int | None = None
    hash: str = ""
    signed_by: str = ""
    signed_at: str = ""
    own: bool = False
    """Whether Aver sealed it. Other tools' capsules repeat the prompt in every record that follows it."""
    at: str | None = None
    """When it happened; None if the record does not say."""
    tool_name: str = ""
    """The coding agent, such as `claude-code`."""
    session: str = ""
    agent: str = ""
    key: str = ""
    deed: str = ""
    """The id that all records about one call share; empty where a record shares none."""
    summary: str = ""
    asked: str = ""
    """The text of a prompt. In other tools' records, the prompt that they follow."""
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
    """Lines added and removed by an edit that took place."""
    status: str = ""
    error: str = ""
    side_effects: tuple[str, ...] = ()
    authority: str = ""
    rule: str = ""
    duration_ms: int | None = None
    spent: Consumption = Consumption()
    message: str = ""
    """The API message of the tokens, in other tools' records. Several records may repeat its count."""
    title: str = ""
    subagent: str = ""
    """The chain of the subagent that this call started."""
    addition: Addition | None = None
    more: Any = None
    """Other content of a step that is not a call."""
    workspace: str = ""
    """The directory in which the agent worked, if the record says."""
    session_cost: float | None = None
    """The cost of the whole session so far, if the tool reports it."""
    cut: Mapping[str, str] = field(default_factory=dict)
    """By field, the digest of the whole text."""
    calls: tuple[Mapping[str, Any], ...] = ()
    """All calls of tools, whatever the type of the record."""
    others: tuple[Any, ...] = ()
    """What the sections tell besides, for a search: a request that is no prompt, options, approver, metrics."""

    @property
    def has_happened(self) -> bool:
        return self.status not in ("blocked", "failure")

    @property
    def is_bookkeeping(self) -> bool:
        """Whether it is Aver's own note, such as how far a transcript was read. People need not see it."""
        own = self.key.removeprefix(f"{self.tool_name}:{self.session}:")
        return self.what == "note" and (own.startswith("read:") or own.endswith(":launched"))

    @property
    def is_edit(self) -> bool:
        return self.what == "call" and self.has_happened and (self.lines is not None or self._has_effect(_EDIT_VERBS))

    @property
    def is_command(self) -> bool:
        if self.what != "call" or self.status == "blocked":
            return False
        profile = default_known_agents().find_profile(self.call)
        return self._has_effect(("ran ",)) or (profile is not None and profile.takes_command)

    def _has_effect(self, beginnings: tuple[str, ...]) -> bool:
        return any(effect.startswith(beginnings) for effect in self.side_effects)


def read_step(record: Sealed) -> Step:
    """Read a record as a step. Never raises."""
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
    # Capsules of other tools may lack sections, or have values of other types. So every value is checked.
    sections = {name: _object_or_empty(content.get(name)) for name in _SECTIONS}
    environment = _object_or_empty(sections["context"].get("environment"))
    block = read_block(content)
    what = _step_kind(content, sections, environment, block)
    calls = tuple(_object_or_empty(call) for call in _list_or_empty(sections["execution"].get("tool_calls")))
    call = calls[0] if calls else _EMPTY
    outcome = sections["outcome"]
    diff, result, more = _split_result(call, outcome, own=block is not None)
    status = _text_or_empty(outcome.get("status"))
    request = _text_or_empty(sections["trigger"].get("request"))
    cut = _cut_digests(what, outcome, block)
    others = _list_others(sections, environment, cut)
    if what in ("call", "answer"):
        others.append(more if what == "call" else sections["reasoning"].get("analysis"))
    if what != "prompt" and block is not None and not _follows_prompt(content, sections, block):
        others.insert(0, request)
    return Step(
        what=what,
        kind=_text_or_empty(block.get("kind")) if block else read_kind(content),
        id=_text_or_empty(content.get("id")),
        sequence=parse_count(content.get("sequence")),
        own=block is not None,
        at=_read_time(sections["trigger"], environment),
        tool_name=_text_or_empty(content.get("domain")),
        session=_text_or_empty(sections["context"].get("session_id")),
        agent=_text_or_empty(sections["context"].get("agent_id")).partition("/")[2],
        key=_text_or_empty((block or {}).get("key")),
        deed=_read_deed(sections, block or {}),
        summary=_text_or_empty(outcome.get("summary")),
        asked=request if what == "prompt" or block is None else "",
        text=_visible_text(what, sections),
        thinking=_text_or_empty(sections["reasoning"].get("reasoning")),
        redacted=environment.get("thinking_redacted") is True,
        model=_text_or_empty(sections["reasoning"].get("model")) or _text_or_empty(environment.get("model")),
        call=_text_or_empty(call.get("tool")) if what == "call" else "",
        call_id=_text_or_empty(environment.get("tool_call_id")),
        arguments=call.get("arguments"),
        result=result,
        diff=diff,
        lines=_changed_lines(outcome, diff) if status not in ("blocked", "failure") else None,
        status=status,
        error=_text_or_empty(outcome.get("error")) or _text_or_empty(call.get("error")),
        side_effects=tuple(filter(None, map(_text_or_empty, _list_or_empty(outcome.get("side_effects"))))),
        authority=_text_or_empty(sections["authority"].get("type")),
        rule=_text_or_empty(sections["authority"].get("policy_reference")),
        duration_ms=_read_duration(sections["execution"], call, environment),
        spent=read_consumption(_object_or_empty(sections["execution"].get("resources_used"))),
        message="" if block else _text_or_empty(environment.get("request_id")),
        title=_text_or_empty(environment.get("title")),
        subagent=_text_or_empty(_object_or_empty(environment.get("subagent")).get("chain")),
        addition=_read_addition(block, outcome),
        more=more if what != "call" else None,
        workspace=_text_or_empty(environment.get("cwd")),
        session_cost=parse_cost(environment.get(SESSION_COST)),
        cut=cut,
        calls=calls,
        others=tuple(others),
        **seal,
    )


def _read_deed(sections: Mapping[str, Any], block: Mapping[str, Any]) -> str:
    # A call without a decision shares its id with its whole prompt, and an event without an intent with its trace.
    domain, refs = _text_or_empty(block.get("kind")).partition(".")[0], _object_or_empty(block.get("refs"))
    if domain not in ("gate", "approval", "act", "action", "protocol") and "decision" not in refs:
        return ""
    correlation = _text_or_empty(sections["trigger"].get("correlation_id"))
    return "" if correlation == sections["context"].get("session_id") else correlation


def fetch_blobs(value: Any, blob: ReadBlob, *, most: int | None = None) -> Any:
    """The value with blob references replaced by their content.

    A blob that is missing, or larger than `most` bytes, stays a reference.
    """
    if not isinstance(value, dict | list):
        return value
    if isinstance(value, list):
        return [fetch_blobs(item, blob, most=most) for item in value]
    if not is_blob_reference(value):
        return {name: fetch_blobs(item, blob, most=most) for name, item in value.items()}
    reference = value["blob"]
    if most is not None and reference["size"] > most:
        return value
    try:
        data = blob(str(reference.get("digest")))
        if reference.get("media") == TEXT_MEDIA:
            return data.decode("utf-8", "replace")
        if reference.get("media") == "application/json":
            # Here, because most steps have no blob of JSON.
            from aver.capsule.json_reader import read_json

            return fetch_blobs(read_json(data), blob, most=most)
    except AverError:
        return value
    return value


def full_text(step: Step, name: str, blob: ReadBlob) -> str:
    """The whole text of a step's field. If its blob is missing, the cut text."""
    text = str(getattr(step, name))
    try:
        return blob(step.cut[name]).decode("utf-8", "replace") if name in step.cut else text
    except AverError:
        return text


_LINE_METRICS = ("lines_added", "lines_removed")
_SECTIONS = ("trigger", "context", "reasoning", "authority", "execution", "outcome")


def _step_kind(
    content: Mapping[str, Any],
    sections: Mapping[str, Mapping[str, Any]],
    environment: Mapping[str, Any],
    block: Mapping[str, Any] | None,
) -> StepKind:
    if block is not None and _object_or_empty(block.get("refs")).get("adds_to"):
        return "addition"
    if "unknown_record" in environment:
        return "unknown"
    kind = content.get("type")
    if kind == "tool":
        return "call"
    if kind == "chat":
        if block is None:
            return "prompt" if environment.get("role") == "user" else "answer"
        # A prompt starts a turn, and the turn's id is the key of its prompt: see `aver.ingest.draft`.
        key = block.get("key")
        return "prompt" if key is not None and key == sections["trigger"].get("correlation_id") else "answer"
    return "session" if kind == "workflow" else "note"


def _visible_text(what: StepKind, sections: Mapping[str, Mapping[str, Any]]) -> str:
    analysis = _text_or_empty(sections["reasoning"].get("analysis"))
    return _text_or_empty(_answer_value(sections["outcome"])) or analysis if what == "answer" else analysis


def _answer_value(outcome: Mapping[str, Any]) -> Any:
    # An answer with more content beside its text is `{"text", "more"}`: see `aver.ingest.draft`.
    result = outcome.get("result")
    return result.get("text", result) if isinstance(result, dict) else result


def _split_result(call: Mapping[str, Any], outcome: Mapping[str, Any], *, own: bool) -> tuple[Any, Any, Any]:
    """The diff, the result of the call and other content. Other tools' records have the diff as the result."""
    kept = outcome.get("result")
    result = call.get("result")
    if own and kept == result:
        return None, result, None  # `outcome.result` is the result once more.
    if own:
        mapping = _object_or_empty(kept)
        return mapping.get("diff"), result, mapping.get("more", None if "diff" in mapping else kept)
    if isinstance(result, str) and result.startswith(("--- ", "@@ ")) and "@@ " in result:
        return result, None, kept
    return None, result, kept


def _changed_lines(outcome: Mapping[str, Any], diff: Any) -> tuple[int, int] | None:
    metrics = _object_or_empty(outcome.get("metrics"))
    added, removed = parse_count(metrics.get("lines_added")), parse_count(metrics.get("lines_removed"))
    if added is not None and removed is not None:
        return added, removed
    if isinstance(diff, str):
        return count_changed_lines(diff)
    # agent-capsule keeps the counts only in the summary: `Edit: a.py (+3/-1)`.
    counts = _search_line_counts(_text_or_empty(outcome.get("summary")))
    return (int(counts[1]), int(counts[2])) if counts else None


def _read_addition(block: Mapping[str, Any] | None, outcome: Mapping[str, Any]) -> Addition | None:
    to = _text_or_empty(_object_or_empty((block or {}).get("refs")).get("adds_to"))
    if not to:
        return None
    result = _object_or_empty(outcome.get("result"))
    ended = _object_or_empty(result.get("outcome"))
    return Addition(
        to=to,
        via=_text_or_empty(result.get("via")),
        differs=tuple(filter(None, map(_text_or_empty, _list_or_empty(result.get("differs"))))),
        says=_object_or_empty(result.get("says")),
        status=_text_or_empty(ended.get("status")),
        error=_text_or_empty(ended.get("error")),
    )


def _read_time(trigger: Mapping[str, Any], environment: Mapping[str, Any]) -> str | None:
    if environment.get("time_known") is False:
        return None
    return to_utc(trigger.get("timestamp")) or to_utc(environment.get("timestamp"))


def _read_duration(execution: Mapping[str, Any], call: Mapping[str, Any], environment: Mapping[str, Any]) -> int | None:
    if environment.get("duration_known") is False:
        return None
    return parse_count(execution.get("duration_ms")) or parse_count(call.get("duration_ms")) or None


def _cut_digests(what: StepKind, outcome: Mapping[str, Any], block: Mapping[str, Any] | None) -> dict[str, str]:
    found = {}
    if what == "answer" and is_blob_reference(answer := _answer_value(outcome)):
        found["text"] = next(blob_references(answer))[0]
    for path, reference in _object_or_empty((block or {}).get("whole")).items():
        name = _CUT_FIELDS.get(path)
        for digest, _ in blob_references(reference):
            if name is not None and (name != "asked" or what == "prompt"):
                found[name] = digest
    return found


def is_blob_reference(value: Any) -> bool:
    """Whether the value is a reference to a blob that is stored beside the record."""
    return isinstance(value, dict) and value.keys() == {"blob"} and next(blob_references(value), None) is not None


def _follows_prompt(
    content: Mapping[str, Any], sections: Mapping[str, Mapping[str, Any]], block: Mapping[str, Any]
) -> bool:
    """Whether the request only repeats a prompt, which has a record of its own: see `aver.ingest.draft`."""
    key = _text_or_empty(block.get("key"))
    of_agent = key.startswith(f"{_text_or_empty(content.get('domain'))}:")
    return of_agent and sections["reasoning"].get("prompt_hash") is not None


def _list_others(
    sections: Mapping[str, Mapping[str, Any]], environment: Mapping[str, Any], cut: Mapping[str, str]
) -> list[Any]:
    """The values that no other field of the step has. Those that all records of a session repeat are left out."""
    # This runs for every record of a ledger, and most have little of this.
    trigger, context, reasoning, authority, execution, outcome = sections.values()
    found = [
        reasoning.get("options") or reasoning.get("options_considered"),
        reasoning.get("selected_option"),
        trigger.get("user_id"),
        authority.get("approver"),
        authority.get("escalation_reason"),
    ]
    if statements := _list_or_empty(authority.get("chain")):
        # Of a signed statement its content; the rest is signatures.
        found += [_object_or_empty(statement).get("content") or statement for statement in statements]
    if metrics := _object_or_empty(outcome.get("metrics")):
        # The lines that changed stand in every edit.
        found += [told for name, value in metrics.items() if name not in _LINE_METRICS for told in (name, value)]
    if not context.get("session_id"):
        found += (trigger.get("source"), context.get("agent_id"), execution.get("resources_used"))
        found += [value for name, value in environment.items() if name != BLOCK_KEY]
    if whole := _object_or_empty(_object_or_empty(environment.get(BLOCK_KEY)).get("whole")):
        found += [reference for path, reference in whole.items() if _CUT_FIELDS.get(path) not in cut]
    return [value for value in found if value]


_EMPTY: Mapping[str, Any] = {}


def _object_or_empty(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else _EMPTY


def _list_or_empty(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text_or_empty(value: Any) -> str:
    return value if isinstance(value, str) else ""
