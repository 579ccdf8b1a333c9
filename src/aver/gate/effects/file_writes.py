r"""The writes of a command into files, where the command itself shows their text.

    cat > f <<EOF        echo text >> f        printf 'a\n' > f        tee f <<EOF        sed -i 's/a/b/' f

The shell reader lists such writes as `FileWrite`s, and those by the same means that it cannot follow as `unknown`.
`diff_writes` makes them one unified diff, so that the gate judges them as it judges an edit. It is pure: the caller
gives the text that each file has now.

    >>> writes = [FileWrite("/work/a.py", "append", "x = 2\n")]
    >>> print(diff_writes(writes, {"/work/a.py": "x = 1\n"}, "/work"), end="")
    --- a/a.py
    +++ b/a.py
    @@ -2,0 +2,1 @@
    +x = 2

Of `sed` Aver follows only scripts that it can carry out without searching by a pattern: an address is a line number or
a range of them, and the text to be replaced is literal. Everything else counts as not shown. So no command can make the
gate run a costly search, and no dialect of patterns can be misread.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from aver.fast_dataclass import dataclass
from aver.gate.effects.paths import PathRoots, locate_path
from aver.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from aver.gate.shell.invocation import StandardInput
    from aver.gate.shell.model import ShellState, Word

WRITES_MAX = 50
"""Writes of one command that Aver follows. A command with more shows none."""

TEXT_MAX = 256 * 1024
"""Characters of a file's text, and of all texts that a command writes. Beyond that, nothing counts as shown."""

DIFF_MAX = 64 * 1024
"""Characters of the diff, which is sealed with the decision."""

WRITING_PROGRAMS = frozenset(("tee", "sed"))
"""Programs that write files which they name as arguments, and whose writes Aver follows."""


WriteKind = Literal["replace", "append", "sed", "copy", "move", "unknown"]


@dataclass(frozen=True, slots=True)
class FileWrite:
    """A write into a file of the workspace or of a temporary directory.

    Its result follows from the file's text before, unless it is `unknown`.
    """

    path: str
    how: WriteKind
    text: str = ""
    """The text that is written; the script of `sed`; the path that is copied or moved."""


def find_file_writes(
    words: Sequence[Word] | None,
    outputs: Sequence[tuple[str, str, Word]],
    stdin: StandardInput | None,
    state: ShellState,
    roots: PathRoots,
) -> Iterator[FileWrite]:
    """Yield the writes of a simple command by its redirections, and by itself if it is one of `WRITING_PROGRAMS`.

    `outputs` are its redirections to files, each with operator, descriptor and target. `stdin` is its standard input.
    For a group or a loop `words` is None: then no text is known.
    """
    from aver.gate.shell.invocation import predict_output  # Not above: that module imports `findings`, as this does.

    is_group, words = words is None, words or ()
    program = words[0].value if words else ""
    text: str | None = None if is_group else ""
    if program:
        found = predict_output(words, stdin)
        text = found.text if found.kind == "text" else None
        # `echo` ends its line; a here-document has its own end.
        text = f"{text}\n" if text is not None and program == "echo" and not _has_option(words, "-n") else text
    targets: list[tuple[Word, WriteKind, str]] = []
    to_output = [operator for operator, descriptor, _ in outputs if descriptor in ("", "1")]
    kinds: Mapping[str, WriteKind] = {">": "replace", ">|": "replace", ">>": "append"}
    for operator, descriptor, target in outputs:
        is_shown = text is not None and descriptor in ("", "1") and len(to_output) == 1
        targets.append((target, kinds.get(operator, "unknown") if is_shown else "unknown", text or ""))
    if program == "tee":
        kind = kinds[">>" if _has_option(words, "-a", "--append") else ">"]
        given = stdin.text if stdin is not None and stdin.kind == "text" else None
        files = [word for word in words[1:] if not word.prefix.startswith("-")]
        targets += [(word, "unknown" if given is None else kind, given or "") for word in files]
    elif program == "sed":
        script, files = _read_sed_arguments(words[1:])
        targets += [(word, "unknown" if script is None else "sed", script or "") for word in files]
    for target, how, written in targets:
        # A variable of a loop has several values. Each of the files may get the text, and no other.
        is_certain = len(state.cwds) == 1 and not target.is_pattern
        for place in (locate_path(value, cwd, roots) for value in target.values for cwd in state.cwds):
            if place.where in ("workspace", "temporary"):
                yield FileWrite(place.path, how if is_certain else "unknown", written)


