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

OWNER_CHECK = "participants"
"""The check that also says whose keys take part in a trace."""

STATUS_STYLES = {"verified": "good", "qualified": "warn", "failed": "bad", "empty": "warn"}


def exit_code(statuses: Iterable[str], *, strict: bool) -> int:
    """The exit code for these verdicts: 0 if all are good. With `strict`, qualified is not good."""
    accepted = {"verified"} if strict else {"verified", "qualified"}
    return 0 if accepted.issuperset(statuses) else 1


def have_matched(verdicts: Iterable[Verdict]) -> bool:
    """Whether the given keys have signed something in each thing. Keys that match nothing vouch for nothing."""
    return all(verdict.held for verdict in verdicts)


def status_parts(screen: Screen, verdict: Verdict) -> list[LinePart]:
    """The sign of a verdict, and its words: its integrity first, where its status does not say the same."""
    parts: list[LinePart] = [screen.status_mark(verdict.status), " "]
    if verdict.integrity in ("intact", "unsigned"):
        parts += [StyledText(verdict.integrity, "warn" if verdict.integrity == "unsigned" else "good"), ", "]
    return [*parts, StyledText(verdict.status, STATUS_STYLES[verdict.status])]


def unsigned_text(verdict: Verdict) -> str:
    """How many signatures were held against no key, as the end of a first line. Empty if each of them was."""
    if verdict.integrity != "unsigned":
        return ""
    if not verdict.held:
        return "; nobody's signature was checked"
    return f"; {plural(verdict.unknown_signatures, 'signature')} by keys that are not known here"


def extent_text(verdict: Verdict) -> str:
    """How many records were verified, now and earlier."""
    chains = f" in {plural(verdict.chains, 'chain')}" if verdict.chains > 1 else ""
    if not verdict.earlier:
        return f"{plural(verdict.records, 'record')}{chains}"
    return f"{plural(verdict.records, 'new record')}{chains}, {verdict.earlier:,} verified earlier"


def print_verdict(screen: Screen, verdict: Verdict, *, about: str = "") -> None:
    """Print a whole verdict. `about` is added to its subject."""
    words = f": {verdict.subject}{about}, {extent_text(verdict)}{unsigned_text(verdict)}"
    screen.print_line(*status_parts(screen, verdict), words)
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
    if audits := find_failed_audits(verdict):
        words = f"{'audit' if len(audits) == 1 else 'audits'} of {', '.join(audits)} failed, as the auditor has signed."
        screen.print_wrapped(f"The records hold: no check of their seals and chains failed. The {words}", indent="")
    screen.print_line(StyledText("first bad place: ", "strong"), str(first.place))
    screen.print_hanging("  ", StyledText(first.code, "bad"), ": ", text=first.words)
    # A rollback or a truncation is proved by two heads. Other findings need no proof beyond their place.
    proof = first.proof
    if isinstance(proof, dict) and {"remembered", "actual"} <= proof.keys():
        for name, key in (("remembered", "remembered"), ("here", "actual")):
            screen.print_line("  ", f"{name + ':':<12}{proof[key]['count']} records, head {proof[key]['hash']}")
    failed = [finding for finding in verdict.findings if finding.status == "failed"]
    _print_meaning(screen, first)
    for finding in failed[1 : MORE_FINDINGS_MAX + 1]:
        screen.print_hanging("also ", StyledText(finding.code, "bad"), " ", text=f"at {finding.place}: {finding.words}")
    if len(failed) - 1 > MORE_FINDINGS_MAX:
        screen.print_line(f"and {plural(len(failed) - 1 - MORE_FINDINGS_MAX, 'more finding')}; --json lists them")


def find_failed_audits(verdict: Verdict) -> list[str]:
    """The chains of traces whose audits failed, if nothing else failed. Empty where any other failure is there.

    Such a finding names the audit that has found the same. Then the records are as they were sealed, and a participant
    of the trace did what it must not, or claimed what does not hold.
    """
    failed = [finding for finding in verdict.findings if finding.status == "failed"]
    # A verdict keeps only so many findings of one code. About those that it dropped, nothing is known.
    counted = sum(check.count for check in verdict.checks if check.status == "failed")
    if len(failed) != counted or not all(isinstance(f.proof, dict) and "audit" in f.proof for f in failed):
        return []
    return list(dict.fromkeys(str(finding.place.chain) for finding in failed))


def _print_qualifications(screen: Screen, verdict: Verdict) -> None:
    """Print why the verdict is only qualified: each code once with its meaning, and other words about it."""
    groups: dict[tuple[str, bool], dict[str, Finding]] = {}
    for finding in verdict.findings:
        is_owner = finding.check == OWNER_CHECK
        groups.setdefault((finding.code, is_owner), {}).setdefault(finding.words, finding)
    for (code, is_owner), found in groups.items():
        first, *others = found.values()
        screen.print_line()
        screen.print_hanging(StyledText(code, "warn"), " ", text=f"at {first.place}: {first.words}")
        if is_owner and code == "UNKNOWN_SIGNER":
            # All signatures of a trace are checked by the keys that joined. The code's own meaning says otherwise.
            screen.print_wrapped("The signatures hold. Whose the key is, nobody has confirmed.", indent="  ")
        else:
            _print_meaning(screen, first)
        for finding in others[:MORE_FINDINGS_MAX]:
            screen.print_hanging("  also ", text=f"at {finding.place}: {finding.words}")
        if len(others) > MORE_FINDINGS_MAX:
            screen.print_line(f"  and {plural(len(others) - MORE_FINDINGS_MAX, 'more finding')}; --json lists them")


def _print_meaning(screen: Screen, finding: Finding) -> None:
    from aver.verdict import explain_code

    words = explain_code(finding.code, finding.check)
    if words != finding.code:
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
