"""The `logging` handler: log records sealed in batches, none lost silently, nothing that never ends."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

import aver
from aver import BadInput, Ledger, LedgerHandler, open_ledger
from aver.recording.recorder import dropped_count, get_recorder
from aver.recording.scope import AuditScope, ScopeContext

CHAIN = "logs.shop"
Stuck = Callable[[], AbstractContextManager[None]]
Logger = Callable[..., logging.Logger]


@pytest.fixture
def logger() -> Iterator[Logger]:
    """Makes a logger with a handler on it, closed at the end."""
    handlers: list[LedgerHandler] = []
    plain = logging.getLogger("shop.till")
    plain.propagate = False
    plain.setLevel(logging.DEBUG)

    def make(ledger: Ledger, **settings: Any) -> logging.Logger:
        handlers.append(LedgerHandler(CHAIN, ledger=ledger, **settings))
        plain.addHandler(handlers[-1])
        return plain

    yield make
    for handler in handlers:
        plain.removeHandler(handler)
        handler.close()


def flushed(logger: logging.Logger) -> None:
    for handler in logger.handlers:
        handler.flush()


def test_a_log_record_with_its_fields(ledger: Ledger, logger: Logger, records: Any) -> None:
    log = logger(ledger, agent_id="till", session_id="s1")
    log.info("too quiet")
    log.warning("order %s of %d", "A-1", 5, extra={"order": {"id": 7}, "password": "hunter2"})
    flushed(log)
    (record,) = records(chain=CHAIN)
    facts = record["context"]["environment"]["log"]
    assert (facts["logger"], facts["level"], facts["message"]) == ("shop.till", "WARNING", "order A-1 of 5")
    assert facts["fields"] == {"order": {"id": 7}, "password": "[masked:named]"}
    assert (facts["function"], facts["process"]) == ("test_a_log_record_with_its_fields", os.getpid())
    assert record["outcome"]["summary"] == "order A-1 of 5"
    assert (record["outcome"]["status"], record["outcome"]["error"]) == ("success", None)
    assert (record["type"], record["trigger"]["source"]) == ("system", "shop.till")
    assert (record["context"]["agent_id"], record["context"]["session_id"]) == ("till", "s1")
    assert record["context"]["environment"]["aver"]["kind"] == "record"
    assert ledger.verify().status == "verified"


def test_an_exception_in_a_log_record(ledger: Ledger, logger: Logger, records: Any) -> None:
    log = logger(ledger)
    try:
        raise ValueError("token=abc123")
    except ValueError:
        log.exception("it failed")
    flushed(log)
    (record,) = records(chain=CHAIN)
    raised = record["context"]["environment"]["log"]["exception"]
    assert (raised["type"], raised["text"]) == ("ValueError", "token=[masked:assignment]")
    assert "test_an_exception_in_a_log_record" in raised["traceback"]
    assert (record["outcome"]["status"], record["outcome"]["error"]) == (
        "failure",
        "ValueError: token=[masked:assignment]",
    )
    assert "abc123" not in str(record)


def test_what_is_logged_in_an_audited_call_belongs_to_it(ledger: Ledger, logger: Logger, records: Any) -> None:
    log = logger(ledger)

    @aver.audit(chain="demo.audit", ledger=ledger)
    def work() -> None:
        log.warning("inside")

    work()
    log.warning("outside")
    flushed(log)
    intent = records()[0]
    inside, outside = records(chain=CHAIN)
    assert inside["parent_id"] == intent["id"]
    assert inside["trigger"]["correlation_id"] == intent["trigger"]["correlation_id"]
    assert (outside["parent_id"], outside["trigger"]["correlation_id"]) == (None, None)


def test_arguments_are_read_when_they_are_logged(ledger: Ledger, logger: Logger, records: Any, stuck: Stuck) -> None:
    ledger.append("demo.first", aver.Capsule(type="tool"))
    log = logger(ledger)
    items = [1]
    with stuck():
        log.warning("items %s", items, extra={"items": items})
        items.append(2)
    flushed(log)
    facts = records(chain=CHAIN)[0]["context"]["environment"]["log"]
    assert (facts["message"], facts["fields"]) == ("items [1]", {"items": [1]})


@pytest.mark.more
def test_many_threads_log_and_nothing_is_lost(ledger: Ledger, logger: Logger, records: Any) -> None:
    log = logger(ledger)

    def write(number: int) -> None:
        for index in range(200):
            log.warning("%d:%d", number, index)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    flushed(log)
    messages = [record["outcome"]["summary"] for record in records(chain=CHAIN)]
    assert len(messages) == len(set(messages)) == 1_000
    for number in range(5):
        own = [message for message in messages if message.startswith(f"{number}:")]
        assert own == [f"{number}:{index}" for index in range(200)], "in the order in which a thread logged them"


def test_logging_does_not_wait_and_a_full_queue_drops_and_tells(
    impatient: Ledger, logger: Logger, records: Any, stuck: Stuck
) -> None:
    log = logger(impatient, capacity=10)
    with stuck():
        for number in range(25):
            log.warning("message %d", number)
        flushed(log)  # Returns when an attempt has failed.
    log.handlers[0].flush()
    while len(list(impatient.read(CHAIN)) if CHAIN in impatient.chains() else []) < 11:
        log.handlers[0].flush()
    contents = [record.to_dict() for record in impatient.read(CHAIN)]
    kept = [one for one in contents if one["context"]["environment"]["aver"]["kind"] == "record"]
    told = [one for one in contents if one["context"]["environment"]["aver"]["kind"] == "dropped"]
    assert [one["outcome"]["summary"] for one in kept] == [f"message {number}" for number in range(10)]
    assert sum(one["outcome"]["result"]["dropped"] for one in told) == 15
    assert told[0]["outcome"]["error"] == "the queue of log records was full"
    assert dropped_count(impatient) == 15
    assert impatient.verify().status == "verified"


@pytest.mark.more
def test_closing_seals_what_waits(ledger: Ledger, records: Any) -> None:
    handler = LedgerHandler(CHAIN, ledger=ledger)
    log = logging.Logger("shop")
    log.addHandler(handler)
    for number in range(600):
        log.warning("message %d", number)
    handler.close()
    assert len(records(chain=CHAIN)) == 600
    handler.close()
    log.warning("after the end")
    assert dropped_count(ledger) == 1
    assert get_recorder(ledger).settle()


def test_closing_while_the_ledger_is_away_counts_what_is_lost(impatient: Ledger, stuck: Stuck) -> None:
    handler = LedgerHandler(CHAIN, ledger=impatient)
    log = logging.Logger("shop")
    log.addHandler(handler)
    with stuck():
        for number in range(3):
            log.warning("message %d", number)
        handler.close()
    assert dropped_count(impatient) == 3

    @aver.audit(chain="demo.audit", ledger=impatient)
    def work() -> None: ...

    work()
    (told,) = impatient.read(CHAIN)
    assert told.kind == "dropped"
    assert [lost["kind"] for lost in told.to_dict()["outcome"]["result"]["lost"]] == ["record"] * 3


def test_what_aver_itself_logs_is_not_recorded(impatient: Ledger, stuck: Stuck) -> None:
    """Else every failure to record would leave one more record that cannot be sealed, for ever."""
    root = logging.getLogger()
    handler = LedgerHandler(CHAIN, ledger=impatient, level=logging.DEBUG)
    root.addHandler(handler)
    try:

        @aver.audit(chain="demo.audit", ledger=impatient, on_failure="log")
        def work() -> None: ...

        with stuck():
            work()
        logging.getLogger("aver").warning("of the house")
        work()
        handler.flush()
        assert CHAIN not in impatient.chains()
    finally:
        root.removeHandler(handler)
        handler.close()


class LoggingSigner:
    """A signer that logs, as a remote one may: from inside the sealing of log records."""

    def __init__(self, log: logging.Logger) -> None:
        self.log = log
        self.inner = aver.SeedSigner.generate()
        self.fingerprint = self.inner.fingerprint

    def sign(self, digest: str) -> Any:
        self.log.warning("signing %s", digest)
        return self.inner.sign(digest)


def test_what_is_logged_by_the_sealing_itself_is_not_recorded(aver_home: Path) -> None:
    log = logging.Logger("remote.signer")
    with open_ledger(signer=LoggingSigner(log)) as ledger:
        handler = LedgerHandler(CHAIN, ledger=ledger)
        log.addHandler(handler)
        log.warning("once")
        handler.flush()
        assert ledger.head(CHAIN).count == 1
        handler.close()
        assert ledger.head(CHAIN).count == 1


def test_a_log_record_that_cannot_be_read_is_counted(
    ledger: Ledger, logger: Logger, records: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)
    log = logger(ledger)
    log.warning("%d", "not a number")
    log.warning("fine")
    flushed(log)
    kinds = [record["context"]["environment"]["aver"]["kind"] for record in records(chain=CHAIN)]
    assert kinds == ["record", "dropped"]
    assert "a log record could not be read: TypeError" in records(chain=CHAIN)[1]["outcome"]["error"]


def test_one_that_cannot_be_sealed_does_not_hold_up_the_others(
    ledger: Ledger, logger: Logger, records: Any, stuck: Stuck
) -> None:
    """It was logged in a scope that no record can carry; the batch it is in is sealed around it."""
    ledger.append("demo.first", aver.Capsule(type="tool"))
    log = logger(ledger)
    with stuck():  # so that they come in one batch
        for number in range(20):
            log.warning("message %d", number)
        with ScopeContext(AuditScope(user_id="\ud800")):
            log.warning("odd")
        for number in range(20, 40):
            log.warning("message %d", number)
    flushed(log)
    summaries = [record["outcome"]["summary"] for record in records(chain=CHAIN)]
    assert [one for one in summaries if one.startswith("message")] == [f"message {number}" for number in range(40)]
    (told,) = [one for one in records(chain=CHAIN) if one["context"]["environment"]["aver"]["kind"] == "dropped"]
    assert told["outcome"]["result"]["dropped"] == 1
    assert "surrogate" in told["outcome"]["error"]


def test_a_log_record_that_is_very_large(ledger: Ledger, logger: Logger, records: Any) -> None:
    log = logger(ledger)
    log.warning("large", extra={f"k{number}": "v" * 15_000 for number in range(40)})
    flushed(log)
    (record,) = records(chain=CHAIN)
    assert ledger.blob(record["context"]["environment"]["log"]["blob"]["digest"]).count(b"v" * 15_000) == 40


FORKED = """
import logging, os, aver
handler = aver.LedgerHandler("logs.shop")
logging.getLogger().addHandler(handler)
logging.warning("before")
child = os.fork()
logging.warning("child" if child == 0 else "parent")
if child == 0:
    handler.close()
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(command, env=os.environ.copy(), capture_output=True, text=True, check=False)