def _has_option(words: Sequence[Word], *names: str) -> bool:
    return any(word.value in names for word in words[1:])


def _read_sed_arguments(words: Sequence[Word]) -> tuple[str | None, list[Word]]:
    """Return the script of `sed -i` and its files. Where Aver does not follow the call: None and all words."""
    scripts: list[str] = []
    operands: list[Word] = []
    is_in_place = False
    rest = iter(words)
    for word in rest:
        value = word.value
        if value is None:
            return None, list(words)
        if value in ("-i", "--in-place"):
            is_in_place = True
        elif value == "" and is_in_place and not operands and not scripts:
            continue  # BSD writes `-i ''`; GNU takes it for a script that changes nothing.
        elif value in ("-e", "--expression"):
            following = next(rest, None)
            scripts.append((following.value if following is not None else None) or "?")
        elif value.startswith("-") and value != "-":
            return None, list(words)
        else:
            operands.append(word)
    if not scripts and operands:
        scripts, operands = [operands[0].value or "?"], operands[1:]
    is_followed = is_in_place and all(_parse_sed_command(script) is not None for script in scripts)
    return ("\n".join(scripts), operands) if is_followed and scripts else (None, list(words))


# --- sed


@dataclass(frozen=True, slots=True)
class _SedCommand:
    """`FIRST,LASTs/old/new/g`, or `d`, `i`, `a`, `c` with a text. 0 stands for no address, -1 for the last line."""

    first: int
    last: int
    verb: str
    old: str = ""
    new: str = ""
    is_global: bool = False


_ADDRESSED = lazy_pattern(r"\s*(?:([0-9]{1,7}|\$)(?:,([0-9]{1,7}|\$))?)?\s*([sdiac])")
_ESCAPED = lazy_pattern(r"\\(.)", re.DOTALL)
_LITERAL = lazy_pattern(r"(?:[^\\.*\[\]^$]|\\[./*\[\]^$|#,:@!%\\-])+")
_REPLACEMENT = lazy_pattern(r"(?:[^\\&]|\\[./&|#,:@!%n\\-])*")


def _parse_sed_command(script: str) -> _SedCommand | None:
    """Parse one command of `sed`; None for one that Aver does not carry out."""
    found = _ADDRESSED.match(script)
    if found is None or ("\n" in script[:-1] and found[3] == "s"):
        return None
    first, last = (-1 if text == "$" else int(text or 0) for text in (found[1], found[2] or found[1]))
    verb, rest = found[3], script[found.end() :]
    if verb == "d":
        return _SedCommand(first, last, verb) if not rest.strip() and first else None
    if verb in ("i", "a", "c"):
        text = rest.removeprefix("\\").lstrip("\n").lstrip(" ")
        return _SedCommand(first, last, verb, new=text) if first and "\\" not in text and text else None
    parts = _split_at(rest[1:], rest[:1]) if rest[:1] in ("/", "|", "#", ",", ":", "@", "!", "%") else None
    if parts is None or parts[2] not in ("", "g"):
        return None
    old, new, flags = parts
    if not _LITERAL.fullmatch(old) or not _REPLACEMENT.fullmatch(new):
        return None
    return _SedCommand(first, last, verb, _unescape(old), _unescape(new), flags == "g")


def _split_at(text: str, mark: str) -> tuple[str, str, str] | None:
    """Split the text after `s/` at the marks that are not escaped, into three parts."""
    parts, start, at = list[str](), 0, 0
    while at < len(text):
        if text[at] == "\\":
            at += 1
        elif text[at] == mark:
            parts.append(text[start:at])
            start = at + 1
        at += 1
    return (parts[0], parts[1], text[start:].strip()) if len(parts) == 2 else None


def _unescape(text: str) -> str:
    return _ESCAPED.sub(lambda found: "\n" if found[1] == "n" else found[1], text)


