"""`FetchResource` and `PostWebhook` against a real HTTPS server on loopback."""

from __future__ import annotations

import gzip
import hashlib
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from aver.errors import Refused
from aver.gateway.effect_settings import EffectSettings
from aver.gateway.effects import web_effects
from aver.gateway.effects.checked_address import find_addresses, is_private
from aver.gateway.effects.web_effects import WebEffects
from aver.gateway.executor.executor import EffectOrder
from aver.gateway.request import BoundRequest
from support.acts import open_office
from support.loopback_servers import WebServer, serve_web, write_certificate


@pytest.fixture
def web(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WebServer]:
    certificate = write_certificate(tmp_path, "localhost")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with serve_web(certificate) as server:
        yield server


def order(intent: str, **inputs: Any) -> EffectOrder:
    request = BoundRequest.bind(intent, caller="agent:writer", session="s1", inputs=inputs)
    return EffectOrder(request, request.inputs, cast(Any, None), "/", "a_0123456789abcdef")


def fetch(web: WebServer, resource: str) -> Any:
    return WebEffects(frozenset({web.domain})).fetch(order("FetchResource", domain=web.domain, resource_id=resource))


def post(web: WebServer, path: str, body: str) -> Any:
    return WebEffects(frozenset({web.domain})).post(order("PostWebhook", domain=web.domain, path=path, body=body))


def refused(call: Any, *given: Any) -> Refused:
    with pytest.raises(Refused) as caught:
        call(*given)
    return caught.value


def test_a_resource_is_fetched(web: WebServer) -> None:
    web.answers["/a?b=1"] = 200, {"Content-Type": "text/plain"}, "grüße".encode()
    done = fetch(web, "a?b=1")
    assert done.data["content"] == "grüße"
    assert done.data["http_status"] == 200
    assert done.recorded == {
        "url": f"https://{web.domain}/a?b=1",
        "http_status": 200,
        "content_type": "text/plain",
        "size": 7,
        "sha256": hashlib.sha256("grüße".encode()).hexdigest(),
        "is_cut": False,
    }
    ((method, path, headers, body),) = web.requests
    assert (method, path, body) == ("GET", "/a?b=1", b"")
    assert headers["Idempotency-Key"] == "a_0123456789abcdef"
    assert headers["Host"] == web.domain


def test_bytes_that_are_no_text_come_in_base64(web: WebServer) -> None:
    web.answers["/a"] = 200, {}, b"\xff\x00"
    assert fetch(web, "a").data["content"] == "/wA="


def test_an_error_of_the_server_is_an_answer(web: WebServer) -> None:
    done = fetch(web, "missing")
    assert (done.data["http_status"], done.data["content"]) == (404, "nothing here")


@pytest.mark.parametrize("location", ["/b", "b", "//{domain}/b", "https://{domain}/b", "https://{domain}/b#top"])
def test_a_redirect_on_the_same_domain_is_followed(web: WebServer, location: str) -> None:
    web.answers["/a"] = 302, {"Location": location.format(domain=web.domain)}, b""
    web.answers["/b"] = 200, {}, b"there"
    assert fetch(web, "a").data["content"] == "there"
    assert [path for _, path, _, _ in web.requests] == ["/a", "/b"]


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "location",
    [
        "http://{domain}/b",
        "https://localhost/b",
        "https://example.com/b",
        "//example.com/b",
        "https://user@{domain}/b",
        "https://{domain}@example.com/b",
        "https://[::1/b",
        "https://localhost:99999/b",
        "file:///etc/passwd",
    ],
)
def test_a_redirect_to_another_place_is_refused(web: WebServer, location: str) -> None:
    web.answers["/a"] = 302, {"Location": location.format(domain=web.domain)}, b""
    assert refused(fetch, web, "a").code == "DOMAIN_NOT_ALLOWED"
    assert len(web.requests) == 1


@pytest.mark.more
def test_redirects_without_end(web: WebServer) -> None:
    web.answers["/a"] = 302, {"Location": "/a"}, b""
    assert "redirects more than" in refused(fetch, web, "a").message


def test_a_body_is_posted_once(web: WebServer) -> None:
    web.answers["/hook"] = 303, {"Location": "/elsewhere"}, b"ok"
    done = post(web, "/hook", '{"a": 1}')
    assert (done.data["http_status"], done.data["content"]) == (303, "ok")
    ((method, path, headers, body),) = web.requests
    assert (method, path, body) == ("POST", "/hook", b'{"a": 1}')
    assert headers["Content-Type"] == "application/json"


