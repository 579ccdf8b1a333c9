"""Unit tests of policies, in a file that people write: what is asked, and what should come of it.

    workspace = "/work/shop"              of all cases; this is the default

    [[case]]
    name = "tests may run"
    expect = "pass"                       pass, human_review, human_approved or skip
    rule = "workspace-builds"             one of the rules that decide; may be left out
    [case.action]
    command = "pytest -q"                 short for a call of Bash; otherwise type, tool, arguments, files, diff,
                                          description, caller, on_behalf_of, session, workspace
    [case.facts]                          all may be left out
    labels = ["secret"]                   what the session is marked with
    risk = "low"                          low, unsure or high; left out, the shipped prior says
    weekday = 6                           1 is Monday; Monday
    hour = 3                              UTC; noon
    approved = true                       a human has approved it
    groups = ["trusted"]                  that the caller is in
    trusted_servers = ["files"]           MCP servers whose word is taken
    annotations = { readOnlyHint = true } what an MCP tool says of itself
    recent = { network = 9 }              actions of the session in the last minute, by effect
    home = "/home/me"                     of whoever would act

A case is decided as the gate decides, by nothing but what stands in it and the rules: what was learned in a workspace
does not count, so the answer is the same on every machine. A key that is not listed here is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from aver.errors import BadInput, NotFound
from aver.gate.action import Action, Facts
from aver.gate.decide import Gate, decide
from aver.gate.decision import Decision, Thresholds
from aver.gate.policy.bundle import Bundle
from aver.home import read_table
from aver.keys.document import int_field, shape
from aver.values import dataclass

__all__ = ["CASES_NAME", "Case", "Result", "read_cases", "run_case", "thresholds_for"]

CASES_NAME = "cases.toml"
"""The file of cases that lies beside rules; the starter set has one, too."""

CASES_MAX = 5000
"""Cases in one file; the size of the file bounds them too."""

WORKSPACE = "/work/shop"
WORDS = ("pass", "human_review", "human_approved", "skip")

_THRESHOLDS = {
    "low": Thresholds(pass_below=1.0),
    "unsure": Thresholds(pass_below=-1.0),
    "high": Thresholds(pass_below=-1.0, skip_above=-1.0),
}
"""Under which every estimate is what was asked for."""

_TEXTS = ("type", "tool", "diff", "description", "caller", "on_behalf_of", "session", "workspace")
_ACTION = frozenset((*_TEXTS, "command", "arguments", "files"))
_FACTS = frozenset(
    (
        *("labels", "risk", "weekday", "hour", "approved", "groups", "trusted_servers", "annotations", "recent"),
        "home",
    )
)
_TOOL_OF_COMMANDS = {"type": "shell_exec", "tool": "Bash"}
_PRINTABLE = re.compile(r"\S[^\x00-\x1f\x7f]{0,199}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One question to the gate, and the answer that it should give."""

    name: str
    action: Action
    facts: Facts
    expect: str
    rule: str = ""
    thresholds: Thresholds = field(default_factory=Thresholds)
    groups: frozenset[str] = frozenset()
    trusted: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a case; `problem` is empty where it is as it should be."""

    case: Case
    decision: Decision
    problem: str

    @property
    def rules(self) -> tuple[str, ...]:
        return self.decision.policy.rules if self.decision.policy is not None else ()


def thresholds_for(risk: str | None, otherwise: Thresholds) -> Thresholds:
    """Thresholds by which any action is of this risk; None leaves it to the model."""
    return otherwise if risk is None else _THRESHOLDS[risk]


def run_case(case: Case, bundle: Bundle) -> Result:
    """Decide a case by these rules."""
    gate = Gate(
        bundle=bundle,
        thresholds=case.thresholds,
        groups={group: frozenset({case.action.caller}) for group in case.groups},
        trusted=case.trusted,
    )
    decision = decide(case.action, case.facts, gate, gate_id="case")
    rules = decision.policy.rules if decision.policy is not None else ()
    problem = ""
    if decision.decision != case.expect:
        problem = f"expected {case.expect}, got {decision.decision}: {'; '.join(decision.reasons)}"
    elif case.rule and case.rule not in rules:
        problem = f"{case.expect}, but not by the rule {case.rule}: {', '.join(rules) or 'none'} decided"
    return Result(case, decision, problem)


def read_cases(path: Path) -> list[Case]:
    """The cases in a file; `BadInput` names the file and the case that is wrong."""
    table = read_table(path)
    if table is None:
        raise NotFound(f"there is no file {path}")
    shape(table, str(path), frozenset({"case"}), frozenset({"workspace"}))
    workspace = _text(table.get("workspace", WORKSPACE), f"{path}: workspace")
    listed = table["case"]
    if not isinstance(listed, list) or not listed or len(listed) > CASES_MAX:
        raise BadInput(f"{path}: there must be from 1 to {CASES_MAX} tables [[case]]")
    names: set[str] = set()
    cases = []
    for number, entry in enumerate(listed, 1):
        case = _case(entry, f"{path}: case {number}", workspace)
        if case.name in names:
            raise BadInput(f"{path}: two cases are called {case.name!r}")
        names.add(case.name)
        cases.append(case)
    return cases


def _case(entry: Any, where: str, workspace: str) -> Case:
    name = entry.get("name") if isinstance(entry, dict) else None
    if not isinstance(name, str) or not _PRINTABLE.fullmatch(name):
        raise BadInput(f"{where} has no name of one line")
    where = f"{where} ({name})"
    shape(entry, where, frozenset({"name", "action", "expect"}), frozenset({"facts", "rule"}))
    if entry["expect"] not in WORDS:
        raise BadInput(f"{where}: expect must be one of {', '.join(WORDS)}")
    facts = shape(entry.get("facts", {}), f"{where}: facts", frozenset(), _FACTS)
    return Case(
        name=name,
        action=_action(entry["action"], f"{where}: action", workspace),
        facts=_facts(facts, f"{where}: facts"),
        expect=entry["expect"],
        rule=_text(entry.get("rule", ""), f"{where}: rule"),
        thresholds=thresholds_for(_risk(facts, where), Thresholds()),
        groups=_names(facts.get("groups", []), f"{where}: groups"),
        trusted=_names(facts.get("trusted_servers", []), f"{where}: trusted_servers"),
    )


def _action(given: Any, where: str, workspace: str) -> Action:
    table = shape(given, where, frozenset(), _ACTION)
    values: dict[str, Any] = {"workspace": workspace}
    if "command" in table:
        if "arguments" in table:
            raise BadInput(f"{where} has both a command and arguments", advice="put the command among the arguments")
        values |= {**_TOOL_OF_COMMANDS, "arguments": {"command": _text(table["command"], f"{where}: command")}}
    elif "type" not in table:
        raise BadInput(f"{where} needs a type, or a command")
    values |= {name: _text(table[name], f"{where}: {name}") for name in _TEXTS if name in table}
    if "arguments" in table:
        values["arguments"] = _json(table["arguments"], f"{where}: arguments")
    if "files" in table:
        values["files"] = tuple(_list(table["files"], f"{where}: files"))
    try:
        return Action(**values)
    except BadInput as error:
        raise BadInput(f"{where}: {error.message}", advice=error.advice) from error


def _facts(table: Mapping[str, Any], where: str) -> Facts:
    day = int_field(table.get("weekday", 1), f"{where}: weekday", low=1, high=7)
    hour = int_field(table.get("hour", 12), f"{where}: hour", low=0, high=23)
    approved = table.get("approved", False)
    if not isinstance(approved, bool):
        raise BadInput(f"{where}: approved must be true or false")
    recent = _json(table.get("recent", {}), f"{where}: recent")
    home = _text(table.get("home", ""), f"{where}: home")
    return Facts(
        now=f"2026-01-{4 + day:02}T{hour:02}:00:00+00:00",  # The 5th was a Monday.
        labels=_names(table.get("labels", []), f"{where}: labels"),
        recent={name: int_field(count, f"{where}: recent", low=0, high=10**9) for name, count in recent.items()},
        approved=approved,
        annotations=_json(table.get("annotations", {}), f"{where}: annotations"),
        environment={"HOME": home} if home else {},
    )


def _risk(table: Mapping[str, Any], where: str) -> str | None:
    risk = table.get("risk")
    if risk is not None and risk not in _THRESHOLDS:
        raise BadInput(f"{where}: risk must be one of {', '.join(_THRESHOLDS)}")
    return risk


def _json(value: Any, where: str) -> dict[str, Any]:
    """A table without what TOML has and JSON has not: dates and times."""
    if not isinstance(value, dict):
        raise BadInput(f"{where} must be a table")
    for leaf in _leaves(value):
        if not isinstance(leaf, str | int | float):
            raise BadInput(
                f"{where} holds a {type(leaf).__name__}, which no call can have", advice="write it as a text"
            )
    return value


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _leaves(item)
    else:
        yield value


def _names(value: Any, where: str) -> frozenset[str]:
    return frozenset(_list(value, where))


def _list(value: Any, where: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise BadInput(f"{where} must be a list of texts")
    return value


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise BadInput(f"{where} must be a text")
    return value
