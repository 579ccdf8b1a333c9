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
begins with COMMIT. The first name without it does both. If the executor is in this process and the rules alone let the
act pass, the executor makes its checks before step 3 ends: decision, PREVIEW and mark are then sealed in one durable
commit, all or none. All state is in records, so any process of this ledger can carry out the COMMIT of a PREVIEW.

Every answer is an envelope (`aver.gateway.codes`). A refusal is recorded like everything else.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from aver.capsule.model import Capsule
from aver.errors import AverError, Exists, InvalidCapsule, Refused, Unavailable
from aver.gate.ask import Answer, ask, load_gate
from aver.gate.decision import Decision
from aver.gate.decision_record import CallerAnswer
from aver.gate.origins.judgement import ToolMeaning
from aver.gateway.act_records import (
    ActReport,
    Deployment,
    Preview,
    Surroundings,
    act_chain,
    build_outcome_draft,
    build_preview_draft,
    check_session,
    mark_key,
)
from aver.gateway.acts.answer_cover import cover_answer
from aver.gateway.acts.commit_evidence import CommitEvidence, needs_renewal
from aver.gateway.acts.kept_preview import check_visitor, find_preview
from aver.gateway.acts.pending_preview import PendingPreview, Previewed, answer_preview, begin_preview
from aver.gateway.acts.shown_act import ShownAct, new_action_id, show_act
from aver.gateway.acts.visit import Door, Visit, admit_visitor, new_session
from aver.gateway.calls.call_meaning import TOOL_INTENT, find_tool_meaning, judge_request, note_result
from aver.gateway.calls.session_origins import KnownOrigins, seal_turn
from aver.gateway.calls.upstream import ToolDefinition, Upstream
from aver.gateway.codes import BAD_REQUEST, build_envelope, load_reason_codes
from aver.gateway.effects.preconditions import Preconditions
from aver.gateway.executor.commit_order import CommitOrder
from aver.gateway.executor.executor import Executor, PreparedCommit
from aver.gateway.handles import DECLASSIFY, HandleStore
from aver.gateway.intents import ActInputs, IntentCall, read_inputs
from aver.gateway.policy_panel import PolicyPanel
from aver.gateway.policy_server import Evaluator
from aver.gateway.request import ActRequest, BoundRequest
from aver.gateway.settings import GatewaySettings
from aver.ledger import Ledger
from aver.log import debug


