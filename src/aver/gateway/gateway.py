"""The gateway: `act`, PREVIEW and COMMIT.

    with aver.open_gateway() as gateway:
        answer = gateway.act({"intent_id": "WriteWorkspaceFile", "inputs": {"relpath": "a.txt", "content": "hi\\n"},
                              "constraints": {}, "caller": "agent:writer"})

An act is one request for one effect. It goes through these steps; the first that fails gives the answer:

1. read      exactly four fields, and an intent that the table knows
2. allow     caller and session fit the door; the delegation holds; capabilities of caller and principal
3. PREVIEW   bind the inputs, build the action, have both policy servers decide, seal decision and PREVIEW together.
             Where a person must approve, open the gate's own request for approval
4. COMMIT    find the PREVIEW, compare session, caller and context, get fresh shares or the approval where needed, and
             hand it to the executor, which checks everything again

The second name of an intent, such as `CheckMessagePolicy`, stops after the PREVIEW. The first name with `inputs.tx_id`
begins with COMMIT. All state is in records, so any process of this ledger can carry out the COMMIT of a PREVIEW.

Every answer is an envelope (`aver.gateway.codes`). A refusal is recorded like everything else.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol

from aver import clock
from aver.errors import AverError, InvalidCapsule, Refused, Unavailable
from aver.fast_dataclass import dataclass
from aver.files.workspace_files import WorkspaceFiles
from aver.gate.action import Action
from aver.gate.ask import Answer, ask, load_gate
from aver.gate.decision import Decision
from aver.gate.decision_record import REFUSING_DECISIONS
from aver.gate.effects.effects import CHANGED_TOOL_HINT
from aver.gate.effects.findings import build_path_roots, locate_path
from aver.gate.effects.large_action import TEXT_MAX, bound_action
from aver.gate.origins.judgement import ToolMeaning
from aver.gate.own_records import OwnRecords
from aver.gateway.act_records import (
    ACTION_PREFIX,
    TX_PREFIX,
    ActReport,
    Deployment,
    IngressNote,
    Mediation,
    Preview,
    Surroundings,
    act_chain,
    build_outcome_draft,
    build_preview_draft,
    check_session,
    mark_key,
    read_preview,
    revocation_key,
)
from aver.gateway.calls.call_meaning import TOOL_INTENT, find_tool_meaning, judge_request, note_result
from aver.gateway.calls.session_origins import KnownOrigins, seal_turn
from aver.gateway.calls.upstream import ToolDefinition, Upstream
from aver.gateway.codes import BAD_REQUEST, CAPSULE_REQUIRED, POLICY_DENY, build_envelope, load_reason_codes
from aver.gateway.delegation import Delegation, check_delegation
from aver.gateway.executor.commit_order import CommitOrder
from aver.gateway.executor.preconditions import Preconditions
from aver.gateway.gated_action import CHANGING_INTENTS, build_action, build_change
from aver.gateway.handles import DECLASSIFY, HandleStore
from aver.gateway.ingress import Ingress, bind_constraints
from aver.gateway.intents import ActInputs, IntentCall, read_inputs
from aver.gateway.policy_panel import PanelAnswer, PolicyPanel
from aver.gateway.policy_server import Evaluator, name_program
from aver.gateway.proof.patch import NOOP
from aver.gateway.request import SKILL_CALLER, ActRequest, BoundRequest
from aver.gateway.settings import GatewaySettings, find_capabilities, may_name
from aver.keys.statement import Statement
from aver.ledger import Entry, Ledger
from aver.log import debug

ACTION_ID_BYTES = 12
"""Random bytes of an act's id: 16 characters in base64url."""

CLOCK_SLACK = 60.0
"""Seconds by which a clock may be set back without ending the PREVIEWs that were made before. Time services do that."""

SHOWN_AS_THEY_ARE = frozenset({DECLASSIFY, "CommitSkillInstall", "FinalizeOutput"})
"""Intents whose answers have no handles: they give out a value or a token on purpose, or what the agent wrote."""

ANSWER_IDS = frozenset({"tx_id", "action_id", "request_sha256", "sha256", "size"})
"""Values of an answer that are no content."""

PREVIEW_ALLOWED = "it may happen; send tx_id to commit it"

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


