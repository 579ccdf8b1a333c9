"""Which files a Python program reads: part of `program`.

A program may read files of the workspace by a plain name. These uses do not show which file is read, or show a guarded
one:

    open(name), Path(a + b)             the name is not a plain text
    open("server.pem")                  the name is one of a guarded file
    Path("x").with_name(name)           a step to another file, whose name is not a plain text
    Path(".").iterdir(), .rglob("*")    files that a listing names, hidden ones among them, if the program reads files
    type(Path("x"))(name)               the maker of paths, without its name
    __file__ = name                     another value for the name of the program's own file
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from aver.gate.effects.code_scan.language import find_language
from aver.gate.effects.code_scan.reach import ReachKind


def word_set(*lines: str) -> frozenset[str]:
    """Return the words of some lines."""
    return frozenset(" ".join(lines).split())


PATH_MAKERS = word_set(
    "open Path PosixPath WindowsPath FileIO iglob glob rglob loadtxt genfromtxt fromfile read_csv read_table read_json",
    "read_parquet read_excel read_xml read_html read_feather joinpath open_code getlines getline read_fwf read_sas",
    "read_stata read_orc read_spss read_hdf read_ipc read_ndjson scan_csv scan_parquet scan_ndjson scan_ipc imread",
    "ZipFile GzipFile BZ2File LZMAFile with_name with_stem with_suffix with_segments from_uri __truediv__",
)
"""Functions whose first argument is the name of a file, or a part of it."""
_PATTERN_MAKERS = word_set("iglob glob rglob")
_OPENERS = word_set("open ZipFile GzipFile BZ2File LZMAFile")
"""Functions that open a file, with the mode after its name."""
_OTHER_KEYWORDS = word_set(
    "mode encoding errors newline buffering closefd sep delimiter header names index_col usecols dtype skiprows nrows",
    "parse_dates lines orient sheet_name engine compression low_memory na_values comment chunksize converters",
    "thousands decimal quotechar skipinitialspace recursive include_hidden unpack skip_header delim_whitespace columns",
    "quoting on_bad_lines count offset max_rows ndmin case_sensitive recurse_symlinks keep_default_na date_format",
)
"""Keywords of these functions that name no file."""
_TEXT_WRITERS = word_set("to_html to_latex to_markdown to_string dump")
"""Functions that write to a file if their only argument is one."""
_LISTINGS = word_set("iterdir walk scandir")
_OWN_FILE = "__file__"


def reads_paths(text: str) -> bool:
    """Whether a program may read a file that it knows as a path, and not by a name in the call."""
    return "Path" in text and any(name in text for name in ("read_text", "read_bytes", "open"))


def judge_file_use(node: ast.AST, is_inside: Callable[[str], bool]) -> Iterator[tuple[ReachKind, str]]:
    """Yield uses of a file whose name the text does not show, or that is guarded, or that is opened for writing."""
    match node:
        case ast.Call():
            yield from _judge_call(node, is_inside)
        case ast.Name(id="__file__", ctx=ast.Store()) | ast.Attribute(attr="__file__", ctx=ast.Store()):
            yield "files", "__file__ with another value"
        case ast.arg(arg="__file__") | ast.alias(asname="__file__") | ast.MatchAs(name="__file__"):
            yield "files", "__file__ with another value"


def _judge_call(node: ast.Call, is_inside: Callable[[str], bool]) -> Iterator[tuple[ReachKind, str]]:
    called = node.func
    name = called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""
    if name in PATH_MAKERS:
        given = [*node.args[:1], *(word.value for word in node.keywords if word.arg not in _OTHER_KEYWORDS)]
        if not all(map(_is_plain_path, given)) or any(isinstance(argument, ast.Starred) for argument in node.args):
            yield "files", f"{name} with a name that is not a plain text"
        for path in given:
            if (
                isinstance(path, ast.Constant)
                and isinstance(path.value, str)
                and path.value
                and not is_inside(path.value)
            ):
                yield "files", path.value
    if name in _TEXT_WRITERS and isinstance(called, ast.Attribute) and len(node.args) == 1:
        yield "files", name
    if name in _OPENERS:
        modes = [*node.args[1:2], *(word.value for word in node.keywords if word.arg in ("mode", None))]
        if isinstance(called, ast.Attribute) and name == "open":  # `Path.open` has the mode first.
            modes += node.args[:1] if not _is_module(called.value) else []
        for mode in modes:
            text = mode.value if isinstance(mode, ast.Constant) else None
            if not isinstance(text, str) or set(text) & set("wax+"):
                yield "files", "open for writing"


def _is_module(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("io", "codecs", "os", "gzip", "bz2", "lzma")


def _is_plain_path(node: ast.expr) -> bool:
    """Whether the value is a text in the program, `__file__`, or a number."""
    return isinstance(node, ast.Constant) or (isinstance(node, ast.Name) and node.id == _OWN_FILE)


def judge_path_step(node: ast.AST, is_base: bool) -> Iterator[tuple[ReachKind, str]]:
    """Yield steps from one path to another whose end the text does not show. `is_base`: an attribute of it is used."""
    match node:
        case ast.BinOp(op=ast.Div()) if not isinstance(node.right, ast.Constant):
            yield "files", "a path with a name that is not a plain text"
        case ast.Attribute(attr="parent") if not _is_own_directory(node.value):
            yield "files", "parent"
        case ast.Attribute(attr=name) if name in _LISTINGS and not _is_os(node.value):
            yield "files", f"{name}, and a secret may be among its files"
        case ast.Call(func=ast.Attribute(attr=name), args=[ast.Constant(value=str() as pattern), *_]) if (
            name in _PATTERN_MAKERS and _may_match_secret(pattern)
        ):
            yield "files", f"{pattern}, which may match a secret"
        case ast.Call(func=ast.Call(func=ast.Name(id="type"))) | ast.Assign(value=ast.Call(func=ast.Name(id="type"))):
            yield "reflection", "type of something, to make another"
        case ast.NamedExpr(value=ast.Call(func=ast.Name(id="type"))):
            yield "reflection", "type of something, to make another"
        case ast.Attribute(attr="__class__") if not is_base:
            yield "reflection", "__class__"


def _is_os(node: ast.expr) -> bool:
    """Whether this is the module `os`, whose listings give names alone."""
    return isinstance(node, ast.Name) and node.id == "os"


def _may_match_secret(pattern: str) -> bool:
    """Whether a pattern for names can match a file that is no source, text or data by its ending: `*`, `*nv`, `.e*`."""
    name = pattern.rpartition("/")[2]
    return find_language(name) == "unknown" or not name.rpartition(".")[2].isalnum()


def _is_own_directory(node: ast.expr) -> bool:
    """Whether this is the program's own file: `Path(__file__)` or `Path(__file__).resolve()`."""
    match node:
        case ast.Call(func=ast.Attribute(value=inner, attr="resolve" | "absolute")):
            return _is_own_directory(inner)
        case ast.Call(args=[ast.Name(id="__file__")]):
            return True
    return False
