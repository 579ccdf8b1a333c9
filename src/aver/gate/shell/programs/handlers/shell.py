"""Handlers of the shell's own commands, and of shells that a script starts."""

from __future__ import annotations

import re
from dataclasses import replace

from aver.gate.effects.paths import locate_path
from aver.gate.shell.environment import is_harmless_name, judge_assignment, judge_subscript
from aver.gate.shell.invocation import Invocation
from aver.gate.shell.model import StatesAfter, Word, change_directory
from aver.gate.shell.programs.apply import apply_options, is_tool_directory, report_unlisted_options
from aver.gate.shell.programs.spec import ParsedArguments, parse_spec, read_arguments
from aver.lazy_pattern import lazy_pattern

_CHANGES_DIRECTORY = re.compile(r"\b(?:cd|pushd|popd|chdir)\b")
_OTHER_SYNTAX = frozenset(("fish", "csh", "tcsh", "nu", "xonsh", "elvish", "pwsh", "powershell", "cmd"))
_OPTIONS_WITH_FILE = frozenset(("--rcfile", "--init-file"))
_VARIABLE_BUILTIN_SPECS = {
    "read": "-[rseqAEklz] -a= -d= -i= -n= -N= -p= -t= -u=",
    "unset": "-[fvnm]",
    "printf": "posix -v=",
    "getopts": "posix",
}
_ACTIVATE_SCRIPT = re.compile(r".*/bin/activate(?:\.fish|\.csh)?")
_SHELL_LETTERS = lazy_pattern(r"[-+][abefhiklmnprstuvxBCDEHPT]*[cs]?[abefhiklmnprstuvxBCDEHPToO]*")
_SHELL_WORDS = frozenset(
    (
        *("--login", "--norc", "--noprofile", "--posix", "--noediting", "--restricted", "--verbose", "--debugger"),
        *(
            "--no-rcs",
            "--no-config",
            "--private",
            "--interactive",
            "--emacs",
            "--vi",
            "--dump-strings",
            "--dump-po-strings",
        ),
    )
)
_HARMLESS_JOB_LISTS = frozenset(("-l", "-L", "--list", "--table", "--help", "--version", "-V", "-h"))
_ASSIGNMENT_PREFIX = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:\[[^\]]*\])?\+?=")


def shell(call: Invocation) -> None:
    """Judge `sh`, `bash` and similar shells, which run `-c TEXT`, a file, or their standard input."""
    takes_text = checks_only = reads_input = False
    operand: Word | None = None
    words = iter(call.words)
    for word in words:
        text = word.value
        if text in ("--version", "--help"):
            return
        if text == "--":
            operand = None if reads_input else next(words, None)
            break
        if text in _OPTIONS_WITH_FILE:
            following = next(words, None)
            if following is not None:
                call.report_executed_file(following, word)
        elif text is not None and text[:1] in ("-", "+") and len(text) > 1 and text != "--":
            if not text.startswith("--"):
                takes_text |= "c" in text and text[0] == "-"
                checks_only |= "n" in text and text[0] == "-"
                reads_input |= "s" in text and text[0] == "-"
                if text[-1] in "oO":
                    next(words, None)  # the name of an option, as in `-o pipefail`
            # An option that is not known may take the next word, or name a file to run first.
            if text not in _SHELL_WORDS and not _SHELL_LETTERS.fullmatch(text):
                call.report_unclear("unknown-option", f"the option {text[:40]} of {call.program} is not known", word)
        elif text not in ("-", "--"):
            # A word without a known beginning may be an option. It is judged as the script all the same.
            operand = word
            break
    if operand is None:
        _judge_stdin_script(call)
    elif not takes_text and checks_only and call.program not in _OTHER_SYNTAX and operand.is_known:
        call.report_path("read", operand)  # `bash -n` reads the script and runs nothing of it
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
        # A virtual environment in the workspace counts as code of the workspace, where people keep one.
        call.report_effect("execute", word, target=word.value)
        directory = word.value.rpartition("/")[0]
        if not all(
            is_tool_directory(locate_path(directory, cwd, call.path_roots), call.path_roots) for cwd in call.state.cwds
        ):
            call.report_unclear("script", f"what {word.short_text} does was not looked into", word)
    else:
        _judge_script_file(call, word)


def exec_words(call: Invocation) -> None:
    """Judge `exec`, which replaces the shell by another program."""
    call.judge_words(_read_options(call, "posix -[cl] -a=").operands)


