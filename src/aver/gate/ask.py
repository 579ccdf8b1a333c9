"""The one way to ask whether something may happen: for hooks, the runtime, the proxy, MCP and the command line.

    answer = judge(ledger, action)
    if answer.allows:
        ...                                     # now, and only this

`judge` finds out what the gate must know (the settings, the rules in force, what was learned here, what the session has
done so far, where paths lead), decides, and seals the decision before it answers. Where a human must approve, it opens
a request, or finds the one that was opened for the very same action; with `wait` it waits for the answer, uses it, and
seals the decision that follows. An approval that came in the meantime is used by whoever asks again.

What cannot be decided is refused and sealed: rules that do not load, a past that is damaged. What cannot be sealed
raises, and then nothing may happen either.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from aver import clock
from aver.capsule.sealed import Sealed
from aver.config import Config
from aver.errors import AverError, HeadMoved, InvalidCapsule, Refused
from aver.fast_dataclass import dataclass
from aver.gate.action import Action, Facts
from aver.gate.decide import Gate, build_refusal, decide
from aver.gate.decision import Decision
from aver.gate.decision_record import decision_chain, seal_decision
from aver.gate.effects.effects import find_effects
from aver.gate.effects.paths import POLICY_ENV, PathRoots, build_path_roots, has_glob, locate_path
from aver.gate.policy.bundle import load_policy_bundle
from aver.gate.risk.history.fixes import load_recent_fixes
from aver.gate.risk.state import load_state
from aver.gate.session import load_session_facts
from aver.gate.settings import read_gate_settings
from aver.ledger import Head, Ledger

if TYPE_CHECKING:
    from aver.gate.approvals import ApprovalRequest, WaitOutcome

__all__ = ["GateAnswer", "ask_gate", "gather_facts", "load_gate"]

ATTEMPTS_MAX = 100
"""How often a decision is made anew because others of its session were faster."""

GLOB_MATCHES_MAX = 5000
GLOB_LEVELS_MAX = 3
"""Files that a pattern may match and be looked at one by one, and directories in it that are patterns themselves."""

_ENVIRONMENT_NAMES = ("HOME", "AVER_HOME", "AVER_LEDGER")


@dataclass(frozen=True, slots=True, kw_only=True)
class GateAnswer:
    """What was decided, where it is sealed, and what a human was asked and said."""

    decision: Decision
    record: Sealed
    request: ApprovalRequest | None = None
    outcome: WaitOutcome | None = None
    """How waiting for the human ended; None where nobody waited."""
    trouble: str = ""
    """Why no human could be asked."""

    @property
    def allows(self) -> bool:
        return self.decision.allows

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why, in words that a person or an agent can act on."""
        more = [self.trouble] if self.trouble else []
        if self.outcome is not None and not self.outcome.allows:
            more.append(self.outcome.reason)
        elif self.request is not None and not self.allows:
            more.append(f"a human must approve it: aver approvals show {self.request.id[:8]}")
        return (*self.decision.reasons, *more)


def ask_gate(
    ledger: Ledger,
    action: Action,
    *,
    gate: Gate | None = None,
    annotations: Mapping[str, Any] | None = None,
    wait: float = 0.0,
) -> GateAnswer:
    """Decide whether an action may happen, durably. `wait` is for how many seconds to wait for a human, if one must
    approve; `annotations` are what an MCP tool says of itself."""
    gate = gate or load_gate(ledger.config, action.workspace)
    question = _GateInput(ledger, action, gate, annotations or {})
    answer = _decide_and_seal(question, approved=False)
    return answer if answer.decision.decision != "human_review" else _open_or_use_approval(question, answer, wait)


class _GateInput(NamedTuple):
    ledger: Ledger
    action: Action
    gate: Gate
    annotations: Mapping[str, Any]


def _decide_and_seal(question: _GateInput, *, approved: bool) -> GateAnswer:
    """Decide, and seal it. Where the session has done something in the meantime, that counts: decide anew."""
    ledger, action, gate, annotations = question
    attempts = 0
    while True:
        head = ledger.head(decision_chain(action.session))
        try:
            facts = replace(gather_facts(ledger, action, gate, annotations, head=head), approved=approved)
        except AverError as error:
            facts, gate = Facts(now=clock.now()), Gate(bundle=None, trouble=error.message)
        decision = decide(action, facts, gate)
        try:
            record = seal_decision(ledger, action, facts, gate, decision, after=head if action.session else None)
            return GateAnswer(decision=decision, record=record)
        except InvalidCapsule as error:
            return _seal_refusal(question, error)
        except HeadMoved:
            attempts += 1
            if attempts == ATTEMPTS_MAX:
                raise


def _seal_refusal(question: _GateInput, error: InvalidCapsule) -> GateAnswer:
    """Refuse an action that no record can hold, and seal that, with as much of it as fits."""
    ledger, action, gate, _ = question
    decision = build_refusal("", gate, clock.new_id(), f"the action cannot be sealed: {error.message}")
    record = seal_decision(ledger, action, Facts(now=clock.now()), gate, decision)
    return GateAnswer(decision=decision, record=record)


