"""Intents: the table, and the inputs that each of them binds or refuses."""

from __future__ import annotations

from typing import Any

import pytest

from aver.errors import Refused
from aver.gate.action import ACTION_TYPES
from aver.gate.effects import intents as known_to_the_gate
from aver.gateway.intents import (
    INPUTS_MAX,
    INTENTS,
    WORDS_MAX,
    ActInputs,
    bind_inputs,
    find_intent,
    read_inputs,
)
from support.many_cases import for_each

TABLE = {
    "SendMessage": ("CheckMessagePolicy", "channel recipient domain text", "/exec/send_message", "api_request"),
    "FetchResource": ("CheckFetchPolicy", "resource_id domain recipient text", "/exec/fetch", "web_request"),
    "PostWebhook": ("CheckWebhookPolicy", "domain path body text recipient", "/exec/webhook", "api_request"),
    "CommitSkillInstall": ("CheckSkillInstallPolicy", "skill_id skill_digest", "/exec/skill_install", "action"),
    "ReadWorkspaceFile": ("CheckReadWorkspaceFile", "relpath", "/exec/read_file", "file_read"),
    "WriteWorkspaceFile": ("CheckWriteWorkspaceFile", "relpath content", "/exec/write_file", "code_edit"),
    "DeleteWorkspaceFile": ("CheckDeleteWorkspaceFile", "relpath", "/exec/delete_file", "file_delete"),
    "RunCommand": ("CheckRunCommand", "argv cwd", "/exec/run_command", "shell_exec"),
    "CallTool": ("CheckCallTool", "server tool arguments params", "", "tool_call"),
    "ReadResource": ("CheckReadResource", "server uri params", "", "file_read"),
    "Declassify": ("", "handle purpose", "", "action"),
    "FinalizeOutput": ("", "text", "", "action"),
}


def test_the_table() -> None:
    rows = {
        intent.name: (intent.preview, " ".join(intent.inputs), intent.endpoint, intent.action_type)
        for intent in INTENTS.values()
    }
    assert rows == TABLE
    assert {intent.action_type for intent in INTENTS.values()} <= set(ACTION_TYPES)
    assert all((intent.place == "executor") == bool(intent.endpoint) for intent in INTENTS.values())


def test_both_names_find_the_intent() -> None:
    for name, (preview, *_) in TABLE.items():
        assert find_intent(name).intent.name == name
        assert not find_intent(name).preview_only
        if preview:
            assert find_intent(preview).intent.name == name
            assert find_intent(preview).preview_only


@pytest.mark.parametrize("name", ["", "sendmessage", "SendMessage ", "CheckDeclassify", "MemoryWrite", "Check"])
def test_other_names_find_none(name: str) -> None:
    with pytest.raises(Refused) as caught:
        find_intent(name)
    assert caught.value.code == "UNKNOWN_INTENT"


DIGEST = "ab" * 32
GOOD: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (
        "SendMessage",
        {"recipient": "bob@example.com", "text": "hi"},
        {"channel": "email", "recipient": "bob@example.com", "domain": "example.com", "text": "hi"},
    ),
    (
        "SendMessage",
        {"recipient": "Bob.B+x@Mail.EXAMPLE.com", "text": ""},
        {"channel": "email", "recipient": "Bob.B+x@mail.example.com", "domain": "mail.example.com", "text": ""},
    ),
    (
        "SendMessage",
        {"channel": "slack", "recipient": "#general", "text": "hi"},
        {"channel": "slack", "recipient": "#general", "domain": "", "text": "hi"},
    ),
    (
        "SendMessage",
        {"recipient": "bob@127.0.0.1", "text": "hi", "domain": "127.0.0.1"},
        {"channel": "email", "recipient": "bob@127.0.0.1", "domain": "127.0.0.1", "text": "hi"},
    ),
    (
        "FetchResource",
        {"domain": "API.github.com"},
        {
            "resource_id": "example",
            "domain": "api.github.com",
            "recipient": "alice@example.com",
            "text": "hello world",
        },
    ),
    (
        "FetchResource",
        {"domain": "localhost:8443", "resource_id": "a/b?c=%20d", "text": "hello world"},
        {
            "resource_id": "a/b?c=%20d",
            "domain": "localhost:8443",
            "recipient": "alice@example.com",
            "text": "hello world",
        },
    ),
    (
        "PostWebhook",
        {"domain": "hooks.example.com:443", "body": "{}"},
        {"domain": "hooks.example.com", "path": "/", "body": "{}", "text": "{}", "recipient": "alice@example.com"},
    ),
    (
        "CommitSkillInstall",
        {"skill_id": "foo", "skill_digest": DIGEST},
        {"skill_id": "foo", "skill_digest": DIGEST},
    ),
    ("ReadWorkspaceFile", {"relpath": "./src//app.py"}, {"relpath": "src/app.py"}),
    ("ReadWorkspaceFile", {"relpath": "...a/..b/c.."}, {"relpath": "...a/..b/c.."}),
    ("WriteWorkspaceFile", {"relpath": "a", "content": "\0\n"}, {"relpath": "a", "content": "\0\n"}),
    ("RunCommand", {"argv": ["ls", ""]}, {"argv": ["ls", ""], "cwd": "."}),
    ("RunCommand", {"argv": ["ls"], "cwd": "./src/"}, {"argv": ["ls"], "cwd": "src"}),
    (
        "CallTool",
        {"server": "s", "tool": "t"},
        {"server": "s", "tool": "t", "arguments": {}, "params": {}},
    ),
    (
        "CallTool",
        {"server": "s", "tool": "t", "arguments": {"n": 2**70, "x": [None, 0.5, True]}, "params": {"_meta": {}}},
        {"server": "s", "tool": "t", "arguments": {"n": 2**70, "x": [None, 0.5, True]}, "params": {"_meta": {}}},
    ),
    ("ReadResource", {"server": "s", "uri": "file:///x#y"}, {"server": "s", "uri": "file:///x#y", "params": {}}),
    ("Declassify", {"handle": "h_1", "purpose": "mail it"}, {"handle": "h_1", "purpose": "mail it"}),
    ("FinalizeOutput", {"text": "done"}, {"text": "done"}),
]


