"""A run in the ledger: the chain `actions.<run>`, and the content of its capsules.

    0        run.open    the run and its agent
    1 .. n   action      one action each
    n + 1    run.seal    the number of actions, the head of the chain, the last receipt, and the statement

`outcome.result` of an `action`:

    v              1
    action         the fourteen fields; metadata of more than `METADATA_INLINE` bytes as a blob of its canonical JSON
    receipt_hash   the receipt
    gate           null, or {gate_id, record, digest, decision, diff_sha256}: the decision that allowed the action.
                   `record` is the hash of its capsule; `diff_sha256` the hash of the change, if the caller gave it.
                   With `client_answer: "yes"` the gate asked for a person, and the client says that its user agreed:
                   nobody has signed that

`outcome.result` of a `run.seal`:

    v, run_id, protocol_version
    head                 {count, hash} of this chain right before the seal
    num_actions, final_receipt_hash
    policy_verdict       of the whole run: see `compute_run_verdict`
    statement            the statement that is proved (`RunStatement`), or null
    gates                null, or {chain, count, hash}: the head of the chain with the run's own gate decisions
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from aver.actions.action import POLICY_VERDICTS, AgentAction
from aver.actions.encodings import METADATA_INLINE, EncodedAction, metadata_blob, metadata_blob_digest
from aver.actions.proofs.proof import RunStatement
from aver.capsule.aver_block import chain_name, of_kind
from aver.capsule.blobs import Blob
from aver.capsule.json_reader import read_json
from aver.capsule.masking.mask import NOTE_KEY, masking_note
from aver.capsule.model import Authority, Capsule, Context, Execution, Outcome, ToolCall, Trigger
from aver.clock import now
from aver.errors import BadInput
from aver.gate.call_decisions import authorize_call
from aver.gate.decision_record import RecordedDecision
from aver.ledger import Head

PROTOCOL_VERSION = "0.4.0"
OPEN_KIND, ACTION_KIND, SEAL_KIND = "run.open", "action", "run.seal"
DOMAIN = "actions"
WAITING = "waiting"
"""The entry in the metadata of a call that waits for a person by a framework's own means, and names the means."""
WAITED = "waited"
"""The reference from a call to the record in which it waited."""
RESULT_VERSION = 1

SUMMARY_MAX = 120
"""The maximum length of the summary line of an action."""

_ACTION_KEYS = frozenset({"v", "action", "receipt_hash", "gate"})
_GATE_KEYS = frozenset({"gate_id", "record", "digest", "decision", "diff_sha256"})


def run_chain(run_id: str) -> str:
    """Return the name of the chain in which the run is sealed."""
    return chain_name(DOMAIN, run_id)


@dataclass(frozen=True, slots=True)
class GateReference:
    """The gate decision that an action refers to."""

    gate_id: str
    record: str
    digest: str
    decision: str
    diff_sha256: str | None = None
    client_answer: str = ""
    """`yes` where only the client reports that its user agreed; else empty."""

    def to_dict(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name != "client_answer" or value}


@dataclass(frozen=True, slots=True)
class RunSeal:
    """The content of a `run.seal` capsule."""

    run_id: str
    head: Head
    num_actions: int
    final_receipt_hash: str | None
    policy_verdict: str | None
    statement: RunStatement | None
    gates: Head | None


# --- writing


def build_open_capsule(run_id: str, agent: str) -> Capsule:
    """Build the first capsule of a run."""
    result = {"v": RESULT_VERSION, "run_id": run_id, "protocol_version": PROTOCOL_VERSION, "agent": agent}
    return _build_workflow_capsule(
        OPEN_KIND, run_id, agent, Outcome(status="pending", summary=f"run {run_id} opened", result=result)
    )


def build_action_capsule(
    action: AgentAction,
    texts: EncodedAction,
    *,
    run_id: str,
    agent: str = "",
    gate: GateReference | None = None,
    decided: RecordedDecision | None = None,
    masked: Mapping[str, int] | None = None,
    waited: str | None = None,
) -> tuple[Capsule, list[Blob]]:
    """Build the capsule of an action, and the blobs it refers to. Nothing is sealed yet.

    `gate` and `decided` both describe the gate decision for the action, if there is one. `waited` is the id of the
    capsule of the same call, where that waited for a person.
    """
    sealed, metadata = action.to_dict(), action.metadata or {}
    blobs = []
    if len(texts.metadata) > METADATA_INLINE:
        blobs.append(metadata_blob(texts.metadata))
        sealed["metadata"] = blobs[0].reference
    tool = metadata.get("tool_name")
    result = {
        "v": RESULT_VERSION,
        "action": sealed,
        "receipt_hash": texts.receipt_hash,
        "gate": None if gate is None else gate.to_dict(),
    }
    draft = Capsule(
        type="tool",
        domain=DOMAIN,
        parent_id=None if decided is None else decided.record_id,
        trigger=Trigger(
            type="agent",
            source=agent,
            correlation_id=action.action_id if decided is None else decided.call_id or action.action_id,
        ),
        context=Context(
            agent_id=agent, session_id=run_id, environment={NOTE_KEY: masking_note(masked)} if masked else {}
        ),
        authority=Authority(type="autonomous") if decided is None else authorize_call(decided),
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
            status="success" if action.success else "pending" if WAITING in metadata else "failure",
            summary=_summarize_action(action, metadata),
            result=result,
        ),
    )
    refs = {**({} if decided is None else decided.refs), **({} if waited is None else {WAITED: waited})}
    return of_kind(draft, ACTION_KIND, refs or None), blobs


