"""A unified diff as a stream of files and hunks: strict about what it says, robust against what it is.

Takes what git and plain `diff -u` write: renames, copies, modes, binary files, quoted names, combined diffs of merges,
CRLF, a missing newline at the end, patches from mail.

What is not understood is never passed over in silence. Lines that look like changes and belong to no hunk are given
out as changes of the file before them; and for every stretch that does not fit there is one `Unclear`, on which
whoever decides steps up. Only the text before a file (a mail's, a commit's) is nobody's business, unless it looks like
a patch of another kind, which `patch` would apply.

Time is linear in the text and ends with `LINES_MAX` lines; memory does not grow with it: hunks come in pieces. Paths
are text from outside; nothing here touches the disk.

    >>> text = "--- a/x.py\\n+++ b/x.py\\n@@ -1 +1,2 @@\\n-old\\n+new\\n+er\\n"
    >>> [type(part).__name__ for part in read_diff(text)]
    ['FileChange', 'Hunk']
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from aver.gate.risk.change import FileChange, Hunk, Part, Unclear
from aver.gate.risk.diff_paths import header_paths, named_path, without_prefixes
from aver.gate.risk.hunks import PIECE, read_hunk
from aver.gate.risk.lines import Lines, chunks_of_lines
from aver.values import dataclass

__all__ = ["read_diff", "read_lines"]


LINES_MAX = 1_000_000
"""Lines of a diff that are read: a second's work. Nobody can judge more by its lines, so the rest is unclear."""


KEPT_MAX = 256 * 1024
"""Characters of a diff whose parts are kept: who decides looks at the same diff twice."""


def read_diff(text: str) -> Iterator[Part]:
    """The parts of a diff, in order. A file comes before its hunks."""
    return iter(_kept(text)) if len(text) <= KEPT_MAX else _Reader(chunks_of_lines(text)).parts()


@lru_cache(maxsize=2)
def _kept(text: str) -> tuple[Part, ...]:
    return tuple(_Reader(chunks_of_lines(text)).parts())


def read_lines(chunks: Iterable[list[str]]) -> Iterator[Part]:
    """The same for lines without their newlines, in lists of any length."""
    return _Reader(chunks).parts()


_COMMIT = re.compile(r"(?:From|commit) [0-9a-f]{40,64}(?: |$)").match
_INDEX = re.compile(r"index [0-9a-f]+(?:,[0-9a-f]+)*\.\.[0-9a-f]+(?: ([0-7]{6}))?$").match
_BINARY = re.compile(r"(?:literal|delta) [0-9]+|[A-Za-z][0-9A-Za-z!#$%&()*+;<=>?@^_`{|}~-]{5,65}").fullmatch

_OTHER_PATCH = re.compile(r"\*\*\* |\*{15}$|[0-9]+(?:,[0-9]+)?[acd](?:[0-9]+(?:,[0-9]+)?)?$").match
"""A line of a context diff, of a script for `ed`, of a plain diff, or of a patch that names its files by words."""

_TELLING_NOTHING = (
    *("index ", "similarity index ", "dissimilarity index ", "mode ", "Index: ", "=====", "\\ "),
    *("diff -", "RCS file: ", "retrieving revision "),
)


@dataclass(slots=True)
class _Begun:
    """A file whose headers are being read."""

    old: str | None
    new: str | None
    number: int
    binary: bool = False
    old_mode: str = ""
    new_mode: str = ""


