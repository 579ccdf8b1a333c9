"""Prediction of a program's output, which is the standard input of the next program in a pipeline.

The output matters in two cases: the next program runs it as a script (`echo ls | sh`), or takes it as file names
(`find . | xargs rm`). Everything else is `other`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from aver.gate.shell.invocation import StandardInput
from aver.gate.shell.model import Word

__all__ = ["find_name_patterns", "predict_output"]

_FILTERS = frozenset(("grep", "egrep", "fgrep", "head", "tail", "sort", "uniq", "tac", "cat", "tee"))
_DECODERS = frozenset(
    (
        *("base64", "base32", "basenc", "xxd", "openssl", "gpg", "uudecode", "zcat", "gunzip", "gzip", "bunzip2", "xz"),
        *("bzcat", "xzcat", "zstd", "zstdcat", "tr", "rev", "sed", "awk", "perl", "python", "python3", "od", "dd"),
    )
)
_FETCHERS = frozenset(("curl", "wget", "nc", "ncat", "netcat", "socat", "ssh", "telnet", "aria2c", "http", "https"))
_LISTERS = frozenset(("find", "fd", "fdfind", "ls"))
_OTHER_INPUT = StandardInput("other")
_CURRENT_DIRECTORY = Word(".", (".",), ".")


def predict_output(words: Sequence[Word], stdin: StandardInput | None) -> StandardInput:
    """Return what a program with these words prints, if `stdin` is its own standard input."""
    if not words or words[0].value is None:
        return _OTHER_INPUT
    program, arguments = words[0].value.rpartition("/")[2], words[1:]
    if program in ("echo", "printf"):
        return _echo_output(program, arguments)
    # A filter without file operands prints a part of its input. Of a known text, only a bare `cat` keeps all of it.
    if program in _FILTERS and stdin is not None and (stdin.kind != "text" or (program == "cat" and not arguments)):
        # The first operand of grep is its pattern, not a file.
        return stdin if not _list_operands(arguments)[program.endswith("grep") :] else _OTHER_INPUT
    if program in _DECODERS:
        return StandardInput("decoded")
    if program in _FETCHERS:
        return StandardInput("network")
    if _is_file_listing(program, arguments):
        names = find_name_patterns(arguments) if program == "find" else ("*",)
        return StandardInput("listing", roots=_listing_roots(program, arguments), names=names)
    return _OTHER_INPUT


def _echo_output(program: str, arguments: Sequence[Word]) -> StandardInput:
    values = [word.value for word in arguments]
    if any(value is None for value in values):
        return _OTHER_INPUT
    texts = [value for value in values if value is not None]
    if program == "echo":
        if texts[:1] == ["-n"]:
            texts = texts[1:]
        if (texts and re.fullmatch(r"-[neE]+", texts[0])) or any("\\" in text for text in texts):
            return StandardInput("decoded")  # whether echo interprets backslashes depends on the shell
        return StandardInput("text", " ".join(texts))
    if texts[:1] and texts[0] in ("%s", "%s\\n", "%s\n") and len(texts) == 2:
        return StandardInput("text", texts[1])
    if len(texts) == 1 and "%" not in texts[0] and "\\" not in texts[0].replace("\\n", ""):
        return StandardInput("text", texts[0].replace("\\n", "\n"))
    return StandardInput("decoded")


def _list_operands(arguments: Sequence[Word]) -> list[Word]:
    return [word for word in arguments if not word.prefix.startswith("-")]


def _is_file_listing(program: str, arguments: Sequence[Word]) -> bool:
    values = [word.value for word in arguments]
    if program in _LISTERS:
        return True
    if program == "git":
        return values[:1] == ["ls-files"] or (values[:1] == ["diff"] and "--name-only" in values)
    if program in ("rg", "grep"):
        return any(
            value in ("--files", "--files-with-matches", "-l")
            or (value and re.fullmatch(r"-[a-zA-Z]*l[a-zA-Z]*", value))
            for value in values
        )
    return False


def find_name_patterns(expression: Sequence[Word]) -> tuple[str, ...]:
    """Return patterns for the names of the files that `find` prints.

    One `-name` without `-o` or `!` limits the names to its pattern. In all other cases a file may have any name.
    """
    values = [word.value for word in expression]
    named = [after for before, after in pairwise(values) if before in ("-name", "-iname") and after]
    if len(named) == 1 and not {"-o", "-or", "!", "-not", ",", None} & set(values):
        return (named[0],)
    return ("*", *named)


def _listing_roots(program: str, arguments: Sequence[Word]) -> tuple[Word, ...]:
    """Return the directories that the listed files lie in."""
    if program == "find":
        roots: list[Word] = []
        for word in arguments:
            if word.prefix.startswith(("-", "(", "!")):
                break
            roots.append(word)
        return tuple(roots) or (_CURRENT_DIRECTORY,)
    operands = _list_operands(arguments)
    if program in ("ls", "git"):
        # These print names relative to the current directory, unless an operand is an absolute path.
        return (_CURRENT_DIRECTORY, *(word for word in operands if word.prefix.startswith(("/", "~", ".."))))
    return tuple(operands[1:]) or (_CURRENT_DIRECTORY,)
