"""The effects over HTTPS: `FetchResource` gets a resource, `PostWebhook` posts a body.

Both go to the bound domain, to an address that was resolved once and checked (`checked_address`). The certificate must
be that of the domain. The act's id goes along as `Idempotency-Key`, so that a server can recognise an act it has seen.

A GET follows redirects on the same domain. A redirect to another domain, scheme or port is refused: the policy has not
judged it. A POST follows none.

The answer of the server is the caller's. The record has its status, size and SHA-256. An answer with an error status is
an answer: the request went out. Where a body was sent and no answer came, nobody knows whether the server took it:
`OUTCOME_UNKNOWN`.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import socket
import ssl
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit

from aver.errors import Refused
from aver.gateway.codes import DOMAIN_NOT_ALLOWED
from aver.gateway.effects.checked_address import EFFECT_FAILED, CheckedAddress, find_addresses, split_domain
from aver.gateway.effects.shown_bytes import show_bytes
from aver.gateway.executor.executor import OUTCOME_UNKNOWN, EffectDone, EffectOrder

CONNECT_SECONDS = 10.0
"""Seconds to connect to one address."""

EXCHANGE_SECONDS = 60.0
"""Seconds for one whole exchange. A server that sends one byte at a time must not hold an executor for ever."""

ANSWER_MAX = 8 * 1024 * 1024
"""Most bytes of an answer that are read. A longer resource is refused: half a resource is not the resource."""

REDIRECTS_MAX = 5

ADDRESSES_MAX = 8
"""Most addresses of a host that are tried. A name server can answer with hundreds, none of which takes a connection."""

CHUNK = 64 * 1024

_REDIRECTS = frozenset({301, 302, 303, 307, 308})

USER_AGENT = "aver-gateway"


class HttpAnswer(NamedTuple):
    """The answer of a server."""

    status: int
    content_type: str
    location: str
    body: bytes
    is_cut: bool
    """Whether the server had more to say than `ANSWER_MAX`."""


class WebEffects:
    """The two effects. `private_hosts` are the domains that may have an address of a private network."""

    def __init__(self, private_hosts: frozenset[str] = frozenset()) -> None:
        self._private_hosts = private_hosts

    def fetch(self, order: EffectOrder) -> EffectDone:
        """Get a resource, following redirects on its domain."""
        domain = order.inputs["domain"]
        path = "/" + order.inputs["resource_id"].removeprefix("/")
        addresses = self._find_addresses(domain)
        for _ in range(REDIRECTS_MAX + 1):
            answer = _exchange(domain, addresses, "GET", path, _build_headers(order))
            if answer.is_cut:
                raise Refused(EFFECT_FAILED, f"the answer of {domain} has more than {ANSWER_MAX} bytes")
            if answer.status not in _REDIRECTS or not answer.location:
                return _report("fetched", domain, path, answer)
            path = _follow(domain, path, answer.location)
        raise Refused(EFFECT_FAILED, f"{domain} redirects more than {REDIRECTS_MAX} times")

    def post(self, order: EffectOrder) -> EffectDone:
        """Post a body, once."""
        domain, path, text = order.inputs["domain"], order.inputs["path"], order.inputs["body"]
        try:
            body = text.encode()
        except UnicodeEncodeError as error:
            raise Refused(EFFECT_FAILED, "the body has half a character, which cannot be sent") from error
        headers = {**_build_headers(order), "Content-Type": _guess_type(text), "Content-Length": str(len(body))}
        answer = _exchange(domain, self._find_addresses(domain), "POST", path, headers, body)
        return _report("posted to", domain, path, answer)

    def _find_addresses(self, domain: str) -> list[CheckedAddress]:
        return find_addresses(domain, may_be_private=domain in self._private_hosts)


def _build_headers(order: EffectOrder) -> dict[str, str]:
    # No compression: a small answer could unpack to gigabytes.
    return {
        "User-Agent": USER_AGENT,
        "Accept": "*/*",
        "Accept-Encoding": "identity",
        "Connection": "close",
        "Idempotency-Key": order.action_id,
    }


def _guess_type(text: str) -> str:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return "text/plain; charset=utf-8"
    return "application/json"


def _follow(domain: str, path: str, location: str) -> str:
    """Return the path of a redirect. Raises `Refused` where it leaves the domain."""
    host, port = split_domain(domain)
    try:
        target = urlsplit(urljoin(f"https://{domain}{path}", location))
        is_same = target.scheme == "https" and target.hostname == host and (target.port or 443) == port
    except ValueError:
        is_same = False
    if not is_same or target.username is not None:
        raise Refused(DOMAIN_NOT_ALLOWED, f"{domain} redirects to another place: {ascii(location)[:160]}")
    return (target.path or "/") + (f"?{target.query}" if target.query else "")


def _report(verb: str, domain: str, path: str, answer: HttpAnswer) -> EffectDone:
    found: dict[str, Any] = {
        "url": f"https://{domain}{path}",
        "http_status": answer.status,
        "content_type": answer.content_type,
        "size": len(answer.body),
        "sha256": hashlib.sha256(answer.body).hexdigest(),
        "is_cut": answer.is_cut,
    }
    words = f"{verb} {domain}: HTTP {answer.status}"
    return EffectDone(words, {**found, **show_bytes(answer.body)}, recorded=found)


class _CheckedConnection(http.client.HTTPSConnection):
    """An HTTPS connection to one of the checked addresses. The certificate must be that of the host."""

    def __init__(self, domain: str, addresses: list[CheckedAddress]) -> None:
        host, port = split_domain(domain)
        self._tls = ssl.create_default_context()
        super().__init__(host, port, timeout=CONNECT_SECONDS, context=self._tls)
        self._addresses = addresses

    def connect(self) -> None:
        """Connect to the first address that answers. `OSError` is the last address's."""
        error: OSError = OSError("the host has no address")
        for family, address in self._addresses[:ADDRESSES_MAX]:
            plain = socket.socket(family, socket.SOCK_STREAM)
            plain.settimeout(CONNECT_SECONDS)
            try:
                plain.connect(address)
                # Not `suppress_ragged_eofs`: an answer that was cut on its way is an error, not a short answer.
                self.sock = self._tls.wrap_socket(plain, server_hostname=self.host, suppress_ragged_eofs=False)
                return
            except OSError as caught:
                plain.close()
                error = caught
        raise error


