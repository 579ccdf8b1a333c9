"""The two results of judging an event: a step of the trace, or a refusal."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from aver.errors import Refused


class EventRefused(Refused):
    """An event may not be said in this trace now. `code` is that of a verdict, `place` the part that is wrong."""

    def __init__(self, code: str, message: str, *, place: str = "", advice: str = "") -> None:
        super().__init__(code, f"{place}: {message}" if place else message, advice=advice)
        self.place = place


class FoldStep(NamedTuple):
    """The next state after an event, and the change of the trace."""

    after: str
    apply: Callable[[], None]
