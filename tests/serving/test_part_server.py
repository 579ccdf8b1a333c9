"""A server of JSON routes: who gets in, what is answered with which status, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from aver.errors import BadInput, NotCanonical, Refused, Unavailable
from aver.serving.part_client import PartUnavailable
from aver.serving.part_server import PartCall, ServerLimits
from aver.serving.peers import Credentials, Peer
from aver.serving.sockets import PartAddress, bind_unix, parse_address
from support.parts import (
    PATIENCE,
    TOKEN,
    client_of,
    exchange,
    head_of,
    read_all,
    serving,
    serving_part,
    short_directory,
    status_of,
)


def post(address: PartAddress, body: bytes, path: str = "/echo", **headers: str) -> tuple[int, Any]:
    """One bare request. Returns the status and the document of the answer."""
    answer = exchange(address, head_of(address, path=path, length=len(body), **headers), body)
    return status_of(answer), json.loads(answer.partition(b"\r\n\r\n")[2])


@pytest.mark.parametrize("tcp", [False, True])
def test_a_document_goes_and_one_comes_back(tcp: bool) -> None:
    seen: list[PartCall] = []

    def evaluate(call: PartCall) -> dict[str, Any]:
        seen.append(call)
        return {"share": None, "größe": call.document["n"]}

    with serving_part({("POST", "/evaluate"): evaluate}, tcp=tcp) as address:
        client = client_of(address)
        assert client.post("/evaluate", {"n": 2**70}, {"Aver-Session": "s1"}) == {"share": None, "größe": 2**70}
        assert client.get("/health") == {"ok": True}
    [call] = seen
    assert call.peer == Peer(None if tcp else os.getuid(), "gateway", str(address))
    assert (call.method, call.path, call.body) == ("POST", "/evaluate", b'{"n":1180591620717411303424}')
    assert call.headers == {"aver-session": "s1"}


@pytest.mark.parametrize("tcp", [False, True])
def test_only_who_has_the_token_and_asks_for_us_gets_in(tcp: bool) -> None:
    def forbid(call: PartCall) -> dict[str, Any]:
        raise AssertionError("a refused request came through")

    with serving_part({("POST", "/echo"): forbid}, tcp=tcp) as address:
        host = address.hosts[0]
        for headers, status in [
            ({"Host": ""}, 400),  # h11 itself insists on it.
            ({"Host": "evil.example"}, 421),
            ({"Host": f"{host}.evil.example"}, 421),
            ({"Host": "127.0.0.1"}, 421),
            ({"Origin": f"http://{host}"}, 403),
            ({"Origin": "null"}, 403),
            ({"Authorization": ""}, 401),
            ({"Authorization": "Bearer"}, 401),
            ({"Authorization": f"Bearer {TOKEN[:-1]}"}, 401),
            ({"Authorization": f"Bearer {TOKEN}x"}, 401),
            ({"Authorization": f"Basic {TOKEN}"}, 401),
        ]:
            for path in ("/echo", "/health", "/elsewhere"):
                found, document = post(address, b"{}", path, **headers)
                assert (found, list(document)) == (status, ["error"]), (headers, path)


def test_a_header_that_decides_comes_once() -> None:
    with serving_part() as address:
        head = head_of(address, length=2)
        for line, status in [
            (b"Host: localhost", 400),
            (b"Authorization: Bearer " + TOKEN.encode(), 401),
            (b"Content-Length: 3", 400),
            (b"Transfer-Encoding: gzip", 501),
            (b"Transfer-Encoding: chunked", 400),
            (b"Aver-Session: a\r\naver-session: a", 400),
            (b"Bad Header: x", 400),
            (b" folded: into the length before it", 400),
        ]:
            assert status_of(exchange(address, head[:-2] + line + b"\r\n\r\n", b"{}")) == status, line


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/elsewhere", 404),
        ("POST", "/echo/", 404),
        ("POST", "/echo?x=1", 404),
        ("POST", "/%65cho", 404),
        ("POST", "http://localhost/echo", 404),
        ("GET", "/echo", 405),
        ("HEAD", "/echo", 405),
        ("PUT", "/echo", 405),
        ("post", "/echo", 405),
        ("POST", "/health", 405),
        ("OPTIONS", "*", 404),
        ("CONNECT", "/echo", 405),
    ],
)
def test_routes_are_matched_exactly(method: str, path: str, status: int) -> None:
    with serving_part() as address:
        answer = exchange(address, head_of(address, method, path, length=2), b"{}")
    assert status_of(answer) == status
    if status == 405:
        assert (b"allow: GET" if path == "/health" else b"allow: POST") in answer
        assert answer.endswith(b"\r\n\r\n") == (method == "HEAD")


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{", b"nonsense", b"{}{}", b'{"a": 1, "a": 2}', b'{"a": {"b": 1, "b": 1}}', b'{"a": NaN}', b"\xff"),
        *(b"[" * 100_000, b"[" * 201 + b"]" * 201, b'{"a": 1e999}', b"\xef\xbb\xbf{}"),
    ],
)
def test_what_is_not_json_is_refused(body: bytes) -> None:
    with serving_part() as address:
        status, document = post(address, body)
        assert (status, list(document)) == (400, ["error"])
        assert client_of(address).post("/echo", {}) == {"got": {}}


def test_any_json_value_reaches_the_route() -> None:
    """The route says what is wrong with it, in its own words."""
    with serving_part() as address:
        for body in (b"[]", b"null", b'"x"', b"0"):
            assert post(address, body) == (200, {"got": json.loads(body)})


def test_a_part_can_refuse_in_its_own_form() -> None:
    def refuse(status: int, words: str) -> dict[str, Any]:
        return {"status": "DENY", "reason_code": "BAD_REQUEST", "summary": words, "http": status}

    with serving_part(refuse=refuse) as address:
        status, document = post(address, b'{"a": 1, "a": 2}')
    assert (status, document["reason_code"], document["http"]) == (400, "BAD_REQUEST", 400)
    assert "occurs twice" in document["summary"]


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (BadInput("no such field", advice="add it"), 400, "no such field (add it)"),
        (BadInput("a lone surrogate: \ud800"), 400, "a lone surrogate: \\ud800"),
        (NotCanonical("is not finite", path="a.b"), 400, "a.b: is not finite"),
        (Unavailable("the ledger is gone"), 503, "the ledger is gone"),
        (Refused("X", "no"), 503, "no"),
        (ValueError("secret-1234"), 500, "internal error: ValueError"),
    ],
)
def test_a_route_that_raises_takes_nothing_down(error: Exception, status: int, words: str) -> None:
    def fail(call: PartCall) -> dict[str, Any]:
        raise error

    with serving_part({("POST", "/echo"): fail}) as address:
        client = client_of(address)
        for _ in range(2):
            with pytest.raises(PartUnavailable) as caught:
                client.post("/echo", {})
            assert caught.value.status == status
        assert post(address, b"{}") == (status, {"error": words})
        assert client.get("/health") == {"ok": True}


@pytest.mark.parametrize("answer", [{"a": float("nan")}, {"a": b"bytes"}, {"a": "\ud800"}, {1: 2}, object()])
def test_an_answer_that_is_not_json_is_a_defect(answer: Any) -> None:
    with serving_part({("POST", "/echo"): lambda call: answer}) as address:
        assert post(address, b"{}") == (500, {"error": "internal error: the answer is not JSON"})


def test_who_is_known_by_something_else_gets_in_without_a_name() -> None:
    """As federated callers of the gateway do: the route checks their signature."""

    def identify(shown: Credentials) -> str | None:
        return "" if "aver-signature" in shown.headers else None

    def name(call: PartCall) -> dict[str, Any]:
        return {"client": call.peer.client, **call.headers}

    with serving_part({("POST", "/act"): name}, identify=identify) as address:
        assert post(address, b"{}", "/act")[0] == 401
        assert post(address, b"{}", "/act", Aver_Signature="fp:00") == (200, {"client": "", "aver-signature": "fp:00"})


def test_a_part_says_how_it_is_while_all_its_turns_are_taken() -> None:
    began, go = threading.Semaphore(0), threading.Event()

    def wait(call: PartCall) -> dict[str, Any]:
        began.release()
        go.wait(PATIENCE)
        return {}

    running: list[int] = []
    with serving_part({("POST", "/wait"): wait}, limits=ServerLimits(calls=2)) as address:
        client = client_of(address)
        threads = [threading.Thread(target=lambda: running.append(len(client.post("/wait", {})))) for _ in range(5)]
        for thread in threads:
            thread.start()
        assert began.acquire(timeout=PATIENCE)
        assert began.acquire(timeout=PATIENCE)
        assert client.get("/health") == {"ok": True}
        assert not began.acquire(timeout=0.2), "a third call runs, although there are two turns"
        go.set()
        for thread in threads:
            thread.join()
    assert running == [0] * 5


# --- the end


def test_a_stopped_server_finishes_running_calls_and_takes_no_more() -> None:
    began, go, answers = threading.Event(), threading.Event(), []

    def wait(call: PartCall) -> dict[str, Any]:
        began.set()
        go.wait(PATIENCE)
        return {"done": True}

    with short_directory() as directory:
        listener = bind_unix(directory / "s")
        client = client_of(listener.address)
        with serving({("POST", "/wait"): wait}, listener) as server:
            assert client.get("/health") == {"ok": True}
            caller = threading.Thread(target=lambda: answers.append(client.post("/wait", {})))
            caller.start()
            assert began.wait(PATIENCE)
            server.stop()
            while (directory / "s").exists():
                time.sleep(0.001)
            with pytest.raises(PartUnavailable, match="does not run"):
                client.get("/health")
            go.set()
            caller.join()
        assert answers == [{"done": True}]


def test_a_call_that_does_not_end_holds_a_stopped_server_no_longer_than_its_grace() -> None:
    began, go = threading.Event(), threading.Event()

    def wait(call: PartCall) -> dict[str, Any]:
        began.set()
        go.wait(PATIENCE)
        return {}

    with serving_part({("POST", "/wait"): wait}, limits=ServerLimits(grace_seconds=0.1)) as address:
        connection = address.connect(30)
        connection.sendall(head_of(address, path="/wait", length=2) + b"{}")
        assert began.wait(PATIENCE)
    go.set()
    connection.close()


SCRIPT = """
import sys, time
from aver.serving.part_server import PartServer, serve_until_signal
from aver.serving.peers import ClientList, PermittedClient
from aver.serving.sockets import listen_on, parse_address

