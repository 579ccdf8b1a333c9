"""Reading JSON that came from outside: strict, bounded, and without surprises.

`read_json` takes one document; `read_elements` takes an array (at the top, or under one key of a top-level
object) element by element from chunks of bytes, so that a file of any size is read in bounded memory.

Refused, with the place where it can be told: bytes that are not UTF-8, duplicate keys in one object (two
readers could see two different records), NaN and Infinity, numbers with absurdly many digits, nesting deeper
than `DEPTH_MAX`, elements larger than `ELEMENT_MAX`.

`read_numbers_as_written` keeps each number's own text. That is how a document sealed by a program that writes
numbers another way (JavaScript's `1e-7` for Python's `1e-07`) is hashed as it was sealed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

import orjson

from aver.capsule.canonical import DEPTH_MAX, canonical_bytes, plain_bytes
from aver.errors import BadInput, NotCanonical

__all__ = [
    "ELEMENT_MAX",
    "DuplicateKey",
    "Unreadable",
    "document_forms",
    "read_elements",
    "read_json",
]

ELEMENT_MAX = 16 * 1024 * 1024
"""Largest single JSON element read. Aver's own capsules stop at 256 KiB; others inline whole files."""


class Unreadable(BadInput):
    """The bytes are not JSON that can be read safely."""


class DuplicateKey(Unreadable):
    """One object has the same key twice, so that it means different things to different readers."""


def read_json(data: bytes | str) -> Any:
    """Parse one JSON document strictly."""
    if len(data) > ELEMENT_MAX:
        raise Unreadable(f"larger than {ELEMENT_MAX} bytes")
    return _parse(data, _STRICT)


def document_forms(data: bytes | str, without: Iterable[str] = ()) -> Iterator[bytes]:
    """Every form in which the document, less some top-level keys, may honestly have been hashed; likeliest first.

    The same document, whatever its white space and key order: as it stands, with the float-typed fields as
    floats (a JavaScript writer stores `1` and hashes `1.0`), and both again with each number as it is written.
    """
    dropped = frozenset(without)
    document = read_json(data)
    if not isinstance(document, dict):
        raise Unreadable("a capsule must be a JSON object")
    document = {key: value for key, value in document.items() if key not in dropped}
    seen: set[bytes] = set()
    for form in (plain_bytes, canonical_bytes):
        try:
            written = form(document)
        except NotCanonical:
            continue
        if written not in seen:
            seen.add(written)
            yield written
    as_written = _parse(data, _AS_WRITTEN)
    as_written = {key: value for key, value in as_written.items() if key not in dropped}
    for floats in (False, True):
        written = _write_as_written(as_written, () if floats else None)
        if written not in seen:
            seen.add(written)
            yield written


def _parse(data: bytes | str, decoder: json.JSONDecoder) -> Any:
    text = _decoded(data)
    _refuse_deep(text)
    try:
        return decoder.decode(text)
    except Unreadable:
        raise
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"not valid JSON: {error}") from None


def _decoded(data: bytes | str) -> str:
    if isinstance(data, str):
        return data
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Unreadable(f"not UTF-8 at byte {error.start}") from None


def _refuse_deep(text: str) -> None:
    """Count brackets outside strings before the recursive parser meets them."""
    if text.count("[") + text.count("{") <= DEPTH_MAX:
        return
    depth = 0
    in_string = escaped = False
    for character in text:
        if in_string:
            if escaped:
                escaped = False
            elif character == "\\":
                escaped = True
            elif character == '"':
                in_string = False
        elif character == '"':
            in_string = True
        elif character in "[{":
            depth += 1
            if depth > DEPTH_MAX:
                raise Unreadable(f"nested deeper than {DEPTH_MAX} levels")
        elif character in "]}":
            depth -= 1


class _Written(str):
    """A number's own text."""

    __slots__ = ()


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise DuplicateKey(f"the key {twice[:80]!r} stands twice in one object")
    return document


