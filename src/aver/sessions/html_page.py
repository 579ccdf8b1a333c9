"""Renders a session as one self-contained HTML page: no network, light and dark, readable without its script.

Everything from a transcript is text on the page. `escape_text` escapes it and writes out characters that hide or
reorder others. The page's Content-Security-Policy allows no other style or script. Long texts are folded; very long
ones are cut, with the digest of the whole text. Each step shows the hash of its capsule and its signer. The verdict
says what was checked and what was not.

`render_page` yields the pieces in order and keeps none of them, so the length of a session does not matter.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

from aver import __version__
from aver.clock import now
from aver.diffs import classify_diff_lines
from aver.gate.decision_record import NOT_HELD_BACK, RecordedDecision
from aver.html import PAGE_SCRIPT, begin_page, escape_text
from aver.sessions.figures import SessionTotals
from aver.sessions.labels import (
    LabelledText,
    decision_label,
    is_beyond_summary,
    labelled_texts,
    result_texts,
    shorten_arguments,
    step_details,
    step_error,
    step_summary,
    total_labels,
)
from aver.sessions.step import ReadBlob, Step, fetch_blobs, full_text
from aver.sessions.story import StoryEntry
from aver.text import plural
from aver.verdict import Verdict, explain_code

OPEN_LINES = 14
"""Lines of a text that is shown open; a longer one is folded."""

LINE_WIDTH = 100
"""Characters of a line; a longer one takes several lines on the page."""

OPEN_DIFF_LINES = 80
OPEN_SPEECH_LINES = 40
"""The same limit for diffs, and for prompts and answers."""

ASIDE_MAX = 400
"""Characters of minor facts that are shown without a frame."""

TEXT_MAX = 256 * 1024
"""Characters of one text on the page. A browser must be able to show thousands of texts."""

_STATUS_MARKS = {
    "success": ("✓", "succeeded"),
    "failure": ("✗", "failed"),
    "blocked": ("■", "denied"),
    "pending": ("–", "outcome not known"),
    "partial": ("!", "succeeded in part"),
}
_STATUS_BY_DECISION = {"pass": "success", "human_approved": "success", "human_review": "pending"}


def render_page(
    session: SessionTotals, entries: Iterator[StoryEntry], verdict: Verdict, blob: ReadBlob
) -> Iterator[str]:
    """Yield the page, piece by piece."""
    yield from _render_head(session, verdict)
    yield from render_story(entries, blob)
    yield from _render_verdict(session, verdict)
    yield f"<script>{PAGE_SCRIPT}</script>\n</body>\n</html>\n"


def render_story(entries: Iterator[StoryEntry], blob: ReadBlob) -> Iterator[str]:
    """Yield the steps of one session."""
    return _StoryRenderer(blob).render(entries)


# --- head and verdict


def _render_head(session: SessionTotals, verdict: Verdict) -> Iterator[str]:
    title = " ".join(session.title.split()) or f"{session.tool} {session.session}"
    tool, name, started = escape_text(session.tool), escape_text(session.session), time_tag(session.started)
    totals = "".join(f"<li>{escape_text(words)}</li>" for words in total_labels(session))
    yield f"""{begin_page(title)}<a class="skip" href="#story">To the story</a>
<header>
<h1 dir="auto">{escape_text(title)}</h1>
<p class="meta">{tool} · session <code>{name}</code> · {started} to {time_tag(session.ended)} UTC</p>
<ul class="totals" aria-label="Totals">{totals}</ul>
<p><a class="badge {verdict.status}" href="#verdict">{verdict.status}: {plural(verdict.records, "record")}</a></p>
{render_first_bad(verdict)}
{FILTER_TOOLS}
</header>
<main id="story">
"""


_FILTER_BUTTONS = "\n".join(
    f'<button type="button" data-only="{name}" aria-pressed="{"false" if name else "true"}">{words}</button>'
    for name, words in (
        ("", "All"),
        ("call", "Calls"),
        ("edit", "Edits"),
        ("command", "Commands"),
        ("failure", "Failures"),
        ("denied", "Denials"),
        ("answer", "Answers"),
    )
)

FILTER_TOOLS = f"""<div class="tools" hidden role="group" aria-label="Filter the steps">
{_FILTER_BUTTONS}
<input type="search" aria-label="Only steps with these words" placeholder="Only steps with these words">
<button type="button" data-fold aria-pressed="false">Open all</button>
</div>"""
"""The tools above a story. The page's script shows them."""


