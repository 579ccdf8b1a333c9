"""What is sealed of a deed that cannot be sealed as it is: it is sealed already, or no capsule can hold it.

A child is added to what was recorded first: it says what the first could not, and whether both say the same. What two
hooks tell otherwise of one and the same thing is sealed twice, each as it was told: nobody can take a key before its
time and so keep out what was really done.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from aver.capsule.blobs import externalised
from aver.capsule.block import BLOCK, block_of, of_kind
from aver.capsule.canonical import canonical_bytes
from aver.capsule.model import Capsule, Context, Outcome
from aver.capsule.sealed import Sealed
from aver.errors import BadInput
from aver.ingest.deed import FROM_WORDS
from aver.ingest.drafting import TRANSCRIPT, Draft

__all__ = [
    "LEFT",
    "bare",
    "caused_by",
    "child_of",
    "deed_key",
    "following",
    "hook_key",
    "id_of",
    "key_in",
    "records_under",
    "tells_the_same",
]


def bare(draft: Draft, error: BadInput) -> Draft:
    """What is left of a draft that no capsule can hold: what it was, on which raw records it rests, and why."""
    capsule = draft.capsule
    environment = capsule.context.environment
    left = {name: environment[name] for name in LEFT & environment.keys()}
    calls = [replace(call, arguments={}, result=None) for call in capsule.execution.tool_calls]
    return Draft(
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


LEFT = frozenset({TRANSCRIPT, BLOCK, "tool_call_id"})


def child_of(first: Sealed, later: Draft, via: str) -> Draft:
    """What somebody who came later adds to a record: all that the first does not say, and whether both say the same."""
    content, capsule = first.to_dict(), later.capsule
    said = content["execution"]["tool_calls"][:1] or [{}]
    calls = [call.to_dict() for call in capsule.execution.tool_calls] or [{}]
    before = {**_call(said[0]), "diff": _diff(content["outcome"])}
    told = {**_call(calls[0]), "diff": _diff(capsule.outcome.to_dict())}
    after = externalised({"result": told})[0]["result"]  # Long texts stand in the first by their digests.
    # What one leaves unsaid, it does not say otherwise: a hook does not get the words that the model gets.
    told_by_both = [name for name in before if before[name] is not None and after[name] is not None]
    differs = sorted(name for name in told_by_both if not _alike(before[name], after[name]))
    unsaid = sorted(name for name in before if before[name] is None and after[name] is not None)
    roughly = [name for name in differs if name in ("diff", "result")] if _is_from_words(capsule) else []
    differs = [name for name in differs if name not in roughly]
    result: dict[str, Any] = {"via": via, "agrees": not differs}
    if roughly:
        result["not_compared"] = roughly
    if differs:
        result["differs"] = differs
    if differs or unsaid:
        result["says"] = {name: told[name] for name in (*differs, *unsaid)}
    if content["outcome"].get("status") == "pending":
        result["outcome"] = {"status": capsule.outcome.status, "error": capsule.outcome.error}
    words = "says the same" if not differs else f"says otherwise of {', '.join(differs)}"
    child = Capsule(
        type="system",
        domain=capsule.domain,
        parent_id=id_of(first),
        trigger=capsule.trigger,
        context=Context(
            agent_id=capsule.context.agent_id,
            session_id=capsule.context.session_id,
            environment={name: value for name, value in capsule.context.environment.items() if name != BLOCK},
        ),
        reasoning=capsule.reasoning,
        authority=capsule.authority,
        execution=replace(capsule.execution, tool_calls=[]),
        outcome=Outcome(status="success", summary=f"the {via} {words}: {capsule.outcome.summary}", result=result),
    )
    return Draft(of_kind(child, "record", {"adds_to": id_of(first)}), later.blobs)


def tells_the_same(first: Sealed, later: Draft) -> bool:
    """Whether a record tells just what a draft does, of the call and of what came of it."""
    return _account(first.to_dict()) == _told_by(later)


def hook_key(key: str, later: Draft) -> str:
    """The key of what a hook tells of a deed that has this key and is sealed. Whoever tells otherwise has another."""
    return f"{key}:{hashlib.sha256(canonical_bytes(_told_by(later))).hexdigest()[:16]}:hook"


def _told_by(draft: Draft) -> dict[str, Any]:
    return externalised(_account(draft.capsule.to_dict()))[0]  # Long texts stand in records by their digests.


def _account(content: Mapping[str, Any]) -> dict[str, Any]:
    calls = content["execution"]["tool_calls"][:1] or [{}]
    outcome = content["outcome"]
    return {"call": _call(calls[0]), "result": outcome["result"], "status": outcome["status"]}


def _is_from_words(capsule: Capsule) -> bool:
    return all(capsule.context.environment.get(name) == value for name, value in FROM_WORDS.items())


def _alike(one: Any, other: Any) -> bool:
    """Whether two accounts say the same, as far as both say something: one may have only the words that a model got,
    and the other what they were made of, too."""
    return _stands_in(one, other) or _stands_in(other, one)


def _stands_in(less: Any, more: Any) -> bool:
    """Whether all of one account stands in another, be it under another name."""
    if less == more or not isinstance(more, dict):
        return bool(less == more)
    named = less if isinstance(less, dict) else {None: less}
    # Nothing stands anywhere: without a name, an empty text says nothing of what was there.
    return all(
        value == more[name] if name in more else bool(value) and value in more.values() for name, value in named.items()
    )


def _call(said: Mapping[str, Any]) -> dict[str, Any]:
    return {name: said.get(name) for name in ("tool", "arguments", "result", "success")}


def _diff(outcome: Mapping[str, Any]) -> Any:
    result = outcome.get("result")
    return result.get("diff") if isinstance(result, dict) else None


def records_under(content: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What a capsule says of the raw records that it rests on; None where it rests on none: a hook made it."""
    seen = content["context"]["environment"].get(TRANSCRIPT)
    return seen if isinstance(seen, dict) else None


def key_in(content: Mapping[str, Any]) -> str:
    """The key under which a record was sealed; empty where it has none."""
    return str((block_of(content) or {}).get("key", ""))


def deed_key(key: str, chain: str) -> str:
    """The key of the deed that a record in a chain tells of: its own, or that of the record that it adds to; where an
    agent in another chain has the same, without what tells them apart."""
    return key.removesuffix(f":{TRANSCRIPT}").removesuffix(f"@{chain}")


def id_of(record: Sealed) -> str:
    return str(record.to_dict()["id"])


def caused_by(draft: Draft, cause: str) -> Draft:
    """The draft as the child of a record with this id."""
    return draft._replace(capsule=replace(draft.capsule, parent_id=cause))


def following(draft: Draft, first: Sealed) -> Draft:
    return caused_by(draft, id_of(first))
