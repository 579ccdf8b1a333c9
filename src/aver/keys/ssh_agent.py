"""List the keys that ssh-agent holds, and sign with one of them. Aver never sees the private key.

Aver talks to the agent over the socket that `SSH_AUTH_SOCK` names. A message is a length of four bytes, a type of one
byte, and a body. A string has its length before it. Aver sends two requests:

    11 request identities              -> 12 number, then (key, comment) each
    13 sign: key, data, flags          -> 14 signature

Aver uses only `ssh-ed25519` keys. The agent signs the data without changing them, so its signatures follow the same
rule as all others. Aver limits the size of an answer, and verifies each signature before it returns it. So a hostile
program behind the socket can refuse to sign, but do no other harm.
"""

from __future__ import annotations

import os
import struct
import time
from typing import TYPE_CHECKING, Any

from aver.errors import BadInput, NotFound, Refused, Unavailable
from aver.fast_dataclass import dataclass
from aver.keys.algorithms import ED25519_PUBLIC_BYTES, ED25519_SIGNATURE_BYTES, verify_ed25519
from aver.keys.public_key import PublicKey
from aver.keys.statement import StatementSignature, statement_bytes
from aver.log import debug

if TYPE_CHECKING:
    import socket

SOCKET_ENV = "SSH_AUTH_SOCK"

ANSWER_MAX = 256 * 1024
"""Largest answer, in bytes: the limit of OpenSSH."""

KEYS_MAX = 2048
"""Most keys that an agent may list: the limit of OpenSSH."""

COMMENT_MAX = 256
"""How many characters of a key's comment are kept."""

LIST_SECONDS = 10.0
"""Time limit for listing keys. The agent has them in memory."""

SIGN_SECONDS = 120.0
"""Time limit for signing. The agent may ask a person first (`ssh-add -c`)."""

_REQUEST_IDENTITIES, _IDENTITIES_ANSWER = 11, 12
_SIGN_REQUEST, _SIGN_RESPONSE = 13, 14
_ED25519 = b"ssh-ed25519"


@dataclass(frozen=True, slots=True)
class SshAgentKey:
    """An Ed25519 key in the agent, and the comment that its owner gave it."""

    public: PublicKey
    comment: str


class SshAgentSigner:
    """Signs statements with a key that ssh-agent holds. It signs no capsules: only the ledger seals those."""

    __slots__ = ("_path", "fingerprint", "public")

    def __init__(self, public: PublicKey, path: str) -> None:
        self.public = public
        self.fingerprint = public.fingerprint
        self._path = path

    def sign_statement(self, purpose: str, content: dict[str, Any]) -> StatementSignature:
        message = statement_bytes(purpose, content)
        body = (
            _encode_string(_encode_string(_ED25519) + _encode_string(self.public.ed25519_bytes))
            + _encode_string(message)
            + struct.pack(">I", 0)
        )
        answer = _send_request(self._path, _SIGN_REQUEST, body, _SIGN_RESPONSE, SIGN_SECONDS)
        reader = _AnswerReader(answer.read_string())
        answer.end()
        if reader.read_string() != _ED25519:
            raise _protocol_error("a signature of another type than requested")
        raw = reader.read_string()
        reader.end()
        if len(raw) != ED25519_SIGNATURE_BYTES:
            raise _protocol_error(f"an Ed25519 signature of {len(raw)} bytes")
        signature = raw.hex()
        if not verify_ed25519(self.public.ed25519_bytes, message, signature):
            raise Refused("SIG_INVALID", f"the signature of ssh-agent is not valid under the key {self.fingerprint}")
        return StatementSignature(self.fingerprint, signature)

    def __repr__(self) -> str:
        return f"<SshAgentSigner {self.fingerprint}>"


