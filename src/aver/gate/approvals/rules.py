"""Who may decide, how many of them, and for how long: the settings under `[approvals]`.

    [approvals]
    approvers = ["person:ada", "person:ben"]    who decides first; left out, everyone who is enrolled
    quorum = 1                                   how many of them
    expires = 3600                               seconds; then it is denied
    notify = ["notify-send", "Aver"]             a command for each new request; [] for none

    [[approvals.levels]]                         the next level, and so on
    approvers = ["person:eve"]
    quorum = 1
    after = 600                                  seconds until it may decide without being asked

A setting that is not understood is an error and not left aside: a mistyped quorum must not become a quorum of one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aver.errors import BadInput
from aver.keys.document import int_field, shape
from aver.keys.identity import check_identity
from aver.values import dataclass

__all__ = ["EXPIRES_MAX", "Level", "Rules", "level_from_dict", "read_rules"]

EXPIRES_DEFAULT = 3600
EXPIRES_MAX = 7 * 86_400
"""Seconds a request may stay open. What nobody looked at for a week is better asked again."""

LEVELS_MAX = 8
"""Levels of approval; an organisation with more of them will not notice the difference."""

APPROVERS_MAX = 64
"""Approvers of one level: as many as can sign one statement."""

NOTIFY_MAX = 64
"""Parts of a command that notifies."""

_TOP = frozenset({"approvers", "quorum", "expires", "notify", "levels"})
_LEVEL = frozenset({"approvers", "quorum", "after"})


@dataclass(frozen=True, slots=True)
class Level:
    """Those who decide together. Level 1 decides from the beginning, a later one `after` so many seconds."""

    approvers: tuple[str, ...]
    """Identities; none, in the settings, means everyone who is enrolled."""
    quorum: int = 1
    after: int = 0

    def to_dict(self) -> dict[str, Any]:
        return {"approvers": list(self.approvers), "quorum": self.quorum, "after": self.after}


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings in force."""

    levels: tuple[Level, ...] = (Level(()),)
    expires: int = EXPIRES_DEFAULT
    notify: tuple[str, ...] | None = None
    """The command to run; None for the desktop's, empty for none."""


def read_rules(table: Mapping[str, Any], where: str) -> Rules:
    """The rules that a table of settings gives; `BadInput` names what is wrong in it."""
    shape(dict(table), where, frozenset(), _TOP)
    expires = int_field(table.get("expires", EXPIRES_DEFAULT), f"{where}.expires", low=1, high=EXPIRES_MAX)
    first = {name: table[name] for name in ("approvers", "quorum") if name in table}
    further = table.get("levels", [])
    if not isinstance(further, list) or len(further) >= LEVELS_MAX:
        raise BadInput(f"{where}.levels must be a list of fewer than {LEVELS_MAX} tables")
    levels = [_level(first, where)]
    _check_quorum(levels[0], where)
    for index, item in enumerate(further):
        place = f"{where}.levels[{index}]"
        level = _level(shape(item, place, frozenset({"approvers", "after"}), _LEVEL), place)
        if not levels[-1].after < level.after < expires:
            words = f"{place}.after must lie between the level before it ({levels[-1].after}) and expires ({expires})"
            raise BadInput(words)
        if not level.approvers:
            raise BadInput(f"{place}.approvers names nobody")
        _check_quorum(level, place)
        levels.append(level)
    return Rules(tuple(levels), expires, _notify(table, where))


def _check_quorum(level: Level, where: str) -> None:
    if 0 < len(level.approvers) < level.quorum:
        raise BadInput(f"{where}.quorum asks for {level.quorum} of {len(level.approvers)} approvers")


def level_from_dict(data: Any, where: str) -> Level:
    """A level as a request records it: with those of its approvers who were enrolled, be they too few."""
    return _level(shape(data, where, _LEVEL), where)


def _level(table: Mapping[str, Any], where: str) -> Level:
    listed = table.get("approvers", [])
    if not isinstance(listed, list) or len(listed) > APPROVERS_MAX:
        raise BadInput(f"{where}.approvers must be a list of at most {APPROVERS_MAX} people")
    approvers = tuple(check_identity(one) for one in listed)
    for one in approvers:
        if not one.startswith("person:"):
            raise BadInput(f"{where}.approvers: {one} is not a person", advice="only person:NAME can approve")
    if len(set(approvers)) < len(approvers):
        raise BadInput(f"{where}.approvers names someone twice")
    quorum = int_field(table.get("quorum", 1), f"{where}.quorum", low=1, high=APPROVERS_MAX)
    after = int_field(table.get("after", 0), f"{where}.after", low=0, high=EXPIRES_MAX)
    return Level(approvers, quorum, after)


def _notify(table: Mapping[str, Any], where: str) -> tuple[str, ...] | None:
    if "notify" not in table:
        return None
    command = table["notify"]
    if not isinstance(command, list) or len(command) > NOTIFY_MAX:
        raise BadInput(
            f"{where}.notify must be a list: a program and its arguments", advice="it is run without a shell"
        )
    for part in command:
        if not isinstance(part, str) or "\0" in part:
            raise BadInput(f"{where}.notify must hold texts only")
    return tuple(command)
