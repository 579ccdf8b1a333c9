"""The cache of transcripts that were read to their end: `AVER_HOME/ingested.json`.

    {"v": 1, "ledgers": {"<ledger id>/<tenant>": {"<path>|<session>|<agent>": "<stamp>"}}}

The cache only saves time. If it is lost or damaged, Aver reads every transcript once more and seals nothing twice,
because the ledger knows what is sealed. A stamp is a file's size, time and number, or a text that the adapter gave.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from aver.capsule.json_document import dump_document
from aver.capsule.json_reader import read_json
from aver.config import ensure_home
from aver.errors import AverError
from aver.files.atomic import replace_file
from aver.ingest.contract import TranscriptSource
from aver.ledger import Ledger

__all__ = ["CACHE_NAME", "IngestCache", "source_stamp"]

CACHE_NAME = "ingested.json"

CACHE_SIZE_MAX = 64 * 1024 * 1024
"""Bytes of the file. A larger one is not ours."""


def source_stamp(source: TranscriptSource) -> str:
    """Return a text that changes when the transcript changes; empty if there is none."""
    if source.stamp:
        return source.stamp
    try:
        status = os.stat(source.path)
    except OSError:
        return ""
    return f"{status.st_size}:{status.st_mtime_ns}:{status.st_ino}"


class IngestCache:
    """The transcripts that were read to their end, for one ledger and tenant."""

    def __init__(self, ledger: Ledger) -> None:
        self._path = ledger.config.home / CACHE_NAME
        self._name = f"{ledger.id}/{ledger.tenant}"
        self._read = self._load_ledgers().get(self._name, {})

    def is_read(self, source: TranscriptSource) -> bool:
        """Whether the transcript was read to its end, and has not changed since."""
        stamp = source_stamp(source)
        return bool(stamp) and self._read.get(_cache_key(source)) == stamp

    def note(self, source: TranscriptSource, stamp: str) -> None:
        """It was read to its end, as it was when it had this stamp: taken before reading."""
        self._read[_cache_key(source)] = stamp

    def save(self) -> None:
        """Write the cache. Two processes that write at once may lose the other's entries, which only costs time."""
        merged = self._load_ledgers()
        merged[self._name] = {**merged.get(self._name, {}), **self._read}
        with suppress(OSError, AverError):
            ensure_home(self._path.parent)
            replace_file(self._path, dump_document({"v": 1, "ledgers": merged}))

    def _load_ledgers(self) -> dict[str, dict[str, Any]]:
        with suppress(OSError, AverError):
            if self._path.stat().st_size <= CACHE_SIZE_MAX:
                data = read_json(self._path.read_bytes())
                ledgers = data.get("ledgers") if isinstance(data, dict) and data.get("v") == 1 else None
                if isinstance(ledgers, dict) and all(isinstance(one, dict) for one in ledgers.values()):
                    return ledgers
        return {}


def _cache_key(source: TranscriptSource) -> str:
    return f"{Path(source.path)}|{source.session}|{source.agent}"
