"""Unit tests of policies: a TOML file with actions and the decisions that they should get.

    workspace = "/work/shop"              for all cases; this is the default

    [[case]]
    name = "tests may run"
    expect = "pass"                       pass, human_review, human_approved or skip
    rule = "workspace-builds"             one of the rules that decide; optional
    [case.action]
    command = "pytest -q"                 short for a call of Bash; or type, tool, arguments, files, diff,
                                          description, caller, on_behalf_of, session, workspace; or intent, with
                                          all inputs of a request of the gateway as arguments
    [case.facts]                          all are optional
    labels = ["secret"]                   the labels of the session
    risk = "low"                          low, unsure or high; default: as the shipped prior says
    weekday = 6                           1 is Monday; default: Monday
    hour = 3                              UTC; default: noon
    approved = true                       a human has approved it
    groups = ["trusted"]                  the groups of the caller
    trusted_servers = ["files"]           MCP servers whose annotations count
    annotations = { readOnlyHint = true } the annotations of an MCP tool
    declared = ["read"]                   the effects that an own tool is declared to have
    recent = { network = 9 }              actions of the session in the last minute, by effect
    home = "/home/me"                     the home of the user who runs the agent
    caution = "strict"                    balanced or strict; default: balanced
    absent = ["/work/shop/notes.txt"]     files that the action writes, and that are not there yet
    written = "--- …"                     the change that a command makes, as a unified diff
    prompt = "Pay the bill."              the user's words, for a request of CallTool or FinalizeOutput; "": none
    read = [{ tool = "list_bills", arguments = {}, result = […] }]
                                          the calls of the session so far, with their results

`prompt` and `read` are judged by `aver.gate.origins`, and `annotations` and `declared` count for the tool's class.

The gate decides a case from the case and the rules alone. The learned state of a workspace does not count, so the
answer is the same on every machine. A key that is not listed here is an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aver.capsule.json_document import check_object, int_field
from aver.config import read_toml
from aver.errors import BadInput, NotFound
from aver.fast_dataclass import dataclass
from aver.gate.action import Action, Facts
from aver.gate.decide import Gate, decide
from aver.gate.decision import CAUTIONS, Caution, Decision, Thresholds
from aver.gate.effects.intents import build_intent_action
from aver.gate.own_tools import ToolDeclaration, check_effects
from aver.gate.policy.bundle import PolicyBundle

if TYPE_CHECKING:
    from aver.gate.origins.action_meaning import EarlierCall

CASES_NAME = "cases.toml"
"""The name of the file of cases beside the rules. The starter set has one, too."""

CASES_MAX = 5000
"""Cases in one file."""

DEFAULT_WORKSPACE = "/work/shop"
EXPECTATIONS = ("pass", "human_review", "human_approved", "skip")

_THRESHOLDS_BY_RISK = {
    "low": Thresholds(pass_below=1.0),
    "unsure": Thresholds(pass_below=-1.0),
    "high": Thresholds(pass_below=-1.0, skip_above=-1.0),
}
"""Thresholds under which every estimate has the wanted risk."""

_TEXT_KEYS = ("type", "tool", "diff", "description", "caller", "on_behalf_of", "session", "workspace")
_ACTION_KEYS = frozenset((*_TEXT_KEYS, "command", "arguments", "files", "intent"))
_INTENT_KEYS = frozenset({"intent", "arguments", "diff", "caller", "on_behalf_of", "session", "workspace"})
_ANY_REQUEST = "0" * 64
"""The hash of the request of a case. No rule can read it."""
_FACT_KEYS = frozenset(
    (
        *("labels", "risk", "weekday", "hour", "approved", "groups", "trusted_servers", "annotations", "recent"),
        *("home", "caution", "absent", "written", "declared", "prompt", "read"),
    )
)
_COMMAND_ACTION = {"type": "shell_exec", "tool": "Bash"}
_PRINTABLE = re.compile(r"\S[^\x00-\x1f\x7f]{0,199}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyCase:
    """One question to the gate, and the answer that it should give."""

    name: str
    action: Action
    facts: Facts
    expect: str
    rule: str = ""
    thresholds: Thresholds = field(default_factory=Thresholds)
    groups: frozenset[str] = frozenset()
    trusted: frozenset[str] = frozenset()
    caution: Caution = "balanced"


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of a case. `problem` is empty if the decision is the expected one."""

    case: PolicyCase
    decision: Decision
    problem: str

    @property
    def rules(self) -> tuple[str, ...]:
        return self.decision.policy.rules if self.decision.policy is not None else ()


def thresholds_for_risk(risk: str | None, otherwise: Thresholds) -> Thresholds:
    """Return thresholds under which any action has this risk. With None, return `otherwise`."""
    return otherwise if risk is None else _THRESHOLDS_BY_RISK[risk]


