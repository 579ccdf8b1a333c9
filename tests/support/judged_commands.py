"""Decides about a command as `aver.ask` does, with what lies on the disk, and without a ledger."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path

from aver.agents.registry import load_known_agents
from aver.gate.action import Action, Facts
from aver.gate.decide import Gate, decide
from aver.gate.decision import Caution, Decision
from aver.gate.effects.effects import find_effects
from aver.gate.effects.paths import build_path_roots
from aver.gate.facts.surroundings import gather_disk_facts, look_at_file
from aver.gate.policy.bundle import load_policy_bundle

HOME = "/home/me"


@cache
def starter_gate(caution: Caution = "balanced") -> Gate:
    return Gate(bundle=load_policy_bundle(), known=load_known_agents(), caution=caution)


def judge(
    command: str, workspace: Path | str, *, caution: Caution = "balanced", unseen: tuple[str, ...] = ()
) -> Decision:
    """Decide about a command in a workspace on the disk. `unseen` are files that the session changed unseen."""
    gate = starter_gate(caution)
    action = Action(
        type="shell_exec", tool="Bash", arguments={"command": command}, workspace=str(workspace), caller="agent"
    )
    environment = {"HOME": HOME, "AVER_HOME": f"{HOME}/.aver"}
    facts = Facts(now="2026-01-05T09:00:00+00:00", environment=environment, unseen=unseen)
    effects = find_effects(action, facts, known=gate.known)
    roots = build_path_roots(action.workspace, environment, gate.known)
    facts = gather_disk_facts(action, facts, effects, gate, partial(look_at_file, roots=roots)).facts
    return decide(action, facts, gate)


def write_files(workspace: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def list_passing(commands: tuple[str, ...], workspace: Path | str, caution: Caution = "balanced") -> list[str]:
    return [command for command in commands if judge(command, workspace, caution=caution).decision == "pass"]


def list_asking(commands: tuple[str, ...], workspace: Path | str) -> list[str]:
    return [command for command in commands if judge(command, workspace).decision != "pass"]
