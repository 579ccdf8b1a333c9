"""A policy server: it decides about a request by its own rules, and says so in a share and a signed attestation.

There are two of them, with keys of their own. The gateway gathers the facts once and asks both the same question:

    {"v": 1, "action_id", "program_id", "request", "action", "diff", "facts", "state", "fixes"}

A server answers {"share", "attestation"}. It refuses, with a signed refusal and no share, unless

1. the question is about its own program: the same rules, settings and tables;
2. the action is the one that follows from the request (`aver.gateway.gated_action`), and the facts declare of its tool
   no other effects than this server's own program does;
3. `gate.decide` lets it pass, or leaves it to a person;
4. the patch that the rules want can be applied to this intent.

The two shares have no meaning apart. Each attestation has the whole decision of its server.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Protocol

from aver.capsule.json_document import check_object, check_version
from aver.capsule.masking.mask import mask
from aver.errors import AverError, BadInput, Refused
from aver.fast_dataclass import dataclass
from aver.gate.action import Action
from aver.gate.decide import ActionReading, Gate, decide
from aver.gate.decision import Decision
from aver.gate.facts.decision_inputs import DecisionInputs
from aver.gate.own_tools import find_declaration
from aver.gate.program import program_digest
from aver.gateway.gated_action import build_action
from aver.gateway.proof.attestation import (
    Attestation,
    build_attestation,
    build_refusal_attestation,
    sign_attestation,
)
from aver.gateway.proof.evidence import TAG_BYTES, PolicyBits, Share, build_share
from aver.gateway.proof.patch import NOOP, SanitizePatch, is_applicable, parse_patch
from aver.gateway.request import BoundRequest
from aver.keys.mac_keys import MacKeyring
from aver.keys.statement import Statement, StatementSigner
from aver.log import debug

PROGRAM_PREFIX = "aver-policy-v1."

_FIELDS = frozenset({"v", "action_id", "program_id", "request", "action", "diff", "facts", "state", "fixes"})


def name_program(gate: Gate) -> str:
    """Return the id of the program by which a gate decides. Raises `Unavailable` where it has no rules."""
    return PROGRAM_PREFIX + program_digest(gate)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationQuestion:
    """The question to a policy server."""

    action_id: str
    program_id: str
    request: BoundRequest
    action: Action
    inputs: DecisionInputs
    _masked: dict[tuple[str, ...], tuple[str, ...]] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Reasons without secrets: two servers in one process mostly have the same ones."""

    def mask_reasons(self, reasons: tuple[str, ...]) -> tuple[str, ...]:
        """Return reasons without secrets. An attestation is signed, so nobody can mask it later."""
        if reasons and reasons not in self._masked:
            # Together with the arguments: a reason may repeat a secret that only the name of an argument gives away.
            told = mask({"arguments": dict(self.action.arguments), "reasons": list(reasons)})
            self._masked[reasons] = tuple(told.value["reasons"])
        return self._masked.get(reasons, ())

    def to_dict(self) -> dict[str, Any]:
        return {
            "v": 1,
            "action_id": self.action_id,
            "program_id": self.program_id,
            "request": self.request.to_dict(),
            "action": self.action.to_dict(),
            "diff": self.action.diff,
            **self.inputs.to_dict(),
        }

    @classmethod
    def from_dict(cls, document: Any) -> EvaluationQuestion:
        """Read a question. Raises `BadInput` or `Refused`, also for an action that is not that of the request."""
        found = check_object(document, "the question", _FIELDS)
        check_version(found["v"], "the question")
        for name in ("action_id", "program_id"):
            if not isinstance(found[name], str):
                raise BadInput(f"the question: {name} must be a string")
        request = BoundRequest.from_dict(found["request"], "the question: request")
        action, diff = found["action"], found["diff"]
        workspace = action.get("workspace") if isinstance(action, dict) else None
        if not isinstance(workspace, str) or not isinstance(diff, str | None):
            raise BadInput("the question: action and diff do not describe an action")
        built = build_action(request, action_id=found["action_id"], workspace=workspace, diff=diff)
        if built.to_dict() != action:
            raise Refused("BAD_REQUEST", "the question is about another action than its request")
        inputs = DecisionInputs.from_dict({name: found[name] for name in ("facts", "state", "fixes")})
        return cls(
            action_id=found["action_id"], program_id=found["program_id"], request=request, action=built, inputs=inputs
        )


@dataclass(frozen=True, slots=True)
class PolicyEvaluation:
    """The answer of a policy server. `decision` is there only if the server is in this process."""

    share: Share | None
    attestation: Statement
    attested: Attestation
    """The content of the attestation."""
    decision: Decision | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "share": None if self.share is None else self.share.to_dict(),
            "attestation": self.attestation.to_dict(),
        }


