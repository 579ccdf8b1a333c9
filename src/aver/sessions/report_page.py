"""Renders a report: one printable page about a session, or about the sessions of a time.

The page says what the records establish and what they do not, in two lists of equal weight. Then come the sessions, as
`html_page` renders them, and the verdict with every check. `report_file` describes the blocks at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aver import __version__
from aver.html import begin_page, escape_text
from aver.sessions.figures import SessionTotals
from aver.sessions.html_page import FILTER_TOOLS, render_checks, render_first_bad, render_story, time_tag
from aver.sessions.labels import format_money, total_labels
from aver.sessions.report_file import FIRST_WORDS, REPORT_MARK
from aver.sessions.step import ReadBlob
from aver.sessions.story import StoryEntry
from aver.text import plural
from aver.verdict import Verdict, explain_code

CHECK_WORDS = {
    "schema": "Each record is a capsule and says what it is.",
    "content": "No record was changed after it was sealed: each has its hash.",
    "signature": "Each record was signed by the key that it names.",
    "signature_pq": "Post-quantum signatures are valid, too.",
    "links": "No record was removed or inserted between two others.",
    "genesis": "Each chain begins with its first record.",
    "identity": "Each chain is the one that it says it is.",
    "keys": "The keys were recorded as those of this ledger.",
    "blobs": "Large values are those that the records refer to.",
    "head": "The chains end where the ledger says they ended.",
    "approvals": "Approvals were signed by their approvers.",
    "decisions": "The gate's decisions follow from what they were made of.",
    "canonical": "The records have their canonical form.",
    "index": "The list of the chains is right.",
    "meta": "The meta chain knows these chains.",
}
"""The meaning of a check, in words for a reader. Other checks are listed by their names."""

LIMITS = (
    "That the agent recorded everything it did. A report shows what was sealed.",
    "That these are all sessions. The report covers the chains that it names.",
    "That what an agent or a person said in these records is true.",
    "That clocks were right. Times are those of the recording machine.",
    "Whose key it is. Compare the signer below with a key that you got another way.",
)
"""Facts that no check of a report can establish."""


def render_front(
    subject: str, sessions: Sequence[SessionTotals], verdict: Verdict, *, made_at: str, signer: str
) -> Iterator[str]:
    """Yield the page up to the first session."""
    started = min((session.started for session in sessions if session.started), default=None)
    ended = max((session.ended for session in sessions if session.ended), default=None)
    single = sessions[0] if len(sessions) == 1 else None
    title = (" ".join(single.title.split()) if single else "") or subject
    totals = "".join(f"<li>{escape_text(words)}</li>" for words in (total_labels(single) if single else ()))
    yield f"""{begin_page(title, REPORT_MARK)}<a class="skip" href="#story">To the story</a>
<header>
{FIRST_WORDS}{escape_text(subject)}</p>
<h1 dir="auto">{escape_text(title)}</h1>
<p class="meta">{time_tag(started)} to {time_tag(ended)} UTC · made {time_tag(made_at)} UTC</p>
<ul class="totals" aria-label="Totals">{totals}</ul>
<p><a class="badge {verdict.status}" href="#verdict">{verdict.status}: {plural(verdict.records, "record")} in
{plural(verdict.chains, "chain")}</a></p>
{render_first_bad(verdict)}
"""
    yield from _render_lists(verdict, signer)
    if single is None:
        yield from _render_overview(sessions)
    yield f'{FILTER_TOOLS}\n</header>\n<main id="story">\n'


def _render_lists(verdict: Verdict, signer: str) -> Iterator[str]:
    passed = [check for check in verdict.checks if check.status == "passed" and check.name != "profile"]
    open_checks = [check for check in verdict.checks if check.status != "passed" and (check.matters or check.code)]
    established = [f"{CHECK_WORDS.get(check.name, check.name)} ({check.count:,})" for check in passed]
    if verdict.status == "failed":
        established.append("Records with a finding are named in the verdict below; others are intact in themselves.")
    unestablished = [f"{check.name}: {check.reason}" for check in open_checks]
    for heading, entries in (
        ("Established", established),
        ("Not established", [*unestablished, *LIMITS]),
    ):
        listed = "".join(f"<li>{escape_text(words)}</li>" for words in entries)
        opening = '<div class="lists">' if heading == "Established" else ""
        yield f"{opening}<section><h2>{heading}</h2><ul>{listed}</ul></section>\n"
    yield f"""</div>
<p class="meta">This file carries its records and a statement signed by <code>{escape_text(signer)}</code>.
<code>aver verify FILE --key KEY</code> checks both, and so does the page of the Explorer.</p>
"""


def _render_overview(sessions: Sequence[SessionTotals]) -> Iterator[str]:
    yield '<div class="wide" role="region" aria-label="Sessions" tabindex="0"><table class="sessions"><thead><tr>'
    for name in ("Session", "Started (UTC)", "Actions", "Edits", "Denials", "Cost"):
        yield f'<th scope="col">{name}</th>'
    yield "</tr></thead><tbody>\n"
    for number, session in enumerate(sessions):
        title = " ".join(session.title.split()) or session.session
        cost = "–" if session.cost_usd is None else format_money(session.cost_usd)
        yield f'<tr><td><a href="#session-{number}">{escape_text(session.tool)}: {escape_text(title)}</a></td>'
        yield f"<td>{time_tag(session.started)}</td><td>{session.actions:,}</td><td>{session.edits:,}</td>"
        yield f"<td>{session.denials:,}</td><td>{escape_text(cost)}</td></tr>\n"
    yield "</tbody></table></div>\n"


def render_session(
    number: int, session: SessionTotals, entries: Iterator[StoryEntry], blob: ReadBlob, *, with_title: bool
) -> Iterator[str]:
    """Yield one session of the report."""
    yield f'<article id="session-{number}">\n'
    if with_title:
        title = " ".join(session.title.split()) or session.session
        totals = "".join(f"<li>{escape_text(words)}</li>" for words in total_labels(session))
        yield f"""<h2 class="session" dir="auto">{escape_text(title)}</h2>
<p class="meta">{escape_text(session.tool)} · session <code>{escape_text(session.session)}</code> ·
{time_tag(session.started)} to {time_tag(session.ended)} UTC</p>
<ul class="totals" aria-label="Totals">{totals}</ul>
"""
    yield from render_story(entries, blob)
    yield "</article>\n"


def render_end(verdict: Verdict, sessions: Sequence[SessionTotals], *, made_at: str) -> Iterator[str]:
    """Yield the verdict and the footer."""
    yield f"""<section id="verdict" aria-labelledby="verdict-title">
<h2 id="verdict-title">Verdict: <span class="badge {verdict.status}">{verdict.status}</span></h2>
<p>{plural(verdict.records, "record")} in {plural(verdict.chains, "chain")}, verified when this report was made,
{time_tag(made_at)} UTC, by aver {escape_text(__version__)}.</p>
"""
    if verdict.first_bad is not None:
        yield f"{render_first_bad(verdict)}<p>{escape_text(explain_code(verdict.first_bad.code))}</p>\n"
    yield from render_checks(verdict)
    names = dict.fromkeys(name for session in sessions for name in session.chains)
    chains = "".join(f"<dt>chain</dt><dd><code>{escape_text(name)}</code></dd>" for name in names)
    yield f"""<dl>{chains}</dl>
</section>
</main>
<footer>
<p>What you read here is covered by the signature in this file, and the records are inside it. Do not rely on the page
itself: run <code>aver verify</code> on the file, with a key that you got another way.</p>
</footer>
"""
