"""Load the actions and the seal of a run from a directory, a `.cap` file, or a chain of the ledger."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import IO

from aver.actions.action import AgentAction
from aver.actions.archive import Archive, open_archive, open_directory
from aver.actions.encodings import (
    ACTION_LINE_MAX,
    CAPSULE_LINE_MAX,
    read_action_line,
    read_capsule_line,
    read_raw_lines,
)
from aver.actions.run_capsules import SEAL_KIND
from aver.actions.run_directory import RunIdentity
from aver.actions.run_files import ACTIONS_FILE, CAPSULES_FILE, MEMBER_ORDER
from aver.actions.run_state import RecordedRun
from aver.capsule.sealed import Sealed
from aver.errors import BadInput, NotFound
from aver.files.regular import open_file
from aver.ledger import Ledger


@dataclass(frozen=True, slots=True)
class LoadedRun:
    """The actions and the seal of a run, as they were read. Only verification shows whether they are valid."""

    actions: list[AgentAction]
    seal: Sealed | None


def load_run_from_path(path: Path) -> LoadedRun:
    """Load the run in a directory or a `.cap` file. This does not verify it."""
    if path.is_dir():
        with open_directory(path, MEMBER_ORDER) as files:
            return _load_files(files, path)
    with open_file(path) as file, open_archive(file) as archive:
        return _load_files(archive, path)


def load_run_from_ledger(ledger: Ledger, chain: str) -> LoadedRun:
    """Load the run of a chain. Every record is verified; `IntegrityError` if one is not valid."""
    first = next(ledger.read(chain, 0, 1), None)
    try:
        run_id = "" if first is None else str(first.to_dict()["outcome"]["result"]["run_id"])
    except (KeyError, TypeError):
        raise BadInput(f"the chain {chain} is not that of a run") from None
    run = RecordedRun(ledger, RunIdentity(run_id, chain, ledger.id, ledger.tenant))
    return LoadedRun(run.actions, run.seal_record)


def _load_files(files: Archive, path: Path) -> LoadedRun:
    actions = [read_action_line(raw).action for raw in _read_lines(files, ACTIONS_FILE, ACTION_LINE_MAX, path)]
    seal = None
    for raw in _read_lines(files, CAPSULES_FILE, CAPSULE_LINE_MAX, path):
        line = read_capsule_line(raw)
        # The capsule of an action is never the seal, and cannot be rebuilt without its action.
        if not line.has_action and (record := line.rebuild(None)).kind == SEAL_KIND:
            seal = record
    return LoadedRun(actions, seal)


def _read_lines(files: Archive, name: str, limit: int, path: Path) -> list[bytes]:
    file: IO[bytes] | None = files.members.get(name)
    if file is None:
        raise NotFound(f"{path} has no {name}: it is not a sealed run", advice="name a run's directory or .cap file")
    found = []
    for raw in read_raw_lines(file, limit):
        if isinstance(raw, BadInput):
            raise raw
        found.append(raw)
    return found
