"""The parameters of the tools. One table per tool gives both the JSON Schema and the strict check of the arguments.

    >>> given = read_arguments((Parameter("file", "text", "a path", required=True),), {"file": "src/app.py"})
    >>> given["file"]
    'src/app.py'

Aver converts nothing: a number is not a text, and 1 is not true. It refuses arguments that are not in the table, so
that it never ignores a misspelt name.

The five tools: their purpose, parameters and answers, and the instructions for the agent.

A short label for a decision: the size of the change, the number of files, and its other effects.

    simple + single-file                       a change of at most ten lines in one file
    unseen + multi-file + delete               a change that the agent did not show, and that deletes

Labels are for people and agents to read. Aver decides nothing by them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from aver.capsule.canonical import canonical_bytes, has_surrogate
from aver.errors import BadInput
from aver.gate.decision_record import RecordedDecision

ParameterKind = Literal["text", "long text", "texts", "whole number", "truth", "object"]

TEXT_MAX = 16 * 1024
"""The maximum length of a name, a description or one path."""

LONG_MAX = 4 * 1024 * 1024
"""The maximum length of a diff or an output."""

TEXTS_MAX = 1000
"""The maximum number of files of one action."""

OBJECT_MAX = 1024 * 1024
"""The maximum canonical size, in bytes, of the arguments of a tool."""

NUMBER_MAX = 2**53
"""The largest number. Every language reads whole numbers up to this limit exactly."""

_SCHEMAS: Mapping[ParameterKind, dict[str, Any]] = {
    "text": {"type": "string", "maxLength": TEXT_MAX},
    "long text": {"type": "string", "maxLength": LONG_MAX},
    "texts": {"type": "array", "items": {"type": "string", "maxLength": TEXT_MAX}, "maxItems": TEXTS_MAX},
    "whole number": {"type": "integer", "minimum": 0, "maximum": NUMBER_MAX},
    "truth": {"type": "boolean"},
    "object": {"type": "object"},
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a tool."""

    name: str
    kind: ParameterKind
    about: str
    required: bool = False


def build_input_schema(parameters: Sequence[Parameter]) -> dict[str, Any]:
    """Return the JSON Schema of the input of a tool."""
    return {
        "type": "object",
        "properties": {
            parameter.name: {**_SCHEMAS[parameter.kind], "description": parameter.about} for parameter in parameters
        },
        "required": [parameter.name for parameter in parameters if parameter.required],
        "additionalProperties": False,
    }


def read_arguments(parameters: Sequence[Parameter], given: Mapping[str, Any]) -> dict[str, Any]:
    """Check the arguments and return a value for each parameter; None if an optional one is absent or null.

    Raises `BadInput` for an unknown, missing or invalid argument.
    """
    known = {parameter.name for parameter in parameters}
    for name in given:
        if name not in known:
            listed = ", ".join(sorted(known)) or "none"
            raise BadInput(f"{ascii(name)[:80]} is not an argument of this tool", advice=f"it takes: {listed}")
    values = {}
    for parameter in parameters:
        value = given.get(parameter.name)
        if value is None and parameter.required:
            raise BadInput(f"{parameter.name} is required")
        values[parameter.name] = None if value is None else _check_value(parameter, value)
    return values


def _check_value(parameter: Parameter, value: Any) -> Any:
    if parameter.kind == "text":
        return _check_text(parameter.name, value, TEXT_MAX)
    if parameter.kind == "long text":
        return _check_text(parameter.name, value, LONG_MAX)
    if parameter.kind == "texts":
        if not isinstance(value, list) or len(value) > TEXTS_MAX:
            raise BadInput(f"{parameter.name} must be a list of at most {TEXTS_MAX} texts")
        return [_check_text(f"{parameter.name}[{index}]", item, TEXT_MAX) for index, item in enumerate(value)]
    if parameter.kind == "whole number":
        if type(value) is not int or not 0 <= value <= NUMBER_MAX:
            raise BadInput(f"{parameter.name} must be a whole number from 0 on")
        return value
    if parameter.kind == "truth":
        if type(value) is not bool:
            raise BadInput(f"{parameter.name} must be true or false")
        return value
    if not isinstance(value, dict) or len(canonical_bytes(value)) > OBJECT_MAX:
        raise BadInput(f"{parameter.name} must be an object of at most {OBJECT_MAX} bytes")
    return value


def _check_text(name: str, value: Any, longest: int) -> str:
    if not isinstance(value, str) or len(value) > longest:
        raise BadInput(f"{name} must be a text of at most {longest} characters")
    if has_surrogate(value):
        raise BadInput(f"{name} holds half a character (a lone surrogate)")
    return value


PROMPT = "capseal-instructions"

INSTRUCTIONS = """\
This server decides whether your actions may happen and keeps a sealed record of what you did.

1. capseal_status at the start: it tells whether a session is open, and what earlier sessions did here.
2. capseal_gate before every change, command or request, once per file. Give diff_text for a change to files, and \
tool_name with arguments for a command or a request: what is not shown cannot be judged.
   - approve: go on, with exactly this.
   - flag: do not go on. A human must approve it first; say so. After a signed approval (the reason says how), ask \
again with the very same arguments. Or ask the user here: only after a clear yes go on, and give user_said_yes when \
you record it.
   - deny: do not do it, and do not try it in another way. Tell the user why.
   - A reason that begins with "only observed, nothing is held back": go on. The user only wants to see what the gate \
would say.
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
        "Ask BEFORE each action whether it may happen, once per file. Answers approve, flag or deny; go on after "
        "approve; after flag, only as its reason says. Without diff_text the answer for an edit is flag. The decision "
        "is sealed, also one that refuses.",
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
            Parameter("user_said_yes", "truth", "after flag, the user agreed to exactly this: recorded as your word"),
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
            "verification": {"type": "string", "enum": ["passed", "qualified", "failed"]},
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


_UNLABELLED_EFFECTS = frozenset({"read", "write"})


def decision_label(decision: RecordedDecision) -> str:
    """Return the label of a decision."""
    features = decision.result.get("features") or {}
    files = max(int(features.get("files", 0)), len(decision.action["files"]))
    if "added" not in features:
        size_label = "unseen" if features.get("unseen") else ""
    else:
        lines = features["added"] + features["removed"]
        size_label = "simple" if lines <= 10 else "moderate" if lines <= 50 else "complex"
    files_label = "" if files == 0 else "single-file" if files == 1 else "multi-file" if files <= 3 else "cross-cutting"
    parts = [
        size_label,
        files_label,
        *sorted(set(decision.result.get("effects") or ()) - _UNLABELLED_EFFECTS),
    ]
    return " + ".join(part for part in parts if part) or "unclassified"
