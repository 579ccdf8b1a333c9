"""Importing as Aver did before imported chains had names of their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from aver.ledger.bundle import import_ as import_module
from aver.ledger.imports.source import ImportSource
from aver.ledger.meta_chain import build_import_entry


@contextmanager
def as_an_older_aver_did(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Import under the names that chains have where they come from, as Aver did before imports had their own."""

    def build_old_entry(chain: str, origin: str, source: str, count: int, head: str) -> Any:
        entry = build_import_entry(chain, origin, source, count, head)
        del entry.outcome.result["source"]
        return entry

    def name_as_before(source: ImportSource, name: str) -> str:
        return f"import.{source.digits}-{name}" if name in ("meta", "keys") else name

    with monkeypatch.context() as patched:
        patched.setattr(ImportSource, "name_chain", name_as_before)
        patched.setattr(import_module, "build_import_entry", build_old_entry)
        yield
