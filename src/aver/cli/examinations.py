"""What `aver doctor` examines, one thing at a time. Each gives reports; none creates, migrates or repairs anything."""

from __future__ import annotations

import fcntl
import os
import platform
import shutil
import sqlite3
import stat
import time
from collections.abc import Callable, Generator, Iterator
from datetime import UTC, datetime, timedelta
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from aver import __version__
from aver.cli.output import plural
from aver.errors import AverError, NotFound
from aver.home import Config, load_config, without_password
from aver.values import dataclass

if TYPE_CHECKING:
    from aver.ledger import Ledger
    from aver.ledger.store import Store

__all__ = ["Report", "examine"]

Status = Literal["ok", "warning", "problem"]

SQLITE_CURED = (3, 51, 3)
"""The first SQLite without the WAL-reset bug, which can lose acknowledged commits of careless programs."""

SPACE_PROBLEM, SPACE_WARNING = 50 * 1024**2, 1024**3
"""Free bytes: below the first an append may fail at any moment; below the second it is time to look."""

LOG_LARGE = 64 * 1024**2
"""Bytes of a write-ahead log that should have been moved into the ledger at 8 MiB; more means a reader that stays."""

CLOCK_SLACK = timedelta(minutes=5)
"""How far ahead of our clock a record may be sealed before one of two clocks must be wrong."""

EARLIEST = datetime(2025, 1, 1, tzinfo=UTC)
"""Aver did not exist before; a clock that says so is not set."""

LOCK_SECONDS = 2.0
"""How long a busy ledger's lock is tried: a commit takes milliseconds."""


@dataclass(frozen=True, slots=True)
class Report:
    """One thing that was looked at."""

    status: Status
    subject: str
    words: str
    advice: str = ""


def examine(ledger: str | None) -> Iterator[Report]:
    """Everything, in an order in which what comes first explains what comes later."""
    yield from _software()
    try:
        config = load_config(ledger=ledger)
    except AverError as error:
        yield _problem("settings", error)
        return
    yield from _settings(config)
    yield from _home(config.home)
    yield from _guarded("keys", lambda: _keys(config))
    yield from _guarded("ledger", lambda: _ledger(config))
    yield from _space(config)
    yield from _guarded("hooks", lambda: _hooks(config))


def _hooks(config: Config) -> Iterator[Report]:
    from aver.cli.canaries import not_sealed, tried_out, without_rules

    yield from (Report(*one) for one in not_sealed(config.home))
    tried = [Report(*one) for one in tried_out()]
    yield from tried
    if tried:
        yield from (Report(*one) for one in without_rules(config))


def _guarded(subject: str, look: Callable[[], Iterator[Report]]) -> Iterator[Report]:
    """What raises is itself a finding."""
    try:
        yield from look()
    except AverError as error:
        yield _problem(subject, error)


def _problem(subject: str, error: AverError) -> Report:
    return Report("problem", subject, error.message, error.advice)


def _software() -> Iterator[Report]:
    python = platform.python_version()
    yield Report("ok", "aver", f"{__version__} on Python {python}, {platform.system()} {platform.machine()}")
    libraries = []
    for name in ("PyNaCl", "orjson", "cryptography"):
        try:
            libraries.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            yield Report("problem", "libraries", f"{name} is not installed", "install aver again: pip install aver")
    yield Report("ok", "libraries", ", ".join(libraries))
    words = f"SQLite {sqlite3.sqlite_version}"
    if sqlite3.sqlite_version_info < SQLITE_CURED:
        words += "; its WAL-reset bug does not matter here: Aver's lock covers it"
    yield Report("ok", "sqlite", words)


def _settings(config: Config) -> Iterator[Report]:
    for name in ("ledger", "tenant", "post_quantum", "lock_timeout"):
        value = without_password(str(getattr(config, name)))
        yield Report("ok", "settings", f"{name} = {value} ({config.source[name]})")


