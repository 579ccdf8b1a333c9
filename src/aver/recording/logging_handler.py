"""A `logging` handler that seals log records into a chain.

    logging.getLogger().addHandler(LedgerHandler("logs.shop", level=logging.WARNING))

Logging does not wait: log records go into a bounded queue, and a thread seals them in batches. If the ledger fails,
they wait in the queue. If the queue is full, newer ones are dropped and counted, and a `dropped` record reports them
later. `flush`, `close` and the end of the process wait until the queue is sealed, or sealing has failed. Aver's own log
records are not recorded, because recording them would never end. If the process is killed, its queue is lost.
"""

from __future__ import annotations

import logging
import threading
import traceback
from collections import deque
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from aver.capsule.aver_block import RESERVED_CHAINS, check_chain_name
from aver.capsule.model import Capsule, Context, Outcome, Trigger
from aver.clock import new_id
from aver.errors import BadInput, Unavailable
from aver.ledger.stores.forks import register_for_forks
from aver.recording import drafts
from aver.recording.recorder import PendingRecord, close_at_exit, get_recorder
from aver.recording.render import clean_text, exception_text, render_value, type_name
from aver.recording.scope import AuditScope, current_scope

if TYPE_CHECKING:
    from aver.ledger.async_ledger import AsyncLedger
    from aver.ledger.ledger import Ledger

CAPACITY = 10_000
"""Most log records in the queue while the ledger is busy or unavailable: some megabytes."""

BATCH_MAX = 256
"""Most log records in one durable commit."""

RETRY_FIRST, RETRY_LAST = 0.1, 5.0
"""Seconds until a failed batch is tried again: at first, and at most."""

QUEUE_FULL = "the queue of log records was full"

