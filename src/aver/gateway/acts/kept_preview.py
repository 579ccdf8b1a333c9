"""The PREVIEW that a COMMIT names by its `tx_id`: read back from its record, and held to the visitor who made it.

A COMMIT has the session, the caller, the principal, the delegation and the mode of confinement of its PREVIEW. The
executor compares the request itself.
"""

from __future__ import annotations

from datetime import datetime

from aver.errors import AverError, Refused
from aver.gate.own_records import OwnRecords
from aver.gateway.act_records import TX_PREFIX, Preview, find_mediation_change, read_preview
from aver.gateway.acts.visit import Visit
from aver.gateway.codes import CAPSULE_REQUIRED
from aver.gateway.intents import IntentCall
from aver.ledger import Ledger

CLOCK_SLACK = 60.0
"""Seconds by which a clock may be set back without ending the PREVIEWs that were made before. Time services do that."""


def find_preview(ledger: Ledger, tx_id: str, call: IntentCall, *, now: float, tx_ttl: int) -> Preview:
    """Return the PREVIEW of a tx that has not expired. Raises `Refused` with `TX_INVALID`."""
    record_id = tx_id.removeprefix(TX_PREFIX)
    try:
        record = OwnRecords(ledger).get(record_id) if tx_id.startswith(TX_PREFIX) else None
        preview = None if record is None else read_preview(record, ledger.blob)
        # A hash or a key finds a record, too. A PREVIEW has one tx_id alone.
        if preview is None or preview.tx_id != tx_id:
            raise Refused("TX_INVALID", "no PREVIEW has this tx_id")
    except Refused:
        raise
    except AverError as error:
        raise Refused("TX_INVALID", f"the PREVIEW cannot be used: {error.message}") from error
    if preview.intent_id != call.intent.name:
        raise Refused("TX_INVALID", f"the PREVIEW was of {preview.intent_id}")
    left = datetime.fromisoformat(preview.expires).timestamp() - now if preview.expires else 0.0
    if left <= 0:
        raise Refused("TX_INVALID", "the PREVIEW has expired", advice="send the act again without tx_id")
    # Otherwise a clock that was set back would make a PREVIEW last for as long as it was set back.
    if left > tx_ttl + CLOCK_SLACK:
        words = "the clock was set back after the PREVIEW, or the settings let it last for a shorter time now"
        raise Refused("TX_INVALID", words, advice="send the act again without tx_id")
    return preview


def check_visitor(preview: Preview, visit: Visit) -> None:
    """Raise `Refused` unless a PREVIEW is this visitor's to commit."""
    if preview.session != visit.door.session:
        raise Refused("TX_SESSION_MISMATCH", "the PREVIEW belongs to another session")
    if preview.caller != visit.caller:
        raise Refused("TX_CALLER_MISMATCH", "the PREVIEW belongs to another caller")
    if words := find_mediation_change(preview.mediation, visit.surroundings.mediation):
        raise Refused(CAPSULE_REQUIRED, words, advice="send the act again without tx_id")
    # Unset is not equal to set: leaving the principal out must not get around a delegation.
    known = {"external_principal": visit.principal, "delegation_jti": visit.jti}
    given_tokens = () if visit.delegation is None else (visit.delegation.statement,)
    # Two tokens can have one jti. The record of the COMMIT has the token of the PREVIEW, so it must be the same.
    if (
        dict(preview.context or {}) != {name: value for name, value in known.items() if value is not None}
        or preview.delegations != given_tokens
    ):
        raise Refused("TX_AUTH_CONTEXT_MISMATCH", "the PREVIEW was made on behalf of another principal or delegation")
