"""Reading JSON that came from outside: strict, bounded, and without surprises.

`read_json` takes one document; `read_elements` takes an array (at the top, or under one key of a top-level
object) element by element from chunks of bytes, so that a file of any size is read in bounded memory;
`read_texts` does the same without parsing the elements.

Refused, with the place where it can be told: bytes that are not UTF-8, duplicate keys in one object (two
readers could see two different records), NaN and Infinity, numbers with absurdly many digits, nesting deeper
than `DEPTH_MAX`, elements larger than `ELEMENT_MAX` or with more values than `TOKENS_MAX` allows
(`aver.capsule.bounds`).

`document_forms` and `read_parted` give every form in which a document may have been hashed, also with each number
as it is written. That is how a document sealed by a program that writes numbers another way (JavaScript's `1e-7`
for Python's `1e-07`) is hashed as it was sealed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

from aver.capsule.bounds import (
    ELEMENT_MAX,
    TOKENS_MAX,
    Unreadable,
    bounded,
    end_of,
    is_large,
    refuse_crowded,
    tokens_in,
)
from aver.capsule.canonical import plain_bytes, with_float_fields
from aver.errors import NotCanonical

__all__ = [
    "ELEMENT_MAX",
    "TOKENS_MAX",
    "DuplicateKey",
    "Unreadable",
    "document_forms",
    "plain_forms",
    "read_elements",
    "read_json",
    "read_parted",
    "read_texts",
]

WINDOW = 65_536
"""Characters of a stream kept at a time, as long as each value ends within them."""


class DuplicateKey(Unreadable):
    """One object has the same key twice, so that it means different things to different readers."""


def read_json(data: bytes | str) -> Any:
    """Parse one JSON document strictly."""
    return _parse(bounded(data), _STRICT)


# --- the forms of a document


def document_forms(data: bytes | str, without: Iterable[str] = ()) -> Iterator[bytes]:
    """Every form in which the document, less some top-level keys, may honestly have been hashed; likeliest first.

    The same document, whatever its white space and key order: as it stands, with the float-typed fields as
    floats (a JavaScript writer stores `1` and hashes `1.0`), and both again with each number as it is written.
    No form has a number of another value than the one that is written: a reader would see what nobody signed.
    """
    return read_parted(data, without)[1]


def read_parted(data: bytes | str, keys: Iterable[str]) -> tuple[dict[str, Any], Iterator[bytes]]:
    """What stands under these top-level keys, and the `document_forms` of all the rest. There is at least one."""
    numbers = _Numbers()
    document = _parse(bounded(data), _decoder(numbers.real, numbers.integer))
    if not isinstance(document, dict):
        raise Unreadable("a capsule must be a JSON object")
    dropped = frozenset(keys)
    parted = {key: document.pop(key) for key in dropped & document.keys()}
    return parted, _forms(data, document, numbers, dropped)


def plain_forms(document: dict[str, Any]) -> Iterator[bytes]:
    """A document as it stands, and with the float-typed fields as floats where that changes how they are written."""
    yield plain_bytes(document)
    try:
        coerced = with_float_fields(document)
    except NotCanonical:
        return
    # An integer that no float has the value of is equal to none.
    if coerced is not document and coerced == document:
        yield plain_bytes(coerced)


def _forms(data: bytes | str, document: dict[str, Any], numbers: _Numbers, dropped: frozenset[str]) -> Iterator[bytes]:
    if numbers.exact:
        yield from plain_forms(document)
    if numbers.canonical:
        return
    del document  # The next one takes as much memory again.
    as_written = _parse(bounded(data), _AS_WRITTEN)
    for key in dropped:
        as_written.pop(key, None)
    yield _write_as_written(as_written)
    if _give_float_fields_their_point(as_written):
        yield _write_as_written(as_written)


class _Numbers:
    """Reads numbers, and notes how they are written."""

    def __init__(self) -> None:
        self.canonical = True
        """Each was written as canonical JSON writes it."""
        self.exact = True
        """Each has, to the last digit, the value that was written."""

    def integer(self, text: str) -> int:
        if text == "-0":
            self.canonical = False
        return int(text)

    def real(self, text: str) -> float:
        number = _finite(text)
        if repr(number) != text:
            self.canonical = False
            self.exact = self.exact and _has_value(number, text)
        return number


def _has_value(number: float, text: str) -> bool:
    from decimal import Decimal, InvalidOperation

    try:
        return Decimal(text) == Decimal(repr(number))
    except InvalidOperation:  # An exponent beyond all bounds.
        return False


class _Written(str):
    """A number's own text."""

    __slots__ = ()


