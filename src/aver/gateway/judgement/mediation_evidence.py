"""Judging afterwards whether acts rest on a verdict that their agent was confined (`act.confinement`).

A PREVIEW or COMMIT whose `mediation` is `verified` needs, in the chain of its session, a verdict before it that passed
and was still fresh. The latest verdict counts: one that fails ends those before it. A COMMIT is verified if and only if
its PREVIEW is (`act_rules.find_commit_problems`), and an outcome only if its COMMIT is. The verdicts themselves are the
word of the ledger's own key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from aver.capsule.aver_block import read_block
from aver.capsule.json_document import check_version, int_field, text_field
from aver.errors import BadInput
from aver.gateway.judgement.recorded_act import ActHeader, parse_time
from aver.gateway.settings import TTL_MAX
from aver.lazy_pattern import lazy_pattern

SEALING_SLACK = 60.0
"""Seconds between the look at a verdict and the seal of the act. A ledger that others write to may make it wait."""

_SHA256 = lazy_pattern(r"[0-9a-f]{64}")


class SealedVerdict(NamedTuple):
    """A verdict on a confinement, as its record has it."""

    at: float
    ttl: int
    is_ok: bool


class MediationJudge:
    """Judges the claims of one session's acts to be confined."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._verdicts: list[SealedVerdict] = []

    def add_verdict(self, content: Mapping[str, Any]) -> None:
        """Read one `act.confinement`. Raises `BadInput`, or what Python raises for a record that lacks a key."""
        block, result = read_block(content) or {}, content["outcome"]["result"]
        check_version(result["v"], "outcome.result")
        text_field(result["contract_sha256"], "contract_sha256", _SHA256)
        if type(result["ok"]) is not bool or content["context"]["session_id"] != self._session:
            raise BadInput("the record of a confinement is of another session, or has no verdict")
        ttl = int_field(result["ttl"], "ttl", low=1, high=TTL_MAX)
        self._verdicts.append(SealedVerdict(parse_time(block["at"]), ttl, result["ok"]))

    def judge(self, header: ActHeader, read_past: Callable[[], None]) -> str:
        """Say why an act may not claim to be confined; empty if it may. `read_past` reads earlier records."""
        if header.mediation != "verified":
            return ""
        if not self._is_covered(header.at):
            read_past()
        return "" if self._is_covered(header.at) else "it says verified, and no fresh verdict before it passed"

    def _is_covered(self, at: float) -> bool:
        before = [verdict for verdict in self._verdicts if verdict.at <= at + SEALING_SLACK]
        latest = max(before, key=lambda verdict: verdict.at, default=None)
        return latest is not None and latest.is_ok and at <= latest.at + latest.ttl + SEALING_SLACK
