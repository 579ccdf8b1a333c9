"""A session told in the order in which it happened: for a person who reads it, and for the page that shows it.

    for beat in story(ledger, chains): ...

Records stand in a chain in the order of sealing: a hook seals a call before the transcript tells what was asked. So a
chain is read twice: once for the times, the additions and the decisions of the gate; then record by record, the calls
with what was added to them and decided about them, each subagent below the call that launched it. What has no time
stays behind what stands before it in the chain. A chain whose records do not stand where they say is told as it is
stored: then something is wrong with it, which its verdict tells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import field, replace
from typing import NamedTuple

from aver.capsule.sealed import Sealed
from aver.fast_dataclass import dataclass
from aver.gate.decision_record import RecordedDecision
from aver.ingest.diffs import count_changed_lines
from aver.ledger import Ledger
from aver.sessions.decisions import DecisionMatcher, read_decisions
from aver.sessions.sessions import SessionChains
from aver.sessions.step import Addition, Step, read_step

__all__ = ["StoryEntry", "read_story", "story_from_records"]

ReadChain = Callable[[str, int, int | None], Iterable[Sealed]]
"""Records of a chain, from a place up to another or its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryEntry:
    """One thing to tell: a step, a decision that is about no call here, or that a subagent's part begins."""

    depth: int = 0
    """How far it stands below the session itself: 1 for its subagents."""
    step: Step | None = None
    ruling: RecordedDecision | None = None
    added: tuple[Step, ...] = ()
    """What somebody who came later added to the step."""
    agent: str = ""
    """The subagent whose part begins."""
    chain: str | None = None


def read_story(ledger: Ledger, chains: SessionChains) -> Iterator[StoryEntry]:
    """A session of a ledger."""
    return _StoryBuilder(ledger.read, chains, read_decisions(ledger, chains.decisions)).tell()


def story_from_records(records: Callable[[], Iterable[Sealed]], chains: SessionChains) -> Iterator[StoryEntry]:
    """A session that stands in no ledger: one chain, read afresh at each call of `records`."""

    def read(chain: str, start: int, stop: int | None) -> Iterator[Sealed]:
        for place, record in enumerate(records()):
            if stop is not None and place >= stop:
                return
            if place >= start:
                yield record

    return _StoryBuilder(read, chains, DecisionMatcher()).tell()


class _PlannedItem(NamedTuple):
    """What is to be told at a time: the record at a place, or a decision."""

    at: str
    place: int
    ruling: RecordedDecision | None = None


@dataclass(slots=True)
class _ChainPlan:
    """In which order a chain is told."""

    due: list[_PlannedItem] = field(default_factory=list)
    additions: dict[str, list[int]] = field(default_factory=dict)
    """By the id of a record, the places of what was added to it."""
    rulings: dict[int, RecordedDecision] = field(default_factory=dict)
    """By the place of a call, what was decided about it."""
    as_stored: bool = False


