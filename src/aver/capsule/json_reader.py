"""Read JSON from outside strictly, in bounded time and memory.

    read_json            one document
    read_elements        an array, at the top or under one key, element by element from chunks of bytes
    read_element_texts   the same without parsing the elements
    canonical_forms      every form in which a document may have been hashed
    split_off_keys       the same for a document without some of its keys

These are refused as `Unreadable`:

1. Bytes that are not UTF-8, or not JSON.
2. Duplicate keys in one object, because two readers could see two different records (`DuplicateKey`).
3. NaN, Infinity, and numbers too large for a float or with absurdly many digits.
4. Nesting deeper than `DEPTH_MAX`.
5. A document or element larger than `ELEMENT_MAX`, or with more values than `TOKENS_MAX`.

A short text can cost much memory, because every `{}` and every `""` becomes a Python object. So rules 4 and 5 are
checked on the text itself, in linear time and constant memory, before anything is parsed.

Programs write one number in several ways: JavaScript writes `1e-7` where Python writes `1e-07`. `canonical_forms`
therefore also gives the form that keeps each number as it is written. So a record of such a program can be verified.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

import orjson

from aver.capsule.canonical import DEPTH_MAX, canonical_json, coerce_float_fields
from aver.errors import BadInput, NotCanonical
from aver.lazy_pattern import lazy_pattern

ELEMENT_MAX = 16 * 1024 * 1024
"""Largest JSON element that is read, in bytes. Aver's capsules have up to 256 KiB; others inline whole files."""

TOKENS_MAX = 1_000_000
"""Most commas, colons and opening brackets outside strings in one element. A value takes up to some hundred bytes of
memory, however short its text is, so this limit bounds the memory. Real documents that are large have long strings, not
this many values."""


class Unreadable(BadInput):
    """The bytes are not JSON that can be read safely."""


def decode_bounded(data: bytes | str) -> str:
    """Decode a text and check rules 1, 4 and 5: after that it can be parsed in bounded memory."""
    if is_too_large(data):
        raise Unreadable(f"larger than {ELEMENT_MAX} bytes")
    if isinstance(data, str):
        text = data
    else:
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise Unreadable(f"not UTF-8 at byte {error.start}") from None
    check_token_count(text)
    if text.count("[") + text.count("{") > DEPTH_MAX:  # Otherwise it cannot be too deep.
        start = _SPACE.match(text).end()  # type: ignore[union-attr]
        if start < len(text):
            find_value_end(text, start)
    return text


def is_too_large(data: bytes | str) -> bool:
    """Whether it has more than `ELEMENT_MAX` bytes."""
    if len(data) > ELEMENT_MAX:
        return True
    if isinstance(data, bytes) or data.isascii() or 4 * len(data) <= ELEMENT_MAX:
        return False
    return len(data.encode("utf-8", "surrogatepass")) > ELEMENT_MAX


def check_token_count(text: str) -> None:
    """Refuse a text with more tokens than `TOKENS_MAX`."""
    # The fast count includes strings. Only if it is too high does the slow count leave them out.
    if len(text) > TOKENS_MAX and sum(map(text.count, ",:[{")) > TOKENS_MAX and count_tokens(text) > TOKENS_MAX:
        raise _too_many_values_error()


def _too_many_values_error() -> Unreadable:
    return Unreadable(f"holds more than {TOKENS_MAX} values")


def count_tokens(text: str) -> int:
    """Count the tokens outside strings, no further than the limit."""
    count = at = 0
    while count <= TOKENS_MAX and (match := _TO_TOKEN.match(text, at)):
        count += 1
        at = match.end()
    return count


def find_value_end(text: str, at: int) -> int | None:
    """Find the end of the value that begins at `at`; None if the text ends before. Does not check its syntax."""
    if text[at] == '"':
        string = _STRING.match(text, at)
        return string.end() if string else None
    if text[at] not in "[{":
        end = _SCALAR.match(text, at).end()  # type: ignore[union-attr]
        return end if end < len(text) else None  # The next chunk may continue the number.
    depth = opened = 0
    while match := _TO_BRACKET.match(text, at):
        at = match.end()
        if text[at - 1] in "[{":
            depth += 1
            opened += 1
            if depth > DEPTH_MAX:
                raise Unreadable(f"nested deeper than {DEPTH_MAX} levels")
            if opened > TOKENS_MAX:
                raise _too_many_values_error()
        else:
            depth -= 1
            if depth == 0:
                return at
    return None


