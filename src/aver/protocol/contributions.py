"""Contributions: events that a participant elsewhere signs, and that the operator seals around the signature.

    file = session.contribute("agent:carol", "proposal_reviewed", {...}, refs={...})     at Carol's home
    event = session.accept(file)                                                         at the operator's

The participant's statement names the ledger, the tenant, the chain and a head that it has seen. So each contribution
counts once, and only in the trace and the history that it names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from aver import clock
from aver.capsule.blobs import Blob
from aver.capsule.masking.mask import mask
from aver.errors import BadInput, Refused
from aver.keys.statement import Statement
from aver.protocol.events import OPERATOR, Event, find_payload_problem
from aver.protocol.records.draft import SEALED_AS_GIVEN, prepare_payload
from aver.protocol.records.membership import admit_join, renew_key
from aver.protocol.rules.step import EventRefused
from aver.protocol.statements import (
    EVENT_PURPOSE,
    JOIN_PURPOSE,
    ContributionFile,
    JoinFile,
    read_contribution,
    sign_contribution,
)

if TYPE_CHECKING:
    from aver.protocol.session import ProtocolSession


def sign_for_operator(
    session: ProtocolSession,
    agent: str,
    event: str,
    payload: Mapping[str, Any],
    refs: Mapping[str, str],
    artifacts: tuple[Blob, ...],
    more: tuple[Statement, ...],
) -> ContributionFile:
    """Sign an event of an agent of this home. Raises `EventRefused` where it may not come now."""
    with session.hold_fold() as fold:
        participant, head = session.find_participant(agent), fold.head
        assert head is not None  # A trace that has participants has a first event.
        said = Event(
            id=clock.new_id(),
            trace=session.trace,
            name=event,
            role=participant.role,
            agent=agent,
            payload=prepare_payload(event, payload),
            refs=dict(refs),
            statements=more,
        )
        fold.next_state(said)  # Refused here already, if it may not come.
        statement = sign_contribution(session.find_statement_signer(agent), session.place, said, head)
    return ContributionFile(statement, said.payload, artifacts, more)


def accept_for_trace(
    session: ProtocolSession, given: ContributionFile | JoinFile | Statement | Mapping[str, Any]
) -> Event:
    """Seal a contribution or a join as the operator. Raises `BadInput`, `Refused` or `EventRefused`."""
    found = read_document(dict(given)) if isinstance(given, Mapping) else given
    if isinstance(found, Statement):
        if found.purpose != JOIN_PURPOSE:
            words = f"a statement of the purpose {found.purpose} cannot be accepted by itself"
            raise BadInput(words, advice="send the whole contribution, with its payload")
        found = JoinFile(found)
    if isinstance(found, JoinFile):
        with session.hold_fold():
            return admit_join(session, found, "elsewhere")
    if found.statement.purpose != EVENT_PURPOSE:
        raise BadInput(f"a contribution has a statement of the purpose {EVENT_PURPOSE}")
    return _accept_event(session, found)


def _accept_event(session: ProtocolSession, contribution: ContributionFile) -> Event:
    said, payload = read_contribution(contribution.statement), contribution.payload
    if said.place != session.place:
        raise EventRefused("REPLAY", "the contribution is for another ledger, tenant or trace", place="statement")
    extra = {blob.digest for blob in contribution.artifacts} - set(said.artifacts)
    if extra:
        raise BadInput(f"the contribution brings an artifact that it does not name: {min(extra)}")
    if mask(dict(payload)).count and said.event not in SEALED_AS_GIVEN:
        words = "the contribution holds something that looks like a secret, and nobody but its signer may change it"
        raise Refused("SECRET_FOUND", words, advice="mask it and sign again")
    if problem := find_payload_problem(said.event, payload):
        raise EventRefused("SCHEMA_INVALID", problem, place="payload")
    with session.hold_fold():
        renew_key(session, OPERATOR)
        event = Event(
            trace=session.trace,
            name=said.event,
            role=said.role,
            agent=said.agent,
            payload=payload,
            refs=dict(said.refs),
            statements=(contribution.statement, *contribution.more),
            id=said.id,
        )
        sealed = session.seal_judged(event, session.ledger.signer(), contribution.artifacts)
        if sealed.name == "verification_run_completed":
            session.close_chain()
        return sealed


def read_document(document: Any) -> ContributionFile | JoinFile | Statement:
    """Read what a participant sent: a bare join, a join with rotations, or a contribution. Raises `BadInput`."""
    named = document if isinstance(document, dict) else {}
    if "purpose" in named:
        return Statement.from_dict(document)
    return JoinFile.from_dict(document) if "join" in named else ContributionFile.from_dict(document)
