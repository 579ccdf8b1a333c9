"""Being told to end: SIGTERM, as service managers send it, ends a long run in order."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Terminated", "raise_on_sigterm"]


class Terminated(BaseException):
    """Somebody wants us to end."""


@contextmanager
def raise_on_sigterm() -> Iterator[None]:
    """While this lasts, SIGTERM raises `Ended`."""

    def end(_: int, __: FrameType | None) -> None:
        raise Terminated

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
