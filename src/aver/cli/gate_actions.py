"""What `aver gate` does, action by action."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aver.cli.described import STANDARD_INPUT, described_action
from aver.cli.options import Usage
from aver.cli.output import Errors, Painted, Progress, Screen, plural, print_json

if TYPE_CHECKING:
    from aver.gate.action import Action
    from aver.gate.door import Answer

__all__ = ["ACTIONS"]

REFUSED = 5

_STYLES = {"pass": "good", "human_approved": "good", "human_review": "warn", "skip": "bad", "skipped": "bad"}
_MEANING = {
    "pass": "it may happen",
    "human_approved": "a human has approved it: it may happen, once",
    "human_review": "not without a human's approval",
    "skip": "refused",
    "skipped": "refused too often: leave it",
}


def _check(given: argparse.Namespace, screen: Screen) -> int:
    from aver.gate.door import judge
    from aver.ledger import open_ledger

    action = _action(given)
    if action is None:
        return _nothing_staged(given, screen)
    with open_ledger(given.ledger, tenant=given.tenant) as ledger:
        answer = judge(ledger, action, wait=float(given.wait))
    if given.json:
        print_json(_described(action, answer))
    else:
        _show(screen, action, answer)
    return 0 if answer.allows else REFUSED


def _action(given: argparse.Namespace) -> Action | None:
    """What is asked about; None for a commit that changes nothing."""
    if not given.staged:
        if given.diff is None and given.command is None and not given.tool and not given.type:
            if sys.stdin.isatty():
                raise Usage("which action? pipe a diff into it, or describe one", advice="aver gate check --help")
            given.diff = STANDARD_INPUT
        return described_action(given)
    if given.diff is not None or given.command is not None:
        raise Usage("--staged asks about what is staged, and nothing else")
    from aver.gate.risk.staged import staged_diff

    diff, root = staged_diff(given.workspace or os.curdir)
    if not diff:
        return None
    given.type, given.workspace = given.type or "code_edit", str(root)
    return replace(described_action(given), diff=diff)


def _nothing_staged(given: argparse.Namespace, screen: Screen) -> int:
    if given.json:
        print_json({"decision": None, "reasons": ["nothing is staged"]})
    else:
        screen.line("nothing is staged: there is nothing to decide")
    return 0


def _show(screen: Screen, action: Action, answer: Answer) -> None:
    decision = answer.decision
    word = decision.decision
    screen.line(Painted(word, _STYLES[word]), f"  {_MEANING[word]}")
    for number, reason in enumerate(answer.reasons):
        _field(screen, "why" if number == 0 else "", reason)
    if decision.policy is not None and decision.policy.rules:
        _field(screen, "rules", ", ".join(decision.policy.rules))
    if decision.score is not None and decision.interval is not None:
        low, high = decision.interval
        known = plural(decision.observations, "outcome")
        _field(screen, "risk", f"{decision.score:.3f} ({low:.3f} to {high:.3f}), {known} known here")
    if decision.effects is not None and decision.effects.classes:
        _field(screen, "effects", ", ".join(sorted(decision.effects.classes)))
    _field(screen, "decision", decision.gate_id)
    _field(screen, "sealed", f"capsule://{answer.record.chain}/{answer.record.sequence}")


def _field(screen: Screen, name: str, text: str) -> None:
    screen.hanging(Painted(f"  {name:<10}", "dim"), text=text)


def _described(action: Action, answer: Answer) -> dict[str, Any]:
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


def _learn(given: argparse.Namespace, screen: Screen) -> int:
    from aver.gate.risk.learn import learn_git

    with Progress("reading history") as progress:
        found = learn_git(given.git, progress)
    if given.json:
        print_json(
            {
                "commits": found.commits,
                "failed": found.failed,
                "learned": found.learned,
                "observations": found.state.level("change").observations,
                "state": found.state.to_dict(),
            }
        )
        return 0
    screen.line(f"{plural(found.commits, 'commit')} that touch source files, {found.failed:,} of them failed")
    known = found.state.level("change").observations
    screen.line(f"{plural(found.learned, 'outcome')} newly learned, {known:,} known in all")
    if not found.learned:
        Errors().note("an outcome is known when a commit is 90 days old; nothing here was learned before that")
    return 0


def _report(given: argparse.Namespace, screen: Screen) -> int:
    from aver.cli.files import check_free, write_new
    from aver.gate.risk.report import report
    from aver.gate.settings import read_settings
    from aver.home import load_config

    if given.svg is not None:
        check_free(Path(given.svg))
    with Progress("reading history") as progress:
        found = report(given.git, read_settings(load_config()).thresholds, progress)
    if given.svg is not None:
        write_new(Path(given.svg), found.svg().encode("utf-8"))
    if given.json:
        print_json(found.to_dict())
    else:
        for line in found.text().splitlines():
            screen.line(line)
    return 0


def _outcome(given: argparse.Namespace, screen: Screen) -> int:
    from aver.gate.outcomes import record_outcome
    from aver.ledger import open_ledger

    with open_ledger(given.ledger, tenant=given.tenant, create=False) as ledger:
        sealed = record_outcome(ledger, given.gate_id, given.outcome)
    place = f"capsule://{sealed.chain}/{sealed.sequence}"
    if given.json:
        print_json({"gate_id": given.gate_id, "outcome": given.outcome, "record": place})
    else:
        screen.line(f"recorded and learned: {given.outcome}")
        _field(screen, "sealed", place)
    return 0


ACTIONS: Mapping[str, Callable[[argparse.Namespace, Screen], int]] = {
    "check": _check,
    "learn": _learn,
    "report": _report,
    "outcome": _outcome,
}
