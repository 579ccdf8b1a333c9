"""The checks of `aver doctor`. Each yields reports. No check creates, migrates or repairs anything.

Trying out the hooks that are installed: each gets a canary, through the very command that its client runs. The gateway
gets one, too, and records it (`gateway_canary`).
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import sqlite3
import stat
import subprocess
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from aver import __version__
from aver.agents.registry import AGENTS, client_names, load_client, load_hook
from aver.cli.clients import build_user_environment
from aver.cli.verbs.doctor.report import DoctorReport
from aver.clock import new_id
from aver.config import Config, hide_password, load_config
from aver.errors import AverError, NotFound
from aver.files.locks import Pace, try_lock, wait_until
from aver.files.regular import open_descriptor
from aver.gate.changes import GateChange, find_newest_change
from aver.hooks.run import read_failures
from aver.hooks.selftest import canary_payload, success_message
from aver.install.hooks import installed_commands, read_hooks_state
from aver.install.mcp_server import server_commands
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
    tried = list(try_hooks())
    yield from tried
    if tried:
        yield from check_gate_rules(config)
    yield from try_servers()
    from aver.cli.verbs.doctor.proxy_canary import try_proxies

    yield from try_proxies()


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


CANARY_TIMEOUT_SECONDS = 60
"""How long a hook may take here: as long as clients wait for it."""

MAX_PARALLEL = 8
"""Canaries in the air: each mostly waits for the disk."""

WORDS_MAX = 300
"""Characters of what a hook says that are shown."""


def try_hooks() -> Iterator[DoctorReport]:
    """Test every client's hooks. Skip clients without hooks."""
    around = build_user_environment(None)
    for client in AGENTS:
        try:
            commands = list(installed_commands(load_client(client), around))
            still_to_do = [one.why for one in read_hooks_state(load_client(client), around) if one.why]
        except AverError as error:
            yield DoctorReport("problem", "hooks", f"{client}: {error.message}", error.advice)
            continue
        failures = _find_failures(client, commands)
        for event, why in failures.items():
            yield DoctorReport("problem", "hooks", f"{client} {event} does not work: {why}", f"aver install {client}")
        if commands and not failures:
            events = ", ".join(event for event, _ in commands)
            words = f"{client}: a test call passed each of {events}"
            # A canary shows that the command works. It does not see whether the client runs and heeds it.
            yield (
                DoctorReport("warning", "hooks", "; ".join([words, *still_to_do]))
                if still_to_do
                else DoctorReport("ok", "hooks", words)
            )
        elif commands:
            yield from (DoctorReport("warning", "hooks", f"{client}: {why}") for why in still_to_do)


def check_gate_rules(config: Config) -> Iterator[DoctorReport]:
    """Whether the gate has rules to decide by. A canary is judged by those that Aver brings, not by these."""
    from aver.gate.ask import load_gate
    from aver.gate.policy.canaries import CANARIES, find_passing_canaries
    from aver.hooks.settings import read_hook_settings
    from aver.ledger import open_ledger

    change = None
    try:
        with open_ledger(config.ledger, home=config.home, create=False) as ledger:
            gate = load_gate(config, "", ledger)
            change = find_newest_change(ledger)
    except NotFound:
        gate = load_gate(config, "")
    if gate.bundle is None:
        words = f"every call that a hook asks about is denied: there are no rules to decide by: {gate.trouble}"
        yield DoctorReport("problem", "gate", words, "run aver policy check")
    elif len(find_passing_canaries(gate)) == len(CANARIES):
        words = f"nobody is ever asked: under the rules in {gate.rules_at or 'force'} every harmful test action passes"
        yield DoctorReport("warning", "gate", words, "run aver policy check, and look at who wrote them")
    observing = [agent for agent in AGENTS if read_hook_settings(config, agent).mode == "observe"]
    if observing:
        words = f"mode observe for {', '.join(observing)}: decisions are sealed, and nothing is held back"
        yield DoctorReport("warning", "gate", words, "to hold back again: aver install CLIENT, or [gate] mode")
    if change is not None:
        yield _report_change(change)


def _report_change(change: GateChange) -> DoctorReport:
    """Say since when rules, settings and keys are as they are, and what changed then."""
    if change.is_first:
        return DoctorReport("ok", "gate", f"rules, settings and keys are unchanged since {change.at}")
    by = f" by {change.by}" if change.by else ""
    words = f"rules, settings or keys changed at {change.at}{by}: {change.words[:WORDS_MAX]}"
    more = [*(f"{name} passes since then" for name in change.opened), *change.loosened]
    if not more:
        return DoctorReport("ok", "gate", words)
    words = f"{words}; {'; '.join(more)[:WORDS_MAX]}"
    # A user who chose this by a command of Aver need not find out who did it.
    return (
        DoctorReport("ok", "gate", words)
        if change.by
        else DoctorReport("warning", "gate", words, "find out who changed them")
    )


