"""The text and colours in which a person reads a verdict, or a decision of the gate.

A verdict is printed as its status, each check, the first bad place with advice, and the checks that were not made. A
decision is printed as ALLOWED, DENIED or NEEDS APPROVAL. Records, JSON output and the cases of `aver policy test` use
the gate's own words instead: `pass`, `skip` and so on.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from aver.cli.terminal import LinePart, Screen, StyledText
from aver.text import plural

if TYPE_CHECKING:
    from aver.verdict import Check, Finding, Verdict

MORE_FINDINGS_MAX = 5
"""Findings listed after the first one. `--json` lists all of them."""

STATUS_STYLES = {"verified": "good", "qualified": "warn", "failed": "bad", "empty": "warn"}


def exit_code(statuses: Iterable[str], *, strict: bool) -> int:
    """The exit code for these verdicts: 0 if all are good. With `strict`, qualified is not good."""
    accepted = {"verified"} if strict else {"verified", "qualified"}
    return 0 if accepted.issuperset(statuses) else 1


def status_parts(screen: Screen, verdict: Verdict) -> list[LinePart]:
    """The sign and the word of a verdict's status."""
    return [screen.status_mark(verdict.status), " ", StyledText(verdict.status, STATUS_STYLES[verdict.status])]


def extent_text(verdict: Verdict) -> str:
    """How many records were verified, now and earlier."""
    chains = f" in {plural(verdict.chains, 'chain')}" if verdict.chains > 1 else ""
    if not verdict.earlier:
        return f"{plural(verdict.records, 'record')}{chains}"
    return f"{plural(verdict.records, 'new record')}{chains}, {verdict.earlier:,} verified earlier"


def print_verdict(screen: Screen, verdict: Verdict, *, about: str = "") -> None:
    """Print a whole verdict. `about` is added to its subject."""
    screen.print_line(*status_parts(screen, verdict), f": {verdict.subject}{about}, {extent_text(verdict)}")
    # Checks that were left out and do not matter here are grouped by their reason, at the end.
    listed: dict[str, Check] = {}
    aside: dict[str, list[str]] = {}
    for check in verdict.checks:
        if check.status != "not_checked" or check.matters:
            listed[check.name] = check
        else:
            aside.setdefault(check.reason, []).append(check.name)
    width = max(map(len, listed), default=0)
    for check in listed.values():
        unchecked = check.status == "not_checked"
        words = f"not checked: {check.reason}" if unchecked else check.reason
        mark = screen.status_mark("warning" if unchecked else check.status)
        screen.print_hanging("  ", mark, f" {check.name:<{width}}  ", text=words)
    for reason, names in aside.items():
        words = f"not checked: {', '.join(names)} ({reason})"
        screen.print_hanging("  ", screen.status_mark("not_checked"), " ", text=words, style="dim")
    if verdict.first_bad is not None:
        _print_failures(screen, verdict, verdict.first_bad)
    elif verdict.status == "qualified":
        _print_qualifications(screen, verdict)


def _print_failures(screen: Screen, verdict: Verdict, first: Finding) -> None:
    """Print the first bad place with its proof and advice, then a few of the other failures."""
    screen.print_line()
    screen.print_line(StyledText("first bad place: ", "strong"), str(first.place))
    screen.print_hanging("  ", StyledText(first.code, "bad"), ": ", text=first.words)
    # A rollback or a truncation is proved by two heads. Other findings need no proof beyond their place.
    proof = first.proof
    if isinstance(proof, dict) and {"remembered", "actual"} <= proof.keys():
        for name, key in (("remembered", "remembered"), ("here", "actual")):
            screen.print_line("  ", f"{name + ':':<12}{proof[key]['count']} records, head {proof[key]['hash']}")
    _print_meaning(screen, first.code)
    more = [finding for finding in verdict.findings if finding.status == "failed"][1:]
    for finding in more[:MORE_FINDINGS_MAX]:
        screen.print_hanging("also ", StyledText(finding.code, "bad"), " ", text=f"at {finding.place}: {finding.words}")
    if len(more) > MORE_FINDINGS_MAX:
        screen.print_line(f"and {plural(len(more) - MORE_FINDINGS_MAX, 'more finding')}; --json lists all")


def _print_qualifications(screen: Screen, verdict: Verdict) -> None:
    """Print why the verdict is only qualified, once per code."""
    shown: set[str] = set()
    for finding in verdict.findings:
        if finding.code in shown:
            continue
        shown.add(finding.code)
        screen.print_line()
        screen.print_hanging(StyledText(finding.code, "warn"), " ", text=f"at {finding.place}: {finding.words}")
        _print_meaning(screen, finding.code)


def _print_meaning(screen: Screen, code: str) -> None:
    from aver.verdict import explain_code

    words = explain_code(code)
    if words != code:
        screen.print_wrapped(words, indent="  ")


_LABELS = {
    "pass": ("ALLOWED", "good"),
    "human_approved": ("ALLOWED", "good"),
    "human_review": ("NEEDS APPROVAL", "warn"),
    "skip": ("DENIED", "bad"),
    "skipped": ("DENIED", "bad"),
}
_NOTES = {
    "human_approved": "once, because a person approved it",
    "human_review": "a person must approve it first: aver approvals list",
    "skipped": "it was refused too often; do not ask again",
}


def decision_label(decision: str) -> StyledText:
    """ALLOWED, DENIED or NEEDS APPROVAL."""
    return StyledText(*_LABELS[decision])


def decision_note(decision: str) -> str:
    """A few words about a decision that the label does not say; empty for most."""
    return _NOTES.get(decision, "")
