"""Requests that the Explorer's server refuses before it reads them, and floods and slow clients, which end."""

from __future__ import annotations

import gc
import http.client
import socket
import ssl
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from aver import Capsule, Ledger
from aver.errors import BadInput, Unavailable
from aver.explorer import connection as limits
from aver.explorer import guard, handshake, live
from aver.explorer.guard import Rates
from aver.explorer.server import ExplorerServer, check_origin, listen_locally, listen_with_tls
from aver.files.locks import Pace, wait_until
from aver.serving.sockets import bind_loopback
from support.explorer_servers import API, ServedExplorer, serve

PACE = Pace(0.02, 0.02)
COMMON = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; worker-src blob:;"
        " base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script';"
        " trusted-types aver"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


@pytest.fixture
def served(filled: Ledger) -> Iterator[ServedExplorer]:
    with serve(filled) as running:
        yield running


def own_origin(served: ServedExplorer) -> str:
    return f"http://localhost:{served.port}"


def test_every_answer_has_the_common_headers(served: ServedExplorer) -> None:
    answers = [
        served.ask("/", token=None),
        served.ask(f"{API}about"),
        served.ask(f"{API}about", token=None),
        served.ask(f"{API}nothing"),
        served.ask(f"{API}about", "POST"),
        served.ask("/", headers={"Host": "evil.example"}),
        served.ask("/", headers={"Origin": "http://evil.example"}),
        served.ask(f"{API}chains/codex.two/records"),
        served.ask(f"{API}approvals/x", "POST", headers={"Content-Length": str(guard.APPROVAL_BODY_MAX + 1)}),
    ]
    assert [answer.status for answer in answers] == [200, 200, 401, 404, 405, 421, 403, 200, 413]
    for answer in answers:
        assert {name: answer.headers[name] for name in COMMON} == COMMON
        assert answer.headers["cache-control"] == ("no-cache" if answer is answers[0] else "no-store")
        assert not {"set-cookie", "access-control-allow-origin", "server"} & set(answer.headers)
        if answer.status > 400:
            assert set(answer.document) == {"code", "message", "advice"}


