"""Secrets to plant in what agents write, and the search for them in what Aver wrote."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from aver import Ledger
from aver.config import load_config

__all__ = ["PARTS", "PASSWORD", "SPELLINGS", "TOKEN", "assert_nothing_is_left", "plant", "written_bytes"]

TOKEN = "ghp_" + "Ab3dEf6hIj9lMn2pQr5tUv8xYz1bCd4fGh7j"
PASSWORD = "Zq8-Pr0duct1on.x"
SPELLINGS = {
    "token": TOKEN,
    "environment": f'PGPASSWORD="{PASSWORD}" psql -h db',
    "option": f"sshpass -p '{PASSWORD}' ssh host",
    "statement": f"psql -c \"ALTER USER ann WITH PASSWORD '{PASSWORD}'\"",
    "header": f"curl -H 'X-Api-Key: {PASSWORD}' https://host",
    "address": f"git clone https://ann:{PASSWORD}@host/x",
}
PARTS = [TOKEN[4:16], PASSWORD[:12], PASSWORD[4:]]


def plant(value: Any, planted: str, *, keep: Collection[str]) -> Any:
    """The value with the planted text at the end of each of its texts, also of those inside a text of JSON.

    The members named in `keep` stay: without them the agent would not have written the value.
    """
    if isinstance(value, dict):
        return {name: item if name in keep else plant(item, planted, keep=keep) for name, item in value.items()}
    if isinstance(value, list):
        return [plant(item, planted, keep=keep) for item in value]
    if not isinstance(value, str):
        return value
    if value[:1] in ("{", "["):
        try:
            return json.dumps(plant(json.loads(value), planted, keep=keep))
        except ValueError:
            pass
    return f"{value}\n{planted}"


def written_bytes(home: Path) -> bytes:
    """All bytes below Aver's home, the ledger's files included, apart from keys."""
    return b"\n".join(path.read_bytes() for path in home.rglob("*") if path.is_file() and "keys" not in path.parts)


def assert_nothing_is_left(ledger: Ledger, *more: Path) -> None:
    """No part of a secret is in a file of Aver's home or of another directory that Aver wrote to."""
    ledger.close()
    found = b"\n".join(written_bytes(place) for place in (load_config().home, *more))
    assert b"[masked:" in found
    assert [part for part in PARTS if part.encode() in found] == []
