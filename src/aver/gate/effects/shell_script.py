"""Judges a whole shell script that a command would run, by the same reader that judges commands.

A script is routine if every part of it is understood, and only reads, arranges or builds inside the workspace. Scripts
that start other scripts are not: Aver looks into one file, not into all that it leads to. Nor are scripts that take
files out of git: the session's memory would not know of it.
"""

from __future__ import annotations

from collections.abc import Mapping

from aver.gate.effects.git_moves import find_git_moves
from aver.gate.effects.known_agents import KnownAgents
from aver.gate.effects.paths import build_path_roots
from aver.gate.effects.routine_commands import mark_routine_effects

ROUTINE = frozenset({"read", "arrange", "build"})
"""Effects that a script may have. The starter rules let a command with these pass."""


def explain_script(
    text: str, cwd: str, workspace: str, environment: Mapping[str, str], known: KnownAgents | None = None
) -> str:
    """Return what about a script is not routine, in words; empty if all of it is."""
    from aver.gate.shell.understand import understand  # Not above: it loads the tables of programs.

    analysis = understand(text, cwd=cwd, workspace=workspace, env=environment, known=known)
    if "restore" in find_git_moves(analysis.commands):
        return "it takes files out of git, which nobody may have seen"
    if analysis.unclear:
        return f"part of it could not be understood: {analysis.unclear[0].why}"
    for effect in mark_routine_effects(analysis, build_path_roots(workspace, None, known)):
        shown = " ".join(effect.words)[:80]
        if effect.name not in ROUTINE:
            return f"it does more than read and build: {effect.name} ({shown})"
        if effect.where and (effect.where not in ("workspace", "temporary") or effect.classes):
            return f"it reaches outside the workspace, or guarded files ({shown})"
    return ""
