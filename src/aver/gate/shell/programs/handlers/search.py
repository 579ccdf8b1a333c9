"""Handlers of `find` and `fd`, which only read unless an action deletes, writes or runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aver.gate.shell.invocation import Invocation, find_name_patterns
from aver.gate.shell.model import CHOICES_MAX, Word
from aver.gate.shell.programs.apply import apply_arguments
from aver.gate.shell.programs.spec import parse_spec, read_arguments

_CURRENT_DIRECTORY = Word(".", (".",), ".")
_TESTS_WITH_VALUE = frozenset(
    (
        *("-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex", "-type", "-xtype"),
        *("-size", "-mtime", "-mmin", "-atime", "-amin", "-ctime", "-cmin", "-newer", "-anewer", "-cnewer", "-perm"),
        *("-user", "-group", "-uid", "-gid", "-links", "-inum", "-fstype", "-maxdepth", "-mindepth", "-samefile"),
        *("-lname", "-ilname", "-used", "-regextype", "-context", "-printf", "-flags", "-Bmin", "-Btime", "-D"),
    )
)
_TESTS_WITHOUT_VALUE = frozenset(
    (
        *("-print", "-print0", "-prune", "-quit", "-ls", "-depth", "-d", "-empty", "-true", "-false", "-readable"),
        *("-writable", "-executable", "-xdev", "-mount", "-follow", "-daystart", "-noleaf", "-nouser", "-nogroup"),
        *("-ignore_readdir_race", "-noignore_readdir_race", "-warn", "-nowarn", "-o", "-or", "-a", "-and", "-not", "!"),
        *("(", ")", ",", "-H", "-L", "-P", "-E", "-X", "-s", "-x", "-O1", "-O2", "-O3", "--", "-help", "-version"),
    )
)
_EXEC_ACTIONS = frozenset(("-exec", "-execdir", "-ok", "-okdir"))
_WRITE_ACTIONS = frozenset(("-fprint", "-fprint0", "-fls"))
_FD = (
    "-[vhVr] -e= -t= -E= -d= -g -H -I -u -L -p -a -0 -1 -q -l -S= -j= -c= -o= -F -s -i --extension= --type= --exclude="
    " --max-depth= --min-depth= --exact-depth= --size= --changed-within= --changed-before= --owner= --format="
    " --threads= --color= --base-directory=read --ignore-file=contents --max-results= --path-separator="
    " --search-path=read --and= --newer= --older= --glob --hidden --no-ignore --unrestricted --follow"
    " --full-path --absolute-path --list-details --no-ignore-vcs --no-ignore-parent --ignore-case --case-sensitive"
    " --fixed-strings --regex --print0 --prune --strip-cwd-prefix? --one-file-system --quiet --show-errors --no-hidden"
    " --ignore --no-require-git --hyperlink? --batch-size= --no-global-ignore-file --relative-path --follow --maxdepth="
    " --max-buffer-time= -x= -X= --ignore-vcs --no-ignore-files 1skip *read .read"
)


def find(call: Invocation) -> None:
    roots, expression = _split_roots(call.words)
    for root in roots:
        call.report_path("read", root)
    words = iter(expression)
    chosen = find_name_patterns(expression)
    for word in words:
        text = word.value
        # A pattern may match a file whose name is an action, such as `-delete`.
        if text is None or (word.is_pattern and text not in ("!", "(", ")")):
            call.report_unclear("unknown-option", f"{word.short_text} may become an action of find", word)
        elif text in _TESTS_WITH_VALUE or text.startswith("-newer"):
            next(words, None)
        elif text == "-delete":
            found = _patterns_below(roots, chosen)
            # Without a limiting name, everything below the roots is deleted.
            for root in [Word("{}", found, is_pattern=True)] if found and "*" not in chosen else roots:
                call.report_path("delete", root, word)
        elif text in _EXEC_ACTIONS:
            # The command goes up to its `;` or `{} +`.
            command: list[Word] = []
            for part in words:
                if part.value == ";" or (part.value == "+" and command and command[-1].value == "{}"):
                    break
                command.append(part)
            _judge_exec(call, word, _patterns_below(roots, chosen), command)
        elif text in _WRITE_ACTIONS or text == "-fprintf":
            target = next(words, None)
            if target is not None:
                call.report_path("write", target, word)
            if text == "-fprintf":
                next(words, None)
        elif text == "-files0-from":
            call.report_unclear("unknown-target", "where find looks stands in a file", word)
            next(words, None)
        elif text not in _TESTS_WITHOUT_VALUE:
            call.report_unclear("unknown-option", f"{word.short_text} of find is not in the tables", word)


def _split_roots(words: Sequence[Word]) -> tuple[list[Word], Sequence[Word]]:
    roots: list[Word] = []
    for index, word in enumerate(words):
        if word.value in ("-H", "-L", "-P", "-E", "-X", "-s", "-x", "-O1", "-O2", "-O3", "--"):
            continue
        # The expression begins at the first word that looks like one.
        if any(value[:1] in ("-", "(", "!", ")", ",") for value in word.values or (word.prefix,)):
            return roots or [_CURRENT_DIRECTORY], words[index:]
        roots.append(word)
    return roots or [_CURRENT_DIRECTORY], ()


def _judge_exec(call: Invocation, action: Word, below: tuple[str, ...], words: Sequence[Word]) -> None:
    """Judge the command that runs for each found file. `below` are patterns for the paths of these files."""
    filled: list[Word] = []
    for word in words:
        if word.value is None or "{}" not in word.value:
            filled.append(word)
        elif word.value == "{}" and below:
            filled.append(Word("{}", below, below[0] if len(below) == 1 else "", is_pattern=True))
        else:
            filled.append(Word(word.text, prefix=word.value.partition("{}")[0]))
    inner = call
    if action.value in ("-execdir", "-okdir"):
        # The command runs in the directory of each file: somewhere below the roots.
        inner = replace(call, state=replace(call.state, cwds=(None,)))
    inner.judge_words(filled, f"find {action.value}", keeps_input=False)


def _patterns_below(roots: Sequence[Word], names: Sequence[str] = ("*",)) -> tuple[str, ...]:
    """Return patterns for the paths below some directories; none if one of the directories is unknown."""
    if not all(root.is_known for root in roots) or len(roots) * len(names) > CHOICES_MAX:
        return ()
    return tuple(f"{value.rstrip('/')}/{name}" for root in roots for value in root.values for name in names)


def fd(call: Invocation) -> None:
    for index, word in enumerate(call.words):
        if word.value in ("-x", "-X", "--exec", "--exec-batch"):
            _judge_fd_search(call, call.words[:index])
            words = list(call.words[index + 1 :])
            # fd adds the path at the end if the command has no placeholder.
            if not any(given.value is not None and "{" in given.value for given in words):
                words.append(Word("{}", ("{}",), "{}"))
            roots = read_arguments(parse_spec(_FD), call.words[:index]).operands[1:] or [_CURRENT_DIRECTORY]
            _judge_exec(call, Word("-exec", ("-exec",)), _patterns_below(roots), words)
            return
        if word.value is not None and word.value.startswith(("--exec=", "--exec-batch=")):
            call.report_effect("execute", word)
            call.report_unclear(
                "unknown-option", f"write {word.short_text.partition('=')[0]} and its command as words", word
            )
    _judge_fd_search(call, call.words)


def _judge_fd_search(call: Invocation, words: Sequence[Word]) -> None:
    call = replace(call, words=tuple(words))
    apply_arguments(call, parse_spec(_FD), read_arguments(parse_spec(_FD), call.words))
