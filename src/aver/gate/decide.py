"""One decision: what policy says, what risk says, and whether a person has approved.

    1. what does the action do, and to what              effects
    2. how likely is it to go wrong                      risk: an interval
    3. may it happen                                     policy, which sees both
    4. refused → `skip`; a person must approve → `human_review`, or `human_approved` once one has; else `pass`

Policy beats risk. Risk passes nothing that policy does not permit. It denies only where the settings have a threshold
for that, because the evidence does not support a learned denial. An action that was denied too often is `skipped`.

`decide` is pure: the same action, facts and gate give the same decision. Any error on the way becomes a `skip` with the
reason in it, so nothing passes by accident.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from datetime import datetime
from typing import Protocol

from aver.clock import new_id
from aver.errors import AverError
from aver.fast_dataclass import dataclass
from aver.gate.action import Action, Facts
from aver.gate.decision import UNCLEAR_REASON, Caution, Decision, DecisionWord, Estimate, Thresholds, find_risk_word
from aver.gate.effects.effects import Effects, find_effects
from aver.gate.effects.known_agents import KnownAgents, default_known_agents
from aver.gate.effects.workspace_code import judge_workspace_code
from aver.gate.own_tools import ToolDeclaration, explain_unknown_tool
from aver.gate.policy.bundle import PolicyBundle
from aver.gate.policy.query import NO_PERMIT, PolicyQuestion, Target, ask_policy, flatten_arguments
from aver.gate.risk.estimate import FixHistory, estimate
from aver.gate.risk.estimate import explain_estimate as risk_reasons
from aver.gate.risk.model import RiskState

UNCLEAR_WORDS_MAX = 300
"""Characters of the words for an unclear part that a reason has."""

MAX_RETRIES = 3
"""After so many denials of the same action, the next one is `skipped`: the agent is to give up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """The basis of decisions: the rules in force, the learned state of the workspace, and the settings."""

    bundle: PolicyBundle | None
    """None where the rules cannot be used. Then nothing passes, and `trouble` says why."""
    trouble: str = ""
    rules_at: str = ""
    """The directory of the rules; empty for those that Aver ships."""
    state: RiskState = field(default_factory=RiskState)
    thresholds: Thresholds = field(default_factory=Thresholds)
    max_retries: int = MAX_RETRIES
    caution: Caution = "balanced"
    groups: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Names of agents, by group."""
    trusted: frozenset[str] = frozenset()
    """MCP servers whose annotations of their own tools are believed."""
    tools: Mapping[str, ToolDeclaration] = field(default_factory=dict)
    """Declarations of own tools, by name."""
    history: FixHistory | None = None
    known: KnownAgents = field(default_factory=default_known_agents)
    """The names of coding agents' tools, and of the files that steer them."""


class Decider(Protocol):
    """Who decides: `decide` itself, or a function like it, such as one that asks policy servers."""

    def __call__(
        self, action: Action, facts: Facts, gate: Gate, *, gate_id: str | None = None, effects: Effects | None = None
    ) -> Decision: ...


@dataclass(frozen=True, slots=True)
class ActionReading:
    """Steps 1 and 2 of a decision, and the question for step 3: all that comes before the rules are asked."""

    digest: str
    effects: Effects
    code_reasons: tuple[str, ...]
    estimate: Estimate
    question: PolicyQuestion


def read_action(
    action: Action, facts: Facts, gate: Gate, *, effects: Effects | None = None, digest: str = ""
) -> ActionReading:
    """Read what an action does and how likely it is to go wrong, and build the question to the rules.

    `effects` and `digest` are the action's, where the caller knows them. Raises where the action cannot be judged.
    """
    # 1. Find out what it does.
    effects = effects or find_effects(action, facts, trusted=gate.trusted, known=gate.known)
    effects, code_reasons, runs_unseen = judge_workspace_code(
        effects, facts.unseen, facts.code, action.workspace, facts.absent, facts.git
    )
    # 2. Estimate how likely it is to go wrong. Without clear effects the estimate knows none.
    places = frozenset(effect.where for effect in effects.effects if effect.where)
    known = None if effects.unclear else effects.classes
    found = estimate(action, facts, gate.state, gate.history, effects=known, places=places)
    question = build_policy_question(action, facts, effects, found, gate)
    question = replace(question, runs_unseen=True) if runs_unseen else question
    return ActionReading(digest or action.digest, effects, tuple(code_reasons), found, question)