# All quantifiers are possessive: no match is tried twice, so time is linear and memory constant.
_QUOTED = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_SPACE = lazy_pattern(r"[ \t\r\n]*+")
_STRING = lazy_pattern(_QUOTED, re.DOTALL)
_SCALAR = lazy_pattern(r'[^ \t\r\n"\[\]{},:]*+')
_TO_BRACKET = lazy_pattern(rf'(?:[^"\[\]{{}}]++|{_QUOTED})*+[\[\]{{}}]', re.DOTALL)
_TO_TOKEN = lazy_pattern(rf'(?:[^"\[{{,:]++|{_QUOTED})*+[\[{{,:]', re.DOTALL)


WINDOW_CHARS = 65_536
"""Characters of a stream kept at a time, as long as each value ends within them."""


class DuplicateKey(Unreadable):
    """One object has the same key twice, so two readers can see two different records."""


def read_json(data: bytes | str) -> Any:
    """Parse one JSON document strictly. Raises `Unreadable`."""
    return _parse(decode_bounded(data), _STRICT_DECODER)


# --- the forms of a document


def canonical_forms(data: bytes | str, without: Iterable[str] = ()) -> Iterator[bytes]:
    """Every form in which a document, without some top-level keys, may have been hashed; the likeliest first.

    1. The canonical form of the document.
    2. The same with the float-typed fields as floats: a JavaScript writer stores `1` and hashes `1.0`.
    3. and 4. The same two with each number as it is written.

    No form changes the value of a number: otherwise a reader would see a value that was not signed.
    """
    return split_off_keys(data, without)[1]


_TINY_NUMBER = re.compile(rb"0\.0000").search
_SINGLE_DIGIT_EXPONENT = re.compile(rb"e-[5-9][,}\]]").search
"""Exponents that Python would write with two digits. Two searches are faster than one for either."""


def may_hold_odd_number(canonical: bytes) -> bool:
    """Whether the bytes may have a number that orjson writes back unchanged, but Python writes in another way.

    Python writes 0.00002 as `2e-05` and 0.0000002 as `2e-07`, orjson writes `0.00002` and `2e-7`. They agree on all
    other numbers. A false alarm, the same characters inside a string, only costs time.
    """
    return _TINY_NUMBER(canonical) is not None or _SINGLE_DIGIT_EXPONENT(canonical) is not None


def may_be_too_deep(data: bytes) -> bool:
    """Whether a text has so many opening brackets that it may be nested deeper than `DEPTH_MAX`."""
    # Removing a character takes half the time of counting it.
    return len(data) - len(data.replace(b"[", b"").replace(b"{", b"")) > DEPTH_MAX


def _parse_compact(data: bytes | str) -> dict[str, Any] | None:
    """Parse an object that is written as orjson writes it. None for any other text, which needs the strict reader.

    If orjson writes the same bytes again, no key occurs twice, and each number is written in its canonical form.
    """
    try:
        raw = data.strip() if isinstance(data, bytes) else data.strip().encode("utf-8")
        if len(raw) > TOKENS_MAX or may_be_too_deep(raw):
            return None
        document = orjson.loads(raw)
        if type(document) is dict and orjson.dumps(document) == raw and not may_hold_odd_number(raw):
            return document
    except (ValueError, TypeError):  # No JSON, or a lone surrogate.
        pass
    return None


def split_off_keys(data: bytes | str, keys: Iterable[str]) -> tuple[dict[str, Any], Iterator[bytes]]:
    """Return the values of these top-level keys, and the `canonical_forms` of the rest: at least one."""
    dropped = frozenset(keys)
    document = _parse_compact(data)
    if document is not None:
        parted = {key: document.pop(key) for key in dropped & document.keys()}
        return parted, canonical_forms_from_dict(document)
    numbers = _NumberParser()
    document = _parse(decode_bounded(data), _build_decoder(numbers.parse_float, numbers.parse_int))
    if not isinstance(document, dict):
        raise Unreadable("a capsule must be a JSON object")
    parted = {key: document.pop(key) for key in dropped & document.keys()}
    return parted, _iter_forms(data, document, numbers, dropped)