def slow(call):
    print("began", flush=True)
    time.sleep(0.5)
    return {"done": True}

server = PartServer(
    {("POST", "/slow"): slow},
    identify=ClientList([PermittedClient("me", uid=int(sys.argv[2]))]),
    health=lambda: {"ok": True, "part": "test"},
)
listener = listen_on(parse_address(sys.argv[1]))
print("listening", flush=True)
serve_until_signal(server, [listener])
print("ended", flush=True)
"""


@pytest.mark.more
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_process_after_its_calls(number: signal.Signals) -> None:
    with short_directory() as directory:
        address = parse_address(f"unix:{directory}/s")
        child = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(address), str(os.getuid())], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        assert child.stdout.readline() == "listening\n"
        client, answers = client_of(address, token=""), []
        assert client.get("/health") == {"ok": True, "part": "test"}
        caller = threading.Thread(target=lambda: answers.append(client.post("/slow", {})))
        caller.start()
        assert child.stdout.readline() == "began\n"
        child.send_signal(number)
        rest, _ = child.communicate()
        caller.join()
        assert (answers, rest, child.returncode) == ([{"done": True}], "ended\n", 0)
        assert not Path(f"{directory}/s").exists()


def test_an_idle_server_ends_at_once() -> None:
    with short_directory() as directory:
        address = parse_address(f"unix:{directory}/s")
        child = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(address), str(os.getuid())], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        assert child.stdout.readline() == "listening\n"
        with address.connect(30) as silent, address.connect(30) as partial:
            partial.sendall(b"POST /slow HTTP/1.1\r\n")
            client = client_of(address, token="")
            client.get("/health")  # Its connection stays open.
            child.terminate()
            assert child.communicate() == ("ended\n", None)
            assert read_all(silent) == b""
            read_all(partial)


def test_the_answer_of_a_stopped_server_says_that_it_was_the_last() -> None:
    began, go = threading.Event(), threading.Event()

    def wait(call: PartCall) -> dict[str, Any]:
        began.set()
        go.wait(PATIENCE)
        return {}

    with short_directory() as directory:
        listener = bind_unix(directory / "s")
        with serving({("POST", "/wait"): wait}, listener) as server, listener.address.connect(30) as connection:
            connection.sendall(head_of(listener.address, path="/wait", length=2) + b"{}")
            assert began.wait(PATIENCE)
            server.stop()
            go.set()
            answer = read_all(connection)
    assert status_of(answer) == 200
    assert b"connection: close" in answer.lower()
