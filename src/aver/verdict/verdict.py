"""The verdict: the checks that passed, those that failed and where first, and those that were not made.

    verified    every check that applies passed
    qualified   nothing failed, but there is a warning, or a check that matters was not made; it is named
    failed      a check failed; `first_bad` says where
    empty       there was nothing to verify; never a success

Beside the status stands `integrity`, the answer of the checks that need bytes and keys alone (`INTEGRITY_CHECKS`):

    intact      they passed, and every signature was held against a key that the verifier holds
    unsigned    none of them failed, but at least one signature was held against no such key
    failed      one of them failed
    none        there are no records

A verdict has no truth value on purpose: there are four answers, and an `if` that forgets one of them accepts tampered
data. Compare `.status`.

Verification works in pieces: a slice of a chain, a chain, a file. Each piece gives a `Tally`. Tallies are merged in
order into one verdict. So the first bad place is the first in reading order, however the work was divided.

Every finding has a code. Python, the page and the docs all read the codes from `codes.json`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from functools import cache
from typing import Any, Literal

import orjson

from aver.fast_dataclass import NamedTuple, dataclass


@dataclass(frozen=True, slots=True)
class FindingCode:
    """A code, what it means, and what to do about it."""

    name: str
    meaning: str
    advice: str


@cache
def load_codes() -> dict[str, FindingCode]:
    """All codes, by name."""
    from importlib.resources import files  # Here, because it takes long to load and most verdicts explain nothing.

    raw = orjson.loads(files("aver.verdict").joinpath("codes.json").read_bytes())
    return {name: FindingCode(name, entry["meaning"], entry["advice"]) for name, entry in raw.items()}


Status = Literal["verified", "qualified", "failed", "empty"]
Integrity = Literal["intact", "unsigned", "failed", "none"]
CheckStatus = Literal["passed", "warning", "failed", "not_checked"]

CHECKS = (
    "schema",
    "canonical",
    "content",
    "signature",
    "signature_pq",
    "links",
    "genesis",
    "identity",
    "columns",
    "store",
    "keys",
    "blobs",
    "meta",
    "profile",
)
"""Every check of a record or chain, in the order of the report. Other rooms add their own after these."""

_BYTE_CHECKS = ("index", "head", "page", "parts", "archive", "report", "rollback", "checkpoint")
INTEGRITY_CHECKS = frozenset({*CHECKS, *_BYTE_CHECKS} - {"profile"})
"""The checks that need bytes and keys alone. All others judge what the records mean."""

FINDINGS_KEPT = 100
"""How many findings of one check and code a tally keeps; the others are only counted."""

NOTE_MAX = 400
"""Characters of a note after which no further note is added to it."""


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a finding."""

    chain: str | None = None
    sequence: int | None = None
    source: str | None = None
    """The file, or the line in it, if there is no chain to name."""

    def __str__(self) -> str:
        parts = [] if self.source is None else [self.source]
        if self.chain is not None:
            parts.append(f"chain {self.chain}")
        if self.sequence is not None:
            parts.append(f"sequence {self.sequence}")
        return ", ".join(parts) or "here"

    def to_dict(self) -> dict[str, Any]:
        return {"chain": self.chain, "sequence": self.sequence, "source": self.source}


