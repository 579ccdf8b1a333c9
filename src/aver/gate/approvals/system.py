"""Rules and approvers that the agent's own user cannot change: `/etc/aver/approvals.toml`.

Everything under `AVER_HOME` can be written by whoever runs as its owner, and so by the agent. Where root (or another
user) puts this file, it alone says who may approve, with which keys, how many and for how long; `config.toml` and the
ledger's own roster are not asked.

    approvers = ["person:ada", "person:ben"]
    quorum = 2
    expires = 3600

    [keys."person:ada"]
    public_key = "<64 hex digits>"
    custody = "passphrase"

A file that the user could have written or replaced is refused, rather than believed or passed over.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from aver.errors import BadInput, Refused, Unavailable
from aver.gate.approvals.roster import Roster, approver_from_dict
from aver.gate.approvals.rules import Rules, read_rules
from aver.home import read_table

__all__ = ["SYSTEM_FILE", "as_toml", "read_system_file"]

SYSTEM_FILE = Path("/etc/aver/approvals.toml")

_OTHERS_WRITE = 0o022


def read_system_file(path: Path | None = None) -> tuple[Rules, Roster] | None:
    """The rules and the roster in the file, or None if there is none."""
    path = path or SYSTEM_FILE
    table = read_table(path, lambda status: _check_out_of_reach(str(path), status))
    if table is None:
        return None
    for directory in path.parents:
        try:
            _check_out_of_reach(str(directory), os.stat(directory))
        except OSError as error:
            raise Unavailable(f"cannot look at {directory}: {error.strerror}") from error
    keys = table.pop("keys", None)
    if not isinstance(keys, dict) or not keys:
        raise BadInput(f"{path}: keys must be a table of people and their keys")
    roster = Roster(anchor="system")
    for identity, data in keys.items():
        approver = approver_from_dict(identity, data, f"{path}: keys.{identity}")
        approver.key.check_usable()
        if any(approver.fingerprint == other.fingerprint for other in roster.approvers.values()):
            raise BadInput(f"{path}: two people have the key {approver.fingerprint}")
        roster = roster.with_approver(approver, "")
    return read_rules(table, str(path)), roster


def as_toml(rules: Rules, roster: Roster) -> str:
    """The file that fixes what is in force now."""
    return "\n".join([*_lines(rules), *_key_lines(roster)]) + "\n"


def _lines(rules: Rules) -> Iterator[str]:
    first, *further = rules.levels
    if first.approvers:
        yield f"approvers = {_texts(first.approvers)}"
    yield f"quorum = {first.quorum}"
    yield f"expires = {rules.expires}"
    if rules.notify is not None:
        yield f"notify = {_texts(rules.notify)}"
    for level in further:
        yield "\n[[levels]]"
        yield f"approvers = {_texts(level.approvers)}"
        yield f"quorum = {level.quorum}"
        yield f"after = {level.after}"


def _key_lines(roster: Roster) -> Iterator[str]:
    for identity, approver in roster.approvers.items():
        yield f'\n[keys."{identity}"]'
        yield from (f"{name} = {_text(value)}" for name, value in _named(approver.to_dict()).items())


def _named(values: Mapping[str, Any]) -> dict[str, str]:
    return {name: value for name, value in values.items() if value}


def _texts(values: tuple[str, ...]) -> str:
    return f"[{', '.join(map(_text, values))}]"


def _text(value: str) -> str:
    """A basic string of TOML; its escapes are those of JSON."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _check_out_of_reach(name: str, status: os.stat_result) -> None:
    """Refuse what this user could write, or put another in the place of. For root there is no such thing."""
    own = os.geteuid()
    if own != 0 and status.st_uid == own:
        raise Refused("UNSAFE_FILE", f"{name} belongs to the user it is to bind", advice=f"run: sudo chown root {name}")
    # In a sticky directory, such as /tmp, nobody can move away what is another's.
    keeps = stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX
    if status.st_mode & _OTHERS_WRITE and not keeps:
        raise Refused("UNSAFE_FILE", f"{name} can be written by others", advice=f"run: sudo chmod go-w {name}")
