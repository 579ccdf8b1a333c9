"""`aver gate`: asks the gate about an action, teaches it from history and outcomes, and measures its risk model."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from aver.cli.action_options import STANDARD_INPUT, action_from_options, add_action_options
from aver.cli.options import Parser, Usage, add_action_parser, add_json, add_ledger, add_tenant, parse_count, parse_time
from aver.cli.terminal import Progress, Screen, StderrScreen, StyledText, format_time, print_json
from aver.cli.verdict_text import decision_label, decision_note
from aver.text import plural, to_one_line

if TYPE_CHECKING:
    from aver.gate.action import Action
    from aver.gate.ask import Answer

EXAMPLES = """\
  git diff | aver gate check                        is this change allowed?
  aver gate check --command 'rm -rf build'          is this command allowed?
  aver gate check --staged                          is the staged change allowed? (for a pre-commit hook)
  aver gate learn --git .                           learn from a git history how risky changes are
  aver gate report --observed                       what would have been stopped in the mode observe
  aver gate outcome 3f0c9a1b-… tests_failed         report that an allowed action failed

exit code of check: 0 allowed, 5 denied or needs approval."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=Parser)
    examples = "  git diff | aver gate check --session nightly\n  aver gate check --tool WebFetch --arg url=https://example.org"
    check = add_action_parser(actions, "check", "decide whether an action is allowed, and seal the decision", examples)
    add_action_options(check)
    check.add_argument("--staged", action="store_true", help="ask about the change that is staged in git")
    check.add_argument(
        "--wait",
        type=parse_count,
        default=0,
        metavar="SECONDS",
        help="how long to wait for a person, if approval is needed",
    )
    add_ledger(check)
    add_tenant(check)
    add_json(check)
    learn = add_action_parser(
        actions, "learn", "learn from a git history how risky changes are", "  aver gate learn --git ."
    )
    learn.add_argument("--git", required=True, metavar="PATH", help="a directory in the repository")
    add_json(learn)
    report = add_action_parser(
        actions,
        "report",
        "tell what the gate would have stopped",
        "  aver gate report --observed --since 7d",
    )
    report.add_argument("--observed", action="store_true", required=True, help="of calls that were only observed")
    report.add_argument("--since", type=parse_time, metavar="TIME", help="only from this time on, such as 7d")
    add_ledger(report)
    add_tenant(report)
    add_json(report)
    outcome = add_action_parser(
        actions, "outcome", "record that an allowed action failed", "  aver gate outcome 3f0c9a1b-… reverted"
    )
    outcome.add_argument("gate_id", metavar="GATE_ID", help="the decision's id, as gate check prints it")
    outcome.add_argument("outcome", choices=("failed", "tests_failed", "reverted", "repaired"), help="what happened")
    add_ledger(outcome)
    add_tenant(outcome)
    add_json(outcome)


def run(given: argparse.Namespace, screen: Screen) -> int:
    return ACTIONS[given.action](given, screen)


REFUSED = 5
"""The exit code of `check` for an action that is not allowed."""


def _check_action(given: argparse.Namespace, screen: Screen) -> int:
    from aver.gate.ask import ask
    from aver.ledger import open_ledger

    action = _read_action(given)
    if action is None:
        if given.json:
            print_json({"decision": None, "reasons": ["nothing is staged"]})
        else:
            screen.print_line("nothing is staged: there is nothing to decide")
        return 0
    with open_ledger(given.ledger, tenant=given.tenant) as ledger:
        answer = ask(ledger, action, wait=float(given.wait))
    if given.json:
        print_json(_answer_to_dict(action, answer))
    else:
        decision = answer.decision
        note = decision_note(decision.decision)
        screen.print_line(decision_label(decision.decision), f"  {note}" if note else "")
        for number, reason in enumerate(drop_contradicted(answer.reasons)):
            _print_field(screen, "why" if number == 0 else "", reason)
        if decision.policy is not None and decision.policy.rules:
            _print_field(screen, "rules", ", ".join(decision.policy.rules))
        if decision.score is not None and decision.interval is not None:
            low, high = decision.interval
            outcomes = plural(decision.observations, "known outcome")
            _print_field(screen, "risk", f"{decision.score:.3f} ({low:.3f} to {high:.3f}), {outcomes} here")
        if decision.effects is not None and decision.effects.classes:
            _print_field(screen, "effects", ", ".join(sorted(decision.effects.classes)))
        _print_field(screen, "decision", decision.gate_id)
        _print_field(screen, "sealed", f"capsule://{answer.record.chain}/{answer.record.sequence}")
    return 0 if answer.allows else REFUSED


def _read_action(given: argparse.Namespace) -> Action | None:
    """The action that the options describe; None for a commit that changes nothing."""
    if not given.staged:
        if given.diff is None and given.command is None and not given.tool and not given.type:
            if sys.stdin.isatty():
                raise Usage(
                    "no action is described: pipe a diff into it, or use its options", advice="aver gate check --help"
                )
            given.diff = STANDARD_INPUT
        return action_from_options(given)
    if given.diff is not None or given.command is not None:
        raise Usage("--staged cannot be combined with --diff or --command")
    from aver.gate.risk.history.git import staged_diff

    diff, root = staged_diff(given.workspace or os.curdir)
    if not diff:
        return None
    given.type, given.workspace = given.type or "code_edit", str(root)
    return replace(action_from_options(given), diff=diff)