def time_tag(at: str | None) -> str:
    if not at:
        return "no time"
    return f'<time datetime="{escape_text(at)}">{escape_text(at[:19].replace("T", " "))}</time>'


def render_first_bad(verdict: Verdict) -> str:
    return (
        "" if verdict.first_bad is None else f'<p class="error"><strong>{escape_text(verdict.first_bad)}</strong></p>'
    )


def _render_verdict(session: SessionTotals, verdict: Verdict) -> Iterator[str]:
    yield f"""<section id="verdict" aria-labelledby="verdict-title">
<h2 id="verdict-title">Verdict: <span class="badge {verdict.status}">{verdict.status}</span></h2>
<p>{escape_text(verdict.subject)}:
{plural(verdict.records, "record")} in {plural(verdict.chains, "chain")}, verified when this page was made,
{time_tag(now())} UTC, by aver {escape_text(__version__)}.</p>
"""
    if verdict.first_bad is not None:
        yield f"{render_first_bad(verdict)}<p>{escape_text(explain_code(verdict.first_bad.code))}</p>\n"
    yield from render_checks(verdict)
    chains = "".join(f"<dt>chain</dt><dd><code>{escape_text(name)}</code></dd>" for name in session.chains)
    yield f"""<dl>{chains}</dl>
</section>
</main>
<footer>
<p>This page is no proof: anyone who can edit the file can change it. To check the records themselves, run
<code>aver verify</code> on the ledger, or on a bundle written by <code>aver export</code>.</p>
</footer>
"""


def render_checks(verdict: Verdict) -> Iterator[str]:
    """Yield the table of a verdict's checks."""
    yield '<table><thead><tr><th scope="col">Check</th><th scope="col">Result</th><th scope="col">Details'
    yield "</th></tr></thead><tbody>\n"
    for check in verdict.checks:
        words = check.status.replace("_", " ")
        matters = " matters" if check.matters else ""
        yield f'<tr><th scope="row">{escape_text(check.name)}</th><td class="{check.status}{matters}">{words}</td>'
        yield f"<td>{escape_text(check.reason)}</td></tr>\n"
    yield "</tbody></table>\n"


# --- the story


