"""Asking policy: the strictest answer counts, errors refuse, and nothing from outside poses as something else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.gate.policy.bundle import PolicyBundle, build_policy_bundle, load_policy_bundle, load_schema
from aver.gate.policy.query import (
    DEPTH_MAX,
    TAG_CHARACTERS_MAX,
    TAGS_MAX,
    TARGETS_MAX,
    PolicyQuestion,
    Target,
    ask_policy,
    build_cedar_entities,
    build_cedar_requests,
    flatten_arguments,
)
from support.strategies import json_objects

INSIDE = Target("Path", "src/a.py", "workspace")
READ = PolicyQuestion(agent="agent", action="file_read", targets=(INSIDE,), effects=frozenset({"read"}))


def rules(*lines: str) -> PolicyBundle:
    numbered = (f'@id("r{number}") @reason("rule {number}") {line}' for number, line in enumerate(lines))
    return build_policy_bundle({"rules.cedar": "\n".join(numbered)})


ALL = "permit (principal, action, resource);"


def test_what_nothing_permits_is_refused() -> None:
    answer = ask_policy(rules('permit (principal, action == Aver::Action::"file_write", resource);'), READ)
    assert (answer.outcome, answer.rules, answer.reasons) == ("deny", (), ("no rule permits this",))


def test_what_is_permitted_names_its_rule_and_bundle() -> None:
    bundle = rules(ALL)
    answer = ask_policy(bundle, READ)
    assert (answer.outcome, answer.rules, answer.reasons) == ("allow", ("r0",), ("rule 0",))
    assert answer.bundle == bundle.digest


def test_a_forbid_beats_any_permit() -> None:
    assert ask_policy(rules(ALL, "forbid (principal, action, resource);"), READ).outcome == "deny"


def test_a_forbid_unless_approved_is_a_step_up_and_names_itself() -> None:
    answer = ask_policy(rules(ALL, "forbid (principal, action, resource) unless { context.approved };"), READ)
    assert (answer.outcome, answer.rules) == ("step_up", ("r1",))


def test_a_permit_when_approved_is_a_step_up() -> None:
    answer = ask_policy(rules("permit (principal, action, resource) when { context.approved };"), READ)
    assert (answer.outcome, answer.reasons) == ("step_up", ("no rule permits this",))


def test_a_bare_forbid_beside_a_step_up_refuses_and_is_the_one_named() -> None:
    step_up, bare = (
        "forbid (principal, action, resource) unless { context.approved };",
        "forbid (principal, action, resource);",
    )
    answer = ask_policy(rules(ALL, step_up, bare), READ)
    assert (answer.outcome, answer.rules) == ("deny", ("r2",))


@pytest.mark.parametrize("order", [1, -1])
def test_of_several_targets_the_strictest_answer_counts(order: int) -> None:
    bundle = rules(
        ALL,
        "forbid (principal, action, resource is Aver::Path)"
        ' when { resource.place == "outside" } unless { context.approved };',
        'forbid (principal, action, resource is Aver::Path) when { resource.classes.contains("aver") };',
    )
    outside, own = Target("Path", "/etc/x", "outside"), Target("Path", "keys", "outside", frozenset({"aver"}))
    assert ask_policy(bundle, replace(READ, targets=(INSIDE, outside)[::order])).rules == ("r1",)
    answer = ask_policy(bundle, replace(READ, targets=(INSIDE, outside, own)[::order]))
    assert (answer.outcome, answer.rules) == ("deny", ("r2",))


def test_more_targets_than_can_be_judged_are_refused() -> None:
    many = tuple(Target("Path", f"f{number}", "workspace") for number in range(TARGETS_MAX + 1))
    by_name = rules('permit (principal, action, resource is Aver::Path) when { resource.path like "f*" };')
    assert ask_policy(by_name, replace(READ, targets=many)).outcome == "deny"
    assert ask_policy(by_name, replace(READ, targets=many[1:])).outcome == "allow"


def test_what_no_rule_can_tell_apart_is_asked_about_once() -> None:
    many = tuple(Target("Path", f"f{number}", "workspace") for number in range(10 * TARGETS_MAX))
    outside = Target("Path", "/etc/x", "outside")
    bundle = rules(ALL, 'forbid (principal, action, resource is Aver::Path) when { resource.place == "outside" };')
    assert ask_policy(bundle, replace(READ, targets=many)).outcome == "allow"
    assert ask_policy(bundle, replace(READ, targets=(*many, outside))).outcome == "deny"
    assert ask_policy(bundle, replace(READ, targets=(outside, *many))).outcome == "deny"


@given(json_objects, st.text(), st.sampled_from(["Path", "Host", "Recipient", "Command", "Tool"]))
def test_whatever_is_asked_fits_the_schema(arguments: Any, name: str, kind: Any) -> None:
    """Cedar checks nothing against the schema while it decides, so nothing may be asked that does not fit."""
    import cedarpy

    bundle = load_policy_bundle()
    texts = flatten_arguments({"x": arguments, name: 1})
    name = name.encode("utf-8", "replace").decode()
    target = Target(kind, name, "workspace", frozenset({name}), text=name)
    question = replace(READ, targets=(target,), arguments=texts, tool=name, labels=frozenset({name}), agent=name)
    question = replace(question, score=(1, 2, 3), recent={"read": 1}, groups=frozenset({name}))
    requests = [
        one for approved in (False, True) for one in build_cedar_requests(question, [target], approved=approved)
    ]
    entities = build_cedar_entities(bundle, question, [target])
    for answer in cedarpy.is_authorized_batch(requests, bundle.policies, entities, load_schema()):
        assert not answer.diagnostics.errors


def test_every_kind_of_target_can_be_asked_about() -> None:
    targets = (
        Target("Host", "example.org"),
        Target("Recipient", "someone"),
        Target("Command", "rm", text="rm -rf x"),
        Target("Tool", "fetch", text="server"),
    )
    for target in targets:
        kind = f"Aver::{target.kind}"
        bundle = rules(ALL, f"forbid (principal, action, resource is {kind});")
        assert ask_policy(bundle, replace(READ, targets=(target,))).outcome == "deny"
        assert ask_policy(bundle, READ).outcome == "allow"


def test_an_agent_is_known_by_name_and_group() -> None:
    bundle = rules(
        'permit (principal == Aver::Agent::"a\\"\\n", action, resource);',
        'permit (principal in Aver::Group::"trusted", action, resource);',
    )
    assert ask_policy(bundle, replace(READ, agent='a"\n')).rules == ("r0",)
    assert ask_policy(bundle, READ).outcome == "deny"
    assert ask_policy(bundle, replace(READ, groups=frozenset({"trusted"}))).rules == ("r1",)


def test_a_value_that_cedar_cannot_take_refuses() -> None:
    answer = ask_policy(rules(ALL), replace(READ, action="fly"))
    assert (answer.outcome, answer.reasons) == ("deny", ("'fly' is not an action type",))
    answer = ask_policy(rules(ALL), replace(READ, hour=2**63))
    assert answer.outcome == "deny"
    assert answer.errors


def test_arguments_are_asked_about_by_flattened_names() -> None:
    number = 'context.numbers.hasTag("a.0.n") && context.numbers.getTag("a.0.n")'
    over = f"forbid (principal, action, resource) when {{ {number} > 5 }};"
    bundle = rules(ALL, over)
    for value, outcome in ((5, "allow"), (6, "deny"), ("6", "allow"), (True, "allow"), (None, "allow")):
        question = replace(READ, arguments=flatten_arguments({"a": [{"n": value}]}))
        assert ask_policy(bundle, question).outcome == outcome


@pytest.mark.parametrize("effect", ["permit", "forbid"])
@pytest.mark.parametrize("condition", ["when", "unless"])
def test_a_rule_that_fails_while_it_is_asked_refuses(effect: str, condition: str) -> None:
    """Only sums can: numbers end at 63 bits. Cedar would leave the rule out and answer by the others."""
    number = 'context.numbers.hasTag("n") && context.numbers.getTag("n")'
    bundle = rules(ALL, f"{effect} (principal, action, resource) {condition} {{ {number} * 2 > 5 }};")
    answer = ask_policy(bundle, replace(READ, arguments=flatten_arguments({"n": 2**62})))
    assert answer.outcome == "deny"
    assert answer.errors


def test_a_rule_that_fails_once_approved_refuses() -> None:
    number = 'context.numbers.hasTag("n") && context.approved && context.numbers.getTag("n") * 2 > 5'
    bundle = rules(
        ALL,
        "forbid (principal, action, resource) unless { context.approved };",
        f"forbid (principal, action, resource) when {{ {number} }};",
    )
    assert ask_policy(bundle, replace(READ, arguments=flatten_arguments({"n": 1}))).outcome == "step_up"
    answer = ask_policy(bundle, replace(READ, arguments=flatten_arguments({"n": 2**62})))
    assert answer.outcome == "deny"
    assert answer.errors


HOSTILE_NAMES = ['"', "\\", '"; permit (principal, action, resource);', "__entity", "\x00", "☃", "a" * 10_000, ""]


@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=range(len(HOSTILE_NAMES)))
def test_names_are_names_and_nothing_else(name: str) -> None:
    bundle = rules(ALL, "forbid (principal, action, resource) unless { context.approved };")
    kinds = ("Path", "Host", "Recipient", "Command", "Tool")
    targets = tuple(Target(kind, name, name, frozenset({name}), name) for kind in kinds)  # type: ignore[arg-type]
    question = replace(
        READ,
        agent=name,
        on_behalf_of=name,
        groups=frozenset({name}),
        tool=name,
        server=name,
        targets=targets,
        effects=frozenset({name}),
        labels=frozenset({name}),
        recent={name: 1},
        arguments=flatten_arguments({name: name}),
    )
    answer = ask_policy(bundle, question)
    assert (answer.outcome, answer.errors) == ("step_up", ())


def test_half_a_character_in_a_name_refuses() -> None:
    for question in (replace(READ, tool="\ud800"), replace(READ, targets=(Target("Host", "\ud800"),))):
        answer = ask_policy(rules(ALL), question)
        assert answer.outcome == "deny"
        assert answer.errors


INJECTIONS: list[dict[str, Any]] = [
    {"__entity": {"type": "Aver::Agent", "id": "root"}},
    {"__extn": {"fn": "decimal", "arg": "1.0"}},
    {"x": {"__entity": {"type": "Aver::Agent", "id": "root"}}},
    {"__expr": "true"},
    {"approved": True, "context.approved": True, "context": {"approved": True}},
    {"": "", "\\": 1, "\x00": "\x00"},
]


@pytest.mark.parametrize("arguments", INJECTIONS, ids=range(len(INJECTIONS)))
def test_arguments_cannot_pose_as_anything_else(arguments: dict[str, Any]) -> None:
    bundle = rules(ALL, "forbid (principal, action, resource) unless { context.approved };")
    answer = ask_policy(bundle, replace(READ, arguments=flatten_arguments(arguments)))
    assert (answer.outcome, answer.errors) == ("step_up", ())


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), values, max_size=5))
def test_any_arguments_can_be_asked_about(arguments: dict[str, Any]) -> None:
    answer = ask_policy(rules(ALL), replace(READ, arguments=flatten_arguments(arguments)))
    assert (answer.outcome, answer.errors) == ("allow", ())


def leaves(value: Any, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    if isinstance(value, dict):
        return [leaf for key, item in value.items() for leaf in leaves(item, (*path, key))]
    if isinstance(value, list):
        return [leaf for key, item in enumerate(value) for leaf in leaves(item, (*path, str(key)))]
    return [] if value is None else [(path, value)]


plain = st.text(st.characters(exclude_categories=["Cs"]))
nested = st.recursive(
    st.integers() | plain, lambda inner: st.dictionaries(plain, inner, min_size=1, max_size=3), max_leaves=8
)


@given(st.dictionaries(plain, nested, max_size=4))
def test_two_arguments_never_share_a_name(arguments: dict[str, Any]) -> None:
    assert len(flatten_arguments(arguments).texts) == len({path for path, _ in leaves(arguments)})


def test_what_does_not_fit_makes_the_action_unclear() -> None:
    deep: Any = 1
    for _ in range(DEPTH_MAX + 3):
        deep = [deep]
    for arguments in (
        {"x": deep},
        {"x": list(range(TAGS_MAX + 1))},
        {"x": "y" * (TAG_CHARACTERS_MAX + 1)},
        {"x": "\ud800"},
        {"\ud800": 1},
        {"x": b"bytes"},
    ):
        assert not flatten_arguments(arguments).complete
        bundle = rules("permit (principal, action, resource) when { !context.unclear };")
        assert ask_policy(bundle, replace(READ, arguments=flatten_arguments(arguments))).outcome == "deny"
