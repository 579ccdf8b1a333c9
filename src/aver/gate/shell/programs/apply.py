"""Judges an invocation by a line of a table, or by the line of its subcommand (`git`, `cargo`, `npm`, `docker`)."""

from __future__ import annotations

from dataclasses import replace

from aver.gate.effects.findings import EFFECTS
from aver.gate.effects.paths import UNKNOWN_LOCATION, locate_path
from aver.gate.shell.invocation import Invocation
from aver.gate.shell.model import Word
from aver.gate.shell.programs.spec import ParsedArguments, ProgramSpec, parse_spec, read_arguments
from aver.gate.shell.programs.tables import ROWS
from aver.gate.shell.programs.verbs import VERBS

_CHANGING_VERBS = ("edit", "write", "delete")
"""If options give the operands different verbs, one of these wins over the others."""


def apply_spec(call: Invocation, spec: ProgramSpec) -> ParsedArguments:
    """Judge an invocation by a line of a table."""
    given = read_arguments(spec, call.words)
    apply_arguments(call, spec, given)
    return given


def apply_options(call: Invocation, spec: ProgramSpec) -> ParsedArguments:
    """Judge only the options of an invocation. A handler judges the operands."""
    given = read_arguments(spec, call.words)
    apply_arguments(call, spec, given.without_operands())
    return given


def apply_arguments(call: Invocation, spec: ProgramSpec, given: ParsedArguments) -> None:
    """Judge arguments that are already sorted into options and operands."""
    for effect in spec.always:
        _apply_effect(call, effect, None)
    # `-d:VERB` options replace the verb of the operands.
    changed = [option.operands for option, _, _ in given.options if option.operands]
    operands_become = max(changed, key=_CHANGING_VERBS.count) if changed else spec.rest
    # With another verb, the first operands lose their own verbs, too.
    first = list(spec.first) if operands_become in ("tree", spec.rest) else []
    for option, value, word in given.options:
        for effect in option.effects:
            _apply_effect(call, effect, word)
        if option.is_first_operand and first:
            first.pop(0)  # `sed -e SCRIPT`: all operands are files now
        if option.verb and value is not None:
            VERBS[option.verb](call, value)
    _report_doubtful_options(call, spec, given)
    if spec.here == "unpack" and not changed:
        call.report_unpacking(None)
    elif spec.here and not changed:
        call.report_current_directory(spec.here)
    if len(given.operands) <= len(first):
        if operands_become == "tree":
            call.report_current_directory("read")
        elif spec.nothing and not changed:
            call.report_current_directory(spec.nothing)
    _apply_operands(call, spec, given.operands, first, operands_become)


def _apply_operands(call: Invocation, spec: ProgramSpec, operands: list[Word], first: list[str], rest: str) -> None:
    waiting = list(operands)
    for verb in first:
        if waiting:
            word = waiting.pop(0)
            if verb:
                VERBS[verb](call, word)
    if rest == "command":
        call.judge_words(waiting)
        return
    last = waiting.pop() if spec.last and len(operands) > 1 and waiting else None
    if rest:
        for word in waiting:
            VERBS[rest](call, word)
    if last is not None:
        VERBS[spec.last](call, last)


def _report_outside_code(call: Invocation) -> None:
    """Report a tool that may run code from outside the workspace.

    The tables list tools that run the workspace's own code as clear. Elsewhere they run other code.
    """
    places = [
        locate_path(cwd, cwd, call.path_roots) if cwd is not None else UNKNOWN_LOCATION for cwd in call.state.cwds
    ]
    for word in call.words:
        for value in word.values:
            if value.startswith(("/", "~", "..")):
                places += [locate_path(value, cwd, call.path_roots) for cwd in call.state.cwds]
    if any(place.where != "workspace" and place.matters for place in places):
        call.report_unclear("script", f"{call.program} may run code that lies outside the workspace")


def _apply_effect(call: Invocation, effect: str, word: Word | None) -> None:
    if effect == "execute" and word is None:
        _report_outside_code(call)
    if effect in EFFECTS:
        call.report_effect(effect, word, target=call.program if effect == "execute" else "")
    else:
        about = f"{call.program} {word.short_text}" if word is not None else call.program
        call.report_unclear(effect.removeprefix("?"), f"{about}: what this does is not looked into", word)


def _report_doubtful_options(call: Invocation, spec: ProgramSpec, given: ParsedArguments) -> None:
    if spec.is_strict:
        for name, word in given.unlisted:
            call.report_unclear("unknown-option", f"the option {name} of {call.program} is not in the tables", word)
    if given.doubtful and spec.has_risky_options:
        for word in given.doubtful:
            advice = f"; write ./{word.text}" if word.is_pattern else ""
            call.report_unclear(
                "unknown-option", f"{word.short_text} may become an option of {call.program}{advice}", word
            )


_VERSION_OR_HELP = frozenset(("--version", "--help", "-V", "version", "help"))

NAME_WORDS_MAX = 3
"""Words of a subcommand's name: `docker compose up`."""


def is_version_or_help(call: Invocation) -> bool:
    """Whether the only argument asks for the version or for help."""
    return len(call.words) == 1 and call.words[0].value in _VERSION_OR_HELP


def judge_subcommand(call: Invocation) -> None:
    """Judge by the line of the longest subcommand name that fits. If none fits, the program's own line counts."""
    # The program's own line describes the options before the subcommand.
    spec = parse_spec(f"posix {ROWS.get(call.program, '')}")
    given = read_arguments(spec, call.words)
    # First with the options before the subcommand (`npm --version` is a line), then without them.
    for words in (call.words, tuple(given.operands)):
        found = _find_longest_name(call.program, words)
        if found:
            name, rest = found
            if given.options:
                apply_arguments(call, replace(spec, always=(), here="", nothing=""), given.without_operands())
            inner = replace(call, program=name, words=rest, name=Word(name))
            if not is_version_or_help(inner):
                apply_spec(inner, parse_spec(ROWS[name]))
            return
    apply_arguments(call, spec, given.without_operands())
    if spec.always:
        return
    name_words = given.operands[:1]
    if name_words and not name_words[0].is_known:
        call.report_effect("execute", *name_words)
        why = f"what {call.program} is to do depends on what cannot be seen"
        call.report_unclear("dynamic-program", why, *name_words)
    elif name_words or not is_version_or_help(call):
        call.report_effect("execute", *name_words, target=call.program)
        what = f"{call.program} {name_words[0].short_text}" if name_words else f"{call.program} alone"
        call.report_unclear("unknown-program", f"{what} is not in the tables", *name_words)


def _find_longest_name(program: str, words: tuple[Word, ...]) -> tuple[str, tuple[Word, ...]] | None:
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
