"""Judging the records of federated calls afterwards (`act.ingress`, see `aver.gateway.ingress`).

A principal elsewhere signs each of its calls. The gateway seals the signed statement before it answers. Afterwards

* the record must hold exactly the signed content, in the chain of the signed session, under the key of its nonce, and
  in the ledger that the call is for, where it names one;
* the record was sealed within the time in which a signed call is good;
* the signature must hold by the principal's key. A verifier that does not know the key says so (`UNKNOWN_SIGNER`);
* an act whose door says that a principal signed the call needs a signed call of that principal before it. One signed
  call begins one act. So a gateway cannot seal more acts of a principal than the principal has signed calls.

The body of a call is not kept, so nobody can compare `body_sha256` with the act. The notes of the verdict say that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from aver.capsule.aver_block import read_block
from aver.capsule.json_document import check_version
from aver.errors import BadInput
from aver.gateway.act_records import DOMAIN
from aver.gateway.ingress import INGRESS_PURPOSE, INGRESS_WINDOW
from aver.gateway.judgement.delegation_evidence import DelegationFinding, fail, find_principal_keys
from aver.gateway.judgement.recorded_act import parse_time
from aver.keys.public_key import PublicKey
from aver.keys.ring import Ring
from aver.keys.statement import Statement, check_statement

SEALING_SLACK = 60.0
"""Seconds between the check of a call's time and its seal. A ledger that others write to may make the door wait."""

FEDERATED = "federated"


class IngressJudge:
    """Judges the signed calls of one session's chain, and counts those that no act has used yet."""

    def __init__(self, ring: Ring, principals: Mapping[str, PublicKey], ledger: str, session: str) -> None:
        self._ring = ring
        self._principals = principals
        self._ledger = ledger
        self._session = session
        self._unused: Counter[str] = Counter()
        """Signed calls before the record at hand that have begun no act, by principal."""

    def judge_call(self, content: Mapping[str, Any]) -> list[DelegationFinding]:
        """Judge one `act.ingress`. Raises `BadInput`, or what Python raises for a record that lacks a key."""
        block, result = read_block(content) or {}, dict(content["outcome"]["result"])
        check_version(result.pop("v"), "outcome.result")
        principal, nonce, time = result["principal"], result["nonce"], result["time"]
        if type(principal) is not str or type(nonce) is not str or type(time) is not int:
            raise BadInput("the record of a signed call has no principal, nonce or time")
        self._unused[principal] += 1
        documents = content["authority"]["chain"]
        if len(documents) != 1:
            return [fail("INGRESS_SIGNATURE_REQUIRED: the record needs the one statement that the principal signed")]
        statement = Statement.from_dict(documents[0])
        found = []
        if statement.purpose != INGRESS_PURPOSE or statement.content != result:
            found.append(fail("INGRESS_SIGNATURE_INVALID: the principal has signed another call"))
        if block.get("key") != f"ingress:{principal}:{nonce}":
            found.append(fail("INGRESS_REPLAY: the record does not use the nonce of the call up"))
        names = {result["session"], content["context"]["session_id"], self._session}
        if len(names) != 1 or content["trigger"]["source"] != principal:
            found.append(fail("INGRESS_CONFLICT: the call was signed for another session or principal"))
        if result.get("audience", self._ledger) != self._ledger:
            found.append(fail("INGRESS_CONFLICT: the call was signed for the gateway of another ledger"))
        if abs(parse_time(block["at"]) - time) > INGRESS_WINDOW + SEALING_SLACK:
            found.append(fail("INGRESS_EXPIRED: the call was signed long before or after it was sealed"))
        problem = self._find_signature_problem(statement, principal)
        return found if problem is None else [*found, problem]

    def judge_act(self, content: Mapping[str, Any], read_past: Callable[[], None]) -> DelegationFinding | None:
        """Judge whether a PREVIEW that came through the federated door has a signed call before it.

        `read_past` has the judge see the earlier records of the chain, if it has not yet.
        """
        door = content["context"]["environment"][DOMAIN]["ingress"]
        if door["kind"] != FEDERATED:
            return None
        principal = str(door["identity"])
        if not self._unused[principal]:
            read_past()
        if not self._unused[principal]:
            return fail(f"INGRESS_SIGNATURE_REQUIRED: no signed call of {principal!r} is before it")
        self._unused[principal] -= 1
        return None

    def _find_signature_problem(self, statement: Statement, principal: str) -> DelegationFinding | None:
        if len(statement.signatures) != 1:
            return fail("INGRESS_SIGNATURE_INVALID: the statement needs one signature")
        by = statement.signatures[0].by
        known = find_principal_keys(principal, by, self._ring, self._principals)
        if not known:
            words = f"a signed call was not checked: the key {by} of {principal!r} is not known here"
            return DelegationFinding("not_checked", "UNKNOWN_SIGNER", words)
        (result,) = check_statement(statement, Ring.pin(known))
        if result.outcome != "valid":
            return fail(f"INGRESS_SIGNATURE_INVALID: {principal!r} has not signed this call")
        return None
