"""The state of a shell at one point of a script: possible directories and known variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from aver.fast_dataclass import dataclass
from aver.gate.effects.paths import PathRoots, locate_path
from aver.gate.shell.model import Word

__all__ = ["ShellState", "StatesAfter", "change_directory", "merge_states"]

CWDS_MAX = 8
"""Directories that a script may be in at one point. With more, the directory counts as unknown."""


@dataclass(frozen=True, slots=True)
class ShellState:
    """The directories that a script may be in, and the values of its variables."""

    cwds: tuple[str | None, ...]
    """None stands for an unknown directory."""
    variables: Mapping[str, Word] = field(default_factory=dict)


StatesAfter = tuple[ShellState | None, ShellState | None]
"""The state after success and the state after failure. None means that this end is never reached."""


def merge_states(left: ShellState | None, right: ShellState | None) -> ShellState | None:
    """Return what holds after either of two ways: all directories of both, only the variables they agree on."""
    if left is None or right is None or left is right:
        return left or right
    cwds = tuple(dict.fromkeys((*left.cwds, *right.cwds)))
    if left.variables is right.variables:
        variables = left.variables
    else:
        variables = {name: word for name, word in left.variables.items() if right.variables.get(name) == word}
    return ShellState(cwds if len(cwds) <= CWDS_MAX else (None,), variables)


def change_directory(state: ShellState, target: Word | None, path_roots: PathRoots) -> StatesAfter:
    """Return the states after `cd`: the new directory on success, the old one on failure."""
    if target is None:
        values: tuple[str, ...] = ("~",)  # `cd` alone goes home
    elif target.is_known and not target.is_pattern and "-" not in target.values:
        values = target.values
    else:  # `cd -`, a pattern or an unknown word
        return replace(state, cwds=(None,)), state
    cwds: list[str | None] = []
    for value in values:
        for cwd in state.cwds:
            place = locate_path(value, cwd, path_roots)
            cwds.append(place.path if place.where != "unknown" else None)
    unique = tuple(dict.fromkeys(cwds))
    return replace(state, cwds=unique if len(unique) <= CWDS_MAX else (None,)), state
