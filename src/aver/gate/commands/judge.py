"""Which program a call runs, and what is known of it.

A name is looked up as bash would find it: functions of the script, then programs. A path is a known program only if it
lies where programs lie; a file of that name elsewhere is a file of which nothing is known.
"""

from __future__ import annotations

import re

from aver.gate.commands.apply import apply
from aver.gate.commands.call import Call
from aver.gate.commands.handlers import HANDLERS, handler_of
from aver.gate.commands.model import Simple, Word
from aver.gate.commands.options import spec_from
from aver.gate.commands.reader import RESERVED
from aver.gate.commands.state import Outcome
from aver.gate.commands.subcommands import asks_about_itself, subcommand
from aver.gate.commands.tables import ROWS, WITH_SUBCOMMANDS
from aver.gate.places import locate

__all__ = ["is_known", "judge"]

_PROGRAM_DIRECTORIES = frozenset(
    ("/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/opt/homebrew/bin", "/snap/bin")
)
_WORKSPACE_TOOLS = re.compile(r"(?:^|/)(?:\.?venv[\w.-]*|env|node_modules/\.bin|vendor/bin)(?:/bin)?$")
_WRAPPER_SCRIPTS = frozenset(("gradlew", "mvnw"))
"""Scripts that every build of a kind has a copy of."""
_VERSIONED = re.compile(r"(python|pip|pypy|perl|ruby|php|lua|node|gcc|g\+\+|clang|clang\+\+|tclsh)-?[0-9][0-9.]*")
_SPELLING = re.compile(r"[A-Za-z0-9_.+@:%,\[-]+")


def judge(call: Call) -> Outcome:
    """Find out what a call does. Its `program` is not known yet."""
    stays: Outcome = (call.state, call.state)
    program = _program_of(call)
    call.program = program or ""
    simple = Simple(program, call.words, call.via, call.inside, call.assignments, call.redirects)
    if not call.report.simple(simple) or program is None:
        return stays
    if program in call.walk.functions:
        return call.walk.call_function(call)
    handler = handler_of(program)
    if handler is not None:
        return handler(call) or stays
    if asks_about_itself(call):
        return stays
    if program in WITH_SUBCOMMANDS:
        subcommand(call)
    elif program in ROWS:
        apply(call, spec_from(ROWS[program]))
    else:
        _unknown(call)
    return stays


def _program_of(call: Call) -> str | None:
    """The name under which a program is looked up; None where the call has been judged by its name alone."""
    word = call.name
    name = word.value
    if name is None or (word.is_pattern and name != "["):
        call.does("execute")
        call.unclear("dynamic-program", "which program runs depends on what cannot be seen")
        return None
    if "/" in name:
        return _program_at(call, word, name)
    return _known_spelling(call, name)


def _program_at(call: Call, word: Word, path: str) -> str | None:
    base = path.rpartition("/")[2]
    for cwd in call.state.cwds:
        place = locate(path, cwd, call.ground)
        directory = place.path.rpartition("/")[0]
        if directory in _PROGRAM_DIRECTORIES:
            continue
        if place.where == "workspace" and (_WORKSPACE_TOOLS.search(directory) or base in _WRAPPER_SCRIPTS):
            call.does("execute", target=place.path)
            continue
        call.executes(word)
        return None
    return _known_spelling(call, base)


def _known_spelling(call: Call, name: str) -> str | None:
    """A program's name without what does not distinguish it."""
    if name in call.walk.functions:
        return name
    if name in RESERVED or not _SPELLING.fullmatch(name):
        call.does("execute")
        why = "is a word of the shell itself" if name in RESERVED else "has characters that no program's name has"
        call.unclear("characters", f"{name[:40]!r} {why}")
        return None
    if is_known(name):
        return name
    plain = name.lower().removesuffix(".exe")
    if versioned := _VERSIONED.fullmatch(plain):
        plain = versioned[1]
    if plain != name and is_known(plain):
        if not name.startswith(plain):
            call.unclear("unknown-program", f"{name} is {plain} where upper case does not count")
        return plain
    return name


def is_known(program: str) -> bool:
    return program in HANDLERS or program in ROWS or program in WITH_SUBCOMMANDS


def _unknown(call: Call) -> None:
    call.does("execute", target=call.program)
    call.unclear("unknown-program", f"{call.program} is not in the tables")
