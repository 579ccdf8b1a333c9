"""What becomes of an argument, for programs of any kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from aver.gate.shell.invocation import Invocation
from aver.gate.shell.model import Word

__all__ = ["GENERAL", "Verb"]

Verb = Callable[[Invocation, Word], None]

_SHELL_ESCAPE = re.compile(r"\+.*[!|]")


def _skip(call: Invocation, word: Word) -> None:
    """A word that is no path: a pattern, a number, a name."""


def _read(call: Invocation, word: Word) -> None:
    if word.value != "-":
        call.report_path("read", word)


def _write(call: Invocation, word: Word) -> None:
    if word.value != "-":
        call.report_path("write", word)


def _delete(call: Invocation, word: Word) -> None:
    call.report_path("delete", word)


def _edit(call: Invocation, word: Word) -> None:
    call.report_path("read", word)
    call.report_path("write", word)


def _shell_script(call: Invocation, word: Word) -> None:
    call.judge_script_word(word, call.program)


def _program(call: Invocation, word: Word) -> None:
    call.report_executed_file(word)


def _code(call: Invocation, word: Word) -> None:
    call.report_effect("execute", word)
    call.unclear("code", f"code that {call.program} runs was not looked into", word)


def _host(call: Invocation, word: Word) -> None:
    call.report_host(word)


def _send(call: Invocation, word: Word) -> None:
    call.report_host(word)
    call.report_host(word, "egress")


def _search_glob(call: Invocation, word: Word) -> None:
    """Which files a search looks into. That is worth telling where it asks for guarded ones."""
    for value in word.values:
        if not value.startswith("!"):
            call.report_guarded_path("read", value, word)


def _pager_argument(call: Invocation, word: Word) -> None:
    """A file for a pager, or what the pager is to do first."""
    if word.value is not None and _SHELL_ESCAPE.match(word.value):
        _code(call, word)
    elif word.value is None or not word.value.startswith("+"):
        _read(call, word)


_FILTER_REACHES_OUT = re.compile(
    r"\b(?:env|input_filename|load\w*|import|include|get_search_list)\b|\$(?:ENV|__prog)|strenv"
)


def _filter(call: Invocation, word: Word) -> None:
    """A program for jq or yq. Few of its words see more than what it is given."""
    if word.value is None or _FILTER_REACHES_OUT.search(word.value):
        call.report_effect("secret", word, target="environment")
        call.unclear("code", f"what {word.shown} sees was not looked into", word)


def _ps_letters(call: Invocation, word: Word) -> None:
    """What `ps` shows, in letters without a hyphen: with an `e` among them, the environment of every process."""
    if word.value is None or "e" in word.value:
        call.report_effect("secret", word, target="environment")


def _date_operand(call: Invocation, word: Word) -> None:
    if word.value is None or not word.value.startswith("+"):
        call.report_effect("system", word)


def _build_effect_verb(name: str) -> Verb:
    def does(call: Invocation, word: Word) -> None:
        call.report_effect(name, word)

    return does


GENERAL: Mapping[str, Verb] = {
    "skip": _skip,
    "read": _read,
    "tree": _read,
    "write": _write,
    "delete": _delete,
    "edit": _edit,
    "run": _shell_script,
    "program": _program,
    "code": _code,
    "host": _host,
    "send": _send,
    "page": _pager_argument,
    "sought": _search_glob,
    "clock": _date_operand,
    "filter": _filter,
    "shown": _ps_letters,
    "system": _build_effect_verb("system"),
    "process": _build_effect_verb("process"),
    "install": _build_effect_verb("install"),
}
