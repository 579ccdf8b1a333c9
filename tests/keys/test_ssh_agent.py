"""Keys in ssh-agent: a real one, and peers at the socket that do not keep to the protocol."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from aver import BadInput, NotFound, Refused, Unavailable
from aver.keys import KeyStore, PublicKey, Ring, SeedSigner, check_statement, sign_statement
from aver.keys.ssh_agent import ANSWER_MAX, KEYS_MAX, find_ssh_agent_signer, list_ssh_agent_keys

OPENSSH = pytest.mark.skipif(not all(map(shutil.which, ("ssh-agent", "ssh-add", "ssh-keygen"))), reason="no OpenSSH")


@pytest.fixture
def short() -> Iterator[Path]:
    """A directory with a short name: the path of a socket has about a hundred characters."""
    directory = Path(tempfile.mkdtemp(prefix="av-"))
    yield directory
    shutil.rmtree(directory)


# --- a real agent


@pytest.fixture
def agent(short: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    path = short / "agent"
    monkeypatch.setenv("SSH_AUTH_SOCK", str(path))
    process = subprocess.Popen(["ssh-agent", "-D", "-a", str(path)], stdout=subprocess.DEVNULL)
    try:
        while not path.exists():
            assert process.poll() is None
        yield short
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def added(directory: Path, name: str, sort: str = "ed25519") -> PublicKey | None:
    """Make a key and give it to the agent; the public half as OpenSSH writes it."""
    file = directory / name
    subprocess.run(["ssh-keygen", "-q", "-t", sort, "-N", "", "-C", name, "-f", file], check=True)
    subprocess.run(["ssh-add", "-q", file], check=True, stderr=subprocess.DEVNULL)
    file.unlink()
    if sort != "ed25519":
        return None
    import base64

    blob = base64.b64decode(file.with_suffix(".pub").read_text().split()[1])
    return PublicKey(blob[-32:].hex())


@pytest.mark.more
@OPENSSH
def test_a_statement_signed_by_the_agent_holds_like_any_other(agent: Path) -> None:
    assert list_ssh_agent_keys() == ()
    public = added(agent, "ada")
    added(agent, "other", "rsa")
    assert public is not None
    assert [(key.public, key.comment) for key in list_ssh_agent_keys()] == [(public, "ada")]
    signer = find_ssh_agent_signer(public)
    statement = sign_statement("approval", {"digest": "é"}, [signer])
    assert [result.outcome for result in check_statement(statement, Ring.pin([public]))] == ["valid"]
    other = Ring.pin([SeedSigner.generate().public])
    assert [result.outcome for result in check_statement(statement, other)] == ["unknown"]
    assert public.ed25519[:16] in repr(signer)


@OPENSSH
def test_a_key_that_the_agent_does_not_hold(agent: Path) -> None:
    public = added(agent, "ada")
    assert public is not None
    signer = find_ssh_agent_signer(public)
    with pytest.raises(NotFound):
        find_ssh_agent_signer(SeedSigner.generate().public)
    with pytest.raises(NotFound):
        find_ssh_agent_signer(PublicKey(public.ed25519, SeedSigner.generate(pq=True).public.ml_dsa_65))
    subprocess.run(["ssh-add", "-q", "-D"], check=True, stderr=subprocess.DEVNULL)
    with pytest.raises(Refused) as refusal:
        signer.sign_statement("approval", {})
    assert refusal.value.code == "AGENT_REFUSED"


@OPENSSH
def test_a_locked_agent_signs_nothing(agent: Path) -> None:
    from aver.keys.ssh_agent import SshAgentSigner

    public = added(agent, "ada")
    assert public is not None
    message = struct.pack(">IB", 1 + 4 + 3, 22) + struct.pack(">I", 3) + b"pin"  # SSH_AGENTC_LOCK
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(os.environ["SSH_AUTH_SOCK"])
        connection.sendall(message)
        assert connection.recv(5)[4] == 6
    assert list_ssh_agent_keys() == ()
    with pytest.raises(Refused):
        SshAgentSigner(public, os.environ["SSH_AUTH_SOCK"]).sign_statement("approval", {})


@OPENSSH
def test_such_a_key_is_registered_as_a_persons(agent: Path, store: KeyStore) -> None:
    public = added(agent, "ada")
    assert public is not None
    entry = store.register("person:ada", public)
    assert (entry.identity, entry.purpose, entry.epoch, entry.key) == ("person:ada", "approve", 0, public)
    assert KeyStore(store.home).ring().active("person:ada") == entry
    with pytest.raises(Refused) as refusal:
        store.register("person:ada", public)
    assert refusal.value.code == "KEY_EXISTS"
    with pytest.raises(Unavailable):
        _ = store.signer("person:ada", create=False).fingerprint
    store.create("agent:builder")  # A later change leaves it alone.
    assert store.ring().active("person:ada") == entry


def test_what_is_no_key_is_not_registered(store: KeyStore) -> None:
    with pytest.raises(BadInput):
        store.register("person:ada", PublicKey("00" * 32))
    assert store.ring().entries == ()


# --- peers that do not keep to the protocol


def string(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


KEY = SeedSigner.generate()
BLOB = string(b"ssh-ed25519") + string(KEY.public.ed25519_bytes)
LISTED = struct.pack(">I", 1) + string(BLOB) + string(b"ada")


def message(sort: int, body: bytes) -> bytes:
    return struct.pack(">IB", len(body) + 1, sort) + body


@pytest.fixture
def peer(short: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Something at the socket that answers each connection with the next of these bytes, and hangs up."""
    path = short / "peer"
    monkeypatch.setenv("SSH_AUTH_SOCK", str(path))
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    threads = []

    def serve(*answers: bytes) -> None:
        def run() -> None:
            for answer in answers:
                connection, _ = listener.accept()
                with connection:
                    connection.recv(65_536)
                    connection.sendall(answer)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        threads.append(thread)

    yield serve
    listener.close()
    for thread in threads:
        thread.join(10)


