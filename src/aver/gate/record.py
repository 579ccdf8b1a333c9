"""A decision as a record, and the same decision made again from it.

Every decision is sealed as `gate.decision`, also one that refuses. `outcome.result`:

    v            1
    gate_id      names the decision
    decision     pass, skip, human_review, human_approved or skipped
    digest       SHA-256 of the canonical bytes of exactly the action that was judged
    action       that action, with secrets masked; `masked` tells how many
    facts        what the gate knew besides
    features     the numbers that the risk was computed from, with `score`, `low`, `high` and `model`
    policy       {outcome, rules, bundle, reasons, errors}, or null where none was asked
    thresholds   {pass_below, skip_above}
    basis        what to decide by, to do it again: {rules, state, diff, session_diff}, each a blob or null
    reasons      why, in words

`judged_again` takes such a record and its blobs, and decides once more. A record whose secrets were masked cannot be
judged again exactly, and says so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from aver.capsule.blobs import Blob, blob_references
from aver.capsule.block import chain_name, of_kind
from aver.capsule.canonical import canonical_bytes
from aver.capsule.mask import RULES, mask
from aver.capsule.model import Authority, Capsule, Context, Outcome, Reasoning, Trigger
from aver.capsule.reading import read_json
from aver.capsule.sealed import Sealed
from aver.errors import AverError, BadInput
from aver.gate.action import Action, Facts
from aver.gate.decide import Gate, decide
from aver.gate.decision import Decision, Thresholds
from aver.gate.policy.bundle import bundle_of
from aver.gate.risk.state import state_from_dict
from aver.ledger import Ledger

__all__ = ["KIND", "Again", "decision_chain", "decision_draft", "judged_again", "seal_decision"]

KIND = "gate.decision"
DOMAIN = "gate"

_STATUS = {"pass": "success", "human_approved": "success", "human_review": "pending"}


def decision_chain(session: str) -> str:
    """Where decisions go that belong to no other chain."""
    return chain_name(DOMAIN, session or "default")


def seal_decision(
    ledger: Ledger, action: Action, facts: Facts, gate: Gate, decision: Decision, *, chain: str | None = None
) -> Sealed:
    """Seal a decision durably. Nothing may be let through before this has returned."""
    draft, blobs = decision_draft(action, facts, gate, decision)
    key = f"gate:{decision.gate_id}"
    return ledger.append(chain or decision_chain(action.session), draft, key=key, blobs=blobs)


def decision_draft(action: Action, facts: Facts, gate: Gate, decision: Decision) -> tuple[Capsule, list[Blob]]:
    masked = mask(action.to_dict())
    blobs: list[Blob] = []

    def kept(data: bytes | None, media: str) -> dict[str, Any] | None:
        if data is None:
            return None
        blobs.append(Blob(data, media))
        return blobs[-1].reference

    patches = {
        name: kept(None if text is None else mask(text).value.encode("utf-8", "surrogatepass"), "text/x-diff")
        for name, text in (("diff", action.diff), ("session_diff", facts.session_diff))
    }
    policy, found = decision.policy, decision.estimate
    result = {
        "v": 1,
        "gate_id": decision.gate_id,
        "decision": decision.decision,
        "digest": decision.digest,
        "action": masked.value,
        "masked": {"rules": RULES, "count": masked.count + _masked_in(action.diff) + _masked_in(facts.session_diff)},
        "facts": facts_to_dict(facts),
        "features": None if found is None else dict(found.features),
        "score": decision.score,
        "interval": None if decision.interval is None else list(decision.interval),
        "observations": decision.observations,
        "model": None if found is None else found.model,
        "policy": None if policy is None else {**asdict(policy), **_lists(policy)},
        "thresholds": asdict(decision.thresholds),
        "max_retries": gate.max_retries,
        "groups": {group: sorted(members) for group, members in sorted(gate.groups.items())},
        "basis": {
            "rules": kept(canonical_bytes(gate.bundle.to_dict()), "application/json"),
            "state": kept(canonical_bytes(gate.state.to_dict()), "application/json"),
            **patches,
        },
        "reasons": list(decision.reasons),
    }
    draft = Capsule(
        type="system",
        domain=DOMAIN,
        trigger=Trigger(type="agent", source=action.caller or "agent", request=mask(action.description).value),
        context=Context(agent_id=action.caller, session_id=action.session or None),
        reasoning=Reasoning(
            analysis="; ".join(decision.reasons), selected_option=decision.decision, model=result["model"]
        ),
        authority=Authority(
            type="human_approved" if decision.decision == "human_approved" else "policy",
            policy_reference=None if policy is None else f"{policy.bundle} {' '.join(policy.rules)}".strip(),
        ),
        outcome=Outcome(
            status=_STATUS.get(decision.decision, "blocked"),
            summary=f"{decision.decision}: {action.type} {action.tool}".strip(),
            result=result,
        ),
    )
    return of_kind(draft, KIND), blobs


def _lists(policy: Any) -> dict[str, list[str]]:
    return {name: list(getattr(policy, name)) for name in ("rules", "reasons", "errors")}


def _masked_in(text: str | None) -> int:
    return 0 if text is None else mask(text).count


@dataclass(frozen=True, slots=True)
class Again:
    """What came of deciding again."""

    status: Literal["same", "other", "not_checked"]
    words: str


def judged_again(content: Mapping[str, Any], blob: Callable[[str], bytes]) -> Again:
    """Decide again from a verified record's content. What the record holds is not believed, only used."""
    try:
        result = content["outcome"]["result"]
        if result["masked"]["count"]:
            return Again("not_checked", "secrets were masked in it, so it cannot be judged again exactly")
        basis = {name: _fetched(reference, blob) for name, reference in result["basis"].items()}
        action = action_from_dict(result["action"], basis["diff"])
        if action.digest != result["digest"]:
            return Again("other", "the digest is not that of the action in it")
        facts = facts_from_dict(result["facts"], basis["session_diff"])
        gate = _gate_from(result, basis)
        if result["policy"] is not None and gate.bundle.digest != result["policy"]["bundle"]:
            return Again("other", "the policy in it is not the one that it names")
    except (AverError, AttributeError, KeyError, TypeError, ValueError) as error:
        return Again("not_checked", f"what it was decided by cannot be read: {error}")
    decision = decide(action, facts, gate, gate_id=str(result["gate_id"]))
    return _compared(decision, result)


