"""A decision as a record, and the same decision made again from it.

Every decision is sealed as `gate.decision`, also one that refuses. `outcome.result`:

    v            1
    gate_id      names the decision
    decision     pass, skip, human_review, human_approved or skipped
    digest       SHA-256 of the canonical bytes of exactly the action that was judged
    action       that action, with secrets masked; `masked` tells how many
    instruction_sha256, input_sha256    of its description and its arguments as the CapSeal Agent Protocol hashes them
    facts        what the gate knew besides
    features     the numbers that the risk was computed from, with `score`, `low`, `high` and `model`
    effects      the classes of what the action does, or null where that was not found out
    effects_version    of the tables and readers that said so; old decisions have none
    policy       {outcome, rules, bundle, reasons, errors}, or null where none was asked
    thresholds   {pass_below, skip_above}
    max_retries, groups, trusted    the other settings it was decided by
    fixes        what the repository's history answered
    basis        what to decide by, to do it again: {rules, state, diff}, each a blob or null
    session      what the session's next decision must know: {labels, changed, changed_files}; null where the action
                 was refused without being judged: then that of the decision before counts
    reasons      why, in words

`judged_again` takes such a record and its blobs, and decides once more. A record whose secrets were masked cannot be
judged again exactly, and says so; but what is left of it must lead to the same answer.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import lru_cache
from typing import Any, Literal

from aver.capsule.aver_block import chain_name, of_kind
from aver.capsule.blobs import Blob, blob_references, restore_large_texts
from aver.capsule.canonical import ascii_json, canonical_bytes
from aver.capsule.json_reader import read_json
from aver.capsule.masking.mask import RULES_VERSION, mask
from aver.capsule.model import Authority, Capsule, Context, Outcome, Reasoning, Trigger
from aver.capsule.sealed import Sealed
from aver.errors import AverError, BadInput, NotFound, Unavailable
from aver.fast_dataclass import dataclass
from aver.gate.action import Action, Facts
from aver.gate.decide import Gate, decide
from aver.gate.decision import Decision, Thresholds
from aver.gate.effects.known_agents import KnownAgents, default_known_agents
from aver.gate.policy.bundle import PolicyBundle, build_policy_bundle
from aver.gate.risk.state import state_from_dict
from aver.gate.session import next_session_state
from aver.ledger import Head, Ledger

__all__ = [
    "DECISION_KIND",
    "ReplayResult",
    "build_decision_draft",
    "decision_chain",
    "replay_decision",
    "seal_decision",
]

DECISION_KIND = "gate.decision"
DOMAIN = "gate"

NO_SESSION = "default"
"""Names the chain of actions that belong to no session."""

_matches_digest_name = re.compile(r"x-[0-9a-f]{32}").fullmatch
"""What chains are called whose sessions have names that a chain cannot have."""

MASK_MARK = b"[masked:"
"""How what stands in the place of a secret begins."""

_STATUS_BY_DECISION = {"pass": "success", "human_approved": "success", "human_review": "pending"}


def decision_chain(session: str) -> str:
    """Where the decisions of a session go. No session, however it is called, has the chain of another."""
    if not session:
        return chain_name(DOMAIN, NO_SESSION)
    if session == NO_SESSION or _matches_digest_name(session):
        session = f"x-{hashlib.sha256(session.encode()).hexdigest()[:32]}"
    return chain_name(DOMAIN, session)


def seal_decision(
    ledger: Ledger, action: Action, facts: Facts, gate: Gate, decision: Decision, *, after: Head | None = None
) -> Sealed:
    """Seal a decision durably. Nothing may be let through before this has returned.

    `after` is the head up to which the session's past is in the facts: `HeadMoved` if it has gone on since.
    """
    draft, blobs = build_decision_draft(action, facts, gate, decision)
    key = f"gate:{decision.gate_id}"
    return ledger.append(decision_chain(action.session), draft, key=key, after=after, blobs=blobs)


def build_decision_draft(action: Action, facts: Facts, gate: Gate, decision: Decision) -> tuple[Capsule, list[Blob]]:
    masked = mask(action.to_dict() if decision.digest else _to_lossy_dict(action))
    named = masked.value
    blobs: list[Blob] = []

    def kept(data: bytes | None, media: str) -> dict[str, Any] | None:
        if data is None:
            return None
        blobs.append(Blob(data, media))
        return blobs[-1].reference

    diff = None if action.diff is None else mask(action.diff)
    bundle, policy, found = gate.bundle, decision.policy, decision.estimate
    result = {
        "v": 1,
        "gate_id": decision.gate_id,
        "decision": decision.decision,
        "digest": decision.digest,
        "action": named,
        "masked": {"rules": RULES_VERSION, "count": masked.count + (0 if diff is None else diff.count)},
        **(_protocol_hashes(action) if decision.digest else dict.fromkeys(_HASH_NAMES)),
        "facts": facts_to_dict(facts),
        "features": None if found is None else dict(found.features),
        "score": decision.score,
        "interval": None if decision.interval is None else list(decision.interval),
        "observations": decision.observations,
        "model": None if found is None else found.model,
        "effects_version": gate.known.effects_version,
        "effects": None if decision.effects is None else sorted(decision.effects.classes),
        "policy": None if policy is None else {**asdict(policy), **_policy_lists(policy)},
        "thresholds": asdict(decision.thresholds),
        "max_retries": gate.max_retries,
        "groups": {group: sorted(members) for group, members in sorted(gate.groups.items())},
        "trusted": sorted(gate.trusted),
        "fixes": [] if found is None else list(found.fixes),
        "basis": {
            "rules": kept(None if bundle is None else canonical_bytes(bundle.to_dict()), "application/json"),
            "state": kept(canonical_bytes(gate.state.to_dict()), "application/json"),
            "diff": kept(None if diff is None else diff.value.encode("utf-8", "surrogatepass"), "text/x-diff"),
        },
        "session": next_session_state(facts, decision),
        "reasons": list(decision.reasons),
    }
    draft = Capsule(
        type="system",
        domain=DOMAIN,
        trigger=Trigger(type="agent", source=named["caller"] or "agent", request=named["description"]),
        context=Context(agent_id=named["caller"], session_id=named["session"] or None),
        reasoning=Reasoning(
            analysis="; ".join(decision.reasons), selected_option=decision.decision, model=result["model"]
        ),
        authority=Authority(
            type="human_approved" if decision.decision == "human_approved" else "policy",
            policy_reference=None if policy is None else f"{policy.bundle} {' '.join(policy.rules)}".strip(),
        ),
        outcome=Outcome(
            status=_STATUS_BY_DECISION.get(decision.decision, "blocked"),
            summary=f"{decision.decision}: {named['type']} {named['tool']}".strip(),
            result=result,
        ),
    )
    return of_kind(draft, DECISION_KIND), blobs


_HASH_NAMES = ("instruction_sha256", "input_sha256")


def _protocol_hashes(action: Action) -> dict[str, str | None]:
    """What an action that is done is held to, also where secrets were masked or long texts moved."""
    instruction, given = action.description.encode(), ascii_json(dict(action.arguments))
    hashed = [instruction if action.description else None, given if action.arguments else None]
    digests = (None if data is None else hashlib.sha256(data).hexdigest() for data in hashed)
    return dict(zip(_HASH_NAMES, digests, strict=True))


def _to_lossy_dict(action: Action) -> dict[str, Any]:
    """An action that cannot be written exactly, as far as it can be."""
    texts = {name: value for name, value in action.to_dict().items() if isinstance(value, str)}
    return {
        **{name: value.encode("utf-8", "backslashreplace").decode() for name, value in texts.items()},
        "arguments": {},
        "files": [],
        "diff_sha256": None,
    }


def _policy_lists(policy: Any) -> dict[str, list[str]]:
    return {name: list(getattr(policy, name)) for name in ("rules", "reasons", "errors")}


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """What came of deciding again.

    `other`: the record is not that of a decision by what it names. `unrepeatable`: nobody can tell, because secrets
    were masked in it or there was nothing to decide by. `not_checked`: it could be told with what is not here.
    """

    status: Literal["same", "other", "unrepeatable", "not_checked"]
    words: str


def replay_decision(
    content: Mapping[str, Any], blob: Callable[[str], bytes], known: KnownAgents | None = None
) -> ReplayResult:
    """Decide again from a verified record's content. What the record holds is not believed, only used.

    `known` are the names of agents' tools and files to decide by, where they are not the default ones.
    """
    known = known or default_known_agents()
    try:
        result = content["outcome"]["result"]
        if (unrepeatable := _check_repeatable(result)) is not None:
            return unrepeatable
        basis = {name: _fetch_blob(reference, blob) for name, reference in result["basis"].items()}
        is_masked = bool(result["masked"]["count"])
        action = action_from_dict(result["action"], basis["diff"])
        if is_masked or action.digest != result["digest"]:
            action = action_from_dict(restore_large_texts(result["action"], blob), basis["diff"])
        if is_masked and not _has_mask_mark(action.to_dict(), basis["diff"]):
            return ReplayResult("other", "it says that secrets were masked in it, and none are")
        if not is_masked and action.digest != result["digest"]:
            return ReplayResult("other", "the digest is not that of the action in it")
        facts = facts_from_dict(result["facts"])
        gate = _gate_from_record(result, basis, known)
        named = result["policy"] and result["policy"]["bundle"]
        if named is not None and (gate.bundle is None or gate.bundle.digest != named):
            return ReplayResult("other", "the policy in it is not the one that it names")
        if result.get("effects_version", known.effects_version) != known.effects_version:
            return ReplayResult("unrepeatable", "another version of Aver's tables of effects decided it")
        decision = decide(action, facts, gate, gate_id=str(result["gate_id"]))
        if is_masked:
            return _compare_masked(decision, result)
        return _compare_exactly(decision, facts, action, result)
    except (NotFound, Unavailable) as error:
        return ReplayResult("not_checked", f"what it was decided by is not here: {error.message}")
    except (AverError, AttributeError, KeyError, TypeError, ValueError) as error:
        return ReplayResult("other", f"what it was decided by cannot be read: {error}")


_DECISIONS_BY_OUTCOME = {
    "allow": ("pass", "skip", "skipped"),
    "step_up": ("human_review", "human_approved", "skip", "skipped"),
    "deny": ("skip", "skipped"),
    None: ("skip",),
}
"""What a decision may be, by what policy says; None where policy was not asked."""


def _check_repeatable(result: Mapping[str, Any]) -> ReplayResult | None:
    """Why nothing of a decision can be made again, if so. Even then its word must fit what policy said."""
    policy = result["policy"]
    word, outcome = result["decision"], None if policy is None else policy["outcome"]
    if word not in _DECISIONS_BY_OUTCOME[outcome]:
        return ReplayResult("other", f"policy says {outcome}, and the decision is {word}")
    if policy is None and (result["basis"]["rules"] is None or not result["digest"]):
        return ReplayResult("unrepeatable", "it was refused without being judged")
    return None


def _has_mask_mark(action: Any, diff: bytes | None) -> bool:
    """Whether masking has left a mark in what was judged."""
    return MASK_MARK in canonical_bytes(action) or MASK_MARK in (diff or b"")


def _compare_masked(decision: Decision, result: Mapping[str, Any]) -> ReplayResult:
    """Hold a decision to the one made without the secrets. They rarely matter; where they may, nobody can tell."""
    if decision.decision == result["decision"]:
        return ReplayResult("unrepeatable", "secrets were masked in it")
    words = f"without the secrets that were masked in it the answer is {decision.decision}, not {result['decision']!r}"
    return ReplayResult("not_checked", words)


def _compare_exactly(decision: Decision, facts: Facts, action: Action, result: Mapping[str, Any]) -> ReplayResult:
    found = {
        "decision": decision.decision,
        "rules": None if decision.policy is None else list(decision.policy.rules),
        "score": decision.score,
        "interval": None if decision.interval is None else list(decision.interval),
        "session": next_session_state(facts, decision),
        **_protocol_hashes(action),
    }
    recorded = {
        "decision": result["decision"],
        "rules": None if result["policy"] is None else result["policy"]["rules"],
        "score": result["score"],
        "interval": result["interval"],
        "session": result["session"],
        **{name: result[name] for name in _HASH_NAMES},
    }
    for name, value in found.items():
        if value != recorded[name]:
            return ReplayResult("other", f"decided again, its {name} is {value!r}; the record says {recorded[name]!r}")
    return ReplayResult("same", "decided again, the answer is the same")


class _RecordedFixes:
    """The bug fixes to the touched files as they were counted then, question by question."""

    def __init__(self, answers: list[int]) -> None:
        self._answers = iter(answers)

    def fixes_before(self, paths: object, now: str) -> int:
        return int(next(self._answers, 0))


def _gate_from_record(result: Mapping[str, Any], basis: Mapping[str, bytes | None], known: KnownAgents) -> Gate:
    rules, state = basis["rules"], basis["state"]
    if rules is None or state is None:
        raise BadInput("the rules or the state are not here")
    return Gate(
        bundle=_parse_bundle(rules),
        state=state_from_dict(read_json(state)),
        thresholds=Thresholds(**result["thresholds"]),
        max_retries=int(result["max_retries"]),
        groups={group: frozenset(members) for group, members in result["groups"].items()},
        trusted=frozenset(result["trusted"]),
        history=_RecordedFixes(result["fixes"]),
        known=known,
    )


@lru_cache(maxsize=16)
def _parse_bundle(rules: bytes) -> PolicyBundle:
    """A ledger's decisions rest on a few bundles, and each takes long to check."""
    return build_policy_bundle(read_json(rules)["files"])