class Commits(Protocol):
    """The executor in this process, or the way to one elsewhere."""

    def execute(self, order: CommitOrder) -> dict[str, Any]:
        """Carry out an order, or refuse it. `Unavailable` only where the order cannot have reached the executor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """The door that acts come through: the session they belong to, and whom the door lets speak."""

    session: str
    ingress: IngressNote = IngressNote("embedded")
    callers: tuple[str, ...] = ("*",)
    """Patterns of the callers that may act through this door."""
    mediation: Mediation = "unverified"
    """Whether the door has a fresh verdict that what acts through it is confined."""
    federated: Ingress | None = None
    """The call of a principal elsewhere, whose signature the door has checked; None for all other doors."""


class Gateway:
    """Answers acts in one ledger. Safe to use from several threads."""

    def __init__(
        self,
        ledger: Ledger,
        *,
        servers: Sequence[Evaluator],
        executor: Commits,
        workspace: str,
        settings: GatewaySettings,
        deployment: Deployment = "embedded",
        session: str = "",
        preconditions: Preconditions,
        upstreams: dict[str, Upstream] | None = None,
        handles: HandleStore | None = None,
        clock: Callable[[], float] = time.time,
        close: Callable[[], None] = lambda: None,
    ) -> None:
        self.ledger = ledger
        self.workspace = workspace
        self.settings = settings
        self._servers = servers
        self._executor = executor
        self.deployment = deployment
        self._preconditions = preconditions
        self._upstreams = {} if upstreams is None else upstreams
        self._handles = handles or HandleStore(clock)
        self._clock = clock
        self._origins = KnownOrigins(ledger)
        self._close = close
        self.door = Door(session=check_session(session or new_session()))
        """The door of this process itself: for callers of `act` that name no other."""

    def __enter__(self) -> Gateway:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        self._close()

    def connect(self, server: str, upstream: Upstream) -> None:
        """Let acts of the intent `CallTool` call the tools of a server, under this name.

        Raises `Refused` where another server has the name, and where the executor is in another process.
        """
        if self.deployment != "embedded":
            raise Refused("EXECUTOR_UNAVAILABLE", "the executor runs apart, and cannot call tools of this process")
        if self._upstreams.setdefault(server, upstream) is not upstream:
            raise Refused(BAD_REQUEST, f"another server is called {server!r}", advice="choose another name")

    def open_session(self, prompt: str, *, session: str = "", told_by: str = "embedded") -> Door:
        """Seal what the user said, and return the door of that session. Without `session`, a new one begins.

        Only a caller that is trusted to know the user's words may use this: acts are judged by them. Call it again with
        the same session for the user's next words. Raises `BadInput`, and what `append` raises.
        """
        name = check_session(session or new_session())
        record = seal_turn(self.ledger, name, prompt, told_by=told_by)
        self._origins.of(name).add_turn(record, prompt)
        return replace(self.door, session=name)

    def act(self, document: Any, *, door: Door | None = None) -> dict[str, Any]:
        """Answer an act: an object of four fields, or the bytes of one. Returns the envelope and raises nothing.

        A ledger that cannot record anything denies everything: the answer is `EXECUTOR_UNAVAILABLE`.
        """
        door = door or self.door
        try:
            return self._act(document, door)
        except AverError as error:
            debug("gateway", "an act could not be answered: %s", error.message)
            return build_envelope("EXECUTOR_UNAVAILABLE", f"nothing was done: {error}")

    def _act(self, document: Any, door: Door) -> dict[str, Any]:
        intent_id, caller = "", ""
        try:
            # 1. Read.
            act = ActRequest.parse(document)
            intent_id, caller = act.intent_id, act.caller
            call = act.find_intent()
            # 2. Is it allowed to ask?
            visit = self._admit(act, call, door)
            given = read_inputs(call, act.inputs)
            if given.tx_id is not None:
                return self._commit(call, given, visit)
            request = self._bind(call.intent.name, given.bound or {}, visit)
            # 3. A path that cannot be used is refused before anybody decides.
            shown = self._show(request, new_action_id())
            preview, envelope, evidence = self._preview(request, shown, visit, uses_approval=not call.preview_only)
        except InvalidCapsule as error:
            refusal = Refused(BAD_REQUEST, f"the act cannot be recorded: {error.message}")
            return self._refuse(refusal, intent_id, caller, door)
        except Refused as refusal:
            return self._refuse(refusal, intent_id, caller, door)
        # 4.
        if call.preview_only or evidence is None:
            return envelope
        return self._hand_over(preview, request, evidence, visit)

    def _bind(self, intent_id: str, inputs: Mapping[str, Any], visit: _Visit) -> BoundRequest:
        """Bind the inputs of a visitor's request. Raises `Refused`, also for a handle where none may stand."""
        request = BoundRequest.bind(
            intent_id,
            caller=visit.caller,
            session=visit.door.session,
            inputs=inputs,
            external_principal=visit.principal,
            delegation_jti=visit.jti,
        )
        self._handles.check_inputs(request, can_restore=self.deployment == "embedded")
        return request

    # --- may it ask?

    def _admit(self, act: ActRequest, call: IntentCall, door: Door) -> _Visit:
        """Check who asks on whose behalf. Raises `Refused`."""
        if not may_name(door.callers, act.caller):
            raise Refused("INGRESS_CONFLICT", f"this door does not admit the caller {act.caller!r}")
        if self.settings.require_capsule and door.mediation != "verified":
            raise Refused(
                CAPSULE_REQUIRED,
                "the settings want a verified confinement, and this door has none",
                advice="start the agent with: aver gateway run -- COMMAND",
            )
        constraints, name = act.constraints, call.intent.name
        if door.federated is not None:
            constraints = bind_constraints(door.federated, constraints)
        caller = act.caller
        if constraints.workload_token is not None:
            from aver.gateway.skills.workload_token import check_workload_token  # Few callers are skills.

            caller = check_workload_token(
                constraints.workload_token, ring=self.ledger.keys.ring(), session=door.session, now=self._clock()
            )
        elif caller.startswith(SKILL_CALLER):
            raise Refused("WORKLOAD_TOKEN_INVALID", f"only a workload token makes a caller {SKILL_CALLER}<digest>")
        allowed = find_capabilities(self.settings.callers, caller)
        if allowed is not None and not may_name(allowed, name):
            raise Refused("CAPABILITY_DENY", f"{caller} may not use {name}")
        delegation = check_delegation(
            constraints.delegation_token,
            intent_id=name,
            caller=caller,
            session=door.session,
            external_principal=constraints.external_principal,
            keys=self.settings.keys,
            now=self._clock(),
            is_revoked=lambda jti: self.ledger.get(revocation_key(jti)) is not None,
        )
        if delegation is not None:
            allowed = find_capabilities(self.settings.principals, delegation.principal)
            if allowed is not None and not may_name(allowed, name):
                raise Refused("PRINCIPAL_CAPABILITY_DENY", f"{delegation.principal} may not use {name}")
        surroundings = self.describe_surroundings(door)
        return _Visit(door, caller, delegation, surroundings, bool(constraints.user_confirm))

    def describe_surroundings(self, door: Door) -> Surroundings:
        """Return the circumstances of acts through a door, as their records state them."""
        return Surroundings(door.ingress, self.deployment, self.settings.is_insecure, door.mediation)

    def _refuse(self, refusal: Refused, intent_id: str, caller: str, door: Door) -> dict[str, Any]:
        """Record a refusal that came before any decision, and answer with it."""
        code = refusal.code if refusal.code in load_reason_codes() else BAD_REQUEST
        preview = Preview(
            reason_code=code,
            detail=str(refusal),
            intent_id=intent_id,
            caller=caller,
            session=door.session,
            action_id=new_action_id(),
        )
        draft, _ = build_preview_draft(preview, self.describe_surroundings(door), keeps_inputs=False)
        self.ledger.append(act_chain(door.session), draft)
        return build_envelope(code, str(refusal))

    # --- PREVIEW

    def _annotate(self, request: BoundRequest) -> Mapping[str, Any]:
        """Return the annotations of the tool that a request calls, and whether the tool is not as first seen."""
        definition = self._find_definition(request)
        if definition is None:
            return {}
        known = {name: value for name, value in definition.annotations.items() if isinstance(value, bool)}
        return {**known, CHANGED_TOOL_HINT: True} if definition.is_changed else known

    def _show(self, request: BoundRequest, action_id: str) -> _ShownAct:
        """Return the action that is judged, and the file that it changes as it is now. Raises `Refused`."""
        base, diff = None, None
        if request.intent_id == "CommitSkillInstall":
            from aver.gateway.skills.admission import admit_package  # Skills are installed seldom.
            from aver.gateway.skills.skill_store import SkillStore

            skills = self.settings.effects.skills
            admit_package(
                SkillStore(self.ledger.config.home, skills), request.inputs["skill_digest"], skills.ioc_domains
            )
        if request.intent_id in CHANGING_INTENTS:
            look = WorkspaceFiles(self.workspace).look(request.inputs["relpath"])
            base, diff = {"sha256": look.base.sha256}, build_change(request, self.workspace, look)
        action = build_action(request, action_id=action_id, workspace=self.workspace, diff=diff)
        # The gate would cut it. Then nobody could hold the decision to the request.
        if bound_action(action) is not action:
            words = (
                f"inputs, or the change that they make, have more than {TEXT_MAX} characters, which nobody can judge"
            )
            raise Refused(BAD_REQUEST, words, advice="split the act")
        return _ShownAct(action, base)

    def _preview(
        self, request: BoundRequest, shown: _ShownAct, visit: _Visit, *, uses_approval: bool
    ) -> tuple[Preview, dict[str, Any], _Evidence | None]:
        """Have both servers decide, seal it, and answer. The evidence is None where nothing can be committed now."""
        action_id = shown.action.call_id
        begun = Preview(
            reason_code="POLICY_DENY",
            intent_id=request.intent_id,
            caller=request.caller,
            session=request.session,
            inputs=request.inputs,
            context=request.context,
            action_id=action_id,
            request_sha256=request.sha256,
            patch=NOOP.to_dict(),
            base=shown.base,
            delegation=visit.jti or "",
            delegations=() if visit.delegation is None else (visit.delegation.statement,),
        )
        act = _PreviewedAct(self, begun, visit.surroundings)
        panel = PolicyPanel(self._servers, request, action_id, self._preconditions.check)
        answer = ask(
            self.ledger,
            shown.action,
            annotations=self._annotate(request),
            meaning=self._judge(request),
            decide=panel.decide,
            beside=lambda decision, record_id: act.build_entries(panel.answer, decision, record_id),
            approvals="use" if uses_approval else "find",
        )
        preview = act.finish(panel.answer, answer)
        evidence = _Evidence.collect(panel.answer, answer, is_confirmed=self._is_confirmed(visit))
        data = {
            "tx_id": preview.tx_id,
            "action_id": preview.action_id,
            "request_sha256": preview.request_sha256,
            "allow_pre": preview.allow_pre,
            "need_confirm": preview.need_confirm,
            "patch": preview.patch,
            "expires": preview.expires or None,
            "reasons": list(answer.reasons),
        }
        if preview.approval:
            data["approval"] = preview.approval
        words = "; ".join(answer.reasons) or preview.detail
        summary = PREVIEW_ALLOWED if preview.reason_code == "ALLOW" else words
        return preview, build_envelope(preview.reason_code, summary, data=data), evidence

    # --- COMMIT

    def _commit(self, call: IntentCall, given: ActInputs, visit: _Visit) -> dict[str, Any]:
        """Commit an earlier PREVIEW. Raises `Refused` where the tx is not this caller's to commit."""
        preview = self._find_preview(str(given.tx_id), call)
        if preview.session != visit.door.session:
            raise Refused("TX_SESSION_MISMATCH", "the PREVIEW belongs to another session")
        if preview.caller != visit.caller:
            raise Refused("TX_CALLER_MISMATCH", "the PREVIEW belongs to another caller")
        if preview.mediation == "verified" and visit.surroundings.mediation != "verified":
            raise Refused(CAPSULE_REQUIRED, "the PREVIEW was made in a verified confinement, and this COMMIT is not")
        # Unset is not equal to set: leaving the principal out must not get around a delegation.
        known = {"external_principal": visit.principal, "delegation_jti": visit.jti}
        given_tokens = () if visit.delegation is None else (visit.delegation.statement,)
        # Two tokens can have one jti. The record of the COMMIT has the token of the PREVIEW, so it must be the same.
        if (
            dict(preview.context or {}) != {name: value for name, value in known.items() if value is not None}
            or preview.delegations != given_tokens
        ):
            raise Refused(
                "TX_AUTH_CONTEXT_MISMATCH", "the PREVIEW was made on behalf of another principal or delegation"
            )
        inputs = given.bound if given.bound is not None else preview.inputs
        if inputs is None:
            raise Refused(BAD_REQUEST, "the inputs of this PREVIEW were not kept; send them again beside tx_id")
        request = self._bind(preview.intent_id, inputs, visit)
        # The executor says so, too. Asking the servers again, or using an approval, would be in vain.
        if self.ledger.get(mark_key(preview.action_id)) is not None:
            return self._refuse_commit(preview, visit, "REPLAY_DENY", "this act was carried out before")
        if preview.shares is None:
            return self._refuse_commit(preview, visit, "POLICY_DENY", preview.detail)
        if request.sha256 != preview.request_sha256 or not self._needs_evidence(preview):
            # With other inputs than the PREVIEW had, the executor says so: it compares the hash.
            return self._hand_over(preview, request, _Evidence.from_preview(preview), visit)
        return self._renew_and_hand_over(preview, request, visit)

    def _needs_evidence(self, preview: Preview) -> bool:
        """Whether the shares of a PREVIEW are not enough: too old, of another program, or a person must approve."""
        shares = preview.shares or ()
        if preview.need_confirm and self.settings.confirm == "approval":
            return True
        gate = load_gate(self.ledger.config, self.workspace, self.ledger)
        if gate.bundle is None or preview.program_id != name_program(gate):
            return True
        # In either direction: the clock may have been set back.
        return any(abs(self._clock() - share["ts"]) >= self.settings.mac_ttl - 1 for share in shares)

    def _renew_and_hand_over(self, preview: Preview, request: BoundRequest, visit: _Visit) -> dict[str, Any]:
        """Decide once more about the same act: for fresh shares, or to use the approval that has come meanwhile."""
        shown = self._show(request, preview.action_id)
        if shown.base != preview.base:
            return self._refuse_commit(preview, visit, "WORKSPACE_CHANGED", "the file has changed since the PREVIEW")
        panel = PolicyPanel(self._servers, request, preview.action_id, self._preconditions.check)
        answer = ask(
            self.ledger,
            shown.action,
            annotations=self._annotate(request),
            meaning=self._judge(request),
            decide=panel.decide,
        )
        evidence = _Evidence.collect(panel.answer, answer, is_confirmed=self._is_confirmed(visit))
        if evidence is None:
            code = panel.answer.reason_code
            return self._refuse_commit(preview, visit, code, "; ".join(answer.reasons) or panel.answer.detail)
        return self._hand_over(preview, request, evidence, visit)

    def _hand_over(self, preview: Preview, request: BoundRequest, evidence: _Evidence, visit: _Visit) -> dict[str, Any]:
        """Give the act to the executor, and return its answer, with handles in the place of secrets."""
        if request.intent_id == DECLASSIFY and not evidence.approval_use:
            # Also where the rules would let it pass: a secret is given out on a person's word alone.
            return self._refuse_commit(preview, visit, "DECLASSIFY_BLOCKED", "no person has approved it with a key")
        order = CommitOrder(
            intent_id=request.intent_id,
            tx_id=preview.tx_id,
            action_id=preview.action_id,
            caller=request.caller,
            session=request.session,
            inputs=request.inputs,
            commit=evidence.commit,
            attestations=evidence.attestations,
            user_confirm=visit.user_confirm,
            approval=evidence.approval_use,
            decision=evidence.decision_id,
            external_principal=visit.principal,
            delegation_jti=visit.jti,
            ingress=visit.surroundings.ingress,
            mediation=visit.surroundings.mediation,
        )
        try:
            envelope = self._cover(self._executor.execute(order), request)
            note_result(request, self._find_tool(request), envelope, self._origins.of(request.session))
            return envelope
        except Unavailable as error:
            # An executor raises this only where the order has not reached it: nothing can have happened.
            return self._refuse_commit(preview, visit, "EXECUTOR_UNAVAILABLE", str(error))

    def _cover(self, envelope: dict[str, Any], request: BoundRequest) -> dict[str, Any]:
        """Return an answer with handles in the place of secrets. The values that were asked for by name stay."""
        data = envelope.get("data")
        if request.intent_id in SHOWN_AS_THEY_ARE or not isinstance(data, dict):
            return envelope
        whose = {"session": request.session, "caller": request.caller, "label": request.intent_id}
        if request.intent_id == "ReadWorkspaceFile" and isinstance(data.get("content"), str):
            path = os.path.join(self.workspace, request.inputs["relpath"])
            if "secret" in locate_path(path, None, build_path_roots(self.workspace, {})).classes:
                return {**envelope, "data": {**data, "content": self._handles.hold(data["content"], **whose)}}
        # Ids and digests have no secrets, and must not be taken for one. A summary may repeat the words of a server.
        kept = {name: value for name, value in data.items() if name in ANSWER_IDS}
        rest = {name: value for name, value in data.items() if name not in ANSWER_IDS}
        told = self._handles.cover({"summary": envelope["summary"], "data": rest}, **whose)
        return {**envelope, "summary": told["summary"], "data": {**kept, **told["data"]}}

    def cover_secrets(self, value: Any, *, session: str, caller: str, label: str) -> Any:
        """Return a JSON value that a server gave beside the results of acts, with handles in the place of secrets."""
        return self._handles.cover(value, session=session, caller=caller, label=label)

    def _find_tool(self, request: BoundRequest) -> ToolMeaning | None:
        """Return what the tool of a request does; None where it calls none."""
        if request.intent_id != TOOL_INTENT:
            return None
        definition = self._find_definition(request)
        gate = load_gate(self.ledger.config, self.workspace, self.ledger)
        return find_tool_meaning(request, {} if definition is None else definition.document, gate, self.settings.tools)

    def _find_definition(self, request: BoundRequest) -> ToolDefinition | None:
        """Return the definition of the tool that a request calls, as its server gives it."""
        upstream = self._upstreams.get(request.inputs["server"]) if request.intent_id == TOOL_INTENT else None
        return None if upstream is None else upstream.find_tool(request.inputs["tool"])

    def _judge(self, request: BoundRequest) -> dict[str, Any] | None:
        """Judge what a request means; None for an intent that calls no tool and says nothing."""
        memory = self._origins.of(request.session)
        return judge_request(request, self._find_tool(request), memory, self.ledger)

    def _is_confirmed(self, visit: _Visit) -> bool:
        """Whether the caller's own word counts as a person's confirmation."""
        return self.settings.confirm == "flag" and visit.user_confirm

    def _find_preview(self, tx_id: str, call: IntentCall) -> Preview:
        """Return the PREVIEW of a tx that has not expired. Raises `Refused` with `TX_INVALID`."""
        record_id = tx_id.removeprefix(TX_PREFIX)
        try:
            record = OwnRecords(self.ledger).get(record_id) if tx_id.startswith(TX_PREFIX) else None
            preview = None if record is None else read_preview(record, self.ledger.blob)
            # A hash or a key finds a record, too. A PREVIEW has one tx_id alone.
            if preview is None or preview.tx_id != tx_id:
                raise Refused("TX_INVALID", "no PREVIEW has this tx_id")
        except Refused:
            raise
        except AverError as error:
            raise Refused("TX_INVALID", f"the PREVIEW cannot be used: {error.message}") from error
        if preview.intent_id != call.intent.name:
            raise Refused("TX_INVALID", f"the PREVIEW was of {preview.intent_id}")
        left = datetime.fromisoformat(preview.expires).timestamp() - self._clock() if preview.expires else 0.0
        if left <= 0:
            raise Refused("TX_INVALID", "the PREVIEW has expired", advice="send the act again without tx_id")
        # Otherwise a clock that was set back would make a PREVIEW last for as long as it was set back.
        if left > self.settings.tx_ttl + CLOCK_SLACK:
            words = "the clock was set back after the PREVIEW, or the settings let it last for a shorter time now"
            raise Refused("TX_INVALID", words, advice="send the act again without tx_id")
        return preview

    def _refuse_commit(self, preview: Preview, visit: _Visit, code: str, detail: str) -> dict[str, Any]:
        """Record a COMMIT that does not reach the executor, and answer."""
        draft = build_outcome_draft(
            preview, visit.surroundings, ActReport(code, detail), parent=preview.record_id, sent=None
        )
        self.ledger.append(act_chain(preview.session), draft)
        data = {"tx_id": preview.tx_id, "action_id": preview.action_id, "request_sha256": preview.request_sha256}
        return build_envelope(code, detail, data=data)


