"""The sessions of coding agents in a ledger: which there are, their chains, and the verdict on each.

A session is the chain `<tool>.<session>`, the chains of its subagents, and the chain of the gate's decisions about it.
The first record of each chain says to which session it belongs; the name alone does not. Imported chains, also those of
the agent-capsule tool, are sessions, too; each import has its own.

`find_sessions` reads only the first and last records of each chain, so it lists hundreds of sessions quickly.
`find_named_session` finds the session that a person names by its chain, its id, or the beginning of either. Neither
verifies anything, and damaged records stop neither; `verify_session` gives one verdict on all chains.
`aver.sessions.figures` counts what was done in a session.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from aver.capsule.aver_block import RESERVED_CHAINS, split_chain_name
from aver.capsule.sealed import Sealed
from aver.errors import BadInput
from aver.fast_dataclass import dataclass
from aver.ingest.draft import session_chain_name
from aver.ledger import Ledger
from aver.ledger.imports.source import OLD_IMPORT, original_name, read_digits
from aver.ledger.lookup import NAMED_MAX
from aver.ledger.stores.protocol import ChainRow
from aver.sessions.step import Step, read_step
from aver.text import to_one_line
from aver.verdict import Verdict, merge_verdicts

DECISION_DOMAIN = "gate"
"""The domain of the chains of the gate's decisions."""

OTHER_DOMAINS = frozenset({DECISION_DOMAIN, "actions", "gateway", "protocol", "approvals", *RESERVED_CHAINS})
"""Domains of chains that are not sessions of coding agents."""

CUT = "…"
"""The mark at which `aver sessions` cuts a long id."""

LATEST_RECORDS = 16
"""How many records at a chain's end are searched for the latest time, because Aver's own notes have no time; and how
many at its beginning for the session, where the first is damaged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionChains:
    """The chains of a session."""

    tool: str
    session: str
    main: str | None
    """The chain of the session itself; None if the ledger has only a subagent's chain."""
    agents: tuple[tuple[str, str], ...] = ()
    """Subagents and their chains."""
    decisions: str | None = None
    imported: bool = False
    latest: str = ""
    """The time of its latest step, or when it was sealed."""

    @property
    def names(self) -> tuple[str, ...]:
        """All chains of the session. A verdict on it must cover all of them."""
        return (*self.recorded, *((self.decisions,) if self.decisions is not None else ()))

    @property
    def recorded(self) -> tuple[str, ...]:
        """The chains of what was done, without the gate's decisions."""
        return tuple(chain for chain in (self.main, *(chain for _, chain in self.agents)) if chain is not None)


class ChainEdges:
    """The first step and the latest time of chains, kept for callers that look for sessions again and again."""

    def __init__(self) -> None:
        self._first: dict[str, Step | None] = {}
        self._latest: dict[str, tuple[int, str | None, str]] = {}

    def first_step(self, ledger: Ledger, row: ChainRow) -> Step | None:
        """The first step of a chain. It is read once: call `forget` if the ledger was replaced."""
        if row.name not in self._first:
            step = _read_first_step(ledger, row)
            if step is None:
                return None
            self._first[row.name] = step
        return self._first[row.name]

    def latest_time(self, ledger: Ledger, row: ChainRow) -> str:
        """The latest time of a chain. It is read again when the chain has grown."""
        known = self._latest.get(row.name)
        if known is None or known[:2] != (row.count, row.head):
            known = self._latest[row.name] = (row.count, row.head, _find_latest_time(ledger, row))
        return known[2]

    def forget(self) -> None:
        self._first.clear()
        self._latest.clear()


def find_sessions(
    ledger: Ledger, *, tool: str | None = None, since: str | None = None, edges: ChainEdges | None = None
) -> list[SessionChains]:
    """The sessions of a ledger, the latest first. With `edges`, only chains that changed since then are read."""
    found = [chains for chains in _group_chains(ledger, edges=edges) if tool in (None, chains.tool)]
    if since is not None:
        found = [chains for chains in found if chains.latest >= since]
    return sorted(found, key=lambda chains: (chains.latest, chains.tool, chains.session), reverse=True)


def find_session_by_chain(ledger: Ledger, chain: str) -> SessionChains | None:
    """The session of a chain; None if the chain belongs to no session."""
    return next((chains for chains in _group_chains(ledger, chain) if chain in chains.names), None)


def find_named_session(ledger: Ledger, name: str) -> SessionChains | None:
    """The session that a person names by its id, its chain, or the beginning of either; None if there is none.

    A whole id counts before the ids that begin with it, and a session that was made here before imported ones. Raises
    `BadInput`, which lists the sessions, if several match.
    """
    beginning = name.removesuffix(CUT)
    if not beginning:
        return None
    sessions = list(_group_chains(ledger))
    for imported in (False, True):
        asked = [(chains, _session_names(chains)) for chains in sessions if chains.imported == imported]
        found = [chains for chains, names in asked if name in names]
        found = found or [chains for chains, names in asked if any(each.startswith(beginning) for each in names)]
        if len(found) == 1:
            return found[0]
        if found:
            several = [to_one_line(chains.names[0]) for chains in found]
            listed = ", ".join(several[:NAMED_MAX]) + (", ..." if len(several) > NAMED_MAX else "")
            words = f"{ascii(name)[:80]} may be any of {len(several)} sessions: {listed}"
            raise BadInput(words, advice="give more of the id, or the whole names of the chains")
    return None


