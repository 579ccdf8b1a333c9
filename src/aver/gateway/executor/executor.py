"""The executor: the only part that causes effects. It acts once, and only on evidence that it has checked itself.

For each COMMIT it makes the checks of `aver.gateway.proof.predicate`, in that order. Then:

1. mark   it appends `act.commit` with the key `act:<action_id>`. The ledger takes each key once, in any process and for
          good. So a second COMMIT of the same act is `REPLAY_DENY`.
2. act    it applies the patch to the inputs itself, and carries the effect out.
3. tell   it appends `act.outcome` with the key `outcome:<action_id>`, and answers.

Where a gateway in the same process asks for PREVIEW and COMMIT at once, the checks come before the PREVIEW is sealed
(`prepare_commit`). Decision, PREVIEW and mark are then one durable commit: all of them, or none. Steps 2 and 3 follow.

If the executor dies between the mark and the outcome, nobody knows whether the effect happened. The next executor on
this machine closes the act as `OUTCOME_UNKNOWN` and does not try again. To know which executors have died, each holds
the lock on a file of its own, as long as it lives.

The same holds for an act that a living executor leaves open: nobody knows whether its mark was kept, or no record can
hold its outcome. Such an executor keeps its file when it ends.

An outcome that the ledger cannot take, because its disk is full, is kept and sealed with the next act.

A refused COMMIT leaves an `act.outcome` without a key, and burns nothing.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

from aver.capsule.model import Capsule
from aver.capsule.sealed import Sealed
from aver.errors import AverError, BadInput, Exists, IntegrityError, NotFound, OutcomeUnknown, Refused, Unavailable
from aver.gate.decision_record import RecordedDecision
from aver.gate.own_records import OwnRecords, keep_sealed
from aver.gateway.act_records import (
    TX_PREFIX,
    ActReport,
    CommitBasis,
    IngressNote,
    Preview,
    Surroundings,
    act_chain,
    build_commit_draft,
    build_outcome_draft,
    find_mediation_change,
    mark_key,
    outcome_key,
    read_preview,
)
from aver.gateway.codes import (
    ALLOW,
    ALLOW_INSECURE,
    BAD_COMMIT_PROOF,
    CAPSULE_REQUIRED,
    REPLAY_DENY,
    REQUIRE_CONFIRM,
    build_envelope,
)
from aver.gateway.executor.commit_order import CommitOrder
from aver.gateway.executor.confirmation import Confirmation, check_confirmation
from aver.gateway.executor.decision_basis import DecisionBasis, find_decision_problem
from aver.gateway.executor.executor_life import ExecutorLife
from aver.gateway.proof.patch import NOOP, SanitizePatch, apply_patch
from aver.gateway.proof.predicate import EvidenceTrust, KnownCommit, judge_commit
from aver.gateway.request import BoundRequest
from aver.gateway.settings import GatewaySettings
from aver.keys.statement import Statement
from aver.ledger import Entry, Ledger
from aver.log import debug

EXECUTOR_UNAVAILABLE = "EXECUTOR_UNAVAILABLE"
EFFECT_FAILED = "EFFECT_FAILED"
OUTCOME_UNKNOWN = "OUTCOME_UNKNOWN"
TX_INVALID = "TX_INVALID"

_LOG = logging.getLogger("aver.gateway")


class EffectOrder(NamedTuple):
    """An effect to carry out, after all checks."""

    request: BoundRequest
    inputs: Mapping[str, Any]
    """The inputs that go out, after the patch."""
    preview: Preview
    workspace: str
    """The workspace that the decision was about."""
    action_id: str


class EffectDone(NamedTuple):
    """The result of an effect: words, and the data for the caller and for the record."""

    summary: str
    data: Mapping[str, Any]
    recorded: Mapping[str, Any] | None = None
    """The data for the record, where it is not the same: the content of a file is not copied into the ledger."""


class ActEffect(Protocol):
    """Carries out one intent. Raises `Refused` with a code, or any `AverError`, where it cannot."""

    def __call__(self, order: EffectOrder) -> EffectDone: ...


class PreparedCommit(NamedTuple):
    """A COMMIT that has passed all checks: the effect waits for its mark."""

    executor: Executor
    effect: ActEffect
    order: EffectOrder
    sent_sha256: str
    """The digest of the inputs that go out."""
    surroundings: Surroundings
    mark: Entry
    """The `act.commit`, with the key that the ledger takes once."""

    @property
    def mark_id(self) -> str:
        """The id of the mark."""
        draft = self.mark.draft
        return draft.id if isinstance(draft, Capsule) else str(draft["id"])

    def withdraw(self) -> None:
        """Tell the executor that the mark is not in the ledger, and never will be."""
        self.executor.forget_mark(self)

    def carry_out(self) -> dict[str, Any]:
        """Cause the effect, and record its outcome. The mark must be durable. Returns the envelope, as `execute`."""
        try:
            return self.executor.act(self)
        except AverError as error:
            return _answer_error(self.order.action_id, error)


class UnsealedOutcome(NamedTuple):
    """The outcome of an act that the ledger could not take."""

    action_id: str
    chain: str
    draft: Capsule


class Executor:
    """Carries out acts of one ledger. `close` it, or use it as a context, so that its lock file goes."""

    def __init__(
        self,
        ledger: Ledger,
        effects: Mapping[str, ActEffect],
        *,
        trust: Callable[[], EvidenceTrust],
        program_id: Callable[[], str],
        settings: GatewaySettings,
        deployment: Any = "embedded",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._ledger = ledger
        self._effects = effects
        self._trust = trust
        self._program_id = program_id
        self._settings = settings
        self._deployment = deployment
        self._clock = clock
        self._life = ExecutorLife(ledger)
        self._unsealed: dict[str, UnsealedOutcome] = {}
        """Outcomes that the ledger could not take, by the ids of their marks."""
        self._open_marks: set[str] = set()
        """The ids of marks that may be in the ledger without an outcome."""
        if settings.is_insecure:
            # Without any handler, Python prints a warning on standard error: also where Aver is used as a library.
            _LOG.warning("EXECUTOR_INSECURE_ALLOW is set: the executor acts without evidence")

    def __enter__(self) -> Executor:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End this executor. The next one closes the acts that this one leaves open."""
        self._seal_left()
        self._life.end(is_done=not self._open_marks)

    def forget_mark(self, commit: PreparedCommit) -> None:
        """Note that the mark of a COMMIT is not in the ledger, or has its outcome."""
        self._open_marks.discard(commit.mark_id)

    def recover(self) -> int:
        """Close the acts that executors on this machine left without an outcome when they died. Returns how many."""
        closed = 0
        for dead in self._life.find_dead():
            closed += sum(self._close_act(record) for record in dead.open_marks(self._ledger))
            dead.forget()
        return closed

    def _close_act(self, mark: Sealed) -> bool:
        """Record that the outcome of an act is not known, unless it has one."""
        result = mark.to_dict()["outcome"]["result"]
        try:
            preview = self._load_preview(OwnRecords(self._ledger), str(result["tx_id"]), str(result["action_id"]))
        except (BadInput, IntegrityError, NotFound, Refused) as error:
            # A damaged record must not keep every later executor from starting. The verdict reports the open act.
            debug("gateway", "cannot close the act %s: %s", result["action_id"], error.message)
            return False
        report = ActReport(OUTCOME_UNKNOWN, "the executor ended between the mark and the outcome")
        surroundings = Surroundings(IngressNote("recovery"), self._deployment, self._settings.is_insecure)
        draft = build_outcome_draft(preview, surroundings, report, parent=mark.id, sent=None)
        try:
            self._ledger.append(act_chain(preview.session), draft, key=outcome_key(preview.action_id))
        except Exists:
            return False
        debug("gateway", "closed the act %s, whose executor has died", preview.action_id)
        return True

    def execute(self, order: CommitOrder) -> dict[str, Any]:
        """Carry out a COMMIT, or refuse it. Returns the envelope; raises only where a defect of Aver is at work."""
        try:
            self._seal_left()
            return self._execute(order)
        except AverError as error:
            return _answer_error(order.action_id, error)

    def _execute(self, order: CommitOrder) -> dict[str, Any]:
        request = _bind_request(order)
        own = OwnRecords(self._ledger)
        preview = self._load_preview(own, order.tx_id, order.action_id)
        try:
            commit = self._prepare(
                order,
                request,
                preview,
                has_mark=lambda: self._ledger.get(mark_key(order.action_id)) is not None,
                load_decision=lambda: self._load_decision(own, order.decision),
            )
        except (_Rejected, Refused) as error:
            refusal = error if isinstance(error, _Rejected) else _Rejected(error.code, "", str(error))
            return self._refuse(preview, self._describe_surroundings(order), refusal)
        # 1. Mark. From here on the act cannot happen again.
        try:
            mark = self._ledger.append(commit.mark.chain, commit.mark.draft, key=commit.mark.key)
        except Exists:
            commit.withdraw()
            return self._refuse(
                preview, commit.surroundings, _Rejected(REPLAY_DENY, "", "this act was carried out before")
            )
        except AverError as error:
            if not isinstance(error, OutcomeUnknown):
                commit.withdraw()
            raise
        keep_sealed(self._ledger, (mark,))  # The session's next decision reads it.
        return commit.carry_out()

    def prepare_commit(self, order: CommitOrder, preview: Preview, decision: Capsule) -> PreparedCommit | None:
        """Make all checks of a COMMIT whose decision and PREVIEW are not sealed yet; None if one of them fails.

        For a gateway in the same process, which asks for PREVIEW and COMMIT at once. It seals the decision, the PREVIEW
        and the mark in one durable commit, all or none, and then calls `carry_out` of the result, or `withdraw` where
        that commit kept nothing. `preview` and the draft of the decision must be those of that commit. If the result is
        None, the gateway seals the first two alone and calls `execute`, which makes the same checks and records the
        refusal.
        """
        try:
            self._seal_left()
            # Whether the act was carried out before is not looked up: the ledger refuses the mark's key then.
            return self._prepare(
                order,
                _bind_request(order),
                preview,
                has_mark=lambda: False,
                load_decision=lambda: DecisionBasis.from_draft(decision),
            )
        except (AverError, _Rejected) as error:
            debug("gateway", "the COMMIT of %s is not sealed with its PREVIEW: %s", order.action_id, error)
            return None

    def _prepare(
        self,
        order: CommitOrder,
        request: BoundRequest,
        preview: Preview,
        *,
        has_mark: Callable[[], bool],
        load_decision: Callable[[], DecisionBasis],
    ) -> PreparedCommit:
        """Make all checks of a COMMIT, and build its mark. Raises `_Rejected` or `Refused`; nothing is sealed yet."""
        self._check_mediation(order, preview)
        basis, patch = self._accept(order, request, preview, seen=has_mark())
        effect = self._effects.get(request.intent_id)
        if effect is None:
            raise Refused(EXECUTOR_UNAVAILABLE, f"this executor cannot carry out {request.intent_id}")
        decision = load_decision()
        words = find_decision_problem(decision, basis, request, patch, confirm=self._settings.confirm)
        if words and not self._settings.is_insecure:
            raise Refused("POLICY_DENY", words, advice="ask for a new PREVIEW")
        # Applied before the mark: a patch that cannot be applied must not burn the act.
        sent = apply_patch(patch, request.intent_id, request.inputs)
        surroundings = self._describe_surroundings(order)
        self._life.begin()
        draft = build_commit_draft(basis, surroundings, self._life.describe(), patch.to_dict())
        mark = Entry(act_chain(request.session), draft, key=mark_key(order.action_id))
        effect_order = EffectOrder(request, sent.inputs, preview, decision.workspace, order.action_id)
        commit = PreparedCommit(self, effect, effect_order, sent.sha256, surroundings, mark)
        # Before anybody seals it: whatever interrupts that must not hide the mark from the next executor.
        self._open_marks.add(commit.mark_id)
        return commit

    def _describe_surroundings(self, order: CommitOrder) -> Surroundings:
        return Surroundings(order.ingress, self._deployment, self._settings.is_insecure, order.mediation)

    def _check_mediation(self, order: CommitOrder, preview: Preview) -> None:
        """Refuse an order without verified confinement where the settings want one, or its PREVIEW differs in that."""
        if self._settings.require_capsule and order.mediation != "verified":
            raise _Rejected(CAPSULE_REQUIRED, "", "the agent does not act in a verified confinement")
        if words := find_mediation_change(preview.mediation, order.mediation):
            raise _Rejected(CAPSULE_REQUIRED, "", words)

    def act(self, commit: PreparedCommit) -> dict[str, Any]:
        """Steps 2 and 3 of a COMMIT whose mark is durable: cause the effect, and record what became of it."""
        order, surroundings, sent_sha256 = commit.order, commit.surroundings, commit.sent_sha256
        began, data, summary = time.monotonic(), dict[str, Any](), ""
        try:
            done = commit.effect(order)
            code = ALLOW_INSECURE if surroundings.is_insecure else ALLOW
            data, summary = dict(done.data), done.summary
            result = dict(done.data if done.recorded is None else done.recorded)
            report = ActReport(code, "", sent_sha256, result)
        except Refused as refusal:
            report = ActReport(refusal.code, str(refusal), sent_sha256)
            if refusal.code == OUTCOME_UNKNOWN:  # As after a crash: nobody can say what became of the effect.
                report = report._replace(sent_sha256="")
        except Exception as error:  # noqa: BLE001 - the mark is there: whatever happened must be recorded
            words = str(error) if isinstance(error, AverError) else f"{type(error).__name__}: {error}"
            report = ActReport(EFFECT_FAILED, words, sent_sha256)
        report = report._replace(duration_ms=int((time.monotonic() - began) * 1000))
        told = None if report.reason_code == OUTCOME_UNKNOWN else order.inputs
        draft = build_outcome_draft(order.preview, surroundings, report, parent=commit.mark_id, sent=told)
        known = {"tx_id": order.preview.tx_id, "action_id": order.action_id, "request_sha256": order.request.sha256}
        chain = act_chain(order.request.session)
        try:
            outcome = self._ledger.append(chain, draft, key=outcome_key(order.action_id))
        except AverError as error:
            if isinstance(error, Exists):
                self.forget_mark(commit)
            else:
                self._unsealed[commit.mark_id] = UnsealedOutcome(order.action_id, chain, draft)
            words = (
                f"the effect is done, and its outcome could not be sealed: {error.message}"
                if report.is_done
                else (f"{report.reason_code}, which could not be sealed: {error.message}")
            )
            return build_envelope(EXECUTOR_UNAVAILABLE, words, data=known)
        self.forget_mark(commit)
        keep_sealed(self._ledger, (outcome,))  # The session's next decision reads it.
        return build_envelope(report.reason_code, summary or report.detail, data={**known, **data})

    def _seal_left(self) -> None:
        """Seal the outcomes that the ledger could not take before, as far as it takes them now."""
        for mark_id, (action_id, chain, draft) in list(self._unsealed.items()):
            with suppress(Exists):  # Another thread was first, or the failed commit has kept it.
                try:
                    self._ledger.append(chain, draft, key=outcome_key(action_id))
                except Unavailable as error:
                    debug("gateway", "the outcome of %s is still not sealed: %s", action_id, error.message)
                    return
            self._unsealed.pop(mark_id, None)
            self._open_marks.discard(mark_id)

    def _accept(
        self, order: CommitOrder, request: BoundRequest, preview: Preview, *, seen: bool
    ) -> tuple[CommitBasis, SanitizePatch]:
        """Check the evidence. Returns the basis of the mark and the patch to apply, or raises `_Rejected`."""
        patch = NOOP if preview.patch is None else SanitizePatch.from_dict(preview.patch)
        if self._settings.is_insecure:
            if seen:
                raise _Rejected(REPLAY_DENY, "", "this act was carried out before")
            return CommitBasis(preview, order.commit, decision_id=order.decision), patch
        confirmation, problem = self._confirm(order, request)
        statements = _read_statements(order.attestations)
        acceptance = judge_commit(
            order.commit,
            statements or order.attestations or None,
            KnownCommit(
                action_id=order.action_id,
                request_sha256=request.sha256,
                program_id=self._program_id(),
                now=self._clock(),
                replay_seen=seen,
                confirmed=confirmation is not None or (self._settings.confirm == "flag" and order.user_confirm),
                intent_id=request.intent_id,
                patch=patch,
            ),
            self._trust(),
        )
        # Whatever is wrong with an approval is told in its turn: evidence that does not hold comes first.
        if problem and acceptance.reason_code in (ALLOW, REQUIRE_CONFIRM):
            raise _Rejected(REQUIRE_CONFIRM, "", problem)
        if not acceptance.accepted:
            raise _Rejected(acceptance.reason_code, acceptance.detail, acceptance.words)
        if preview.request_sha256 != request.sha256:
            raise _Rejected(BAD_COMMIT_PROOF, "bad_request_sha256", "the PREVIEW was of another request")
        return (
            CommitBasis(
                preview,
                order.commit,
                attestations=statements,
                approvals=() if confirmation is None else confirmation.statements,
                approval_use="" if confirmation is None else confirmation.use_id,
                approver="" if confirmation is None else confirmation.approver,
                decision_id=order.decision,
                mac_ttl=self._settings.mac_ttl,
            ),
            patch,
        )

    def _confirm(self, order: CommitOrder, request: BoundRequest) -> tuple[Confirmation | None, str]:
        """Return a person's confirmation, or words on why there is none. Both are empty where none is claimed."""
        if not order.approval:
            return None, ""
        try:
            return check_confirmation(self._ledger, order.approval, request, order.action_id), ""
        except Refused as refusal:
            return None, str(refusal)

    def _load_preview(self, own: OwnRecords, tx_id: str, action_id: str) -> Preview:
        """Load the PREVIEW of a tx, verified and sealed by this ledger's own ring."""
        record = own.get(tx_id.removeprefix(TX_PREFIX)) if tx_id.startswith(TX_PREFIX) else None
        preview = None if record is None else read_preview(record, self._ledger.blob, needs_evidence=False)
        if preview is None or preview.tx_id != tx_id:
            raise Refused(TX_INVALID, "no PREVIEW has this tx_id")
        if preview.action_id != action_id:
            raise Refused(TX_INVALID, "the PREVIEW is of another act")
        return preview

    def _load_decision(self, own: OwnRecords, decision_id: str) -> DecisionBasis:
        """Load the gate's decision that the evidence belongs to, verified and sealed by this ledger's own ring."""
        record = own.get(decision_id) if decision_id else None
        if record is None:
            raise Refused("MISSING_EVIDENCE", "the gate's decision about this act is not in the ledger")
        return DecisionBasis.from_record(RecordedDecision.from_record(record, record.content))

    def _refuse(self, preview: Preview, surroundings: Surroundings, rejected: _Rejected) -> dict[str, Any]:
        """Record a refused COMMIT. It burns nothing: the record has no key."""
        debug("gateway", "refused %s: %s %s", preview.action_id, rejected.code, rejected.detail)
        detail = f"{rejected.detail}: {rejected.words}".removeprefix(": ")
        draft = build_outcome_draft(
            preview, surroundings, ActReport(rejected.code, detail), parent=preview.record_id, sent=None
        )
        self._ledger.append(act_chain(preview.session), draft)
        data = {"tx_id": preview.tx_id, "action_id": preview.action_id, "request_sha256": preview.request_sha256}
        if rejected.detail:
            data["detail"] = rejected.detail
        return build_envelope(rejected.code, rejected.words, data=data)