def decide(
    action: Action,
    facts: Facts,
    gate: Gate,
    *,
    gate_id: str | None = None,
    effects: Effects | None = None,
    reading: ActionReading | None = None,
) -> Decision:
    """Decide whether the action may happen.

    `gate_id` names the decision; without one it gets a new id. `effects` are the action's, where the caller has found
    them with these very facts: then a command is not parsed again. `reading` is all that `read_action` returns for this
    action, these facts and this gate: two servers in one process read the action once, and each asks its rules.
    """
    gate_id = gate_id or new_id()
    try:
        digest = action.digest if reading is None else reading.digest
    except AverError as error:
        return build_refusal("", gate, gate_id, f"the action cannot be named exactly: {error.message}")
    if gate.bundle is None:
        return build_refusal(digest, gate, gate_id, f"there are no rules to decide by: {gate.trouble}")
    try:
        # 1 and 2.
        reading = reading or read_action(action, facts, gate, effects=effects, digest=digest)
        effects, found, question = reading.effects, reading.estimate, reading.question
        # 3. Ask policy whether it may happen.
        answer = ask_policy(gate.bundle, question)
        if answer.patch and not action.request_sha256:
            # Only the gateway changes what it carries out. All others would do it as it is.
            reason = f"a rule demands a patch of this ({answer.patch}), and only the gateway can patch a request"
            answer = replace(answer, outcome="deny", reasons=(reason, *answer.reasons), patch="")
        # 4. Put policy, risk and approval into one word.
        word: DecisionWord = "pass"
        unclear = effects.unclear[0].why[:UNCLEAR_WORDS_MAX] if effects.unclear else UNCLEAR_REASON
        reasons = [unclear if reason == UNCLEAR_REASON else reason for reason in (*answer.reasons, *answer.errors)]
        if answer.outcome != "allow" and facts.meaning:
            reasons += [str(why) for why in facts.meaning["why"]]
        if answer.outcome != "allow" and "unknown" in effects.classes:
            hint = explain_unknown_tool(action, facts.environment.get("AVER_HOME", ""), facts.annotations)
            reasons = [hint, *(reason for reason in reasons if reason != NO_PERMIT)]
        if answer.outcome == "deny" or question.risk == "high":
            word = "skipped" if facts.denials >= gate.max_retries else "skip"
            if answer.outcome != "deny":
                reasons.append(f"even the lower end of its risk, {found.low:.2f}, is above the threshold for refusal")
        elif answer.outcome == "step_up":
            word = "human_approved" if facts.approved else "human_review"
            if facts.approved and facts.approved_by:
                reasons.insert(0, f"approved by {facts.approved_by}")
            if answer.patch:  # The person must know that something else goes out than the request says.
                reasons.append(f"it is changed before it happens: {answer.patch}")
        # Say which file the asking is about.
        if word in ("human_review", "skip", "skipped"):
            reasons.extend(reading.code_reasons)
        # A person who must approve, or an agent that is refused, gets to know why the risk is not low.
        if word in ("human_review", "skip", "skipped") and question.risk != "low":
            reasons.extend(risk_reasons(found, gate.state))
        return Decision(
            decision=word,
            digest=digest,
            score=found.score,
            interval=(found.low, found.high),
            observations=found.observations,
            policy=answer,
            reasons=tuple(dict.fromkeys(reasons)),
            gate_id=gate_id,
            thresholds=gate.thresholds,
            estimate=found,
            effects=effects,
        )
    except Exception as error:  # noqa: BLE001 - a gate that cannot judge must not let through
        words = error.message if isinstance(error, AverError) else f"{type(error).__name__}: {error}"
        return build_refusal(digest, gate, gate_id, f"the gate could not judge this: {words[:500]}")


def build_policy_question(
    action: Action, facts: Facts, effects: Effects, found: Estimate, gate: Gate
) -> PolicyQuestion:
    """Build the question that policy is asked."""
    at = datetime.fromisoformat(facts.now)
    # List what the action touches, each once. One that touches nothing with a name has its tool as the target.
    targets: dict[Target, None] = {}
    on_paths: dict[tuple[str, str, frozenset[str]], set[str]] = {}
    for effect in effects.effects:
        if effect.is_host and effect.target:
            targets[Target("Host", effect.target)] = None
        elif effect.where:
            on_paths.setdefault((effect.target, effect.where, effect.classes), set()).add(effect.name)
    for (path, where, classes), names in on_paths.items():
        targets[Target("Path", path, where, classes, effects=frozenset(names))] = None
    for recipient in effects.recipients:
        targets[Target("Recipient", recipient.name, channel=recipient.channel, domain=recipient.domain)] = None
    for program in effects.programs:
        targets[Target("Command", program, text=effects.command)] = None
    # Only where a rule reads it: most rules do not.
    command = ""
    if gate.bundle is not None and "command" in gate.bundle.looks_at:
        from aver.gate.policy.standing_rules import find_command

        command = find_command(action, facts, gate.known)
    return PolicyQuestion(
        agent=action.caller,
        on_behalf_of=action.on_behalf_of,
        groups=frozenset(group for group, members in gate.groups.items() if action.caller in members),
        action=action.type,
        tool=action.tool,
        server=effects.server,
        workspace=action.workspace,
        command=command,
        targets=tuple(targets) or (Target("Tool", action.tool, text=effects.server),),
        effects=effects.classes,
        labels=facts.labels,
        meaning=facts.meaning,
        unclear=bool(effects.unclear),
        arguments=flatten_arguments(action.arguments),
        risk=find_risk_word((found.low, found.high), gate.thresholds),
        score=(round(found.score * 1000), round(found.low * 1000), round(found.high * 1000)),  # Cedar has no fractions.
        observations=found.observations,
        caution=gate.caution,
        recent=dict(facts.recent),
        weekday=at.isoweekday(),
        hour=at.hour,
    )


def build_refusal(digest: str, gate: Gate, gate_id: str, reason: str) -> Decision:
    """Build the refusal of an action that is not judged. An empty digest says that it has no canonical form."""
    return Decision(
        decision="skip",
        digest=digest,
        score=None,
        interval=None,
        observations=0,
        policy=None,
        reasons=(reason,),
        gate_id=gate_id,
        thresholds=gate.thresholds,
    )
