"""What a diff is made of: files, hunks, and stretches that do not fit."""

from __future__ import annotations

from aver.fast_dataclass import dataclass

__all__ = ["DiffPart", "FileChange", "Hunk", "UnclearLines"]


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file of a diff. A path is None on the side where the file does not exist, empty where it cannot be read."""

    old: str | None
    new: str | None
    binary: bool = False
    old_mode: str = ""
    new_mode: str = ""

    @property
    def path(self) -> str:
        """Where the file is afterwards; or was, if it is gone."""
        return (self.old or "") if self.new is None else self.new


@dataclass(frozen=True, slots=True)
class Hunk:
    """Some lines of the file before it. Each begins with its mark: `+`, `-` or a space."""

    old_start: int
    """The number of the first line on the old side; 0 where it is not known."""
    lines: list[str]

    def added(self) -> list[str]:
        return [line[1:] for line in self.lines if line[0] == "+"]

    def removed(self) -> list[str]:
        return [line[1:] for line in self.lines if line[0] == "-"]

    def numbered_removed_lines(self) -> list[tuple[int, str]]:
        """What was removed, with its line number on the old side."""
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
    """A stretch of the diff that does not fit, from the line of this number on."""

    number: int
    words: str


DiffPart = FileChange | Hunk | UnclearLines
