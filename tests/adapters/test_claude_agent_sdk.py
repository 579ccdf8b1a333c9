"""The adapter for the Claude Agent SDK: the released package, the program it brings, and an API on the loopback."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from support.fake_messages_api import serving
from support.workplace import Workplace

pytest.importorskip("claude_agent_sdk", reason="needs the extra `claude-agent-sdk`")

from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    create_sdk_mcp_server,
    query,
    tool,
)

import aver
from aver import NotRecorded, Refused
from aver.actions.action import value_hash
from aver.adapters.claude_agent_sdk import AverHooks

pytestmark = pytest.mark.more


@dataclass
class Told:
    """What the model was given as results, and what the caller saw."""

    results: list[dict[str, Any]]
    messages: list[Any] = field(default_factory=list)

    @property
    def texts(self) -> list[str]:
        return [str(result["content"]) for result in self.results]


def options_for(work: Workplace, url: str, home: Path, hooks: Any, **more: Any) -> ClaudeAgentOptions:
    """Nothing of the machine's user, no key of theirs, and no way but to the loopback."""
    home.mkdir(exist_ok=True)
    environment = {
        "HOME": str(home),
        "CLAUDE_CONFIG_DIR": str(home / "config"),
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "none",
        "ANTHROPIC_AUTH_TOKEN": "",
        "CLAUDE_CODE_OAUTH_TOKEN": "",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }
    given = {"allowed_tools": ["Read", "Bash", "Write"], "setting_sources": [], "max_turns": 3, **more}
    return ClaudeAgentOptions(cwd=work.place, env=environment, model="claude-test", hooks=hooks, **given)


async def messages_of(options: ClaudeAgentOptions) -> list[Any]:
    return [message async for message in query(prompt="go on", options=options)]


def asked(work: Workplace, home: Path, *calls: tuple[str, dict[str, Any]], beside: Any = None, **more: Any) -> Told:
    """Ask once. `beside` is a hook of somebody else's that runs before tools, too."""
    with serving(list(calls)) as api, AverHooks(work.run) as gated:
        hooks = gated.hooks
        if beside is not None:
            hooks["PreToolUse"].append(HookMatcher(hooks=[beside]))
        messages = asyncio.run(messages_of(options_for(work, api.url, home, hooks, **more)))
        return Told(api.told, messages)


def test_a_call_is_gated_made_and_recorded_once(work: Workplace, tmp_path: Path) -> None:
    told = asked(work, tmp_path / "user", ("Read", {"file_path": work.notes}))
    assert "buy milk" in told.texts[0]
    (action,) = work.run.actions
    assert (action.success, action.gate_decision, action.policy_verdict) == (True, "pass", "POLICY_ENFORCED")
    assert action.metadata == {"tool_name": "Read", "tool_call_id": "toolu_1", "library": "claude-agent-sdk"}
    assert work.decisions == ["pass"]
    work.hold_to_a_sound_run()


def test_a_refused_call_is_not_made_and_the_model_is_told(work: Workplace, tmp_path: Path) -> None:
    told = asked(work, tmp_path / "user", ("Bash", {"command": f"rm {work.notes}"}))
    assert told.results[0]["is_error"] is True
    work.hold_to_a_refusal(told.texts[0])


def test_a_failure_is_recorded(work: Workplace, tmp_path: Path) -> None:
    told = asked(work, tmp_path / "user", ("Read", {"file_path": work.missing}))
    assert told.results[0]["is_error"] is True
    (action,) = work.run.actions
    assert (action.success, action.gate_decision) == (False, "pass")
    assert action.metadata is not None
    assert action.metadata["error"]["type"] == "error"
    assert "does not exist" in action.metadata["error"]["text"]
    work.hold_to_a_sound_run()


def test_a_stream_of_partial_messages_records_once(work: Workplace, tmp_path: Path) -> None:
    async def main(options: ClaudeAgentOptions) -> list[str]:
        async with ClaudeSDKClient(options) as client:
            await client.query("go on")
            return [type(message).__name__ async for message in client.receive_response()]

    calls = [("Read", {"file_path": work.notes})] * 3 + [("Bash", {"command": f"rm {work.notes}"})]
    with serving(calls) as api, AverHooks(work.run) as gated:
        options = options_for(work, api.url, tmp_path / "user", gated.hooks, include_partial_messages=True)
        assert "StreamEvent" in asyncio.run(main(options))
    ids = [action.metadata["tool_call_id"] for action in work.run.actions if action.metadata]
    assert sorted(ids) == ["toolu_1", "toolu_2", "toolu_3"]
    assert sorted(work.decisions) == ["human_review", "pass", "pass", "pass"]
    work.hold_to_a_sound_run()


