"""Reads policy rules: parses them, checks them against the schema and Aver's own demands, and reports every problem.

Aver demands of each rule:

1. It has a unique `@id`, by which decisions name it, and an `@reason`, which people and agents read.
2. It is not a template. A template decides nothing.
3. It fits the schema. Cedar skips a rule that fails while it is evaluated, even a `forbid`.
4. If it has the annotation `@allow`, it permits: it stands for a person's approval.
5. It names no target (`resource == Aver::Path::"/etc"`). Aver numbers targets, so such a rule would never hold. Only a
   recipient has its own name: `resource == Aver::Recipient::"bob@example.com"`.
6. Its annotations `@patch` and `@code`, if it has any, are those of `aver.gate.policy.annotations`.

A problem names its file, its rule, and the line where the rule begins.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from aver.errors import BadInput
from aver.fast_dataclass import dataclass
from aver.gate.policy.bundle import PolicyRule, load_cedar, load_schema

WORDS_MAX = 500
"""Characters of a message from Cedar that Aver repeats. Some messages quote the whole rule."""

NESTING_MAX = 50
OPERATORS_MAX = 500
"""Levels of brackets, and operators, of one rule. Cedar's parser has no limit, and a deep rule crashes the process.
Rules may also come from records of others."""

CHARACTERS_MAX = 1024 * 1024
"""Characters of all rules together. Cedar needs ten seconds to check so many. Rules may come from records of others."""

_matches_id = re.compile(r"[a-z0-9][a-z0-9_.-]{0,79}").fullmatch
_COMMENT = r"//[^\n\r]*"
_LEXEME = re.compile(
    r'"(?:\\.|[^"\\])*"|'
    + _COMMENT
    + r"|(?P<end>;)|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<operator>&&|\|\||[-+*!.<>=]|\b(?:if|in|has|like|is)\b)",
    re.DOTALL,
)
_ID_ANNOTATION = re.compile(r'@id\s*\(\s*"([^"\\]*)"')
_ABOUT_ONE_ACTION = re.compile(r'^for policy `policy\d+`, | (?:in context )?for Aver::Action::"\w+"')
_POLICY_NUMBER = re.compile(r"policy(\d+)")
_NUMBERED_TYPES = frozenset(f"Aver::{kind}" for kind in ("Path", "Host", "Command", "Tool", "Texts", "Numbers"))


@dataclass(frozen=True, slots=True)
class RuleProblem:
    """Why a file cannot be used."""

    file: str
    line: int
    rule: str
    """The id of the rule; empty if it has none, or if the problem concerns the whole file."""
    words: str
    """A sentence that names the file and the rule."""


@dataclass(slots=True)
class ParsedRules:
    """The rules and problems in some files."""

    rules: dict[str, PolicyRule] = field(default_factory=dict)
    policies: dict[str, Any] = field(default_factory=dict)
    """Each rule in Cedar's own JSON, by id."""
    problems: list[RuleProblem] = field(default_factory=list)
    parsed: Any = None
    """All rules as a Cedar policy set; None if there are problems."""
    standing: Any = None
    """Those with the annotation `@allow`; None if there are none, or problems."""
    is_current: bool = True
    """Whether they are rules of this version of Aver."""


@dataclass(frozen=True, slots=True)
class RuleText:
    """The text of one rule."""

    line: int
    text: str
    is_tangled: bool
    """It is nested too deep, or too long, for Cedar's parser."""

    @property
    def id(self) -> str:
        found = _ID_ANNOTATION.search(self.text)
        return found[1] if found else ""


