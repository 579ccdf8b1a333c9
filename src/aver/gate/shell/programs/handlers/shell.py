"""Handlers of the shell's own commands, and of shells that a script starts."""

from __future__ import annotations

import re
from dataclasses import replace

from aver.gate.shell.environment import judge_assignment, judge_subscript
from aver.gate.shell.invocation import Invocation
from aver.gate.shell.model import StatesAfter, Word, change_directory
from aver.gate.shell.programs.spec import parse_spec, read_arguments

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
    """Judge `sh`, `bash` and similar shells, which run `-c TEXT`, a file, or their standard input."""
    takes_text = False
    operand: Word | None = None
    words = iter(call.words)
    for word in words:
        text = word.value
        if text in _OPTIONS_WITH_FILE:
            following = next(words, None)
            if following is not None:
                call.report_executed_file(following, word)
        elif text is not None and text[:1] in ("-", "+") and len(text) > 1 and text != "--":
            if not text.startswith("--"):
                takes_text |= "c" in text and text[0] == "-"
                if text[-1] in "oO":
                    next(words, None)  # the name of an option, as in `-o pipefail`
        elif text not in ("-", "--"):
            # A word without a known beginning may be an option. It is judged as the script all the same.
            operand = word
            break
    if operand is None:
        _judge_stdin_script(call)
    elif not takes_text:
        _judge_script_file(call, operand)
    elif call.program in _OTHER_SYNTAX:
        call.report_effect("execute", operand)
        call.report_unclear("code", f"what {call.program} runs is not looked into", operand)
    else:
        call.judge_script_word(operand, f"{call.program} -c")


def _judge_script_file(call: Invocation, word: Word) -> None:
    if word.from_input or not word.is_known:
        call.report_effect("execute", word)
        code = "piped-code" if word.from_input else "dynamic-code"
        call.report_unclear(code, f"{call.program} runs what is not known", word)
    else:
        call.report_executed_file(word)


def _judge_stdin_script(call: Invocation) -> None:
    """Judge a shell without a script, which runs its standard input."""
    stdin = call.stdin
    if stdin is not None and stdin.kind == "text" and call.program not in _OTHER_SYNTAX:
        call.judge_script(stdin.text, call.program)
        return
    call.report_effect("execute")
    if stdin is None:
        call.report_unclear("dynamic-code", f"{call.program} runs what is typed into it")
    elif stdin.kind == "file":
        call.report_unclear("script", f"{call.program} runs {stdin.text}, which was not looked into")
    else:
        what = {"decoded": "what was decoded", "network": "what another machine sent"}.get(stdin.kind, "what comes in")
        call.report_unclear("encoded" if stdin.kind == "decoded" else "piped-code", f"{call.program} runs {what}")


def eval_words(call: Invocation) -> StatesAfter:
    """Judge `eval`, which runs its words as one text in this shell."""
    unchanged: StatesAfter = (call.state, call.state)
    # One unknown word makes the whole text unknown.
    values = [word.value for word in call.words]
    if any(value is None for value in values):
        call.report_effect("execute", *call.words)
        call.report_unclear("dynamic-code", "eval runs text that depends on what cannot be seen", *call.words)
        return unchanged
    text = " ".join(value for value in values if value is not None)
    call.judge_script(text, "eval")
    # The inner walk does not return its directory, so after a `cd` the directory is unknown.
    return _forget_directory(call) if _CHANGES_DIRECTORY.search(text) else unchanged


def source(call: Invocation) -> None:
    """Judge `source FILE`, which runs the commands of a file in this shell."""
    if not call.words:
        return
    word = call.words[0]
    if word.value is not None and _ACTIVATE_SCRIPT.fullmatch(word.value) and not word.from_input:
        # A virtual environment in the workspace counts as code of the workspace.
        call.report_effect("execute", word, target=word.value)
        if not call.is_in_workspace(word):
            call.report_unclear("script", f"what {word.short_text} does was not looked into", word)
    else:
        _judge_script_file(call, word)