SERVER_TIMEOUT_SECONDS = 30
"""How long an MCP server may take to answer for the first time."""

ANSWER_MAX = 1024 * 1024
"""Bytes of a server's first answer that are read."""

_INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "aver doctor", "version": __version__},
    },
}


def try_servers() -> Iterator[DoctorReport]:
    """Start every client's MCP server once, as the client does, and let it introduce itself."""
    around = build_user_environment(None)
    for client in map(load_client, client_names()):
        try:
            commands = server_commands(client, around)
        except AverError as error:
            yield DoctorReport("problem", "mcp", f"{client.name}: {error.message}", error.advice)
            continue
        for words, more in commands:
            why = _try_server(words, {**os.environ, **more})
            if why:
                text = f"{client.name}: the MCP server does not start: {why}"
                advice = f"aver install {client.name}, or pip install 'aver-ledger[mcp]'"
                yield DoctorReport("problem", "mcp", text, advice)
            else:
                yield DoctorReport("ok", "mcp", f"{client.name}: the MCP server starts and answers")


def _try_server(words: list[str], environment: dict[str, str]) -> str:
    """Why an MCP server does not work; empty where it answers `initialize`."""
    question = json.dumps(_INITIALIZE) + "\n"
    try:
        done = subprocess.run(
            words,
            input=question.encode(),
            capture_output=True,
            timeout=SERVER_TIMEOUT_SECONDS,
            check=False,
            cwd="/",
            env=environment,
        )
    except OSError as error:
        return f"{words[0]} cannot be run: {error.strerror}"
    except subprocess.TimeoutExpired:
        return f"it does not end within {SERVER_TIMEOUT_SECONDS} seconds after its input has ended"
    first = done.stdout[:ANSWER_MAX].split(b"\n", 1)[0]
    try:
        answer = json.loads(first)
        if answer["id"] == 1 and answer["result"]["serverInfo"]["name"]:
            return ""
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    said = done.stderr.decode("utf-8", "replace").strip()[-WORDS_MAX:]
    return f"exit code {done.returncode}, and it says: {said or 'nothing'}"


def check_unsealed_failures(home: Path) -> Iterator[DoctorReport]:
    """Failures of hooks that are remembered and not sealed."""
    try:
        left = read_failures(home)
    except OSError as error:
        yield DoctorReport("problem", "hooks", f"failures of hooks cannot be remembered: {error}", "move that away")
        return
    if left:
        newest = left[-1]
        words = f"{newest['tool']} {newest['event']} at {newest['at']}: {newest['why'][:WORDS_MAX]}"
        count = plural(len(left), "failure")
        advice = "mend the cause, if it lasts; the next hook that works seals them"
        yield DoctorReport("warning", "hooks", f"{count} of hooks, not sealed yet; {words}", advice)


def _find_failures(client: str, commands: list[tuple[str, list[str]]]) -> dict[str, str]:
    """Describe the problems of each event's hook."""
    with ThreadPoolExecutor(MAX_PARALLEL) as pool:
        troubles = pool.map(lambda one: _try_hook(client, *one), commands)
        return {event: why for (event, _), why in zip(commands, troubles, strict=True) if why}


def _try_hook(client: str, event: str, command: list[str]) -> str:
    """Why a hook does not work; empty where it does."""
    name = f"canary-{new_id()}"
    payload = json.dumps(canary_payload(name))
    words, given = ([*command, payload], "") if event == "notify" else (command, payload)
    try:
        done = subprocess.run(
            words, input=given, capture_output=True, text=True, timeout=CANARY_TIMEOUT_SECONDS, check=False, cwd="/"
        )
    except (OSError, UnicodeDecodeError) as error:
        return f"{command[-1]} cannot be run: {error}"
    except subprocess.TimeoutExpired:
        return f"it takes longer than {CANARY_TIMEOUT_SECONDS} seconds"
    if done.returncode != 0 or success_message(name) not in done.stderr:
        said = (done.stderr or done.stdout).strip()[-WORDS_MAX:]
        return f"exit code {done.returncode}, and it says: {said or 'nothing'}"
    if event in load_hook(client).gating and name not in done.stdout:
        return "the test call was not denied"
    return ""