def read_policy_rules(files: Mapping[str, str], schema: Any = None) -> ParsedRules:
    """Read rules from texts by file name. Returns the rules and all problems.

    `schema` is the parsed schema to check them against, where it is not that of this version. Then the rules are those
    of an old record: demand 6 did not exist, and annotations say nothing.
    """
    found = ParsedRules(is_current=schema is None)
    if sum(map(len, files.values())) > CHARACTERS_MAX:
        words = f"the rules have more than {CHARACTERS_MAX} characters in all"
        found.problems.append(RuleProblem("", 0, "", words))
        return found
    for name, text in files.items():
        _read_rule_file(name, text, found, schema or load_schema())
    if found.problems:
        return found
    if not found.rules:
        found.problems.append(RuleProblem("", 0, "", "a policy without rules would refuse everything: write a permit"))
        return found
    found.parsed = _load_policy_set(found.policies)
    if found.parsed is None:  # Load each rule alone, to name the one that Cedar refuses.
        deep = [rule for rule in found.rules.values() if _load_policy_set({rule.id: found.policies[rule.id]}) is None]
        found.problems += [
            RuleProblem(rule.file, rule.line, rule.id, _tangled_message(rule.file, rule.line)) for rule in deep
        ] or [RuleProblem("", 0, "", "the rules are not Cedar when taken together")]
        return found
    standing = {rule_id: policy for rule_id, policy in found.policies.items() if is_standing(policy)}
    found.standing = _load_policy_set(standing) if standing else None
    return found


def is_standing(policy: Mapping[str, Any]) -> bool:
    """Whether a rule in Cedar's JSON has the annotation `@allow`: then it stands for a person's approval."""
    return "allow" in policy.get("annotations", {})


def _load_policy_set(policies: Mapping[str, Any]) -> Any:
    """Load rules from Cedar's JSON. Returns None if Cedar refuses, which means that a rule is nested too deep."""
    whole = {"staticPolicies": policies, "templates": {}, "templateLinks": []}
    try:
        return load_cedar().PolicySet.from_json_str(json.dumps(whole))
    except (ValueError, RecursionError):
        return None


def _tangled_message(name: str, line: int) -> str:
    return f"the rule in line {line} of {name} is nested too deeply, or too long: write several rules"


def _read_rule_file(name: str, text: str, found: ParsedRules, schema: Any) -> None:
    """Read a whole file at once. If that fails, read each rule alone, so that all problems are reported."""
    statements = list(split_rules(text))
    if not any(statement.is_tangled for statement in statements):
        document = _parse_cedar(text)
        if not isinstance(document, str):
            _read_document(name, document, text, statements, found, schema)
            return
    before = len(found.problems)
    for statement in statements:
        part = _tangled_message(name, statement.line) if statement.is_tangled else _parse_cedar(statement.text)
        if not isinstance(part, str):
            _read_document(name, part, statement.text, [statement], found, schema)
            continue
        words = part if statement.is_tangled else f"{name}, line {statement.line}, is not Cedar: {part}"
        found.problems.append(RuleProblem(name, statement.line, statement.id, words))
    if len(found.problems) == before:
        found.problems.append(RuleProblem(name, 0, "", f"{name} is not Cedar"))


def _parse_cedar(text: str) -> dict[str, Any] | str:
    """Parse rules into Cedar's JSON. Returns the error message if they are not valid."""
    try:
        document: dict[str, Any] = json.loads(load_cedar().policies_to_json_str(text))
    except (ValueError, RecursionError) as error:
        return _shorten_error(error)
    return document


def _read_document(
    name: str, document: Mapping[str, Any], text: str, statements: list[RuleText], found: ParsedRules, schema: Any
) -> None:
    for _ in (*document.get("templates", {}), *document.get("templateLinks", [])):
        words = f"{name} holds a template, which decides nothing: write rules without slots"
        found.problems.append(RuleProblem(name, 0, "", words))
    by_key: dict[str, tuple[int, str]] = {}
    for key, policy in document.get("staticPolicies", {}).items():
        # Cedar names a policy by its number in the text: `policy0`, `policy1`.
        number = _POLICY_NUMBER.fullmatch(key)
        statement = statements[int(number[1])] if number and int(number[1]) < len(statements) else None
        by_key[key] = (0, "") if statement is None else (statement.line, statement.id)
        _add_rule(name, by_key[key][0], policy, found)
    found.problems += _find_schema_problems(name, text, by_key, schema)


