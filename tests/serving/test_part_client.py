"""The client of a part: every failure is told in one form, and no request is ever sent twice."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from aver.errors import BadInput, NotCanonical, Unavailable
from aver.serving import part_client
from aver.serving.part_client import PartUnavailable
from aver.serving.part_server import PartCall, ServerLimits
from aver.serving.sockets import LoopbackAddress, UnixAddress, bind_loopback, bind_unix
from aver.serving.wire import WireLimits
from support.parts import PATIENCE, answering, client_of, read_request, serving, serving_part, short_directory

OK = b'HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n{"ok": true}'


def failure_of(address: UnixAddress | LoopbackAddress, *, timeout: float = 30, **options: Any) -> PartUnavailable:
    """Make a call that must fail."""
    with pytest.raises(PartUnavailable) as caught:
        client_of(address, timeout=timeout, **options).post("/x", {})
    error = caught.value
    assert isinstance(error, Unavailable)
    assert (error.part, error.address) == ("the part", str(address))
    assert error.message.startswith(f"the part at {address} ")
    assert error.advice
    return error


# --- what can fail


def test_a_part_that_does_not_run() -> None:
    with short_directory() as directory:
        for address in (UnixAddress(directory / "none"), UnixAddress(directory / "dead")):
            if address.path.name == "dead":
                with socket.socket(socket.AF_UNIX) as dead:
                    dead.bind(str(address.path))
            error = failure_of(address)
            assert "does not run" in error.message
            assert not error.may_have_arrived
    with bind_loopback(0) as listener:
        pass
    error = failure_of(listener.address)
    assert ("does not run" in error.message, error.may_have_arrived) == (True, False)


def test_a_part_that_is_too_slow() -> None:
    go = threading.Event()

    def wait(connection: socket.socket) -> None:
        read_request(connection)
        go.wait(PATIENCE)

    with answering(wait) as address:
        error = failure_of(address, timeout=0.5)
        assert "no answer within 0.5 seconds" in error.message
        assert error.may_have_arrived
        go.set()


def test_an_answer_that_trickles_is_too_slow_as_a_whole() -> None:
    def trickle(connection: socket.socket) -> None:
        read_request(connection)
        for byte in OK:
            connection.sendall(bytes([byte]))
            time.sleep(0.02)

    with answering(trickle) as address:
        assert "no answer within" in failure_of(address, timeout=0.2).message


def test_a_part_that_does_not_read_is_too_slow() -> None:
    go = threading.Event()
    with answering(lambda connection: go.wait(PATIENCE) and None) as address:
        with pytest.raises(PartUnavailable, match="no answer within") as caught:
            client_of(address, timeout=2).post("/x", {"much": "x" * 10_000_000})
        assert caught.value.may_have_arrived
        go.set()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"", "closed|cannot be reached|not HTTP"),
        (b"nonsense\r\n\r\n", "not HTTP/1.1"),
        (b"\x16\x03\x01\x02\x00" * 10, "not HTTP/1.1"),
        (OK[:-1], "not HTTP/1.1"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b'{"a"', "cannot be read"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", "not HTTP/1.1"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "cannot be read"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]", "not an object"),
        (b'HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n{"a":1,"a":2}', "occurs twice"),
        (b'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"a":NaN}', "NaN"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", "status 204"),
        (b"HTTP/1.1 301 Moved\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", "status 301"),
        (b"HTTP/1.1 500 Oops\r\nContent-Length: 6\r\n\r\n\x1b[31m\n", r"status 500: \\x1b\[31m"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000, "not HTTP/1.1"),
        (b"HTTP/1.1 200 OK\r\nno colon " + b"x" * 10_000 + b"\r\n\r\n", "not HTTP/1.1"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n" + b" " * 2000, "more than 1000 bytes"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b" " * 2000, "more than 1000 bytes"),
    ],
)
def test_an_answer_that_cannot_be_used(answer: bytes, words: str) -> None:
    def say(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(answer)

    with answering(say) as address, pytest.raises(PartUnavailable, match=words) as caught:
        client_of(address, answer_max=1000).post("/x", {})
    assert caught.value.may_have_arrived
    assert caught.value.message.isprintable()
    assert len(caught.value.message) < 600


def test_a_request_that_cannot_be_written_is_the_callers_fault() -> None:
    with serving_part() as address:
        client = client_of(address)
        with pytest.raises(NotCanonical):
            client.post("/echo", {"a": float("nan")})
        for path, headers in (("/e cho", {}), ("/x\r\n", {}), ("/é", {}), ("/echo", {"Aver-Session": "a\r\nb"})):
            with pytest.raises(BadInput, match="HTTP does not allow"):
                client.post(path, {}, headers)
        assert client.post("/echo", {}) == {"got": {}}


def test_the_token_is_in_no_message() -> None:
    def echo_the_request(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nbad header\r\n\r\n")

    with answering(echo_the_request) as address:
        assert "tttt" not in str(failure_of(address))


# --- connections


def count_connections(answer: Callable[[socket.socket], None]) -> tuple[list[int], Callable[[socket.socket], None]]:
    seen: list[int] = []

    def count(connection: socket.socket) -> None:
        seen.append(1)
        answer(connection)

    return seen, count


def test_a_connection_is_used_again() -> None:
    peers: list[Any] = []

    def answer(connection: socket.socket) -> None:
        while request := read_request(connection):
            peers.append(request)
            connection.sendall(OK)

    seen, count = count_connections(answer)
    with answering(count) as address:
        client = client_of(address)
        for _ in range(20):
            assert client.post("/x", {}) == {"ok": True}
        client.close()
    assert (len(seen), len(peers)) == (1, 20)


def test_an_old_connection_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(OK)

    seen, count = count_connections(answer)
    monkeypatch.setattr(part_client, "REUSE_SECONDS", 0.0)
    with answering(count) as address:
        client = client_of(address)
        for _ in range(3):
            assert client.post("/x", {}) == {"ok": True}
    assert len(seen) == 3


@pytest.mark.parametrize("tcp", [False, True])
def test_a_restarted_part_is_found_again(tcp: bool) -> None:
    """The connection to the old one is closed, and the client sees that before it sends anything."""
    routes = {("POST", "/echo"): lambda call: {"got": call.document}}
    with short_directory() as directory:
        listener = bind_loopback(0) if tcp else bind_unix(directory / "s")
        address = listener.address
        client = client_of(address)
        with serving(routes, listener):
            assert client.post("/echo", {"n": 1}) == {"got": {"n": 1}}
        error = None
        with pytest.raises(PartUnavailable, match="does not run") as caught:
            client.post("/echo", {"n": 2})
        error = caught.value
        assert not error.may_have_arrived
        again = bind_loopback(address.port) if isinstance(address, LoopbackAddress) else bind_unix(address.path)
        with serving(routes, again):
            assert client.post("/echo", {"n": 3}) == {"got": {"n": 3}}


def test_an_idle_connection_that_the_part_closed_costs_nothing() -> None:
    limits = ServerLimits(wire=WireLimits(idle_seconds=0.05))
    with serving_part(limits=limits) as address:
        client = client_of(address)
        for number in range(5):
            assert client.post("/echo", {"n": number}) == {"got": {"n": number}}
            [kept] = client._idle
            assert kept.socket.recv(1) == b"", "by now the part has closed it"


@pytest.mark.parametrize("fresh", [True, False])
def test_a_request_that_may_have_arrived_is_never_sent_again(fresh: bool) -> None:
    """The part reads the whole request, and goes away without a word."""
    requests: list[bytes] = []

    def answer(connection: socket.socket) -> None:
        if not fresh:
            read_request(connection)
            connection.sendall(OK)
        requests.append(read_request(connection))

    with answering(answer) as address:
        client = client_of(address)
        if not fresh:
            assert client.post("/first", {}) == {"ok": True}
        with pytest.raises(PartUnavailable) as caught:
            client.post("/once", {})
        assert caught.value.may_have_arrived
    assert len(requests) == 1
    assert requests[0].startswith(b"POST /once ")


def test_a_connection_that_breaks_before_the_first_byte_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """The part closes the connection between the client's look and its first byte: nothing can have arrived."""
    requests: list[bytes] = []

    def answer(connection: socket.socket) -> None:
        requests.append(read_request(connection))
        connection.sendall(OK)

    monkeypatch.setattr(part_client._ClientConnection, "is_quiet", lambda self: True)
    with answering(answer) as address:
        client = client_of(address)
        for number in range(3):
            assert client.post(f"/{number}", {}) == {"ok": True}
            [kept] = client._idle
            assert kept.socket.recv(1) == b"", "by now the part has closed it"
    assert [request.split()[1] for request in requests] == [b"/0", b"/1", b"/2"]


