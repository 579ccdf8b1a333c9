"""Drafts in a file: a JSON object, an array of them, or JSON lines.

A draft is an object with a capsule's keys (`type` is required, the rest have defaults) and, beside them, what the
ledger needs to know: `chain`, `key` (idempotency key), `kind` and `refs`. The file is read twice, first to check all
of it and then to seal it, so that a mistake on the last line leaves nothing behind; and in bounded memory, so that its
length does not matter. What is read is a copy, so that both readings are of the same bytes.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from aver.errors import AverError, BadInput
from aver.values import dataclass

__all__ = ["BadDraft", "Draft", "DraftFile", "opened"]

SPOOL_MAX = 16 * 1024 * 1024
"""Bytes kept in memory before the copy of the input goes to disk."""

CHUNK = 64 * 1024

_ENVELOPE = ("chain", "key", "kind", "refs")


class BadDraft(BadInput):
    """One draft cannot be sealed. `line` is its line, or its place in an array, counted from 1."""

    def __init__(self, place: str, line: int, error: AverError) -> None:
        super().__init__(f"{place}: {error.message}", advice=error.advice or "correct it; nothing was sealed")
        self.line = line


@dataclass(frozen=True, slots=True)
class Draft:
    """One draft and where it goes. `place` says where in the file it stands."""

    place: str
    line: int
    chain: str
    key: str | None
    content: dict[str, Any]


@contextmanager
def opened(source: str) -> Iterator[DraftFile]:
    """The drafts in a plain file, or on stdin for `-`."""
    from aver.ledger.outside import open_file

    with tempfile.SpooledTemporaryFile(SPOOL_MAX) as copy:
        if source == "-":
            shutil.copyfileobj(sys.stdin.buffer, copy)
            yield DraftFile(copy, "stdin")
            return
        path = Path(source)
        with open_file(path) as file:
            shutil.copyfileobj(file, copy)
        yield DraftFile(copy, str(path))


class DraftFile:
    """Read it as often as needed, with `drafts`."""

    def __init__(self, copy: IO[bytes], name: str) -> None:
        self._copy = copy
        self.name = name

    def drafts(self, chain: str | None) -> Iterator[Draft]:
        """Every draft in order. Those that name no chain go to `chain`."""
        for place, line, value in self._values():
            try:
                yield _draft(place, line, value, chain)
            except BadDraft:
                raise
            except AverError as error:
                raise BadDraft(place, line, error) from error

    def _values(self) -> Iterator[tuple[str, int, Any]]:
        from aver.capsule.reading import ELEMENT_MAX, Unreadable, read_elements, read_json

        self._copy.seek(0)
        first = self._copy.read(1)
        while first and first in b" \t\r\n":
            first = self._copy.read(1)
        self._copy.seek(0)
        if first == b"[":
            chunks = iter(lambda: self._copy.read(CHUNK), b"")
            number = 0
            try:
                for number, (_, value) in enumerate(read_elements(chunks), 1):
                    yield f"{self.name}, draft {number}", number, value
            except Unreadable as error:
                raise BadDraft(f"{self.name}, after draft {number}", number + 1, error) from error
            return
        whole = self._copy.read(ELEMENT_MAX + 1)
        if len(whole) <= ELEMENT_MAX:
            try:
                yield self.name, 1, read_json(whole)
                return
            except Unreadable:
                pass  # Not one document; so each line should be one.
        self._copy.seek(0)
        for number in range(1, sys.maxsize):
            raw = self._copy.readline(ELEMENT_MAX + 2)
            if not raw:
                return
            if raw.strip():
                place = f"{self.name}, line {number}"
                try:
                    value = read_json(raw)
                except Unreadable as error:
                    raise BadDraft(place, number, error) from error
                yield place, number, value


def _draft(place: str, line: int, value: Any, chain: str | None) -> Draft:
    from aver.capsule.block import RESERVED_CHAINS, check_chain_name, check_key
    from aver.errors import InvalidCapsule

    if not isinstance(value, dict):
        raise InvalidCapsule("wrong_type", "", "a draft must be an object")
    content = {name: item for name, item in value.items() if name not in _ENVELOPE}
    given = {name: value[name] for name in _ENVELOPE if value.get(name) is not None}
    target = given.get("chain", chain)
    if target is None:
        raise BadInput("the draft names no chain", advice='give --chain NAME, or "chain" in the draft')
    if check_chain_name(target) in RESERVED_CHAINS:
        raise BadInput(f"the chain {target!r} is written by the ledger itself", advice="choose another")
    block = {name: value for name, value in given.items() if name in ("kind", "refs")}
    if block:
        content = _with_block(content, block)
    key = given.get("key")
    return Draft(place, line, target, None if key is None else check_key(key), content)


def _with_block(content: dict[str, Any], block: dict[str, Any]) -> dict[str, Any]:
    """Kind and refs at their place inside the hash. Where the draft has no objects there, `prepare` says so."""
    context = content.get("context", {})
    environment = context.get("environment", {}) if isinstance(context, dict) else None
    own = environment.get("aver", {}) if isinstance(environment, dict) else None
    if not isinstance(context, dict) or not isinstance(environment, dict) or not isinstance(own, dict):
        return content
    return {**content, "context": {**context, "environment": {**environment, "aver": {**own, **block}}}}
