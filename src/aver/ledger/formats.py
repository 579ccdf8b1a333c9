"""Recognising the things that this room judges: ledgers, bundles and the chains of bundles.

Checkpoints, capsules and other tools' databases are recognised by their own modules. `aver.check` lists them all.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from aver.capsule.sealed import Sealed
from aver.errors import BadInput
from aver.files.regular import open_file
from aver.ledger.bundle.layout import INDEX, ChainClaim, read_chain_file
from aver.ledger.foreign.databases import SQLITE_MAGIC
from aver.ledger.stores.sqlite import schema
from aver.verdict import Subject

LEDGER_FILE = "ledger.db"
_APPLICATION_ID = slice(68, 72)
"""The bytes of an SQLite file that name the program it belongs to."""


def is_ledger(subject: Subject) -> bool:
    """Whether it is a ledger's file, or a directory with one."""
    if subject.path is not None and subject.is_directory:
        return os.path.isfile(subject.path / LEDGER_FILE)
    own = schema.APPLICATION_ID.to_bytes(4, "big")
    return subject.beginning.startswith(SQLITE_MAGIC) and subject.beginning[_APPLICATION_ID] == own


def ledger_path(subject: Subject) -> Path:
    """The file of a ledger."""
    path = subject.path or Path()
    return path / LEDGER_FILE if subject.is_directory else path


def is_bundle(subject: Subject) -> bool:
    """Whether it is the directory of a bundle, or the index in it."""
    if subject.path is None:
        return False
    if subject.is_directory:
        return os.path.isfile(subject.path / INDEX)
    return subject.path.name == INDEX and bool(subject.json_opening)


def is_chain_file(subject: Subject) -> bool:
    """Whether it is the file of one chain of a bundle."""
    return subject.path is not None and "capsules" in subject.keys


def read_chain_records(subject: Subject) -> Iterator[Sealed]:
    """The records in the file of a chain; `BadInput` at one that cannot be read."""
    with open_file(subject.path or Path()) as file:
        for item in read_chain_file(file):
            if isinstance(item, BadInput):
                raise item
            if not isinstance(item, ChainClaim):
                yield item
