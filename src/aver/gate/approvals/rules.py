"""The approval rules: who may decide, how many must agree, and for how long. They are settings under `[approvals]`.

    [approvals]
    approvers = ["person:ada", "person:ben"]    the first level; default: everyone who is enrolled
    quorum = 1                                   how many of them must approve
    expires = 3600                               seconds until the request expires
    notify = "desktop"                           how people are told of a new request: "off", or a command

    [[approvals.levels]]                         the next level, and so on
    approvers = ["person:eve"]
    quorum = 1
    after = 600                                  seconds after which it may decide without an escalation

An unknown setting is an error: a mistyped quorum must not become a quorum of one.

**The system file**, `/etc/aver/approvals.toml`. The agent usually runs as the owner of `AVER_HOME`, and can write
everything there. If root or another user creates this file, it alone sets the approvers, their keys, the quorum and the
time. Aver then ignores `config.toml` and the roster in the ledger.

    approvers = ["person:ada", "person:ben"]
    quorum = 2
    expires = 3600

    [keys."person:ada"]
    public_key = "<64 hex digits>"
    custody = "passphrase"

Aver refuses a system file that the user could have written or replaced. It neither uses nor ignores it.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aver.capsule.json_document import check_object, int_field
from aver.config import read_toml
from aver.errors import BadInput, Refused, Unavailable
from aver.fast_dataclass import dataclass
from aver.gate.approvals.roster import Roster, approver_from_dict
from aver.keys.public_key import check_identity

EXPIRES_DEFAULT = 3600
EXPIRES_MAX = 7 * 86_400
"""Seconds that a request may stay open. After a week it is better to ask again."""

LEVELS_MAX = 8
"""Levels of approval."""

APPROVERS_MAX = 64
"""Approvers of one level: as many as can sign one statement."""

NOTIFY_MAX = 64
"""Words of the command that notifies."""

_RULE_KEYS = frozenset({"approvers", "quorum", "expires", "notify", "levels"})
_LEVEL_KEYS = frozenset({"approvers", "quorum", "after"})


@dataclass(frozen=True, slots=True)
class ApprovalLevel:
    """A group of approvers. Level 1 decides from the start, a later level `after` so many seconds."""

    approvers: tuple[str, ...]
    """Identities. In the settings, an empty list means everyone who is enrolled."""
    quorum: int = 1
    after: int = 0

    def to_dict(self) -> dict[str, Any]:
        return {"approvers": list(self.approvers), "quorum": self.quorum, "after": self.after}


@dataclass(frozen=True, slots=True)
class ApprovalRules:
    """The current settings."""

    levels: tuple[ApprovalLevel, ...] = (ApprovalLevel(()),)
    expires: int = EXPIRES_DEFAULT
    notify: tuple[str, ...] | None = None
    """The command to run; None for the desktop's own, empty for none."""


def read_approval_rules(table: Mapping[str, Any], where: str) -> ApprovalRules:
    """Read the rules from a table of settings. Raises BadInput with the setting that is wrong."""
    check_object(dict(table), where, frozenset(), _RULE_KEYS)
    expires = int_field(table.get("expires", EXPIRES_DEFAULT), f"{where}.expires", low=1, high=EXPIRES_MAX)
    first = {name: table[name] for name in ("approvers", "quorum") if name in table}
    further = table.get("levels", [])
    if not isinstance(further, list) or len(further) >= LEVELS_MAX:
        raise BadInput(f"{where}.levels must be a list of fewer than {LEVELS_MAX} tables")
    levels = [_parse_level(first, where)]
    _check_quorum(levels[0], where)
    for index, item in enumerate(further):
        place = f"{where}.levels[{index}]"
        level = _parse_level(check_object(item, place, frozenset({"approvers", "after"}), _LEVEL_KEYS), place)
        # A level that opens with another, or after the end, would never be what its writer meant.
        if not levels[-1].after < level.after < expires:
            words = f"{place}.after must lie between the level before it ({levels[-1].after}) and expires ({expires})"
            raise BadInput(words)
        if not level.approvers:
            raise BadInput(f"{place}.approvers is empty")
        _check_quorum(level, place)
        levels.append(level)
    return ApprovalRules(tuple(levels), expires, _parse_notify(table.get("notify", DESKTOP), where))


DESKTOP, OFF = "desktop", "off"


def _parse_notify(value: Any, where: str) -> tuple[str, ...] | None:
    """Return the command that tells people; None for the desktop's own, empty for none."""
    if value in (DESKTOP, OFF):
        return None if value == DESKTOP else ()
    if not isinstance(value, list) or len(value) > NOTIFY_MAX:
        raise BadInput(
            f'{where}.notify must be "{DESKTOP}", "{OFF}", or a list: a program and its arguments',
            advice="it is run without a shell",
        )
    for part in value:
        if not isinstance(part, str) or "\0" in part:
            raise BadInput(f"{where}.notify must hold texts only")
    return tuple(value)


