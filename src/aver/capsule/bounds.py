"""How large a JSON text is, found out before a single Python object is built from it.

A short text can cost much memory: every `{}` and every `""` becomes an object. So size, depth and the number of
values are bounded in the text itself, in linear time and constant memory, and only then is it parsed.
"""

from __future__ import annotations

import re

from aver.capsule.canonical import DEPTH_MAX
from aver.errors import BadInput

__all__ = ["ELEMENT_MAX", "TOKENS_MAX", "Unreadable", "bounded", "end_of", "is_large", "refuse_crowded", "tokens_in"]

ELEMENT_MAX = 16 * 1024 * 1024
"""Largest single JSON element read. Aver's own capsules stop at 256 KiB; others inline whole files."""

TOKENS_MAX = 1_000_000
"""Most commas, colons and opening brackets outside strings in one element. A value costs up to some hundred bytes of
memory, however short it is written, so this is what bounds the memory. What is large for a good reason is so because
of its strings: 256 KiB cannot hold so many, nor can an index or a checkpoint of `ELEMENT_MAX`."""


class Unreadable(BadInput):
    """The bytes are not JSON that can be read safely."""


def bounded(data: bytes | str) -> str:
    """The text, if it can be parsed in bounded memory."""
    if is_large(data):
        raise Unreadable(f"larger than {ELEMENT_MAX} bytes")
    text = _decoded(data)
    refuse_crowded(text)
    if text.count("[") + text.count("{") > DEPTH_MAX:
        start = _SPACE(text).end()  # type: ignore[union-attr]
        if start < len(text):
            end_of(text, start)
    return text


def _decoded(data: bytes | str) -> str:
    if isinstance(data, str):
        return data
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Unreadable(f"not UTF-8 at byte {error.start}") from None


def is_large(data: bytes | str) -> bool:
    """Whether it has more than `ELEMENT_MAX` bytes."""
    if len(data) > ELEMENT_MAX:
        return True
    if isinstance(data, bytes) or data.isascii() or 4 * len(data) <= ELEMENT_MAX:
        return False
    return len(data.encode("utf-8", "surrogatepass")) > ELEMENT_MAX


def refuse_crowded(text: str) -> None:
    """Refuse a text with more tokens than `TOKENS_MAX`."""
    # Counting everything is fast, and mostly enough; what stands in strings is left out only where it matters.
    if len(text) > TOKENS_MAX and sum(map(text.count, ",:[{")) > TOKENS_MAX and tokens_in(text) > TOKENS_MAX:
        raise _crowded()


def _crowded() -> Unreadable:
    return Unreadable(f"holds more than {TOKENS_MAX} values")


def tokens_in(text: str) -> int:
    """How many tokens there are outside strings; counted no further than the limit."""
    count = at = 0
    while count <= TOKENS_MAX and (match := _TO_TOKEN(text, at)):
        count += 1
        at = match.end()
    return count


def end_of(text: str, at: int) -> int | None:
    """Where the value that begins here ends; None if the text ends before. Whether it is valid, parsing tells."""
    if text[at] == '"':
        string = _STRING(text, at)
        return string.end() if string else None
    if text[at] not in "[{":
        end = _SCALAR(text, at).end()  # type: ignore[union-attr]
        return end if end < len(text) else None  # A number may go on in the next chunk.
    depth = opened = 0
    while match := _TO_BRACKET(text, at):
        at = match.end()
        if text[at - 1] in "[{":
            depth += 1
            opened += 1
            if depth > DEPTH_MAX:
                raise Unreadable(f"nested deeper than {DEPTH_MAX} levels")
            if opened > TOKENS_MAX:
                raise _crowded()
        else:
            depth -= 1
            if depth == 0:
                return at
    return None


# Possessive throughout: nothing is ever tried twice, so time is linear and memory constant.
_QUOTED = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_SPACE = re.compile(r"[ \t\r\n]*+").match
_STRING = re.compile(_QUOTED, re.DOTALL).match
_SCALAR = re.compile(r'[^ \t\r\n"\[\]{},:]*+').match
_TO_BRACKET = re.compile(rf'(?:[^"\[\]{{}}]++|{_QUOTED})*+[\[\]{{}}]', re.DOTALL).match
_TO_TOKEN = re.compile(rf'(?:[^"\[{{,:]++|{_QUOTED})*+[\[{{,:]', re.DOTALL).match
