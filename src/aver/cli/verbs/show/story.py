"""`aver show SESSION`: what a coding agent did, as a story: asked, thought, done, denied, answered.

Everything in a session came from outside. It reaches the terminal only through `Screen`, which escapes what a terminal
would obey. Long texts are folded to their first lines; `--full` shows all of them, and fetches what stands beside the
records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from aver.cli import terminal
from aver.cli.terminal import Screen, StyledText, format_time
from aver.ingest.diffs import classify_diff_lines
from aver.sessions.labels import (
    LabelledText,
    is_beyond_summary,
    labelled_texts,
    result_texts,
    shorten_arguments,
    step_details,
    step_error,
    step_summary,
    total_labels,
)
from aver.sessions.step import fetch_blobs, full_text
from aver.text import plural, to_one_line

if TYPE_CHECKING:
    from aver.gate.decision_record import RecordedDecision
    from aver.sessions.sessions import SessionTotals
    from aver.sessions.step import ReadBlob, Step
    from aver.sessions.story import StoryEntry
    from aver.verdict import Verdict

__all__ = ["StoryPrinter", "print_story", "story_to_dict"]

MAX_LINES = {"asked": 30, "text": 30, "thinking": 6, "note": 3, "result": 6, "diff": 60, "error": 6}
"""Lines of each text that are shown unless all of it is asked for."""

LINE_MAX = 600
"""Characters of one line that are shown unless all of it is asked for."""

FETCH_MAX = 1024 * 1024
"""Bytes that are fetched to show their first lines; of what is larger, only the size is told."""

_CLOCK_WIDTH = 10
"""Columns for the time of day."""

_DECISION_MARKS = {"pass": "success", "human_approved": "success", "human_review": "pending"}
"""Signs for what the gate said; all else is a denial."""

_DIFF_STYLES = {"added": "added", "removed": "removed", "place": "dim", "file": "strong"}


class StoryPrinter:
    """A story on its way to the screen."""

    def __init__(self, screen: Screen, blob: ReadBlob, *, full: bool) -> None:
        self._screen = screen
        self._blob = blob
        self._full = full
        self._day = ""

    def print_entry(self, beat: StoryEntry) -> None:
        margin = "  " * beat.depth
        if beat.agent:
            self._print_line(None, margin, StyledText(f"subagent {to_one_line(beat.agent)}", "strong"))
        elif beat.step is not None:
            self._print_step(beat.step, beat, margin)
        elif beat.ruling is not None:
            ruling = beat.ruling
            subject = f"{ruling.tool} {to_one_line(shorten_arguments(ruling.arguments))}".strip()
            self._print_line(
                ruling.at,
                margin,
                self._screen.status_mark(_DECISION_MARKS.get(ruling.decision, "blocked")),
                f" {subject}",
            )
            self._print_decision(ruling, margin)

    def _print_step(self, step: Step, beat: StoryEntry, margin: str) -> None:
        if step.is_bookkeeping and not self._full:
            return
        if step.what == "prompt":
            self._screen.print_line()
            self._print_timed_text(step, "asked", margin, "> ", style="strong")
            return
        self._print_thinking(step, margin)
        if step.what == "answer":
            self._print_timed_text(step, "text", margin, "", style="")
            return
        if step.what == "call":
            if step.text:
                self._print_timed_text(step, "text", margin, "", style="")
            self._print_call(step, margin)
        else:
            self._print_note(step, margin)
        if beat.ruling is not None:
            self._print_decision(beat.ruling, margin)
        self._print_additions(beat, margin)

    def _print_note(self, step: Step, margin: str) -> None:
        summary = to_one_line(step_summary(step))
        if step.what in ("unknown", "unreadable"):
            self._print_line(step.at, margin, self._screen.status_mark("warning"), " ", StyledText(summary, "warn"))
        else:
            self._print_line(step.at, margin, StyledText(summary, "dim"))
        if step.text and is_beyond_summary(step, step.text):
            self._print_block(self._read_text(step, "text"), "note", margin + "  ", style="dim")

    def _print_thinking(self, step: Step, margin: str) -> None:
        if step.thinking:
            self._print_block(self._read_text(step, "thinking"), "thinking", margin, style="dim")
        elif step.redacted:
            self._print_line(step.at, margin, StyledText("(thought, and the text is not kept)", "dim"))

    def _print_timed_text(self, step: Step, name: str, margin: str, sign: str, *, style: str) -> None:
        """A text that begins on the line of its time."""
        lines, hidden = self._fold(self._read_text(step, name), name)
        first = lines[0] if lines else ""
        self._print_line(step.at, margin, StyledText(sign + first, style) if style else sign + first)
        for line in lines[1:]:
            self._screen.print_wrapped(line, indent=" " * _CLOCK_WIDTH + margin + " " * len(sign), style=style)
        self._print_hidden_count(hidden, margin)

    def _print_call(self, step: Step, margin: str) -> None:
        denied = step.status == "blocked"
        words: list[terminal.LinePart] = [self._screen.status_mark(step.status or "pending"), " "]
        words.append(StyledText(to_one_line(step_summary(step)), "bad") if denied else to_one_line(step_summary(step)))
        beside = to_one_line(step_details(step))
        self._print_line(step.at, margin, *words, StyledText(f"  {beside}" if beside else "", "dim"))
        inner = margin + "  "
        if self._full:
            self._print_parts(labelled_texts(self._fetch(step.arguments)), "result", inner)
        if step_error(step):
            self._print_block(self._read_text(step, "error"), "error", inner, style="bad")
        elif step.status == "pending":
            self._print_line(None, inner, StyledText("what came of it is not known", "warn"))
        if step.diff is not None:
            self._print_diff(self._fetch(step.diff), inner)
        else:
            self._print_parts(result_texts(step, self._fetch(step.result)), "result", inner)

    def _print_decision(self, ruling: RecordedDecision, margin: str) -> None:
        by = f" by {', '.join(map(to_one_line, ruling.rules))}" if ruling.rules else ""
        words = f"gate: {ruling.decision}{by}: {'; '.join(ruling.reasons)}"
        indent = " " * _CLOCK_WIDTH + margin + "  "
        self._screen.print_hanging(indent, text=words, style="bad" if ruling.refuses else "dim")

    def _print_additions(self, beat: StoryEntry, margin: str) -> None:
        for later in beat.added:
            addition = later.addition
            if addition is not None and addition.differs:
                words = to_one_line(f"the {addition.via} says otherwise of {', '.join(addition.differs)}")
                self._print_line(
                    None, margin + "  ", self._screen.status_mark("warning"), " ", StyledText(words, "warn")
                )
            elif addition is not None and self._full:
                self._print_line(
                    None, margin + "  ", StyledText(f"the {to_one_line(addition.via)} says the same", "dim")
                )

    # --- texts and values

    def _print_parts(self, parts: Iterable[LabelledText], name: str, margin: str) -> None:
        for part in parts:
            if part.name:
                self._print_line(None, margin, StyledText(f"{to_one_line(part.name)}:", "dim"))
            self._print_block(part.text, name, margin, style="dim" if part.aside else "")

    def _fetch(self, value: Any) -> Any:
        return fetch_blobs(value, self._blob, most=None if self._full else FETCH_MAX)

    def _read_text(self, step: Step, name: str) -> str:
        text = str(getattr(step, name))
        return full_text(step, name, self._blob) if self._full or not text else text

    def _print_diff(self, diff: Any, margin: str) -> None:
        if not isinstance(diff, str):
            self._print_parts(labelled_texts(diff), "diff", margin)
            return
        indent = " " * _CLOCK_WIDTH + margin
        shown = hidden = 0
        for sort, line in classify_diff_lines(diff):
            if self._full or shown < MAX_LINES["diff"]:
                text = line if self._full else line[:LINE_MAX]
                self._screen.print_wrapped(text, indent=indent, style=_DIFF_STYLES.get(sort, ""))
                shown += 1
            else:
                hidden += 1
        self._print_hidden_count(hidden, margin)

    def _print_block(self, text: str, name: str, margin: str, *, style: str) -> None:
        lines, hidden = self._fold(text, name)
        for line in lines:
            self._screen.print_wrapped(line, indent=" " * _CLOCK_WIDTH + margin, style=style)
        self._print_hidden_count(hidden, margin)

    def _fold(self, text: str, name: str) -> tuple[list[str], int]:
        lines = text.strip("\n").splitlines()
        if self._full:
            return lines, 0
        most = MAX_LINES[name]
        shown = lines if len(lines) <= most + 1 else lines[:most]
        cut = [line if len(line) <= LINE_MAX else f"{line[:LINE_MAX]}…" for line in shown]
        return cut, len(lines) - len(shown)

    def _print_hidden_count(self, hidden: int, margin: str) -> None:
        if hidden:
            self._print_line(None, margin, StyledText(f"… {plural(hidden, 'more line')}; --full shows all", "dim"))

    def _print_line(self, at: str | None, margin: str, *parts: terminal.LinePart) -> None:
        clock = format_time(at)[11:19] if at else ""
        if at and at[:10] != self._day:
            if self._day:
                self._screen.print_line(StyledText(to_one_line(at[:10]), "dim"))
            self._day = at[:10]
        self._screen.print_line(StyledText(f"{clock:<{_CLOCK_WIDTH}}", "dim"), margin, *parts)


def print_story(
    screen: Screen, session: SessionTotals, beats: Iterator[StoryEntry], blob: ReadBlob, *, full: bool
) -> None:
    """The whole story: who and when, what happened, what it comes to."""
    screen.print_line(StyledText(to_one_line(session.title) or "a session without a title", "strong"))
    screen.print_line(
        to_one_line(
            f"{session.tool} {session.session}, {format_time(session.started)} to {format_time(session.ended)} UTC"
        )
    )
    told = StoryPrinter(screen, blob, full=full)
    for beat in beats:
        told.print_entry(beat)
    screen.print_line()
    screen.print_hanging(text=", ".join(total_labels(session)))


def story_to_dict(session: SessionTotals, beats: Iterator[StoryEntry], verdict: Verdict) -> dict[str, Any]:
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
