"""The actions and the seal of a run that somebody names: a directory, a `.cap` file, or a chain of the ledger."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import IO

from aver.actions.action import AgentAction
from aver.actions.archive import Archive, opened_archive
from aver.actions.capsule_lines import CAPSULE_LINE_MAX, read_capsule_line
from aver.actions.file_names import ACTIONS, CAPSULES
from aver.actions.folder import RunIdentity
from aver.actions.lines import LINE_MAX, read_line
from aver.actions.recorded import RecordedRun
from aver.actions.records import SEAL
from aver.actions.run_files import opened_directory, raw_lines
from aver.capsule.sealed import Sealed
from aver.errors import BadInput, NotFound
from aver.ledger import Ledger
from aver.ledger.outside import open_file

__all__ = ["FoundRun", "run_at", "run_in"]


@dataclass(frozen=True, slots=True)
class FoundRun:
    """What a run consists of, as it was read: verify it to know whether it holds."""

    actions: list[AgentAction]
    seal: Sealed | None


def run_at(path: Path) -> FoundRun:
    """The sealed run in a directory or a `.cap` file."""
    if path.is_dir():
        with opened_directory(path) as files:
            return _in_files(files, path)
    with open_file(path) as file, opened_archive(file) as archive:
        return _in_files(archive, path)


def run_in(ledger: Ledger, chain: str) -> FoundRun:
    """The run of a chain, held to its seals on the way."""
    first = next(ledger.read(chain, 0, 1), None)
    try:
        run_id = "" if first is None else str(first.to_dict()["outcome"]["result"]["run_id"])
    except (KeyError, TypeError):
        raise BadInput(f"the chain {chain} is not that of a run") from None
    run = RecordedRun(ledger, RunIdentity(run_id, chain, ledger.id, ledger.tenant))
    return FoundRun(run.actions, run.seal_record)


def _in_files(files: Archive, path: Path) -> FoundRun:
    actions = [read_line(raw).action for raw in _lines(files, ACTIONS, LINE_MAX, path)]
    seal = None
    for raw in _lines(files, CAPSULES, CAPSULE_LINE_MAX, path):
        line = read_capsule_line(raw)
        if not line.holds_action and (record := line.sealed(None)).kind == SEAL:
            seal = record
    return FoundRun(actions, seal)


def _lines(files: Archive, name: str, limit: int, path: Path) -> list[bytes]:
    file: IO[bytes] | None = files.members.get(name)
    if file is None:
        raise NotFound(f"{path} has no {name}: it is not a sealed run", advice="name a run's directory or .cap file")
    found = []
    for raw in raw_lines(file, limit):
        if isinstance(raw, BadInput):
            raise raw
        found.append(raw)
    return found
