"""The parts of a diff: files, hunks, and stretches that Aver cannot read."""

from __future__ import annotations

from aver.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file of a diff. A path is None if the file does not exist on that side, and empty if it is unreadable."""

    old: str | None
    new: str | None
    binary: bool = False
    old_mode: str = ""
    new_mode: str = ""

    @property
    def path(self) -> str:
        """The path after the change, or the old path of a deleted file."""
        return (self.old or "") if self.new is None else self.new


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines of the file that comes before this part. Each begins with its mark: `+`, `-` or a space."""

    old_start: int
    """The number of the first line on the old side; 0 if it is not known."""
    lines: list[str]

    def added_lines(self) -> list[str]:
        return [line[1:] for line in self.lines if line[0] == "+"]

    def removed_lines(self) -> list[str]:
        return [line[1:] for line in self.lines if line[0] == "-"]

    def numbered_removed_lines(self) -> list[tuple[int, str]]:
        """Return the removed lines, each with its number on the old side."""
        found = []
        number = self.old_start
        for line in self.lines:
            if line[0] == "-":
                found.append((number, line[1:]))
            if line[0] != "+":
                number += 1
        return found


@dataclass(frozen=True, slots=True)
class UnclearLines:
    """A stretch of the diff that Aver cannot read, from line `number` on."""

    number: int
    why: str


DiffPart = FileChange | Hunk | UnclearLines
