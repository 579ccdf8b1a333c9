"""The answers of the tools: the envelope that all answers share, and the keys of each tool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from aver.config import hide_password
from aver.errors import AverError
from aver.events.event import decision_word
from aver.gate.ask import Answer
from aver.gate.decision_record import NOT_HELD_BACK, RecordedDecision
from aver.mcp.history import PastSession
from aver.mcp.session import RecordedAction, SealedRun, SessionCounts
from aver.mcp.tools import decision_label, to_action_type

SCHEMA_VERSION = "1.0"
DEFAULT_SESSION_NAME = "mcp-session"
"""The name of a session if the agent gave none."""

TRUSTED_AFTER = 5
"""The number of observed outcomes in a workspace at which `confidence` is one half."""

_DECISION_LABELS = {"approve": "APPROVED", "flag": "FLAGGED", "deny": "DENIED"}


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """The answer of a tool: a JSON object, and whether it reports an error."""

    content: dict[str, Any]
    is_error: bool = False


def _build_answer(
    tool: str, session: str | None, content: dict[str, Any], summary: str, *, ok: bool = True
) -> ToolAnswer:
    envelope = {
        "ok": ok,
        "tool": tool,
        "session_id": session,
        "timestamp": f"{datetime.now(UTC):%Y%m%dT%H%M%S}",
        "schema_version": SCHEMA_VERSION,
        "human_summary": summary,
    }
    return ToolAnswer({**envelope, **content}, is_error=not ok)


def error_answer(tool: str, session: str | None, error: AverError) -> ToolAnswer:
    """Build the answer for a failed call: the error, and advice for the agent."""
    # A message may contain the URL of the ledger, and the agent must not see its password.
    message = hide_password(error.message)
    details = {"type": type(error).__name__, "advice": hide_password(error.advice)}
    content = {"error": message, "details": details}
    return _build_answer(tool, session, content, f"{tool}: failed ({message})", ok=False)


def gate_answer(
    session: str, given: Mapping[str, Any], answer: Answer, similar: Sequence[dict[str, Any]]
) -> ToolAnswer:
    """Build the answer of `capseal_gate`. `similar` lists earlier changes to the same files."""
    decision, recorded = answer.decision, RecordedDecision.from_record(answer.record)
    word, label, files = decision_word(decision.decision), decision_label(recorded), given["files_affected"] or []
    score = None if decision.score is None else round(decision.score, 6)
    width = None if decision.interval is None else (decision.interval[1] - decision.interval[0]) / 2
    content = {
        "decision": word,
        "predicted_failure": score,
        "p_fail": score,
        "confidence": round(decision.observations / (decision.observations + TRUSTED_AFTER), 6),
        "uncertainty": None if width is None else round(width, 6),
        "observations": decision.observations,
        "grid_cell": None,
        "grid_idx": None,
        "label": label,
        "features": dict(recorded.result["features"] or {}),
        "thresholds": {
            "approve_below": decision.thresholds.pass_below,
            "deny_above": decision.thresholds.skip_above,
        },
        "receipt_id": decision.gate_id,
        "action_type": to_action_type(given["action_type"]),
        "description": given["description"],
        "files_affected": files,
        "model_loaded": decision.estimate is not None,
        "reason": _gate_reason(answer, recorded),
        "similar_patches": list(similar),
    }
    risk = "unknown" if score is None else f"{score:.2f}"
    named = ", ".join(files) or "none"
    summary = f"GATE: {_DECISION_LABELS[word]} | p_fail={risk} | {label} | files={named} | {content['reason']}"
    return _build_answer("capseal_gate", session, content, summary)


def _gate_reason(answer: Answer, recorded: RecordedDecision) -> str:
    """Return why, in words. An agent that reads `deny` must know if it may go on nevertheless."""
    reasons = "; ".join(answer.reasons)
    if recorded.is_observed and not answer.allows:
        return f"{NOT_HELD_BACK}, go on: {reasons}"
    return reasons if answer.decision.decision != "human_review" else f"{reasons}; {_describe_approval(answer)}"


def _describe_approval(answer: Answer) -> str:
    """Say how a person approves a flagged action: with a signature, or by a yes that only the agent reports."""
    who = "a person enrols (aver keys new person:NAME, aver approvals enrol person:NAME), you ask again, and the person"
    who, named = ("a person", answer.request.id[:8]) if answer.request is not None else (who, "ID")
    return (
        f"for a signed approval {who} runs aver approvals approve {named}, and the same question is answered with "
        "approve; without one, ask the user here: after a yes go on, and record it with user_said_yes (unconfirmed)"
    )


def record_answer(session: str, given: Mapping[str, Any], recorded: RecordedAction) -> ToolAnswer:
    """Build the answer of `capseal_record`."""
    gate = recorded.gate
    content = {
        "recorded": True,
        "action_id": recorded.action.action_id,
        "receipt_hash": recorded.receipt,
        "action_type": recorded.action.action_type,
        "files_affected": given["files_affected"] or [],
        "receipt_chain_length": recorded.position,
        "label": None if gate is None else decision_label(gate),
        "p_fail": None if gate is None or gate.score is None else round(gate.score, 6),
        "error": None,
    }
    summary = f"RECORD: recorded {recorded.action.action_type} ({recorded.position} total actions)"
    return _build_answer("capseal_record", session, content, summary + _gate_warning(recorded, given["user_said_yes"]))


def _gate_warning(recorded: RecordedAction, says_user_agreed: bool | None) -> str:
    if recorded.unbound:
        return "; the receipt_id is about other files or another tool, so this action counts as not gated"
    if recorded.gate is None:
        return "; no answer of the gate fits it, so it counts as not gated"
    if recorded.gate.is_observed and not recorded.gate.allows:
        return f"; the gate would not have allowed it ({recorded.gate.decision}): {NOT_HELD_BACK}"
    if recorded.gate.decision == "human_review" and says_user_agreed:
        return "; only you report that the user agreed, so the verdict is qualified at most"
    if not recorded.gate.allows:
        return f"; the gate did not allow it ({recorded.gate.decision}), and the record says so"
    return ""


def seal_answer(session: str, name: str | None, sealed: SealedRun, cap_file: str, episodes: int) -> ToolAnswer:
    """Build the answer of `capseal_seal`. `episodes` is the number of outcomes learned in the workspace."""
    result, capsule = sealed.result, sealed.result.get("capsule") or {}
    verified = bool(result["verified"])
    content = {
        "sealed": True,
        "session_name": name or DEFAULT_SESSION_NAME,
        "cap_file": cap_file,
        "hash": result["final_receipt_hash"],
        "actions_count": result["num_actions"],
        "verification": {"verified": "passed", "qualified": "qualified"}.get(result["verdict"], "failed"),
        "proof_generated": result["status"] == "proved",
        "proof_verified": result["status"] == "proved" and verified,
        "model_updated": sealed.learned > 0,
        "model_episodes": episodes,
        "error": None,
        "proof_type": result.get("proof_type"),
        "capsule_hash": capsule.get("hash"),
        "verify_command": f"aver verify {cap_file}",
    }
    summary = f"SEALED: {result['num_actions']} actions -> {cap_file} (verification {content['verification']})"
    return _build_answer("capseal_seal", session, content, summary)


def status_answer(
    session: str | None,
    workspace: str,
    counts: SessionCounts,
    uptime: int,
    recent: Sequence[PastSession],
    total: int,
    episodes: int,
) -> ToolAnswer:
    """Build the answer of `capseal_status`. `total` counts all sealed sessions, `recent` are the newest."""
    sessions = [past.to_dict() for past in recent]
    content = {
        "session_active": session is not None,
        "workspace": workspace,
        "actions_count": counts.actions,
        "gates_count": counts.gates,
        "denials_count": counts.denials,
        "model_loaded": True,
        "uptime_seconds": uptime,
        "recent_sessions": sessions,
        "project_stats": {
            "total_sessions": total,
            "total_actions": sum(past["actions"] for past in sessions),
            "total_denied": sum(past["denied"] for past in sessions),
            "model_trained": episodes > 0,
        },
    }
    state = "active" if session is not None else "inactive"
    summary = (
        f"STATUS | session: {state} | actions: {counts.actions} | gates: {counts.gates} | denied: {counts.denials}"
    )
    return _build_answer("capseal_status", session, content, summary)


def context_answer(session: str | None, file: str, found: Sequence[tuple[PastSession, list[str]]]) -> ToolAnswer:
    """Build the answer of `capseal_context` from the sessions that changed the file."""
    changes = sum(len(words) for _, words in found)
    content = {
        "file": file,
        "total_changes": changes,
        "total_sessions": len(found),
        "sessions": [
            {"session_id": past.run_id, "date": past.sealed_at[:19], "agent": past.agent, "changes": words}
            for past, words in found
        ],
    }
    summary = f"CONTEXT: {file} has {changes} change(s) across {len(found)} session(s)"
    return _build_answer("capseal_context", session, content, summary)
