"""A unified diff as a stream of files and hunks: strict about what it says, robust against what it is.

Takes what git and plain `diff -u` write: renames, copies, modes, binary files, quoted names, combined diffs of merges,
CRLF, a missing newline at the end, patches from mail.

What is not understood is never passed over in silence. Lines that look like changes and belong to no hunk are given
out as changes of the file before them; and for every stretch that does not fit there is one `Unclear`, on which
whoever decides steps up. Only the text before a file (a mail's, a commit's) is nobody's business, unless it looks like
a patch of another kind, which `patch` would apply.

Time is linear in the text and ends with `LINES_MAX` lines; memory does not grow with it: hunks come in pieces. Paths
are text from outside; nothing here touches the disk.

    >>> text = "--- a/x.py\n+++ b/x.py\n@@ -1 +1,2 @@\n-old\n+new\n+er\n"
    >>> [type(part).__name__ for part in read_diff(text)]
    ['FileChange', 'Hunk']

The names of files in a diff, as git and `diff` write them.

A name with odd characters is quoted like a C string with octal escapes for bytes; `/dev/null` is no file; git puts
`a/` and `b/` before names, other letters or nothing if told so; plain `diff` puts a date behind a tab.

The bodies of hunks: as many lines as their header says, whatever those look like.

Counting is what tells content from headers: a removed line `-- x` is written `--- x`, which looks like the beginning
of a file. A body that has more or fewer lines of a side than announced is given out with an `Unclear` after it.

A window over the lines of a text: some of them at hand, the rest still to come.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from aver.fast_dataclass import dataclass
from aver.gate.risk.diff_model import DiffPart, FileChange, Hunk, UnclearLines

__all__ = [
    "HUNK_LINES_MAX",
    "PATH_MAX",
    "LineWindow",
    "parse_header_paths",
    "parse_path",
    "read_diff",
    "read_diff_lines",
    "read_hunk",
    "split_into_line_chunks",
    "strip_prefixes",
]


LINES_MAX = 1_000_000
"""Lines of a diff that are read: a second's work. Nobody can judge more by its lines, so the rest is unclear."""


CACHED_MAX = 256 * 1024
"""Characters of a diff whose parts are kept: who decides looks at the same diff twice."""


def read_diff(text: str) -> Iterator[DiffPart]:
    """The parts of a diff, in order. A file comes before its hunks."""
    return (
        iter(_read_diff_cached(text)) if len(text) <= CACHED_MAX else _DiffReader(split_into_line_chunks(text)).parts()
    )


@lru_cache(maxsize=2)
def _read_diff_cached(text: str) -> tuple[DiffPart, ...]:
    return tuple(_DiffReader(split_into_line_chunks(text)).parts())


def read_diff_lines(chunks: Iterable[list[str]]) -> Iterator[DiffPart]:
    """The same for lines without their newlines, in lists of any length."""
    return _DiffReader(chunks).parts()


_COMMIT_LINE = re.compile(r"(?:From|commit) [0-9a-f]{40,64}(?: |$)").match
_INDEX_LINE = re.compile(r"index [0-9a-f]+(?:,[0-9a-f]+)*\.\.[0-9a-f]+(?: ([0-7]{6}))?$").match
_BINARY_LINE = re.compile(r"(?:literal|delta) [0-9]+|[A-Za-z][0-9A-Za-z!#$%&()*+;<=>?@^_`{|}~-]{5,65}").fullmatch

_OTHER_PATCH = re.compile(r"\*\*\* |\*{15}$|[0-9]+(?:,[0-9]+)?[acd](?:[0-9]+(?:,[0-9]+)?)?$").match
"""A line of a context diff, of a script for `ed`, of a plain diff, or of a patch that names its files by words."""

_IGNORED_HEADERS = (
    *("index ", "similarity index ", "dissimilarity index ", "mode ", "Index: ", "=====", "\\ "),
    *("diff -", "RCS file: ", "retrieving revision "),
)


@dataclass(slots=True)
class _FileHeader:
    """A file whose headers are being read."""

    old: str | None
    new: str | None
    number: int
    binary: bool = False
    old_mode: str = ""
    new_mode: str = ""


