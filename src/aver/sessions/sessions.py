"""The sessions of coding agents in a ledger: which there are, and what was done in each.

A session is the chain `<tool>.<session>`, the chains of its subagents, and what the gate decided about it. Which chains
belong together their first records tell, not their names alone. Imported chains of the public agent-capsule tool are
sessions like others.

`find_sessions` reads the first and last records of each chain, so that hundreds are listed at once; `session_of` reads
one session whole, record by record, and counts. A call counts once: what came later to a record that was there adds
tokens and may correct an outcome, and is no second call. All is read and nothing verified.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field

from aver.capsule.aver_block import RESERVED_CHAINS, split_chain_name
from aver.capsule.sealed import Sealed
from aver.errors import BadInput
from aver.fast_dataclass import dataclass
from aver.ingest.draft import session_chain_name
from aver.ledger import Ledger
from aver.ledger.stores.rows import ChainRow
from aver.sessions.decisions import DecisionMatcher, read_decisions
from aver.sessions.spending import Consumption
from aver.sessions.step import Addition, Step, read_step

__all__ = [
    *(
        "OTHER_DOMAINS",
        "SessionChains",
        "SessionTotals",
        "find_session_by_chain",
        "chains_from_records",
        "find_sessions",
        "compute_totals",
    ),
    "compute_step_totals",
]

DECISION_DOMAIN = "gate"
"""The domain of the chains with what the gate decided."""

OTHER_DOMAINS = frozenset({DECISION_DOMAIN, "actions", "gateway", "protocol", "approvals", *RESERVED_CHAINS})
"""Domains of chains that are no sessions of coding agents."""

LATEST_RECORDS = 16
"""Records from a chain's end on in which the time of the last event is looked for: notes of our own have none."""

TITLE_MAX = 120
"""Characters of a title that is made of a prompt."""

COST_DIGITS = 9
"""Digits behind the point of a sum of prices: finer than any tool counts."""

