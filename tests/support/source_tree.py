"""The source of Aver as the house tests read it: files, rooms, imports, strings and definitions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import aver

SOURCE = Path(aver.__file__).parent
REPOSITORY = Path(__file__).resolve().parents[2]
FILES = sorted(SOURCE.rglob("*.py"))
FOLDERS = sorted({path.parent for path in FILES} - {SOURCE})


def name_of(path: Path) -> str:
    """A file or folder as people write it: `ledger/append.py`."""
    return path.relative_to(SOURCE).as_posix()


def room_of(path: Path) -> str:
    """The first folder below `aver`, or the module itself: `ledger`, `errors`."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(tree_of(path)))


def imports_in(path: Path) -> Iterator[tuple[int, str]]:
    """Every module that a file imports, with the line: at the top, inside functions, under TYPE_CHECKING.

    `from aver import x` counts as `aver.x`.
    """
    package = ["aver", *path.relative_to(SOURCE).with_suffix("").parts]
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level]) if node.level else ""
            module = ".".join(filter(None, (base, node.module)))
            yield node.lineno, module
            if module == "aver":
                for alias in node.names:
                    yield node.lineno, f"aver.{alias.name}"


def strings_in(path: Path) -> Iterator[tuple[int, str]]:
    """Every string constant of a file but for docstrings and other bare strings, with the line."""
    bare = {id(node.value) for node in nodes_of(path) if isinstance(node, ast.Expr)}
    for node in nodes_of(path):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bare:
            yield node.lineno, node.value


def classes_in(path: Path) -> Iterator[ast.ClassDef]:
    return (node for node in nodes_of(path) if isinstance(node, ast.ClassDef))


def functions_in(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Functions of the module and methods of its classes; no functions inside functions, no properties."""
    bodies: list[ast.Module | ast.ClassDef] = [tree_of(path), *classes_in(path)]
    for body in bodies:
        for node in body.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not _is_property(node):
                yield node


def _is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(
        getattr(mark, "id", getattr(mark, "attr", "")) in ("property", "cached_property", "setter")
        for mark in node.decorator_list
    )