def run_case(case: PolicyCase, bundle: PolicyBundle) -> CaseResult:
    """Decide a case by these rules."""
    gate = Gate(
        bundle=bundle,
        thresholds=case.thresholds,
        groups={group: frozenset({case.action.caller}) for group in case.groups},
        trusted=case.trusted,
        caution=case.caution,
    )
    decision = decide(case.action, case.facts, gate, gate_id="case")
    rules = decision.policy.rules if decision.policy is not None else ()
    problem = ""
    if decision.decision != case.expect:
        problem = f"expected {case.expect}, got {decision.decision}: {'; '.join(decision.reasons)}"
    elif case.rule and case.rule not in rules:
        problem = f"{case.expect}, but not by the rule {case.rule}: {', '.join(rules) or 'none'} decided"
    return CaseResult(case, decision, problem)


def read_cases(path: Path) -> list[PolicyCase]:
    """Read the cases in a file. Raises BadInput with the file and the case that is wrong."""
    table = read_toml(path)
    if table is None:
        raise NotFound(f"there is no file {path}")
    check_object(table, str(path), frozenset({"case"}), frozenset({"workspace"}))
    workspace = _parse_text(table.get("workspace", DEFAULT_WORKSPACE), f"{path}: workspace")
    listed = table["case"]
    if not isinstance(listed, list) or not listed or len(listed) > CASES_MAX:
        raise BadInput(f"{path}: there must be from 1 to {CASES_MAX} tables [[case]]")
    names: set[str] = set()
    cases = []
    for number, entry in enumerate(listed, 1):
        case = _parse_case(entry, f"{path}: case {number}", workspace)
        if case.name in names:
            raise BadInput(f"{path}: two cases are called {case.name!r}")
        names.add(case.name)
        cases.append(case)
    return cases


def _parse_case(entry: Any, where: str, workspace: str) -> PolicyCase:
    name = entry.get("name") if isinstance(entry, dict) else None
    if not isinstance(name, str) or not _PRINTABLE.fullmatch(name):
        raise BadInput(f"{where} has no name of one line")
    where = f"{where} ({name})"
    check_object(entry, where, frozenset({"name", "action", "expect"}), frozenset({"facts", "rule"}))
    if entry["expect"] not in EXPECTATIONS:
        raise BadInput(f"{where}: expect must be one of {', '.join(EXPECTATIONS)}")
    facts = check_object(entry.get("facts", {}), f"{where}: facts", frozenset(), _FACT_KEYS)
    risk = facts.get("risk")
    if risk is not None and risk not in _THRESHOLDS_BY_RISK:
        raise BadInput(f"{where}: risk must be one of {', '.join(_THRESHOLDS_BY_RISK)}")
    caution = facts.get("caution", "balanced")
    if caution not in CAUTIONS:
        raise BadInput(f"{where}: caution must be one of {', '.join(CAUTIONS)}")
    action = _parse_action(entry["action"], f"{where}: action", workspace)
    known = _parse_facts(facts, f"{where}: facts")
    meaning = _judge_meaning(action, known, facts, f"{where}: facts")
    return PolicyCase(
        name=name,
        action=action,
        facts=replace(known, meaning=meaning) if meaning else known,
        expect=entry["expect"],
        rule=_parse_text(entry.get("rule", ""), f"{where}: rule"),
        thresholds=thresholds_for_risk(risk, Thresholds()),
        groups=_parse_names(facts.get("groups", []), f"{where}: groups"),
        trusted=_parse_names(facts.get("trusted_servers", []), f"{where}: trusted_servers"),
        caution=caution,
    )


def _parse_action(given: Any, where: str, workspace: str) -> Action:
    """Read the action of a case. `command` is short for a call of Bash."""
    if isinstance(given, dict) and "intent" in given:
        return _parse_intent(given, where, workspace)
    table = check_object(given, where, frozenset(), _ACTION_KEYS)
    values: dict[str, Any] = {"workspace": workspace}
    if "command" in table:
        if "arguments" in table:
            raise BadInput(f"{where} has both a command and arguments", advice="put the command among the arguments")
        values |= {**_COMMAND_ACTION, "arguments": {"command": _parse_text(table["command"], f"{where}: command")}}
    elif "type" not in table:
        raise BadInput(f"{where} needs a type, or a command")
    values |= {name: _parse_text(table[name], f"{where}: {name}") for name in _TEXT_KEYS if name in table}
    if "arguments" in table:
        values["arguments"] = _parse_table(table["arguments"], f"{where}: arguments")
    if "files" in table:
        values["files"] = tuple(_parse_text_list(table["files"], f"{where}: files"))
    try:
        return Action(**values)
    except BadInput as error:
        raise BadInput(f"{where}: {error.message}", advice=error.advice) from error


