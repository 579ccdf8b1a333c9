"""The process of a client, the session that it runs, and the proxies that it has started.

A client starts hooks and MCP servers as children. So a hook and a proxy find the client among the processes above them.
They leave each other notes in `AVER_HOME/gateway/clients/`, named by the client's process, which is its id and the time
of its start in ticks of the kernel:

    4711-89120.json                       the session: {"v": 1, "agent": "claude-code", "session": "5d2e4c1a-…"}
    4711-89120.4800.proxy                 a proxy, by its own process: {"v": 1, "name": "files"}; locked while it lives

A hook writes the first at each event of a new session. The proxy reads it at each call, and so joins the session of its
client: the gate knows what the client's other tools have done. The proxy holds the lock on the second. The kernel drops
the lock when the proxy ends, however it ends, so a note that is not locked says nothing.

A hook leaves an MCP call to a proxy only if a living proxy of the server's name was started by the same client. In
every other case the hook judges the call itself.

Processes are read from `/proc`. Where there is none, there are no notes: hooks judge all calls, and each proxy has a
session of its own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aver.errors import AverError
from aver.fast_dataclass import NamedTuple

NOTE_MAX = 4096
"""Most bytes of a note. It holds a few short texts."""

LEVELS_MAX = 16
"""Processes above a hook or a proxy that are looked at. Shells and starters are a few."""

NOTES_MAX = 1000
"""Notes beyond which those of ended clients are deleted."""

PROXY_SUFFIX = ".proxy"

_PARENT, _START = 1, 19
"""Places of the parent and the time of the start in `/proc/<pid>/stat`, counted after the program's name."""


class ClientProcess(NamedTuple):
    """A process of a client: its id, and when it was started. Ids are given again; both together are not."""

    pid: int
    started: int

    @property
    def label(self) -> str:
        return f"{self.pid}-{self.started}"


class NotedSession(NamedTuple):
    """The session that a client's process runs."""

    agent: str
    session: str


def find_client(words: str, script: str = "") -> ClientProcess | None:
    """Return the client above this process; None where it cannot be told.

    Shells that only run this command are passed over. They have its `words` in their own command line, or the file
    `script`, which has the command in it.
    """
    pid = os.getppid()
    for _ in range(LEVELS_MAX):
        if pid <= 1:
            return None
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            process, parent = _read_process(pid)
        except (OSError, ValueError):
            return None
        is_starter = words in line or (bool(script) and line.rstrip().endswith(f"/{script}"))
        if not is_starter:
            return process
        pid = parent
    return None


def _read_process(pid: int) -> tuple[ClientProcess, int]:
    """Return a process, and the id of its parent. Raises `OSError` or `ValueError` where there is none."""
    # The program's name stands in brackets, and may have any characters in it.
    fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    try:
        return ClientProcess(pid, int(fields[_START])), int(fields[_PARENT])
    except IndexError:
        raise ValueError("the process has ended") from None


def is_alive(process: ClientProcess) -> bool:
    try:
        return _read_process(process.pid)[0] == process
    except (OSError, ValueError):
        return False


# --- the session of a client


def note_session(home: Path, client: ClientProcess, agent: str, session: str) -> None:
    """Write down which session a client runs, unless that is known."""
    found = NotedSession(agent, session)
    if read_session(home, client) == found:
        return
    directory = _directory(home)
    for each in (directory.parent, directory):
        each.mkdir(mode=0o700, exist_ok=True)
    _sweep(directory)
    # Not by `files.atomic`, whose modules a hook need not load: a note that a power cut takes away is written again.
    new = directory / f"{client.label}.{os.getpid()}.new"
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.write(handle, _dump({"v": 1, "agent": agent, "session": session}))
    finally:
        os.close(handle)
    os.replace(new, directory / f"{client.label}.json")


def read_session(home: Path, client: ClientProcess) -> NotedSession | None:
    """Return the session of a client; None where no hook has told it."""
    note = _read_note(_directory(home) / f"{client.label}.json")
    agent, session = note.get("agent"), note.get("session")
    return NotedSession(agent, session) if isinstance(agent, str) and isinstance(session, str) and session else None


# --- the proxies of a client


class ProxyNote:
    """The note of a living proxy. It lasts as long as the process, or until `close`."""

    def __init__(self, home: Path, client: ClientProcess, name: str) -> None:
        """Write the note and lock it. Raises `OSError` or `AverError` where that is not possible."""
        from aver.config import ensure_home
        from aver.files.atomic import make_directory
        from aver.files.locks import lock, open_lock_file

        ensure_home(home)
        make_directory(_directory(home))
        self._path = _directory(home) / f"{client.label}.{os.getpid()}{PROXY_SUFFIX}"
        self._handle = open_lock_file(self._path)
        # Written under the lock: a reader that finds the lock held finds the whole note, or none.
        lock(self._handle, timeout=NOTE_SECONDS)
        os.ftruncate(self._handle, 0)
        os.pwrite(self._handle, _dump({"v": 1, "name": name}), 0)

    def close(self) -> None:
        self._path.unlink(missing_ok=True)
        os.close(self._handle)


NOTE_SECONDS = 5.0
"""How long a proxy waits for the lock on its own note, at which a hook may be looking just then."""


def is_behind_proxy(home: Path, client: ClientProcess, tool: str) -> bool:
    """Whether a living proxy of the tool's server was started by this client. `tool` is `mcp__<server>__<tool>`."""
    from aver.files.locks import try_lock, unlock
    from aver.files.regular import open_descriptor

    for path in _list_notes(_directory(home), f"{client.label}."):
        if not path.name.endswith(PROXY_SUFFIX):
            continue
        prefix = f"mcp__{spell_server(str(_read_note(path).get('name') or ''))}__"
        # The tool `mcp__a__b__c` may be of the server `a` or of `a__b`. Then the hook judges.
        if not tool.startswith(prefix) or "__" in tool.removeprefix(prefix):
            continue
        try:
            handle = open_descriptor(path, os.O_RDWR, follow=False)
        except OSError:
            continue
        try:
            if not try_lock(handle):
                return True
            unlock(handle)
        finally:
            os.close(handle)
    return False


def spell_server(name: str) -> str:
    """Return a server's name as clients spell it in the names of tools."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)


# --- notes as files


def _directory(home: Path) -> Path:
    return home / "gateway" / "clients"


def _dump(note: dict[str, Any]) -> bytes:
    import json

    return json.dumps(note).encode("ascii")


def _read_note(path: Path) -> dict[str, Any]:
    """Read a note; empty where there is none, or where it is not one of this user alone."""
    from aver.capsule.json_reader import read_json
    from aver.files.regular import read_private_file

    try:
        raw = read_private_file(path, limit=NOTE_MAX)
        found = None if raw is None else read_json(raw)
    except (AverError, OSError):
        return {}
    return found if isinstance(found, dict) and found.get("v") == 1 else {}


def _list_notes(directory: Path, beginning: str = "") -> Iterator[Path]:
    try:
        names = sorted(os.listdir(directory))
    except OSError:
        return
    yield from (directory / name for name in names if name.startswith(beginning))


def _sweep(directory: Path) -> None:
    """Delete the notes of clients that have ended, where there are many notes."""
    notes = list(_list_notes(directory))
    if len(notes) < NOTES_MAX:
        return
    for path in notes:
        found = re.match(r"([0-9]+)-([0-9]+)\.", path.name)
        if found is not None and not is_alive(ClientProcess(int(found[1]), int(found[2]))):
            path.unlink(missing_ok=True)
