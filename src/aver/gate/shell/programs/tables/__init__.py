"""The tables of programs. `aver.gate.shell.programs.spec` describes their language.

Every line follows the program's own manual. `aver.gate.shell.programs` says when a program needs more than a line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, lru_cache

from aver.gate.shell.programs.spec import split_table
from aver.gate.shell.programs.tables import files, git, network, packages, system, tools

__all__ = ["ROWS", "find_locked_install", "has_subcommands"]


class _Rows(Mapping[str, str]):
    """The lines of all tables by name. A look-up splits only the lines that mention the program."""

    def __getitem__(self, name: str) -> str:
        return _split_lines_about(name.partition(" ")[0])[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_split_lines_about(""))

    def __len__(self) -> int:
        return len(_split_lines_about(""))


ROWS: Mapping[str, str] = _Rows()
"""The unparsed line of each program, and of each subcommand under `program subcommand`."""


@lru_cache(maxsize=256)
def has_subcommands(program: str) -> bool:
    """Whether the tables have lines for subcommands of a program."""
    return any(name.startswith(f"{program} ") for name in _split_lines_about(program))


@lru_cache(maxsize=256)
def _split_lines_about(program: str) -> Mapping[str, str]:
    """Return all lines that contain the name of the program, so also some of other programs."""
    return split_table("\n".join(line for line in _join_tables() if program in line))


@cache
def _join_tables() -> list[str]:
    tables = (files, network, git, tools, packages, system)
    return [line for table in tables for line in table.TABLE.replace("\\\n", " ").splitlines()]


@cache
def _split_locked_installs() -> Mapping[str, str]:
    return split_table(packages.LOCKED_TABLE)


def find_locked_install(name: str) -> str | None:
    """Return the marks of installs that a lock file decides, by program and subcommand."""
    return _split_locked_installs().get(name)
