"""Addresses of Aver's servers, and sockets that listen at them: Unix sockets, and TCP on this machine only.

An address is written as

    unix:/home/ada/.aver/gateway/run/policy0.sock
    http://127.0.0.1:9001

A Unix socket is a file. The server makes its directory (0700), and gives the file the mode 0600, or 0660 for clients of
the same group. A server that was killed leaves its file behind, and the next one must replace the file without taking
the place of a server that still runs:

1. The server locks `<file>.lock` for as long as it listens. The kernel drops the lock of a process that dies.
2. If the lock is held, a server runs here: `Unavailable`.
3. With the lock, an existing file is a leftover, unless another program listens there without our lock. So the server
   tries to connect, and removes the file only if nobody answers.
4. Nobody can connect between `bind` and `listen`. In between, the server sets the mode of the file.
"""

from __future__ import annotations

import errno
import os
import re
import socket
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from aver.errors import BadInput, Refused, Unavailable
from aver.fast_dataclass import dataclass
from aver.files.atomic import make_directory
from aver.files.locks import Pace, find_lock_holder, open_lock_file, try_lock, wait_until
from aver.files.regular import require_safe_directory
from aver.lazy_pattern import lazy_pattern
from aver.log import debug

HOST = "127.0.0.1"
"""The only TCP address at which Aver listens, and the only one that its clients connect to."""

HOST_6 = "::1"
"""The other local address. A browser may take either of them for `localhost`."""

PORT_MAX = 65535

PAIR_ATTEMPTS = 20
"""How often a free port is looked for that is free at both local addresses."""

_NO_SUCH_ADDRESS = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})
"""The errors of a machine without IPv6."""

_LOOPBACK = lazy_pattern(r"http://(?:127\.0\.0\.1|localhost):([1-9][0-9]{0,4})/?", re.ASCII)

UNIX_PATH_MAX = 103
"""Longest path of a Unix socket, in bytes. The kernel's field has 104 on macOS and 108 on Linux, with a final zero."""

UNIX_MODES = (0o600, 0o660)
"""The owner alone, or the owner's group as well."""

BACKLOG = 128
"""Connections that the kernel keeps until the server accepts them."""

_BACKLOG_PACE = Pace(0.002, 0.05)


@dataclass(frozen=True, slots=True)
class UnixAddress:
    """A Unix socket, by its absolute path."""

    path: Path

    def __str__(self) -> str:
        return f"unix:{self.path}"

    @property
    def hosts(self) -> tuple[str, ...]:
        """The values of `Host` in requests to this address."""
        return ("localhost",)

    def connect(self, timeout: float) -> socket.socket:
        """Connect a socket. Raises `OSError`."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(timeout)
        answer = 0

        def is_settled() -> bool:
            nonlocal answer
            answer = connection.connect_ex(os.fspath(self.path))
            return answer != errno.EAGAIN

        # Linux does not wait for a server whose backlog is full, so the client tries again.
        if not wait_until(is_settled, timeout, _BACKLOG_PACE):
            answer = errno.ETIMEDOUT
        if answer:
            connection.close()
            raise OSError(answer, os.strerror(answer))
        return connection


@dataclass(frozen=True, slots=True)
class LoopbackAddress:
    """A TCP port of this machine."""

    port: int

    def __str__(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def hosts(self) -> tuple[str, ...]:
        return (f"{HOST}:{self.port}", f"localhost:{self.port}")

    def connect(self, timeout: float) -> socket.socket:
        """Connect a socket. Raises `OSError`."""
        connection = socket.create_connection((HOST, self.port), timeout=timeout)
        # A request is written at once; without this, the kernel may hold back its last packet.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection


PartAddress = UnixAddress | LoopbackAddress


def parse_address(text: str) -> PartAddress:
    """Read an address as the module's docstring shows it. `BadInput` for any other, and for other machines."""
    if text.startswith("unix:"):
        return UnixAddress(_check_unix_path(Path(text.removeprefix("unix:").removeprefix("//"))))
    match = _LOOPBACK.fullmatch(text)
    if match is None or int(match[1]) > PORT_MAX:
        raise BadInput(
            f"{ascii(text)[:120]} is not the address of a server on this machine",
            advice=f"use unix:/PATH or http://{HOST}:PORT",
        )
    return LoopbackAddress(int(match[1]))


def _check_unix_path(path: Path) -> Path:
    if not path.is_absolute() or "\0" in str(path):
        raise BadInput(f"{ascii(str(path))[:120]} is not the full path of a socket", advice="use unix:/PATH")
    if len(os.fsencode(path)) > UNIX_PATH_MAX:
        raise BadInput(
            f"the path of the socket {path} is longer than {UNIX_PATH_MAX} bytes",
            advice="choose a shorter directory, for example by AVER_HOME",
        )
    return path


