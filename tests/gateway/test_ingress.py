"""Federated calls: signed headers, each way in which they do not hold, and the body that must not contradict them."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.capsule.canonical import canonical_json
from aver.errors import BadInput, Refused
from aver.gateway.codes import load_reason_codes
from aver.gateway.ingress import INGRESS_WINDOW, bind_constraints, check_ingress, read_ingress, sign_ingress
from aver.gateway.request import CALLER_MAX, Constraints
from aver.keys import SeedSigner, check_statement, verify_ed25519
from aver.keys.ring import Ring

SIGNER, OTHER = SeedSigner(b"\1" * 32), SeedSigner(b"\2" * 32)
KEYS = {"ext:acme": SIGNER.public, "ext:other": OTHER.public}
BODY = b'{"intent_id":"SendMessage"}'
NOW = 1_700_000_000
NONCE = "0123456789abcdef"


def sign(signer: SeedSigner = SIGNER, **changes: Any) -> dict[str, str]:
    given: dict[str, Any] = {
        "method": "POST",
        "path": "/act",
        "principal": "ext:acme",
        "session": "s1",
        "time": NOW,
        "nonce": NONCE,
        "body": BODY,
        "delegation": "token",
    }
    return sign_ingress(signer, **{**given, **changes})


def check(headers: dict[str, str] | list[tuple[str, str]], **changes: Any) -> Any:
    pairs = list(headers.items()) if isinstance(headers, dict) else headers
    given: dict[str, Any] = {
        "method": "POST",
        "path": "/act",
        "body": BODY,
        "keys": KEYS,
        "now": NOW,
        "audience": "here",
    }
    return check_ingress(pairs, **{**given, **changes})


def refusal(headers: dict[str, str] | list[tuple[str, str]], **changes: Any) -> str:
    with pytest.raises(Refused) as caught:
        check(headers, **changes)
    assert caught.value.code in load_reason_codes()
    return caught.value.code


def test_a_signed_call() -> None:
    call = check(sign())
    assert (call.principal, call.session, call.delegation, call.nonce) == ("ext:acme", "s1", "token", NONCE)
    assert call.nonce_key == f"ingress:ext:acme:{NONCE}"
    assert call.content == {
        "method": "POST",
        "path": "/act",
        "principal": "ext:acme",
        "session": "s1",
        "delegation_sha256": hashlib.sha256(b"token").hexdigest(),
        "time": NOW,
        "nonce": NONCE,
        "body_sha256": hashlib.sha256(BODY).hexdigest(),
    }
    assert check(sign(delegation=None)).content["delegation_sha256"] is None


def test_a_call_for_this_gateway() -> None:
    call = check(sign(audience="here"))
    assert (call.audience, call.content["audience"]) == ("here", "here")
    assert "audience" not in check(sign()).content


def test_a_call_for_another_gateway() -> None:
    assert refusal(sign(audience="elsewhere")) == "INGRESS_CONFLICT"


def test_an_audience_that_was_taken_away_changed_or_added() -> None:
    named = sign(audience="elsewhere")
    assert refusal({name: value for name, value in named.items() if name != "Aver-Audience"}) == (
        "INGRESS_SIGNATURE_INVALID"
    )
    assert refusal({**named, "Aver-Audience": "here"}) == "INGRESS_SIGNATURE_INVALID"
    assert refusal({**sign(), "Aver-Audience": "here"}) == "INGRESS_SIGNATURE_INVALID"


def test_the_record_has_a_statement_that_anyone_can_check() -> None:
    (result,) = check_statement(check(sign()).statement, Ring.pin([SIGNER.public]))
    assert result.outcome == "valid"


def test_the_signature_is_what_another_program_computes() -> None:
    headers = sign()
    by, _, signature = headers["Aver-Signature"].partition(":")
    message = b"aver/ingress/v1\n" + canonical_json(check(headers).content)
    assert by == SIGNER.public.ed25519[:16]
    assert verify_ed25519(bytes.fromhex(SIGNER.public.ed25519), message, signature)


def test_names_of_headers_have_no_case() -> None:
    assert check({name.upper(): value for name, value in sign().items()}) == check(sign())
    assert check({name.lower(): value for name, value in sign().items()}) == check(sign())


def test_a_call_without_a_principal_is_not_federated() -> None:
    assert check({}) is None
    assert check({"Aver-Session": "s1", "Authorization": "Bearer x", "Content-Type": "application/json"}) is None


@pytest.mark.parametrize("name", ["Aver-Principal", "Aver-Session", "Aver-Time", "Aver-Nonce", "Aver-Signature"])
def test_a_missing_header(name: str) -> None:
    headers = sign()
    del headers[name]
    assert refusal(headers) == "INGRESS_SIGNATURE_REQUIRED"


@pytest.mark.parametrize("name", ["Aver-Principal", "Aver-Delegation", "Aver-Signature", "Aver-Nonce", "Aver-Time"])
def test_one_header_alone_wants_the_others(name: str) -> None:
    assert refusal({name: "x"}) == "INGRESS_SIGNATURE_REQUIRED"


@pytest.mark.parametrize("name", list(sign()))
def test_a_header_twice(name: str) -> None:
    headers = [*sign().items(), (name.lower(), sign()[name])]
    assert refusal(headers) == "INGRESS_SIGNATURE_INVALID"


CHANGED = [
    ("Aver-Principal", "ext:other"),
    ("Aver-Principal", "ext:unknown"),
    ("Aver-Principal", ""),
    ("Aver-Principal", "x" * (CALLER_MAX + 1)),
    ("Aver-Session", "s2"),
    ("Aver-Session", "s1\n"),
    ("Aver-Delegation", "other"),
    ("Aver-Delegation", ""),
    ("Aver-Time", str(NOW + 1)),
    ("Aver-Time", f"0{NOW}"),
    ("Aver-Time", f"{NOW}.0"),
    ("Aver-Time", f"-{NOW}"),
    ("Aver-Time", "now"),
    ("Aver-Time", "9" * 17),
    ("Aver-Time", "\u0661" * 10),
    ("Aver-Nonce", "0123456789abcdeF"),
    ("Aver-Nonce", "short"),
    ("Aver-Nonce", "x" * 65),
    ("Aver-Nonce", "0123456789abcd:f"),
    ("Aver-Signature", ""),
    ("Aver-Signature", "0" * 16 + ":" + "0" * 128),
    ("Aver-Signature", sign(OTHER)["Aver-Signature"]),
    ("Aver-Signature", sign()["Aver-Signature"].upper()),
    ("Aver-Signature", sign()["Aver-Signature"] + ":"),
    ("Aver-Signature", sign()["Aver-Signature"].replace(":", "")),
]


@pytest.mark.parametrize(("name", "value"), CHANGED)
def test_a_changed_header(name: str, value: str) -> None:
    assert refusal({**sign(), name: value}) == "INGRESS_SIGNATURE_INVALID"


def test_a_delegation_that_was_taken_away_or_added() -> None:
    headers = sign()
    del headers["Aver-Delegation"]
    assert refusal(headers) == "INGRESS_SIGNATURE_INVALID"
    assert refusal({**sign(delegation=None), "Aver-Delegation": "token"}) == "INGRESS_SIGNATURE_INVALID"


@pytest.mark.parametrize("changes", [{"method": "PUT"}, {"path": "/act/"}, {"body": BODY + b" "}, {"body": b""}])
def test_a_signature_is_for_one_call(changes: dict[str, Any]) -> None:
    assert refusal(sign(), **changes) == "INGRESS_SIGNATURE_INVALID"


@pytest.mark.parametrize("late", [INGRESS_WINDOW + 0.001, -INGRESS_WINDOW - 0.001, 1e9, float("nan")])
def test_too_far_from_now(late: float) -> None:
    assert refusal(sign(), now=NOW + late) == "INGRESS_EXPIRED"


@pytest.mark.parametrize("late", [INGRESS_WINDOW, -INGRESS_WINDOW, 0])
def test_just_in_time(late: float) -> None:
    assert check(sign(), now=NOW + late).time == NOW


def test_a_signature_is_checked_before_the_time() -> None:
    assert refusal({**sign(), "Aver-Time": "1"}, now=NOW) == "INGRESS_SIGNATURE_INVALID"


@pytest.mark.parametrize(
    "changes",
    [{"principal": ""}, {"nonce": "x"}, {"time": -1}, {"session": "a\nb"}, {"time": 1.5}, {"delegation": ""}],
)
def test_values_that_no_header_carries_are_not_signed(changes: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        sign(**changes)


# --- the body


def test_the_headers_fill_in_the_constraints() -> None:
    call = check(sign())
    filled = Constraints("ext:acme", "token", True, "w")
    assert bind_constraints(call, Constraints(user_confirm=True, workload_token="w")) == filled
    assert bind_constraints(call, filled) == filled
    assert bind_constraints(check(sign(delegation=None)), Constraints()) == Constraints("ext:acme")


@pytest.mark.parametrize(
    ("delegation", "constraints"),
    [
        ("token", Constraints(external_principal="ext:other")),
        ("token", Constraints(delegation_token="other")),
        (None, Constraints(delegation_token="token")),
    ],
)
def test_a_body_that_contradicts_the_headers_is_refused(delegation: str | None, constraints: Constraints) -> None:
    with pytest.raises(Refused) as caught:
        bind_constraints(check(sign(delegation=delegation)), constraints)
    assert caught.value.code == "INGRESS_CONFLICT"


NAMES = st.sampled_from([*sign(), "x-other", "AVER-NONCE"]) | st.text()


@given(st.lists(st.tuples(NAMES, st.text()), max_size=8), st.binary())
def test_any_headers_are_read_or_refused(headers: list[tuple[str, str]], body: bytes) -> None:
    try:
        call = read_ingress(headers, method="POST", path="/act", body=body)
    except Refused as found:
        code = found.code
    else:
        assert call is None or call.principal
        return
    assert code in ("INGRESS_SIGNATURE_REQUIRED", "INGRESS_SIGNATURE_INVALID")
