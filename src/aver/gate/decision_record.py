"""How a decision of the gate is sealed, and how it is read back.

Every decision becomes a `gate.decision` record, also one that refuses. `outcome.result` of that record:

    v            1
    gate_id      the decision's own id, made from `call_id`: see `aver.gate.call_decisions.gate_id_for`
    call_id      the call that the decision is about; also `trigger.correlation_id`. Not part of the digest
    decision     pass, skip, human_review, human_approved or skipped
    digest       the digest of the action that was judged (`aver.gate.action`), and `digest_version`, its version;
                 records without that field have version 1
    left_out     the arguments that the digest leaves out, by name
    action       that action, with secrets masked; `masked` counts them
    instruction_sha256, input_sha256    of its description and its arguments, as the CapSeal Agent Protocol hashes them
    facts        what the gate knew besides the action
    features     the numbers that the risk was computed from, with `score`, `interval` and `model`
    effects      the classes of the action's effects; null where they were not found out
    git_moves    whether the action stores, restores or fetches files by git; missing where it does none of it
    effects_version    the version of the tables and readers that found them; old decisions have none
    policy       {outcome, rules, bundle, reasons, errors, patch, code}; null where policy was not asked. `patch` and
                 `code` are there only where the deciding rules have these annotations
    thresholds   {pass_below, skip_above}
    max_retries, caution, groups, trusted    the other settings; old decisions have no `caution`
    fixes        what the repository's history answered
    basis        what is needed to decide again: {rules, state, diff, written}, each a blob or null; `written` is the
                 change that a command makes, of the facts; old decisions have none
    session      what the session's next decision must know (`aver.gate.facts.session_state`): {labels, changed,
                 changed_files, unseen, asked, git}; null where the action was refused without being judged: then the
                 state of the decision before it holds
    reasons      why, in words
    state_note   why a stored state of the risk model was not used; only in decisions for which there is such a reason
    mode         enforce, or observe: then nothing was held back. Old decisions have none, and enforced
    answer       the answer that a hook gave to its agent: allow, leave, ask or deny. Also of other callers that carry
                 the decision out themselves; empty where nobody says
    confined     {command, input_sha256}: the command that the agent was given instead, and the hash of the arguments
                 with it; only where a hook had the command confined

Records from before `call_id` lack that key and read as an empty one.

Decision and call are linked. The record of the call has the same `trigger.correlation_id`, names the decision's record
in its block's `refs.decision`, and takes its `authority` from the decision. `aver.gate.call_decisions` finds the
decision of a call.

`aver.gate.replay` makes a decision again from its record. This module imports little, because the hook after a call
needs it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from aver.capsule.aver_block import build_draft_block, chain_name, read_block, read_kind
from aver.capsule.blobs import Blob
from aver.capsule.canonical import ascii_json, canonical_bytes
from aver.capsule.masking.mask import RULES_VERSION, mask
from aver.capsule.model import Authority, Capsule, Context, Outcome, Reasoning, Trigger
from aver.capsule.sealed import Sealed
from aver.errors import BadInput
from aver.fast_dataclass import NamedTuple, dataclass
from aver.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from aver.gate.action import Action, Facts
    from aver.gate.decide import Gate
    from aver.gate.decision import Decision, PolicyAnswer
    from aver.gate.policy.bundle import PolicyBundle
    from aver.ledger import Entry, Head, Ledger

    Beside = Callable[[Decision, str], list[Entry]]
    """Gets a decision and the id of its record, and returns the records that are sealed with it."""

    BesideDraft = Callable[[Decision, Capsule], list[Entry]]
    """The same, with the whole draft of the decision's record."""

DECISION_KIND = "gate.decision"
OUTCOME_KIND = "gate.outcome"
DOMAIN = "gate"

NO_SESSION = "default"
"""Names the chain of actions that belong to no session."""

SETTINGS_CHAIN = f"{DOMAIN}.settings"
"""The chain of changes of rules, settings and keys: see `aver.gate.changes`."""

ALLOWING_DECISIONS = frozenset({"pass", "human_approved"})
"""Decisions after which an action may be done."""

REFUSING_DECISIONS = frozenset({"skip", "skipped"})

OBSERVE = "observe"
"""The mode in which decisions hold nothing back."""

