"""Who is calling a server: the user id behind a Unix socket, the token of the request, and the client's name.

The kernel tells the user id of the process at the other end of a Unix socket, and nobody can forge it. It is the id at
the moment when that process connected. Over TCP there is none. A process in another user namespace has the id under
which this namespace knows it; ids that it does not know all become the overflow id, mostly 65534.

A client is permitted by its token, by its user id, or by both together:

    PermittedClient("gateway", token_sha256="5feceb66…", uid=1000)   both must be right
    PermittedClient("ci", token_sha256="6b86b273…")                  whoever has the token
    PermittedClient("ada", uid=1001)                                 any program of that user, without a token
"""

from __future__ import annotations

import hmac
import re
import socket
import struct
import sys
from collections.abc import Callable, Iterable, Mapping

from aver.errors import BadInput
from aver.fast_dataclass import dataclass
from aver.lazy_pattern import lazy_pattern
from aver.log import debug
from aver.serving.tokens import digest_token

UID_MAX = 2**32 - 2
"""Largest user id. The next number means "no user" to the kernel."""

_DIGEST = lazy_pattern(r"[0-9a-f]{64}", re.ASCII)

_LINUX_CREDENTIALS = struct.Struct("iII")
"""`struct ucred`: process, user, group."""

_BSD_LOCAL_LEVEL, _BSD_PEER_CREDENTIALS = 0, 1
_BSD_CREDENTIALS = struct.Struct("IIh")
"""The beginning of `struct xucred` on macOS: version, user, number of groups."""
_BSD_CREDENTIALS_SIZE = 76


def read_peer_uid(connection: socket.socket) -> int | None:
    """The user id of the process that connected to a Unix socket. None over TCP, or if the system does not tell."""
    if connection.family != socket.AF_UNIX:
        return None
    try:
        if sys.platform == "darwin":
            raw = connection.getsockopt(_BSD_LOCAL_LEVEL, _BSD_PEER_CREDENTIALS, _BSD_CREDENTIALS_SIZE)
            version, uid, _ = _BSD_CREDENTIALS.unpack_from(raw)
            known = version == 0
        else:
            raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _LINUX_CREDENTIALS.size)
            _, uid, _ = _LINUX_CREDENTIALS.unpack(raw)
            known = True
    except (OSError, AttributeError, struct.error) as error:
        debug("serving", "the system does not tell who connected: %s", error)
        return None
    return uid if known and uid <= UID_MAX else None


def read_peer_pid(connection: socket.socket) -> int | None:
    """The process that connected to a Unix socket, by its id here. None over TCP, and where Linux does not tell."""
    if connection.family != socket.AF_UNIX or sys.platform != "linux":
        return None
    try:
        raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _LINUX_CREDENTIALS.size)
        pid, _, _ = _LINUX_CREDENTIALS.unpack(raw)
    except (OSError, struct.error) as error:
        debug("serving", "the system does not tell which process connected: %s", error)
        return None
    return int(pid) or None  # 0: a process that this namespace does not know.


@dataclass(frozen=True, slots=True)
class Peer:
    """Who made a request: the user id, the name of the permitted client, and the address that was called."""

    uid: int | None
    client: str
    address: str


@dataclass(frozen=True, slots=True)
class Credentials:
    """Token, user id, process and signature headers of a request: those that begin with `aver-`, by lower-case name."""

    token: bytes | None
    uid: int | None
    headers: Mapping[str, str]
    pid: int | None = None
    """The process that connected. It may have ended since, and its id may be another process's now."""


Identify = Callable[[Credentials], str | None]
"""Gives the name of the client, or None for a request that is refused (401). An empty name stands for a client that is
known by something else, such as a signature that the route checks."""


@dataclass(frozen=True, slots=True)
class PermittedClient:
    """One client that may call. A request must have the token and the user id that are named here: one, or both."""

    name: str
    token_sha256: str = ""
    uid: int | None = None

    def __post_init__(self) -> None:
        if not self.token_sha256 and self.uid is None:
            raise BadInput(f"the client {self.name} has neither a token nor a user id")
        if self.token_sha256 and _DIGEST.fullmatch(self.token_sha256) is None:
            raise BadInput(f"the token of the client {self.name} is not named by 64 lower-case hex digits")
        if self.uid is not None and not 0 <= self.uid <= UID_MAX:
            raise BadInput(f"the client {self.name} has an impossible user id: {self.uid}")


class ClientList:
    """The permitted clients of a server. It is an `Identify`."""

    def __init__(self, clients: Iterable[PermittedClient]) -> None:
        self._clients = tuple(clients)
        seen = {(client.token_sha256, client.uid): client.name for client in self._clients}
        if len(seen) != len(self._clients):
            raise BadInput("two clients have the same token and user id, so that nobody could tell them apart")

    def __call__(self, shown: Credentials) -> str | None:
        """The name of the client that showed these credentials, or None.

        A token that is shown must be right, even for a user who needs none.
        """
        digest = "" if shown.token is None else digest_token(shown.token)
        name = None
        for client in self._clients:  # All of them, so that the time does not tell which one was close.
            token_right = hmac.compare_digest(client.token_sha256, digest)
            if token_right and client.uid in (None, shown.uid):
                # The rule that names the user comes before the one that does not.
                name = client.name if name is None or client.uid is not None else name
        if name is None:
            debug("serving", "no client has user id %s and this token", shown.uid)
        return name