@dataclass(frozen=True, slots=True)
class Finding:
    """One failure, warning or unchecked item at one place."""

    check: str
    status: CheckStatus
    code: str
    words: str
    place: Place = Place()
    proof: Any = None
    """The evidence, where the place alone does not show it: for a rollback, both heads."""

    def to_dict(self) -> dict[str, Any]:
        found = {
            "check": self.check,
            "status": self.status,
            "code": self.code,
            "words": self.words,
            "place": self.place.to_dict(),
        }
        return found if self.proof is None else {**found, "proof": self.proof}

    def __str__(self) -> str:
        return f"{self.code} at {self.place}: {self.words}"


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check over everything that was verified. `matters` applies to `not_checked` only."""

    name: str
    status: CheckStatus
    reason: str
    code: str | None = None
    place: Place | None = None
    count: int = 0
    matters: bool = False

    def to_dict(self) -> dict[str, Any]:
        place = None if self.place is None else self.place.to_dict()
        return {
            "name": self.name,
            "status": self.status,
            "reason": self.reason,
            "code": self.code,
            "place": place,
            "count": self.count,
        }


class UnrecordedKey(NamedTuple):
    """A signer without a record in the `keys` chain."""

    key: str
    """The 64 digits of its Ed25519 key."""
    trace: str | None = None
    """The chain of the trace that it sealed in. In each trace, a join may stand for the record."""


@dataclass(slots=True)
class Tally:
    """The findings and counts of one piece of verification. Merging keeps the order of the pieces."""

    records: int = 0
    chains: int = 0
    done: dict[str, int] = field(default_factory=dict)
    """On how many things each check was really carried out. One that could not be judged goes to `skip` instead."""
    findings: list[Finding] = field(default_factory=list)
    counts: dict[tuple[str, CheckStatus, str], int] = field(default_factory=dict)
    skipped: dict[str, tuple[str, bool]] = field(default_factory=dict)
    """Checks that were not made: the reason, and whether that matters."""
    notes: dict[str, str] = field(default_factory=dict)
    """Text for the report of a check that passed."""
    profiles: dict[str, int] = field(default_factory=dict)
    """The number of records of each profile."""
    earlier: int = 0
    """Records that were verified before and not read again."""
    doubtful: set[str | None] = field(default_factory=set)
    """The chains of all findings, also of those that are only counted; None for a finding without a chain."""
    unrecorded: dict[UnrecordedKey, Place] = field(default_factory=dict)
    """The signers that an intact `keys` chain does not record, each with its first record."""
    vouched: set[UnrecordedKey] = field(default_factory=set)
    """Signers of traces whose joins the trace's operator has sealed: they need no record."""

    def add(self, finding: Finding) -> None:
        """Count a finding, and keep it while there are at most `FINDINGS_KEPT` of its check and code."""
        self.doubtful.add(finding.place.chain)
        key = (finding.check, finding.status, finding.code)
        count = self.counts[key] = self.counts.get(key, 0) + 1
        if count <= FINDINGS_KEPT:
            self.findings.append(finding)

    def count_done(self, check: str, times: int = 1) -> None:
        """Note that a check was carried out on so many things. A check whose count stays 0 does not pass."""
        self.done[check] = self.done.get(check, 0) + times

    def skip(self, check: str, reason: str, *, matters: bool) -> None:
        """Note that a check was not made. A reason that matters replaces one that does not."""
        if check not in self.skipped or matters > self.skipped[check][1]:
            self.skipped[check] = (reason, matters)

    def merge(self, other: Tally) -> None:
        """Add the tally of the next piece."""
        self.records += other.records
        self.chains += other.chains
        self.earlier += other.earlier
        self.doubtful |= other.doubtful
        self.vouched |= other.vouched
        for signer, place in other.unrecorded.items():
            self.unrecorded.setdefault(signer, place)
        for check, times in other.done.items():
            self.count_done(check, times)
        # The limit holds for the merged tally, too: a hostile ledger must not fill the memory with findings. Up to the
        # limit every counted finding is kept, so the counts before this piece tell how many more there may be.
        room: dict[tuple[str, CheckStatus, str], int] = {}
        for finding in other.findings:
            key = (finding.check, finding.status, finding.code)
            room[key] = room.get(key, FINDINGS_KEPT - self.counts.get(key, 0)) - 1
            if room[key] >= 0:
                self.findings.append(finding)
        for key, count in other.counts.items():
            self.counts[key] = self.counts.get(key, 0) + count
        for check, (reason, matters) in other.skipped.items():
            self.skip(check, reason, matters=matters)
        for check, note in other.notes.items():
            before = self.notes.get(check)
            if before is None:
                self.notes[check] = note
            elif note not in before and len(before) < NOTE_MAX:
                self.notes[check] = f"{before}; {note}"
        for profile, count in other.profiles.items():
            self.profiles[profile] = self.profiles.get(profile, 0) + count


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to `verify`. The module's docstring explains the four statuses."""

    subject: str
    status: Status
    records: int
    chains: int
    checks: tuple[Check, ...]
    first_bad: Finding | None
    findings: tuple[Finding, ...]
    level: str = "signature"
    earlier: int = 0
    """Records that were verified before and not read again: see `since`."""
    tenants: Mapping[str, Verdict] = field(default_factory=dict)
    """The verdict on each tenant, where this one is on several."""

    def __bool__(self) -> bool:
        raise TypeError("a verdict is not a yes or no: compare .status with 'verified', 'qualified', 'failed', 'empty'")

    @property
    def integrity(self) -> Integrity:
        """The result of the checks that need bytes and keys alone."""
        # The report of a protocol trace is made again from its events. It says nothing of bytes.
        is_trace = any(check.name == "participants" for check in self.checks)
        names = INTEGRITY_CHECKS - {"report"} if is_trace else INTEGRITY_CHECKS
        if any(check.status == "failed" for check in self.checks if check.name in names):
            return "failed"
        if not self.records:
            return "intact" if self.earlier else "none"
        return "intact" if self.held == self.records and not self.unknown_signatures else "unsigned"

    @property
    def held(self) -> int:
        """Of how many records the signature was held against a key that the verifier holds.

        Where the things that were verified are checkpoints, of how many of these.
        """
        found = {check.name: check for check in self.checks}
        signed = found.get("signature") or found.get("checkpoint")
        if signed is None or signed.status != "not_checked":
            return 0 if signed is None else self.records
        return max(self.records - signed.count, 0) if signed.code == "UNKNOWN_SIGNER" else 0

    @property
    def unknown_signatures(self) -> int:
        """How many signatures are by keys that the verifier does not hold. The two halves of one count apart."""
        unknown = (check for check in self.checks if check.code == "UNKNOWN_SIGNER" and check.status == "not_checked")
        return sum(check.count for check in unknown if check.name in INTEGRITY_CHECKS)

    def check(self, name: str) -> Check:
        """The result of the check with this name."""
        return next(check for check in self.checks if check.name == name)

    def to_dict(self) -> dict[str, Any]:
        return {
            "subject": self.subject,
            "status": self.status,
            "integrity": self.integrity,
            "level": self.level,
            "records": self.records,
            "earlier": self.earlier,
            "chains": self.chains,
            "first_bad": None if self.first_bad is None else self.first_bad.to_dict(),
            "checks": [check.to_dict() for check in self.checks],
            "findings": [finding.to_dict() for finding in self.findings],
        }


