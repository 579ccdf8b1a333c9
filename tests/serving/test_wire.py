"""Connections that are slow, silent, huge, many, or not HTTP: bounded, and the server goes on."""

from __future__ import annotations

import json
import threading
import time
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.serving.part_server import PartCall, ServerLimits
from aver.serving.sockets import PartAddress
from aver.serving.wire import HEAD_MAX, WireLimits
from support.parts import PATIENCE, client_of, exchange, head_of, read_all, serving_part, status_of

SHORT = 0.2


def limited(connections: int = 64, **wire: Any) -> ServerLimits:
    return ServerLimits(connections=connections, wire=WireLimits(**wire))


def assert_serves(address: PartAddress) -> None:
    assert client_of(address).post("/echo", {"n": 1}) == {"got": {"n": 1}}


# --- slow


@pytest.mark.parametrize("tcp", [False, True])
def test_a_head_that_trickles_is_given_up(tcp: bool) -> None:
    """Each byte comes in time, but the head as a whole does not."""
    with (
        serving_part(tcp=tcp, limits=limited(head_seconds=SHORT, linger_seconds=SHORT)) as address,
        address.connect(30) as connection,
    ):
        data = head_of(address, length=2)
        sent = 0
        try:
            for byte in data:
                connection.sendall(bytes([byte]))
                sent += 1
                time.sleep(SHORT / 8)
        except OSError:
            pass
        assert sent < len(data)
        assert status_of(read_all(connection)) in (408, 0)
        assert_serves(address)


def test_a_body_that_trickles_is_given_up() -> None:
    with (
        serving_part(limits=limited(body_seconds=SHORT, linger_seconds=SHORT)) as address,
        address.connect(30) as connection,
    ):
        connection.sendall(head_of(address, length=1000))
        sent = 0
        try:
            while sent < 1000:
                connection.sendall(b" ")
                sent += 1
                time.sleep(SHORT / 8)
        except OSError:
            pass
        assert sent < 1000
        assert status_of(read_all(connection)) in (408, 0)
        assert_serves(address)


def test_a_silent_connection_is_closed() -> None:
    with serving_part(limits=limited(head_seconds=SHORT)) as address, address.connect(30) as connection:
        assert read_all(connection) == b""


def test_half_a_head_gets_an_answer() -> None:
    with serving_part(limits=limited(head_seconds=SHORT)) as address, address.connect(30) as connection:
        connection.sendall(head_of(address)[:30])
        assert status_of(read_all(connection)) == 408


def test_an_idle_connection_is_closed_after_its_answer() -> None:
    with serving_part(limits=limited(idle_seconds=SHORT)) as address, address.connect(30) as connection:
        connection.sendall(head_of(address, length=2) + b"{}")
        answer = read_all(connection)
        assert status_of(answer) == 200
        assert b"connection: close" not in answer.lower()


@pytest.mark.parametrize("tcp", [False, True])
def test_a_reader_that_does_not_read_is_given_up(tcp: bool) -> None:
    ended = threading.Event()

    def much(call: PartCall) -> dict[str, Any]:
        return {"much": "x" * 20_000_000}

    with serving_part(
        {("POST", "/much"): much, ("POST", "/echo"): lambda call: {"got": call.document}},
        tcp=tcp,
        limits=limited(connections=1, write_seconds=SHORT),
    ) as address:
        with address.connect(30) as connection:
            connection.sendall(head_of(address, path="/much", length=2) + b"{}")
            connection.recv(1)
            while not ended.is_set():  # The one place becomes free again, although this client holds on.
                answer = exchange(address, head_of(address, length=2), b"{}")
                if status_of(answer) == 200:
                    ended.set()


# --- large