class _StoryBuilder:
    """Tells one session."""

    def __init__(self, read: ReadChain, chains: SessionChains, rulings: DecisionMatcher) -> None:
        self._read = read
        self._agents = {chain: agent for agent, chain in chains.agents}
        self._main = chains.main
        self._plans = {chain: self._plan_chain(chain, rulings) for chain in (chains.main, *self._agents) if chain}
        self._told: set[str] = set()
        left = [_PlannedItem(ruling.at or "", -1, ruling) for ruling in rulings.list_unmatched()]
        if left and self._plans:
            plan = next(iter(self._plans.values()))
            plan.due = sorted([*plan.due, *left], key=lambda due: due.at)

    def tell(self) -> Iterator[StoryEntry]:
        if self._main is not None:
            yield from self._build_chain(self._main, 0)
        for chain in self._agents:
            yield from self._build_subagent(chain, 1)

    def _plan_chain(self, chain: str, rulings: DecisionMatcher) -> _ChainPlan:
        plan, last, ids = _ChainPlan(), "", set[str]()
        for place, record in enumerate(self._read(chain, 0, None)):
            step = read_step(record)
            plan.as_stored = plan.as_stored or step.sequence != place
            last = step.at or last
            if step.addition is not None and step.addition.to in ids:
                plan.additions.setdefault(step.addition.to, []).append(place)
                continue
            ids.add(step.id)
            plan.due.append(_PlannedItem(last, place))
            if step.what == "call" and (ruling := rulings.take(step)) is not None:
                plan.rulings[place] = ruling
        plan.due.sort(key=lambda due: (due.at, due.place))
        return plan

    def _build_chain(self, chain: str, depth: int) -> Iterator[StoryEntry]:
        self._told.add(chain)
        plan, asked = self._plans[chain], ""
        for due, step in self._read_in_order(chain, plan):
            if step is None:
                yield StoryEntry(depth=depth, ruling=due.ruling, chain=chain)
                continue
            if not step.own and step.asked and step.asked != asked:
                asked = step.asked
                yield StoryEntry(depth=depth, step=_prompt_from_step(step), chain=chain)
                if step.what == "prompt":
                    continue
            added = tuple(read_step(record) for record in self._read_additions(chain, plan, step))
            yield StoryEntry(
                depth=depth,
                step=_apply_additions(step, added),
                ruling=plan.rulings.get(due.place),
                added=added,
                chain=chain,
            )
            if step.subagent in self._agents:
                yield from self._build_subagent(step.subagent, depth + 1)

    def _build_subagent(self, chain: str, depth: int) -> Iterator[StoryEntry]:
        if chain not in self._told:
            yield StoryEntry(depth=depth, agent=self._agents[chain], chain=chain)
            yield from self._build_chain(chain, depth)

    def _read_in_order(self, chain: str, plan: _ChainPlan) -> Iterator[tuple[_PlannedItem, Step | None]]:
        """What is due, with its record; records that follow each other are read at once."""
        if plan.as_stored:
            yield from ((due, None) for due in plan.due if due.ruling is not None)
            records = enumerate(map(read_step, self._read(chain, 0, None)))
            yield from ((_PlannedItem("", place), step) for place, step in records)
            return
        run: list[_PlannedItem] = []
        for due in plan.due:
            if run and (due.ruling is not None or due.place != run[-1].place + 1):
                yield from self._read_run(chain, run)
                run = []
            if due.ruling is not None:
                yield due, None
            else:
                run.append(due)
        yield from self._read_run(chain, run)

    def _read_run(self, chain: str, run: list[_PlannedItem]) -> Iterator[tuple[_PlannedItem, Step | None]]:
        if run:
            records = self._read(chain, run[0].place, run[-1].place + 1)
            yield from zip(run, map(read_step, records), strict=False)

    def _read_additions(self, chain: str, plan: _ChainPlan, step: Step) -> Iterator[Sealed]:
        for place in () if plan.as_stored else plan.additions.get(step.id, ()):
            yield from self._read(chain, place, place + 1)


def _prompt_from_step(step: Step) -> Step:
    """The prompt that another tool's record repeats, as if it stood for itself. It is sealed in that record."""
    return Step(
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


def _apply_additions(step: Step, added: tuple[Step, ...]) -> Step:
    """A step with what was learned later: what the model thought, and the outcome of a call that had none yet."""
    for later in added:
        if later.addition is not None:
            step = _apply_outcome(step, later.addition)
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


def _apply_outcome(step: Step, later: Addition) -> Step:
    if step.status == "pending" and later.status:
        step = replace(step, status=later.status, error=later.error)
    result, diff = later.says.get("result"), later.says.get("diff")
    return replace(
        step,
        result=result if step.result is None else step.result,
        diff=diff if step.diff is None else step.diff,
        lines=count_changed_lines(diff)
        if step.lines is None and isinstance(diff, str) and step.has_happened
        else step.lines,
    )
