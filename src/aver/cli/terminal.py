"""Safe output on a terminal.

Records and file names come from strangers, and a terminal obeys control characters. So every verb prints through
this module. It escapes each text until it is one line of printable characters, and only then adds its own colours.
A hostile summary can neither move the cursor nor start a line of its own.

Results go to stdout, everything else to stderr. Colours, progress and line width depend on the terminal; without one
there are no colours and no progress. `NO_COLOR` is respected.

Reads a passphrase from the terminal or from an open file descriptor.

It never comes from the command line, which every user of the machine can see.

Ends a long run in order when a service manager sends SIGTERM.
"""

from __future__ import annotations

import getpass
import json
import os
import signal
import sys
import time
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, TextIO

from aver.errors import BadInput
from aver.fast_dataclass import dataclass
from aver.text import escape_unprintable, to_one_line

DEFAULT_WIDTH = 100
"""Columns of a line where there is no terminal."""

MIN_WIDTH, MAX_WIDTH = 60, 160
"""Limits on the width that is used: a shorter line cannot be read, a longer one is tiring to read."""

MIN_TEXT_WIDTH = 20
"""Columns that deeply indented text keeps, even if it then runs over the edge."""

_STATUS_MARKS = {
    **dict.fromkeys(("passed", "verified", "success", "ok"), ("✓", "+", "good")),
    **dict.fromkeys(("failed", "failure", "problem"), ("✗", "x", "bad")),
    **dict.fromkeys(("warning", "qualified", "partial", "empty"), ("!", "!", "warn")),
    **dict.fromkeys(("not_checked", "pending"), ("–", "-", "dim")),
    "blocked": ("■", "#", "bad"),
}
_STYLE_CODES = {"good": "32", "bad": "31;1", "warn": "33", "dim": "2", "strong": "1", "added": "32", "removed": "31"}


def display_width(text: str) -> int:
    """The columns that printable text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(map(_character_width, text))


def _character_width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def clip(text: str, width: int) -> str:
    """Printable text cut to at most `width` columns. An ellipsis marks the cut."""
    if display_width(text) <= width:
        return text
    return text[: _find_line_end(text, width - 1)].rstrip() + "…"


def _find_line_end(text: str, width: int, start: int = 0) -> int:
    """The index at which the text from `start` on must end to fit into `width` columns."""
    if text.isascii():
        return min(start + width, len(text))
    used = 0
    for index in range(start, len(text)):
        used += _character_width(text[index])
        if used > width:
            return index
    return len(text)


def format_time(moment: Any) -> str:
    """A record's time to the second, in UTC as in the record."""
    text = to_one_line(str(moment or ""))
    return f"{text[:10]} {text[11:19]}" if len(text) >= 19 and text[10] == "T" else (text or "no time")


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON object on stdout. It is pure ASCII, so no content can harm a terminal."""
    print(
        json.dumps(value, indent=2 if sys.stdout.isatty() else None).replace("\x7f", "\\u007f")
    )  # DEL is ASCII, and json leaves it.


@dataclass(frozen=True, slots=True)
class StyledText:
    """Text in one of the styles `good`, `bad`, `warn`, `dim`, `strong`, `added` and `removed`."""

    text: str
    style: str


LinePart = str | StyledText


class Screen:
    """Prints lines of text on stdout or on another stream."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdout
        self.terminal = self._stream.isatty()
        self._colour = self.terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        self.width = min(max(_terminal_width(self._stream), MIN_WIDTH), MAX_WIDTH) if self.terminal else DEFAULT_WIDTH

    def status_mark(self, status: str) -> StyledText:
        """The sign for a status, one column wide. It is ASCII where the stream cannot encode another."""
        sign, plain, style = _STATUS_MARKS.get(status, ("?", "?", "warn"))
        return StyledText(sign if _escape_unencodable(sign, self._stream) == sign else plain, style)

    def print_line(self, *parts: LinePart) -> None:
        """Print exactly one line, made of these parts."""
        self._stream.write("".join(map(self._render, parts)).rstrip() + "\n")

    def print_table(self, rows: Sequence[Sequence[LinePart]], *, header: Sequence[str] = (), indent: int = 0) -> None:
        """Print rows in aligned columns. The last column is cut at the edge of the terminal."""
        lines = [[_to_one_line_part(part) for part in row] for row in rows]
        if header and lines and self.terminal:
            lines.insert(0, [StyledText(title, "dim") for title in header])
        if not lines:
            return
        widths = [max(display_width(_plain_text(row[column])) for row in lines) for column in range(len(lines[0]) - 1)]
        for row in lines:
            parts: list[LinePart] = [" " * indent]
            used = indent
            for part, width in zip(row, widths, strict=False):
                parts += [part, " " * (width - display_width(_plain_text(part)) + 2)]
                used += width + 2
            self.print_line(*parts, self._clip_to_edge(row[-1], used))

    def print_wrapped(self, text: str, *, indent: str, style: str = "") -> None:
        """Print text of any length. Its line breaks are kept; each line begins with `indent`."""
        for paragraph in text.splitlines() or [""]:
            for line in _wrap_text(
                escape_unprintable(paragraph.replace("\t", "    ")),
                max(self.width - display_width(indent), MIN_TEXT_WIDTH),
            ):
                self.print_line(indent, StyledText(line, style) if style else line)

    def print_hanging(self, *label: LinePart, text: str, style: str = "") -> None:
        """Print a label and a text after it. On a terminal, a long text goes on below its own beginning."""
        used = sum(display_width(escape_unprintable(_plain_text(part))) for part in label)
        words = to_one_line(text)
        lines = _wrap_text(words, max(self.width - used, MIN_TEXT_WIDTH)) if self.terminal else [words]
        for number, line in enumerate(lines):
            before = label if number == 0 else (" " * used,)
            self.print_line(*before, StyledText(line, style) if style else line)

    def _clip_to_edge(self, part: LinePart, used: int) -> LinePart:
        if not self.terminal:
            return part
        text = clip(_plain_text(part), max(self.width - used, MIN_TEXT_WIDTH))
        return StyledText(text, part.style) if isinstance(part, StyledText) else text

    def _render(self, part: LinePart) -> str:
        text = _escape_unencodable(escape_unprintable(_plain_text(part)), self._stream)
        if isinstance(part, StyledText) and self._colour and text:
            return f"\x1b[{_STYLE_CODES[part.style]}m{text}\x1b[0m"
        return text


