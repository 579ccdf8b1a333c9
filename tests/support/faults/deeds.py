"""What a process does while faults are injected into it, or while its every write is noted.

    python deeds.py

reads one JSON line per trial, `{"deed", "home", "said"}`, and `file_size` where no file may become larger. It has
imported everything and done every deed once by then, so that a trial shows the deed alone. For each line it forks a
child and tells its number; at the line `go` it lets the child begin, and tells how it ended. The child writes to the
file `said`, line by line:

    ack NAME RESULT     done, and told so by Aver
    failed NAME WHY     refused with one of Aver's own errors; it is tried once more
    crashed NAME WHY    ended with any other error

These lines are written with `writev`, which nothing in Aver uses: faults are never injected into the telling.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from aver import AverError, Blob, Capsule, Entry, Exists, KeyStore, Ledger, Sealed, open_ledger
from aver.files.new_file import write_new_file
from aver.ledger.checkpoint import make_checkpoint
from aver.ledger.meta_chain import sweep

CHAIN = "fault.deeds"
CHECKPOINT = "checkpoint.json"


class Telling:
    """Where a child tells what it has done."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def say(self, *words: str) -> None:
        os.writev(self._file, [f"{' '.join(words)}\n".encode()])

    def attempt(self, name: str, work: Callable[[], Any]) -> Any:
        """Do work, and once more if it fails. What was recorded by the first attempt counts as done by the second."""
        for _ in range(2):
            try:
                result = work()
            except Exists as exists:
                result = exists.record
            except AverError as error:
                self.say("failed", name, type(error).__name__)
                continue
            except BaseException as error:
                self.say("crashed", name, type(error).__name__, str(error))
                raise
            self.say("ack", name, getattr(result, "hash", "done"))
            return result
        return None


def opened(home: Path) -> Ledger:
    return open_ledger(home / "ledger.db", home=home)


def draft(size: int = 10) -> Capsule:
    return Capsule(type="tool", outcome={"result": "x" * size})


def seal(telling: Telling, ledger: Ledger, key: str) -> None:
    telling.attempt(f"record:{key}", lambda: ledger.append(CHAIN, draft(), key=key))


def append(telling: Telling, home: Path) -> None:
    """Single records, one with a blob, several at once, and one large enough for many pages."""
    ledger = telling.attempt("open", lambda: opened(home))
    if ledger is None:
        return
    seal(telling, ledger, "a0")
    blob = Blob(b"b" * 30_000)
    with_blob = Capsule(type="tool", outcome={"result": blob.reference})
    telling.attempt("record:a1", lambda: ledger.append(CHAIN, with_blob, key="a1", blobs=[blob]))
    keys = [f"a{number}" for number in range(2, 6)]
    several = telling.attempt("several", lambda: ledger.append_many(CHAIN, [draft(6000) for _ in keys], keys=keys))
    for key, record in zip(keys, several or (), strict=False):
        telling.say("ack", f"record:{key}", record.hash)
    seal(telling, ledger, "a6")
    telling.attempt("close", ledger.close)


def together(telling: Telling, home: Path) -> None:
    """Records in three chains at once, in another order each time, with a blob. Each record names the whole call."""
    ledger = telling.attempt("open", lambda: opened(home))
    if ledger is None:
        return
    for number in range(4):
        keys = [f"t{number}.{place}" for place in range(3)]
        blob = Blob(f"{number} {'b' * 10_000}".encode())
        contents = [{"together": keys, "blob": blob.reference["blob"], "x": "x" * 3000} for _ in keys]
        entries = [
            Entry(f"fault.{(number + place) % 3}", Capsule(type="tool", outcome={"result": content}), key=key)
            for place, (key, content) in enumerate(zip(keys, contents, strict=True))
        ]
        entries[-1] = replace(entries[-1], blobs=[blob])
        records = telling.attempt("together", lambda entries=entries: append_entries(ledger, entries))
        for key, record in zip(keys, records or (), strict=False):
            telling.say("ack", f"record:{key}", record.hash)
    telling.attempt("close", ledger.close)


def append_entries(ledger: Ledger, entries: list[Entry]) -> list[Sealed]:
    """Append them, or find them: an attempt that failed may have been written all the same, but never in part."""
    try:
        return ledger.append_together(entries)
    except Exists:
        found = [ledger.get(str(entry.key)) for entry in entries]
        assert None not in found, "a call was written in part"
        return [record for record in found if record is not None]


def rotate(telling: Telling, home: Path) -> None:
    """A new key, and the record that tells of it."""
    ledger = telling.attempt("open", lambda: opened(home))
    if ledger is None:
        return
    seal(telling, ledger, "r0")
    telling.attempt("rotate", lambda: KeyStore(home).rotate("ledger"))
    seal(telling, ledger, "r1")
    telling.attempt("close", ledger.close)


def checkpoint(telling: Telling, home: Path) -> None:
    """Heads into `meta`, a signed statement into a file, and a verification that notes what it has seen."""
    ledger = telling.attempt("open", lambda: opened(home))
    if ledger is None:
        return
    seal(telling, ledger, "c0")
    telling.attempt("sweep", lambda: sweep(ledger))
    telling.attempt("verify", ledger.verify)
    statement = telling.attempt("state", lambda: make_checkpoint(ledger))
    if statement is not None:
        data = json.dumps(statement.to_dict()).encode()
        telling.attempt("checkpoint", lambda: write_new_file(home / CHECKPOINT, data))
    seal(telling, ledger, "c1")
    telling.attempt("close", ledger.close)


def everything(telling: Telling, home: Path) -> None:
    """All of it one after the other, with a log so short that it is often moved into the main file."""
    import aver.ledger.stores.sqlite.connections

    aver.ledger.stores.sqlite.connections.LOG_PAGES = 12
    append(telling, home)
    together(telling, home)
    rotate(telling, home)
    checkpoint(telling, home)


DEEDS = {deed.__name__: deed for deed in (append, together, rotate, checkpoint, everything)}


def child(trial: dict[str, str], go: int) -> None:
    status = 1
    try:
        telling = Telling(trial["said"])
        os.read(go, 1)
        if "file_size" in trial:
            resource.setrlimit(resource.RLIMIT_FSIZE, (int(trial["file_size"]), resource.RLIM_INFINITY))
        DEEDS[trial["deed"]](telling, Path(trial["home"]))
        status = 0
    finally:
        os._exit(status)


def main() -> None:
    os.umask(0o077)
    with tempfile.TemporaryDirectory() as scratch:
        everything(Telling(os.devnull), Path(scratch) / "home")
    print("ready", flush=True)
    for line in sys.stdin:
        go, let_go = os.pipe()
        number = os.fork()
        if number == 0:
            os.close(let_go)
            child(json.loads(line), go)
        os.close(go)
        print(number, flush=True)
        sys.stdin.readline()
        os.write(let_go, b"x")
        os.close(let_go)
        print(os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
