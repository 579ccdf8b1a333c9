"""A report as one HTML page: no network, no script, light and dark. It has the looks of Aver's other pages.

Everything from a trace is text on the page. The page's Content-Security-Policy allows no style but the page's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from aver.html import begin_page, escape_text
from aver.protocol.judgement.report_text import (
    STATUS_WORDS,
    ClaimTexts,
    ClaimWords,
    describe_claimants,
    describe_finding,
    describe_rerun,
    find_root_cause,
    list_advice,
    show_text,
)
from aver.protocol.predicates import REASONS
from aver.protocol.rules.check_words import show_value
from aver.text import plural

_BADGES = {"pass": "verified", "pass-with-warnings": "qualified", "fail": "failed"}
"""The class of the badge, which gives it its colour: that of the same verdict."""

_CELLS = {"note": "not_checked"}

_FIRST_CELLS = dict.fromkeys(("Checks", "Findings", "Participants"), ' class="name"')
"""The first cell of these tables is a name of a few letters, which is never broken."""


def render_report_page(content: Mapping[str, Any], texts: ClaimTexts) -> str:
    """The report as a page."""
    return "".join((*_render_head(content), *_render_claims(content, texts), *_render_tables(content)))


def _render_head(content: Mapping[str, Any]) -> Iterator[str]:
    title = f"Audit of the trace {show_text(content['trace'])}"
    badge = f'<span class="badge {_BADGES[content["status"]]}">{STATUS_WORDS[content["status"]].lower()}</span>'
    yield f"""{begin_page(title)}<header>
<h1 dir="auto">{escape_text(title)}</h1>
<p>{badge}</p>
<p class="meta">{plural(content["head"]["count"], "record")}, judged by the profile {escape_text(content["profile"])};
head <code>{escape_text(content["head"]["hash"])}</code></p>
"""
    broken, last = content["first_broken"], content["last_trusted"]
    if broken is not None:
        trusted = "none" if last is None else f"record {last['sequence']}"
        yield f'<p class="error"><strong>First broken: record {broken["sequence"]}, {escape_text(broken["code"])}.'
        yield f"</strong> Last trusted: {trusted}. Nothing after it was judged.</p>\n"
    cause = find_root_cause(content)
    if cause is not None:
        words = f"{cause['code']}: {describe_finding(cause, content)}"
        place = "" if cause["sequence"] is None else f"record {cause['sequence']}: "
        yield f"<h2>Root cause</h2><p>{escape_text(place + words)}</p>\n<h2>What to do</h2><ul>"
        yield "".join(f"<li>{escape_text(advice)}</li>" for advice in list_advice(content))
        yield "</ul>\n"
    yield "</header>\n<main>\n"


def _render_claims(content: Mapping[str, Any], texts: ClaimTexts) -> Iterator[str]:
    yield f"<section><h2>{plural(len(content['claims']), 'claim')}</h2>\n"
    for claim in content["claims"]:
        words = texts.get(claim["id"], ClaimWords())
        yield f'<h3 dir="auto">{escape_text(show_text(words.text) or claim["id"])}</h3>'
        who = describe_claimants(claim, words)
        yield f'<p class="meta">{escape_text(who)} · {escape_text(claim["standing"])} · confidence '
        yield f"{escape_text(show_value(claim['confidence']))} · <code>{escape_text(claim['id'])}</code></p>\n"
        yield from _render_items("Evidence", claim["evidence"])
        for challenge in claim["challenges"]:
            told = f"Challenged by {challenge['agent']}: {challenge['standing']}"
            yield f"<p>{escape_text(told)}</p>\n"
            yield from _render_items("Counter-evidence", challenge["evidence"])
    for proposal in content["proposals"]:
        if proposal["expected"] or proposal["conditions"]:
            yield f"<h3>Proposal <code>{escape_text(proposal['id'])}</code>: {escape_text(proposal['standing'])}</h3>\n"
            yield from _render_items("Expected evidence", proposal["expected"])
            yield from _render_items("Conditions", proposal["conditions"])
    yield "</section>\n"


def _render_items(title: str, items: list[Mapping[str, Any]]) -> Iterator[str]:
    if not items:
        return
    yield f'<table><thead><tr><th scope="col">{title}</th><th scope="col">Result</th>'
    yield '<th scope="col">Recomputed</th></tr></thead><tbody>\n'
    for item in items:
        check = _describe_check(item["check"]) if "check" in item else "no check"
        names = ("artifact", "execution", "critic")
        about = "".join(f"<br>{name} <code>{escape_text(item[name])}</code>" for name in names if name in item)
        status, words = ("passed", "holds") if item["holds"] else ("failed", "does not hold")
        found = "" if item["found"] is None else _describe_found(item["found"])
        why = REASONS.get(item["reason"], item["reason"])
        yield f'<tr><td>{escape_text(check)}<span class="meta">{about}</span></td>'
        yield f'<td class="{status}">{words}</td><td>{escape_text(" · ".join(filter(None, (found, why))))}</td></tr>\n'
    yield "</tbody></table>\n"


def _describe_check(check: Any) -> str:
    """A check of counts or of an exit code in words, such as `failed == 1, total == 3 (tap)`. Others stay as JSON."""
    match check:
        case {"tests": {"format": str(name), "counts": dict(counts)}} if len(check) == 1:
            compared = {
                each: wanted for each, wanted in counts.items() if isinstance(wanted, list) and len(wanted) == 2
            }
            if compared.keys() == counts.keys():
                words = ", ".join(f"{each} {sign} {number}" for each, (sign, number) in compared.items())
                return show_text(f"{words} ({name})")
        case {"exit_code": [str(sign), int(number)]} if len(check) == 1:
            return show_text(f"exit code {sign} {number}")
    return show_value(check)


def _describe_found(found: Any) -> str:
    """Recomputed counts in words, such as `failed 1, passed 2`. Other values stay as JSON."""
    if isinstance(found, dict) and found and all(type(value) is int for value in found.values()):
        return show_text(", ".join(f"{name} {value}" for name, value in found.items()))
    return show_value(found)


def _render_tables(content: Mapping[str, Any]) -> Iterator[str]:
    rows = [(each["name"], each["status"], plural(each["count"], "item")) for each in content["checks"]]
    yield from _render_table("Checks", ("Check", "Result", "Count"), rows)
    rows = [
        (each["code"], each["status"], f"{_place_of(each)}{describe_finding(each, content)}")
        for each in content["findings"]
    ]
    yield from _render_table("Findings", ("Code", "Result", "Details"), rows)
    rows = [
        (each["agent"], each["role"], f"{each['public_key']}, held {each['held']}") for each in content["participants"]
    ]
    yield from _render_table("Participants", ("Agent", "Role", "Key"), rows)
    rows = [
        (
            f"{each['tool']} · {each['id']}",
            each["code"] or "not ended",
            _describe_execution(each),
        )
        for each in content["executions"]
    ]
    yield from _render_table("Executions", ("Call", "End", "Details"), rows)
    rows = [
        (each["sha256"], each["state"], f"{each['size']} bytes, record {each['sequence']}")
        for each in content["artifacts"]
    ]
    yield from _render_table("Artifacts", ("SHA-256", "State", "Details"), rows)
    yield """</main>
