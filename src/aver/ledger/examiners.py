"""What the rooms above the ledger know about their own chains, and a verdict on a ledger must not leave out.

A room that seals records in chains of its own domain can hold them to more than their seals: an approval to its
signature, a decision to being made again. It lists functions as `EXAMINERS`; `EXAMINERS_IN` says in which module, by
domain. A module is imported only for a ledger that has such chains.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from aver.fast_dataclass import dataclass
from aver.ledger.stores.rows import ChainRow
from aver.verdict import Rules, Tally

if TYPE_CHECKING:
    from aver.ledger.ledger import Ledger

__all__ = ["EXAMINER_MODULES", "Examiner", "VerificationScope", "run_examiners"]

EXAMINER_MODULES = {
    "approvals": "aver.gate.replay",
    "approvers": "aver.gate.replay",
    "gate": "aver.gate.replay",
}
"""Modules with `EXAMINERS`, by the domains of the chains that they are about."""


@dataclass(frozen=True, slots=True)
class VerificationScope:
    """What of a ledger is being verified."""

    rules: Rules
    rows: Sequence[ChainRow]
    starts: Mapping[str, int]
    """By chain: what comes before this place was verified before."""

    def chains(self, domain: str) -> list[ChainRow]:
        """The chains of a domain that are this ledger's own. What was imported is another's word."""
        return [row for row in self.rows if row.name.partition(".")[0] == domain and not row.frozen]


Examiner = Callable[["Ledger", VerificationScope], Tally]


def run_examiners(ledger: Ledger, scope: VerificationScope, tally: Tally) -> None:
    """Add what the rooms find out about their own chains."""
    if scope.rules.level != "signature":
        return
    modules = {module for domain, module in EXAMINER_MODULES.items() if scope.chains(domain)}
    for module in sorted(modules):
        examiners: tuple[Examiner, ...] = import_module(module).EXAMINERS
        for examiner in examiners:
            tally.merge(examiner(ledger, scope))
