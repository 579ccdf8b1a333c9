"""Debug lines of the ledger, under the logger `aver.ledger`. Never call it on the append path."""

from __future__ import annotations

from functools import partial

from aver import debug_log

__all__ = ["log_debug"]

log_debug = partial(debug_log.log_debug, "aver.ledger")