def _give_float_fields_their_point(content: dict[str, Any]) -> bool:
    """Write `1.0` for a `1` in the float-typed fields; whether there was any."""
    reasoning = content.get("reasoning")
    if not isinstance(reasoning, dict):
        return False
    options = reasoning.get("options")
    scores = [(option, "feasibility") for option in options] if isinstance(options, list) else []
    changed = False
    for holder, name in ((reasoning, "confidence"), *scores):
        score = holder.get(name) if isinstance(holder, dict) else None
        if isinstance(score, _Written) and score.lstrip("-").isdigit():
            holder[name] = _Written(f"{score}.0")
            changed = True
    return changed


def _write_as_written(document: dict[str, Any]) -> bytes:
    """Canonical JSON with numbers as written."""
    pieces: list[str] = []
    _write(document, pieces)
    try:
        return "".join(pieces).encode("utf-8")
    except UnicodeEncodeError:
        raise Unreadable("a string holds a lone surrogate") from None


def _write(value: Any, pieces: list[str]) -> None:
    if isinstance(value, _Written):
        pieces.append(value)
    elif isinstance(value, dict):
        before = "{"
        for key in sorted(value):
            pieces += (before, _WRITE(key), ":")
            _write(value[key], pieces)
            before = ","
        pieces.append("}" if value else "{}")
    elif isinstance(value, list):
        before = "["
        for item in value:
            pieces.append(before)
            _write(item, pieces)
            before = ","
        pieces.append("]" if value else "[]")
    else:
        pieces.append(_WRITE(value))


_WRITE = json.JSONEncoder(ensure_ascii=False).encode


# --- parsing


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise DuplicateKey(f"the key {key[:80]!r} stands twice in one object")
            seen.add(key)
    return document


def _no_constant(name: str) -> NoReturn:
    raise Unreadable(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if number in (_INFINITY, -_INFINITY):
        raise Unreadable(f"the number {text[:40]} is too large for a float")
    return number


def _decoder(real: Any, integer: Any = None) -> json.JSONDecoder:
    return json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_no_constant, parse_float=real, parse_int=integer)


_INFINITY = float("inf")
_STRICT = _decoder(_finite)
_AS_WRITTEN = _decoder(_Written, _Written)


def _parse(text: str, decoder: json.JSONDecoder) -> Any:
    """Parse a text whose bounds were checked."""
    try:
        return decoder.decode(text)
    except Unreadable:
        raise
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"not valid JSON: {error}") from None


# --- arrays, element by element


def read_elements(chunks: Iterable[bytes], key: str | None = None) -> Iterator[tuple[str, Any]]:
    """Stream a JSON array. Yields `(text, value)` per element.

    With `key`, the document is an object and the array stands under that key; the object's other members are
    yielded last, as one element `("", {...})`.
    """
    reader = _Reader(chunks)
    if key is None:
        yield from _parsed(reader.array())
    else:
        yield from reader.object_with_array(key)
    reader.end()


def read_texts(chunks: Iterable[bytes]) -> Iterator[str]:
    """Stream a JSON array. Yields each element's text, within all bounds, but not parsed: it may not be valid."""
    reader = _Reader(chunks)
    yield from reader.array()
    reader.end()


