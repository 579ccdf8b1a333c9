"""Keys that ssh-agent holds: which they are, and signing with one. The private key never comes here.

The agent is asked over the socket that `SSH_AUTH_SOCK` names, in its own protocol: a message is a length in four
bytes, a type in one, and a body; strings carry their length before them. Two requests are known here:

    11 request identities              -> 12 number, then (key, comment) each
    13 sign: key, data, flags          -> 14 signature

Only `ssh-ed25519` keys count: the agent signs the data as they are, so that a statement signed by it is checked by
the same rule as any other. What comes back is bounded, and a signature is checked before it is handed on: whoever
listens at the socket can refuse, and nothing else.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from aver.errors import BadInput, NotFound, Refused, Unavailable
from aver.fast_dataclass import dataclass
from aver.keys.algorithms import ED25519_PUBLIC_BYTES, ED25519_SIGNATURE_BYTES, verify_ed25519
from aver.keys.public_key import PublicKey
from aver.keys.statement import StatementSignature, statement_bytes

if TYPE_CHECKING:
    import socket

__all__ = ["SshAgentKey", "SshAgentSigner", "find_ssh_agent_signer", "list_ssh_agent_keys"]

SOCKET_ENV = "SSH_AUTH_SOCK"

ANSWER_MAX = 256 * 1024
"""Bytes of an answer: what OpenSSH itself takes."""

KEYS_MAX = 2048
"""Keys that one agent may list: the same."""

COMMENT_MAX = 256
"""Characters of a key's comment that are kept."""

LIST_SECONDS = 10.0
"""How long the agent may take to list its keys; it has them at hand."""

SIGN_SECONDS = 120.0
"""How long it may take to sign: it may ask a person first (`ssh-add -c`)."""

_REQUEST_IDENTITIES, _IDENTITIES_ANSWER = 11, 12
_SIGN_REQUEST, _SIGN_RESPONSE = 13, 14
_ED25519 = b"ssh-ed25519"


@dataclass(frozen=True, slots=True)
class SshAgentKey:
    """An Ed25519 key in the agent; `comment` is whatever its owner called it."""

    public: PublicKey
    comment: str


class SshAgentSigner:
    """Signs statements with a key that ssh-agent holds. It signs no capsules: those are the ledger's to seal."""

    __slots__ = ("_path", "fingerprint", "public")

    def __init__(self, public: PublicKey, path: str) -> None:
        self.public = public
        self.fingerprint = public.fingerprint
        self._path = path

    def sign_statement(self, purpose: str, content: dict[str, Any]) -> StatementSignature:
        message = statement_bytes(purpose, content)
        body = _encode_string(_encode_key(self.public)) + _encode_string(message) + struct.pack(">I", 0)
        answer = _send_request(self._path, _SIGN_REQUEST, body, _SIGN_RESPONSE, SIGN_SECONDS)
        signature = _read_signature(answer).hex()
        if not verify_ed25519(self.public.ed25519_bytes, message, signature):
            raise Refused("SIG_INVALID", f"what ssh-agent signed does not hold under the key {self.fingerprint}")
        return StatementSignature(self.fingerprint, signature)

    def __repr__(self) -> str:
        return f"<AgentSigner {self.fingerprint}>"


def list_ssh_agent_keys(path: str | None = None) -> tuple[SshAgentKey, ...]:
    """The Ed25519 keys that the agent holds; `Unavailable` where there is no agent."""
    answer = _send_request(_socket_path(path), _REQUEST_IDENTITIES, b"", _IDENTITIES_ANSWER, LIST_SECONDS)
    return tuple(_read_identities(answer))


def find_ssh_agent_signer(public: PublicKey, path: str | None = None) -> SshAgentSigner:
    """The signer of a key, if the agent holds it."""
    path = _socket_path(path)
    if public.ml_dsa_65 or public not in (key.public for key in list_ssh_agent_keys(path)):
        raise NotFound(f"ssh-agent does not hold the key {public.fingerprint}", advice="add it: ssh-add -c FILE")
    return SshAgentSigner(public, path)


def _socket_path(path: str | None) -> str:
    path = path or os.environ.get(SOCKET_ENV)
    if not path:
        raise Unavailable(f"there is no ssh-agent: {SOCKET_ENV} is not set", advice="start one: eval $(ssh-agent)")
    return path


# --- talking


def _send_request(path: str, request: int, body: bytes, expected: int, seconds: float) -> _AnswerReader:
    """One request on a connection of its own; the body of the answer."""
    import socket  # Here, because few who sign ask an agent.

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
    return BadInput(f"what answers as ssh-agent does not keep to the protocol: {words}")


# --- reading and writing


class _AnswerReader:
    """Takes an answer apart, from the front, never beyond its end."""

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


def _read_identities(answer: _AnswerReader) -> Iterator[SshAgentKey]:
    count = answer.number()
    if count > KEYS_MAX:
        raise _protocol_error(f"it lists {count} keys")
    for _ in range(count):
        blob, comment = answer.read_string(), answer.read_string()
        public = _parse_public_key(blob)
        if public is not None:
            yield SshAgentKey(public, comment.decode("utf-8", "replace")[:COMMENT_MAX])
    answer.end()


def _parse_public_key(blob: bytes) -> PublicKey | None:
    """The key in a blob, or None if it is of another sort."""
    reader = _AnswerReader(blob)
    if reader.read_string() != _ED25519:
        return None
    raw = reader.read_string()
    reader.end()
    if len(raw) != ED25519_PUBLIC_BYTES:
        raise _protocol_error(f"an Ed25519 key of {len(raw)} bytes")
    return PublicKey(raw.hex())


def _read_signature(answer: _AnswerReader) -> bytes:
    reader = _AnswerReader(answer.read_string())
    answer.end()
    if reader.read_string() != _ED25519:
        raise _protocol_error("a signature of another sort than was asked for")
    raw = reader.read_string()
    reader.end()
    if len(raw) != ED25519_SIGNATURE_BYTES:
        raise _protocol_error(f"an Ed25519 signature of {len(raw)} bytes")
    return raw


def _encode_key(public: PublicKey) -> bytes:
    return _encode_string(_ED25519) + _encode_string(public.ed25519_bytes)


def _encode_string(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data
