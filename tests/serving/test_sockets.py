"""Addresses, and sockets that listen: who may connect, what a dead server leaves behind, who may not be replaced."""

from __future__ import annotations

import os
import signal
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from aver.errors import AverError, BadInput, Refused, Unavailable
from aver.serving.sockets import (
    UNIX_PATH_MAX,
    LoopbackAddress,
    UnixAddress,
    bind_loopback,
    bind_unix,
    listen_on,
    parse_address,
)
from support.parts import short_directory


@pytest.fixture
def place() -> Iterator[Path]:
    """The path of a socket, in a directory that does not exist yet."""
    with short_directory() as directory:
        yield directory / "run" / "part.sock"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def in_child(work: Callable[[], None]) -> int:
    """Do something in a process of its own; gives its id. The process must end itself."""
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # A child that hangs must not hang the tests.
        try:
            work()
        finally:
            os._exit(1)
    return child


def is_answered(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(path)) == 0


# --- addresses


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("unix:/run/p.sock", UnixAddress(Path("/run/p.sock"))),
        ("unix:///run/p.sock", UnixAddress(Path("/run/p.sock"))),
        ("http://127.0.0.1:9001", LoopbackAddress(9001)),
        ("http://127.0.0.1:9001/", LoopbackAddress(9001)),
        ("http://localhost:9001", LoopbackAddress(9001)),
    ],
)
def test_an_address_is_read(text: str, address: UnixAddress | LoopbackAddress) -> None:
    assert parse_address(text) == address
    assert parse_address(str(address)) == address


@pytest.mark.parametrize(
    "text",
    [
        *("", "unix:", "unix:p.sock", "unix:run/p.sock", "unix:/run/\0", "unix:/" + "x" * UNIX_PATH_MAX, "/run/p.sock"),
        *("http://127.0.0.1", "http://127.0.0.1:0", "http://127.0.0.1:65536", "http://127.0.0.1:9001/path"),
        *("http://10.0.0.1:9001", "http://0.0.0.0:9001", "http://[::1]:9001", "https://127.0.0.1:9001"),
        *("http://127.0.0.1.evil.example:9001", "http://user@127.0.0.1:9001", "http://localhost:9001\n"),
        "http://127.0.0.1:\N{ARABIC-INDIC DIGIT NINE}001",
    ],
)
def test_other_addresses_are_refused(text: str) -> None:
    with pytest.raises(BadInput):
        parse_address(text)


# --- TCP


def test_tcp_listens_on_this_machine_only() -> None:
    with listen_on(LoopbackAddress(0)) as listener:
        host, port = listener.socket.getsockname()
        assert host == "127.0.0.1"
        assert listener.address == LoopbackAddress(port)
        assert listener.hosts == (f"127.0.0.1:{port}", f"localhost:{port}")
        with pytest.raises(Unavailable, match=f"cannot listen on 127.0.0.1:{port}"):
            bind_loopback(port)
    with pytest.raises(Unavailable, match="cannot listen"):
        bind_loopback(65536)


# --- Unix sockets


def test_the_socket_is_its_owners_alone(place: Path) -> None:
    before = os.umask(0)
    try:
        with listen_on(UnixAddress(place)) as listener:
            assert mode(place.parent) == 0o700
            assert mode(place) == 0o600
            assert mode(place.with_name("part.sock.lock")) == 0o600
            assert listener.hosts == ("localhost",)
            assert is_answered(place)
        assert not place.exists()
        with bind_unix(place, mode=0o660):
            assert mode(place) == 0o660
    finally:
        os.umask(before)
    with pytest.raises(BadInput, match="0600 or 0660"):
        bind_unix(place, mode=0o666)


def test_a_living_server_is_not_replaced(place: Path) -> None:
    with bind_unix(place) as first:
        with pytest.raises(Unavailable, match=r"another server.* listens on .*part\.sock") as caught:
            bind_unix(place)
        assert caught.value.advice
        assert is_answered(place)
        first.close()
        assert not place.exists()
    with bind_unix(place):  # The place is free at once, and closing twice did no harm.
        assert is_answered(place)


def test_the_server_that_runs_is_named(place: Path) -> None:
    with bind_unix(place), pytest.raises(Unavailable) as caught:
        bind_unix(place)
    if os.path.exists("/proc/locks"):
        assert f"process {os.getpid()}," in caught.value.message


