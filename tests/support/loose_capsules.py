"""Capsules without a ledger, for the tests of `verify`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from aver import Capsule, Sealed, SeedSigner, seal
from aver.verdict import Verdict

SIGNER = SeedSigner(bytes(range(32)))
KEY = SIGNER.public.ed25519


def draft(request: str = "round half up", **more: Any) -> Capsule:
    return Capsule(type="tool", trigger={"source": "test", "request": request}, **more)


def chain_of(count: int, *, start: int = 0) -> list[Sealed]:
    """A chain without a ledger, sealed with a key that nobody here knows."""
    records: list[Sealed] = []
    previous: str | None = None
    for sequence in range(start + count):
        records.append(seal(draft(f"step {sequence}", sequence=sequence, previous_hash=previous), SIGNER))
        previous = records[-1].hash
    return records[start:]


def as_json(records: list[Sealed]) -> list[dict[str, Any]]:
    return [record.to_sealed_dict() for record in records]


def bad(verdict: Verdict) -> tuple[str, int | None]:
    assert verdict.first_bad is not None, verdict
    return verdict.first_bad.code, verdict.first_bad.place.sequence


def write(path: Path, records: list[dict[str, Any]], how: str) -> Path:
    if how == "array":
        path.write_text(json.dumps(records))
    elif how == "indented array":
        path.write_text(json.dumps(records, indent=2))
    else:
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path
