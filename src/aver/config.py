"""Aver's home directory and its settings.

`AVER_HOME` (default `~/.aver`, mode 0700) holds:

    config.toml        settings, all optional
    keys/              private keys (0600), the store's lock
    keyring.json       our public keys, by identity and epoch
    known_keys.json    other people's public keys, by fingerprint; known_keys_pq.json their post-quantum halves
    ledger.db          the ledger, with ledger.db.lock beside it
    gate-sessions/     what the gate remembers of sessions between two decisions
    seen.json          the newest heads that this machine has seen
    verified/          how far this machine has verified each ledger's chains
    index.db           the Explorer's index: derived, may be deleted at any time
    protocol/          traces of the protocol: locks of running calls, heads that were seen

A flag overrides the environment, the environment overrides `config.toml`, and `config.toml` overrides the defaults.
Only `ensure_home` creates a directory, so commands that only read leave no traces.

An administrator can pin the gate's rules for all users of a machine, in `/etc/aver/config.toml`:

    [gate]
    policy = "/etc/aver/policy"

It overrides `[gate] policy` of every user. Aver refuses a file there that root does not own, or that others may write.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from aver.errors import BadInput, Refused, Unavailable, find_machine_fault
from aver.fast_dataclass import dataclass
from aver.files.atomic import make_directory
from aver.files.regular import NotRegularFile, open_regular, read_limited
from aver.lazy_pattern import lazy_pattern

CONFIG_MAX = 256 * 1024
"""Largest settings file, in bytes. No real one is this big."""

CONFIG_NAME = "config.toml"

SYSTEM_CONFIG = Path("/etc/aver/config.toml")
"""The settings of the machine's administrator."""

SYSTEM_OWNER = 0
"""The user id that must own them: root's."""

POLICY_SOURCE = "gate.policy"
"""The name in `Config.source` under which `[gate] policy` says where it came from."""

LEDGER_ENV = "AVER_LEDGER"
HOME_ENV = "AVER_HOME"


@dataclass(frozen=True, slots=True)
class Config:
    """The settings in force. `source` says, for each setting, where its value came from."""

    home: Path
    ledger: str
    tenant: str
    post_quantum: bool
    lock_timeout: float
    approvals: Mapping[str, Any]
    """The table `[approvals]` as written; `aver.gate.approvals.rules` reads it."""
    gate: Mapping[str, Any]
    """The table `[gate]` as written; `aver.gate.settings` reads it."""
    hooks: Mapping[str, Any]
    """The table `[hooks]` as written; `aver.hooks.settings` reads it."""
    gateway: Mapping[str, Any]
    """The table `[gateway]` as written; `aver.gateway.settings` reads it."""
    protocol: Mapping[str, Any]
    """The table `[protocol]` as written; `aver.protocol.bounds` reads it."""
    source: Mapping[str, str]

    @property
    def file(self) -> Path:
        """The settings file, which may not exist."""
        return self.home / CONFIG_NAME


def home_dir() -> Path:
    """The path of the home directory, which may not exist. `BadInput` if `AVER_HOME` is not a path."""
    given = os.environ.get(HOME_ENV)
    try:
        return Path(given).expanduser().absolute() if given else Path.home() / ".aver"
    except (OSError, RuntimeError) as error:  # `~name` of no user, or the current directory is gone.
        raise BadInput(
            f"{HOME_ENV} leads nowhere: {error}", advice="set it to a directory, by its full path"
        ) from error


def ensure_home(home: Path | None = None) -> Path:
    """Return the home directory, and make it with mode 0700 if need be. Raises `Unavailable`."""
    home = home or home_dir()
    try:
        make_directory(home)
    except OSError as error:
        raise Unavailable(
            f"cannot create {home}: {error.strerror}", advice=f"set {HOME_ENV} to a directory you may write"
        ) from error
    return home


def default_ledger(home: Path) -> str:
    """The URL of the ledger that a home has, if no setting names another."""
    return f"sqlite:///{home / 'ledger.db'}"


