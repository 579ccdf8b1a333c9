"""A policy bundle: Cedar files, checked and parsed once, and the digest that decisions name it by.

    directory/*.cedar      the rules; each has an @id of its own and an @reason that people and agents read

A bundle is taken whole or not at all: a file that does not parse, a rule that does not fit the schema, an id that is
missing or used twice, a template, a file that others may write: `BadInput` or `Refused`, and nothing is decided by the
rest. That is stricter than Cedar, which skips a rule that fails while it is evaluated, even a `forbid`.

The starter set that Aver ships is a bundle like any other.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from aver.capsule.canonical import canonical_bytes
from aver.errors import BadInput, NotFound, Refused, Unavailable

if TYPE_CHECKING:
    import cedarpy

__all__ = ["SCHEMA", "STARTER", "Bundle", "Rule", "bundle_of", "load_bundle"]

SCHEMA = Path(__file__).with_name("schema.cedarschema")
STARTER = Path(__file__).with_name("starter")
SUFFIX = ".cedar"

FILES_MAX = 200
FILE_BYTES_MAX = 1024 * 1024
"""Bounds of a bundle; the starter set has a handful of small files."""

_ID = re.compile(r"[a-z0-9][a-z0-9_.-]{0,79}").fullmatch


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule, and what it says when it decides."""

    id: str
    effect: Literal["permit", "forbid"]
    reason: str
    file: str


@dataclass(frozen=True, slots=True)
class Bundle:
    """Rules that decide together."""

    digest: str
    files: Mapping[str, str]
    rules: Mapping[str, Rule]
    policies: cedarpy.PolicySet
    schema: cedarpy.Schema

    def to_dict(self) -> dict[str, Any]:
        """All that is needed to ask the same rules again."""
        return {"schema": SCHEMA.read_text(encoding="utf-8"), "files": dict(self.files)}


def load_bundle(directory: Path | None = None) -> Bundle:
    """The bundle in a directory; without one, the starter set."""
    if directory is None:
        return _starter()
    if not directory.is_dir():
        raise NotFound(f"there is no policy directory {directory}", advice="aver policy show lists the rules in force")
    return bundle_of(_read_files(directory))


@cache
def _starter() -> Bundle:
    return bundle_of({path.name: path.read_text(encoding="utf-8") for path in sorted(STARTER.glob(f"*{SUFFIX}"))})


def bundle_of(files: Mapping[str, str]) -> Bundle:
    """The bundle of these texts, by file name."""
    cedar = _cedar()
    schema_text = SCHEMA.read_text(encoding="utf-8")
    rules: dict[str, Rule] = {}
    parsed: dict[str, Any] = {}
    for name, text in files.items():
        for rule, policy in _rules_in(name, text):
            if rule.id in rules:
                raise BadInput(f"the rule {rule.id!r} of {name} is in {rules[rule.id].file} too: ids are unique")
            rules[rule.id] = rule
            parsed[rule.id] = policy
        result = cedar.validate_policies(text, _schema())
        if not result.validation_passed:
            problems = "; ".join(str(error.error) for error in result.errors)
            raise BadInput(f"{name} does not fit the schema of policies: {problems}", advice="aver policy check")
    if not rules:
        raise BadInput("a policy without rules would refuse everything", advice="write at least one permit")
    whole = {"staticPolicies": parsed, "templates": {}, "templateLinks": []}
    digest = hashlib.sha256(canonical_bytes({"schema": schema_text, "files": dict(files)})).hexdigest()
    return Bundle(digest, dict(files), rules, cedar.PolicySet.from_json_str(json.dumps(whole)), _schema())


def _rules_in(name: str, text: str) -> Iterable[tuple[Rule, Any]]:
    try:
        document = json.loads(_cedar().policies_to_json_str(text))
    except ValueError as error:
        raise BadInput(f"{name} is not Cedar: {str(error)[:500]}", advice="aver policy check") from None
    if document.get("templates") or document.get("templateLinks"):
        raise BadInput(f"{name} holds a template, which decides nothing", advice="write a rule without slots")
    for policy in document.get("staticPolicies", {}).values():
        notes = policy.get("annotations", {})
        rule_id, reason = notes.get("id"), notes.get("reason")
        if not isinstance(rule_id, str) or not _ID(rule_id):
            raise BadInput(f'a rule of {name} has no @id("…") of lower-case letters, digits, and "-", "_", "."')
        if not isinstance(reason, str) or not reason.strip() or not reason.isprintable():
            raise BadInput(f'the rule {rule_id!r} of {name} has no @reason("…"): what to tell whom it stops?')
        yield Rule(rule_id, policy["effect"], reason, name), policy


def _read_files(directory: Path) -> dict[str, str]:
    paths = sorted(directory.glob(f"*{SUFFIX}"))
    if not paths:
        raise NotFound(f"there are no {SUFFIX} files in {directory}")
    if len(paths) > FILES_MAX:
        raise BadInput(f"{directory} holds more than {FILES_MAX} policy files")
    return {path.name: _read_file(path) for path in paths}


def _read_file(path: Path) -> str:
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK)) as file:
            status = os.fstat(file.fileno())
            if status.st_mode & 0o022:
                raise Refused("POLICY_WRITABLE", f"{path} may be written by others", advice=f"run: chmod go-w '{path}'")
            data = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise Unavailable(f"cannot read the policy {path}: {error.strerror}") from error
    if len(data) > FILE_BYTES_MAX:
        raise BadInput(f"{path} has more than {FILE_BYTES_MAX} bytes")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is not UTF-8 at byte {error.start}") from None


def _cedar() -> Any:
    try:
        import cedarpy
    except ImportError as error:
        raise Unavailable("policies need the package cedarpy", advice='pip install "aver[policy]"') from error
    return cedarpy


@cache
def _schema() -> Any:
    return _cedar().Schema.from_str(SCHEMA.read_text(encoding="utf-8"))
