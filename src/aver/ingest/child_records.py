"""Child records: events that cannot be sealed as they are, because their key is taken or no capsule can hold them.

The first account of an event stays as it is. A later account becomes a child: it has everything that the first one
lacks, and it says whether both agree. If two hooks report one event differently, both accounts are sealed. So an
attacker cannot take a key in advance and keep the real event out of the ledger.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from posixpath import join, normpath
from typing import Any

from aver.capsule.aver_block import BLOCK_KEY, of_kind, read_block
from aver.capsule.blobs import move_large_texts
from aver.capsule.canonical import canonical_bytes
from aver.capsule.model import Capsule, Context, Outcome
from aver.capsule.sealed import Sealed
from aver.errors import BadInput
from aver.ingest.contract import INFERRED_OUTCOME
from aver.ingest.draft import TRANSCRIPT, EventDraft


def strip_content(draft: EventDraft, error: BadInput) -> EventDraft:
    """Reduce a draft that no capsule can hold: keep its kind, its raw records and the reason."""
    capsule = draft.capsule
    environment = capsule.context.environment
    left = {name: environment[name] for name in KEPT_FIELDS & environment.keys()}
    calls = [replace(call, arguments={}, result=None) for call in capsule.execution.tool_calls]
    return EventDraft(
        Capsule(
            type=capsule.type,
            domain=capsule.domain,
            parent_id=capsule.parent_id,
            trigger=replace(capsule.trigger, request=""),
            context=replace(capsule.context, environment=left),
            execution=replace(capsule.execution, tool_calls=calls, resources_used={}),
            authority=capsule.authority,
            outcome=Outcome(
                status=capsule.outcome.status,
                summary=f"not sealed whole: {capsule.outcome.summary}",
                error=capsule.outcome.error,
                result={"not_sealed_whole": error.message},
            ),
        ),
        [],
    )


KEPT_FIELDS = frozenset({TRANSCRIPT, BLOCK_KEY, "tool_call_id"})


def build_child_record(first: Sealed, later: EventDraft, via: str) -> EventDraft:
    """Build the child that a later account adds to a record: the missing fields, and whether both accounts agree."""
    content, capsule = first.to_dict(), later.capsule
    outcome = read_object(content, "outcome")
    before = {**call_fields(content), "diff": _outcome_diff(outcome)}
    whole = {**call_fields(capsule.to_dict()), "diff": _outcome_diff(capsule.outcome.to_dict())}
    # The first record is sealed, so it has digests instead of long texts. Compare the same form.
    after = move_large_texts({"result": whole})[0]["result"]
    # A missing field is no contradiction: a hook does not get the text that the model gets.
    in_both = [name for name in before if before[name] is not None and after[name] is not None]
    differs = sorted(
        name
        for name in in_both
        if not (_is_contained(before[name], after[name]) or _is_contained(after[name], before[name]))
    )
    unsaid = sorted(name for name in before if before[name] is None and after[name] is not None)
    # If the parser made result and diff from texts, the hook's own values differ without a contradiction.
    has_inferred_outcome = all(
        capsule.context.environment.get(name) == value for name, value in INFERRED_OUTCOME.items()
    )
    roughly = [name for name in differs if name in ("diff", "result")] if has_inferred_outcome else []
    directory = read_object(content, "context", "environment").get("cwd") or capsule.context.environment.get("cwd")
    if "arguments" in differs and has_same_paths(before["arguments"], after["arguments"], directory):
        roughly.append("arguments")
    differs = [name for name in differs if name not in roughly]
    result: dict[str, Any] = {"via": via, "agrees": not differs}
    if roughly:
        result["not_compared"] = roughly
    if differs:
        result["differs"] = differs
    if differs or unsaid:
        result["says"] = {name: whole[name] for name in (*differs, *unsaid)}
    if outcome.get("status") == "pending":
        result["outcome"] = {"status": capsule.outcome.status, "error": capsule.outcome.error}
    words = "says the same" if not differs else f"says otherwise of {', '.join(differs)}"
    child = Capsule(
        type="system",
        domain=capsule.domain,
        parent_id=record_id(first),
        trigger=capsule.trigger,
        context=Context(
            agent_id=capsule.context.agent_id,
            session_id=capsule.context.session_id,
            environment={name: value for name, value in capsule.context.environment.items() if name != BLOCK_KEY},
        ),
        reasoning=capsule.reasoning,
        authority=capsule.authority,
        execution=replace(capsule.execution, tool_calls=[]),
        outcome=Outcome(status="success", summary=f"the {via} {words}: {capsule.outcome.summary}", result=result),
    )
    return EventDraft(of_kind(child, "record", {"adds_to": record_id(first)}), later.blobs)


def has_same_account(first: Sealed, later: EventDraft) -> bool:
    """Return whether a record and a draft give the same account of a call and its outcome."""
    return _read_account(first.to_dict()) == _account_in_draft(later)


def hook_record_key(key: str, later: EventDraft) -> str:
    """Return the key of a hook's account of an event that is sealed already.

    A different account gets a different key.
    """
    return f"{key}:{hashlib.sha256(canonical_bytes(_account_in_draft(later))).hexdigest()[:16]}:hook"


def _account_in_draft(draft: EventDraft) -> dict[str, Any]:
    return move_large_texts(_read_account(draft.capsule.to_dict()))[0]  # As in a sealed record: digests of long texts.


def _read_account(content: Mapping[str, Any]) -> dict[str, Any]:
    outcome = read_object(content, "outcome")
    return {"call": call_fields(content), "result": outcome.get("result"), "status": outcome.get("status")}


def _is_contained(less: Any, more: Any) -> bool:
    """Return whether one account is contained in another, possibly under other names.

    One may have only the text that the model got, the other also the object that it was made from.
    """
    if less == more or not isinstance(more, dict):
        return bool(less == more)
    named = less if isinstance(less, dict) else {None: less}
    # An empty value is in almost every account, so without its name it is no agreement.
    return all(
        value == more[name] if name in more else bool(value) and value in more.values() for name, value in named.items()
    )


def has_same_paths(first: Any, second: Any, directory: Any) -> bool:
    """Whether arguments are the same but for paths, which one side made absolute."""
    if not (isinstance(first, dict) and isinstance(second, dict) and isinstance(directory, str)):
        return False
    one, other = (
        # `join` gives an absolute path as it is.
        {
            name: normpath(join(directory, text)) if "path" in name and isinstance(text, str) else text
            for name, text in given
        }
        for given in (first.items(), second.items())
    )
    return bool(one == other)


def call_fields(content: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the first call in a record; None for those that it lacks."""
    calls = read_object(content, "execution").get("tool_calls")
    call = calls[0] if isinstance(calls, list) and calls else None
    fields = call if isinstance(call, dict) else {}
    return {name: fields.get(name) for name in ("tool", "arguments", "result", "success")}


