"""Prints a session as a story: prompts, thinking, calls, denials and answers.

All texts of a session come from outside. They reach the terminal only through `Screen`, which escapes control
characters. Of a long text only the first lines are shown. `--full` shows every line and also reads the blobs.

`aver show SESSION`: prints a session as a story, as one JSON object, or as an HTML page.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aver.check import ResolvedTarget, open_ledger, verify
from aver.cli import terminal
from aver.cli.options import Usage
from aver.cli.terminal import Screen, StyledText, format_time, print_json
from aver.cli.verdict_text import exit_code, print_verdict
from aver.config import home_dir
from aver.diffs import classify_diff_lines
from aver.errors import NotFound
from aver.fast_dataclass import dataclass
from aver.files.new_file import PRIVATE, check_new_path, open_new_file
from aver.gate.decision_record import NOT_HELD_BACK
from aver.ingest.foreign_json import to_utc
from aver.ledger.lookup import LedgerSource
from aver.sessions.figures import SessionTotals, compute_step_totals, compute_totals
from aver.sessions.html_page import render_page
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
from aver.sessions.sessions import chains_from_records, find_session_by_chain, verify_session
from aver.sessions.step import ReadBlob, fetch_blobs, full_text, read_step
from aver.sessions.story import StoryEntry, read_story, story_from_records
from aver.text import plural, to_one_line
from aver.verdict import Verdict

if TYPE_CHECKING:
    from aver.gate.decision_record import RecordedDecision
    from aver.sessions.figures import SessionTotals
    from aver.sessions.step import ReadBlob, Step
    from aver.sessions.story import StoryEntry
    from aver.verdict import Verdict

MAX_LINES = {"asked": 30, "text": 30, "thinking": 6, "note": 3, "result": 6, "diff": 60, "error": 6}
"""Lines of each kind of text that are shown without `--full`."""

LINE_MAX = 600
"""Characters of one line that are shown without `--full`."""

FETCH_MAX = 1024 * 1024
"""The largest blob that is read without `--full`, in bytes. Of larger blobs only the size is shown."""

_CLOCK_WIDTH = 10
"""Columns for the time of day."""

SEARCHED = ("calls", "others")
"""Fields of a step that only a search reads: they repeat the record, and the others tell the story."""

_DECISION_MARKS = {"pass": "success", "human_approved": "success", "human_review": "pending"}
"""The status signs of the gate's decisions; all others are denials."""

_DIFF_STYLES = {"added": "added", "removed": "removed", "place": "dim", "file": "strong"}


