"""The digest of a program: equal for equal rules and settings, another for any change of them."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import pytest

from aver.capsule.canonical import canonical_bytes
from aver.errors import Unavailable
from aver.gate.decide import Gate
from aver.gate.decision import Thresholds
from aver.gate.effects.known_agents import AgentNames, build_known_agents
from aver.gate.policy.bundle import build_policy_bundle, load_policy_bundle, read_starter_files
from aver.gate.program import KNOWN_MAX, describe_program, program_digest
from aver.gate.risk.model import RiskState

RULE = '@id("a")\n@reason("b")\npermit (principal, action, resource);\n'
GATE = Gate(bundle=load_policy_bundle(), tools={"lookup": {"effects": ["read"], "by": "settings"}})


def test_a_program_has_the_keys_of_the_contract() -> None:
    described = describe_program(GATE)
    assert sorted(described) == [
        *("caution", "effects_version", "files", "groups", "max_retries", "schema", "thresholds", "tools", "trusted"),
    ]
    assert described["files"] == read_starter_files()
    assert described["tools"] == {"lookup": {"effects": ["read"], "by": "settings"}}
    assert program_digest(GATE) == hashlib.sha256(canonical_bytes(described)).hexdigest()


def test_equal_programs_have_one_digest_wherever_they_were_read() -> None:
    elsewhere = replace(GATE, bundle=build_policy_bundle(read_starter_files()), rules_at="/srv/rules")
    assert program_digest(elsewhere) == program_digest(GATE)
    # What a decision gets as an input is no part of the program.
    assert program_digest(replace(GATE, state=RiskState(learned_until=7))) == program_digest(GATE)


def test_the_order_of_names_does_not_count() -> None:
    groups = {"a": frozenset({"x", "y"}), "b": frozenset({"z"})}
    other = {name: frozenset(sorted(groups[name], reverse=True)) for name in ("b", "a")}
    assert program_digest(replace(GATE, groups=groups)) == program_digest(replace(GATE, groups=other))


@pytest.mark.parametrize(
    "change",
    [
        {"bundle": build_policy_bundle({"a.cedar": RULE})},
        {"thresholds": Thresholds(pass_below=0.06)},
        {"thresholds": Thresholds(skip_above=0.9)},
        {"max_retries": 4},
        {"groups": {"reviewers": frozenset({"lint"})}},
        {"trusted": frozenset({"files"})},
        {"caution": "strict"},
        {"tools": {}},
        {"tools": {"lookup": {"effects": [], "by": "settings"}}},
        {"known": build_known_agents([AgentNames(variables="X")])},
    ],
    ids=lambda change: next(iter(change)),
)
def test_every_part_changes_the_digest(change: dict[str, Any]) -> None:
    assert program_digest(replace(GATE, **change)) != program_digest(GATE)


def test_a_renamed_file_is_another_program() -> None:
    first, second = (replace(GATE, bundle=build_policy_bundle({name: RULE})) for name in ("a.cedar", "b.cedar"))
    assert program_digest(first) != program_digest(second)


def test_many_programs_do_not_fill_the_memory() -> None:
    from aver.gate import program

    for retries in range(1, 3 * KNOWN_MAX):
        changed = replace(GATE, max_retries=retries)
        assert program_digest(changed) == hashlib.sha256(canonical_bytes(describe_program(changed))).hexdigest()
    assert len(program._known_digests) <= KNOWN_MAX


def test_a_gate_without_rules_is_no_program() -> None:
    for describe in (describe_program, program_digest):
        with pytest.raises(Unavailable, match="they do not load"):
            describe(Gate(bundle=None, trouble="they do not load"))
