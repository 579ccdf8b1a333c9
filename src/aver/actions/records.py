"""A run in the ledger: the chain `actions.<run>`, and what its capsules say.

    0        run.open    which run this is, and of which agent
    1 .. n   action      one action each
    n + 1    run.seal    how many there were, the chain's head, the last receipt, and what is proved about them

`outcome.result` of an `action`:

    v              1
    action         the fourteen fields; metadata of more than `METADATA_INLINE` bytes as a blob of its canonical JSON
    receipt_hash   the receipt
    gate           null, or {gate_id, record, digest, decision, diff_sha256}: the decision that it was done under
                   (`record` is the hash of its capsule), and the hash of the change that was made, if it was told

`outcome.result` of a `run.seal`:

    v, run_id, protocol_version
    head                 {count, hash} of this chain right before the seal
    num_actions, final_receipt_hash
    policy_verdict       of the whole run: see `run_verdict`
    statement            what is proved (`proof`), or null
    gates                null, or {chain, count, hash}: the head of the chain with the run's own gate decisions
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from aver.actions.action import POLICY_VERDICTS, AgentAction
from aver.actions.proof import Statement
from aver.actions.texts import METADATA_INLINE, ActionTexts, metadata_blob, referred_to
from aver.capsule.blobs import Blob
from aver.capsule.block import chain_name, of_kind
from aver.capsule.mask import NOTE, note
from aver.capsule.model import Authority, Capsule, Context, Execution, Outcome, ToolCall, Trigger
from aver.capsule.reading import read_json
from aver.clock import now
from aver.errors import BadInput
from aver.ledger import Head

__all__ = [
    "ACTION",
    "OPEN",
    "PROTOCOL_VERSION",
    "SEAL",
    "GateMark",
    "RunSeal",
    "SealedAction",
    "action_draft",
    "action_of",
    "gate_chain",
    "open_draft",
    "run_chain",
    "run_verdict",
    "seal_draft",
    "seal_of",
    "sealed_action",
]

PROTOCOL_VERSION = "0.4.0"
OPEN, ACTION, SEAL = "run.open", "action", "run.seal"
DOMAIN = "actions"
VERSION = 1

SUMMARY_MAX = 120
"""Characters of the line by which an action is listed."""

_ACTION_KEYS = frozenset({"v", "action", "receipt_hash", "gate"})
_AUTHORITY = {"pass": "policy", "human_approved": "human_approved"}


def run_chain(run_id: str) -> str:
    return chain_name(DOMAIN, run_id)


def gate_chain(run_id: str) -> str:
    """Where the decisions about a run's actions are, those that were asked for through its runtime."""
    from aver.gate.record import decision_chain  # All of the gate comes with it; verifying does without.

    return decision_chain(run_id)


@dataclass(frozen=True, slots=True)
class GateMark:
    """Under which decision an action was done."""

    gate_id: str
    record: str
    digest: str
    decision: str
    diff_sha256: str | None = None

    @classmethod
    def from_dict(cls, data: Any) -> GateMark:
        names = ("gate_id", "record", "digest", "decision", "diff_sha256")
        if not isinstance(data, dict) or data.keys() != set(names):
            raise BadInput("what an action says of its gate has other keys")
        if not all(isinstance(data[name], str) or (name == "diff_sha256" and data[name] is None) for name in names):
            raise BadInput("what an action says of its gate is not text")
        return cls(**data)


@dataclass(frozen=True, slots=True)
class RunSeal:
    """What a run's seal says."""

    run_id: str
    head: Head
    num_actions: int
    final_receipt_hash: str
    policy_verdict: str | None
    statement: Statement | None
    gates: Head | None


# --- writing


def open_draft(run_id: str, agent: str) -> Capsule:
    result = {"v": VERSION, "run_id": run_id, "protocol_version": PROTOCOL_VERSION, "agent": agent}
    return _workflow(OPEN, run_id, agent, Outcome(status="pending", summary=f"run {run_id} opened", result=result))


def action_draft(
    action: AgentAction,
    texts: ActionTexts,
    *,
    run_id: str,
    agent: str = "",
    gate: GateMark | None = None,
    gate_record: str | None = None,
    masked: Mapping[str, int] | None = None,
) -> tuple[Capsule, list[Blob]]:
    """The capsule of an action, before sealing. `gate_record` is the id of the capsule that its gate's decision has."""
    sealed, metadata = action.to_dict(), action.metadata or {}
    blobs = []
    if len(texts.metadata) > METADATA_INLINE:
        blobs.append(metadata_blob(texts.metadata))
        sealed["metadata"] = blobs[0].reference
    tool = metadata.get("tool_name")
    result = {
        "v": VERSION,
        "action": sealed,
        "receipt_hash": texts.receipt_hash,
        "gate": None if gate is None else asdict(gate),
    }
    draft = Capsule(
        type="tool",
        domain=DOMAIN,
        parent_id=gate_record,
        trigger=Trigger(type="agent", source=agent),
        context=Context(agent_id=agent, session_id=run_id, environment={NOTE: note(masked)} if masked else {}),
        authority=Authority(type=_AUTHORITY.get(gate.decision, "unknown") if gate is not None else "autonomous"),
        execution=Execution(
            tool_calls=[
                ToolCall(
                    tool=tool if isinstance(tool, str) else action.action_type,
                    success=action.success,
                    duration_ms=action.duration_ms,
                )
            ],
            duration_ms=action.duration_ms,
        ),
        outcome=Outcome(
            status="success" if action.success else "failure", summary=_summary(action, metadata), result=result
        ),
    )
    return of_kind(draft, ACTION, None if gate_record is None else {"gate": gate_record}), blobs