class StoryPrinter:
    """Prints a story, entry by entry."""

    def __init__(self, screen: Screen, blob: ReadBlob, *, full: bool) -> None:
        self._screen = screen
        self._blob = blob
        self._full = full
        self._day = ""

    def print_entry(self, entry: StoryEntry) -> None:
        """Print one entry. Aver's own notes are printed only with `full`."""
        margin = "  " * entry.depth
        if entry.agent:
            self._print_line(None, margin, StyledText(f"subagent {to_one_line(entry.agent)}", "strong"))
        elif entry.step is not None:
            self._print_step(entry.step, entry, margin)
        elif entry.decision is not None:
            decision = entry.decision
            subject = f"{decision.tool} {to_one_line(shorten_arguments(decision.arguments))}".strip()
            self._print_line(
                decision.at,
                margin,
                self._screen.status_mark(_DECISION_MARKS.get(decision.decision, "blocked")),
                f" {subject}",
            )
            self._print_decision(decision, margin)

    def _print_step(self, step: Step, entry: StoryEntry, margin: str) -> None:
        if step.is_bookkeeping and not self._full:
            return
        if step.what == "prompt":
            self._screen.print_line()
            self._print_timed_text(step, "asked", margin, "> ", style="strong")
            return
        if step.thinking:
            self._print_block(self._read_text(step, "thinking"), "thinking", margin, style="dim")
        elif step.redacted:
            self._print_line(step.at, margin, StyledText("(the model's thinking was not recorded)", "dim"))
        if step.what == "answer":
            self._print_timed_text(step, "text", margin, "", style="")
            return
        if step.what == "call":
            if step.text:
                self._print_timed_text(step, "text", margin, "", style="")
            self._print_call(step, margin)
        else:
            summary = to_one_line(step_summary(step))
            if step.what in ("unknown", "unreadable"):
                self._print_line(step.at, margin, self._screen.status_mark("warning"), " ", StyledText(summary, "warn"))
            else:
                self._print_line(step.at, margin, StyledText(summary, "dim"))
            if step.text and is_beyond_summary(step, step.text):
                self._print_block(self._read_text(step, "text"), "note", margin + "  ", style="dim")
        if entry.decision is not None:
            self._print_decision(entry.decision, margin)
        for later in entry.additions:
            addition = later.addition
            if addition is not None and addition.differs:
                words = to_one_line(f"the {addition.via} differs in {', '.join(addition.differs)}")
                self._print_line(
                    None, margin + "  ", self._screen.status_mark("warning"), " ", StyledText(words, "warn")
                )
            elif addition is not None and self._full:
                self._print_line(None, margin + "  ", StyledText(f"the {to_one_line(addition.via)} agrees", "dim"))

    def _print_timed_text(self, step: Step, name: str, margin: str, sign: str, *, style: str) -> None:
        """Print a text that begins on the line of its time."""
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
        details = to_one_line(step_details(step))
        self._print_line(step.at, margin, *words, StyledText(f"  {details}" if details else "", "dim"))
        inner = margin + "  "
        if self._full:
            self._print_parts(labelled_texts(self._fetch(step.arguments)), "result", inner)
        if step_error(step):
            self._print_block(self._read_text(step, "error"), "error", inner, style="bad")
        elif step.status == "pending":
            self._print_line(None, inner, StyledText("the outcome is not known", "warn"))
        if step.diff is not None:
            diff = self._fetch(step.diff)
            if not isinstance(diff, str):
                self._print_parts(labelled_texts(diff), "diff", inner)
                return
            indent = " " * _CLOCK_WIDTH + inner
            shown = hidden = 0
            for sort, line in classify_diff_lines(diff):
                if self._full or shown < MAX_LINES["diff"]:
                    text = line if self._full else line[:LINE_MAX]
                    self._screen.print_wrapped(text, indent=indent, style=_DIFF_STYLES.get(sort, ""))
                    shown += 1
                else:
                    hidden += 1
            self._print_hidden_count(hidden, inner)
        else:
            self._print_parts(result_texts(step, self._fetch(step.result)), "result", inner)

    def _print_decision(self, decision: RecordedDecision, margin: str) -> None:
        by = f" by {', '.join(map(to_one_line, decision.rules))}" if decision.rules else ""
        observed = f" ({NOT_HELD_BACK})" if decision.is_observed else ""
        words = f"gate: {decision_label(decision.decision)}{observed}{by}: {'; '.join(decision.shown_reasons)}"
        indent = " " * _CLOCK_WIDTH + margin + "  "
        self._screen.print_hanging(indent, text=words, style="bad" if decision.refuses else "dim")

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
    screen: Screen, session: SessionTotals, entries: Iterator[StoryEntry], blob: ReadBlob, *, full: bool
) -> None:
    """Print the whole story: tool and times, all entries, totals."""
    screen.print_line(StyledText(to_one_line(session.title) or "(no title)", "strong"))
    screen.print_line(
        to_one_line(
            f"{session.tool} {session.session}, {format_time(session.started)} to {format_time(session.ended)} UTC"
        )
    )
    printer = StoryPrinter(screen, blob, full=full)
    for entry in entries:
        printer.print_entry(entry)
    screen.print_line()
    screen.print_hanging(text=", ".join(total_labels(session)))