def test_defect_is_answered_in_the_common_form(
    served: ServedExplorer, filled: Ledger, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(type(filled.store), "chains", lambda store, tenant: 1 / 0)
    answer = served.ask(f"{API}chains")
    assert (answer.status, answer.document["code"]) == (500, "INTERNAL")
    assert answer.document["message"] == "internal error: ZeroDivisionError"
    assert {name: answer.headers[name] for name in COMMON} == COMMON
    # The server's thread writes the log after the answer.
    assert wait_until(lambda: any("chains failed" in record.getMessage() for record in caplog.records), 10, PACE)


def test_every_route_of_the_api_needs_the_token(served: ServedExplorer) -> None:
    right = served.server.token
    assert len(right) == 43  # 256 bits in base64.
    for path in ("about", "keys", "chains", "live", "openapi.json", "nothing", "approvals"):
        for token in (None, right[:-1], right + "A", right.swapcase(), "x" * 43):
            answer = served.ask(API + path, token=token)
            assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert served.ask(f"{API}about?token={right}", token=None).status == 401


def test_host_must_be_ours(served: ServedExplorer) -> None:
    port = served.port
    for host in (f"localhost:{port}", f"127.0.0.1:{port}", f"[::1]:{port}"):
        assert served.ask(f"{API}about", headers={"Host": host}).status == 200, host
    for host in ("localhost", "evil.example", f"evil.example:{port}", f"localhost:{port}.evil.example", ""):
        assert served.ask(f"{API}about", headers={"Host": host}).status == 421, host
    twice = f"GET / HTTP/1.1\r\nHost: localhost:{port}\r\nHost: evil.example\r\n\r\n"
    assert served.send_bytes(twice.encode()).startswith(b"HTTP/1.1 4")


def test_other_pages_are_refused(served: ServedExplorer) -> None:
    own = own_origin(served)
    for origin in (own, f"http://127.0.0.1:{served.port}", f"http://[::1]:{served.port}"):
        assert served.ask(f"{API}about", headers={"Origin": origin}).status == 200
    for origin in ("null", "http://evil.example", own + "1", own.replace("http", "https"), ""):
        assert served.ask(f"{API}about", headers={"Origin": origin}).status == 403, origin
    for site, status in (("same-origin", 200), ("none", 200), ("same-site", 403), ("cross-site", 403), ("x", 403)):
        assert served.ask(f"{API}about", headers={"Sec-Fetch-Site": site}).status == status


def test_window_may_open_the_page_from_anywhere(served: ServedExplorer) -> None:
    """The file that `aver serve --open` writes is another site for a browser. Only the page itself is reached so."""
    window = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert served.ask("/", token=None, headers=window).status == 200
    assert served.ask("/", token=None, headers={**window, "Sec-Fetch-Dest": "iframe"}).status == 403
    assert served.ask("/", token=None, headers={**window, "Sec-Fetch-Mode": "cors"}).status == 403
    assert served.ask("/", token=None, headers={**window, "Origin": "http://evil.example"}).status == 403
    assert served.ask("/explorer/app.js", token=None, headers=window).status == 403
    assert served.ask(f"{API}about", headers=window).status == 403


def test_page_is_kept_by_its_digest(served: ServedExplorer) -> None:
    first = served.ask("/explorer/app.js", token=None)
    assert first.headers["content-type"].startswith("text/javascript")
    again = served.ask("/explorer/app.js", token=None, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status, again.body) == (304, b"")
    assert served.ask("/", token=None, headers={"If-None-Match": first.headers["etag"]}).status == 200
    assert b'data-door="live"' in served.ask("/", token=None).body


def test_body_is_limited_also_if_it_declares_no_size(
    served: ServedExplorer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(guard, "BODY_MAX", 1000)
    head = f"POST {API}approvers HTTP/1.1\r\nHost: localhost:{served.port}\r\nConnection: close\r\n"
    head += f"Authorization: Bearer {served.server.token}\r\nContent-Type: application/json\r\n"
    chunk = b"%x\r\n%b\r\n" % (600, b" " * 600)
    answer = served.send_bytes(head.encode() + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 3 + b"0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 413")
    assert served.send_bytes(head.encode() + b"Content-Length: 1001\r\n\r\n").startswith(b"HTTP/1.1 413")
    assert served.send_bytes(head.encode() + b"Content-Length: 2\r\n\r\n{}").startswith(b"HTTP/1.1 400")
    assert caplog.records == []  # A client's mistake is no defect of the server.


def test_bytes_that_are_not_http_get_an_answer(served: ServedExplorer) -> None:
    answer = served.send_bytes(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 garbage\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400")
    assert b"content-security-policy" in answer
    assert served.ask("/").status == 200


def test_rates_refill_with_time() -> None:
    now = 0.0
    rates = Rates(10, clock=lambda: now)
    assert sum(rates.take() for _ in range(1000)) == 10 * guard.BURST_SECONDS
    now = 1.0
    assert sum(rates.take() for _ in range(1000)) == 10
    now = 1000.0
    assert sum(rates.take() for _ in range(1000)) == 10 * guard.BURST_SECONDS


def test_flood_without_a_token_does_not_touch_a_page_with_one(served: ServedExplorer) -> None:
    # The clock stands still: on a slow machine, the bucket would fill as fast as the requests come.
    served.server.app._unknown = Rates(guard.UNKNOWN_RATE, clock=lambda: 0.0)
    burst = int(guard.UNKNOWN_RATE * guard.BURST_SECONDS)
    statuses = [served.ask(f"{API}about", token="x").status for _ in range(burst + 1)]
    assert statuses == [401] * burst + [429]
    refused = served.ask(f"{API}about", token="x")
    assert served.ask(f"{API}about").status == 200
    assert (refused.status, refused.headers["retry-after"]) == (429, "1")
    assert refused.document["code"] == "TOO_MANY"


def test_connections_that_wait_make_room_for_others(served: ServedExplorer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CONNECTIONS_MAX", 5)
    idle = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(50)]
    idle[-1].sendall(b"GET / HT")
    assert [served.ask(f"{API}about").status for _ in range(10)] == [200] * 10
    assert idle[0].recv(10) == b""  # The one that has waited longest was ended.
    for each in idle:
        each.close()


def test_too_many_connections_at_work_are_refused(served: ServedExplorer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CONNECTIONS_MAX", 2)
    with served.live() as first, served.live() as second:
        first(), second()
        answer = served.ask(f"{API}about")
        assert (answer.status, answer.document["code"]) == (429, "TOO_MANY")
    wait_for_status(served, 200)


@pytest.mark.more
def test_request_that_never_arrives_ends(served: ServedExplorer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "REQUEST_SECONDS", 0.3)
    head = f"Host: localhost:{served.port}\r\nAuthorization: Bearer {served.server.token}\r\n"
    parts = [
        "",
        "GET / HTTP/1.1\r\nHo",
        f"POST {API}approvers HTTP/1.1\r\n{head}Content-Type: application/json\r\nContent-Length: 10\r\n\r\n123",
    ]
    for part in parts:
        served.send_bytes(part.encode())  # It returns when the server has ended the connection.
    with socket.create_connection(("127.0.0.1", served.port)) as second:
        second.sendall(f"GET /nothing HTTP/1.1\r\n{head}\r\n".encode())
        assert second.recv(65536).startswith(b"HTTP/1.1 404")
        second.sendall(b"GET / HT")
        while second.recv(65536):
            pass
    assert served.ask("/").status == 200


@pytest.mark.more
def test_client_that_does_not_read_is_cut_off(
    served: ServedExplorer, filled: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    drafts = [Capsule(type="tool", trigger={"source": "test", "request": "x" * 15_000}) for _ in range(400)]
    filled.append_many("demo.large", drafts)
    monkeypatch.setattr(limits, "STALL_SECONDS", 0.3)
    head = f"GET {API}chains/demo.large/records HTTP/1.1\r\nHost: localhost:{served.port}\r\n"
    head += f"Authorization: Bearer {served.server.token}\r\n\r\n"
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(("127.0.0.1", served.port))
        slow.sendall(head.encode())
        assert served.ask(f"{API}about").status == 200  # Others are served meanwhile.
        time.sleep(1)
        received = 0
        with suppress(ConnectionResetError):
            while piece := slow.recv(1 << 20):
                received += len(piece)
    assert received < 6_000_000


def test_too_many_live_streams_are_refused(served: ServedExplorer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "STREAMS_MAX", 1)
    with served.live() as next_event:
        next_event()
        assert served.ask(f"{API}live").status == 429
    wait_for_status(served, 200)


def test_live_streams_that_come_at_once_are_counted(served: ServedExplorer, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them come while the ledger is read for the first one."""
    monkeypatch.setattr(live, "STREAMS_MAX", 2)
    read = live.LiveFeed._read

    def read_slowly(feed: live.LiveFeed) -> None:
        time.sleep(0.2)
        read(feed)

    monkeypatch.setattr(live.LiveFeed, "_read", read_slowly)
    head = f"GET {API}live HTTP/1.1\r\nHost: localhost:{served.port}\r\n"
    head += f"Authorization: Bearer {served.server.token}\r\n\r\n"
    with ExitStack() as opened:
        streams = [opened.enter_context(socket.create_connection(("127.0.0.1", served.port), 60)) for _ in range(6)]
        for stream in streams:
            stream.sendall(head.encode())
        answered = sorted(stream.recv(12)[-3:] for stream in streams)
    assert answered == [b"200"] * 2 + [b"429"] * 4


def wait_for_status(served: ServedExplorer, status: int) -> None:
    while served.ask(f"{API}about").status != status:
        time.sleep(0.05)


def test_server_that_only_reads_takes_no_answer(filled: Ledger) -> None:
    with serve(filled, read_only=True) as served:
        assert served.get("about")["read_only"] is True
        for path in (f"approvals/{'0' * 8}-0000-0000-0000-{'0' * 12}", "approvers"):
            answer = served.post(path, {"statement": {}})
            assert (answer.status, answer.document["code"]) == (403, "READ_ONLY")


# --- where it listens


def test_it_listens_at_both_addresses_or_not_at_all() -> None:
    with listen_locally(0) as place:
        assert {each.getsockname()[1] for each in place.sockets} == {place.port}
        assert place.url == f"http://localhost:{place.port}"
        with pytest.raises(Unavailable, match="cannot listen"):
            listen_locally(place.port)
    if not has_ipv6():
        pytest.skip("this machine has no ::1")
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as other:
        port = other.getsockname()[1]
        with pytest.raises(Unavailable, match=r"cannot listen on \[::1\]"):
            listen_locally(port)
        bind_loopback(port).close()  # The other address was given back.


def has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


def test_proxy_in_front_is_named_by_its_origin(filled: Ledger) -> None:
    with serve(filled, origin="https://aver.example") as served:
        assert served.server.link.startswith("https://aver.example/#token=")
        named = {"Host": "aver.example", "Origin": "https://aver.example", "Sec-Fetch-Site": "same-origin"}
        assert served.ask(f"{API}about", headers=named).status == 200
        assert served.ask(f"{API}about", headers={**named, "Origin": "https://aver.example:444"}).status == 403


@pytest.mark.parametrize(
    "origin",
    [
        "http://aver.example",
        "https://aver.example/",
        "https://AVER.example",
        "https://a:443",
        "https://a b",
        "https://a:65536",
        "https://[:::::]",
        "aver",
        "",
    ],
)
def test_origin_is_written_as_browsers_write_it(origin: str) -> None:
    with pytest.raises(BadInput, match="is not an origin"):
        check_origin(origin)


def test_tls_needs_a_certificate_that_can_be_used(tmp_path: Path) -> None:
    missing = tmp_path / "missing.pem"
    with pytest.raises(BadInput, match="cannot use the certificate"):
        listen_with_tls("localhost", 0, missing, missing)


@pytest.mark.more
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "0", "0x0"])
def test_every_address_is_served_by_a_name_only(tmp_path: Path, host: str) -> None:
    with pytest.raises(BadInput, match="every address"):
        listen_with_tls(host, 0, *write_certificate(tmp_path))


@contextmanager
def serve_with_tls(ledger: Ledger, folder: Path) -> Iterator[tuple[ExplorerServer, int, ssl.SSLContext]]:
    """A server, its port, and what its clients trust."""
    cert, key = write_certificate(folder)
    with listen_with_tls("localhost", 0, cert, key) as place:
        server = ExplorerServer(ledger, place, read_only=True)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        try:
            yield server, place.port, ssl.create_default_context(cafile=str(cert))
        finally:
            while thread.is_alive():
                server.stop()
                thread.join(0.05)


def ask_with_tls(server: ExplorerServer, port: int, context: ssl.SSLContext) -> int:
    connection = http.client.HTTPSConnection("localhost", port, timeout=60, context=context)
    try:
        connection.request("GET", f"{API}about", headers={"Authorization": f"Bearer {server.token}"})
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.more
def test_tls_serves_by_its_name(filled: Ledger, tmp_path: Path) -> None:
    with serve_with_tls(filled, tmp_path) as (server, port, context):
        assert server.link.startswith(f"https://localhost:{port}/#token=")
        # Several: an answer must not depend on which of two states the last write has left.
        assert [ask_with_tls(server, port, context) for _ in range(20)] == [200] * 20


@pytest.mark.more
def test_request_that_comes_with_the_end_of_the_handshake_is_answered(filled: Ledger, tmp_path: Path) -> None:
    """The server gets both in one read, before it has a connection for the request."""
    with serve_with_tls(filled, tmp_path) as (_, port, context):
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
        with socket.create_connection(("localhost", port), 60) as connection:
            while True:
                try:
                    client.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    connection.sendall(outgoing.read())
                    incoming.write(connection.recv(65536))
            client.write(f"GET / HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n".encode())
            connection.sendall(outgoing.read())
            received = b""
            while not received:
                incoming.write(connection.recv(65536))
                with suppress(ssl.SSLWantReadError):
                    received = client.read()
    assert received.startswith(b"HTTP/1.1 200")


@pytest.mark.more
def test_clients_that_begin_no_handshake_make_room(
    filled: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handshake, "HANDSHAKES_MAX", 2)
    with serve_with_tls(filled, tmp_path) as (server, port, context), ExitStack() as opened:
        silent = [opened.enter_context(socket.create_connection(("localhost", port), 60)) for _ in range(5)]
        for connection in silent[:3]:  # The oldest, for those that came after them.
            assert is_ended(connection)
        assert ask_with_tls(server, port, context) == 200
        monkeypatch.setattr(handshake, "HANDSHAKE_SECONDS", 0.2)
        late = opened.enter_context(socket.create_connection(("localhost", port), 60))
        assert is_ended(late)
        plain = opened.enter_context(socket.create_connection(("localhost", port), 60))
        plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert is_ended(plain)
        assert ask_with_tls(server, port, context) == 200


def test_nothing_is_left_of_connections_that_clients_reset(filled: Ledger) -> None:
    with serve(filled) as served:
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", served.port), timeout=60) as connection:
                connection.sendall(f"GET /favicon.ico HTTP/1.1\r\nHost: localhost:{served.port}\r\n\r\n".encode())
                assert b"204" in connection.recv(65536)
                time.sleep(0.02)  # The server waits for the next request by now.
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        # Less than the time that a connection without a request may stay open.
        assert wait_until(lambda: count_connections() < 3, 10, PACE)


def count_connections() -> int:
    gc.collect()
    return sum(isinstance(each, limits.ExplorerConnection) for each in gc.get_objects())


def is_ended(connection: socket.socket) -> bool:
    """Whether the other side ends a connection, and says nothing but an alert of TLS before."""
    with suppress(ConnectionResetError):
        return all(piece[:1] == b"\x15" for piece in iter(lambda: connection.recv(100), b""))
    return True


def write_certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for localhost that signs itself, and its key."""
    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(private, hashes.SHA256())
    )
    cert, key = folder / "cert.pem", folder / "key.pem"
    cert.write_bytes(made.public_bytes(Encoding.PEM))
    key.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return cert, key
