"""Runs for tests: made with the real runtime, taken apart, changed, and packed again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import aver
from aver.actions.action import AgentAction, text_hash
from aver.actions.archive import open_archive, pack
from aver.actions.run_files import EVIDENCE_FILE, HEAD_PURPOSE, LISTED_MEMBERS, MEMBERS, Manifest, head_content
from aver.capsule.json_document import dump_document
from aver.capsule.sealed import hold_signer
from aver.keys import SeedSigner, sign_statement
from aver.verdict import Verdict

A = AgentAction(
    "act_0001",
    "tool_call",
    text_hash("read file"),
    text_hash("foo.py"),
    text_hash("file content"),
    None,
    None,
    0.12,
    "pass",
    "FULLY_VERIFIED",
    True,
    45,
    "2024-01-15T10:30:00Z",
)

DIFF = "--- a/parse.py\n+++ b/parse.py\n@@ -1 +1 @@\n-slow()\n+fast()\n"
Members = dict[str, bytes]


@dataclass(frozen=True)
class SealedRun:
    path: Path
    home: Path
    run_id: str
    chain: str
    key: aver.PublicKey
    summary: dict[str, Any]

    @property
    def cap(self) -> bytes:
        return (self.path / "run.cap").read_bytes()

    @property
    def members(self) -> Members:
        return unpacked(self.cap)


def make_sealed_run(
    at: Path, *, actions: int = 12, gated: tuple[int, ...] = (2, 5, 11), prove: bool = True
) -> SealedRun:
    home = at / "home"
    with aver.open_ledger(home=home) as ledger:
        run = aver.AgentRuntime(at / "run", ledger=ledger, agent="tester", workspace=at)
        record_actions(run, actions, gated)
        summary = run.finalize(prove=prove)
        run.close()
        key = ledger.keys.ring().active("ledger").key
    return SealedRun(at / "run", home, run.run_id, run.chain, key, summary)


def record_actions(run: aver.AgentRuntime, actions: int, gated: tuple[int, ...] = ()) -> list[str]:
    receipts = []
    for number in range(actions):
        metadata = {"description": f"step {number}", "tool_name": "Edit", "ümlaut": [number, 0.5, None]}
        if number in gated:
            answer = run.gate(DIFF, description=f"step {number}")
            assert answer["allows"], answer
            more = {"gate_id": answer["gate_id"], "diff_text": DIFF}
            receipts.append(run.record_simple("code_edit", f"step {number}", {}, "done", metadata=metadata, **more))
        else:
            receipts.append(run.record_simple("tool_call", f"step {number}", {"n": number}, "out", metadata=metadata))
    return receipts


def unpacked(cap: bytes) -> Members:
    with open_archive(BytesIO(cap)) as archive:
        return {name: file.read() for name, file in archive.members.items()}


def packed(members: Members) -> bytes:
    out = BytesIO()
    pack({name: BytesIO(data) for name, data in members.items()}, out)
    return out.getvalue()


def with_true_manifest(members: Members) -> Members:
    """The members with a manifest that lists them as they are. Anyone can do this without a key."""
    members = dict(members)
    manifest = json.loads(members["manifest.json"])
    for name in (*LISTED_MEMBERS, EVIDENCE_FILE):
        if name == EVIDENCE_FILE and name not in members:
            manifest["files"].pop(name, None)
        if name in members:
            data = members[name]
            manifest["files"][name] = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
    members["manifest.json"] = dump_document(manifest)
    return members


def with_strangers_head(members: Members) -> Members:
    """The members with a manifest that fits, and a head over it that an unknown key signed."""
    return with_head_by(members, SeedSigner.generate())


def with_owners_head(members: Members, run: SealedRun) -> Members:
    """The members with a manifest that fits, and a head over it that the ledger's own key signed."""
    with aver.open_ledger(home=run.home) as ledger, hold_signer(ledger.signer()) as signer:
        assert isinstance(signer, SeedSigner)
        return with_head_by(members, signer)


def with_head_by(members: Members, signer: SeedSigner) -> Members:
    members = with_true_manifest(members)
    raw = members["manifest.json"]
    content = head_content(Manifest.from_bytes(raw), hashlib.sha256(raw).hexdigest())
    statement = sign_statement(HEAD_PURPOSE, content, (signer,))
    return {**members, "head.json": dump_document(statement.to_dict())}


def lines_of(members: Members, name: str = "actions.jsonl") -> list[bytes]:
    return members[name].splitlines(keepends=True)


def edited_line(line: bytes, change: Callable[[dict[str, Any]], None]) -> bytes:
    content = json.loads(line)
    change(content)
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def judged(cap: bytes, run: SealedRun, **options: Any) -> Verdict:
    return aver.verify(cap, keys=[run.key], home=run.home, **options)


def codes_of(verdict: Verdict) -> set[str]:
    return {finding.code for finding in verdict.findings if finding.status == "failed"}


__all__ = ["DIFF", "EVIDENCE_FILE", "MEMBERS", "Members", "SealedRun"]