def test_a_connection_that_breaks_within_the_request_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    accepted: list[int] = []

    def answer(connection: socket.socket) -> None:
        accepted.append(1)
        if len(accepted) == 1:
            read_request(connection)
            connection.sendall(OK)
            connection.recv(1000)  # The beginning of the second request, and no more.

    with answering(answer) as address:
        client = client_of(address)
        assert client.post("/first", {}) == {"ok": True}
        with pytest.raises(PartUnavailable, match="cannot be reached") as caught:
            client.post("/second", {"much": "x" * 10_000_000})
        assert caught.value.may_have_arrived
    assert accepted == [1]


@pytest.mark.parametrize("extra", [OK, b"x"])
def test_bytes_that_nobody_asked_for_are_no_answer(extra: bytes) -> None:
    """A second answer to one request must not become the answer to the next one."""

    def answer(connection: socket.socket) -> None:
        request = read_request(connection)
        number = request.split()[1][1:]
        body = b'{"n": %s}' % number
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body) + extra)
        connection.recv(1)

    with answering(answer) as address:
        client = client_of(address)
        for number in range(3):
            assert client.post(f"/{number}", {}) == {"n": number}


def test_an_answer_that_comes_too_late_is_not_the_next_ones() -> None:
    go = threading.Event()

    def answer(connection: socket.socket) -> None:
        while request := read_request(connection):
            if request.startswith(b"POST /slow "):
                go.wait(PATIENCE)
            body = b'{"path":"%s"}' % request.split()[1]
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    with answering(answer) as address:
        client = client_of(address, timeout=0.2)
        with pytest.raises(PartUnavailable, match="no answer within"):
            client.post("/slow", {})
        go.set()
        assert client_of(address).post("/next", {}) == {"path": "/next"}
        assert client.post("/next", {}) == {"path": "/next"}


