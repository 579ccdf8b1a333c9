"""A canary: a payload that goes through an installed hook as any other does, and leaves no trace in the ledger.

`aver doctor` gives it to the very command that stands in a tool's settings. The settings in force are read, and then
all is done in a home of its own, which is thrown away: a ledger is made, a deed sealed, the gate asked and its decision
sealed. The answer comes in the tool's own format and carries the canary's name.

The mark stands on the outside of a payload, where the tool writes and no agent does.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aver.ledger import Ledger

__all__ = ["MARK", "canary_in", "throwaway_ledger"]

MARK = "aver_canary"


def canary_in(payload: Mapping[str, Any]) -> str:
    """The name of the canary that a payload is; empty where it is none."""
    name = payload.get(MARK)
    return name if isinstance(name, str) else ""


@contextmanager
def throwaway_ledger() -> Iterator[Ledger]:
    """A ledger in a home of its own, gone afterwards."""
    from aver.ledger import open_ledger

    home = Path(tempfile.mkdtemp(prefix="aver-canary-"))
    try:
        with open_ledger(f"sqlite:///{home / 'ledger.db'}", home=home) as ledger:
            yield ledger
    finally:
        shutil.rmtree(home, ignore_errors=True)