<footer>
<p>This page is no proof: anyone who can edit the file can change it. The signed report is <code>report.json</code>; to
make it again from the records, run <code>aver verify</code> on the ledger or on a bundle of the trace.</p>
</footer>
</body>
</html>
"""


def _describe_execution(execution: Mapping[str, Any]) -> str:
    code = "" if execution["exit_code"] is None else f"exit code {execution['exit_code']}, "
    rerun = "" if execution["rerun"] is None else f"; {describe_rerun(execution['rerun'])}"
    return f"{code}risk {execution['risk']['derived']}, decision {execution['decision']}{rerun}"


def _place_of(found: Mapping[str, Any]) -> str:
    return "" if found["sequence"] is None else f"record {found['sequence']}: "


def _render_table(title: str, names: tuple[str, str, str], rows: list[tuple[str, str, str]]) -> Iterator[str]:
    if not rows:
        return
    yield f"<section><h2>{title}</h2>\n<table><thead><tr>"
    yield "".join(f'<th scope="col">{name}</th>' for name in names)
    yield "</tr></thead><tbody>\n"
    for first, state, details in rows:
        cell = _CELLS.get(state, state) if title in ("Checks", "Findings") else ""
        opening = f"<tr><td{_FIRST_CELLS.get(title, '')}>{escape_text(show_text(first))}</td>"
        yield f'{opening}<td class="{escape_text(cell)}">{escape_text(state)}</td>'
        yield f"<td>{escape_text(show_text(details))}</td></tr>\n"
    yield "</tbody></table></section>\n"