class Commits(Protocol):
    """The executor in this process, or the way to one elsewhere."""

    def execute(self, order: CommitOrder) -> dict[str, Any]:
        """Carry out an order, or refuse it. `Unavailable` only where the order cannot have reached the executor."""


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
            with ExitStack() as course:
                return self._act(document, door, course)
        except AverError as error:
            debug("gateway", "an act could not be answered: %s", error.message)
            return build_envelope("EXECUTOR_UNAVAILABLE", f"nothing was done: {error}")

    def _act(self, document: Any, door: Door, course: ExitStack) -> dict[str, Any]:
        """Steps 1 to 4. `course` lasts until the act is answered."""
        intent_id, caller = "", ""
        try:
            # 1. Read.
            act = ActRequest.parse(document)
            intent_id, caller = act.intent_id, act.caller
            call = act.find_intent()
            # 2. Is it allowed to ask?
            visit = admit_visitor(
                act,
                call,
                door,
                ledger=self.ledger,
                settings=self.settings,
                surroundings=self.describe_surroundings(door),
                now=self._clock(),
            )
            given = read_inputs(call, act.inputs)
            if given.tx_id is not None:
                return self._commit(call, given, visit, course)
            request = self._bind(call.intent.name, given.bound or {}, visit)
            # 3. A path that cannot be used is refused before anybody decides.
            shown = self._show(request, new_action_id())
            previewed = self._preview(request, shown, visit, course, is_committed=not call.preview_only)
        except InvalidCapsule as error:
            refusal = Refused(BAD_REQUEST, f"the act cannot be recorded: {error.message}")
            return self._refuse(refusal, intent_id, caller, door)
        except Refused as refusal:
            return self._refuse(refusal, intent_id, caller, door)
        # 4. The mark of the COMMIT was sealed with the PREVIEW, if all checks of the executor had passed before.
        if previewed.commit is not None:
            return self._finish(previewed.commit.carry_out(), request)
        if call.preview_only or previewed.evidence is None:
            return previewed.envelope
        return self._hand_over(previewed.preview, request, previewed.evidence, visit)

    def _bind(self, intent_id: str, inputs: Mapping[str, Any], visit: Visit) -> BoundRequest:
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
        return {} if definition is None else definition.hints

    def _show(self, request: BoundRequest, action_id: str) -> ShownAct:
        """Return the action that is judged, and the file that it changes as it is now. Raises `Refused`."""
        home, skills = self.ledger.config.home, self.settings.effects.skills
        return show_act(request, action_id, workspace=self.workspace, home=home, skills=skills)

    def _preview(
        self, request: BoundRequest, shown: ShownAct, visit: Visit, course: ExitStack, *, is_committed: bool
    ) -> Previewed:
        """Have both servers decide, seal it, and answer. `is_committed`: the caller asks for the COMMIT, too."""
        action_id = shown.action.call_id
        begun = begin_preview(request, shown, visit)
        panel = PolicyPanel(self._servers, request, action_id, self._preconditions.check)
        executor = self._executor

        def prepare(preview: Preview, decision: Capsule) -> PreparedCommit | None:
            assert isinstance(executor, Executor)
            evidence = CommitEvidence(panel.answer.commit, panel.answer.attestations, decision.id)
            return executor.prepare_commit(evidence.build_order(preview, request, visit), preview, decision)

        def decide(act: PendingPreview) -> Answer:
            return ask(
                self.ledger,
                shown.action,
                annotations=self._annotate(request),
                meaning=self._judge(request, action_id, course),
                decide=panel.decide,
                beside_draft=lambda decision, draft: act.build_entries(panel.answer, decision, draft),
                approvals="use" if is_committed else "find",
                answer_with=self._describe_answer,
            )

        # An executor in this process checks the COMMIT before anything is sealed, so that one durable commit has all.
        # Not for a secret: that is declassified on a person's word alone, whatever the rules say.
        is_together = is_committed and isinstance(executor, Executor) and request.intent_id != DECLASSIFY
        begin = partial(PendingPreview, begun, visit.surroundings, settings=self.settings, now=self._clock)
        act = begin(prepare=prepare if is_together else None)
        try:
            answer = decide(act)
        except Exists as error:
            if error.key != mark_key(action_id):
                raise
            act.withdraw()
            # An act of this id was carried out before. Nothing was sealed of this one: seal the PREVIEW alone, and have
            # the executor refuse the COMMIT.
            act = begin()
            answer = decide(act)
        preview = act.finish(self.ledger, panel.answer, answer)
        if act.commit is not None:
            return Previewed(preview, {}, commit=act.commit)
        evidence = CommitEvidence.collect(panel.answer, answer, is_confirmed=self._is_confirmed(visit))
        reasons = answer.reasons
        if visit.user_confirm and preview.need_confirm and self.settings.confirm != "flag":
            reasons += ('user_confirm counts only with confirm = "flag" under [gateway] in config.toml',)
        return Previewed(preview, answer_preview(preview, reasons), evidence)

    # --- COMMIT

    def _commit(self, call: IntentCall, given: ActInputs, visit: Visit, course: ExitStack) -> dict[str, Any]:
        """Commit an earlier PREVIEW. Raises `Refused` where the tx is not this caller's to commit."""
        now, tx_ttl = self._clock(), self.settings.tx_ttl
        preview = find_preview(self.ledger, str(given.tx_id), call, now=now, tx_ttl=tx_ttl)
        check_visitor(preview, visit)
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
            return self._hand_over(preview, request, CommitEvidence.from_preview(preview), visit)
        return self._renew_and_hand_over(preview, request, visit, course)

    def _needs_evidence(self, preview: Preview) -> bool:
        """Whether the shares of a PREVIEW are not enough: too old, of another program, or a person must approve."""
        if preview.need_confirm and self.settings.confirm == "approval":
            return True
        gate = load_gate(self.ledger.config, self.workspace, self.ledger)
        return needs_renewal(preview, gate, now=self._clock(), mac_ttl=self.settings.mac_ttl)

    def _renew_and_hand_over(
        self, preview: Preview, request: BoundRequest, visit: Visit, course: ExitStack
    ) -> dict[str, Any]:
        """Decide once more about the same act: for fresh shares, or to use the approval that has come meanwhile."""
        shown = self._show(request, preview.action_id)
        if shown.base != preview.base:
            return self._refuse_commit(preview, visit, "WORKSPACE_CHANGED", "the file has changed since the PREVIEW")
        panel = PolicyPanel(self._servers, request, preview.action_id, self._preconditions.check)
        answer = ask(
            self.ledger,
            shown.action,
            annotations=self._annotate(request),
            meaning=self._judge(request, preview.action_id, course),
            decide=panel.decide,
            answer_with=self._describe_answer,
        )
        evidence = CommitEvidence.collect(panel.answer, answer, is_confirmed=self._is_confirmed(visit))
        if evidence is None:
            code = panel.answer.reason_code
            return self._refuse_commit(preview, visit, code, "; ".join(answer.reasons) or panel.answer.detail)
        return self._hand_over(preview, request, evidence, visit)

    def _hand_over(
        self, preview: Preview, request: BoundRequest, evidence: CommitEvidence, visit: Visit
    ) -> dict[str, Any]:
        """Give the act to the executor, and return its answer, with handles in the place of secrets."""
        if request.intent_id == DECLASSIFY and not evidence.approval_use:
            # Also where the rules would let it pass: a secret is given out on a person's word alone.
            return self._refuse_commit(preview, visit, "DECLASSIFY_BLOCKED", "no person has approved it with a key")
        order = evidence.build_order(preview, request, visit)
        try:
            return self._finish(self._executor.execute(order), request)
        except Unavailable as error:
            # An executor raises this only where the order has not reached it: nothing can have happened.
            return self._refuse_commit(preview, visit, "EXECUTOR_UNAVAILABLE", str(error))

    def _finish(self, envelope: dict[str, Any], request: BoundRequest) -> dict[str, Any]:
        """Return the executor's answer, with handles in the place of secrets, and note what the session has read."""
        envelope = cover_answer(envelope, request, self._handles, self.workspace)
        note_result(request, self._find_tool(request), envelope, self._origins.of(request.session))
        return envelope

    def cover_secrets(self, value: Any, *, session: str, caller: str, label: str) -> Any:
        """Return a JSON value that a server gave beside the results of acts, with handles in the place of secrets."""
        return self._handles.cover(value, session=session, caller=caller, label=label)

    def _find_tool(self, request: BoundRequest) -> ToolMeaning | None:
        """Return what the tool of a request does; None where it calls none."""
        if request.intent_id != TOOL_INTENT:
            return None
        definition = self._find_definition(request)
        gate = load_gate(self.ledger.config, self.workspace, self.ledger)
        document = {} if definition is None else definition.document
        return find_tool_meaning(request.inputs, document, gate, self.settings.tools, self.workspace)

    def _find_definition(self, request: BoundRequest) -> ToolDefinition | None:
        """Return the definition of the tool that a request calls, as its server gives it."""
        upstream = self._upstreams.get(request.inputs["server"]) if request.intent_id == TOOL_INTENT else None
        return None if upstream is None else upstream.find_tool(request.inputs["tool"])

    def _judge(self, request: BoundRequest, action_id: str, course: ExitStack) -> dict[str, Any] | None:
        """Judge what a request means; None for an intent that calls no tool and says nothing."""
        memory = self._origins.of(request.session)
        course.callback(memory.end_act, action_id)
        return judge_request(request, action_id, self._find_tool(request), memory, self.ledger)

    def _describe_answer(self, decision: Decision) -> CallerAnswer | None:
        """Say for the record that an act which a person must approve is held back, and so has shown nothing.

        Where the caller's word is enough, the act may happen after this very decision.
        """
        is_held = decision.decision == "human_review" and self.settings.confirm == "approval"
        return CallerAnswer("deny") if is_held else None

    def _is_confirmed(self, visit: Visit) -> bool:
        """Whether the caller's own word counts as a person's confirmation."""
        return self.settings.confirm == "flag" and visit.user_confirm

    def _refuse_commit(self, preview: Preview, visit: Visit, code: str, detail: str) -> dict[str, Any]:
        """Record a COMMIT that does not reach the executor, and answer."""
        draft = build_outcome_draft(
            preview, visit.surroundings, ActReport(code, detail), parent=preview.record_id, sent=None
        )
        self.ledger.append(act_chain(preview.session), draft)
        data = {"tx_id": preview.tx_id, "action_id": preview.action_id, "request_sha256": preview.request_sha256}
        return build_envelope(code, detail, data=data)
