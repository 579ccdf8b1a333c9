"""Patches and codes of rules: one spelling each, one patch at most, sealed with the decision."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import aver
from aver.clock import new_id
from aver.errors import BadInput
from aver.gate.action import Action, Facts
from aver.gate.ask import ask
from aver.gate.decide import Gate, decide
from aver.gate.effects.intents import build_intent_action
from aver.gate.policy import bundle as bundle_module
from aver.gate.policy.annotations import CODE_MAX, LENGTH_MAX, RulePatch, check_code, parse_patch
from aver.gate.policy.bundle import PolicyBundle, build_policy_bundle, load_policy_bundle
from aver.gate.policy.lint import lint_policy
from aver.gate.policy.query import PolicyQuestion, Target, ask_policy
from aver.gate.policy.rules import read_policy_rules
from aver.ledger import Ledger

NOW = Facts(now="2026-01-05T09:00:00+00:00")
MESSAGE = {"channel": "email", "recipient": "bob@example.com", "domain": "example.com", "text": "hello"}
TWO = (Target("Path", "a", "workspace"), Target("Host", "example.org"))
QUESTION = PolicyQuestion(agent="agent", action="api_request", targets=TWO, effects=frozenset({"network"}))
ALL = "(principal, action, resource)"
HOSTS = "(principal, action, resource is Aver::Host)"
ASKS = "unless { context.approved }"


def rules(*lines: str) -> PolicyBundle:
    """Rules r0, r1, … in one file, each with its annotations."""
    return build_policy_bundle({"rules.cedar": text_of(*lines)})


def text_of(*lines: str) -> str:
    return "\n".join(f'@id("r{number}") @reason("rule {number}") {line}' for number, line in enumerate(lines))


def message(**changes: str) -> Action:
    return build_intent_action(
        "SendMessage", {**MESSAGE, **changes}, request_sha256="5" * 64, session="s1", workspace="/work/shop"
    )


# --- spelling


@pytest.mark.parametrize(
    ("text", "patch"),
    [
        ("REDACT", RulePatch("REDACT")),
        ("CLAMP_LEN 1", RulePatch("CLAMP_LEN", length=1)),
        ("CLAMP_LEN 256", RulePatch("CLAMP_LEN", length=256)),
        (f"CLAMP_LEN {LENGTH_MAX}", RulePatch("CLAMP_LEN", length=LENGTH_MAX)),
        ("REWRITE_DOMAIN_TO_PROXY a.example:8080", RulePatch("REWRITE_DOMAIN_TO_PROXY", host="a.example:8080")),
        ("REWRITE_DOMAIN_TO_PROXY proxy.example.org", RulePatch("REWRITE_DOMAIN_TO_PROXY", host="proxy.example.org")),
    ],
)
def test_patches_in_their_one_spelling(text: str, patch: RulePatch) -> None:
    assert parse_patch(text) == patch
    assert patch.text == text


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "NOOP", "redact", "REDACT ", " REDACT", "REDACT x", "REDACT\n", "REWRITE", "PATCH 1"),
        *("CLAMP_LEN", "CLAMP_LEN ", "CLAMP_LEN 0", "CLAMP_LEN 01", "CLAMP_LEN -1", "CLAMP_LEN +1", "CLAMP_LEN 1.5"),
        *("CLAMP_LEN  256", "CLAMP_LEN 256 ", "CLAMP_LEN 1e3", "CLAMP_LEN ٣", f"CLAMP_LEN {LENGTH_MAX + 1}"),
        *("CLAMP_LEN 9999999999", "CLAMP_LEN\t256", "REWRITE_DOMAIN_TO_PROXY", "REWRITE_DOMAIN_TO_PROXY "),
        *(f"REWRITE_DOMAIN_TO_PROXY {host}" for host in ("Proxy.example", "a b", "https://a", "bücher.de", "a.")),
        *(f"REWRITE_DOMAIN_TO_PROXY a:{port}" for port in ("443", "0", "70000", "01", "")),
    ],
)
def test_any_other_spelling_of_a_patch_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="is not a patch"):
        parse_patch(text)


@given(st.text())
def test_a_patch_that_is_read_has_its_own_text(text: str) -> None:
    try:
        assert parse_patch(text).text == text
    except BadInput:
        pass


@pytest.mark.parametrize("text", ["DOMAIN_NOT_ALLOWED", "A", "A" * CODE_MAX])
def test_codes(text: str) -> None:
    assert check_code(text) == text


@pytest.mark.parametrize("text", ["", "a", "Domain", "_A", "A-B", "A B", "A1", "É", "A\n", "A" * (CODE_MAX + 1)])
def test_what_is_no_code(text: str) -> None:
    with pytest.raises(BadInput, match="is not a code"):
        check_code(text)


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        ('@patch("SHRED")', "begins with one of REDACT, CLAMP_LEN, REWRITE_DOMAIN_TO_PROXY"),
        ('@patch("CLAMP_LEN many")', f"takes a whole number from 1 to {LENGTH_MAX}"),
        ("@patch", "is not a patch"),
        ('@patch("REWRITE_DOMAIN_TO_PROXY")', "takes a host in lower-case ASCII"),
        ('@code("not allowed")', "upper-case letters and underscores"),
        ("@code", "is not a code"),
    ],
)
def test_a_rule_with_a_wrong_annotation_makes_the_rules_unusable(annotation: str, words: str) -> None:
    found = read_policy_rules({"a.cedar": f'\n@id("a") @reason("b") {annotation} permit {ALL};'})
    ((problem,), parsed) = (found.problems, found.parsed)
    assert (problem.file, problem.line, problem.rule, parsed) == ("a.cedar", 2, "a", None)
    assert words in problem.words
    with pytest.raises(BadInput):
        build_policy_bundle({"a.cedar": f'@id("a") @reason("b") {annotation} permit {ALL};'})


def test_the_check_warns_of_annotations_without_effect() -> None:
    files = {
        "a.cedar": text_of(
            f'@code("A") permit {ALL};',
            f'@patch("REDACT") forbid {ALL};',
            f'@patch("REDACT") @code("A") forbid {ALL} {ASKS};',
        )
    }
    warnings = lint_policy(read_policy_rules(files), rules(f"permit {ALL};"))
    told = {(warning.rule, warning.words[:20]) for warning in warnings}
    assert ("r0", "has @code, which onl") in told
    assert ("r1", "refuses whoever appr") in told
    assert not {words for rule, words in told if rule == "r2" and words.startswith(("has @code", "refuses whoever"))}


# --- which patch and code an answer carries


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        # Permits: one of them is enough, and all of them count.
        ([f'@patch("REDACT") permit {ALL};'], ("allow", "REDACT", "")),
        ([f"permit {ALL};", f'@patch("REDACT") permit {ALL};'], ("allow", "REDACT", "")),
        ([f"permit {ALL};", f'@patch("REDACT") permit {HOSTS};'], ("allow", "REDACT", "")),
        ([f'@patch("REDACT") permit {ALL};', f'@patch("REDACT") permit {HOSTS};'], ("allow", "REDACT", "")),
        # Of a rule that did not decide, nothing counts.
        ([f"permit {ALL};", f'@patch("REDACT") permit {ALL} when {{ context.approved }};'], ("allow", "", "")),
        ([f"permit {ALL};", f'@patch("REDACT") @code("A") forbid {ALL} when {{ false }};'], ("allow", "", "")),
        # A person is asked: the rules that ask, and those that permit it then.
        ([f"permit {ALL};", f'@patch("REDACT") forbid {HOSTS} {ASKS};'], ("step_up", "REDACT", "")),
        ([f'@patch("REDACT") permit {ALL};', f"forbid {HOSTS} {ASKS};"], ("step_up", "REDACT", "")),
        ([f'@patch("REDACT") permit {ALL} when {{ context.approved }};'], ("step_up", "REDACT", "")),
        ([f"permit {ALL};", f'@code("ASK") forbid {HOSTS} {ASKS};'], ("step_up", "", "ASK")),
        # A refusal has a code and no patch.
        ([f'@patch("REDACT") permit {ALL};', f'@code("NO") forbid {HOSTS};'], ("deny", "", "NO")),
        ([f'@patch("REDACT") permit {ALL};', f'@patch("CLAMP_LEN 9") forbid {HOSTS};'], ("deny", "", "")),
        ([f'@code("NO") permit {HOSTS};'], ("deny", "", "")),
        # Two codes: the first rule by its line. One without a code does not count.
        ([f"permit {ALL};", f'@code("B") forbid {ALL};', f'@code("A") forbid {ALL};'], ("deny", "", "B")),
        ([f"permit {ALL};", f"forbid {ALL};", f'@code("A") forbid {HOSTS};'], ("deny", "", "A")),
        # A standing permission stands for the person: what would be patched then, is patched.
        ([f'@allow("x") permit {ALL};', f'@patch("REDACT") forbid {ALL} {ASKS};'], ("allow", "REDACT", "")),
        ([f'@allow("x") @patch("REDACT") permit {ALL};', f"forbid {ALL} {ASKS};"], ("allow", "REDACT", "")),
    ],
    ids=range(17),
)
def test_the_patch_and_the_code_of_an_answer(lines: list[str], expected: tuple[str, str, str]) -> None:
    answer = ask_policy(rules(*lines), QUESTION)
    assert (answer.outcome, answer.patch, answer.code) == expected


@pytest.mark.parametrize(
    "lines",
    [
        [f'@patch("REDACT") permit {ALL};', f'@patch("CLAMP_LEN 9") permit {ALL};'],
        [f'@patch("CLAMP_LEN 8") permit {ALL};', f'@patch("CLAMP_LEN 9") permit {HOSTS};'],
        [f'@patch("REDACT") permit {ALL};', f'@patch("CLAMP_LEN 9") forbid {HOSTS} {ASKS};'],
        [f'@allow("x") @patch("REDACT") permit {ALL};', f'@patch("CLAMP_LEN 9") forbid {ALL} {ASKS};'],
    ],
    ids=range(4),
)
def test_two_different_patches_are_a_refusal_that_names_both(lines: list[str]) -> None:
    answer = ask_policy(rules(*lines), QUESTION)
    assert (answer.outcome, answer.rules, answer.patch) == ("deny", ("r0", "r1"), "")
    assert "CLAMP_LEN 9" in answer.reasons[0]
    assert "r0" in answer.reasons[0]


def test_the_order_of_files_counts_for_codes() -> None:
    files = {
        "20.cedar": f'@id("a") @reason("r") @code("SECOND") forbid {ALL};',
        "10.cedar": f'@id("z") @reason("r") @code("FIRST") forbid {ALL};',
        "00.cedar": f'@id("p") @reason("r") permit {ALL};',
    }
    assert ask_policy(build_policy_bundle(files), QUESTION).code == "FIRST"


def test_rules_without_annotations_answer_as_they_did() -> None:
    answer = ask_policy(load_policy_bundle(), QUESTION)
    assert (answer.patch, answer.code) == ("", "")
    assert not any(rule.patch or rule.code for rule in load_policy_bundle().rules.values())
    parsed = json.loads(bundle_module.PARSED_STARTER.read_text())
    assert {name for rule in parsed["rules"] for name in rule} == {"id", "effect", "reason", "file", "line"}


# --- the decision


PATCHED = rules(f'@patch("REDACT") permit {ALL};', f'@code("NO_EVE") forbid {ALL} when {{ principal.name == "eve" }};')


def test_only_a_request_of_the_gateway_can_be_patched() -> None:
    gate = Gate(bundle=PATCHED)
    decision = decide(message(), NOW, gate)
    assert decision.policy is not None
    assert (decision.decision, decision.policy.patch) == ("pass", "REDACT")
    command = Action(type="shell_exec", tool="Bash", arguments={"command": "ls"}, workspace="/work/shop")
    refused = decide(command, NOW, gate)
    assert refused.policy is not None
    assert (refused.decision, refused.policy.outcome, refused.policy.patch) == ("skip", "deny", "")
    assert refused.reasons[0] == "a rule demands a patch of this (REDACT), and only the gateway can patch a request"


def test_a_person_is_told_what_would_be_changed() -> None:
    asking = rules(f"permit {ALL};", f'@patch("CLAMP_LEN 9") forbid {ALL} {ASKS};')
    for approved, word in ((False, "human_review"), (True, "human_approved")):
        decision = decide(message(), replace(NOW, approved=approved), Gate(bundle=asking))
        assert decision.decision == word
        assert "it is changed before it happens: CLAMP_LEN 9" in decision.reasons


def seal(ledger: Ledger, action: Action, bundle: PolicyBundle = PATCHED) -> Any:
    return ask(ledger, action, gate=Gate(bundle=bundle)).record.to_dict()


def test_patch_and_code_are_sealed_and_made_again(ledger: Ledger) -> None:
    policy = seal(ledger, message())["outcome"]["result"]["policy"]
    assert (policy["patch"], "code" in policy) == ("REDACT", False)
    policy = seal(ledger, replace(message(), caller="eve"))["outcome"]["result"]["policy"]
    assert (policy["code"], "patch" in policy) == ("NO_EVE", False)
    verdict = ledger.verify()
    assert (verdict.status, verdict.check("decisions").reason) == ("verified", "2 checked")


def test_a_decision_without_them_has_the_keys_that_it_had(ledger: Ledger) -> None:
    result = seal(ledger, message(), load_policy_bundle())["outcome"]["result"]
    assert result["policy"].keys() == {"outcome", "rules", "bundle", "reasons", "errors"}


@pytest.mark.parametrize(
    "change", [{"patch": "CLAMP_LEN 9"}, {"patch": None}, {"code": "OTHER"}, {"patch": ""}], ids=str
)
def test_a_forged_patch_or_code_is_found(ledger: Ledger, change: dict[str, Any]) -> None:
    content = seal(ledger, message())
    reseal(ledger, content, change)
    verdict = ledger.verify()
    assert verdict.first_bad is not None
    assert (verdict.status, verdict.first_bad.check) == ("failed", "decisions")


def test_a_forged_patch_beside_a_masked_secret_is_not_called_checked(ledger: Ledger) -> None:
    """The secret is what the patch takes out, so the record of such a decision is masked."""
    content = seal(ledger, replace(message(text="key AKIAIOSFODNN7EXAMPLE"), session=""))
    assert content["outcome"]["result"]["masked"]["count"]
    assert ledger.verify().status == "verified"
    reseal(ledger, content, {"patch": ""}, "gate.default")
    assert ledger.verify().check("decisions").status == "not_checked"


def reseal(ledger: Ledger, content: dict[str, Any], change: dict[str, Any], chain: str = "gate.s1") -> None:
    result = content["outcome"]["result"]
    result["policy"] = {name: value for name, value in {**result["policy"], **change}.items() if value}
    content["id"] = new_id()
    content["context"]["environment"]["aver"] = {"kind": "gate.decision"}
    ledger.append(chain, aver.Capsule.from_dict(content))


# --- rules of an earlier version


def test_annotations_meant_nothing_in_rules_of_another_schema() -> None:
    """An earlier version took any text. Its honest decisions must not look forged."""
    schema = bundle_module.SCHEMA_FILE.read_text() + "// another version\n"
    files = {"a.cedar": f'@id("a") @reason("b") @patch("whatever") @code("x y") permit {ALL};'}
    old = build_policy_bundle(files, schema)
    assert (old.rules["a"].patch, old.rules["a"].code) == ("", "")
    assert ask_policy(old, QUESTION).outcome == "allow"
    with pytest.raises(BadInput):
        build_policy_bundle(files, bundle_module.SCHEMA_FILE.read_text())