def test_a_forked_process_opens_a_connection_of_its_own() -> None:
    peers: list[int] = []

    def note(call: PartCall) -> dict[str, Any]:
        peers.append(call.document["n"])
        return {"got": call.document["n"]}

    with serving_part({("POST", "/note"): note}) as address:
        client = client_of(address)
        client.post("/note", {"n": 0})
        [kept] = client._idle
        child = os.fork()
        if child == 0:
            signal.alarm(60)  # A child that hangs must not hang the tests.
            status = 1
            try:
                good = client.post("/note", {"n": 1}) == {"got": 1} and kept not in client._idle
                status = 0 if good else 1
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert client.post("/note", {"n": 2}) == {"got": 2}
        assert list(client._idle) == [kept], "the child has closed the parent's connection"
    assert peers == [0, 1, 2]


def test_more_calls_at_once_than_connections_that_are_kept() -> None:
    together = threading.Barrier(part_client.IDLE_MAX + 4, timeout=PATIENCE)

    def meet(call: PartCall) -> dict[str, Any]:
        together.wait()
        return {}

    with serving_part({("POST", "/meet"): meet}) as address:
        client = client_of(address)
        threads = [threading.Thread(target=client.post, args=("/meet", {})) for _ in range(together.parties)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(client._idle) == part_client.IDLE_MAX
        client.close()
        assert not client._idle


def test_a_part_that_ends_before_its_answer_is_told_in_words() -> None:
    """As an executor that is killed during an act."""
    with answering(read_request) as address:
        error = failure_of(address)
    assert error.may_have_arrived
    assert error.message.endswith("closed the connection before it answered")


def test_two_calls_share_one_timeout() -> None:
    go = threading.Event()

    with answering(lambda connection: go.wait(PATIENCE)) as address:
        client = client_of(address, timeout=0.2)
        deadline = client.begin()
        for _ in range(2):
            with pytest.raises(PartUnavailable, match=r"within 0\.2 seconds"):
                client.get("/health", deadline=deadline)
        go.set()
    assert client.begin(most=100) - client.begin(most=0.05) > 0.1