def summaries() -> list[str]:
    with open_ledger() as ledger:
        return [record.to_dict()["outcome"]["summary"] for record in ledger.read(CHAIN)]


@pytest.mark.more
def test_after_a_fork_each_seals_its_own(aver_home: Path) -> None:
    done = run(FORKED)
    assert done.returncode == 0, done.stderr
    assert sorted(summaries()) == ["before", "child", "parent"]


@pytest.mark.more
def test_the_end_of_the_process_seals_what_waits(aver_home: Path) -> None:
    script = """
import logging, aver
logging.getLogger().addHandler(aver.LedgerHandler("logs.shop"))
for number in range(300):
    logging.warning("message %d", number)
"""
    done = run(script)
    assert (done.returncode, done.stderr) == (0, "")
    assert summaries() == [f"message {number}" for number in range(300)]


def test_a_process_that_is_killed_keeps_what_was_flushed(aver_home: Path) -> None:
    script = """
import logging, os, signal, aver
handler = aver.LedgerHandler("logs.shop")
logging.getLogger().addHandler(handler)
for number in range(10):
    logging.warning("message %d", number)
handler.flush()
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert run(script).returncode == -signal.SIGKILL
    assert summaries() == [f"message {number}" for number in range(10)]


@pytest.mark.parametrize(
    "settings",
    [{"chain": "no chain"}, {"chain": "keys"}, {"chain": CHAIN, "capacity": 0}],
    ids=["name", "keys", "room"],
)
def test_wrong_settings_are_refused_at_once(settings: Any) -> None:
    with pytest.raises(BadInput):
        LedgerHandler(**settings)
