"""Signers: what they sign, what they refuse, and that the key stays inside."""

from __future__ import annotations

import copy
import hashlib
import os
import pickle
from collections.abc import Callable

import pytest

from aver.capsule.sealed import Signature, Signer, hold_signer
from aver.errors import BadInput
from aver.keys import SeedSigner, verify_ed25519, verify_ml_dsa_65

DIGEST = hashlib.sha3_256(b"capsule").hexdigest()


def test_signs_the_characters_of_a_digest() -> None:
    signer = SeedSigner.generate()
    signature = signer.sign(DIGEST)
    assert verify_ed25519(signer.public.ed25519_bytes, DIGEST.encode(), signature.ed25519)
    assert not verify_ed25519(signer.public.ed25519_bytes, bytes.fromhex(DIGEST), signature.ed25519)
    assert signature.ml_dsa_65 == ""
    assert signer.fingerprint == signer.public.ed25519[:16]
    assert signer.public.algorithm == "ed25519"


def test_a_hybrid_key_signs_twice() -> None:
    signer = SeedSigner.generate(pq=True)
    signature = signer.sign(DIGEST)
    assert verify_ed25519(signer.public.ed25519_bytes, DIGEST.encode(), signature.ed25519)
    assert verify_ml_dsa_65(signer.public.ml_dsa_65_bytes, DIGEST.encode(), signature.ml_dsa_65)
    assert signer.public.algorithm == "ed25519+ml-dsa-65"


def test_the_same_seeds_give_the_same_key() -> None:
    assert SeedSigner(bytes(32), bytes(32)).public == SeedSigner(bytes(32), bytes(32)).public
    assert SeedSigner.generate().public != SeedSigner.generate().public


@pytest.mark.parametrize(
    "digest",
    [
        "",
        "a" * 63,
        "a" * 65,
        "A" * 64,
        "g" * 64,
        "a" * 64 + "\n",
        " " + "a" * 63,
        "aver/approval/v1\n{}",
        b"a" * 64,
        None,
        5,
    ],
)
def test_refuses_what_is_not_a_digest(digest: object) -> None:
    with pytest.raises(BadInput, match="digest"):
        SeedSigner(bytes(32)).sign(digest)  # type: ignore[arg-type]


def test_the_seed_stays_inside() -> None:
    seed, pq_seed = os.urandom(32), os.urandom(32)
    signer = SeedSigner(seed, pq_seed)
    for shown in (repr(signer), str(signer), f"{signer!r}"):
        assert seed.hex() not in shown
        assert signer.fingerprint in shown
    for take_out in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="private key"):
            take_out(signer)
    assert not hasattr(signer, "__dict__")


def test_a_seed_signer_is_held_as_it_is() -> None:
    signer = SeedSigner.generate()
    with hold_signer(signer) as held:
        assert held is signer


class RemoteSigner:
    """A signer whose key lives in another process, reached over two pipes."""

    def __init__(self, requests: int, answers: int) -> None:
        self._requests = requests
        self._answers = os.fdopen(answers, "r")
        self.fingerprint = self._answers.readline().strip()

    def sign(self, digest: str) -> Signature:
        os.write(self._requests, digest.encode() + b"\n")
        return Signature(self._answers.readline().strip())


def test_a_signer_may_live_in_another_process(
    start: Callable[[Callable[[], None]], int], finish: Callable[[int], int]
) -> None:
    ask_read, ask_write = os.pipe()
    answer_read, answer_write = os.pipe()
    key = SeedSigner(bytes(range(32)))

    def serve() -> None:
        os.close(ask_write)
        os.write(answer_write, key.fingerprint.encode() + b"\n")
        with os.fdopen(ask_read, "r") as requests:
            for line in requests:
                os.write(answer_write, key.sign(line.strip()).ed25519.encode() + b"\n")

    child = start(serve)
    os.close(ask_read)
    remote: Signer = RemoteSigner(ask_write, answer_read)
    with hold_signer(remote) as signer:
        assert signer.fingerprint == key.fingerprint
        for number in range(5):
            digest = hashlib.sha3_256(b"%d" % number).hexdigest()
            assert verify_ed25519(key.public.ed25519_bytes, digest.encode(), signer.sign(digest).ed25519)
    os.close(ask_write)
    assert finish(child) == 0
