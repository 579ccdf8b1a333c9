"""The shell's own commands, and shells that are started from it."""

from __future__ import annotations

import re
from dataclasses import replace

from aver.gate.commands.call import Call
from aver.gate.commands.environment import looks_like_code, sets_variable
from aver.gate.commands.model import Word
from aver.gate.commands.options import read_arguments, spec_from
from aver.gate.commands.state import Outcome, moved

__all__ = [
    "alias",
    "cd",
    "declare",
    "eval_words",
    "exec_words",
    "fills",
    "leave",
    "mapfile",
    "popd",
    "set_options",
    "shell",
    "source",
    "trap",
]

_CHANGES_DIRECTORY = re.compile(r"\b(?:cd|pushd|popd|chdir)\b")
_OTHER_SYNTAX = frozenset(("fish", "csh", "tcsh", "nu", "xonsh", "elvish", "pwsh", "powershell", "cmd"))
_TAKES_NEXT = frozenset(("--rcfile", "--init-file"))
_FILLS = {
    "read": "(-r -s -e) -a= -d= -i= -n= -N= -p= -t= -u=",
    "printf": "posix -v=",
    "getopts": "posix",
}
_ACTIVATE = re.compile(r".*/bin/activate(?:\.fish|\.csh)?")
_SETS = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:\[[^\]]*\])?\+?=")


def shell(call: Call) -> None:
    """`sh`, `bash` and the like: `-c TEXT`, a file, or whatever comes in."""
    takes_text = False
    words = iter(call.words)
    for word in words:
        text = word.value
        if text is None and not word.prefix and not word.is_known:
            _runs_operand(call, word, takes_text)
            return
        if text in _TAKES_NEXT:
            following = next(words, None)
            if following is not None:
                call.executes(following, word)
        elif text is not None and text[:1] in ("-", "+") and len(text) > 1 and text != "--":
            if not text.startswith("--"):
                takes_text |= "c" in text and text[0] == "-"
                if text[-1] in "oO":
                    next(words, None)
        elif text in ("-", "--"):
            continue
        else:
            _runs_operand(call, word, takes_text)
            return
    _runs_input(call)


def _runs_operand(call: Call, word: Word, takes_text: bool) -> None:
    if not takes_text:
        _runs_file(call, word)
    elif call.program in _OTHER_SYNTAX:
        call.does("execute", word)
        call.unclear("code", f"what {call.program} runs is not looked into", word)
    else:
        call.runs_word(word, f"{call.program} -c")


def _runs_file(call: Call, word: Word) -> None:
    if word.from_input or not word.is_known:
        call.does("execute", word)
        code = "piped-code" if word.from_input else "dynamic-code"
        call.unclear(code, f"{call.program} runs what is not known", word)
    else:
        call.executes(word)


def _runs_input(call: Call) -> None:
    """A shell without a script runs what it reads."""
    feed = call.input
    if feed is not None and feed.kind == "text" and call.program not in _OTHER_SYNTAX:
        call.runs_text(feed.text, call.program)
        return
    call.does("execute")
    if feed is None:
        call.unclear("dynamic-code", f"{call.program} runs what is typed into it")
    elif feed.kind == "file":
        call.unclear("script", f"{call.program} runs {feed.text}, which was not looked into")
    else:
        what = {"decoded": "what was decoded", "network": "what another machine sent"}.get(feed.kind, "what comes in")
        call.unclear("encoded" if feed.kind == "decoded" else "piped-code", f"{call.program} runs {what}")


def eval_words(call: Call) -> Outcome:
    """`eval`: its words are one text, which runs here."""
    stays: Outcome = (call.state, call.state)
    values = [word.value for word in call.words]
    if any(value is None for value in values):
        call.does("execute", *call.words)
        call.unclear("dynamic-code", "eval runs text that depends on what cannot be seen", *call.words)
        return stays
    text = " ".join(value for value in values if value is not None)
    call.runs_text(text, "eval")
    return _elsewhere(call) if _CHANGES_DIRECTORY.search(text) else stays


