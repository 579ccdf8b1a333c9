"""The sessions of coding agents in a ledger: which there are, what each did, and the verdict on each.

A session is the chain `<tool>.<session>`, the chains of its subagents, and the chain of the gate's decisions about it.
The first record of each chain says to which session it belongs; the name alone does not. Imported chains, also those of
the agent-capsule tool, are sessions, too; each import has its own.

`find_sessions` reads only the first and last records of each chain, so it lists hundreds of sessions quickly.
`compute_totals` reads one session completely. A call counts once: a later addition to its record may add tokens or
correct the outcome, but is no second call. `count_session` counts the same, and says also in which hour each figure
arose. `find_session` finds the session that a person names by its chain, its id, or the beginning of either. None of
these verifies anything; `verify_session` gives one verdict on all chains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from typing import NamedTuple

from aver.capsule.aver_block import IMPORT_DOMAIN, RESERVED_CHAINS, split_chain_name
from aver.capsule.sealed import Sealed
from aver.errors import BadInput, NotFound
from aver.fast_dataclass import dataclass
from aver.ingest.draft import session_chain_name
from aver.ingest.foreign_json import to_utc
from aver.ledger import Ledger
from aver.ledger.imports.source import OLD_IMPORT, original_name, read_digits
from aver.ledger.stores.protocol import ChainRow
from aver.sessions.decisions import DecisionMatcher, read_decisions
from aver.sessions.step import Consumption, Step, read_step
from aver.verdict import Verdict, merge_verdicts

DECISION_DOMAIN = "gate"
"""The domain of the chains of the gate's decisions."""

OTHER_DOMAINS = frozenset({DECISION_DOMAIN, "actions", "gateway", "protocol", "approvals", *RESERVED_CHAINS})
"""Domains of chains that are not sessions of coding agents."""

LATEST_RECORDS = 16
"""How many records at a chain's end are searched for the latest time. Aver's own notes have no time."""

TITLE_MAX = 120
"""The longest title that is made from a prompt, in characters."""

COST_DIGITS = 9
"""Digits after the point of a total cost, to remove rounding errors of the addition."""

HOUR_LENGTH = 13
"""Characters of a time that name its hour: `2026-05-31T09`."""