def _no_constant(name: str) -> NoReturn:
    raise Unreadable(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if number in (_INFINITY, -_INFINITY):
        raise Unreadable(f"the number {text[:40]} is too large for a float")
    return number


_INFINITY = float("inf")
_STRICT = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_no_constant, parse_float=_finite)
_AS_WRITTEN = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_constant=_no_constant, parse_float=_Written, parse_int=_Written
)


def _write_as_written(value: Any, path: tuple[str, ...] | None) -> bytes:
    """Canonical JSON with numbers as written. `path` is followed only where float fields are to gain their `.0`."""
    if isinstance(value, _Written):
        plain = value.lstrip("-").isdigit()
        text = f"{value}.0" if plain and path in (("reasoning", "confidence"), _FEASIBILITY) else str(value)
        return text.encode()
    if isinstance(value, dict):
        items = (
            orjson_string(key) + b":" + _write_as_written(item, None if path is None else (*path, key))
            for key, item in sorted(value.items())
        )
        return b"{" + b",".join(items) + b"}"
    if isinstance(value, list):
        inner = None if path is None else (*path, "[]")
        return b"[" + b",".join(_write_as_written(item, inner) for item in value) + b"]"
    return orjson_string(value)


_FEASIBILITY = ("reasoning", "options", "[]", "feasibility")


def orjson_string(value: str | bool | None) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:
        raise Unreadable("a string holds a lone surrogate") from None


def read_elements(chunks: Iterable[bytes], key: str | None = None) -> Iterator[tuple[str, Any]]:
    """Stream a JSON array. Yields `(text, value)` per element.

    With `key`, the document is an object and the array stands under that key; the object's other members are
    yielded last, as one element `("", {...})`.
    """
    reader = _Reader(chunks)
    if key is None:
        yield from reader.array()
    else:
        yield from reader.object_with_array(key)
    reader.end()


class _Reader:
    """A window over chunks of text, refilled only when a value does not end inside it."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        import codecs

        self._chunks = iter(chunks)
        self._utf8 = codecs.getincrementaldecoder("utf-8")()
        self._text = ""
        self._at = 0
        self._done = False

    def array(self) -> Iterator[tuple[str, Any]]:
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
        size = 0
        seen: set[str] = set()
        self._expect("{")
        if self._peek() == "}":
            self._expect("}")
        else:
            while True:
                _, name = self._value()
                if not isinstance(name, str):
                    raise Unreadable("an object key is not a string")
                if name in seen:
                    raise DuplicateKey(f"the key {name[:80]!r} stands twice in one object")
                seen.add(name)
                self._expect(":")
                if name == key:
                    yield from self.array()
                else:
                    text, others[name] = self._value()
                    size += len(name) + len(text)
                    if size > ELEMENT_MAX:
                        raise Unreadable(f"what stands beside {key!r} is larger than {ELEMENT_MAX} bytes")
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
        wanted = max(2 * (len(self._text) - self._at), 65_536)
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

    def _value(self) -> tuple[str, Any]:
        if not self._peek():
            raise Unreadable("the document ends early")
        while True:
            end = self._scan()
            if end is not None:
                text = self._text[self._at : end]
                if len(text) > ELEMENT_MAX:
                    raise Unreadable(f"an element is larger than {ELEMENT_MAX} bytes")
                self._at = end
                return text, _parse(text, _STRICT)
            if len(self._text) - self._at > ELEMENT_MAX:
                raise Unreadable(f"an element is larger than {ELEMENT_MAX} bytes")
            if not self._fill():
                raise Unreadable("the document ends early")

    def _scan(self) -> int | None:
        """Where the value at the window's start ends; None if that cannot be told yet."""
        _refuse_deep(self._text[self._at : self._at + DEPTH_MAX * 2 + 2])
        try:
            _, end = _SKIM.raw_decode(self._text, self._at)
        except RecursionError:
            raise Unreadable(f"nested deeper than {DEPTH_MAX} levels") from None
        except ValueError as error:
            if self._done:
                raise Unreadable(f"not valid JSON: {error}") from None
            return None
        # A number or literal at the very end of the window may go on in the next chunk.
        return None if end == len(self._text) and not self._done else end


_SKIM = json.JSONDecoder(parse_float=str, parse_int=str)
