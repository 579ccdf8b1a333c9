"""Test runs that a Python program starts by a function: part of `program`.

`pytest.main` and `unittest.main` take the options of the programs `pytest` and `unittest`. Those can send a report
away, write over a source, and run files from anywhere. So only plain options and files of the workspace pass:

    pytest.main([__file__, "-v"])       unittest.main(verbosity=2)
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from aver.gate.effects.code_scan.reach import ReachKind
from aver.lazy_pattern import lazy_pattern

_PLAIN_OPTION = lazy_pattern(
    r"-[vqsxl]{1,5}|-r[A-Za-z]{1,9}|--tb=\w{1,9}|--no-header|--verbose|--quiet|--exitfirst|--maxfail=[0-9]{1,4}"
    r"|-[km]|--co|--collect-only|--durations=[0-9]{1,4}|--capture=no"
)
_PLAIN_KEYWORDS = frozenset(("verbosity", "exit", "failfast", "buffer", "catchbreak"))
_RUNNERS = frozenset(("pytest", "unittest"))


def judge_test_run(node: ast.AST, is_called: bool, is_inside: Callable[[str], bool]) -> Iterator[tuple[ReachKind, str]]:
    """Yield test runs with options or files that are not plain. `is_called`: this is the function of a call."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="pytest"), attr="main")):
            if not _is_plain_pytest(node, is_inside):
                yield "code", "pytest.main with arguments that are not plain"
        case ast.Call(func=ast.Attribute(value=ast.Name(id="unittest"), attr="main" | "TestProgram")):
            if node.args or not _PLAIN_KEYWORDS.issuperset(word.arg or "" for word in node.keywords):
                yield "code", "unittest.main with arguments that are not plain"
        case ast.Attribute(value=ast.Name(id="pytest" | "unittest"), attr="main" | "console_main" | "TestProgram"):
            if not is_called or node.attr == "console_main":
                yield "code", f"{node.attr} under another name"
        case ast.Import() if any(name.name in _RUNNERS and name.asname not in (None, name.name) for name in node.names):
            yield "code", "a test runner under another name"
        case ast.ImportFrom(module="pytest" | "unittest" | "unittest.main"):
            for name in node.names:
                if name.name in ("main", "console_main", "TestProgram", "*"):
                    yield "code", f"from {node.module} import {name.name}"
        case ast.Assign(value=ast.Name(id="pytest" | "unittest")):
            yield "code", "a test runner under another name"


def _is_plain_pytest(call: ast.Call, is_inside: Callable[[str], bool]) -> bool:
    match call:
        case ast.Call(args=[ast.List(elts=words)], keywords=[]):
            return all(_is_plain_word(word, is_inside) for word in words)
    return False


def _is_plain_word(word: ast.expr, is_inside: Callable[[str], bool]) -> bool:
    match word:
        case ast.Name(id="__file__"):
            return True
        case ast.Constant(value=str() as text):
            if text.startswith("-"):
                return _PLAIN_OPTION.fullmatch(text) is not None
            return not text.startswith("@") and is_inside(text.partition("::")[0])
    return False