class _Visit(NamedTuple):
    """Who asks, through which door, and on whose behalf: all checked."""

    door: Door
    caller: str
    delegation: Delegation | None
    surroundings: Surroundings
    user_confirm: bool

    @property
    def principal(self) -> str | None:
        return None if self.delegation is None else self.delegation.principal

    @property
    def jti(self) -> str | None:
        return None if self.delegation is None else self.delegation.jti


class _ShownAct(NamedTuple):
    """The action of a request, and the state of the file that it changes: {sha256}, or None where it changes none."""

    action: Action
    base: Mapping[str, Any] | None


class _Evidence(NamedTuple):
    """The evidence for one COMMIT, as the executor gets it."""

    commit: Mapping[str, Any] | None
    attestations: tuple[Statement, ...]
    decision_id: str
    approval_use: str = ""

    @classmethod
    def collect(cls, panel: PanelAnswer, answer: Answer, *, is_confirmed: bool) -> _Evidence | None:
        """Return the evidence of a decision; None where the servers refused, or a person has not approved yet.

        `is_confirmed`: the caller says that a person has confirmed it, and the settings believe that.
        """
        word = answer.decision.decision
        if panel.commit is None or not (answer.allows or (is_confirmed and word == "human_review")):
            return None
        use = "" if answer.approval is None else answer.approval.id
        return cls(panel.commit, panel.attestations, answer.record.id, use)

    @classmethod
    def from_preview(cls, preview: Preview) -> _Evidence:
        first, second = preview.shares or (None, None)
        return cls({"policy0": first, "policy1": second}, preview.attestations, preview.decision_id)


