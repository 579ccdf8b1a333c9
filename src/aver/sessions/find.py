"""Which session is meant: by its chain, its id, or the beginning of either."""

from __future__ import annotations

from aver.capsule.aver_block import split_chain_name
from aver.errors import NotFound
from aver.ingest.draft import session_chain_name
from aver.ledger import Ledger
from aver.sessions.sessions import OTHER_DOMAINS

__all__ = ["find_session", "list_session_chains", "session_from_chain"]


def find_session(ledger: Ledger, name: str) -> tuple[str, str]:
    """The tool and the id of the one session that is meant."""
    sessions = {session_from_chain(ledger, chain) for chain in ledger.chains() if _matches_name(chain, name)}
    exact = {one for one in sessions if one is not None and name in (one[1], ".".join(one))}
    found = exact or {one for one in sessions if one is not None}
    if len(found) == 1:
        return found.pop()
    if found:
        several = ", ".join(sorted(".".join(one) for one in found)[:5])
        raise NotFound(f"{name} may mean several sessions: {several}", advice="give more of its id")
    raise NotFound(f"no session {name} is sealed in this ledger", advice="aver log lists the chains")


def session_from_chain(ledger: Ledger, chain: str) -> tuple[str, str] | None:
    """Tool and session of a chain, as its first record says; None for a chain that is of no session."""
    domain, _ = split_chain_name(chain)
    first = None if domain in OTHER_DOMAINS else next(iter(ledger.read(chain, 0, 1)), None)
    session = None if first is None else first.to_dict()["context"].get("session_id")
    return (domain, session) if isinstance(session, str) else None


def list_session_chains(ledger: Ledger, tool: str, session: str) -> list[str]:
    """The chains of a session: its own, then those of its subagents."""
    own = session_chain_name(tool, session)
    there = ledger.chains()
    return [*(name for name in there if name == own), *sorted(name for name in there if name.startswith(f"{own}."))]


def _matches_name(chain: str, name: str) -> bool:
    return chain.startswith(name) or split_chain_name(chain)[1].startswith(name)
