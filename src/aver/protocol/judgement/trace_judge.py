"""Judging the stored records of a trace in order: seals by the keys that the trace binds, then the fold.

    judge = TraceJudge(place, "5d2e…", ring)
    for record in reader.read("protocol.5d2e…"):
        event = judge.read(record)           # None: this record does not hold, and nothing after it is judged
        if event is None or not judge.admit(event):
            break
    report = build_report(judge.facts(…))

The caller has verified the chain: hashes, links, and the signatures of keys that its ring knows. `failures` names the
records that did not hold. The judge itself verifies signatures of keys that the ring does not know, by the key with
which the participant joined. So each signature is verified once. A key that the ring knows must be the one that joined.

The operator's whole key stands in no event. It is the ring's key of that name; without it, nothing can be judged
(`is_operator_known`).

Records after the first that does not hold are not judged: `broken` names that one by check, code and place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from aver.capsule.blobs import blob_references
from aver.capsule.sealed import Sealed
from aver.errors import BadInput, Refused
from aver.keys.algorithms import verify_ed25519, verify_ml_dsa_65
from aver.keys.public_key import KeyRole, PublicKey
from aver.keys.ring import Ring
from aver.log import debug
from aver.protocol.events import Event, read_event
from aver.protocol.judgement.trace_facts import GateWord, ProducedArtifact, ReportFinding, TraceFacts
from aver.protocol.rules.participants import check_own_succession
from aver.protocol.standings import ARTIFACT_COMPLETED, ARTIFACT_FAILED, ARTIFACT_RECORDED
from aver.protocol.statements import SeenHead, TracePlace
from aver.protocol.trace import ProtocolTrace

EVENTS_MAX = 200_000
"""Events of a trace that are judged. All that stands in a trace is kept while it is judged, a few kB for each event."""

_CHECK_BY_EVENT: Mapping[str, str] = {
    **dict.fromkeys(("session_initialized", "participant_joined"), "participants"),
    **dict.fromkeys(("tool_intent_signed", "intent_reviewed", "tool_execution_started"), "intents"),
    **dict.fromkeys(("tool_execution_completed", "tool_execution_failed", "artifact_recorded"), "executions"),
    **dict.fromkeys(("claim_issued", "claim_challenged", "claim_revised", "challenge_resolved"), "claims"),
}
"""The check that an event belongs to, where its own rules refuse it."""

_CHECK_BY_CODE: Mapping[str, str] = {
    "SCHEMA_INVALID": "order",
    "SEQUENCE_GAP": "append_only",
    "REPLAY": "append_only",
    "ROLLBACK": "append_only",
    "SIG_INVALID": "attribution",
    "SIG_MISSING": "attribution",
    "KEY_RETIRED": "attribution",
    "CLAIM_UNPROVEN": "claims",
    "CLAIM_DISPUTED": "claims",
}

_BRINGING_EVENTS = frozenset(
    {"tool_execution_started", "tool_execution_completed", "tool_execution_failed", "artifact_recorded"}
)
"""The events that bring artifacts. The end of an audit brings the report, which is about the trace before it."""

OPERATOR_KEY = "a trace is opened by the ledger's key"

_SPEAKER_PLACES = ("role", "agent", "signer")
"""The parts of an event by which the fold refuses a speaker."""


class TraceJudge:
    """Takes the records of one trace in order. The module docstring has an example."""

    def __init__(
        self,
        place: TracePlace,
        trace: str,
        ring: Ring,
        failures: Mapping[int, str] | None = None,
        roles: Mapping[str, KeyRole] | None = None,
    ) -> None:
        self.trace = ProtocolTrace(place, trace)
        self.broken: ReportFinding | None = None
        """The first record that does not hold."""
        self.words = ""
        """Why it does not hold, for people."""
        self.is_operator_known = True
        self.audit: Event | None = None
        """The end of the audit, once it was admitted."""
        self._ring = ring
        self._failures = failures or {}
        self._roles = roles or {}
        self._place = place
        self._last: tuple[int, str, str] | None = None
        self._sequences: dict[str, int] = {}
        self._produced: dict[str, ProducedArtifact] = {}
        self._confirmed: dict[str, PublicKey] = {}
        """The bound keys that the ring knows, by fingerprint. Whoever verified the chain did so by these."""

    @property
    def count(self) -> int:
        """How many records hold."""
        return self.trace.count

    def read(self, record: Sealed) -> Event | None:
        """Read the next record as an event, and check its seal. None if it does not hold."""
        expected = self.count
        if self.broken is None and expected in self._failures:
            self._break("append_only", self._failures[expected], expected, None, "the record does not hold")
        if self.broken is not None:
            return None
        try:
            event = read_event(record)
        except BadInput as error:
            is_bare = _is_claim_without_evidence(record)
            check, code = ("claims", "CLAIM_UNPROVEN") if is_bare else ("order", "SCHEMA_INVALID")
            self._break(check, code, expected, None, error.message)
            return None
        if event.sequence != expected:
            words = f"record {expected} is missing, or does not hold"
            self._break("append_only", "SEQUENCE_GAP", expected, None, words)
        elif expected == 0 and self._find_operator(event.signer) is None:
            self.is_operator_known = False
            self._break("participants", "UNKNOWN_SIGNER", 0, event.id, "the operator's key is not known")
        elif expected == 0 and (problem := self._find_operator_problem(event.signer)):
            self._break("participants", "ROLE_POLICY_VIOLATION", 0, event.id, problem)
        elif expected and not self._is_sealed(record, event):
            words = f"the signature is not that of the key {event.signer} that has joined"
            self._break("attribution", "SIG_INVALID", expected, event.id, words)
        return event if self.broken is None else None

    def admit(self, event: Event) -> bool:
        """Go on by an event that was read. Returns whether the rules of the protocol admit it."""
        try:
            check_own_succession(self.trace, event, self._ring)
            self.trace.admit(event)
            if event.sequence == 0:
                operator = self._find_operator(event.signer)
                assert operator is not None  # `read` has found it.
                self.trace.set_operator_key(operator, event)
        except Refused as error:
            place = str(getattr(error, "place", ""))
            check = _find_check(event, error.code, place)
            self._break(check, error.code, event.sequence, event.id, error.message)
            return False
        self._sequences[event.id] = event.sequence
        self._last = event.sequence, event.id, event.hash
        self._note_artifacts(event)
        if event.name == "verification_run_completed":
            self.audit = event
        return True

    def take(self, records: Iterable[Sealed]) -> None:
        """Read and admit records, up to the first that does not hold."""
        for record in records:
            event = self.read(record)
            if event is None or not self.admit(event):
                return

    def find_sequence(self, event: str) -> int | None:
        """Return the place of an event that was admitted; None for any other."""
        return self._sequences.get(event)

    def facts(
        self,
        *,
        head: SeenHead,
        profile: str,
        blob: Callable[[str], bytes],
        decision: Callable[[str], GateWord | None],
        rerun: Iterable[Mapping[str, Any]] = (),
        are_artifacts_intact: bool = False,
    ) -> TraceFacts:
        """Return the facts for a report: everything that was admitted so far."""
        return TraceFacts(
            place=self._place,
            head=head,
            profile=profile,
            trace=self.trace,
            broken=self.broken,
            last=self._last,
            sequences=self._sequences,
            produced=self._produced,
            blob=blob,
            decision=decision,
            rerun=tuple(rerun),
            are_artifacts_intact=are_artifacts_intact,
        )

    def _break(self, check: str, code: str, sequence: int, event: str | None, words: str) -> None:
        debug("protocol", "trace %s ends to hold at %d: %s: %s", self.trace.trace, sequence, code, words)
        self.broken = ReportFinding(check, "failed", code, sequence, event)
        self.words = words

    # --- seals

    def _find_operator(self, signer: str) -> PublicKey | None:
        return next((key for key in self._ring.lookup(signer) if key.fingerprint == signer), None)

    def _find_operator_problem(self, signer: str) -> str:
        """Why a key cannot have opened the trace; empty where it can. About a bare key, nothing is known."""
        key = self._find_operator(signer)
        assert key is not None  # The caller has found it.
        entry = self._ring.entry_of(key)
        role = self._roles.get(key.ed25519) if entry is None else entry.role
        return "" if role is None or role.may_attest else f"{OPERATOR_KEY}, and this is the key of {role}"

    def _is_sealed(self, record: Sealed, event: Event) -> bool:
        """Whether the key by which the signer joined has sealed a record. The fold checks whose key it must be."""
        if record.signed_by != event.signer:
            return False
        bound = self._find_bound_key(event)
        if bound is None:
            return True  # No key of this trace: the fold refuses the event, and says why.
        # A key with a post-quantum half signs with both.
        if bound.ml_dsa_65 and not record.signature_pq:
            return False
        if self._confirmed.get(event.signer) is bound:
            return True
        known = self._ring.lookup(record.signed_by)
        same = [key for key in known if key.ed25519 == bound.ed25519]
        if known and not same:
            return False
        if any(bound.ml_dsa_65 in ("", key.ml_dsa_65) for key in same):
            self._confirmed[event.signer] = bound
            return True
        # The ring does not know the key, or has its Ed25519 half alone: the rest is verified by the key that joined.
        message = record.hash.encode()
        if not same and not verify_ed25519(bound.ed25519_bytes, message, record.signature or ""):
            return False
        return not bound.ml_dsa_65 or verify_ml_dsa_65(bound.ml_dsa_65_bytes, message, record.signature_pq or "")

    def _find_bound_key(self, event: Event) -> PublicKey | None:
        participant = self.trace.bound_keys.get(event.signer)
        if participant is not None:
            return participant.key
        if event.name != "participant_joined":
            return None
        # The operator's successor seals its own join: its key is bound by this very event.
        joining = event.payload["participant"]
        return PublicKey(joining["public_key"], joining["public_key_pq"])

    # --- artifacts

    def _note_artifacts(self, event: Event) -> None:
        """Note which artifacts an event brings, and which are evidence from here on. The fold has judged that."""
        if event.name not in _BRINGING_EVENTS:
            return
        digests = []
        for digest, size in blob_references(event.payload):
            digests.append(digest)
            self._produced.setdefault(digest, ProducedArtifact(size, event.sequence))
        if "start" in event.refs:  # What was recorded for a call has waited for its end.
            digests += self.trace.executions[event.refs["start"]].recorded
        for digest in digests:
            how, artifact = self.trace.artifacts.get(digest, 0), self._produced[digest]
            if how & (ARTIFACT_COMPLETED | ARTIFACT_RECORDED) and artifact.evidence_from is None:
                artifact.evidence_from = event.sequence
            if how & ARTIFACT_FAILED and artifact.failure_from is None:
                artifact.failure_from = event.sequence


def _is_claim_without_evidence(record: Sealed) -> bool:
    """Whether the only fault of a record that is no event may be that it claims something and names no evidence."""
    try:
        return record.kind == "protocol.claim_issued" and record.content["outcome"]["result"]["evidence"] == []
    except (BadInput, AttributeError, KeyError, TypeError):
        return False


def _find_check(event: Event, code: str, place: str) -> str:
    """The check under which the fold's refusal of an event is reported."""
    if code in _CHECK_BY_CODE:
        return _CHECK_BY_CODE[code]
    if code == "ROLE_POLICY_VIOLATION" and place in _SPEAKER_PLACES:
        return "roles"
    if code == "STATE_VIOLATION" and not place:
        return "order"
    return _CHECK_BY_EVENT.get(event.name, "order")
