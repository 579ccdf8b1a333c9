"""A fifth coding agent, for tests: one folder with all that Aver must know of it.

Its transcripts are those of `jsonl_tool`. Its hook `before` asks and `after` reports; its settings are one JSON file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aver.agents.agent import Agent
from aver.files.user_dirs import UserEnvironment
from aver.gate.effects.arguments import READS, RUNS
from aver.gate.effects.known_agents import AgentNames
from aver.hooks.action import build_action
from aver.hooks.contract import Hook, HookReply, ParsedPayload, event_from_payload
from aver.install.client import Client, ServerPlace
from aver.install.hooks import HookList
from support.agents.jsonl_tool import ADAPTER, TOOL, call, done, write


def read_event(event: str, payload: Mapping[str, Any]) -> ParsedPayload:
    session = str(payload["session"])
    if event == "before":
        action = build_action(
            payload["tool"], payload["in"], agent=TOOL, session=session, workspace=payload["workspace"]
        )
        return ParsedPayload(session, asks=action)
    return ParsedPayload(session, events=(event_from_payload(event, "ticked", payload),))


HOOK = Hook(
    tool=TOOL,
    gating=frozenset({"before"}),
    asks_person=frozenset({"before"}),
    identify=lambda payload: (str(payload["session"]), str(payload.get("call", ""))),
    read=read_event,
    reply=lambda event, decision: HookReply(json.dumps({"answer": decision.word, "why": decision.reason})),
    done=lambda event: HookReply("{}"),
    failed=lambda event, why: HookReply(code=1),
    stop=lambda event, why: HookReply(json.dumps({"answer": "stop"})),
)


def find_servers(around: UserEnvironment) -> list[ServerPlace]:
    return [ServerPlace(TOOL, around.home / ".ticker" / "settings.json", "json", ("servers",))]


def find_hooks(around: UserEnvironment) -> list[HookList]:
    path = around.home / ".ticker" / "settings.json"
    return [
        HookList(
            client=TOOL,
            path=path,
            form="json",
            events=("before", "after"),
            gating=frozenset({"before"}),
            build_item=lambda event, command: {"command": command},
        )
    ]


def write_demo(around: UserEnvironment) -> Path:
    path = around.home / "ticks" / "s1.jsonl"
    write(path, {"say": "list the files"}, call("c1"), done("c1"))
    return path


AGENT = Agent(
    name=TOOL,
    title="Ticker",
    load_adapter=lambda: ADAPTER,
    load_hook=lambda: HOOK,
    load_client=lambda: Client(name=TOOL, find_servers=find_servers, find_hooks=find_hooks),
    load_names=lambda: AgentNames(
        tools={RUNS: "tick_run", READS: "tick_read"},
        directories={"agent-config": ".ticker"},
        files={"agent-config": "ticker.md"},
        variables="TICKER",
    ),
    write_demo=write_demo,
)

__all__ = ["AGENT"]
