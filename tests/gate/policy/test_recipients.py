"""Recipients as targets: rules name them exactly, and nothing that only looks like one is taken for it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.gate.action import Facts
from aver.gate.decide import Gate, decide
from aver.gate.effects.intents import build_intent_action
from aver.gate.policy.bundle import PolicyBundle, build_policy_bundle, load_cedar, load_schema, read_starter_files
from aver.gate.policy.query import PolicyQuestion, Target, ask_policy, build_cedar_entities, build_cedar_requests
from aver.gate.policy.rules import read_policy_rules
from aver.gate.policy.shadows import find_shadows

NOW = Facts(now="2026-01-05T09:00:00+00:00")
CAREFUL = 'unless { context.unclear || context.labels.contains("secret") }'
SCOPE = 'principal, action == Aver::Action::"api_request"'
BOB = f"""@id("bob") @reason("r") @allow("bob") permit ({SCOPE}, resource == Aver::Recipient::"bob@example.com")
{CAREFUL};"""
TEAM = f"""@id("team") @reason("r") @allow("team") permit ({SCOPE}, resource is Aver::Recipient)
when {{ resource.channel == "email" && resource.domain == "example.com" }} {CAREFUL};"""


def with_starter(*more: str) -> PolicyBundle:
    return build_policy_bundle({**read_starter_files(), "90-own.cedar": "\n".join(more)})


def outcome(bundle: PolicyBundle, recipient: str = "bob@example.com", **more: Any) -> str:
    facts = Facts(now=NOW.now, labels=more.pop("labels", frozenset()))
    inputs = {
        "channel": "email",
        "recipient": recipient,
        "domain": recipient.rpartition("@")[2],
        "text": "hello",
        **more,
    }
    action = build_intent_action("SendMessage", inputs, request_sha256="5" * 64, caller="alice")
    return decide(action, facts, Gate(bundle=bundle)).decision


def test_an_allowed_recipient_passes_and_nobody_else() -> None:
    bundle = with_starter(BOB)
    assert outcome(bundle) == "pass"
    assert outcome(bundle, "eve@example.com") == "human_review"
    assert outcome(bundle, text="key AKIAIOSFODNN7EXAMPLE") == "skip"
    assert outcome(bundle, labels=frozenset({"secret"})) == "human_review"


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "recipient",
    [
        *("Bob@example.com", "BOB@EXAMPLE.COM", "bob@Example.com", "bob@example.com.", "bob@example.org"),
        *("bоb@example.com", "bob@еxample.com", "ｂob@example.com", "bob\u200b@example.com", "bob@example.com\u200b"),
        *("bob@example.com ", " bob@example.com", "bob@example.com,eve@evil.example", "xbob@example.com"),
        *('bob@example.com"', "bob@example.com\\", 'x"|| true ||"', "0", "bob%40example.com", "bob@example.com\0"),
    ],
)
def test_a_name_that_only_looks_like_an_allowed_one_is_asked_about(recipient: str) -> None:
    assert outcome(with_starter(BOB), recipient) == "human_review"


def test_a_domain_is_compared_in_its_one_form() -> None:
    bundle = with_starter(TEAM)
    for recipient in ("bob@example.com", "Ann@EXAMPLE.com"):
        assert outcome(bundle, recipient) == "pass"
    assert outcome(bundle, channel="chat") == "human_review"
    # The caller cannot name another domain than the recipient's own.
    assert outcome(bundle, "eve@evil.example", domain="example.com") == "human_review"
    assert outcome(bundle, "eve@example.com@evil.example", domain="example.com") == "human_review"
    assert outcome(bundle, "bob@exаmple.com", domain="exаmple.com") == "human_review"


@pytest.mark.more
def test_a_plain_permit_does_not_undo_what_asks_for_a_person() -> None:
    plain = BOB.replace('@allow("bob") ', "")
    bundle = with_starter(plain)
    assert outcome(bundle) == "human_review"
    found = read_policy_rules({**read_starter_files(), "90-own.cedar": plain})
    (shadow,) = find_shadows(found, bundle)
    assert shadow.rule == "bob"
    assert "network forbids the same calls" in shadow.words


def test_a_rule_may_forbid_a_recipient_by_name() -> None:
    forbid = '@id("not-eve") @reason("r") forbid (principal, action, resource == Aver::Recipient::"eve@example.com");'
    bundle = with_starter(TEAM, forbid)
    assert (outcome(bundle, "eve@example.com"), outcome(bundle)) == ("skip", "pass")


@pytest.mark.parametrize("kind", ["Path", "Host", "Command", "Tool"])
def test_other_targets_have_no_name_of_their_own(kind: str) -> None:
    found = read_policy_rules(
        {"a.cedar": f'@id("a") @reason("r") permit (principal, action, resource == Aver::{kind}::"x");'}
    )
    assert "would never hold" in found.problems[0].words


def ask_about(bundle: PolicyBundle, *targets: Target) -> Any:
    question = PolicyQuestion(agent="a", action="api_request", targets=targets, effects=frozenset({"egress"}))
    return ask_policy(bundle, question)


def test_recipients_are_told_apart_also_where_no_rule_reads_their_attributes() -> None:
    bundle = build_policy_bundle(
        {"a.cedar": '@id("a") @reason("r") permit (principal, action, resource == Aver::Recipient::"bob");'}
    )
    assert ask_about(bundle, Target("Recipient", "bob")).outcome == "allow"
    for both in (("bob", "eve"), ("eve", "bob")):
        assert ask_about(bundle, *(Target("Recipient", name) for name in both)).outcome == "deny"


def test_one_name_with_two_domains_is_refused() -> None:
    """No request has two recipients. If one had, Cedar would take them for one."""
    bundle = build_policy_bundle(
        {
            "a.cedar": '@id("a") @reason("r") permit (principal, action, resource is Aver::Recipient)'
            ' when { resource.domain != "x" };'
        }
    )
    twice = (Target("Recipient", "bob", domain="a"), Target("Recipient", "bob", domain="b"))
    assert ask_about(bundle, *twice).outcome == "deny"


@given(st.text(), st.text(), st.text())
def test_any_name_fits_the_schema_and_stays_itself(name: str, channel: str, domain: str) -> None:
    bundle = build_policy_bundle({"a.cedar": '@id("a") @reason("r") permit (principal, action, resource);'})
    target = Target("Recipient", name, channel=channel, domain=domain)
    question = PolicyQuestion(agent="a", action="api_request", targets=(target,), effects=frozenset({"egress"}))
    requests = build_cedar_requests(question, [target], approved=False)
    entities = build_cedar_entities(bundle, question, [target])
    answer = load_cedar().is_authorized_batch(requests, bundle.policies, entities, schema=load_schema())[0]
    assert (answer.allowed, answer.diagnostics.errors) == (True, [])
