"""The strict signature rules: one signature has one spelling, and degenerate keys sign nothing."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from itertools import product

import nacl.bindings as sodium
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA65PrivateKey, MLDSA65PublicKey

from aver.errors import BadInput
from aver.keys import algorithms
from aver.keys.algorithms import verify_ed25519, verify_ml_dsa_65
from support.many_cases import for_each

L = 2**252 + 27742317777372353535851937790883648493
DIGEST = hashlib.sha3_256(b"capsule").hexdigest().encode()

ORDER_8 = "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"
SMALL_ORDER = {
    "identity": "01" + "00" * 31,
    "order 2": "ec" + "ff" * 30 + "7f",
    "order 4": "00" * 32,
    "order 4, negative": "00" * 31 + "80",
    "order 8, a": ORDER_8,
    "order 8, b": ORDER_8[:-2] + "85",
    "order 8, c": "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "order 8, d": "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
    "identity, sign set": "01" + "00" * 30 + "80",
    "order 2, sign set": "ec" + "ff" * 31,
    "y = p": "ed" + "ff" * 30 + "7f",
    "y = p, sign set": "ed" + "ff" * 31,
    "y = p + 1": "ee" + "ff" * 30 + "7f",
    "y = p + 1, sign set": "ee" + "ff" * 31,
}


def scalar(number: int) -> bytes:
    return (number % L).to_bytes(32, "little")


def times_base(number: int) -> bytes:
    return sodium.crypto_scalarmult_ed25519_base_noclamp(scalar(number))


def challenge(r: bytes, a: bytes, message: bytes) -> int:
    return int.from_bytes(hashlib.sha512(r + a + message).digest(), "little") % L


@pytest.fixture(scope="module")
def pair() -> tuple[bytes, bytes]:
    return algorithms.ed25519_from_seed(bytes(range(32)))


def test_known_answer(pair: tuple[bytes, bytes]) -> None:
    """The public half of seed 00..1f and a signature made by another library."""
    public, secret = pair
    assert public.hex() == "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8"
    assert algorithms.fingerprint(public.hex()) == "03a107bff3ce10be"
    other = Ed25519PrivateKey.from_private_bytes(bytes(range(32))).sign(DIGEST).hex()
    assert algorithms.sign_ed25519(secret, DIGEST) == other
    assert verify_ed25519(public, DIGEST, other)


def test_every_flipped_bit_is_found(pair: tuple[bytes, bytes]) -> None:
    public, secret = pair
    signature = bytes.fromhex(algorithms.sign_ed25519(secret, DIGEST))
    for bit in range(len(signature) * 8):
        flipped = bytearray(signature)
        flipped[bit // 8] ^= 1 << bit % 8
        assert not verify_ed25519(public, DIGEST, flipped.hex())
    for bit in range(0, len(DIGEST) * 8, 7):
        message = bytearray(DIGEST)
        message[bit // 8] ^= 1 << bit % 8
        assert not verify_ed25519(public, bytes(message), signature.hex())


def test_without_the_private_name_of_pynacl(pair: tuple[bytes, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """`nacl._sodium` is private. A version of PyNaCl without it verifies in the same way, only slower."""
    public, secret = pair
    signature = algorithms.sign_ed25519(secret, DIGEST)
    algorithms._load_sign_open.cache_clear()
    monkeypatch.setitem(sys.modules, "nacl._sodium", None)
    try:
        assert algorithms._load_sign_open() == (algorithms._sign_open_by_pynacl, None)
        assert verify_ed25519(public, DIGEST, signature)
        assert not verify_ed25519(public, DIGEST[1:], signature)
        assert not verify_ed25519(public, DIGEST, signature[:-2] + "00")
    finally:
        algorithms._load_sign_open.cache_clear()


@pytest.mark.parametrize(
    "spoil",
    [
        str.upper,
        lambda text: text[:-1],
        lambda text: text + "0",
        lambda text: text + "\n",
        lambda text: " " + text,
        lambda text: text[:64] + " " + text[64:],
        lambda text: text[:64] + " " + text[65:],
        lambda text: "g" + text[1:],
        lambda text: "٠" + text[1:],
        lambda text: "",
        lambda text: "0x" + text,
        lambda text: None,
        lambda text: bytes.fromhex(text),
        lambda text: 7,
    ],
)
def test_a_signature_has_one_spelling(pair: tuple[bytes, bytes], spoil: object) -> None:
    public, secret = pair
    signature = algorithms.sign_ed25519(secret, DIGEST)
    assert verify_ed25519(public, DIGEST, signature)
    assert not verify_ed25519(public, DIGEST, spoil(signature))  # type: ignore[operator]


@pytest.mark.parametrize("size", [0, 1, 31, 33, 64])
def test_a_public_key_of_another_length_verifies_nothing(pair: tuple[bytes, bytes], size: int) -> None:
    public, secret = pair
    cut = (public + public)[:size]
    assert not verify_ed25519(cut, DIGEST, algorithms.sign_ed25519(secret, DIGEST))


def test_degenerate_key_and_signature() -> None:
    """A = R = identity and S = 0 satisfies the equation for every message; OpenSSL accepts it, we do not."""
    identity = bytes.fromhex(SMALL_ORDER["identity"])
    assert not verify_ed25519(identity, DIGEST, (identity + bytes(32)).hex())


@for_each(product(SMALL_ORDER, SMALL_ORDER))
def test_no_small_order_points(case: tuple[str, str]) -> None:
    a, r = case
    public, commitment = bytes.fromhex(SMALL_ORDER[a]), bytes.fromhex(SMALL_ORDER[r])
    # With A of small order, S = 0 satisfies the equation for some of these messages.
    for number in range(16):
        assert not verify_ed25519(public, b"%064d" % number, (commitment + bytes(32)).hex())
    assert not algorithms.is_prime_order_point(public)


@pytest.mark.parametrize("r", SMALL_ORDER)
def test_no_small_order_commitment_by_an_honest_key(r: str) -> None:
    """The holder of a good key can satisfy the equation with R = identity and S = k a."""
    a = 123456789
    public, commitment = times_base(a), bytes.fromhex(SMALL_ORDER[r])
    s = challenge(commitment, public, DIGEST) * a
    assert not verify_ed25519(public, DIGEST, (commitment + scalar(s)).hex())


@pytest.mark.parametrize("a", SMALL_ORDER)
def test_no_small_order_key_with_an_honest_commitment(a: str) -> None:
    """With A of small order, R = [S]B holds for an eighth of all messages or more, whoever signs."""
    public = bytes.fromhex(SMALL_ORDER[a])
    for number in range(1, 40):
        assert not verify_ed25519(public, DIGEST, (times_base(number) + scalar(number)).hex())


def test_s_beyond_the_order_is_refused(pair: tuple[bytes, bytes]) -> None:
    public, secret = pair
    signature = bytes.fromhex(algorithms.sign_ed25519(secret, DIGEST))
    s = int.from_bytes(signature[32:], "little")
    multiples = [s + times * L for times in range(1, 16) if s + times * L < 2**256]
    assert len(multiples) >= 14
    for larger in multiples:
        assert not verify_ed25519(public, DIGEST, (signature[:32] + larger.to_bytes(32, "little")).hex())


@pytest.mark.parametrize(("in_a", "in_r", "holds_when"), [(1, 0, 0), (0, 1, None), (1, 1, 7)])
def test_the_equation_holds_byte_for_byte(in_a: int, in_r: int, holds_when: int | None) -> None:
    """Points with a small-order part added: a verifier that multiplies by the cofactor accepts all of these.

    R = encode([S]B - [k]A) holds only where the challenge k cancels the added part.
    """
    extra = bytes.fromhex(ORDER_8)
    a, accepted, expected = 987654321, [], []
    public = times_base(a)
    public = sodium.crypto_core_ed25519_add(public, extra) if in_a else public
    for r in range(1, 65):
        commitment = times_base(r)
        commitment = sodium.crypto_core_ed25519_add(commitment, extra) if in_r else commitment
        k = challenge(commitment, public, DIGEST)
        accepted.append(verify_ed25519(public, DIGEST, (commitment + scalar(r + k * a)).hex()))
        expected.append(k % 8 == holds_when)
    assert accepted == expected


@pytest.mark.parametrize("y", range(2, 19))
def test_public_keys_have_one_encoding(y: int) -> None:
    """The points with y below 19 have a second encoding, y + p, which is refused."""
    second = (y + 2**255 - 19).to_bytes(32, "little")
    assert not algorithms.is_prime_order_point(second)
    assert not verify_ed25519(second, DIGEST, (times_base(5) + scalar(5)).hex())


def test_ml_dsa_65_round_trip_and_another_implementation() -> None:
    public, private = algorithms.ml_dsa_65_from_seed(bytes(range(32)))
    assert len(public) == algorithms.ML_DSA_65_PUBLIC_BYTES
    signature = private.sign(DIGEST)
    assert len(signature) == algorithms.ML_DSA_65_SIGNATURE_BYTES
    assert verify_ml_dsa_65(public, DIGEST, signature.hex())
    MLDSA65PublicKey.from_public_bytes(public).verify(signature, DIGEST, b"")
    assert MLDSA65PrivateKey.from_seed_bytes(bytes(range(32))).public_key().public_bytes_raw() == public


def test_ml_dsa_65_refuses_what_is_not_the_signature() -> None:
    public, private = algorithms.ml_dsa_65_from_seed(os.urandom(32))
    signature = private.sign(DIGEST).hex()
    assert not verify_ml_dsa_65(public, DIGEST[::-1], signature)
    assert not verify_ml_dsa_65(public, DIGEST, private.sign(DIGEST, b"a context").hex())
    assert not verify_ml_dsa_65(public, DIGEST, signature.upper())
    assert not verify_ml_dsa_65(public, DIGEST, signature[:-2])
    assert not verify_ml_dsa_65(public, DIGEST, "")
    assert not verify_ml_dsa_65(public, DIGEST, None)  # type: ignore[arg-type]
    assert not verify_ml_dsa_65(public[:-1], DIGEST, signature)
    assert not verify_ml_dsa_65(bytes(len(public)), DIGEST, signature)
    assert not verify_ml_dsa_65(b"\xff" * len(public), DIGEST, signature)
    for bit in range(0, len(signature) * 4, 997):
        flipped = bytearray.fromhex(signature)
        flipped[bit // 8] ^= 1 << bit % 8
        assert not verify_ml_dsa_65(public, DIGEST, flipped.hex())


@pytest.mark.parametrize("size", [0, 31, 33, 64])
def test_seeds_have_32_bytes(size: int) -> None:
    with pytest.raises(BadInput, match="32 bytes"):
        algorithms.ed25519_from_seed(bytes(size))
    with pytest.raises(BadInput, match="32 bytes"):
        algorithms.ml_dsa_65_from_seed(bytes(size))


def test_importing_the_room_loads_no_cryptography() -> None:
    code = "import sys, aver.keys; print([n for n in ('nacl', 'cryptography') if n in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
