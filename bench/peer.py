"""The peer: `qp-capsule`, the public reference implementation, doing the same work by its documented API."""

from __future__ import annotations

import asyncio
import logging
import time
from pathlib import Path
from typing import Any

from qp_capsule import Capsule, CapsuleChain, CapsuleStorage, Seal

logging.getLogger("qp_capsule").setLevel(logging.CRITICAL)  # its warnings about lost records would bury the table


def capsule(content: dict[str, Any]) -> Capsule:
    return Capsule.from_dict(content)


def sealer(directory: Path) -> Seal:
    return Seal(key_path=directory / "key", enable_pq=False)


async def _append(directory: Path, contents: list[dict[str, Any]]) -> tuple[int, float]:
    storage = CapsuleStorage(db_path=directory / "capsules.db")
    chain = CapsuleChain(storage)
    seal = sealer(directory)
    capsules = [capsule(content) for content in contents]
    await chain.get_chain_length()
    stored = 0
    started = time.perf_counter()
    for one in capsules:
        try:
            await chain.seal_and_store(one, seal=seal)
            stored += 1
        except Exception:  # noqa: BLE001 - what it loses is what we count
            pass
    spent = time.perf_counter() - started
    await storage.close()
    return stored, spent


def append(directory: Path, contents: list[dict[str, Any]]) -> tuple[int, float]:
    """How many were stored, and the seconds that took."""
    return asyncio.run(_append(directory, contents))


async def _verify(directory: Path) -> tuple[bool, float]:
    storage = CapsuleStorage(db_path=directory / "capsules.db")
    chain = CapsuleChain(storage)
    started = time.perf_counter()
    result = await chain.verify(verify_content=True, seal=sealer(directory))
    spent = time.perf_counter() - started
    await storage.close()
    return result.valid, spent


def verify(directory: Path) -> tuple[bool, float]:
    return asyncio.run(_verify(directory))
