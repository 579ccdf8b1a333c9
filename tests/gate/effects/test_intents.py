"""Requests of the gateway as actions: what their inputs say, and that nobody else can pass for one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aver.agents.registry import provide_known_agents
from aver.errors import BadInput
from aver.gate.action import Action, Facts
from aver.gate.ask import ask
from aver.gate.decide import Gate, build_policy_question, decide
from aver.gate.effects.arguments import quote_words
from aver.gate.effects.effects import Effects, find_effects
from aver.gate.effects.intents import (
    INTENTS,
    Recipient,
    build_intent_action,
    find_intent,
    normalise_authority,
    normalise_domain,
)
from aver.gate.policy.bundle import load_policy_bundle
from aver.gate.policy.query import Target
from aver.gate.policy.standing_rules import find_command
from aver.ledger import Ledger

provide_known_agents()

GATE = Gate(bundle=load_policy_bundle())
FACTS = Facts(now="2026-01-05T09:00:00+00:00", environment={"HOME": "/home/me", "AVER_HOME": "/home/me/.aver"})
REQUEST = "5" * 64
SECRET = "AKIAIOSFODNN7EXAMPLE"
SMALL = "--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"
MESSAGE = {"channel": "email", "recipient": "bob@example.com", "domain": "example.com", "text": "hello"}
FETCH = {"resource_id": "octocat", "domain": "api.example.org", "recipient": "a@example.com", "text": "hello world"}
HOOK = {"domain": "api.example.org", "path": "/x", "body": "hi", "text": "hi", "recipient": "a@example.com"}


def act(intent: str, inputs: dict[str, Any], **more: Any) -> Action:
    known = {"request_sha256": REQUEST, "caller": "alice", "session": "s1", "workspace": "/work/shop", **more}
    return build_intent_action(intent, inputs, **known)


def effects_of(action: Action, **more: Any) -> Effects:
    return find_effects(action, FACTS, **more)


def unclear_parts(action: Action) -> list[str]:
    return [part.why for part in effects_of(action).unclear]


def targets_of(action: Action) -> tuple[Target, ...]:
    decision = decide(action, FACTS, GATE)
    assert decision.effects is not None
    assert decision.estimate is not None
    return build_policy_question(action, FACTS, decision.effects, decision.estimate, GATE).targets


@pytest.mark.parametrize(
    ("intent", "inputs", "classes", "word", "rule"),
    [
        ("SendMessage", MESSAGE, "egress network", "human_review", "network"),
        ("SendMessage", {**MESSAGE, "text": f"{'x ' * 500}{SECRET}"}, "egress network secret", "skip", "secrets-leave"),
        ("FetchResource", FETCH, "network", "human_review", "network"),
        ("FetchResource", {**FETCH, "resource_id": SECRET}, "egress network secret", "skip", "secrets-leave"),
        ("PostWebhook", HOOK, "egress network", "human_review", "network"),
        ("PostWebhook", {**HOOK, "path": f"/?key={SECRET}"}, "egress network secret", "skip", "secrets-leave"),
        ("CommitSkillInstall", {"skill_id": "a", "skill_digest": "ab"}, "agent-config install", "human_review", ""),
        ("ReadWorkspaceFile", {"relpath": "src/a.py"}, "read", "pass", "workspace-reads"),
        ("ReadWorkspaceFile", {"relpath": ".env"}, "read secret", "human_review", "secrets"),
        ("ReadWorkspaceFile", {"relpath": "../other/a.py"}, "read", "human_review", "unclear"),
        ("ReadWorkspaceFile", {"relpath": "/etc/hosts"}, "read", "human_review", "unclear"),
        ("WriteWorkspaceFile", {"relpath": "src/a.py", "content": "x = 2\n"}, "write", "human_review", "unsure-edits"),
        ("WriteWorkspaceFile", {"relpath": ".git/hooks/pre-push", "content": ""}, "persist write", "human_review", ""),
        ("DeleteWorkspaceFile", {"relpath": "src/a.py"}, "delete", "human_review", "deletion"),
        ("RunCommand", {"argv": ["ls", "-la"], "cwd": "."}, "read", "pass", "workspace-reads"),
        ("RunCommand", {"argv": ["pytest", "-q"], "cwd": ""}, "build", "pass", "workspace-builds"),
        ("RunCommand", {"argv": ["echo", "; rm -rf /"], "cwd": ""}, "", "pass", "harmless"),
        ("RunCommand", {"argv": ["rm", "-rf", "src"], "cwd": ""}, "delete", "human_review", "deletion"),
        ("CallTool", {"server": "mail", "tool": "send", "arguments": {}, "params": {}}, "unknown", "human_review", ""),
        ("ReadResource", {"server": "s", "uri": "notes://a", "params": {}}, "read unknown", "human_review", ""),
        ("Declassify", {"handle": "h_1", "purpose": "reply"}, "secret", "human_review", "secrets"),
        ("FinalizeOutput", {"text": "all done"}, "", "pass", "harmless"),
        ("FinalizeOutput", {"text": f"the key is {SECRET}"}, "secret", "human_review", "secrets"),
    ],
)
def test_what_the_starter_rules_say(intent: str, inputs: dict[str, Any], classes: str, word: str, rule: str) -> None:
    decision = decide(act(intent, inputs), FACTS, GATE)
    assert decision.effects is not None
    assert decision.policy is not None
    assert (sorted(decision.effects.classes), decision.decision) == (classes.split(), word)
    assert not rule or rule in decision.policy.rules


def test_a_small_change_that_is_shown_passes_as_an_edit_does() -> None:
    write = act("WriteWorkspaceFile", {"relpath": "src/a.py", "content": "x = 2\n"}, diff=SMALL)
    assert decide(write, FACTS, GATE).decision == "pass"
    other = act("WriteWorkspaceFile", {"relpath": "src/b.py", "content": "x = 2\n"}, diff=SMALL)
    assert unclear_parts(other) == ["the diff does not show what happens to '/work/shop/src/b.py'"]


def test_every_intent_of_the_table_is_known_by_its_own_action() -> None:
    for name, profile in INTENTS.items():
        inputs: dict[str, Any] = dict.fromkeys(profile.inputs, "x")
        action = act(name, inputs)
        assert (find_intent(action), action.type) == (profile, profile.type)


# --- nobody else passes for one


@pytest.mark.parametrize("request_hash", ["", "x", "5" * 63, "5" * 65, "A" * 64])
def test_a_tool_of_an_agent_with_the_name_of_an_intent_is_unknown(request_hash: str) -> None:
    for name, profile in INTENTS.items():
        own = replace(act(name, dict.fromkeys(profile.inputs, "x")), request_sha256=request_hash)
        before = replace(own, request_sha256="")
        assert find_intent(own) is None
        assert effects_of(own).classes == effects_of(before).classes
        # Some agents have a tool `run_command` of their own, which takes its command in another argument. Others have
        # a tool `SendMessage`, for messages to other sessions: it has no recipient that a rule could permit.
        if name == "SendMessage":
            assert (effects_of(own).classes, effects_of(own).recipients) == ({"network", "egress"}, ())
        else:
            assert "unknown" in effects_of(own).classes or (name == "RunCommand" and not effects_of(own).is_clear)
        assert not decide(own, FACTS, GATE).allows


@pytest.mark.parametrize(
    "change",
    [
        {"type": "observation"},
        {"tool": "sendmessage"},
        {"tool": "Send_Message"},
        {"arguments": {**MESSAGE, "bcc": "eve@example.org"}},
        {"arguments": {"text": "hello"}},
        {"arguments": {}},
    ],
    ids=str,
)
def test_an_action_that_is_not_exactly_an_intent_is_an_unknown_tool(change: dict[str, Any]) -> None:
    other = replace(act("SendMessage", MESSAGE), **change)
    assert find_intent(other) is None
    assert "unknown" in effects_of(other).classes
    assert decide(other, FACTS, GATE).decision == "human_review"


def test_the_tool_of_a_call_must_be_the_one_of_its_inputs() -> None:
    call = act("CallTool", {"server": "files", "tool": "read", "arguments": {}, "params": {}})
    assert call.tool == "mcp__files__read"
    for tool in ("mcp__files__write", "mcp__other__read", "Read", "CallTool"):
        assert find_intent(replace(call, tool=tool)) is None


@pytest.mark.parametrize(
    ("intent", "inputs", "words"),
    [
        ("Send", MESSAGE, "is not an intent"),
        ("SendMessage", {"text": "x"}, "exactly channel, recipient, domain, text"),
        ("SendMessage", {**MESSAGE, "more": "x"}, "exactly channel"),
        ("ReadWorkspaceFile", {"relpath": 1}, "relpath must be a text"),
        ("CallTool", {"server": 1, "tool": "a", "arguments": {}, "params": {}}, "must be texts"),
    ],
)
def test_inputs_that_are_not_those_of_the_intent_are_refused(intent: str, inputs: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        act(intent, inputs)


def test_an_action_needs_the_hash_of_its_request() -> None:
    with pytest.raises(BadInput, match="request_sha256"):
        act("SendMessage", MESSAGE, request_sha256="")


# --- recipients and hosts


def test_a_message_has_its_recipient_as_the_only_target() -> None:
    assert targets_of(act("SendMessage", MESSAGE)) == (
        Target("Recipient", "bob@example.com", channel="email", domain="example.com"),
    )
    assert effects_of(act("SendMessage", MESSAGE)).to_dict()["recipients"] == [
        {"name": "bob@example.com", "channel": "email", "domain": "example.com"}
    ]


def test_a_fetch_and_a_webhook_have_their_host_as_the_only_target() -> None:
    for intent, inputs in (("FetchResource", FETCH), ("PostWebhook", HOOK)):
        for domain in ("API.Example.org", "api.example.org:8443", "api.example.org:443"):
            assert targets_of(act(intent, {**inputs, "domain": domain})) == (Target("Host", "api.example.org"),)


@pytest.mark.parametrize(
    "change",
    [
        {"domain": "evil.example"},
        {"domain": "example.com."},
        {"domain": "exаmple.com"},
        {"recipient": "bob@exаmple.com", "domain": "exаmple.com"},
        {"recipient": "bob@example.com@evil.example", "domain": "evil.example"},
        {"recipient": "@example.com"},
        {"recipient": "bob"},
        {"recipient": ""},
        {"recipient": "bob@example.com, eve@example.com"},
        {"recipient": "bob@example.com\nbcc: eve@example.com"},
        {"recipient": "bob\u200b@example.com"},
        {"recipient": "b" * 320 + "@example.com"},
        {"recipient": ["bob@example.com"]},
        {"domain": ""},
        {"text": ["hello"]},
        {"text": {"cut": {"sha256": "0" * 64, "characters": 2_000_000, "begins": "hello"}}},
    ],
    ids=str,
)
def test_a_recipient_that_can_be_read_in_two_ways_is_unclear(change: dict[str, Any]) -> None:
    action = act("SendMessage", {**MESSAGE, **change})
    assert unclear_parts(action)
    decision = decide(action, FACTS, GATE)
    assert decision.policy is not None
    assert (decision.decision, "unclear" in decision.policy.rules) == ("human_review", True)


@pytest.mark.parametrize(
    ("channel", "recipient", "domain"),
    [
        ("email", "bob@example.com", "example.com"),
        ("email", "Bob@EXAMPLE.com", "Example.COM"),
        ("email", "b.o+b@xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("chat", "#general", "chat.example.org"),
        ("chat", "ännchen", "chat.example.org"),
    ],
)
def test_clear_recipients_keep_their_exact_name(channel: str, recipient: str, domain: str) -> None:
    action = act("SendMessage", {**MESSAGE, "channel": channel, "recipient": recipient, "domain": domain})
    found = effects_of(action)
    assert found.is_clear
    assert found.recipients == (Recipient(recipient, channel, domain.lower()),)


@pytest.mark.parametrize(
    "text",
    [
        *("", ".", "a..b", ".example.org", "example.org.", "-a.org", "a-.org", "a_b.org", "a b.org", "bücher.example"),
        *("example.org:8080", "user@example.org", "https://example.org", "[::1]", "::1", "a" * 64 + ".org", "a\n"),
        *("1", "1.2.3", "1.2.3.4.5", "256.1.1.1", "0x7f.1", "0177.0.0.1", "2130706433", "example.0x10", "a.1"),
        ".".join(["a" * 60] * 5),
    ],
)
def test_what_is_no_plain_domain(text: str) -> None:
    assert normalise_domain(text) is None
    assert unclear_parts(act("SendMessage", {**MESSAGE, "recipient": f"bob@{text}", "domain": text}))
    if text != "example.org:8080":
        assert unclear_parts(act("FetchResource", {**FETCH, "domain": text}))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A.example:8080", "a.example:8080"),
        ("a.example:443", "a.example"),
        *((f"a.example:{port}", None) for port in ("", "0", "080", "65536", "-1", "8080x", "٣", "80:80")),
        (":80", None),
    ],
)
def test_a_domain_may_have_a_port(text: str, found: str | None) -> None:
    assert normalise_authority(text) == found


@pytest.mark.parametrize(
    ("text", "domain"),
    [("localhost", "localhost"), ("A.Example", "a.example"), ("127.0.0.1", "127.0.0.1"), ("xn--p1ai", "xn--p1ai")],
)
def test_plain_domains_in_their_one_form(text: str, domain: str) -> None:
    assert normalise_domain(text) == domain


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=30))
def test_a_domain_is_itself_again(text: str) -> None:
    found = normalise_domain(text)
    assert found is None or (normalise_domain(found) == found and found == text.lower() and found.isascii())


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(sorted(INTENTS)), st.data())
def test_no_inputs_make_the_gate_stumble(intent: str, data: st.DataObject) -> None:
    """Whatever the inputs are, there is a decision, and a secret or a strange value never makes it milder."""
    values = st.none() | st.text(max_size=20) | st.lists(st.text(max_size=6), max_size=3) | st.integers()
    inputs = {name: data.draw(values) for name in INTENTS[intent].inputs}
    try:
        action = act(intent, inputs)
    except BadInput:
        return
    decision = decide(action, FACTS, GATE)
    assert decision.policy is not None, decision.reasons
    if intent in ("SendMessage", "FetchResource", "PostWebhook"):
        assert not decision.allows


# --- commands without a shell


@pytest.mark.parametrize(
    ("argv", "command"),
    [
        (["ls", "-la"], "ls -la"),
        (["rm", "a b"], "rm 'a b'"),
        (["echo", "$HOME", "*", "~", "`id`", "a;b", "{a,b}"], "echo '$HOME' '*' '~' '`id`' 'a;b' '{a,b}'"),
        (["A=b", "rm", "x"], "'A=b' rm x"),
        (["A+=b", "rm"], "'A+=b' rm"),
        (["if", "true"], "'if' true"),
        (["time", "ls"], "'time' ls"),
        (["!", "ls"], "'!' ls"),
        (["[[", "a", "]]"], "'[[' a ']]'"),
        (["./A=b", "x"], "./A=b x"),
        (["it's"], "'it'\"'\"'s'"),
        (["A=it's"], "'A=it'\"'\"'s'"),
    ],
)
def test_words_are_quoted_so_that_a_shell_reads_the_same(argv: list[str], command: str) -> None:
    import shlex

    assert quote_words(argv) == command
    assert shlex.split(command) == argv


@pytest.mark.parametrize("argv", [[], "ls", ["ls", 1], None, {"a": 1}, [""], ["ls", "a\0b"]])
def test_words_that_are_none_are_unclear(argv: Any) -> None:
    found = effects_of(act("RunCommand", {"argv": argv, "cwd": ""}))
    assert ("execute" in found.classes, found.is_clear) == (True, False)


def test_an_assignment_or_a_word_of_the_shell_is_no_program() -> None:
    for argv in (["LD_PRELOAD=./x.so", "ls"], ["if", "ls"], ["time", "rm", "-r", "src"], ["A=b"]):
        decision = decide(act("RunCommand", {"argv": argv, "cwd": ""}), FACTS, GATE)
        assert decision.decision == "human_review"
        assert decision.effects is not None
        assert decision.effects.programs[:1] != ("ls",)


def test_the_directory_counts() -> None:
    for cwd, word in (("", "pass"), ("src", "pass"), ("/work/shop", "pass"), ("/etc", "human_review")):
        assert decide(act("RunCommand", {"argv": ["pytest"], "cwd": cwd}), FACTS, GATE).decision == word
    assert not effects_of(act("RunCommand", {"argv": ["ls"], "cwd": ["a"]})).is_clear


def test_a_command_that_is_allowed_for_good_is_allowed_as_words_too() -> None:
    run = act("RunCommand", {"argv": ["npm", "run", "dev"], "cwd": "."})
    assert find_command(run, FACTS, GATE.known) == "npm run dev"
    assert find_command(replace(run, arguments={**run.arguments, "cwd": "src"}), FACTS, GATE.known) == ""
    assert find_command(replace(run, request_sha256=""), FACTS, GATE.known) == ""
    split = act("RunCommand", {"argv": ["npm run", "dev"], "cwd": "."})
    assert find_command(split, FACTS, GATE.known) == "'npm run' dev"


# --- MCP servers


def test_a_call_is_judged_as_the_tool_of_its_server() -> None:
    call = act("CallTool", {"server": "files", "tool": "list", "arguments": {"path": "src"}, "params": {}})
    hints = replace(FACTS, annotations={"readOnlyHint": True, "openWorldHint": False})
    assert find_effects(call, hints).classes == {"unknown", "read"}
    assert find_effects(call, hints, trusted=frozenset({"files"})).classes == {"read"}
    declared = replace(FACTS, declared={"effects": ["network", "egress"], "by": "settings"})
    assert find_effects(call, declared).classes == {"network", "egress"}
    with_secret = replace(call, arguments={**call.arguments, "arguments": {"text": SECRET}})
    assert find_effects(with_secret, declared).classes == {"network", "egress", "secret"}


def test_a_name_that_two_servers_could_have_is_that_of_the_inputs() -> None:
    """`mcp__a__b__c` may be `b__c` of `a`, and `c` of `a__b`."""
    first = act("CallTool", {"server": "a", "tool": "b__c", "arguments": {}, "params": {}})
    second = act("CallTool", {"server": "a__b", "tool": "c", "arguments": {}, "params": {}})
    assert first.tool == second.tool
    hints = replace(FACTS, annotations={"readOnlyHint": True, "openWorldHint": False})
    assert find_effects(first, hints, trusted=frozenset({"a__b"})).server == "a"
    assert "unknown" in find_effects(first, hints, trusted=frozenset({"a__b"})).classes
    assert find_effects(second, hints, trusted=frozenset({"a__b"})).classes == {"read"}


@pytest.mark.parametrize(
    ("uri", "classes"),
    [
        ("notes://today", {"read"}),
        ("file:///work/shop/a.py", {"read"}),
        ("file:///home/me/.ssh/id_rsa", {"read", "secret"}),
        ("FILE:/etc/shadow", {"read", "secret"}),
        ("https://example.org/a", {"read", "network"}),
    ],
)
def test_a_resource_of_a_trusted_server_is_read(uri: str, classes: set[str]) -> None:
    read = act("ReadResource", {"server": "files", "uri": uri, "params": {}})
    assert effects_of(read, trusted=frozenset({"files"})).classes == classes
    assert effects_of(read).classes == classes | {"unknown"}
    declared = replace(FACTS, declared={"effects": ["read"], "by": "settings"})
    assert find_effects(read, declared).classes == classes


# --- sealed and made again


@pytest.mark.parametrize(
    ("intent", "inputs", "status"),
    [
        ("SendMessage", MESSAGE, "1 checked"),
        ("SendMessage", {**MESSAGE, "text": f"key {SECRET}"}, "0 made again, 1 not (1: secrets were masked in it)"),
        ("ReadWorkspaceFile", {"relpath": "a.py"}, "1 checked"),
        ("RunCommand", {"argv": ["ls", "$HOME"], "cwd": ""}, "1 checked"),
        ("CallTool", {"server": "m", "tool": "t", "arguments": {"a": 1}, "params": {}}, "1 checked"),
    ],
    ids=range(5),
)
def test_the_decision_about_a_request_is_made_again_as_it_was(
    ledger: Ledger, tmp_path: Path, intent: str, inputs: dict[str, Any], status: str
) -> None:
    answer = ask(ledger, act(intent, inputs, workspace=str(tmp_path)))
    assert answer.record.to_dict()["outcome"]["result"]["action"]["request_sha256"] == REQUEST
    verdict = ledger.verify()
    assert (verdict.status, verdict.check("decisions").reason) == ("verified", status)