def story_to_dict(session: SessionTotals, entries: Iterator[StoryEntry], verdict: Verdict) -> dict[str, Any]:
    """The story as one JSON object. Long texts stay references to blobs."""
    steps = []
    for entry in entries:
        step: dict[str, Any] = {"depth": entry.depth, "chain": entry.chain}
        if entry.agent:
            step["subagent"] = entry.agent
        if entry.step is not None:
            told = {name: value for name, value in asdict(entry.step).items() if value not in (None, "", (), {})}
            step |= {name: value for name, value in told.items() if name not in SEARCHED}
            step["chain"] = entry.chain
        if entry.decision is not None:
            decision = entry.decision
            step["gate"] = {
                "word": decision.decision,
                "mode": decision.result.get("mode", "enforce"),
                "reasons": decision.reasons,
                "rules": decision.rules,
                "score": decision.score,
                "tool": decision.tool,
                "arguments": decision.arguments,
                "at": to_utc(decision.at),
                "chain": decision.chain,
                "sequence": decision.sequence,
                "hash": decision.record,
                "signed_by": decision.signed_by,
            }
        if entry.additions:
            step["added"] = [asdict(later.addition) for later in entry.additions if later.addition is not None]
        steps.append(step)
    return {"session": asdict(session), "steps": steps, "verdict": verdict.to_dict()}


@dataclass(frozen=True, slots=True)
class _SessionView:
    """A session with everything that is needed to print it."""

    session: SessionTotals
    entries: Iterator[StoryEntry]
    verify: Callable[[], Verdict]
    blob: ReadBlob


def show_session(found: ResolvedTarget, given: argparse.Namespace, screen: Screen) -> int | None:
    """Show the session that was found. Returns the exit code, or None if it is no session."""
    if given.json and given.html:
        raise Usage("--json and --html are two different outputs", advice="choose one")
    opened = _open_from_ledger(found.chain, given) if found.chain is not None else _open_from_file(found, given)
    with opened as shown:
        if shown is None:
            return None
        verdict = _present_session(shown, given, screen)
        return exit_code([verdict.status], strict=False)


def _present_session(shown: _SessionView, given: argparse.Namespace, screen: Screen) -> Verdict:
    if given.html:
        path = Path(given.html)
        check_new_path(path, force=given.force)  # Before the long work.
        verdict = shown.verify()
        # The page is written completely or not at all. Half a page would look like a session that broke off.
        pieces = render_page(shown.session, shown.entries, verdict, shown.blob)
        with open_new_file(path, force=given.force, mode=PRIVATE) as file:
            file.writelines(piece.encode("utf-8", "replace") for piece in pieces)
        screen.print_line(to_one_line(f"wrote {given.html}"))
        print_verdict(screen, verdict)
        return verdict
    if given.json:
        verdict = shown.verify()
        print_json(story_to_dict(shown.session, shown.entries, verdict))
        return verdict
    print_story(screen, shown.session, shown.entries, shown.blob, full=given.full)
    verdict = shown.verify()
    print_verdict(screen, verdict)
    return verdict


@contextmanager
def _open_from_ledger(chain: str, given: argparse.Namespace) -> Iterator[_SessionView | None]:
    with LedgerSource(given.tenant, home_dir(), given.ledger, open_ledger).open() as ledger:
        chains = find_session_by_chain(ledger, chain)
        if chains is None:
            yield None
            return
        session = compute_totals(ledger, chains)
        yield _SessionView(session, read_story(ledger, chains), lambda: verify_session(ledger, chains), ledger.blob)


@contextmanager
def _open_from_file(found: ResolvedTarget, given: argparse.Namespace) -> Iterator[_SessionView | None]:
    """Open a session in a file: a database or bundle of agent-capsule, or one of Aver's files."""
    chains = chains_from_records(found.read(), found.name)
    if chains is None:
        yield None
        return
    session = compute_step_totals(map(read_step, found.read()), chains)
    yield _SessionView(
        session,
        story_from_records(found.read, chains),
        lambda: verify(given.thing, tenant=given.tenant, ledger=given.ledger),
        _refuse_blob,
    )


def _refuse_blob(digest: str) -> bytes:
    raise NotFound(f"the blob {digest} is not in this file")
