"""A database that the reference implementation of CPS writes itself."""

from __future__ import annotations

import asyncio
from pathlib import Path

import qp_capsule

SESSION = "00000000-0000-4000-8000-00000000000a"


def write_peer(directory: Path, count: int) -> tuple[Path, str]:
    """The database, and the public key of whoever signed what is in it."""

    async def write() -> tuple[Path, str]:
        storage = qp_capsule.CapsuleStorage(directory / "capsules.db")
        seal = qp_capsule.Seal(key_path=directory / "key", enable_pq=False)
        chain = qp_capsule.CapsuleChain(storage)
        for number in range(count):
            capsule = qp_capsule.Capsule.create(
                capsule_type=qp_capsule.CapsuleType.TOOL,
                trigger={"type": "user_request", "source": "peer", "request": f"step {number} ü"},
                reasoning={"analysis": "a", "confidence": 1.0, "options_considered": ["x", "y"]},
                outcome={"status": "success", "metrics": {"loss": 1e-7, "n": 10**20}},
            )
            capsule.context.session_id = SESSION
            await chain.seal_and_store(capsule, seal=seal)
        await storage.close()
        return directory / "capsules.db", seal.get_public_key()

    return asyncio.run(write())
