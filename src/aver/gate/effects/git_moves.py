"""Says which commands move code in or out of git's store: pure, by the words of the commands alone.

A file that Aver has looked into may be replaced by another version that git keeps. That version may be one that the
session wrote and nobody saw (`git stash`), or one that came from elsewhere (`git fetch`). So Aver remembers what was
stored and fetched (`gate.facts.session_state`), and needs to know which commands do that:

    fetch      gets commits from elsewhere
    store      puts the content of files into git's store: `git add`, `git stash`
    restore    takes the content of files out of it: `git stash pop`, `git checkout BRANCH`, `git merge`
    and-more   another program may run after a command that restores, in the same call

Aver fails closed: a subcommand that is in no list here both stores and restores. Subcommands that only read, or that
change names of branches alone, move nothing.

    >>> from aver.gate.shell.understand import understand
    >>> analysis = understand("git fetch && git checkout FETCH_HEAD && make", cwd="/work", workspace="/work", env={})
    >>> sorted(find_git_moves(analysis.commands))
    ['and-more', 'fetch', 'restore']
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from aver.gate.shell.model import ResolvedCommand

GitMove = Literal["fetch", "store", "restore", "and-more"]
GitMoves = frozenset[GitMove]

_NOTHING: GitMoves = frozenset()
_STORES: GitMoves = frozenset({"store"})
_RESTORES: GitMoves = frozenset({"restore"})
_FETCHES: GitMoves = frozenset({"fetch"})
_BRINGS: GitMoves = frozenset({"fetch", "restore"})
_UNKNOWN: GitMoves = frozenset({"store", "restore"})

_SUBCOMMANDS: Mapping[str, GitMoves] = {
    **dict.fromkeys(
        (
            *("annotate", "blame", "branch", "cat-file", "check-attr", "check-ignore", "check-ref-format", "cherry"),
            *("column", "config", "count-objects", "credential", "describe", "diff", "diff-files", "diff-index"),
            *("diff-pairs", "diff-tree", "for-each-ref", "format-patch", "fsck", "gc", "grep", "help", "init"),
            *("interpret-trailers", "log", "ls-files", "ls-remote", "ls-tree", "maintenance", "merge-base", "name-rev"),
            *("notes", "patch-id", "push", "range-diff", "reflog", "remote", "rev-list", "rev-parse", "shortlog"),
            *("show", "show-branch", "show-ref", "status", "stripspace", "symbolic-ref", "tag", "update-ref", "var"),
            *("verify-commit", "verify-tag", "version", "whatchanged", "worktree", "stash", "restore", "reset"),
        ),
        _NOTHING,
    ),
    **dict.fromkeys(("add", "stage", "commit", "rm", "mv", "hash-object", "update-index", "write-tree"), _STORES),
    **dict.fromkeys(("fetch", "fetch-pack"), _FETCHES),
    **dict.fromkeys(("pull", "clone", "submodule", "lfs"), _BRINGS),
}
"""Subcommands of git by what they move. `_judge_git` looks closer at some of them."""

_GLOBAL_VALUES = frozenset(("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--super-prefix", "--config-env"))
"""Options of git itself that take the next word."""

_NEW_BRANCH = ("-b", "-B", "-c", "-C", "--create", "--force-create", "--orphan")
"""Options of `checkout` and `switch` that make a branch. Without a place to start at, no file changes."""

_BRINGING_HUB_WORDS = frozenset(("checkout", "co", "clone", "sync", "fork", "develop", "download"))
_READING_WORDS = frozenset(("status", "st", "log", "diff", "cat", "show", "info", "blame", "annotate", "help", "root"))
_OTHER_SYSTEMS = frozenset(("hg", "svn", "jj", "sl", "bzr", "fossil", "cvs", "p4"))
_ORDERLESS = frozenset(("loop", "function", "background"))
"""Constructs in which the order of the text is not that of the run."""


def find_git_moves(commands: Iterable[ResolvedCommand]) -> GitMoves:
    """Return what the commands move."""
    found: set[GitMove] = set()
    is_restored = has_other = is_orderless = False
    for command in commands:
        is_orderless = is_orderless or not _ORDERLESS.isdisjoint(command.inside)
        moves = _judge_command(command)
        if "restore" in moves:
            is_restored = True
        elif command.program != "git":
            has_other = True
            if is_restored:
                found.add("and-more")
        found |= moves
    if is_restored and has_other and is_orderless:
        found.add("and-more")
    return frozenset(found)


def _judge_command(command: ResolvedCommand) -> GitMoves:
    program, words = command.program, [word.value for word in command.arguments]
    if program == "git":
        return _judge_git(words)
    if program in ("gh", "glab", "hub"):
        return _BRINGS if None in words[:2] or not _BRINGING_HUB_WORDS.isdisjoint(words[:2]) else _NOTHING
    if program in _OTHER_SYSTEMS:
        return _NOTHING if words[:1] and words[0] in _READING_WORDS else _BRINGS | _STORES
    return _NOTHING


def _judge_git(words: list[str | None]) -> GitMoves:
    at = 0
    while at < len(words) and (word := words[at]) is not None and word.startswith("-"):
        at += 2 if word in _GLOBAL_VALUES else 1
    if at >= len(words):
        return _NOTHING
    name, rest = words[at], words[at + 1 :]
    options = [word for word in rest if word is None or word.startswith("-")]
    match name:
        case "checkout" | "switch":
            return _NOTHING if not rest or _makes_branch_only(rest) else _RESTORES
        case "restore":
            in_index = _has_option(options, "S", "--staged")
            return _NOTHING if in_index and not _has_option(options, "W", "--worktree") else _RESTORES
        case "reset":
            # git takes beginnings of names: `--ha`, `--k`. `--m` could be `--mixed`, which touches no file.
            kinds = [word[:3] for word in options if word and word != "--mixed"]
            touches_files = None in options or not {"--h", "--k", "--m"}.isdisjoint(kinds)
            return _RESTORES if touches_files else _NOTHING
        case "stash":
            return _judge_stash(rest)
        case "remote":
            return _FETCHES if rest[:1] == ["update"] or None in rest[:1] else _NOTHING
        case "worktree":
            return _NOTHING if rest[:1] and rest[0] in ("list", "prune", "remove", "lock", "unlock") else _RESTORES
        case None:
            return _UNKNOWN | _FETCHES
    return _SUBCOMMANDS.get(name, _UNKNOWN)


def _judge_stash(rest: list[str | None]) -> GitMoves:
    task = next((word for word in rest if word is None or not word.startswith("-")), "push")
    if task in ("pop", "apply", "branch"):
        return _RESTORES
    if task in ("list", "show", "drop", "clear"):
        return _NOTHING
    return _UNKNOWN if task is None else _STORES


def _makes_branch_only(rest: list[str | None]) -> bool:
    """Whether `checkout` or `switch` makes a branch at the current commit: no operand says where else to start."""
    operands, names_branch, takes_value = 0, False, False
    for word in rest:
        if word is None:
            return False
        if takes_value:
            takes_value = False
        elif word in _NEW_BRANCH:
            names_branch = takes_value = True
        elif word.startswith(("--create=", "--force-create=", "--orphan=")):
            names_branch = True
        elif word.startswith(_NEW_BRANCH[:4]) and not word.startswith("--"):
            names_branch = True  # `-bNAME`
        elif not word.startswith("-") or word in ("-", "--"):
            operands += 1
    return names_branch and not operands


def _has_option(options: list[str | None], letter: str, name: str) -> bool:
    """Whether an option is given, by its name, a beginning of that, or a letter in a group such as `-SW`."""
    return any(
        word is not None
        and ((len(word) > 3 and name.startswith(word)) or (not word.startswith("--") and letter in word[1:]))
        for word in options
    )
