"""The figures of a session: what was done in it, what it cost, and in which hour.

`compute_totals` reads one session completely. A call counts once: a later addition to its record may add tokens or
correct the outcome, but is no second call. `count_session` counts the same, and says also in which hour each figure
arose. Nothing is verified here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import NamedTuple

from aver.fast_dataclass import dataclass
from aver.ingest.foreign_json import to_utc
from aver.ledger import Ledger
from aver.sessions.decisions import DecisionMatcher, read_decisions
from aver.sessions.sessions import SessionChains
from aver.sessions.step import Consumption, Step, read_step

TITLE_MAX = 120
"""The longest title that is made from a prompt or a call, in characters."""

TITLE_SOURCE_MAX = 4 * TITLE_MAX
"""Characters of a text that are read for a title: an answer may be long."""

COST_DIGITS = 9
"""Digits after the point of a total cost, to remove rounding errors of the addition."""

HOUR_LENGTH = 13
"""Characters of a time that name its hour: `2026-05-31T09`."""

_CUMULATIVE_TOOLS = frozenset({"codex"})
"""Tools whose records by agent-capsule repeat the token count of the whole session."""


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
    first_text: str = ""
    """The first call or answer: the title of a session without a prompt."""
    first_told: str = ""
    """The first prompt that a hook reported, while no transcript was read."""
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
                if not self.first_told and isinstance(step.more, dict) and step.more.keys() >= {"event", "prompt"}:
                    self.first_told = step.summary.partition(": ")[2]
                if not self.first_prompt and step.asked:
                    self.first_prompt = next((line.strip() for line in step.asked.splitlines() if line.strip()), "")

    def _add_step(self, step: Step) -> None:
        hour = (step.at or to_utc(step.signed_at) or self.hour)[:HOUR_LENGTH]
        if hour != self.hour:
            self._close_hour()
            self.hour = hour
        self.records += 1
        self.workspace = self.workspace or step.workspace
        if not self.first_text and step.what in ("call", "answer"):
            self.first_text = " ".join((step.summary or step.text or step.call)[:TITLE_SOURCE_MAX].split())
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
            title=self.title or (self.first_prompt or self.first_told or self.first_text)[:TITLE_MAX],
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
