"""The notes that verbs print about a bundle or `.cap` file: its verdict, and how many records are not shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aver.cli.terminal import StderrScreen
from aver.cli.verdict_text import exit_code
from aver.text import plural

if TYPE_CHECKING:
    from aver.ledger import Ledger
    from aver.ledger.stores.protocol import ChainRow
    from aver.verdict import Verdict


def read_only_verdict(ledger: Ledger) -> Verdict | None:
    """The verdict on a bundle or `.cap` file; None for a ledger, which `aver verify` verifies."""
    from aver.ledger.read_only import ReadOnlyLedger

    return ledger.verdict if isinstance(ledger, ReadOnlyLedger) else None


def verdict_entry(ledger: Ledger) -> dict[str, Any]:
    """The part of a JSON answer that says how much of a bundle or `.cap` file holds; empty for a ledger."""
    from aver.ledger.read_only import ReadOnlyLedger

    if not isinstance(ledger, ReadOnlyLedger):
        return {}
    return {"read_only": True, "verdict": ledger.verdict.to_dict(), "left_out": ledger.left_out}


def count_records(ledger: Ledger, row: ChainRow) -> int:
    """The number of records of a chain. A `.cap` file may have only some of them."""
    from aver.ledger.read_only import ReadOnlyLedger

    return ledger.held.get(row.name, 0) if isinstance(ledger, ReadOnlyLedger) else row.count


def print_read_only_note(ledger: Ledger) -> int:
    """Print on stderr what a reader must know of a bundle or `.cap` file. Returns the exit code."""
    from aver.ledger.read_only import ReadOnlyLedger

    if not isinstance(ledger, ReadOnlyLedger):
        return 0
    verdict, errors = ledger.verdict, StderrScreen()
    words = f"{verdict.subject}, read-only: {verdict.status}"
    if ledger.left_out:
        words += f"; {plural(ledger.left_out, 'record')} not shown, because they do not hold"
    if verdict.first_bad is not None:
        errors.print_error(f"{words}; first bad place: {verdict.first_bad}", "aver verify shows all")
    else:
        errors.print_note(words)
    return exit_code([verdict.status], strict=False)