class Listener:
    """A socket that listens. Closing it also removes the file of a Unix socket."""

    def __init__(
        self, listening: socket.socket, address: PartAddress, release: Callable[[], None] | None = None
    ) -> None:
        self.socket = listening
        self.address = address
        self._release = release

    @property
    def hosts(self) -> tuple[str, ...]:
        """The values of `Host` in requests to this socket."""
        return self.address.hosts

    def close(self) -> None:
        """Stop listening. Closing again does nothing."""
        release, self._release = self._release, None
        if release is not None:
            release()  # Before the socket is closed: until then nobody takes the file for a leftover.
        self.socket.close()

    def __enter__(self) -> Listener:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def listen_on(address: PartAddress, *, mode: int = 0o600) -> Listener:
    """Listen at an address. `mode` is that of a Unix socket's file. Raises as the functions below."""
    return bind_unix(address.path, mode=mode) if isinstance(address, UnixAddress) else bind_loopback(address.port)


def bind_loopback(port: int) -> Listener:
    """Listen on the local TCP address. Port 0 selects a free port. Raise `Unavailable` if the port is in use."""
    try:
        listening = socket.create_server((HOST, port), backlog=BACKLOG)
    except (OSError, OverflowError) as error:
        words = error.strerror if isinstance(error, OSError) else f"a port is at most {PORT_MAX}"
        raise Unavailable(f"cannot listen on {HOST}:{port}: {words}", advice="choose another --port") from error
    return Listener(listening, LoopbackAddress(listening.getsockname()[1]))


def bind_loopback_pair(port: int) -> list[Listener]:
    """Listen on both local addresses, 127.0.0.1 and ::1, at the same port, or on none. Port 0 selects a free port.

    `localhost` can mean either address. A program that held the other one would get what a browser sends there, such
    as a token. So this raises `Unavailable` if one is in use. A machine without IPv6 has only the first.
    """
    attempts = 1 if port else PAIR_ATTEMPTS
    while True:
        attempts -= 1
        first = bind_loopback(port)
        chosen = first.socket.getsockname()[1]
        try:
            second = socket.create_server((HOST_6, chosen), family=socket.AF_INET6, backlog=BACKLOG)
        except OSError as error:
            if error.errno in _NO_SUCH_ADDRESS:
                debug("serving", "this machine has no address %s", HOST_6)
                return [first]
            first.close()
            if attempts == 0:
                words = f"cannot listen on [{HOST_6}]:{chosen}: {error.strerror}"
                raise Unavailable(words, advice="choose another --port") from error
        else:
            return [first, Listener(second, first.address)]


def bind_unix(path: Path, *, mode: int = 0o600) -> Listener:
    """Listen on a Unix socket, and make its directory if need be.

    Raises `Unavailable` if another server listens there, and `Refused` if the directory can be written by others.
    """
    _check_unix_path(path)
    if mode not in UNIX_MODES:
        raise BadInput(f"the mode of a socket is 0600 or 0660, not {mode:04o}")
    try:
        make_directory(path.parent)
        require_safe_directory(path.parent)
        # Step 1. The lock file stays when the server ends: removing it would let two servers lock two files.
        lock = open_lock_file(path.with_name(f"{path.name}.lock"))
    except OSError as error:
        raise Unavailable(f"cannot listen on {path}: {error.strerror}") from error
    try:
        if not try_lock(lock):  # Step 2.
            holder = find_lock_holder(lock)
            raise _server_runs_error(path, "" if holder is None else f", process {holder},")
        _remove_leftover(path)
        listening = _bind(path, mode)
    except OSError as error:
        os.close(lock)
        raise Unavailable(f"cannot listen on {path}: {error.strerror}") from error
    except BaseException:
        os.close(lock)
        raise
    own = os.lstat(path)

    def release() -> None:
        # Another program may have put its own socket here, although it could not have our lock.
        with suppress(OSError):
            there = os.lstat(path)
            if (there.st_dev, there.st_ino) == (own.st_dev, own.st_ino):
                os.unlink(path)
        os.close(lock)

    return Listener(listening, UnixAddress(path), release)


def _remove_leftover(path: Path) -> None:
    """Step 3. The caller holds the lock. Raises `OSError`, `Refused` or `Unavailable`."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(status.st_mode):
        raise Refused("UNSAFE_FILE", f"{path} is in the way: it is not a socket", advice="look at it and move it away")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        answer = probe.connect_ex(os.fspath(path))
    # EAGAIN: the server is alive, and its backlog is full.
    if answer in (0, errno.EAGAIN, errno.EINPROGRESS):
        raise _server_runs_error(path, "")
    if answer not in (errno.ECONNREFUSED, errno.ENOENT):
        raise OSError(answer, os.strerror(answer))
    debug("serving", "removed the socket that a server left behind: %s", path)
    path.unlink(missing_ok=True)


def _bind(path: Path, mode: int) -> socket.socket:
    """Step 4. Raises `OSError`."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listening.bind(os.fspath(path))
        os.chmod(path, mode)
        listening.listen(BACKLOG)
    except BaseException:
        listening.close()
        raise
    return listening


def _server_runs_error(path: Path, who: str) -> Unavailable:
    return Unavailable(
        f"another server{who} listens on {path}", advice="stop it first, or give this one another socket"
    )