class StderrScreen(Screen):
    """Prints lines on stderr."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)

    def print_error(self, message: str, advice: str = "") -> None:
        """Print what went wrong and what to do next."""
        self.print_line(StyledText("aver: ", "bad"), to_one_line(message))
        if advice:
            self.print_line("      ", to_one_line(advice))

    def print_note(self, text: str) -> None:
        """Print a remark that is no part of the result."""
        self.print_line(to_one_line(text))


class Progress:
    """Shows the progress of a long run on one line of the terminal, and removes the line at the end."""

    FIRST_AFTER = 0.5
    """Seconds before the line appears, so that short runs show none."""
    EVERY = 0.1
    """Seconds between two updates."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._on = sys.stderr.isatty()
        self._next = time.monotonic() + self.FIRST_AFTER
        self._shown = False

    def __call__(self, done: int, total: int) -> None:
        if not self._on or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + self.EVERY
        self._shown = True
        share = f" ({100 * done // total} %)" if total else ""
        # Return to the line's beginning and erase it, then write it again.
        sys.stderr.write(f"\r\x1b[K{self._what}: {done:,} of {total:,}{share}")
        sys.stderr.flush()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _to_one_line_part(part: LinePart) -> LinePart:
    return StyledText(to_one_line(part.text), part.style) if isinstance(part, StyledText) else to_one_line(part)


def _plain_text(part: LinePart) -> str:
    return part.text if isinstance(part, StyledText) else part


def _terminal_width(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        return DEFAULT_WIDTH


def _escape_unencodable(text: str, stream: TextIO) -> str:
    """The text with everything escaped that the stream's encoding cannot write."""
    encoding = stream.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _wrap_text(text: str, width: int) -> list[str]:
    """The text in lines of at most `width` columns, broken at spaces. Leading spaces are kept, as in code."""
    lines = []
    start = 0
    while (fitting := _find_line_end(text, width, start)) < len(text):
        space = text.rfind(" ", start, fitting + 1)
        cut = space if space - start > width // 2 else fitting  # Too early a space would waste half the line.
        lines.append(text[start:cut].rstrip())
        start = cut
        while start < len(text) and text[start].isspace():
            start += 1
    lines.append(text[start:])
    return lines


PASSPHRASE_MAX = 1024
"""The longest passphrase that is read from a descriptor, in bytes."""

TERMINAL = "/dev/tty"


def ask_passphrase(identity: str, descriptor: int | None, *, new: bool = False) -> str:
    """Ask for the passphrase of an identity.

    A person types a new passphrase twice. A descriptor gives one line for each passphrase.
    """
    if descriptor is not None:
        # Read one line, byte by byte, because the next line may be the next passphrase.
        raw = bytearray()
        try:
            while (byte := os.read(descriptor, 1)) not in (b"", b"\n"):
                raw += byte
                if len(raw) > PASSPHRASE_MAX:
                    raise BadInput(f"the passphrase is longer than {PASSPHRASE_MAX} bytes")
        except OSError as error:
            raise BadInput(f"cannot read the passphrase from descriptor {descriptor}: {error.strerror}") from error
        try:
            line = raw.decode("utf-8").rstrip("\r")
        except UnicodeDecodeError:
            raise BadInput("the passphrase is not UTF-8") from None
        return _require_nonempty(line)
    if not has_terminal():
        raise BadInput(f"there is no terminal to ask for the passphrase of {identity}", advice="give --passphrase-fd N")
    words = getpass.getpass(f"Passphrase for {identity}: ")
    if new and getpass.getpass("Repeat the passphrase: ") != words:
        raise BadInput("the two passphrases differ", advice="try again")
    return _require_nonempty(words)


def has_terminal() -> bool:
    """Whether the process has a terminal, even if stdin and stdout are redirected."""
    try:
        os.close(os.open(TERMINAL, os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


def _require_nonempty(words: str) -> str:
    if not words:
        raise BadInput("the passphrase is empty", advice="choose a few words that are hard to guess")
    return words


class Terminated(BaseException):
    """The process received SIGTERM. It is no `Exception`, so that no handler swallows it."""


@contextmanager
def raise_on_sigterm() -> Iterator[None]:
    """Within this context, SIGTERM raises `Terminated`."""

    def end(_: int, __: FrameType | None) -> None:
        raise Terminated

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