def _home(home: Path) -> Iterator[Report]:
    try:
        status = home.stat()
    except FileNotFoundError:
        yield Report("ok", "home", f"{home} is not there yet; the first aver seal makes it")
        return
    except OSError as error:
        yield Report("problem", "home", f"cannot look at {home}: {error.strerror}", "check its owner and mode")
        return
    if not stat.S_ISDIR(status.st_mode):
        yield Report("problem", "home", f"{home} is not a directory", "move it away, or set AVER_HOME")
    elif not os.access(home, os.W_OK | os.X_OK):
        yield Report("problem", "home", f"{home} cannot be written", "check its owner and mode")
    else:
        yield _mode(home, "home", 0o700)


def _mode(path: Path, subject: str, wanted: int) -> Report:
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o022:
        return Report("problem", subject, f"{path} can be written by others ({mode:04o})", f"chmod {wanted:o} {path}")
    if mode & 0o077:
        return Report("warning", subject, f"{path} can be read by others ({mode:04o})", f"chmod {wanted:o} {path}")
    return Report("ok", subject, f"{path} ({mode:04o})")


def _keys(config: Config) -> Iterator[Report]:
    from aver.keys import KeyStore

    store = KeyStore(config.home, lock_timeout=config.lock_timeout)
    ring = store.ring()
    if not ring.entries:
        yield Report("ok", "keys", "none yet; the first aver seal makes one for the ledger")
    directory = config.home / "keys"
    if directory.is_dir():
        yield _mode(directory, "keys", 0o700)
        yield from (_mode(path, "keys", 0o600) for path in sorted(directory.glob("[!.]*")))
    for entry in ring.entries:
        if entry.status != "active":
            continue
        words = f"{entry.identity} signs with {entry.fingerprint} ({entry.algorithm}, epoch {entry.epoch})"
        if entry.identity.startswith("person:"):
            yield Report("ok", "keys", f"{words}, under a passphrase")
            continue
        with store.signer(entry.identity, create=False).hold():
            yield Report("ok", "keys", words)
    if ring.known:
        yield Report("ok", "keys", f"{plural(len(ring.known), 'key')} of others known")


def _ledger(config: Config) -> Iterator[Report]:
    from aver.ledger.urls import is_on_server

    return _ledger_on_server(config) if is_on_server(config.ledger) else _ledger_file(config)


def _ledger_file(config: Config) -> Iterator[Report]:
    from aver.ledger import open_ledger, schema
    from aver.ledger.urls import file_of

    path = file_of(config.ledger)
    if not path.exists():
        yield Report("ok", "ledger", f"{path} is not there yet; the first aver seal makes it")
        return
    yield _mode(path, "ledger", 0o600)
    with open_ledger(config.ledger, home=config.home, create=False) as ledger:
        yield Report("ok", "ledger", f"id {ledger.id}, schema {schema.VERSION}, {_bytes(path.stat().st_size)}")
        yield from _log(path)
        yield _soundness(ledger.store, "SQLite")
    newest = yield from _tenants(config)
    yield from _lock(path)
    yield _clock(newest)


def _ledger_on_server(config: Config) -> Iterator[Report]:
    from aver.ledger.urls import open_server

    try:
        store = open_server(config.ledger, create=False, timeout=config.lock_timeout)
    except NotFound as error:
        yield Report("warning", "ledger", error.message, error.advice)
        return
    try:
        yield Report("ok", "ledger", f"id {store.ledger_id} at {store.name}")
        for remark in store.health():
            yield Report(remark.status, remark.subject, remark.words, remark.advice)
        yield _soundness(store, "PostgreSQL")
        yield from (Report("ok", "ledger", words) for words in store.remarks())
    finally:
        store.close()
    newest = yield from _tenants(config)
    yield _clock(newest)


