"""Passkeys: an honest signature holds, and each single mistake of a signature or a key is found."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from hypothesis import given
from hypothesis import strategies as st

from aver.errors import BadInput
from aver.keys import Ring, Statement, StatementSignature, check_statement, statement_bytes
from aver.keys.passkey import (
    CREDENTIAL_MAX,
    P256_ORDER,
    PASSKEY_SIGNATURE_MAX,
    Passkey,
    PasskeySignature,
    decode_base64url,
    encode_base64url,
    is_origin_of,
    passkey_problem,
)
from support.passkeys import MISTAKES, UP, UV, SoftPasskey

CONTENT: dict[str, Any] = {"digest": "ab" * 32, "decision": "approve"}
MESSAGE = statement_bytes("approval", CONTENT)
PHONE = SoftPasskey("phone")
TOKEN = SoftPasskey("token", "EdDSA")
BOTH = pytest.mark.parametrize("device", [PHONE, TOKEN], ids=["ES256", "EdDSA"])


def problem(device: SoftPasskey, **mistakes: Any) -> str | None:
    return passkey_problem(device.passkey, MESSAGE, device.sign_bytes(MESSAGE, **mistakes))


@BOTH
def test_honest_signature_holds(device: SoftPasskey) -> None:
    assert problem(device) is None
    # A browser may leave it out, add members, and order them as it likes.
    assert problem(device, crossOrigin=...) is None
    assert problem(device, other_keys_can_be_added_here="do not compare clientDataJSON") is None
    assert problem(device, text=lambda honest: f" {honest}\n") is None
    # The device may say more: that the key is backed up, and extensions.
    assert problem(device, flags=UP | UV | 0x18) is None
    assert problem(device, flags=UP | UV | 0x80, more=b"\xa0") is None


def test_fingerprint_is_of_the_public_key() -> None:
    raw = bytes.fromhex(PHONE.passkey.public_key)
    assert PHONE.fingerprint == hashlib.sha256(raw).hexdigest()[:16]
    assert len(raw) == 65
    assert TOKEN.fingerprint == hashlib.sha256(bytes.fromhex(TOKEN.passkey.public_key)).hexdigest()[:16]


@BOTH
@pytest.mark.parametrize("name", MISTAKES)
def test_each_mistake_is_found(name: str, device: SoftPasskey) -> None:
    assert problem(device, **MISTAKES[name]) is not None


@BOTH
def test_statement_of_another(device: SoftPasskey) -> None:
    signed = device.sign_bytes(MESSAGE)
    for other in (
        statement_bytes("enrolment", CONTENT),
        statement_bytes("approval", {**CONTENT, "decision": "deny"}),
        MESSAGE + b"\n",
    ):
        assert passkey_problem(device.passkey, other, signed) == "it was signed for another statement"


@BOTH
def test_key_of_another(device: SoftPasskey) -> None:
    other = SoftPasskey("other", device.passkey.alg)
    assert passkey_problem(other.passkey, MESSAGE, device.sign_bytes(MESSAGE)) is not None


def test_algorithm_of_another() -> None:
    """A signature of one algorithm is none of the other."""
    assert passkey_problem(TOKEN.passkey, MESSAGE, PHONE.sign_bytes(MESSAGE)) is not None
    assert passkey_problem(PHONE.passkey, MESSAGE, TOKEN.sign_bytes(MESSAGE)) is not None


@BOTH
def test_every_bit_counts(device: SoftPasskey) -> None:
    signed = device.sign_bytes(MESSAGE)
    for name in ("authenticator_data", "client_data", "signature"):
        raw = decode_base64url(getattr(signed, name))
        for at in range(len(raw)):
            flipped = raw[:at] + bytes([raw[at] ^ (1 << at % 8)]) + raw[at + 1 :]
            assert passkey_problem(device.passkey, MESSAGE, replace(signed, **{name: encode_base64url(flipped)}))


def der(*parts: bytes) -> bytes:
    body = b"".join(parts)
    return b"\x30" + bytes([len(body)]) + body


def integer(value: int, *, before: bytes = b"") -> bytes:
    raw = before + value.to_bytes(value.bit_length() // 8 + 1, "big")
    return b"\x02" + bytes([len(raw)]) + raw


FORMS: dict[str, Callable[[int, int], bytes]] = {
    "a high S": lambda r, s: encode_dss_signature(r, P256_ORDER - s),
    "R and S beside each other": lambda r, s: r.to_bytes(32, "big") + s.to_bytes(32, "big"),
    "a leading zero": lambda r, s: der(integer(r, before=b"\x00"), integer(s)),
    "a longer form of the length": lambda r, s: b"\x30\x81" + der(integer(r), integer(s))[1:],
    "more after it": lambda r, s: encode_dss_signature(r, s) + b"\x00",
    "more inside": lambda r, s: der(integer(r), integer(s), integer(1)),
    "a part missing": lambda r, s: der(integer(r)),
    "R plus the order": lambda r, s: der(integer(r + P256_ORDER), integer(s)),
    "zeros": lambda r, s: der(integer(0), integer(0)),
    "a set": lambda r, s: b"\x31" + der(integer(r), integer(s))[1:],
    "nothing": lambda r, s: b"\x30\x00",
    "cut": lambda r, s: encode_dss_signature(r, s)[:-1],
}


@pytest.mark.parametrize("name", FORMS)
def test_signature_has_one_form(name: str) -> None:
    signed = PHONE.sign_bytes(MESSAGE)
    r, s = decode_dss_signature(decode_base64url(signed.signature))
    assert der(integer(r), integer(s)) == decode_base64url(signed.signature)
    other = replace(signed, signature=encode_base64url(FORMS[name](r, s)))
    assert passkey_problem(PHONE.passkey, MESSAGE, other) is not None


def test_signature_of_ed25519_has_one_form() -> None:
    signed = TOKEN.sign_bytes(MESSAGE)
    raw = decode_base64url(signed.signature)
    order = 2**252 + 27742317777372353535851937790883648493
    high = (int.from_bytes(raw[32:], "little") + order).to_bytes(32, "little")
    for other in (raw[:32] + high, raw + b"\x00", raw[:-1]):
        assert passkey_problem(TOKEN.passkey, MESSAGE, replace(signed, signature=encode_base64url(other))) is not None


@BOTH
def test_base64url_has_one_form(device: SoftPasskey) -> None:
    signed = device.sign_bytes(MESSAGE)
    for name in ("authenticator_data", "client_data", "signature"):
        text = getattr(signed, name)
        raw = decode_base64url(text)
        padded = base64.urlsafe_b64encode(raw + bytes(-len(raw) % 3)).decode()
        others = [text + "=", text + "A", text[:-1], base64.b64encode(raw).decode() + "+", padded + "=", text + "\n"]
        if len(raw) % 3:
            last = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
            others.append(text[:-1] + last[last.index(text[-1]) + 1])  # The same bytes, with a stray bit.
        for other in others:
            assert passkey_problem(device.passkey, MESSAGE, replace(signed, **{name: other})) is not None


@pytest.mark.parametrize(
    ("origin", "rp_id", "is_right"),
    [
        ("http://localhost", "localhost", True),
        ("http://localhost:1", "localhost", True),
        ("http://localhost:65535", "localhost", True),
        ("http://localhost:65536", "localhost", False),
        ("http://localhost:", "localhost", False),
        ("http://localhost:080", "localhost", False),
        ("http://localhost/", "localhost", False),
        ("http://LOCALHOST", "localhost", False),
        ("http://a.localhost", "localhost", False),
        ("https://localhost", "localhost", False),
        ("https://aver.example", "aver.example", True),
        ("https://aver.example:4840", "aver.example", True),
        ("https://desk.aver.example", "aver.example", True),
        ("http://aver.example", "aver.example", False),
        ("https://notaver.example", "aver.example", False),
        ("https://aver.example.evil.example", "aver.example", False),
        ("https://.aver.example", "aver.example", False),
        ("https://a..aver.example", "aver.example", False),
        ("https://user@aver.example", "aver.example", False),
        ("https://example", "aver.example", False),
        (None, "aver.example", False),
        (["https://aver.example"], "aver.example", False),
    ],
)
def test_origin_belongs_to_the_site(origin: Any, rp_id: str, is_right: bool) -> None:
    assert is_origin_of(origin, rp_id) is is_right


GOOD_KEY = PHONE.passkey.to_dict()


@pytest.mark.parametrize(
    "changed",
    [
        {"alg": "RS256"},
        {"alg": "es256"},
        {"alg": ["ES256"]},
        {"alg": "EdDSA"},
        {"public_key": GOOD_KEY["public_key"].upper()},
        {"public_key": "03" + GOOD_KEY["public_key"][2:66]},
        {"public_key": TOKEN.passkey.public_key},
        {"public_key": None},
        {"rp_id": ""},
        {"rp_id": "Localhost"},
        {"rp_id": "127.0.0.1"},
        {"rp_id": "aver.example."},
        {"rp_id": "aver_example"},
        {"rp_id": "https://aver.example"},
        {"rp_id": "a." * 126 + "example"},
        {"credential": ""},
        {"credential": "AA=="},
        {"credential": "AB"},
        {"credential": "A"},
        {"credential": "A" * (CREDENTIAL_MAX + 4)},
        {"extra": 1},
    ],
    ids=str,
)
def test_key_that_is_none(changed: dict[str, Any]) -> None:
    assert Passkey.read(GOOD_KEY, "here") == PHONE.passkey
    with pytest.raises(BadInput, match="here"):
        Passkey.read({**GOOD_KEY, **changed}, "here")


@pytest.mark.parametrize("field", GOOD_KEY)
def test_key_that_lacks_a_part(field: str) -> None:
    with pytest.raises(BadInput, match=field):
        Passkey.read({name: value for name, value in GOOD_KEY.items() if name != field}, "here")


def test_key_that_no_pair_can_have() -> None:
    assert PHONE.passkey.check_usable() is PHONE.passkey
    off_the_curve = replace(PHONE.passkey, public_key="04" + "11" * 64)
    small = Passkey("EdDSA", "01" + "00" * 31, "localhost", "AA")
    for key in (off_the_curve, small):
        with pytest.raises(BadInput, match="not a usable"):
            key.check_usable()
        # Also without that check, nothing holds under such a key.
        assert passkey_problem(key, MESSAGE, PHONE.sign_bytes(MESSAGE)) is not None


# --- in statements


def statement(purpose: str = "approval") -> dict[str, Any]:
    return Statement(purpose, CONTENT, (PHONE.sign_statement(purpose, CONTENT),)).to_dict()


@pytest.mark.parametrize("purpose", ["approval", "enrolment", "withdrawal"])
def test_statement_keeps_the_signature(purpose: str) -> None:
    data = statement(purpose)
    assert data["signatures"][0].keys() == {"by", "passkey"}
    assert Statement.from_dict(data).to_dict() == data


@pytest.mark.parametrize(
    "purpose", ["rotation", "checkpoint", "cap", "policy", "policy-pin", "protocol-event", "report"]
)
def test_passkey_signs_nothing_else(purpose: str) -> None:
    with pytest.raises(BadInput, match=r"signatures\[0\]"):
        Statement.from_dict(statement(purpose))


def test_ring_never_takes_it_for_another_signature() -> None:
    """Also not where a ring has the very key of an EdDSA passkey."""
    signed = Statement("approval", CONTENT, (TOKEN.sign_statement("approval", CONTENT),))
    (result,) = check_statement(signed, Ring.pin([TOKEN.passkey.public_key]))
    assert result.outcome == "unknown"
    imitation = replace(signed.signatures[0], by=TOKEN.passkey.public_key[:16])
    (result,) = check_statement(replace(signed, signatures=(imitation,)), Ring.pin([TOKEN.passkey.public_key]))
    assert result.outcome == "invalid"


def test_signature_has_its_bounds() -> None:
    data = statement()
    parts = data["signatures"][0]["passkey"]
    room = PASSKEY_SIGNATURE_MAX - sum(map(len, parts.values()))
    longest = {**parts, "client_data": parts["client_data"] + "A" * room}
    assert PasskeySignature.from_dict(longest, "here").to_dict() == longest
    with pytest.raises(BadInput, match="more than 4096"):
        PasskeySignature.from_dict({**longest, "signature": parts["signature"] + "A"}, "here")


@pytest.mark.parametrize(
    "change",
    [
        lambda signature: signature.update(ed25519="ab" * 64),
        lambda signature: signature.update(by=signature["by"] + "00"),
        lambda signature: signature["passkey"].update(user_handle="AA"),
        lambda signature: signature["passkey"].pop("signature"),
        lambda signature: signature["passkey"].update(signature=""),
        lambda signature: signature["passkey"].update(signature=None),
        lambda signature: signature.update(passkey=[]),
        lambda signature: signature.update(passkey=None),
    ],
)
def test_statement_with_a_signature_that_is_none(change: Callable[[dict[str, Any]], Any]) -> None:
    data = statement()
    change(data["signatures"][0])
    with pytest.raises(BadInput, match=r"signatures\[0\]"):
        Statement.from_dict(data)


@given(st.binary(min_size=1, max_size=80))
def test_base64url_reads_what_it_writes(raw: bytes) -> None:
    assert decode_base64url(encode_base64url(raw)) == raw


@given(st.text(alphabet="ABCwx059-_=+/ \n", max_size=12))
def test_base64url_reads_nothing_else(text: str) -> None:
    try:
        assert encode_base64url(decode_base64url(text)) == text
    except BadInput:
        pass


@given(st.binary(max_size=120), st.binary(max_size=300), st.binary(max_size=90))
def test_hostile_parts_raise_nothing(data: bytes, client: bytes, signature: bytes) -> None:
    parts = [encode_base64url(raw) or "A" for raw in (data, client, signature)]
    for device in (PHONE, TOKEN):
        assert passkey_problem(device.passkey, MESSAGE, PasskeySignature(*parts)) is not None


def test_signature_without_parts_is_not_a_passkeys() -> None:
    assert StatementSignature("ab" * 8, "cd" * 64).to_dict() == {"by": "ab" * 8, "ed25519": "cd" * 64, "ml_dsa_65": ""}
