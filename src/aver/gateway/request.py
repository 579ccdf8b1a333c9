"""Requests: the act as the agent sends it, and the bound request that everything later refers to.

An agent sends an object with exactly four fields (RFC §3.2):

    {"intent_id": "SendMessage", "inputs": {"recipient": "bob@example.com", "text": "hi"},
     "constraints": {"external_principal": "ext:a", "delegation_token": "eyJ..."}, "caller": "alice"}

`ActRequest` is that object, checked. Anything else is `BAD_REQUEST`: more or fewer fields, a wrong type, a key twice, a
value without a canonical form, an unknown constraint.

`BoundRequest` is the tuple that both policy servers, the approvers and the executor agree on: intent, caller, session,
bound inputs and context. Its hash is

    SHA-256 of ascii_json({"v": 1, "intent_id", "caller", "session", "inputs", "context"})

in lower-case hex, where `ascii_json` is `json.dumps(sort_keys=True, separators=(",", ":"), ensure_ascii=True)`.
`context` is always there. It has `external_principal` and `delegation_jti` where they are set, and never as an empty
string. `user_confirm`, `tx_id`, `artifacts` and `action_id` are not part of the hash. The name that asks for PREVIEW
alone hashes like its intent.

    >>> request = BoundRequest.bind("FetchResource", caller="alice", session="s1",
    ...     inputs={"resource_id": "octocat", "domain": "api.github.com"})
    >>> request.sha256
    '14a49b85e66ba10efcfec4aa44afa6656fa1900b38a606ab9a18f15802245937'
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from aver.capsule.canonical import ascii_json, canonical_json
from aver.capsule.json_document import check_object
from aver.capsule.json_reader import read_json
from aver.errors import BadInput, Refused
from aver.fast_dataclass import dataclass
from aver.gateway.codes import BAD_REQUEST
from aver.gateway.intents import IntentCall, bind_inputs, find_intent, read_line
from aver.log import debug

REQUEST_MAX = 6 * 1024 * 1024
"""Largest act as JSON, in bytes: the largest inputs, a delegation token, and room for another way of writing them."""

SKILL_CALLER = "skill:"
"""The beginning of the caller of an installed skill. Its digest follows (`aver.gateway.skills.workload_token`)."""

CALLER_MAX = 256
"""Characters of a caller, a principal or a session."""

TOKEN_MAX = 64 * 1024
"""Characters of a token. A chain of four delegations with post-quantum signatures has 62,000, others a tenth."""

HASH_VERSION = 1
"""The version of the request hash. Any change of what is hashed, or how, is another version (RFC §9.2)."""

_FIELDS = frozenset({"intent_id", "inputs", "constraints", "caller"})
_CONSTRAINTS = frozenset({"external_principal", "delegation_token", "user_confirm", "workload_token"})
_CONTEXT = ("external_principal", "delegation_jti")


CLOSED_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "intent_id": {"type": "string", "description": "the action to take, such as WriteWorkspaceFile"},
        "inputs": {"type": "object", "description": "the inputs of the intent; tx_id commits an earlier PREVIEW"},
        "constraints": {
            "type": "object",
            "properties": {
                "external_principal": {"type": "string"},
                "delegation_token": {"type": "string"},
                "user_confirm": {"type": "boolean"},
                "workload_token": {"type": "string"},
            },
            "additionalProperties": False,
        },
        "caller": {"type": "string", "description": "the name of the agent that asks"},
    },
    "required": ["intent_id", "inputs", "constraints", "caller"],
    "additionalProperties": False,
}
"""The JSON Schema of an act, for the door that shows one."""


@dataclass(frozen=True, slots=True)
class Constraints:
    """The constraints of an act. None means that the agent sent none."""

    external_principal: str | None = None
    delegation_token: str | None = None
    user_confirm: bool | None = None
    workload_token: str | None = None

    @classmethod
    def parse(cls, document: Any) -> Constraints:
        """Read the object `constraints`. Raises `Refused` with `BAD_REQUEST`."""
        found = check_object(document, "constraints", frozenset(), _CONSTRAINTS)
        confirm = found.get("user_confirm")
        if "user_confirm" in found and type(confirm) is not bool:
            raise Refused(BAD_REQUEST, f"constraints.user_confirm must be true or false, not {type(confirm).__name__}")
        limits = {"external_principal": CALLER_MAX, "delegation_token": TOKEN_MAX, "workload_token": TOKEN_MAX}
        texts = {
            name: read_line(found[name], f"constraints.{name}", limit=limit)
            for name, limit in limits.items()
            if name in found
        }
        return cls(user_confirm=confirm, **texts)


@dataclass(frozen=True, slots=True)
class ActRequest:
    """An act as the agent sent it: of the right form, and nothing more is known about it."""

    intent_id: str
    inputs: dict[str, Any]
    constraints: Constraints
    caller: str

    @classmethod
    def parse(cls, document: Any) -> ActRequest:
        """Read an act from a JSON value, or from the bytes of one. Raises `Refused` with `BAD_REQUEST`.

        The request keeps a copy: what the caller does to `document` later changes nothing.
        """
        try:
            if isinstance(document, bytes):
                if len(document) > REQUEST_MAX:
                    raise Refused(BAD_REQUEST, f"the act is larger than {REQUEST_MAX} bytes")
                document = read_json(document)
            # Writing it once finds values without a canonical form, and reading that makes the copy.
            written = canonical_json(document)
            if len(written) > REQUEST_MAX:
                raise Refused(BAD_REQUEST, f"the act is larger than {REQUEST_MAX} bytes")
            found = check_object(read_json(written), "the act", _FIELDS)
            if type(found["inputs"]) is not dict:
                raise Refused(BAD_REQUEST, f"inputs must be an object, not {type(found['inputs']).__name__}")
            return cls(
                intent_id=read_line(found["intent_id"], "intent_id"),
                inputs=found["inputs"],
                constraints=Constraints.parse(found["constraints"]),
                caller=read_line(found["caller"], "caller", limit=CALLER_MAX),
            )
        except BadInput as error:
            debug("gateway", "refused as %s: %s", BAD_REQUEST, error.message)
            raise Refused(BAD_REQUEST, error.message, advice=error.advice) from error

    def find_intent(self) -> IntentCall:
        """Return the intent that the act asks for; `Refused` with `UNKNOWN_INTENT` if there is none."""
        return find_intent(self.intent_id)


@dataclass(frozen=True, slots=True)
class BoundRequest:
    """The request that is decided, approved and carried out. `bind` checks it; `sha256` is computed once, then."""

    intent_id: str
    """The name of the intent, never that of its PREVIEW."""
    caller: str
    session: str
    inputs: dict[str, Any]
    """The bound inputs of the intent, all of them."""
    context: dict[str, str]
    """`external_principal` and `delegation_jti`, each only where it is set."""
    sha256: str = field(init=False)

    def __post_init__(self) -> None:
        digest = compute_request_sha256(self.intent_id, self.caller, self.session, self.inputs, self.context)
        object.__setattr__(self, "sha256", digest)

    @classmethod
    def bind(
        cls,
        intent_id: str,
        *,
        caller: str,
        session: str,
        inputs: Mapping[str, Any],
        external_principal: str | None = None,
        delegation_jti: str | None = None,
    ) -> BoundRequest:
        """Bind the inputs of an act, under either name of its intent. Raises `Refused`.

        The gateway binds what the agent sent. The executor binds what the gateway sent; bound inputs stay as they are.
        """
        intent = find_intent(intent_id).intent
        return cls(
            intent.name,
            read_line(caller, "caller", limit=CALLER_MAX),
            read_line(session, "session", limit=CALLER_MAX),
            bind_inputs(intent, inputs),
            build_context(external_principal, delegation_jti),
        )

    @property
    def external_principal(self) -> str | None:
        return self.context.get("external_principal")

    @property
    def delegation_jti(self) -> str | None:
        return self.context.get("delegation_jti")

    def to_dict(self) -> dict[str, Any]:
        """The tuple as records and the wire carry it: {intent_id, caller, session, inputs, context}."""
        return {
            "intent_id": self.intent_id,
            "caller": self.caller,
            "session": self.session,
            "inputs": dict(self.inputs),
            "context": dict(self.context),
        }

    @classmethod
    def from_dict(cls, document: Any, where: str = "request") -> BoundRequest:
        """Read what `to_dict` wrote. Raises `Refused` unless every value is in its normal form already."""
        names = frozenset({"intent_id", "caller", "session", "inputs", "context"})
        try:
            canonical_json(document)
            found = check_object(document, where, names)
            context = check_object(found["context"], f"{where}.context", frozenset(), frozenset(_CONTEXT))
            if type(found["inputs"]) is not dict:
                raise BadInput(f"{where}.inputs must be an object")
        except BadInput as error:
            raise Refused(BAD_REQUEST, error.message, advice=error.advice) from error
        for name, value in context.items():
            read_line(value, f"{where}.context.{name}", limit=CALLER_MAX)
        request = cls.bind(
            read_line(found["intent_id"], f"{where}.intent_id"),
            caller=found["caller"],
            session=found["session"],
            inputs=found["inputs"],
            **context,
        )
        if request.intent_id != found["intent_id"] or request.inputs != found["inputs"]:
            raise Refused(BAD_REQUEST, f"{where} is not bound: its intent or its inputs are not in their normal form")
        return request


def build_context(external_principal: str | None, delegation_jti: str | None) -> dict[str, str]:
    """Return the context of a request. A value that is not set is left out; an empty one is `BAD_REQUEST`."""
    given = dict(zip(_CONTEXT, (external_principal, delegation_jti), strict=True))
    return {name: read_line(value, name, limit=CALLER_MAX) for name, value in given.items() if value is not None}


def compute_request_sha256(
    intent_id: str, caller: str, session: str, inputs: Mapping[str, Any], context: Mapping[str, Any]
) -> str:
    """Return the hash of a request, exactly as its parts stand. `NotCanonical` if one has no canonical form."""
    payload = {
        "v": HASH_VERSION,
        "intent_id": intent_id,
        "caller": caller,
        "session": session,
        "inputs": dict(inputs),
        "context": dict(context),
    }
    return hashlib.sha256(ascii_json(payload)).hexdigest()
