"""A session as one page that needs nothing else: no network, no script to read it, dark and light.

Whatever a transcript says is text here: it is escaped where it enters (`_text`), characters that hide or reorder others
are written out, and the page's own policy lets no other style or script work. Long texts are folded, very long ones
cut, with the digest of the whole. Each step shows the hash of its capsule and who signed it; the verdict says what was
checked, and what was not.

`page` gives the pieces in order, and keeps none of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from html import escape
from typing import Any

from aver import __version__
from aver.clock import now
from aver.ingest.deed import counted
from aver.ingest.diffs import marked
from aver.ingest.page_looks import POLICY, SCRIPT, STYLE
from aver.ingest.rulings import Ruling
from aver.ingest.sessions import Session
from aver.ingest.story import Beat
from aver.ingest.telling import Blobs, Step, in_full, whole_text
from aver.ingest.wording import (
    Part,
    aside,
    error_of,
    in_short,
    named_parts,
    result_parts,
    says_more,
    summary_of,
    totals,
)
from aver.verdict import Verdict, explain

__all__ = ["page"]

OPEN_LINES = 14
"""Lines of a text that stand open; a longer one is folded."""

LINE_WIDTH = 100
"""Characters of a line; a longer one is several on the page."""

OPEN_DIFF_LINES = 80
OPEN_SAID_LINES = 40
"""The same for a diff, which is what most readers come for, and for what people and models said."""

ASIDE_MAX = 400
"""Characters of what else is known of a call that stand there without a frame."""

SHOWN_MAX = 256 * 1024
"""Characters of one text on the page. A browser must be able to show a page with thousands of them."""

_MARKS = {
    "success": ("✓", "succeeded"),
    "failure": ("✗", "failed"),
    "blocked": ("■", "denied"),
    "pending": ("–", "outcome not known"),
    "partial": ("!", "succeeded in part"),
}
_RULED = {"pass": "success", "human_approved": "success", "human_review": "pending"}
_KEPT = frozenset("\n\t")


def page(session: Session, beats: Iterator[Beat], verdict: Verdict, blob: Blobs) -> Iterator[str]:
    """The page, piece by piece."""
    yield from _head(session, verdict)
    yield from _Body(blob).told(beats)
    yield from _verdict(session, verdict)
    yield f"<script>{SCRIPT}</script>\n</body>\n</html>\n"


def _text(text: Any) -> str:
    """Any text, as text: on the page and in an attribute."""
    said = str(text)
    if not said.isprintable():
        said = "".join(one if one.isprintable() or one in _KEPT else _written_out(one) for one in said)
    return escape(said, quote=True)


def _written_out(character: str) -> str:
    code = ord(character)
    return "" if character == "\r" else f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


# --- what stands around the story


def _head(session: Session, verdict: Verdict) -> Iterator[str]:
    title = " ".join(session.title.split()) or f"{session.tool} {session.session}"
    yield f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{_text(title)}</title>
<style>{STYLE}</style>
</head>
<body>
<a class="skip" href="#story">To the story</a>
<header>
<h1 dir="auto">{_text(title)}</h1>
<p class="meta">{_text(session.tool)} · session <code>{_text(session.session)}</code> · {_span(session)}</p>
<ul class="totals" aria-label="What it comes to">{"".join(f"<li>{_text(words)}</li>" for words in totals(session))}</ul>
<p><a class="badge {verdict.status}" href="#verdict">{verdict.status}: {counted(verdict.records, "record")}</a></p>
{_first_bad(verdict)}
<div class="tools" hidden role="group" aria-label="What is shown">
{_BUTTONS}
<input type="search" aria-label="Only steps with these words" placeholder="Only steps with these words">
<button type="button" data-fold aria-pressed="false">Open all</button>
</div>
</header>
<main id="story">
"""