class _DiffReader:
    """Where the reading stands: the lines, and the file whose headers are being read."""

    def __init__(self, chunks: Iterable[list[str]]) -> None:
        self._lines = LineWindow(chunks)
        self._file: _FileHeader | None = None
        self._any = False
        self._aside = True
        """In the text before a file."""
        self._in_binary = False
        self._other = False
        """A patch of another kind was seen, and said so."""
        self._astray = False
        """In a stretch that does not fit, which was said."""

    def parts(self) -> Iterator[DiffPart]:
        lines = self._lines
        while lines.has(1):
            if lines.number > LINES_MAX:
                yield UnclearLines(lines.number, "it is too long to be read to its end")
                return
            line = lines.rows[lines.at].removesuffix("\r")
            if line.startswith("@@"):
                yield from self._read_hunk_parts()
            elif line.startswith(("diff --git ", "diff --cc ", "diff --combined ")):
                yield from self._emit_file()
                self._begin_file(*parse_header_paths(line))
                lines.at += 1
            elif self._is_at_file_pair():
                yield from self._read_file_pair()
            elif line.endswith(" differ") and line.startswith(("Binary files ", "Files ")):
                yield from self._read_differing_line(line)
                lines.at += 1
            elif self._take_header_line(line):
                lines.at += 1
                self._astray = False
            else:
                yield from self._read_stray_lines(line)
        yield from self._emit_file()
        if not self._any and lines.number > 1:
            yield UnclearLines(1, "it has no file of a unified diff")

    # Files

    def _begin_file(self, old: str | None, new: str | None) -> None:
        self._file = _FileHeader(old, new, self._lines.number)
        self._any, self._aside, self._in_binary, self._astray = True, False, False, False

    def _emit_file(self) -> Iterator[DiffPart]:
        if self._file is not None:
            begun, self._file = self._file, None
            file = FileChange(begun.old, begun.new, begun.binary, begun.old_mode, begun.new_mode)
            yield file
            if not file.path:
                yield UnclearLines(begun.number, "a file's name cannot be read")

    def _is_at_file_pair(self) -> bool:
        """Whether `--- old` and `+++ new` come next."""
        lines = self._lines
        return lines.rows[lines.at].startswith("--- ") and lines.has(2) and lines.rows[lines.at + 1].startswith("+++ ")

    def _read_file_pair(self) -> Iterator[DiffPart]:
        """The names of the file that a `diff` line has begun, or of one that begins here."""
        lines = self._lines
        old, new = (parse_path(line[4:]) for line in lines.rows[lines.at : lines.at + 2])
        old, new = strip_prefixes(old, new)
        number, known = lines.number, {self._file.old, self._file.new} - {None, ""} if self._file else set()
        if self._file is None:
            self._begin_file(old, new)
        else:
            self._file.old, self._file.new = old, new
        lines.at += 2
        yield from self._emit_file()
        if known and not {old, new} - {None} <= known:
            yield UnclearLines(number, "headers name different files")

    def _read_differing_line(self, line: str) -> Iterator[DiffPart]:
        """A file of which no more is said than that it differs: the one that was begun, or another."""
        if self._file is None or self._file.binary:
            yield from self._emit_file()
            old, _, new = line.removesuffix(" differ").partition("iles ")[2].partition(" and ")
            self._begin_file(*strip_prefixes(parse_path(old), parse_path(new)))
        if self._file is not None:
            self._file.binary = True

    def _take_header_line(self, line: str) -> bool:
        """Take in a line that tells something of a file, or nothing that matters."""
        if self._file is not None and self._take_file_header(self._file, line):
            return True
        if self._any and (line == "-- " or _COMMIT_LINE(line)):
            self._aside = True  # The end of a mail, or the next commit.
            return True
        return not line and not self._aside

    def _take_file_header(self, file: _FileHeader, line: str) -> bool:
        if found := _INDEX_LINE(line):
            if found[1]:
                file.old_mode = file.new_mode = found[1]
        elif line == "GIT binary patch":
            file.binary = self._in_binary = True
        elif " mode " in line[:18]:
            _apply_mode(file, *line.rsplit(" ", 1))
        elif line.startswith(("rename from ", "copy from ")):
            file.old = parse_path(line.partition(" from ")[2])
        elif line.startswith(("rename to ", "copy to ")):
            file.new = parse_path(line.partition(" to ")[2])
        else:
            return line.startswith(_IGNORED_HEADERS) or (self._in_binary and _BINARY_LINE(line) is not None)
        return True

    # Hunks, and what is none

    def _read_hunk_parts(self) -> Iterator[DiffPart]:
        lines = self._lines
        number, orphaned = lines.number, self._aside
        if orphaned and not self._any:
            self._begin_file("", "")
        yield from self._emit_file()
        hunk = read_hunk(lines)
        if hunk is None:
            yield UnclearLines(number, "a hunk's header cannot be read")
            self._aside, self._astray = False, True
            lines.at += 1
            return
        if orphaned:
            yield UnclearLines(number, "a hunk belongs to no file")
        self._aside = self._astray = False
        for part in hunk:
            yield part
            if lines.number > LINES_MAX:
                return

    def _read_stray_lines(self, line: str) -> Iterator[DiffPart]:
        """A line that is neither header nor content."""
        lines = self._lines
        if self._aside and not self._other and _OTHER_PATCH(line):
            self._other = True
            yield UnclearLines(lines.number, "a patch of another kind")
        if not self._aside and not self._astray and not line.startswith(_IGNORED_HEADERS):
            self._astray = True
            yield from self._emit_file()
            yield UnclearLines(lines.number, "lines that belong to no hunk")
        if not self._astray or line[:1] not in ("+", "-"):
            lines.at += 1
            return
        stray: list[str] = []
        while (
            len(stray) < HUNK_LINES_MAX
            and lines.has(1)
            and lines.rows[lines.at][:1] in ("+", "-")
            and not self._is_at_file_pair()
        ):
            stray.append(lines.rows[lines.at])
            lines.at += 1
        yield Hunk(0, stray)


