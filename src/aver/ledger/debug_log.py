"""Debug lines of the ledger, under the logger `aver.ledger`, without the cost of importing `logging`.

A hook that runs for some milliseconds must not spend three of them on an import that nobody reads. No handler can
exist before the program has imported `logging`; until then a debug line is dropped.
"""

from __future__ import annotations

import sys

__all__ = ["log_debug"]


def log_debug(message: str, *arguments: object) -> None:
    """Log a line for people who look for a cause. Call it on refusals and slow steps, never on the append path."""
    logging = sys.modules.get("logging")
    if logging is not None:
        logging.getLogger("aver.ledger").debug(message, *arguments, stacklevel=2)
