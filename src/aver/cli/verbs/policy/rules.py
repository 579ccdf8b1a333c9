"""`aver policy show`, `check` and `test`: the rules as they are, their problems, and their cases."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aver.cli.terminal import LinePart, Screen, StderrScreen, StyledText, print_json
from aver.config import Config, load_config
from aver.errors import Refused
from aver.text import plural

# The gate is imported where it is used, so that `--help` does not load it.
if TYPE_CHECKING:
    from aver.gate.policy.bundle import PolicyBundle
    from aver.gate.policy.cases import CaseResult
    from aver.gate.policy.lint import LintWarning
    from aver.gate.policy.rules import RuleProblem


DECISION_STYLES = {"pass": "good", "human_approved": "good", "human_review": "warn", "skip": "bad", "skipped": "bad"}


def policy_directory(given: str | None, config: Config) -> Path | None:
    """The directory of the rules; None for the starter set."""
    from aver.gate.settings import read_gate_settings

    return Path(given).absolute() if given is not None else read_gate_settings(config).policy


def load_rules(given: str | None, config: Config) -> tuple[Path | None, PolicyBundle]:
    """Load the rules in force, with those that were allowed for good; or the rules of the directory that was named."""
    from aver.gate.policy.bundle import ALLOWED_FILE, load_policy_bundle

    directory = policy_directory(given, config)
    return directory, load_policy_bundle(directory, config.home / ALLOWED_FILE if given is None else None)


def source_text(directory: Path | None) -> str:
    return "the starter set" if directory is None else str(directory)


def show_rules(given: argparse.Namespace, screen: Screen) -> int:
    directory, bundle = load_rules(given.directory, load_config())
    rules = sorted(bundle.rules.values(), key=lambda rule: (rule.file, rule.line))
    if given.json:
        files = {"files": dict(bundle.files)} if given.files else {}
        listed = [rule_to_dict(bundle, rule.id) for rule in rules]
        print_json({"source": source_text(directory), "digest": bundle.digest, "rules": listed, **files})
        return 0
    if given.files:
        for name, text in bundle.files.items():
            screen.print_line(StyledText(f"// {name}", "strong"))
            screen.print_wrapped(text, indent="")
        return 0
    screen.print_table(
        [
            [rule.id, StyledText(rule.effect, "good" if rule.effect == "permit" else "warn"), rule.file, rule.reason]
            for rule in rules
        ],
        header=("rule", "effect", "file", "reason"),
    )
    StderrScreen().print_note(f"{plural(len(rules), 'rule')} from {source_text(directory)}, digest {bundle.digest}")
    return 0


def check_rules(given: argparse.Namespace, screen: Screen) -> int:
    from aver.gate.policy.bundle import (
        ALLOWED_FILE,
        build_policy_bundle,
        read_policy_file,
        read_policy_files,
        read_starter_files,
    )
    from aver.gate.policy.canaries import asks_nobody
    from aver.gate.policy.lint import LintWarning, lint_policy
    from aver.gate.policy.rules import RuleProblem, read_policy_rules

    config = load_config()
    directory = policy_directory(given.directory, config)
    files = read_starter_files() if directory is None else read_policy_files(directory)
    allowed = config.home / ALLOWED_FILE
    if given.directory is None and os.path.lexists(allowed):
        files = {**files, ALLOWED_FILE: read_policy_file(allowed)}
    found = read_policy_rules(files)
    bundle = None if found.problems else build_policy_bundle(files)
    doubts = [] if bundle is None else lint_policy(found, bundle)
    if bundle is not None and asks_nobody(bundle):
        words = "every harmful test action passes under these rules: nobody is ever asked"
        doubts.append(LintWarning("", words))
    if given.directory is None and directory is not None:
        try:
            require_trusted(directory, config)
        except Refused as refusal:
            found.problems.append(RuleProblem("", 0, "", f"{refusal.message}; {refusal.advice}"))
            bundle = None
    if given.json:
        print_json(_check_to_dict(directory, found.problems, doubts, len(found.rules), bundle))
    else:
        _print_check(screen, directory, found.problems, doubts, len(found.rules), bundle)
    return 1 if found.problems or (given.strict and doubts) else 0


def _check_to_dict(
    directory: Path | None,
    problems: list[RuleProblem],
    doubts: list[LintWarning],
    rules: int,
    bundle: PolicyBundle | None,
) -> dict[str, Any]:
    return {
        "source": source_text(directory),
        "status": "failed" if problems else "passed",
        "rules": rules,
        "digest": None if bundle is None else bundle.digest,
        "problems": [
            {"file": item.file, "line": item.line, "rule": item.rule, "words": item.words} for item in problems
        ],
        "doubts": [{"rule": doubt.rule, "words": doubt.words} for doubt in doubts],
    }


def _print_check(
    screen: Screen,
    directory: Path | None,
    problems: list[RuleProblem],
    doubts: list[LintWarning],
    rules: int,
    bundle: PolicyBundle | None,
) -> None:
    for problem in problems:
        place = f"{problem.file}:{problem.line}  " if problem.line else ""
        screen.print_hanging(screen.status_mark("failed"), " ", place, text=problem.words)
    for doubt in doubts:
        about = f"{doubt.rule} " if doubt.rule else ""
        screen.print_hanging(screen.status_mark("warning"), " ", text=f"{about}{doubt.words}")
    if bundle is None:
        screen.print_line(
            screen.status_mark("failed"), f" {plural(len(problems), 'problem')} in {source_text(directory)}"
        )
    else:
        words = f" {plural(rules, 'rule')} from {source_text(directory)} can be used, digest {bundle.digest}"
        screen.print_line(screen.status_mark("passed"), words)


def run_cases(given: argparse.Namespace, screen: Screen) -> int:
    from aver.gate.policy.bundle import STARTER_DIRECTORY
    from aver.gate.policy.cases import CASES_NAME, read_cases, run_case

    directory, bundle = load_rules(given.policy, load_config())
    paths = [Path(name) for name in given.files] or [(directory or STARTER_DIRECTORY) / CASES_NAME]
    results = [(path, run_case(case, bundle)) for path in paths for case in read_cases(path)]
    failed = sum(bool(result.problem) for _, result in results)
    if given.json:
        print_json(
            {
                "source": source_text(directory),
                "digest": bundle.digest,
                "passed": len(results) - failed,
                "failed": failed,
                "cases": [{"file": str(path), **_case_to_dict(result)} for path, result in results],
            }
        )
    else:
        case_results = [result for _, result in results]
        rows: list[list[LinePart]] = []
        for case_result in case_results:
            word = case_result.decision.decision
            status = screen.status_mark("failed" if case_result.problem else "passed")
            rows.append(
                [status, case_result.case.name, StyledText(word, DECISION_STYLES[word]), ", ".join(case_result.rules)]
            )
        screen.print_table(rows, header=("", "case", "decision", "rules"))
        for case_result in case_results:
            if case_result.problem:
                screen.print_hanging(
                    screen.status_mark("failed"), " ", f"{case_result.case.name}: ", text=case_result.problem
                )
        words = f" {plural(len(results), 'case')}, {failed} failed, with {source_text(directory)}"
        screen.print_line(screen.status_mark("failed" if failed else "passed"), words)
    return 1 if failed else 0


def _case_to_dict(result: CaseResult) -> dict[str, Any]:
    return {
        "name": result.case.name,
        "expect": result.case.expect,
        "decision": result.decision.decision,
        "rules": list(result.rules),
        "problem": result.problem,
    }


def rule_to_dict(bundle: PolicyBundle, rule_id: str) -> dict[str, Any]:
    rule = bundle.rules[rule_id]
    notes = {name: value for name, value in (("patch", rule.patch), ("code", rule.code)) if value}
    return {"id": rule.id, "effect": rule.effect, "reason": rule.reason, "file": rule.file, "line": rule.line, **notes}


def require_trusted(directory: Path, config: Config) -> None:
    """Raise `Refused` for rules that the gate would not use, because of where they are."""
    from aver.errors import NotFound
    from aver.gate.policy.rules_source import require_trusted_source
    from aver.ledger import open_ledger

    try:
        with open_ledger(config.ledger, home=config.home, create=False) as ledger:
            require_trusted_source(directory, config, ledger)
    except NotFound:  # Without a ledger nobody has pinned anything.
        require_trusted_source(directory, config, None)
