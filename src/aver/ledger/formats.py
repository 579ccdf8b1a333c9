"""What the ledger room can judge, besides loose capsules: ledgers, bundles, checkpoints, other tools' databases."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from aver.capsule.sealed import Sealed
from aver.errors import BadInput
from aver.files.regular import open_file
from aver.ledger import checkpoint_files
from aver.ledger.bundle.layout import INDEX, ChainClaim, read_chain_file
from aver.ledger.bundle.verify import judge_bundle, judge_chain_file
from aver.ledger.foreign import databases
from aver.ledger.ledger import list_tenants, open_ledger
from aver.ledger.stores.sqlite import schema
from aver.ledger.verify import verify_ledger
from aver.verdict import Judge, Subject, Verdict, VerifyOptions, merge_verdicts

__all__ = ["JUDGES"]

LEDGER_FILE = "ledger.db"
_APPLICATION_ID = slice(68, 72)
"""Where an SQLite file says whose it is."""


def _is_ledger(subject: Subject) -> bool:
    if subject.path is not None and subject.is_directory:
        return os.path.isfile(subject.path / LEDGER_FILE)
    own = schema.APPLICATION_ID.to_bytes(4, "big")
    return subject.beginning.startswith(databases.SQLITE_MAGIC) and subject.beginning[_APPLICATION_ID] == own


def _judge_ledger(subject: Subject, terms: VerifyOptions) -> Verdict:
    path = subject.path or Path()
    path = path / LEDGER_FILE if subject.is_directory else path
    tenants: list[str | None] = [terms.tenant] if terms.tenant else [*list_tenants(path, home=terms.home)] or [None]
    verdicts = {f"tenant {tenant}": _judge_tenant(path, tenant, terms) for tenant in tenants}
    only = next(iter(verdicts.values()))
    return only if len(verdicts) == 1 else merge_verdicts(only.subject, verdicts)


def _judge_tenant(path: Path, tenant: str | None, terms: VerifyOptions) -> Verdict:
    ring, level, require_pq = terms.ring, terms.level, terms.require_pq
    with open_ledger(path, tenant=tenant, create=False, home=terms.home) as ledger:
        return verify_ledger(ledger, None, level=level, since=None, ring=ring, require_pq=require_pq)


def _is_bundle(subject: Subject) -> bool:
    if subject.path is None:
        return False
    if subject.is_directory:
        return os.path.isfile(subject.path / INDEX)
    return subject.path.name == INDEX and bool(subject.json_opening)


def _is_chain_file(subject: Subject) -> bool:
    return subject.path is not None and "capsules" in subject.keys


def _records_from_chain_file(subject: Subject) -> Iterator[Sealed]:
    with open_file(subject.path or Path()) as file:
        for item in read_chain_file(file):
            if isinstance(item, BadInput):
                raise item
            if not isinstance(item, ChainClaim):
                yield item


JUDGES = (
    Judge("a ledger", _is_ledger, _judge_ledger),
    Judge("a bundle", _is_bundle, judge_bundle),
    Judge("one chain of a bundle", _is_chain_file, judge_chain_file, _records_from_chain_file),
    *checkpoint_files.JUDGES,
    *databases.JUDGES,
)