def conclude(subject: str, tally: Tally, *, level: str = "signature", expected: Iterable[str] = CHECKS) -> Verdict:
    """Turn a tally into a verdict. An expected check that was neither made nor skipped is reported as not checked."""
    names = list(dict.fromkeys([*expected, *tally.done, *tally.skipped, *(f.check for f in tally.findings)]))
    checks = tuple(_build_check(name, tally) for name in names)
    failed = [finding for finding in tally.findings if finding.status == "failed"]
    # In this order: a failure outweighs everything, and nothing read is never a success.
    if failed:
        status: Status = "failed"
    elif tally.records == 0 and tally.earlier == 0:
        status = "empty"
    elif any(c.status == "warning" or (c.status == "not_checked" and c.matters) for c in checks):
        status = "qualified"
    else:
        status = "verified"
    return Verdict(
        subject=subject,
        status=status,
        records=tally.records,
        chains=tally.chains,
        checks=checks,
        first_bad=failed[0] if failed else None,
        findings=tuple(tally.findings),
        level=level,
        earlier=tally.earlier,
    )


_WORST_FIRST: tuple[Status, ...] = ("failed", "empty", "qualified", "verified")
DOES_NOT_APPLY = "does not apply here"
_WORST_CHECK_FIRST = ("failed", "warning", "not_checked", "passed")


def worst_status(statuses: Iterable[Status]) -> Status:
    """The worst of several statuses."""
    return min(statuses, key=_WORST_FIRST.index)


def worst_integrity(results: Iterable[Integrity]) -> Integrity:
    """The worst of several. Things without records say nothing about the others."""
    return min(results, key=("failed", "unsigned", "intact", "none").index)


