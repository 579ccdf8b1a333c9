"""The demo's fourth part: what coding agents did, sealed from their transcripts, and a transcript edited afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aver.cli.demo_sessions import CLAUDE_SESSION, write_sessions
from aver.ingest.adapters import OWN, adapter_of
from aver.ingest.finding import chains_of
from aver.ingest.reconciling import Reconciled, reconcile
from aver.ingest.sealing import Follower
from aver.ledger import Ledger, open_ledger
from aver.surroundings import Surroundings
from aver.values import dataclass
from aver.verdict import Verdict

__all__ = ["EDITED", "Ingested", "edited_afterwards", "ingested"]

EDITED = (b"pytest -q", b"pytest -x")
"""What somebody who edits the transcript puts in another's place: not this, but that was run."""


@dataclass(frozen=True, slots=True)
class Ingested:
    """One session: how much of it was sealed, and how that compares with its transcript."""

    title: str
    chain: str
    records: int
    reconciled: Reconciled

    @property
    def is_good(self) -> bool:
        return self.records > 0 and self.reconciled.verdict.status == "verified"

    def to_dict(self) -> dict[str, Any]:
        status = self.reconciled.verdict.status
        return {"tool": self.title, "chain": self.chain, "records": self.records, "status": status}


def ingested(home: Path, user: Path) -> Iterator[Ingested]:
    """Write one session per tool into a user's home, seal each from there, and hold it to its transcript."""
    around = Surroundings(user, {})
    write_sessions(around)
    with open_ledger(home / "ledger.db", home=home) as ledger:
        for tool in OWN:
            adapter = adapter_of(tool)
            for source in adapter.locate(around):
                follower = Follower(ledger, adapter, source)
                sealing = follower.step() + follower.end()
                chain = chains_of(ledger, tool, source.session)[0]
                yield Ingested(adapter.title, chain, sealing.sealed, _reconciled(ledger, around, tool, source.session))


def edited_afterwards(home: Path, user: Path) -> Verdict:
    """Edit a line of Claude Code's transcript, and hold what was sealed to it again."""
    around = Surroundings(user, {})
    adapter = adapter_of("claude-code")
    transcript = next(source.path for source in adapter.locate(around) if source.session == CLAUDE_SESSION)
    transcript.write_bytes(transcript.read_bytes().replace(*EDITED))
    with open_ledger(home / "ledger.db", home=home, create=False) as ledger:
        return _reconciled(ledger, around, "claude-code", CLAUDE_SESSION).verdict


def _reconciled(ledger: Ledger, around: Surroundings, tool: str, session: str) -> Reconciled:
    adapter = adapter_of(tool)
    sources = [source for source in adapter.locate(around) if source.session == session]
    return reconcile(ledger, adapter, sources, chains_of(ledger, tool, session))
