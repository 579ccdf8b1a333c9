"""Handlers of programs that start another program, such as `env`, `sudo` and `xargs`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from aver.gate.shell.environment import is_secret_name, judge_assignment
from aver.gate.shell.invocation import Invocation
from aver.gate.shell.model import CHOICES_MAX, StatesAfter, Word, change_directory
from aver.gate.shell.programs.apply import apply_options
from aver.gate.shell.programs.spec import READING_VERBS, ParsedArguments, parse_spec
from aver.gate.shell.programs.tables import ROWS

_ASSIGNMENT_PREFIX = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=")
_ENV = (
    "posix (-i -0 -v --ignore-environment --null --debug --list-signal-handling --block-signal?"
    " --default-signal? --ignore-signal?) -u= -C= -S= -P= --unset= --chdir= --split-string="
)
_XARGS = (
    "posix gnu (-o -p -r -t -x --no-run-if-empty --verbose --interactive --exit --show-limits --open-tty)"
    " -0 --null -a=read -d= -E= -e? -I= -i? -J= -L= -l? -n= -P= -R= -S= -s= --arg-file=read --delimiter= --eof?"
    " --replace? --max-lines? --max-args= --max-procs= --max-chars= --process-slot-var="
)
_AWKS = frozenset(("awk", "gawk", "mawk"))
"""Programs that take nothing after their first operand for an option."""
_PLAIN_LIST = re.compile(r"[^\"'\\]*")


def _take_assignments(call: Invocation, operands: Sequence[Word]) -> list[Word]:
    """Judge the leading `NAME=VALUE` operands. Returns the others."""
    rest = list(operands)
    while rest and (found := _ASSIGNMENT_PREFIX.match(rest[0].prefix)):
        word = rest.pop(0)
        if not judge_assignment(call, found[1], word.drop_first(found.end())):
            call.environment |= {found[1]}
    return rest


def env(call: Invocation) -> None:
    """Judge `env`, which prints the environment, or runs a program in a changed one."""
    given = apply_options(call, parse_spec(_ENV))
    for value in given.option_values("-C", "--chdir"):
        good, _ = change_directory(call.state, value, call.path_roots)
        call = replace(call, state=good or call.state)
    for value in given.option_values("-P"):
        call.report_effect("execute", value)
        call.report_unclear("environment", "programs are looked for elsewhere", value)
    # `env -` is `env -i`.
    operands = given.operands[1:] if given.operands[:1] and given.operands[0].value == "-" else given.operands
    rest = _take_assignments(call, operands)
    # `-S` splits one text into words, as a shell would.
    split = list(given.option_values("-S", "--split-string"))
    if split:
        call.judge_script_word(split[0], "env -S")
        if rest:
            call.report_unclear("dynamic-code", "env -S with words after it", *rest)
    elif rest:
        call.judge_words(rest)
    else:
        call.report_effect("secret", target="environment")


def cross_env(call: Invocation) -> None:
    """Judge `cross-env NAME=VALUE PROGRAM`, which sets variables on every system and then runs a program."""
    rest = _take_assignments(call, call.words)
    if rest:
        call.judge_words(rest)


def printenv(call: Invocation) -> None:
    names = apply_options(call, parse_spec("-0 --null")).operands
    if not names:
        call.report_effect("secret", target="environment")
    for word in names:
        if word.value is None or is_secret_name(word.value):
            call.report_effect("secret", word, target=f"${word.value or ''}")


def command(call: Invocation) -> StatesAfter | None:
    """Judge `command` and `builtin`, which bypass functions. `command -v` only prints where a program is."""
    given = apply_options(call, parse_spec("posix -[vVp]"))
    return None if given.has_option("-v", "-V") else call.judge_words(given.operands)


def sudo(call: Invocation) -> None:
    """Judge `sudo` and `doas`, which run a command as another user."""
    given = apply_options(call, parse_spec(ROWS[call.program]))
    if not given.operands and given.has_option(
        "-l", "-v", "-V", "-k", "-K", "--list", "--validate", "--reset-timestamp"
    ):
        return
    call.report_effect("privilege")
    for value in given.option_values("-D", "--chdir"):
        good, _ = change_directory(call.state, value, call.path_roots)
        call = replace(call, state=good or call.state)
    if given.has_option("-e", "--edit"):
        for word in given.operands:
            call.report_path("write", word)
        return
    rest = _take_assignments(call, given.operands)
    if rest:
        call.judge_words(rest)
    else:
        call.report_effect("execute")
        call.report_unclear("dynamic-code", f"{call.program} starts a shell")


def su(call: Invocation) -> None:
    given = apply_options(
        call, parse_spec("-[lmpPf] --login --preserve-environment -c= -s=program -g= -G= -w= --command=")
    )
    call.report_effect("privilege")
    texts = list(given.option_values("-c", "--command"))
    for value in texts:
        call.judge_script_word(value, "su -c")
    if not texts:
        call.report_effect("execute")
        call.report_unclear("dynamic-code", "su starts a shell")


def busybox(call: Invocation) -> None:
    """Judge `busybox ls`: one binary that holds many programs."""
    if call.words and call.words[0].value is not None and call.words[0].value.startswith("-"):
        if call.words[0].value not in ("--list", "--list-full", "--help"):
            call.report_effect("execute", call.words[0])
            call.report_unclear("unknown-option", f"an option of {call.program}", call.words[0])
        return
    call.judge_words(call.words)


def watch(call: Invocation) -> None:
    """Judge `watch`, which gives its words to a shell again and again."""
    marks = (
        "posix gnu -[bcegprtwxC] -d? -n= -q= -s= --interval= --differences? --color --no-color --exec --beep --errexit"
        " --chgexit --equexit= --precise --no-rerun --no-title --no-wrap"
    )
    given = apply_options(call, parse_spec(marks))
    # With `-x`, watch starts the program itself, without a shell.
    if given.has_option("-x", "--exec"):
        call.judge_words(given.operands)
    else:
        _judge_joined_words(call, given.operands)


def _judge_joined_words(call: Invocation, words: Sequence[Word]) -> None:
    values = [word.value for word in words]
    if any(value is None for value in values):
        call.report_effect("execute", *words)
        call.report_unclear("dynamic-code", f"{call.program} runs text that depends on what cannot be seen", *words)
    elif values:
        call.judge_script(" ".join(value for value in values if value is not None), call.program)


def script(call: Invocation) -> None:
    """Judge `script`, which records the output of a shell or a command in a file."""
    marks = (
        "posix gnu -[aefqrkpFd] -c= -E= -I=write -O=write -B=write -T=write -t? -o= -m= --command= --append --return"
        " --flush --force --quiet --log-io=write --log-in=write --log-out=write --log-timing=write"
    )
    given = apply_options(call, parse_spec(marks))
    texts = list(given.option_values("-c", "--command"))
    for value in texts:
        call.judge_script_word(value, "script -c")
    for word in given.operands[:1]:
        call.report_path("write", word)
    if given.operands[1:]:
        call.judge_words(given.operands[1:])
    elif not texts:
        call.report_effect("execute")
        call.report_unclear("dynamic-code", "script starts a shell")


def parallel(call: Invocation) -> None:
    """Judge GNU parallel, which runs its words for each line of input. Aver judges only the words it knows."""
    call.report_effect("execute")
    call.report_unclear("dynamic-code", "what parallel puts into the command is not known")
    words: list[Word] = []
    for word in call.words:
        if word.value in (":::", "::::", ":::+", "::::+"):
            break
        if words or not word.prefix.startswith("-"):
            words.append(word)
    _judge_joined_words(call, [word for word in words if word.is_known])


def xargs(call: Invocation) -> None:
    """Judge `xargs`, which gives the words of its standard input to a program."""
    given = apply_options(call, parse_spec(_XARGS))
    words = given.operands or [Word("echo", ("echo",), "echo")]
    incoming = _incoming_words(call, given, words)
    # With `-I MARK` the words replace the mark, else they follow the other arguments.
    marks = [mark.value or "" for mark in given.option_values("-I", "-J", "-i", "--replace")]
    if given.has_option("-i", "--replace") and not marks:
        marks = ["{}"]
    if marks:
        mark = marks[0] or "{}"
        filled = [_fill_placeholder(word, mark, incoming) for word in words]
    else:
        filled = [*words, *incoming]
    # xargs has read the standard input itself.
    call.judge_words(filled, keeps_input=False)


def _incoming_words(call: Invocation, given: ParsedArguments, words: Sequence[Word]) -> list[Word]:
    """Return the words of the standard input, as far as Aver knows them."""
    delimiters = {mark.value for mark in given.option_values("-d", "--delimiter")}
    if given.has_option("-a", "--arg-file") or delimiters - {"\\n"}:
        # The words come from a file, or another delimiter than white space separates them.
        return [Word("what comes in", from_input=True)]
    stdin = call.stdin
    is_split_at_space = not delimiters and not given.has_option("-0", "--null")
    if stdin is not None and stdin.kind == "text" and is_split_at_space and _PLAIN_LIST.fullmatch(stdin.text):
        return [Word(text, (text,), text) for text in stdin.text.split()]
    # Names from a listing may begin with `-`. That is harmless only for a program that reads in any case. A name with
    # blanks becomes several words, unless xargs separates names by NUL.
    is_safe = _is_read_only_program(words[0])
    if stdin is not None and stdin.has_roots:
        is_whole = given.has_option("-0", "--null")
        is_safe = is_safe or words[0].value in _AWKS or (is_whole and words[0].value in ("sed", "gsed"))
    if stdin is not None and stdin.kind == "listing" and is_safe:
        roots = tuple(value for root in stdin.roots for value in root.values)
        if roots and all(root.is_known for root in stdin.roots) and len(roots) * len(stdin.names) <= CHOICES_MAX:
            below = tuple(f"{value.rstrip('/')}/{name}" for value in roots for name in stdin.names)
            return [Word("the files listed", below, is_pattern=True)]
    return [Word("what comes in", from_input=True)]


def _is_read_only_program(word: Word) -> bool:
    """Whether a program only reads, with any arguments."""
    row = ROWS.get(word.value or "")
    if row is None:
        return False
    spec = parse_spec(row)
    verbs = {spec.rest, spec.last, *spec.first, *(option.verb for option in spec.options.values())}
    verbs |= {option.operands for option in spec.options.values()}
    effects = any(option.effects for option in spec.options.values())
    return not effects and not spec.always and verbs <= READING_VERBS


def _fill_placeholder(word: Word, mark: str, incoming: Sequence[Word]) -> Word:
    if not any(mark in value for value in word.values):
        return word
    if len(incoming) == 1 and incoming[0].is_known and word.value is not None:
        values = tuple(word.value.replace(mark, value) for value in incoming[0].values)
        # The files of a listing keep the text by which they are known as such.
        text = incoming[0].text if incoming[0].is_pattern else word.text
        return Word(text, values, is_pattern=incoming[0].is_pattern)
    prefix = word.value.partition(mark)[0] if word.value is not None else ""
    return Word(word.text, prefix=prefix, from_input=True)