def canonical_forms_from_dict(document: dict[str, Any]) -> Iterator[bytes]:
    """Forms 1 and 2 of `canonical_forms`, for a document that was parsed before."""
    yield canonical_json(document)
    try:
        coerced = coerce_float_fields(document)
    except NotCanonical:
        return
    # An integer that no float can represent differs from its float: that form would change its value.
    if coerced is not document and coerced == document:
        yield canonical_json(coerced)


def _iter_forms(
    data: bytes | str, document: dict[str, Any], numbers: _NumberParser, dropped: frozenset[str]
) -> Iterator[bytes]:
    if numbers.exact:
        yield from canonical_forms_from_dict(document)
    if numbers.canonical:
        return
    del document  # The second one takes as much memory again.
    as_written = _parse(decode_bounded(data), _AS_WRITTEN_DECODER)
    for key in dropped:
        as_written.pop(key, None)
    yield _dump_as_written(as_written)
    # The same with `1.0` for `1` in the float-typed fields, as rule 5 of `canonical` wants it.
    reasoning = as_written.get("reasoning")
    if not isinstance(reasoning, dict):
        return
    options = reasoning.get("options")
    scores = [(option, "feasibility") for option in options] if isinstance(options, list) else []
    changed = False
    for holder, name in ((reasoning, "confidence"), *scores):
        score = holder.get(name) if isinstance(holder, dict) else None
        if isinstance(score, _NumberText) and score.lstrip("-").isdigit():
            holder[name] = _NumberText(f"{score}.0")
            changed = True
    if changed:
        yield _dump_as_written(as_written)


class _NumberParser:
    """Parses numbers, and records how they are written."""

    def __init__(self) -> None:
        self.canonical = True
        """Whether each is written as canonical JSON writes it."""
        self.exact = True
        """Whether each has, to the last digit, the value that is written."""

    def parse_int(self, text: str) -> int:
        if text == "-0":
            self.canonical = False
        return int(text)

    def parse_float(self, text: str) -> float:
        number = _parse_finite_float(text)
        if repr(number) != text:
            self.canonical = False
            self.exact = self.exact and _is_exact_value(number, text)
        return number


def _is_exact_value(number: float, text: str) -> bool:
    from decimal import Decimal, InvalidOperation

    try:
        return Decimal(text) == Decimal(repr(number))
    except InvalidOperation:  # The exponent is too large for Decimal.
        return False


class _NumberText(str):
    """A number as it is written. Parsing keeps it instead of a value."""

    __slots__ = ()


def _dump_as_written(document: dict[str, Any]) -> bytes:
    """Canonical JSON with each number as it is written."""
    pieces: list[str] = []
    _append_json(document, pieces)
    try:
        return "".join(pieces).encode("utf-8")
    except UnicodeEncodeError:
        raise Unreadable("a string holds a lone surrogate") from None


def _append_json(value: Any, pieces: list[str]) -> None:
    if isinstance(value, _NumberText):
        pieces.append(value)
    elif isinstance(value, dict):
        before = "{"
        for key in sorted(value):
            pieces += (before, _ENCODE(key), ":")
            _append_json(value[key], pieces)
            before = ","
        pieces.append("}" if value else "{}")
    elif isinstance(value, list):
        before = "["
        for item in value:
            pieces.append(before)
            _append_json(item, pieces)
            before = ","
        pieces.append("]" if value else "[]")
    else:
        pieces.append(_ENCODE(value))


_ENCODE = json.JSONEncoder(ensure_ascii=False).encode


# --- parsing


def _object_from_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise DuplicateKey(f"the key {key[:80]!r} occurs twice in one object")
            seen.add(key)
    return document


def _refuse_constant(name: str) -> NoReturn:
    raise Unreadable(f"{name} is not JSON")


def _parse_finite_float(text: str) -> float:
    number = float(text)
    if number in (_INFINITY, -_INFINITY):
        raise Unreadable(f"the number {text[:40]} is too large for a float")
    return number


