"""Delegation: tokens that are good, each way in which one is not, and chains that only narrow."""

from __future__ import annotations

import base64
import itertools
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.errors import BadInput, Refused
from aver.gateway.codes import load_reason_codes
from aver.gateway.delegation import (
    CHAIN_MAX,
    SCOPE_MAX,
    check_delegation,
    is_in_scope,
    read_delegation,
    sign_delegation,
)
from aver.gateway.request import TOKEN_MAX
from aver.keys import SeedSigner, Statement, sign_statement

NOW = 1_700_000_000.0
ACME, PLANNER, HELPER = (SeedSigner(bytes([number]) * 32) for number in (1, 2, 3))
KEYS = {"ext:acme": ACME.public, "planner": PLANNER.public, "helper": HELPER.public}


def at(seconds: float) -> str:
    return datetime.fromtimestamp(NOW + seconds, UTC).isoformat()


def issue(signer: SeedSigner = ACME, **changes: Any) -> str:
    given: dict[str, Any] = {
        "iss": "ext:acme",
        "sub": "alice",
        "session": "s1",
        "scope": ("intent:SendMessage",),
        "expires": at(60),
        "jti": "dlg_1",
    }
    return sign_delegation(signer, **{**given, **changes})


def check(token: str | None, **changes: Any) -> Any:
    given: dict[str, Any] = {
        "intent_id": "SendMessage",
        "caller": "alice",
        "session": "s1",
        "external_principal": None,
        "keys": KEYS,
        "now": NOW,
        "is_revoked": lambda jti: False,
    }
    return check_delegation(token, **{**given, **changes})


def refusal(token: str | None, **changes: Any) -> str:
    with pytest.raises(Refused) as caught:
        check(token, **changes)
    assert caught.value.code in load_reason_codes()
    return caught.value.code


def content_of(token: str) -> dict[str, Any]:
    return json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))["content"]


def encode(document: Any) -> str:
    written = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    return base64.urlsafe_b64encode(written).decode().rstrip("=")


def forge(signer: SeedSigner = ACME, **changes: Any) -> str:
    """A token that is signed rightly and says anything."""
    content = {**content_of(issue()), **changes}
    return encode(sign_statement("delegation", content, [signer]).to_dict())


def test_a_good_token() -> None:
    delegation = check(issue())
    assert (delegation.principal, delegation.jti) == ("ext:acme", "dlg_1")
    assert check(issue(), external_principal="ext:acme") == delegation
    assert delegation.statement.purpose == "delegation"
    assert content_of(issue()) == {
        "v": 1,
        "iss": "ext:acme",
        "sub": "alice",
        "session": "s1",
        "scope": ["intent:SendMessage"],
        "expires": at(60),
        "jti": "dlg_1",
        "parent": None,
    }


def test_neither_principal_nor_token() -> None:
    assert check(None) is None


def test_a_principal_without_a_token() -> None:
    assert refusal(None, external_principal="ext:acme") == "DELEGATION_REQUIRED"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"session": "s2"}, "DELEGATION_SESSION_MISMATCH"),
        ({"caller": "bob"}, "DELEGATION_SUBJECT_MISMATCH"),
        ({"intent_id": "PostWebhook"}, "DELEGATION_SCOPE_DENY"),
        ({"now": NOW + 60}, "DELEGATION_TOKEN_EXPIRED"),
        ({"now": float("nan")}, "DELEGATION_TOKEN_EXPIRED"),
        ({"is_revoked": lambda jti: jti == "dlg_1"}, "DELEGATION_REVOKED"),
        ({"external_principal": "ext:other"}, "EXTERNAL_PRINCIPAL_MISMATCH"),
        ({"keys": {}}, "DELEGATION_TOKEN_BAD_SIGNATURE"),
        ({"keys": {"ext:acme": PLANNER.public}}, "DELEGATION_TOKEN_BAD_SIGNATURE"),
    ],
)
def test_each_refusal(changes: dict[str, Any], code: str) -> None:
    assert refusal(issue(), **changes) == code