def _apply_mode(file: _FileHeader, word: str, mode: str) -> None:
    if word == "new file mode":
        file.old, file.new_mode = None, mode
    elif word == "deleted file mode":
        file.new, file.old_mode = None, mode
    elif word == "old mode":
        file.old_mode = mode
    elif word == "new mode":
        file.new_mode = mode


PATH_MAX = 4096
"""Longest path that a system takes. What is longer names no file."""

_PREFIXES = frozenset(
    {("a/", "b/"), ("i/", "w/"), ("c/", "i/"), ("c/", "w/"), ("o/", "w/"), ("1/", "2/"), ("o/", "i/")}
)
_ANY_PREFIX = tuple(sorted({prefix for pair in _PREFIXES for prefix in pair}))
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_LETTER_ESCAPES = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}


def parse_path(text: str) -> str | None:
    """The path that stands in a header; None for `/dev/null`, empty for what cannot be a path."""
    text = text.removesuffix("\r")
    plain, _, _ = text.partition("\t")
    quoted = _QUOTED.fullmatch(plain)
    if quoted is None and plain.startswith('"'):
        return ""
    path = _unquote(quoted[1]) if quoted else plain
    if path == "/dev/null":
        return None
    return path if len(path) <= PATH_MAX else ""


def strip_prefixes(old: str | None, new: str | None) -> tuple[str | None, str | None]:
    """Both names of a file without the letters that git puts before them."""
    if old is None or new is None:
        only = old if new is None else new
        bare = only[2:] if only is not None and only.startswith(_ANY_PREFIX) else only
        return (bare, None) if new is None else (None, bare)
    if (old[:2], new[:2]) in _PREFIXES or (new[:2], old[:2]) in _PREFIXES:
        return old[2:], new[2:]
    return old, new


def parse_header_paths(line: str) -> tuple[str | None, str | None]:
    """The two names in a `diff --git` line, or the one in `diff --cc`; empty where they cannot be told apart.

    They count only where no other header names the file: then both are the same but for their prefixes.
    """
    for word in ("diff --cc ", "diff --combined "):
        if line.startswith(word):
            path = parse_path(line.removeprefix(word))
            return path, path
    names = line.removeprefix("diff --git ")
    quoted = _QUOTED.match(names)
    if quoted or names.endswith('"'):
        first, second = _split_quoted(names, quoted)
        return strip_prefixes(parse_path(first), parse_path(second))
    half = len(names) // 2
    old, new = strip_prefixes(names[:half], names[half + 1 :])
    if names[half : half + 1] == " " and old == new and len(names) <= 2 * PATH_MAX:
        return old, new
    return "", ""


def _split_quoted(names: str, first: re.Match[str] | None) -> tuple[str, str]:
    if first:
        return first[0], names[first.end() :].lstrip(" ")
    plain, _, _ = names.partition(' "')
    return plain, names[len(plain) + 1 :]