def build_seal_capsule(seal: RunSeal, agent: str) -> Capsule:
    """Build the last capsule of a run."""
    result = {
        "v": RESULT_VERSION,
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
    return _build_workflow_capsule(SEAL_KIND, seal.run_id, agent, outcome)


def compute_run_verdict(*, enforced: Iterable[bool], proved: bool) -> str | None:
    """Return the policy verdict of a whole run.

    An action is enforced if the gate allowed it and it is the action that the gate judged. The verdict is
    `FULLY_VERIFIED` if all actions are enforced and the run is proved, `POLICY_ENFORCED` without the proof,
    `PROOF_ONLY` with only the proof, and None otherwise, as for a run without actions.
    """
    each = list(enforced)
    if each and all(each):
        return "FULLY_VERIFIED" if proved else "POLICY_ENFORCED"
    return "PROOF_ONLY" if proved else None


def _build_workflow_capsule(kind: str, run_id: str, agent: str, outcome: Outcome) -> Capsule:
    draft = Capsule(
        type="workflow",
        domain=DOMAIN,
        trigger=Trigger(type="agent", source=agent, timestamp=now()),
        context=Context(agent_id=agent, session_id=run_id),
        outcome=outcome,
    )
    return of_kind(draft, kind)


def _summarize_action(action: AgentAction, metadata: Mapping[str, Any]) -> str:
    candidates = (metadata.get(name) for name in ("description", "tool_name"))
    words = next((text for text in candidates if isinstance(text, str) and text), action.action_id)
    # Cut long texts before splitting, so that a huge description costs nothing. Then collapse white space.
    waits = "waits for a person: " if WAITING in metadata else ""
    line = " ".join(f"{action.action_type}: {waits}{words[: 2 * SUMMARY_MAX]}".split())
    return line if len(line) <= SUMMARY_MAX else f"{line[: SUMMARY_MAX - 1]}…"


# --- reading


class SealedAction(NamedTuple):
    """The content of the capsule of an action."""

    fields: Any
    """The sealed form of the action, not checked yet."""
    receipt_hash: str
    gate: GateReference | None


def read_sealed_action(content: Mapping[str, Any]) -> SealedAction:
    """Read the result of an `action` capsule. This does not check the fields of the action; `load_action` does."""
    result = content["outcome"].get("result")
    if not isinstance(result, dict) or result.get("v") != RESULT_VERSION:
        raise BadInput("the capsule's result is not one of this version")
    if result.keys() != _ACTION_KEYS:
        raise BadInput("the capsule of an action has other keys in its result")
    receipt, gate = result["receipt_hash"], result["gate"]
    if not isinstance(receipt, str):
        raise BadInput("the capsule of an action names no receipt")
    if gate is None:
        return SealedAction(result["action"], receipt, None)
    if not isinstance(gate, dict) or gate.keys() - {"client_answer"} != _GATE_KEYS:
        raise BadInput("the gate entry of an action has other keys")
    # A client can answer only what the gate has asked.
    if "client_answer" in gate and (gate["client_answer"], gate["decision"]) != ("yes", "human_review"):
        raise BadInput("the gate entry of an action has an answer of the client that it cannot have")
    # Only the hash of the change may be missing: the caller need not give the change.
    if not all(isinstance(text, str) or (name == "diff_sha256" and text is None) for name, text in gate.items()):
        raise BadInput("the gate entry of an action has values that are not text")
    return SealedAction(result["action"], receipt, GateReference(**gate))


def load_action(sealed: SealedAction, blob: Callable[[str], bytes]) -> AgentAction:
    """Build the action from its sealed form. `blob` loads metadata that is stored as a blob."""
    action = AgentAction.from_dict(sealed.fields)
    digest = metadata_blob_digest(action.metadata)
    return action if digest is None else replace(action, metadata=read_json(blob(digest)))


def read_run_seal(content: Mapping[str, Any], *, ledger: str, tenant: str, chain: str) -> RunSeal:
    """Read the content of a `run.seal`. `ledger`, `tenant` and `chain` say where the seal is stored."""
    result = content["outcome"].get("result")
    if not isinstance(result, dict) or result.get("v") != RESULT_VERSION:
        raise BadInput("the capsule's result is not one of this version")
    try:
        gates, statement, head = result["gates"], result["statement"], result["head"]
        seal = RunSeal(
            run_id=result["run_id"],
            head=Head.from_dict({"ledger": ledger, "tenant": tenant, "chain": chain, **head}),
            num_actions=result["num_actions"],
            final_receipt_hash=result["final_receipt_hash"],
            policy_verdict=result["policy_verdict"],
            statement=None if statement is None else RunStatement.from_dict(statement),
            gates=None if gates is None else Head.from_dict({"ledger": ledger, "tenant": tenant, **gates}),
        )
    except (KeyError, TypeError) as error:
        raise BadInput(f"the run's seal cannot be read: {error}") from None
    # A run in which every call was refused has no action, and no last receipt.
    is_final = seal.final_receipt_hash is None if seal.num_actions == 0 else isinstance(seal.final_receipt_hash, str)
    if not isinstance(seal.run_id, str) or not is_final or type(seal.num_actions) is not int:
        raise BadInput("the run's seal does not say which run, how many actions and which receipt is the last")
    if seal.policy_verdict not in (None, *POLICY_VERDICTS):
        raise BadInput("the run's seal has a verdict that is none")
    return seal
