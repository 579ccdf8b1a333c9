"""The pinned program: the rules and settings that both policy servers decide by, as one file.

    {"v": 1, "program_id": "aver-policy-v1.4f1c...", "pinned_at": "2026-11-17T12:00:00+00:00", "program": {...}}

`program` is the description of `aver.gate.program`: the schema, the rules by file name, and the gate's settings.
`program_id` is its digest, so nobody can change the file by a byte and keep its name. Each policy server has a copy of
its own, and decides by that copy alone. The executor has one, too, and takes no evidence of another program.

A person who changes the rules pins them anew (`aver gateway pin`). Until then the gateway gathers facts by the new
rules and the servers refuse: every act is denied with `POLICY_UNAVAILABLE`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from aver import clock
from aver.capsule.canonical import canonical_bytes
from aver.capsule.json_document import check_object, check_version, dump_document, parse_document, time_field
from aver.diffs import unified_diff
from aver.errors import AverError, BadInput, NotFound, Refused
from aver.fast_dataclass import dataclass
from aver.files.atomic import replace_file
from aver.files.regular import read_public_file
from aver.gate.decide import Gate
from aver.gate.decision import Thresholds
from aver.gate.policy.bundle import SCHEMA_FILE, build_policy_bundle
from aver.gate.program import describe_program
from aver.gateway.policy_server import PROGRAM_PREFIX, name_program

PROGRAM_FILE = "program.json"

PROGRAM_MAX = 16 * 1024 * 1024
"""Largest file of a program, in bytes: the largest document that the strict reader takes. Rules are far smaller."""

_FIELDS = frozenset({"v", "program_id", "pinned_at", "program"})
_PROGRAM_FIELDS = frozenset(
    {"schema", "files", "thresholds", "max_retries", "groups", "trusted", "caution", "tools", "effects_version"}
)


@dataclass(frozen=True, slots=True)
class PinnedProgram:
    """A program, its id, and when it was pinned."""

    program_id: str
    pinned_at: str
    description: Mapping[str, Any]

    @classmethod
    def pin(cls, gate: Gate) -> PinnedProgram:
        """Return the program of a gate, pinned now. Raises `Unavailable` where the gate has no rules."""
        return cls(name_program(gate), clock.now(), describe_program(gate))

    @classmethod
    def read(cls, path: Path) -> PinnedProgram:
        """Read a pinned program. `NotFound` without a file, `Refused` or `BadInput` if it cannot be trusted."""
        raw = read_public_file(path, limit=PROGRAM_MAX)
        if raw is None:
            raise NotFound(f"there is no program in {path}", advice="run: aver gateway init")
        found = check_object(parse_document(raw, str(path), limit=PROGRAM_MAX), str(path), _FIELDS)
        check_version(found["v"], str(path))
        time_field(found["pinned_at"], f"{path}: pinned_at")
        program = check_object(found["program"], f"{path}: program", _PROGRAM_FIELDS)
        if found["program_id"] != PROGRAM_PREFIX + hashlib.sha256(canonical_bytes(program)).hexdigest():
            raise Refused(
                "PROGRAM_CHANGED",
                f"{path} was changed after it was pinned",
                advice="restore it from a backup",
            )
        return cls(found["program_id"], found["pinned_at"], program)

    def write(self, path: Path) -> None:
        """Write the program, for the owner alone to read and change."""
        document = {
            "v": 1,
            "program_id": self.program_id,
            "pinned_at": self.pinned_at,
            "program": dict(self.description),
        }
        replace_file(path, dump_document(document))

    def build_gate(self) -> Gate:
        """Build the gate that decides by this program. `Refused` if this version of Aver would decide otherwise."""
        described = self.description
        if described["schema"] != SCHEMA_FILE.read_text(encoding="utf-8"):
            raise self._other_version_error("its rules were checked against another schema")
        try:
            gate = Gate(
                bundle=build_policy_bundle(described["files"]),
                thresholds=Thresholds(**described["thresholds"]),
                max_retries=described["max_retries"],
                caution=described["caution"],
                groups={name: frozenset(members) for name, members in described["groups"].items()},
                trusted=frozenset(described["trusted"]),
                tools=described["tools"],
            )
        except (TypeError, AttributeError, ValueError) as error:
            raise BadInput(f"the pinned program {self.program_id} is not whole") from error
        if name_program(gate) != self.program_id:
            raise self._other_version_error("this version finds effects otherwise")
        return gate

    def _other_version_error(self, why: str) -> AverError:
        return Refused(
            "PROGRAM_OF_OTHER_VERSION",
            f"the program {self.program_id} was pinned by another version of Aver: {why}",
            advice="run: aver gateway pin",
        )


def describe_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """Yield the differences between two programs in lines: of rules as diffs, of settings as old and new value."""
    before, after = old["files"], new["files"]
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            if name not in after:
                yield f"rules: {name} is gone"
                continue
            yield f"rules: {name} {'has changed' if name in before else 'is new'}"
            yield from unified_diff(name, before.get(name), after[name]).splitlines()
    if old["schema"] != new["schema"]:
        yield "the schema of rules has changed"
    for name in sorted(_PROGRAM_FIELDS - {"files", "schema"}):
        if old[name] != new[name]:
            yield f"{name}: {json.dumps(old[name], sort_keys=True)} -> {json.dumps(new[name], sort_keys=True)}"
