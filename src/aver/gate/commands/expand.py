"""From words as they were written to words as a program gets them, as far as that can be told without running anything.

Braces multiply words. A variable stands for a value only where the script itself set it, once, to something known; the
home and the current directory are known; every other expansion is unknown. What is unknown is never guessed: such a
word has no values, only what it surely begins with.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise, product
from posixpath import commonprefix

from aver.gate.commands.model import CHOICES_MAX, Word
from aver.gate.commands.state import State
from aver.gate.commands.syntax import Part, RawWord, Script, SimpleCommand
from aver.gate.places import has_glob

__all__ = ["choices_in", "expand", "scripts_in", "text_of", "variables_in"]

_MARK = 0xE000
"""Private characters stand for the parts of a word that braces do not look into."""
_SEQUENCE = re.compile(r"(-?[0-9]{1,6}|[a-zA-Z])\.\.(-?[0-9]{1,6}|[a-zA-Z])(?:\.\.(-?[0-9]{1,6}))?")
_SPLITS = re.compile(r"[\s*?\[]")
OPENED = "/dev/fd/63"
"""What `<(…)` becomes: the name of an open pipe."""


def expand(raw: RawWord, state: State, home: str) -> list[Word]:
    """The words that a word becomes: one, unless there are braces in it."""
    parts = raw.parts
    if len(parts) == 1 and parts[0].kind == "text":
        text = parts[0].text
        return [Word(raw.source, (text,), text)]
    has_braces = any(part.kind == "bare" and "{" in part.text for part in parts)
    rows = _braces(parts) if has_braces else [parts]
    if rows is None:
        return [Word(raw.source)]
    words = [_joined(raw.source, row, state, home) for row in rows]
    if any(part.quoted for part in parts):
        return words
    # What becomes empty without having been quoted is no word at all.
    return [word for word in words if word.values != ("",)]


def text_of(raw: RawWord, state: State, home: str) -> str | None:
    """The one text that a word is, or None where that is not known: for here-documents and here-strings."""
    return _joined(raw.source, raw.parts, state, home).value


def scripts_in(raw: RawWord) -> Iterator[tuple[Script, bool]]:
    """The scripts that run while a word is worked out, and whether each is a process substitution."""
    for part in raw.parts:
        if part.script is not None:
            yield part.script, part.kind == "process"
        for script in part.scripts:
            yield script, False


def variables_in(raw: RawWord) -> Iterator[str]:
    return (part.text for part in raw.parts if part.kind in ("variable", "unknown") and part.text)


def _joined(source: str, parts: tuple[Part, ...], state: State, home: str) -> Word:
    values: list[str] = [""]
    is_pattern = from_input = False
    for part in parts:
        if part.kind in ("text", "bare"):
            addition: tuple[str, ...] = (part.text,)
            is_pattern |= part.kind == "bare" and has_glob(part.text)
        else:
            known = _value(part, state, home)
            is_pattern |= known.is_pattern
            from_input |= known.from_input
            addition = known.values
        if not addition or len(values) * len(addition) > CHOICES_MAX:
            return Word(source, prefix=commonprefix(values), is_pattern=is_pattern)
        values = [before + after for before, after in product(values, addition)] if addition != ("",) else values
    return Word(source, tuple(values), commonprefix(values), is_pattern, from_input)


_UNKNOWN = Word("")
_PIPE = Word("", (OPENED,), OPENED, from_input=True)


def _value(part: Part, state: State, home: str) -> Word:
    """What comes in the place of an expansion."""
    if part.kind == "process":
        return _PIPE
    if part.kind == "command":
        return _directory(state) if _is_pwd(part.script) else _UNKNOWN
    if part.kind != "variable":
        return _UNKNOWN
    known = state.variables.get(part.text)
    if known is None:
        if part.text == "HOME":
            return Word("", (home or "~",))
        return _directory(state) if part.text == "PWD" else _UNKNOWN
    if not part.quoted and not known.is_pattern and any(_SPLITS.search(value) for value in known.values):
        return _UNKNOWN
    return known


def _directory(state: State) -> Word:
    return Word("", tuple(cwd for cwd in state.cwds if cwd is not None)) if None not in state.cwds else _UNKNOWN


def _is_pwd(script: Script | None) -> bool:
    if script is None or len(script.items) != 1 or not isinstance(script.items[0], SimpleCommand):
        return False
    command = script.items[0]
    return not (command.assignments or command.redirects) and [word.source for word in command.words] == ["pwd"]


# --- braces


def _braces(parts: tuple[Part, ...]) -> list[tuple[Part, ...]] | None:
    """The rows of parts that a row with braces becomes; None where they are too many."""
    if len(parts) > CHOICES_MAX or sum(part.text.count("{") for part in parts) > CHOICES_MAX:
        return None
    marked = "".join(part.text if _is_open(part) else chr(_MARK + index) for index, part in enumerate(parts))
    if sum("\ue000" <= char <= "\uf8ff" for char in marked) != sum(not _is_open(part) for part in parts):
        return None
    expanded = choices_in(marked) if "$" not in marked else None  # `{a,b$}c` is `ac b$c`
    if expanded is None or any(_joins_a_name(text, parts) for text in expanded):
        return None
    return [_unmarked(text, parts) for text in expanded]


def _joins_a_name(text: str, parts: tuple[Part, ...]) -> bool:
    """Whether braces put a letter behind a variable's name: `$x{a,b}` is `$xa $xb`."""
    return any(
        "\ue000" <= before <= "\uf8ff" and parts[ord(before) - _MARK].kind == "variable" and re.match(r"[\w\[]", after)
        for before, after in pairwise(text)
    )


def _is_open(part: Part) -> bool:
    return part.kind in ("bare", "text") and not part.quoted


def choices_in(text: str) -> list[str] | None:
    """Every text that the braces in a text stand for, from left to right. Braces that choose nothing are letters."""
    found, waiting = list[str](), [text]
    steps = 0
    while waiting:
        steps += 1
        current = waiting.pop()
        group = _first_group(current)
        if group is None:
            found.append(current)
        else:
            start, end, choices = group
            if choices is None:
                return None
            waiting += [current[:start] + choice + current[end:] for choice in reversed(choices)]
        if len(found) + len(waiting) > CHOICES_MAX or steps > 4 * CHOICES_MAX:
            return None
    return found


def _first_group(text: str) -> tuple[int, int, list[str] | None] | None:
    """The first braces that choose: where they are, and between what (None: bash may see it otherwise).

    A closing brace counts only after a choice.
    """
    for start, char in enumerate(text):
        if char != "{":
            continue
        level, commas, choosing = 0, [start], False
        for at in range(start + 1, len(text)):
            if text[at] == "}" and level == 0 and choosing:
                choices = _choices(text, commas, at)
                if choices != []:
                    return start, at + 1, choices
                break
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


def _choices(text: str, commas: list[int], end: int) -> list[str] | None:
    inside = text[commas[0] + 1 : end]
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
    width = max(len(sequence[1]), len(sequence[2])) if any(sequence[i].lstrip("-")[:1] == "0" for i in (1, 2)) else 0
    return [str(number).zfill(width) for number in numbers[: CHOICES_MAX + 1]]


def _unmarked(text: str, parts: tuple[Part, ...]) -> tuple[Part, ...]:
    row: list[Part] = []
    for piece in re.split("([\ue000-\uf8ff])", text):
        if len(piece) == 1 and "\ue000" <= piece <= "\uf8ff":
            row.append(parts[ord(piece) - _MARK])
        elif piece:
            row.append(Part("bare", piece))
    return tuple(row) or (Part("text", ""),)
