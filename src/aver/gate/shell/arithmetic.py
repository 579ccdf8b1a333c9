"""Finds arithmetic that may run what a variable holds.

A shell computes with the value of a variable as with an expression, and an expression may have a subscript with a
command in it:

    printf 'a[$(rm -rf src)]' > notes.txt      only a text
    x=$(cat notes.txt); echo $((x))            runs `rm -rf src`

So a variable must not reach arithmetic if its value may be a text that somebody else wrote: the output of a program
that prints contents, or what `read` reads. Plain literal values, results of arithmetic, and the output of programs that
print numbers (`wc -l`, `date +%s`) are harmless. Arithmetic is `$((…))`, `((…))`, `let`, comparisons such as `-eq` in
`[[ … ]]`, subscripts, and the offset in `${name:offset}`.

That search is one over the script as a whole, whatever order its commands run in. It goes by names in the text, so it
also finds names in quoted text. This error makes Aver ask more often, not less.

A shell may keep variables from one command to the next. So a second search follows the order of the commands: a script
must set each variable before it computes with it, in a command that surely runs. Otherwise the value may be a text that
an earlier command has read. Numbers that the shell itself keeps (`RANDOM`, `SECONDS`) count as set.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from aver.gate.effects.paths import has_glob
from aver.gate.shell.parser.syntax import (
    AndOr,
    Branches,
    CommandNode,
    FunctionDefinition,
    Group,
    Loop,
    Pipeline,
    RawWord,
    Redirect,
    Script,
    SimpleCommand,
    TestCommand,
    WordPart,
)
from aver.gate.shell.reliable_names import iterate_nodes
from aver.lazy_pattern import lazy_pattern

_MAY_COMPUTE = lazy_pattern(
    r"\(\(|\[\[|\$\{[^}]*[\[:]|\blet\b|\w\[[^\]]*\]\+?=|\s-[A-Za-z]*[iv]|OPTIND|RANDOM|SECONDS|LINENO|BASHPID"
)
"""Found in every script that computes. Most scripts do not, and are not searched."""
_NAME = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_]*")
_EXPANSION = lazy_pattern(r"\$\{[A-Za-z_!#][A-Za-z0-9_]*(\[[^\]]*\]|:(?![-=?+])[^}]*)")
_SUBSCRIPT = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_]*\[([^\]]*)\]\+?=")
_CODE_MARK = lazy_pattern(r"[\[`]|\$[({]")
"""Found in every literal value that has a part of a subscript with a command in it."""
_COMPARISONS = frozenset(("-eq", "-ne", "-lt", "-le", "-gt", "-ge"))
_SETTERS = frozenset(("read", "mapfile", "readarray", "getopts", "select", "vared"))
_DECLARERS = frozenset(("declare", "typeset", "local", "readonly", "export", "integer"))
_NUMBER_PRINTERS = frozenset(("nproc", "tput", "getconf", "pgrep"))
"""Programs that print numbers, whatever they are given."""
_FIRST_FIELD = frozenset(
    ("awk {print $1}", "cut -d  -f1", "cut -f1", "cut -f 1", "tr -d  ", "tr -d [:space:]", "xargs")
)
"""Commands that leave the first number of a line, with their words joined by blanks."""


def find_risky_arithmetic(script: Script, text: str) -> str | None:
    """Return a word that the script computes with, and that may hold a command; None if there is none."""
    if not _MAY_COMPUTE.search(text):
        return None
    tainted = _find_tainted(script)
    found = next((f"${name}" for name in _list_computed(script, text) if name in tainted), None)
    found = found or next((word.source for word in _list_computed_outputs(script)), None)
    found = found or next((f"${name}" for name in _list_replaced_numbers(script)), None)
    return found or next((f"${name}" for name in _list_unset(script, set(_SHELL_NUMBERS))), None)


# --- which variables may hold a text of somebody else


def _find_tainted(script: Script) -> frozenset[str]:
    tainted = {"@", "*", *map(str, range(1, 10))}
    copies: list[tuple[str, RawWord]] = []
    for node in iterate_nodes(script):
        if isinstance(node, Loop) and node.variable:
            copies += [(node.variable, word) for word in node.words or ()]
        elif isinstance(node, SimpleCommand):
            copies += [(given.name, given.value) for given in node.assignments]
            words = [_read_text(word) for word in node.words]
            names = [word.partition("=")[0] for word in words if _NAME.match(word)]
            # `${name:=$(…)}` sets a variable, too.
            parts = (part for word in node.words for part in word.parts if part.text and part.scripts)
            tainted.update(part.text for part in parts if not all(map(_prints_number, part.scripts)))
            if not _SETTERS.isdisjoint(words):
                tainted.update(names, ("REPLY", "MAPFILE", "OPTARG"))
            elif words[:1] and words[0] in _DECLARERS:
                copies += [(_read_text(word).partition("=")[0], word) for word in node.words[1:]]
            elif "printf" in words and any(word.startswith("-v") for word in words):
                tainted.update(names)
    # A variable that the script does not set may come from an earlier command, with any text.
    own = {*_SHELL_NUMBERS, *tainted, *(name for name, _ in copies)}
    tainted.update(
        part.text
        for _, value in copies
        for part in value.parts
        if part.kind in ("variable", "unknown") and _NAME.fullmatch(part.text) and part.text not in own
    )
    # A variable that gets the value of another one: go round until nothing is added.
    before = -1
    while len(tainted) != before:
        before = len(tainted)
        tainted.update(name for name, value in copies if any(_is_tainted(part, tainted) for part in value.parts))
    return frozenset(tainted)


def _is_tainted(part: WordPart, tainted: set[str]) -> bool:
    if part.kind == "command":
        return part.script is not None and not _prints_number(part.script)
    if part.kind in ("text", "bare"):  # A pattern stands for names of files, which may be any text.
        return _CODE_MARK.search(part.text) is not None or (part.kind == "bare" and has_glob(part.text))
    if part.kind in ("variable", "unknown"):
        return part.text in tainted or any(not _prints_number(script) for script in part.scripts)
    return False


def _prints_number(script: Script) -> bool:
    """Whether a script prints numbers, and nothing that somebody wrote. A name of a file is such a text, too."""
    node = script.items[0] if len(script.items) == 1 else None
    commands: list[SimpleCommand] = []
    for stage in node.stages if isinstance(node, Pipeline) else (node,):
        if not isinstance(stage, SimpleCommand) or not stage.words:
            return False
        commands.append(stage)
    is_cut = False
    while len(commands) > 1 and " ".join(map(_read_text, commands[-1].words)) in _FIRST_FIELD:
        is_cut |= _read_text(commands.pop().words[0]) in ("awk", "cut")
    program, *arguments = map(_read_text, commands[-1].words)
    is_literal = all(
        part.kind == "text" or (part.kind == "bare" and not has_glob(part.text))
        for word in commands[-1].words
        for part in word.parts
    )
    match program:
        case "wc":  # It prints the names of its files after the numbers.
            return is_cut or (is_literal and not any("[" in word for word in arguments))
        case "grep" | "egrep" | "fgrep":  # With several files it prints their names.
            counts = any(re.fullmatch(r"-[a-zA-Z]*c[a-zA-Z]*|--count", word) for word in arguments)
            return counts and is_literal and not any(re.match(r"-[a-zA-Z]*[rRHlo]", word) for word in arguments)
        case "date":
            return all(re.fullmatch(r"\+(?:%[sYmdHMSNjuy])+|-u", word) for word in arguments) and is_literal
        case "stat":
            return is_literal and any(re.fullmatch(r"(?:%[sYXZaugz])+", word) for word in arguments)
        case "seq":
            return not any(word.startswith(("-f", "-s", "--f", "--s")) for word in arguments)
        case "expr":
            return is_literal and not any("[" in word for word in arguments)
        case "id":
            return arguments in (["-u"], ["-g"])
        case "git":
            return arguments[:1] == ["rev-list"] and "--count" in arguments
    return program in _NUMBER_PRINTERS


def _read_text(word: RawWord) -> str:
    return "".join(part.text for part in word.parts if part.kind in ("text", "bare"))


# --- which variables a script computes with


def _list_computed(script: Script, text: str) -> Iterator[str]:
    for inner in _find_arithmetic(text):
        yield from _list_names(inner)
    for found in (*_EXPANSION.finditer(text), *_SUBSCRIPT.finditer(text)):
        yield from _list_names(found[1])
    is_integer = False
    for node in iterate_nodes(script):
        if isinstance(node, TestCommand):
            yield from _list_compared(node.words)
        elif isinstance(node, SimpleCommand) and node.words:
            words = [_read_text(word) for word in node.words]
            name = words[0]
            if name == "let":
                for word in node.words[1:]:
                    yield from _list_names(word.source)
            elif name in ("test", "["):
                yield from _list_tested_names(node.words)
            elif name == "getopts":
                yield "OPTIND"
            is_integer |= name in _DECLARERS and any(re.match(r"-[A-Za-z]*i", word) for word in words[1:])
    if is_integer:
        # Every later assignment to such a variable computes: all names count.
        yield from _list_names(text)


def _list_computed_outputs(script: Script) -> Iterator[RawWord]:
    """Yield words with the output of a program inside of arithmetic: `$(( $(cat f) ))`."""
    for node in iterate_nodes(script):
        words = node.words if isinstance(node, SimpleCommand | TestCommand) else ()
        if isinstance(node, SimpleCommand):
            words = (*words, *(given.value for given in node.assignments))
        for index, word in enumerate(words):
            # A part without a name and with scripts is arithmetic.
            inner = [
                script for part in word.parts if part.kind == "unknown" and not part.text for script in part.scripts
            ]
            beside = {other.source for other in words[max(index - 1, 0) : index + 2]}
            if isinstance(node, TestCommand) and beside & _COMPARISONS:
                inner += [part.script for part in word.parts if part.script is not None]
            if not all(map(_prints_number, inner)):
                yield word


def _list_names(text: str) -> Iterator[str]:
    yield from _NAME.findall(text)
    yield from re.findall(r"\$\{?([0-9@*])", text)


def _find_arithmetic(text: str) -> Iterator[str]:
    """Yield what stands in `((…))`, counting brackets."""
    at = text.find("((")
    while at != -1:
        depth, end = 0, at
        while end < len(text):
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
            if depth == 0:
                break
        yield text[at:end]
        at = text.find("((", end)


def _list_compared(words: tuple[RawWord, ...]) -> Iterator[str]:
    """Yield the names on both sides of a comparison of numbers in `[[ … ]]`, and after `-v`."""
    for index, word in enumerate(words):
        if word.source in _COMPARISONS:
            for side in words[max(index - 1, 0) : index + 2]:
                yield from _list_names(side.source)
    yield from _list_tested_names(words)


def _list_tested_names(words: tuple[RawWord, ...]) -> Iterator[str]:
    for index, word in enumerate(words[:-1]):
        if word.source == "-v":
            yield from _list_names(words[index + 1].source)


# --- variables that an earlier command may have set

_SHELL_NUMBERS = frozenset(
    (
        *("RANDOM", "SRANDOM", "SECONDS", "EPOCHSECONDS", "LINENO", "BASHPID", "BASH_SUBSHELL"),
        *("UID", "EUID", "PPID"),
    )
)
"""Variables for which a shell always has a number, unless a script replaces them."""

_ARITHMETIC_NAME = lazy_pattern(r"(?<![\w#])([A-Za-z_]\w*)\s*(=(?!=))?", re.ASCII)
"""A name in arithmetic, and the sign that sets it. `16#ff` and `0xff` are numbers."""


def _list_replaced_numbers(script: Script) -> Iterator[str]:
    """Yield the numbers of the shell itself that a script replaces. A later command would compute with them."""
    for node in iterate_nodes(script):
        if isinstance(node, Loop) and node.variable in _SHELL_NUMBERS:
            yield node.variable
        elif isinstance(node, SimpleCommand):
            for given in node.assignments:
                if given.name in _SHELL_NUMBERS and not _read_text(given.value).isdecimal():
                    yield given.name
            words = [_read_text(word) for word in node.words]
            if words[:1] and (
                words[0] in _DECLARERS | _SETTERS or words[0] in ("unset", "printf", "command", "builtin")
            ):
                yield from _SHELL_NUMBERS & {word.partition("=")[0].removeprefix("-v") for word in words[1:]}


def _list_unset(script: Script, known: set[str]) -> Iterator[str]:
    """Yield names that a script computes with before it surely sets them. Adds the names that it sets to `known`."""
    for index, node in enumerate(script.items):
        yield from _list_unset_of(node, set(known) if index in script.background else known)


def _list_unset_of(node: CommandNode, known: set[str]) -> Iterator[str]:
    redirects: tuple[Redirect, ...] = getattr(node, "redirects", ())
    words = [raw for redirect in redirects for raw in (redirect.target, redirect.body) if raw is not None]
    match node:
        case SimpleCommand():
            words += (*node.words, *(given.value for given in node.assignments))
            yield from _list_unset_in(words, known)
            if node.words and _read_text(node.words[0]) == "let":
                for word in node.words[1:]:
                    yield from _list_unset_names(word.source, known)
            for given in node.assignments:
                if f"{given.name}[" not in known:
                    yield from _list_unset_names(given.computed, known)
            known |= _list_set_names(node)
        case TestCommand():
            yield from _list_unset_in([*node.words, *words], known)
            yield from (name for name in _list_compared_names(node) if name not in known)
        case Pipeline():
            for stage in node.stages:
                yield from _list_unset_of(stage, set(known))
        case AndOr():
            yield from _list_unset_of(node.first, known)
            chain = set(known)
            for operator, item in node.rest:
                # After `||` it is not known which of the commands before have run.
                chain = chain if operator == "&&" else set(known)
                yield from _list_unset_of(item, chain)
        case Group():
            yield from _list_unset(node.body, known if node.kind == "braces" else set(known))
            yield from _list_unset_in(words, known)
        case Branches():
            yield from _list_unset_in([*node.words, *words], known)
            ends: list[set[str]] = []
            for index, inner in enumerate(node.conditions):  # Those after the first may not run.
                yield from _list_unset(inner, set(known) if index else known)
            for inner in node.bodies:
                ends.append(set(known))
                yield from _list_unset(inner, ends[-1])
            if len(node.bodies) > len(node.conditions) and node.conditions:  # There is an `else`: one body runs.
                known |= set.intersection(*ends)
        case Loop():
            yield from _list_unset_in([*(node.words or ()), *words], known)
            yield from _list_unset_names(node.computed, known)
            if node.condition is not None:
                yield from _list_unset(node.condition, known)
            yield from _list_unset(node.body, known | {node.variable})
        case FunctionDefinition():
            yield from _list_unset_of(node.body, set(known))


def _list_unset_in(words: list[RawWord], known: set[str]) -> Iterator[str]:
    for word in words:
        for part in word.parts:
            for script in (*((part.script,) if part.script is not None else ()), *part.scripts):
                yield from _list_unset(script, set(known))
            # The subscript of an associative array is a text.
            if f"{part.text}[" not in known:
                yield from _list_unset_names(part.computed, known)


def _list_unset_names(computed: str, known: set[str]) -> Iterator[str]:
    """Yield the names in arithmetic that are not known. The names that it sets are known from then on."""
    # The scripts in a subscript were looked at as parts of the word.
    for name, sets in _ARITHMETIC_NAME.findall(re.sub(r"\$\([^()]*\)", "0", computed)) if computed else ():
        if sets:
            known.add(name)
        elif name not in known:
            yield name


def _list_compared_names(node: TestCommand) -> Iterator[str]:
    """Yield the names on both sides of a comparison of numbers in `[[ … ]]`."""
    for index, word in enumerate(node.words):
        if word.source in _COMPARISONS:
            for side in node.words[max(index - 1, 0) : index + 2]:
                yield from (part.text for part in side.parts if part.kind == "variable")
                if _NAME.fullmatch(side.source):
                    yield side.source


def _list_set_names(node: SimpleCommand) -> set[str]:
    """Return the variables that a command sets for the commands after it, associative arrays as `name[`."""
    words = [_read_text(word) for word in node.words]
    if not words:
        return {given.name for given in node.assignments if given.is_whole}
    if words[0] in _DECLARERS:
        names = {word.partition("=")[0] for word in words[1:]}
        is_associative = any(re.match(r"-[A-Za-z]*A", word) for word in words[1:])
        return {f"{name}[" for name in names} if is_associative else names - set(words)
    return {word for word in words[1:] if _NAME.fullmatch(word)} if words[0] in _SETTERS else set()