_BUTTONS = "\n".join(
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


def _span(session: Session) -> str:
    return f"{_moment(session.started)} to {_moment(session.ended)} UTC"


def _moment(at: str | None) -> str:
    if not at:
        return "no time"
    return f'<time datetime="{_text(at)}">{_text(at[:19].replace("T", " "))}</time>'


def _first_bad(verdict: Verdict) -> str:
    return "" if verdict.first_bad is None else f'<p class="error"><strong>{_text(verdict.first_bad)}</strong></p>'


def _verdict(session: Session, verdict: Verdict) -> Iterator[str]:
    yield f"""<section id="verdict" aria-labelledby="verdict-title">
<h2 id="verdict-title">Verdict: <span class="badge {verdict.status}">{verdict.status}</span></h2>
<p>{_text(verdict.subject)}:
{counted(verdict.records, "record")} in {counted(verdict.chains, "chain")}, verified when this page was made,
{_moment(now())} UTC, by aver {_text(__version__)}.</p>
"""
    if verdict.first_bad is not None:
        yield f"{_first_bad(verdict)}<p>{_text(explain(verdict.first_bad.code))}</p>\n"
    yield '<table><thead><tr><th scope="col">Check</th><th scope="col">Result</th><th scope="col">What was found'
    yield "</th></tr></thead><tbody>\n"
    for check in verdict.checks:
        words = check.status.replace("_", " ")
        matters = " matters" if check.matters else ""
        yield f'<tr><th scope="row">{_text(check.name)}</th><td class="{check.status}{matters}">{words}</td>'
        yield f"<td>{_text(check.reason)}</td></tr>\n"
    chains = "".join(f"<dt>chain</dt><dd><code>{_text(name)}</code></dd>" for name in session.chains)
    yield f"""</tbody></table>
<dl>{chains}</dl>
</section>
</main>
<footer>
<p>This page proves nothing by itself: whoever can change it can change what it says. The records can be verified where
they are kept, or from a bundle that <code>aver export</code> wrote, with <code>aver verify</code>.</p>
</footer>
"""


# --- the story


class _Body:
    """The story, and which of its parts are open."""

    def __init__(self, blob: Blobs) -> None:
        self._blob = blob
        self._depth = 0
        self._in_turn = False

    def told(self, beats: Iterator[Beat]) -> Iterator[str]:
        yield '<ol class="steps">\n'
        for beat in beats:
            yield from self._beat(beat)
        yield from self._closed_to(0)
        yield "</ol>\n" + ("</section>\n" if self._in_turn else "")

    def _beat(self, beat: Beat) -> Iterator[str]:
        if beat.agent:
            yield from self._closed_to(beat.depth - 1)
            yield f'<li><details class="agent" open><summary>Subagent {_text(beat.agent)}</summary>\n'
            yield '<ol class="steps">\n'
            self._depth = beat.depth
            return
        yield from self._closed_to(beat.depth)
        if beat.step is None:
            if beat.ruling is not None:
                yield from self._decision(beat.ruling)
        elif beat.step.what == "prompt" and beat.depth == 0:
            yield from self._turn(beat.step)
        elif not beat.step.is_bookkeeping:
            yield from self._step(beat.step, beat)

    def _closed_to(self, depth: int) -> Iterator[str]:
        while self._depth > depth:
            self._depth -= 1
            yield "</ol></details></li>\n"

    def _turn(self, step: Step) -> Iterator[str]:
        """A prompt: what follows from it stands in a part of its own."""
        yield "</ol>\n" + ("</section>\n" if self._in_turn else "")
        self._in_turn = True
        text = self._whole(step, "asked")
        first = " ".join(text.split())[:80]
        yield f'<section class="turn" aria-label="Asked: {_text(first)}"><div class="asked">'
        yield f'<h2 class="place">Asked {_moment(step.at)}</h2>{self._pre(text, OPEN_SAID_LINES, "the whole prompt")}'
        yield f'{_seal(step)}</div>\n<ol class="steps">\n'

    def _step(self, step: Step, beat: Beat) -> Iterator[str]:
        yield f'<li class="step {_classes(step)}">{_clock(step.at)}<div>\n'
        if step.thinking:
            thought = self._pre(self._whole(step, "thinking"), OPEN_LINES, "what the model thought")
            yield f'<div class="thinking">{thought}</div>\n'
        elif step.redacted:
            yield '<p class="thinking">(thought, and the text is not kept)</p>\n'
        if step.what in ("note", "session", "unknown", "unreadable", "addition"):
            yield from self._line(step)
        name = "asked" if step.what == "prompt" else "text"
        if (said := self._whole(step, name)) and (name == "asked" or step.what == "answer" or says_more(step, said)):
            yield f'<div class="said">{self._pre(said, OPEN_SAID_LINES, "all of it")}</div>\n'
        if step.what == "call":
            yield from self._line(step)
            yield from self._outcome(step)
        elif step.more is not None and step.what != "answer":
            yield self._folded("what was kept", step.more)
        if beat.ruling is not None:
            yield _gate(beat.ruling)
        for later in beat.added:
            yield from self._added(later)
        yield f"{_seal(step)}</div></li>\n"

    def _line(self, step: Step) -> Iterator[str]:
        mark = _mark(step.status) if step.what == "call" else ""
        beside = f' <span class="aside">{_text(aside(step))}</span>' if step.what == "call" else ""
        yield f'<p class="line">{mark}<span class="sum">{_text(summary_of(step))}</span>{beside}</p>\n'

    def _outcome(self, step: Step) -> Iterator[str]:
        if step.arguments:
            yield self._folded("arguments", step.arguments)
        if error_of(step):
            yield f'<div class="error">{self._pre(self._whole(step, "error"), OPEN_LINES, "the whole error")}</div>\n'
        elif step.status == "pending":
            yield '<p class="differs">What came of it is not known.</p>\n'
        diff = self._fetched(step.diff)
        if isinstance(diff, str):
            yield _diff(diff)
        else:
            yield from self._parts(result_parts(step, self._fetched(step.result)), "output")

    def _decision(self, ruling: Ruling) -> Iterator[str]:
        status = _RULED.get(ruling.word, "blocked")
        denied = " denied" if ruling.denies else ""
        subject = f"{ruling.tool} {in_short(ruling.arguments)}"
        yield f'<li class="step note {status}{denied}">{_clock(ruling.at)}<div><p class="line">'
        yield f'{_mark(status)}<span class="sum">{_text(subject)}</span></p>'
        yield f"{_gate(ruling)}</div></li>\n"

    def _added(self, later: Step) -> Iterator[str]:
        """What somebody who came later says of the same call."""
        addition = later.addition
        if addition is None:
            return
        if not addition.differs:
            yield f'<div class="aside">the {_text(addition.via)} says the same {_seal(later)}</div>\n'
            return
        words = f"the {addition.via} says otherwise of {', '.join(addition.differs)}"
        yield f'<details class="differs"><summary>{_text(words)}</summary>'
        said = self._fetched({name: addition.says.get(name) for name in addition.differs})
        yield from self._parts(named_parts(said), "all of it")
        yield f"</details>{_seal(later)}\n"

    # --- texts

    def _folded(self, words: str, value: Any) -> str:
        told = "".join(self._parts(named_parts(self._fetched(value)), "all of it"))
        return f'<details class="long"><summary>{words}</summary>{told}</details>\n' if told else ""

    def _parts(self, parts: Iterable[Part], words: str) -> Iterator[str]:
        for part in parts:
            if part.aside and len(part.text) <= ASIDE_MAX:
                yield f'<p class="label">{_text(part.text)}</p>'
                continue
            if part.name:
                yield f'<p class="label">{_text(part.name)}</p>'
            yield self._pre(part.text, OPEN_LINES, words)

    def _pre(self, text: str, most: int, words: str) -> str:
        """A text as it is; folded where it is long, cut where it is very long."""
        text = text.strip("\n")
        shown, cut = _within(text)
        lines = sum(1 + len(line) // LINE_WIDTH for line in shown.split("\n"))
        body = f'<pre dir="auto">{_text(shown)}</pre>{cut}'
        if lines <= most:
            return body
        first = _text(shown.partition("\n")[0][:LINE_WIDTH])
        return f'<details class="long"><summary>{words}, {lines:,} lines: <q>{first}</q></summary>{body}</details>'

    def _fetched(self, value: Any) -> Any:
        return in_full(value, self._blob, most=4 * SHOWN_MAX)

    def _whole(self, step: Step, name: str) -> str:
        return whole_text(step, name, self._blob)


def _mark(status: str) -> str:
    sign, word = _MARKS.get(status, ("", ""))
    return f'<span class="mark" role="img" aria-label="{word}">{sign}</span> ' if sign else ""


def _within(text: str) -> tuple[str, str]:
    """What of a text stands on the page, and a note where that is not all."""
    if len(text) <= SHOWN_MAX:
        return text, ""
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    words = f"Cut here: {len(text):,} characters in all, sha256 {digest}; aver show --full shows them."
    return text[:SHOWN_MAX], f'<p class="differs">{words}</p>'


def _diff(diff: str) -> str:
    shown, cut = _within(diff)
    lines = [f'<span class="{sort}">{_text(line) or " "}</span>' for sort, line in marked(shown)]
    body = f'<pre class="diff">{"".join(lines)}</pre>{cut}'
    if len(lines) <= OPEN_DIFF_LINES:
        return f"{body}\n"
    return f'<details class="long"><summary>the change, {len(lines):,} lines</summary>{body}</details>\n'


def _gate(ruling: Ruling) -> str:
    by = f" by {', '.join(ruling.rules)}" if ruling.rules else ""
    words = f"{ruling.word}{by}: {'; '.join(ruling.reasons)}"
    seal = f"<code>{_text(ruling.hash[:16])}</code>"
    return f'<p class="gate{" denies" if ruling.denies else ""}"><strong>gate</strong> {_text(words)} {seal}</p>\n'


def _seal(step: Step) -> str:
    """Which capsule says so, and who signed it."""
    rows = {
        "capsule": f"{step.chain}/{step.sequence}" if step.chain else step.sequence,
        "hash": step.hash,
        "signed by": step.signed_by or "nobody",
        "sealed": step.signed_at,
        "id": step.id,
        "call": step.call_id,
    }
    listed = "".join(
        f"<dt>{name}</dt><dd><code>{_text(value)}</code></dd>"
        for name, value in rows.items()
        if value not in ("", None)
    )
    short = f"<code>{_text(step.hash[:16])}</code> signed by <code>{_text(step.signed_by or 'nobody')}</code>"
    return f'<details class="seal"><summary>{short}</summary><dl>{listed}</dl></details>'


def _clock(at: str | None) -> str:
    return f'<time datetime="{_text(at)}">{_text(at[11:19])}</time>' if at else "<time></time>"


def _classes(step: Step) -> str:
    """Only words of our own: what a record says never becomes a class."""
    found: list[str] = [step.what]
    found += [step.status] if step.status in _MARKS else []
    found += ["edit"] if step.is_edit else []
    found += ["command"] if step.is_command else []
    found += ["denied"] if step.status == "blocked" else []
    return " ".join(found)
