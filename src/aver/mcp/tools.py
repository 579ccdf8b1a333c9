"""The five tools: their purpose, parameters and answers, and the instructions for the agent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aver.mcp.parameters import Parameter

__all__ = ["INSTRUCTIONS", "PROMPT", "TOOLS", "ToolSpec", "to_action_type"]

PROMPT = "capseal-instructions"

INSTRUCTIONS = """\
This server decides whether your actions may happen and keeps a sealed record of what you did.

1. capseal_status at the start: it tells whether a session is open, and what earlier sessions did here.
2. capseal_gate before every change, command or request, once per file. Give diff_text for a change to files, and \
tool_name with arguments for a command or a request: what is not shown cannot be judged.
   - approve: go on, with exactly this.
   - flag: do not go on. A human must approve it first; say so, then ask again with the very same arguments.
   - deny: do not do it, and do not try it in another way. Tell the user why.
3. capseal_record after every action, once per file, with the same action_type, description and files_affected, and \
the receipt_id that the gate gave. Record failures too.
4. capseal_seal when the work is done. The user can then verify it: aver verify FILE.cap

capseal_context tells what was done to a file before."""

_ALIASES = {
    **dict.fromkeys(("edit", "edit_file", "refactor"), "code_edit"),
    **dict.fromkeys(("run_command", "execute_command", "install_package"), "command"),
    "read_file": "file_read",
    **dict.fromkeys(("create_file", "write_file"), "file_write"),
    "delete_file": "file_delete",
}


def to_action_type(text: str) -> str:
    """Return the action type of the protocol for the word of an agent; `unknown` if there is none."""
    from aver.gate.action import ACTION_TYPES

    word = text.strip().lower()
    word = _ALIASES.get(word, word)
    return word if word in ACTION_TYPES else "unknown"


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """The description of one tool."""

    title: str
    about: str
    takes: tuple[Parameter, ...]
    answers: Mapping[str, Any]
    """The JSON Schema of the keys of the answer, without those of the envelope."""
    only_reads: bool = False


_TYPE = "what kind of action: code_edit, file_write, file_read, file_delete, command, api_request, tool_call, ..."
_FILES = "paths of the files that it concerns, from the workspace on"
_ARGUMENTS = 'the arguments that the tool gets, such as {"command": "make test"}'

_TEXT: dict[str, Any] = {"type": "string"}
_COUNT: dict[str, Any] = {"type": "integer"}
_TRUTH: dict[str, Any] = {"type": "boolean"}
_TEXTS: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
_OBJECTS: dict[str, Any] = {"type": "array", "items": {"type": "object"}}


def _nullable(kind: str) -> dict[str, Any]:
    return {"type": [kind, "null"]}


TOOLS: Mapping[str, ToolSpec] = {
    "capseal_gate": ToolSpec(
        "Ask the gate",
        "Ask BEFORE each action whether it may happen, once per file. Answers approve, flag or deny; go on only after "
        "approve. The decision is sealed, also one that refuses.",
        (
            Parameter("action_type", "text", _TYPE, required=True),
            Parameter("description", "text", "what the action does, in words", required=True),
            Parameter("files_affected", "texts", _FILES),
            Parameter("diff_text", "long text", "the change as a unified diff; without it a change cannot be judged"),
            Parameter("tool_name", "text", "the tool that would be used"),
            Parameter("arguments", "object", _ARGUMENTS),
        ),
        {
            "decision": {"type": "string", "enum": ["approve", "flag", "deny"]},
            "predicted_failure": _nullable("number"),
            "p_fail": _nullable("number"),
            "confidence": {"type": "number"},
            "uncertainty": _nullable("number"),
            "observations": _COUNT,
            "grid_cell": _nullable("integer"),
            "grid_idx": _nullable("integer"),
            "label": _TEXT,
            "features": {"type": "object"},
            "thresholds": {"type": "object"},
            "receipt_id": _TEXT,
            "action_type": _TEXT,
            "description": _TEXT,
            "files_affected": _TEXTS,
            "model_loaded": _TRUTH,
            "reason": _TEXT,
            "similar_patches": _OBJECTS,
        },
    ),
    "capseal_record": ToolSpec(
        "Record an action",
        "Record AFTER each action what was done, once per file, whether it succeeded or not. Give the receipt_id of "
        "the gate's answer.",
        (
            Parameter("action_type", "text", _TYPE, required=True),
            Parameter("description", "text", "what was done, in words", required=True),
            Parameter("tool_name", "text", "the tool that was used", required=True),
            Parameter("success", "truth", "whether it did what it should", required=True),
            Parameter("files_affected", "texts", _FILES),
            Parameter("duration_ms", "whole number", "how long it took, in milliseconds"),
            Parameter("output", "long text", "what came out; only its hash is kept"),
            Parameter("error", "long text", "what went wrong; only its hash is kept"),
            Parameter("receipt_id", "text", "receipt_id of the gate's answer about this action"),
            Parameter("diff_text", "long text", "the change that was made, as a unified diff; only its hash is kept"),
            Parameter("arguments", "object", f"{_ARGUMENTS}; only their hash is kept"),
        ),
        {
            "recorded": _TRUTH,
            "action_id": _nullable("string"),
            "receipt_hash": _nullable("string"),
            "action_type": _TEXT,
            "files_affected": _TEXTS,
            "receipt_chain_length": _COUNT,
            "label": _nullable("string"),
            "p_fail": _nullable("number"),
            "error": _nullable("string"),
        },
    ),
    "capseal_seal": ToolSpec(
        "Seal the session",
        "Seal all recorded actions of this session into a .cap file that anyone can verify. Call it when the work is "
        "done; the next action begins a new session.",
        (Parameter("session_name", "text", "a name for what was done"),),
        {
            "sealed": _TRUTH,
            "session_name": _TEXT,
            "cap_file": _nullable("string"),
            "hash": _nullable("string"),
            "actions_count": _COUNT,
            "verification": {"type": "string", "enum": ["passed", "failed"]},
            "proof_generated": _TRUTH,
            "proof_verified": _TRUTH,
            "model_updated": _TRUTH,
            "model_episodes": _nullable("integer"),
            "error": _nullable("string"),
            "proof_type": _nullable("string"),
            "capsule_hash": _nullable("string"),
            "verify_command": _nullable("string"),
        },
    ),
    "capseal_status": ToolSpec(
        "Session status",
        "The state of this session, and what earlier sessions did in this workspace. Call it at the start, and again "
        "after the conversation was shortened.",
        (),
        {
            "session_active": _TRUTH,
            "workspace": _TEXT,
            "actions_count": _COUNT,
            "gates_count": _COUNT,
            "denials_count": _COUNT,
            "model_loaded": _TRUTH,
            "uptime_seconds": _COUNT,
            "recent_sessions": _OBJECTS,
            "project_stats": {"type": "object"},
        },
        only_reads=True,
    ),
    "capseal_context": ToolSpec(
        "What was done to a file",
        "The changes that sealed sessions made to one file. Call it before changing a file that others worked on.",
        (Parameter("file", "text", "the file's path, from the workspace on", required=True),),
        {"file": _TEXT, "total_changes": _COUNT, "total_sessions": _COUNT, "sessions": _OBJECTS},
        only_reads=True,
    ),
}
