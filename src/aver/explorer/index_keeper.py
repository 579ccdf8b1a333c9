"""Keeps the derived index near the ledger while a server runs: in one thread, when there is something new.

    keeper.want()        something may be new: catch up soon
    keeper.describe()    {"state": "ready", "records": 120, "of_records": 120, …, "problem": ""}

States: `waiting` before the first look, `working`, `ready`, and `failed` with the problem. A failed index is tried
again after `RETRY_SECONDS`. Everything but search, sessions and counts works without it.
"""

from __future__ import annotations

import logging
import threading
from typing import Any

from aver.errors import AverError
from aver.explorer.index import IndexProgress, LedgerIndex
from aver.ledger import Ledger
from aver.log import debug

RETRY_SECONDS = 30.0
"""When a failed index is tried again, and figures of long sessions that were put off are counted."""

STOP_SECONDS = 3.0
"""How long the end of the server waits for the index."""

PAUSE_SECONDS = 1.0
"""Shortest time between the ends of two runs and the next: a busy ledger has always something new."""


_LOG = logging.getLogger("aver.explorer")


class IndexKeeper:
    """One thread, from `start` to `stop`. The other methods belong to any thread."""

    def __init__(self, ledger: Ledger, index: LedgerIndex) -> None:
        self._ledger = ledger
        self._index = index
        self._wanted = threading.Event()
        self._is_stopping = threading.Event()
        self._state: dict[str, Any] = {"state": "waiting", **_NOTHING.to_dict(), "problem": ""}
        self._thread = threading.Thread(target=self._run, name="aver-index", daemon=True)

    def start(self) -> None:
        self._wanted.set()
        self._thread.start()

    def want(self) -> None:
        """Say that there may be something new."""
        self._wanted.set()

    def stop(self) -> None:
        """End the thread. It may be killed at any moment, but a slice that is being written need not be lost."""
        self._is_stopping.set()
        self._wanted.set()
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS)

    def describe(self) -> dict[str, Any]:
        """How far the index is, as a document."""
        return self._state

    def _run(self) -> None:
        while not self._is_stopping.is_set():
            is_done = self._catch_up()
            self._is_stopping.wait(PAUSE_SECONDS)
            # An index that is complete has nothing to do until somebody says so.
            self._wanted.wait(None if is_done else RETRY_SECONDS)
            self._wanted.clear()

    def _catch_up(self) -> bool:
        """Run once. Returns whether nothing is left to do."""
        self._wanted.clear()  # Before the run: whatever is told from here on needs another one.
        try:
            progress = self._index.catch_up(self._ledger, should_stop=self._is_stopping.is_set, report=self._note)
        except AverError as error:
            debug("explorer", "the index cannot catch up: %s", error)
            self._state = {**self._state, "state": "failed", "problem": str(error)}
            return False
        except Exception as error:  # noqa: BLE001 - a defect in the index must not end its thread silently
            _LOG.exception("the index failed")
            self._state = {**self._state, "state": "failed", "problem": f"internal error: {type(error).__name__}"}
            return False
        self._state = {"state": "ready", **progress.to_dict(), "problem": ""}
        return progress.is_complete

    def _note(self, done: int, total: int) -> None:
        self._state = {**self._state, "state": "working", "records": done, "of_records": total, "problem": ""}


_NOTHING = IndexProgress(records=0, of_records=0)
