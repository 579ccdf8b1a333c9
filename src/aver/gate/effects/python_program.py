r"""Looks into a whole Python program that a command would run: `python repro.py`, `python -c …`, `python - <<EOF`.

A program passes more strictly than a change of the workspace's own code does, because a command runs it at once. Aver
parses it, and adds these findings to those of `code_scan`:

    imports      a module of the standard library that is not in the list of harmless ones
    os           a function of `os` that is not in the list of harmless ones
    open, Path   a file whose name is not a plain text, or that is opened for writing
    files        a function that changes, moves or deletes files
    texts        a URL, or a path that leads out of the workspace or to something guarded
    dunder       a name such as `__globals__`, by which a program gets at everything

Modules of the workspace and of others may be imported. The session's memory says whether a file of the workspace was
changed unseen, and installing a package is asked about.

    >>> found = scan_python_program("import shutil\nshutil.rmtree('src')\n", is_inside=lambda path: True)
    >>> [(reach.kind, reach.line, reach.word) for reach in found]
    [('code', 1, 'import shutil'), ('files', 2, 'rmtree')]
"""

from __future__ import annotations

import ast
import sys
import warnings
from collections.abc import Callable, Iterator

from aver.gate.effects.code_scan import FINDINGS_MAX, WORD_MAX, Reach, ReachKind, scan_text

NODES_MAX = 20_000
"""Parts of a program that Aver looks at. A longer program is not looked into."""


def _word_set(*lines: str) -> frozenset[str]:
    return frozenset(" ".join(lines).split())


_HARMLESS_MODULES = _word_set(
    "__future__ abc array ast argparse bisect calendar cmath collections colorsys contextlib copy csv",
    "dataclasses datetime decimal difflib dis enum errno fnmatch fractions functools gc glob graphlib hashlib",
    "heapq hmac html inspect io itertools json keyword locale logging math numbers operator os pathlib",
    "platform pprint queue random re reprlib secrets sched statistics string struct sys sysconfig tempfile",
    "textwrap threading time token traceback tracemalloc types typing unicodedata unittest uuid warnings",
    "weakref zoneinfo opcode codecs stat contextvars copyreg binascii base64 ipaddress concurrent asyncio",
    "atexit this tomllib symtable shlex optparse getopt",
)
"""Modules of the standard library that reach nowhere, or whose functions that do have rules of their own."""

_HARMLESS_OS = _word_set(
    "path getcwd listdir scandir walk sep linesep curdir pardir extsep pathsep name stat lstat fspath",
    "fsencode fsdecode cpu_count getpid stat_result PathLike devnull access F_OK R_OK strerror",
    "get_terminal_size",
)
_FILE_CHANGES = _word_set(
    "write_text write_bytes unlink rmdir rmtree rename renames symlink_to hardlink_to link_to chmod lchmod",
    "chown lchown copyfile copy2 copytree copyfileobj move remove removedirs makedirs mkdir touch symlink",
    "link truncate mkfifo mknod utime extractall extract savetxt savez save to_csv to_json to_pickle to_sql",
    "to_parquet to_excel tofile dump_stats savefig NamedTemporaryFile mkstemp",
)
_HARMLESS_DUNDERS = _word_set(
    "__name__ __doc__ __version__ __file__ __init__ __main__ __all__ __len__ __repr__ __str__ __eq__",
    "__class__ __annotations__ __qualname__ __module__ __enter__ __exit__ __iter__ __next__ __call__",
    "__post_init__ __slots__ __hash__ __lt__ __le__ __gt__ __ge__ __ne__ __add__ __sub__ __mul__ __contains__",
    "__getitem__ __setitem__ __bool__ __new__ __format__ __abs__ __reversed__ __path__ __author__ __license__",
    "__debug__ __del__ __neg__ __get__ __set__ __set_name__ __int__ __float__ __index__ __aenter__ __aexit__",
    "__aiter__ __anext__ __await__ __init_subclass__ __class_getitem__ __match_args__ __wrapped__",
    "__defaults__ __kwdefaults__ __pow__ __mod__ __truediv__ __floordiv__ __and__ __or__ __xor__ __invert__",
    "__radd__ __rsub__ __rmul__ __iadd__ __missing__ __getattr__ __delitem__ __array__ __dataclass_fields__",
    "__members__ __args__ __origin__ __notes__ __cause__ __context__ __traceback__ __future__ __tablename__",
    "__table__ __dir__ __sizeof__ __bytes__ __copy__ __deepcopy__",
)
_NAMES: dict[str, ReachKind] = {
    **dict.fromkeys(("eval", "exec", "compile", "execfile", "breakpoint", "__import__", "__builtins__"), "code"),
    **dict.fromkeys(("globals", "locals", "vars", "setattr", "delattr"), "reflection"),
}
_PATH_MAKERS = frozenset(("open", "Path", "PosixPath", "WindowsPath", "FileIO", "iglob", "glob", "rglob", "loadtxt"))


