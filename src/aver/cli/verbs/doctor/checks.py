"""The checks of `aver doctor`. Each yields reports. No check creates, migrates or repairs anything.

Hooks, MCP servers and proxies of clients each get a canary (`client_canaries`, `proxy_canary`). The gateway gets one,
too, and records it (`gateway_canary`).
"""

from __future__ import annotations

import os
import platform
import shutil
import sqlite3
import stat
from collections.abc import Callable, Generator, Iterator
from datetime import UTC, datetime, timedelta
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from aver import __version__
from aver.cli.verbs.doctor.client_canaries import check_gate_rules, check_unsealed_failures, try_hooks, try_servers
from aver.cli.verbs.doctor.report import DoctorReport
from aver.config import LEDGER_ENV, Config, hide_password, load_config
from aver.errors import AverError, NotFound
from aver.files.locks import Pace, try_lock, wait_until
from aver.files.regular import open_descriptor
from aver.hooks.settings import read_hook_settings
from aver.text import plural

if TYPE_CHECKING:
    from aver.ledger import Ledger
    from aver.ledger.stores.protocol import Store


SPACE_PROBLEM, SPACE_WARNING = 50 * 1024**2, 1024**3
"""Free bytes: below the first an append may fail at any moment; below the second doctor warns."""

WAL_SIZE_WARNING = 64 * 1024**2
"""Bytes of a write-ahead log that cause a warning. SQLite empties it at 8 MiB unless a reader stays open."""

CLOCK_SLACK = timedelta(minutes=5)
"""How far in the future a record may be sealed before doctor doubts the clock."""

EARLIEST_CLOCK = datetime(2025, 1, 1, tzinfo=UTC)
"""Aver did not exist before this time. A clock that shows less is not set."""

SQUATTERS_NAMED = 5
"""How many imported chains with names of the ledger's own doctor names."""

LOCK_SECONDS = 2.0
"""How long doctor waits for a busy ledger's lock. A commit takes milliseconds."""


def run_checks(ledger: str | None) -> Iterator[DoctorReport]:
    """Run all checks. Earlier results explain later ones."""
    python = platform.python_version()
    yield DoctorReport("ok", "aver", f"{__version__} on Python {python}, {platform.system()} {platform.machine()}")
    libraries = []
    for software_name in ("PyNaCl", "orjson", "cryptography", "cedarpy", "tree-sitter", "tree-sitter-bash", "tomlkit"):
        try:
            libraries.append(f"{software_name} {version(software_name)}")
        except PackageNotFoundError:
            yield DoctorReport(
                "problem",
                "libraries",
                f"{software_name} is not installed",
                "install Aver again: pip install aver-ledger",
            )
    yield DoctorReport("ok", "libraries", ", ".join(libraries))
    # Versions before 3.51.3 have the WAL-reset bug. Aver's lock file protects the ledger from it.
    yield DoctorReport("ok", "sqlite", f"SQLite {sqlite3.sqlite_version}")
    try:
        config = load_config(ledger=ledger)
    except AverError as error:
        yield _problem_from_error("settings", error)
        return
    for name in ("ledger", "tenant", "post_quantum", "lock_timeout"):
        value = hide_password(str(getattr(config, name)))
        yield DoctorReport("ok", "settings", f"{name} = {value} ({config.source[name]})")
    yield from _check_home(config.home)
    yield from _report_errors("keys", lambda: _check_keys(config))
    yield from _report_errors("ledger", lambda: _check_ledger(config))
    yield from _check_disk_space(config)
    yield from _report_errors("hooks", lambda: _check_hooks(config))
    yield from _report_errors("gateway", lambda: _check_gateway(config))


def _check_hooks(config: Config) -> Iterator[DoctorReport]:
    yield from check_unsealed_failures(config.home)
    if os.environ.get(LEDGER_ENV):
        if read_hook_settings(config, "").ledger_from_environment:
            yield DoctorReport("ok", "hooks", f"they write to the ledger that {LEDGER_ENV} names, as config.toml says")
        else:
            yield DoctorReport(
                "warning",
                "hooks",
                f"they ignore {LEDGER_ENV}: a project can set it",
                f"name the ledger in {config.file}, or write there, under [hooks]: ledger_from_environment = true",
            )
    tried = list(try_hooks())
    yield from tried
    if tried:
        yield from check_gate_rules(config)
    yield from try_servers()
    from aver.cli.verbs.doctor.proxy_canary import check_proxied_servers, try_proxies

    yield from try_proxies()
    yield from check_proxied_servers(config)


def _check_gateway(config: Config) -> Iterator[DoctorReport]:
    from aver.cli.verbs.doctor.gateway_canary import try_gateway

    yield from try_gateway(config)


def _report_errors(subject: str, look: Callable[[], Iterator[DoctorReport]]) -> Iterator[DoctorReport]:
    """Run a check. An error that it raises becomes a report."""
    try:
        yield from look()
    except AverError as error:
        yield _problem_from_error(subject, error)


