"""The record of a verdict on a confinement: `act.confinement`, in the chain of the session that it is for.

`outcome.result`: v 1, ok, contract_sha256, contract_name, ttl, verdict, report, contract. The last three are blobs: the
verdict, the smoke report that it judges, and the contract's bytes. `ttl` is for how many seconds acts rest on it.

An act whose record says `mediation: verified` must come after such a record that passes, and within its `ttl`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aver.capsule.aver_block import build_draft_block
from aver.capsule.blobs import Blob
from aver.capsule.json_document import dump_document
from aver.capsule.model import Authority, Capsule, Context, Outcome, Trigger
from aver.gateway.act_records import CONFINEMENT_KIND, DOMAIN
from aver.gateway.mediation.contract import CapsuleContract

SOURCE = "aver gateway run"


def build_verdict_draft(
    verdict: Mapping[str, Any], report: Mapping[str, Any], contract: CapsuleContract, *, session: str, ttl: int
) -> tuple[Capsule, list[Blob]]:
    """Build the record of a verdict, and its blobs."""
    blobs = [
        Blob(dump_document(dict(verdict)), "application/json"),
        Blob(dump_document(dict(report)), "application/json"),
        Blob(contract.data, "application/json"),
    ]
    summary = verdict["summary"]
    held = summary["n_ok"] + summary["n_clauses_ok"]
    draft = Capsule(
        type="system",
        domain=DOMAIN,
        trigger=Trigger(type="system", source=SOURCE, request="verify the confinement of an agent"),
        context=Context(agent_id=SOURCE, session_id=session, environment=build_draft_block(CONFINEMENT_KIND)),
        authority=Authority(type="policy", policy_reference=contract.sha256),
        outcome=Outcome(
            status="success" if verdict["ok"] else "failure",
            result={
                "v": 1,
                "ok": verdict["ok"],
                "contract_sha256": contract.sha256,
                "contract_name": contract.name,
                "ttl": ttl,
                **{name: blob.reference for name, blob in zip(("verdict", "report", "contract"), blobs, strict=True)},
            },
            summary=f"the confinement {'holds' if verdict['ok'] else 'does not hold'}: {held} of "
            f"{summary['n_assertions'] + summary['n_clauses']} checks passed",
            error=None if verdict["ok"] else "CONTRACT_BROKEN",
        ),
    )
    return draft, blobs