def _check_quorum(level: ApprovalLevel, where: str) -> None:
    if 0 < len(level.approvers) < level.quorum:
        raise BadInput(f"{where}.quorum asks for {level.quorum} of {len(level.approvers)} approvers")


def level_from_dict(data: Any, where: str) -> ApprovalLevel:
    """Read a level of a recorded request. It lists only enrolled approvers, who may be fewer than the quorum."""
    return _parse_level(check_object(data, where, _LEVEL_KEYS), where)


def _parse_level(table: Mapping[str, Any], where: str) -> ApprovalLevel:
    listed = table.get("approvers", [])
    if not isinstance(listed, list) or len(listed) > APPROVERS_MAX:
        raise BadInput(f"{where}.approvers must be a list of at most {APPROVERS_MAX} people")
    approvers = tuple(check_identity(name) for name in listed)
    for name in approvers:
        # An agent's or a service's key cannot approve, even if it is on the ring.
        if not name.startswith("person:"):
            raise BadInput(f"{where}.approvers: {name} is not a person", advice="only person:NAME can approve")
    if len(set(approvers)) < len(approvers):
        raise BadInput(f"{where}.approvers names someone twice")
    quorum = int_field(table.get("quorum", 1), f"{where}.quorum", low=1, high=APPROVERS_MAX)
    after = int_field(table.get("after", 0), f"{where}.after", low=0, high=EXPIRES_MAX)
    return ApprovalLevel(approvers, quorum, after)


SYSTEM_FILE = Path("/etc/aver/approvals.toml")

_WRITABLE_BY_OTHERS = 0o022


def read_system_file(path: Path | None = None) -> tuple[ApprovalRules, Roster] | None:
    """Read the rules and the roster of the system file. Returns None if there is no file."""
    path = path or SYSTEM_FILE
    # The check gets the status of the opened file, not of another file that gets its name later.
    table = read_toml(path, lambda status: _check_not_writable(str(path), status))
    if table is None:
        return None
    # A user who may write a directory above the file could replace the file.
    for directory in path.parents:
        try:
            _check_not_writable(str(directory), os.stat(directory))
        except OSError as error:
            raise Unavailable(f"cannot look at {directory}: {error.strerror}") from error
    keys = table.pop("keys", None)
    if not isinstance(keys, dict) or not keys:
        raise BadInput(f"{path}: keys must be a table of people and their keys")
    roster = Roster(anchor="system")
    for identity, data in keys.items():
        approver = approver_from_dict(identity, data, f"{path}: keys.{identity}")
        # A mistyped key would never verify. It is better to find that now.
        approver.key.check_usable()
        if any(approver.fingerprint == other.fingerprint for other in roster.approvers.values()):
            raise BadInput(f"{path}: two people have the key {approver.fingerprint}")
        roster = roster.with_approver(approver, "")
    return read_approval_rules(table, str(path)), roster


def approvals_to_toml(rules: ApprovalRules, roster: Roster) -> str:
    """Return a system file with these rules and this roster."""
    first, *further = rules.levels
    lines = [f"approvers = {_toml_list(first.approvers)}"] if first.approvers else []
    lines += [f"quorum = {first.quorum}", f"expires = {rules.expires}"]
    if rules.notify is not None:
        lines.append(f"notify = {_toml_list(rules.notify)}")
    for level in further:
        lines += ["\n[[levels]]", f"approvers = {_toml_list(level.approvers)}"]
        lines += [f"quorum = {level.quorum}", f"after = {level.after}"]
    for identity, approver in roster.approvers.items():
        lines.append(f'\n[keys."{identity}"]')
        lines += [f"{name} = {_toml_value(value)}" for name, value in approver.to_dict().items() if value]
    return "\n".join(lines) + "\n"


def _toml_list(values: tuple[str, ...]) -> str:
    return f"[{', '.join(map(_toml_string, values))}]"


def _toml_value(value: str | dict[str, str]) -> str:
    """Return a string, or the table of a passkey in one line."""
    if isinstance(value, str):
        return _toml_string(value)
    return f"{{ {', '.join(f'{name} = {_toml_string(text)}' for name, text in value.items())} }}"


def _toml_string(value: str) -> str:
    """Return a basic string of TOML. Its escapes are those of JSON."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _check_not_writable(name: str, status: os.stat_result) -> None:
    """Refuse a file or directory that this user could write or replace. Root can write everything, so it is exempt."""
    own = os.geteuid()
    if own != 0 and status.st_uid == own:
        raise Refused("UNSAFE_FILE", f"{name} belongs to the user it is to bind", advice=f"run: sudo chown root {name}")
    # In a sticky directory such as /tmp, a user cannot move or replace files of others.
    keeps = stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX
    if status.st_mode & _WRITABLE_BY_OTHERS and not keeps:
        raise Refused("UNSAFE_FILE", f"{name} can be written by others", advice=f"run: sudo chmod go-w {name}")
