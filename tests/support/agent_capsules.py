"""What the public agent-capsule tool leaves behind, made with the standard library and PyNaCl from its description.

Nothing here uses Aver: canonical text, hashes, signatures, chain databases, the meta chain and the export bundle are
written out as that tool writes them, loose sections and all.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nacl.signing import SigningKey

SCHEMA = (
    "CREATE TABLE capsules (rowid_pk INTEGER PRIMARY KEY AUTOINCREMENT, tenant_id TEXT, sequence INTEGER NOT NULL,"
    " id TEXT NOT NULL, previous_hash TEXT, hash TEXT NOT NULL, signature TEXT NOT NULL, signature_pq TEXT DEFAULT '',"
    " signed_at TEXT, signed_by TEXT DEFAULT '', canonical TEXT NOT NULL, UNIQUE (tenant_id, sequence))"
)


def content_of(request: str, *, tool: str, session: str, **changes: Any) -> dict[str, Any]:
    content = {
        "id": str(uuid.uuid4()),
        "type": "tool",
        "domain": tool,
        "parent_id": None,
        "sequence": 0,
        "previous_hash": None,
        "spec_version": "1.0",
        "trigger": {"type": "user_request", "source": session, "request": request},
        "context": {"agent_id": tool, "session_id": session, "environment": {"cwd": "/w/shop", "cost": 0.1}},
        "reasoning": {"analysis": "", "reasoning": "", "model": "some-model"},
        "authority": {"type": "autonomous", "policy_reference": ""},
        "execution": {
            "tool_calls": [
                {"tool": "Edit", "arguments": {"é": 1}, "result": "ok", "success": True, "duration_ms": None}
            ],
            "duration_ms": 0,
            "resources_used": {"input_tokens": 4},
        },
        "outcome": {"status": "success", "summary": "done", "side_effects": [], "result": "ok"},
    }
    return {**content, **changes}


def canonical(content: dict[str, Any]) -> str:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def sealed(content: dict[str, Any], key: SigningKey, *, at: str) -> dict[str, Any]:
    """A row of the database, and with it an entry of the bundle."""
    text = canonical(content)
    digest = hashlib.sha3_256(text.encode()).hexdigest()
    return {
        "hash": digest,
        "signature": key.sign(digest.encode()).signature.hex(),
        "signature_pq": "",
        "signed_at": at,
        "signed_by": key.verify_key.encode().hex()[:16],
        "canonical": text,
    }


@dataclass
class Chain:
    tool: str
    stem: str
    entries: list[dict[str, Any]] = field(default_factory=list)

    def add(self, content: dict[str, Any], key: SigningKey) -> None:
        count = len(self.entries)
        content = {**content, "sequence": count, "previous_hash": self.entries[-1]["hash"] if count else None}
        at = f"2026-05-30T12:{count // 60:02}:{count % 60:02}.000001+00:00"
        self.entries.append(sealed(content, key, at=at))

    @property
    def id(self) -> str:
        return f"{self.tool}-{self.stem}"


class AgentCapsules:
    """One machine's agent-capsule: chains, a meta chain, keys."""

    def __init__(self, seed: bytes = bytes(range(32))) -> None:
        self.key = SigningKey(seed)
        self.keys = [self.key]
        self.chains: list[Chain] = []
        self.meta = Chain("meta", "meta")

    @property
    def public(self) -> str:
        return self.key.verify_key.encode().hex()

    @property
    def publics(self) -> list[str]:
        return [key.verify_key.encode().hex() for key in self.keys]

    def rotate(self, seed: bytes) -> None:
        self.key = SigningKey(seed)
        self.keys.append(self.key)

    def session(self, tool: str, stem: str, count: int, *, finish: bool = True, spec_version: bool = True) -> Chain:
        chain = Chain(tool, stem)
        self.chains.append(chain)
        self.grow(chain, count, spec_version=spec_version)
        if finish:
            self.finish(chain)
        return chain

    def grow(self, chain: Chain, count: int, *, spec_version: bool = True) -> None:
        for number in range(len(chain.entries), len(chain.entries) + count):
            content = content_of(f"step {number}\nmore", tool=chain.tool, session=chain.stem)
            if not spec_version:
                del content["spec_version"]
            chain.add(content, self.key)

    def finish(self, chain: Chain, **more: Any) -> None:
        head, count, tool, stem = chain.entries[-1]["hash"], len(chain.entries), chain.tool, chain.stem
        result = {
            "kind": "conversation_seal",
            "tool": tool,
            "session_id": stem,
            "head_hash": head,
            "capsule_count": count,
            **more,
        }
        content = content_of(f"conversation sealed: {tool}/{stem}", tool="meta", session="meta")
        content |= {
            "type": "system",
            "context": {
                "agent_id": "agent-capsule",
                "session_id": "meta",
                "environment": {"tool": tool, "session_id": stem},
            },
            "execution": {"tool_calls": [], "duration_ms": 0, "resources_used": {}},
            "outcome": {
                "status": "success",
                "summary": f"{tool}/{stem}: {count} capsules, head {head[:12]}",
                "side_effects": [],
                "result": result,
            },
        }
        self.meta.add(content, self.key)

    # --- what it writes

    def write_home(self, home: Path) -> Path:
        for chain in self.chains:
            write_database(home / "chains" / chain.tool / f"{chain.stem}.db", {None: chain.entries})
        if self.meta.entries:
            write_database(home / "meta.db", {None: self.meta.entries})
        return home

    def write_bundle(self, out: Path) -> Path:
        out.mkdir()
        summaries = []
        for chain in self.chains:
            whole = self._whole(chain) | {"db_path": f"/home/someone/chains/{chain.stem}.db", "capsules": chain.entries}
            (out / f"{chain.id}.json").write_text(json.dumps(whole, ensure_ascii=False))
            summaries.append(self._whole(chain))
        summaries.sort(key=lambda summary: (summary["ended_at"], summary["length"]), reverse=True)
        meta = None
        if self.meta.entries:
            ends = {"length": len(self.meta.entries), "head_hash": self.meta.entries[-1]["hash"]}
            more = {"genesis_hash": self.meta.entries[0]["hash"], "all_hashes_ok": True, "capsules": self.meta.entries}
            (out / "meta.json").write_text(json.dumps(ends | more, ensure_ascii=False))
            meta = {**ends, "all_hashes_ok": True}
        index = {
            "generated_at": "2026-05-31T09:00:00+02:00",
            "public_key": self.public,
            "fingerprint": self.public[:16],
            "keys": {public[:16]: public for public in self.publics},
            "chain_count": len(self.chains),
            "capsule_count": sum(len(chain.entries) for chain in self.chains),
            "meta": meta,
            "chains": summaries,
        }
        (out / "index.json").write_text(json.dumps(index, indent=2, ensure_ascii=False))
        return out

    def write_old_bundle(self, out: Path) -> Path:
        """The shape of the explorer's own first script: no keys, no meta, no dates, no tool."""
        out.mkdir()
        kept = ("id", "title", "length", "head_hash", "genesis_hash", "all_hashes_ok")
        summaries = []
        for chain in self.chains:
            summary = {key: self._whole(chain)[key] for key in kept} | {"id": chain.stem}
            whole = summary | {"db_path": "/home/someone/x.db", "capsules": chain.entries}
            (out / f"{chain.stem}.json").write_text(json.dumps(whole, ensure_ascii=False))
            summaries.append(summary)
        index = {
            "generated_at": "2026-05-31T09:00:00+02:00",
            "public_key": self.public,
            "fingerprint": self.public[:16],
            "chain_count": len(summaries),
            "capsule_count": sum(summary["length"] for summary in summaries),
            "chains": summaries,
            "tools": ["claude-code"],
        }
        (out / "index.json").write_text(json.dumps(index, indent=2, ensure_ascii=False))
        return out

    @staticmethod
    def _whole(chain: Chain) -> dict[str, Any]:
        return {
            "id": chain.id,
            "tool": chain.tool,
            "title": "step 0",
            "length": len(chain.entries),
            "head_hash": chain.entries[-1]["hash"],
            "genesis_hash": chain.entries[0]["hash"],
            "all_hashes_ok": True,
            "signed_by": sorted({entry["signed_by"] for entry in chain.entries}),
            "started_at": chain.entries[0]["signed_at"],
            "ended_at": chain.entries[-1]["signed_at"],
        }


def write_database(path: Path, tenants: dict[str | None, list[dict[str, Any]]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path)
    connection.execute(SCHEMA)
    for tenant, entries in tenants.items():
        for entry in entries:
            content = json.loads(entry["canonical"])
            row = {**entry, "tenant_id": tenant, **{key: content[key] for key in ("sequence", "id", "previous_hash")}}
            names = ", ".join(row)
            connection.execute(
                f"INSERT INTO capsules ({names}) VALUES ({', '.join('?' * len(row))})", list(row.values())
            )
    connection.commit()
    connection.close()
    return path