NOT_HELD_BACK = "only observed, nothing is held back"
"""For people and agents: a decision that does not allow an action had no consequence."""

_DIGEST_NAME = lazy_pattern(r"x-[0-9a-f]{32}")
"""Matches chain ids that stand for session names which no chain can have."""

_STATUS_BY_DECISION = {"pass": "success", "human_approved": "success", "human_review": "pending"}


def decision_chain(session: str) -> str:
    """Return the chain of a session's decisions. No two sessions share one, whatever their names are."""
    if not session:
        return chain_name(DOMAIN, NO_SESSION)
    # Such a name would share a chain with actions of no session, with settings, or with the digest of another name.
    if session == NO_SESSION or f"{DOMAIN}.{session}" == SETTINGS_CHAIN or _DIGEST_NAME.fullmatch(session):
        session = f"x-{hashlib.sha256(session.encode()).hexdigest()[:32]}"
    return chain_name(DOMAIN, session)


class CallerAnswer(NamedTuple):
    """The answer that a caller of the gate, such as a hook, gives to its agent after a decision."""

    word: str
    command: str = ""
    """The command that the agent is to run instead: the same one, confined."""
    arguments: Mapping[str, Any] = MappingProxyType({})
    """The arguments of the call with that command."""

    def to_dict(self) -> dict[str, Any]:
        """Return the keys of the decision's record. A secret in the command is masked, as in the action itself."""
        if not self.command:
            return {"answer": self.word}
        digest = hashlib.sha256(ascii_json(dict(self.arguments))).hexdigest()
        return {"answer": self.word, "confined": {"command": mask(self.command).value, "input_sha256": digest}}


def seal_decision(
    ledger: Ledger,
    action: Action,
    facts: Facts,
    gate: Gate,
    decision: Decision,
    *,
    after: Head | None = None,
    approval: Sealed | None = None,
    mode: str = "enforce",
    answer: CallerAnswer | None = None,
    beside: BesideDraft | None = None,
) -> Sealed:
    """Seal a decision durably. The caller lets nothing through before this has returned.

    `after` is the head up to which the facts cover the session's past; `approval` is the record of the approval that
    was used. `mode` and `answer` say what follows from the decision; they are no part of it. `beside` returns the
    records that are sealed in the same durable commit: all of them and the decision, or none. Raises `HeadMoved` if a
    chain has grown since, and `Exists` if there is a decision of this gate id, or a record with a key of `beside`.
    """
    draft, blobs = build_decision_draft(action, facts, gate, decision, approval, mode=mode, answer=answer)
    chain, key = decision_chain(action.session), decision_key(decision.gate_id)
    from aver.gate.own_records import keep_sealed  # Not above: readers of decisions append nothing.
    from aver.ledger import Entry

    own = Entry(chain, draft, key=key, after=after, blobs=blobs)
    sealed = ledger.append_together([own, *(() if beside is None else beside(decision, draft))])
    keep_sealed(ledger, sealed)  # The session's next decision reads them.
    return sealed[0]


def decision_key(gate_id: str) -> str:
    """Return the idempotency key of a decision's record."""
    return f"gate:{gate_id}"


_FACTS_FROM_OUTSIDE = frozenset(
    ("changed_files", "annotations", "environment", "links", "absent", "unseen", "asked", "git", "code")
)
"""The facts that may quote a text of the agent or of the environment."""

_FACTS_BY_PATH = frozenset({"links", "code"})
"""Those whose names are paths. The name of a file, such as `token`, does not make the value beside it a secret."""