def merge_verdicts(subject: str, parts: Mapping[str, Verdict]) -> Verdict:
    """Join verdicts on several things, each under its name. The worst result of each check counts."""
    checks: dict[str, Check] = {}
    findings = []
    first = next(iter(parts.values()))
    # A check with the same result in every part needs no name of a part before its reason.
    shared = [check for check in first.checks if all(check in other.checks for other in parts.values())]
    for name, verdict in parts.items():
        for check in verdict.checks:
            before = checks.get(check.name)
            if check.status != "passed" and check not in shared:
                check = replace(check, reason=f"{name}: {check.reason}")
            if before is not None and before.status == check.status:
                count = before.count + check.count
                check = replace(min(check, before, key=_severity), count=count)
                check = replace(check, reason=f"{count} checked") if check.status == "passed" else check
            if before is None or _severity(check) <= _severity(before):
                checks[check.name] = check
        findings += [replace(found, place=replace(found.place, source=name)) for found in verdict.findings]
    return Verdict(
        subject=subject,
        status=worst_status(verdict.status for verdict in parts.values()),
        records=sum(verdict.records for verdict in parts.values()),
        chains=sum(verdict.chains for verdict in parts.values()),
        checks=tuple(checks.values()),
        first_bad=next((finding for finding in findings if finding.status == "failed"), None),
        findings=tuple(findings),
        level=first.level,
        earlier=sum(verdict.earlier for verdict in parts.values()),
    )


def _severity(check: Check) -> tuple[int, bool]:
    if check.status == "not_checked" and check.reason.endswith(DOES_NOT_APPLY):
        return len(_WORST_CHECK_FIRST), True  # The check may still apply to other parts.
    return _WORST_CHECK_FIRST.index(check.status), not check.matters


def _build_check(name: str, tally: Tally) -> Check:
    """The result of one check: the worst finding, or else that it was made, or else why it was not."""
    for status in ("failed", "not_checked", "warning"):
        found = [finding for finding in tally.findings if finding.check == name and finding.status == status]
        if found:
            count = sum(n for (check, s, _), n in tally.counts.items() if check == name and s == status)
            more = f" ({count} in all)" if count > 1 else ""
            why, matters = tally.skipped.get(name, ("", False))
            if matters and status != "failed":  # A warning must not hide that something was not checked.
                more = f"{more}; not all: {why}"
            first = found[0]
            return Check(name, first.status, f"{first.words}{more}", first.code, first.place, count, matters=True)
    if name == "profile" and tally.profiles:
        reason = ", ".join(f"{profile}: {count}" for profile, count in sorted(tally.profiles.items()))
        return Check(name, "passed", reason, count=sum(tally.profiles.values()))
    if times := tally.done.get(name):  # A check that was made for nothing has not passed.
        reason = tally.notes.get(name) or f"{times} checked"
        if name in tally.skipped:
            why, matters = tally.skipped[name]
            if matters:  # It was made for some records only, so it must not count as passed.
                return Check(name, "not_checked", f"not all: {why}", count=times, matters=True)
        return Check(name, "passed", reason, count=times)
    reason, matters = tally.skipped.get(name, (DOES_NOT_APPLY, False))
    return Check(name, "not_checked", reason, matters=matters)


def explain_code(code: str, check: str = "") -> str:
    """The meaning of a code and the advice for it, in the words of a check that uses it in a sense of its own."""
    entry = load_codes().get(code)
    return _WORDS_OF_CHECKS.get((check, code)) or (f"{entry.meaning} {entry.advice}" if entry else code)


_OF_TRANSCRIPTS = "The client's transcript {}. Compare both: the record is what was sealed at that time."
_WORDS_OF_CHECKS = {
    ("transcript", "ARTIFACT_HASH_MISMATCH"): _OF_TRANSCRIPTS.format("says something else than the ledger"),
    (
        "transcript",
        "CHAIN_IDENTITY",
    ): "If you did not continue the session elsewhere, find out who wrote it.",
    ("transcript", "ARTIFACT_MISSING"): _OF_TRANSCRIPTS.format("lacks something that is sealed"),
}
