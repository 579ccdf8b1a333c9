"""Doubts about valid rules: words that nothing ever is, sums that may fail, and what passes unasked."""

from __future__ import annotations

import pytest

from aver.gate.effects.findings import EFFECTS
from aver.gate.effects.known_agents import GUARDED_CLASSES
from aver.gate.effects.routine_commands import ROUTINE_EFFECTS
from aver.gate.policy.bundle import STARTER_DIRECTORY, build_policy_bundle, read_starter_files
from aver.gate.policy.lint import lint_policy
from aver.gate.policy.rules import read_policy_rules

ASKED = '@id("approved") @reason("r") permit (principal, action, resource) when { context.approved };'


def doubted(body: str) -> list[tuple[str, str]]:
    """Of a rule that stands beside one that asks a human for everything."""
    files = {"a.cedar": f'{ASKED}\n@id("x") @reason("r") {body}'}
    return [(doubt.rule, doubt.words) for doubt in lint_policy(read_policy_rules(files), build_policy_bundle(files))]


def test_the_starter_set_is_beyond_doubt() -> None:
    files = read_starter_files()
    assert lint_policy(read_policy_rules(files), build_policy_bundle(files)) == []


@pytest.mark.parametrize("path", sorted(STARTER_DIRECTORY.glob("optional/*.cedar")), ids=lambda path: path.stem)
def test_so_is_each_optional_file_with_it(path: object) -> None:
    files = {**read_starter_files(), path.name: path.read_text()}  # type: ignore[attr-defined]
    assert lint_policy(read_policy_rules(files), build_policy_bundle(files)) == []


@pytest.mark.parametrize(
    ("condition", "word"),
    [
        ('context.effects.contains("netwrok")', "netwrok"),
        ('context.effects.containsAny(["read", "wirte"])', "wirte"),
        ('["reed"].containsAll(context.effects)', "reed"),
        ('context.effects == ["reads"]', "reads"),
        ('context.risk == "medium"', "medium"),
        ('"lwo" == context.risk', "lwo"),
        ('context.doubts.contains("NOT_AKSED")', "NOT_AKSED"),
        ('["named", "lnked"].containsAll(context.origins)', "lnked"),
        ('context.class == "sned"', "sned"),
        ('["low", "hi"].contains(context.risk)', "hi"),
        ('resource is Aver::Path && resource.place == "inside"', "inside"),
        ('resource is Aver::Path && resource.classes.contains("secrets")', "secrets"),
    ],
)
def test_a_word_that_nothing_ever_is(condition: str, word: str) -> None:
    found = doubted(f"forbid (principal, action, resource) when {{ {condition} }};")
    assert [rule for rule, _ in found] == ["x"]
    assert repr(word) in found[0][1]


def test_words_that_exist_are_not_doubted() -> None:
    effects = ", ".join(f'"{name}"' for name in (*EFFECTS, *ROUTINE_EFFECTS))
    classes = ", ".join(f'"{name}"' for name in GUARDED_CLASSES)
    assert doubted(f"forbid (principal, action, resource) when {{ context.effects.containsAny([{effects}]) }};") == []
    about = f"forbid (principal, action, resource is Aver::Path) when {{ resource.classes.containsAny([{classes}]) }};"
    assert doubted(about) == []


def test_other_words_are_anybodys() -> None:
    assert doubted('forbid (principal, action, resource) when { context.tool == "netwrok" };') == []
    assert doubted('forbid (principal, action, resource) when { context.labels.contains("mine") };') == []


@pytest.mark.parametrize("body", ["when { false }", "unless { true }", "when { context.unclear } when { false }"])
def test_a_rule_that_decides_nothing(body: str) -> None:
    assert [rule for rule, _ in doubted(f"forbid (principal, action, resource) {body};")] == ["x"]


def test_a_comparison_with_false_is_none_of_these() -> None:
    assert doubted("forbid (principal, action, resource) when { context.unclear == false };") == []


def test_sums_may_fail() -> None:
    found = doubted("forbid (principal, action, resource) when { context.observations + 1 > 2 };")
    assert [rule for rule, _ in found] == ["x"]
    assert "63 bits" in found[0][1]


def test_a_rule_about_everything() -> None:
    assert ("x", "refuses everything: no other rule can ever decide") in doubted(
        "forbid (principal, action, resource);"
    )


def test_what_passes_unasked() -> None:
    words = " ".join(words for _, words in doubted("permit (principal, action, resource);"))
    for what in ("permits everything", "unclear actions", "unknown tool", "Aver's own files", "a secret"):
        assert what in words


def test_rules_by_which_nobody_is_asked() -> None:
    files = {"a.cedar": '@id("x") @reason("r") permit (principal, action, resource) when { context.risk == "low" };'}
    words = [doubt.words for doubt in lint_policy(read_policy_rules(files), build_policy_bundle(files))]
    assert any("never asks a person" in one for one in words)