def build_decision_draft(
    action: Action,
    facts: Facts,
    gate: Gate,
    decision: Decision,
    approval: Sealed | None = None,
    *,
    mode: str = "enforce",
    answer: CallerAnswer | None = None,
) -> tuple[Capsule, list[Blob]]:
    """Return the capsule of a decision, before sealing, and the blobs that go with it."""
    from aver.gate.action import DIGEST_VERSION
    from aver.gate.action_text import summarise_action
    from aver.gate.facts.decision_inputs import facts_to_dict
    from aver.gate.facts.session_state import next_session_state  # Not above: readers of decisions need no risk model.

    # Mask before anything is stored: the record, its texts and its blobs hold no secret of the action. The digest and
    # the hashes are those of the action as it was judged.
    bundle, policy, found = gate.bundle, decision.policy, decision.estimate
    diff, written = (None if text is None else mask(text) for text in (action.diff, facts.written))
    # What replay needs besides the record. Most decisions share the rules and the state: the ledger keeps each once.
    basis: dict[str, Blob | None] = {
        "rules": None if bundle is None else _build_rules_blob(bundle),
        "state": Blob(canonical_bytes(gate.state.to_dict()), "application/json"),
        "diff": None if diff is None else Blob(diff.value.encode("utf-8", "surrogatepass"), "text/x-diff"),
        "written": None if written is None else Blob(written.value.encode("utf-8", "surrogatepass"), "text/x-diff"),
    }
    # The change that a command makes may be long, so it is a blob.
    known = {name: value for name, value in facts_to_dict(facts).items() if name != "written"}
    policy_lists = {name: list(getattr(policy, name)) for name in ("rules", "reasons", "errors") if policy is not None}
    # All that quotes the action is masked together: a reason may repeat a secret that only the arguments show.
    masked = mask(
        {
            "action": action.to_dict() if decision.digest else _to_lossy_dict(action),
            # Not all facts: Aver's own words, such as the class `secret`, are no names of secrets.
            "facts": {
                name: [[path, fact] for path, fact in value.items()] if name in _FACTS_BY_PATH else value
                for name, value in known.items()
                if name in _FACTS_FROM_OUTSIDE
            },
            "policy": policy_lists,
            "fixes": [] if found is None else list(found.fixes),
            "reasons": list(decision.reasons),
            "state_note": gate.state.note,
        }
    )
    told = masked.value
    told["facts"] |= {name: dict(told["facts"][name]) for name in _FACTS_BY_PATH}
    named = told["action"]
    summary = summarise_action(named)
    result = {
        "v": 1,
        "gate_id": decision.gate_id,
        "call_id": action.call_id,
        "decision": decision.decision,
        "digest": decision.digest,
        "digest_version": DIGEST_VERSION,
        "left_out": list(action.left_out) if decision.digest else [],
        "action": named,
        "masked": {
            "rules": RULES_VERSION,
            "count": masked.count + sum(text.count for text in (diff, written) if text is not None),
        },
        **(protocol_hashes(action) if decision.digest else dict.fromkeys(HASH_NAMES)),
        "facts": {**known, **told["facts"]},
        "features": None if found is None else {name: write_figure(value) for name, value in found.features.items()},
        "score": write_figure(decision.score),
        "interval": None if decision.interval is None else list(map(write_figure, decision.interval)),
        "observations": decision.observations,
        "model": None if found is None else found.model,
        "effects_version": gate.known.effects_version,
        "effects": None if decision.effects is None else sorted(decision.effects.classes),
        **({"git_moves": moves} if (moves := list_git_moves(decision)) else {}),
        "policy": None if policy is None else {**_describe_answer(policy), **told["policy"]},
        "thresholds": {name: write_figure(value) for name, value in decision.thresholds.to_dict().items()},
        "max_retries": gate.max_retries,
        "caution": gate.caution,
        "groups": {group: sorted(members) for group, members in sorted(gate.groups.items())},
        "trusted": sorted(gate.trusted),
        "fixes": told["fixes"],
        "basis": {name: None if blob is None else blob.reference for name, blob in basis.items()},
        "session": _mask_state(
            next_session_state(
                facts, decision, mode=mode, answer="" if answer is None else answer.word, call_id=action.call_id
            ),
            has_secrets=masked.count > 0,
        ),
        "reasons": told["reasons"],
        **({"state_note": told["state_note"]} if gate.state.note else {}),
        "mode": mode,
        **({} if answer is None else answer.to_dict()),
    }
    draft = Capsule(
        type="system",
        domain=DOMAIN,
        trigger=Trigger(
            type="agent",
            source=named["caller"] or "agent",
            request=summary,
            correlation_id=action.call_id or None,
        ),
        context=Context(
            agent_id=named["caller"],
            session_id=named["session"] or None,
            environment=build_draft_block(DECISION_KIND, None if approval is None else {"approval": approval.id}),
        ),
        reasoning=Reasoning(
            analysis="; ".join(told["reasons"]), selected_option=decision.decision, model=result["model"]
        ),
        authority=Authority(
            type="human_approved" if decision.decision == "human_approved" else "policy",
            approver=None if approval is None else approval.to_dict()["authority"]["approver"],
            policy_reference=None if policy is None else f"{policy.bundle} {' '.join(policy.rules)}".strip(),
        ),
        outcome=Outcome(
            status=_STATUS_BY_DECISION.get(decision.decision, "blocked"),
            summary=f"{decision.decision}{f' ({NOT_HELD_BACK})' if mode == OBSERVE else ''}: {summary}",
            result=result,
        ),
    )
    return draft, [blob for blob in basis.values() if blob is not None]


