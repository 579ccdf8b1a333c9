"""The action guard: how an executor's call is announced, judged, made and recorded.

    intend   masks the call, derives its risk, and seals the intent
    begin    asks the gate, and seals the start; or the refusal, and no start
    finish   seals the end, with the masked outputs

The rules, in the order in which a call meets them:

1. The fold: the proposal is executable, no critic blocks the intent, and from `review_from` on every critic has
   approved this very intent.
2. `gate.ask` decides, and seals its decision in `gate.<trace>`, under the intent's id. A refusal is sealed as
   `tool_execution_failed` with the code `REFUSED`. Where a person must approve first and nobody waits, the intent stays
   open, and the call can be begun again later.
3. The risk is derived once more, from the effects that the decision found. Where that is worse than the intent said,
   and the critics have not approved, the call is refused.
4. The start has the key `gate-use:<gate id>`: one decision allows one start. The masked input and the state of the
   workspace are blobs in its own commit.
5. While the call runs, its process holds the lock of the trace. So nobody else gives it up.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from aver import clock
from aver.capsule.blobs import INLINE_MAX, TEXT_MEDIA, Blob
from aver.capsule.canonical import canonical_json
from aver.capsule.masking.mask import mask
from aver.capsule.model import Authority
from aver.errors import AverError, BadInput, Refused
from aver.gate.action import Action
from aver.gate.call_decisions import authorize_call
from aver.gate.decision_record import RecordedDecision
from aver.ledger import Ledger
from aver.log import debug
from aver.protocol.bounds import REPEATABLE_EFFECTS, derive_risk
from aver.protocol.events import Event
from aver.protocol.records.membership import find_operator_signer
from aver.protocol.records.trace_files import hold_run_lock
from aver.protocol.rules.step import EventRefused
from aver.protocol.rules.work import find_approval, needs_review
from aver.protocol.runner import CallDescription, ToolFailure, ToolOutputs, ToolResult
from aver.protocol.standings import IntentStanding
from aver.protocol.statements import digest_json

if TYPE_CHECKING:
    from aver.gate.ask import Answer
    from aver.gate.effects.effects import Effects
    from aver.protocol.session import ProtocolSession

GRACE = 60.0
"""Seconds beyond the time limit of a call after which others may give it up: ending and sealing it takes time."""

WORDS_MAX = 2000
"""Characters of the words about a failed call that its record keeps."""

OUTPUTS_MAX = 64
"""Most outputs of one call, as the schema says."""

_INSIDE = frozenset({"", "workspace", "temporary"})
"""Zones of paths that are no reason for a higher risk: no path, the workspace, and places for temporary files."""


class BegunCall(NamedTuple):
    """A call that was allowed: its start, and how to make it."""

    start: Event
    intent: IntentStanding
    arguments: Mapping[str, Any]
    held: ExitStack
    """Holds the lock of the trace until `finish` has sealed the end."""


class MaskedCall(NamedTuple):
    """A call as it is sealed: its arguments without secrets and long texts, and the blobs with those texts."""

    arguments: dict[str, Any]
    blobs: tuple[Blob, ...]
    has_secrets: bool


def mask_call(tool: str, arguments: Mapping[str, Any]) -> MaskedCall:
    """Mask the arguments of a call, and move long texts into blobs."""
    masked = mask({"tool": tool, "arguments": dict(arguments)})
    blobs: list[Blob] = []

    def shorten(value: Any) -> Any:
        if type(value) is str and len(data := value.encode("utf-8", "surrogatepass")) > INLINE_MAX:
            blobs.append(Blob(data, TEXT_MEDIA))
            return blobs[-1].reference
        if isinstance(value, dict):
            return {name: shorten(item) for name, item in value.items()}
        return [shorten(item) for item in value] if isinstance(value, (list, tuple)) else value

    return MaskedCall(shorten(masked.value["arguments"]), tuple(blobs), bool(masked.count))


# --- before a call


def build_action(session: ProtocolSession, agent: str, call: CallDescription, intent: str) -> Action:
    """Build the action that the gate judges. The trace is its session, and the intent its call."""
    return Action(
        type=call.type,
        tool=call.tool,
        arguments=dict(call.arguments),
        files=tuple(call.files),
        diff=call.diff,
        caller=agent,
        session=session.trace,
        workspace=session.workspace,
        call_id=intent,
    )


def find_risk(effects: Effects | None) -> str:
    """Return the class of risk of an action. An effect that is unclear or outside the workspace is at least `high`."""
    if effects is None:
        return derive_risk(None)
    outside = any(effect.where not in _INSIDE for effect in effects.effects)
    return derive_risk(sorted(effects.classes), is_unclear=bool(effects.unclear) or outside)


def sign_intent(
    session: ProtocolSession,
    agent: str,
    proposal: str,
    tool: str,
    arguments: Mapping[str, Any],
    *,
    justification: str,
    risk: str | None,
    repeatable: bool,
    retry_of: str | None,
    call: CallDescription,
    seen: int | None = None,
) -> Event:
    """Derive the risk of a call, and seal the intent to make it."""
    from aver.gate.ask import load_gate
    from aver.gate.facts.surroundings import gather_facts

    intent = clock.new_id()
    action = build_action(session, agent, call, intent)
    try:
        gate = load_gate(session.ledger.config, session.workspace, session.ledger)
        effects = gather_facts(session.ledger, action, gate, call.annotations or {})[1]
    except AverError as error:
        debug("protocol", "the effects of %s are not known: %s", tool, error.message)
        effects = None
    if repeatable and (effects is None or effects.unclear or not effects.classes <= REPEATABLE_EFFECTS):
        words = f"only calls that do nothing but {', '.join(sorted(REPEATABLE_EFFECTS))} are repeatable"
        raise EventRefused("STATE_VIOLATION", words, place="repeatable")
    masked = mask_call(tool, arguments)
    payload = {
        "tool": tool,
        "arguments": masked.arguments,
        "input_sha256": digest_json({"tool": tool, "arguments": masked.arguments}),
        "risk": {"declared": risk, "derived": find_risk(effects)},
        "justification": mask(justification).value,
        "repeatable": repeatable,
    }
    refs = {"proposal": proposal, **({"retry_of": retry_of} if retry_of else {})}
    return session.seal_event(
        agent, "tool_intent_signed", payload, refs=refs, artifacts=masked.blobs, event_id=intent, seen=seen
    )


def begin_call(
    session: ProtocolSession,
    agent: str,
    intent_id: str,
    arguments: Mapping[str, Any],
    call: CallDescription,
    *,
    wait: float | None = None,
) -> BegunCall | Event:
    """Ask the gate about an intent, and seal the start. Returns the refusal's event where there is none.

    `wait` is for how many seconds a person is waited for; None: as long as the session and the bounds say. Raises
    `EventRefused` where the trace does not admit the start, and `Refused` with `APPROVAL_PENDING` where a person must
    approve first. Then nothing is sealed in the trace.
    """
    patience = max(session.wait, session.fold.bounds.wait) if wait is None else wait
    _check_time_budget(session)
    # 1. The fold judges a start that names no decision yet, so that the gate is not asked in vain.
    with session.hold_fold() as fold:
        intent = fold.find(fold.intents, intent_id, "intent")
        masked = mask_call(intent.tool, arguments)
        if digest_json({"tool": intent.tool, "arguments": masked.arguments}) != intent.input_sha256:
            raise EventRefused("EVIDENCE_INVALID", "these are not the arguments of the intent", place="arguments")
        approval = find_approval(fold, intent)
        refs = {"intent": intent.id, **({"review": approval} if approval else {})}
        probe = Event(
            id=clock.new_id(),
            trace=session.trace,
            name=_START,
            role="executor",
            agent=agent,
            payload=_build_start(session, intent.tool, masked, WorkspaceState()),
            refs={**refs, "decision": intent.id},
        )
        fold.next_state(probe)
    # 2. The gate.
    answer = _ask_gate(session, agent, intent, call, patience)
    if not answer.allows:
        return _refuse(session, agent, intent, "; ".join(answer.reasons) or answer.decision.decision)
    # 3. The decision may have found more than the intent said.
    found = find_risk(answer.decision.effects)
    if needs_review(fold, intent, found) and approval is None:
        return _refuse(session, agent, intent, f"the gate found {found} risk, and no critic has approved the call")
    # 4. and 5.
    state = read_workspace_state(session.workspace)
    payload = _build_start(session, intent.tool, masked, state)
    blobs = [_build_input(intent.tool, masked), *masked.blobs, *([state.change] if state.change else [])]
    with ExitStack() as stack:
        stack.enter_context(hold_run_lock(session.home, session.trace))
        refs["decision"] = answer.record.id
        start = session.seal_event(agent, _START, payload, refs=refs, artifacts=blobs)
        return BegunCall(start, session.fold.intents[intent_id], arguments, stack.pop_all())


_START = "tool_execution_started"


def _check_time_budget(session: ProtocolSession) -> None:
    budget = session.fold.bounds.time_budget
    if budget is not None and clock.now() > _add_seconds(session.fold.began, budget):
        words = f"the task allows {budget} seconds, and they have passed"
        raise EventRefused("STATE_VIOLATION", words, advice="claim what is known, or abort")


def _ask_gate(
    session: ProtocolSession, agent: str, intent: IntentStanding, call: CallDescription, wait: float
) -> Answer:
    from aver.gate.ask import ask  # Not above: it loads the policy engine.

    action = build_action(session, agent, call, intent.id)
    # The operator's gate decides in its home. An executor elsewhere has a gate of its own, which seals by the key that
    # the trace binds: a decision by another key would allow nothing here.
    ledger = session.ledger
    if find_operator_signer(session) is None:
        signer = session.find_signer(agent)
        ledger = Ledger(ledger.store, ledger.keys, tenant=ledger.tenant, signer=signer, config=ledger.config)
    answer = ask(ledger, action, annotations=call.annotations, declared=call.declared, wait=wait)
    if not answer.allows and answer.request is not None and answer.outcome is None and not answer.trouble:
        words = f"a person must approve the call of {intent.tool} first"
        advice = f"aver approvals show {answer.request.id[:8]}; then run the intent again"
        raise Refused("APPROVAL_PENDING", words, advice=advice)
    return answer


def _refuse(session: ProtocolSession, agent: str, intent: IntentStanding, words: str) -> Event:
    payload = {"code": "REFUSED", "words": words[:WORDS_MAX], "output": {}}
    return session.seal_event(agent, "tool_execution_failed", payload, refs={"intent": intent.id})


def _build_input(tool: str, masked: MaskedCall) -> Blob:
    return Blob(canonical_json({"tool": tool, "arguments": masked.arguments}), "application/json")


def _build_start(session: ProtocolSession, tool: str, masked: MaskedCall, state: WorkspaceState) -> dict[str, Any]:
    return {
        "v": 1,
        "input": _build_input(tool, masked).reference,
        "workspace": state.to_dict(),
        "until": _add_seconds(clock.now(), session.fold.bounds.tool_seconds + GRACE),
    }


def _add_seconds(moment: str, seconds: float) -> str:
    return (datetime.fromisoformat(moment) + timedelta(seconds=seconds)).isoformat()


def require_decision(session: ProtocolSession, event: Event) -> tuple[str, Authority]:
    """Return the key of a start, and the authority of the decision that it names.

    Raises `EventRefused` unless the decision is one of this ledger's own gate, about this intent, and allows the call.
    """
    from aver.gate.own_records import OwnRecords

    try:
        record = OwnRecords(session.ledger).get(event.refs["decision"])
        if record is None:
            raise BadInput("this ledger has no such record")
        decided = RecordedDecision.from_record(record)
    except AverError as error:
        words = f"it is no decision of this ledger's gate: {error.message}"
        raise EventRefused("ROLE_POLICY_VIOLATION", words, place="decision") from error
    if decided.call_id != event.refs["intent"] or decided.action.get("session") != session.trace:
        raise EventRefused("REPLAY", "the decision is about another call", place="decision")
    if not decided.enforces:
        raise EventRefused("ROLE_POLICY_VIOLATION", f"the gate said {decided.decision}", place="decision")
    return f"gate-use:{decided.gate_id}", authorize_call(decided)


# --- after a call


def finish_call(session: ProtocolSession, agent: str, call: BegunCall, result: ToolResult | ToolFailure) -> Event:
    """Seal the end of a call with its masked outputs, and let go of the lock."""
    with call.held:
        outputs, blobs = _mask_outputs(result.outputs, session.fold.bounds.output_max)
        refs = {"intent": call.intent.id, "start": call.start.id}
        if isinstance(result, ToolResult):
            most = session.fold.bounds.output_max
            longer = [name for name, (data, _) in result.outputs.items() if len(data) > most]
            cut = [name for name in dict.fromkeys((*result.cut, *longer)) if name in outputs]
            payload = {"exit_code": result.exit_code, "output": outputs, "cut": cut}
            return session.seal_event(agent, "tool_execution_completed", payload, refs=refs, artifacts=blobs)
        words = (result.words or result.code)[:WORDS_MAX]
        failed = {"code": result.code, "words": words, "output": outputs}
        return session.seal_event(agent, "tool_execution_failed", failed, refs=refs, artifacts=blobs)


def _mask_outputs(outputs: ToolOutputs, most: int) -> tuple[dict[str, Any], list[Blob]]:
    if len(outputs) > OUTPUTS_MAX:
        raise BadInput(f"a call has at most {OUTPUTS_MAX} outputs")
    named = {name: Blob(mask_bytes(data[:most]), media) for name, (data, media) in outputs.items()}
    return {name: blob.reference for name, blob in named.items()}, list(named.values())


def mask_bytes(data: bytes) -> bytes:
    """Mask secrets in the bytes of an artifact, if they are text. Other bytes stay as they are."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return data
    masked = mask(text)
    return str(masked.value).encode("utf-8") if masked.count else data


# --- the workspace


class WorkspaceState(NamedTuple):
    """The commit of a workspace, and the change since; both None where it is in no git repository."""

    revision: str | None = None
    change: Blob | None = None
    """The masked change; None where there is none."""

    def to_dict(self) -> dict[str, Any]:
        return {"revision": self.revision, "change": None if self.change is None else self.change.reference}


def read_workspace_state(workspace: str) -> WorkspaceState:
    """Read the state of a workspace. One that is in no repository, or that git cannot read, has none."""
    from aver.gate.risk.history.git import uncommitted_change  # Not above: it starts processes.

    try:
        revision, change = uncommitted_change(workspace)
    except AverError as error:
        debug("protocol", "the state of %s is not known: %s", workspace, error.message)
        return WorkspaceState()
    text = str(mask(change).value)
    return WorkspaceState(revision, Blob(text.encode("utf-8", "surrogatepass"), "text/x-diff") if text else None)
