"""The verbs that any program may use: files to read, write, edit and run, and texts that a program takes for code."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from aver.gate.effects.paths import locate_path
from aver.gate.shell.invocation import Invocation
from aver.gate.shell.model import Word
from aver.gate.shell.programs.verbs.verb import Verb
from aver.lazy_pattern import lazy_pattern

_SHELL_ESCAPE = lazy_pattern(r"\+.*[!|]")


def judge_read(call: Invocation, word: Word) -> None:
    if word.value != "-":
        call.report_path("read", word)


def judge_write(call: Invocation, word: Word) -> None:
    if word.value != "-":
        call.report_path("write", word)


def _edit(call: Invocation, word: Word) -> None:
    call.report_path("read", word)
    call.report_path("write", word)


def _contents(call: Invocation, word: Word) -> None:
    """Judge a file whose contents a program reads that otherwise lists names only."""
    if word.value != "-":
        replace(call, name=Word(f"{call.name.short_text} with the contents of")).report_path("read", word)


def judge_options_file(call: Invocation, word: Word) -> None:
    call.report_effect("network", word)
    call.report_unclear("unknown-option", f"more options of {call.program} stand in {word.short_text}", word)


def _object(call: Invocation, word: Word) -> None:
    """Judge a file for a program that takes `@FILE` for more options."""
    if word.prefix.startswith("@"):
        judge_options_file(call, word.drop_first(1))
    else:
        judge_read(call, word)


def judge_template(call: Invocation, word: Word) -> None:
    """Judge a place for a new file with a name of its own, as `mktemp` and `sort -T` make it.

    Nothing is lost by it in the workspace and in temporary directories, unless something guarded lies there.
    """
    # With `-t` the name is one in the directory for temporary files.
    if call.program == "mktemp" and any(re.fullmatch(r"-[a-z]*t[a-z]*", given.value or "") for given in call.words):
        return
    if not word.is_known:
        call.report_path("write", word)
    for value in word.values:
        for cwd in call.state.cwds:
            place = locate_path(value, cwd, call.path_roots)
            if place.where not in ("workspace", "temporary") or place.classes:
                call.report_path("write", replace(word, values=(value,)))


def _manual(call: Invocation, word: Word) -> None:
    """Judge the name of a page for `man` or `info`. A name with a slash is a file, which is shown."""
    if not word.is_known or any("/" in value or value.startswith((".", "~")) for value in word.values):
        call.report_path("read", word)


_WHO_WORDS = frozenset(("am", "i", "I", "mom", "likes"))


def _logins(call: Invocation, word: Word) -> None:
    """Judge an operand of `who`: `am i`, or a file that it reads as a list of logins."""
    if word.value not in _WHO_WORDS:
        call.report_path("read", word)


def _bat_operand(call: Invocation, word: Word) -> None:
    """Judge the first operand of `bat`: a file, or `cache`, which builds what bat loads later."""
    if word.value == "cache":
        call.report_effect("write", word)
        call.report_unclear("unknown-option", "bat cache builds what bat loads later", word)
    else:
        judge_read(call, word)


def _archive_keys(call: Invocation, word: Word) -> None:
    """Judge the first operand of `ar`: letters, or `@` and a file with more options."""
    if word.value is None or not word.value.lstrip("-").isalpha():
        call.report_path("read", word.drop_first(1) if word.prefix.startswith("@") else word)
        call.report_unclear("unknown-option", "what ar does is said by what was not looked into", word)


def _sockets(call: Invocation, word: Word) -> None:
    """Judge an operand of `lsof`: a file, or the value of `-i`, which names sockets."""
    if word.value is None or not re.match(r"(?i)[46]?(?:tcp|udp)?[@:]|[46]?(?:tcp|udp)$|[46]$", word.value):
        call.report_path("read", word)


def _history_operand(call: Invocation, word: Word) -> None:
    """Judge an operand that must be a number, as of `history 20`."""
    if word.value is None or not word.value.isdigit():
        call.report_unclear("unknown-option", f"{word.short_text} of {call.program} is not looked into", word)


def _stamp(call: Invocation, word: Word) -> None:
    """Judge `date -r`: seconds on BSD, elsewhere a file whose time is shown."""
    if word.value is None or not word.value.isdigit():
        call.report_path("read", word)


def judge_code(call: Invocation, word: Word) -> None:
    call.report_effect("execute", word)
    call.report_code(word.value, word)


def judge_send(call: Invocation, word: Word) -> None:
    call.report_host(word)
    call.report_host(word, "egress")


def _search_glob(call: Invocation, word: Word) -> None:
    """Report a pattern for the files of a search, if guarded files match it."""
    for value in word.values:
        if not value.startswith("!"):
            call.report_guarded_path("read", value, word)


def _pager_argument(call: Invocation, word: Word) -> None:
    """Judge a file for a pager, or a command that the pager runs first (`+!…`)."""
    if word.value is not None and _SHELL_ESCAPE.match(word.value):
        judge_code(call, word)
    elif word.value is None or not word.value.startswith("+"):
        judge_read(call, word)


_FILTER_REACHES_OUT = lazy_pattern(
    r"\b(?:env|envsubst|eval|input_filename|load\w*|import|include|get_search_list|system|exec)\b|\$(?:ENV|__prog)|strenv"
)


def _filter_file(call: Invocation, word: Word) -> None:
    """Judge a file with a program for jq. It may show the environment."""
    call.report_path("read", word)
    call.report_unclear("code", f"the program in {word.short_text} was not looked into", word)


def _filter(call: Invocation, word: Word) -> None:
    """Judge a program for jq or yq. Only a few of its functions see more than its input."""
    if word.value is None or _FILTER_REACHES_OUT.search(word.value):
        call.report_effect("secret", word, target="environment")
        call.report_unclear("code", f"what {word.short_text} sees was not looked into", word)


def _ps_letters(call: Invocation, word: Word) -> None:
    """Judge the letters of `ps` without a hyphen. With an `e`, ps shows the environment of every process."""
    if word.value is None or "e" in word.value:
        call.report_effect("secret", word, target="environment")


def _date_operand(call: Invocation, word: Word) -> None:
    if word.value is None or not word.value.startswith("+"):
        call.report_effect("system", word)


FILE_VERBS: Mapping[str, Verb] = {
    "skip": lambda call, word: None,  # not a path: a pattern, a number, a name
    "read": judge_read,
    "tree": judge_read,
    "contents": _contents,
    "write": judge_write,
    "delete": lambda call, word: call.report_path("delete", word),
    "edit": _edit,
    "run": lambda call, word: call.judge_script_word(word, call.program),
    "program": lambda call, word: call.report_executed_file(word),
    "code": judge_code,
    "host": lambda call, word: call.report_host(word),
    "send": judge_send,
    "page": _pager_argument,
    "sought": _search_glob,
    "clock": _date_operand,
    "filter": _filter,
    "shown": _ps_letters,
    "system": lambda call, word: call.report_effect("system", word),
    "config": judge_options_file,
    "object": _object,
    "template": judge_template,
    "manual": _manual,
    "logins": _logins,
    "cached": _bat_operand,
    "archive": _archive_keys,
    "counted": _history_operand,
    "sockets": _sockets,
    "stamp": _stamp,
    "filterfile": _filter_file,
    "process": lambda call, word: call.report_effect("process", word),
    "install": lambda call, word: call.report_effect("install", word),
}
