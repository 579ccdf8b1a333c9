"""The ways in which a file of a package can be read: pure functions.

A name can hide from a search and still be there for the program that reads the file. So a file is read as it is, and

    width      full-width letters and dots as plain ones, without characters of no width, and without case
    escapes    `\\x2e`, `\\u002e`, `&#46;`, `%2e`, and the line ends that programs write as `\\n`
    pieces     texts that stand side by side or are added: `"evil." + "example"`
    defanged   `evil[.]example`, `evil (dot) example`
    two bytes  text of two bytes a character, as on Windows
    packed     base64 and hex from any of its digits on, gzip, bzip2, xz, zlib, ZIP and tar: two levels deep

A program can also compute a name. No reading finds that.
"""

from __future__ import annotations

import base64
import binascii
import bz2
import io
import lzma
import re
import tarfile
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from aver.lazy_pattern import lazy_pattern

DEPTH_MAX = 2
"""Levels of packing that are opened."""

UNPACKED_MAX = 64 * 1024 * 1024
"""Most bytes that are unpacked from one file. A file with more is told as one that cannot be looked at whole."""

MEMBERS_MAX = 2000
"""Most members of one archive that are unpacked."""

_DEFANGED_DOT = lazy_pattern(r"\s?[\[({]\s?(?:\.|dot)\s?[\])}]\s?", re.IGNORECASE)
_ESCAPE = lazy_pattern(
    r"\\x([0-9a-f]{2})|\\u([0-9a-f]{4})|\\u\{([0-9a-f]{1,6})\}|&#x([0-9a-f]{2,6});|%([0-9a-f]{2})", re.IGNORECASE
)
_DECIMAL_ESCAPE = lazy_pattern(r"&#([0-9]{2,7});?")
_LINE_ESCAPE = lazy_pattern(r"\\[nrtfv0]")
_SEAM = lazy_pattern(r"""["'`]\s{0,20}(?:\+|\.\.?|,|\\)?\s{0,20}["'`]""")
_NO_WIDTH = lazy_pattern(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]"
)
_BASE64_RUN = lazy_pattern(r"[A-Za-z0-9+/_-]{12,}(?:\s?\r?\n[A-Za-z0-9+/_-]{4,})*")
_HEX_RUN = lazy_pattern(r"(?:[0-9a-fA-F]{2}[\s:]?){8,}")
_DOTS = str.maketrans({"\u3002": ".", "\uff61": ".", "\u2024": "."})


class Reading(NamedTuple):
    """One way to read a file. In bytes that are no text, a name has no clear beginning and end."""

    text: str
    is_binary: bool


class TooMuch(Exception):
    """The file unpacks to more than is looked at."""


class _Budget:
    def __init__(self, left: int) -> None:
        self.left = left

    def take(self, data: bytes) -> bytes:
        self.left -= len(data)
        if self.left < 0:
            raise TooMuch
        return data


def read_all_ways(data: bytes) -> Iterator[Reading]:
    """Return the ways in which a file can be read, the file as it is first. Raises `TooMuch` after some of them."""
    yield from _read(data, DEPTH_MAX, _Budget(UNPACKED_MAX))


def _read(data: bytes, depth: int, budget: _Budget) -> Iterator[Reading]:
    text, is_binary = data.decode("utf-8", "replace"), _is_binary(data)
    yield Reading(text, is_binary)
    folded = fold_text(text)
    if folded != text:
        yield Reading(folded, is_binary)
    plain = _DEFANGED_DOT.sub(".", folded)
    unescaped = fold_text(_unescape(_LINE_ESCAPE.sub(" ", plain)))
    for reading in {plain, unescaped, _SEAM.sub("", unescaped)} - {text, folded}:
        yield Reading(reading, is_binary)
    if b"\0" in data:
        yield Reading(data.decode("utf-16-le", "replace"), is_binary=True)
        yield Reading(data.decode("utf-16-be", "replace"), is_binary=True)
        yield Reading(data.replace(b"\0", b"").decode("latin-1"), is_binary=True)
    if depth:
        texts, others = list[bytes](), list[bytes]()
        for piece in (*_decode_base64(text), *_decode_hex(text)):
            (others if _is_binary(piece) else texts).append(budget.take(piece))
        # Most of these are pictures, or text from a wrong digit on.
        yield Reading(b"\n".join(others).decode("latin-1"), is_binary=True)
        packed = [inner for each in (data, *others) for inner in _unpack(each, budget)]
        for inner in (b"\n".join(texts), *packed):
            if inner:
                yield from _read(budget.take(inner), depth - 1, budget)


