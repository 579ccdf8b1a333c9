"""What becomes of an argument of programs that build and run."""

from __future__ import annotations

import re
from collections.abc import Mapping

from aver.gate.commands.call import Call
from aver.gate.commands.environment import sets_variable
from aver.gate.commands.model import Word
from aver.gate.commands.verbs.general import GENERAL, Verb

__all__ = ["BUILDING"]

_SETS = re.compile(r"([A-Za-z_.][A-Za-z0-9_.]*)[:?+!]?=")


def _makes(call: Call, word: Word) -> None:
    """A target of make, or a variable set for it."""
    if found := _SETS.match(word.prefix):
        if found[1].strip(".").upper() in ("SHELL", "SHELLFLAGS"):
            GENERAL["code"](call, word)
        sets_variable(call, found[1], word.after(found.end()))


def _flags(call: Call, word: Word) -> None:
    """Flags for a compiler or linker, which can name another one."""
    if word.value is None or re.search(r"-(?:ext|toolexec|fuse-ld|B|specs|wrapper|plugin)", word.value):
        GENERAL["code"](call, word)


def _module(call: Call, word: Word) -> None:
    """A Python module to run as a program."""
    call.runs((Word("python", ("python",), "python"), Word("-m", ("-m",), "-m"), word))


def _project(call: Call, word: Word) -> None:
    """A directory or file whose code a tool will run."""
    call.touches("read", word)
    if not call.is_in_workspace(word):
        call.unclear("script", f"the code of {word.shown} lies outside the workspace", word)


BUILDING: Mapping[str, Verb] = {
    "makes": _makes,
    "flags": _flags,
    "module": _module,
    "project": _project,
    "cmakes": GENERAL["code"],
}
