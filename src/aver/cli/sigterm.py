"""Ends a long run in order when a service manager sends SIGTERM."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Terminated", "raise_on_sigterm"]


class Terminated(BaseException):
    """The process received SIGTERM. It is no `Exception`, so that no handler swallows it."""


@contextmanager
def raise_on_sigterm() -> Iterator[None]:
    """Within this context, SIGTERM raises `Terminated`."""

    def end(_: int, __: FrameType | None) -> None:
        raise Terminated

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
