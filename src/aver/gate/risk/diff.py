r"""The reader of unified diffs: it turns a text into a stream of files and hunks.

It reads what git and `diff -u` write: renames, copies, modes, binary files, quoted names, combined diffs of merges,
CRLF, a missing newline at the end, and patches from mail.

Promises:

* No change is lost. A line that looks like a change but belongs to no hunk counts as a change of the file before it.
* Each stretch that does not fit gives one `UnclearLines`. The gate then asks a human. Only the text before a file (of a
  mail or a commit) is ignored, unless it looks like a patch of another kind, which `patch` would apply.
* Time is linear in the text and ends at `LINES_MAX` lines. Memory is bounded: long hunks come in pieces.
* Nothing here touches the disk. Paths are untrusted text.

A hunk has as many lines as its header says, even if they look like headers. Counting is the only way to tell content
from headers: a removed line `-- x` is written `--- x`, which looks like the start of a file.

    >>> text = "--- a/x.py\n+++ b/x.py\n@@ -1 +1,2 @@\n-old\n+new\n+er\n"
    >>> [type(part).__name__ for part in read_diff(text)]
    ['FileChange', 'Hunk']
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from aver.fast_dataclass import dataclass
from aver.gate.risk.diff_model import DiffPart, FileChange, Hunk, UnclearLines
from aver.lazy_pattern import lazy_pattern

LINES_MAX = 1_000_000
"""Lines of a diff that Aver reads, which takes about a second. The rest is unclear."""

CACHED_MAX = 256 * 1024
"""Characters of a diff whose parts are cached. A decision reads the same diff twice: for effects and for risk."""


def read_diff(text: str) -> Iterator[DiffPart]:
    """Yield the parts of a diff in order. A file comes before its hunks."""
    # A larger diff is streamed, so that its parts need not be in memory together.
    if len(text) <= CACHED_MAX:
        return iter(_read_diff_cached(text))
    return _DiffReader(split_into_line_chunks(text)).read_parts()


@lru_cache(maxsize=2)
def _read_diff_cached(text: str) -> tuple[DiffPart, ...]:
    return tuple(_DiffReader(split_into_line_chunks(text)).read_parts())


def read_diff_lines(chunks: Iterable[list[str]]) -> Iterator[DiffPart]:
    """Yield the parts of a diff that is given as lists of lines without newlines."""
    return _DiffReader(chunks).read_parts()


_COMMIT_LINE = lazy_pattern(r"(?:From|commit) [0-9a-f]{40,64}(?: |$)")
_INDEX_LINE = lazy_pattern(r"index [0-9a-f]+(?:,[0-9a-f]+)*\.\.[0-9a-f]+(?: ([0-7]{6}))?$")
_BINARY_LINE = lazy_pattern(r"(?:literal|delta) [0-9]+|[A-Za-z][0-9A-Za-z!#$%&()*+;<=>?@^_`{|}~-]{5,65}")

_OTHER_PATCH = lazy_pattern(r"\*\*\* |\*{15}$|[0-9]+(?:,[0-9]+)?[acd](?:[0-9]+(?:,[0-9]+)?)?$")
"""A line of a context diff, an `ed` script, a plain diff, or a patch that names its files in words."""

_IGNORED_HEADERS = (
    *("index ", "similarity index ", "dissimilarity index ", "mode ", "Index: ", "=====", "\\ "),
    *("diff -", "RCS file: ", "retrieving revision "),
)


@dataclass(slots=True)
class _FileHeader:
    """A file whose header lines are being read. `number` is its first line."""

    old: str | None
    new: str | None
    number: int
    binary: bool = False
    old_mode: str = ""
    new_mode: str = ""


class _DiffReader:
    """The state of reading: the remaining lines, and the file whose header lines are being read."""

    def __init__(self, chunks: Iterable[list[str]]) -> None:
        self._lines = LineWindow(chunks)
        self._file: _FileHeader | None = None
        self._has_files = False
        self._in_preamble = True
        """The position is in the text before a file, which may be of a mail or a commit."""
        self._in_binary = False
        self._saw_other_patch = False
        """A patch of another kind was reported."""
        self._in_stray = False
        """The position is in a stretch that does not fit, which was reported."""

    def read_parts(self) -> Iterator[DiffPart]:
        lines = self._lines
        while lines.has_lines(1):
            if lines.next_number > LINES_MAX:
                yield UnclearLines(lines.next_number, "it is too long to be read to its end")
                return
            # Headers of a diff from Windows end in CR. In hunks the CR belongs to the line.
            line = lines.rows[lines.at].removesuffix("\r")
            if line.startswith("@@"):
                yield from self._read_hunk_parts()
            elif line.startswith(("diff --git ", "diff --cc ", "diff --combined ")):
                yield from self._emit_file()
                self._begin_file(*parse_header_paths(line))
                lines.at += 1
            # Only outside a hunk: inside one, these may be changed lines.
            elif self._is_at_file_pair():
                yield from self._read_file_pair()
            elif line.endswith(" differ") and line.startswith(("Binary files ", "Files ")):
                # `Binary files a and b differ` concerns the file that was begun, or another one.
                if self._file is None or self._file.binary:
                    yield from self._emit_file()
                    old, _, new = line.removesuffix(" differ").partition("iles ")[2].partition(" and ")
                    self._begin_file(*strip_prefixes(parse_path(old), parse_path(new)))
                if self._file is not None:
                    self._file.binary = True
                lines.at += 1
            elif self._take_header_line(line):
                lines.at += 1
                self._in_stray = False
            else:
                yield from self._read_stray_lines(line)
        yield from self._emit_file()
        # A text without any file is not a change that Aver understands.
        if not self._has_files and lines.next_number > 1:
            yield UnclearLines(1, "it has no file of a unified diff")

    # Files

    def _begin_file(self, old: str | None, new: str | None) -> None:
        self._file = _FileHeader(old, new, self._lines.next_number)
        self._has_files, self._in_preamble, self._in_binary, self._in_stray = True, False, False, False

    def _emit_file(self) -> Iterator[DiffPart]:
        if self._file is not None:
            header, self._file = self._file, None
            file = FileChange(header.old, header.new, header.binary, header.old_mode, header.new_mode)
            yield file
            if not file.path:
                yield UnclearLines(header.number, "a file's name cannot be read")

    def _is_at_file_pair(self) -> bool:
        """Whether `--- old` and `+++ new` come next."""
        lines = self._lines
        return (
            lines.rows[lines.at].startswith("--- ")
            and lines.has_lines(2)
            and lines.rows[lines.at + 1].startswith("+++ ")
        )

    def _read_file_pair(self) -> Iterator[DiffPart]:
        """Read the names of the file that a `diff` line has begun, or of a file that begins here."""
        lines = self._lines
        old, new = (parse_path(line[4:]) for line in lines.rows[lines.at : lines.at + 2])
        old, new = strip_prefixes(old, new)
        number, known = lines.next_number, {self._file.old, self._file.new} - {None, ""} if self._file else set()
        if self._file is None:
            self._begin_file(old, new)
        else:
            self._file.old, self._file.new = old, new
        lines.at += 2
        yield from self._emit_file()
        # A `diff` line and the pair must agree. If not, `patch` and git would change different files.
        if known and not {old, new} - {None} <= known:
            yield UnclearLines(number, "headers name different files")

    def _take_header_line(self, line: str) -> bool:
        """Take a header line, or a line without meaning. Returns whether it was one."""
        file = self._file
        if file is None:
            pass
        elif found := _INDEX_LINE.match(line):
            if found[1]:
                file.old_mode = file.new_mode = found[1]
            return True
        elif line == "GIT binary patch":
            file.binary = self._in_binary = True
            return True
        elif " mode " in line[:18]:
            word, mode = line.rsplit(" ", 1)
            if word == "new file mode":
                file.old, file.new_mode = None, mode
            elif word == "deleted file mode":
                file.new, file.old_mode = None, mode
            elif word == "old mode":
                file.old_mode = mode
            elif word == "new mode":
                file.new_mode = mode
            return True
        elif line.startswith(("rename from ", "copy from ")):
            file.old = parse_path(line.partition(" from ")[2])
            return True
        elif line.startswith(("rename to ", "copy to ")):
            file.new = parse_path(line.partition(" to ")[2])
            return True
        elif line.startswith(_IGNORED_HEADERS) or (self._in_binary and _BINARY_LINE.fullmatch(line) is not None):
            return True
        if self._has_files and (line == "-- " or _COMMIT_LINE.match(line)):
            self._in_preamble = True  # the end of a mail, or the next commit
            return True
        return not line and not self._in_preamble

    # Hunks, and lines that belong to none

    def _read_hunk_parts(self) -> Iterator[DiffPart]:
        lines = self._lines
        # A hunk before any file still changes something, so it gets a file without a name.
        number, orphaned = lines.next_number, self._in_preamble
        if orphaned and not self._has_files:
            self._begin_file("", "")
        yield from self._emit_file()
        hunk = read_hunk(lines)
        if hunk is None:
            yield UnclearLines(number, "a hunk's header cannot be read")
            self._in_preamble, self._in_stray = False, True
            lines.at += 1
            return
        if orphaned:
            yield UnclearLines(number, "a hunk belongs to no file")
        self._in_preamble = self._in_stray = False
        for part in hunk:
            yield part
            if lines.next_number > LINES_MAX:
                return

    def _read_stray_lines(self, line: str) -> Iterator[DiffPart]:
        """Read a line that is neither a header nor content of a hunk."""
        lines = self._lines
        if self._in_preamble and not self._saw_other_patch and _OTHER_PATCH.match(line):
            self._saw_other_patch = True
            yield UnclearLines(lines.next_number, "a patch of another kind")
        if not self._in_preamble and not self._in_stray and not line.startswith(_IGNORED_HEADERS):
            self._in_stray = True
            yield from self._emit_file()
            yield UnclearLines(lines.next_number, "lines that belong to no hunk")
        if not self._in_stray or line[:1] not in ("+", "-"):
            lines.at += 1
            return
        # Lines with a mark count as changes, so that nothing gets past by breaking the format.
        stray: list[str] = []
        while (
            len(stray) < HUNK_LINES_MAX
            and lines.has_lines(1)
            and lines.rows[lines.at][:1] in ("+", "-")
            and not self._is_at_file_pair()
        ):
            stray.append(lines.rows[lines.at])
            lines.at += 1
        yield Hunk(0, stray)


PATH_MAX = 4096
"""Characters of a path. A longer one names no file on any system."""

_PREFIXES = frozenset(
    {("a/", "b/"), ("i/", "w/"), ("c/", "i/"), ("c/", "w/"), ("o/", "w/"), ("1/", "2/"), ("o/", "i/")}
)
_ANY_PREFIX = tuple(sorted({prefix for pair in _PREFIXES for prefix in pair}))
_QUOTED = lazy_pattern(r'"((?:[^"\\]|\\.)*)"')
_ESCAPE = lazy_pattern(rb"\\([0-7]{3}|.)", re.DOTALL)
_LETTER_ESCAPES = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}


def parse_path(text: str) -> str | None:
    """Return the path in a header line; None for `/dev/null`, empty for a text that cannot be a path.

    git quotes odd names like C strings, with octal escapes for bytes. `diff` puts a date after a tab.
    """
    text = text.removesuffix("\r")
    plain, _, _ = text.partition("\t")
    # A name that begins like a quoted one, but is none, may be read in two ways.
    quoted = _QUOTED.fullmatch(plain)
    if quoted is None and plain.startswith('"'):
        return ""
    path = plain
    if quoted is not None:
        raw = _ESCAPE.sub(
            lambda found: (
                bytes([int(found[1], 8) & 0xFF]) if len(found[1]) == 3 else _LETTER_ESCAPES.get(found[1], found[1])
            ),
            quoted[1].encode("utf-8", "surrogatepass"),
        )
        # Keep bytes that are not UTF-8, so that two different names never become equal.
        path = raw.decode("utf-8", "surrogateescape")
    if path == "/dev/null":
        return None
    return path if len(path) <= PATH_MAX else ""


def strip_prefixes(old: str | None, new: str | None) -> tuple[str | None, str | None]:
    """Return both names of a file without the prefixes that git puts before them, such as `a/` and `b/`."""
    if old is None or new is None:
        only = old if new is None else new
        stripped = only[2:] if only is not None and only.startswith(_ANY_PREFIX) else only
        return (stripped, None) if new is None else (None, stripped)
    # `diff.mnemonicPrefix` gives other letters, and a reversed diff swaps them.
    if (old[:2], new[:2]) in _PREFIXES or (new[:2], old[:2]) in _PREFIXES:
        return old[2:], new[2:]
    return old, new


def parse_header_paths(line: str) -> tuple[str | None, str | None]:
    """Return the two names in a `diff --git` line, or the one in `diff --cc`; empty if they cannot be separated.

    They count only if no other header names the file. Both are then the same but for their prefixes.
    """
    for word in ("diff --cc ", "diff --combined "):
        if line.startswith(word):
            path = parse_path(line.removeprefix(word))
            return path, path
    names = line.removeprefix("diff --git ")
    quoted = _QUOTED.match(names)
    if quoted or names.endswith('"'):
        # Either name may be quoted; a quoted one shows where it ends or begins.
        first = quoted[0] if quoted else names.partition(' "')[0]
        second = names[quoted.end() :].lstrip(" ") if quoted else names[len(first) + 1 :]
        return strip_prefixes(parse_path(first), parse_path(second))
    # Names may hold spaces. Equal names have the same length, so the separator is in the middle.
    half = len(names) // 2
    old, new = strip_prefixes(names[:half], names[half + 1 :])
    if names[half : half + 1] == " " and old == new and len(names) <= 2 * PATH_MAX:
        return old, new
    return "", ""


HUNK_LINES_MAX = 4096
"""Lines of a hunk in one part. This bounds the memory."""

_HUNK_HEADER = lazy_pattern(r"@@ -([0-9]{1,10})(?:,([0-9]{1,10}))? \+[0-9]{1,10}(?:,([0-9]{1,10}))? @@")
_COMBINED_HEADER = lazy_pattern(
    r"(@{3,65})((?: -[0-9]{1,10}(?:,[0-9]{1,10})?){2,64}) \+[0-9]{1,10}(?:,([0-9]{1,10}))? \1"
)
_OLD_COUNTS = lazy_pattern(r" -[0-9]+(?:,([0-9]+))?")


def read_hunk(lines: LineWindow) -> Iterator[Hunk | UnclearLines] | None:
    """Read the hunk whose header is the next line. Returns None, and takes nothing, if that is not a header."""
    line = lines.rows[lines.at]
    if found := _HUNK_HEADER.match(line):
        lines.at += 1
        start, old, new = int(found[1]), _parse_count(found[2]), _parse_count(found[3])
        # The common case first: count the marks in one string, instead of going through the lines. This needs the whole
        # hunk in the window: at least as many lines as its larger side.
        if old + new <= HUNK_LINES_MAX and lines.has_lines(max(old, new, 1)):
            lines.has_lines(old + new)
            rows = lines.rows[lines.at : lines.at + old + new]
            marks = "".join([line[:1] or "?" for line in rows])
            # A context line counts for both sides, so a hunk has `old + new - common` lines. More lines may bring more
            # common ones: repeat until the length is stable.
            length = max(old, new)
            while (wanted := old + new - (common := marks.count(" ", 0, length))) > length:
                length = wanted
            fits = marks.count("+", 0, length) + common == new and marks.count("-", 0, length) + common == old
            if fits and length == wanted <= len(rows):
                lines.at += length
                return iter((Hunk(start, rows[:length]),))
        return _read_counted_body(lines, start, old, new)
    if (found := _COMBINED_HEADER.match(line)) and len(found[1]) == 1 + len(counts := _OLD_COUNTS.findall(found[2])):
        lines.at += 1
        return _read_combined_body(lines, [_parse_count(count) for count in counts], _parse_count(found[3]))
    return None


def _parse_count(text: str | None) -> int:
    """Parse a count of a hunk header. A missing count means 1."""
    return int(text) if text else 1


def _read_counted_body(lines: LineWindow, start: int, old: int, new: int) -> Iterator[Hunk | UnclearLines]:
    number, fits = lines.next_number, True
    while fits and (old > 0 or new > 0):
        if not lines.has_lines(1):
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
            elif mark in (" ", "", "\r"):  # some tools strip the space of an empty line
                old -= 1
                new -= 1
                line = line if mark == " " else " " + line
            elif mark == "\\":  # `\ No newline at end of file` counts on no side
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
    """Read a hunk of a merge, which has one column of marks for each parent."""
    number, width, fits = lines.next_number, len(olds), True
    piece: list[str] = []
    while fits and (new > 0 or any(count > 0 for count in olds)):
        if not lines.has_lines(1):
            fits = False
            break
        line = lines.rows[lines.at]
        # An empty line may have lost its blanks.
        marks = line[:width].replace("\r", "").ljust(width)
        if marks[0] != "\\":
            # A line is either in the result or removed, so `+` and `-` never come together.
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
    """A window over lines without newlines. After `has_lines(1)` was true, `rows[at]` is the next line.

    Callers read `rows` and move `at` directly: a method call for each line would cost too much.
    """

    def __init__(self, chunks: Iterable[list[str]]) -> None:
        self._chunks = iter(chunks)
        self._dropped = 0
        """Lines before the window."""
        self.rows: list[str] = []
        self.at = 0

    def has_lines(self, count: int) -> bool:
        """Load lines until `count` lines follow `at`. Returns False if there are not so many."""
        while len(self.rows) - self.at < count:
            chunk = next(self._chunks, None)
            if chunk is None:
                return False
            # The lines before `at` are dropped, so the window stays as small as what is looked at.
            self._dropped += self.at
            self.rows = self.rows[self.at :] + chunk
            self.at = 0
        return True

    @property
    def next_number(self) -> int:
        """The number of the next line, from 1."""
        return self._dropped + self.at + 1


def split_into_line_chunks(text: str) -> Iterator[list[str]]:
    """Yield the lines of a text in chunks. Only a newline ends a line here."""
    at = 0
    while at < len(text):
        # A chunk ends at a line, so no line is ever split.
        end = text.find("\n", at + CHUNK)
        if end < 0:
            yield text[at:].removesuffix("\n").split("\n")
            return
        yield text[at:end].split("\n")
        at = end + 1