def test_the_order_of_the_checks() -> None:
    """All of them fail. Mending the first shows the next."""
    broken: dict[str, Any] = {
        "keys": {},
        "session": "s2",
        "caller": "bob",
        "intent_id": "PostWebhook",
        "now": NOW + 99,
        "is_revoked": lambda jti: True,
        "external_principal": "ext:other",
    }
    found = [refusal("x", **broken)]
    while broken:
        found.append(refusal(issue(), **broken))
        broken.pop(next(iter(broken)))
    assert found == [
        "DELEGATION_TOKEN_MALFORMED",
        "DELEGATION_TOKEN_BAD_SIGNATURE",
        "DELEGATION_SESSION_MISMATCH",
        "DELEGATION_SUBJECT_MISMATCH",
        "DELEGATION_SCOPE_DENY",
        "DELEGATION_TOKEN_EXPIRED",
        "DELEGATION_REVOKED",
        "EXTERNAL_PRINCIPAL_MISMATCH",
    ]


def test_a_moment_before_its_end_a_token_is_good() -> None:
    assert check(issue(), now=NOW + 59.999) is not None


# --- scopes


@pytest.mark.parametrize(
    ("scope", "intent", "inside"),
    [
        (("*",), "SendMessage", True),
        (("intent:*",), "SendMessage", True),
        (("intent:SendMessage",), "SendMessage", True),
        (("intent:SendMessage",), "SendMessageX", False),
        (("intent:Send*",), "SendMessage", True),
        (("intent:Send*",), "FetchResource", False),
        (("intent:SendMessage*",), "SendMessage", True),
        (("intent:FetchResource", "intent:Post*"), "PostWebhook", True),
        (("intent:sendmessage",), "SendMessage", False),
    ],
)
def test_what_is_in_a_scope(scope: tuple[str, ...], intent: str, inside: bool) -> None:
    assert is_in_scope(scope, intent) == inside
    assert (check(issue(scope=scope), intent_id=intent) is not None) if inside else True


# --- malformed tokens

