"""Programs whose first operand says what they do: `git`, `cargo`, `npm`, `docker`."""

from __future__ import annotations

from dataclasses import replace

from aver.gate.commands.apply import apply, apply_given
from aver.gate.commands.call import Call
from aver.gate.commands.model import Word
from aver.gate.commands.options import read_arguments, spec_from
from aver.gate.commands.tables import ROWS

__all__ = ["asks_about_itself", "subcommand"]

_ASKS_ABOUT_ITSELF = frozenset(("--version", "--help", "-V", "version", "help"))

NAME_WORDS_MAX = 3
"""Words of a subcommand's name: `docker compose up`."""


def asks_about_itself(call: Call) -> bool:
    return len(call.words) == 1 and call.words[0].value in _ASKS_ABOUT_ITSELF


def subcommand(call: Call) -> None:
    """Judge by the line of the longest name that fits; what the program's own line says counts if none does."""
    spec = spec_from(f"posix {ROWS.get(call.program, '')}")
    given = read_arguments(spec, call.words)
    for words in (call.words, tuple(given.operands)):
        found = _longest(call.program, words)
        if found:
            name, rest = found
            if given.options:
                apply_given(call, replace(spec, always=(), here="", nothing=""), given.without_operands())
            inner = replace(call, program=name, words=rest, name=Word(name))
            if not asks_about_itself(inner):
                apply(inner, spec_from(ROWS[name]))
            return
    apply_given(call, spec, given.without_operands())
    if spec.always:
        return
    shown = given.operands[:1]
    if shown and not shown[0].is_known:
        call.does("execute", *shown)
        call.unclear("dynamic-program", f"what {call.program} is to do depends on what cannot be seen", *shown)
    elif shown or not asks_about_itself(call):
        call.does("execute", *shown, target=call.program)
        what = f"{call.program} {shown[0].shown}" if shown else f"{call.program} alone"
        call.unclear("unknown-program", f"{what} is not in the tables", *shown)


def _longest(program: str, words: tuple[Word, ...]) -> tuple[str, tuple[Word, ...]] | None:
    names: list[str] = [program]
    for word in words[:NAME_WORDS_MAX]:
        if word.value is None or word.is_pattern:
            break
        names.append(word.value)
    for count in range(len(names), 1, -1):
        name = " ".join(names[:count])
        if name in ROWS:
            return name, words[count - 1 :]
    return None
