"""`aver seal`: drafts from a file into chains of the ledger. All of them are checked before the first is sealed."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from aver.cli.drafts import BadDraft, Draft, DraftFile, opened
from aver.cli.options import Usage, add_json, add_ledger, add_tenant
from aver.cli.output import Errors, Painted, Screen, plural, print_json
from aver.errors import AverError, BadInput, NotFound

if TYPE_CHECKING:
    from aver.capsule import Sealed
    from aver.ledger import Ledger

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = """\
  echo '{"type": "tool", "outcome": {"status": "success", "summary": "ran the tests"}}' |
    aver seal - --chain notes.today
  aver seal drafts.jsonl --chain notes.today
  aver seal one.json --chain notes.today --key nightly-2026-05-31

a draft is an object with a capsule's keys; only type is required. Beside them it may have
chain, key (sealed once, however often you try), kind and refs. FILE holds one object, an array,
or one object per line."""

BATCH = 500
"""Drafts sealed in one durable commit: enough that the disk no longer counts, few enough to hold in memory."""


@dataclass(slots=True)
class Checked:
    """What the first reading of a file has found."""

    drafts: int = 0
    chains: dict[str, str] = field(default_factory=dict)
    """Each chain, and where it is first named."""
    missing_blobs: dict[str, BadDraft] = field(default_factory=dict)
    """Blobs that drafts refer to but do not bring, which must therefore be in the ledger already."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="JSON or JSON lines; - reads stdin")
    parser.add_argument("--chain", metavar="NAME", help="<domain>.<id>: for drafts that name no chain themselves")
    parser.add_argument("--key", metavar="K", help="idempotency key, for a file with one draft")
    add_ledger(parser)
    add_tenant(parser)
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.ledger import open_ledger

    with opened(given.file) as file:
        checked = _check_all(file, given)
        with open_ledger(given.ledger, tenant=given.tenant) as ledger:
            _check_against(ledger, checked)
            records = []
            sealed = existing = 0
            unread: BrokenPipeError | None = None
            for draft, record in _sealed(ledger, file, given):
                existing += record.existed
                sealed += not record.existed
                if given.json:
                    records.append(_described(draft, record))
                elif unread is None:
                    try:
                        _print_record(screen, record)
                    except BrokenPipeError as error:
                        unread = error  # Whether somebody reads along must not decide what is sealed.
    if unread is not None:
        raise unread
    if given.json:
        print_json({"sealed": sealed, "existing": existing, "records": records})
    else:
        again = f", {existing} existed" if existing else ""
        Errors().note(f"{sealed} sealed{again}")
    return 0


def _drafts(file: DraftFile, given: argparse.Namespace) -> Iterator[Draft]:
    for draft in file.drafts(given.chain):
        yield draft if given.key is None else replace(draft, key=given.key)


def _check_all(file: DraftFile, given: argparse.Namespace) -> Checked:
    """Prepare every draft once, for its refusals."""
    from aver.capsule.block import check_key
    from aver.capsule.prepared import prepare

    if given.key is not None:
        check_key(given.key)
    checked = Checked()
    for draft in _drafts(file, given):
        try:
            prepared = prepare(draft.content, key=draft.key)
        except AverError as error:
            raise BadDraft(draft.place, draft.line, error) from error
        checked.drafts += 1
        checked.chains.setdefault(draft.chain, draft.place)
        for digest in prepared.blob_digests - {blob.digest for blob in prepared.blobs}:
            problem = BadInput(f"it refers to the blob {digest}, which is not in the ledger")
            checked.missing_blobs.setdefault(digest, BadDraft(draft.place, draft.line, problem))
    if not checked.drafts:
        raise NotFound(f"{file.name} holds no drafts", advice="aver seal --help shows what a draft is")
    if given.key is not None and checked.drafts > 1:
        raise Usage(f"--key is for one draft; {file.name} has {checked.drafts}", advice='give each its own "key"')
    return checked


def _check_against(ledger: Ledger, checked: Checked) -> None:
    """What only the ledger can refuse, refused before the first append."""
    for chain, place in checked.chains.items():
        row = ledger.store.chain(ledger.tenant, chain)
        if row is not None and row.frozen:
            raise BadInput(f"{place}: the chain {chain} was imported and does not grow here", advice="choose another")
    for digest, problem in checked.missing_blobs.items():
        if ledger.store.blob(ledger.tenant, digest) is None:
            raise problem


def _sealed(ledger: Ledger, file: DraftFile, given: argparse.Namespace) -> Iterator[tuple[Draft, Sealed]]:
    """Seal batch by batch; give each draft with its record, in the order of the file."""
    done = 0
    for batch in _batches(_drafts(file, given), BATCH):
        by_chain: dict[str, list[Draft]] = {}
        for draft in batch:
            by_chain.setdefault(draft.chain, []).append(draft)
        records: dict[str, Iterator[Sealed]] = {}
        for chain, drafts in by_chain.items():
            try:
                sealed = ledger.append_many(chain, [d.content for d in drafts], keys=[d.key for d in drafts])
            except AverError as error:
                if done:
                    Errors().note(f"{plural(done, 'draft')} of {file.name} were sealed before the error")
                raise error
            done += len(sealed)
            records[chain] = iter(sealed)
        for draft in batch:
            yield draft, next(records[draft.chain])


def _batches(drafts: Iterable[Draft], size: int) -> Iterator[list[Draft]]:
    drafts = iter(drafts)
    while batch := list(islice(drafts, size)):
        yield batch


def _place_uri(record: Sealed) -> str:
    return f"capsule://{record.chain}/{record.sequence}"


def _described(draft: Draft, record: Sealed) -> dict[str, Any]:
    return {
        "uri": _place_uri(record),
        "chain": record.chain,
        "sequence": record.sequence,
        "hash": record.hash,
        "id": record.id,
        "key": draft.key,
        "existed": record.existed,
    }


def _print_record(screen: Screen, record: Sealed) -> None:
    word = Painted("existed", "warn") if record.existed else Painted("sealed ", "good")
    screen.line(word, f"  {_place_uri(record)}  ", Painted(record.hash, "dim"))
