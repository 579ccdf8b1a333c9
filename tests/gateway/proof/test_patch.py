"""Patches: the text of an annotation, what each one changes, and where it cannot be applied."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.errors import BadInput, Refused
from aver.gate.policy.annotations import LENGTH_MAX as CLAMP_MAX
from aver.gateway.intents import INTENTS, bind_inputs
from aver.gateway.proof.patch import (
    NOOP,
    PATCH_NAMES,
    PATCHED_INPUTS,
    SanitizePatch,
    apply_patch,
    is_applicable,
    parse_patch,
)

TOKEN = "AKIA" + "IOSFODNN7EXAMPLE"
MAIL = bind_inputs(INTENTS["SendMessage"], {"recipient": "bob@example.com", "text": "x" * 60 + f" {TOKEN} end"})
HOOK = bind_inputs(INTENTS["PostWebhook"], {"domain": "evil.example", "body": f"key {TOKEN}"})
FETCH = bind_inputs(INTENTS["FetchResource"], {"domain": "evil.example"})

GOOD = {
    "NOOP": SanitizePatch(0),
    "REDACT": SanitizePatch(1),
    "CLAMP_LEN 1": SanitizePatch(2, max_chars=1),
    "CLAMP_LEN 256": SanitizePatch(2, max_chars=256),
    f"CLAMP_LEN {CLAMP_MAX}": SanitizePatch(2, max_chars=CLAMP_MAX),
    "REWRITE_DOMAIN_TO_PROXY proxy.example.com": SanitizePatch(3, host="proxy.example.com"),
    "REWRITE_DOMAIN_TO_PROXY 127.0.0.1:8080": SanitizePatch(3, host="127.0.0.1:8080"),
}


@pytest.mark.parametrize("text", GOOD)
def test_an_annotation_is_read_and_written(text: str) -> None:
    patch = parse_patch(text)
    assert patch == GOOD[text]
    assert patch.annotation == text
    assert SanitizePatch.from_dict(patch.to_dict()) == patch
    assert patch.to_dict()["patch_name"] == PATCH_NAMES[patch.id] == text.split()[0]


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "noop", "NOOP 1", "REDACT ", " REDACT", "REDACT all", "DROP", "REDACT\n"),
        *("CLAMP_LEN", "CLAMP_LEN 0", "CLAMP_LEN -1", "CLAMP_LEN 01", "CLAMP_LEN 1.5", "CLAMP_LEN 1 2", "CLAMP_LEN  1"),
        *(f"CLAMP_LEN {CLAMP_MAX + 1}", "CLAMP_LEN \u0661", "CLAMP_LEN 256 characters"),
        *("REWRITE_DOMAIN_TO_PROXY", "REWRITE_DOMAIN_TO_PROXY a b", "REWRITE_DOMAIN_TO_PROXY Proxy.example"),
        *("REWRITE_DOMAIN_TO_PROXY http://proxy.example", "REWRITE_DOMAIN_TO_PROXY a/b", "REWRITE_DOMAIN_TO_PROXY "),
    ],
)
def test_an_annotation_that_is_no_patch(text: str) -> None:
    with pytest.raises(BadInput, match="is not a patch"):
        parse_patch(text)


@given(st.text() | st.builds(lambda name, rest: f"{name} {rest}", st.sampled_from(PATCH_NAMES), st.text()))
def test_any_text_is_a_patch_or_refused(text: str) -> None:
    try:
        assert parse_patch(text).annotation == text
    except BadInput:
        pass


@pytest.mark.parametrize(
    "document",
    [
        None,
        {},
        [],
        {"patch_id": 0, "patch_name": "NOOP"},
        {"patch_id": 1, "patch_name": "NOOP", "params": {}},
        {"patch_id": False, "patch_name": "NOOP", "params": {}},
        {"patch_id": 2, "patch_name": "CLAMP_LEN", "params": {}},
        {"patch_id": 2, "patch_name": "CLAMP_LEN", "params": {"max_chars": "256"}},
        {"patch_id": 2, "patch_name": "CLAMP_LEN", "params": {"max_chars": 256.0}},
        {"patch_id": 2, "patch_name": "CLAMP_LEN", "params": {"host": 256}},
        {"patch_id": 3, "patch_name": "REWRITE_DOMAIN_TO_PROXY", "params": {"host": "a", "max_chars": 1}},
        {"patch_id": 0, "patch_name": "NOOP", "params": {}, "note": ""},
    ],
)
def test_a_document_that_is_no_patch(document: Any) -> None:
    with pytest.raises(BadInput):
        SanitizePatch.from_dict(document)


def test_noop_changes_nothing_and_applies_everywhere() -> None:
    assert apply_patch(NOOP, "SendMessage", MAIL).inputs == MAIL
    assert apply_patch(NOOP, "SendMessage", MAIL).changed == ()
    assert PATCHED_INPUTS[0].keys() == INTENTS.keys()


def test_redact_finds_a_secret_anywhere_in_the_text() -> None:
    """The reference implementation looks at the first 35 characters."""
    patched = apply_patch(parse_patch("REDACT"), "SendMessage", MAIL)
    assert TOKEN not in json.dumps(patched.inputs)
    assert patched.inputs["text"].startswith("x" * 60 + " [masked:")
    assert patched.inputs["text"].endswith(" end")
    assert patched.changed == ("text",)
    assert MAIL["text"].count(TOKEN) == 1, "the bound inputs stay as they are"


def test_redact_changes_body_and_text_of_a_webhook_alike() -> None:
    patched = apply_patch(parse_patch("REDACT"), "PostWebhook", HOOK)
    assert patched.inputs["body"] == patched.inputs["text"]
    assert TOKEN not in json.dumps(patched.inputs)
    assert patched.changed == ("body", "text")


def test_redact_of_a_tools_arguments_knows_the_names_of_values() -> None:
    inputs = bind_inputs(
        INTENTS["CallTool"], {"server": "s", "tool": "t", "arguments": {"password": "hunter2", "n": [TOKEN]}}
    )
    patched = apply_patch(parse_patch("REDACT"), "CallTool", inputs)
    assert "hunter2" not in json.dumps(patched.inputs)
    assert TOKEN not in json.dumps(patched.inputs)


def test_clamp_cuts_characters_not_bytes() -> None:
    inputs = {**MAIL, "text": "\U0001f600\u00e9abc"}
    assert apply_patch(parse_patch("CLAMP_LEN 3"), "SendMessage", inputs).inputs["text"] == "\U0001f600\u00e9a"
    assert apply_patch(parse_patch("CLAMP_LEN 99"), "SendMessage", inputs).changed == ()


@pytest.mark.parametrize(("intent", "inputs"), [("FetchResource", FETCH), ("PostWebhook", HOOK)])
def test_a_request_goes_to_the_proxy_instead(intent: str, inputs: dict[str, Any]) -> None:
    patched = apply_patch(parse_patch("REWRITE_DOMAIN_TO_PROXY proxy.example.com"), intent, inputs)
    assert patched.inputs == {**inputs, "domain": "proxy.example.com"}
    assert patched.changed == ("domain",)


def test_the_digest_is_that_of_what_goes_out() -> None:
    patched = apply_patch(parse_patch("CLAMP_LEN 2"), "SendMessage", MAIL)
    written = json.dumps(patched.inputs, sort_keys=True, separators=(",", ":")).encode()
    assert patched.sha256 == hashlib.sha256(written).hexdigest()
    assert patched.sha256 != apply_patch(NOOP, "SendMessage", MAIL).sha256


@pytest.mark.parametrize("intent", sorted(INTENTS))
@pytest.mark.parametrize("text", ["REDACT", "CLAMP_LEN 5", "REWRITE_DOMAIN_TO_PROXY proxy.example.com"])
def test_a_patch_applies_to_an_intent_or_refuses(text: str, intent: str) -> None:
    patch = parse_patch(text)
    names = PATCHED_INPUTS[patch.id].get(intent)
    assert is_applicable(patch, intent) == (names is not None)
    if names is None:
        with pytest.raises(Refused) as caught:
            apply_patch(patch, intent, {})
        assert caught.value.code == "POLICY_DENY"
        assert intent in caught.value.message
    else:
        assert names
        assert set(names) <= set(INTENTS[intent].inputs)


def test_no_patch_changes_a_path_a_command_or_a_recipient() -> None:
    changed = {name for table in PATCHED_INPUTS.values() for names in table.values() for name in names}
    assert changed == {"text", "body", "content", "arguments", "domain"}