def _unquote(text: str) -> str:
    def byte(escape: re.Match[bytes]) -> bytes:
        value = escape[1]
        if len(value) == 3:
            return bytes([int(value, 8) & 0xFF])
        return _LETTER_ESCAPES.get(value, value)

    # Bytes that are no UTF-8 stay what they are, so that two names never become one.
    return _ESCAPE.sub(byte, text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogateescape")


HUNK_LINES_MAX = 4096
"""Lines of a hunk that are given out at once: what bounds the memory."""

_HUNK_HEADER = re.compile(r"@@ -([0-9]{1,10})(?:,([0-9]{1,10}))? \+[0-9]{1,10}(?:,([0-9]{1,10}))? @@").match
_COMBINED_HEADER = re.compile(
    r"(@{3,65})((?: -[0-9]{1,10}(?:,[0-9]{1,10})?){2,64}) \+[0-9]{1,10}(?:,([0-9]{1,10}))? \1"
).match
_OLD_COUNTS = re.compile(r" -[0-9]+(?:,([0-9]+))?").findall


def read_hunk(lines: LineWindow) -> Iterator[Hunk | UnclearLines] | None:
    """The hunk whose header is the next line; None, and nothing taken, if that is no header of one."""
    line = lines.rows[lines.at]
    if found := _HUNK_HEADER(line):
        lines.at += 1
        return _read_body(lines, int(found[1]), _parse_count(found[2]), _parse_count(found[3]))
    if (found := _COMBINED_HEADER(line)) and len(found[1]) == 1 + len(counts := _OLD_COUNTS(found[2])):
        lines.at += 1
        return _read_combined_body(lines, [_parse_count(count) for count in counts], _parse_count(found[3]))
    return None


def _parse_count(text: str | None) -> int:
    """A count that is left out is one."""
    return int(text) if text else 1


def _read_body(lines: LineWindow, start: int, old: int, new: int) -> Iterator[Hunk | UnclearLines]:
    if old + new <= HUNK_LINES_MAX and lines.has(max(old, new, 1)):
        lines.has(old + new)
        rows = lines.rows[lines.at : lines.at + old + new]
        length = _plain_body_length(rows, old, new)
        if length is not None:
            lines.at += length
            return iter((Hunk(start, rows[:length]),))
    return _read_counted_body(lines, start, old, new)


def _plain_body_length(rows: list[str], old: int, new: int) -> int | None:
    """How many of these lines are the hunk's, if each is marked and the counts fit; None otherwise.

    The common case, by counting marks instead of going line by line.
    """
    marks = "".join([line[:1] or "?" for line in rows])
    length = max(old, new)
    while True:
        common = marks.count(" ", 0, length)
        wanted = old + new - common
        if wanted <= length:
            break
        length = wanted
    fits = marks.count("+", 0, length) + common == new and marks.count("-", 0, length) + common == old
    return length if fits and length == wanted <= len(rows) else None


def _read_counted_body(lines: LineWindow, start: int, old: int, new: int) -> Iterator[Hunk | UnclearLines]:
    number, fits = lines.number, True
    while fits and (old > 0 or new > 0):
        if not lines.has(1):
            fits = False
            break
        piece: list[str] = []
        notes, before = 0, old
        for line in lines.rows[lines.at : lines.at + HUNK_LINES_MAX]:
            mark = line[:1]
            if mark == "+":
                new -= 1
            elif mark == "-":
                old -= 1
            elif mark in (" ", "", "\r"):  # Some tools strip the space of an empty line.
                old -= 1
                new -= 1
                line = line if mark == " " else " " + line
            elif mark == "\\":
                notes += 1
                continue
            else:
                fits = False
                break
            piece.append(line)
            if old <= 0 >= new:
                break
        lines.at += notes + len(piece)
        if piece:
            yield Hunk(start, piece)
        start += before - old
    if not fits or old or new:
        yield UnclearLines(number, "a hunk has not as many lines as its header says")


def _read_combined_body(lines: LineWindow, olds: list[int], new: int) -> Iterator[Hunk | UnclearLines]:
    """A merge against each of its parents: one column of marks for each."""
    number, width, fits = lines.number, len(olds), True
    piece: list[str] = []
    while fits and (new > 0 or any(count > 0 for count in olds)):
        if not lines.has(1):
            fits = False
            break
        line = lines.rows[lines.at]
        marks = line[:width].replace("\r", "").ljust(width)
        if marks[0] != "\\":
            gone = "-" in marks
            fits = not marks.strip("-" if gone else "+").strip(" -" if gone else " +")
            if not fits:
                break
            there = "-" if gone else " "
            olds = [count - (mark == there) for count, mark in zip(olds, marks, strict=True)]
            new -= not gone
            piece.append(("-" if gone else "+" if "+" in marks else " ") + line[width:])
        lines.at += 1
        if len(piece) == HUNK_LINES_MAX:
            yield Hunk(0, piece)
            piece = []
    if piece:
        yield Hunk(0, piece)
    if not fits or new or any(olds):
        yield UnclearLines(number, "a hunk has not as many lines as its header says")


CHUNK = 256 * 1024
"""Characters that are split into lines at a time."""


class LineWindow:
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


def split_into_line_chunks(text: str) -> Iterator[list[str]]:
    """A text's lines, some at a time. Only a newline ends a line: what else may, is the reader's business."""
    at = 0
    while at < len(text):
        end = text.find("\n", at + CHUNK)
        if end < 0:
            yield text[at:].removesuffix("\n").split("\n")
            return
        yield text[at:end].split("\n")
        at = end + 1
