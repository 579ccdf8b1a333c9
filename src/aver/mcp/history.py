"""The earlier sessions of a workspace, read from its sealed runs.

The directory `.capseal/runs` says which runs belong to the workspace. The ledger alone says what they did. Aver reads
and verifies each run once and keeps the result, because a sealed run does not change. A run that is not valid is listed
as damaged.
"""

from __future__ import annotations

import os
import posixpath
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from aver.actions.action import AgentAction
from aver.actions.run_capsules import SEAL_KIND
from aver.actions.run_directory import read_run_identity
from aver.actions.run_state import load_run_from_ledger
from aver.errors import AverError
from aver.events.event import decision_word
from aver.ledger import Ledger
from aver.mcp.workspace import Workspace

RECENT_MAX = 10
"""The number of sessions that `capseal_status` lists."""

LOOK_BACK_MAX = 200
"""The number of sealed sessions that Aver searches for the history of a file."""

SIMILAR_MAX = 3
"""The number of earlier changes in an answer of the gate."""

SUMMARIES_MAX = 8
"""The number of descriptions in the summary of a session."""

_DECISION_WORDS = {"approve": "approved", "flag": "flagged", "deny": "denied"}


@dataclass(frozen=True, slots=True)
class PastSession:
    """A sealed session. `damage` says why it could not be read; then it has no actions."""

    run_id: str
    sealed_at: str
    agent: str
    actions: tuple[AgentAction, ...]
    damage: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the session as `capseal_status` lists it."""
        words = [_description(action)[:60] for action in self.actions]
        decisions = [decision_word(action.gate_decision) for action in self.actions if action.gate_decision is not None]
        return {
            "date": self.sealed_at[:19],
            "agent": self.agent,
            "actions": len(self.actions),
            "approved": decisions.count("approve"),
            "denied": decisions.count("deny"),
            "files_changed": sorted({file for action in self.actions for file in _affected_files(action)}),
            "summary": self.damage or ", ".join([word for word in words if word][:SUMMARIES_MAX]),
            "receipt": f"{self.run_id}.cap",
        }


class SessionHistory:
    """The sealed sessions of one workspace. Safe for threads."""

    def __init__(self, ledger: Ledger, workspace: Workspace) -> None:
        self._ledger = ledger
        self._workspace = workspace
        self._lock = threading.Lock()
        self._past: dict[str, PastSession] = {}

    def recent(self) -> list[PastSession]:
        """Return the newest sealed sessions, newest first."""
        return list(islice(self._sealed_sessions(), RECENT_MAX))

    def count(self) -> int:
        """Return the number of sealed sessions."""
        return sum(1 for _ in self._sealed_runs())

    def sessions_for_file(self, file: str) -> list[tuple[PastSession, list[str]]]:
        """Return the sessions that touched a file, newest first, each with descriptions of its changes."""
        wanted = self._normalize_path(file)
        found = []
        for past in islice(self._sealed_sessions(), LOOK_BACK_MAX):
            changes = [
                _describe_change(action)
                for action in past.actions
                if any(self._normalize_path(path) == wanted for path in _affected_files(action))
            ]
            if changes:
                found.append((past, changes))
        return found

    def similar_changes(self, files: Sequence[str]) -> list[dict[str, Any]]:
        """Return the newest few changes that recent sessions made to these files."""
        wanted = {self._normalize_path(file) for file in files}
        found = (
            {
                "session_id": past.run_id,
                "description": _description(action),
                "success": action.success,
                "p_fail": action.gate_score,
            }
            for past in (self.recent() if wanted else ())
            for action in reversed(past.actions)
            if wanted & {self._normalize_path(file) for file in _affected_files(action)}
        )
        return list(islice(found, SIMILAR_MAX))

    def _normalize_path(self, file: str) -> str:
        """Return a path relative to the workspace. A path outside of it stays absolute."""
        root = self._workspace.root.as_posix()
        path = posixpath.normpath(posixpath.join(root, file.replace("\\", "/")))
        return path.removeprefix(f"{root}/") if path.startswith(f"{root}/") else path

    def _sealed_sessions(self) -> Iterator[PastSession]:
        for run_id, chain, sealed_at in self._sealed_runs():
            with self._lock:
                past = self._past.get(run_id)
            if past is None:
                # Read without the lock, because it takes long. Two threads may read the same run; that does no harm.
                try:
                    first = next(self._ledger.read(chain, 0, 1))
                    agent = str(first.to_dict()["outcome"]["result"]["agent"] or "unknown")
                    past = PastSession(
                        run_id, sealed_at, agent, tuple(load_run_from_ledger(self._ledger, chain).actions)
                    )
                except (AverError, KeyError, TypeError, StopIteration) as error:
                    words = error.message if isinstance(error, AverError) else "it cannot be read"
                    past = PastSession(run_id, sealed_at, "unknown", (), f"damaged: {words}; run: aver verify {chain}")
                with self._lock:
                    self._past[run_id] = past
            yield past

    def _sealed_runs(self) -> Iterator[tuple[str, str, str]]:
        """Yield the sealed runs of the workspace, newest first: run id, chain and time of sealing."""
        try:
            entries = list(os.scandir(self._workspace.runs))
        except OSError:
            return  # No run was ever started here.
        # A run id begins with its time, so the order of the names is the order in time.
        for name in sorted((entry.name for entry in entries if entry.is_dir(follow_symlinks=False)), reverse=True):
            try:
                identity = read_run_identity(self._workspace.runs / name)
                if identity is None or (identity.ledger, identity.tenant) != (self._ledger.id, self._ledger.tenant):
                    continue
                count = self._ledger.head(identity.chain).count
                last = next(self._ledger.read(identity.chain, count - 1), None) if count else None
            except AverError:
                continue  # Not a readable run of this ledger.
            if last is not None and last.kind == SEAL_KIND:
                yield identity.run_id, identity.chain, last.signed_at


def _affected_files(action: AgentAction) -> list[str]:
    files = (action.metadata or {}).get("files_affected")
    return [file for file in files if isinstance(file, str)] if isinstance(files, list) else []


def _description(action: AgentAction) -> str:
    text = (action.metadata or {}).get("description")
    return text if isinstance(text, str) else ""


def _describe_change(action: AgentAction) -> str:
    notes = ["not gated"] if action.gate_decision is None else [_DECISION_WORDS[decision_word(action.gate_decision)]]
    if action.gate_score is not None:
        notes.append(f"p_fail={action.gate_score:.2f}")
    label = (action.metadata or {}).get("risk_label")
    if isinstance(label, str):
        notes.append(f"label={label}")
    if not action.success:
        notes.append("failed")
    return f"{_description(action)} ({', '.join(notes)})"
