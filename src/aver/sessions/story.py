"""Builds the story of a session: its steps in the order in which they happened.

    for entry in read_story(ledger, chains): ...

Records are stored in the order of sealing, which is not the order of events: a hook seals a call before the transcript
shows the prompt. So each chain is read twice.

1. The first pass plans the order. It collects times, later additions, and the gate's decisions about calls.
2. The second pass reads the records in that order. Each call comes with its additions and its decision, and each
   subagent comes after the call that started it.

A record without a time follows the record before it. If records are not at the place that they claim, the chain is
damaged. It is then shown as it is stored, and its verdict says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import field, replace
from typing import NamedTuple

from aver.capsule.sealed import Sealed
from aver.diffs import count_changed_lines
from aver.fast_dataclass import dataclass
from aver.gate.decision_record import RecordedDecision
from aver.ledger import Ledger
from aver.sessions.decisions import DecisionMatcher, read_decisions
from aver.sessions.sessions import SessionChains
from aver.sessions.step import Step, read_step

ReadChain = Callable[[str, int, int | None], Iterable[Sealed]]
"""Reads records of a chain, from a place up to another place or to the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryEntry:
    """One entry of a story: a step, a decision that belongs to no step, or the start of a subagent's part."""

    depth: int = 0
    """0 for the session itself, 1 for its subagents, and so on."""
    step: Step | None = None
    decision: RecordedDecision | None = None
    """The gate's decision about the step, or without a step, about a call that is in no transcript."""
    additions: tuple[Step, ...] = ()
    """Later records that add to the step."""
    agent: str = ""
    """The subagent whose part starts here."""
    chain: str | None = None


def read_story(ledger: Ledger, chains: SessionChains) -> Iterator[StoryEntry]:
    """The story of a session in a ledger."""
    return _StoryBuilder(ledger.read, chains, read_decisions(ledger, chains.decisions)).build()


def story_from_records(records: Callable[[], Iterable[Sealed]], chains: SessionChains) -> Iterator[StoryEntry]:
    """The story of a session that is in no ledger. `records` reads its one chain from the start."""

    def read(chain: str, start: int, stop: int | None) -> Iterator[Sealed]:
        for place, record in enumerate(records()):
            if stop is not None and place >= stop:
                return
            if place >= start:
                yield record

    return _StoryBuilder(read, chains, DecisionMatcher()).build()


class _PlannedItem(NamedTuple):
    """One planned entry: the record at a place, or a decision."""

    at: str
    place: int
    decision: RecordedDecision | None = None


@dataclass(slots=True)
class _ChainPlan:
    """The order in which the records of a chain are shown."""

    items: list[_PlannedItem] = field(default_factory=list)
    additions: dict[str, list[int]] = field(default_factory=dict)
    """By the id of a record, the places of its additions."""
    decisions: dict[int, RecordedDecision] = field(default_factory=dict)
    """By the place of a call, the decision about it."""
    as_stored: bool = False
    """Whether the records are not at the places that they claim."""


