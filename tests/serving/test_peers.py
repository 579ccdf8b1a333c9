"""Who is calling: the user id that the kernel tells, and the clients that are permitted."""

from __future__ import annotations

import os
import signal
import socket
import sys
from pathlib import Path

import pytest

from aver.errors import BadInput
from aver.serving.peers import ClientList, Credentials, PermittedClient, read_peer_pid, read_peer_uid
from aver.serving.sockets import bind_loopback, bind_unix
from aver.serving.tokens import digest_token
from support.parts import short_directory


def accept_from(path: Path, listening: socket.socket, uid: int) -> int | None:
    """Connect as another user, and return the user id that the server is told."""
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # A child that hangs must not hang the tests.
        try:
            os.setuid(uid)
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(path))
                client.recv(1)
        finally:
            os._exit(0)
    listening.settimeout(60)  # The child may not have come so far.
    connection, _ = listening.accept()
    with connection:
        found = read_peer_uid(connection)
    os.waitpid(child, 0)
    return found


def test_the_user_behind_a_unix_socket_is_known() -> None:
    with short_directory() as directory, bind_unix(directory / "s") as listener:
        with listener.address.connect(10):
            connection, _ = listener.socket.accept()
            with connection:
                assert read_peer_uid(connection) == os.getuid()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be another user")
def test_another_user_is_told_apart() -> None:
    with short_directory() as directory, bind_unix(directory / "s", mode=0o660) as listener:
        directory.chmod(0o755)
        (directory / "s").chmod(0o666)
        assert accept_from(directory / "s", listener.socket, 4321) == 4321
        assert accept_from(directory / "s", listener.socket, 0) == 0


def test_over_tcp_nobody_is_known() -> None:
    with bind_loopback(0) as listener, listener.address.connect(10):
        connection, _ = listener.socket.accept()
        with connection:
            assert read_peer_uid(connection) is None


A, B = digest_token("a" * 40), digest_token("b" * 40)


@pytest.mark.parametrize(
    ("token", "uid", "expected"),
    [
        (b"a" * 40, 1000, "both"),
        (b"a" * 40, 1001, None),
        (b"a" * 40, None, None),
        (None, 1000, None),
        (b"b" * 40, 1000, "token"),
        (b"b" * 40, 1001, "token"),
        (b"b" * 40, None, "token"),
        (b"b" * 39, 1001, None),
        (None, 1001, "user"),
        (b"", 1001, None),
        (b"wrong", 1001, None),
        (None, None, None),
        (None, 0, None),
    ],
)
def test_a_client_is_known_by_what_its_rule_names(token: bytes | None, uid: int | None, expected: str | None) -> None:
    clients = [
        PermittedClient("both", token_sha256=A, uid=1000),
        PermittedClient("token", token_sha256=B),
        PermittedClient("user", uid=1001),
    ]
    for order in (clients, clients[::-1]):
        assert ClientList(order)(Credentials(token, uid, {})) == expected


def test_the_rule_that_names_the_user_comes_first() -> None:
    clients = [PermittedClient("any", token_sha256=A), PermittedClient("mine", token_sha256=A, uid=7)]
    for order in (clients, clients[::-1]):
        assert ClientList(order)(Credentials(b"a" * 40, 7, {})) == "mine"
        assert ClientList(order)(Credentials(b"a" * 40, 8, {})) == "any"


def test_rules_that_permit_everyone_or_nobody_are_refused() -> None:
    for wrong in (
        {},
        {"token_sha256": "a" * 40},
        {"token_sha256": A.upper()},
        {"token_sha256": A, "uid": -1},
        {"uid": 2**32 - 1},
    ):
        with pytest.raises(BadInput, match="the client x"):
            PermittedClient("x", **wrong)
    with pytest.raises(BadInput, match="tell them apart"):
        ClientList([PermittedClient("x", uid=1), PermittedClient("y", uid=1)])
    assert ClientList([])(Credentials(b"x", 0, {})) is None


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the process")
def test_the_process_behind_a_unix_socket_is_told() -> None:
    with short_directory() as directory, socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(directory / "s"))
        listening.listen()
        child = os.fork()
        if not child:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(str(directory / "s"))
                connection.recv(1)
            os._exit(0)
        accepted, _ = listening.accept()
        with accepted:
            assert read_peer_pid(accepted) == child
        os.waitpid(child, 0)


def test_over_tcp_no_process_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        with socket.create_connection(listening.getsockname()) as connection:
            accepted, _ = listening.accept()
            with accepted:
                assert read_peer_pid(accepted) is None
            assert read_peer_pid(connection) is None
