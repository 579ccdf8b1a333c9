"""Bundles that the public agent-capsule tool made: they verify, and its meta chain counts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aver.check import verify
from support.agent_capsules import AgentCapsules
from support.bundles import Expected, bad


def test_a_bundle_of_the_public_tool_verifies(public_tool: AgentCapsules, tmp_path: Path) -> None:
    out = public_tool.write_bundle(tmp_path / "theirs")
    verdict = verify(out, keys=public_tool.publics)
    assert verdict.status == "verified"
    assert (verdict.chains, verdict.records) == (5, 7 + 2 + 3 + 1 + 4)
    assert verdict.check("meta").reason == "3 chains match their recorded heads (1 grown since, 1 not recorded)"
    assert verdict.check("identity").status == "not_checked"
    assert verdict.check("profile").reason == "agent-capsule: 14, agent-capsule without spec_version: 3"
    assert verify(out).status == "qualified"
    some = verify(out, keys=public_tool.publics[:1])
    assert (some.status, some.integrity, some.check("signature").code) == ("qualified", "unsigned", "UNKNOWN_SIGNER")


def test_the_old_explorers_bundle_verifies(public_tool: AgentCapsules, tmp_path: Path) -> None:
    out = public_tool.write_old_bundle(tmp_path / "theirs")
    verdict = verify(out, keys=public_tool.publics)
    assert (verdict.status, verdict.records) == ("verified", 13)
    assert verdict.check("meta").status == "not_checked"


PUBLIC_TAMPERED: list[tuple[str, Callable[[AgentCapsules], Any], Expected]] = [
    ("cut before export", lambda tool: tool.chains[1].entries.pop(), ("TRUNCATED", "codex-019d", 1)),
    ("deleted before export", lambda tool: tool.chains.pop(1), ("CHAIN_MISSING", "codex.019d", None)),
    ("another chain", lambda tool: (tool.chains[1].entries.clear(), tool.grow(tool.chains[1], 2)),
     ("ROLLBACK", "codex-019d", 1)),
    ("cut below the latest entry, not the first", lambda tool: tool.chains[0].entries.__delitem__(slice(5, None)),
     ("TRUNCATED", "claude-code-5d2e", 5)),
]  # fmt: skip


@pytest.mark.parametrize(("what", "tamper", "expected"), PUBLIC_TAMPERED, ids=[case[0] for case in PUBLIC_TAMPERED])
def test_the_public_tools_meta_chain_counts(
    public_tool: AgentCapsules,
    tmp_path: Path,
    what: str,
    tamper: Callable[[AgentCapsules], Any],
    expected: Expected,
) -> None:
    tamper(public_tool)
    assert bad(verify(public_tool.write_bundle(tmp_path / "theirs"), keys=public_tool.publics)) == expected
