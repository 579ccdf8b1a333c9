"""Things to verify (`Subject`), and how to verify them (`VerifyOptions`).

A room that can judge a file, a directory or a value in memory defines two functions: one recognises a `Subject`, the
other judges it by the `VerifyOptions`. `aver.check` lists them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from aver.capsule.json_reader import find_value_end
from aver.errors import BadInput
from aver.fast_dataclass import dataclass
from aver.keys.public_key import KeyRole
from aver.keys.ring import Ring
from aver.verdict.chain import Level, Retirement, Rules
from aver.verdict.examiner import Examiner

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
    """How to verify a subject. `tenant` chooses one of several where a subject has them.

    `ledger` is the URL of a ledger that the caller named, for subjects that refer to one; None where none was named.
    Then no ledger is opened. `progress` is called with the number of records judged so far and the total.
    """

    ring: Ring
    home: Path
    level: Level = "signature"
    require_pq: bool = False
    tenant: str | None = None
    ledger: str | None = None
    examiners: tuple[Examiner, ...] = ()
    progress: Callable[[int, int], None] | None = None

    @property
    def verifier_home(self) -> str:
        """The directory whose settings may name further keys; empty where only the given keys count."""
        return "" if self.ring.closed else str(self.home)

    def rules(
        self,
        retired: Mapping[str, Retirement],
        roles: Mapping[str, KeyRole] | None = None,
        recorded: Collection[str] | None = None,
    ) -> Rules:
        """The rules for a chain judge."""
        return Rules(self.ring, self.level, self.require_pq, retired, roles or {}, recorded)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_SKIM_DECODER = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=_refuse_constant)
"""Numbers stay text: Python refuses to convert very long ones, and only the keys count here."""


def _read_first_keys(beginning: bytes) -> Iterator[str]:
    """The keys of an object whose text may break off anywhere. The first place that is not JSON ends them."""
    text = beginning.decode("utf-8", "replace")
    at = text.find("{") + 1
    try:
        while True:  # Each round reads `"key": value,`.
            at = _skip_whitespace(text, at)
            if text[at : at + 1] != '"':
                return
            key, at = _skim_value(text, at)
            at = _skip_whitespace(text, at)
            if text[at : at + 1] != ":":
                return
            yield key
            _, at = _skim_value(text, _skip_whitespace(text, at + 1))
            at = _skip_whitespace(text, at)
            if text[at : at + 1] != ",":
                return
            at += 1
    except (ValueError, BadInput):
        return


def _skim_value(text: str, at: int) -> tuple[Any, int]:
    """The value that begins at a place, and the place after it. Raises `ValueError` or `BadInput` if it is none."""
    end = find_value_end(text, at) if at < len(text) else None  # It refuses values that are nested too deeply.
    if end is None:
        raise ValueError("the text ends")
    return _SKIM_DECODER.decode(text[at:end]), end


def _skip_whitespace(text: str, at: int) -> int:
    while text[at : at + 1] in (" ", "\t", "\r", "\n"):
        at += 1
    return at
