"""A COMMIT on its way from the gateway to the executor: the body of `POST /exec/…`.

    {"tx_id", "action_id", "caller", "session", "inputs", "commit": {"policy0", "policy1"},
     "attestations"?, "user_confirm"?, "approval"?, "decision"?, "external_principal"?, "delegation_jti"?, "ingress"?,
     "mediation"?}

`inputs` are the bound inputs of the intent that the path names. `approval` is the id of the record by which a person's
approval was used, `decision` that of the gate's decision which the shares belong to.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aver.capsule.json_document import check_object
from aver.errors import BadInput, Refused
from aver.fast_dataclass import dataclass
from aver.gateway.act_records import IngressNote, Mediation
from aver.gateway.codes import BAD_REQUEST
from aver.keys.statement import Statement

_ORDER_FIELDS = frozenset({"tx_id", "action_id", "caller", "session", "inputs", "commit"})
_OPTIONAL_FIELDS = frozenset(
    {
        "attestations",
        "user_confirm",
        "approval",
        "external_principal",
        "delegation_jti",
        "ingress",
        "decision",
        "mediation",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitOrder:
    """A COMMIT as the gateway sends it to the executor."""

    intent_id: str
    tx_id: str
    action_id: str
    caller: str
    session: str
    inputs: Mapping[str, Any]
    commit: Mapping[str, Any] | None
    attestations: tuple[Any, ...] = ()
    """Statements, or whatever JSON came over the wire in their place: the executor reads and checks it."""
    user_confirm: bool = False
    approval: str = ""
    """The id of the record by which an approval was used."""
    decision: str = ""
    """The id of the decision that the shares belong to."""
    external_principal: str | None = None
    delegation_jti: str | None = None
    ingress: IngressNote = IngressNote("embedded")
    mediation: Mediation = "unverified"

    def to_dict(self) -> dict[str, Any]:
        """The body of `POST /exec/…`. Optional fields are left out where they are not set."""
        found = {
            "tx_id": self.tx_id,
            "action_id": self.action_id,
            "caller": self.caller,
            "session": self.session,
            "inputs": dict(self.inputs),
            "commit": None if self.commit is None else dict(self.commit),
            "attestations": [each.to_dict() if isinstance(each, Statement) else each for each in self.attestations],
            "user_confirm": self.user_confirm,
            "approval": self.approval,
            "decision": self.decision,
            "external_principal": self.external_principal,
            "delegation_jti": self.delegation_jti,
            "ingress": {"kind": self.ingress.kind, "identity": self.ingress.identity},
            "mediation": "" if self.mediation == "unverified" else self.mediation,
        }
        return {name: value for name, value in found.items() if name in _ORDER_FIELDS or value not in (None, "", [])}

    @classmethod
    def from_dict(cls, intent_id: str, document: Any) -> CommitOrder:
        """Read the body of `POST /exec/…`. Raises `Refused` with `BAD_REQUEST`."""
        try:
            found = check_object(document, "the COMMIT", _ORDER_FIELDS, _OPTIONAL_FIELDS)
            texts = {name: found[name] for name in ("tx_id", "action_id", "caller", "session")}
            texts |= {name: found[name] for name in ("approval", "decision") if name in found}
            optional: dict[str, Any] = {name: found.get(name) for name in ("external_principal", "delegation_jti")}
            for name, value in (*texts.items(), *((key, text) for key, text in optional.items() if text is not None)):
                if type(value) is not str:
                    raise BadInput(f"the COMMIT: {name} must be a string")
            door = check_object(
                found.get("ingress", {"kind": "", "identity": ""}), "ingress", frozenset({"kind", "identity"})
            )
            attestations = found.get("attestations", [])
            if type(found["inputs"]) is not dict or type(attestations) is not list:
                raise BadInput("the COMMIT: inputs must be an object, and attestations a list")
            if type(found.get("user_confirm", False)) is not bool:
                raise BadInput("the COMMIT: user_confirm must be true or false")
            if found.get("mediation", "verified") != "verified":
                raise BadInput("the COMMIT: mediation can only be verified, or be left out")
        except BadInput as error:
            raise Refused(BAD_REQUEST, error.message) from error
        return cls(
            intent_id=intent_id,
            inputs=found["inputs"],
            commit=found["commit"],
            attestations=tuple(attestations),
            user_confirm=found.get("user_confirm", False),
            ingress=IngressNote(str(door["kind"]), str(door["identity"])),
            mediation="verified" if "mediation" in found else "unverified",
            **texts,
            **optional,
        )