def _apply_sed(text: str, script: str) -> str | None:
    """Return a text after the commands of a script; None where one is not followed."""
    lines = text.split("\n")
    end = lines.pop() if lines[-1] == "" else None  # A text ends with a newline: there is no line after it.
    commands = [_parse_sed_command(part) for part in script.split("\n")]
    result: list[str] = []
    for number, line in enumerate(lines, 1):
        before, after, is_deleted = list[str](), list[str](), False
        for command in commands:
            if command is None:
                return None
            first, last = (len(lines) if at == -1 else at for at in (command.first, command.last))
            if is_deleted or (first and not first <= number <= max(first, last)):
                continue
            if command.verb == "s":
                line = line.replace(command.old, command.new, -1 if command.is_global else 1)
            elif command.verb in ("i", "a"):
                (before if command.verb == "i" else after).append(command.new)
            else:
                is_deleted = True
                if command.verb == "c" and number == max(first, last):
                    after.append(command.new)
        result += [*before, *([] if is_deleted else [line]), *after]
    return "\n".join(result) + ("\n" if end is not None and result else "")


# --- the diff

_INERT_ENDINGS = frozenset(
    (
        *("txt", "md", "markdown", "rst", "log", "out", "diff", "patch", "bak", "backup", "orig", "csv", "tsv"),
        *("md5", "sha1", "sha256", "sha512"),
    )
)
_REQUIREMENTS = lazy_pattern(r"(?:^|/)(?:requirements|constraints|cmakelists)", re.IGNORECASE)


def is_inert(path: str) -> bool:
    """Whether nothing runs or loads a file of this name by itself: texts, logs, patches, copies put aside."""
    return path.rpartition("/")[2].rpartition(".")[2].lower() in _INERT_ENDINGS and not _REQUIREMENTS.search(path)


def diff_writes(writes: Iterable[FileWrite], texts: Mapping[str, str | None], workspace: str) -> str | None:
    """Return the change that the writes make together, as a unified diff; None where they do not show all of it.

    `texts` are the texts of the files before; None for a file that is not there. A file that is missing from it, one
    that `sed` would edit and is not there, or a change beyond the limits is not shown. A new file of a kind that
    nothing runs (`is_inert`) may have any text: the diff then names it without lines.
    """
    after: dict[str, str] = {}
    size = 0
    for count, write in enumerate(writes):
        if not write.path.isprintable() or '"' in write.path:  # A diff would have to quote such a name.
            return None
        before = texts.get(write.path)
        size += len(write.text) + len(before or "")
        if write.path not in texts or count >= WRITES_MAX or size > TEXT_MAX:
            return None
        is_again = write.path in after
        if write.how == "append":
            after[write.path] = after.get(write.path, before or "") + write.text
        elif write.how == "unknown" and before is None and is_inert(write.path):
            after.setdefault(write.path, "")
        # Not each command of a script need run: of two texts for one file, either may be the last.
        elif write.how == "replace" and not is_again:
            after[write.path] = write.text
        elif write.how == "sed" and not is_again and before is not None:
            edited = _apply_sed(before, write.text)
            if edited is None:
                return None
            after[write.path] = edited
        else:
            return None
    inside = workspace.rstrip("/") + "/"
    diff = "".join(_diff_texts(path.removeprefix(inside), texts[path], text) for path, text in after.items())
    return diff if diff and len(diff) <= DIFF_MAX else None


def _diff_texts(path: str, before: str | None, after: str) -> str:
    """Return the diff of one file as one hunk: all lines between the equal ones at the start and at the end.

    Lines inside the hunk that stay the same count as removed and added. A change never looks smaller than it is.
    """
    if before == after:
        return ""
    old, new = ([] if text is None else text.removesuffix("\n").split("\n") if text else [] for text in (before, after))
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    removed, added = old[start : len(old) - end], new[start : len(new) - end]
    header = f"--- {'/dev/null' if before is None else f'a/{path}'}\n+++ b/{path}\n"
    hunk = f"@@ -{start + 1},{len(removed)} +{start + 1},{len(added)} @@\n"
    lines = "".join([*(f"-{line}\n" for line in removed), *(f"+{line}\n" for line in added)])
    return header + (hunk + lines if lines else "")
