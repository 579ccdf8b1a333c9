"""Things to verify (`Subject`), and how they are verified (`Judge`).

A room that can judge a file, a directory or a value in memory defines `Judge` values. `aver.check` lists them and asks
each whether it recognises the `Subject`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from aver.capsule.sealed import Sealed
from aver.fast_dataclass import dataclass
from aver.keys.ring import Ring
from aver.verdict.chain import Level, Retirement, Rules
from aver.verdict.verdict import Verdict

__all__ = ["BEGINNING_BYTES", "Judge", "Subject", "VerifyOptions"]

BEGINNING_BYTES = 64 * 1024
"""How many bytes at the beginning of a file are read to recognise its format."""

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Subject:
    """Something to judge: a file or directory at `path`, or otherwise `value`. A verdict calls it `name`."""

    name: str
    path: Path | None = None
    value: Any = None
    beginning: bytes = b""
    """The first bytes of the file, or of a text given as value."""
    is_directory: bool = False

    @property
    def json_opening(self) -> str:
        """`{` or `[` if the bytes look like a JSON object or array, otherwise empty."""
        first = self.beginning.removeprefix(_BOM).lstrip()[:1]
        return first.decode() if first in (b"{", b"[") else ""

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of a JSON object that its beginning contains."""
        return tuple(_read_first_keys(self.beginning)) if self.json_opening == "{" else ()


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """How to verify. `tenant` chooses one where a subject has several.

    `ledger` is the URL of the ledger in which a named subject is looked up; None for the default one.
    """

    ring: Ring
    home: Path
    level: Level = "signature"
    require_pq: bool = False
    tenant: str | None = None
    ledger: str | None = None

    def rules(self, retired: Mapping[str, Retirement]) -> Rules:
        """The rules for a chain judge."""
        return Rules(self.ring, self.level, self.require_pq, retired)


@dataclass(frozen=True, slots=True)
class Judge:
    """One format that can be verified.

    `recognises` looks at the beginning of a file, or at names in a directory; it reads no whole file and never raises.
    `records` yields the capsules in it in order, to show them; None if there is not exactly one chain to show.
    """

    name: str
    recognises: Callable[[Subject], bool]
    judge: Callable[[Subject, VerifyOptions], Verdict]
    records: Callable[[Subject], Iterator[Sealed]] | None = None


def _read_first_keys(beginning: bytes) -> Iterator[str]:
    text = beginning.decode("utf-8", "replace")
    at = text.find("{") + 1
    try:
        while True:
            at = _skip_whitespace(text, at)
            if text[at : at + 1] != '"':
                return
            key, at = _SKIM_DECODER.raw_decode(text, at)
            at = _skip_whitespace(text, at)
            if text[at : at + 1] != ":":
                return
            yield key
            at = _skip_whitespace(text, at + 1)
            _, at = _SKIM_DECODER.raw_decode(text, at)
            at = _skip_whitespace(text, at)
            if text[at : at + 1] != ",":
                return
            at += 1
    except (ValueError, RecursionError):
        return


def _skip_whitespace(text: str, at: int) -> int:
    while text[at : at + 1] in (" ", "\t", "\r", "\n"):
        at += 1
    return at


_SKIM_DECODER = json.JSONDecoder(parse_float=str, parse_int=str)