def test_a_server_without_our_lock_is_not_replaced_either(place: Path) -> None:
    place.parent.mkdir(mode=0o700)
    for backlog in (8, 0):
        with socket.socket(socket.AF_UNIX) as foreign, socket.socket(socket.AF_UNIX) as waiting:
            foreign.bind(str(place))
            foreign.listen(backlog)
            waiting.setblocking(False)
            waiting.connect_ex(str(place))  # With a backlog of 0, it is full from now on.
            with pytest.raises(Unavailable, match="another server listens"):
                bind_unix(place)
        place.unlink()


def test_the_socket_of_a_dead_server_is_replaced(place: Path) -> None:
    ready, told = os.pipe()

    def serve() -> None:
        with bind_unix(place):
            os.write(told, b".")
            signal.pause()

    child = in_child(serve)
    os.read(ready, 1)
    with pytest.raises(Unavailable):
        bind_unix(place)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert place.exists()
    assert not is_answered(place)
    with bind_unix(place):
        assert is_answered(place)
    os.close(ready)
    os.close(told)


@pytest.mark.more
def test_of_many_that_start_together_one_serves(place: Path) -> None:
    """Also over a leftover: no second one removes the socket of the first."""
    place.parent.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(place))
    results, told = os.pipe()
    hold, go = os.pipe()

    def compete() -> None:
        os.close(go)
        listener = None
        try:
            listener = bind_unix(place)
        except Unavailable:
            pass
        os.write(told, b"n" if listener is None else b"y")
        os.read(hold, 1)  # Until all have tried.

    children = [in_child(compete) for _ in range(8)]
    answers = b"".join(os.read(results, 1) for _ in children)
    assert sorted(answers) == sorted(b"y" + 7 * b"n")
    assert is_answered(place)
    os.close(go)
    for child in children:
        os.waitpid(child, 0)
    for handle in (results, told, hold):
        os.close(handle)


@pytest.mark.parametrize("obstacle", ["file", "directory", "link", "dangling link"])
def test_what_is_no_socket_is_left_alone(place: Path, obstacle: str) -> None:
    place.parent.mkdir(mode=0o700)
    if obstacle == "file":
        place.write_text("mine")
    elif obstacle == "directory":
        place.mkdir()
    else:
        place.symlink_to("/etc/hostname" if obstacle == "link" else place.with_name("elsewhere"))
    before = os.lstat(place)
    with pytest.raises(Refused, match="is not a socket"):
        bind_unix(place)
    assert os.lstat(place) == before
    assert not place.with_name("elsewhere").exists()


def test_a_directory_that_others_can_write_is_refused(place: Path) -> None:
    place.parent.mkdir()
    place.parent.chmod(0o777)
    with pytest.raises(Refused, match="can be written by others"):
        bind_unix(place)
    assert list(place.parent.iterdir()) == []


def test_a_failed_start_leaves_the_place_free(place: Path) -> None:
    """The lock goes with the error; otherwise the second try would name a server that does not run."""
    place.parent.mkdir(mode=0o700)
    place.write_text("mine")
    with pytest.raises(Refused):
        bind_unix(place)
    place.unlink()
    with bind_unix(place):
        assert is_answered(place)


def test_a_socket_that_is_not_ours_any_more_stays(place: Path) -> None:
    first = bind_unix(place)
    place.unlink()
    with socket.socket(socket.AF_UNIX) as foreign:
        foreign.bind(str(place))
        first.close()
        assert place.exists()


def test_a_path_that_is_too_long_is_told(place: Path) -> None:
    with pytest.raises(BadInput, match="longer than"):
        bind_unix(place.with_name("x" * 100))
    with pytest.raises(BadInput, match="full path"):
        bind_unix(Path("part.sock"))


def test_a_directory_that_cannot_be_made_is_told(place: Path) -> None:
    place.parent.write_text("a file")
    with pytest.raises(AverError, match="cannot listen on"):
        bind_unix(place)


def test_a_client_waits_while_the_backlog_is_full(place: Path) -> None:
    place.parent.mkdir()
    with socket.socket(socket.AF_UNIX) as busy, socket.socket(socket.AF_UNIX) as waiting:
        busy.bind(str(place))
        busy.listen(0)
        waiting.connect(str(place))
        with pytest.raises(TimeoutError):
            UnixAddress(place).connect(0.05)