def _session_names(chains: SessionChains) -> tuple[str, ...]:
    """The names under which people know a session: its id, its tool and id, and its chain."""
    return (chains.session, f"{chains.tool}.{chains.session}", *((chains.main,) if chains.main else ()))


def chains_from_records(records: Iterable[Sealed], name: str) -> SessionChains | None:
    """The session of records in a file or database called `name`; None if they are no session."""
    first = next(map(read_step, records), None)
    if first is None or not first.tool_name or first.tool_name in OTHER_DOMAINS:
        return None
    if not first.session or (first.own and not first.key.startswith(f"{first.tool_name}:")):
        return None
    return SessionChains(tool=first.tool_name, session=first.session, main=name)


# --- grouping chains


def _group_chains(
    ledger: Ledger, like: str | None = None, *, edges: ChainEdges | None = None
) -> Iterator[SessionChains]:
    """All sessions; with `like`, only sessions of the same tool as that chain.

    An imported session is one of its own: neither a session of this ledger nor another import is mixed with it.
    """
    edges = edges or ChainEdges()
    rows = ledger.store.chains(ledger.tenant)
    domain = next((_find_domain(row) for row in rows if row.name == like), None)
    decisions: dict[tuple[str, str], str] = {}
    groups: dict[tuple[str, str, str], list[tuple[str, ChainRow]]] = {}
    strays: list[ChainRow] = []
    for row in rows:
        source = _import_source(row)
        row_domain = _find_domain(row)
        if row_domain == DECISION_DOMAIN:
            first = edges.first_step(ledger, row)
            if first is not None and first.session:
                decisions[source, first.session] = row.name
        elif row_domain not in OTHER_DOMAINS and domain in (None, row_domain):
            place = _identify_chain(edges.first_step(ledger, row), row)
            if place is None:
                strays.append(row)
            else:
                groups.setdefault((source, *place[:2]), []).append((place[2], row))
    # Chains with the name of a subagent of a session whose first record does not say so.
    # An attacker may have changed that record. The verdict on the session must still cover the chain.
    mains = {row.name: members for members in groups.values() for agent, row in members if not agent}
    for row in strays:
        name = row.name
        while "." in name:
            name, _, _ = name.rpartition(".")
            if name in mains:
                mains[name].append((row.name.rpartition(".")[2], row))
    for (source, tool, session), members in groups.items():
        # A second copy of the session itself is listed with the subagents.
        main = next((row.name for agent, row in members if not agent), None)
        yield SessionChains(
            tool=tool,
            session=session,
            main=main,
            agents=tuple((agent or row.name, row.name) for agent, row in members if row.name != main),
            decisions=decisions.get((source, session)),
            imported=any(row.frozen for _, row in members),
            latest=max(edges.latest_time(ledger, row) for _, row in members),
        )


def _import_source(row: ChainRow) -> str:
    """The mark that tells the imports of several sources apart; empty for a chain that was made here."""
    return (read_digits(row.name) or OLD_IMPORT) if row.frozen else ""


def _find_domain(row: ChainRow) -> str:
    """The domain that a chain had where it was made."""
    return split_chain_name(original_name(row.name, row.origin) if row.frozen else row.name)[0]


def _identify_chain(first: Step | None, row: ChainRow) -> tuple[str, str, str] | None:
    """Tool, session and subagent of a chain, from its first step; None if that names none."""
    if first is None:
        return None
    tool, session = first.tool_name, first.session
    if first.own:
        is_ours = first.key.startswith(f"{tool}:") and bool(session)
        named = is_ours and (row.origin or row.name) == session_chain_name(tool, session, first.agent)
        return (tool, session, first.agent) if named else None
    if not row.frozen or tool in OTHER_DOMAINS or not tool:
        return None
    return tool, session or split_chain_name(original_name(row.name, row.origin))[1], ""


def _read_first_step(ledger: Ledger, row: ChainRow) -> Step | None:
    """Return the first step; of a chain whose first record is damaged, the next that says whose it is."""
    try:
        first = next(map(read_step, ledger.read(row.name, 0, 1)), None)
        of_others = first is not None and first.own and not first.key.startswith(f"{_find_domain(row)}:")
        if first is None or row.frozen or of_others or _identify_chain(first, row):
            return first
        others = map(read_step, ledger.read(row.name, 1, LATEST_RECORDS))
        return next((step for step in others if step.own and _identify_chain(step, row)), first)
    except BadInput:  # In a damaged ledger, a row may have an impossible name.
        return None


def _find_latest_time(ledger: Ledger, row: ChainRow) -> str:
    """The latest time in a chain; without any, when its last record was sealed."""
    # Mostly the last record has a time. Reading more for each of thousands of chains would take long.
    steps: list[Step] = []
    for length in (1, LATEST_RECORDS):
        steps = [read_step(record) for record in ledger.read(row.name, max(row.count - length, 0))]
        known = [step.at for step in steps if step.at is not None]
        if known:
            return max(known)
    return steps[-1].signed_at if steps else ""


def verify_session(ledger: Ledger, chains: SessionChains) -> Verdict:
    """One verdict on all chains of a session: its own, its subagents' and that of the gate's decisions."""
    verdicts = {chain: ledger.verify(chain) for chain in chains.names}
    only = next(iter(verdicts.values()))
    return only if len(verdicts) == 1 else merge_verdicts(f"session {chains.tool} {chains.session}", verdicts)
