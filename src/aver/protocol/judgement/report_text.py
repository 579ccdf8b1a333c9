"""A report in words, for people: the verdict first, then its root cause and what to do, then every claim.

A report itself has only codes and values (module `report` beside this one). The words here are made from these; nothing
in them is signed. Texts of agents are made safe to show: one line each, with control characters written out.

    FAIL: trace 5d2e, judged by the profile default, 9 records
    1 failed, 0 warnings

    Root cause
      record 7: CLAIM_UNPROVEN: claim 1f0c, item 0: the recomputed value is another one; found false
    What to do
      Do not rely on the claim.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from aver.protocol.predicates import REASONS
from aver.protocol.rules.check_words import TEXT_MAX, describe_check, show_value
from aver.text import escape_invisible, plural, summary_line
from aver.verdict import load_codes

STATUS_WORDS = {"pass": "PASS", "pass-with-warnings": "PASS WITH WARNINGS", "fail": "FAIL"}


class ClaimWords(NamedTuple):
    """The words of a claim, and the agent that has said them."""

    text: str = ""
    speaker: str = ""


ClaimTexts = Mapping[str, ClaimWords]
"""The words of claims, by the claim's id. A report does not repeat them."""


def describe_claimants(claim: Mapping[str, Any], words: ClaimWords) -> str:
    """Say who has made a claim, and whose words it has now, if another has worded it anew."""
    agent: str = claim["agent"]
    return agent if words.speaker in ("", agent) else f"{agent}, worded anew by {words.speaker}"


def describe_finding(found: Mapping[str, Any], content: Mapping[str, Any]) -> str:
    """Say in words what a finding of a report is about. The code and the place are left to the caller."""
    code, subject, item = found["code"], found["subject"], found["item"]
    if code in ("CLAIM_UNPROVEN", "ARTIFACT_MISSING", "ARTIFACT_HASH_MISMATCH") and found["check"] == "claims":
        kind, judged = _find_items(content, subject)
        if item is None:
            return f"{kind} {subject}: none of its evidence has a check"
        # Conditions come after expected evidence: both are judged under the proposal, each by its own number.
        failing = [each for each in judged if not each["holds"] and each["place"] == item]
        shown = "; ".join(_describe_result(each) for each in failing) or "an item does not hold"
        if kind == "proposal":
            return f"what was expected of the proposal {subject} is not met, item {item}: {shown}"
        return f"{kind} {subject}, item {item}: {shown}"
    if found["check"] == "executions" and code == "ROLE_POLICY_VIOLATION":
        return f"no decision of the gate allows this call; it names the decision {subject}"
    if found["check"] == "intents" and code == "ROLE_POLICY_VIOLATION":
        return f"the gate found a risk that needs the critics' approval, and they have not approved intent {subject}"
    if code == "CLAIM_DISPUTED":
        is_upheld = any(claim["id"] == subject and claim["standing"] == "refuted" for claim in content["claims"])
        return f"a challenge to the claim {'was upheld' if is_upheld else 'is open'} ({subject})"
    words = _FINDING_WORDS.get(code) or load_codes()[code].meaning if code in load_codes() else code
    return f"{words} ({subject})" if subject else words


_FINDING_WORDS: Mapping[str, str] = {
    "NOT_REPRODUCED": "repeating the execution gave another result",
    "NOT_INDEPENDENT": "the key lies where the executor's key lies",
    "OUTCOME_UNKNOWN": "nobody knows how the execution ended",
}


def _find_items(content: Mapping[str, Any], subject: Any) -> tuple[str, list[dict[str, Any]]]:
    """Return the subject of a finding, and its judged items, each with its place in its list."""
    for claim in content["claims"]:
        if claim["id"] == subject:
            return "claim", [{**each, "place": place} for place, each in enumerate(claim["evidence"])]
    for proposal in content["proposals"]:
        if proposal["id"] == subject:
            judged = [{**each, "place": place} for place, each in enumerate(proposal["expected"])]
            places: dict[str, int] = {}
            for each in proposal["conditions"]:
                place = places[each["critic"]] = places.get(each["critic"], -1) + 1
                judged.append({**each, "place": place})
            return "proposal", judged
    return "record", []


def _describe_result(item: Mapping[str, Any]) -> str:
    words: str = REASONS.get(item["reason"], item["reason"])
    if item["found"] is None:
        return words
    expected = f"; expected {describe_check(item['check'])}" if "check" in item else ""
    return f"{words}{expected}; found {show_value(item['found'])}"


def show_text(text: str) -> str:
    """A text of an agent on one safe line."""
    return escape_invisible(summary_line(text, TEXT_MAX))


def find_root_cause(content: Mapping[str, Any]) -> dict[str, Any] | None:
    """The finding that explains the status best: the first broken record, else the first failure, else a warning."""
    findings: list[dict[str, Any]] = content["findings"]
    broken = content["first_broken"]
    if broken is not None:
        return next(each for each in findings if each["sequence"] == broken["sequence"] and each["status"] == "failed")
    for status in ("failed", "warning"):
        found = [each for each in findings if each["status"] == status]
        if found:
            return min(found, key=lambda each: -1 if each["sequence"] is None else int(each["sequence"]))
    return None


def list_advice(content: Mapping[str, Any]) -> list[str]:
    """Return the advice about the findings that count, each once: that about the root cause first, then by weight."""
    known, cause = load_codes(), find_root_cause(content)
    counted = [each for each in content["findings"] if each["status"] != "note"]
    failed_first = sorted(counted, key=lambda each: (each is not cause, each["status"] != "failed"))
    codes = dict.fromkeys(each["code"] for each in failed_first)
    return list(dict.fromkeys(known[code].advice for code in codes if code in known))


