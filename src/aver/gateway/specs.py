"""The machine-checkable files of the RFC (§2), as they are in the package, and validation by JSON Schema.

    secureclaw_executor_accept_v1.schema.json    the form of commit evidence
    secureclaw_accept_predicate_v1.json          the parameters of the accept predicate
    secureclaw_capsule_contract_v1.schema.json   the form of a capsule contract
    secureclaw_capsule_contract_v1.json          the capsule contract

They are in `src/aver/gateway/spec/`, and so in the wheel. `spec/` at the root of the repository has a link to each of
them, because the RFC names them there. `validate_specs` checks the four against each other and against this version of
Aver.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from typing import Any

from aver.capsule.json_document import check_object, parse_document
from aver.capsule.json_schema import DRAFT, ERROR_MAX, build_validator, find_schema_error
from aver.errors import BadInput
from aver.fast_dataclass import dataclass
from aver.gateway.proof.evidence import NAME_MAX, OUTPUTS, OUTPUTS_MAX, TAG_BYTES
from aver.lazy_pattern import lazy_pattern

EVIDENCE_SCHEMA = "secureclaw_executor_accept_v1.schema.json"
ACCEPT_PREDICATE = "secureclaw_accept_predicate_v1.json"
CONTRACT_SCHEMA = "secureclaw_capsule_contract_v1.schema.json"
CONTRACT = "secureclaw_capsule_contract_v1.json"
SPEC_FILES = (EVIDENCE_SCHEMA, ACCEPT_PREDICATE, CONTRACT_SCHEMA, CONTRACT)

SPEC_MAX = 1024 * 1024
"""Largest spec file, in bytes. Ours have some thousand."""

TAG_LENGTHS = range(8, 65)
"""Lengths of a commit tag that a spec may want, in bytes, as in the reference."""

_VARIABLE = lazy_pattern(r"[A-Z][A-Z0-9_]{0,63}")


@dataclass(frozen=True, slots=True)
class AcceptRules:
    """The parameters of the accept predicate. The defaults are those of the spec that ships with Aver."""

    program_id: str = "policy_unified_v1"
    required_outputs: tuple[str, ...] = OUTPUTS
    tag_bytes: int = TAG_BYTES
    mac_ttl_variable: str = "POLICY_MAC_TTL_S"
    """The environment variable with the greatest age of a share, in seconds."""
    replay_ttl_variable: str = "EXECUTOR_REPLAY_TTL_S"

    @classmethod
    def parse(cls, document: Any, where: str = ACCEPT_PREDICATE) -> AcceptRules:
        """Read the spec of an accept predicate. Raises `BadInput`, also for another major version."""
        names = {"version", "name", "program_id", "required_output_keys", "commit_tag_share_len_bytes"}
        found = check_object(document, where, frozenset(names | {"mac_ttl_env", "replay_ttl_env"}))
        if type(found["version"]) is not int or found["version"] != 1:
            raise BadInput(f"{where} has another major version than 1")
        outputs, tag_bytes = found["required_output_keys"], found["commit_tag_share_len_bytes"]
        texts = [found["name"], found["program_id"], *(outputs if isinstance(outputs, list) else [None])]
        if any(type(text) is not str or not 1 <= len(text) <= NAME_MAX for text in texts):
            raise BadInput(f"{where}: names must be strings of 1 to {NAME_MAX} characters")
        if len(outputs) > OUTPUTS_MAX or len(set(outputs)) != len(outputs) or not set(OUTPUTS) <= set(outputs):
            raise BadInput(f"{where}.required_output_keys must have {', '.join(OUTPUTS)}, and none twice")
        if type(tag_bytes) is not int or tag_bytes not in TAG_LENGTHS:
            raise BadInput(f"{where}.commit_tag_share_len_bytes must be {TAG_LENGTHS[0]} to {TAG_LENGTHS[-1]}")
        for name in ("mac_ttl_env", "replay_ttl_env"):
            if type(found[name]) is not str or _VARIABLE.fullmatch(found[name]) is None:
                raise BadInput(f"{where}.{name} must be the name of an environment variable")
        return cls(found["program_id"], tuple(outputs), tag_bytes, found["mac_ttl_env"], found["replay_ttl_env"])


def read_spec_bytes(name: str) -> bytes:
    """Return one of `SPEC_FILES` as it is in the package."""
    from importlib.resources import files  # Here, because it takes long to load.

    return files("aver.gateway").joinpath("spec", name).read_bytes()


def digest_spec(name: str) -> str:
    """Return the SHA-256 of one of `SPEC_FILES`."""
    return hashlib.sha256(read_spec_bytes(name)).hexdigest()


@cache
def _load_schema_validator(name: str) -> Any:
    return build_validator(parse_document(read_spec_bytes(name), name, limit=SPEC_MAX))


def find_evidence_error(commit: Any) -> str:
    """Validate commit evidence against its schema. Returns the first problem with its place; empty if there is none."""
    return find_schema_error(_load_schema_validator(EVIDENCE_SCHEMA), commit)


def load_contract_validator() -> Any:
    """Return the validator of capsule contracts."""
    return _load_schema_validator(CONTRACT_SCHEMA)


def validate_specs(documents: Mapping[str, bytes] | None = None) -> list[str]:
    """Check the four spec files. Returns every problem, each with its file; an empty list if they are good.

    Without `documents`, the files of the package are checked.
    """
    problems: list[str] = []
    parsed: dict[str, Any] = {}
    for name in SPEC_FILES:
        try:
            data = read_spec_bytes(name) if documents is None else documents[name]
            parsed[name] = parse_document(data, name, limit=SPEC_MAX)
        except KeyError:
            problems.append(f"{name} is missing")
        except BadInput as error:
            problems.append(error.message)
    validators: dict[str, Any] = {}
    for name in (EVIDENCE_SCHEMA, CONTRACT_SCHEMA):
        if name in parsed:
            problems += _find_schema_problems(name, parsed[name], validators)
    if ACCEPT_PREDICATE in parsed:
        try:
            AcceptRules.parse(parsed[ACCEPT_PREDICATE])
        except BadInput as error:
            problems.append(error.message)
    if CONTRACT in parsed and CONTRACT_SCHEMA in validators:
        if error_text := find_schema_error(validators[CONTRACT_SCHEMA], parsed[CONTRACT]):
            problems.append(f"{CONTRACT}: {error_text}")
        else:
            from aver.gateway.mediation.contract import find_contract_problems  # It needs this module.

            problems += [f"{CONTRACT}: {problem}" for problem in find_contract_problems(parsed[CONTRACT])]
    return problems


def _find_schema_problems(name: str, schema: Any, validators: dict[str, Any]) -> list[str]:
    import jsonschema_rs

    if not isinstance(schema, dict) or schema.get("$schema") != DRAFT:
        return [f"{name}: $schema must be {DRAFT}"]
    if not str(schema.get("$id", "")).endswith(f"/{name}"):
        return [f"{name}: $id must end with the name of the file"]
    try:
        jsonschema_rs.meta.validate(schema)
        validators[name] = build_validator(schema)
    except (ValueError, jsonschema_rs.ReferencingError) as error:  # A ValidationError is a ValueError.
        return [f"{name}: {error}"[:ERROR_MAX]]
    return []
