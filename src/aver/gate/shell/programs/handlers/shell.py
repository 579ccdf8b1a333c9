"""The shell's own commands, and shells that are started from it."""

from __future__ import annotations

import re
from dataclasses import replace

from aver.gate.shell.environment import judge_assignment, judge_subscript
from aver.gate.shell.invocation import Invocation
from aver.gate.shell.model import Word
from aver.gate.shell.programs.spec import parse_spec, read_arguments
from aver.gate.shell.state import StatesAfter, change_directory

__all__ = [
    "alias",
    "cd",
    "declare",
    "eval_words",
    "exec_words",
    "exit_shell",
    "mapfile",
    "popd",
    "set_options",
    "shell",
    "source",
    "trap",
    "variable_builtin",
]

_CHANGES_DIRECTORY = re.compile(r"\b(?:cd|pushd|popd|chdir)\b")
_OTHER_SYNTAX = frozenset(("fish", "csh", "tcsh", "nu", "xonsh", "elvish", "pwsh", "powershell", "cmd"))
_OPTIONS_WITH_FILE = frozenset(("--rcfile", "--init-file"))
_VARIABLE_BUILTIN_SPECS = {
    "read": "(-r -s -e) -a= -d= -i= -n= -N= -p= -t= -u=",
    "printf": "posix -v=",
    "getopts": "posix",
}
_ACTIVATE_SCRIPT = re.compile(r".*/bin/activate(?:\.fish|\.csh)?")
_ASSIGNMENT_PREFIX = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:\[[^\]]*\])?\+?=")


def shell(call: Invocation) -> None:
    """`sh`, `bash` and the like: `-c TEXT`, a file, or whatever comes in."""
    takes_text = False
    words = iter(call.words)
    for word in words:
        text = word.value
        if text is None and not word.prefix and not word.is_known:
            _judge_operand(call, word, takes_text)
            return
        if text in _OPTIONS_WITH_FILE:
            following = next(words, None)
            if following is not None:
                call.report_executed_file(following, word)
        elif text is not None and text[:1] in ("-", "+") and len(text) > 1 and text != "--":
            if not text.startswith("--"):
                takes_text |= "c" in text and text[0] == "-"
                if text[-1] in "oO":
                    next(words, None)
        elif text in ("-", "--"):
            continue
        else:
            _judge_operand(call, word, takes_text)
            return
    _judge_stdin_script(call)


def _judge_operand(call: Invocation, word: Word, takes_text: bool) -> None:
    if not takes_text:
        _judge_script_file(call, word)
    elif call.program in _OTHER_SYNTAX:
        call.report_effect("execute", word)
        call.unclear("code", f"what {call.program} runs is not looked into", word)
    else:
        call.judge_script_word(word, f"{call.program} -c")


def _judge_script_file(call: Invocation, word: Word) -> None:
    if word.from_input or not word.is_known:
        call.report_effect("execute", word)
        code = "piped-code" if word.from_input else "dynamic-code"
        call.unclear(code, f"{call.program} runs what is not known", word)
    else:
        call.report_executed_file(word)


def _judge_stdin_script(call: Invocation) -> None:
    """A shell without a script runs what it reads."""
    feed = call.input
    if feed is not None and feed.kind == "text" and call.program not in _OTHER_SYNTAX:
        call.judge_script(feed.text, call.program)
        return
    call.report_effect("execute")
    if feed is None:
        call.unclear("dynamic-code", f"{call.program} runs what is typed into it")
    elif feed.kind == "file":
        call.unclear("script", f"{call.program} runs {feed.text}, which was not looked into")
    else:
        what = {"decoded": "what was decoded", "network": "what another machine sent"}.get(feed.kind, "what comes in")
        call.unclear("encoded" if feed.kind == "decoded" else "piped-code", f"{call.program} runs {what}")


def eval_words(call: Invocation) -> StatesAfter:
    """`eval`: its words are one text, which runs here."""
    stays: StatesAfter = (call.state, call.state)
    values = [word.value for word in call.words]
    if any(value is None for value in values):
        call.report_effect("execute", *call.words)
        call.unclear("dynamic-code", "eval runs text that depends on what cannot be seen", *call.words)
        return stays
    text = " ".join(value for value in values if value is not None)
    call.judge_script(text, "eval")
    return _forget_directory(call) if _CHANGES_DIRECTORY.search(text) else stays


