"""Opening a thing to verify as a `Subject`, and recognising ledgers, bundles and the chains of bundles.

Checkpoints, capsules and other tools' databases are recognised by their own modules. `aver.check` lists them all.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from aver.capsule.sealed import Sealed
from aver.errors import BadInput, NotFound, Unavailable
from aver.files.open_databases import may_open_beside
from aver.files.regular import open_file
from aver.ledger.bundle.layout import INDEX, ChainClaim, read_chain_file
from aver.ledger.foreign.databases import SQLITE_MAGIC
from aver.ledger.stores.sqlite import schema
from aver.verdict import BEGINNING_BYTES, Subject

LEDGER_FILE = "ledger.db"
_APPLICATION_ID = slice(68, 72)
"""The bytes of an SQLite file that name the program it belongs to."""


_OWN_TABLES = (b"CREATE TABLE ledger (", b"CREATE TABLE chains (", b"CREATE TABLE records (")
"""SQL in the first pages of every ledger."""


def open_subject(thing: Any) -> Subject | None:
    """Return a text, path or value as a subject, with the first bytes of a file.

    Returns None for a string that is neither JSON nor an existing path, and so must be a name. Raises `NotFound` for a
    `Path` at which there is nothing, and `BadInput` for a file that is not a regular one.
    """
    if isinstance(thing, str) and thing.lstrip()[:1] in ("{", "["):
        thing = thing.encode("utf-8", "surrogatepass")  # A lone surrogate must become a finding, not an exception.
    if isinstance(thing, bytes):
        return Subject("the text", value=thing, beginning=thing[:BEGINNING_BYTES])
    if isinstance(thing, Sealed | Mapping):
        return Subject("the capsule", value=thing)
    if not isinstance(thing, str | os.PathLike):
        return Subject(f"the {type(thing).__name__}", value=thing)
    if thing == "":
        return None
    # Only a string can be a shell's `~/bundle`; a `Path` is taken as it is.
    path = Path(thing).expanduser() if isinstance(thing, str) else Path(thing)
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError) as error:
        if isinstance(thing, str):
            return None
        if isinstance(error, FileNotFoundError):
            raise NotFound(f"there is no {path}", advice="check the path") from None
        if isinstance(error, OSError):
            raise Unavailable(f"cannot look at {path}: {error.strerror}") from error
        raise BadInput(f"{ascii(str(path))[:80]} is not a path") from None  # It contains a NUL character.
    name = path.name or str(path)
    if stat.S_ISDIR(mode):
        return Subject(name, path=path, is_directory=True)
    with may_open_beside(path) as may_open:
        if not may_open:
            # A ledger that this process has open. Its header is known, and reading it would drop SQLite's locks.
            own = schema.APPLICATION_ID.to_bytes(4, "big")
            return Subject(name, path=path, beginning=SQLITE_MAGIC.ljust(_APPLICATION_ID.start, b"\0") + own)
        with open_file(path) as file:
            return Subject(name, path=path, beginning=file.read(BEGINNING_BYTES))


def is_ledger(subject: Subject) -> bool:
    """Whether it is a ledger's file, or a directory with one."""
    if subject.path is not None and subject.is_directory:
        return os.path.isfile(subject.path / LEDGER_FILE)
    own = schema.APPLICATION_ID.to_bytes(4, "big")
    beginning = subject.beginning
    if beginning.startswith(SQLITE_MAGIC) and beginning[_APPLICATION_ID] == own:
        return True
    # A ledger whose mark was changed stays one: it fails, instead of being unknown.
    if subject.path is not None and subject.path.name == LEDGER_FILE:
        return not subject.json_opening
    return beginning.startswith(SQLITE_MAGIC) and all(text in beginning for text in _OWN_TABLES)


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


# --- files of Aver that hold nothing to verify


def describe_other_file(subject: Subject) -> tuple[str, str] | None:
    """Name a file of Aver's own that holds no records, and what it is for; None for any other.

    Only its first keys are looked at. A file that claims to be such a one is refused, never accepted.
    """
    keys = subject.keys if subject.path is not None else ()
    name = subject.path
    if keys[:2] == ("format", "version") and b"aver-public-keys" in subject.beginning:
        return "a list of keys", f"aver keys import {name} shows them; aver verify X --key {name} uses them"
    if keys[:2] == ("artifacts", "checks"):
        return "the report on a trace", "verify the trace, or a bundle of it: Aver then makes the report again"
    if keys[:2] in (("artifacts", "payload"), ("artifacts", "more")):
        return "a contribution to a trace", f"its operator checks and seals it: aver protocol accept {name}"
    if keys[:2] in (("v", "join"), ("join", "rotations")):
        return "the join of a participant", f"the operator checks it: aver protocol run TASK --join {name}"
    if {"purpose", "content", "signatures"} <= set(keys):
        return "a signed statement", "verify the trace, bundle or ledger that it is about"
    return None