def scan_python_program(text: str, *, is_inside: Callable[[str], bool]) -> tuple[Reach, ...]:
    """Return the places at which a Python program reaches out.

    `is_inside` says whether a path, as the program writes it, stays in the workspace and leads to nothing guarded.
    """
    found = dict.fromkeys(scan_text(text, "python"))
    if any(reach.line == 0 for reach in found):
        return tuple(found)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # About odd escapes in texts.
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return (*found, Reach("unreadable", 0, "it is not a program that this version of Python reads"))
    for count, node in enumerate(ast.walk(tree)):
        if count >= NODES_MAX:
            found[Reach("unreadable", 0, f"more than {NODES_MAX} parts")] = None
            break
        for kind, word in _judge_node(node, is_inside):
            found[Reach(kind, getattr(node, "lineno", 0), word[:WORD_MAX])] = None
    return tuple(sorted(found, key=lambda reach: reach.line))[:FINDINGS_MAX]


def _judge_node(node: ast.AST, is_inside: Callable[[str], bool]) -> Iterator[tuple[ReachKind, str]]:
    match node:
        case ast.Import():
            for name in node.names:
                yield from _judge_import(name.name, name.asname)
        case ast.ImportFrom():
            module = node.module or ""
            if not node.level:
                yield from _judge_import(module, None)
            for name in node.names:
                if module == "os" and name.name not in _HARMLESS_OS:
                    yield "process", f"from os import {name.name}"
                yield from _judge_name(name.name, node)
        case ast.Name():
            yield from _judge_name(node.id, node)
        case ast.Attribute():
            if isinstance(node.value, ast.Name) and node.value.id == "os" and node.attr not in _HARMLESS_OS:
                yield "process", f"os.{node.attr}"
            yield from _judge_name(node.attr, node)
        case ast.Call():
            yield from _judge_call(node)
        case ast.Constant() if isinstance(node.value, str):
            yield from _judge_text(node.value, is_inside)
        case ast.Constant() if isinstance(node.value, bytes):
            yield from _judge_text(node.value.decode("latin-1"), is_inside)


def _judge_import(module: str, alias: str | None) -> Iterator[tuple[ReachKind, str]]:
    top = module.partition(".")[0]
    is_unlisted = top in sys.stdlib_module_names and top not in _HARMLESS_MODULES
    if is_unlisted or module == "logging.config":
        yield "code", f"import {module}"
    if top == "os" and alias not in (None, "os") and module == "os":
        yield "reflection", f"import os as {alias}"


def _judge_name(name: str, node: ast.AST) -> Iterator[tuple[ReachKind, str]]:
    kind = _NAMES.get(name)
    # `re.compile` and `model.eval` are other functions. `builtins` cannot be imported.
    if kind is not None and (not isinstance(node, ast.Attribute) or name.startswith("__")):
        yield kind, name
    elif name in _FILE_CHANGES and not isinstance(node, ast.Name):
        yield "files", name
    elif name.startswith("__") and name.endswith("__") and name not in _HARMLESS_DUNDERS:
        yield "reflection", name


def _judge_call(node: ast.Call) -> Iterator[tuple[ReachKind, str]]:
    called = node.func
    name = called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""
    if name == "getattr":
        is_plain = len(node.args) > 1 and isinstance(node.args[1], ast.Constant)
        if not is_plain:
            yield "reflection", "getattr"
        elif str(node.args[1].value) in _FILE_CHANGES or str(node.args[1].value) in _NAMES:  # type: ignore[attr-defined]
            yield "reflection", f"getattr {node.args[1].value}"  # type: ignore[attr-defined]
    # `Path.replace` moves a file and has one argument. `str.replace` has two.
    if name == "replace" and isinstance(called, ast.Attribute) and len(node.args) + len(node.keywords) == 1:
        yield "files", "replace"
    if name in _PATH_MAKERS:
        if not all(_is_plain_path(argument) for argument in node.args[:1] if not isinstance(argument, ast.Starred)):
            yield "files", f"{name} with a name that is not a plain text"
        if any(isinstance(argument, ast.Starred) for argument in node.args):
            yield "files", f"{name} with a name that is not a plain text"
    if name == "open":
        modes = [*node.args[1:2], *(keyword.value for keyword in node.keywords if keyword.arg in ("mode", None))]
        if isinstance(called, ast.Attribute):  # `Path.open` has the mode first.
            modes += node.args[:1] if not _is_module(called.value) else []
        for mode in modes:
            text = mode.value if isinstance(mode, ast.Constant) else None
            if not isinstance(text, str) or set(text) & set("wax+"):
                yield "files", "open for writing"


def _is_module(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("io", "codecs", "os", "gzip", "bz2", "lzma")


def _is_plain_path(node: ast.expr) -> bool:
    """Whether the value is a text in the program, `__file__`, or a number."""
    return isinstance(node, ast.Constant) or (isinstance(node, ast.Name) and node.id == "__file__")


def _judge_text(text: str, is_inside: Callable[[str], bool]) -> Iterator[tuple[ReachKind, str]]:
    if "://" in text:
        yield "network", text.strip()
    # Only a text without blanks in it is a path; prose in a message may have slashes.
    name = text.strip()
    looks_like_path = name.startswith((".", "~", "/")) or "/" in name
    if looks_like_path and len(name) > 1 and not any(mark.isspace() for mark in name) and not is_inside(name):
        yield "files", name