def _exchange(
    domain: str,
    addresses: list[CheckedAddress],
    method: str,
    path: str,
    headers: Mapping[str, str],
    body: bytes | None = None,
) -> HttpAnswer:
    """Make one request and read its whole answer. Raises `Refused`."""
    connection = _CheckedConnection(domain, addresses)
    try:
        connection.connect()
    except OSError as error:
        connection.close()
        raise Refused(EFFECT_FAILED, f"cannot connect to {domain}: {error}") from error
    # Timeouts of a socket count for single reads. This one ends the whole exchange.
    watch = _Watch(connection.sock)
    watch.start()
    try:
        connection.request(method, path, body=body, headers=dict(headers))
        answer = _read_answer(connection.getresponse())
        if watch.is_over:
            raise TimeoutError(f"it took more than {EXCHANGE_SECONDS:.0f} seconds")
        return answer
    # `ValueError`: the library's, for a chunk of negative size or a redirect to a path that is not ASCII.
    except (OSError, http.client.HTTPException, ValueError) as error:
        code = EFFECT_FAILED if method == "GET" else OUTCOME_UNKNOWN
        raise Refused(code, f"{domain} gave no whole answer: {type(error).__name__}: {str(error)[:160]}") from error
    finally:
        watch.cancel()
        connection.close()


def _read_answer(response: http.client.HTTPResponse) -> HttpAnswer:
    if response.status < 200:  # It says that the answer is still to come, and the library reads no second one.
        raise http.client.BadStatusLine(f"status {response.status}, which is no answer yet")
    parts, size = list[bytes](), 0
    while size <= ANSWER_MAX and (chunk := response.read(CHUNK)):
        size += len(chunk)
        parts.append(chunk)
    kind = ascii(response.headers.get("Content-Type", ""))[1:-1][:160]
    body = b"".join(parts)
    # The library takes the end of the connection for the end of the answer.
    if len(body) <= ANSWER_MAX and response.length:
        raise http.client.IncompleteRead(body[:0], response.length)
    location = response.headers.get("Location", "")
    return HttpAnswer(response.status, kind, location, body[:ANSWER_MAX], is_cut=len(body) > ANSWER_MAX)


class _Watch(threading.Timer):
    """Ends an exchange whose time is over."""

    def __init__(self, tls: socket.socket) -> None:
        super().__init__(EXCHANGE_SECONDS, self._break_off)
        self.daemon = True
        self.is_over = False
        self._tls = tls

    def _break_off(self) -> None:
        self.is_over = True
        # Not the shutdown of TLS: after that, the other thread would read on without it, and take the end for the
        # end of the answer.
        with suppress(OSError):
            socket.socket.shutdown(self._tls, socket.SHUT_RDWR)