def _print_field(screen: Screen, name: str, text: str) -> None:
    screen.print_hanging(StyledText(f"  {name:<10}", "dim"), text=text)


def drop_contradicted(reasons: Sequence[str]) -> list[str]:
    """The reasons without those that say of a file that Aver did not look into it, where another says what is in it.

    The shell's reader, which opens no file, gives the first. The record keeps both.
    """
    unread = re.compile(r"what (.+) does was not looked into").fullmatch
    return [
        reason
        for reason in reasons
        if (found := unread(reason)) is None or not any(other.startswith(f"{found[1]}: ") for other in reasons)
    ]


def _answer_to_dict(action: Action, answer: Answer) -> dict[str, Any]:
    decision = answer.decision
    policy = decision.policy
    return {
        "decision": decision.decision,
        "allowed": answer.allows,
        "reasons": list(answer.reasons),
        "score": decision.score,
        "interval": None if decision.interval is None else list(decision.interval),
        "observations": decision.observations,
        "thresholds": {
            "pass_below": decision.thresholds.pass_below,
            "skip_above": decision.thresholds.skip_above,
        },
        "rules": [] if policy is None else list(policy.rules),
        "policy": None if policy is None else policy.bundle,
        "effects": None if decision.effects is None else decision.effects.to_dict(),
        "digest": decision.digest,
        "gate_id": decision.gate_id,
        "record": f"capsule://{answer.record.chain}/{answer.record.sequence}",
        "request": None if answer.request is None else answer.request.id,
        "type": action.type,
        "tool": action.tool,
    }


def _learn_history(given: argparse.Namespace, screen: Screen) -> int:
    from aver.gate.risk.history.learn import learn_history

    with Progress("reading history") as progress:
        found = learn_history(given.git, progress)
    if given.json:
        print_json(
            {
                "commits": found.commits,
                "failed": found.failed,
                "learned": found.learned,
                "unreadable": found.unreadable,
                "observations": found.state.level("change").observations,
                "state": found.state.to_dict(),
            }
        )
        return 0
    screen.print_line(f"{plural(found.commits, 'commit')} to source files, {found.failed:,} of them failed")
    known = found.state.level("change").observations
    screen.print_line(f"{plural(found.learned, 'outcome')} newly learned, {known:,} known in total")
    if found.unreadable:
        left_out = plural(found.unreadable, "commit")
        StderrScreen().print_note(f"{left_out} left out: this clone lacks objects of theirs (a partial clone?)")
    if not found.learned:
        StderrScreen().print_note("nothing new was learned: the outcome of a commit is known 90 days after it")
    return 0


CALLS_SHOWN = 50
"""Calls that the report on observed decisions prints. `--json` has all of them."""


def _print_observed(given: argparse.Namespace, screen: Screen) -> int:
    from aver.gate.outcomes.observation import report_observed
    from aver.ledger import open_ledger

    with open_ledger(given.ledger, tenant=given.tenant, create=False) as ledger:
        found = report_observed(ledger, since=given.since or "")
    if given.json:
        print_json(found.to_dict())
        return 0
    screen.print_line(
        f"{plural(found.observed, 'observed decision')}: {found.denied:,} would have been denied, "
        f"{found.asked:,} asked about"
    )
    for rule, count in found.rules:
        _print_field(screen, f"{count:,}", rule)
    for call in found.calls[:CALLS_SHOWN]:
        word = "DENIED" if call.is_denial else "ASKED"
        place = f"{call.agent} {call.session}".strip()
        screen.print_line(f"{format_time(call.at)}  {word:<6}  {to_one_line(call.what)}  ({to_one_line(place)})")
        _print_field(screen, "why", "; ".join(call.reasons))
    if len(found.calls) > CALLS_SHOWN:
        StderrScreen().print_note(f"{len(found.calls) - CALLS_SHOWN} older calls are not shown; --json has them")
    return 0


def _record_outcome(given: argparse.Namespace, screen: Screen) -> int:
    from aver.gate.outcomes.reports import record_outcome
    from aver.ledger import open_ledger

    with open_ledger(given.ledger, tenant=given.tenant, create=False) as ledger:
        sealed = record_outcome(ledger, given.gate_id, given.outcome)
    place = f"capsule://{sealed.chain}/{sealed.sequence}"
    if given.json:
        print_json({"gate_id": given.gate_id, "outcome": given.outcome, "record": place})
    else:
        screen.print_line(f"recorded: {given.outcome}; the risk model has learned from it")
        _print_field(screen, "sealed", place)
    return 0


ACTIONS: Mapping[str, Callable[[argparse.Namespace, Screen], int]] = {
    "check": _check_action,
    "learn": _learn_history,
    "report": _print_observed,
    "outcome": _record_outcome,
}
