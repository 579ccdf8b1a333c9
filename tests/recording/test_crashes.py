"""Real processes that are killed, fork, or end: what was recorded stays, what was not finished shows."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from aver import Ledger, open_ledger, unfinished_intents

CHAIN = "demo.audit"


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(command, env=os.environ.copy(), capture_output=True, text=True, check=False)


KILLED = """
import os, signal, sys, aver

@aver.audit(chain="demo.audit")
def outer():
    inner()

@aver.audit(chain="demo.audit")
def inner():
    os.kill(os.getpid(), signal.SIGKILL)

@aver.audit(chain="demo.audit")
def fine(): pass

fine()
outer()
"""


def test_killed_in_the_middle_leaves_intents_without_outcome(aver_home: Path) -> None:
    assert run(KILLED).returncode == -signal.SIGKILL
    with open_ledger() as ledger:
        kinds = [record.kind for record in ledger.read(CHAIN)]
        assert kinds == ["audit.intent", "audit.outcome", "audit.intent", "audit.intent"]
        outer, inner = unfinished_intents(ledger)
        assert inner.to_dict()["parent_id"] == outer.id
        assert [outer.sequence, inner.sequence] == [2, 3]
        assert ledger.verify().status == "verified", "unfinished is not tampered with"
    listed = run("import sys; from aver.cli.main import main; sys.exit(main(['log', '--unfinished', *sys.argv[1:]]))")
    assert listed.returncode == 0
    assert [line.split()[1] for line in listed.stdout.splitlines()] == ["2", "3"]


def test_unfinished_intents_of_one_chain(ledger: Ledger) -> None:
    import aver

    @aver.audit(chain=lambda arguments: arguments["chain"], ledger=ledger)
    def work(chain: str, depth: int = 0) -> list[str]:
        if depth < 2:
            return work(chain, depth + 1)
        return [record.id for record in unfinished_intents(ledger, chain)]

    assert len(work("demo.a")) == 3
    assert len(work("demo.b")) == 3
    assert list(unfinished_intents(ledger)) == []
    with pytest.raises(aver.NotFound):
        list(unfinished_intents(ledger, "demo.none"))


ENDING = """
import os, sys, aver

@aver.audit(chain="demo.audit", on_failure="log")
def work(): pass

work()
lock = open(os.environ["AVER_HOME"] + "/ledger.db.lock", "r+")
import fcntl
fcntl.flock(lock, fcntl.LOCK_EX)
work()
if sys.argv[1] == "works":
    lock.close()
"""


@pytest.fixture
def impatience(aver_home: Path) -> None:
    aver_home.mkdir(mode=0o700)
    (aver_home / "config.toml").write_text("lock_timeout = 0.05\n")


def test_losses_are_told_when_the_process_ends(impatience: None) -> None:
    done = run(ENDING, "works")
    assert done.returncode == 0
    with open_ledger() as ledger:
        *_, last = ledger.read(CHAIN)
        assert last.kind == "dropped"
        assert last.to_dict()["outcome"]["result"]["dropped"] == 2
        assert last.to_dict()["trigger"]["source"] == "aver.audit"


def test_losses_that_cannot_be_told_even_then_are_said_on_stderr(impatience: None) -> None:
    done = run(ENDING, "stays broken")
    assert "the process ends, and 2 records could not be sealed" in done.stderr
    with open_ledger() as ledger:
        assert [record.kind for record in ledger.read(CHAIN)] == ["audit.intent", "audit.outcome"]


DEFAULT = """
import atexit, os
opened, ledgers = [], []
# Runs after Aver's own.
atexit.register(lambda: print("closed:", [ledger.store._connections.is_closed for ledger in ledgers]))

import aver
from aver.recording import recorder

def opening(real=recorder.open_ledger):
    opened.append(os.getpid())
    ledgers.append(real())
    return ledgers[-1]

recorder.open_ledger = opening

@aver.audit(chain="demo.audit")
def work(name): pass

assert not os.path.exists(os.environ["AVER_HOME"]), "decorating opens nothing"
work("parent")
child = os.fork()
work("child" if child == 0 else "parent again")
if child == 0:
    assert len(opened) == 1
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert opened == [os.getpid()], "once in a process"
"""


def test_the_default_ledger_is_opened_once_and_survives_a_fork(aver_home: Path) -> None:
    done = run(DEFAULT)
    assert done.returncode == 0, done.stderr
    with open_ledger() as ledger:
        assert ledger.head(CHAIN).count == 6
        assert ledger.verify().status == "verified"
    assert done.stdout == "closed: [True]\n"


NO_LEDGER = """
import aver, sys

@aver.audit(chain="demo.audit", on_failure=sys.argv[1])
def work():
    print("ran")

work()
"""


def test_a_default_ledger_that_cannot_be_opened(aver_home: Path) -> None:
    aver_home.mkdir()
    (aver_home / "ledger.db").write_text("not a ledger")
    strict = run(NO_LEDGER, "raise")
    assert strict.returncode == 1
    assert strict.stdout == ""
    assert "NotRecorded: work was not run" in strict.stderr
    lax = run(NO_LEDGER, "log")
    assert (lax.returncode, lax.stdout) == (0, "ran\n")
    assert "could not seal a record of kind audit.intent" in lax.stderr
    assert "the process ends, and 2 records could not be sealed" in lax.stderr


FORKED_WITH_NOTES = """
import os, aver
from aver.recording.recorder import dropped_count, get_recorder

@aver.audit(chain="demo.audit")
def work(): pass

work()
get_recorder(None).note_undrafted_loss("demo.audit", "record", "words")
child = os.fork()
if child == 0:
    assert dropped_count() == 0
    work()
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


def test_what_a_parent_lost_is_told_once_and_by_the_parent(aver_home: Path) -> None:
    done = run(FORKED_WITH_NOTES)
    assert done.returncode == 0, done.stderr
    with open_ledger() as ledger:
        kinds = [record.kind for record in ledger.read(CHAIN)]
    assert kinds == ["audit.intent", "audit.outcome"] * 2 + ["dropped"]


def test_the_lock_file_is_what_the_tests_take_it_for(ledger: Ledger, aver_home: Path) -> None:
    """`stuck` in these tests holds this file; if the ledger came to use another, they would prove nothing."""
    ledger.append("demo.first", {"type": "tool"})
    with ledger.store.transaction(), open(aver_home / "ledger.db.lock") as file, pytest.raises(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