def _compared(decision: Decision, result: Mapping[str, Any]) -> Again:
    found = {
        "decision": decision.decision,
        "rules": None if decision.policy is None else list(decision.policy.rules),
        "score": decision.score,
        "interval": None if decision.interval is None else list(decision.interval),
    }
    recorded = {
        "decision": result["decision"],
        "rules": None if result["policy"] is None else result["policy"]["rules"],
        "score": result["score"],
        "interval": result["interval"],
    }
    for name, value in found.items():
        if value != recorded[name]:
            return Again("other", f"decided again, its {name} is {value!r}; the record says {recorded[name]!r}")
    return Again("same", "decided again, the answer is the same")


class _Recorded:
    """The bug fixes to the touched files as they were counted then."""

    def __init__(self, fixes: float) -> None:
        self._fixes = int(fixes)

    def fixes_before(self, paths: object, now: str) -> int:
        return self._fixes


def _gate_from(result: Mapping[str, Any], basis: Mapping[str, bytes | None]) -> Gate:
    rules, state = basis["rules"], basis["state"]
    if rules is None or state is None:
        raise BadInput("the rules or the state are not here")
    features = result["features"] or {}
    return Gate(
        bundle=bundle_of(read_json(rules)["files"]),
        state=state_from_dict(read_json(state)),
        thresholds=Thresholds(**result["thresholds"]),
        max_retries=int(result["max_retries"]),
        groups={group: frozenset(members) for group, members in result["groups"].items()},
        history=_Recorded(features.get("fixes", 0)),
    )


def _fetched(reference: Any, blob: Callable[[str], bytes]) -> bytes | None:
    for digest, _ in blob_references(reference):
        data = blob(digest)
        if hashlib.sha256(data).hexdigest() != digest:
            raise BadInput(f"the blob {digest} has other bytes")
        return data
    return None


def facts_to_dict(facts: Facts) -> dict[str, Any]:
    return {
        "now": facts.now,
        "labels": sorted(facts.labels),
        "denials": facts.denials,
        "recent": dict(facts.recent),
        "failures": facts.failures,
        "uses": facts.uses,
        "approved": facts.approved,
        "annotations": dict(facts.annotations),
    }


def facts_from_dict(data: Mapping[str, Any], session_diff: bytes | None) -> Facts:
    return Facts(**{**data, "labels": frozenset(data["labels"]), "session_diff": _text(session_diff)})


def action_from_dict(data: Mapping[str, Any], diff: bytes | None) -> Action:
    own = {name: value for name, value in data.items() if name != "diff_sha256"}
    return Action(**{**own, "files": tuple(own["files"]), "diff": _text(diff)})


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "surrogatepass")