class _PreviewedAct:
    """The PREVIEW of one act while it is made: sealed beside its decision, or after it where a person is asked."""

    def __init__(self, gateway: Gateway, begun: Preview, surroundings: Surroundings) -> None:
        self._gateway = gateway
        self._begun = begun
        self._surroundings = surroundings
        self._sealed: Preview | None = None

    def build_entries(self, panel: PanelAnswer, decision: Decision, record_id: str) -> list[Entry]:
        """Return the PREVIEW's entry for the commit of its decision. It may be called several times."""
        # The request for approval does not exist yet, and its id belongs into the PREVIEW.
        if decision.decision == "human_review":
            return []
        preview, entry = self._build(panel, decision, record_id)
        self._sealed = preview
        return [entry]

    def finish(self, panel: PanelAnswer, answer: Answer) -> Preview:
        """Return the sealed PREVIEW. Where a person is asked, seal it now, with the id of the request."""
        if answer.decision.decision != "human_review":
            assert self._sealed is not None  # `ask` has sealed the decision together with it.
            return self._sealed
        preview, entry = self._build(panel, answer.decision, answer.record.id, answer)
        self._gateway.ledger.append(entry.chain, entry.draft, blobs=entry.blobs)
        return preview

    def _build(
        self, panel: PanelAnswer, decision: Decision, record_id: str, answer: Answer | None = None
    ) -> tuple[Preview, Entry]:
        gateway, asked = self._gateway, "" if answer is None or answer.request is None else answer.request.id
        expires = datetime.fromtimestamp(gateway._clock() + gateway.settings.tx_ttl, UTC).isoformat()
        if decision.decision in REFUSING_DECISIONS and panel.shares is not None:
            # Both servers allowed it, and the gate could not seal or use their word.
            words = "; ".join(decision.shown_reasons)
            panel = PanelAnswer(reason_code=POLICY_DENY, detail=words, program_id=panel.program_id)
        code = "ALLOW" if decision.decision == "human_approved" else panel.reason_code
        shares = panel.shares
        preview = replace(
            self._begun,
            reason_code=code,
            detail=panel.detail,
            program_id=panel.program_id,
            allow_pre=panel.bits.allow_pre,
            need_confirm=panel.bits.need_confirm,
            patch=panel.patch.to_dict(),
            facts_sha256=panel.facts_sha256,
            shares=None if shares is None else (shares[0].to_dict(), shares[1].to_dict()),
            expires=expires if shares is not None else "",
            approval=asked,
            decision_id=record_id,
            attestations=panel.attestations,
        )
        draft, blobs = build_preview_draft(
            preview,
            self._surroundings,
            keeps_inputs=gateway.settings.inputs == "keep",
            reasons=decision.shown_reasons,
        )
        preview = replace(preview, record_id=draft.id)
        return preview, Entry(act_chain(preview.session), draft, blobs=tuple(blobs))


def new_action_id() -> str:
    """Return a new id of an act: `a_` and 16 characters."""
    return ACTION_PREFIX + secrets.token_urlsafe(ACTION_ID_BYTES)


def new_session() -> str:
    """Return the name of a new session."""
    return clock.new_id()
