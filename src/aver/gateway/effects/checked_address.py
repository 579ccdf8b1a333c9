"""The addresses of a host that an effect may connect to: resolved once, and checked.

A name is resolved once, and the effect connects to the addresses that were checked. So a name server cannot answer
with a public address first and with `127.0.0.1` later. An address in a private network is refused: an agent must not
reach the services of this machine, of its network, or of its cloud through the executor. The operator names the hosts
that may have one (`[gateway] private_hosts`).
"""

from __future__ import annotations

import ipaddress
import socket
from typing import Any, NamedTuple

from aver.errors import Refused
from aver.gateway.codes import DOMAIN_NOT_ALLOWED
from aver.log import debug

EFFECT_FAILED = "EFFECT_FAILED"

HTTPS = 443

LOCALHOST = "localhost"
"""The name of this machine, also as the end of longer names (RFC 6761)."""

_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")
"""The IPv6 addresses that the internet uses. All others are of a machine, a site or a future purpose."""

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
"""IPv6 addresses that lead to an IPv4 address, the last 32 bits."""


class CheckedAddress(NamedTuple):
    """An address to connect to, as `socket` takes it."""

    family: int
    address: tuple[Any, ...]


def split_domain(domain: str) -> tuple[str, int]:
    """Return host and port of a bound domain, such as `example.com` or `example.com:8443`."""
    host, _, port = domain.partition(":")
    return host, int(port or HTTPS)


def find_addresses(domain: str, *, may_be_private: bool) -> list[CheckedAddress]:
    """Resolve the host of a domain. Raises `Refused` if there is none, or if one of its addresses is private."""
    host, port = split_domain(domain)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise Refused(EFFECT_FAILED, f"{host} has no address: {error}") from error
    # One private address is enough to refuse: an attacker's name server may mix it among public ones.
    for _, _, _, _, address in found:
        if not may_be_private and is_private(str(address[0])):
            raise _private_address(domain, str(address[0]))
    return [CheckedAddress(family, address) for family, _, _, _, address in found]


def check_literal(domain: str, *, may_be_private: bool) -> None:
    """Raise `Refused` where a domain is itself a private address, or `localhost`. It asks no name server."""
    host, _ = split_domain(domain)
    if may_be_private:
        return
    if host == LOCALHOST or host.endswith(f".{LOCALHOST}"):
        raise _private_address(domain, "this machine")
    try:
        is_refused = is_private(host)
    except ValueError:  # It is a name.
        return
    if is_refused:
        raise _private_address(domain, host)


def _private_address(domain: str, address: str) -> Refused:
    debug("gateway", "%s leads to %s", domain, address)
    return Refused(
        DOMAIN_NOT_ALLOWED,
        f"{domain} leads to {address}, which is an address of a private network",
        advice="the operator can add the host to [gateway] private_hosts",
    )


def is_private(text: str) -> bool:
    """Whether an address is not one of the public internet, also where another address is written into it."""
    address = ipaddress.ip_address(text.partition("%")[0])
    inner: list[ipaddress.IPv4Address | None] = []
    if isinstance(address, ipaddress.IPv6Address):
        inner = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
        if address in _NAT64:
            inner.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
        is_leading_on = address in _NAT64 or address.ipv4_mapped is not None
        if address not in _GLOBAL_UNICAST and not is_leading_on:
            return True
    # Python's releases do not agree on 6to4; there, the address inside decides.
    is_6to4 = isinstance(address, ipaddress.IPv6Address) and address.sixtofour is not None
    if address.is_multicast or address.is_unspecified or not (address.is_global or is_6to4):
        return True
    return any(not each.is_global for each in inner if each is not None)