_CUMULATIVE_TOOLS = frozenset({"codex"})
"""Tools whose records by agent-capsule repeat the token count of the whole session."""


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
        all_of_them = (self.main, *(chain for _, chain in self.agents), self.decisions)
        return tuple(chain for chain in all_of_them if chain is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTotals:
    """Figures of a session, with its subagents."""

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
    gated: int = 0
    """Actions that the gate decided about before they were done."""
    observed: int = 0
    """Decisions in the mode `observe`, which held nothing back."""
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost_usd: float | None = None
    models: tuple[str, ...] = ()
    subagents: int = 0
    unknown: int = 0
    """Records of a kind that Aver did not know when it sealed them."""
    unreadable: int = 0
    records: int = 0
    imported: bool = False
    chains: tuple[str, ...] = ()


class HourFigures(NamedTuple):
    """Figures of a session that arose within one hour. Their sums over all hours are those of `SessionTotals`."""

    prompts: int = 0
    actions: int = 0
    edits: int = 0
    failures: int = 0
    denials: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCount:
    """The totals of a session, and figures that `aver sessions` does not list."""

    totals: SessionTotals
    highest_risk: float | None
    """The highest score of a decision about the session; None where the gate computed none."""
    workspace: str
    """The first directory that a record names as the place of work; empty if none does."""
    hours: Mapping[str, HourFigures]
    """By hour of UTC, such as `2026-05-31T09`; under an empty text, figures of records without a time."""


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


def chains_from_records(records: Iterable[Sealed], name: str) -> SessionChains | None:
    """The session of records in a file or database called `name`; None if they are no session."""
    first = next(map(read_step, records), None)
    if first is None or not first.tool_name or first.tool_name in OTHER_DOMAINS:
        return None
    if not first.session or (first.own and not first.key.startswith(f"{first.tool_name}:")):
        return None
    return SessionChains(tool=first.tool_name, session=first.session, main=name)


def compute_totals(ledger: Ledger, chains: SessionChains) -> SessionTotals:
    """Count what was done in a session of a ledger."""
    return count_session(ledger, chains, lambda chain: map(read_step, ledger.read(chain))).totals


def count_session(ledger: Ledger, chains: SessionChains, read_steps: Callable[[str], Iterable[Step]]) -> SessionCount:
    """Count what was done in a session, and in which hour. `read_steps` gives all steps of a chain, in order."""
    decisions = read_decisions(ledger, chains.decisions)
    count = _SessionCounter(decisions)
    for chain in chains.names:
        if chain != chains.decisions:
            count.add_steps(read_steps(chain), main=chain == chains.main)
    if chains.decisions is not None:
        # The verdict on the session counts these records, too, and both numbers stand side by side.
        count.records += ledger.head(chains.decisions).count
    return SessionCount(
        totals=count.to_totals(chains),
        highest_risk=decisions.highest_score,
        workspace=count.workspace,
        hours=count.list_hours(),
    )


def compute_step_totals(steps: Iterable[Step], chains: SessionChains) -> SessionTotals:
    """Count what was done in a session that is in no ledger."""
    count = _SessionCounter(DecisionMatcher())
    count.add_steps(steps, main=True)
    return count.to_totals(chains)


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
    """What tells the imports of several sources apart; empty for a chain that was made here."""
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
    try:
        return next(map(read_step, ledger.read(row.name, 0, 1)), None)
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


# --- counting


@dataclass(slots=True)
class _SessionCounter:
    """Counts steps, one by one."""

    decisions: DecisionMatcher
    prompts: int = 0
    actions: int = 0
    edits: int = 0
    added: int = 0
    removed: int = 0
    commands: int = 0
    failures: int = 0
    denials: int = 0
    gated: int = 0
    observed: int = 0
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
    """Ids of calls whose outcome is not known yet."""
    by_message: dict[str, Consumption] = field(default_factory=dict)
    messages: HourFigures = HourFigures()
    """The sum of `by_message`, which is needed at each new hour."""
    last_asked: str = ""
    workspace: str = ""
    hour: str = ""
    before_hour: HourFigures = HourFigures()
    """The figures when the present hour began."""
    hours: dict[str, HourFigures] = field(default_factory=dict)

    def add_steps(self, steps: Iterable[Step], *, main: bool) -> None:
        for step in steps:
            self._add_step(step)
            if main:
                self.title = step.title or self.title
                if not self.first_prompt and step.asked:
                    self.first_prompt = next((line.strip() for line in step.asked.splitlines() if line.strip()), "")

    def _add_step(self, step: Step) -> None:
        hour = (step.at or to_utc(step.signed_at) or self.hour)[:HOUR_LENGTH]
        if hour != self.hour:
            self._close_hour()
            self.hour = hour
        self.records += 1
        self.workspace = self.workspace or step.workspace
        self.unknown += step.what == "unknown"
        self.unreadable += step.what == "unreadable"
        if step.model:
            self.models[step.model] = None
        self._widen_span(self.times, step.at)
        self._widen_span(self.sealed, step.signed_at)
        # Aver's records have each count once. agent-capsule repeats a growing count: of the session for some tools, of
        # the message for others. There the largest count is the complete one.
        if step.own or (not step.message and step.tool_name not in _CUMULATIVE_TOOLS):
            self.spent += step.spent
        elif not step.message:
            self.growing = self.growing.max_with(step.spent)
        else:
            before = self.by_message.get(step.message, Consumption())
            after = self.by_message[step.message] = before.max_with(step.spent)
            self.messages = _add_figures(self.messages, _spent_figures(after), _spent_figures(before))
        if step.session_cost is not None:
            self.session_cost = max(step.session_cost, self.session_cost or 0)
        if step.what == "call":
            self.actions += 1
            # Taking it leaves those at the end that are about no call.
            decision = self.decisions.take(step)
            self.gated += decision is not None
            self.observed += decision is not None and decision.is_observed
            self.commands += step.is_command
            self.failures += step.status == "failure"
            self.denials += step.status == "blocked"
            if step.status == "pending":
                self.open_calls.add(step.id)
            if step.is_edit:
                added, removed = step.lines or (0, 0)
                self.edits, self.added, self.removed = self.edits + 1, self.added + added, self.removed + removed
        elif step.addition is not None and step.addition.to in self.open_calls:
            # Count the outcome of a call that was pending.
            later = step.addition
            self.open_calls.discard(later.to)
            self.failures += later.status == "failure"
            self.denials += later.status == "blocked"
        if step.what == "prompt" and step.own:
            self.prompts += 1
        elif step.asked and step.asked != self.last_asked:
            self.last_asked = step.asked
            self.prompts += 1

    def _figures(self) -> HourFigures:
        spent = _add_figures(_spent_figures(self.spent + self.growing), self.messages)
        return spent._replace(
            prompts=self.prompts,
            actions=self.actions,
            edits=self.edits,
            failures=self.failures,
            denials=self.denials,
            cost_usd=spent.cost_usd if self.session_cost is None else self.session_cost,
        )

    def _close_hour(self) -> None:
        """Credit the present hour with everything that was counted since it began."""
        figures = self._figures()
        if figures != self.before_hour:
            known = self.hours.get(self.hour, HourFigures())
            self.hours[self.hour] = _add_figures(known, figures, self.before_hour)
        self.before_hour = figures

    def list_hours(self) -> dict[str, HourFigures]:
        """The figures by hour, with the denials of calls that are in no transcript."""
        self._close_hour()
        hours = dict(self.hours)
        for decision in self.decisions.list_unmatched():
            if decision.refuses and not decision.is_observed:
                hour = (to_utc(decision.at) or "")[:HOUR_LENGTH]
                hours[hour] = _add_figures(hours.get(hour, HourFigures()), HourFigures(denials=1))
        return hours

    @staticmethod
    def _widen_span(ends: list[str], moment: str | None) -> None:
        """Keep the earliest and the latest moment."""
        if moment and not ends:
            ends[:] = [moment, moment]
        elif moment and moment < ends[0]:
            ends[0] = moment
        elif moment and moment > ends[1]:
            ends[1] = moment

    def to_totals(self, chains: SessionChains) -> SessionTotals:
        spent = self.spent + self.growing
        for each in self.by_message.values():
            spent += each
        # The total that the agent reports is better than the sum of the steps, some of which have no cost.
        cost = self.session_cost
        if cost is None and spent.cost_usd is not None:
            cost = round(spent.cost_usd, COST_DIGITS)
        ends: list[str] | list[None] = self.times or self.sealed or [None, None]
        left = self.decisions.list_unmatched()
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
            denials=self.denials + sum(decision.refuses and not decision.is_observed for decision in left),
            gated=self.gated,
            observed=self.observed + sum(decision.is_observed for decision in left),
            tokens_in=spent.tokens_in,
            tokens_out=spent.tokens_out,
            cost_usd=cost,
            models=tuple(self.models),
            subagents=len(chains.agents),
            unknown=self.unknown,
            unreadable=self.unreadable,
            records=self.records,
            imported=chains.imported,
            chains=chains.names,
        )


