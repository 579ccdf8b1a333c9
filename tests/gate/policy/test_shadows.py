"""Permits that can never take effect are found, with the rules that forbid the same; others are left in peace."""

from __future__ import annotations

import pytest

from aver.gate.policy.bundle import build_policy_bundle, read_starter_files
from aver.gate.policy.lint import lint_policy
from aver.gate.policy.rules import read_policy_rules


def shadows_of(condition: str, scope: str = "principal, action, resource", notes: str = "") -> list[str]:
    text = f'@id("own") @reason("x") {notes} permit ({scope}) when {{ {condition} }};'
    files = {**read_starter_files(), "own.cedar": text}
    found = read_policy_rules(files)
    assert not found.problems
    warnings = lint_policy(found, build_policy_bundle(files))
    return [warning.words for warning in warnings if "never take effect" in warning.words]


@pytest.mark.parametrize(
    ("condition", "scope", "forbids"),
    [
        (
            'context.effects == ["network"] && resource.name == "a.b"',
            "principal, action, resource is Aver::Host",
            "network",
        ),
        ('context.effects == ["delete"]', 'principal in Aver::Group::"ops", action, resource', "deletion"),
    ],
)
def test_a_permit_that_a_forbid_covers(condition: str, scope: str, forbids: str) -> None:
    [words] = shadows_of(condition, scope)
    assert words.startswith(f"can never take effect: {forbids} forbids the same calls")


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("condition", "notes"),
    [
        ('context.tool == "lookup"', '@allow("lookup")'),
        ('context.tool == "lookup"', ""),
        ('context.effects.contains("build")', ""),
        ('context.approved && context.effects.contains("delete")', ""),
        ('context.tool == "Read"', ""),
        ('resource is Aver::Command && resource.text like "git log*"', ""),
    ],
)
def test_a_permit_that_takes_effect(condition: str, notes: str) -> None:
    assert shadows_of(condition, notes=notes) == []
