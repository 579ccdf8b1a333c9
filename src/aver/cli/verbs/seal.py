"""`aver seal`: seals drafts from a file into chains of the ledger.

The file holds one JSON object, an array of objects, or one object per line. A draft is an object with the keys of a
capsule, of which only `type` is required. It may also have keys for the ledger:

    {"type": "tool", "outcome": {"status": "success"}, "chain": "notes.today", "key": "nightly-2026-05-31"}

These are `chain`, `key` (the idempotency key), `kind` and `refs`.

Aver first copies the input, then reads the copy twice in bounded memory: once to check every draft and once to seal
them. So a mistake on the last line leaves nothing sealed.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field, replace
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from aver.cli.options import Usage, add_json, add_ledger, add_tenant
from aver.cli.terminal import Screen, StderrScreen, StyledText, print_json
from aver.errors import AverError, BadInput, NotFound
from aver.fast_dataclass import dataclass
from aver.text import plural

if TYPE_CHECKING:
    from aver.capsule import Sealed
    from aver.ledger import Ledger

EXAMPLES = """\
  echo '{"type": "tool", "outcome": {"status": "success", "summary": "ran the tests"}}' |
    aver seal - --chain notes.today
  aver seal drafts.jsonl --chain notes.today
  aver seal one.json --chain notes.today --key nightly-2026-05-31

FILE holds drafts: one JSON object, an array, or one object per line. A draft has the keys of a
capsule; only type is required. It may also have chain, key (a draft with the same key is sealed
once, however often you try), kind and refs."""

BATCH_SIZE = 500
"""Drafts sealed in one durable commit: many enough to hide the cost of a commit, few enough for memory."""


@dataclass(slots=True)
class CheckedDrafts:
    """Results of the first pass over a file."""

    drafts: int = 0
    chains: dict[str, str] = field(default_factory=dict)
    """Each chain, and the place of the first draft that names it."""
    missing_blobs: dict[str, BadDraft] = field(default_factory=dict)
    """Blobs that drafts refer to without content; the ledger must have them already."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="JSON or JSON lines; - reads stdin")
    parser.add_argument("--chain", metavar="NAME", help="the chain, <domain>.<id>, of drafts that name none")
    parser.add_argument("--key", metavar="K", help="the idempotency key, for a file with one draft")
    add_ledger(parser)
    add_tenant(parser)
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.capsule.aver_block import IMPORT_DOMAIN
    from aver.ledger import open_ledger

    with open_draft_file(given.file) as file:
        checked = _check_drafts(file, given)
        with open_ledger(given.ledger, tenant=given.tenant) as ledger:
            # Check what only the ledger knows, before the first append.
            for chain, place in checked.chains.items():
                if chain.startswith(f"{IMPORT_DOMAIN}."):
                    raise BadInput(f"{place}: {chain} is the name of an import", advice="choose another chain")
                row = ledger.store.chain(ledger.tenant, chain)
                if row is not None and row.frozen:
                    raise BadInput(
                        f"{place}: the chain {chain} was imported and is read-only",
                        advice=f"choose another chain, or remove that import: aver import --drop {chain}",
                    )
            for digest, problem in checked.missing_blobs.items():
                if ledger.store.blob(ledger.tenant, digest) is None:
                    raise problem
            records = []
            sealed = existing = 0
            unread: BrokenPipeError | None = None
            for draft, record in _seal_drafts(ledger, file, given):
                existing += record.existed
                sealed += not record.existed
                if given.json:
                    records.append(_record_to_dict(draft, record))
                elif unread is None:
                    try:
                        word = StyledText("existed", "warn") if record.existed else StyledText("sealed ", "good")
                        screen.print_line(word, f"  {_place_uri(record)}  ", StyledText(record.hash, "dim"))
                    except BrokenPipeError as error:
                        unread = error  # Go on: a closed pipe must not change what is sealed.
    if unread is not None:
        raise unread
    if given.json:
        print_json({"sealed": sealed, "existing": existing, "records": records})
    else:
        again = f", {existing} already in the ledger" if existing else ""
        StderrScreen().print_note(f"{sealed} sealed{again}")
    return 0


def _read_drafts(file: DraftFile, given: argparse.Namespace) -> Iterator[InputDraft]:
    for draft in file.read_drafts(given.chain):
        yield draft if given.key is None else replace(draft, key=given.key)


def _check_drafts(file: DraftFile, given: argparse.Namespace) -> CheckedDrafts:
    """The first pass: prepare every draft, to find errors before anything is sealed."""
    from aver.capsule.aver_block import check_idempotency_key
    from aver.capsule.draft import prepare_draft

    if given.key is not None:
        check_idempotency_key(given.key)
    checked = CheckedDrafts()
    for draft in _read_drafts(file, given):
        try:
            prepared = prepare_draft(draft.content, key=draft.key)
        except AverError as error:
            raise BadDraft(draft.place, draft.line, error) from error
        checked.drafts += 1
        checked.chains.setdefault(draft.chain, draft.place)
        for digest in prepared.blob_digests - {blob.digest for blob in prepared.blobs}:
            problem = BadInput(f"it refers to the blob {digest}, which is not in the ledger")
            checked.missing_blobs.setdefault(digest, BadDraft(draft.place, draft.line, problem))
    if not checked.drafts:
        raise NotFound(f"{file.name} has no drafts", advice="aver seal --help describes a draft")
    if given.key is not None and checked.drafts > 1:
        raise Usage(f"--key is for one draft; {file.name} has {checked.drafts}", advice='give each its own "key"')
    return checked