def source(call: Call) -> None:
    """`source FILE`: the file's commands run here."""
    if not call.words:
        return
    word = call.words[0]
    if word.value is not None and _ACTIVATE.fullmatch(word.value) and not word.from_input:
        # A virtual environment of the workspace is as much its code as its tests are.
        call.does("execute", word, target=word.value)
        if not call.is_in_workspace(word):
            call.unclear("script", f"what {word.shown} does was not looked into", word)
    else:
        _runs_file(call, word)


def exec_words(call: Call) -> None:
    """`exec`: the shell becomes another program, or only its files change."""
    given = read_arguments(spec_from("posix (-c -l) -a="), call.words)
    call.runs(given.operands)


def trap(call: Call) -> Outcome | None:
    """`trap TEXT SIGNAL`: the text runs later, or before every command."""
    given = read_arguments(spec_from("posix (-l -p -P)"), call.words)
    if len(given.operands) < 2 or given.operands[0].value in ("", "-"):
        return None
    call.runs_word(given.operands[0], "trap")
    if any(_CHANGES_DIRECTORY.search(value) for value in given.operands[0].values):
        return _elsewhere(call)
    return None


def _elsewhere(call: Call) -> Outcome:
    state = replace(call.state, cwds=(None,))
    return state, state


def fills(call: Call) -> None:
    """`read`, `printf -v`, `let`, `test`: they take names of variables, and run what stands in a subscript."""
    given = read_arguments(spec_from(_FILLS.get(call.program, "")), call.words)
    for word in call.words:
        looks_like_code(call, word)
    names = [*given.operands] if call.program in ("read", "getopts") else []
    for word in (*names, *given.values("-v", "-a")):
        for value in word.values or ("PATH",):
            if value != "IFS" or call.program != "read":
                sets_variable(call, value, Word(word.text))


def alias(call: Call) -> None:
    """An alias makes a word mean something else from then on."""
    for word in call.words:
        if found := _SETS.match(word.prefix):
            call.runs_word(word.after(found.end()), "alias")
            call.unclear("shell", f"{found[1]} means something else from here on", word)
        elif "=" in word.prefix:
            call.unclear("shell", f"{word.shown} means something else from here on", word)


def declare(call: Call) -> None:
    """`export`, `declare`, `readonly`, `typeset`: variables, some for programs to see."""
    shows = not call.words
    for word in call.words:
        looks_like_code(call, word)
        if word.prefix.startswith("-") and word.value is not None:
            shows |= "p" in word.value
            if "f" in word.value:
                call.unclear("shell", "functions for other shells to run", word)
        elif found := _SETS.match(word.prefix):
            sets_variable(call, found[1], word.after(found.end()))
        elif not word.is_known and not word.prefix:
            call.unclear("environment", "which variable is set depends on what cannot be seen", word)
    if shows:
        call.does("secret", target="environment")


def set_options(call: Call) -> None:
    """`set`: options of the shell; alone it shows every variable."""
    if not call.words:
        call.does("secret", target="environment")
    elif call.words[0].value is not None and re.fullmatch(r"-[a-zA-Z]*k[a-zA-Z]*", call.words[0].value):
        call.unclear("shell", "set -k makes arguments into variables", call.words[0])


def cd(call: Call) -> Outcome:
    given = read_arguments(spec_from("(-L -P -e -@ -n)"), call.words)
    return moved(call.state, given.operands[0] if given.operands else None, call.ground)


def popd(call: Call) -> Outcome:
    return replace(call.state, cwds=(None,)), call.state


def leave(call: Call) -> Outcome:
    """`exit`, `return`: nothing after it runs."""
    return None, None


def mapfile(call: Call) -> None:
    """`mapfile`: a variable gets the lines that come in; a text may run for each."""
    for word in call.words:
        looks_like_code(call, word)
    given = read_arguments(spec_from("-C= -c= -d= -n= -O= -s= -u= -t"), call.words)
    for value in given.values("-C"):
        call.runs_word(value, call.program)