def _build_decoder(real: Any, integer: Any = None) -> json.JSONDecoder:
    return json.JSONDecoder(
        object_pairs_hook=_object_from_pairs, parse_constant=_refuse_constant, parse_float=real, parse_int=integer
    )


_INFINITY = float("inf")
_STRICT_DECODER = _build_decoder(_parse_finite_float)
_AS_WRITTEN_DECODER = _build_decoder(_NumberText, _NumberText)


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
    """Stream a JSON array. Yields `(text, value)` for each element.

    With `key`, the document is an object that has the array under that key. Its other members come last, together as
    one element `("", {...})`.
    """
    reader = _ChunkReader(chunks)
    if key is None:
        yield from _parse_each(reader.read_array())
    else:
        yield from reader.read_object_with_array(key)
    reader.end()


def read_element_texts(chunks: Iterable[bytes]) -> Iterator[str]:
    """Stream a JSON array. Yields the text of each element: within the limits, but not parsed, so perhaps not valid."""
    reader = _ChunkReader(chunks)
    yield from reader.read_array()
    reader.end()


def _parse_each(texts: Iterable[str]) -> Iterator[tuple[str, Any]]:
    for text in texts:
        yield text, _parse(text, _STRICT_DECODER)


class _ChunkReader:
    """A window over chunks of text, refilled only when a value does not end inside it."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        import codecs

        self._chunks = iter(chunks)
        self._utf8 = codecs.getincrementaldecoder("utf-8")()
        self._text = ""
        self._at = 0
        self._done = False

    def read_array(self) -> Iterator[str]:
        self._expect("[")
        if self._peek() == "]":
            self._expect("]")
            return
        while True:
            yield self._read_value()
            if self._peek() == ",":
                self._expect(",")
            else:
                self._expect("]")
                return

    def read_object_with_array(self, key: str) -> Iterator[tuple[str, Any]]:
        others: dict[str, Any] = {}
        size = tokens = 0
        seen: set[str] = set()
        self._expect("{")
        if self._peek() == "}":
            self._expect("}")
        else:
            while True:
                name = _parse(self._read_value(), _STRICT_DECODER)
                if not isinstance(name, str):
                    raise Unreadable("an object key is not a string")
                if name in seen:
                    raise DuplicateKey(f"the key {name[:80]!r} occurs twice in one object")
                seen.add(name)
                self._expect(":")
                if name == key:
                    yield from _parse_each(self.read_array())
                else:
                    text = self._read_value()
                    size += len(name) + len(text)
                    tokens += 1 + count_tokens(text)
                    if size > ELEMENT_MAX or tokens > TOKENS_MAX:
                        raise Unreadable(
                            f"the members beside {key!r} have more than {ELEMENT_MAX} bytes or {TOKENS_MAX} values"
                        )
                    others[name] = _parse(text, _STRICT_DECODER)
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
        """Read until the window has doubled, so that the end of a value of n bytes is sought only log n times."""
        if self._done:
            return False
        wanted = min(max(2 * (len(self._text) - self._at), WINDOW_CHARS), ELEMENT_MAX + WINDOW_CHARS)
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
            # One compiled step for a whole run of blanks: a file may have nothing else.
            self._at = _SPACE.match(self._text, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._fill():
                return ""

    def _expect(self, character: str) -> None:
        found = self._peek()
        if found != character:
            raise Unreadable(f"expected {character!r}, found {found or 'the end'!r}")
        self._at += 1

    def _read_value(self) -> str:
        """The text of the next value, within all bounds."""
        if not self._peek():
            raise Unreadable("the document ends early")
        while (end := find_value_end(self._text, self._at)) is None:
            if len(self._text) - self._at > ELEMENT_MAX:
                raise Unreadable(f"an element is larger than {ELEMENT_MAX} bytes")
            if not self._fill():
                raise Unreadable("the document ends early")
        text = self._text[self._at : end]
        if is_too_large(text):
            raise Unreadable(f"an element is larger than {ELEMENT_MAX} bytes")
        check_token_count(text)
        self._at = end
        if len(text) > WINDOW_CHARS:
            self._text, self._at = self._text[end:], 0  # Do not keep a large element twice.
        return text