_CUMULATIVE_TOOLS = frozenset({"codex"})
"""Tools of which other software seals the tokens of all of the session, again and again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionChains:
    """Where a session is kept."""

    tool: str
    session: str
    main: str | None
    """The chain of the session itself; None where only a subagent's is here."""
    agents: tuple[tuple[str, str], ...] = ()
    """Subagents and their chains."""
    decisions: str | None = None
    imported: bool = False
    latest: str = ""
    """When the last thing in it happened, or was sealed."""

    @property
    def names(self) -> tuple[str, ...]:
        """All its chains: what a verdict on the session must be about."""
        all_of_them = (self.main, *(chain for _, chain in self.agents), self.decisions)
        return tuple(chain for chain in all_of_them if chain is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTotals:
    """What was done in a session, its subagents' part included."""

    tool: str
    session: str
    title: str = ""
    started: str | None = None
    ended: str | None = None
    prompts: int = 0
    actions: int = 0
    edits: int = 0
    lines_added: int = 0
    lines_removed: int = 0
    commands: int = 0
    failures: int = 0
    denials: int = 0
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost_usd: float | None = None
    models: tuple[str, ...] = ()
    subagents: int = 0
    unknown: int = 0
    """Records of a sort that was not known when they were sealed."""
    unreadable: int = 0
    records: int = 0
    imported: bool = False
    chains: tuple[str, ...] = ()


def find_sessions(ledger: Ledger, *, tool: str | None = None, since: str | None = None) -> list[SessionChains]:
    """The sessions of a ledger, the one with the latest event first."""
    found = [chains for chains in _group_chains(ledger) if tool in (None, chains.tool)]
    if since is not None:
        found = [chains for chains in found if chains.latest >= since]
    return sorted(found, key=lambda chains: (chains.latest, chains.tool, chains.session), reverse=True)


def find_session_by_chain(ledger: Ledger, chain: str) -> SessionChains | None:
    """The session that a chain belongs to; None where it belongs to none."""
    return next((chains for chains in _group_chains(ledger, chain) if chain in chains.names), None)


def chains_from_records(records: Iterable[Sealed], name: str) -> SessionChains | None:
    """The same for records that stand in no ledger, in a file or database called `name`."""
    first = next(map(read_step, records), None)
    if first is None or not first.tool_name or first.tool_name in OTHER_DOMAINS:
        return None
    if not first.session or (first.own and not first.key.startswith(f"{first.tool_name}:")):
        return None
    return SessionChains(tool=first.tool_name, session=first.session, main=name)


def compute_totals(ledger: Ledger, chains: SessionChains) -> SessionTotals:
    """What was done in a session."""
    count = _SessionCounter(read_decisions(ledger, chains.decisions))
    for chain in chains.names:
        if chain != chains.decisions:
            count.add_steps(map(read_step, ledger.read(chain)), main=chain == chains.main)
    return count.session(chains)


def compute_step_totals(steps: Iterable[Step], chains: SessionChains) -> SessionTotals:
    """The same of steps that stand in no ledger."""
    count = _SessionCounter(DecisionMatcher())
    count.add_steps(steps, main=True)
    return count.session(chains)


# --- which chains belong together


def _group_chains(ledger: Ledger, like: str | None = None) -> Iterator[SessionChains]:
    """All sessions; with `like`, only those of that chain's tool."""
    domain = None if like is None else split_chain_name(like)[0]
    decisions: dict[str, str] = {}
    groups: dict[tuple[str, str], list[tuple[str, ChainRow]]] = {}
    strays: list[ChainRow] = []
    for row in ledger.store.chains(ledger.tenant):
        own_domain = split_chain_name(row.name)[0]
        if own_domain == DECISION_DOMAIN and not row.frozen:
            first = _read_first_step(ledger, row)
            if first is not None and first.session:
                decisions[first.session] = row.name
        elif own_domain not in OTHER_DOMAINS and domain in (None, own_domain):
            place = _identify_chain(ledger, row)
            if place is None:
                strays.append(row)
            else:
                groups.setdefault(place[:2], []).append((place[2], row))
    for members in groups.values():
        members += _find_stray_subagents(members, strays)
    for (tool, session), members in groups.items():
        main, agents = _split_main_chain(members)
        yield SessionChains(
            tool=tool,
            session=session,
            main=main,
            agents=agents,
            decisions=decisions.get(session),
            imported=any(row.frozen for _, row in members),
            latest=max(_find_latest_time(ledger, row) for _, row in members),
        )


def _find_stray_subagents(members: list[tuple[str, ChainRow]], strays: list[ChainRow]) -> list[tuple[str, ChainRow]]:
    """Chains that are called like a subagent's of this session, though their first record does not say so: it may have
    been changed, which must not take them out of the verdict on the session."""
    mains = tuple(f"{row.name}." for agent, row in members if not agent)
    return [(row.name.rpartition(".")[2], row) for row in strays if row.name.startswith(mains)]


def _split_main_chain(members: list[tuple[str, ChainRow]]) -> tuple[str | None, tuple[tuple[str, str], ...]]:
    """The chain of the session itself, and the others; of one session that is here twice, the second is among them."""
    main = next((row.name for agent, row in members if not agent), None)
    return main, tuple((agent or row.name, row.name) for agent, row in members if row.name != main)


def _identify_chain(ledger: Ledger, row: ChainRow) -> tuple[str, str, str] | None:
    """Tool, session and subagent of a chain, by its first record; None where that says nothing of the sort."""
    first = _read_first_step(ledger, row)
    if first is None:
        return None
    tool, session = first.tool_name, first.session
    if first.own:
        is_ours = first.key.startswith(f"{tool}:") and bool(session)
        named = is_ours and (row.origin or row.name) == session_chain_name(tool, session, first.agent)
        return (tool, session, first.agent) if named else None
    if not row.frozen or tool in OTHER_DOMAINS or not tool:
        return None
    return tool, session or split_chain_name(row.name)[1], ""


def _read_first_step(ledger: Ledger, row: ChainRow) -> Step | None:
    try:
        return next(map(read_step, ledger.read(row.name, 0, 1)), None)
    except BadInput:  # A head row may have any name, if somebody changed it.
        return None


def _find_latest_time(ledger: Ledger, row: ChainRow) -> str:
    """When the last thing in a chain happened; where that is not said, when it was sealed."""
    steps = [read_step(record) for record in ledger.read(row.name, max(row.count - LATEST_RECORDS, 0))]
    known = [step.at for step in steps if step.at is not None]
    return max(known, default=steps[-1].signed_at if steps else "")


# --- counting


@dataclass(slots=True)
class _SessionCounter:
    """Counts steps as they come."""

    rulings: DecisionMatcher
    prompts: int = 0
    actions: int = 0
    edits: int = 0
    added: int = 0
    removed: int = 0
    commands: int = 0
    failures: int = 0
    denials: int = 0
    unknown: int = 0
    unreadable: int = 0
    records: int = 0
    spent: Consumption = Consumption()
    growing: Consumption = Consumption()
    session_cost: float | None = None
    title: str = ""
    first_prompt: str = ""
    times: list[str] = field(default_factory=list)
    sealed: list[str] = field(default_factory=list)
    models: dict[str, None] = field(default_factory=dict)
    open_calls: set[str] = field(default_factory=set)
    """Ids of calls whose outcome was not known."""
    by_message: dict[str, Consumption] = field(default_factory=dict)
    last_asked: str = ""

    def add_steps(self, steps: Iterable[Step], *, main: bool) -> None:
        for step in steps:
            self._add_step(step)
            if main:
                self._note_title(step)

    def _add_step(self, step: Step) -> None:
        self.records += 1
        self.unknown += step.what == "unknown"
        self.unreadable += step.what == "unreadable"
        if step.model:
            self.models[step.model] = None
        self._widen_span(self.times, step.at)
        self._widen_span(self.sealed, step.signed_at)
        self._count_spending(step)
        if step.session_cost is not None:
            self.session_cost = max(step.session_cost, self.session_cost or 0)
        if step.what == "call":
            self._count_call(step)
        elif step.addition is not None and step.addition.to in self.open_calls:
            self._correct_outcome(step.addition)
        if step.what == "prompt" and step.own:
            self.prompts += 1
        elif step.asked and step.asked != self.last_asked:
            self.last_asked = step.asked
            self.prompts += 1

    def _count_call(self, step: Step) -> None:
        self.actions += 1
        self.rulings.take(step)
        self.commands += step.is_command
        self.failures += step.status == "failure"
        self.denials += step.status == "blocked"
        if step.status == "pending":
            self.open_calls.add(step.id)
        if step.is_edit:
            added, removed = step.lines or (0, 0)
            self.edits, self.added, self.removed = self.edits + 1, self.added + added, self.removed + removed

    def _correct_outcome(self, later: Addition) -> None:
        """The outcome of a call came after all."""
        self.open_calls.discard(later.to)
        self.failures += later.status == "failure"
        self.denials += later.status == "blocked"

    def _count_spending(self, step: Step) -> None:
        if step.own or not step.message:
            if not step.own and step.tool_name in _CUMULATIVE_TOOLS:
                self.growing = self.growing.max_with(step.spent)
            else:
                self.spent += step.spent
            return
        # Other software repeats the count of a message in each record that it made of it; the last is whole.
        before = self.by_message.get(step.message, Consumption())
        self.by_message[step.message] = before.max_with(step.spent)

    @staticmethod
    def _widen_span(ends: list[str], moment: str | None) -> None:
        """Keep the earliest and the latest."""
        if moment:
            ends[:] = [min([moment, *ends]), max([moment, *ends])]

    def _note_title(self, step: Step) -> None:
        self.title = step.title or self.title
        if not self.first_prompt and step.asked:
            self.first_prompt = next((line.strip() for line in step.asked.splitlines() if line.strip()), "")

    def _total_cost(self, spent: Consumption) -> float | None:
        """What the tool says that all of it cost; else the sum of what it says of parts, without the dust of adding."""
        if self.session_cost is not None:
            return self.session_cost
        return None if spent.cost_usd is None else round(spent.cost_usd, COST_DIGITS)

    def session(self, chains: SessionChains) -> SessionTotals:
        spent = self.spent + self.growing
        for each in self.by_message.values():
            spent += each
        ends: list[str] | list[None] = self.times or self.sealed or [None, None]
        return SessionTotals(
            tool=chains.tool,
            session=chains.session,
            title=self.title or self.first_prompt[:TITLE_MAX],
            started=ends[0],
            ended=ends[1],
            prompts=self.prompts,
            actions=self.actions,
            edits=self.edits,
            lines_added=self.added,
            lines_removed=self.removed,
            commands=self.commands,
            failures=self.failures,
            denials=self.denials + sum(ruling.refuses for ruling in self.rulings.list_unmatched()),
            tokens_in=spent.tokens_in,
            tokens_out=spent.tokens_out,
            cost_usd=self._total_cost(spent),
            models=tuple(self.models),
            subagents=len(chains.agents),
            unknown=self.unknown,
            unreadable=self.unreadable,
            records=self.records,
            imported=chains.imported,
            chains=chains.names,
        )