class _StoryBuilder:
    """Builds the story of one session."""

    def __init__(self, read: ReadChain, chains: SessionChains, decisions: DecisionMatcher) -> None:
        self._read = read
        self._agents = {chain: agent for agent, chain in chains.agents}
        self._main = chains.main
        self._plans = {chain: self._plan_chain(chain, decisions) for chain in (chains.main, *self._agents) if chain}
        self._built: set[str] = set()
        # Decisions about calls that are in no transcript go into the main chain, by their time.
        unmatched = [_PlannedItem(decision.at or "", -1, decision) for decision in decisions.list_unmatched()]
        if unmatched and self._plans:
            plan = next(iter(self._plans.values()))
            plan.items = sorted([*plan.items, *unmatched], key=lambda item: item.at)

    def build(self) -> Iterator[StoryEntry]:
        """The entries: the main chain with its subagents, then subagents that no call started."""
        if self._main is not None:
            yield from self._build_chain(self._main, 0)
        for chain in self._agents:
            yield from self._build_subagent(chain, 1)

    def _plan_chain(self, chain: str, decisions: DecisionMatcher) -> _ChainPlan:
        """Plan the order of a chain: the first pass."""
        plan, last, ids = _ChainPlan(), "", set[str]()
        for place, record in enumerate(self._read(chain, 0, None)):
            step = read_step(record)
            plan.as_stored = plan.as_stored or step.sequence != place
            last = step.at or last
            if step.addition is not None and step.addition.to in ids:
                plan.additions.setdefault(step.addition.to, []).append(place)
                continue
            ids.add(step.id)
            plan.items.append(_PlannedItem(last, place))
            if step.what == "call" and (decision := decisions.take(step)) is not None:
                plan.decisions[place] = decision
        plan.items.sort(key=lambda item: (item.at, item.place))
        return plan

    def _build_chain(self, chain: str, depth: int) -> Iterator[StoryEntry]:
        """Yield the entries of a chain in the planned order: the second pass."""
        self._built.add(chain)
        plan, asked = self._plans[chain], ""
        for item, step in self._read_in_order(chain, plan):
            if step is None:
                yield StoryEntry(depth=depth, decision=item.decision, chain=chain)
                continue
            # Other tools' records repeat the prompt. Show it once, before the first record that has it, as a step of
            # its own with that record's seal.
            if not step.own and step.asked and step.asked != asked:
                asked = step.asked
                prompt = Step(
                    what="prompt",
                    id=step.id,
                    chain=step.chain,
                    sequence=step.sequence,
                    hash=step.hash,
                    signed_by=step.signed_by,
                    signed_at=step.signed_at,
                    at=step.at,
                    asked=step.asked,
                )
                yield StoryEntry(depth=depth, step=prompt, chain=chain)
                if step.what == "prompt":
                    continue
            places = () if plan.as_stored else plan.additions.get(step.id, ())
            additions = tuple(read_step(record) for place in places for record in self._read(chain, place, place + 1))
            yield StoryEntry(
                depth=depth,
                step=_apply_additions(step, additions),
                decision=plan.decisions.get(item.place),
                additions=additions,
                chain=chain,
            )
            if step.subagent in self._agents:
                yield from self._build_subagent(step.subagent, depth + 1)

    def _build_subagent(self, chain: str, depth: int) -> Iterator[StoryEntry]:
        if chain not in self._built:
            yield StoryEntry(depth=depth, agent=self._agents[chain], chain=chain)
            yield from self._build_chain(chain, depth)

    def _read_in_order(self, chain: str, plan: _ChainPlan) -> Iterator[tuple[_PlannedItem, Step | None]]:
        """Yield the planned items with their steps. One query reads records that follow each other."""
        if plan.as_stored:
            yield from ((item, None) for item in plan.items if item.decision is not None)
            records = enumerate(map(read_step, self._read(chain, 0, None)))
            yield from ((_PlannedItem("", place), step) for place, step in records)
            return
        run: list[_PlannedItem] = []
        for item in plan.items:
            if run and (item.decision is not None or item.place != run[-1].place + 1):
                yield from self._read_run(chain, run)
                run = []
            if item.decision is not None:
                yield item, None
            else:
                run.append(item)
        yield from self._read_run(chain, run)

    def _read_run(self, chain: str, run: list[_PlannedItem]) -> Iterator[tuple[_PlannedItem, Step | None]]:
        if run:
            records = self._read(chain, run[0].place, run[-1].place + 1)
            yield from zip(run, map(read_step, records), strict=False)


def _apply_additions(step: Step, additions: tuple[Step, ...]) -> Step:
    """Return the step with the fields that later records add: thinking, tokens, or the outcome of a pending call."""
    for later in additions:
        if (addition := later.addition) is not None:
            if step.status == "pending" and addition.status:
                step = replace(step, status=addition.status, error=addition.error)
            result, diff, lines = addition.says.get("result"), addition.says.get("diff"), step.lines
            # Only an edit that took place counts lines. The status above decides that, so it must be set first.
            if lines is None and isinstance(diff, str) and step.has_happened:
                lines = count_changed_lines(diff)
            step = replace(
                step,
                result=result if step.result is None else step.result,
                diff=diff if step.diff is None else step.diff,
                lines=lines,
            )
        # The first record wins. A later one only fills gaps.
        step = replace(
            step,
            thinking=step.thinking or later.thinking,
            text=step.text or later.text,
            redacted=step.redacted or later.redacted,
            model=step.model or later.model,
            authority=later.authority if step.authority == "unknown" else step.authority,
            rule=step.rule or later.rule,
            duration_ms=later.duration_ms if step.duration_ms is None else step.duration_ms,
            spent=step.spent + later.spent,
            cut={**later.cut, **step.cut},
        )
    return step
