"""`aver show SESSION`: what a coding agent did, as a story: asked, thought, done, denied, answered.

Everything in a session came from outside. It reaches the terminal only through `Screen`, which escapes what a terminal
would obey. Long texts are folded to their first lines; `--full` shows all of them, and fetches what stands beside the
records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from aver.cli import output
from aver.cli.output import Painted, Screen, one_line, plural, short_time
from aver.ingest.diffs import marked
from aver.ingest.telling import in_full, whole_text
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

if TYPE_CHECKING:
    from aver.ingest.rulings import Ruling
    from aver.ingest.sessions import Session
    from aver.ingest.story import Beat
    from aver.ingest.telling import Blobs, Step
    from aver.verdict import Verdict

__all__ = ["Told", "described", "print_story"]

LINES = {"asked": 30, "text": 30, "thinking": 6, "note": 3, "result": 6, "diff": 60, "error": 6}
"""Lines of each text that are shown unless all of it is asked for."""

LINE_MAX = 600
"""Characters of one line that are shown unless all of it is asked for."""

FETCHED_MAX = 1024 * 1024
"""Bytes that are fetched to show their first lines; of what is larger, only the size is told."""

_CLOCK = 10
"""Columns for the time of day."""

_RULED = {"pass": "success", "human_approved": "success", "human_review": "pending"}
"""Signs for what the gate said; all else is a denial."""

_DIFF_STYLES = {"added": "added", "removed": "removed", "place": "dim", "file": "strong"}


class Told:
    """A story on its way to the screen."""

    def __init__(self, screen: Screen, blob: Blobs, *, full: bool) -> None:
        self._screen = screen
        self._blob = blob
        self._full = full
        self._day = ""

    def tell(self, beat: Beat) -> None:
        margin = "  " * beat.depth
        if beat.agent:
            self._line(None, margin, Painted(f"subagent {one_line(beat.agent)}", "strong"))
        elif beat.step is not None:
            self._step(beat.step, beat, margin)
        elif beat.ruling is not None:
            ruling = beat.ruling
            subject = f"{ruling.tool} {one_line(in_short(ruling.arguments))}".strip()
            self._line(ruling.at, margin, self._screen.mark(_RULED.get(ruling.word, "blocked")), f" {subject}")
            self._ruling(ruling, margin)

    def _step(self, step: Step, beat: Beat, margin: str) -> None:
        if step.is_bookkeeping and not self._full:
            return
        if step.what == "prompt":
            self._screen.line()
            self._said(step, "asked", margin, "> ", style="strong")
            return
        self._thought(step, margin)
        if step.what == "answer":
            self._said(step, "text", margin, "", style="")
            return
        if step.what == "call":
            if step.text:
                self._said(step, "text", margin, "", style="")
            self._call(step, margin)
        else:
            self._note(step, margin)
        if beat.ruling is not None:
            self._ruling(beat.ruling, margin)
        self._additions(beat, margin)

    def _note(self, step: Step, margin: str) -> None:
        summary = one_line(summary_of(step))
        if step.what in ("unknown", "unreadable"):
            self._line(step.at, margin, self._screen.mark("warning"), " ", Painted(summary, "warn"))
        else:
            self._line(step.at, margin, Painted(summary, "dim"))
        if step.text and says_more(step, step.text):
            self._block(self._whole(step, "text"), "note", margin + "  ", style="dim")

    def _thought(self, step: Step, margin: str) -> None:
        if step.thinking:
            self._block(self._whole(step, "thinking"), "thinking", margin, style="dim")
        elif step.redacted:
            self._line(step.at, margin, Painted("(thought, and the text is not kept)", "dim"))

    def _said(self, step: Step, name: str, margin: str, sign: str, *, style: str) -> None:
        """A text that begins on the line of its time."""
        lines, hidden = self._folded(self._whole(step, name), name)
        first = lines[0] if lines else ""
        self._line(step.at, margin, Painted(sign + first, style) if style else sign + first)
        for line in lines[1:]:
            self._screen.fill(line, indent=" " * _CLOCK + margin + " " * len(sign), style=style)
        self._tell_hidden(hidden, margin)

    def _call(self, step: Step, margin: str) -> None:
        denied = step.status == "blocked"
        words: list[output.Part] = [self._screen.mark(step.status or "pending"), " "]
        words.append(Painted(one_line(summary_of(step)), "bad") if denied else one_line(summary_of(step)))
        beside = one_line(aside(step))
        self._line(step.at, margin, *words, Painted(f"  {beside}" if beside else "", "dim"))
        inner = margin + "  "
        if self._full:
            self._parts(named_parts(self._fetched(step.arguments)), "result", inner)
        if error_of(step):
            self._block(self._whole(step, "error"), "error", inner, style="bad")
        elif step.status == "pending":
            self._line(None, inner, Painted("what came of it is not known", "warn"))
        if step.diff is not None:
            self._diff(self._fetched(step.diff), inner)
        else:
            self._parts(result_parts(step, self._fetched(step.result)), "result", inner)

    def _ruling(self, ruling: Ruling, margin: str) -> None:
        by = f" by {', '.join(map(one_line, ruling.rules))}" if ruling.rules else ""
        words = f"gate: {ruling.word}{by}: {'; '.join(ruling.reasons)}"
        indent = " " * _CLOCK + margin + "  "
        self._screen.hanging(indent, text=words, style="bad" if ruling.denies else "dim")

    def _additions(self, beat: Beat, margin: str) -> None:
        for later in beat.added:
            addition = later.addition
            if addition is not None and addition.differs:
                words = one_line(f"the {addition.via} says otherwise of {', '.join(addition.differs)}")
                self._line(None, margin + "  ", self._screen.mark("warning"), " ", Painted(words, "warn"))
            elif addition is not None and self._full:
                self._line(None, margin + "  ", Painted(f"the {one_line(addition.via)} says the same", "dim"))

    # --- texts and values

    def _parts(self, parts: Iterable[Part], name: str, margin: str) -> None:
        for part in parts:
            if part.name:
                self._line(None, margin, Painted(f"{one_line(part.name)}:", "dim"))
            self._block(part.text, name, margin, style="dim" if part.aside else "")

    def _fetched(self, value: Any) -> Any:
        return in_full(value, self._blob, most=None if self._full else FETCHED_MAX)

    def _whole(self, step: Step, name: str) -> str:
        text = str(getattr(step, name))
        return whole_text(step, name, self._blob) if self._full or not text else text

    def _diff(self, diff: Any, margin: str) -> None:
        if not isinstance(diff, str):
            self._parts(named_parts(diff), "diff", margin)
            return
        indent = " " * _CLOCK + margin
        shown = hidden = 0
        for sort, line in marked(diff):
            if self._full or shown < LINES["diff"]:
                text = line if self._full else line[:LINE_MAX]
                self._screen.fill(text, indent=indent, style=_DIFF_STYLES.get(sort, ""))
                shown += 1
            else:
                hidden += 1
        self._tell_hidden(hidden, margin)

    def _block(self, text: str, name: str, margin: str, *, style: str) -> None:
        lines, hidden = self._folded(text, name)
        for line in lines:
            self._screen.fill(line, indent=" " * _CLOCK + margin, style=style)
        self._tell_hidden(hidden, margin)

    def _folded(self, text: str, name: str) -> tuple[list[str], int]:
        lines = text.strip("\n").splitlines()
        if self._full:
            return lines, 0
        most = LINES[name]
        shown = lines if len(lines) <= most + 1 else lines[:most]
        cut = [line if len(line) <= LINE_MAX else f"{line[:LINE_MAX]}…" for line in shown]
        return cut, len(lines) - len(shown)

    def _tell_hidden(self, hidden: int, margin: str) -> None:
        if hidden:
            self._line(None, margin, Painted(f"… {plural(hidden, 'more line')}; --full shows all", "dim"))

    def _line(self, at: str | None, margin: str, *parts: output.Part) -> None:
        clock = short_time(at)[11:19] if at else ""
        if at and at[:10] != self._day:
            if self._day:
                self._screen.line(Painted(one_line(at[:10]), "dim"))
            self._day = at[:10]
        self._screen.line(Painted(f"{clock:<{_CLOCK}}", "dim"), margin, *parts)


def print_story(screen: Screen, session: Session, beats: Iterator[Beat], blob: Blobs, *, full: bool) -> None:
    """The whole story: who and when, what happened, what it comes to."""
    screen.line(Painted(one_line(session.title) or "a session without a title", "strong"))
    screen.line(
        one_line(f"{session.tool} {session.session}, {short_time(session.started)} to {short_time(session.ended)} UTC")
    )
    told = Told(screen, blob, full=full)
    for beat in beats:
        told.tell(beat)
    screen.line()
    screen.hanging(text=", ".join(totals(session)))


def described(session: Session, beats: Iterator[Beat], verdict: Verdict) -> dict[str, Any]:
    """The same as one JSON object. Long texts stay references to what stands beside the records."""
    steps = []
    for beat in beats:
        entry: dict[str, Any] = {"depth": beat.depth, "chain": beat.chain}
        if beat.agent:
            entry["subagent"] = beat.agent
        if beat.step is not None:
            entry |= {name: value for name, value in asdict(beat.step).items() if value not in (None, "", (), {})}
            entry["chain"] = beat.chain
        if beat.ruling is not None:
            entry["gate"] = asdict(beat.ruling)
        if beat.added:
            entry["added"] = [asdict(later.addition) for later in beat.added if later.addition is not None]
        steps.append(entry)
    return {"session": asdict(session), "steps": steps, "verdict": verdict.to_dict()}
