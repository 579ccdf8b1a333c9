"""The names of agents' tools and files as one value: how they are joined, and which version a decision carries."""

from __future__ import annotations

from typing import Any

import pytest

from aver import Ledger
from aver.agents.registry import AGENTS, load_agent, load_known_agents
from aver.errors import BadInput
from aver.gate.action import Action, Facts
from aver.gate.decide import Gate, decide
from aver.gate.decision_record import build_decision_draft
from aver.gate.effects.arguments import READS, RUNS, WRITES
from aver.gate.effects.effects import find_effects
from aver.gate.effects.known_agents import NO_AGENTS, AgentNames, build_known_agents
from aver.gate.policy.bundle import load_policy_bundle
from aver.gate.replay import replay_decision

NOW = Facts(now="2026-01-05T09:00:00+00:00")
READ = Action(type="tool_call", tool="Read", arguments={"file_path": "src/a.py"}, workspace="/work")


@pytest.mark.parametrize("name", AGENTS)
def test_every_agent_names_its_tools_and_the_directory_of_its_settings(name: str) -> None:
    names = load_agent(name).load_names()
    assert names.tools
    assert "agent-config" in names.directories


def test_names_are_compared_without_case_hyphens_and_underscores() -> None:
    known = build_known_agents([AgentNames(tools={WRITES: "write_file"})])
    assert {known.find_profile(name) for name in ("WriteFile", "write-file", "WRITE.FILE")} == {WRITES}
    assert known.find_profile("mcp__files__write_file") is None


def test_agents_may_share_a_tool_but_not_differ_about_it() -> None:
    build_known_agents([AgentNames(tools={READS: "view"}), AgentNames(tools={READS: "View"})])
    with pytest.raises(BadInput, match="'view'"):
        build_known_agents([AgentNames(tools={READS: "view"}), AgentNames(tools={RUNS: "View"})])


def test_without_agents_every_tool_may_do_anything() -> None:
    assert find_effects(READ, NOW, known=NO_AGENTS).classes == {"unknown", "read"}
    assert find_effects(READ, NOW, known=load_known_agents()).classes == {"read"}


def test_a_value_that_is_given_is_used_for_paths_and_commands_too() -> None:
    known = build_known_agents([AgentNames(tools={RUNS: "run"}, files={"agent-config": "rules.txt"})])
    action = Action(type="shell_exec", tool="run", arguments={"command": "echo x > rules.txt"}, workspace="/work")
    assert "agent-config" in find_effects(action, NOW, known=known).classes
    assert "agent-config" not in find_effects(action, NOW, known=NO_AGENTS).classes


def test_the_version_follows_from_the_tables_alone() -> None:
    one, two = (build_known_agents([AgentNames(tools={READS: names})]) for names in ("a b", "b a"))
    assert one.effects_version == two.effects_version
    others = [
        AgentNames(tools={READS: "a"}),
        AgentNames(tools={RUNS: "a b"}),
        AgentNames(tools={READS: "a b"}, mcp_callers="c"),
        AgentNames(tools={READS: "a b"}, files={"secret": "c"}),
        AgentNames(tools={READS: "a b"}, pairs={"secret": "c/d"}),
        AgentNames(tools={READS: "a b"}, directories={"secret": "c"}),
        AgentNames(tools={READS: "a b"}, variables="C"),
    ]
    versions = {build_known_agents([names]).effects_version for names in others}
    assert len(versions) == len(others)
    assert one.effects_version not in versions


def sealed(known: Any) -> tuple[dict[str, Any], Any]:
    """The content of a decision's record, and how its blobs are read."""
    gate = Gate(bundle=load_policy_bundle(), known=known)
    draft, blobs = build_decision_draft(READ, NOW, gate, decide(READ, NOW, gate))
    return draft.to_dict(), {blob.digest: blob.data for blob in blobs}.__getitem__


def test_a_decision_of_another_version_is_not_checked_and_not_forged() -> None:
    content, blob = sealed(load_known_agents())
    assert content["outcome"]["result"]["effects_version"] == load_known_agents().effects_version
    assert replay_decision(content, blob).status == "same"
    assert replay_decision(content, blob, NO_AGENTS).status == "not_checked"
    content["outcome"]["result"]["effects_version"] = "0.0000000000000000"
    assert replay_decision(content, blob).status == "not_checked"


def test_an_old_decision_without_a_version_is_not_called_forged() -> None:
    """It is of an earlier version, whose tables may have said something else."""
    content, blob = sealed(load_known_agents())
    del content["outcome"]["result"]["effects_version"]
    assert replay_decision(content, blob).status == "not_checked"
    # The decision must still follow from what policy answered then.
    content["outcome"]["result"]["decision"] = "human_review"
    assert replay_decision(content, blob).status == "other"


def test_another_version_excuses_no_digest_that_is_not_the_actions() -> None:
    content, blob = sealed(load_known_agents())
    result = content["outcome"]["result"]
    result["effects_version"] = "0.0000000000000000"
    result["action"]["tool"] = "Write"
    assert replay_decision(content, blob).status == "other"


def test_a_ledger_counts_decisions_of_another_version(ledger: Ledger) -> None:
    from aver.gate.decision_record import seal_decision

    gate = Gate(bundle=load_policy_bundle(), known=NO_AGENTS)
    seal_decision(ledger, READ, NOW, gate, decide(READ, NOW, gate))
    verdict = ledger.verify()
    assert verdict.status != "failed"
    [check] = [one for one in verdict.checks if one.name == "decisions"]
    assert "another version" in str(check)
