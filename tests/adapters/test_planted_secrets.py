"""A secret in any text of a framework's tool call is in no byte that Aver writes: neither ledger nor run."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from aver.adapters.tool_calls import Failure, ToolCallGate
from support.planted_secrets import PASSWORD, SPELLINGS, assert_nothing_is_left
from support.workplace import Workplace

pytestmark = pytest.mark.parametrize("spelling", SPELLINGS)


def leave_nothing(work: Workplace, tmp_path: Path) -> None:
    work.run.finalize()
    work.run.close()
    assert_nothing_is_left(work.ledger, tmp_path / "run")


@pytest.mark.sample(4)
@pytest.mark.parametrize("library", ["langchain", "openai-agents", "claude-agent-sdk", "pydantic-ai"])
def test_calls_keep_no_secret(work: Workplace, tmp_path: Path, spelling: str, library: str) -> None:
    planted = SPELLINGS[spelling]
    calls = ToolCallGate(work.run, library=library)

    def fail() -> Any:
        raise RuntimeError(f"it failed: {planted}")

    def run(tool: str, arguments: Any, execute: Any, **more: Any) -> Any:
        return calls.run_gated(tool, arguments, f"c {planted}", execute=execute, refuse=str, **more)

    read = {"path": work.notes, "why": planted, "deep": [{"a": planted}], planted: 1, "password": PASSWORD}
    run("read_file", read, lambda: {"text": planted, "more": [planted], planted: 2})
    run("read_file", {"path": f"{work.notes} {planted}"}, lambda: planted)
    run("Bash", {"command": planted}, lambda: planted)
    run("read_file", {"path": work.notes}, lambda: "x", failure_in=lambda _: Failure("ToolError", planted))
    run("read_file", {"path": work.notes, "x": planted.encode()}, lambda: "x")
    run("read_file", [planted], lambda: "x")
    run(f"tool {planted}", {"path": work.notes}, lambda: "x")
    with pytest.raises(RuntimeError):
        run("read_file", {"path": work.notes, "n": 2}, fail)
    leave_nothing(work, tmp_path)


@pytest.mark.sample(4)
def test_async_calls_keep_no_secret(work: Workplace, tmp_path: Path, spelling: str) -> None:
    planted = SPELLINGS[spelling]
    calls = ToolCallGate(work.run, library="test")

    async def succeed() -> str:
        return planted

    async def fail() -> str:
        raise RuntimeError(planted)

    async def run() -> None:
        arguments = {"path": work.notes, "why": planted}
        await calls.run_gated_async("read_file", arguments, "c1", execute=succeed, refuse=str)
        with pytest.raises(RuntimeError):
            await calls.run_gated_async("read_file", arguments, "c2", execute=fail, refuse=str)

    asyncio.run(run())
    leave_nothing(work, tmp_path)
