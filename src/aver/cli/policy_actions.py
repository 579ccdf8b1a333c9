"""What `aver policy` does, action by action. Rules come from the settings or a directory that is named, never else."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from aver import clock
from aver.cli.described import described_action
from aver.cli.output import Errors, Painted, Part, Screen, plural, print_json
from aver.errors import AverError
from aver.gate.action import Action, Facts
from aver.gate.decide import Gate, circumstances_of, decide
from aver.gate.decision import Decision
from aver.gate.door import gate_of
from aver.gate.policy.bundle import STARTER, Bundle, bundle_of, load_bundle, read_files, starter_files
from aver.gate.policy.cases import CASES_NAME, Result, read_cases, run_case, thresholds_for
from aver.gate.policy.doubts import Doubt, doubts_about
from aver.gate.policy.explain import Explanation, explained
from aver.gate.policy.install import install_starter
from aver.gate.policy.reading import Problem, read_rules
from aver.gate.settings import read_settings
from aver.home import Config, load_config

__all__ = ["ACTIONS"]

REFUSED = 5

_STYLES = {"allow": "good", "step_up": "warn", "deny": "bad"}
_SAYS = {"allow": "permits", "step_up": "asks a human", "deny": "refuses"}
_WORD_STYLES = {"pass": "good", "human_approved": "good", "human_review": "warn", "skip": "bad", "skipped": "bad"}


def _directory(given: str | None, config: Config) -> Path | None:
    """Where the rules are; None for the starter set."""
    return Path(given).absolute() if given is not None else read_settings(config).policy


def _source(directory: Path | None) -> str:
    return "the starter set" if directory is None else str(directory)


# --- showing


def _show(given: argparse.Namespace, screen: Screen) -> int:
    directory = _directory(given.directory, load_config())
    bundle = load_bundle(directory)
    rules = sorted(bundle.rules.values(), key=lambda rule: (rule.file, rule.line))
    if given.json:
        files = {"files": dict(bundle.files)} if given.files else {}
        listed = [
            {"id": one.id, "effect": one.effect, "reason": one.reason, "file": one.file, "line": one.line}
            for one in rules
        ]
        print_json({"source": _source(directory), "digest": bundle.digest, "rules": listed, **files})
        return 0
    if given.files:
        for name, text in bundle.files.items():
            screen.line(Painted(f"// {name}", "strong"))
            screen.fill(text, indent="")
        return 0
    screen.table(
        [
            [one.id, Painted(one.effect, "good" if one.effect == "permit" else "warn"), one.file, one.reason]
            for one in rules
        ],
        header=("rule", "effect", "file", "reason"),
    )
    Errors().note(f"{plural(len(rules), 'rule')} of {_source(directory)}, digest {bundle.digest}")
    return 0


# --- checking


def _check(given: argparse.Namespace, screen: Screen) -> int:
    config = load_config()
    directory = _directory(given.directory, config)
    files = starter_files() if directory is None else read_files(directory)
    found = read_rules(files)
    bundle = None if found.problems else bundle_of(files)
    doubts = [] if bundle is None else doubts_about(found, bundle)
    if given.directory is None and directory is not None and not directory.is_relative_to(config.home):
        words = f"lies outside {config.home}: an agent that may write there can change the rules it is judged by"
        doubts.append(Doubt("", f"{directory} {words}"))
    if given.json:
        print_json(_checked(directory, found.problems, doubts, len(found.rules), bundle))
    else:
        _print_check(screen, directory, found.problems, doubts, len(found.rules), bundle)
    return 1 if found.problems or (given.strict and doubts) else 0


def _checked(
    directory: Path | None, problems: list[Problem], doubts: list[Doubt], rules: int, bundle: Bundle | None
) -> dict[str, Any]:
    return {
        "source": _source(directory),
        "status": "failed" if problems else "passed",
        "rules": rules,
        "digest": None if bundle is None else bundle.digest,
        "problems": [{"file": one.file, "line": one.line, "rule": one.rule, "words": one.words} for one in problems],
        "doubts": [{"rule": one.rule, "words": one.words} for one in doubts],
    }


def _print_check(
    screen: Screen,
    directory: Path | None,
    problems: list[Problem],
    doubts: list[Doubt],
    rules: int,
    bundle: Bundle | None,
) -> None:
    for problem in problems:
        place = f"{problem.file}:{problem.line}  " if problem.line else ""
        screen.hanging(screen.mark("failed"), " ", place, text=problem.words)
    for doubt in doubts:
        about = f"{doubt.rule} " if doubt.rule else ""
        screen.hanging(screen.mark("warning"), " ", text=f"{about}{doubt.words}")
    if bundle is None:
        screen.line(screen.mark("failed"), f" {plural(len(problems), 'problem')} in {_source(directory)}")
    else:
        words = f" {plural(rules, 'rule')} of {_source(directory)} can be used, digest {bundle.digest}"
        screen.line(screen.mark("passed"), words)


# --- testing


def _test(given: argparse.Namespace, screen: Screen) -> int:
    directory = _directory(given.policy, load_config())
    bundle = load_bundle(directory)
    paths = [Path(name) for name in given.files] or [(directory or STARTER) / CASES_NAME]
    results = [(path, run_case(case, bundle)) for path in paths for case in read_cases(path)]
    failed = sum(bool(result.problem) for _, result in results)
    if given.json:
        print_json(
            {
                "source": _source(directory),
                "digest": bundle.digest,
                "passed": len(results) - failed,
                "failed": failed,
                "cases": [{"file": str(path), **_described(result)} for path, result in results],
            }
        )
    else:
        _print_results(screen, [result for _, result in results])
        words = f" {plural(len(results), 'case')}, {failed} failed, by {_source(directory)}"
        screen.line(screen.mark("failed" if failed else "passed"), words)
    return 1 if failed else 0


def _described(result: Result) -> dict[str, Any]:
    return {
        "name": result.case.name,
        "expect": result.case.expect,
        "decision": result.decision.decision,
        "rules": list(result.rules),
        "problem": result.problem,
    }


def _print_results(screen: Screen, results: list[Result]) -> None:
    rows: list[list[Part]] = []
    for result in results:
        word = result.decision.decision
        status = screen.mark("failed" if result.problem else "passed")
        rows.append([status, result.case.name, Painted(word, _WORD_STYLES[word]), ", ".join(result.rules)])
    screen.table(rows, header=("", "case", "decision", "rules"))
    for result in results:
        if result.problem:
            screen.hanging(screen.mark("failed"), " ", f"{result.case.name}: ", text=result.problem)


# --- explaining


def _explain(given: argparse.Namespace, screen: Screen) -> int:
    config = load_config()
    directory = _directory(given.policy, config)
    bundle = load_bundle(directory)
    action = described_action(given)
    usual = gate_of(config, action.workspace)
    gate = replace(usual, bundle=bundle, thresholds=thresholds_for(given.risk, usual.thresholds))
    facts = Facts(
        now=clock.now(),
        labels=frozenset(given.session_label),
        approved=given.approved,
        environment=_environment(config),
    )
    decision = decide(action, facts, gate)
    why = _why(action, facts, gate, bundle, decision)
    if given.json:
        print_json(_answer(directory, bundle, decision, why))
    else:
        _print_answer(screen, directory, bundle, decision, why)
    return 0 if decision.allows else REFUSED


def _why(action: Action, facts: Facts, gate: Gate, bundle: Bundle, decision: Decision) -> Explanation | None:
    if decision.effects is None or decision.estimate is None:
        return None
    return explained(bundle, circumstances_of(action, facts, decision.effects, decision.estimate, gate))


def _environment(config: Config) -> dict[str, str]:
    found = {name: os.environ[name] for name in ("HOME", "AVER_LEDGER") if os.environ.get(name)}
    return {**found, "AVER_HOME": str(config.home)}


def _answer(directory: Path | None, bundle: Bundle, decision: Decision, why: Explanation | None) -> dict[str, Any]:
    effects, policy = decision.effects, decision.policy
    return {
        "decision": decision.decision,
        "outcome": None if policy is None else policy.outcome,
        "source": _source(directory),
        "digest": bundle.digest,
        "rules": [] if policy is None else [_rule(bundle, rule) for rule in policy.rules],
        "reasons": list(decision.reasons),
        "effects": [] if effects is None else sorted(effects.classes),
        "unclear": [] if effects is None else [one.to_dict() for one in effects.unclear],
        "risk": None if decision.interval is None else {"score": decision.score, "interval": list(decision.interval)},
        "targets": []
        if why is None
        else [
            {"kind": target.kind, "name": target.name, "outcome": answer.outcome, "rules": list(answer.rules)}
            for target, answer in why.by_target
        ],
        "changes": [] if why is None else [{"if": list(turn.changes), "outcome": turn.outcome} for turn in why.turns],
    }


def _rule(bundle: Bundle, rule_id: str) -> dict[str, Any]:
    rule = bundle.rules[rule_id]
    return {"id": rule.id, "effect": rule.effect, "reason": rule.reason, "file": rule.file, "line": rule.line}


def _print_answer(
    screen: Screen, directory: Path | None, bundle: Bundle, decision: Decision, why: Explanation | None
) -> None:
    word = decision.decision
    screen.line(Painted(word, _WORD_STYLES[word]))
    for reason in decision.reasons:
        screen.hanging("  ", text=reason)
    if decision.effects is not None:
        screen.hanging("effects  ", text=", ".join(sorted(decision.effects.classes)) or "none")
        for unclear in decision.effects.unclear:
            screen.hanging("unclear  ", text=unclear.why)
    if decision.interval is not None:
        low, high = decision.interval
        screen.line(f"risk     {decision.score:.3f}, between {low:.3f} and {high:.3f}")
    if decision.policy is not None:
        for rule_id in decision.policy.rules:
            rule = bundle.rules[rule_id]
            screen.hanging(f"rule     {rule.id}  ", text=f"{rule.effect} in {rule.file}:{rule.line}")
    if why is not None:
        _print_why(screen, why)
    Errors().note(f"decided by {_source(directory)}, digest {bundle.digest}")


def _print_why(screen: Screen, why: Explanation) -> None:
    for target, answer in why.by_target:
        rules = ", ".join(answer.rules) or "no rule"
        parts: list[Part] = [f"target   {target.kind.lower()} {target.name}: "]
        screen.hanging(*parts, text=f"{_SAYS[answer.outcome]} ({rules})", style=_STYLES[answer.outcome])
    for turn in why.turns:
        would = "it would pass if " if turn.outcome == "allow" else "a human would be asked if "
        screen.hanging(would, text=" and ".join(turn.changes))


# --- beginning


def _init(given: argparse.Namespace, screen: Screen) -> int:
    config = load_config()
    target = Path(given.directory).absolute() if given.directory is not None else config.home / "policy"
    install_starter(target)
    try:
        is_used = read_settings(config).policy == target
    except AverError:
        is_used = False
    line = f'policy = "{_as_written(target, config.home)}"'
    if given.json:
        print_json(
            {"directory": str(target), "in_force": is_used, "settings": str(config.home / "config.toml"), "line": line}
        )
        return 0
    screen.line(f"the starter rules are in {target}")
    if not is_used:
        screen.line(f"to put them in force, write into {config.home / 'config.toml'}:")
        screen.line("")
        screen.line("[gate]")
        screen.line(line)
    return 0


def _as_written(target: Path, home: Path) -> str:
    """A path as a text of TOML."""
    path = str(target.relative_to(home)) if target.is_relative_to(home) and target != home else str(target)
    return path.replace("\\", "\\\\").replace('"', '\\"')


ACTIONS: Mapping[str, Callable[[argparse.Namespace, Screen], int]] = {
    "show": _show,
    "check": _check,
    "test": _test,
    "explain": _explain,
    "init": _init,
}