def source(call: Invocation) -> None:
    """`source FILE`: the file's commands run here."""
    if not call.words:
        return
    word = call.words[0]
    if word.value is not None and _ACTIVATE_SCRIPT.fullmatch(word.value) and not word.from_input:
        # A virtual environment of the workspace is as much its code as its tests are.
        call.report_effect("execute", word, target=word.value)
        if not call.is_in_workspace(word):
            call.unclear("script", f"what {word.shown} does was not looked into", word)
    else:
        _judge_script_file(call, word)


def exec_words(call: Invocation) -> None:
    """`exec`: the shell becomes another program, or only its files change."""
    given = read_arguments(parse_spec("posix (-c -l) -a="), call.words)
    call.runs(given.operands)


def trap(call: Invocation) -> StatesAfter | None:
    """`trap TEXT SIGNAL`: the text runs later, or before every command."""
    given = read_arguments(parse_spec("posix (-l -p -P)"), call.words)
    if len(given.operands) < 2 or given.operands[0].value in ("", "-"):
        return None
    call.judge_script_word(given.operands[0], "trap")
    if any(_CHANGES_DIRECTORY.search(value) for value in given.operands[0].values):
        return _forget_directory(call)
    return None


def _forget_directory(call: Invocation) -> StatesAfter:
    state = replace(call.state, cwds=(None,))
    return state, state


def variable_builtin(call: Invocation) -> None:
    """`read`, `printf -v`, `let`, `test`: they take names of variables, and run what stands in a subscript."""
    given = read_arguments(parse_spec(_VARIABLE_BUILTIN_SPECS.get(call.program, "")), call.words)
    for word in call.words:
        judge_subscript(call, word)
    names = [*given.operands] if call.program in ("read", "getopts") else []
    for word in (*names, *given.values("-v", "-a")):
        for value in word.values or ("PATH",):
            if value != "IFS" or call.program != "read":
                judge_assignment(call, value, Word(word.text))


def alias(call: Invocation) -> None:
    """An alias makes a word mean something else from then on."""
    for word in call.words:
        if found := _ASSIGNMENT_PREFIX.match(word.prefix):
            call.judge_script_word(word.after(found.end()), "alias")
            call.unclear("shell", f"{found[1]} means something else from here on", word)
        elif "=" in word.prefix:
            call.unclear("shell", f"{word.shown} means something else from here on", word)


def declare(call: Invocation) -> None:
    """`export`, `declare`, `readonly`, `typeset`: variables, some for programs to see."""
    shows = not call.words
    for word in call.words:
        judge_subscript(call, word)
        if word.prefix.startswith("-") and word.value is not None:
            shows |= "p" in word.value
            if "f" in word.value:
                call.unclear("shell", "functions for other shells to run", word)
        elif found := _ASSIGNMENT_PREFIX.match(word.prefix):
            judge_assignment(call, found[1], word.after(found.end()))
        elif not word.is_known and not word.prefix:
            call.unclear("environment", "which variable is set depends on what cannot be seen", word)
    if shows:
        call.report_effect("secret", target="environment")


def set_options(call: Invocation) -> None:
    """`set`: options of the shell; alone it shows every variable."""
    if not call.words:
        call.report_effect("secret", target="environment")
    elif call.words[0].value is not None and re.fullmatch(r"-[a-zA-Z]*k[a-zA-Z]*", call.words[0].value):
        call.unclear("shell", "set -k makes arguments into variables", call.words[0])


def cd(call: Invocation) -> StatesAfter:
    given = read_arguments(parse_spec("(-L -P -e -@ -n)"), call.words)
    return change_directory(call.state, given.operands[0] if given.operands else None, call.ground)


def popd(call: Invocation) -> StatesAfter:
    return replace(call.state, cwds=(None,)), call.state


def exit_shell(call: Invocation) -> StatesAfter:
    """`exit`, `return`: nothing after it runs."""
    return None, None


def mapfile(call: Invocation) -> None:
    """`mapfile`: a variable gets the lines that come in; a text may run for each."""
    for word in call.words:
        judge_subscript(call, word)
    given = read_arguments(parse_spec("-C= -c= -d= -n= -O= -s= -u= -t"), call.words)
    for value in given.values("-C"):
        call.judge_script_word(value, call.program)
