"""Finds the program of an invocation, and the handler or the line that judges it.

The order is that of bash: first functions of the script, then programs. A path counts as a known program only if it
lies in a directory of programs, such as `/usr/bin`. Of a file elsewhere Aver knows nothing, whatever its name.
"""

from __future__ import annotations

import re

from aver.gate.effects.paths import locate_path
from aver.gate.shell.invocation import Invocation
from aver.gate.shell.model import ResolvedCommand, StatesAfter, Word
from aver.gate.shell.parser.grammar import RESERVED_WORDS
from aver.gate.shell.programs.apply import apply_spec, is_version_or_help, judge_subcommand
from aver.gate.shell.programs.handlers import HANDLERS, find_handler
from aver.gate.shell.programs.spec import parse_spec
from aver.gate.shell.programs.tables import ROWS, WITH_SUBCOMMANDS

_PROGRAM_DIRECTORIES = frozenset(
    ("/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/opt/homebrew/bin", "/snap/bin")
)
_WORKSPACE_TOOLS = re.compile(r"(?:^|/)(?:\.?venv[\w.-]*|env|node_modules/\.bin|vendor/bin)(?:/bin)?$")
_WRAPPER_SCRIPTS = frozenset(("gradlew", "mvnw"))
"""Scripts that Gradle and Maven put into every project."""
_VERSIONED_NAME = re.compile(r"(python|pip|pypy|perl|ruby|php|lua|node|gcc|g\+\+|clang|clang\+\+|tclsh)-?[0-9][0-9.]*")
_PROGRAM_NAME = re.compile(r"[A-Za-z0-9_.+@:%,\[-]+")


def judge_invocation(call: Invocation) -> StatesAfter:
    """Resolve the program of an invocation and judge it. Returns the states after it."""
    unchanged: StatesAfter = (call.state, call.state)
    program = _resolve_program(call)
    call.program = program or ""
    command = ResolvedCommand(program, call.words, call.via, call.inside, call.assignments, call.redirects)
    if not call.report.add_command(command) or program is None:
        return unchanged
    if program in call.walk.functions:
        return call.walk.judge_function_call(call)
    handler = find_handler(program)
    if handler is not None:
        return handler(call) or unchanged
    if is_version_or_help(call):
        return unchanged
    if program in WITH_SUBCOMMANDS:
        judge_subcommand(call)
    elif program in ROWS:
        apply_spec(call, parse_spec(ROWS[program]))
    else:
        call.report_effect("execute", target=program)
        call.report_unclear("unknown-program", f"{program} is not in the tables")
    return unchanged


def _resolve_program(call: Invocation) -> str | None:
    """Return the name under which to look a program up; None if its name alone already decided the findings."""
    word = call.name
    name = word.value
    if name is None or (word.is_pattern and name != "["):  # `[` is a program, not a pattern
        call.report_effect("execute")
        call.report_unclear("dynamic-program", "which program runs depends on what cannot be seen")
        return None
    if "/" in name:
        return _resolve_program_path(call, word, name)
    return _normalize_program_name(call, name)


def _resolve_program_path(call: Invocation, word: Word, path: str) -> str | None:
    base = path.rpartition("/")[2]
    # The path must be a known place in every possible directory.
    for cwd in call.state.cwds:
        place = locate_path(path, cwd, call.path_roots)
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
    """Return the listed name of a program: `python` for `python3.12`, `git` for `GIT.EXE`."""
    if name in call.walk.functions:
        return name
    if name in RESERVED_WORDS or not _PROGRAM_NAME.fullmatch(name):
        call.report_effect("execute")
        why = "is a word of the shell itself" if name in RESERVED_WORDS else "has characters that no program's name has"
        call.report_unclear("characters", f"{name[:40]!r} {why}")
        return None
    if is_known_program(name):
        return name
    plain = name.lower().removesuffix(".exe")
    if versioned := _VERSIONED_NAME.fullmatch(plain):
        plain = versioned[1]
    if plain != name and is_known_program(plain):
        # Only file systems that ignore case run `git` for `GIT`.
        if not name.startswith(plain):
            call.report_unclear("unknown-program", f"{name} is {plain} where upper case does not count")
        return plain
    return name


def is_known_program(program: str) -> bool:
    return program in HANDLERS or program in ROWS or program in WITH_SUBCOMMANDS
