"""Seals an event right after the head that it was judged against; who loses a race is judged anew.

1. Ask the fold whether the event may come now, and what state follows. With `seen`, nobody else may have spoken for the
   agent since its speaker saw that many events.
2. Append it after the head that was judged, under the idempotency key of its sort.
3. If another event came first, or the fold refuses and there are newer records, read and verify these, and begin again.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from aver import clock
from aver.capsule.blobs import Blob, blob_references
from aver.capsule.model import Authority
from aver.capsule.sealed import HoldableSigner, Signer
from aver.errors import BadInput, Exists, HeadMoved, IntegrityError, NotFound, OutcomeUnknown, Unavailable
from aver.log import debug
from aver.protocol.events import Event, build_event_draft
from aver.protocol.records.draft import BoundSigner
from aver.protocol.records.recorded_trace import RecordedTrace
from aver.protocol.rules.step import EventRefused

if TYPE_CHECKING:
    from aver.protocol.session import ProtocolSession

TRIES = 1000
"""How often an event is judged anew because another event of the trace was sealed first."""


def seal_right_after(
    session: ProtocolSession,
    recorded: RecordedTrace,
    event: Event,
    signer: Signer | HoldableSigner,
    blobs: Sequence[Blob],
    authority: Authority | None,
    seen: int | None,
) -> Event:
    """Judge and seal an event whose payload is prepared. Returns it, durably sealed. Raises `EventRefused`.

    The caller holds the lock of the session.
    """
    _check_sizes(session, event, blobs)
    fold, is_read_on = recorded.fold, False
    for _ in range(TRIES):
        bound = BoundSigner(signer)
        event = event._replace(before=fold.state, after="", signer=bound.fingerprint, at=clock.now())
        try:  # 1.
            _check_unspoken(recorded, event.agent, seen)
            event = event._replace(after=fold.next_state(event))
            key, basis = _find_key(session, event)
        except EventRefused as error:
            count = fold.count
            if not is_read_on:
                is_read_on = True
                session.catch_up()
            if fold.count > count:
                continue  # The refusal may be out of date.
            debug("protocol", "%s by %s refused in %s: %s", event.name, event.agent, fold.state, error)
            raise
        draft = build_event_draft(event, authority=authority or basis)
        try:  # 2.
            record = session.ledger.append(
                recorded.chain, draft, signer=bound.for_append, key=key, after=recorded.head, blobs=blobs
            )
        except HeadMoved:  # 3.
            is_read_on = True
            session.catch_up()
            continue
        except Exists as error:
            raise _explain_existing(event, error) from error
        except OutcomeUnknown:
            # The store failed at the very end of the commit. If the event is there, it was said.
            session.catch_up()
            said: Event
            for said in reversed(recorded.events):
                if said.id == event.id:
                    return said
            raise
        return recorded.add(event, record)
    raise Unavailable(f"other events of {fold.trace} came first {TRIES} times", advice="try again")


def _check_sizes(session: ProtocolSession, event: Event, blobs: Sequence[Blob]) -> None:
    """Raise if a reference says another size than its artifact has: a verdict would fail the ledger for it."""
    sizes = {blob.digest: len(blob.data) for blob in blobs}
    for digest, size in blob_references(event.payload):
        if digest not in sizes:
            with suppress(NotFound, BadInput, IntegrityError):  # The ledger refuses it, and says why.
                sizes[digest] = len(session.ledger.blob(digest))
        if sizes.get(digest, size) != size:
            words = f"the artifact {digest[:16]} has {sizes[digest]} bytes, and the event says {str(size)[:20]}"
            raise EventRefused("EVIDENCE_INVALID", words, place="payload")


def _check_unspoken(recorded: RecordedTrace, agent: str, seen: int | None) -> None:
    """Raise if the agent has said something beyond the events that its speaker has seen."""
    newer = () if seen is None else recorded.events[seen:]
    if any(event.agent == agent for event in newer):
        words = f"another process has spoken for {agent} meanwhile"
        raise EventRefused("STATE_VIOLATION", words, place="seen")


def _find_key(session: ProtocolSession, event: Event) -> tuple[str | None, Authority | None]:
    """Return the idempotency key of an event, and the authority that it rests on."""
    if event.name == "tool_execution_started":
        from aver.protocol.calls import require_decision

        return require_decision(session, event)
    if event.name in ("tool_execution_completed", "tool_execution_failed"):
        return f"protocol-end:{event.refs['intent']}", None
    return (f"protocol-say:{event.id}" if event.contribution is not None else None), None


def _explain_existing(event: Event, error: Exists) -> EventRefused:
    words = f"a record has the key {error.key}: "
    if event.name == "tool_execution_started":
        words += "the decision was used before, and one decision allows one start"
    else:
        words += "this was said before"
    return EventRefused("REPLAY", words)