class _Reader:
    """Where the reading stands: the lines, and the file whose headers are being read."""

    def __init__(self, chunks: Iterable[list[str]]) -> None:
        self._lines = Lines(chunks)
        self._file: _Begun | None = None
        self._any = False
        self._aside = True
        """In the text before a file."""
        self._in_binary = False
        self._other = False
        """A patch of another kind was seen, and said so."""
        self._astray = False
        """In a stretch that does not fit, which was said."""

    def parts(self) -> Iterator[Part]:
        lines = self._lines
        while lines.has(1):
            if lines.number > LINES_MAX:
                yield Unclear(lines.number, "it is too long to be read to its end")
                return
            line = lines.rows[lines.at].removesuffix("\r")
            if line.startswith("@@"):
                yield from self._hunk()
            elif line.startswith(("diff --git ", "diff --cc ", "diff --combined ")):
                yield from self._file_given_out()
                self._begin(*header_paths(line))
                lines.at += 1
            elif self._is_pair():
                yield from self._pair()
            elif line.endswith(" differ") and line.startswith(("Binary files ", "Files ")):
                yield from self._differing(line)
                lines.at += 1
            elif self._is_header(line):
                lines.at += 1
                self._astray = False
            else:
                yield from self._outside(line)
        yield from self._file_given_out()
        if not self._any and lines.number > 1:
            yield Unclear(1, "it has no file of a unified diff")

    # Files

    def _begin(self, old: str | None, new: str | None) -> None:
        self._file = _Begun(old, new, self._lines.number)
        self._any, self._aside, self._in_binary, self._astray = True, False, False, False

    def _file_given_out(self) -> Iterator[Part]:
        if self._file is not None:
            begun, self._file = self._file, None
            file = FileChange(begun.old, begun.new, begun.binary, begun.old_mode, begun.new_mode)
            yield file
            if not file.path:
                yield Unclear(begun.number, "a file's name cannot be read")

    def _is_pair(self) -> bool:
        """Whether `--- old` and `+++ new` come next."""
        lines = self._lines
        return lines.rows[lines.at].startswith("--- ") and lines.has(2) and lines.rows[lines.at + 1].startswith("+++ ")

    def _pair(self) -> Iterator[Part]:
        """The names of the file that a `diff` line has begun, or of one that begins here."""
        lines = self._lines
        old, new = (named_path(line[4:]) for line in lines.rows[lines.at : lines.at + 2])
        old, new = without_prefixes(old, new)
        number, known = lines.number, {self._file.old, self._file.new} - {None, ""} if self._file else set()
        if self._file is None:
            self._begin(old, new)
        else:
            self._file.old, self._file.new = old, new
        lines.at += 2
        yield from self._file_given_out()
        if known and not {old, new} - {None} <= known:
            yield Unclear(number, "headers name different files")

    def _differing(self, line: str) -> Iterator[Part]:
        """A file of which no more is said than that it differs: the one that was begun, or another."""
        if self._file is None or self._file.binary:
            yield from self._file_given_out()
            old, _, new = line.removesuffix(" differ").partition("iles ")[2].partition(" and ")
            self._begin(*without_prefixes(named_path(old), named_path(new)))
        if self._file is not None:
            self._file.binary = True

    def _is_header(self, line: str) -> bool:
        """Take in a line that tells something of a file, or nothing that matters."""
        if self._file is not None and self._tells(self._file, line):
            return True
        if self._any and (line == "-- " or _COMMIT(line)):
            self._aside = True  # The end of a mail, or the next commit.
            return True
        return not line and not self._aside

    def _tells(self, file: _Begun, line: str) -> bool:
        if found := _INDEX(line):
            if found[1]:
                file.old_mode = file.new_mode = found[1]
        elif line == "GIT binary patch":
            file.binary = self._in_binary = True
        elif " mode " in line[:18]:
            _take_mode(file, *line.rsplit(" ", 1))
        elif line.startswith(("rename from ", "copy from ")):
            file.old = named_path(line.partition(" from ")[2])
        elif line.startswith(("rename to ", "copy to ")):
            file.new = named_path(line.partition(" to ")[2])
        else:
            return line.startswith(_TELLING_NOTHING) or (self._in_binary and _BINARY(line) is not None)
        return True

    # Hunks, and what is none

    def _hunk(self) -> Iterator[Part]:
        lines = self._lines
        number, orphaned = lines.number, self._aside
        if orphaned and not self._any:
            self._begin("", "")
        yield from self._file_given_out()
        hunk = read_hunk(lines)
        if hunk is None:
            yield Unclear(number, "a hunk's header cannot be read")
            self._aside, self._astray = False, True
            lines.at += 1
            return
        if orphaned:
            yield Unclear(number, "a hunk belongs to no file")
        self._aside = self._astray = False
        for part in hunk:
            yield part
            if lines.number > LINES_MAX:
                return

    def _outside(self, line: str) -> Iterator[Part]:
        """A line that is neither header nor content."""
        lines = self._lines
        if self._aside and not self._other and _OTHER_PATCH(line):
            self._other = True
            yield Unclear(lines.number, "a patch of another kind")
        if not self._aside and not self._astray and not line.startswith(_TELLING_NOTHING):
            self._astray = True
            yield from self._file_given_out()
            yield Unclear(lines.number, "lines that belong to no hunk")
        if not self._astray or line[:1] not in ("+", "-"):
            lines.at += 1
            return
        stray: list[str] = []
        while len(stray) < PIECE and lines.has(1) and lines.rows[lines.at][:1] in ("+", "-") and not self._is_pair():
            stray.append(lines.rows[lines.at])
            lines.at += 1
        yield Hunk(0, stray)


def _take_mode(file: _Begun, word: str, mode: str) -> None:
    if word == "new file mode":
        file.old, file.new_mode = None, mode
    elif word == "deleted file mode":
        file.new, file.old_mode = None, mode
    elif word == "old mode":
        file.old_mode = mode
    elif word == "new mode":
        file.new_mode = mode
