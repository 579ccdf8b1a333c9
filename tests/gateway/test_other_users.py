"""A part that another user runs, and users who reach for parts that are not theirs. Only root can try this.

The other user is `nobody`. A forked child becomes that user, after this process has loaded all modules: the other user
may not be allowed to read them.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from aver.errors import Unavailable
from aver.gateway.parts.part_directories import LINK_TOKEN
from aver.gateway.parts.part_services import build_policy_part
from aver.gateway.settings import read_gateway_settings
from aver.serving.part_client import PartClient
from aver.serving.part_server import serve_until_signal
from aver.serving.sockets import UnixAddress, bind_unix
from aver.serving.tokens import read_token
from support.acts import open_office
from support.apart import ALL, Town, open_town, write
from support.parts import head_of, read_all, status_of

pytestmark = [
    pytest.mark.more,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user"),
]

NOBODY = 65534


@contextmanager
def acting_as_nobody(act: Callable[[], None], *, group: int = NOBODY) -> Iterator[int]:
    """Run a function in a child of another user. Gives the child's number; the child is ended at last."""
    child = os.fork()
    if not child:
        try:
            os.setgroups([])
            os.setresgid(group, group, group)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            act()
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
            os._exit(1)
        os._exit(0)
    try:
        yield child
    finally:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(child, 0)


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    with open_town() as opened:
        opened.start(*ALL)
        yield opened


def hand_over(path: Path) -> None:
    """Give a directory and all in it to the other user."""
    for each in (path, *path.rglob("*")):
        os.chown(each, NOBODY, NOBODY)


def test_a_policy_server_of_another_user_decides_for_the_gateway_alone(town: Town, tmp_path: Path) -> None:
    with open_office(tmp_path / "warm") as office:  # Loads all that deciding needs.
        assert office.write()["reason_code"] == "ALLOW"
    place = town.home.parent / "theirs"
    place.mkdir()
    shutil.copytree(town.directories.of("policy1"), place / "part")
    (place / "run").mkdir(mode=0o755)
    town.home.parent.chmod(0o755)
    hand_over(place)
    path = place / "run" / "policy1.sock"
    address = UnixAddress(path)
    token = read_token(town.directories.of("policy1") / LINK_TOKEN)

    def serve() -> None:
        server = build_policy_part(place / "part", 1, address, peer_uid=0)
        serve_until_signal(server, [bind_unix(path, mode=0o600)])

    def call() -> None:
        """Another program of the same user, with the token: it is not the gateway."""
        with pytest.raises(Unavailable, match="401"):
            PartClient(address, token, 10, part="policy1").get("/health")

    with acting_as_nobody(serve) as server:
        while True:
            assert os.waitpid(server, os.WNOHANG) == (0, 0)
            with suppress(Unavailable):
                assert PartClient(address, token, 10, part="policy1").get("/health")["part"] == "policy1"
                break
            time.sleep(0.02)
        with acting_as_nobody(call) as stranger:
            assert os.waitpid(stranger, 0)[1] == 0
        settings = read_gateway_settings(town.ledger.config)
        assert settings.policy1 == ""
        with town.open(session="apart", policy1=str(path)) as gateway:
            assert gateway.act(write())["reason_code"] == "ALLOW"
            assert town.ledger.verify().status == "verified"


@pytest.mark.parametrize("part", ALL)
def test_another_user_reaches_no_part(town: Town, part: str) -> None:
    path = town.home / "gateway" / "run" / f"{part}.sock"
    town.home.parent.chmod(0o755)

    def connect() -> None:
        with pytest.raises(PermissionError), socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(path))
        for name in (town.directories.of(part) / LINK_TOKEN, town.directories.of("gateway") / f"{part}.token"):
            with pytest.raises(PermissionError):
                name.read_bytes()

    with acting_as_nobody(connect) as child:
        assert os.waitpid(child, 0)[1] == 0


def test_a_group_that_may_connect_still_needs_the_right_user(town: Town) -> None:
    """With `--group`, users of the group reach the socket. The token alone does not let them in."""
    run = town.home.parent / "shared"
    run.mkdir(mode=0o750)
    town.home.parent.chmod(0o755)
    path = run / "policy0.sock"
    address = UnixAddress(path)
    token = read_token(town.directories.of("policy0") / LINK_TOKEN)
    server = build_policy_part(town.directories.of("policy0"), 0, address, peer_uid=None)
    listener = bind_unix(path, mode=0o660)

    import threading

    thread = threading.Thread(target=server.serve, args=([listener],))

    def call() -> None:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(path))
            connection.sendall(head_of(address, "GET", "/health", Authorization=f"Bearer {token}"))
            connection.shutdown(socket.SHUT_WR)
            assert status_of(read_all(connection)) == 401

    # The child is made before the thread: a thread may hold a lock that the child would wait for.
    ready, go = os.pipe()

    def wait_and_call() -> None:
        os.read(ready, 1)
        call()

    with acting_as_nobody(wait_and_call, group=0) as child:
        thread.start()
        os.write(go, b"x")
        try:
            assert os.waitpid(child, 0)[1] == 0
            assert PartClient(address, token, 10, part="policy0").get("/health")["part"] == "policy0"
        finally:
            server.stop()
            thread.join()