@for_each(GOOD, lambda case: f"{case[0]} {case[1]}")
def test_bound_inputs(case: tuple[str, dict[str, Any], dict[str, Any]]) -> None:
    intent, inputs, bound = case
    assert bind_inputs(INTENTS[intent], inputs) == bound
    assert bind_inputs(INTENTS[intent], bound) == bound


MAIL = {"recipient": "bob@example.com", "text": "hi"}
BAD: list[tuple[str, dict[str, Any]]] = [
    ("SendMessage", {}),
    ("SendMessage", {"recipient": "bob@example.com"}),
    ("SendMessage", {"text": "hi"}),
    ("SendMessage", {**MAIL, "cc": "eve@example.com"}),
    # No silent conversion.
    *(("SendMessage", {**MAIL, "text": value}) for value in (None, 1, 1.5, True, ["hi"], {"a": 1})),
    *(("PostWebhook", {"domain": "a.example", "body": value}) for value in (None, 1, True, {"a": 1}, [])),
    # The domain is the recipient's own.
    ("SendMessage", {**MAIL, "domain": "evil.example"}),
    ("SendMessage", {**MAIL, "domain": "Example.com"}),
    ("SendMessage", {**MAIL, "domain": ""}),
    ("SendMessage", {**MAIL, "domain": None}),
    # One recipient, of one spelling.
    *(
        ("SendMessage", {**MAIL, "recipient": value})
        for value in (
            *("", "bob", "@example.com", "bob@", "bob@@example.com", "a@b@example.com", "bob@example.com,eve@evil.com"),
            *("bob@example.com;eve", "bob@example.com\r\nBcc: eve@evil.com", "bob @example.com", "<bob@example.com>"),
            *("bob@example.com ", "bob@exa mple.com", "bob@ex\u00e4mple.com", "bob@.com", "bob@-a.com", "bob@a..com"),
            *("bob@[127.0.0.1]", "bob@0x7f000001", "bob@127.1", "bob@example.com:25", "b\u202eob@example.com"),
            *("a" * 330 + "@example.com", "bob@" + "a" * 64 + ".com", "bob@example.com.", 1, None, ["bob@example.com"]),
        )
    ),
    ("SendMessage", {**MAIL, "channel": ""}),
    ("SendMessage", {**MAIL, "channel": "e\nmail"}),
    ("SendMessage", {"channel": "slack", "recipient": "a b", "text": ""}),
    # Constants are not the agent's choice.
    ("FetchResource", {"domain": "a.example", "recipient": "bob@example.com"}),
    ("FetchResource", {"domain": "a.example", "text": "secret"}),
    ("PostWebhook", {"domain": "a.example", "body": "a", "text": "b"}),
    ("PostWebhook", {"domain": "a.example", "body": "a", "recipient": "bob@example.com"}),
    # Hosts.
    ("FetchResource", {}),
    *(
        ("FetchResource", {"domain": value})
        for value in (
            *(
                "",
                "a.example/x",
                "user@a.example",
                "a.example:0",
                "a.example:65536",
                "a.example:08",
                "a.example:",
                "[::1]",
            ),
            *(
                "http://a.example",
                "a_b.example",
                "a.example.",
                "2130706433",
                "127.0.0.01",
                "1.2.3",
                "256.1.1.1",
                "0x1.2",
            ),
            *("\u0430.example", "a.example\n", " a.example", 1, None),
        )
    ),
    *(
        ("FetchResource", {"domain": "a.example", "resource_id": value})
        for value in ("", "a b", "a#b", "a\\b", "\u00e4")
    ),
    *(("PostWebhook", {"domain": "a.example", "body": "", "path": value}) for value in ("", "x", "/a b", "/\n", "/#")),
    # Skills.
    ("CommitSkillInstall", {"skill_id": "../x", "skill_digest": DIGEST}),
    ("CommitSkillInstall", {"skill_id": "", "skill_digest": DIGEST}),
    ("CommitSkillInstall", {"skill_id": "a", "skill_digest": DIGEST.upper()}),
    ("CommitSkillInstall", {"skill_id": "a", "skill_digest": DIGEST + "\n"}),
    # Paths.
    *(("ReadWorkspaceFile", {"relpath": value}) for value in ("", ".", "a/", "a/.", "./", "a\0b", "a\nb", 1, None)),
    ("ReadWorkspaceFile", {"relpath": "a" * 4097}),
    # Commands.
    *(
        ("RunCommand", {"argv": value})
        for value in ([], [""], "ls", ["ls", 1], ["ls\0"], None, {}, ["x"] * (WORDS_MAX + 1))
    ),
    # Objects.
    *(("CallTool", {"server": "s", "tool": "t", "arguments": value}) for value in ([], "x", None, 1)),
    ("CallTool", {"server": "s", "tool": "t", "arguments": {"a": float("nan")}}),
    ("CallTool", {"server": "s", "tool": "t", "arguments": {"a": "\ud800"}}),
    ("CallTool", {"server": "", "tool": "t"}),
    ("CallTool", {"server": "s"}),
    ("ReadResource", {"server": "s", "uri": "a b"}),
    ("FinalizeOutput", {"text": "x" * (INPUTS_MAX + 1)}),
    ("Declassify", {"handle": "h_1"}),
]


