"""What was learned of a workspace, as a file: `risk/<name>.json` under `AVER_HOME`.

    {"format": "aver-risk-state", "version": 1, "workspace": <digest>, "state": {...}, "sha256": <digest>}

The name and `workspace` come from the SHA-256 of the workspace's root: the nearest directory above it that git calls
one, or itself; so a state does not fit another workspace. `sha256` is over the canonical bytes of all the rest.

A file that is damaged, too large, of another version, not ours alone to write, or that holds numbers which no learning
leads to, is refused: then the shipped prior is used and the state's `note` says so. The checksum finds accidents. It
does not stop someone who may write our files, which is why they lie in the home that policy guards and not in the
workspace.

Writers exclude each other by a lock, and a file is replaced at once: a reader sees the old state or the new one.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from aver.capsule.canonical import canonical_json
from aver.capsule.json_reader import read_json
from aver.config import ensure_home, home_dir
from aver.errors import AverError, BadInput, Refused, Unavailable
from aver.files.atomic import replace_file
from aver.gate.risk.model import PRIORS, RiskLevel, RiskState
from aver.keys.private_files import read_public_file
from aver.ledger.stores.sqlite.write_lock import WriteLock

__all__ = [
    "TIME_MAX",
    "decode_path",
    "encode_path",
    "find_workspace_root",
    "load_state",
    "read_document",
    "state_from_dict",
    "state_path",
    "update_state",
    "write_document",
]

DIRECTORY = "risk"
FORMAT, VERSION = "aver-risk-state", 1

STATE_MAX = 64 * 1024
"""A state has seven levels at most, a line each."""

LOCK_TIMEOUT = 30.0
"""Seconds to wait for another writer. Learning holds the lock only while it writes."""

TIME_MAX = 253_402_300_799
"""The last second of the year 9999."""

PARENTS_MAX = 256
"""Directories above a workspace that are looked at for a repository."""


def load_state(workspace: str | Path, home: Path | None = None) -> RiskState:
    """A workspace's state. The shipped prior if nothing was learned; with a `note` if what is stored was refused."""
    path = state_path(workspace, home)
    try:
        document = read_document(path, FORMAT, VERSION, workspace, limit=STATE_MAX)
        return RiskState() if document is None else state_from_dict(document)
    except AverError as error:
        return RiskState(note=f"what was learned here is not used: {error.message}; the shipped prior is")


def update_state(
    workspace: str | Path, change: Callable[[RiskState], RiskState], home: Path | None = None
) -> RiskState:
    """Put what `change` makes of the stored state in its place. A refused one is replaced: learning begins anew."""
    path = state_path(workspace, ensure_home(home))
    _make_directory(path.parent)
    lock = WriteLock(path.with_suffix(".lock"), timeout=LOCK_TIMEOUT)
    try:
        with lock.hold():
            state = change(load_state(workspace, home))
            write_document(path, FORMAT, VERSION, workspace, state.to_dict())
            return RiskState(state.levels, state.learned_until)
    finally:
        lock.close()


def state_path(workspace: str | Path, home: Path | None = None) -> Path:
    """Where a workspace's state lies, whether or not it is there."""
    return (home or home_dir()) / DIRECTORY / f"{_workspace_digest(workspace)[:32]}.json"


def find_workspace_root(workspace: str | Path) -> Path:
    """The nearest directory at or above a workspace that has a `.git`; itself if none has."""
    start = Path(os.path.realpath(workspace))
    for directory in (start, *start.parents[:PARENTS_MAX]):
        if os.path.lexists(directory / ".git"):
            return directory
    return start


def read_document(path: Path, form: str, version: int, workspace: str | Path, *, limit: int) -> dict[str, Any] | None:
    """What `write_document` has put there, checked; None if nothing is there."""
    raw = read_public_file(path, limit=limit)
    if raw is None:
        return None
    document = read_json(raw)
    if not isinstance(document, dict) or document.keys() != {"format", "version", "workspace", "state", "sha256"}:
        raise BadInput(f"{path} is not a document of ours")
    claimed = document.pop("sha256")
    if (document["format"], document["version"]) != (form, version) or type(document["version"]) is not int:
        raise BadInput(f"{path} is of another version")
    if document["workspace"] != _workspace_digest(workspace):
        raise BadInput(f"{path} belongs to another workspace")
    if claimed != _checksum(document):
        raise BadInput(f"{path} does not have its checksum")
    if not isinstance(document["state"], dict):
        raise BadInput(f"{path} is not a document of ours")
    return document["state"]


def write_document(path: Path, form: str, version: int, workspace: str | Path, state: dict[str, Any]) -> None:
    """Put a document at `path` all at once."""
    _make_directory(path.parent)
    document = {"format": form, "version": version, "workspace": _workspace_digest(workspace), "state": state}
    document["sha256"] = _checksum(document)
    replace_file(path, orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n")


def encode_path(path: str) -> str:
    """Any path, whatever its bytes, as a text that JSON takes."""
    return os.fsencode(path).decode("latin-1")


def decode_path(text: str) -> str:
    """What `written_path` was given."""
    return os.fsdecode(text.encode("latin-1", "replace"))


def state_from_dict(document: Any) -> RiskState:
    """The state that `State.to_dict` wrote; `Refused` if no learning leads to it."""
    is_object = isinstance(document, dict) and document.keys() == {"levels", "learned_until"}
    if not is_object or not isinstance(document["levels"], dict):
        raise Refused("STATE_INVALID", "it has not the fields of a state")
    levels = {}
    for kind, numbers in document["levels"].items():
        if kind not in PRIORS or not isinstance(numbers, dict) or numbers.keys() != {"b", "v", "observations"}:
            raise Refused("STATE_INVALID", "it has a level that no state has")
        level = RiskLevel(numbers["b"], numbers["v"], numbers["observations"])
        if not level.is_sound() or level.observations == 0:
            raise Refused("STATE_INVALID", "it has numbers that no learning leads to")
        levels[kind] = level
    until = document["learned_until"]
    if type(until) is not int or not 0 <= until <= TIME_MAX:
        raise Refused("STATE_INVALID", "it has a time that is none")
    return RiskState(levels, until)


def _workspace_digest(workspace: str | Path) -> str:
    return hashlib.sha256(os.fsencode(find_workspace_root(workspace))).hexdigest()


def _checksum(document: dict[str, Any]) -> str:
    return hashlib.sha256(canonical_json(document)).hexdigest()


def _make_directory(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise Unavailable(f"cannot create {directory}: {error.strerror}") from error