def test_text_that_is_no_json_is_posted_as_text(web: WebServer) -> None:
    post(web, "/hook", "hello")
    assert web.requests[0][2]["Content-Type"] == "text/plain; charset=utf-8"


def test_a_post_without_an_answer_has_an_unknown_outcome(web: WebServer) -> None:
    web.drops.add("/hook")
    assert refused(post, web, "/hook", "x").code == "OUTCOME_UNKNOWN"
    assert len(web.requests) == 1
    web.drops.add("/a")
    assert refused(fetch, web, "a").code == "EFFECT_FAILED"


def test_a_long_answer(web: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_effects, "ANSWER_MAX", 1000)
    web.answers["/a"] = 200, {}, b"x" * 1000
    assert fetch(web, "a").data["size"] == 1000
    web.answers["/a"] = 200, {}, b"x" * 1001
    assert "more than 1000 bytes" in refused(fetch, web, "a").message
    done = post(web, "/a", "sent")
    assert (done.data["size"], done.data["is_cut"]) == (1000, True)


def test_a_slow_answer_ends(web: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server says that more comes, and sends nothing. Only the whole exchange has a time that helps."""
    monkeypatch.setattr(web_effects, "EXCHANGE_SECONDS", 0.2)
    monkeypatch.setattr(web_effects, "CONNECT_SECONDS", 600.0)
    web.answers["/a"] = 200, {"Content-Length": "100"}, b"x"
    assert "gave no whole answer" in refused(fetch, web, "a").message


@pytest.mark.more
@pytest.mark.sample(4)
@pytest.mark.parametrize("number", range(6))
def test_an_answer_that_runs_out_of_time_is_never_taken_for_a_whole_one(
    web: WebServer, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """The server sends little pieces without a length, so that the time ends between two reads."""
    monkeypatch.setattr(web_effects, "EXCHANGE_SECONDS", 0.3)
    web.pours.add("/a")
    assert refused(fetch, web, "a").code == "EFFECT_FAILED"
    assert refused(post, web, "/a", "x").code == "OUTCOME_UNKNOWN"


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nabc\r\n0\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
    ],
)
def test_an_answer_that_is_none_leaves_the_outcome_of_a_post_unknown(web: WebServer, raw: bytes) -> None:
    web.raw["/a"] = raw
    assert refused(post, web, "/a", "x").code == "OUTCOME_UNKNOWN"
    assert refused(fetch, web, "a").code == "EFFECT_FAILED"


def test_a_redirect_to_a_path_that_is_not_ascii(web: WebServer) -> None:
    web.raw["/a"] = b"HTTP/1.1 302 Found\r\nLocation: /\xe9\r\nContent-Length: 0\r\n\r\n"
    assert refused(fetch, web, "a").code == "EFFECT_FAILED"


def test_an_answer_that_the_server_packs_is_not_unpacked(web: WebServer) -> None:
    packed = gzip.compress(b"x" * 1_000_000)
    web.answers["/a"] = 200, {"Content-Encoding": "gzip"}, packed
    assert fetch(web, "a").data["size"] == len(packed)


def test_proxies_of_the_environment_do_not_count(web: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "HTTP_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    web.answers["/a"] = 200, {}, b"there"
    assert fetch(web, "a").data["content"] == "there"


def test_few_addresses_of_a_host_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = list[Any]()

    class Deaf(socket.socket):
        def connect(self, address: Any) -> None:
            tried.append(address)
            raise TimeoutError

    found = [(2, 1, 6, "", (f"93.184.216.{number}", 443)) for number in range(200)]
    monkeypatch.setattr("socket.getaddrinfo", lambda *given, **more: found)
    monkeypatch.setattr("socket.socket", Deaf)
    refusal = refused(WebEffects().fetch, order("FetchResource", domain="example.com", resource_id="a"))
    assert refusal.code == "EFFECT_FAILED"
    assert len(tried) == web_effects.ADDRESSES_MAX


@pytest.mark.parametrize(
    "domain",
    [
        *("127.1", "0x7f000001", "2130706433", "017700000001", "0177.0.0.1", "127.0.0.1.", "localhost.", "0"),
        *("[::1]", "::1", "a@b.example", "b.example/x", "b.example%2f", "b.example#x", "b.example?x", "b.example\\x"),
        *("b.example:0", "b.example:65536", "b.example:+443", "b.example:443:1", "b.example:\u0661", "b\u3002example"),
        *("b.example\r\nX: 1", "b.example ", "\uff4cocalhost", "b..example", "-b.example", "", "b.example\0"),
    ],
)
def test_a_domain_in_another_spelling_is_no_domain(domain: str) -> None:
    with pytest.raises(Refused) as caught:
        order("FetchResource", domain=domain, resource_id="a")
    assert caught.value.code == "BAD_REQUEST"


@pytest.mark.parametrize("path", ["a b", "a\r\nX: 1", "a\0", "a\u2028", "é", "a#top", "a\\b"])
def test_a_path_cannot_write_a_header(path: str) -> None:
    for intent, name in (("FetchResource", "resource_id"), ("PostWebhook", "path")):
        more = {"body": ""} if intent == "PostWebhook" else {}
        with pytest.raises(Refused) as caught:
            order(intent, **{name: "/" + path, "domain": "b.example", **more})
        assert caught.value.code == "BAD_REQUEST"


def test_another_certificate_is_refused(web: WebServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(write_certificate(tmp_path / "..", "other.example")))
    assert "cannot connect" in refused(fetch, web, "a").message
    assert not web.requests


def test_a_private_address_is_refused_unless_the_host_is_listed(web: WebServer) -> None:
    given = order("FetchResource", domain=web.domain, resource_id="a")
    assert refused(WebEffects().fetch, given).code == "DOMAIN_NOT_ALLOWED"
    # Another port of the same host is another place.
    assert refused(WebEffects(frozenset({"localhost"})).fetch, given).code == "DOMAIN_NOT_ALLOWED"
    assert not web.requests


@pytest.mark.parametrize(
    "address",
    [
        *(
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "224.0.0.1",
        ),
        *("::1", "::", "fe80::1%eth0", "fc00::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1"),
        *(
            "64:ff9b::a9fe:a9fe",
            "2002:7f00:1::",
            "2002:a00:1::1",
            "2001:0:4136:e378:8000:63bf:f5ff:fffe",
            "255.255.255.255",
        ),
        # Of a site, of a machine, of a translator that the operator of a network runs, and not in use yet.
        *("fec0::1", "::127.0.0.1", "64:ff9b:1::7f00:1", "::ffff:0:127.0.0.1", "5f00::1"),
    ],
)
def test_private_addresses(address: str) -> None:
    assert is_private(address)


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "64:ff9b::808:808", "2002:808:808::1", "::ffff:8.8.8.8"]
)
def test_public_addresses(address: str) -> None:
    assert not is_private(address)


def test_one_private_address_among_public_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(2, 1, 6, "", ("8.8.8.8", 443)), (2, 1, 6, "", ("127.0.0.1", 443))]
    monkeypatch.setattr("socket.getaddrinfo", lambda *given, **more: found)
    assert refused(lambda: find_addresses("example.com", may_be_private=False)).code == "DOMAIN_NOT_ALLOWED"


def test_a_name_server_that_changes_its_answer_is_asked_once(web: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for a redirect: no later answer can lead the request to another machine."""
    honest, asked = socket.getaddrinfo, list[Any]()

    def resolve(host: str, port: int, *given: Any, **more: Any) -> Any:
        asked.append(host)
        return honest(host, port, *given, **more) if len(asked) == 1 else [(2, 1, 6, "", ("10.0.0.1", port))]

    monkeypatch.setattr("socket.getaddrinfo", resolve)
    web.answers["/a"] = 302, {"Location": "/b"}, b""
    web.answers["/b"] = 200, {}, b"there"
    assert fetch(web, "a").data["content"] == "there"
    assert len(asked) == 1


def test_a_host_without_an_address() -> None:
    given = order("FetchResource", domain="nothing.invalid", resource_id="a")
    assert refused(WebEffects().fetch, given).code == "EFFECT_FAILED"


def test_through_the_gateway(web: WebServer, aver_home: Path, tmp_path: Path) -> None:
    """A person approves, the resource is fetched once, and the record has its digest but not its text."""
    web.answers["/page"] = 200, {}, b"the text of the page"
    settings = EffectSettings(private_hosts=frozenset({web.domain}))
    with open_office(tmp_path / "work", effects=settings) as office:
        office.enrol()
        inputs = {"domain": web.domain, "resource_id": "page"}
        asked = office.act("FetchResource", inputs)
        if asked["reason_code"] == "REQUIRE_CONFIRM":
            office.approve(asked["data"]["approval"])
            asked = office.act("FetchResource", inputs)
        assert asked["reason_code"] == "ALLOW", asked
        assert asked["data"]["content"] == "the text of the page"
        assert len(web.requests) == 1
        [outcome] = office.ledger.find(kind="act.outcome")
        assert outcome.to_dict()["outcome"]["result"]["result"]["size"] == 20
        assert b"the text of the page" not in outcome.canonical
        assert office.ledger.verify().status == "verified"
