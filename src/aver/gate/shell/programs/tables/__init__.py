"""The tables of programs. `aver.gate.shell.programs.spec` describes their language.

Every line follows the program's own manual. `aver.gate.shell.programs` says when a program needs more than a line.
"""

from __future__ import annotations

from collections.abc import Mapping

from aver.gate.shell.programs.spec import split_table
from aver.gate.shell.programs.tables import files, git, network, packages, system, tools

__all__ = ["LOCKED_INSTALLS", "ROWS", "WITH_SUBCOMMANDS"]

ROWS: Mapping[str, str] = {
    name: marks
    for table in (files, network, git, tools, packages, system)
    for name, marks in split_table(table.TABLE).items()
}
"""The unparsed line of each program, and of each subcommand under `program subcommand`."""

WITH_SUBCOMMANDS = frozenset(name.partition(" ")[0] for name in ROWS if " " in name)

LOCKED_INSTALLS: Mapping[str, str] = split_table(packages.LOCKED_TABLE)
"""The marks of installs that a lock file decides, by program and subcommand."""
