"""What is known at one point of a script, and how that changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from aver.fast_dataclass import dataclass
from aver.gate.effects.paths import PathRoots, locate_path
from aver.gate.shell.model import Word

__all__ = ["ShellState", "StatesAfter", "change_directory", "merge_states"]

CWDS_MAX = 8
"""Directories that a script may be in at one point. Beyond that it is anywhere."""


@dataclass(frozen=True, slots=True)
class ShellState:
    """The directories that a script may be in, and what its variables hold."""

    cwds: tuple[str | None, ...]
    """None stands for a directory that is not known."""
    variables: Mapping[str, Word] = field(default_factory=dict)


StatesAfter = tuple[ShellState | None, ShellState | None]
"""The state after success and after failure; None where it does not come to that."""


def merge_states(one: ShellState | None, other: ShellState | None) -> ShellState | None:
    """What holds whichever of two ways was taken."""
    if one is None or other is None or one is other:
        return one or other
    cwds = tuple(dict.fromkeys((*one.cwds, *other.cwds)))
    if one.variables is other.variables:
        variables = one.variables
    else:
        variables = {name: word for name, word in one.variables.items() if other.variables.get(name) == word}
    return ShellState(cwds if len(cwds) <= CWDS_MAX else (None,), variables)


def change_directory(state: ShellState, target: Word | None, ground: PathRoots) -> StatesAfter:
    """The states after `cd`: in the directory, or where it was before if that failed."""
    if target is None:
        values: tuple[str, ...] = ("~",)
    elif target.is_known and not target.is_pattern and "-" not in target.values:
        values = target.values
    else:
        return replace(state, cwds=(None,)), state
    cwds: list[str | None] = []
    for value in values:
        for cwd in state.cwds:
            place = locate_path(value, cwd, ground)
            cwds.append(place.path if place.where != "unknown" else None)
    unique = tuple(dict.fromkeys(cwds))
    return replace(state, cwds=unique if len(unique) <= CWDS_MAX else (None,)), state
