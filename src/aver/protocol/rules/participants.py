"""Opening a trace, and joining it: every key joins by a statement of its own; one agent, one key, one role."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from aver.keys.public_key import PublicKey
from aver.keys.ring import ROTATION_PURPOSE, Ring, read_rotation
from aver.protocol.bounds import Bounds, find_loosened_bound
from aver.protocol.events import OPERATOR, Event, trace_chain
from aver.protocol.rules.step import EventRefused, FoldStep
from aver.protocol.standings import ARTIFACT_INPUT, Participant
from aver.protocol.statements import JOIN_PURPOSE, Join, digest_json, find_statements, read_join

if TYPE_CHECKING:
    from aver.protocol.trace import ProtocolTrace

REQUIRED_ROLES = ("planner", "executor", "critic")
"""The roles without which no trace begins. Without an auditor, none completes."""


def judge_session_initialized(trace: ProtocolTrace, event: Event) -> FoldStep:
    payload = event.payload
    if event.agent != OPERATOR or event.trace != trace.trace or trace_chain(trace.trace) != trace.place.chain:
        raise EventRefused("ROLE_POLICY_VIOLATION", "the operator opens a trace, in its own chain")
    if digest_json(payload["task"]) != payload["task_sha256"]:
        raise EventRefused("EVIDENCE_INVALID", "task_sha256 is not that of the task", place="task_sha256")
    bounds = Bounds.from_dict(payload["bounds"])
    if loosened := find_loosened_bound(bounds, payload["task"]):
        words = f"{loosened} is looser than the task says, which every participant has signed"
        raise EventRefused("EVIDENCE_INVALID", words, place="bounds")
    joins = [read_join(statement) for statement in event.statements]
    listed = [(item["agent"], item["role"]) for item in payload["participants"]]
    if len(joins) != len(listed):
        raise EventRefused("ROLE_POLICY_VIOLATION", "every participant joins by a statement of its own")
    missing = [role for role in REQUIRED_ROLES if role not in {role for _, role in listed}]
    if missing:
        words = f"no trace begins without a {missing[0]}"
        raise EventRefused("ROLE_POLICY_VIOLATION", words, place="participants")
    found: dict[str, Participant] = {}
    for index, (item, join) in enumerate(zip(payload["participants"], joins, strict=True)):
        participant = _check_join(
            trace, item, join, event, payload["task_sha256"], payload["profile"], f"participants[{index}]"
        )
        taken = {other.key.fingerprint for other in found.values()}
        if participant.agent in found or participant.key.fingerprint in taken:
            raise EventRefused(
                "ROLE_POLICY_VIOLATION", f"{participant.agent}: one agent, one key, one role", place="participants"
            )
        found[participant.agent] = participant
    if event.signer and any(each.key.fingerprint == event.signer for each in found.values()):
        raise EventRefused("ROLE_POLICY_VIOLATION", "the operator's key takes no other role", place="participants")

    def apply() -> None:
        trace.task, trace.task_sha256 = payload["task"], payload["task_sha256"]
        trace.profile, trace.bounds = payload["profile"], bounds
        # The operator's whole key is not in the event: `set_operator_key` gives it, from the verified record.
        for participant in found.values():
            trace.add_participant(participant)
        for digest in payload["task"].get("input_artifacts", ()):
            trace.add_artifact(digest, ARTIFACT_INPUT)

    return FoldStep("planning", apply)


def _check_join(
    trace: ProtocolTrace, item: Mapping[str, Any], join: Join, event: Event, task_sha256: str, profile: str, where: str
) -> Participant:
    """Return the participant that an item and a signed join name together. Raises unless they fit."""
    key = PublicKey.read(item["public_key"], item["public_key_pq"], where)
    if join.place != trace.place:
        raise EventRefused("REPLAY", "the join is for another ledger, tenant or trace", place=where)
    if (join.task_sha256, join.profile) != (task_sha256, profile):
        raise EventRefused("REPLAY", "the join is for another task or profile", place=where)
    if (join.agent, join.role, join.key) != (item["agent"], item["role"], key):
        raise EventRefused("ROLE_POLICY_VIOLATION", "the join names another agent, role or key", place=where)
    if (join.role == OPERATOR) != (join.agent == OPERATOR):
        raise EventRefused("ROLE_POLICY_VIOLATION", "only the operator is called so", place=where)
    if join.role == OPERATOR and event.name == "session_initialized":
        raise EventRefused("ROLE_POLICY_VIOLATION", "the operator's key is that of the seal", place=where)
    return Participant(join.agent, join.role, key, item["held"], event.id)


def judge_participant_joined(trace: ProtocolTrace, event: Event) -> FoldStep:
    joins = find_statements(event.statements, JOIN_PURPOSE)
    if len(joins) != 1:
        raise EventRefused("ROLE_POLICY_VIOLATION", "a participant joins by one statement of its own")
    item = event.payload["participant"]
    new = _check_join(trace, item, read_join(joins[0]), event, trace.task_sha256, trace.profile, "participant")
    if new.key.fingerprint in trace.bound_keys:
        words = f"the key {new.key.fingerprint} has joined before: one key, one role"
        raise EventRefused("ROLE_POLICY_VIOLATION", words, place="participant")
    before = trace.participants.get(new.agent)
    if before is not None:
        _check_succession(event, before, new)
    elif "succeeds" in event.refs or new.role == OPERATOR:
        raise EventRefused("ROLE_POLICY_VIOLATION", f"{new.agent} succeeds nobody here", place="succeeds")
    after = trace.state
    if before is None and new.role == "critic":
        # A new critic has approved nothing yet.
        after = trace.early_state(executable=0, live=trace.live)

    def apply() -> None:
        trace.add_participant(new)
        if before is None and new.role == "critic":
            trace.executable = 0

    return FoldStep(after, apply)


def check_own_succession(trace: ProtocolTrace, event: Event, ring: Ring) -> None:
    """Raise if a key of our own ring is succeeded by one that the ring does not have.

    A key may be rotated because somebody stole it. Who holds the old key can sign a rotation to a key of its own, but
    cannot put it into our ring. About keys of others, this ring does not tell.
    """
    if event.name != "participant_joined" or "succeeds" not in event.refs:
        return
    joining = event.payload["participant"]
    before = trace.participants.get(joining["agent"])
    new = PublicKey(joining["public_key"], joining["public_key_pq"])
    own = None if before is None else ring.entry(before.key.fingerprint)
    if before is None or own is None or own.key != before.key:
        return
    entry = ring.entry(new.fingerprint)
    if entry is None or entry.key != new:
        words = f"the key of {before.agent} is of this home, and its successor {new.fingerprint} is not"
        raise EventRefused("ROLE_POLICY_VIOLATION", words, place="succeeds")


def _check_succession(event: Event, before: Participant, new: Participant) -> None:
    """Raise unless rotation statements lead from the key of a participant to the new one."""
    if event.refs.get("succeeds") != before.joined or before.role != new.role:
        words = f"{new.agent} takes part already; a successor of its key must name the event by which that joined"
        raise EventRefused("ROLE_POLICY_VIOLATION", words, place="succeeds")
    key = before.key
    for statement in find_statements(event.statements, ROTATION_PURPOSE):
        rotation = read_rotation(statement)
        if rotation is None or rotation.old != key:
            raise EventRefused("SIG_INVALID", "a rotation statement does not hold", place="authority.chain")
        key = rotation.new
    if key != new.key:
        words = "no rotation statement leads from the old key to the new one"
        raise EventRefused("ROLE_POLICY_VIOLATION", words, place="authority.chain")