class Evaluator(Protocol):
    """A policy server in this process, or the way to one elsewhere."""

    def evaluate(
        self, question: EvaluationQuestion, *, gate: Gate | None = None, reading: ActionReading | None = None
    ) -> PolicyEvaluation:
        """Answer the question. `gate` and `reading` spare a server in this process work that was done already.

        `reading` is that of the action, with these inputs and this gate.

        Raises `Unavailable` where the server gives no answer that can be used.
        """


class PolicyServer:
    """Policy server 0 or 1. `load_gate` returns the gate with this server's own rules and settings."""

    def __init__(
        self,
        server_id: int,
        *,
        signer: StatementSigner,
        mac_keys: Callable[[], MacKeyring],
        mask_keys: Callable[[], MacKeyring],
        load_gate: Callable[[str], Gate],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.server_id = server_id
        self._signer = signer
        self._mac_keys = mac_keys
        self._mask_keys = mask_keys
        self._load_gate = load_gate
        self._clock = clock
        self.program_id = ""
        """The program by which it decided last; empty before its first decision."""

    def evaluate(
        self, question: EvaluationQuestion, *, gate: Gate | None = None, reading: ActionReading | None = None
    ) -> PolicyEvaluation:
        """Decide, and make a share and an attestation of it. The share is None where the answer is no."""
        own = gate or self._load_gate(question.action.workspace)
        program_id = self.program_id = name_program(own)
        facts_sha256 = question.inputs.digest
        if question.program_id != program_id:  # 1.
            words = f"the question is for the program {question.program_id[:80]}, and this server runs {program_id}"
            return self._refuse(question, program_id, facts_sha256, None, (words,))
        if dict(question.inputs.facts.declared) != find_declaration(own.tools, question.action.tool, own.known):  # 2.
            words = "the facts declare other effects of the tool than the program of this server"
            return self._refuse(question, program_id, facts_sha256, None, (words,))
        # 3. With the state and the answers of the history in the question, so that both servers decide alike.
        by = own if reading is not None else question.inputs.apply_to(own)
        decision = decide(question.action, question.inputs.facts, by, reading=reading)
        reasons = question.mask_reasons(decision.shown_reasons)
        bits = read_bits(decision, question.request.intent_id)
        if bits is None:
            return self._refuse(question, program_id, facts_sha256, decision, reasons)
        kid, key = self._mac_keys().active
        share = build_share(
            bits,
            server_id=self.server_id,
            kid=kid,
            key=key,
            mask_key=self._mask_keys().active[1],
            ts=int(self._clock()),
            action_id=question.action_id,
            program_id=program_id,
            request_sha256=question.request.sha256,
            tag_share=os.urandom(TAG_BYTES),
        )
        rules = () if decision.policy is None else decision.policy.rules
        attestation = build_attestation(share, bits, facts_sha256=facts_sha256, rules=rules, reasons=reasons)
        return PolicyEvaluation(share, sign_attestation(attestation, self._signer), attestation, decision)

    def _refuse(
        self,
        question: EvaluationQuestion,
        program_id: str,
        facts_sha256: str,
        decision: Decision | None,
        reasons: tuple[str, ...],
    ) -> PolicyEvaluation:
        debug("gateway", "policy:%d refuses %s: %s", self.server_id, question.action_id, "; ".join(reasons))
        policy = None if decision is None else decision.policy
        attestation = build_refusal_attestation(
            server_id=self.server_id,
            action_id=question.action_id,
            request_sha256=question.request.sha256,
            program_id=program_id,
            facts_sha256=facts_sha256,
            rules=() if policy is None else policy.rules,
            reasons=reasons,
            ts=int(self._clock()),
        )
        return PolicyEvaluation(None, sign_attestation(attestation, self._signer), attestation, decision)

    def answer(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Answer a question that came over a socket. Raises `BadInput` or `Refused` for one that is malformed."""
        return self.evaluate(EvaluationQuestion.from_dict(document)).to_dict()


def read_patch(decision: Decision) -> SanitizePatch:
    """Return the patch that the deciding rules want. Raises `BadInput` where their text is none."""
    wanted = "" if decision.policy is None else decision.policy.patch
    return parse_patch(wanted) if wanted else NOOP


def read_bits(decision: Decision, intent_id: str) -> PolicyBits | None:
    """Return a decision in bits; None for a refusal, and for a patch that cannot be applied to the intent."""
    if decision.decision not in ("pass", "human_review", "human_approved"):
        return None
    try:
        patch = read_patch(decision)
    except AverError as error:
        debug("gateway", "refused, because the patch of the rules cannot be read: %s", error.message)
        return None
    if not is_applicable(patch, intent_id):
        debug("gateway", "refused, because %s cannot be applied to %s", patch.name, intent_id)
        return None
    return PolicyBits(1, int(decision.decision != "pass"), patch.id)