def list_ssh_agent_keys(path: str | None = None) -> tuple[SshAgentKey, ...]:
    """List the Ed25519 keys that the agent holds. `Unavailable` if there is no agent."""
    answer = _send_request(_socket_path(path), _REQUEST_IDENTITIES, b"", _IDENTITIES_ANSWER, LIST_SECONDS)
    count = answer.number()
    if count > KEYS_MAX:
        raise _protocol_error(f"it lists {count} keys")
    keys = []
    for _ in range(count):
        blob, comment = answer.read_string(), answer.read_string()
        reader = _AnswerReader(blob)
        if reader.read_string() != _ED25519:
            continue  # Keys of other types cannot sign for Aver.
        raw = reader.read_string()
        reader.end()
        if len(raw) != ED25519_PUBLIC_BYTES:
            raise _protocol_error(f"an Ed25519 key of {len(raw)} bytes")
        keys.append(SshAgentKey(PublicKey(raw.hex()), comment.decode("utf-8", "replace")[:COMMENT_MAX]))
    answer.end()
    return tuple(keys)


def find_ssh_agent_signer(public: PublicKey, path: str | None = None) -> SshAgentSigner:
    """The signer of a key. `NotFound` if the agent does not hold it."""
    path = _socket_path(path)
    if public.ml_dsa_65 or public not in (key.public for key in list_ssh_agent_keys(path)):
        raise NotFound(f"ssh-agent does not hold the key {public.fingerprint}", advice="add it: ssh-add -c FILE")
    return SshAgentSigner(public, path)


def _socket_path(path: str | None) -> str:
    path = path or os.environ.get(SOCKET_ENV)
    if not path:
        raise Unavailable(f"there is no ssh-agent: {SOCKET_ENV} is not set", advice="start one: eval $(ssh-agent)")
    return path


# --- one request


def _send_request(path: str, request: int, body: bytes, expected: int, seconds: float) -> _AnswerReader:
    """Send one request on a new connection; return a reader of the answer's body."""
    import socket  # Here, because few commands use an agent.

    message = struct.pack(">IB", len(body) + 1, request) + body
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            deadline = time.monotonic() + seconds
            connection.settimeout(seconds)
            connection.connect(path)
            connection.sendall(message)
            length = int.from_bytes(_receive_exactly(connection, 4, deadline), "big")
            if not 1 <= length <= ANSWER_MAX:
                raise _protocol_error(f"its answer has {length} bytes")
            answer = _receive_exactly(connection, length, deadline)
    except (OSError, ValueError) as error:
        words = getattr(error, "strerror", None) or str(error)
        raise Unavailable(f"ssh-agent does not answer: {words}", advice=f"see whether {SOCKET_ENV} is right") from error
    if answer[0] != expected:
        debug("keys", "ssh-agent answered request %d with type %d", request, answer[0])
        raise Refused("AGENT_REFUSED", "ssh-agent refused", advice="unlock it, confirm there, or add the key again")
    return _AnswerReader(answer, 1)


def _receive_exactly(connection: socket.socket, size: int, deadline: float) -> bytes:
    received = bytearray()
    while len(received) < size:
        connection.settimeout(max(deadline - time.monotonic(), 0.001))
        part = connection.recv(size - len(received))
        if not part:
            raise _protocol_error("it ended in the middle of its answer")
        received += part
    return bytes(received)


def _protocol_error(words: str) -> BadInput:
    return BadInput(f"the program behind {SOCKET_ENV} breaks the protocol of ssh-agent: {words}")


# --- reading and writing


class _AnswerReader:
    """Reads the parts of an answer in order, never beyond its end."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self._data = data
        self._at = at

    def number(self) -> int:
        return int.from_bytes(self._take(4), "big")

    def read_string(self) -> bytes:
        return self._take(self.number())

    def end(self) -> None:
        if self._at != len(self._data):
            raise _protocol_error(f"{len(self._data) - self._at} bytes too many")

    def _take(self, size: int) -> bytes:
        if size > len(self._data) - self._at:
            raise _protocol_error("a part of it is cut off")
        taken = self._data[self._at : self._at + size]
        self._at += size
        return taken


def _encode_string(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data
