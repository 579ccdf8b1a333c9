"""`aver mcp --trace T --as agent:x`: the official client gets the tools of one role, and no others."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from support.mcp_clients import ask, talk
from support.protocol_sessions import claim_count, open_session, reach_claiming

pytestmark = pytest.mark.more


async def names(client: Client) -> set[str]:
    return {tool.name for tool in (await client.list_tools()).tools}


def options(trace: str, agent: str) -> tuple[str, ...]:
    return ("--trace", trace, "--as", agent)


def test_a_role_has_its_own_tools_alone(tmp_path: Path) -> None:
    with open_session(tmp_path, trace="one", task={"objective": "look"}):
        pass
    common = {"view", "read_artifact"}
    wanted = {
        "agent:planner": {"proposal_created", "claim_revised"},
        "agent:critic": {"proposal_reviewed", "intent_reviewed", "claim_challenged", "challenge_resolved"},
        "agent:executor": {
            *("tool_intent_signed", "artifact_recorded", "claim_issued", "claim_revised", "final_statement_signed"),
            "run_intent",
        },
        "agent:auditor": {"audit"},
    }
    for agent, own in wanted.items():
        assert talk(tmp_path, names, *options("one", agent)) == common | own


def test_a_critic_challenges_over_mcp(tmp_path: Path) -> None:
    with open_session(tmp_path, trace="one", task={"objective": "look"}) as session:
        reach_claiming(session)
        claim_count(session)

        async def criticise(client: Client) -> dict[str, Any]:
            view = (await ask(client, "view"))["view"]
            assert (view["role"], view["state"]) == ("critic", "claiming")
            claim = view["claims"][0]
            read = await ask(client, "read_artifact", digest=claim["evidence"][0]["artifact"])
            assert read["text"] == "3 passed"
            refused = await client.call_tool("read_artifact", {"digest": "0" * 64})
            assert refused.is_error
            wrong = await client.call_tool("claim_challenged", {"reason": "", "evidence": [], "refs": {}})
            assert wrong.is_error
            return await ask(client, "claim_challenged", reason="why?", evidence=[], refs={"claim": claim["id"]})

        done = talk(tmp_path, criticise, *options("one", "agent:critic"))
        session.catch_up()
        assert session.events[-1].id == done["id"]
        assert session.events[-1].agent == "agent:critic"


def test_an_executor_works_over_mcp(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("buy milk\n")
    with open_session(tmp_path, trace="one", task={"objective": "look"}) as session:
        proposal = session.planner.propose("read the notes")
        session.critic.review(proposal.id, "approved", rationale="harmless")

        async def work(client: Client) -> dict[str, Any]:
            call = {"tool": "read_file", "arguments": {"path": "notes.txt"}, "justification": "to read it"}
            given = {**call, "refs": {"proposal": proposal.id}}
            intent = (await client.call_tool("tool_intent_signed", given)).structured_content
            assert intent is not None
            end = await ask(client, "run_intent", intent=intent["id"])
            assert end["event"] == "tool_execution_completed"
            digest = end["payload"]["output"]["content"]["blob"]["digest"]
            evidence = [{"artifact": digest, "check": {"text": {"contains": "milk"}}}]
            claim = {"text": "milk is on the list", "confidence": 1, "about": "success", "evidence": evidence}
            await ask(client, "claim_issued", **claim, refs={"proposal": proposal.id})
            await ask(client, "artifact_recorded", name="remark.txt", text="done by hand")
            return await ask(client, "final_statement_signed", text="done")

        done = talk(tmp_path, work, *options("one", "agent:executor"))
        assert done["state"] == "auditing"


def test_who_has_no_part_gets_no_server(tmp_path: Path) -> None:
    import subprocess

    from support.mcp_clients import COMMAND, environment

    with open_session(tmp_path, trace="one", task={"objective": "look"}):
        pass
    for words in (
        ["--trace", "one", "--as", "agent:mallory"],
        ["--trace", "two", "--as", "agent:critic"],
        ["--trace", "one"],
        ["--as", "agent:critic"],
        ["--trace", "one", "--as", "agent:critic", "--http"],
    ):
        done = subprocess.run(
            [COMMAND, "mcp", *words], env={**os.environ, **environment()}, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout) == (2, ""), words