@for_each(BAD, lambda case: f"{case[0]} {case[1]!r:.300}")
def test_refused_inputs(case: tuple[str, dict[str, Any]]) -> None:
    intent, inputs = case
    with pytest.raises(Refused) as caught:
        bind_inputs(INTENTS[intent], inputs)
    assert caught.value.code == "BAD_REQUEST"
    assert "inputs" in caught.value.message


@pytest.mark.parametrize("path", ["/etc/passwd", "..", "../x", "a/../../x", "a/..", "./..", "//x"])
@pytest.mark.parametrize("name", ["relpath", "cwd"])
def test_a_path_that_leaves_the_workspace_has_its_own_code(name: str, path: str) -> None:
    intent, inputs = ("RunCommand", {"argv": ["ls"]}) if name == "cwd" else ("DeleteWorkspaceFile", {})
    with pytest.raises(Refused) as caught:
        bind_inputs(INTENTS[intent], {**inputs, name: path})
    assert caught.value.code == "WORKSPACE_PATH_BLOCKED"


# --- what stands beside the inputs


def test_tx_id_and_artifacts_are_not_bound() -> None:
    call = find_intent("SendMessage")
    plain = read_inputs(call, MAIL)
    assert plain.tx_id is None
    assert read_inputs(call, {**MAIL, "artifacts": []}) == plain
    assert read_inputs(call, {**MAIL, "tx_id": "tx_1"}) == ActInputs(plain.bound, "tx_1")
    assert read_inputs(call, {"tx_id": "tx_1"}) == ActInputs(None, "tx_1")
    assert read_inputs(call, {"tx_id": "tx_1", "artifacts": []}) == ActInputs(None, "tx_1")


@pytest.mark.parametrize("value", [None, "", 1, ["tx_1"], "tx\n1", "x" * 200])
def test_a_bad_tx_id(value: Any) -> None:
    with pytest.raises(Refused) as caught:
        read_inputs(find_intent("SendMessage"), {**MAIL, "tx_id": value})
    assert caught.value.code == "BAD_REQUEST"


def test_a_preview_takes_no_tx_id() -> None:
    with pytest.raises(Refused) as caught:
        read_inputs(find_intent("CheckMessagePolicy"), {**MAIL, "tx_id": "tx_1"})
    assert caught.value.code == "BAD_REQUEST"


@pytest.mark.parametrize(
    ("value", "code"),
    [([{"handle": "h_1"}], "ARTIFACTS_NOT_ALLOWED"), ([None], "ARTIFACTS_NOT_ALLOWED"), ({}, "BAD_REQUEST")],
)
def test_artifacts(value: Any, code: str) -> None:
    with pytest.raises(Refused) as caught:
        read_inputs(find_intent("SendMessage"), {**MAIL, "artifacts": value})
    assert caught.value.code == code


def test_defaults_are_not_shared_between_requests() -> None:
    first = bind_inputs(INTENTS["CallTool"], {"server": "s", "tool": "t"})
    first["params"]["x"] = 1
    assert bind_inputs(INTENTS["CallTool"], {"server": "s", "tool": "t"})["params"] == {}


def test_the_gate_knows_the_same_intents_and_inputs() -> None:
    assert {name: intent.inputs for name, intent in INTENTS.items()} == {
        name: tuple(profile.inputs) for name, profile in known_to_the_gate.INTENTS.items()
    }
    assert {name: intent.action_type for name, intent in INTENTS.items()} == {
        name: profile.type for name, profile in known_to_the_gate.INTENTS.items()
    }
