"""Making a decision again from its record.

`replay_decision` takes the record of a decision and its blobs, and decides once more, by the rules, the model's state
and the settings that the record holds. A record whose secrets were masked cannot be decided again exactly. The rest
of it must still lead to the same answer.

Someone who has the ledger's key can seal a decision that was never made. They cannot make the same inputs lead to it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from typing import Any, Literal

from aver.capsule.blobs import blob_references, restore_large_texts
from aver.capsule.canonical import canonical_bytes
from aver.capsule.json_reader import read_json
from aver.capsule.masking.mask import MASK_START
from aver.errors import AverError, BadInput, NotFound, Unavailable
from aver.fast_dataclass import dataclass
from aver.gate.action import DIGEST_VERSION, FIRST_DIGEST_VERSION, Action, Facts
from aver.gate.decide import Gate, decide
from aver.gate.decision import Decision, Thresholds
from aver.gate.decision_record import HASH_NAMES, list_git_moves, protocol_hashes, read_figure
from aver.gate.effects.known_agents import KnownAgents, default_known_agents
from aver.gate.facts.decision_inputs import read_recorded_inputs
from aver.gate.facts.session_state import next_session_state
from aver.gate.policy.bundle import PolicyBundle, build_policy_bundle

OTHER_VERSION = "another version of Aver's tables of effects decided it; verify it with that version"
"""Why a decision of an earlier or later version is not made again. A forged one can name any version."""

NOT_JUDGED = "it was refused without being judged"
"""Why a refusal is not made again. Nothing else follows from such a refusal, and no other decision can claim this."""

BASIS_NAMES = ("rules", "state", "diff", "written")
"""The blobs that a decision rests on. Old decisions have no `written`."""

MASK_MARK = MASK_START.encode()
"""How the text begins that masking puts in the place of a secret."""


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """The result of deciding again.

    `same`: the answer is the recorded one. `other`: the record does not follow from what it names. `unrepeatable`: no
    one can make it again, because its secrets were masked, or nobody judged it. `not_checked`: it cannot be made again
    here, because another version made it, or a blob that is needed is not here.
    """

    status: Literal["same", "other", "unrepeatable", "not_checked"]
    words: str


def replay_decision(
    content: Mapping[str, Any], blob: Callable[[str], bytes], known: KnownAgents | None = None
) -> ReplayResult:
    """Decide again from a verified record's content. The record's own answer is not believed, only compared.

    `known` are the names of agents' tools and files to decide by, where they are not the default ones.
    """
    known = known or default_known_agents()
    try:
        result = content["outcome"]["result"]
        if (unrepeatable := _check_repeatable(result, known)) is not None:
            return unrepeatable
        basis = read_basis(result, blob)
        is_masked = bool(result["masked"]["count"])
        action = action_from_dict(result["action"], basis["diff"])
        # Large texts of a record are in blobs. Read them only where the action needs them.
        if is_masked or not _has_recorded_digest(action, result):
            action = action_from_dict(restore_large_texts(result["action"], blob), basis["diff"])
        # A record could claim masked secrets to escape the comparison. Masking leaves a mark.
        texts: tuple[bytes, ...] = ()
        if is_masked:
            beside = {name: result.get(name) for name in ("facts", "policy", "fixes", "reasons")}
            blobs = (basis["diff"] or b"", basis["written"] or b"")
            texts = (canonical_bytes(action.to_dict()), *blobs, canonical_bytes(beside))
        if is_masked and not any(MASK_MARK in text for text in texts):
            return ReplayResult("other", "it says that secrets were masked in it, and none are")
        # The digest covers the action and its diff. A mark elsewhere hides nothing of them.
        is_hidden = is_masked and any(MASK_MARK in text for text in texts[:2])
        if not is_hidden and not _has_recorded_digest(action, result):
            return ReplayResult("other", "the digest is not that of the action in it")
        inputs = read_recorded_inputs(result, basis)
        gate = inputs.apply_to(_gate_from_record(result, basis, known))
        named = result["policy"] and result["policy"]["bundle"]
        if named is not None and (gate.bundle is None or gate.bundle.digest != named):
            return ReplayResult("other", "the policy in it is not the one that it names")
        if result.get("effects_version") != known.effects_version:
            return ReplayResult("not_checked", OTHER_VERSION)
        # An argument that counts could be left out to make the approval of one action fit another.
        descriptive = known.find_descriptive(action.tool)
        if not descriptive.issuperset(result.get("left_out", ())):
            return ReplayResult("other", "its digest leaves out arguments that count")
        decision = decide(action, inputs.facts, gate, gate_id=str(result["gate_id"]))
        if result["policy"] is None and decision.policy is not None:
            # Someone else was to decide, and could not: a policy server was down, or two of them disagreed.
            return ReplayResult("unrepeatable", NOT_JUDGED)
        if is_masked:
            # Compare with the decision that is made without the secrets. A difference may come from them.
            made = (decision.decision, decision.policy.patch if decision.policy is not None else "")
            if made == (result["decision"], (result["policy"] or {}).get("patch", "")):
                return ReplayResult("unrepeatable", "secrets were masked in it")
            words = f"without the masked secrets the answer is {' '.join(made).strip()}, not {result['decision']!r}"
            return ReplayResult("not_checked", words)
        return _compare_exactly(decision, inputs.facts, action, result)
    except (NotFound, Unavailable) as error:
        return ReplayResult("not_checked", f"the basis of the decision is not here: {error.message}")
    except (AverError, AttributeError, KeyError, TypeError, ValueError) as error:
        return ReplayResult("other", f"the basis of the decision cannot be read: {error}")


def _has_recorded_digest(action: Action, result: Mapping[str, Any]) -> bool:
    """Whether a record's digest is that of an action, by the version that the record names."""
    version, left_out = result.get("digest_version", FIRST_DIGEST_VERSION), result.get("left_out", [])
    if not isinstance(left_out, list) or not all(isinstance(name, str) for name in left_out):
        raise BadInput("it does not list the arguments that its digest leaves out")
    # Tables grow: a digest of an earlier version of Aver may cover a description that is left out today.
    digests = (action.compute_digest(version, left_out, described=described) for described in (None, True))
    return result["digest"] in digests


