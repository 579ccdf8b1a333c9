"""The file that holds the learned state of a workspace: `risk/<name>.json` under `AVER_HOME`.

    {"format": "aver-risk-state", "version": 1, "workspace": <digest>, "state": {...}, "sha256": <digest>}

The name and `workspace` are the SHA-256 of the workspace's root, so a state does not fit another workspace. The root is
the nearest directory at or above the workspace that has a `.git`; if there is none, the workspace itself. `sha256` is
over the canonical bytes of all other fields.

Aver refuses a file that is damaged, too large, of another version, writable by others, or that has numbers which no
learning leads to. It then uses the shipped prior, and the state's `note` says why. The checksum finds accidents. It
does not stop a process that may write Aver's files. They therefore lie in Aver's home, which policy guards, and not in
the workspace.

Writers exclude each other with a lock, and replace the file atomically. A reader sees the old state or the new one.
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
from aver.files.regular import read_public_file
from aver.gate.risk.model import PRIORS, RiskLevel, RiskState
from aver.ledger.stores.sqlite.connections import WriteLock

DIRECTORY = "risk"
FORMAT, VERSION = "aver-risk-state", 1

STATE_MAX = 64 * 1024
"""Bytes of the file. A state has at most seven levels, with one line each."""

LOCK_TIMEOUT = 30.0
"""Seconds to wait for another writer. A writer holds the lock for one short write."""

TIME_MAX = 253_402_300_799
"""The last second of the year 9999."""

PARENTS_MAX = 256
"""Directories above a workspace that are searched for a repository."""


def load_state(workspace: str | Path, home: Path | None = None, *, root: Path | None = None) -> RiskState:
    """Load the state of a workspace. Returns the prior if nothing was learned, with a `note` if the file is refused.

    `root` is the workspace's root, if the caller has found it.
    """
    path = state_path(workspace, home, root=root)
    try:
        document = read_document(path, FORMAT, VERSION, workspace, limit=STATE_MAX)
        return RiskState() if document is None else state_from_dict(document)
    except AverError as error:
        return RiskState(note=f"what was learned here is not used: {error.message}; the shipped prior is")


def update_state(
    workspace: str | Path, change: Callable[[RiskState], RiskState], home: Path | None = None
) -> RiskState:
    """Replace the stored state by `change(state)` and return it. A refused state is replaced by a new one."""
    path = state_path(workspace, ensure_home(home))
    _make_directory(path.parent)
    lock = WriteLock(path.with_suffix(".lock"), timeout=LOCK_TIMEOUT)
    try:
        # The state is read under the lock, so that no outcome of another process is lost.
        with lock.hold():
            state = change(load_state(workspace, home))
            write_document(path, FORMAT, VERSION, workspace, state.to_dict())
            # Without the note: the refused file is gone.
            return RiskState(state.levels, state.learned_until)
    finally:
        lock.close()


def state_path(workspace: str | Path, home: Path | None = None, *, root: Path | None = None) -> Path:
    """Return the path of a workspace's state file, whether or not it exists. `root` is its root, if it is known."""
    digest = _digest_root(root or find_workspace_root(workspace))
    return (home or home_dir()) / DIRECTORY / f"{digest[:32]}.json"


def find_workspace_root(workspace: str | Path) -> Path:
    """Return the nearest directory at or above a workspace that has a `.git`; the workspace if none has."""
    start = directory = os.path.realpath(workspace)
    for _ in range(PARENTS_MAX + 1):
        # `.git` is a directory, or a file in a further working tree or a submodule.
        if os.path.lexists(os.path.join(directory, ".git")):
            return Path(directory)
        above = os.path.dirname(directory)
        if above == directory:
            break  # The root of the file system: there is nothing above it.
        directory = above
    return Path(start)


def read_document(path: Path, form: str, version: int, workspace: str | Path, *, limit: int) -> dict[str, Any] | None:
    """Read and check a document that `write_document` wrote. Returns None if there is none.

    Raises BadInput if it is damaged, or belongs to another format, version or workspace.
    """
    raw = read_public_file(path, limit=limit)
    if raw is None:
        return None
    document = read_json(raw)
    if not isinstance(document, dict) or document.keys() != {"format", "version", "workspace", "state", "sha256"}:
        raise BadInput(f"{path} is not a document of ours")
    # The checksum covers all other fields.
    claimed = document.pop("sha256")
    if (document["format"], document["version"]) != (form, version) or type(document["version"]) is not int:
        raise BadInput(f"{path} is of another version")
    if document["workspace"] != _digest_root(find_workspace_root(workspace)):
        raise BadInput(f"{path} belongs to another workspace")
    if claimed != _checksum(document):
        raise BadInput(f"{path} does not have its checksum")
    if not isinstance(document["state"], dict):
        raise BadInput(f"{path} is not a document of ours")
    return document["state"]


def write_document(path: Path, form: str, version: int, workspace: str | Path, state: dict[str, Any]) -> None:
    """Write a document atomically."""
    _make_directory(path.parent)
    digest = _digest_root(find_workspace_root(workspace))
    document = {"format": form, "version": version, "workspace": digest, "state": state}
    document["sha256"] = _checksum(document)
    replace_file(path, orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n")


def encode_path(path: str) -> str:
    """Encode a path of any bytes as a text that JSON accepts."""
    # Latin-1 maps each byte to one character, so nothing is lost.
    return os.fsencode(path).decode("latin-1")


def decode_path(text: str) -> str:
    """Decode a path that `encode_path` wrote."""
    return os.fsdecode(text.encode("latin-1", "replace"))


def state_from_dict(document: Any) -> RiskState:
    """Read a state that `RiskState.to_dict` wrote. Raises Refused if no learning leads to it."""
    is_object = isinstance(document, dict) and document.keys() == {"levels", "learned_until"}
    if not is_object or not isinstance(document["levels"], dict):
        raise Refused("STATE_INVALID", "it has not the fields of a state")
    levels = {}
    for kind, numbers in document["levels"].items():
        if kind not in PRIORS or not isinstance(numbers, dict) or numbers.keys() != {"b", "v", "observations"}:
            raise Refused("STATE_INVALID", "it has a level that no state has")
        level = RiskLevel(numbers["b"], numbers["v"], numbers["observations"])
        # A level without outcomes is never written: it would be the prior.
        if not level.is_sound() or level.observations == 0:
            raise Refused("STATE_INVALID", "it has numbers that no learning leads to")
        levels[kind] = level
    until = document["learned_until"]
    if type(until) is not int or not 0 <= until <= TIME_MAX:
        raise Refused("STATE_INVALID", "it has a time that is none")
    return RiskState(levels, until)


def _digest_root(root: Path) -> str:
    return hashlib.sha256(os.fsencode(root)).hexdigest()


def _checksum(document: dict[str, Any]) -> str:
    return hashlib.sha256(canonical_json(document)).hexdigest()


def _make_directory(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise Unavailable(f"cannot create {directory}: {error.strerror}") from error
