"""Finds the session that a person names: by its chain, its id, or the beginning of either."""

from __future__ import annotations

from aver.capsule.aver_block import split_chain_name
from aver.errors import NotFound
from aver.ingest.draft import session_chain_name
from aver.ledger import Ledger
from aver.sessions.sessions import OTHER_DOMAINS

__all__ = ["find_session", "list_session_chains", "session_from_chain"]


def find_session(ledger: Ledger, name: str) -> tuple[str, str]:
    """The tool and the id of the session that `name` means. Raises `NotFound` if there is none, or several."""
    sessions = {
        session_from_chain(ledger, chain)
        for chain in ledger.chains()
        if chain.startswith(name) or split_chain_name(chain)[1].startswith(name)
    }
    known = {session for session in sessions if session is not None}
    exact = {session for session in known if name in (session[1], ".".join(session))}
    found = exact or known
    if len(found) == 1:
        return found.pop()
    if found:
        several = ", ".join(sorted(map(".".join, found))[:5])
        raise NotFound(f"{name} may mean several sessions: {several}", advice="be more specific")
    raise NotFound(f"there is no session {name} in this ledger", advice="aver sessions lists the sessions")


def session_from_chain(ledger: Ledger, chain: str) -> tuple[str, str] | None:
    """Tool and session of a chain, from its first record; None if the chain belongs to no session."""
    domain, _ = split_chain_name(chain)
    first = None if domain in OTHER_DOMAINS else next(iter(ledger.read(chain, 0, 1)), None)
    session = None if first is None else first.to_dict()["context"].get("session_id")
    return (domain, session) if isinstance(session, str) else None


def list_session_chains(ledger: Ledger, tool: str, session: str) -> list[str]:
    """The chains of a session: its own, then those of its subagents."""
    own = session_chain_name(tool, session)
    chains = ledger.chains()
    return [*(name for name in chains if name == own), *sorted(name for name in chains if name.startswith(f"{own}."))]