def _fetch_blob(reference: Any, blob: Callable[[str], bytes]) -> bytes | None:
    for digest, _ in blob_references(reference):
        data = blob(digest)
        if hashlib.sha256(data).hexdigest() != digest:
            raise BadInput(f"the blob {digest} has other bytes")
        return data
    return None


def facts_to_dict(facts: Facts) -> dict[str, Any]:
    return {
        "now": facts.now,
        "changed": dict(facts.changed),
        "changed_files": list(facts.changed_files),
        "labels": sorted(facts.labels),
        "denials": facts.denials,
        "recent": dict(facts.recent),
        "failures": facts.failures,
        "uses": facts.uses,
        "approved": facts.approved,
        "annotations": dict(facts.annotations),
        "environment": dict(facts.environment),
        "links": dict(facts.links),
    }


def facts_from_dict(data: Mapping[str, Any]) -> Facts:
    return Facts(**{**data, "labels": frozenset(data["labels"]), "changed_files": tuple(data["changed_files"])})


def action_from_dict(data: Mapping[str, Any], diff: bytes | None) -> Action:
    own = {name: value for name, value in data.items() if name != "diff_sha256"}
    return Action(**{**own, "files": tuple(own["files"]), "diff": _decode_diff(diff)})


def _decode_diff(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "surrogatepass")