class _StoryRenderer:
    """Renders the story. Remembers which elements are open."""

    def __init__(self, blob: ReadBlob) -> None:
        self._blob = blob
        self._depth = 0
        self._in_turn = False

    def render(self, entries: Iterator[StoryEntry]) -> Iterator[str]:
        """Yield the story, piece by piece."""
        yield '<ol class="steps">\n'
        for entry in entries:
            yield from self._render_entry(entry)
        yield from self._close_to_depth(0)
        yield "</ol>\n" + ("</section>\n" if self._in_turn else "")

    def _render_entry(self, entry: StoryEntry) -> Iterator[str]:
        if entry.agent:
            # The start of a subagent's part: a list inside the list of the session that launched it.
            yield from self._close_to_depth(entry.depth - 1)
            yield f'<li><details class="agent" open><summary>Subagent {escape_text(entry.agent)}</summary>\n'
            yield '<ol class="steps">\n'
            self._depth = entry.depth
            return
        yield from self._close_to_depth(entry.depth)
        if entry.step is None:
            # A decision about a call that is in no transcript, such as a call that the gate denied.
            if entry.decision is not None:
                decision = entry.decision
                status = _STATUS_BY_DECISION.get(decision.decision, "blocked")
                denied = " denied" if decision.refuses else ""
                subject = f"{decision.tool} {shorten_arguments(decision.arguments)}"
                yield f'<li class="step note {status}{denied}">{_clock_tag(decision.at)}<div><p class="line">'
                yield f'{_status_mark(status)}<span class="sum">{escape_text(subject)}</span></p>'
                yield f"{_render_gate_line(decision)}</div></li>\n"
        elif entry.step.what == "prompt" and entry.depth == 0:
            # Start a new section with a prompt. The steps that follow belong to it.
            step = entry.step
            yield "</ol>\n" + ("</section>\n" if self._in_turn else "")
            self._in_turn = True
            text = self._full_text(step, "asked")
            first = " ".join(text.split())[:80]
            yield f'<section class="turn" aria-label="Asked: {escape_text(first)}"><div class="asked">'
            yield f'<h2 class="place">Asked {time_tag(step.at)}</h2>'
            yield self._render_text(text, OPEN_SPEECH_LINES, "the whole prompt")
            yield f'{_render_seal(step)}</div>\n<ol class="steps">\n'
        elif not entry.step.is_bookkeeping:
            yield from self._render_step(entry.step, entry)

    def _close_to_depth(self, depth: int) -> Iterator[str]:
        while self._depth > depth:
            self._depth -= 1
            yield "</ol></details></li>\n"

    def _render_step(self, step: Step, entry: StoryEntry) -> Iterator[str]:
        # Only fixed words become CSS classes, never a text of a record. The page's filter buttons use them.
        classes: list[str] = [step.what]
        classes += [step.status] if step.status in _STATUS_MARKS else []
        classes += ["edit"] if step.is_edit else []
        classes += ["command"] if step.is_command else []
        classes += ["denied"] if step.status == "blocked" else []
        yield f'<li class="step {" ".join(classes)}">{_clock_tag(step.at)}<div>\n'
        if step.thinking:
            thought = self._render_text(self._full_text(step, "thinking"), OPEN_LINES, "what the model thought")
            yield f'<div class="thinking">{thought}</div>\n'
        elif step.redacted:
            yield '<p class="thinking">(the model\'s thinking was not recorded)</p>\n'
        # A note begins with its summary. A call comes after the text that the model wrote before it.
        if step.what in ("note", "session", "unknown", "unreadable", "addition"):
            yield from self._render_summary(step)
        name = "asked" if step.what == "prompt" else "text"
        if (text := self._full_text(step, name)) and (
            name == "asked" or step.what == "answer" or is_beyond_summary(step, text)
        ):
            yield f'<div class="said">{self._render_text(text, OPEN_SPEECH_LINES, "the whole text")}</div>\n'
        if step.what == "call":
            yield from self._render_summary(step)
            if step.arguments:
                yield self._render_folded("arguments", step.arguments)
            if step_error(step):
                error = self._render_text(self._full_text(step, "error"), OPEN_LINES, "the whole error")
                yield f'<div class="error">{error}</div>\n'
            elif step.status == "pending":
                yield '<p class="differs">The outcome is not known.</p>\n'
            diff = self._fetch(step.diff)
            if isinstance(diff, str):
                yield _render_diff(diff)
            else:
                yield from self._render_texts(result_texts(step, self._fetch(step.result)), "output")
        elif step.more is not None and step.what != "answer":
            yield self._render_folded("content", step.more)
        if entry.decision is not None:
            yield _render_gate_line(entry.decision)
        for later in entry.additions:
            yield from self._render_addition(later)
        yield f"{_render_seal(step)}</div></li>\n"

    def _render_summary(self, step: Step) -> Iterator[str]:
        mark = _status_mark(step.status) if step.what == "call" else ""
        details = f' <span class="aside">{escape_text(step_details(step))}</span>' if step.what == "call" else ""
        yield f'<p class="line">{mark}<span class="sum">{escape_text(step_summary(step))}</span>{details}</p>\n'

    def _render_addition(self, later: Step) -> Iterator[str]:
        """Show whether a later record of the same call agrees."""
        addition = later.addition
        if addition is None:
            return
        if not addition.differs:
            yield f'<div class="aside">the {escape_text(addition.via)} agrees {_render_seal(later)}</div>\n'
            return
        words = f"the {addition.via} differs in {', '.join(addition.differs)}"
        yield f'<details class="differs"><summary>{escape_text(words)}</summary>'
        values = self._fetch({name: addition.says.get(name) for name in addition.differs})
        yield from self._render_texts(labelled_texts(values), "the whole text")
        yield f"</details>{_render_seal(later)}\n"

    # --- texts

    def _render_folded(self, words: str, value: Any) -> str:
        body = "".join(self._render_texts(labelled_texts(self._fetch(value)), "the whole text"))
        return f'<details class="long"><summary>{words}</summary>{body}</details>\n' if body else ""

    def _render_texts(self, parts: Iterable[LabelledText], words: str) -> Iterator[str]:
        for part in parts:
            if part.aside and len(part.text) <= ASIDE_MAX:
                yield f'<p class="label">{escape_text(part.text)}</p>'
                continue
            if part.name:
                yield f'<p class="label">{escape_text(part.name)}</p>'
            yield self._render_text(part.text, OPEN_LINES, words)

    def _render_text(self, text: str, most: int, words: str) -> str:
        """A text in a frame; folded if it is long, cut if it is very long."""
        text = text.strip("\n")
        shown, cut = _cut_long_text(text)
        lines = sum(1 + len(line) // LINE_WIDTH for line in shown.split("\n"))
        body = f'<pre dir="auto">{escape_text(shown)}</pre>{cut}'
        if lines <= most:
            return body
        first = escape_text(shown.partition("\n")[0][:LINE_WIDTH])
        return f'<details class="long"><summary>{words}, {lines:,} lines: <q>{first}</q></summary>{body}</details>'

    def _fetch(self, value: Any) -> Any:
        return fetch_blobs(value, self._blob, most=4 * TEXT_MAX)

    def _full_text(self, step: Step, name: str) -> str:
        return full_text(step, name, self._blob)


def _status_mark(status: str) -> str:
    sign, word = _STATUS_MARKS.get(status, ("", ""))
    return f'<span class="mark" role="img" aria-label="{word}">{sign}</span> ' if sign else ""


def _cut_long_text(text: str) -> tuple[str, str]:
    """The part of a text that is shown, and a note if it was cut."""
    if len(text) <= TEXT_MAX:
        return text, ""
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    words = f"Cut here: {len(text):,} characters in total, sha256 {digest}. aver show --full shows all of them."
    return text[:TEXT_MAX], f'<p class="differs">{words}</p>'


def _render_diff(diff: str) -> str:
    shown, cut = _cut_long_text(diff)
    lines = [f'<span class="{sort}">{escape_text(line) or " "}</span>' for sort, line in classify_diff_lines(shown)]
    body = f'<pre class="diff">{"".join(lines)}</pre>{cut}'
    if len(lines) <= OPEN_DIFF_LINES:
        return f"{body}\n"
    return f'<details class="long"><summary>the change, {len(lines):,} lines</summary>{body}</details>\n'


def _render_gate_line(decision: RecordedDecision) -> str:
    by = f" by {', '.join(decision.rules)}" if decision.rules else ""
    observed = f" ({NOT_HELD_BACK})" if decision.is_observed else ""
    words = f"{decision_label(decision.decision)}{observed}{by}: {'; '.join(decision.shown_reasons)}"
    seal = f"<code>{escape_text(decision.record[:16])}</code>"
    denies = " denies" if decision.refuses else ""
    return f'<p class="gate{denies}"><strong>gate</strong> {escape_text(words)} {seal}</p>\n'


def _render_seal(step: Step) -> str:
    """The capsule of a step and its signer."""
    rows = {
        "capsule": f"{step.chain}/{step.sequence}" if step.chain else step.sequence,
        "hash": step.hash,
        "signed by": step.signed_by or "nobody",
        "sealed": step.signed_at,
        "id": step.id,
        "call": step.call_id,
    }
    listed = "".join(
        f"<dt>{name}</dt><dd><code>{escape_text(value)}</code></dd>"
        for name, value in rows.items()
        if value not in ("", None)
    )
    short = (
        f"<code>{escape_text(step.hash[:16])}</code> signed by <code>{escape_text(step.signed_by or 'nobody')}</code>"
    )
    return f'<details class="seal"><summary>{short}</summary><dl>{listed}</dl></details>'


def _clock_tag(at: str | None) -> str:
    return f'<time datetime="{escape_text(at)}">{escape_text(at[11:19])}</time>' if at else "<time></time>"
