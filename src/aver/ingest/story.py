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
from aver.ingest.diffs import counted
from aver.ingest.rulings import Ruling, Rulings, rulings_in
from aver.ingest.sessions import Chains
from aver.ingest.telling import Addition, Step, told
from aver.ledger import Ledger
from aver.values import dataclass

__all__ = ["Beat", "story", "story_of_records"]

Read = Callable[[str, int, int | None], Iterable[Sealed]]
"""Records of a chain, from a place up to another or its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """One thing to tell: a step, a decision that is about no call here, or that a subagent's part begins."""

    depth: int = 0
    """How far it stands below the session itself: 1 for its subagents."""
    step: Step | None = None
    ruling: Ruling | None = None
    added: tuple[Step, ...] = ()
    """What somebody who came later added to the step."""
    agent: str = ""
    """The subagent whose part begins."""
    chain: str | None = None


def story(ledger: Ledger, chains: Chains) -> Iterator[Beat]:
    """A session of a ledger."""
    return _Teller(ledger.read, chains, rulings_in(ledger, chains.decisions)).tell()


def story_of_records(records: Callable[[], Iterable[Sealed]], chains: Chains) -> Iterator[Beat]:
    """A session that stands in no ledger: one chain, read afresh at each call of `records`."""

    def read(chain: str, start: int, stop: int | None) -> Iterator[Sealed]:
        for place, record in enumerate(records()):
            if stop is not None and place >= stop:
                return
            if place >= start:
                yield record

    return _Teller(read, chains, Rulings()).tell()


class _Due(NamedTuple):
    """What is to be told at a time: the record at a place, or a decision."""

    at: str
    place: int
    ruling: Ruling | None = None


@dataclass(slots=True)
class _Plan:
    """In which order a chain is told."""

    due: list[_Due] = field(default_factory=list)
    additions: dict[str, list[int]] = field(default_factory=dict)
    """By the id of a record, the places of what was added to it."""
    rulings: dict[int, Ruling] = field(default_factory=dict)
    """By the place of a call, what was decided about it."""
    as_stored: bool = False


class _Teller:
    """Tells one session."""

    def __init__(self, read: Read, chains: Chains, rulings: Rulings) -> None:
        self._read = read
        self._agents = {chain: agent for agent, chain in chains.agents}
        self._main = chains.main
        self._plans = {chain: self._planned(chain, rulings) for chain in (chains.main, *self._agents) if chain}
        self._told: set[str] = set()
        left = [_Due(ruling.at or "", -1, ruling) for ruling in rulings.left()]
        if left and self._plans:
            plan = next(iter(self._plans.values()))
            plan.due = sorted([*plan.due, *left], key=lambda due: due.at)

    def tell(self) -> Iterator[Beat]:
        if self._main is not None:
            yield from self._chain(self._main, 0)
        for chain in self._agents:
            yield from self._subagent(chain, 1)

    def _planned(self, chain: str, rulings: Rulings) -> _Plan:
        plan, last, ids = _Plan(), "", set[str]()
        for place, record in enumerate(self._read(chain, 0, None)):
            step = told(record)
            plan.as_stored = plan.as_stored or step.sequence != place
            last = step.at or last
            if step.addition is not None and step.addition.to in ids:
                plan.additions.setdefault(step.addition.to, []).append(place)
                continue
            ids.add(step.id)
            plan.due.append(_Due(last, place))
            if step.what == "call" and (ruling := rulings.take(step)) is not None:
                plan.rulings[place] = ruling
        plan.due.sort(key=lambda due: (due.at, due.place))
        return plan

    def _chain(self, chain: str, depth: int) -> Iterator[Beat]:
        self._told.add(chain)
        plan, asked = self._plans[chain], ""
        for due, step in self._in_order(chain, plan):
            if step is None:
                yield Beat(depth=depth, ruling=due.ruling, chain=chain)
                continue
            if not step.own and step.asked and step.asked != asked:
                asked = step.asked
                yield Beat(depth=depth, step=_prompt_of(step), chain=chain)
                if step.what == "prompt":
                    continue
            added = tuple(told(record) for record in self._added(chain, plan, step))
            yield Beat(
                depth=depth, step=_settled(step, added), ruling=plan.rulings.get(due.place), added=added, chain=chain
            )
            if step.subagent in self._agents:
                yield from self._subagent(step.subagent, depth + 1)

    def _subagent(self, chain: str, depth: int) -> Iterator[Beat]:
        if chain not in self._told:
            yield Beat(depth=depth, agent=self._agents[chain], chain=chain)
            yield from self._chain(chain, depth)

    def _in_order(self, chain: str, plan: _Plan) -> Iterator[tuple[_Due, Step | None]]:
        """What is due, with its record; records that follow each other are read at once."""
        if plan.as_stored:
            yield from ((due, None) for due in plan.due if due.ruling is not None)
            records = enumerate(map(told, self._read(chain, 0, None)))
            yield from ((_Due("", place), step) for place, step in records)
            return
        run: list[_Due] = []
        for due in plan.due:
            if run and (due.ruling is not None or due.place != run[-1].place + 1):
                yield from self._run(chain, run)
                run = []
            if due.ruling is not None:
                yield due, None
            else:
                run.append(due)
        yield from self._run(chain, run)

    def _run(self, chain: str, run: list[_Due]) -> Iterator[tuple[_Due, Step | None]]:
        if run:
            records = self._read(chain, run[0].place, run[-1].place + 1)
            yield from zip(run, map(told, records), strict=False)

    def _added(self, chain: str, plan: _Plan, step: Step) -> Iterator[Sealed]:
        for place in () if plan.as_stored else plan.additions.get(step.id, ()):
            yield from self._read(chain, place, place + 1)


def _prompt_of(step: Step) -> Step:
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


def _settled(step: Step, added: tuple[Step, ...]) -> Step:
    """A step with what was learned later: what the model thought, and the outcome of a call that had none yet."""
    for later in added:
        if later.addition is not None:
            step = _ended(step, later.addition)
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


def _ended(step: Step, later: Addition) -> Step:
    if step.status == "pending" and later.status:
        step = replace(step, status=later.status, error=later.error)
    result, diff = later.says.get("result"), later.says.get("diff")
    return replace(
        step,
        result=result if step.result is None else step.result,
        diff=diff if step.diff is None else step.diff,
        lines=counted(diff) if step.lines is None and isinstance(diff, str) and step.took_place else step.lines,
    )