def _is_binary(data: bytes) -> bool:
    if b"\0" in data:
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return True
    return False


def fold_text(text: str) -> str:
    """Return a text as names of hosts are compared."""
    if text.isascii():
        return text.lower()
    return _NO_WIDTH.sub("", unicodedata.normalize("NFKC", text.translate(_DOTS))).translate(_DOTS).lower()


def _unescape(text: str) -> str:
    def show(match: re.Match[str], base: int) -> str:
        number = int(next(group for group in match.groups() if group), base)
        return chr(number) if 0 < number < 0x110000 and not 0xD800 <= number < 0xE000 else match[0]

    text = _ESCAPE.sub(lambda match: show(match, 16), text)
    return _DECIMAL_ESCAPE.sub(lambda match: show(match, 10), text)


def _decode_base64(text: str) -> Iterator[bytes]:
    """Return the bytes of all runs of base64, read from each of the first four digits on."""
    for run in _BASE64_RUN.finditer(text):
        word = "".join(run[0].split()).replace("-", "+").replace("_", "/")
        for start in range(4):
            piece = word[start:]
            whole = piece[: len(piece) - 1] if len(piece) % 4 == 1 else piece
            try:
                yield base64.b64decode(whole + "=" * (-len(whole) % 4))
            except binascii.Error:
                continue


def _decode_hex(text: str) -> Iterator[bytes]:
    """Return the bytes of all runs of hex digits, read from the first and from the second digit on."""
    for run in _HEX_RUN.finditer(text):
        digits = "".join(run[0].replace(":", "").split())
        yield bytes.fromhex(digits)
        yield bytes.fromhex(digits[1:-1])


def _unpack(data: bytes, budget: _Budget) -> Iterator[bytes]:
    """Return the contents of an archive. One that is damaged is read as far as it goes."""
    limit = budget.left + 1
    try:
        if data.startswith(b"\x1f\x8b"):
            yield zlib.decompressobj(wbits=31).decompress(data, limit)
        elif data[:1] == b"\x78" and data[1:2] in (b"\x01", b"\x5e", b"\x9c", b"\xda"):
            yield zlib.decompressobj().decompress(data, limit)
        elif data.startswith(b"BZh"):
            yield bz2.BZ2Decompressor().decompress(data, limit)
        elif data.startswith((b"\xfd7zXZ", b"\x5d\x00\x00")):
            yield lzma.LZMADecompressor().decompress(data, limit)
        elif data[257:262] == b"ustar":
            yield from _unpack_tar(data)
        # A ZIP file may begin with anything.
        if b"PK\x05\x06" in data:
            yield from _unpack_zip(data, budget)
    except (zlib.error, lzma.LZMAError, zipfile.BadZipFile, tarfile.TarError, OSError, ValueError, EOFError):
        return
    except (RuntimeError, NotImplementedError) as error:  # A password, or a way of packing that is not known here.
        raise TooMuch from error


def _unpack_tar(data: bytes) -> Iterator[bytes]:
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
        for number, member in enumerate(archive):
            if number >= MEMBERS_MAX:
                raise TooMuch
            content = archive.extractfile(member) if member.isreg() else None
            yield member.name.encode("utf-8", "replace") + b"\n" + (content.read() if content else b"")


def _unpack_zip(data: bytes, budget: _Budget) -> Iterator[bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if len(archive.infolist()) > MEMBERS_MAX:
            raise TooMuch
        for entry in archive.infolist():
            with archive.open(entry) as member:
                yield entry.filename.encode("utf-8", "replace") + b"\n" + member.read(budget.left + 1)