_last_rules: list[tuple[PolicyBundle, Blob]] = []
"""The rules that were recorded last, and their blob. A process decides by the same rules again and again."""


def _build_rules_blob(bundle: PolicyBundle) -> Blob:
    """Return the rules as a blob. A bundle cannot change, so the blob of the same object is built once."""
    for known, blob in _last_rules:
        if known is bundle:
            return blob
    blob = Blob(canonical_bytes(bundle.to_dict()), "application/json")
    _last_rules[:] = [(bundle, blob)]
    return blob


def _describe_answer(policy: PolicyAnswer) -> dict[str, Any]:
    """Return an answer of the rules, but for its texts. An empty `patch` or `code` is left out, as in old records."""
    annotations = {"patch": policy.patch, "code": policy.code}
    return {
        "outcome": policy.outcome,
        "bundle": policy.bundle,
        **{name: value for name, value in annotations.items() if value},
    }


def list_git_moves(decision: Decision) -> list[str]:
    """Return which files the action moves in or out of git's store (`aver.gate.effects.git_moves`), for the record."""
    return [] if decision.effects is None else sorted(decision.effects.git_moves)


def _mask_state(state: Mapping[str, Any] | None, *, has_secrets: bool) -> Mapping[str, Any] | None:
    """Return the session's state without secrets. `has_secrets`: some were masked in the action.

    A path may hold a secret in a form that no rule finds, such as the address in it without one of its slashes. A file
    whose name is masked cannot be found again. So where there are secrets, all files count as unseen.
    """
    from aver.gate.effects.workspace_code import ALL_FILES

    if state is None or not has_secrets:
        return state
    has_stored = bool(state["git"].get("stored"))
    return {
        **state,
        "changed_files": mask(list(state["changed_files"])).value,
        "unseen": [ALL_FILES] if state["unseen"] else [],
        "asked": [{**entry, "unseen": []} for entry in state["asked"] if entry["labels"]],
        "git": {**state["git"], "stored": {ALL_FILES: ""}} if has_stored else state["git"],
    }


HASH_NAMES = ("instruction_sha256", "input_sha256")


def protocol_hashes(action: Action) -> dict[str, str | None]:
    """Return the hashes by which a done action is compared, also where its texts were masked or moved to blobs."""
    instruction, given = action.description.encode(), ascii_json(dict(action.arguments))
    return {
        "instruction_sha256": hashlib.sha256(instruction).hexdigest() if action.description else None,
        "input_sha256": hashlib.sha256(given).hexdigest() if action.arguments else None,
    }


def _to_lossy_dict(action: Action) -> dict[str, Any]:
    """Return as much of an action as can be written, for one that has no canonical form."""
    texts = {name: value for name, value in action.to_dict().items() if isinstance(value, str)}
    return {
        **{name: value.encode("utf-8", "backslashreplace").decode() for name, value in texts.items()},
        "arguments": {},
        "files": [],
        "diff_sha256": None,
    }


# --- reading


def write_figure(value: float | None) -> float | str | None:
    """A figure as every language writes it. JavaScript writes `1` for Python's `1.0`, and `0.00002` for `2e-05`."""
    text = repr(value)
    return int(text[:-2]) if text.endswith(".0") else text if "e-" in text else value