def _seal_drafts(ledger: Ledger, file: DraftFile, given: argparse.Namespace) -> Iterator[tuple[InputDraft, Sealed]]:
    """The second pass: seal in batches. Yields each draft with its record, in the order of the file."""
    done = 0
    drafts_left = _read_drafts(file, given)
    while batch := list(islice(drafts_left, BATCH_SIZE)):
        by_chain: dict[str, list[InputDraft]] = {}
        for draft in batch:
            by_chain.setdefault(draft.chain, []).append(draft)
        records: dict[str, Iterator[Sealed]] = {}
        for chain, drafts in by_chain.items():
            try:
                sealed = ledger.append_many(chain, [d.content for d in drafts], keys=[d.key for d in drafts])
            except AverError as error:
                if done:
                    StderrScreen().print_note(f"{plural(done, 'draft')} of {file.name} were sealed before the error")
                raise error
            done += len(sealed)
            records[chain] = iter(sealed)
        for draft in batch:
            yield draft, next(records[draft.chain])


def _place_uri(record: Sealed) -> str:
    return f"capsule://{record.chain}/{record.sequence}"


def _record_to_dict(draft: InputDraft, record: Sealed) -> dict[str, Any]:
    return {
        "uri": _place_uri(record),
        "chain": record.chain,
        "sequence": record.sequence,
        "hash": record.hash,
        "id": record.id,
        "key": draft.key,
        "existed": record.existed,
    }


SPOOL_MAX = 16 * 1024 * 1024
"""Bytes of the input's copy that stay in memory; a larger copy goes to disk."""

CHUNK_SIZE = 64 * 1024

_LEDGER_KEYS = ("chain", "key", "kind", "refs")


class BadDraft(BadInput):
    """A draft cannot be sealed. `line` is its line, or its place in an array, counted from 1."""

    def __init__(self, place: str, line: int, error: AverError) -> None:
        super().__init__(f"{place}: {error.message}", advice=error.advice or "correct it; nothing was sealed")
        self.line = line


@dataclass(frozen=True, slots=True)
class InputDraft:
    """A draft, its chain, and its place in the file."""

    place: str
    line: int
    chain: str
    key: str | None
    content: dict[str, Any]


@contextmanager
def open_draft_file(source: str) -> Iterator[DraftFile]:
    """Copy a regular file, or stdin for `-`, and open the copy."""
    from aver.files.regular import open_file

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
    """A copy of the input. `read_drafts` can be called repeatedly."""

    def __init__(self, copy: IO[bytes], name: str) -> None:
        self._copy = copy
        self.name = name

    def read_drafts(self, chain: str | None) -> Iterator[InputDraft]:
        """Yield every draft in order. Drafts that name no chain get `chain`. Raises `BadDraft`."""
        for place, line, value in self._read_values():
            try:
                yield _parse_draft(place, line, value, chain)
            except BadDraft:
                raise
            except AverError as error:
                raise BadDraft(place, line, error) from error

    def _read_values(self) -> Iterator[tuple[str, int, Any]]:
        from aver.capsule.json_reader import ELEMENT_MAX, Unreadable, read_elements, read_json

        # Look at the first character only: an array may be too large for memory.
        self._copy.seek(0)
        first = self._copy.read(1)
        while first and first in b" \t\r\n":
            first = self._copy.read(1)
        self._copy.seek(0)
        if first == b"[":
            chunks = iter(lambda: self._copy.read(CHUNK_SIZE), b"")
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
                pass  # It is not one document, so each line must be one.
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


def _parse_draft(place: str, line: int, value: Any, chain: str | None) -> InputDraft:
    from aver.capsule.aver_block import RESERVED_CHAINS, check_chain_name, check_idempotency_key
    from aver.errors import InvalidCapsule

    if not isinstance(value, dict):
        raise InvalidCapsule("wrong_type", "", "a draft must be an object")
    content = {name: item for name, item in value.items() if name not in _LEDGER_KEYS}
    given = {name: value[name] for name in _LEDGER_KEYS if value.get(name) is not None}
    target = given.get("chain", chain)
    if target is None:
        raise BadInput("the draft names no chain", advice='give --chain NAME, or "chain" in the draft')
    if check_chain_name(target) in RESERVED_CHAINS:
        raise BadInput(f"only Aver itself writes to the chain {target!r}", advice="choose another chain")
    block = {name: value for name, value in given.items() if name in ("kind", "refs")}
    if block:
        # The draft with `kind` and `refs` in its Aver block, which is hashed.
        # If a value on the way there is no object, the draft stays as it is and `prepare_draft` reports the error.
        context = content.get("context", {})
        environment = context.get("environment", {}) if isinstance(context, dict) else None
        own = environment.get("aver", {}) if isinstance(environment, dict) else None
        if not isinstance(context, dict) or not isinstance(environment, dict) or not isinstance(own, dict):
            aver_block: dict[str, Any] = content
        else:
            aver_block = {**content, "context": {**context, "environment": {**environment, "aver": {**own, **block}}}}
        content = aver_block
    key = given.get("key")
    return InputDraft(place, line, target, None if key is None else check_idempotency_key(key), content)
