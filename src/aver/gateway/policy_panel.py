"""Asking both policy servers, and making one decision of their answers.

The gate's `ask` takes anyone as the one who decides. For an act that is the panel: it puts the same question to both
servers, and their answers must agree. Otherwise the decision is a refusal, with the reason:

    a server is down, slow, or gives an answer that cannot be used    POLICY_UNAVAILABLE
    a server runs another program                                     POLICY_UNAVAILABLE
    one allows and the other refuses, or they want different things   POLICY_DENY, servers_disagree
    both refuse                                                       POLICY_DENY, or the code of the deciding rule
    both allow, and the executor would refuse it for certain          the executor's code (`effects.preconditions`)

A refusal of both is also the gate's own decision. So its record can be made again by anyone, as every other decision.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from aver.errors import AverError, Refused, Unavailable
from aver.fast_dataclass import dataclass
from aver.gate.action import Action, Facts
from aver.gate.decide import ActionReading, Gate, build_refusal, decide, read_action
from aver.gate.decision import Decision
from aver.gate.effects.effects import Effects
from aver.gate.facts.decision_inputs import DecisionInputs
from aver.gateway.codes import POLICY_DENY, load_reason_codes
from aver.gateway.policy_server import (
    EvaluationQuestion,
    Evaluator,
    PolicyEvaluation,
    name_program,
    read_bits,
    read_patch,
)
from aver.gateway.proof.attestation import Attestation, PolicyKeys, check_attestation, find_binding_problem
from aver.gateway.proof.evidence import PolicyBits, Share, join_shares
from aver.gateway.proof.patch import NOOP, SanitizePatch, apply_patch
from aver.gateway.request import BoundRequest
from aver.keys.statement import Statement
from aver.log import debug

POLICY_UNAVAILABLE = "POLICY_UNAVAILABLE"

UNSET_FACTS = "0" * 64
"""Stands for facts that could not be gathered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelAnswer:
    """The joint answer of both servers. With `shares`, both allowed the request."""

    reason_code: str
    detail: str = ""
    program_id: str = ""
    facts_sha256: str = UNSET_FACTS
    shares: tuple[Share, Share] | None = None
    bits: PolicyBits = PolicyBits(0, 0, 0)
    patch: SanitizePatch = NOOP
    attestations: tuple[Statement, ...] = ()
    """Those that were given, refusals too."""

    @property
    def commit(self) -> dict[str, Any] | None:
        """The evidence as the wire carries it."""
        return None if self.shares is None else {f"policy{share.server_id}": share.to_dict() for share in self.shares}


class QuestionLink(Protocol):
    """The way to a server in another process. Raises `Unavailable` where it gives no answer."""

    def post(self, path: str, document: Mapping[str, Any]) -> dict[str, Any]: ...


class RemotePolicyServer:
    """A policy server in another process. Its answers count only with a valid signature by its key."""

    def __init__(self, server_id: int, link: QuestionLink, keys: PolicyKeys) -> None:
        self._server_id = server_id
        self._link = link
        self._keys = keys

    def evaluate(
        self, question: EvaluationQuestion, *, gate: Gate | None = None, reading: ActionReading | None = None
    ) -> PolicyEvaluation:
        answer = self._link.post("/evaluate", question.to_dict())
        if answer.keys() != {"share", "attestation"}:
            raise Unavailable(f"policy server {self._server_id} gave no answer that can be used")
        statement = Statement.from_dict(answer["attestation"], f"the attestation of policy:{self._server_id}")
        attested = check_attestation(statement, self._server_id, self._keys.of(self._server_id))
        share = None if answer["share"] is None else Share.parse(answer["share"])
        return PolicyEvaluation(share, statement, attested)