def _soundness(store: Store, software: str) -> Report:
    damage = store.damage()
    if damage:
        restore = "restore it from a copy; aver export saves what can still be read"
        return Report("problem", "ledger", f"{software} finds damage: {'; '.join(damage[:3])}", restore)
    return Report("ok", "ledger", f"{software} finds no damage; aver verify checks the records")


def _tenants(config: Config) -> Generator[Report, None, str]:
    """What each tenant has. Gives the latest time of sealing."""
    from aver.ledger import open_ledger, tenants_of

    newest = ""
    for tenant in tenants_of(config.ledger, home=config.home):
        with open_ledger(config.ledger, tenant=tenant, home=config.home, create=False) as ledger:
            heads = ledger.heads()
            records = sum(head.count for head in heads)
            words = f"tenant {tenant}: {plural(records, 'record')} in {plural(len(heads), 'chain')}"
            yield Report("ok", "ledger", words)
            newest = max(newest, _newest(ledger))
    return newest


def _bytes(size: float) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:
            return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"


def _log(path: Path) -> Iterator[Report]:
    log = Path(f"{path}-wal")
    size = log.stat().st_size if log.exists() else 0
    if size > LOG_LARGE:
        advice = "find the program that keeps the ledger open for reading, and end it"
        yield Report("warning", "ledger", f"its write-ahead log has grown to {_bytes(size)}", advice)
    elif size:
        yield Report("ok", "ledger", f"write-ahead log of {_bytes(size)}")


def _newest(ledger: Ledger) -> str:
    """The latest time of sealing among the last records of the tenant's chains."""
    last = (next(ledger.read(head.chain, head.count - 1), None) for head in ledger.heads() if head.count)
    return max((record.signed_at for record in last if record is not None), default="")


def _lock(path: Path) -> Iterator[Report]:
    """Try the ledger's lock, without making its file."""
    lock = path.with_name(path.name + ".lock")
    try:
        handle = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        yield Report("ok", "lock", "not in use yet")
        return
    except OSError as error:
        yield Report("problem", "lock", f"cannot open {lock}: {error.strerror}", "check its owner and mode")
        return
    try:
        if _taken_within(handle, LOCK_SECONDS):
            yield Report("ok", "lock", "can be taken: nobody is writing")
        else:
            words = f"another process has held {lock} for {LOCK_SECONDS:g} seconds"
            yield Report("warning", "lock", words, f"see who it is: fuser {lock}")
    finally:
        os.close(handle)


def _taken_within(handle: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)


def _clock(newest: str) -> Report:
    """Hold our clock to what the ledger remembers."""
    now = datetime.now(UTC)
    if now < EARLIEST:
        return Report("problem", "clock", f"it says {now:%Y-%m-%d}, which cannot be", "set the clock")
    try:
        ahead = datetime.fromisoformat(newest) - now if newest else timedelta()
    except (ValueError, TypeError):
        ahead = timedelta()
    if ahead > CLOCK_SLACK:
        words = f"the newest record was sealed at {newest}, which is yet to come"
        return Report("warning", "clock", words, "compare this machine's clock with a good one")
    return Report("ok", "clock", f"{now:%Y-%m-%d %H:%M:%S} UTC, after every record")


def _space(config: Config) -> Iterator[Report]:
    from aver.ledger.urls import file_of, is_on_server

    if is_on_server(config.ledger):
        return  # How much room a server has, it tells nobody.
    try:
        place = file_of(config.ledger).absolute().parent
        while not place.exists() and place != place.parent:
            place = place.parent
        free = shutil.disk_usage(place).free
    except (AverError, OSError):
        return  # That the ledger's place cannot be looked at was said above.
    words = f"{_bytes(free)} free at {place}"
    if free < SPACE_PROBLEM:
        yield Report("problem", "disk", words, "free some space: appends may fail")
    elif free < SPACE_WARNING:
        yield Report("warning", "disk", words, "free some space soon")
    else:
        yield Report("ok", "disk", words)