def _answer_error(action_id: str, error: AverError) -> dict[str, Any]:
    """Return the envelope for an error that left no record: a refusal with its code, or the ledger's trouble."""
    debug("gateway", "cannot carry out %s: %s", action_id, error.message)
    code = error.code if isinstance(error, Refused) else EXECUTOR_UNAVAILABLE
    return build_envelope(code, str(error), data={"action_id": action_id})


def _bind_request(order: CommitOrder) -> BoundRequest:
    """Bind the inputs that were received. The executor computes the request's hash itself."""
    return BoundRequest.bind(
        order.intent_id,
        caller=order.caller,
        session=order.session,
        inputs=order.inputs,
        external_principal=order.external_principal,
        delegation_jti=order.delegation_jti,
    )


def _read_statements(attestations: tuple[Any, ...]) -> tuple[Statement, ...]:
    """Read the statements of an order, each once; none if one cannot be read: the predicate says which."""
    try:
        return tuple(item if isinstance(item, Statement) else Statement.from_dict(item) for item in attestations)
    except AverError:
        return ()


class _Rejected(Exception):
    """A COMMIT that is refused: the code, the detail and the words of the answer."""

    def __init__(self, code: str, detail: str, words: str) -> None:
        super().__init__(words)
        self.code = code
        self.detail = detail
        self.words = words