def exec_words(call: Invocation) -> None:
    """Judge `exec`, which replaces the shell by another program."""
    given = read_arguments(parse_spec("posix (-c -l) -a="), call.words)
    call.judge_words(given.operands)


def trap(call: Invocation) -> StatesAfter | None:
    """Judge `trap TEXT SIGNAL`. The text runs later, or before every command."""
    given = read_arguments(parse_spec("posix (-l -p -P)"), call.words)
    if len(given.operands) < 2 or given.operands[0].value in ("", "-"):
        return None
    call.judge_script_word(given.operands[0], "trap")
    # The text may run before any later command, so the directory is unknown from here on.
    if any(_CHANGES_DIRECTORY.search(value) for value in given.operands[0].values):
        return _forget_directory(call)
    return None


def _forget_directory(call: Invocation) -> StatesAfter:
    state = replace(call.state, cwds=(None,))
    return state, state


def variable_builtin(call: Invocation) -> None:
    """Judge `read`, `printf -v`, `let`, `test`: they take names of variables, and expand subscripts in them."""
    given = read_arguments(parse_spec(_VARIABLE_BUILTIN_SPECS.get(call.program, "")), call.words)
    for word in call.words:
        judge_subscript(call, word)
    names = [*given.operands] if call.program in ("read", "getopts") else []
    for word in (*names, *given.option_values("-v", "-a")):
        for value in word.values or ("PATH",):  # an unknown name may be any: assume a risky one
            if value != "IFS" or call.program != "read":
                judge_assignment(call, value, Word(word.text))


def alias(call: Invocation) -> None:
    """Judge `alias`, which gives a word another meaning for the rest of the script."""
    for word in call.words:
        if found := _ASSIGNMENT_PREFIX.match(word.prefix):
            call.judge_script_word(word.drop_first(found.end()), "alias")
            call.report_unclear("shell", f"{found[1]} means something else from here on", word)
        elif "=" in word.prefix:
            call.report_unclear("shell", f"{word.short_text} means something else from here on", word)


def declare(call: Invocation) -> None:
    """Judge `export`, `declare`, `readonly` and `typeset`. Without a name they print all variables."""
    shows = not call.words
    for word in call.words:
        judge_subscript(call, word)
        if word.prefix.startswith("-") and word.value is not None:
            shows |= "p" in word.value
            if "f" in word.value:
                call.report_unclear("shell", "functions for other shells to run", word)
        elif found := _ASSIGNMENT_PREFIX.match(word.prefix):
            judge_assignment(call, found[1], word.drop_first(found.end()))
        elif not word.is_known and not word.prefix:
            call.report_unclear("environment", "which variable is set depends on what cannot be seen", word)
    if shows:
        call.report_effect("secret", target="environment")


def set_options(call: Invocation) -> None:
    """Judge `set`. Without words it prints every variable."""
    if not call.words:
        call.report_effect("secret", target="environment")
    elif call.words[0].value is not None and re.fullmatch(r"-[a-zA-Z]*k[a-zA-Z]*", call.words[0].value):
        call.report_unclear("shell", "set -k makes arguments into variables", call.words[0])


def cd(call: Invocation) -> StatesAfter:
    given = read_arguments(parse_spec("(-L -P -e -@ -n)"), call.words)
    return change_directory(call.state, given.operands[0] if given.operands else None, call.path_roots)


def popd(call: Invocation) -> StatesAfter:
    return replace(call.state, cwds=(None,)), call.state


def exit_shell(call: Invocation) -> StatesAfter:
    """Judge `exit` and `return`: no state follows."""
    return None, None


def mapfile(call: Invocation) -> None:
    """Judge `mapfile`, which reads lines into a variable. With `-C` it also runs a text."""
    for word in call.words:
        judge_subscript(call, word)
    given = read_arguments(parse_spec("-C= -c= -d= -n= -O= -s= -u= -t"), call.words)
    for value in given.option_values("-C"):
        call.judge_script_word(value, call.program)
