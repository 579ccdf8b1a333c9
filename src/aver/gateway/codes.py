"""Reason codes of the gateway and of the executor, and the envelope that carries one.

Every answer to an act is one envelope (RFC §3.3):

    {"status": "DENY", "reason_code": "TX_INVALID", "summary": "No PREVIEW has this tx_id, ...", "data": {},
     "artifacts": []}

`status` follows from the code, so the two cannot contradict each other: `OK` for `ALLOW` and `ALLOW_INSECURE`, else
`DENY`. `BAD_COMMIT_PROOF` also has a detail in `data.detail`. The table of all codes and details is `codes.json`: who
emits a code, what it means, and what to do about it. The page `docs/gateway/codes.md` shows the same table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Literal

import orjson

from aver.errors import Refused
from aver.fast_dataclass import dataclass

Side = Literal["gateway", "executor", "both"]

OK, DENY = "OK", "DENY"

ALLOW = "ALLOW"
ALLOW_INSECURE = "ALLOW_INSECURE"
ARTIFACTS_NOT_ALLOWED = "ARTIFACTS_NOT_ALLOWED"
BAD_COMMIT_PROOF = "BAD_COMMIT_PROOF"
BAD_REQUEST = "BAD_REQUEST"
DOMAIN_NOT_ALLOWED = "DOMAIN_NOT_ALLOWED"
MISSING_EVIDENCE = "MISSING_EVIDENCE"
POLICY_DENY = "POLICY_DENY"
REPLAY_DENY = "REPLAY_DENY"
CAPSULE_REQUIRED = "CAPSULE_REQUIRED"
REQUIRE_CONFIRM = "REQUIRE_CONFIRM"
UNKNOWN_INTENT = "UNKNOWN_INTENT"
WORKSPACE_PATH_BLOCKED = "WORKSPACE_PATH_BLOCKED"

SUCCESSES = frozenset({ALLOW, ALLOW_INSECURE})


@dataclass(frozen=True, slots=True)
class ReasonCode:
    """A reason code: who emits it, what it means, and what to do about it."""

    name: str
    side: Side
    meaning: str
    advice: str


@dataclass(frozen=True, slots=True)
class ProofDetail:
    """A detail of `BAD_COMMIT_PROOF`: what it means, and what to do about it."""

    name: str
    meaning: str
    advice: str


@cache
def _load_tables() -> dict[str, dict[str, dict[str, str]]]:
    from importlib.resources import files  # Here, because it takes long to load.

    tables: dict[str, dict[str, dict[str, str]]] = orjson.loads(
        files("aver.gateway").joinpath("codes.json").read_bytes()
    )
    return tables


@cache
def load_reason_codes() -> Mapping[str, ReasonCode]:
    """All reason codes by name, in the order of the documentation."""
    return {name: ReasonCode(name, **entry) for name, entry in _load_tables()["codes"].items()}  # type: ignore[arg-type]


@cache
def load_proof_details() -> Mapping[str, ProofDetail]:
    """All details of `BAD_COMMIT_PROOF` by name, in the order in which they are looked for."""
    return {name: ProofDetail(name, **entry) for name, entry in _load_tables()["details"].items()}


def build_envelope(
    reason_code: str,
    summary: str = "",
    *,
    data: Mapping[str, Any] | None = None,
    artifacts: Sequence[Any] = (),
) -> dict[str, Any]:
    """Return the answer with this code. Without a summary, the meaning of the code stands there.

    Raises `KeyError` for a code that is not in the table: only a defect of Aver can cause it.
    """
    meaning = load_reason_codes()[reason_code].meaning
    return {
        "status": OK if reason_code in SUCCESSES else DENY,
        "reason_code": reason_code,
        "summary": summary or meaning,
        "data": dict(data or {}),
        "artifacts": list(artifacts),
    }


def build_refusal_envelope(refusal: Refused) -> dict[str, Any]:
    """Return the answer to a request that Aver refused before any evidence was made."""
    return build_envelope(refusal.code, str(refusal))
