"""Expansion of words: from a word as written to the words that a program gets, without running anything.

Braces multiply words. Aver knows three kinds of variables: HOME, PWD, and reliable variables of the script itself
(`reliable_names`). Every other expansion is unknown. Aver never guesses: an unknown word has no values, only the prefix
that it surely has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import product
from posixpath import commonprefix

from aver.gate.effects.paths import has_glob
from aver.gate.shell.model import CHOICES_MAX, ShellState, Word
from aver.gate.shell.parser.syntax import (
    Pipeline,
    RawWord,
    Script,
    SimpleCommand,
    WordPart,
)
from aver.lazy_pattern import lazy_pattern

_FIRST_MARKER = 0xE000
"""While braces are expanded, a character of Unicode's private area stands for each part that braces do not touch:
quoted text and expansions. The part with index 0 is U+E000, and so on."""
_SEQUENCE = lazy_pattern(r"(-?[0-9]{1,6}|[a-zA-Z])\.\.(-?[0-9]{1,6}|[a-zA-Z])(?:\.\.(-?[0-9]{1,6}))?")
_SPLIT_OR_GLOB = lazy_pattern(r"[\s*?\[]")
PROCESS_PIPE_PATH = "/dev/fd/63"
"""The word that `<(…)` becomes: the name of an open pipe."""


def expand_word(raw: RawWord, state: ShellState, home: str) -> list[Word]:
    """Return the words that a word becomes: usually one, several with braces, none if it expands to nothing."""
    parts = raw.parts
    # The common case first: a literal word.
    if len(parts) == 1 and parts[0].kind == "text":
        text = parts[0].text
        return [Word(raw.source, (text,), text)]
    has_braces = any(part.kind == "bare" and "{" in part.text for part in parts)
    rows = _expand_part_braces(parts) if has_braces else [parts]
    if rows is None:  # too many choices, or braces that shells read differently
        return [Word(raw.source)]
    words = [_join_parts(raw.source, row, state, home) for row in rows]
    if any(part.quoted for part in parts):
        return words
    # The shell drops a word that is empty after expansion and has no quotes.
    return [word for word in words if word.values != ("",)]


def expand_to_text(raw: RawWord, state: ShellState, home: str) -> str | None:
    """Return the text of a here-document or here-string, or None if it is not known."""
    return _join_parts(raw.source, raw.parts, state, home).value


def list_word_scripts(raw: RawWord) -> Iterator[tuple[Script, bool]]:
    """Yield the scripts that run while a word is expanded, and whether each is a process substitution."""
    for part in raw.parts:
        if part.script is not None:
            yield part.script, part.kind == "process"
        for script in part.scripts:
            yield script, False


def _join_parts(source: str, parts: tuple[WordPart, ...], state: ShellState, home: str) -> Word:
    # `values` are all texts that the parts so far may have together.
    values: list[str] = [""]
    is_pattern = from_input = False
    for index, part in enumerate(parts):
        if part.kind in ("text", "bare"):
            addition: tuple[str, ...] = (part.text,)
            is_pattern |= part.kind == "bare" and has_glob(part.text)
        else:
            known = _expansion_value(part, state, home)
            is_pattern |= known.is_pattern
            from_input |= known.from_input
            addition = known.values
        if not addition or len(values) * len(addition) > CHOICES_MAX:
            if index == 0 and part.kind not in ("text", "bare") and known.listing:
                return _join_listing(source, known, parts[1:], state, home)
            # Unknown from here on. The parts so far still give the prefix.
            numbered = _number_parts(parts, state, home)
            return Word(source, prefix=commonprefix(values), is_pattern=is_pattern, numbered=numbered)
        values = [before + after for before, after in product(values, addition)] if addition != ("",) else values
    return Word(source, tuple(values), commonprefix(values), is_pattern, from_input)


def _number_parts(parts: tuple[WordPart, ...], state: ShellState, home: str) -> str:
    """Return the text of parts, with a 0 for the result of arithmetic; empty if another part is not known."""
    texts: list[str] = []
    for part in parts:
        if part.kind == "unknown" and part.computed and not part.text:
            texts.append("0")
        elif part.kind in ("text", "bare"):
            texts.append(part.text)
        elif len(values := _expansion_value(part, state, home).values) == 1:
            texts.append(values[0])
        else:
            return ""
    return "".join(texts)


def _join_listing(source: str, first: Word, parts: tuple[WordPart, ...], state: ShellState, home: str) -> Word:
    """Return the word that begins with the name of a file, and goes on with further parts: `$(which go)/../x`.

    A program that finds nothing prints nothing. So the further parts alone are a name, too.
    """
    if not parts:
        return Word(source, prefix=first.prefix, listing=first.listing)
    rest = _join_parts(source, parts, state, home)
    # Only a name that surely begins with a slash can be followed: with others the shell may split at blanks.
    if first.prefix != "/" or not rest.value or not rest.value.startswith("/"):
        return Word(source)
    found = tuple(path + rest.value for path in first.listing)
    # Right below `/` no system keeps files of the kinds that have an ending.
    is_at_root = re.fullmatch(r"/\*\.\w+", rest.value) is not None
    return Word(source, prefix="/", listing=found if is_at_root else (*found, rest.value))


_UNKNOWN = Word("")
_PIPE = Word("", (PROCESS_PIPE_PATH,), PROCESS_PIPE_PATH, from_input=True)


def _expansion_value(part: WordPart, state: ShellState, home: str) -> Word:
    """Return what an expansion becomes, as a word without text."""
    if part.kind == "process":
        return _PIPE
    if part.kind == "command":
        # `$(pwd)` is the only command whose output Aver predicts here.
        match part.script:
            case Script(items=(SimpleCommand(words=(RawWord(source="pwd"),), assignments=(), redirects=()),)):
                return _current_directory(state)
        if part.script is None:
            return _UNKNOWN
        if paths := _predict_paths(part.script, state, home):
            return Word("", prefix="/", listing=paths)
        listing = _predict_listing(part.script, state, home)
        return Word("", listing=listing) if listing else _UNKNOWN
    if part.kind != "variable":
        return _UNKNOWN
    known = state.variables.get(part.text)
    # The script does not set it, or not reliably. Only HOME and PWD are known all the same.
    if known is None:
        if part.text == "HOME":
            return Word("", (home or "~",))
        return _current_directory(state) if part.text == "PWD" else _UNKNOWN
    # Without quotes the shell splits the value at blanks and expands patterns in it. Aver does not follow that.
    if not part.quoted and not known.is_pattern and any(_SPLIT_OR_GLOB.search(value) for value in known.values):
        return _UNKNOWN
    return known


def _predict_listing(script: Script, state: ShellState, home: str) -> tuple[str, ...]:
    """Return patterns for the files that a script lists, such as `git ls-files | head -1`; none for any other script.

    Each pattern is a root and a name. The file may lie at any depth between them.
    """
    from aver.gate.shell.invocation import StandardInput, predict_output  # Not above: it imports `model`, as this does.

    node = script.items[0] if len(script.items) == 1 and not script.background else None
    stages = node.stages if isinstance(node, Pipeline) else (node,)
    output: StandardInput | None = None
    for stage in stages:
        if not isinstance(stage, SimpleCommand) or stage.assignments or not _only_hides_errors(stage):
            return ()
        words = [word for raw in stage.words for word in expand_word(raw, state, home)]
        if not all(word.is_known for word in words):
            return ()
        output = predict_output(words, output)
    if output is None or output.kind != "listing":
        return ()
    found = [
        f"{value.rstrip('/') or value}/{name}"
        for root in output.roots
        for value in root.values
        for name in output.names
    ]
    return tuple(found) if len(found) <= CHOICES_MAX and all(root.is_known for root in output.roots) else ()


_PROGRAM_OR_MODULE = r"[A-Za-z0-9_][\w./@+-]*"
_PATH_PRINTERS: Mapping[str, tuple[str, ...]] = {
    r"(?:which|command -v|type -[pP]) ([A-Za-z0-9_][\w.+-]*)": ("/usr/bin/{}",),
    r"go env (?:GOMODCACHE|GOROOT)": ("~/go/pkg/mod",),
    rf"go list -m -f \{{\{{\.Dir\}}\}} ({_PROGRAM_OR_MODULE})": ("~/go/pkg/mod/{}",),
    r"brew --prefix(?: ([a-z0-9][\w.@+-]*))?": ("/opt/homebrew/opt",),
    r"npm root(?: -g| --global)": ("/usr/lib/node_modules",),
}
"""Commands that print one absolute path of an installed program or library, or nothing, with where it usually lies. The
name of an operand follows the path. All of these places are for everybody. What decides about them is guarded, or is
asked about: PATH, settings of Go and npm, `go.mod`. A module of Python is none of them: it may say any `__file__`."""


_SHELL_NAMES = frozenset(
    (
        *("alias", "bg", "bind", "break", "builtin", "caller", "case", "cd", "command", "compgen", "complete"),
        *("continue", "declare", "dirs", "disown", "do", "done", "echo", "elif", "else", "enable", "esac"),
        *("eval", "exec", "exit", "export", "false", "fc", "fg", "fi", "for", "function", "getopts", "hash"),
        *("help", "history", "if", "in", "jobs", "kill", "let", "local", "logout", "mapfile", "popd", "printf"),
        *("pushd", "pwd", "read", "readarray", "readonly", "return", "select", "set", "shift", "shopt"),
        *("source", "suspend", "test", "then", "time", "times", "trap", "true", "type", "typeset", "ulimit"),
        *("umask", "unalias", "unset", "until", "wait", "which", "while"),
    )
)
"""Names that the shell itself knows. For these `which` and `command -v` print a name or a sentence, and no path."""


def _predict_paths(script: Script, state: ShellState, home: str) -> tuple[str, ...]:
    """Return the usual place of what a script prints the path of, such as `which go`; none for any other script."""
    match script:
        case Script(items=(SimpleCommand(assignments=()) as command,), background=background) if not background:
            pass
        case _:
            return ()
    if not _only_hides_errors(command):
        return ()
    words = [word for raw in command.words for word in expand_word(raw, state, home)]
    text = " ".join(word.value or "\0" for word in words)
    for pattern, places in _PATH_PRINTERS.items():
        if (found := re.fullmatch(pattern, text)) and not (found.re.groups and found[1] in _SHELL_NAMES):
            return tuple(place.format(found[1] if found.re.groups else "") for place in places)
    return ()


def _only_hides_errors(command: SimpleCommand) -> bool:
    return all(
        redirect.operator == ">" and redirect.descriptor == "2" and redirect.target.source == "/dev/null"
        for redirect in command.redirects
    )


def _current_directory(state: ShellState) -> Word:
    return Word("", tuple(cwd for cwd in state.cwds if cwd is not None)) if None not in state.cwds else _UNKNOWN


# --- braces


def _expand_part_braces(parts: tuple[WordPart, ...]) -> list[tuple[WordPart, ...]] | None:
    """Return the rows of parts that a row with braces becomes; None if Aver cannot tell.

    1. Put a marker character in the place of every part that braces do not touch.
    2. Expand the braces of the marked text.
    3. Put the parts back in the place of their markers.
    """
    if len(parts) > CHOICES_MAX or sum(part.text.count("{") for part in parts) > CHOICES_MAX:
        return None
    # 1. A text that has private characters of its own would be taken for markers: refuse it.
    open_to_braces = [part.kind in ("bare", "text") and not part.quoted for part in parts]
    marked = "".join(
        part.text if is_open else chr(_FIRST_MARKER + index)
        for index, (part, is_open) in enumerate(zip(parts, open_to_braces, strict=True))
    )
    if sum("\ue000" <= char <= "\uf8ff" for char in marked) != open_to_braces.count(False):
        return None
    # 2. A dollar sign may join with what a brace puts after it: `{a,b$}c` is `ac b$c`.
    expanded = expand_braces(marked) if "$" not in marked else None
    if expanded is None:
        return None
    # 3.
    rows: list[tuple[WordPart, ...]] = []
    for text in expanded:
        row: list[WordPart] = []
        for piece in re.split("([\ue000-\uf8ff])", text):
            if len(piece) == 1 and "\ue000" <= piece <= "\uf8ff":
                row.append(parts[ord(piece) - _FIRST_MARKER])
            elif piece:
                # A letter after a variable extends its name: `$x{a,b}` becomes `$xa $xb`.
                if row and row[-1].kind == "variable" and re.match(r"[\w\[]", piece):
                    return None
                row.append(WordPart("bare", piece))
        rows.append(tuple(row) or (WordPart("text", ""),))
    return rows


def expand_braces(text: str) -> list[str] | None:
    """Return every text that the braces in a text stand for, from left to right; None if they are too many.

    Braces without a choice, as in `{a}`, are ordinary characters.
    """
    found, waiting = list[str](), [text]
    steps = 0
    while waiting:
        steps += 1
        current = waiting.pop()
        group = _find_first_group(current)
        if group is None:
            found.append(current)
        else:
            start, end, choices = group
            if choices is None:
                return None
            waiting += [current[:start] + choice + current[end:] for choice in reversed(choices)]
        # Nested groups can take many steps for few results, so both are limited.
        if len(found) + len(waiting) > CHOICES_MAX or steps > 4 * CHOICES_MAX:
            return None
    return found


def _find_first_group(text: str) -> tuple[int, int, list[str] | None] | None:
    """Return the start, the end and the choices of the first group of braces; None if there is no group.

    The choices are None if shells may read the group differently. A closing brace counts only after a comma or `..`.
    """
    for start, char in enumerate(text):
        if char != "{":
            continue
        # `commas` holds the places after which a choice begins: the opening brace and each comma of this level.
        level, commas, choosing = 0, [start], False
        for at in range(start + 1, len(text)):
            if text[at] == "}" and level == 0 and choosing:
                choices = _list_choices(text, commas, at)
                if choices != []:
                    return start, at + 1, choices
                break  # no sequence after all, such as `{a..}`: look for the next opening brace
            if text[at] == "," and level == 0:
                commas.append(at)
                choosing = True
            elif level == 0 and text.startswith("..", at) and not text.startswith("}", at + 2):
                choosing = True
            elif text[at] == "{":
                level += 1
            elif text[at] == "}" and level:
                level -= 1
    return None


def _list_choices(text: str, commas: list[int], end: int) -> list[str] | None:
    inside = text[commas[0] + 1 : end]
    # `{}` and `{},a}` are read differently by different versions.
    if len(commas) > 1:
        if "{}" in text or inside.startswith("}"):
            return None
        return [text[a + 1 : b] for a, b in zip(commas, [*commas[1:], end], strict=True)]
    if re.search("[{},]", inside):
        return None
    sequence = _SEQUENCE.fullmatch(inside)
    if sequence is None or sequence[1].isalpha() != sequence[2].isalpha():
        return []
    is_letters = sequence[1].isalpha()
    first, last = (ord(sequence[i]) if is_letters else int(sequence[i]) for i in (1, 2))
    step = abs(int(sequence[3] or 1)) or 1
    numbers = range(first, last + 1, step) if first <= last else range(first, last - 1, -step)
    if is_letters:
        return [chr(number) for number in numbers]
    # `{01..10}` pads with zeros.
    width = max(len(sequence[1]), len(sequence[2])) if any(sequence[i].lstrip("-")[:1] == "0" for i in (1, 2)) else 0
    return [str(number).zfill(width) for number in numbers[: CHOICES_MAX + 1]]