def _parsed(texts: Iterable[str]) -> Iterator[tuple[str, Any]]:
    for text in texts:
        yield text, _parse(text, _STRICT)


class _Reader:
    """A window over chunks of text, refilled only when a value does not end inside it."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        import codecs

        self._chunks = iter(chunks)
        self._utf8 = codecs.getincrementaldecoder("utf-8")()
        self._text = ""
        self._at = 0
        self._done = False

    def array(self) -> Iterator[str]:
        self._expect("[")
        if self._peek() == "]":
            self._expect("]")
            return
        while True:
            yield self._value()
            if self._peek() == ",":
                self._expect(",")
            else:
                self._expect("]")
                return

    def object_with_array(self, key: str) -> Iterator[tuple[str, Any]]:
        others: dict[str, Any] = {}
        size = tokens = 0
        seen: set[str] = set()
        self._expect("{")
        if self._peek() == "}":
            self._expect("}")
        else:
            while True:
                name = _parse(self._value(), _STRICT)
                if not isinstance(name, str):
                    raise Unreadable("an object key is not a string")
                if name in seen:
                    raise DuplicateKey(f"the key {name[:80]!r} stands twice in one object")
                seen.add(name)
                self._expect(":")
                if name == key:
                    yield from _parsed(self.array())
                else:
                    text = self._value()
                    size += len(name) + len(text)
                    tokens += 1 + tokens_in(text)
                    if size > ELEMENT_MAX or tokens > TOKENS_MAX:
                        raise Unreadable(
                            f"what stands beside {key!r} has more than {ELEMENT_MAX} bytes or {TOKENS_MAX} values"
                        )
                    others[name] = _parse(text, _STRICT)
                if self._peek() == ",":
                    self._expect(",")
                else:
                    self._expect("}")
                    break
        if key not in seen:
            raise Unreadable(f"has no {key!r}")
        yield "", others

    def end(self) -> None:
        if self._peek():
            raise Unreadable("something follows the end of the document")

    def _fill(self) -> bool:
        """Read on until the window has doubled, so that a value of n bytes is tried only log n times."""
        if self._done:
            return False
        wanted = min(max(2 * (len(self._text) - self._at), WINDOW), ELEMENT_MAX + WINDOW)
        parts = [self._text[self._at :]]
        size = len(parts[0])
        while size < wanted:
            chunk = next(self._chunks, None)
            try:
                text = self._utf8.decode(chunk or b"", final=chunk is None)
            except UnicodeDecodeError:
                raise Unreadable("not UTF-8") from None
            parts.append(text)
            size += len(text)
            if chunk is None:
                self._done = True
                break
        self._text, self._at = "".join(parts), 0
        return True

    def _peek(self) -> str:
        """The next character that is not white space; empty at the end."""
        while True:
            while self._at < len(self._text):
                character = self._text[self._at]
                if character not in " \t\r\n":
                    return character
                self._at += 1
            if not self._fill():
                return ""

    def _expect(self, character: str) -> None:
        found = self._peek()
        if found != character:
            raise Unreadable(f"expected {character!r}, found {found or 'the end'!r}")
        self._at += 1

    def _value(self) -> str:
        """The text of the next value, within all bounds."""
        if not self._peek():
            raise Unreadable("the document ends early")
        while (end := end_of(self._text, self._at)) is None:
            if len(self._text) - self._at > ELEMENT_MAX:
                raise Unreadable(f"an element is larger than {ELEMENT_MAX} bytes")
            if not self._fill():
                raise Unreadable("the document ends early")
        text = self._text[self._at : end]
        if is_large(text):
            raise Unreadable(f"an element is larger than {ELEMENT_MAX} bytes")
        refuse_crowded(text)
        self._at = end
        if len(text) > WINDOW:
            self._text, self._at = self._text[end:], 0  # Not to keep it twice.
        return text
