"""What becomes of an argument of programs that build and run."""

from __future__ import annotations

import re
from collections.abc import Mapping

from aver.gate.shell.environment import judge_assignment
from aver.gate.shell.invocation import Invocation
from aver.gate.shell.model import Word
from aver.gate.shell.programs.verbs.general import GENERAL, Verb

__all__ = ["BUILDING"]

_MAKE_ASSIGNMENT = re.compile(r"([A-Za-z_.][A-Za-z0-9_.]*)[:?+!]?=")


def _make_argument(call: Invocation, word: Word) -> None:
    """A target of make, or a variable set for it."""
    if found := _MAKE_ASSIGNMENT.match(word.prefix):
        if found[1].strip(".").upper() in ("SHELL", "SHELLFLAGS"):
            GENERAL["code"](call, word)
        judge_assignment(call, found[1], word.after(found.end()))


def _compiler_flags(call: Invocation, word: Word) -> None:
    """Flags for a compiler or linker, which can name another one."""
    if word.value is None or re.search(r"-(?:ext|toolexec|fuse-ld|B|specs|wrapper|plugin)", word.value):
        GENERAL["code"](call, word)


def _python_module(call: Invocation, word: Word) -> None:
    """A Python module to run as a program."""
    call.runs((Word("python", ("python",), "python"), Word("-m", ("-m",), "-m"), word))


def _project_path(call: Invocation, word: Word) -> None:
    """A directory or file whose code a tool will run."""
    call.report_path("read", word)
    if not call.is_in_workspace(word):
        call.unclear("script", f"the code of {word.shown} lies outside the workspace", word)


BUILDING: Mapping[str, Verb] = {
    "makes": _make_argument,
    "flags": _compiler_flags,
    "module": _python_module,
    "project": _project_path,
    "cmakes": GENERAL["code"],
}