_DECISIONS_BY_OUTCOME = {
    "allow": ("pass", "skip", "skipped"),
    "step_up": ("human_review", "human_approved", "skip", "skipped"),
    "deny": ("skip", "skipped"),
    None: ("skip",),
}
"""The decisions that can follow from each answer of policy; None where policy was not asked."""


_RESULTS_OF_JUDGING = ("score", "interval", "features", "model", "effects", "session")
"""The parts of a record that only an action has which was judged."""


def _check_repeatable(result: Mapping[str, Any], known: KnownAgents) -> ReplayResult | None:
    """Say why a decision cannot be made again; None where it can. Even then its word must fit the policy's answer."""
    policy = result["policy"]
    word, outcome = result["decision"], None if policy is None else policy["outcome"]
    if word not in _DECISIONS_BY_OUTCOME[outcome]:
        return ReplayResult("other", f"policy says {outcome}, and the decision is {word}")
    if result.get("digest_version", FIRST_DIGEST_VERSION) not in range(FIRST_DIGEST_VERSION, DIGEST_VERSION + 1):
        return ReplayResult("not_checked", OTHER_VERSION)
    if policy is not None:
        return None
    # Without this, a refusal that claims not to be judged could change the session's state, such as its labels.
    judged = [name for name in _RESULTS_OF_JUDGING if result[name] is not None]
    if judged and result.get("effects_version") == known.effects_version:
        return ReplayResult("other", f"it was refused without being judged, and has a {judged[0]}")
    has_basis = result["basis"]["rules"] is not None and result["digest"]
    return None if has_basis else ReplayResult("unrepeatable", NOT_JUDGED)


