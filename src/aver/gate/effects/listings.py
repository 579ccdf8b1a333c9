"""Reads whose files come from a listing of hidden names: `cat $(ls -a | grep env)`, `find . -type f | xargs head`.

The command does not name the files that it prints. Aver knows the directory that is listed, and the pattern, which is
mostly `*`. Names that begin with a dot are not matched by `*` in a shell, and many secrets have such a name. So where a
listing shows hidden names, the caller of the gate looks for a guarded file at and below that directory, and the read
counts as one of that file. Searches (`grep -r x .`) and counts do not count: they print lines that match, or numbers.

    >>> from aver.gate.shell.understand import understand
    >>> analysis = understand("cat $(ls -a | grep env)", cwd="/work", workspace="/work", env={})
    >>> sorted(find_hidden_reads(analysis.effects, analysis.commands))
    ['/work/*']
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from aver.gate.effects.findings import LISTED_FILES, Effect

if TYPE_CHECKING:
    from aver.gate.shell.model import ResolvedCommand

_SEARCHES = frozenset(
    (
        *(
            "grep",
            "egrep",
            "fgrep",
            "zgrep",
            "rg",
            "ag",
            "ack",
            "wc",
            "ls",
            "dir",
            "stat",
            "file",
            "du",
            "find",
            "test",
        ),
        *("basename", "dirname", "realpath", "readlink", "md5sum", "sha1sum", "sha256sum", "sha512sum", "cksum", "cmp"),
        *("git grep", "tokei", "cloc", "scc", "sloccount", "shellcheck", "ruff", "touch", "echo", "printf"),
    )
)
"""Programs that print lines that match, numbers or names, and not whole files."""


def find_hidden_reads(effects: Iterable[Effect], commands: Iterable[ResolvedCommand]) -> frozenset[str]:
    """Return the patterns of files that are read and were listed, if a listing of the commands shows hidden names."""
    if not any(_shows_hidden_names(command) for command in commands):
        return frozenset()
    return frozenset(
        effect.target
        for effect in effects
        if effect.name == "read"
        and effect.words[-1:] in LISTED_FILES
        and effect.words[0].rpartition("/")[2] not in _SEARCHES
    )


def _shows_hidden_names(command: ResolvedCommand) -> bool:
    words = [word.value for word in command.arguments]
    options = [word for word in words if word is None or word.startswith("-")]
    long_names = {word for word in options if word is not None and word.startswith("--")}
    letters = {letter for word in options if word and not word.startswith("--") for letter in word[1:]}
    match command.program:
        case "find" | "gfind":
            return True
        case "ls" | "dir" | "vdir" | "gls" | "exa" | "eza" | "lsd" | "tree" | "du":
            hidden = any(name.startswith(("--a", "--h")) for name in long_names)
            dotted = any(word is None or word.rpartition("/")[2].startswith(".") for word in words)
            return bool(letters & {"a", "A", "f", "d"}) or hidden or dotted or None in options
        case "fd" | "fdfind" | "rg" | "ag" | "ack":
            shown = long_names & {
                "--hidden",
                "--unrestricted",
                "--no-ignore",
                "--no-ignore-vcs",
                "--glob",
                "--search-zip",
            }
            return bool(shown) or bool(letters & {"H", "u", "I", ".", "g"}) or None in options
        case "grep" | "egrep" | "fgrep" | "zgrep":
            return bool(letters & {"r", "R"}) or bool(long_names & {"--recursive", "--dereference-recursive"})
        case "git":
            others = any(name.startswith(("--o", "--i")) for name in long_names)
            return "ls-files" in words and (bool(letters & {"o", "i"}) or others)
    return False