GOOD = issue()
MALFORMED: list[tuple[str, Any]] = [
    ("empty", ""),
    ("not base64url", "a+b/"),
    ("with padding", GOOD + "="),
    ("with a line feed", GOOD + "\n"),
    ("a length that base64 has not", "abcde"),
    ("not JSON", base64.urlsafe_b64encode(b"hello!").decode()),
    ("not an object", encode([1])),
    ("cut", GOOD[:-4]),
    ("too long", "a" * (TOKEN_MAX + 1)),
    ("other unused bits", GOOD[:-1] + chr(ord(GOOD[-1]) + 1)),
    ("white space in the JSON", base64.urlsafe_b64encode(json.dumps(json.loads(base64.urlsafe_b64decode(
        GOOD + "=" * (-len(GOOD) % 4)))).encode()).decode().rstrip("=")),
    ("another purpose", encode(sign_statement("ingress", content_of(GOOD), [ACME]).to_dict())),
    ("no signature", encode(Statement("delegation", content_of(GOOD)).to_dict())),
    ("two signatures", encode(sign_statement("delegation", content_of(GOOD), [ACME, PLANNER]).to_dict())),
    ("version 2", forge(v=2)),
    ("version true", forge(v=True)),
    ("a further field", forge(nonce="x")),
    *((f"{name} is {value!r}", forge(**{name: value}))
      for name in ("iss", "sub", "session") for value in ("", 1, None, "a\nb", "x" * 300)),
    *((f"scope is {value!r}", forge(scope=value)) for value in (
        [], "*", None, [1], [""], ["SendMessage"], ["intent:"], ["intent:a b"], ["intent:*x"], ["**"], ["intent:A**"],
        ["*"] * (SCOPE_MAX + 1))),
    *((f"expires is {value!r}", forge(expires=value)) for value in (
        None, 1700000060, "", "tomorrow", "2026-02-31T00:00:00+00:00", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00")),
    *((f"jti is {value!r}", forge(jti=value)) for value in ("", None, 1, "a b", "x" * 65, "a:b")),
    *((f"parent is {value!r}", forge(parent=value)) for value in ("", "x", 1, {}, [GOOD])),
]  # fmt: skip


@pytest.mark.parametrize("case", MALFORMED, ids=lambda case: case[0])
def test_malformed(case: tuple[str, Any]) -> None:
    assert refusal(case[1]) == "DELEGATION_TOKEN_MALFORMED"


@pytest.mark.parametrize("field", ["iss", "sub", "session", "scope", "expires", "jti"])
def test_a_changed_token_is_not_signed(field: str) -> None:
    document = json.loads(base64.urlsafe_b64decode(GOOD + "=" * (-len(GOOD) % 4)))
    new = {"iss": "planner", "scope": ["*"], "expires": at(9999)}.get(field, "other")
    document["content"][field] = new
    assert refusal(encode(document), session="other" if field == "session" else "s1") == (
        "DELEGATION_TOKEN_BAD_SIGNATURE"
    )


def test_every_changed_character_is_refused() -> None:
    for index in range(len(GOOD)):
        for letter in ("A", "z"):
            changed = GOOD[:index] + letter + GOOD[index + 1 :]
            if changed != GOOD:
                assert refusal(changed) in ("DELEGATION_TOKEN_MALFORMED", "DELEGATION_TOKEN_BAD_SIGNATURE")


@given(st.text() | st.binary().map(lambda raw: base64.urlsafe_b64encode(raw).decode().rstrip("=")))
def test_any_text_is_refused(text: str) -> None:
    assert refusal(text) == "DELEGATION_TOKEN_MALFORMED"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(sorted(content_of(GOOD))), JSON)
def test_any_content_is_read_or_refused(name: str, value: Any) -> None:
    code, read = "", value
    try:
        (token,) = read_delegation(forge(**{name: value}))
        read = token.statement.content[name]
    except Refused as found:
        code = found.code
    assert (code, read) in (("", value), ("DELEGATION_TOKEN_MALFORMED", value))


# --- chains


def root(**changes: Any) -> str:
    given = {"sub": "planner", "scope": ("intent:Send*", "intent:FetchResource"), "expires": at(100), "jti": "dlg_root"}
    return issue(**{**given, **changes})


def child(parent: str, signer: SeedSigner = PLANNER, **changes: Any) -> str:
    return issue(signer, **{"iss": "planner", "parent": parent, **changes})


def test_a_chain_acts_for_the_first_issuer() -> None:
    delegation = check(child(root()), external_principal="ext:acme")
    assert (delegation.principal, delegation.jti) == ("ext:acme", "dlg_1")
    assert [token.jti for token in delegation.chain] == ["dlg_root", "dlg_1"]
    assert refusal(child(root()), external_principal="planner") == "EXTERNAL_PRINCIPAL_MISMATCH"


def test_a_chain_carries_all_that_checks_it() -> None:
    """A stranger with the public keys needs no record of the parent."""
    statement = check(child(root())).statement
    again = encode(Statement.from_dict(json.loads(json.dumps(statement.to_dict()))).to_dict())
    assert [token.iss for token in read_delegation(again)] == ["ext:acme", "planner"]


WIDER: list[tuple[str, dict[str, Any]]] = [
    ("issued by another than the parent's subject", {"iss": "helper", "signer": HELPER}),
    ("another session", {"session": "s2"}),
    ("a later end", {"expires": at(100.000001)}),
    ("everything", {"scope": ("*",)}),
    ("every intent", {"scope": ("intent:*",)}),
    ("a shorter prefix", {"scope": ("intent:S*",)}),
    ("a prefix of an exact intent", {"scope": ("intent:Fetch*",)}),
    ("an intent with a star", {"scope": ("intent:FetchResource*",)}),
    ("one more intent", {"scope": ("intent:SendMessage", "intent:PostWebhook")}),
    ("the parent's own jti", {"jti": "dlg_root"}),
]


@pytest.mark.parametrize("case", WIDER, ids=lambda case: case[0])
def test_a_child_only_narrows(case: tuple[str, dict[str, Any]]) -> None:
    changes = dict(case[1])
    signer = changes.pop("signer", PLANNER)
    with pytest.raises(BadInput):
        child(root(), signer, **changes)
    content = {**content_of(issue()), "iss": "planner", "parent": root(), **changes}
    content["scope"] = list(content["scope"])
    forged = encode(sign_statement("delegation", content, [signer]).to_dict())
    assert refusal(forged, session=content["session"]) == "DELEGATION_TOKEN_MALFORMED"


@pytest.mark.parametrize(
    "scope", [("intent:Send*",), ("intent:SendMessage", "intent:FetchResource"), ("intent:SendM*",)]
)
def test_a_child_inside_its_parent(scope: tuple[str, ...]) -> None:
    assert check(child(root(), scope=scope, expires=at(100))) is not None
    assert check(child(root(scope=("*",)), scope=("*",))) is not None
    assert check(child(root(scope=("intent:*",)), scope=("*",))) is not None


def test_a_parent_that_is_revoked_expired_or_forged_takes_its_children_with_it() -> None:
    token = child(root())
    assert refusal(token, is_revoked=lambda jti: jti == "dlg_root") == "DELEGATION_REVOKED"
    assert refusal(child(root(expires=at(5)), expires=at(5)), now=NOW + 5) == "DELEGATION_TOKEN_EXPIRED"
    assert refusal(token, keys={**KEYS, "ext:acme": HELPER.public}) == "DELEGATION_TOKEN_BAD_SIGNATURE"
    assert refusal(token, keys={**KEYS, "planner": HELPER.public}) == "DELEGATION_TOKEN_BAD_SIGNATURE"
    assert refusal(child(root(), HELPER)) == "DELEGATION_TOKEN_BAD_SIGNATURE"


def test_the_subject_is_that_of_the_last_token() -> None:
    assert refusal(root()) == "DELEGATION_SUBJECT_MISMATCH"
    assert refusal(child(root()), caller="planner") == "DELEGATION_SUBJECT_MISMATCH"


def make_chain(length: int, *, pq: bool = False) -> str:
    names = ["ext:acme", *(f"agent-{number}" for number in range(1, length)), "alice"]
    token = None
    for number, (iss, sub) in enumerate(itertools.pairwise(names)):
        signer = SeedSigner(bytes([number + 9]) * 32, bytes(32) if pq else None)
        token = sign_delegation(
            signer, iss=iss, sub=sub, session="s1", scope=("*",), expires=at(60), jti=f"j{number}", parent=token
        )
    assert token is not None
    return token


def test_a_chain_has_an_end() -> None:
    assert len(read_delegation(make_chain(CHAIN_MAX))) == CHAIN_MAX
    with pytest.raises(BadInput, match="at most"):
        make_chain(CHAIN_MAX + 1)


def test_the_longest_chain_fits_with_post_quantum_signatures() -> None:
    assert TOKEN_MAX * 0.9 < len(make_chain(CHAIN_MAX, pq=True)) <= TOKEN_MAX


def test_a_signature_that_the_key_cannot_make_is_refused() -> None:
    document = json.loads(base64.urlsafe_b64decode(GOOD + "=" * (-len(GOOD) % 4)))
    document["signatures"][0]["ml_dsa_65"] = "00" * 3309
    assert refusal(encode(document)) == "DELEGATION_TOKEN_BAD_SIGNATURE"
