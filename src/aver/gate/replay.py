"""Decisions made again: what verifying a ledger checks about the gate's records besides their seals.

`replay_decision` takes the record of a decision and its blobs, and decides once more, by the rules, the model's state
and the settings that the record holds. A record whose secrets were masked cannot be decided again exactly. What is left
of it must still lead to the same answer.

Two examiners use it:

`approvals` checks the signatures of each enrolment, request, answer and use (`approvals.verify`).

`decisions` makes each decision again, and it must come out the same. What a decision says of its session's past must be
what the decisions before it say. One that calls itself approved by a person must have used an approval of exactly that
action. A decision with masked secrets, or one that was refused because there was nothing to decide by, cannot be made
again; the verdict says so.

Someone who has the ledger's key can seal a decision that was never made. They cannot make the same inputs lead to it.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Literal

from aver.capsule.blobs import blob_references, restore_large_texts
from aver.capsule.canonical import canonical_bytes
from aver.capsule.json_reader import read_json
from aver.capsule.sealed import Sealed
from aver.errors import AverError, BadInput, NotFound, Unavailable
from aver.fast_dataclass import dataclass
from aver.gate.action import Action, Facts
from aver.gate.approvals.enrolment import approvers_chain
from aver.gate.approvals.request_records import approvals_chain
from aver.gate.approvals.verify import APPROVALS_CHECK as APPROVALS
from aver.gate.approvals.verify import check_approvals
from aver.gate.approvals.vote import read_vote
from aver.gate.decide import Gate, decide
from aver.gate.decision import Decision, Thresholds
from aver.gate.decision_record import DECISION_KIND, HASH_NAMES, decision_chain, protocol_hashes
from aver.gate.effects.known_agents import KnownAgents, default_known_agents
from aver.gate.policy.bundle import PolicyBundle, build_policy_bundle
from aver.gate.risk.state import state_from_dict
from aver.gate.session import EMPTY_SESSION, next_session_state, read_session_state
from aver.ledger import Ledger
from aver.ledger.examiners import VerificationScope
from aver.verdict import Finding, Place, Tally
from aver.verdict.chain import make_printable

__all__ = ["EXAMINERS", "ReplayResult", "replay_decision"]

DECISIONS_CHECK = "decisions"

MASK_MARK = b"[masked:"
"""How the text begins that masking puts in the place of a secret."""


# --- deciding again


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
        **protocol_hashes(action),
    }
    recorded = {
        "decision": result["decision"],
        "rules": None if result["policy"] is None else result["policy"]["rules"],
        "score": result["score"],
        "interval": result["interval"],
        "session": result["session"],
        **{name: result[name] for name in HASH_NAMES},
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


def facts_from_dict(data: Mapping[str, Any]) -> Facts:
    return Facts(**{**data, "labels": frozenset(data["labels"]), "changed_files": tuple(data["changed_files"])})


def action_from_dict(data: Mapping[str, Any], diff: bytes | None) -> Action:
    own = {name: value for name, value in data.items() if name != "diff_sha256"}
    return Action(**{**own, "files": tuple(own["files"]), "diff": _decode_diff(diff)})


def _decode_diff(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "surrogatepass")


# --- the examiners


def examine_approvals(ledger: Ledger, scope: VerificationScope) -> Tally:
    """All of them, also those verified before: each rests on what came before it."""
    if not scope.chains("approvals") and not scope.chains("approvers"):
        return Tally()
    answers = _read_chain(ledger, approvals_chain(ledger.tenant))
    enrolments = _read_chain(ledger, approvers_chain(ledger.tenant))
    try:
        return check_approvals(answers, scope.rules.ring, enrolments=enrolments)
    except AverError as error:
        return _tally_unreadable(APPROVALS, error)


def examine_decisions(ledger: Ledger, scope: VerificationScope) -> Tally:
    chains = scope.chains("gate")
    if not chains:
        return Tally()
    examination = _DecisionExaminer(ledger)
    for row in chains:
        try:
            start = scope.starts.get(row.name, 0)
            examination.begin(row.name, start)
            for record in ledger.read(row.name, start, row.count):
                if record.kind == DECISION_KIND:
                    examination.take(record)
        except AverError as error:
            examination.tally.merge(_tally_unreadable(DECISIONS_CHECK, error))
    return examination.finish()


class _DecisionExaminer:
    """Decisions, one after the other, and the approvals that are left for them."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._uses = _count_approval_uses(ledger)
        self._unrepeatable: Counter[str] = Counter()
        self._standing: Mapping[str, Any] = EMPTY_SESSION
        self.tally = Tally()

    def begin(self, chain: str, start: int) -> None:
        """The decisions of a session, from this one on."""
        try:
            self._standing = read_session_state(self._ledger, chain, start)
        except (BadInput, KeyError, TypeError, AttributeError):
            self._standing = EMPTY_SESSION  # Already reported when the earlier records were checked.

    def take(self, record: Sealed) -> None:
        place = Place(record.chain, record.sequence)
        content = record.to_dict()
        again = replay_decision(content, self._ledger.blob)
        self.tally.count_done(DECISIONS_CHECK)
        if again.status == "other":
            self._add_failure(f"the gate did not decide this: {again.words}", place)
        elif again.status == "unrepeatable":
            self._unrepeatable[again.words] += 1
        elif again.status == "not_checked":
            words = f"some could not be made again, such as {place}: {again.words}"
            self.tally.skip(DECISIONS_CHECK, words, matters=True)
        result = content["outcome"].get("result")
        if isinstance(result, dict):
            self._check_past(result, place)
            if result.get("decision") == "human_approved":
                self._check_approval_use(str(result.get("digest")), place)

    def _check_past(self, result: Mapping[str, Any], place: Place) -> None:
        """The past of a decision is what the decision before has left; of actions without a session there is none."""
        action, facts = result.get("action"), result.get("facts")
        session = action.get("session") if isinstance(action, dict) else None
        if not isinstance(session, str) or not isinstance(facts, dict):
            return  # Already reported as malformed.
        if MASK_MARK.decode() not in session and decision_chain(session) != place.chain:
            self._add_failure(f"it is of the session {session!r}, whose decisions are elsewhere", place)
        before = self._standing if session else EMPTY_SESSION
        if result.get("session") is None:
            return
        if any(facts.get(name) != before[name] for name in EMPTY_SESSION):
            self._add_failure("what it says of the session's past is not what the decision before it says", place)
        self._standing = result["session"]

    def _check_approval_use(self, digest: str, place: Place) -> None:
        if not self._uses[digest]:
            self._add_failure("it says that a human approved this, and no approval of it was used", place)
        else:
            self._uses[digest] -= 1

    def _add_failure(self, words: str, place: Place) -> None:
        self.tally.add(Finding(DECISIONS_CHECK, "failed", "EVIDENCE_INVALID", make_printable(words), place))

    def finish(self) -> Tally:
        """The tally, with how many decisions nobody can make again."""
        if total := sum(self._unrepeatable.values()):
            made = self.tally.done[DECISIONS_CHECK] - total
            reasons = "; ".join(f"{count}: {words}" for words, count in sorted(self._unrepeatable.items()))
            self.tally.notes[DECISIONS_CHECK] = f"{made} made again, {total} not ({reasons})"
        return self.tally


def _count_approval_uses(ledger: Ledger) -> Counter[str]:
    """How often an approval was used, by the digest of the action."""
    uses: Counter[str] = Counter()
    for record in _read_chain(ledger, approvals_chain(ledger.tenant)):
        try:
            found = read_vote(record)
            if found is not None and found[1].word == "used":
                uses[str(record.to_dict()["outcome"]["result"]["digest"])] += 1
        except AverError:
            continue  # The check of approvals tells of it.
    return uses


def _read_chain(ledger: Ledger, chain: str) -> Iterator[Sealed]:
    try:
        yield from ledger.read(chain)
    except NotFound:
        return


def _tally_unreadable(check: str, error: AverError) -> Tally:
    tally = Tally()
    tally.skip(check, f"the records cannot be read: {error.message}", matters=True)
    return tally


EXAMINERS = (examine_approvals, examine_decisions)
