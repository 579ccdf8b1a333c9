"""Debug lines without the cost of importing `logging`.

A hook runs for some milliseconds and must not spend three of them on an import whose output nobody reads. No handler
can exist before the program has imported `logging`; until then a debug line is dropped.

    log_debug("aver.keys", "the key file %s is refused: %s", path, reason)
"""

from __future__ import annotations

import sys

__all__ = ["log_debug"]


def log_debug(logger: str, message: str, *arguments: object) -> None:
    """Log a debug line under a logger such as `aver.keys`. Call it on refusals and slow steps, with no secrets."""
    logging = sys.modules.get("logging")
    if logging is not None:
        logging.getLogger(logger).debug(message, *arguments, stacklevel=2)
