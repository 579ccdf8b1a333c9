"""A window over the lines of a text: some of them at hand, the rest still to come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

__all__ = ["Lines", "chunks_of_lines"]

CHUNK = 256 * 1024
"""Characters that are split into lines at a time."""


class Lines:
    """Lines without their newlines. `rows[at]` is the next one, once `has(1)` has said that there is one."""

    def __init__(self, chunks: Iterable[list[str]]) -> None:
        self._chunks = iter(chunks)
        self._gone = 0
        self.rows: list[str] = []
        self.at = 0

    def has(self, count: int) -> bool:
        """Whether so many more lines are there; if so, they are at hand."""
        while len(self.rows) - self.at < count:
            chunk = next(self._chunks, None)
            if chunk is None:
                return False
            self._gone += self.at
            self.rows = self.rows[self.at :] + chunk
            self.at = 0
        return True

    @property
    def number(self) -> int:
        """Of the next line, from 1."""
        return self._gone + self.at + 1


def chunks_of_lines(text: str) -> Iterator[list[str]]:
    """A text's lines, some at a time. Only a newline ends a line: what else may, is the reader's business."""
    at = 0
    while at < len(text):
        end = text.find("\n", at + CHUNK)
        if end < 0:
            yield text[at:].removesuffix("\n").split("\n")
            return
        yield text[at:end].split("\n")
        at = end + 1