def _parse_intent(given: Mapping[str, Any], where: str, workspace: str) -> Action:
    """Read the action of a case that is a request of the gateway."""
    table = check_object(given, where, frozenset({"intent", "arguments"}), _INTENT_KEYS)
    values = {name: _parse_text(table[name], f"{where}: {name}") for name in _TEXT_KEYS if name in table}
    inputs = _parse_table(table["arguments"], f"{where}: arguments")
    intent = _parse_text(table["intent"], f"{where}: intent")
    try:
        return build_intent_action(intent, inputs, **{"workspace": workspace, "request_sha256": _ANY_REQUEST, **values})
    except BadInput as error:
        raise BadInput(f"{where}: {error.message}", advice=error.advice) from error


def _parse_facts(table: Mapping[str, Any], where: str) -> Facts:
    day = int_field(table.get("weekday", 1), f"{where}: weekday", low=1, high=7)
    hour = int_field(table.get("hour", 12), f"{where}: hour", low=0, high=23)
    approved = table.get("approved", False)
    if not isinstance(approved, bool):
        raise BadInput(f"{where}: approved must be true or false")
    recent = _parse_table(table.get("recent", {}), f"{where}: recent")
    home = _parse_text(table.get("home", ""), f"{where}: home")
    return Facts(
        now=f"2026-01-{4 + day:02}T{hour:02}:00:00+00:00",  # 5 January 2026 is a Monday
        labels=_parse_names(table.get("labels", []), f"{where}: labels"),
        recent={name: int_field(count, f"{where}: recent", low=0, high=10**9) for name, count in recent.items()},
        approved=approved,
        annotations=_parse_table(table.get("annotations", {}), f"{where}: annotations"),
        declared=_parse_declaration(table, where),
        environment={"HOME": home} if home else {},
        written=_parse_text(table["written"], f"{where}: written") if "written" in table else None,
        absent=tuple(_parse_text_list(table.get("absent", []), f"{where}: absent")),
    )


def _judge_meaning(action: Action, facts: Facts, table: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """Judge what the call or the answer of a case means; empty for a case without `prompt`."""
    if "prompt" not in table:
        return {}
    from aver.gate.origins.action_meaning import judge_action

    prompt = _parse_text(table["prompt"], f"{where}: prompt")
    earlier = parse_earlier_calls(table.get("read", []), f"{where}: read")
    is_trusted = str(action.arguments.get("server", "")) in _parse_names(table.get("trusted_servers", []), where)
    found = judge_action(action, facts, [prompt] if prompt else [], earlier, is_trusted=is_trusted)
    if found is None:
        raise BadInput(f"{where}: prompt is for requests of CallTool and FinalizeOutput", advice="leave it out")
    return found.to_dict()


def parse_earlier_calls(listed: Any, where: str) -> list[EarlierCall]:
    """Parse the calls of a session so far: tables of `tool`, `arguments` and `result`. Raises `BadInput`."""
    from aver.gate.origins.action_meaning import EarlierCall

    if not isinstance(listed, list):
        raise BadInput(f"{where} must be a list of tables")
    earlier = []
    for number, entry in enumerate(listed, 1):
        place = f"{where} {number}"
        known = check_object(entry, place, frozenset({"tool", "result"}), frozenset({"arguments"}))
        arguments = _parse_table(known.get("arguments", {}), f"{place}: arguments")
        earlier.append(EarlierCall(_parse_text(known["tool"], f"{place}: tool"), arguments, known["result"]))
    return earlier


def _parse_declaration(table: Mapping[str, Any], where: str) -> ToolDeclaration:
    if "declared" not in table:
        return {}
    return {"effects": list(check_effects(table["declared"], f"{where}: declared")), "by": "settings"}


def _parse_table(value: Any, where: str) -> dict[str, Any]:
    """Check that a table has only values that JSON has: TOML also has dates and times."""
    if not isinstance(value, dict):
        raise BadInput(f"{where} must be a table")
    waiting: list[Any] = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict | list):  # In reverse, so that the first wrong value is the one to report.
            waiting += reversed(list(item.values() if isinstance(item, dict) else item))
        elif not isinstance(item, str | int | float):
            words = f"{where} holds a {type(item).__name__}, which no call can have"
            raise BadInput(words, advice="write it as a text")
    return value


def _parse_names(value: Any, where: str) -> frozenset[str]:
    return frozenset(_parse_text_list(value, where))


def _parse_text_list(value: Any, where: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise BadInput(f"{where} must be a list of texts")
    return value


def _parse_text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise BadInput(f"{where} must be a text")
    return value