def render_report_text(content: Mapping[str, Any], texts: ClaimTexts) -> str:
    """The report as plain text."""
    return "\n".join((*_render_verdict(content), *_render_claims(content, texts), *_render_rest(content), ""))


def _render_verdict(content: Mapping[str, Any]) -> Iterator[str]:
    count = content["head"]["count"]
    yield (
        f"{STATUS_WORDS[content['status']]}: trace {show_text(content['trace'])}, "
        f"judged by the profile {content['profile']}, {plural(count, 'record')}"
    )
    statuses = [each["status"] for each in content["findings"]]
    yield f"{statuses.count('failed')} failed, {plural(statuses.count('warning'), 'warning')}"
    last, broken = content["last_trusted"], content["first_broken"]
    if broken is not None:
        yield f"first broken record: {broken['sequence']} ({broken['code']})"
        trusted = "none" if last is None else f"{last['sequence']} ({last['event']})"
        yield f"last trusted record: {trusted}. Nothing after it was judged."
    cause = find_root_cause(content)
    if cause is not None:
        yield from ("", "Root cause", f"  {_render_finding(cause, content)}", "What to do")
        yield from (f"  {advice}" for advice in list_advice(content))


def _render_finding(found: Mapping[str, Any], content: Mapping[str, Any]) -> str:
    place = "" if found["sequence"] is None else f"record {found['sequence']}: "
    return f"{place}{found['code']}: {describe_finding(found, content)}"


def _render_claims(content: Mapping[str, Any], texts: ClaimTexts) -> Iterator[str]:
    yield from ("", f"Claims ({len(content['claims'])})")
    for claim in content["claims"]:
        words = texts.get(claim["id"], ClaimWords())
        who, confidence = describe_claimants(claim, words), show_value(claim["confidence"])
        yield f"  {claim['id']} by {who}, {claim['standing']}, confidence {confidence}"
        yield f"    {show_text(words.text)}"
        yield from (f"    {_render_item(item)}" for item in claim["evidence"])
        for challenge in claim["challenges"]:
            yield f"    challenged by {challenge['agent']}: {challenge['standing']}"
            yield from (f"      {_render_item(item)}" for item in challenge["evidence"])
    for proposal in content["proposals"]:
        yield f"  proposal {proposal['id']} by {proposal['agent']}: {proposal['standing']}"
        yield from (f"    expected: {_render_item(item)}" for item in proposal["expected"])
        yield from (f"    condition of {item['critic']}: {_render_item(item)}" for item in proposal["conditions"])


def _render_item(item: Mapping[str, Any]) -> str:
    mark = "holds" if item["holds"] else "DOES NOT HOLD"
    about = " ".join(f"{name} {item[name][:16]}" for name in ("artifact", "execution") if name in item)
    check = show_value(item["check"]) if "check" in item else "no check"
    why = "" if item["holds"] else f": {_describe_result(item)}"
    found = f"; found {show_value(item['found'])}" if item["holds"] and item["found"] is not None else ""
    return f"{mark}: {about} {check}{why}{found}".replace(":  ", ": ")


def describe_rerun(rerun: Mapping[str, Any]) -> str:
    """Say what the auditor's repetition of a call gave, or why the auditor did not repeat it."""
    if "skipped" in rerun:
        why = _SKIPPED_WORDS.get(rerun["skipped"])
        return f"not repeated by the auditor: {rerun['skipped']}{f', {why}' if why else ''}"
    if rerun.get("same") is True:
        return "repeated by the auditor: the same result"
    code = rerun.get("exit_code")
    return f"repeated by the auditor: another result{'' if code is None else f', exit code {code}'}"


_SKIPPED_WORDS: Mapping[str, str] = {
    "REFUSED": "the gate did not allow it, or found more than reading, arranging and building",
    "OTHER_COMMIT": "the workspace is not as it was recorded, and the commit cannot be checked out elsewhere",
    "ARGUMENTS_MASKED": "its arguments held a secret, which the record does not have",
    "NO_TOOL": "the auditor does not have the tool",
}


def _render_rest(content: Mapping[str, Any]) -> Iterator[str]:
    yield from ("", f"Executions ({len(content['executions'])})")
    for each in content["executions"]:
        code = "" if each["exit_code"] is None else f", exit code {each['exit_code']}"
        rerun = "" if each["rerun"] is None else f"; {describe_rerun(each['rerun'])}"
        yield (
            f"  {each['id']} {show_text(each['tool'])}: {each['code'] or 'not ended'}{code}, "
            f"risk {each['risk']['derived']}{rerun}"
        )
    yield from ("", f"Participants ({len(content['participants'])})")
    for each in content["participants"]:
        yield f"  {each['agent']}: {each['role']}, key {each['public_key'][:16]}, held {each['held']}"
    states = [each["state"] for each in content["artifacts"]]
    yield from ("", f"Artifacts: {states.count('here')} here, {len(states) - states.count('here')} missing or changed")
    yield from ("", "Checks")
    yield from (f"  {each['name']}: {each['status']} ({each['count']})" for each in content["checks"])
    notes = [each for each in content["findings"] if each["status"] != "failed"]
    if notes:
        yield from ("", "Warnings and notes")
        yield from (f"  {each['status']}: {_render_finding(each, content)}" for each in notes)