@pytest.mark.parametrize("tcp", [False, True])
@pytest.mark.parametrize("size", [HEAD_MAX + 1, HEAD_MAX * 2, 1_000_000])
def test_a_head_that_is_too_large_is_refused(tcp: bool, size: int) -> None:
    with serving_part(tcp=tcp) as address:
        for filler in (
            b"X-Filler: " + b"x" * size,
            b"\r\n".join(b"X-%d: x" % number for number in range(size // 4)),
        ):
            head = head_of(address)[:-2] + filler + b"\r\n\r\n"
            assert status_of(exchange(address, head)) == 431
        assert status_of(exchange(address, head_of(address, path="/" + "x" * size))) == 431
        assert_serves(address)


def test_a_head_just_within_the_limit_is_read() -> None:
    with serving_part() as address:
        head = head_of(address, length=2)
        filler = b"X-Filler: " + b"x" * (HEAD_MAX - len(head) - 100)
        assert status_of(exchange(address, head[:-2] + filler + b"\r\n\r\n", b"{}")) == 200


@pytest.mark.parametrize("tcp", [False, True])
def test_a_body_that_is_too_large_is_refused_while_it_is_read(tcp: bool) -> None:
    """Whether its length was declared or not, and without reading it to its end."""
    with serving_part(tcp=tcp, limits=limited(body_max=1000)) as address:
        assert status_of(exchange(address, head_of(address, length=1001), b" " * 1001)) == 413
        assert status_of(exchange(address, head_of(address, length=10**15), b" " * 1001)) == 413
        chunked = head_of(address, length=None, Transfer_Encoding="chunked")
        assert status_of(exchange(address, chunked, *[b"64\r\n" + b" " * 100 + b"\r\n"] * 11)) == 413
        answer = exchange(address, chunked, b"2\r\n{}\r\n", b"0\r\n\r\n")
        assert (status_of(answer), answer.partition(b"\r\n\r\n")[2]) == (200, b'{"got":{}}')
        assert_serves(address)


def test_the_refusal_reaches_a_client_that_is_still_sending() -> None:
    with serving_part(limits=limited(body_max=1000)) as address:
        assert status_of(exchange(address, head_of(address, length=4_000_000), b" " * 4_000_000)) == 413


def test_a_client_that_waits_for_a_word_gets_it() -> None:
    with serving_part(limits=limited(body_max=1000)) as address:
        with address.connect(30) as connection:
            connection.sendall(head_of(address, length=2, Expect="100-continue"))
            assert connection.recv(65536).startswith(b"HTTP/1.1 100 ")
            connection.sendall(b"{}")
            assert status_of(connection.recv(65536)) == 200
        refused = exchange(address, head_of(address, length=2, Expect="100-continue", Authorization=""))
        assert status_of(refused) == 401


# --- many


def test_requests_without_waiting_are_answered_in_their_order() -> None:
    with serving_part() as address:
        requests = []
        for number in range(50):
            body = b'{"n": %d}' % number
            requests.append(head_of(address, length=len(body)) + body)
        answer = exchange(address, b"".join(requests))
        bodies = [json.loads(part.split(b"\r\n\r\n")[1]) for part in answer.split(b"HTTP/1.1 200")[1:]]
        assert bodies == [{"got": {"n": number}} for number in range(50)]
        # A request that cannot be read ends the row, and none after it is carried out.
        answer = exchange(address, requests[0] + b"GARBAGE\r\n\r\n" + requests[1])
        assert [answer.count(b"HTTP/1.1 200"), answer.count(b"HTTP/1.1 400")] == [1, 1]


@pytest.mark.parametrize("tcp", [False, True])
def test_silent_connections_do_not_keep_others_out(tcp: bool) -> None:
    with serving_part(tcp=tcp, limits=limited(connections=4)) as address, ExitStack() as stack:
        client = client_of(address)
        for number in range(40):
            stack.enter_context(address.connect(30))
            assert client.post("/echo", {"n": number}) == {"got": {"n": number}}


def test_a_client_that_showed_who_it_is_keeps_its_connection() -> None:
    with serving_part(limits=limited(connections=4)) as address, ExitStack() as stack:
        known = stack.enter_context(address.connect(30))
        for number in range(20):
            known.sendall(head_of(address, length=2) + b"{}")
            assert status_of(known.recv(65536)) == 200, number
            for _ in range(5):
                stack.enter_context(address.connect(30))
            # Connections are accepted in their order: once this one is answered, all of those were.
            assert status_of(exchange(address, head_of(address, "GET", "/health"))) == 200


def test_a_connection_at_work_is_never_closed_for_another() -> None:
    began, go = threading.Semaphore(0), threading.Event()

    def wait(call: PartCall) -> dict[str, Any]:
        began.release()
        go.wait(PATIENCE)
        return {"n": call.document["n"]}

    routes = {("POST", "/wait"): wait}
    with serving_part(routes, limits=limited(connections=3)) as address, ExitStack() as stack:
        working = [stack.enter_context(address.connect(30)) for _ in range(3)]
        for number, connection in enumerate(working):
            body = b'{"n":%d}' % number
            connection.sendall(head_of(address, path="/wait", length=len(body)) + body)
            assert began.acquire(timeout=PATIENCE)
        for _ in range(10):
            assert status_of(exchange(address, head_of(address, "GET", "/health"))) in (503, 0)
        go.set()
        for number, connection in enumerate(working):
            assert connection.recv(65536).endswith(b'{"n":%d}' % number)
        assert client_of(address).get("/health") == {"ok": True}


def test_many_clients_at_once_each_get_their_own_answer() -> None:
    wrong: list[Any] = []

    with serving_part() as address:
        client = client_of(address)

        def call(number: int) -> None:
            for turn in range(25):
                if client.post("/echo", {"n": [number, turn]}) != {"got": {"n": [number, turn]}}:
                    wrong.append((number, turn))

        threads = [threading.Thread(target=call, args=(number,)) for number in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


# --- not HTTP, and gone


def test_a_client_that_goes_away_takes_nothing_down() -> None:
    done = threading.Event()

    def finish(call: PartCall) -> dict[str, Any]:
        done.set()
        return {"x": "y" * 1_000_000}

    routes = {("POST", "/finish"): finish, ("POST", "/echo"): lambda call: {"got": call.document}}
    with serving_part(routes) as address:
        whole = head_of(address, path="/finish", length=2) + b"{}"
        for end in range(0, len(whole) + 1, 7):
            with address.connect(30) as connection:
                connection.sendall(whole[:end])
        with address.connect(30) as connection:
            connection.sendall(whole)
            assert done.wait(PATIENCE)  # It is carried out, although nobody waits for the answer any more.
        assert_serves(address)


def test_a_request_that_is_not_whole_is_not_carried_out() -> None:
    def forbid(call: PartCall) -> dict[str, Any]:
        raise AssertionError("half a request was carried out")

    with serving_part({("POST", "/echo"): forbid}) as address:
        assert status_of(exchange(address, head_of(address, length=3), b"{}")) in (400, 0)
        chunked = head_of(address, length=None, Transfer_Encoding="chunked")
        assert status_of(exchange(address, chunked, b"2\r\n{}\r\n")) in (400, 0)


@pytest.mark.parametrize(
    "data",
    [
        *(
            b"\r\n\r\n",
            b"\0" * 100,
            b"GET / HTTP/2.0\r\n\r\n",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            b"\x16\x03\x01\x02\x00",
        ),
        *(b"POST /echo HTTP/1.1\r\nHost\r\n\r\n", b"POST  /echo HTTP/1.1\r\n\r\n", b"\xff\xfe" * 50),
    ],
)
def test_what_is_not_http_is_refused(data: bytes) -> None:
    with serving_part() as address:
        answer = exchange(address, data)
        assert status_of(answer) in (400, 421, 0)
        assert_serves(address)


def test_no_bytes_take_the_server_down() -> None:
    with serving_part() as address:
        good = head_of(address, length=2) + b"{}"

        @given(st.lists(st.one_of(st.binary(max_size=200), st.sampled_from([good, good[:40], good[40:], b"\r\n"]))))
        def send(pieces: list[bytes]) -> None:
            exchange(address, *pieces)

        send()
        assert_serves(address)


def test_an_upgrade_is_not_taken() -> None:
    with serving_part() as address, address.connect(30) as connection:
        connection.sendall(head_of(address, length=2, Connection="Upgrade", Upgrade="websocket") + b"{}")
        answer = read_all(connection)
        assert status_of(answer) == 200
        assert answer.endswith(b'{"got":{}}')
