"""The verbs of the tables: what a program does with one argument.

A line of a table names a verb for the value of an option or for an operand, as in `-o=write *read`. Each verb is a
function that gets the invocation and the word, and reports findings. Each module ends with a table from the names to
the functions. A verb that has no condition is written there. `load_verbs` joins the tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from aver.gate.shell.invocation import Invocation
from aver.gate.shell.model import Word
from aver.gate.shell.programs.verbs.verb import Verb


@cache
def load_verbs() -> Mapping[str, Verb]:
    """Load all verbs by their names. Many commands have no argument that needs one."""
    from aver.gate.shell.programs.verbs.build_verbs import BUILD_VERBS
    from aver.gate.shell.programs.verbs.file_verbs import FILE_VERBS
    from aver.gate.shell.programs.verbs.git_verbs import GIT_VERBS
    from aver.gate.shell.programs.verbs.network_verbs import NETWORK_VERBS

    return {**FILE_VERBS, **NETWORK_VERBS, **GIT_VERBS, **BUILD_VERBS}


def apply_verb(name: str, call: Invocation, word: Word) -> None:
    """Report what a verb finds about a word."""
    load_verbs()[name](call, word)