def read_figure(value: Any) -> Any:
    """The figure that `write_figure` wrote; an older record has the number itself."""
    return float(value) if isinstance(value, str) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedDecision:
    """A decision as its record has it. `result` has all of it, also what these fields leave out."""

    record_id: str
    record: str
    """The hash of the record."""
    chain: str | None
    sequence: int | None
    signed_by: str
    at: str
    """When it was decided, by `trigger.timestamp`; empty where the record does not say."""
    gate_id: str
    call_id: str
    decision: str
    digest: str
    score: float | None
    reasons: tuple[str, ...]
    rules: tuple[str, ...]
    action: Mapping[str, Any]
    instruction_hash: str | None
    """Of the description that was judged; None where there was none."""
    input_hash: str | None
    """Of the arguments that were judged; None where there were none."""
    authority: Mapping[str, Any]
    approval: str
    """The id of the record by which a person's approval was used; empty where there is none."""
    result: Mapping[str, Any]
    """`outcome.result`, as sealed."""

    @classmethod
    def from_record(cls, record: Sealed, content: Mapping[str, Any] | None = None) -> RecordedDecision:
        """Read a decision's record. `content` saves reading it twice. Raises `BadInput` where it is no decision."""
        content = record.to_dict() if content is None else content
        if read_kind(content) != DECISION_KIND:
            raise BadInput("the record is not that of a gate's decision")
        try:
            result = content["outcome"]["result"]
            reasons, rules = result.get("reasons"), (result.get("policy") or {}).get("rules")
            found = cls(
                record_id=content["id"],
                record=record.hash,
                chain=record.chain,
                sequence=record.sequence,
                signed_by=record.signed_by,
                at=_text(content["trigger"].get("timestamp")),
                gate_id=result["gate_id"],
                call_id=_text(result.get("call_id")),
                decision=result["decision"],
                digest=result["digest"],
                score=read_figure(result["score"]),
                reasons=tuple(map(str, reasons)) if isinstance(reasons, list) else (),
                rules=tuple(map(str, rules)) if isinstance(rules, list) else (),
                action=result["action"],
                instruction_hash=result["instruction_sha256"],
                input_hash=result["input_sha256"],
                authority=content["authority"],
                approval=_text(((read_block(content) or {}).get("refs") or {}).get("approval")),
                result=result,
            )
        except (AttributeError, KeyError, TypeError):
            raise BadInput("the record of a gate's decision is not whole") from None
        # A record that was sealed by another program may hold anything here.
        texts = (found.gate_id, found.decision, found.digest)
        if not isinstance(found.action, dict) or not all(isinstance(text, str) for text in texts):
            raise BadInput("the record of a gate's decision is not well formed")
        return found

    def has_input(self, digest: str | None) -> bool:
        """Whether arguments with this hash are those that were judged, or those with the command confined.

        None is the hash of no arguments.
        """
        confined = self.result.get("confined")
        known = [self.input_hash, *([confined.get("input_sha256")] if isinstance(confined, dict) else [])]
        return digest in known

    @property
    def allows(self) -> bool:
        return self.decision in ALLOWING_DECISIONS

    @property
    def refuses(self) -> bool:
        """Whether it refused. A decision that leaves it to a person neither allows nor refuses."""
        return self.decision in REFUSING_DECISIONS

    @property
    def enforces(self) -> bool:
        """Whether the action may be done, and would have been held back otherwise."""
        return self.allows and not self.is_observed

    @property
    def is_observed(self) -> bool:
        """Whether the gate only observed, and held nothing back."""
        return self.result.get("mode") == OBSERVE

    @property
    def answer(self) -> str:
        """The answer that a hook gave to its agent; empty where the decision was for no hook."""
        return _text(self.result.get("answer"))

    @property
    def shown_reasons(self) -> tuple[str, ...]:
        """The reasons for people, without those that do not help them."""
        from aver.gate.decision import select_reasons  # Not above: the hook after a call shows none.

        return select_reasons(self.reasons)

    @property
    def tool(self) -> str:
        return _text(self.action.get("tool"))

    @property
    def arguments(self) -> Mapping[str, Any]:
        given = self.action.get("arguments")
        return given if isinstance(given, dict) else {}

    @property
    def refs(self) -> dict[str, str]:
        """Return what the record of the call says in its block's `refs`."""
        return {"decision": self.record_id, **({"approval": self.approval} if self.approval else {})}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
