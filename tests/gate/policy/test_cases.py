"""Cases: a plain file, read strictly, decided as the gate decides; and those that the starter set ships with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from aver.errors import BadInput, NotFound
from aver.gate.policy.bundle import STARTER_DIRECTORY, build_policy_bundle, load_policy_bundle
from aver.gate.policy.cases import CASES_NAME, PolicyCase, read_cases, run_case

CASES = read_cases(STARTER_DIRECTORY / CASES_NAME)
PERMIT = '@id("all") @reason("everything") permit (principal, action, resource);'


def written(directory: Path, text: str) -> Path:
    path = directory / "cases.toml"
    path.write_text(text)
    return path


def one(directory: Path, text: str) -> PolicyCase:
    (case,) = read_cases(written(directory, f'[[case]]\nname = "n"\nexpect = "pass"\n{text}'))
    return case


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_starter_set_keeps_what_it_promises(case: PolicyCase) -> None:
    assert run_case(case, load_policy_bundle()).problem == ""


def test_every_rule_of_the_starter_set_decides_a_case() -> None:
    assert len(CASES) >= 60
    decided = {rule for case in CASES for rule in run_case(case, load_policy_bundle()).rules}
    # What an approval permits is named by the rules that had asked for it. The others are about effects of single
    # programs, which the tables of commands name: test_starter asks for those effects directly.
    by_tables = {"git-state", "git-fetch", "service-reads", "loopback", "locked-installs"}
    assert set(load_policy_bundle().rules) - decided - by_tables == {"approved"}


def test_a_case_is_decided_by_what_stands_in_it(tmp_path: Path) -> None:
    case = one(tmp_path, 'action = { command = "pytest" }\nfacts = { weekday = 7, hour = 3, groups = ["g"] }')
    assert (case.action.type, case.action.tool) == ("shell_exec", "Bash")
    assert case.action.workspace == "/work/shop"
    assert case.facts.now == "2026-01-11T03:00:00+00:00"
    rule = (
        'permit (principal in Aver::Group::"g", action, resource is Aver::Command)'
        ' when { context.weekday == 7 && context.hour == 3 && resource.program == "pytest" };'
    )
    bundle = build_policy_bundle({"a.cedar": f'@id("sunday") @reason("r") {rule}'})
    assert run_case(case, bundle).problem == ""
    assert run_case(replace(case, groups=frozenset()), bundle).problem != ""


@pytest.mark.parametrize(("risk", "word"), [("low", "pass"), ("unsure", "human_review"), ("high", "skip")])
def test_risk_is_what_the_case_says(tmp_path: Path, risk: str, word: str) -> None:
    action = '{ type = "file_write", tool = "Write", arguments = { file_path = "a.py", content = "x" } }'
    case = replace(one(tmp_path, f'action = {action}\nfacts = {{ risk = "{risk}" }}'), expect=word)
    assert run_case(case, load_policy_bundle()).problem == ""


def test_a_case_that_fails_says_how(tmp_path: Path) -> None:
    case = one(tmp_path, 'action = { command = "rm -r x" }')
    assert run_case(case, load_policy_bundle()).problem.startswith("expected pass, got human_review: deletes files")
    case = one(tmp_path, 'rule = "workspace-reads"\naction = { command = "true" }')
    problem = run_case(case, load_policy_bundle()).problem
    assert problem == "pass, but not by the rule workspace-reads: harmless decided"


WRONG = {
    "empty": ("", "lacks 'case'"),
    "no list": ("case = 1", "tables [[case]]"),
    "no case": ("case = []", "tables [[case]]"),
    "no table": ("case = [1]", "has no name"),
    "no name": ('[[case]]\nexpect = "pass"\naction = { command = "x" }', "case 1 has no name"),
    "a name of two lines": ('[[case]]\nname = "a\\nb"\nexpect = "pass"\naction = { command = "x" }', "has no name"),
    "no action": ('[[case]]\nname = "n"\nexpect = "pass"', "lacks 'action'"),
    "no expectation": ('[[case]]\nname = "n"\naction = { command = "x" }', "lacks 'expect'"),
    "another word": ('[[case]]\nname = "n"\nexpect = "allow"\naction = { command = "x" }', "expect must be one of"),
    "a key too many": ('[[case]]\nname = "n"\nexpect = "pass"\nonly = 1\naction = { command = "x" }', "'only'"),
    "a key too many at the top": ('x = 1\n[[case]]\nname = "n"\nexpect = "pass"\naction = { command = "x" }', "'x'"),
    "an action that is none": ('[[case]]\nname = "n"\nexpect = "pass"\naction = 1', "action must be an object"),
    "an unknown fact": (
        '[[case]]\nname = "n"\nexpect = "pass"\naction = { command = "x" }\nfacts = { lables = [] }',
        "case 1 (n): facts has an unknown key 'lables'",
    ),
    "an unknown part of an action": (
        '[[case]]\nname = "n"\nexpect = "pass"\naction = { type = "decision", toll = "x" }',
        "'toll'",
    ),
    "an unknown type": ('[[case]]\nname = "n"\nexpect = "pass"\naction = { type = "fly" }', "is not an action type"),
    "no type": ('[[case]]\nname = "n"\nexpect = "pass"\naction = { tool = "Read" }', "needs a type"),
    "two commands": (
        '[[case]]\nname = "n"\nexpect = "pass"\naction = { command = "x", arguments = { command = "y" } }',
        "both a command and arguments",
    ),
    "a command that is a list": (
        '[[case]]\nname = "n"\nexpect = "pass"\naction = { command = ["x"] }',
        "must be a text",
    ),
    "a day too many": (
        '[[case]]\nname = "n"\nexpect = "pass"\naction = { command = "x" }\nfacts = { weekday = 8 }',
        "from 1 to 7",
    ),
    "a truth that is a number": (
        '[[case]]\nname = "n"\nexpect = "pass"\naction = { command = "x" }\nfacts = { approved = 1 }',
        "true or false",
    ),
    "an unknown risk": (
        '[[case]]\nname = "n"\nexpect = "pass"\naction = { command = "x" }\nfacts = { risk = "medium" }',
        "risk must be one of",
    ),
    "a date among the arguments": (
        '[[case]]\nname = "n"\nexpect = "pass"\naction = { type = "tool_call", arguments = { d = [2026-01-01] } }',
        "holds a date",
    ),
    "labels that are no list": (
        '[[case]]\nname = "n"\nexpect = "pass"\naction = { command = "x" }\nfacts = { labels = "secret" }',
        "must be a list of texts",
    ),
    "the same name twice": ('[[case]]\nname = "n"\nexpect = "pass"\naction = { command = "x" }\n' * 2, "two cases"),
    "no TOML": ("[[case]", "not valid TOML"),
    "deep": ("x = " + "[" * 5000, "not valid TOML"),
    "too large": ("#" * 300_000, "larger than"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_not_understood_is_refused_with_its_place(tmp_path: Path, name: str) -> None:
    text, words = WRONG[name]
    path = written(tmp_path, text)
    with pytest.raises(BadInput) as caught:
        read_cases(path)
    assert str(path) in caught.value.message
    assert words in caught.value.message


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        read_cases(tmp_path / "nowhere.toml")


def test_an_action_that_cannot_be_judged_is_skipped_and_not_an_error(tmp_path: Path) -> None:
    case = one(tmp_path, 'action = { type = "tool_call", tool = "x", arguments = { x = nan } }')
    assert run_case(replace(case, expect="skip"), build_policy_bundle({"a.cedar": PERMIT})).problem == ""
