"""From the ledger to the live events of a workspace.

A `Projection` follows chains: each time it is brought up, the records that came since give their events, and the log
takes those that it has not. So a server that was killed between the record and the line leaves no gap, and one that
starts again, or works beside another, doubles nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from aver.actions.folder import identity_in
from aver.actions.records import gate_chain, run_chain
from aver.errors import AverError, NotFound
from aver.events.event import Event, event_of
from aver.events.log import EventLog
from aver.ledger import Ledger

__all__ = ["Projection", "rebuild"]


class Projection:
    """Brings a workspace's log up to the chains of its runs. Not safe for threads: the caller holds a lock."""

    def __init__(self, ledger: Ledger, directory: Path) -> None:
        self._ledger = ledger
        self._log = EventLog(directory)
        self._seen: dict[str, int] = {}
        """How many records of each chain have given their events."""

    def bring_up(self, run_id: str) -> None:
        """Add the events of a run's newest records. `Unavailable` if that cannot be done now: try again later."""
        counts: dict[str, int] = {}
        self._log.add(self._new(run_id, counts))
        self._seen |= counts

    def _new(self, run_id: str, counts: dict[str, int]) -> Iterator[Event]:
        """The events of what is new, and in `counts` how far that goes: found out when the first is taken."""
        chains = (gate_chain(run_id), run_chain(run_id))
        counts |= {chain: self._ledger.head(chain).count for chain in chains}
        starts = {chain: self._seen.get(chain, 0) for chain in chains}
        events = (event for chain in chains for event in _events(self._ledger, chain, starts[chain], counts[chain]))
        yield from sorted(events, key=lambda event: event.timestamp)


def rebuild(ledger: Ledger, directory: Path) -> int:
    """Make the log anew from the ledger: of all runs that the workspace has. Returns how many runs gave events."""
    events: list[Event] = []
    runs = list(_runs(ledger, directory / "runs"))
    for run_id in runs:
        for chain in (gate_chain(run_id), run_chain(run_id)):
            events += _events(ledger, chain, 0, ledger.head(chain).count)
    EventLog(directory).replace(sorted(events, key=lambda event: event.timestamp))
    return len(runs)


def _runs(ledger: Ledger, directory: Path) -> Iterable[str]:
    """The runs of a workspace that are sealed in this ledger."""
    if not directory.is_dir():
        return
    for path in sorted(directory.iterdir()):
        if path.is_dir() and not path.is_symlink():
            try:
                identity = identity_in(path)
            except AverError:
                continue
            if identity is not None and (identity.ledger, identity.tenant) == (ledger.id, ledger.tenant):
                yield identity.run_id


def _events(ledger: Ledger, chain: str, start: int, stop: int) -> Iterator[Event]:
    try:
        for record in ledger.read(chain, start, stop) if stop > start else ():
            event = event_of(record)
            if event is not None:
                yield event
    except NotFound:
        return
