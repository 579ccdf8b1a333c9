"""Compares the figures of the Explorer's index with those of `aver sessions`."""

from __future__ import annotations

import json
from dataclasses import asdict

from aver.explorer.index import LedgerIndex
from aver.ledger import Ledger
from aver.sessions.figures import compute_totals
from aver.sessions.sessions import find_sessions

OWN_FIGURES = {"highest_risk", "workspace", "name", "latest", "counted"}
"""Figures that only the index has."""


def compare_figures(ledger: Ledger) -> None:
    """Fail unless an index of the ledger, made anew, has the sessions and the figures of `aver sessions`."""
    with LedgerIndex.temporary() as index:
        progress = index.catch_up(ledger)
        assert progress.is_complete or progress.unreadable, progress
        listed = index.sessions(ledger, limit=500)
        counted = index.counts(ledger, by="hour", limit=500)
    expected = [
        (chains.names[0], chains.latest, json.loads(json.dumps(asdict(compute_totals(ledger, chains)))))
        for chains in find_sessions(ledger)
    ]
    found = [
        (entry["name"], entry["latest"], {name: value for name, value in entry.items() if name not in OWN_FIGURES})
        for entry in listed.sessions
    ]
    assert sorted(found, key=lambda entry: entry[0]) == sorted(expected, key=lambda entry: entry[0])
    hours = [*counted.counts, *([counted.undated] if counted.undated else [])]
    for figure in ("prompts", "actions", "edits", "failures", "denials", "tokens_in", "tokens_out"):
        assert sum(hour[figure] for hour in hours) == sum(totals[figure] or 0 for _, _, totals in expected), figure
    cost = sum(hour["cost_usd"] for hour in hours)
    assert abs(cost - sum(totals["cost_usd"] or 0 for _, _, totals in expected)) < 1e-6