BAD_LISTS = {
    "nothing": b"",
    "half a length": b"\0\0",
    "an empty answer": struct.pack(">I", 0),
    "a length and no more": struct.pack(">I", 100),
    "four gigabytes": struct.pack(">I", 2**32 - 1) + b"x",
    "more than is taken": struct.pack(">I", ANSWER_MAX + 1),
    "no number": message(12, b""),
    "a number and no keys": message(12, struct.pack(">I", 3)),
    "too many keys": message(12, struct.pack(">I", KEYS_MAX + 1)),
    "a string beyond the end": message(12, struct.pack(">I", 1) + struct.pack(">I", 2**32 - 1) + b"x"),
    "an empty key": message(12, struct.pack(">I", 1) + string(b"") + string(b"")),
    "a short key": message(12, struct.pack(">I", 1) + string(string(b"ssh-ed25519") + string(b"x" * 31)) + string(b"")),
    "a key and more": message(12, struct.pack(">I", 1) + string(BLOB + b"x") + string(b"")),
    "keys and more": message(12, LISTED + b"x"),
}


@pytest.mark.parametrize("name", BAD_LISTS)
def test_a_bad_list_is_refused(name: str, peer: Callable[..., None]) -> None:
    peer(BAD_LISTS[name])
    with pytest.raises((BadInput, Unavailable)):
        list_ssh_agent_keys()


def test_other_sorts_of_keys_are_passed_over(peer: Callable[..., None]) -> None:
    other = string(string(b"ssh-rsa") + string(b"x" * 300)) + string(b"rsa")
    peer(message(12, struct.pack(">I", 2) + other + string(BLOB) + string(b"\xff" * 1000)))
    (key,) = list_ssh_agent_keys()
    assert key.public == KEY.public
    assert len(key.comment) == 256


def signature(raw: bytes, sort: bytes = b"ssh-ed25519") -> bytes:
    return message(14, string(string(sort) + string(raw)))


BAD_SIGNATURES = {
    "a failure": message(5, b""),
    "another answer": message(12, LISTED),
    "another sort": signature(b"x" * 64, b"rsa-sha2-256"),
    "a short one": signature(b"x" * 63),
    "a long one": signature(b"x" * 65),
    "one that does not hold": signature(b"x" * 64),
    "one and more": message(14, string(string(b"ssh-ed25519") + string(b"x" * 64)) + b"x"),
    "one with more inside": message(14, string(string(b"ssh-ed25519") + string(b"x" * 64) + b"x")),
    "none": message(14, b""),
}


@pytest.mark.parametrize("name", BAD_SIGNATURES)
def test_a_bad_signature_is_not_handed_on(name: str, peer: Callable[..., None]) -> None:
    peer(message(12, LISTED), BAD_SIGNATURES[name])
    signer = find_ssh_agent_signer(KEY.public)
    with pytest.raises((BadInput, Refused)):
        signer.sign_statement("approval", {"a": 1})


def test_a_signature_over_something_else_is_not_handed_on(peer: Callable[..., None]) -> None:
    other = KEY.sign_statement("approval", {"a": 2})
    peer(message(12, LISTED), signature(bytes.fromhex(other.ed25519)))
    with pytest.raises(Refused) as refusal:
        find_ssh_agent_signer(KEY.public).sign_statement("approval", {"a": 1})
    assert refusal.value.code == "SIG_INVALID"


def test_a_peer_that_keeps_to_it_is_believed(peer: Callable[..., None]) -> None:
    good = KEY.sign_statement("approval", {"a": 1})
    peer(message(12, LISTED), signature(bytes.fromhex(good.ed25519)))
    assert find_ssh_agent_signer(KEY.public).sign_statement("approval", {"a": 1}) == good


@pytest.mark.parametrize("path", ["", "/nowhere/agent", "/", "x" * 200, "/a\0b"])
def test_no_agent_there(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    with pytest.raises(Unavailable):
        list_ssh_agent_keys(path)
