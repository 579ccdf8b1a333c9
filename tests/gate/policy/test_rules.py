"""Reading rules: every problem is told with its file, rule and line, and no text brings Cedar's parser down."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.gate.policy.rules import CHARACTERS_MAX, NESTING_MAX, OPERATORS_MAX, RuleProblem, read_policy_rules

GOOD = '@id("good") @reason("r") permit (principal, action, resource);'


def rule(body: str, name: str = "x") -> str:
    return f'@id("{name}") @reason("r") permit (principal, action, resource) when {{ {body} }};'


def problems(text: str) -> list[RuleProblem]:
    return read_policy_rules({"a.cedar": text}).problems


def test_all_problems_of_all_files_are_told() -> None:
    first = f"""// Notes; with a semicolon and "quotes
{GOOD}

@id("typo") @reason("r") forbid (principal, action, resource) when {{ context.efects.isEmpty() }};
@id("good") @reason("r") permit (principal, action, resource);
@id("mute") permit (principal, action, resource);
permit (principal, action, resource);
"""
    second = """@id("broken") @reason("a ; in a string")
permit (principal, action, resource) when { context.unclear && };

@id("fine") @reason("r") permit (principal, action, resource);
@id("broken-too") permit (principal action, resource);
"""
    found = read_policy_rules({"1.cedar": first, "2.cedar": second})
    told = {(problem.file, problem.line, problem.rule) for problem in found.problems}
    assert told == {
        ("1.cedar", 4, "typo"),
        ("1.cedar", 5, "good"),
        ("1.cedar", 6, "mute"),
        ("1.cedar", 7, ""),
        ("2.cedar", 1, "broken"),
        ("2.cedar", 5, "broken-too"),
    }
    assert all(problem.file in problem.words for problem in found.problems)


def test_a_misfit_is_told_once_and_not_for_each_type_of_action() -> None:
    assert len(problems(rule("context.nope"))) == 1


@pytest.mark.parametrize(
    "scope",
    [
        'resource == Aver::Path::"/etc/passwd"',
        'resource in Aver::Path::"/etc"',
        'resource is Aver::Path in Aver::Path::"/etc"',
        'resource == Aver::Host::"example.org"',
    ],
)
def test_a_rule_that_names_a_thing_would_never_hold_and_is_refused(scope: str) -> None:
    """Each target has a number for Cedar, not its name; so a `forbid` like this would let all of it pass."""
    found = problems(f'@id("x") @reason("r") forbid (principal, action, {scope});')
    assert len(found) == 1
    assert "would never hold" in found[0].words


def test_things_by_name_are_found_in_conditions_too() -> None:
    assert "would never hold" in problems(rule('resource == Aver::Path::"0"'))[0].words
    assert "would never hold" in problems(rule('context.texts == Aver::Texts::"arguments"'))[0].words
    assert problems(rule('principal == Aver::Agent::"a" || principal in Aver::Group::"g"')) == []


def test_more_rules_than_can_be_checked_in_time_are_refused() -> None:
    text = "".join(rule("true", f"r{number}") for number in range(8000))
    found = read_policy_rules({f"{number}.cedar": text for number in range(3)})
    assert [problem.words.partition(":")[0] for problem in found.problems] == [
        f"the rules have more than {CHARACTERS_MAX} characters in all"
    ]


def test_rules_know_where_they_begin() -> None:
    found = read_policy_rules({"a.cedar": f"// one\n\n{GOOD} {rule('true', 'second')}\n// x\n{rule('true', 'third')}"})
    assert {name: one.line for name, one in found.rules.items()} == {"good": 3, "second": 3, "third": 5}
    assert found.problems == []


TANGLES = {
    "brackets": lambda n: "(" * n + "true" + ")" * n,
    "sets": lambda n: "[" * n + "1" + "]" * n + " == 1",
    "records": lambda n: "{a: " * n + "1" + "}" * n + " == 1",
    "and": lambda n: " && ".join(["true"] * n),
    "or": lambda n: " || ".join(["context.unclear"] * n),
    "sums": lambda n: "1" + " + 1" * n + " > 0",
    "attributes": lambda n: "context" + ".tool" * n + ' == "x"',
    "indices": lambda n: "context" + '["tool"]' * n + ' == "x"',
    "calls": lambda n: "context.effects" + '.contains("x")' * n,
    "branches": lambda n: "if true then true else " * n + "true",
    "not": lambda n: "!" * n + "true",
    "minus": lambda n: "-" * n + "1 == 1",
    "behind a carriage return": lambda n: "true // \r" + "&& (" * n + "true" + ")" * n + "\n",
    "unbalanced": lambda n: ")" * n + "(" * 2 * n,
    "conditions": lambda n: "true" + "} unless { true" * n,
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("size", [80, 1000, 30_000])
@pytest.mark.parametrize("name", TANGLES)
def test_no_nesting_brings_the_process_down(name: str, size: int) -> None:
    """Cedar's parser would: it recurses until the stack ends. That the test goes on is the assertion."""
    found = read_policy_rules({"a.cedar": GOOD + "\n" + rule(TANGLES[name](size))})
    assert found.problems == [] or all(problem.words for problem in found.problems)
    assert (found.parsed is None) == bool(found.problems)
    assert size < OPERATORS_MAX or found.problems


def test_what_people_write_is_not_too_much() -> None:
    depth = NESTING_MAX // 2
    assert problems(rule("(" * depth + "true" + ")" * depth)) == []
    assert problems(rule(" || ".join(f'context.tool == "t{number}"' for number in range(30)))) == []
    listed = ", ".join(f'"t{number}"' for number in range(3000))
    assert problems(rule(f"[{listed}].contains(context.tool)")) == []


def test_brackets_in_texts_and_comments_do_not_count() -> None:
    text = f'@id("x") @reason("{"(" * 200}") // {"[" * 200}\npermit (principal, action, resource);'
    assert problems(text) == []


@given(st.text(alphabet='@id("x")reason permitforbid(){}[];.,/\\"&|!=\n\r', max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    found = read_policy_rules({"a.cedar": text})
    assert found.problems or found.rules


@given(st.text(max_size=200))
def test_any_characters_are_read_or_refused(text: str) -> None:
    found = read_policy_rules({"a.cedar": GOOD + text})
    assert found.problems or found.rules
