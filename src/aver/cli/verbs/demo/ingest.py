"""The demo's fifth part: sessions are sealed from transcripts, and one transcript is edited afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aver.agents.claude_code.demo import SESSION as CLAUDE_SESSION
from aver.agents.registry import AGENTS, load_adapter, load_agent
from aver.fast_dataclass import dataclass
from aver.files.user_dirs import UserEnvironment
from aver.ingest.reconcile import Reconciliation, reconcile_session
from aver.ingest.seal import TranscriptFollower
from aver.ledger import open_ledger
from aver.sessions.find import list_session_chains
from aver.verdict import Verdict

__all__ = ["TRANSCRIPT_EDIT", "IngestedSession", "edit_and_reconcile", "ingest_sessions"]

TRANSCRIPT_EDIT = (b"pytest -q", b"pytest -x")
"""The edit of the transcript: the first text is replaced by the second."""


@dataclass(frozen=True, slots=True)
class IngestedSession:
    """One sealed session, compared with its transcript."""

    title: str
    chain: str
    records: int
    reconciled: Reconciliation

    @property
    def is_good(self) -> bool:
        return self.records > 0 and self.reconciled.verdict.status == "verified"

    def to_dict(self) -> dict[str, Any]:
        status = self.reconciled.verdict.status
        return {"tool": self.title, "chain": self.chain, "records": self.records, "status": status}


def ingest_sessions(home: Path, user: Path) -> Iterator[IngestedSession]:
    """Write one session per tool into a user's home, seal each, and compare it with its transcript."""
    around = UserEnvironment(user, {})
    with open_ledger(home / "ledger.db", home=home) as ledger:
        for tool in AGENTS:
            load_agent(tool).write_demo(around)
            adapter = load_adapter(tool)
            for source in adapter.locate(around):
                follower = TranscriptFollower(ledger, adapter, source)
                sealing = follower.step() + follower.end()
                chains = list_session_chains(ledger, tool, source.session)
                reconciled = reconcile_session(ledger, adapter, around, source.session, chains)
                yield IngestedSession(adapter.title, chains[0], sealing.sealed, reconciled)


def edit_and_reconcile(home: Path, user: Path) -> Verdict:
    """Edit a line of Claude Code's transcript and compare the sealed session with it again."""
    around = UserEnvironment(user, {})
    adapter = load_adapter("claude-code")
    transcript = next(source.path for source in adapter.locate(around) if source.session == CLAUDE_SESSION)
    transcript.write_bytes(transcript.read_bytes().replace(*TRANSCRIPT_EDIT))
    with open_ledger(home / "ledger.db", home=home, create=False) as ledger:
        chains = list_session_chains(ledger, "claude-code", CLAUDE_SESSION)
        return reconcile_session(ledger, adapter, around, CLAUDE_SESSION, chains).verdict