def _compare_exactly(decision: Decision, facts: Facts, action: Action, result: Mapping[str, Any]) -> ReplayResult:
    state = next_session_state(
        facts,
        decision,
        mode=str(result.get("mode") or ""),
        answer=str(result.get("answer") or ""),
        call_id=str(result.get("call_id") or ""),
    )
    policy, said = decision.policy, result["policy"]
    found = {
        "decision": decision.decision,
        "rules": None if policy is None else list(policy.rules),
        "patch": "" if policy is None else policy.patch,
        "code": "" if policy is None else policy.code,
        "score": decision.score,
        "interval": None if decision.interval is None else list(decision.interval),
        "session": state,
        "git_moves": list_git_moves(decision),
        **protocol_hashes(action),
    }
    recorded = {
        "decision": result["decision"],
        "rules": None if said is None else said["rules"],
        "patch": "" if said is None else said.get("patch", ""),
        "code": "" if said is None else said.get("code", ""),
        "score": read_figure(result["score"]),
        "interval": None if result["interval"] is None else list(map(read_figure, result["interval"])),
        "session": result["session"],
        "git_moves": result.get("git_moves", []),
        **{name: result[name] for name in HASH_NAMES},
    }
    for name, value in found.items():
        if value != recorded[name]:
            return ReplayResult("other", f"decided again, its {name} is {value!r}; the record says {recorded[name]!r}")
    return ReplayResult("same", "decided again, the answer is the same")


def _gate_from_record(result: Mapping[str, Any], basis: Mapping[str, bytes | None], known: KnownAgents) -> Gate:
    """Return the gate that the record names. Its state and history are those of the record's inputs."""
    rules = basis["rules"]
    if rules is None:
        raise BadInput("the rules are not here")
    return Gate(
        bundle=_parse_bundle(rules),
        thresholds=Thresholds(**{name: read_figure(value) for name, value in result["thresholds"].items()}),
        max_retries=int(result["max_retries"]),
        caution=result.get("caution", "strict"),  # Older decisions were as cautious as this one is.
        groups={group: frozenset(members) for group, members in result["groups"].items()},
        trusted=frozenset(result["trusted"]),
        known=known,
    )


@lru_cache(maxsize=16)
def _parse_bundle(rules: bytes) -> PolicyBundle:
    """Parse a bundle once: a ledger's decisions rest on a few, and each takes long to check."""
    # By the schema that the rules were checked against then: a later schema says nothing about them.
    document = read_json(rules)
    schema = document["schema"]
    if not isinstance(schema, str) or not schema:
        raise BadInput("the rules of the decision have no schema")
    return build_policy_bundle(document["files"], schema)


def read_basis(
    result: Mapping[str, Any], blob: Callable[[str], bytes], names: Collection[str] = BASIS_NAMES
) -> dict[str, bytes | None]:
    """Return the bytes of the blobs that a decision rests on, by name; None for one that it does not have.

    Raises `NotFound` where a blob is not here, and `BadInput` where it has other bytes.
    """
    return {name: _fetch_blob(result["basis"].get(name), blob) for name in names}


def _fetch_blob(reference: Any, blob: Callable[[str], bytes]) -> bytes | None:
    for digest, _ in blob_references(reference):
        data = blob(digest)  # The store of blobs is not trusted: compare the digest.
        if hashlib.sha256(data).hexdigest() != digest:
            raise BadInput(f"the blob {digest} has other bytes")
        return data
    return None


def action_from_dict(data: Mapping[str, Any], diff: bytes | None) -> Action:
    own = {name: value for name, value in data.items() if name != "diff_sha256"}
    text = None if diff is None else diff.decode("utf-8", "surrogatepass")
    return Action(**{**own, "files": tuple(own["files"]), "diff": text})
