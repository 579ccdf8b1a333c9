"""`aver policy`: shows, checks, tests and explains the rules of the gate.

Rules come from the directory that is named, or else from the one in the settings, or else from the starter set.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aver.cli.action_options import action_from_options, add_action_options, request_from_options
from aver.cli.options import Parser, Usage, add_action_parser, add_json, add_ledger, add_passphrase_fd, add_tenant
from aver.cli.terminal import LinePart, Screen, StderrScreen, StyledText, print_json
from aver.cli.user_name import find_user_name
from aver.cli.verdict_text import decision_label
from aver.config import Config, load_config
from aver.errors import AverError, Refused
from aver.text import escape_invisible, plural

# The gate is imported where it is used, so that `--help` does not load it.
if TYPE_CHECKING:
    from aver.gate.action import Action, Facts
    from aver.gate.decision import Decision
    from aver.gate.policy.bundle import PolicyBundle
    from aver.gate.policy.cases import CaseResult
    from aver.gate.policy.lint import Explanation, LintWarning
    from aver.gate.policy.rules import RuleProblem

EXAMPLES = """\
  aver policy show                        list the rules in force
  aver policy explain --command "rm -rf build"
  aver policy explain --tool Write --arg file_path=src/app.py --risk low
  aver policy allow 'npm ci'              never ask about this command in this directory again
  aver policy forget 'npm ci'             ask again
  aver policy init --use                  copy the starter rules and put the copy in force, to edit it
  aver policy check ~/.aver/policy
  aver policy test cases.toml --policy ~/.aver/policy"""

DIRECTORY_HELP = "a directory of .cedar files (default: the one in the settings, or the starter set)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=Parser)
    show = _add_action_parser(actions, "show", "list the rules in force", "  aver policy show --files")
    show.add_argument("directory", nargs="?", metavar="DIR", help=DIRECTORY_HELP)
    show.add_argument("--files", action="store_true", help="print the files themselves")
    check = _add_action_parser(actions, "check", "find errors and doubtful rules", "  aver policy check my-rules")
    check.add_argument("directory", nargs="?", metavar="DIR", help=DIRECTORY_HELP)
    check.add_argument("--strict", action="store_true", help="exit with 1 when a rule is doubtful")
    test = _add_action_parser(
        actions, "test", "test rules with cases", "  aver policy test cases.toml --policy my-rules"
    )
    test.add_argument("files", nargs="*", metavar="FILE", help="files of cases (default: cases.toml beside the rules)")
    test.add_argument("--policy", metavar="DIR", help=DIRECTORY_HELP)
    examples = (
        '  aver policy explain --command "npm publish"\n'
        "  aver policy explain --tool Read --arg file_path=.env\n"
        "  aver policy explain --intent ReadWorkspaceFile --arg relpath=src/app.py\n"
        "  git diff | aver policy explain --type code_edit --diff -"
    )
    explain = _add_action_parser(
        actions, "explain", "show what the gate would decide about an action, why, and what would change that", examples
    )
    add_action_options(explain)
    explain.add_argument(
        "--intent", metavar="NAME", help="a request of the gateway, such as SendMessage; its inputs are the arguments"
    )
    explain.add_argument(
        "--session-label", action="append", default=[], metavar="LABEL", help="a label of the session, such as secret"
    )
    explain.add_argument(
        "--risk", choices=("low", "unsure", "high"), help="assume this risk instead of the model's estimate"
    )
    explain.add_argument("--approved", action="store_true", help="assume that a person has approved the action")
    explain.add_argument("--policy", metavar="DIR", help=DIRECTORY_HELP)
    _add_change_parsers(actions)
    pin = _add_action_parser(
        actions,
        "pin",
        "let the gate use rules outside of AVER_HOME, by an approver's key",
        "  aver policy pin /srv/rules --as person:ada",
    )
    pin.add_argument("directory", metavar="DIR", help="the directory of the rules")
    pin.add_argument("--as", dest="person", required=True, metavar="PERSON", help="an enrolled approver: person:ada")
    add_passphrase_fd(pin)
    init = _add_action_parser(actions, "init", "copy the starter rules, to edit them", "  aver policy init --use")
    init.add_argument("directory", nargs="?", metavar="DIR", help="a new directory (default: policy in AVER_HOME)")
    init.add_argument("--use", action="store_true", help="put the copy in force: write it into config.toml")


def _add_change_parsers(actions: Any) -> None:
    summary = "allow a command in one workspace for good, by a rule that stands for your approval"
    allow = _add_action_parser(actions, "allow", summary, "  aver policy allow 'npm ci' --workspace ~/shop")
    allow.add_argument("command", nargs="?", metavar="COMMAND", help="the whole command, in quotes")
    allow.add_argument("--tool", metavar="NAME", help="a tool that Aver does not know, instead of a command")
    summary = "remove a rule that aver policy allow, or an approval with --always, has written"
    forget = _add_action_parser(actions, "forget", summary, "  aver policy forget 'npm ci'")
    forget.add_argument("rule", metavar="RULE", help="the rule's id, or the command or tool that it allows")
    for parser in (allow, forget):
        parser.add_argument("--workspace", metavar="DIR", help="the agent's workspace (default: this directory)")
        add_ledger(parser)
        add_tenant(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    return ACTIONS[given.action](given, screen)


def _add_action_parser(actions: Any, name: str, summary: str, examples: str) -> argparse.ArgumentParser:
    parser = add_action_parser(actions, name, summary, examples)
    add_json(parser)
    return parser


REFUSED = 5
"""The exit code of `explain` for an action that would not be allowed."""

_OUTCOME_STYLES = {"allow": "good", "step_up": "warn", "deny": "bad"}
_OUTCOME_WORDS = {"allow": "permits", "step_up": "needs approval", "deny": "refuses"}
_DECISION_STYLES = {"pass": "good", "human_approved": "good", "human_review": "warn", "skip": "bad", "skipped": "bad"}


def _policy_directory(given: str | None, config: Config) -> Path | None:
    """The directory of the rules; None for the starter set."""
    from aver.gate.settings import read_gate_settings

    return Path(given).absolute() if given is not None else read_gate_settings(config).policy


def _load_rules(given: str | None, config: Config) -> tuple[Path | None, PolicyBundle]:
    """Load the rules in force, with those that were allowed for good; or the rules of the directory that was named."""
    from aver.gate.policy.bundle import ALLOWED_FILE, load_policy_bundle

    directory = _policy_directory(given, config)
    return directory, load_policy_bundle(directory, config.home / ALLOWED_FILE if given is None else None)


def _source_text(directory: Path | None) -> str:
    return "the starter set" if directory is None else str(directory)


# --- showing


def _show_rules(given: argparse.Namespace, screen: Screen) -> int:
    directory, bundle = _load_rules(given.directory, load_config())
    rules = sorted(bundle.rules.values(), key=lambda rule: (rule.file, rule.line))
    if given.json:
        files = {"files": dict(bundle.files)} if given.files else {}
        listed = [_rule_to_dict(bundle, rule.id) for rule in rules]
        print_json({"source": _source_text(directory), "digest": bundle.digest, "rules": listed, **files})
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
    StderrScreen().print_note(f"{plural(len(rules), 'rule')} from {_source_text(directory)}, digest {bundle.digest}")
    return 0


# --- checking


def _check_rules(given: argparse.Namespace, screen: Screen) -> int:
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
    directory = _policy_directory(given.directory, config)
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
            _require_trusted(directory, config)
        except Refused as refusal:
            found.problems.append(RuleProblem("", 0, "", f"{refusal.message}; {refusal.advice}"))
            bundle = None
    if given.json:
        print_json(_check_to_dict(directory, found.problems, doubts, len(found.rules), bundle))
    else:
        _print_check(screen, directory, found.problems, doubts, len(found.rules), bundle)
    return 1 if found.problems or (given.strict and doubts) else 0


def _require_trusted(directory: Path, config: Config) -> None:
    """Raise `Refused` for rules that the gate would not use, because of where they are."""
    from aver.errors import NotFound
    from aver.gate.policy.rules_source import require_trusted_source
    from aver.ledger import open_ledger

    try:
        with open_ledger(config.ledger, home=config.home, create=False) as ledger:
            require_trusted_source(directory, config, ledger)
    except NotFound:  # Without a ledger nobody has pinned anything.
        require_trusted_source(directory, config, None)


def _pin_rules(given: argparse.Namespace, screen: Screen) -> int:
    from aver.cli.terminal import ask_passphrase
    from aver.gate.approvals import find_person
    from aver.gate.policy.bundle import load_policy_bundle
    from aver.gate.policy.rules_source import pin_rules
    from aver.ledger import open_ledger

    directory = Path(given.directory).absolute()
    bundle = load_policy_bundle(directory)  # Rules that cannot be used are not pinned.
    with open_ledger() as ledger:
        person = find_person(ledger.keys, given.person, lambda: ask_passphrase(given.person, given.passphrase_fd))
        path = pin_rules(ledger, directory, person)
    line = f'policy = "{_to_toml_path(directory, ledger.config.home)}"'
    if given.json:
        print_json({"directory": str(directory), "pin": str(path), "digest": bundle.digest, "line": line})
        return 0
    screen.print_line(f"{given.person} pinned the rules in {directory}")
    screen.print_line(f"to use them, have these lines in {ledger.config.file}:")
    screen.print_line("")
    screen.print_line("[gate]")
    screen.print_line(line)
    return 0


def _check_to_dict(
    directory: Path | None,
    problems: list[RuleProblem],
    doubts: list[LintWarning],
    rules: int,
    bundle: PolicyBundle | None,
) -> dict[str, Any]:
    return {
        "source": _source_text(directory),
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
            screen.status_mark("failed"), f" {plural(len(problems), 'problem')} in {_source_text(directory)}"
        )
    else:
        words = f" {plural(rules, 'rule')} from {_source_text(directory)} can be used, digest {bundle.digest}"
        screen.print_line(screen.status_mark("passed"), words)


# --- testing


def _run_cases(given: argparse.Namespace, screen: Screen) -> int:
    from aver.gate.policy.bundle import STARTER_DIRECTORY
    from aver.gate.policy.cases import CASES_NAME, read_cases, run_case

    directory, bundle = _load_rules(given.policy, load_config())
    paths = [Path(name) for name in given.files] or [(directory or STARTER_DIRECTORY) / CASES_NAME]
    results = [(path, run_case(case, bundle)) for path in paths for case in read_cases(path)]
    failed = sum(bool(result.problem) for _, result in results)
    if given.json:
        print_json(
            {
                "source": _source_text(directory),
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
                [status, case_result.case.name, StyledText(word, _DECISION_STYLES[word]), ", ".join(case_result.rules)]
            )
        screen.print_table(rows, header=("", "case", "decision", "rules"))
        for case_result in case_results:
            if case_result.problem:
                screen.print_hanging(
                    screen.status_mark("failed"), " ", f"{case_result.case.name}: ", text=case_result.problem
                )
        words = f" {plural(len(results), 'case')}, {failed} failed, with {_source_text(directory)}"
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


# --- explaining


def _explain_decision(given: argparse.Namespace, screen: Screen) -> int:
    from aver.gate.ask import load_gate
    from aver.gate.decide import build_policy_question, decide
    from aver.gate.facts.surroundings import look_around
    from aver.gate.policy.cases import thresholds_for_risk
    from aver.gate.policy.lint import explain_answer

    config = load_config()
    directory, bundle = _load_rules(given.policy, config)
    action = action_from_options(given) if given.intent is None else request_from_options(given, given.intent)
    usual = load_gate(config, action.workspace)
    gate = replace(usual, bundle=bundle, thresholds=thresholds_for_risk(given.risk, usual.thresholds))
    past = _read_past(action, config)
    past = replace(past, labels=past.labels.union(given.session_label), approved=given.approved)
    # The same look at the disk as before a real decision, so that both come to the same.
    facts, effects = look_around(past, action, gate, config.home)
    decision = decide(action, facts, gate, effects=effects)
    why = None
    if decision.effects is not None and decision.estimate is not None:
        question = build_policy_question(action, facts, decision.effects, decision.estimate, gate)
        why = explain_answer(bundle, question)
    if given.json:
        print_json(_decision_to_dict(directory, bundle, decision, why))
    else:
        _print_decision(screen, directory, bundle, decision, why)
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
        "source": _source_text(directory),
        "digest": bundle.digest,
        "rules": [] if policy is None else [_rule_to_dict(bundle, rule) for rule in policy.rules],
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


def _rule_to_dict(bundle: PolicyBundle, rule_id: str) -> dict[str, Any]:
    rule = bundle.rules[rule_id]
    notes = {name: value for name, value in (("patch", rule.patch), ("code", rule.code)) if value}
    return {"id": rule.id, "effect": rule.effect, "reason": rule.reason, "file": rule.file, "line": rule.line, **notes}


def _print_decision(
    screen: Screen, directory: Path | None, bundle: PolicyBundle, decision: Decision, why: Explanation | None
) -> None:
    screen.print_line(decision_label(decision.decision))
    for reason in decision.shown_reasons:
        screen.print_hanging("  ", text=reason)
    if decision.effects is not None:
        screen.print_hanging("effects  ", text=", ".join(sorted(decision.effects.classes)) or "none")
        for unclear in decision.effects.unclear:
            screen.print_hanging("unclear  ", text=unclear.why)
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
    StderrScreen().print_note(f"decided by {_source_text(directory)}, digest {bundle.digest}")


# --- allowing for good


def _allow_for_good(given: argparse.Namespace, screen: Screen) -> int:
    from aver.gate.effects.known_agents import default_known_agents
    from aver.gate.policy.rule_changes import allow_for_good
    from aver.gate.policy.standing_rules import build_command_rule, build_tool_rule
    from aver.ledger import open_ledger

    if (given.command is None) == (given.tool is None):
        raise Usage("give a command or a tool", advice="aver policy allow 'npm ci'")
    workspace, by = _workspace_of(given), find_user_name()
    if given.tool is not None:
        rule = build_tool_rule(given.tool, workspace, by, default_known_agents())
    else:
        rule = build_command_rule(given.command, workspace, by)
    with open_ledger(given.ledger, tenant=given.tenant, create=True) as ledger:
        record = allow_for_good(ledger, rule, workspace, by)
        path = ledger.config.home / "allowed.cedar"
    if given.json:
        told = {"rule": rule.id, "about": rule.about, "workspace": workspace, "file": str(path), "text": rule.text}
        print_json({**told, "record": record.id})
        return 0
    for line in rule.text.splitlines():
        screen.print_line(f"  {line}")
    screen.print_line(f"allowed in {workspace} for good, by the rule {rule.id} in {path}")
    StderrScreen().print_note("secrets still do not leave this machine, and Aver's own files stay closed")
    return 0


def _forget_rule(given: argparse.Namespace, screen: Screen) -> int:
    from aver.gate.policy.rule_changes import forget_rules
    from aver.ledger import open_ledger

    workspace = _workspace_of(given)
    with open_ledger(given.ledger, tenant=given.tenant, create=True) as ledger:
        removed = forget_rules(ledger, given.rule, workspace, find_user_name())
    if given.json:
        print_json({"removed": [{"rule": rule.id, "about": rule.about} for rule in removed]})
        return 0
    for rule in removed:
        screen.print_line(f"removed the rule {rule.id}: {escape_invisible(rule.about)}")
    return 0


def _workspace_of(given: argparse.Namespace) -> str:
    return os.path.abspath(os.path.expanduser(given.workspace)) if given.workspace else os.getcwd()


# --- beginning


def _copy_starter_rules(given: argparse.Namespace, screen: Screen) -> int:
    from aver.gate.policy.bundle import install_starter
    from aver.gate.settings import read_gate_settings

    config = load_config()
    target = Path(given.directory).absolute() if given.directory is not None else config.home / "policy"
    if given.use and not target.is_relative_to(config.home):
        raise Usage(f"only rules in {config.home} can be put in force by --use", advice="leave out DIR")
    install_starter(target)
    if given.use:
        _use_rules(target, config)
        config = load_config()
    try:
        is_used = read_gate_settings(config).policy == target
    except AverError:
        is_used = False
    line = f'policy = "{_to_toml_path(target, config.home)}"'
    if given.json:
        print_json(
            {"directory": str(target), "in_force": is_used, "settings": str(config.home / "config.toml"), "line": line}
        )
        return 0
    screen.print_line(f"copied the starter rules to {target}")
    if is_used:
        screen.print_line("they are in force: edit them, then run aver policy check")
    else:
        screen.print_line(f"to use them, add these lines to {config.home / 'config.toml'}:")
        screen.print_line("")
        screen.print_line("[gate]")
        screen.print_line(line)
    return 0


def _use_rules(target: Path, config: Config) -> None:
    """Write the directory of the rules into `config.toml`, and leave everything else in it as it is."""
    from aver.config import ensure_home
    from aver.files.atomic import replace_file
    from aver.install.edit import add_table, read_toml, set_value

    ensure_home(config.home)
    path, name = config.home / "config.toml", str(target.relative_to(config.home))
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if "gate" in read_toml(text):
        changed = set_value(text, ("gate",), "policy", name)
    else:
        changed = add_table(text, ("gate",), {"policy": name})
    replace_file(path, changed.encode())


def _to_toml_path(target: Path, home: Path) -> str:
    """The path as the content of a TOML string, relative to the home directory where possible."""
    path = str(target.relative_to(home)) if target.is_relative_to(home) and target != home else str(target)
    return path.replace("\\", "\\\\").replace('"', '\\"')


ACTIONS: Mapping[str, Callable[[argparse.Namespace, Screen], int]] = {
    "show": _show_rules,
    "check": _check_rules,
    "test": _run_cases,
    "explain": _explain_decision,
    "allow": _allow_for_good,
    "forget": _forget_rule,
    "init": _copy_starter_rules,
    "pin": _pin_rules,
}