def seal_draft(seal: RunSeal, agent: str) -> Capsule:
    result = {
        "v": VERSION,
        "run_id": seal.run_id,
        "protocol_version": PROTOCOL_VERSION,
        "head": {"count": seal.head.count, "hash": seal.head.hash},
        "num_actions": seal.num_actions,
        "final_receipt_hash": seal.final_receipt_hash,
        "policy_verdict": seal.policy_verdict,
        "statement": None if seal.statement is None else seal.statement.to_dict(),
        "gates": None
        if seal.gates is None
        else {"chain": seal.gates.chain, "count": seal.gates.count, "hash": seal.gates.hash},
    }
    outcome = Outcome(status="success", summary=f"run {seal.run_id} sealed: {seal.num_actions} actions", result=result)
    return _workflow(SEAL, seal.run_id, agent, outcome)


def run_verdict(*, enforced: Iterable[bool], proved: bool) -> str | None:
    """What a run as a whole may claim: `FULLY_VERIFIED` where every action was gated, allowed and is what was gated,
    and the run is proved; `POLICY_ENFORCED` without the proof; `PROOF_ONLY` with the proof alone."""
    if all(enforced):
        return "FULLY_VERIFIED" if proved else "POLICY_ENFORCED"
    return "PROOF_ONLY" if proved else None


def _workflow(kind: str, run_id: str, agent: str, outcome: Outcome) -> Capsule:
    draft = Capsule(
        type="workflow",
        domain=DOMAIN,
        trigger=Trigger(type="agent", source=agent, timestamp=now()),
        context=Context(agent_id=agent, session_id=run_id),
        outcome=outcome,
    )
    return of_kind(draft, kind)


def _summary(action: AgentAction, metadata: Mapping[str, Any]) -> str:
    said = (metadata.get(name) for name in ("description", "tool_name"))
    words = next((one for one in said if isinstance(one, str) and one), action.action_id)
    line = " ".join(f"{action.action_type}: {words[: 2 * SUMMARY_MAX]}".split())
    return line if len(line) <= SUMMARY_MAX else f"{line[: SUMMARY_MAX - 1]}…"


# --- reading


class SealedAction(NamedTuple):
    """What the capsule of an action says."""

    fields: Any
    """The action as it stands there."""
    receipt_hash: str
    gate: GateMark | None


def sealed_action(content: Mapping[str, Any]) -> SealedAction:
    """What a capsule's content says of an action. Whether its fields are those of one is not looked at."""
    result = _result(content)
    if result.keys() != _ACTION_KEYS:
        raise BadInput("the capsule of an action has other keys in its result")
    receipt, gate = result["receipt_hash"], result["gate"]
    if not isinstance(receipt, str):
        raise BadInput("the capsule of an action names no receipt")
    return SealedAction(result["action"], receipt, None if gate is None else GateMark.from_dict(gate))


def action_of(sealed: SealedAction, blob: Callable[[str], bytes]) -> AgentAction:
    """The action that a capsule is about. Metadata that lie apart are fetched with `blob`."""
    action = AgentAction.from_dict(sealed.fields)
    digest = referred_to(action.metadata)
    return action if digest is None else replace(action, metadata=read_json(blob(digest)))


def seal_of(content: Mapping[str, Any], *, ledger: str, tenant: str, chain: str) -> RunSeal:
    """What a `run.seal` says. `ledger`, `tenant` and `chain` are those it stands in."""
    result = _result(content)
    try:
        gates, statement, head = result["gates"], result["statement"], result["head"]
        seal = RunSeal(
            run_id=result["run_id"],
            head=Head.from_dict({"ledger": ledger, "tenant": tenant, "chain": chain, **head}),
            num_actions=result["num_actions"],
            final_receipt_hash=result["final_receipt_hash"],
            policy_verdict=result["policy_verdict"],
            statement=None if statement is None else Statement.from_dict(statement),
            gates=None if gates is None else Head.from_dict({"ledger": ledger, "tenant": tenant, **gates}),
        )
    except (KeyError, TypeError) as error:
        raise BadInput(f"the run's seal cannot be read: {error}") from None
    texts = (seal.run_id, seal.final_receipt_hash)
    if not all(isinstance(text, str) for text in texts) or type(seal.num_actions) is not int:
        raise BadInput("the run's seal does not say which run, how many actions and which receipt is the last")
    if seal.policy_verdict not in (None, *POLICY_VERDICTS):
        raise BadInput("the run's seal has a verdict that is none")
    return seal


def _result(content: Mapping[str, Any]) -> dict[str, Any]:
    result = content["outcome"].get("result")
    if not isinstance(result, dict) or result.get("v") != VERSION:
        raise BadInput("the capsule's result is not one of this version")
    return result
