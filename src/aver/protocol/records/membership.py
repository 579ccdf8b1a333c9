"""Who takes part in a trace: its first event, further joins, and keys that were rotated.

Every key joins by a statement of its own, and the operator seals around it. A key of this home that was rotated joins
anew before its agent says anything more. One elsewhere signs a `JoinFile`, which the operator's session accepts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from aver import clock
from aver.errors import BadInput
from aver.keys import LEDGER, StoreSigner
from aver.keys.ring import ROTATION_PURPOSE
from aver.keys.statement import Statement
from aver.log import debug
from aver.protocol.bounds import read_protocol_settings, tighten_bounds
from aver.protocol.events import OPERATOR, Event, find_payload_problem
from aver.protocol.records.draft import BoundSigner
from aver.protocol.rules.participants import REQUIRED_ROLES
from aver.protocol.rules.step import EventRefused
from aver.protocol.standings import Participant
from aver.protocol.statements import PROFILES, Join, JoinFile, digest_json, read_join, sign_join

if TYPE_CHECKING:
    from aver.protocol.session import ProtocolSession

DEFAULT_PARTICIPANTS = {f"agent:{role}": role for role in (*REQUIRED_ROLES, "auditor")}
"""Who takes part where the caller names nobody: one agent for each role, with a key in this home."""


def build_first_event(
    session: ProtocolSession,
    task: Mapping[str, Any],
    profile: str | None,
    participants: Mapping[str, str | Statement] | None,
) -> Event:
    """Build the first event of a trace: the task, its bounds, and everybody's join. Makes keys that are missing."""
    config = session.ledger.config
    default, bounds = read_protocol_settings(config.protocol)
    chosen = profile or str(task.get("policy_profile", default))
    if chosen not in PROFILES:
        raise BadInput(f"{chosen[:80]!a} is not a profile", advice=f"use one of {', '.join(PROFILES)}")
    task_sha256 = digest_json(task)
    joins: list[tuple[Participant, Statement]] = []
    for agent, given in (participants or DEFAULT_PARTICIPANTS).items():
        if isinstance(given, Statement):
            join, statement, held = read_join(given), given, "elsewhere"
        else:
            signer = session.ledger.keys.signer(agent, post_quantum=config.post_quantum)
            join = Join(session.place, task_sha256, chosen, given, agent, signer.public, clock.now())
            statement, held = sign_join(signer, join), "here"
        joins.append((Participant(join.agent, join.role, join.key, held, ""), statement))
    payload = {
        "v": 1,
        "task": dict(task),
        "task_sha256": task_sha256,
        "profile": chosen,
        "bounds": tighten_bounds(bounds, task).to_dict(),
        "participants": [participant.to_dict() for participant, _ in joins],
    }
    if problem := find_payload_problem("session_initialized", payload):
        raise BadInput(f"the task or the participants cannot be used: {problem}")
    return Event(
        id=clock.new_id(),
        trace=session.trace,
        name="session_initialized",
        role=OPERATOR,
        agent=OPERATOR,
        payload=payload,
        refs={},
        statements=tuple(statement for _, statement in joins),
        before="initialized",
    )


def is_held_here(session: ProtocolSession, agent: str) -> bool:
    """Whether this home holds the key by which an agent takes part, or a successor of it."""
    participant = session.fold.participants.get(agent)
    ring = session.ledger.keys.ring()
    entry = None if participant is None else ring.entry(participant.key.fingerprint)
    if entry is None or participant is None or ring.active(_identity_of(agent)) is None:
        return False
    # Another home may have an agent of the same name, with another key.
    return entry.key == participant.key


def find_operator_signer(session: ProtocolSession) -> BoundSigner | None:
    """Return the operator's signer, if its key is in this home. Never makes a key."""
    operator, signer = session.fold.participants.get(OPERATOR), session.ledger.signer()
    if isinstance(signer, StoreSigner) and session.ledger.keys.ring().active(signer.identity) is None:
        return None
    bound = BoundSigner(signer)
    return bound if operator is not None and bound.public == operator.key else None


def sign_join_file(session: ProtocolSession, agent: str, role: str) -> JoinFile:
    """Sign that an agent of this home takes a role, with the rotations of its key since it last joined."""
    signer: Any = session.ledger.signer()
    if agent != OPERATOR:
        signer = session.ledger.keys.signer(agent, post_quantum=session.ledger.config.post_quantum)
    fold = session.fold
    join = Join(session.place, fold.task_sha256, fold.profile, role, agent, signer.public, clock.now())
    return JoinFile(sign_join(signer, join), _find_rotations(session, agent))


def admit_join(session: ProtocolSession, file: JoinFile, held: str) -> Event:
    """Have the operator seal a join."""
    join = read_join(file.join)
    if join.agent != OPERATOR:
        renew_key(session, OPERATOR)
    before = session.fold.participants.get(join.agent)
    participant = Participant(join.agent, join.role, join.key, held, "")
    event = Event(
        id=clock.new_id(),
        trace=session.trace,
        name="participant_joined",
        role=OPERATOR,
        agent=OPERATOR,
        payload={"v": 1, "participant": participant.to_dict()},
        refs={} if before is None else {"succeeds": before.joined},
        statements=(file.join, *file.rotations),
    )
    return session.seal_judged(event, session.ledger.signer())


def renew_key(session: ProtocolSession, agent: str) -> None:
    """Have a key of this home that was rotated join anew.

    Raises `EventRefused` with `KEY_RETIRED` where the operator's key is elsewhere: it must accept a new join first.
    """
    participant = session.fold.participants.get(agent)
    if participant is None or session.fold.is_over:
        return
    active = session.ledger.keys.ring().active(_identity_of(agent))
    if active is None or active.key == participant.key or not is_held_here(session, agent):
        return
    if agent != OPERATOR:
        renew_key(session, OPERATOR)
        if find_operator_signer(session) is None:
            words = f"the key of {agent} was rotated, and the operator has not taken the new one in"
            advice = "send the operator a new join (aver protocol join)"
            raise EventRefused("KEY_RETIRED", words, place="signer", advice=advice)
    debug("protocol", "the key of %s was rotated: it joins %s anew", agent, session.trace)
    admit_join(session, sign_join_file(session, agent, participant.role), participant.held)


def _find_rotations(session: ProtocolSession, agent: str) -> tuple[Statement, ...]:
    """Return the rotation statements that lead from the key by which an agent takes part to its newest one here."""
    if not is_held_here(session, agent):
        return ()
    ring, identity = session.ledger.keys.ring(), _identity_of(agent)
    old = ring.entry(session.fold.participants[agent].key.fingerprint)
    assert old is not None
    later = sorted((entry for entry in ring.entries_of(identity) if entry.epoch > old.epoch), key=lambda e: e.epoch)
    statements = (entry.statement for entry in later)
    return tuple(each for each in statements if each is not None and each.purpose == ROTATION_PURPOSE)


def _identity_of(agent: str) -> str:
    """Return the identity of an agent in the key ring."""
    return LEDGER if agent == OPERATOR else agent