def load_gate(config: Config, workspace: str) -> Gate:
    """The gate for a workspace, by the settings in force. One whose rules cannot be used lets nothing through."""
    try:
        settings = read_gate_settings(config)
        bundle = load_policy_bundle(settings.policy)
    except AverError as error:
        return Gate(bundle=None, trouble=error.message)
    place = workspace or os.curdir
    return Gate(
        bundle=bundle,
        rules_at=str(settings.policy or ""),
        state=load_state(place, config.home),
        thresholds=settings.thresholds,
        max_retries=settings.max_retries,
        groups=settings.groups,
        trusted=settings.trusted,
        history=load_recent_fixes(place, config.home),
    )


def gather_facts(
    ledger: Ledger, action: Action, gate: Gate, annotations: Mapping[str, Any], *, head: Head | None = None
) -> Facts:
    """What the gate knows besides the action; of its session, what was decided up to `head`, or up to now."""
    past = load_session_facts(ledger, head or ledger.head(decision_chain(action.session)), action, clock.now())
    environment = {name: os.environ[name] for name in _ENVIRONMENT_NAMES if os.environ.get(name)}
    environment["AVER_HOME"] = str(ledger.config.home)
    if gate.rules_at:
        environment[POLICY_ENV] = gate.rules_at
    facts = replace(past, annotations=annotations, environment=environment)
    return replace(facts, links=_resolve_links(action, facts, gate))


def _resolve_links(action: Action, facts: Facts, gate: Gate) -> dict[str, str]:
    """Where the paths of an action lead, as far as that is elsewhere than they say."""
    if not os.path.isabs(action.workspace):
        return {}
    ground = build_path_roots(action.workspace, facts.environment, gate.known)
    links: dict[str, str] = {}
    found = find_effects(action, facts, trusted=gate.trusted, known=gate.known)
    for target in dict.fromkeys(effect.target for effect in found.effects):
        if not os.path.isabs(target):
            continue
        try:
            leads_to = _resolve_glob(target, ground) if has_glob(target) else _resolve_path(target, action.workspace)
        except ValueError:  # No system has a file of this name.
            continue
        if leads_to is not None and leads_to != os.path.normpath(target):
            links[target] = leads_to
    return links


def _resolve_path(path: str, workspace: str) -> str:
    """Where a path leads. What lies in the workspace is named as the workspace is, which may be a link itself."""
    leads_to, real = os.path.realpath(path), os.path.realpath(workspace)
    if leads_to == real:
        return workspace
    if Path(leads_to).is_relative_to(real):
        return os.path.join(workspace, os.path.relpath(leads_to, real))
    return leads_to


def _resolve_glob(pattern: str, ground: PathRoots) -> str | None:
    """Of the files that a pattern matches, the one that matters most; empty where there are too many to tell.

    Outside of the workspace every file matters, so there nobody looks.
    """
    import glob

    if locate_path(pattern, None, ground).where not in ("workspace", "temporary"):
        return None
    if sum(map(has_glob, pattern.split("/"))) > GLOB_LEVELS_MAX:
        return ""
    worst, found = 0, None
    for count, match in enumerate(glob.iglob(pattern)):
        if count == GLOB_MATCHES_MAX:
            return ""
        leads_to = _resolve_path(match, ground.workspace)
        place = locate_path(leads_to, None, ground)
        is_inside = place.where in ("workspace", "temporary")
        weight = 2 if not is_inside or place.classes_for("read") else 1 if place.classes else 0
        if weight > worst:
            worst, found = weight, leads_to
    return found


# --- asking a human


def _open_or_use_approval(question: _GateInput, answer: GateAnswer, wait: float) -> GateAnswer:
    """Open a request, or go on with the one that is open for this very action."""
    from aver.gate.approvals import consume, open_request, wait_for_answer

    ledger, action, _, _ = question
    known = _find_open_request(ledger, answer.decision.digest)
    asking = answer.decision if known is None else replace(answer.decision, gate_id=known.gate_id)
    try:
        request = open_request(ledger, action, asking, parent=answer.record)
    except Refused as refusal:
        advice = f" ({refusal.advice})" if refusal.advice else ""
        return replace(answer, trouble=f"{refusal.message}{advice}")
    outcome = wait_for_answer(ledger, request, wait)
    if not outcome.allows:
        waited = wait > 0 or outcome.state != "timeout"
        return replace(answer, request=request, outcome=outcome if waited else None)
    try:
        consume(ledger, request, action.digest)
    except Refused as refusal:  # Somebody else was faster, or it was denied after all.
        return replace(answer, request=request, trouble=refusal.message)
    return replace(_decide_and_seal(question, approved=True), request=request, outcome=outcome)


def _find_open_request(ledger: Ledger, digest: str) -> ApprovalRequest | None:
    """The newest request about this very action that is not at its end."""
    from aver.gate.approvals import load_request_states, recent_requests

    same = [request for request in recent_requests(ledger) if request.digest == digest]
    states = zip(same, load_request_states(ledger, same), strict=True)
    return next((request for request, standing in reversed(list(states)) if standing.state in _OPEN_STATES), None)


_OPEN_STATES = ("pending", "approved")
