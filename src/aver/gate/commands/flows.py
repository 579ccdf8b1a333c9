"""What a program prints, where that can be told: it may be a script for the next one, or names of files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from aver.gate.commands.call import Input
from aver.gate.commands.model import Word

__all__ = ["names_looked_for", "printed_by"]

_PASSES_ON = frozenset(("grep", "egrep", "fgrep", "head", "tail", "sort", "uniq", "tac", "cat", "tee"))
_DECODES = frozenset(
    (
        *("base64", "base32", "basenc", "xxd", "openssl", "gpg", "uudecode", "zcat", "gunzip", "gzip", "bunzip2", "xz"),
        *("bzcat", "xzcat", "zstd", "zstdcat", "tr", "rev", "sed", "awk", "perl", "python", "python3", "od", "dd"),
    )
)
_FETCHES = frozenset(("curl", "wget", "nc", "ncat", "netcat", "socat", "ssh", "telnet", "aria2c", "http", "https"))
_LISTS = frozenset(("find", "fd", "fdfind", "ls"))
_OTHER = Input("other")
_HERE = Word(".", (".",), ".")


def printed_by(words: Sequence[Word], feed: Input | None) -> Input:
    """What the next program in a pipeline reads."""
    if not words or words[0].value is None:
        return _OTHER
    program, arguments = words[0].value.rpartition("/")[2], words[1:]
    if program in ("echo", "printf"):
        return _spoken(program, arguments)
    if program in _PASSES_ON and feed is not None and (feed.kind != "text" or (program == "cat" and not arguments)):
        return feed if not _operands(arguments)[program.endswith("grep") :] else _OTHER
    if program in _DECODES:
        return Input("decoded")
    if program in _FETCHES:
        return Input("network")
    if _lists_files(program, arguments):
        names = names_looked_for(arguments) if program == "find" else ("*",)
        return Input("listing", roots=_roots(program, arguments), names=names)
    return _OTHER


def _spoken(program: str, arguments: Sequence[Word]) -> Input:
    values = [word.value for word in arguments]
    if any(value is None for value in values):
        return _OTHER
    texts = [value for value in values if value is not None]
    if program == "echo":
        if texts[:1] == ["-n"]:
            texts = texts[1:]
        if (texts and re.fullmatch(r"-[neE]+", texts[0])) or any("\\" in text for text in texts):
            return Input("decoded")
        return Input("text", " ".join(texts))
    if texts[:1] and texts[0] in ("%s", "%s\\n", "%s\n") and len(texts) == 2:
        return Input("text", texts[1])
    if len(texts) == 1 and "%" not in texts[0] and "\\" not in texts[0].replace("\\n", ""):
        return Input("text", texts[0].replace("\\n", "\n"))
    return Input("decoded")


def _operands(arguments: Sequence[Word]) -> list[Word]:
    return [word for word in arguments if not word.prefix.startswith("-")]


def _lists_files(program: str, arguments: Sequence[Word]) -> bool:
    values = [word.value for word in arguments]
    if program in _LISTS:
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


def names_looked_for(expression: Sequence[Word]) -> tuple[str, ...]:
    """The names that files have which `find` finds: the one it was given, or any, and those that it was given."""
    values = [word.value for word in expression]
    named = [after for before, after in pairwise(values) if before in ("-name", "-iname") and after]
    if len(named) == 1 and not {"-o", "-or", "!", "-not", ",", None} & set(values):
        return (named[0],)
    return ("*", *named)


def _roots(program: str, arguments: Sequence[Word]) -> tuple[Word, ...]:
    """Where the files lie that are listed."""
    if program == "find":
        roots: list[Word] = []
        for word in arguments:
            if word.prefix.startswith(("-", "(", "!")):
                break
            roots.append(word)
        return tuple(roots) or (_HERE,)
    operands = _operands(arguments)
    if program in ("ls", "git"):
        # Names beside each other are relative to where we are, whole paths are not.
        return (_HERE, *(word for word in operands if word.prefix.startswith(("/", "~", ".."))))
    return tuple(operands[1:]) or (_HERE,)
