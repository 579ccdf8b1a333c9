"""What becomes of an argument, for programs of any kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from aver.gate.commands.call import Call
from aver.gate.commands.model import Word

__all__ = ["GENERAL", "Verb"]

Verb = Callable[[Call, Word], None]

_SHELL_ESCAPE = re.compile(r"\+.*[!|]")


def _skip(call: Call, word: Word) -> None:
    """A word that is no path: a pattern, a number, a name."""


def _read(call: Call, word: Word) -> None:
    if word.value != "-":
        call.touches("read", word)


def _write(call: Call, word: Word) -> None:
    if word.value != "-":
        call.touches("write", word)


def _delete(call: Call, word: Word) -> None:
    call.touches("delete", word)


def _edit(call: Call, word: Word) -> None:
    call.touches("read", word)
    call.touches("write", word)


def _run(call: Call, word: Word) -> None:
    call.runs_word(word, call.program)


def _program(call: Call, word: Word) -> None:
    call.executes(word)


def _code(call: Call, word: Word) -> None:
    call.does("execute", word)
    call.unclear("code", f"code that {call.program} runs was not looked into", word)


def _host(call: Call, word: Word) -> None:
    call.connects(word)


def _send(call: Call, word: Word) -> None:
    call.connects(word)
    call.connects(word, "egress")


def _sought(call: Call, word: Word) -> None:
    """Which files a search looks into. That is worth telling where it asks for guarded ones."""
    for value in word.values:
        if not value.startswith("!"):
            call.touches_if_guarded("read", value, word)


def _page(call: Call, word: Word) -> None:
    """A file for a pager, or what the pager is to do first."""
    if word.value is not None and _SHELL_ESCAPE.match(word.value):
        _code(call, word)
    elif word.value is None or not word.value.startswith("+"):
        _read(call, word)


_REACHES_OUT = re.compile(r"\b(?:env|input_filename|load\w*|import|include|get_search_list)\b|\$(?:ENV|__prog)|strenv")


def _filter(call: Call, word: Word) -> None:
    """A program for jq or yq. Few of its words see more than what it is given."""
    if word.value is None or _REACHES_OUT.search(word.value):
        call.does("secret", word, target="environment")
        call.unclear("code", f"what {word.shown} sees was not looked into", word)


def _shown(call: Call, word: Word) -> None:
    """What `ps` shows, in letters without a hyphen: with an `e` among them, the environment of every process."""
    if word.value is None or "e" in word.value:
        call.does("secret", word, target="environment")


def _clock(call: Call, word: Word) -> None:
    if word.value is None or not word.value.startswith("+"):
        call.does("system", word)


def _effect(name: str) -> Verb:
    def does(call: Call, word: Word) -> None:
        call.does(name, word)

    return does


GENERAL: Mapping[str, Verb] = {
    "skip": _skip,
    "read": _read,
    "tree": _read,
    "write": _write,
    "delete": _delete,
    "edit": _edit,
    "run": _run,
    "program": _program,
    "code": _code,
    "host": _host,
    "send": _send,
    "page": _page,
    "sought": _sought,
    "clock": _clock,
    "filter": _filter,
    "shown": _shown,
    "system": _effect("system"),
    "process": _effect("process"),
    "install": _effect("install"),
}