def _problem_from_error(subject: str, error: AverError) -> DoctorReport:
    return DoctorReport("problem", subject, error.message, error.advice)


def _check_home(home: Path) -> Iterator[DoctorReport]:
    try:
        status = home.stat()
    except FileNotFoundError:
        yield DoctorReport("ok", "home", f"{home} does not exist yet; the first aver seal creates it")
        return
    except OSError as error:
        yield DoctorReport("problem", "home", f"cannot read {home}: {error.strerror}", "check its owner and mode")
        return
    if not stat.S_ISDIR(status.st_mode):
        yield DoctorReport("problem", "home", f"{home} is not a directory", "move it away, or set AVER_HOME")
    elif not os.access(home, os.W_OK | os.X_OK):
        yield DoctorReport("problem", "home", f"{home} cannot be written", "check its owner and mode")
    else:
        yield _check_mode(home, "home", 0o700)


def _check_mode(path: Path, subject: str, wanted: int) -> DoctorReport:
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o022:
        return DoctorReport(
            "problem", subject, f"{path} can be written by others ({mode:04o})", f"chmod {wanted:o} {path}"
        )
    if mode & 0o077:
        return DoctorReport(
            "warning", subject, f"{path} can be read by others ({mode:04o})", f"chmod {wanted:o} {path}"
        )
    return DoctorReport("ok", subject, f"{path} ({mode:04o})")


def _check_keys(config: Config) -> Iterator[DoctorReport]:
    from aver.gateway.parts.part_directories import PartDirectories
    from aver.keys import KeyStore

    store = KeyStore(config.home, lock_timeout=config.lock_timeout)
    ring = store.ring()
    if not ring.entries:
        yield DoctorReport("ok", "keys", "no keys yet; the first aver seal makes one for the ledger")
    directory = config.home / "keys"
    if directory.is_dir():
        yield _check_mode(directory, "keys", 0o700)
        yield from (_check_mode(path, "keys", 0o600) for path in sorted(directory.glob("[!.]*")))
    for entry in ring.entries:
        if entry.status != "active":
            continue
        words = f"{entry.identity} signs with {entry.fingerprint} ({entry.algorithm}, epoch {entry.epoch})"
        if entry.identity.startswith("person:"):
            yield DoctorReport("ok", "keys", f"{words}, protected by a passphrase")
            continue
        if entry.identity.startswith("policy:") and PartDirectories(config.home).are_made:
            yield DoctorReport("ok", "keys", f"{words}, which its part holds")
            continue
        with store.signer(entry.identity, create=False).hold():
            yield DoctorReport("ok", "keys", words)
    if ring.known:
        yield DoctorReport("ok", "keys", f"{plural(len(ring.known), 'trusted key')} of others")


def _check_ledger(config: Config) -> Iterator[DoctorReport]:
    from aver.ledger.stores.urls import is_on_server

    return _check_server_ledger(config) if is_on_server(config.ledger) else _check_ledger_file(config)


def _check_ledger_file(config: Config) -> Iterator[DoctorReport]:
    from aver.ledger import open_ledger
    from aver.ledger.stores.sqlite import schema
    from aver.ledger.stores.urls import path_from_url

    path = path_from_url(config.ledger)
    if not path.exists():
        yield DoctorReport("ok", "ledger", f"{path} does not exist yet; the first aver seal creates it")
        return
    yield _check_mode(path, "ledger", 0o600)
    with open_ledger(config.ledger, home=config.home, create=False) as ledger:
        yield DoctorReport(
            "ok", "ledger", f"id {ledger.id}, schema {schema.VERSION}, {_format_bytes(path.stat().st_size)}"
        )
        log = Path(f"{path}-wal")
        size = log.stat().st_size if log.exists() else 0
        if size > WAL_SIZE_WARNING:
            advice = "find the program that keeps the ledger open for reading, and stop it"
            yield DoctorReport("warning", "ledger", f"its write-ahead log has grown to {_format_bytes(size)}", advice)
        elif size:
            yield DoctorReport("ok", "ledger", f"write-ahead log of {_format_bytes(size)}")
        yield _check_damage(ledger.store, "SQLite")
    newest = yield from _check_tenants(config)
    # Try to take the ledger's lock, without creating its file.
    lock = path.with_name(path.name + ".lock")
    try:
        handle = open_descriptor(lock, os.O_RDWR, follow=True)
    except FileNotFoundError:
        yield DoctorReport("ok", "lock", "not in use yet")
    except OSError as error:
        yield DoctorReport("problem", "lock", f"cannot open {lock}: {error.strerror}", "check its owner and mode")
    else:
        try:
            if wait_until(lambda: try_lock(handle), LOCK_SECONDS, Pace(0.05, 0.05)):
                yield DoctorReport("ok", "lock", "free: no process is writing")
            else:
                words = f"another process holds {lock} for more than {LOCK_SECONDS:g} seconds"
                yield DoctorReport("warning", "lock", words, f"find the process: fuser {lock}")
        finally:
            os.close(handle)
    yield _check_clock(newest)