def _spent_figures(spent: Consumption) -> HourFigures:
    return HourFigures(tokens_in=spent.tokens_in or 0, tokens_out=spent.tokens_out or 0, cost_usd=spent.cost_usd or 0.0)


_NO_FIGURES = HourFigures()


def _add_figures(first: HourFigures, second: HourFigures, less: HourFigures = _NO_FIGURES) -> HourFigures:
    return HourFigures._make(one + other - minus for one, other, minus in zip(first, second, less, strict=True))


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
    first = None if domain in (*OTHER_DOMAINS, IMPORT_DOMAIN) else next(iter(ledger.read(chain, 0, 1)), None)
    session = None if first is None else first.to_dict()["context"].get("session_id")
    return (domain, session) if isinstance(session, str) else None


def list_session_chains(ledger: Ledger, tool: str, session: str) -> list[str]:
    """The chains of a session: its own, then those of its subagents."""
    own = session_chain_name(tool, session)
    chains = ledger.chains()
    return [*(name for name in chains if name == own), *sorted(name for name in chains if name.startswith(f"{own}."))]


def verify_session(ledger: Ledger, chains: SessionChains) -> Verdict:
    """One verdict on all chains of a session: its own, its subagents' and that of the gate's decisions."""
    verdicts = {chain: ledger.verify(chain) for chain in chains.names}
    only = next(iter(verdicts.values()))
    return only if len(verdicts) == 1 else merge_verdicts(f"session {chains.tool} {chains.session}", verdicts)
