"""What programs do with their arguments. The language of the tables is told in `aver.gate.shell.programs.spec`.

What is not in a table runs code of which nothing is known, and steps up. What is in a table was looked up in the
program's own manual. A program that needs more than a line has a handler.
"""

from __future__ import annotations

from collections.abc import Mapping

from aver.gate.shell.programs.spec import split_table
from aver.gate.shell.programs.tables import changing, git, network, packages, reading, system, tools

__all__ = ["ROWS", "WITH_SUBCOMMANDS"]

ROWS: Mapping[str, str] = {
    name: marks
    for table in (reading, changing, network, git, tools, packages, system)
    for name, marks in split_table(table.TABLE).items()
}
"""The line of each program, and of each subcommand under `program subcommand`."""

WITH_SUBCOMMANDS = frozenset(name.partition(" ")[0] for name in ROWS if " " in name)