def _outcome_diff(outcome: Mapping[str, Any]) -> Any:
    result = outcome.get("result")
    return result.get("diff") if isinstance(result, dict) else None


def read_transcript_refs(content: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return what a capsule says about its raw records; None if it has none, because a hook made it."""
    seen = read_object(content, "context", "environment").get(TRANSCRIPT)
    return seen if isinstance(seen, dict) else None


def read_object(content: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """Return the object at the end of these names; an empty one where a damaged record has none there."""
    value: Any = content
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def record_key(content: Mapping[str, Any]) -> str:
    """Return the key under which a record was sealed; empty if it has none."""
    return str((read_block(content) or {}).get("key", ""))


def base_event_key(key: str, chain: str) -> str:
    """Return the key of the event that a record reports or adds to.

    This drops `@chain`, which separates agents that use the same key.
    """
    return key.removesuffix(f":{TRANSCRIPT}").removesuffix(f"@{chain}")


def record_id(record: Sealed) -> str:
    return str(record.to_dict().get("id", ""))


def with_parent_id(draft: EventDraft, cause: str) -> EventDraft:
    """Return the draft as the child of the record with this id."""
    return draft._replace(capsule=replace(draft.capsule, parent_id=cause))


def with_parent(draft: EventDraft, first: Sealed) -> EventDraft:
    return with_parent_id(draft, record_id(first))
