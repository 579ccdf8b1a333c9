"""Requests: the vectors of the hash, and everything that is not exactly an act."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.capsule.canonical import ascii_json
from aver.errors import Refused
from aver.gateway.intents import INTENTS
from aver.gateway.request import (
    CALLER_MAX,
    REQUEST_MAX,
    TOKEN_MAX,
    ActRequest,
    BoundRequest,
    Constraints,
    build_context,
    compute_request_sha256,
)
from support.many_cases import for_each

SEND = {"channel": "email", "recipient": "bob@example.com", "domain": "example.com", "text": "h\u00e9llo \U0001f600"}
FETCH = {"resource_id": "octocat", "recipient": "alice@example.com", "domain": "api.github.com", "text": "hello world"}
HOOK = {"path": "/x", "body": "hi", "text": "hi", "recipient": "alice@example.com", "domain": "api.github.com"}
SKILL = {"skill_id": "foo", "skill_digest": "ab" * 32}
DELEGATED = {"external_principal": "ext:a", "delegation_jti": "dlg_1"}

VECTORS = [
    ("SendMessage", SEND, {}, "900509000ce5fb542e2e1bc58ee8232af3abe260d955c40828acadab8b137b3d"),
    ("SendMessage", SEND, DELEGATED, "531a67d439ac5f65afa025feb48d568aefb50a3d415211af4bec422b25f59a70"),
    ("FetchResource", FETCH, {}, "14a49b85e66ba10efcfec4aa44afa6656fa1900b38a606ab9a18f15802245937"),
    ("PostWebhook", HOOK, {}, "ac8fd2d03df58d74d768b43daaaba408940ad6c1c86862478136b5b4085fe9d3"),
    ("CommitSkillInstall", SKILL, {}, "540ec0fa6ca4255a7bcd6abe582898a2ffc9143dabf29bcd29a5a98fe511dd0e"),
]
"""The known answers of the public implementation. Caller `alice`, session `s1`."""


@pytest.mark.parametrize(("intent", "inputs", "context", "digest"), VECTORS)
def test_the_known_answers(intent: str, inputs: dict[str, str], context: dict[str, str], digest: str) -> None:
    assert compute_request_sha256(intent, "alice", "s1", inputs, context) == digest
    request = BoundRequest.bind(intent, caller="alice", session="s1", inputs=inputs, **context)
    assert request.sha256 == digest
    assert request.inputs == inputs


def test_the_hash_is_that_of_the_written_payload() -> None:
    """How a stranger computes it, with nothing of Aver."""
    payload = {"v": 1, "intent_id": "SendMessage", "caller": "alice", "session": "s1", "inputs": SEND, "context": {}}
    written = json.dumps(payload, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()
    assert hashlib.sha256(written).hexdigest() == VECTORS[0][3]
    # The keyed mode of a later version of the protocol is another hash under the same name. Aver does not use it.
    payload["context"] = DELEGATED
    written = json.dumps(payload, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()
    keyed = hmac.digest(b"\xab" * 32, written, "sha256").hex()
    assert keyed == "119aa83c41be2fd7d727f71b4667d3b3d95e4e45ee01229d1b98462997dac314"


@pytest.mark.parametrize("intent", sorted(INTENTS.values(), key=lambda one: one.name), ids=lambda one: one.name)
def test_both_names_of_an_intent_have_one_hash(intent: Any) -> None:
    samples: dict[str, Any] = {
        "argv": ["ls"],
        "skill_digest": "0" * 64,
        "recipient": "bob@example.com",
        "domain": "example.com",
        "path": "/",
    }
    inputs = {rule.name: samples.get(rule.name, "x") for rule in intent.rules if rule.fill is None}
    inputs = {name: value for name, value in inputs.items() if name not in ("arguments", "params")}
    first = BoundRequest.bind(intent.name, caller="a", session="s", inputs=inputs)
    assert first.inputs.keys() == set(intent.inputs)
    if intent.preview:
        assert BoundRequest.bind(intent.preview, caller="a", session="s", inputs=inputs) == first
    assert BoundRequest.from_dict(json.loads(json.dumps(first.to_dict()))) == first


def test_every_part_of_the_tuple_is_in_the_hash() -> None:
    def bind(**changes: Any) -> str:
        given: dict[str, Any] = {"caller": "alice", "session": "s1", "inputs": SEND, **changes}
        return BoundRequest.bind(given.pop("intent", "SendMessage"), **given).sha256

    fetch = {"resource_id": "x", "domain": "a.example"}
    digests = [
        bind(),
        bind(caller="bob"),
        bind(session="s2"),
        bind(inputs={**SEND, "text": "other"}),
        bind(inputs={**SEND, "channel": "sms"}),
        bind(external_principal="ext:a"),
        bind(external_principal="ext:b"),
        bind(delegation_jti="ext:a"),
        bind(external_principal="ext:a", delegation_jti="dlg_1"),
        bind(intent="FetchResource", inputs=fetch),
        bind(intent="FetchResource", inputs={**fetch, "resource_id": "y"}),
    ]
    assert len(set(digests)) == len(digests)


def test_unset_context_is_left_out_and_an_empty_one_is_refused() -> None:
    assert build_context(None, None) == {}
    assert build_context("ext:a", None) == {"external_principal": "ext:a"}
    for values in (("", None), (None, ""), ("ext:a", "")):
        with pytest.raises(Refused) as caught:
            build_context(*values)
        assert caught.value.code == "BAD_REQUEST"


def test_an_empty_value_would_have_another_hash_than_none() -> None:
    empty = compute_request_sha256("SendMessage", "alice", "s1", SEND, {"external_principal": ""})
    assert empty != VECTORS[0][3]


def test_changing_the_inputs_later_does_not_change_the_hash() -> None:
    arguments = {"a": [1]}
    request = BoundRequest.bind(
        "CallTool", caller="a", session="s", inputs={"server": "x", "tool": "y", "arguments": arguments}
    )
    before = request.sha256
    arguments["a"].append(2)
    assert request.sha256 == before
    with pytest.raises(AttributeError):
        request.sha256 = "0" * 64


# --- the act

ACT = {
    "intent_id": "SendMessage",
    "inputs": {"recipient": "bob@example.com", "text": "hi"},
    "constraints": {},
    "caller": "alice",
}


def act(**changes: Any) -> dict[str, Any]:
    return {**ACT, **changes}


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in ACT.items() if key != name}


BAD_ACTS: list[tuple[str, Any]] = [
    *((f"lacks {name}", without(name)) for name in ACT),
    ("a fifth field", act(session="s1")),
    ("an internal field", act(_auth_ctx={})),
    ("empty", {}),
    *((f"is {value!r}", value) for value in (None, [], "act", 1, True, [ACT])),
    *((f"intent_id {value!r}", act(intent_id=value)) for value in (None, 1, "", ["SendMessage"], "x\n", "x" * 300)),
    *((f"inputs {value!r}", act(inputs=value)) for value in (None, [], "x", 1)),
    *((f"caller {value!r}", act(caller=value)) for value in (None, 1, "", {}, "a\x00b", "a\x1b[31m", "\ud800")),
    ("caller too long", act(caller="a" * (CALLER_MAX + 1))),
    *((f"constraints {value!r}", act(constraints=value)) for value in (None, [], "x", False)),
    *(
        (f"constraints with {name}", act(constraints={name: "x"}))
        for name in ("_auth_ctx", "turn_id", "max_chars", "confirm_token", "workload_token_b64", "User_Confirm")
    ),
    *(
        (f"{name} is {value!r}", act(constraints={name: value}))
        for name in ("external_principal", "delegation_token", "workload_token")
        for value in (None, "", 1, True, ["x"], {}, "a\nb")
    ),
    *((f"user_confirm is {value!r}", act(constraints={"user_confirm": value})) for value in (None, 1, 0, "true", [])),
    ("delegation_token too long", act(constraints={"delegation_token": "a" * (TOKEN_MAX + 1)})),
    ("NaN", act(inputs={"text": float("nan")})),
    ("infinity", act(inputs={"text": [float("inf")]})),
    ("a lone surrogate", act(inputs={"text": "\udc00"})),
    ("a lone surrogate as key", act(inputs={"\udc00": "x"})),
    ("a key that is no string", act(inputs={1: "x"})),
    ("bytes", act(inputs={"text": b"x"})),
    ("a set", act(inputs={"text": {1}})),
    ("too large", act(inputs={"text": "x" * (REQUEST_MAX + 1)})),
]


def nested(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


@for_each([*BAD_ACTS, ("too deep", act(inputs={"text": nested(300)}))], lambda case: case[0])
def test_bad_acts(case: tuple[str, Any]) -> None:
    with pytest.raises(Refused) as caught:
        ActRequest.parse(case[1])
    assert caught.value.code == "BAD_REQUEST"
    assert caught.value.message


BAD_BYTES = [
    b"",
    b"{",
    b"\xff",
    b"null",
    b'{"intent_id":"a","intent_id":"a","inputs":{},"constraints":{},"caller":"x"}',
    b'{"intent_id":"a","inputs":{"text":"1","text":"2"},"constraints":{},"caller":"x"}',
    b'{"intent_id":"a","inputs":{},"constraints":{"user_confirm":true,"user_confirm":true},"caller":"x"}',
    b'{"intent_id":"a","inputs":{"n":NaN},"constraints":{},"caller":"x"}',
    b'{"intent_id":"a","inputs":{"n":1e999},"constraints":{},"caller":"x"}',
    b'{"intent_id":"a","inputs":{"n":"\\ud800"},"constraints":{},"caller":"x"}',
    b'{"intent_id":"a","inputs":{},"constraints":{},"caller":"x"} {}',
    b"[" * 100_000,
    b" " * (REQUEST_MAX + 1),
]


@for_each(BAD_BYTES, lambda raw: f"{raw[:60]!r} of {len(raw)}")
def test_bad_bytes(raw: bytes) -> None:
    with pytest.raises(Refused) as caught:
        ActRequest.parse(raw)
    assert caught.value.code == "BAD_REQUEST"


def test_a_good_act() -> None:
    constraints = {"external_principal": "ext:a", "delegation_token": "abc", "user_confirm": False}
    request = ActRequest.parse(act(constraints=constraints))
    assert request == ActRequest.parse(json.dumps(act(constraints=constraints)).encode())
    assert request.constraints == Constraints("ext:a", "abc", False, None)
    assert request.find_intent().intent.name == "SendMessage"
    assert not request.find_intent().preview_only


def test_an_unknown_intent_is_told_apart_from_a_bad_request() -> None:
    request = ActRequest.parse(act(intent_id="SendEverything"))
    with pytest.raises(Refused) as caught:
        request.find_intent()
    assert caught.value.code == "UNKNOWN_INTENT"


def test_the_request_keeps_a_copy() -> None:
    document = act(inputs={"arguments": {"a": 1}})
    request = ActRequest.parse(document)
    document["inputs"]["arguments"]["a"] = 2
    assert request.inputs == {"arguments": {"a": 1}}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
ACT_FIELDS = st.sampled_from(["intent_id", "inputs", "constraints", "caller", "other"])


@given(JSON | st.dictionaries(ACT_FIELDS, JSON) | st.binary(max_size=200))
def test_any_document_is_read_or_refused(document: Any) -> None:
    try:
        request = ActRequest.parse(document)
    except Refused as refusal:
        code = refusal.code
    else:
        assert request.caller
        assert ascii_json(request.inputs)
        return
    assert code == "BAD_REQUEST"


@given(
    st.sampled_from(sorted(INTENTS)),
    st.dictionaries(
        st.sampled_from(
            [
                "text",
                "recipient",
                "argv",
                "relpath",
                "domain",
                "body",
                "tool",
                "server",
                "uri",
                "path",
                "handle",
                "purpose",
                "content",
                "params",
            ]
        ),
        JSON,
    ),
)
def test_inputs_bind_to_themselves(intent: str, inputs: dict[str, Any]) -> None:
    try:
        request = BoundRequest.bind(intent, caller="a", session="s", inputs=inputs)
    except Refused as refusal:
        code = refusal.code
    else:
        again = BoundRequest.bind(intent, caller="a", session="s", inputs=request.inputs)
        assert again == request
        assert again.sha256 == request.sha256
        assert BoundRequest.from_dict(request.to_dict()) == request
        return
    assert code in ("BAD_REQUEST", "WORKSPACE_PATH_BLOCKED")


NOT_BOUND: list[tuple[str, dict[str, Any]]] = [
    ("the name of a PREVIEW", {"intent_id": "CheckMessagePolicy"}),
    ("an input left out", {"inputs": {"recipient": "bob@example.com", "text": "x"}}),
    ("another spelling of a host", {"inputs": {**SEND, "recipient": "bob@EXAMPLE.com"}}),
    ("an empty principal", {"context": {"external_principal": ""}}),
    ("a null jti", {"context": {"delegation_jti": None}}),
    ("a further context key", {"context": {"capsule_hash": "x"}}),
    ("a further field", {"v": 1}),
    ("inputs that are a list", {"inputs": []}),
    ("an empty caller", {"caller": ""}),
    ("a session that is a number", {"session": 1}),
    ("an intent that is a number", {"intent_id": 1}),
    ("a lone surrogate", {"inputs": {**SEND, "text": "\ud800"}}),
]


@for_each(NOT_BOUND, lambda case: case[0])
def test_a_request_that_is_not_bound_is_not_read(case: tuple[str, dict[str, Any]]) -> None:
    request = BoundRequest.bind("SendMessage", caller="alice", session="s1", inputs=SEND)
    with pytest.raises(Refused) as caught:
        BoundRequest.from_dict({**request.to_dict(), **case[1]})
    assert caught.value.code == "BAD_REQUEST"