def load_config(
    *, home: Path | None = None, ledger: str | None = None, tenant: str | None = None, obeys_environment: bool = True
) -> Config:
    """Combine flags (the arguments), environment, `config.toml` and defaults. `BadInput` for a wrong setting.

    With `obeys_environment` false, `AVER_LEDGER` names no ledger: a project may have set it.
    """
    home = home or home_dir()
    values: dict[str, Any] = {
        "ledger": default_ledger(home),
        "tenant": "default",
        "post_quantum": False,
        "lock_timeout": 30.0,
        "approvals": {},
        "gate": {},
        "hooks": {},
        "gateway": {},
        "protocol": {},
    }
    source = dict.fromkeys(values, "default")
    path = home / CONFIG_NAME
    for name, value in (read_toml(path) or {}).items():
        expected = _SETTING_TYPES.get(name)
        if expected is None:
            raise BadInput(f"{path}: unknown setting {name!r}", advice=f"known are {', '.join(sorted(_SETTING_TYPES))}")
        if not isinstance(value, expected) or (isinstance(value, bool) and expected is not bool):
            raise BadInput(f"{path}: {name} has the wrong type: {type(value).__name__}")
        values[name] = value
        source[name] = CONFIG_NAME
    if not 0 < values["lock_timeout"] < 86_400:
        raise BadInput(f"{path}: lock_timeout must lie between 0 and 86400 seconds")
    pinned = read_system_policy()
    if pinned is not None:
        values["gate"] = {**values["gate"], "policy": pinned}
        source[POLICY_SOURCE] = str(SYSTEM_CONFIG)
    if obeys_environment and os.environ.get(LEDGER_ENV):
        values["ledger"], source["ledger"] = os.environ[LEDGER_ENV], LEDGER_ENV
    for name, given in (("ledger", ledger), ("tenant", tenant)):
        if given is not None:
            values[name], source[name] = given, "flag"
    return Config(home=home, source=source, **values)


def read_system_policy() -> str | None:
    """Return the directory of rules that the administrator pinned; None if there is none.

    Raises `Refused` if others than root could have written the file, and `BadInput` if it has another setting.
    """
    path = SYSTEM_CONFIG
    table = read_toml(path, lambda status: _require_system_owner(path, status))
    if table is None:
        return None
    # Who may write a directory above the file could replace the file.
    for directory in path.parents:
        try:
            _require_system_owner(directory, os.stat(directory))
        except OSError as error:
            raise Unavailable(f"cannot look at {directory}: {error.strerror}") from error
    gate = table.get("gate")
    policy = gate.get("policy") if isinstance(gate, dict) else None
    if table.keys() != {"gate"} or not isinstance(gate, dict) or gate.keys() != {"policy"}:
        raise BadInput(f"{path}: it may have one setting only, policy under [gate]")
    if not isinstance(policy, str) or not os.path.isabs(policy) or "\0" in policy:
        raise BadInput(f"{path}: [gate] policy must be the full path of a directory")
    return policy


def _require_system_owner(path: Path, status: os.stat_result) -> None:
    if status.st_uid != SYSTEM_OWNER:
        raise Refused("UNSAFE_FILE", f"{path} does not belong to root", advice=f"run: sudo chown root {path}")
    # In a sticky directory such as /tmp, a user cannot move or replace files of others.
    keeps = stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not keeps:
        raise Refused("UNSAFE_FILE", f"{path} can be written by others", advice=f"run: sudo chmod go-w {path}")


_USER_AND_PASSWORD = lazy_pattern(r"(://[^\s/:@]*):\S*@")
_PASSWORD_OPTION = lazy_pattern(r"([?&\s](?:ssl)?password=)[^&\s]*", re.IGNORECASE)


def hide_password(text: str) -> str:
    """Replace the password in a ledger URL, or in any text that contains one, by `***`."""
    return _PASSWORD_OPTION.sub(r"\1***", _USER_AND_PASSWORD.sub(r"\1:***@", text))


_SETTING_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "ledger": str,
    "tenant": str,
    "post_quantum": bool,
    "lock_timeout": (int, float),
    "approvals": dict,
    "gate": dict,
    "hooks": dict,
    "gateway": dict,
    "protocol": dict,
}


def read_toml(path: Path, check: Callable[[os.stat_result], None] | None = None) -> dict[str, Any] | None:
    """Read a settings file in TOML; None if there is none. `BadInput` if it cannot be read.

    `check` gets the status of the open file and may raise: so the file that it approves is the file that is read.
    """
    try:
        with open_regular(path, follow=True) as file:
            if check is not None:
                check(os.fstat(file.fileno()))
            raw = read_limited(file, CONFIG_MAX, path, advice="it should hold a few settings")
    except FileNotFoundError:
        return None
    except NotRegularFile as error:
        raise BadInput(f"{path} is not a regular file", advice="move it away") from error
    except OSError as error:
        if (fault := find_machine_fault(error)) is not None:
            raise fault from error
        raise BadInput(f"cannot read {path}: {error.strerror}") from error
    import tomllib  # Here, because most homes have no such file.

    try:
        return tomllib.loads(raw.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"{path} is not valid TOML: {error}", advice="mend that line, or move the file away") from error
