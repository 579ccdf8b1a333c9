"""Programs that run another program: what they add, and which words are left for it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from aver.gate.shell.environment import is_secret_name, judge_assignment
from aver.gate.shell.invocation import Invocation
from aver.gate.shell.model import CHOICES_MAX, Word
from aver.gate.shell.programs.apply import apply_options
from aver.gate.shell.programs.spec import READING_VERBS, parse_spec, read_arguments
from aver.gate.shell.programs.tables import ROWS
from aver.gate.shell.state import StatesAfter, change_directory

__all__ = ["busybox", "command", "env", "parallel", "printenv", "script", "su", "sudo", "watch", "xargs"]

_ASSIGNMENT_PREFIX = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=")
_ENV = (
    "posix strict (-i -0 -v --ignore-environment --null --debug --list-signal-handling --block-signal?"
    " --default-signal? --ignore-signal?) -u= -C= -S= -P= --unset= --chdir= --split-string="
)
_XARGS = (
    "posix (-0 -o -p -r -t -x --null --no-run-if-empty --verbose --interactive --exit --show-limits --open-tty)"
    " -a=read -d= -E= -e? -I= -i? -J= -L= -l? -n= -P= -R= -S= -s= --arg-file=read --delimiter= --eof? --replace?"
    " --max-lines? --max-args= --max-procs= --max-chars= --process-slot-var="
)
_PLAIN_LIST = re.compile(r"[^\"'\\]*")


def _take_assignments(call: Invocation, operands: Sequence[Word]) -> list[Word]:
    """Operands after the `NAME=VALUE` ones, which are judged."""
    rest = list(operands)
    while rest and (found := _ASSIGNMENT_PREFIX.match(rest[0].prefix)):
        word = rest.pop(0)
        judge_assignment(call, found[1], word.after(found.end()))
    return rest


def env(call: Invocation) -> None:
    """`env`: shows the environment, or runs a program in a changed one."""
    given = apply_options(call, parse_spec(_ENV))
    for value in given.values("-C", "--chdir"):
        good, _ = change_directory(call.state, value, call.ground)
        call = replace(call, state=good or call.state)
    for value in given.values("-P"):
        call.report_effect("execute", value)
        call.unclear("environment", "programs are looked for elsewhere", value)
    operands = given.operands[1:] if given.operands[:1] and given.operands[0].value == "-" else given.operands
    rest = _take_assignments(call, operands)
    split = list(given.values("-S", "--split-string"))
    if split:
        call.judge_script_word(split[0], "env -S")
        if rest:
            call.unclear("dynamic-code", "env -S with words after it", *rest)
    elif rest:
        call.runs(rest)
    else:
        call.report_effect("secret", target="environment")


def printenv(call: Invocation) -> None:
    names = [word for word in call.words if not word.prefix.startswith("-")]
    if not names:
        call.report_effect("secret", target="environment")
    for word in names:
        if word.value is None or is_secret_name(word.value):
            call.report_effect("secret", word, target=f"${word.value or ''}")


def command(call: Invocation) -> StatesAfter | None:
    """`command`, `builtin`: run a program past functions; with `-v` the first only tells where it is."""
    given = read_arguments(parse_spec("posix (-v -V -p)"), call.words)
    return None if given.has("-v", "-V") else call.runs(given.operands)


def sudo(call: Invocation) -> None:
    """`sudo`, `doas`: another user runs the command."""
    given = apply_options(call, parse_spec(ROWS[call.program]))
    if not given.operands and given.has("-l", "-v", "-V", "-k", "-K", "--list", "--validate", "--reset-timestamp"):
        return
    call.report_effect("privilege")
    for value in given.values("-D", "--chdir"):
        good, _ = change_directory(call.state, value, call.ground)
        call = replace(call, state=good or call.state)
    if given.has("-e", "--edit"):
        for word in given.operands:
            call.report_path("write", word)
        return
    rest = _take_assignments(call, given.operands)
    if rest:
        call.runs(rest)
    else:
        call.report_effect("execute")
        call.unclear("dynamic-code", f"{call.program} starts a shell")


def su(call: Invocation) -> None:
    given = read_arguments(
        parse_spec("(-l -m -p -P -f --login --preserve-environment) -c= -s=program -g= -G= -w= --command="), call.words
    )
    call.report_effect("privilege")
    texts = list(given.values("-c", "--command"))
    for value in texts:
        call.judge_script_word(value, "su -c")
    if not texts:
        call.report_effect("execute")
        call.unclear("dynamic-code", "su starts a shell")


def busybox(call: Invocation) -> None:
    """`busybox ls`: many programs in one."""
    if call.words and call.words[0].value is not None and call.words[0].value.startswith("-"):
        if call.words[0].value not in ("--list", "--list-full", "--help"):
            call.report_effect("execute", call.words[0])
            call.unclear("unknown-option", f"an option of {call.program}", call.words[0])
        return
    call.runs(call.words)


def watch(call: Invocation) -> None:
    """`watch`: hands its words to a shell, again and again."""
    given = read_arguments(
        parse_spec("posix (-b -c -d? -e -g -p -r -t -w -x -C) -n= -q= --interval= --differences?"), call.words
    )
    if given.has("-x"):
        call.runs(given.operands)
    else:
        _judge_joined_words(call, given.operands)


def _judge_joined_words(call: Invocation, words: Sequence[Word]) -> None:
    values = [word.value for word in words]
    if any(value is None for value in values):
        call.report_effect("execute", *words)
        call.unclear("dynamic-code", f"{call.program} runs text that depends on what cannot be seen", *words)
    elif values:
        call.judge_script(" ".join(value for value in values if value is not None), call.program)


def script(call: Invocation) -> None:
    """`script`: notes down what a shell or a command shows."""
    given = read_arguments(
        parse_spec("posix (-a -e -f -q -r -k -p -F) -c= -E= -I= -O= -B= -T= -t? -o= -m= --command="), call.words
    )
    texts = list(given.values("-c", "--command"))
    for value in texts:
        call.judge_script_word(value, "script -c")
    for word in given.operands[:1]:
        call.report_path("write", word)
    if given.operands[1:]:
        call.runs(given.operands[1:])
    elif not texts:
        call.report_effect("execute")
        call.unclear("dynamic-code", "script starts a shell")


def parallel(call: Invocation) -> None:
    """GNU parallel: a shell runs its words for each line that comes in. Only what is written out is looked into."""
    call.report_effect("execute")
    call.unclear("dynamic-code", "what parallel puts into the command is not known")
    words: list[Word] = []
    for word in call.words:
        if word.value in (":::", "::::", ":::+", "::::+"):
            break
        if words or not word.prefix.startswith("-"):
            words.append(word)
    _judge_joined_words(call, [word for word in words if word.is_known])


def xargs(call: Invocation) -> None:
    """`xargs`: a program gets what comes in as further arguments."""
    given = apply_options(call, parse_spec(_XARGS))
    words = given.operands or [Word("echo", ("echo",), "echo")]
    incoming = _incoming_words(call, words)
    marks = [mark.value or "" for mark in given.values("-I", "-J", "-i", "--replace")]
    if given.has("-i", "--replace") and not marks:
        marks = ["{}"]
    if marks:
        mark = marks[0] or "{}"
        filled = [_fill_placeholder(word, mark, incoming) for word in words]
    else:
        filled = [*words, *incoming]
    call.runs(filled, keeps_input=False)


def _incoming_words(call: Invocation, words: Sequence[Word]) -> list[Word]:
    """The words that come in, as far as that is known."""
    feed = call.input
    if feed is not None and feed.kind == "text" and _PLAIN_LIST.fullmatch(feed.text):
        return [Word(text, (text,), text) for text in feed.text.split()]
    if feed is not None and feed.kind == "listing" and _is_read_only_program(words[0]):
        roots = tuple(value for root in feed.roots for value in root.values)
        if roots and all(root.is_known for root in feed.roots) and len(roots) * len(feed.names) <= CHOICES_MAX:
            below = tuple(f"{value.rstrip('/')}/{name}" for value in roots for name in feed.names)
            return [Word("the files listed", below, is_pattern=True)]
    return [Word("what comes in", from_input=True)]


def _is_read_only_program(word: Word) -> bool:
    """Whether a program does nothing but read, whatever its arguments are."""
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
        return Word(word.text, values, is_pattern=incoming[0].is_pattern)
    prefix = word.value.partition(mark)[0] if word.value is not None else ""
    return Word(word.text, prefix=prefix, from_input=True)
