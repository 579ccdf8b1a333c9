"""Which program a call runs, and what is known of it.

A name is looked up as bash would find it: functions of the script, then programs. A path is a known program only if it
lies where programs lie; a file of that name elsewhere is a file of which nothing is known.
"""

from __future__ import annotations

import re

from aver.gate.effects.paths import locate_path
from aver.gate.shell.invocation import Invocation
from aver.gate.shell.model import ResolvedCommand, Word
from aver.gate.shell.parser.grammar import RESERVED_WORDS
from aver.gate.shell.programs.apply import apply_spec, is_version_or_help, judge_subcommand
from aver.gate.shell.programs.handlers import HANDLERS, find_handler
from aver.gate.shell.programs.spec import parse_spec
from aver.gate.shell.programs.tables import ROWS, WITH_SUBCOMMANDS
from aver.gate.shell.state import StatesAfter

__all__ = ["is_known_program", "judge_invocation"]

_PROGRAM_DIRECTORIES = frozenset(
    ("/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/opt/homebrew/bin", "/snap/bin")
)
_WORKSPACE_TOOLS = re.compile(r"(?:^|/)(?:\.?venv[\w.-]*|env|node_modules/\.bin|vendor/bin)(?:/bin)?$")
_WRAPPER_SCRIPTS = frozenset(("gradlew", "mvnw"))
"""Scripts that every build of a kind has a copy of."""
_VERSIONED_NAME = re.compile(r"(python|pip|pypy|perl|ruby|php|lua|node|gcc|g\+\+|clang|clang\+\+|tclsh)-?[0-9][0-9.]*")
_PROGRAM_NAME = re.compile(r"[A-Za-z0-9_.+@:%,\[-]+")


def judge_invocation(call: Invocation) -> StatesAfter:
    """Find out what a call does. Its `program` is not known yet."""
    stays: StatesAfter = (call.state, call.state)
    program = _resolve_program(call)
    call.program = program or ""
    simple = ResolvedCommand(program, call.words, call.via, call.inside, call.assignments, call.redirects)
    if not call.report.simple(simple) or program is None:
        return stays
    if program in call.walk.functions:
        return call.walk.judge_function_call(call)
    handler = find_handler(program)
    if handler is not None:
        return handler(call) or stays
    if is_version_or_help(call):
        return stays
    if program in WITH_SUBCOMMANDS:
        judge_subcommand(call)
    elif program in ROWS:
        apply_spec(call, parse_spec(ROWS[program]))
    else:
        _report_unknown_program(call)
    return stays


def _resolve_program(call: Invocation) -> str | None:
    """The name under which a program is looked up; None where the call has been judged by its name alone."""
    word = call.name
    name = word.value
    if name is None or (word.is_pattern and name != "["):
        call.report_effect("execute")
        call.unclear("dynamic-program", "which program runs depends on what cannot be seen")
        return None
    if "/" in name:
        return _resolve_program_path(call, word, name)
    return _normalize_program_name(call, name)


def _resolve_program_path(call: Invocation, word: Word, path: str) -> str | None:
    base = path.rpartition("/")[2]
    for cwd in call.state.cwds:
        place = locate_path(path, cwd, call.ground)
        directory = place.path.rpartition("/")[0]
        if directory in _PROGRAM_DIRECTORIES:
            continue
        if place.where == "workspace" and (_WORKSPACE_TOOLS.search(directory) or base in _WRAPPER_SCRIPTS):
            call.report_effect("execute", target=place.path)
            continue
        call.report_executed_file(word)
        return None
    return _normalize_program_name(call, base)


def _normalize_program_name(call: Invocation, name: str) -> str | None:
    """A program's name without what does not distinguish it."""
    if name in call.walk.functions:
        return name
    if name in RESERVED_WORDS or not _PROGRAM_NAME.fullmatch(name):
        call.report_effect("execute")
        why = "is a word of the shell itself" if name in RESERVED_WORDS else "has characters that no program's name has"
        call.unclear("characters", f"{name[:40]!r} {why}")
        return None
    if is_known_program(name):
        return name
    plain = name.lower().removesuffix(".exe")
    if versioned := _VERSIONED_NAME.fullmatch(plain):
        plain = versioned[1]
    if plain != name and is_known_program(plain):
        if not name.startswith(plain):
            call.unclear("unknown-program", f"{name} is {plain} where upper case does not count")
        return plain
    return name


def is_known_program(program: str) -> bool:
    return program in HANDLERS or program in ROWS or program in WITH_SUBCOMMANDS


def _report_unknown_program(call: Invocation) -> None:
    call.report_effect("execute", target=call.program)
    call.unclear("unknown-program", f"{call.program} is not in the tables")
