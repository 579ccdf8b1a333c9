"""Text for people: made safe to show, put on one line, shortened, counted. Pure.

Records, file names and commands come from anyone, and a terminal obeys the control characters that it is sent. There
are two ways to make such text safe:

    escape_unprintable  for results and pages. A character that is not printable becomes an escape such as `\\x1b`.
    escape_invisible    for text by which a person decides, such as the request of an approval. It also writes out
                        each character that hides, moves or imitates others, as its code point: `<U+202E>`. These are
                        format characters (bidirectional controls, joiners, zero-width ones), letters that run from
                        right to left, blanks other than the space, fillers, and marks piled upon marks.

Other scripts stay as they are. `count_unusual_characters` counts them, because letters that look alike may differ.
"""

from __future__ import annotations

from aver.fast_dataclass import dataclass

# `unicodedata` is imported inside the functions: hooks import this module and show hardly any text.

TAB = "    "

MARKS_MAX = 2
"""Marks upon one letter. Written languages need no more, and a pile of marks hides the lines above it."""

_MARKS = frozenset({"Mn", "Me"})
_RIGHT_TO_LEFT = frozenset({"R", "AL", "AN"})
_BLANK_CHARACTERS = frozenset("\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\u034f") | frozenset(
    map(chr, (*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))
)
"""Characters that count as letters or marks and show nothing: fillers, joiners, variation selectors."""


# --- one line, shortened, counted


def to_one_line(text: str) -> str:
    """The text as one printable line: white space becomes single spaces, other unprintable characters are escaped."""
    return escape_unprintable(" ".join(text.split()))


def summary_line(text: str, limit: int, *, window: int | None = None) -> str:
    """One line of at most `limit` characters, made from the first `window` characters of a text.

    Without `window` these are twice `limit`: white space that is joined may shorten the text.
    """
    return clip_text(" ".join(text[: 2 * limit if window is None else window].split()), limit)


def clip_text(text: str, limit: int) -> str:
    """The text in at most `limit` characters, the last of them an ellipsis where it was cut."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def plural(number: int, noun: str) -> str:
    """A number with its noun: `1 line`, `2,000 lines`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


# --- escapes for terminals and pages


def escape_unprintable(text: str, *, keep: str = "") -> str:
    """The text with every character that is not printable, and not in `keep`, written as an escape."""
    if text.isprintable():
        return text
    import unicodedata

    shown = []
    for character in text:
        code = ord(character)
        if character.isprintable() or character in keep:
            shown.append(character)
        elif unicodedata.category(character) == "Zs":
            shown.append(" ")  # Another width of space, such as a no-break space.
        elif code < 0x100:
            shown.append(f"\\x{code:02x}")
        else:
            shown.append(f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")
    return "".join(shown)


# --- text by which a person decides


@dataclass(frozen=True, slots=True)
class UnusualCharacters:
    """How many characters of a text a reader should be warned of."""

    hidden: int = 0
    """Characters that are written out because they cannot be shown as they are."""
    foreign: int = 0
    """Characters shown as they are that are not ASCII, and may look like others."""


def escape_invisible(text: str) -> str:
    """The text on one line, every character of it visible and in its place. A tab becomes spaces."""
    if text.isascii() and text.isprintable():
        return text
    import unicodedata

    shown = []
    marks = 0
    for character in text:
        marks = marks + 1 if unicodedata.category(character) in _MARKS else 0
        if character == "\t":
            shown.append(TAB)
        elif marks > MARKS_MAX or _needs_escape(character):
            shown.append(f"<U+{ord(character):04X}>")
        else:
            shown.append(character)
    return "".join(shown)


def count_unusual_characters(text: str) -> UnusualCharacters:
    """Count what `escape_invisible` writes out, and what it leaves that is not ASCII. Without tabs, line feeds."""
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return UnusualCharacters()
    import unicodedata

    hidden = foreign = marks = 0
    for character in text:
        marks = marks + 1 if unicodedata.category(character) in _MARKS else 0
        if character in "\t\n":
            continue
        if marks > MARKS_MAX or _needs_escape(character):
            hidden += 1
        elif not character.isascii():
            foreign += 1
    return UnusualCharacters(hidden, foreign)


def _needs_escape(character: str) -> bool:
    if character.isascii():
        return not character.isprintable()
    import unicodedata

    return (
        not character.isprintable()
        or character in _BLANK_CHARACTERS
        or unicodedata.bidirectional(character) in _RIGHT_TO_LEFT
    )