def _add_rule(name: str, line: int, policy: Any, found: ParsedRules) -> None:
    """Add a rule that meets demands 1 and 4 to 6, or else the problem with it."""
    notes = policy.get("annotations", {})
    rule_id, reason = notes.get("id"), notes.get("reason")
    patch, code, trouble = _read_annotations(notes) if found.is_current else ("", "", "")
    if not isinstance(rule_id, str) or not _matches_id(rule_id):
        words = f'a rule of {name} has no @id("…") of lower-case letters, digits, and "-", "_", "."'
    elif not isinstance(reason, str) or not reason.strip() or not reason.isprintable():
        words = f'the rule {rule_id!r} of {name} has no @reason("…"): the stopped agent needs one'
    elif named := next(_find_named_targets(policy), None):
        words = (
            f"the rule {rule_id!r} of {name} names {named}: Cedar does not know targets by such a name, so the "
            "rule would never hold; ask for resource.path, resource.name or resource.program"
        )
    elif is_standing(policy) and policy["effect"] != "permit":
        words = f"the rule {rule_id!r} of {name} forbids and has @allow: only a permit can stand for an approval"
    elif trouble:
        words = f"the rule {rule_id!r} of {name}: {trouble}"
    elif rule_id in found.rules:
        words = f"the rule {rule_id!r} of {name} is in {found.rules[rule_id].file} too: ids are unique"
    else:
        found.rules[rule_id] = PolicyRule(rule_id, policy["effect"], reason, name, line, patch, code)
        found.policies[rule_id] = policy
        return
    found.problems.append(RuleProblem(name, line, rule_id if isinstance(rule_id, str) else "", words))


def _read_annotations(notes: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return the patch and the code of a rule, and what is wrong with them (demand 6)."""
    if not notes.keys() & {"patch", "code"}:
        return "", "", ""
    from aver.gate.policy.annotations import check_code, parse_patch  # Not above: few rules have these.

    try:
        # An annotation without a text is null in Cedar's JSON.
        patch = parse_patch(notes["patch"] or "").text if "patch" in notes else ""
        return patch, check_code(notes["code"] or "") if "code" in notes else "", ""
    except BadInput as error:
        return "", "", error.message


def _find_named_targets(part: Any) -> Iterator[str]:
    """Yield the targets that a rule in Cedar's JSON names, such as `Aver::Path::"a"` (demand 5)."""
    if isinstance(part, Mapping):
        if set(part) == {"type", "id"} and part["type"] in _NUMBERED_TYPES:
            yield f'{part["type"]}::"{part["id"]}"'
        for value in part.values():
            yield from _find_named_targets(value)
    elif isinstance(part, list):
        for item in part:
            yield from _find_named_targets(item)


def _find_schema_problems(
    name: str, text: str, places: Mapping[str, tuple[int, str]], schema: Any
) -> Iterator[RuleProblem]:
    """Yield what does not fit the schema (demand 3). Cedar repeats it for each type of action; Aver reports it once."""
    reported: set[tuple[str, str]] = set()
    for error in load_cedar().validate_policies(text, schema).errors:
        words = _ABOUT_ONE_ACTION.sub("", _shorten_error(error.error))
        if (error.policy_id, words) in reported:
            continue
        reported.add((error.policy_id, words))
        line, rule = places.get(error.policy_id, (0, ""))
        about = f"the rule {rule!r} of {name}" if rule else name
        yield RuleProblem(name, line, rule, f"{about} does not fit the schema of policies: {words}")


def split_rules(text: str) -> Iterator[RuleText]:
    """Split a text after each `;` that is neither in a string nor in a comment. Counts brackets and operators."""
    start = depth = deepest = operators = 0
    for lexeme in _LEXEME.finditer(text):
        if lexeme["open"]:
            depth += 1
            deepest = max(deepest, depth)
            operators += 1
        elif lexeme["close"]:
            depth = max(0, depth - 1)
        elif lexeme["operator"]:
            operators += 1
        elif lexeme["end"]:
            yield _build_rule_text(text, start, lexeme.end(), deepest, operators)
            start, depth, deepest, operators = lexeme.end(), 0, 0, 0
    if re.sub(_COMMENT, "", text[start:]).strip():
        yield _build_rule_text(text, start, len(text), deepest, operators)


def _build_rule_text(text: str, start: int, end: int, depth: int, operators: int) -> RuleText:
    """Build the text of one rule without the comments and blank lines before it."""
    before = re.compile(rf"(?:\s|{_COMMENT})*").match(text, start, end)
    begin = before.end() if before else start
    is_tangled = depth > NESTING_MAX or operators > OPERATORS_MAX
    return RuleText(text.count("\n", 0, begin) + 1, text[begin:end], is_tangled)


def _shorten_error(error: object) -> str:
    return " ".join(str(error)[:WORDS_MAX].split())
