"""Enrolling a passkey from a page: the statement that the page makes, its endorsement, and its record.

The page creates the passkey and signs the enrolment with it. Then an approver who is on the roster endorses the same
statement, in one of two ways:

    at a terminal   the page shows the statement as a code; `aver approvals endorse CODE --by person:ada` shows what it
                    says, signs it and records it
    on the page     another passkey signs it as well, and the page sends it to the server, which records it

Only the first way makes the passkey independent (`roster`). The first approver of a ledger is enrolled at a terminal.

A code is base64url of the statement's canonical JSON:

    {"content": {"at", "custody": "passkey", "identity": "person:ada-phone", "ledger", "passkey", "tenant"},
     "purpose": "enrolment", "signatures": [{"by", "passkey"}], "v": 1}
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from aver import clock
from aver.capsule.json_document import time_field
from aver.capsule.sealed import Sealed
from aver.errors import BadInput, HeadMoved, Refused, Unavailable
from aver.gate.approvals.enrolment import append_change, check_endorser, load_changeable_roster
from aver.gate.approvals.request import add_seconds
from aver.gate.approvals.roster import (
    ENROLMENT,
    PASSKEY_CUSTODY,
    Approver,
    Person,
    apply_enrolment,
    approver_from_dict,
    enrolment_content,
    find_endorsers,
    ring_problem,
    signature_problem,
    whole_key,
)
from aver.keys import Statement, decode_statement
from aver.ledger import Ledger

ENROLMENT_SECONDS = 3600
"""How long an enrolment that nobody recorded stays good. A person endorses it while the page is open."""

CLOCK_SECONDS = 300
"""How far the clock of the page may be ahead of the clock here."""

ATTEMPTS_MAX = 100
"""Attempts to append when the roster keeps changing. Each failed attempt means that another process succeeded."""

CODE_MAX = 16 * 1024
"""Most characters of a code. One with a single signature has some 1,500."""


def read_enrolment_code(code: str) -> Statement:
    """Read the statement in a code. Raises BadInput if it has none; `read_passkey` checks what it says."""
    if len(code) > CODE_MAX:
        raise BadInput(f"the code has more than {CODE_MAX} characters", advice="copy it again from the page")
    try:
        return decode_statement(code, "it")
    except BadInput as error:
        raise BadInput(f"the code holds no enrolment: {error.message}", advice="copy it again from the page") from error


def read_passkey(ledger: Ledger, statement: Statement) -> Approver:
    """Return the approver that a statement enrols, if its passkey signed it for this ledger and tenant just now.

    Raises BadInput, or Refused with `EXPIRED`, `SIG_INVALID` or `STATEMENT_MISMATCH`.
    """
    content = statement.content
    if statement.purpose != ENROLMENT or content.get("custody") != PASSKEY_CUSTODY:
        raise BadInput("the statement is not the enrolment of a passkey", advice="enrol other keys at a terminal")
    described = {name: content.get(name) for name in ("passkey", "custody")}
    approver = approver_from_dict(content.get("identity", ""), described, "enrolment")
    approver.key.check_usable()
    at = time_field(content.get("at"), "enrolment.at")
    expected = enrolment_content(approver, ledger=ledger.id, tenant=ledger.tenant, at=at)
    if content != expected:
        raise Refused(
            "STATEMENT_MISMATCH", "the enrolment is for another ledger or tenant, or says more than it should"
        )
    # A statement that lay around for months must not surprise the people who endorsed it then.
    now = clock.now()
    if not add_seconds(now, -ENROLMENT_SECONDS) <= at <= add_seconds(now, CLOCK_SECONDS):
        advice = "compare the clocks of both machines, then begin the enrolment anew on the page"
        raise Refused("EXPIRED", f"the enrolment was signed at {at}; it is {now} now", advice=advice)
    if (problem := signature_problem(statement, approver.key)) is not None:
        raise Refused("SIG_INVALID", f"the signature of the passkey does not hold: {problem}")
    return approver


def endorse_passkey(ledger: Ledger, statement: Statement, endorser: Person) -> Sealed:
    """Endorse the enrolment of a passkey with the key of an approver, and record it."""
    approver = read_passkey(ledger, statement)
    _, roster = load_changeable_roster(ledger)
    check_endorser(roster, endorser, approver.identity)
    signature = endorser.signer.sign_statement(ENROLMENT, statement.content)
    return enrol_passkey(ledger, replace(statement, signatures=(*statement.signatures, signature)))


def enrol_passkey(ledger: Ledger, statement: Statement) -> Sealed:
    """Record the enrolment of a passkey that an approver on the roster has endorsed. Raises Refused.

    The rules are those by which the roster is read, so an enrolment that is recorded also counts.
    """
    approver = read_passkey(ledger, statement)
    for _ in range(ATTEMPTS_MAX):
        with suppress(HeadMoved):  # The roster changed meanwhile: judge the enrolment by the new one.
            return _record_enrolment(ledger, statement, approver)
    words = f"others kept changing the roster; gave up after {ATTEMPTS_MAX} attempts"
    raise Unavailable(words, advice="try again")


def _record_enrolment(ledger: Ledger, statement: Statement, approver: Approver) -> Sealed:
    head, roster = load_changeable_roster(ledger)
    if roster.is_new:
        advice = "enrol the first approver at a terminal: aver approvals enrol person:NAME"
        raise Refused("NO_APPROVERS", "nobody is enrolled yet who could endorse a passkey", advice=advice)
    if roster.has_had(approver.key):
        raise Refused("ENROLLED", f"the passkey {approver.fingerprint} is or was on the roster")
    ring = ledger.keys.ring()
    if (problem := ring_problem(approver, ring)) is not None:
        advice = f"give the passkey a name of its own, such as {approver.identity[:57]}-phone"
        raise Refused("KEY_MISMATCH", f"{approver.identity} was not enrolled: {problem}", advice=advice)
    ended = ring.retirement_times()
    if not find_endorsers(statement, roster.approvers.values(), {*ended, whole_key(approver.key)}):
        advice = f"one of these must sign, too: {', '.join(roster.approvers)}"
        raise Refused("NOT_ENDORSED", f"{approver.identity} needs the signature of an enrolled approver", advice=advice)
    try:
        after = apply_enrolment(roster, statement, ledger.id, ledger.tenant, ended)
    except BadInput as error:
        raise Refused("NOT_ENDORSED", error.message, advice="see: aver approvals approvers") from error
    enrolled = after.approvers[approver.identity]
    endorsers = ", ".join(endorser.identity for endorser in enrolled.endorsers)
    did = f"{approver.identity} may approve with the passkey {approver.fingerprint}, endorsed by {endorsers}"
    return append_change(ledger, "key.create", statement, did, head)
