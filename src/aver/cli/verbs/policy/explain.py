"""`aver policy explain`: which rules decide about an action, and why."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aver.cli.action_options import action_from_options, request_from_options
from aver.cli.terminal import LinePart, Screen, StderrScreen, print_json
from aver.cli.verbs.policy.described_call import judge_described_call
from aver.cli.verbs.policy.rules import load_rules, rule_to_dict, source_text
from aver.cli.verdict_text import decision_label
from aver.config import Config, load_config

# The gate is imported where it is used, so that `--help` does not load it.
if TYPE_CHECKING:
    from aver.gate.action import Action, Facts
    from aver.gate.decision import Decision
    from aver.gate.policy.bundle import PolicyBundle
    from aver.gate.policy.lint import Explanation

REFUSED = 5
"""The exit code of `explain` for an action that would not be allowed."""

_OUTCOME_STYLES = {"allow": "good", "step_up": "warn", "deny": "bad"}

_OUTCOME_WORDS = {"allow": "permits", "step_up": "needs approval", "deny": "refuses"}


def explain_decision(given: argparse.Namespace, screen: Screen) -> int:
    from aver.gate.ask import load_gate
    from aver.gate.decide import build_policy_question, decide
    from aver.gate.facts.surroundings import look_around
    from aver.gate.policy.cases import thresholds_for_risk
    from aver.gate.policy.lint import explain_answer

    config = load_config()
    directory, bundle = load_rules(given.policy, config)
    action = action_from_options(given) if given.intent is None else request_from_options(given, given.intent)
    usual = load_gate(config, action.workspace)
    gate = replace(usual, bundle=bundle, thresholds=thresholds_for_risk(given.risk, usual.thresholds))
    past = _read_past(action, config)
    past = replace(past, labels=past.labels.union(given.session_label), approved=given.approved)
    judged = judge_described_call(given, action, gate, config)
    if judged.meaning:
        past = replace(past, meaning=judged.meaning, annotations=judged.hints)
    # The same look at the disk as before a real decision, so that both come to the same.
    facts, effects = look_around(past, action, gate, config.home)
    decision = decide(action, facts, gate, effects=effects)
    why = None
    if decision.effects is not None and decision.estimate is not None:
        question = build_policy_question(action, facts, decision.effects, decision.estimate, gate)
        why = explain_answer(bundle, question)
    if given.json:
        print_json({**_decision_to_dict(directory, bundle, decision, why), "meaning": dict(judged.meaning) or None})
    else:
        _print_decision(screen, directory, bundle, decision, why, judged.meaning)
    return 0 if decision.allows else REFUSED


def _read_past(action: Action, config: Config) -> Facts:
    """Return the facts about the session that the options name; about one without a past, where they name none."""
    from aver import clock
    from aver.errors import NotFound
    from aver.gate.action import Facts
    from aver.gate.decision_record import decision_chain
    from aver.gate.facts.session import load_session_facts
    from aver.ledger import open_ledger

    if not action.session:
        StderrScreen().print_note("without --session, nothing that a session did before counts here")
        return Facts(now=clock.now())
    try:
        with open_ledger(config.ledger, home=config.home, create=False) as ledger:
            return load_session_facts(ledger, ledger.head(decision_chain(action.session)), action, clock.now())
    except NotFound:  # There is no ledger yet, and so no past.
        return Facts(now=clock.now())


def _decision_to_dict(
    directory: Path | None, bundle: PolicyBundle, decision: Decision, why: Explanation | None
) -> dict[str, Any]:
    effects, policy = decision.effects, decision.policy
    return {
        "decision": decision.decision,
        "outcome": None if policy is None else policy.outcome,
        "source": source_text(directory),
        "digest": bundle.digest,
        "rules": [] if policy is None else [rule_to_dict(bundle, rule) for rule in policy.rules],
        "patch": "" if policy is None else policy.patch,
        "code": "" if policy is None else policy.code,
        "reasons": list(decision.shown_reasons),
        "effects": [] if effects is None else sorted(effects.classes),
        "unclear": [] if effects is None else [unclear.to_dict() for unclear in effects.unclear],
        "risk": None if decision.interval is None else {"score": decision.score, "interval": list(decision.interval)},
        "targets": []
        if why is None
        else [
            {"kind": target.kind, "name": target.name, "outcome": answer.outcome, "rules": list(answer.rules)}
            for target, answer in why.by_target
        ],
        "changes": [] if why is None else [{"if": list(turn.changes), "outcome": turn.outcome} for turn in why.turns],
    }


def _print_decision(
    screen: Screen,
    directory: Path | None,
    bundle: PolicyBundle,
    decision: Decision,
    why: Explanation | None,
    meaning: Mapping[str, Any],
) -> None:
    screen.print_line(decision_label(decision.decision))
    for reason in decision.shown_reasons:
        screen.print_hanging("  ", text=reason)
    if decision.effects is not None:
        screen.print_hanging("effects  ", text=", ".join(sorted(decision.effects.classes)) or "none")
        for unclear in decision.effects.unclear:
            screen.print_hanging("unclear  ", text=unclear.why)
    if meaning:
        asked = "asked for" if meaning["asked"] else "not asked for"
        screen.print_hanging("class    ", text=f"{meaning['class']}, {asked}")
        screen.print_hanging("origins  ", text=" ".join(meaning["origins"]) or "no target")
        screen.print_hanging("doubts   ", text=" ".join(meaning["doubts"]) or "none")
    if decision.interval is not None:
        low, high = decision.interval
        screen.print_line(f"risk     {decision.score:.3f}, between {low:.3f} and {high:.3f}")
    if decision.policy is not None:
        for rule_id in decision.policy.rules:
            rule = bundle.rules[rule_id]
            screen.print_hanging(f"rule     {rule.id}  ", text=f"{rule.effect} in {rule.file}:{rule.line}")
        if decision.policy.patch:
            screen.print_hanging("patch    ", text=decision.policy.patch)
        if decision.policy.code:
            screen.print_hanging("code     ", text=decision.policy.code)
    if why is not None:
        for target, answer in why.by_target:
            rules = ", ".join(answer.rules) or "no rule"
            parts: list[LinePart] = [f"target   {target.kind.lower()} {target.name}: "]
            screen.print_hanging(
                *parts, text=f"{_OUTCOME_WORDS[answer.outcome]} ({rules})", style=_OUTCOME_STYLES[answer.outcome]
            )
        for turn in why.turns:
            would = "it would be allowed if " if turn.outcome == "allow" else "it would need approval if "
            screen.print_hanging(would, text=" and ".join(turn.changes))
    StderrScreen().print_note(f"decided by {source_text(directory)}, digest {bundle.digest}")
