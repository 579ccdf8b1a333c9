"""Giving a hook a payload, and looking at what it answered and sealed."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

from aver import open_ledger
from aver.agents.registry import AGENTS, load_hook
from aver.hooks.contract import HookReply
from aver.hooks.run import answer_event

SESSION = "5f0c4a2e-2d7b-4a52-9c1e-0d8a6f1b7c33"


def fire(tool: str, event: str, payload: Any) -> HookReply:
    """What a hook answers to a payload: an object, or bytes as they are."""
    raw = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return answer_event(load_hook(tool), event, io.BytesIO(raw), agents=AGENTS)


def said(reply: HookReply) -> Any:
    """The answer as the tool reads it; nothing else may stand on standard output."""
    return json.loads(reply.out) if reply.out else {}


def sealed(chain: str) -> list[dict[str, Any]]:
    """The contents of a chain's records, from the beginning."""
    with open_ledger() as ledger:
        return [record.to_dict() for record in ledger.read(chain)]


def chains() -> list[str]:
    with open_ledger() as ledger:
        return sorted(ledger.chains())


def settings(home: Path, text: str) -> None:
    home.mkdir(mode=0o700, exist_ok=True)
    (home / "config.toml").write_text(text)
