"""The public CapSeal tool's `.cap` files, written as its study describes them: for tests of reading them."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from dataclasses import replace
from typing import Any

from aver import AgentAction
from aver.actions.action import text_hash
from aver.actions.encodings import CAPSEAL_KEYS
from support.runs import A

MODULUS = 2**64 - 2**32 + 1
Files = dict[str, bytes]


def receipt(action: AgentAction) -> str:
    fields = {key: value for key, value in action.to_dict().items() if key in CAPSEAL_KEYS}
    return hashlib.sha256(json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def actions(count: int) -> list[AgentAction]:
    found: list[AgentAction] = []
    for number in range(count):
        last = found[-1] if found else None
        action = replace(
            A,
            action_id=f"act_{number:04d}_00000000",
            input_hash=text_hash(str(number)),
            policy_verdict=None,
            parent_action_id=None if last is None else last.action_id,
            parent_receipt_hash=None if last is None else receipt(last),
            metadata={"description": f"step {number}"},
        )
        found.append(action)
    return found


def line(action: AgentAction) -> str:
    fields = {key: value for key, value in sorted(action.to_dict().items()) if key in CAPSEAL_KEYS}
    return json.dumps({**action.to_dict(), "receipt_hash": receipt(action), "canonical_fields": fields}) + "\n"


def pair(digest: str) -> list[int]:
    raw = bytes.fromhex(digest)
    return [int.from_bytes(raw[at : at + 8], "little") % MODULUS for at in (0, 8)]


def row(index: int, action: AgentAction) -> list[int]:
    kind = hashlib.sha256(action.action_type.encode()).hexdigest()
    parent = [0, 0] if action.parent_receipt_hash is None else pair(action.parent_receipt_hash)
    flags = action.success + 2 * (action.gate_decision != "skip") + 4 * (action.gate_score is not None)
    flags += 8 * (action.policy_verdict is not None) + 16 * (action.action_type == "tool_call")
    flags += 32 * (action.action_type == "code_gen")
    hashes = (kind, action.instruction_hash, action.input_hash, action.output_hash)
    return [index, *(half for digest in hashes for half in pair(digest)), *parent, *pair(receipt(action)), flags]


def levels(rows: list[list[int]]) -> list[list[bytes]]:
    level = [
        hashlib.sha256(one[0].to_bytes(8, "big") + b"".join(value.to_bytes(16, "big") for value in one)).digest()
        for one in rows
    ]
    found = [level]
    while len(level) > 1:
        level = level + level[-1:] if len(level) % 2 else level
        level = [hashlib.sha256(level[at] + level[at + 1]).digest() for at in range(0, len(level), 2)]
        found.append(level)
    return found


def files(taken: list[AgentAction]) -> Files:
    """What the tool writes for a run."""
    rows = [row(index, action) for index, action in enumerate(taken)]
    tree = levels(rows)
    root, final, count = tree[-1][0].hex(), receipt(taken[-1]), len(taken)
    spec = {"air_id": "agent_air_v1", "field_modulus": "goldilocks", "num_rows": count, "row_width": 14}
    low, high = pair(final)
    proof = document(
        {
            "air_id": "agent_air_v1",
            "version": "1.0",
            "proof_type": "constraint_check",
            "statement": {
                "air_id": "agent_air_v1",
                "num_actions": count,
                "final_receipt_lo": low,
                "final_receipt_hi": high,
                "final_receipt_hash": final,
                "trace_spec_hash": hashed(spec),
            },
            "commitment": {"row_root": root, "num_rows": count},
            "constraint_verification": {
                "valid": True,
                "num_constraints_checked": 4 + 3 * (count - 1),
                "composition_sum": 0,
            },
            "alphas_seed": hashlib.sha256(b"agent_alphas:" + root.encode()).hexdigest(),
            "binding_material": "",
        }
    )
    statement = {
        "statement_version": "1.0",
        "air_id": "agent_air_v1",
        "trace_spec_hash": hashed(spec),
        "row_commitment": root,
        "num_rows": count,
        "public_inputs": {
            "final_receipt_lo": low,
            "final_receipt_hi": high,
            "final_receipt_hash": final,
            "num_actions": count,
        },
    }
    capsule: dict[str, Any] = {
        "schema": "agent_capsule_v1",
        "capsule_version": "1.0",
        "timestamp": "2026-02-12T10:00:00Z",
        "air_id": "agent_air_v1",
        "statement": statement,
        "statement_hash": hashed(statement),
        "commitment": {"row_root": root, "num_rows": count},
        "proof": {"encoding_id": "json", "proof_hash": hashlib.sha256(proof).hexdigest()},
        "verification": {"constraints_valid": True, "proof_type": "constraint_check"},
        "profile": {"trace_ms": 0.25, "proof_bytes": len(proof)},
    }
    capsule["capsule_hash"] = hashed(capsule)
    manifest = {
        "schema": "run_cap_v1",
        "capsule_id": final[:16],
        "trace_id": "20260212T100000-mcp",
        "backend": "capseal",
        "verification_profile": "receipt_chain",
        "root_hex": final,
        "created_at": "2026-02-12T10:00:00+00:00",
        "run_type": "mcp",
        "chain_hash": final,
        "actions_count": count,
    }
    return {
        "manifest.json": document(manifest),
        "actions.json": json.dumps([action.to_dict() for action in taken], indent=2).encode(),
        "agent_capsule.json": document(capsule),
        "proof.json": proof,
        "run_metadata.json": document({"num_actions": count, "final_receipt_hash": final, "proved": True}),
        "actions.jsonl": "".join(map(line, taken)).encode(),
        "row_archive/merkle_levels.json": json.dumps([[one.hex() for one in level] for level in tree]).encode(),
        "row_archive/rows.json": json.dumps(rows).encode(),
    }


def document(value: Any) -> bytes:
    return json.dumps(value, indent=2, sort_keys=True).encode()


def hashed(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def cap(members: Files) -> bytes:
    """As the tool packs: Python's own tar, with times in fractions of seconds."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            info.mtime = 0 if name == "manifest.json" else 1770890400.25
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()
