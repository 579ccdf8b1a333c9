"""The one way to ask whether something may happen: for hooks, the runtime, MCP and the command line.

    answer = aver.ask(ledger, action)
    if answer.allows:
        ...                                     # now, and only this

`ask` does five things:

    1. read the settings, the rules in force and the learned state; seal what changed of them since the last decision
    2. gather the facts: the session's past, where paths lead, what the action does
    3. decide. Where a person must approve, and has approved the same action before: use that approval, and decide anew
    4. seal the decision, before the caller gets it
    5. where a person must approve: open a request, or find the one for the same action; with `wait`, wait for the
       answer, use it, and decide and seal once more

A caller may bring its own `decide`, which asks others, and records that are sealed in one commit with the decision
(`beside`). All else is the same for every caller.

An action that cannot be judged is refused, and the refusal is sealed: rules that do not load, a damaged past. Where the
decision cannot be sealed, `ask` raises, and the caller must not go on.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from aver import clock, log
from aver.capsule.sealed import Sealed
from aver.config import Config
from aver.errors import AverError, Exists, HeadMoved, InvalidCapsule, Refused
from aver.fast_dataclass import NamedTuple, dataclass
from aver.gate.action import Action, Facts
from aver.gate.call_decisions import gate_id_for, next_gate_id
from aver.gate.changes import seal_change
from aver.gate.decide import Decider, Gate, build_refusal, decide
from aver.gate.decision import Decision
from aver.gate.decision_record import CallerAnswer, RecordedDecision, decision_chain, decision_key, seal_decision
from aver.gate.effects.large_action import bound_action
from aver.gate.facts.approved_code import CHANGED_CODE, has_same_code
from aver.gate.facts.surroundings import KnownFacts, gather_facts
from aver.gate.own_records import OwnRecords
from aver.gate.own_tools import add_code_declaration
from aver.gate.policy.bundle import ALLOWED_FILE, load_policy_bundle
from aver.gate.risk.history.fixes import load_recent_fixes
from aver.gate.risk.state import find_workspace_root, load_state
from aver.gate.settings import GateMode, read_gate_settings
from aver.ledger import Ledger

if TYPE_CHECKING:
    from aver.gate.approvals import ApprovalRequest, WaitOutcome
    from aver.gate.decision_record import Beside, BesideDraft
    from aver.gate.effects.effects import Effects

ATTEMPTS_MAX = 100
"""How often a decision is made anew because another decision of its session was sealed first."""

PROMPT_REASONS_MAX = 2
"""Reasons that a prompt names. The first ones are those of the rules."""

ApprovalUse = Literal["use", "find"]
"""Whether `ask` uses an approval that it finds. `find` leaves that to a later call for the same action."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to `aver.ask`: the decision, its record, and what became of asking a person."""

    decision: Decision
    record: Sealed
    """The sealed record of the decision."""
    call_id: str
    """The call that was asked about: `Action.call_id`, or the id that `ask` made."""
    request: ApprovalRequest | None = None
    """The request for approval, where a person must approve."""
    approval: Sealed | None = None
    """The record by which a person's approval was used; None where none was."""
    outcome: WaitOutcome | None = None
    """How waiting for the person ended; None where Aver did not wait."""
    trouble: str = ""
    """Why no person could be asked."""

    @property
    def allows(self) -> bool:
        """Whether the action may happen now."""
        return self.decision.allows

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why, in words that a person or an agent can act on."""
        more = [self.trouble] if self.trouble else []
        if self.outcome is not None and not self.outcome.allows:
            more.append(self.outcome.reason)
        elif self.request is not None and not self.allows:
            more.append(f"a human must approve it: aver approvals show {self.request.id[:8]}")
        return (*self.decision.shown_reasons, *more)

    @property
    def prompt(self) -> str:
        """One sentence for a person who can approve with a click: what it does, and why Aver asks.

        How to enrol an approver, or where the request is, does not help that person. `reasons` has both.
        """
        return "; ".join(self.decision.shown_reasons[:PROMPT_REASONS_MAX])


def ask(
    ledger: Ledger,
    action: Action,
    *,
    gate: Gate | None = None,
    annotations: Mapping[str, Any] | None = None,
    declared: Iterable[str] | None = None,
    wait: float = 0.0,
    mode: GateMode = "enforce",
    answer_with: Callable[[Decision], CallerAnswer | None] | None = None,
    decide: Decider = decide,
    beside: Beside | None = None,
    approvals: ApprovalUse = "use",
    meaning: Mapping[str, Any] | None = None,
    beside_draft: BesideDraft | None = None,
) -> Answer:
    """Decide whether an action may happen, and seal the decision before this returns.

    `gate` replaces the rules and settings in force. `annotations` are those of an MCP tool. `declared` are the effects
    that the caller's own code declares for its tool (`aver.tool`); the user's settings win. `wait` is for how many
    seconds to wait for a person, if one must approve. With the mode `observe` the caller holds nothing back, whatever
    is decided: the record says so, and no person is asked. `answer_with` gives the answer of a hook to a decision, for
    the record. `decide` is who decides: it gets what `aver.gate.decide.decide` gets. `beside` gets a decision and the
    id of its record, and returns the records that are sealed in the same commit; both may be called several times,
    because another decision of the session may come first. With `approvals` as `find`, an approval is looked for, or
    asked for, and not used: for a caller that acts later, if at all. `meaning` is what a call means, as the caller has
    found it by `aver.gate.origins`. `beside_draft` takes the place of `beside`, for a caller that compares the draft of
    the decision with the records that it adds. Raises where the decision cannot be sealed: `Unavailable`,
    `IntegrityError` or another `AverError`. The action must not happen then.
    """
    action = bound_action(action if action.call_id else replace(action, call_id=clock.new_id()))
    # 1. Read what to decide by.
    if gate is None:
        with log.log_time("gate", "settings, rules and state read"):
            gate = load_gate(ledger.config, action.workspace, ledger)
        with log.log_time("gate", "changes looked for"):
            seal_change(ledger, gate)
    if declared is not None:
        gate = replace(gate, tools=add_code_declaration(gate.tools, action.tool, declared))
    if beside is not None:
        beside_draft = lambda decision, draft: beside(decision, draft.id)  # noqa: E731 - one line says it
    options = _AskOptions(
        annotations or {}, mode, answer_with or (lambda decision: None), decide, beside_draft, approvals, meaning
    )
    answer, known, basis = _decide_and_seal(ledger, action, gate, options)
    if answer.decision.decision != "human_review" or mode == "observe":
        return answer
    answer, approval = _open_or_use_approval(ledger, action, answer, known, basis, wait, approvals)
    if approval is None:
        return answer
    decided, _, _ = _decide_and_seal(ledger, action, gate, options, approval)
    return replace(decided, request=answer.request, outcome=answer.outcome)


class _AskOptions(NamedTuple):
    """The inputs that the caller of `ask` brings along besides the action."""

    annotations: Mapping[str, Any]
    mode: GateMode
    answer_with: Callable[[Decision], CallerAnswer | None]
    decide: Decider
    beside: BesideDraft | None
    approvals: ApprovalUse
    meaning: Mapping[str, Any] | None


class _KnownRequest(NamedTuple):
    """The request for the same action that an approval may come from; None where there is none."""

    request: ApprovalRequest | None
    is_approved: bool = False


class _UsedApproval(NamedTuple):
    """An approval that was used: its record, and the decision by which the person was asked, as its record has it."""

    record: Sealed
    asked: Mapping[str, Any]


def _decide_and_seal(
    ledger: Ledger, action: Action, gate: Gate, options: _AskOptions, approval: _UsedApproval | None = None
) -> tuple[Answer, _KnownRequest | None, KnownFacts]:
    """Decide, and seal the decision: steps 2 to 4. `approval` is the person's approval that was used.

    Another decision of the session may be sealed in the meantime. It counts for this one, so Aver decides anew. Returns
    the request for the same action, too, where a person must approve and Aver has looked for one, and the facts.
    """
    gate_id = gate_id_for(action.call_id, 0)
    known: _KnownRequest | None = None
    for _ in range(ATTEMPTS_MAX):
        worse: str | None = None
        basis, head = gate, ledger.head(decision_chain(action.session))
        # 2. Gather the facts. A past that is damaged refuses the action, as a gate without rules does.
        try:
            with log.log_time("gate", "facts gathered"):
                facts, effects = gather_facts(
                    ledger, action, gate, options.annotations, head=head, meaning=options.meaning
                )
            if approval is not None and has_same_code(approval.asked.get("facts") or {}, KnownFacts(facts, effects)):
                approver = approval.record.to_dict()["authority"]["approver"] or ""
                facts = replace(facts, approved=True, approved_by=approver)
        except AverError as error:
            facts, effects, basis = Facts(now=clock.now()), None, Gate(bundle=None, trouble=error.message)
        # 3. Decide.
        with log.log_time("gate", "decided"):
            decision = _call_decider(options.decide, action, facts, basis, gate_id, effects)
            if decision.decision == "human_approved" and approval is not None:
                worse = _find_worse(approval.asked, decision, facts)
            if worse is not None:
                facts = replace(facts, approved=False, approved_by="")
                decision = _call_decider(options.decide, action, facts, basis, gate_id, effects)
        if decision.decision == "human_review" and options.mode != "observe" and approval is None and known is None:
            known = _find_known_request(ledger, action, decision, KnownFacts(facts, effects))
            if known is not None and options.approvals == "use":
                approval = _use_known_approval(ledger, action, known)
            if approval is not None:
                continue  # A person has approved the same before: decide with that fact.
        # 4. Seal the decision. `after` makes this fail if the session has got another decision since step 2. Actions
        # without a session share a chain and have no past, so they may be sealed in any order.
        after = head if action.session else None
        try:
            with log.log_time("gate", "sealed"):
                record = seal_decision(
                    ledger,
                    action,
                    facts,
                    basis,
                    decision,
                    after=after,
                    approval=None if approval is None else approval.record,
                    mode=options.mode,
                    answer=options.answer_with(decision),
                    beside=options.beside,
                )
        except HeadMoved as error:
            overtaken: AverError = error
            continue
        except Exists as error:  # An earlier decision about the same call has this id.
            if error.key != decision_key(gate_id):
                raise  # Another id of the decision would not help a record of the caller.
            overtaken = error
            gate_id = next_gate_id(ledger, action.call_id)
            log.debug("gate", "decided before: call %s has a decision; this one gets another id", action.call_id)
            continue
        except InvalidCapsule as error:
            # No record can hold the action. Refuse it, and seal the refusal with as much of the action as fits.
            basis, reason = gate, f"the action cannot be sealed: {error.message}"
            decision = build_refusal("", basis, clock.new_id(), reason)
            said, now = options.answer_with(decision), Facts(now=clock.now())
            record = seal_decision(
                ledger, action, now, basis, decision, mode=options.mode, answer=said, beside=options.beside
            )
        if log.is_logged("gate"):
            _log_decision(decision, record, basis)
        used = approval.record if approval is not None and decision.decision == "human_approved" else None
        request = known.request if known is not None and used is not None else None
        answer = Answer(decision=decision, record=record, call_id=action.call_id, approval=used, request=request)
        if approval is not None and used is None and decision.decision == "human_review":
            answer = replace(answer, trouble=worse or CHANGED_CODE)
        return answer, known, KnownFacts(facts, effects)
    raise overtaken


def _call_decider(
    decide: Decider, action: Action, facts: Facts, gate: Gate, gate_id: str, effects: Effects | None
) -> Decision:
    """Have someone decide. A decision that does not answer the question, or an error, becomes a refusal."""
    try:
        decision = decide(action, facts, gate, gate_id=gate_id, effects=effects)
        if decision.gate_id != gate_id or (decision.digest and decision.digest != action.digest):
            trouble = "the decision is about another action"
        elif decision.decision == "human_approved" and not facts.approved:
            trouble = "the decision says that a person has approved this, and nobody has"
        else:
            return decision
    except Exception as error:  # noqa: BLE001 - a decider that fails must not let through
        trouble = error.message if isinstance(error, AverError) else f"{type(error).__name__}: {error}"
    log.debug("gate", "refused, because no decision can be used: %s", trouble)
    try:
        digest = action.digest
    except AverError:
        digest = ""
    return build_refusal(digest, gate, gate_id, f"nobody could decide this: {trouble[:500]}")


def _log_decision(decision: Decision, record: Sealed, gate: Gate) -> None:
    """Log which rules decided, where they are, why they did, and which record holds the decision."""
    known = {} if gate.bundle is None else gate.bundle.rules
    named = [
        f"{rule} ({known[rule].file}:{known[rule].line})" if rule in known else f"{rule} (built in)"
        for rule in (() if decision.policy is None else decision.policy.rules)
    ]
    source = gate.rules_at or "the rules that Aver ships"
    log.debug("gate", "%s by %s of %s", decision.decision, ", ".join(named) or "no rule", source)
    log.debug("gate", "because: %s", "; ".join(decision.shown_reasons) or "no reason given")
    for part in () if decision.effects is None else decision.effects.unclear:
        log.debug("gate", "could not be understood: %s", part.why)
    log.debug("gate", "sealed as capsule://%s/%s, which aver show prints", record.chain, record.sequence)


def load_gate(config: Config, workspace: str, ledger: Ledger | None = None) -> Gate:
    """Return the gate for a workspace, by the settings in force. With rules that cannot be used it passes nothing.

    A `ledger` is needed where a person has pinned rules outside of `AVER_HOME`: it says who may.
    """
    try:
        settings = read_gate_settings(config)
        if settings.policy is not None:
            from aver.gate.policy.rules_source import (
                require_trusted_source,  # Not above: most homes use the starter set.
            )

            require_trusted_source(settings.policy, config, ledger)
        bundle = load_policy_bundle(settings.policy, config.home / ALLOWED_FILE)
    except AverError as error:
        return Gate(bundle=None, trouble=error.message)
    place = workspace or os.curdir
    root = find_workspace_root(place)
    fixes = load_recent_fixes(place, config.home, root=root)
    return Gate(
        bundle=bundle,
        rules_at=str(settings.policy or ""),
        state=load_state(place, config.home, root=root),
        thresholds=settings.thresholds,
        max_retries=settings.max_retries,
        caution=settings.caution,
        groups=settings.groups,
        trusted=settings.trusted,
        tools=settings.tools,
        history=fixes if fixes.times.times else None,  # Without a fix, every answer would be 0.
    )


# --- asking a human


def _find_known_request(ledger: Ledger, action: Action, decision: Decision, now: KnownFacts) -> _KnownRequest | None:
    """Find an approval of the same action that covers it, or an open request of its session.

    None where the requests cannot be read. Then the decision is sealed first, and step 5 says why.
    """
    try:
        return _look_for_request(ledger, action, decision, now)
    except AverError as error:
        log.debug("gate", "requests for approval cannot be read: %s", error.message)
        return None


def _look_for_request(ledger: Ledger, action: Action, decision: Decision, now: KnownFacts) -> _KnownRequest:
    from aver.gate.approvals import load_request_states, recent_requests
    from aver.gate.approvals.comparison import find_request_problem
    from aver.gate.approvals.request import STATEMENT_VERSION, session_scope

    # An agent that repeats a call must not open a second request for a person to look at. A request of an earlier
    # version of Aver is not taken up: its statement may have been copied, or does not cover all that was shown.
    same = []
    for request in recent_requests(ledger):
        if request.digest != decision.digest or request.statement != STATEMENT_VERSION:
            continue
        asked = _read_asked(ledger, request)
        # A person was asked about other code than the action would run now, about less, or in other words.
        if (
            has_same_code(asked.get("facts") or {}, now)
            and _find_worse(asked, decision, now.facts) is None
            and (not asked or find_request_problem(request, asked) is None)
        ):
            same.append(request)
    states = list(zip(same, load_request_states(ledger, same), strict=True))
    # An approval whose scope holds this session comes first, then an open request of this session. An action that
    # carries out one request of its session is approved for that session alone.
    own = session_scope(action.session)
    approved = [
        request
        for request, at in states
        if at.state == "approved" and at.covers(action.session) and (not action.request_sha256 or at.scope == own)
    ]
    if approved:
        return _KnownRequest(approved[-1], is_approved=True)
    waiting = [request for request, at in states if at.state == "pending" and request.scope == own]
    return _KnownRequest(waiting[-1] if waiting else None)


def _read_asked(ledger: Ledger, request: ApprovalRequest) -> Mapping[str, Any]:
    """Return the decision by which a person was asked, as its record has it; empty where a request has none."""
    record = OwnRecords(ledger).get(decision_key(request.gate_id))
    return {} if record is None else RecordedDecision.from_record(record).result


def _find_worse(asked: Mapping[str, Any], decision: Decision, facts: Facts) -> str | None:
    """Return what is worse about an action now than when a person was asked; None where nothing is."""
    from aver.gate.approvals.comparison import find_worse

    now = {
        "policy": None if decision.policy is None else {"rules": decision.policy.rules},
        "effects": None if decision.effects is None else decision.effects.classes,
        "facts": {"labels": facts.labels},
        "interval": decision.interval,
        "thresholds": decision.thresholds.to_dict(),
    }
    return find_worse(asked, now) if asked else None


def _use_known_approval(ledger: Ledger, action: Action, known: _KnownRequest) -> _UsedApproval | None:
    """Use an approval that is there already. None where there is none, or where it is not good any more."""
    from aver.gate.approvals import consume, take_up_request

    if known.request is None or not known.is_approved:
        return None
    try:
        asked = _read_asked(ledger, known.request)
        take_up_request(ledger, known.request, action)
        used = consume(ledger, known.request, action.digest, by=action.call_id, session=action.session)
        return _UsedApproval(used, asked)
    except AverError as error:  # Another caller used it first, or a person denied it after all.
        log.debug("gate", "the approval of request %s is not used: %s", known.request.id, error.message)
        return None


def _open_or_use_approval(
    ledger: Ledger,
    action: Action,
    answer: Answer,
    known: _KnownRequest | None,
    now: KnownFacts,
    wait: float,
    approvals: ApprovalUse,
) -> tuple[Answer, _UsedApproval | None]:
    """Open a request, or go on with the one that is open for the same action. This is step 5.

    `known` is the request that was found before the decision was sealed, and `now` has the facts of the decision.
    Returns the answer with the request in it, and the approval that was used; None where there is none.
    """
    from aver.gate.approvals import consume, open_request, take_up_request, wait_for_answer

    # An approval that was found before, and could not be used, may be spent by now: look again.
    if known is None or (known.is_approved and approvals == "use"):
        known = _look_for_request(ledger, action, answer.decision, now)
    try:
        if known.request is not None:
            take_up_request(ledger, known.request, action)
        request = known.request or open_request(
            ledger, action, answer.decision, now=now.facts, parent=answer.record, correlation=action.call_id
        )
    except Refused as refusal:
        advice = f" ({refusal.advice})" if refusal.advice else ""
        return replace(answer, trouble=f"{refusal.message}{advice}"), None
    if approvals == "find":
        return replace(answer, request=request), None
    outcome = wait_for_answer(ledger, request, wait)
    if not outcome.allows:
        waited = wait > 0 or outcome.state != "timeout"
        return replace(answer, request=request, outcome=outcome if waited else None), None
    try:
        asked = _read_asked(ledger, request)
        used = consume(ledger, request, action.digest, by=action.call_id, session=action.session)
    except Refused as refusal:  # Another caller used it first, or a person denied it after all.
        return replace(answer, request=request, trouble=refusal.message), None
    return replace(answer, request=request, outcome=outcome), _UsedApproval(used, asked)
