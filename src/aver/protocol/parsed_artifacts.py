"""Remembers what was parsed of artifacts, so that many checks of one artifact parse it once.

A hostile trace can name one large file in thousands of items of evidence. Test reports are counted once each, and so is
a file found not to be one. Of JSON documents only the last one is kept: a document takes many times the memory of its
bytes. A file that is no JSON is remembered as such.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from aver.capsule.json_reader import Unreadable, read_json
from aver.protocol.case_counts import CaseCounts, NotCounted, count_junit, count_tap

COUNTERS: Mapping[str, Callable[[bytes], CaseCounts]] = {"junit": count_junit, "tap": count_tap}
"""The readers of test reports, by format."""


class ParsedArtifacts:
    """The contents of artifacts, by digest. The caller has compared their bytes with it."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], CaseCounts | NotCounted] = {}
        self._unreadable: dict[str, Unreadable] = {}
        self._document: tuple[str, Any] | None = None

    def count_cases(self, digest: str, form: str, data: bytes) -> CaseCounts:
        """Count the cases of a test report. Raises `NotCounted`."""
        found = self._counts.get((digest, form))
        if found is None:
            try:
                found = COUNTERS[form](data)
            except NotCounted as error:
                found = error.with_traceback(None)
            self._counts[digest, form] = found
        if isinstance(found, NotCounted):
            raise found
        return found

    def read_document(self, digest: str, data: bytes) -> Any:
        """Read a JSON document. Raises `Unreadable`."""
        if digest in self._unreadable:
            raise self._unreadable[digest]
        if self._document is None or self._document[0] != digest:
            self._document = None  # Two at once would take twice the memory.
            try:
                self._document = digest, read_json(data)
            except Unreadable as error:
                self._unreadable[digest] = error.with_traceback(None)
                raise
        return self._document[1]