def _check_server_ledger(config: Config) -> Iterator[DoctorReport]:
    from aver.ledger.stores.urls import open_server

    try:
        store = open_server(config.ledger, create=False, timeout=config.lock_timeout)
    except NotFound as error:
        yield DoctorReport("warning", "ledger", error.message, error.advice)
        return
    try:
        yield DoctorReport("ok", "ledger", f"id {store.ledger_id} at {store.name}")
        for remark in store.check_health():
            yield DoctorReport(remark.status, remark.subject, remark.words, remark.advice)
        yield _check_damage(store, "PostgreSQL")
        yield from (DoctorReport("ok", "ledger", words) for words in store.limitations())
    finally:
        store.close()
    newest = yield from _check_tenants(config)
    yield _check_clock(newest)


def _check_damage(store: Store, software: str) -> DoctorReport:
    damage = store.find_damage()
    if damage:
        restore = "restore it from a backup; aver export saves the records that can still be read"
        return DoctorReport("problem", "ledger", f"{software} finds damage: {'; '.join(damage[:3])}", restore)
    return DoctorReport("ok", "ledger", f"{software} finds no damage; aver verify checks the records")


def _check_tenants(config: Config) -> Generator[DoctorReport, None, str]:
    """Report how much each tenant has. Returns the latest time of sealing."""
    from aver.ledger import list_tenants, open_ledger

    newest = ""
    for tenant in list_tenants(config.ledger, home=config.home):
        with open_ledger(config.ledger, tenant=tenant, home=config.home, create=False) as ledger:
            rows = ledger.store.chains(ledger.tenant)
            own = [row for row in rows if not row.frozen]
            records = sum(row.count for row in own)
            words = f"tenant {tenant}: {plural(records, 'record')} in {plural(len(own), 'chain')}"
            if len(own) < len(rows):
                words = f"{words}, and {plural(len(rows) - len(own), 'imported chain')}"
            yield DoctorReport("ok", "ledger", words)
            yield from _check_squatters(ledger)
            newest = max(newest, _latest_seal_time(ledger))
    return newest


def _check_squatters(ledger: Ledger) -> Iterator[DoctorReport]:
    """Report imports by an older Aver that have names which this ledger needs for itself."""
    from aver.ledger.imports.drop import find_squatters

    found = [row.name for row in find_squatters(ledger.store.chains(ledger.tenant))]
    if found:
        words = f"tenant {ledger.tenant}: {plural(len(found), 'imported chain')} with names of this ledger's own"
        listed = ", ".join(found[:SQUATTERS_NAMED]) + (", ..." if len(found) > SQUATTERS_NAMED else "")
        advice = f"remove that import, then import it again: aver import --drop {found[0]}"
        yield DoctorReport("problem", "ledger", f"{words}, which cannot grow: {listed}", advice)


def _format_bytes(size: float) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:
            return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"


def _latest_seal_time(ledger: Ledger) -> str:
    """When the newest record of the tenant was sealed. The clocks of other machines, in imports, say nothing here."""
    rows = [row for row in ledger.store.chains(ledger.tenant) if row.count and not row.frozen]
    last = (next(ledger.read(row.name, row.count - 1), None) for row in rows)
    return max((record.signed_at for record in last if record is not None), default="")


def _check_clock(newest: str) -> DoctorReport:
    """Compare the clock with the newest record."""
    now = datetime.now(UTC)
    if now < EARLIEST_CLOCK:
        return DoctorReport("problem", "clock", f"it shows {now:%Y-%m-%d}, which cannot be right", "set the clock")
    try:
        ahead = datetime.fromisoformat(newest) - now if newest else timedelta()
    except (ValueError, TypeError):
        ahead = timedelta()
    if ahead > CLOCK_SLACK:
        words = f"the newest record was sealed at {newest}, which is in the future"
        return DoctorReport("warning", "clock", words, "check this machine's clock")
    return DoctorReport("ok", "clock", f"{now:%Y-%m-%d %H:%M:%S} UTC, later than every record")


def _check_disk_space(config: Config) -> Iterator[DoctorReport]:
    from aver.ledger.stores.urls import is_on_server, path_from_url

    if is_on_server(config.ledger):
        return  # A server does not show how much space it has.
    try:
        place = path_from_url(config.ledger).absolute().parent
        while not place.exists() and place != place.parent:
            place = place.parent
        free = shutil.disk_usage(place).free
    except (AverError, OSError):
        return  # The check of the ledger has reported this.
    words = f"{_format_bytes(free)} free at {place}"
    if free < SPACE_PROBLEM:
        yield DoctorReport("problem", "disk", words, "free some space: appends may fail")
    elif free < SPACE_WARNING:
        yield DoctorReport("warning", "disk", words, "free some space soon")
    else:
        yield DoctorReport("ok", "disk", words)