def trap(call: Invocation) -> StatesAfter | None:
    """Judge `trap TEXT SIGNAL`. The text runs later, or before every command."""
    given = _read_options(call, "posix -[lpP]")
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
    given = read_arguments(parse_spec(_VARIABLE_BUILTIN_SPECS.get(call.program, "lax")), call.words)
    if call.program in _VARIABLE_BUILTIN_SPECS:
        report_unlisted_options(call, parse_spec(_VARIABLE_BUILTIN_SPECS[call.program]), given)
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


def declare(call: Invocation) -> StatesAfter | None:
    """Judge `export`, `declare`, `readonly`, `typeset` and `local`. Without a name they print all variables."""
    names: set[str] = set()
    is_exported, shows = call.program == "export", True
    for word in call.words:
        judge_subscript(call, word)
        if word.prefix.startswith(("-", "+")) and word.value is not None:
            letters = word.value[1:] if word.value.startswith("-") else ""
            is_exported |= "x" in letters
            if "f" in letters:
                call.report_unclear("shell", "functions for other shells to run", word)
            # A name reference, or a tie of zsh, makes one name mean another variable, such as PATH.
            if {"n", "T"} & set(letters) and call.program != "export":
                call.report_unclear("environment", "one variable stands for another from here on", word)
            if not set(letters) <= set("aAFfgiIlnprtTuUxhHLRZmkEz-"):
                call.report_unclear("unknown-option", f"{word.short_text} of {call.program} is not known", word)
        elif found := _ASSIGNMENT_PREFIX.match(word.prefix):
            shows = False
            if not judge_assignment(call, found[1], word.drop_first(found.end())):
                names.add(found[1])
        elif not word.is_known and not word.prefix:
            call.report_unclear("environment", "which variable is set depends on what cannot be seen", word)
        else:
            shows = False
            for value in word.values:
                # The value was set before; whether it is harmless is not known here.
                if not is_harmless_name(value):
                    names.add(value)
    given = "".join(word.value or "" for word in call.words if word.prefix.startswith("-"))
    # `declare -p NAME` prints a value, `declare -F` only names of functions.
    if (shows and "F" not in given and call.program != "local") or "p" in given:
        call.report_effect("secret", target="environment")
    if not is_exported or not names:
        return None
    state = replace(call.state, exported=call.state.exported | names)
    return state, state


def set_options(call: Invocation) -> None:
    """Judge `set`. Without words it prints every variable."""
    if not call.words:
        call.report_effect("secret", target="environment")
        return
    options = call.words[0].value
    if options is not None and re.fullmatch(r"-[a-zA-Z]*k[a-zA-Z]*", options):
        call.report_unclear("shell", "set -k makes arguments into variables", call.words[0])
    # With these, every later assignment reaches the programs that follow.
    names = {word.value for word in call.words}
    if {"allexport", "keyword"} & names or (options is not None and re.fullmatch(r"-[a-zA-Z]*a[a-zA-Z]*", options)):
        call.report_unclear("shell", "every variable that is set from here on is exported", *call.words[:1])


def cd(call: Invocation) -> StatesAfter:
    given = _read_options(call, "-[LPenqs] -@")
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
    given = _read_options(call, "-[t] -C= -c= -d= -n= -O= -s= -u=")
    for word in given.operands:
        for name in word.values or ("PATH",):  # an unknown name may be any: assume a risky one
            judge_assignment(call, name, Word(word.text))
    for value in given.option_values("-C"):
        call.judge_script_word(value, call.program)


def _read_options(call: Invocation, marks: str) -> ParsedArguments:
    """Judge the options by a line of the table language. Returns all arguments."""
    return apply_options(call, parse_spec(marks))


def kill(call: Invocation) -> None:
    """Judge `kill`. It only lists signals with `-l`, and only asks whether a process is there with the signal 0.

    In every other case it signals a process, also where its number looks like an option: `kill -9 -1`.
    """
    first = call.words[0].value if call.words else None
    if first is not None and (first in _HARMLESS_JOB_LISTS or first == "-0"):
        return
    call.report_effect("process", *call.words)


def fc(call: Invocation) -> None:
    """Judge `fc`. With `-l` it lists earlier commands; without it, it edits and runs them."""
    given = _read_options(call, "posix -[lnrdfEiDm] -t= -e= -s -p -P -A -R -W -I")
    for option, _, word in given.options:
        # zsh reads and writes files of earlier commands with these.
        if option.name in ("-p", "-P", "-A", "-R", "-W", "-I"):
            call.report_unclear("unknown-target", "a file of earlier commands", word)
            for operand in given.operands[:1]:
                call.report_path("read", operand)
                call.report_path("write", operand)
    if not given.has_option("-l") or given.has_option("-s", "-e"):
        call.report_effect("execute", *call.words)
        call.report_unclear("dynamic-code", "fc runs earlier commands again")