def test_what_cannot_be_recorded_stops_the_agent_and_raises(work: Workplace, tmp_path: Path) -> None:
    async def seal_the_run(*_: Any) -> dict[str, Any]:
        while f"gate.{work.run.run_id}" not in work.ledger.chains():  # The hooks run side by side: the gate goes first.
            await asyncio.sleep(0.01)
        work.run.finalize()
        return {}

    work.run.record_simple("observation", "first", {}, "")
    with pytest.raises(NotRecorded, match="Read"):
        asked(work, tmp_path / "user", ("Read", {"file_path": work.notes}), beside=seal_the_run)
    assert work.run.action_count == 1


def test_a_sealed_run_lets_nothing_through(work: Workplace, tmp_path: Path) -> None:
    work.run.record_simple("observation", "first", {}, "")
    work.run.finalize()
    with pytest.raises(Refused, match="sealed"):
        asked(work, tmp_path / "user", ("Write", {"file_path": work.missing, "content": "x"}))
    assert not Path(work.missing).exists()


def test_a_call_that_another_hook_changed_is_recorded_as_not_what_was_judged(work: Workplace, tmp_path: Path) -> None:
    (work.place / "other.txt").write_text("sell milk")

    async def change(*_: Any) -> dict[str, Any]:
        changed = {"file_path": str(work.place / "other.txt")}
        return {
            "hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": "allow",
                "updatedInput": changed,
            }
        }

    told = asked(work, tmp_path / "user", ("Read", {"file_path": work.notes}), beside=change)
    assert "sell milk" in told.texts[0]
    (action,) = work.run.actions
    assert action.input_hash == value_hash({"file_path": str(work.place / "other.txt")})
    assert action.policy_verdict is None
    work.run.finalize()
    verdict = work.run.verify()
    assert verdict.status == "failed"
    assert "differs from the gated action" in str(verdict.to_dict())


def test_a_call_that_other_permissions_deny_has_no_outcome(work: Workplace, tmp_path: Path) -> None:
    told = asked(work, tmp_path / "user", ("Bash", {"command": "pytest"}), allowed_tools=[])
    assert told.results[0]["is_error"] is True
    (action,) = work.run.actions
    assert (action.success, action.gate_decision) == (False, "pass")
    assert action.metadata is not None
    assert action.metadata["error"]["type"] == "OUTCOME_UNKNOWN"


@pytest.mark.parametrize("is_given", [True, False])
def test_a_declared_tool_of_an_own_server(work: Workplace, tmp_path: Path, is_given: bool) -> None:
    @tool("lookup_order", "Look an order up.", {"order": str})
    @aver.tool(effects=["read"])
    async def lookup_order(given: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": work.lookup_order(given["order"])}]}

    name = "mcp__shop__lookup_order"
    server = create_sdk_mcp_server("shop", tools=[lookup_order])
    own = {"shop": [lookup_order]} if is_given else None
    with serving([(name, {"order": "17"})]) as api, AverHooks(work.run, own_tools=own) as gated:
        options = options_for(
            work, api.url, tmp_path / "user", gated.hooks, allowed_tools=[name], mcp_servers={"shop": server}
        )
        asyncio.run(messages_of(options))
        (told,) = Told(api.told).texts
    assert work.decisions == ["pass" if is_given else "human_review"]
    assert work.made == (["lookup 17"] if is_given else [])
    assert ("order 17" if is_given else f"[gate.tools] {name}") in told


def test_hooks_that_only_observe_hold_nothing_back(work: Workplace, tmp_path: Path) -> None:
    with serving([("Bash", {"command": f"rm {work.notes}"})]) as api, AverHooks(work.run, enforce=False) as gated:
        asyncio.run(messages_of(options_for(work, api.url, tmp_path / "user", gated.hooks)))
    assert not Path(work.notes).exists()
    work.made.append(f"delete {work.notes}")  # The SDK's own shell did it.
    work.hold_to_one_observed_deletion()
