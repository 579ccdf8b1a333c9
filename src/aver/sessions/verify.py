"""The verdict on a session: one answer for all of its chains."""

from __future__ import annotations

from aver.ledger import Ledger
from aver.sessions.sessions import SessionChains
from aver.verdict import Verdict, merge_verdicts

__all__ = ["verify_session"]


def verify_session(ledger: Ledger, chains: SessionChains) -> Verdict:
    """One verdict on all chains of a session: its own, its subagents' and that of the gate's decisions."""
    verdicts = {chain: ledger.verify(chain) for chain in chains.names}
    only = next(iter(verdicts.values()))
    return only if len(verdicts) == 1 else merge_verdicts(f"session {chains.tool} {chains.session}", verdicts)