class PolicyPanel:
    """One act's question to both servers. It is the `decide` of `gate.ask`; `answer` is there after each call.

    A panel serves one act: `ask` may have it decide several times, and the last answer counts.
    """

    def __init__(
        self,
        servers: Sequence[Evaluator],
        request: BoundRequest,
        action_id: str,
        check_effect: Callable[[str, Mapping[str, Any]], None] = lambda intent_id, inputs: None,
    ) -> None:
        self._servers = servers
        self._request = request
        self._action_id = action_id
        self._check_effect = check_effect
        self.answer = PanelAnswer(reason_code=POLICY_UNAVAILABLE, detail="nobody was asked")

    def decide(
        self, action: Action, facts: Facts, gate: Gate, *, gate_id: str | None = None, effects: Effects | None = None
    ) -> Decision:
        """Ask both servers, and return the one decision."""
        if gate.bundle is None:
            # The rules do not load, or the session's past is damaged: nobody can decide.
            decision = decide(action, facts, gate, gate_id=gate_id)
            self.answer = PanelAnswer(reason_code=POLICY_UNAVAILABLE, detail="; ".join(decision.reasons))
            return decision
        inputs = DecisionInputs.gather(action, facts, gate)
        program_id = name_program(gate)
        question = EvaluationQuestion(
            action_id=self._action_id, program_id=program_id, request=self._request, action=action, inputs=inputs
        )
        answers = self._ask_servers(question, gate, effects)
        refusal = PanelAnswer(
            reason_code=POLICY_DENY,
            program_id=program_id,
            facts_sha256=inputs.digest,
            attestations=tuple(answer.attestation for answer in answers if isinstance(answer, PolicyEvaluation)),
        )
        try:
            first, second = (_require_answer(answer, question, server_id) for server_id, answer in enumerate(answers))
        except AverError as error:
            self.answer = replace(refusal, reason_code=POLICY_UNAVAILABLE, detail=error.message)
            return build_refusal(action.digest, gate, gate_id or "", f"no policy decision: {error}")
        own = answers[0].decision if isinstance(answers[0], PolicyEvaluation) else None
        decision = own or decide(action, facts, inputs.apply_to(gate), gate_id=gate_id, effects=effects)
        if gate_id and decision.gate_id != gate_id:
            decision = replace(decision, gate_id=gate_id)  # A policy server does not know the decision's id.
        self.answer = self._join(decision, first, second, answers, refusal)
        if self.answer.shares is None and decision.decision in ("pass", "human_review", "human_approved"):
            return build_refusal(action.digest, gate, decision.gate_id, self.answer.detail)
        return decision

    def _ask_servers(
        self, question: EvaluationQuestion, gate: Gate, effects: Effects | None
    ) -> list[PolicyEvaluation | AverError]:
        def ask(server: Evaluator, reading: ActionReading | None = None) -> PolicyEvaluation | AverError:
            try:
                return server.evaluate(question, gate=gate, reading=reading)
            except AverError as error:
                debug("gateway", "a policy server gave no answer: %s", error.message)
                return error

        first, second = self._servers
        if not isinstance(second, RemotePolicyServer):
            reading = _read_question(question, gate, effects)
            return [ask(first, reading), ask(second, reading)]
        # Both at once: each answer takes a round trip. A pool that outlives the act would not outlive a fork.
        answers: list[PolicyEvaluation | AverError] = []
        thread = threading.Thread(target=lambda: answers.append(ask(second)), name="aver-policy", daemon=True)
        thread.start()
        own = ask(first)
        thread.join()
        return [own, *(answers or [Unavailable("asking a policy server failed", advice="look at the log")])]

    def _join(
        self,
        decision: Decision,
        first: Attestation,
        second: Attestation,
        answers: Sequence[PolicyEvaluation | AverError],
        refusal: PanelAnswer,
    ) -> PanelAnswer:
        """Make one answer of two that can be used. `refusal` is the answer if they do not both allow the same."""
        shares = [answer.share for answer in answers if isinstance(answer, PolicyEvaluation)]
        if (first.bits, first.rules) != (second.bits, second.rules):
            return replace(refusal, detail="servers_disagree: the two policy servers decided differently")
        bits = read_bits(decision, self._request.intent_id)
        if shares[0] is None or shares[1] is None or bits is None:
            wanted = "" if decision.policy is None else decision.policy.code
            code = wanted if wanted in load_reason_codes() else POLICY_DENY
            reasons = "; ".join(decision.shown_reasons) or "; ".join(first.reasons)
            return replace(refusal, reason_code=code, detail=reasons)
        if bits != first.bits or first.rules != (() if decision.policy is None else decision.policy.rules):
            return replace(refusal, detail="servers_disagree: the gateway decided differently from both policy servers")
        # The executor would refuse shares that say something else. So no PREVIEW promises that they can be committed.
        joined, names = join_shares(shares[0], shares[1]), shares[0].outputs.keys() | shares[1].outputs.keys()
        if joined.keys() != names or not bits.outputs.items() <= joined.items():
            return replace(refusal, detail="servers_disagree: the two shares give another decision than both attest")
        patch = read_patch(decision)
        try:
            # Now, so that nobody is asked to approve it. The executor looks at the inputs after the patch, too.
            intent_id, inputs = self._request.intent_id, self._request.inputs
            self._check_effect(intent_id, inputs if patch == NOOP else apply_patch(patch, intent_id, inputs).inputs)
        except Refused as certain:
            debug("gateway", "the executor would refuse %s: %s", self._action_id, certain.message)
            return replace(refusal, reason_code=certain.code, detail=str(certain))
        code = "REQUIRE_CONFIRM" if bits.need_confirm else "ALLOW"
        return replace(refusal, reason_code=code, shares=(shares[0], shares[1]), bits=bits, patch=patch)


def _read_question(question: EvaluationQuestion, gate: Gate, effects: Effects | None) -> ActionReading | None:
    """Read the action of a question once for both servers in this process; None if each must say why it cannot."""
    try:
        return read_action(question.action, question.inputs.facts, question.inputs.apply_to(gate), effects=effects)
    except Exception as error:  # noqa: BLE001 - each server meets it again, and refuses with its own signature
        debug("gateway", "the action cannot be read: %s", error)
        return None


def _require_answer(answer: PolicyEvaluation | AverError, question: EvaluationQuestion, server_id: int) -> Attestation:
    """Return the attestation in an answer that fits the question. Raises `Unavailable` or what the server raised."""
    if isinstance(answer, AverError):
        raise answer
    attestation = answer.attested
    if attestation.server_id != server_id:
        raise Unavailable(f"policy server {server_id} answered in the name of another")
    wanted = (question.action_id, question.request.sha256, question.inputs.digest)
    if (attestation.action_id, attestation.request_sha256, attestation.facts_sha256) != wanted:
        raise Unavailable(f"policy server {attestation.server_id} answered another question")
    if attestation.program_id != question.program_id:
        raise Unavailable(
            f"policy server {attestation.server_id} runs another program",
            advice="run: aver gateway pin; after a change of config.toml, start this door again, too",
        )
    if (answer.share is None) != (attestation.allow_pre == 0):
        raise Unavailable(f"policy server {attestation.server_id} contradicts itself")
    if answer.share is not None and (words := find_binding_problem(attestation, answer.share)):
        raise Unavailable(f"policy server {attestation.server_id} contradicts itself: {words}")
    return attestation