_STANDARD_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""Attributes of every log record. The caller of the logger added all others."""


class LedgerHandler(logging.Handler):
    """Seals log records of `level` and above into a chain, in batches, from its own thread."""

    def __init__(
        self,
        chain: str,
        *,
        ledger: Ledger | AsyncLedger | None = None,
        level: int | str = logging.WARNING,
        capacity: int = CAPACITY,
        agent_id: str = "",
        session_id: str | None = None,
    ) -> None:
        super().__init__(level)
        if check_chain_name(chain) in RESERVED_CHAINS:
            raise BadInput(f"the chain {chain!r} is written by the ledger itself")
        if capacity < 1:
            raise BadInput("a queue without room would drop every log record", advice="give a capacity of 1 or more")
        self._chain = chain
        self._recorder = get_recorder(ledger)
        self._kept_ledger = ledger
        self._capacity = capacity
        self._agent_id = agent_id
        self._session_id = session_id
        self._reset_queue()
        register_for_forks(self)
        close_at_exit(self)

    def _reset_queue(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[tuple[str, PendingRecord]] = deque()
        self._thread: threading.Thread | None = None
        self._logged = self._settled = 0
        """How many log records were put into the queue, and how many of them were sealed or lost."""
        self._failures = 0
        self._closing = False

    def before_fork(self) -> None:
        """Hold the queue still during a fork."""
        self._changed.acquire()

    def after_fork_in_parent(self) -> None:
        self._changed.release()

    def after_fork_in_child(self) -> None:
        """Start with an empty queue: the parent seals its own."""
        self._reset_queue()

    # --- called by the logger

    def emit(self, record: logging.LogRecord) -> None:
        """Put a log record into the queue, to be sealed later."""
        if record.name == "aver" or record.name.startswith("aver.") or threading.current_thread() is self._thread:
            return
        identifier = new_id()
        try:
            facts = _read_log_record(record)
        except Exception as error:  # noqa: BLE001 - a log record whose text cannot be made
            words = f"a log record could not be read: {type_name(type(error))}: {exception_text(error)}"
            self._recorder.note_undrafted_loss(self._chain, "record", words)
            self.handleError(record)
            return
        here = current_scope()
        entry = PendingRecord(self._chain, "record", lambda: self._build_draft(identifier, facts, here))
        with self._changed:
            room = len(self._waiting) < self._capacity and not self._closing
            if room:
                self._waiting.append((identifier, entry))
                self._logged += 1
                if self._thread is None:
                    self._thread = threading.Thread(target=self._seal_batches, name="aver-logs", daemon=True)
                    self._thread.start()
                self._changed.notify_all()
        if not room:
            self._recorder.note_undrafted_loss(self._chain, "record", QUEUE_FULL)

    def flush(self) -> None:
        """Wait until all log records so far are sealed, or an attempt to seal them has failed."""
        with self._changed:
            upto, failures = self._logged, self._failures
            if self._thread is not None and self._thread is not threading.current_thread():
                self._changed.wait_for(lambda: self._settled >= upto or self._failures > failures)

    def close(self) -> None:
        """Seal the queue as far as possible, and stop. Later log records count as dropped."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()
        super().close()

    # --- the thread

    def _seal_batches(self) -> None:
        pause = RETRY_FIRST
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closing)
                batch = [self._waiting[index] for index in range(min(BATCH_MAX, len(self._waiting)))]
                last = self._closing
            if not batch:
                return
            settled = self._seal_or_lose(batch, last=last)
            with self._changed:
                for _ in range(settled):
                    self._waiting.popleft()
                self._settled += settled
                self._failures += not settled
                self._changed.notify_all()
                if settled:
                    pause = RETRY_FIRST
                else:
                    self._changed.wait_for(lambda: self._closing, pause)
                    pause = min(2 * pause, RETRY_LAST)

    def _seal_or_lose(self, batch: list[tuple[str, PendingRecord]], *, last: bool) -> int:
        """Seal a batch, or a part of it. Returns how many records at its beginning are now sealed or lost."""
        try:
            self._recorder.seal_many(self._chain, batch)
        except Unavailable as error:
            if not last:
                return 0
            for _, entry in batch:
                self._recorder.note_loss(entry, error)
        except Exception as error:  # noqa: BLE001 - a record that can never be sealed must not block the others
            if len(batch) > 1:
                return self._seal_or_lose(batch[: len(batch) // 2], last=last)
            self._recorder.note_loss(batch[0][1], error)
        return len(batch)

    def _build_draft(self, identifier: str, facts: dict[str, Any], here: AuditScope) -> drafts.ReadyDraft:
        failed = facts["level_number"] >= logging.ERROR
        raised = facts.get("exception")
        words = f"{raised['type']}: {raised['text']}" if raised else facts["message"]
        return drafts.finish_draft(
            Capsule(
                id=identifier,
                type="system",
                parent_id=here.parent_id,
                trigger=Trigger(
                    type=here.trigger or "system",
                    source=facts["logger"],
                    timestamp=facts["at"],
                    correlation_id=here.correlation_id,
                    user_id=here.user_id,
                ),
                context=Context(
                    agent_id=self._agent_id or here.agent_id or "",
                    session_id=self._session_id or here.session_id,
                    environment={"log": facts},
                ),
                outcome=Outcome(
                    status="failure" if failed else "success",
                    summary=facts["message"],
                    error=words if failed or raised else None,
                ),
            ),
            "record",
        )


def _read_log_record(record: logging.LogRecord) -> dict[str, Any]:
    """The content of a log record as JSON. Read in the logging thread, because its arguments may change later."""
    given = {name: value for name, value in vars(record).items() if name not in _STANDARD_FIELDS}
    facts: dict[str, Any] = {
        "at": datetime.fromtimestamp(record.created, UTC).isoformat(),
        "logger": clean_text(record.name),
        "level": clean_text(record.levelname),
        "level_number": record.levelno,
        "message": clean_text(record.getMessage()),
        "module": clean_text(record.module),
        "function": clean_text(record.funcName or ""),
        "line": record.lineno,
        "thread": clean_text(record.threadName or ""),
        "process": record.process,
        "fields": render_value(given),
    }
    if record.exc_info and record.exc_info[1] is not None:
        error = record.exc_info[1]
        facts["exception"] = {
            "type": type_name(type(error)),
            "text": exception_text(error),
            "traceback": clean_text("".join(traceback.format_exception(*record.exc_info))),
        }
    if record.stack_info:
        facts["stack"] = clean_text(record.stack_info)
    return facts
