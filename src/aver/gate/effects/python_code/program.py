r"""Looks into a whole Python program that a command would run: `python repro.py`, `python -c …`, `python - <<EOF`.

A program passes more strictly than a change of the workspace's own code does, because a command runs it at once. Aver
parses it, and adds these findings to those of `code_scan`:

    imports      a module of the standard library that is not in the list of harmless ones
    os           a function of `os` that is not in the list of harmless ones
    open, Path   a file whose name is not a plain text, or that is opened for writing: see `files`
    tests        a test run with options or files that are not plain: see `test_runs`
    files        a function that changes, moves or deletes files
    texts        a URL, or a path that leads out of the workspace or to something guarded
    dunder       a name such as `__globals__`, by which a program gets at everything
    detours      a module or a maker of files under another name (`random._os`, `f = open`), frames, and functions of
                 harmless modules that reach out, load code or find objects (`gc.get_objects`, `logging.FileHandler`)

    packages     a package that Aver does not know, used in a way that may reach out: a function that sends, connects,
                 runs or loads by its name, or a text that may be the name of a host

Modules of the workspace and of others may be imported. The session's memory says whether a file of the workspace was
changed unseen, and installing a package is asked about. `packages` holds for all modules that are neither of Python
itself, nor beside the program, nor in a list of harmless ones.

    >>> found = scan_python_program("import shutil\nshutil.rmtree('src')\n", is_inside=lambda path: True)
    >>> [(reach.kind, reach.line, reach.word) for reach in found]
    [('code', 1, 'import shutil'), ('files', 2, 'rmtree')]
"""

from __future__ import annotations

import ast
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from aver.gate.effects.code_scan.language import find_language
from aver.gate.effects.code_scan.reach import WORD_MAX, Reach, ReachKind
from aver.gate.effects.code_scan.scan import FINDINGS_MAX, scan_text
from aver.gate.effects.python_code.files import PATH_MAKERS, judge_file_use, judge_path_step, reads_paths, word_set
from aver.gate.effects.python_code.test_runs import judge_test_run
from aver.lazy_pattern import lazy_pattern

NODES_MAX = 20_000
"""Parts of a program that Aver looks at. A longer program is not looked into."""


_HARMLESS_MODULES = word_set(
    "__future__ abc array ast argparse bisect calendar cmath collections colorsys contextlib copy csv",
    "dataclasses datetime decimal difflib dis enum errno fnmatch fractions functools gc glob graphlib hashlib",
    "heapq hmac html inspect io itertools json keyword locale logging math numbers operator os pathlib",
    "platform pprint queue random re reprlib secrets sched statistics string struct sys sysconfig tempfile",
    "textwrap threading time token traceback tracemalloc types typing unicodedata unittest uuid warnings",
    "weakref zoneinfo opcode codecs stat contextvars copyreg binascii base64 ipaddress concurrent asyncio",
    "atexit this tomllib symtable shlex optparse getopt gzip bz2 lzma zipfile",
)
"""Modules of the standard library that reach nowhere, or whose functions that do have rules of their own."""

_HARMLESS_OS = word_set(
    "path getcwd listdir scandir walk sep linesep curdir pardir extsep pathsep name stat lstat fspath",
    "fsencode fsdecode cpu_count getpid stat_result PathLike devnull access F_OK R_OK strerror",
    "get_terminal_size",
)
_FILE_CHANGES = word_set(
    "write_text write_bytes unlink rmdir rmtree rename renames symlink_to hardlink_to link_to chmod lchmod",
    "chown lchown copyfile copy2 copytree copyfileobj move remove removedirs makedirs mkdir touch symlink",
    "link truncate mkfifo mknod utime extractall extract savetxt savez save to_csv to_json to_pickle to_sql",
    "to_parquet to_excel tofile dump_stats savefig NamedTemporaryFile mkstemp savez_compressed imwrite imsave",
    "write_csv write_parquet write_json write_ipc write_image write_html to_feather to_stata to_hdf to_orc to_xml",
    "ExcelWriter HDFStore memmap open_memmap",
)
_HARMLESS_DUNDERS = word_set(
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
_ARCHIVE_MEMBERS: dict[str, frozenset[str]] = {
    "zipfile": word_set("ZipFile ZipInfo Path is_zipfile BadZipFile LargeZipFile ZIP_STORED ZIP_DEFLATED"),
    "gzip": word_set("open GzipFile BadGzipFile"),
    "bz2": word_set("open BZ2File"),
    "lzma": word_set("open LZMAFile LZMAError"),
    "shlex": word_set("split quote join"),
}
"""What a program may use of these modules. The rest of them unpacks, decodes, reads files that a text names, or runs as
a program of its own."""
_HARMLESS_SYS = word_set(
    "argv path stdin stdout stderr exit version version_info platform maxsize byteorder getsizeof getrecursionlimit",
    "setrecursionlimit executable flags implementation float_info int_info hash_info hexversion intern getrefcount",
    "exc_info prefix base_prefix exec_prefix maxunicode getdefaultencoding getfilesystemencoding api_version",
    "stdlib_module_names builtin_module_names dont_write_bytecode set_int_max_str_digits float_repr_style",
    "get_int_max_str_digits thread_info getswitchinterval orig_argv __stdout__ __stderr__",
)
_DETOURS = word_set(
    "os sys io posix posixpath nt pty socket ssl builtins importlib pkgutil runpy shutil subprocess multiprocessing",
    "ctypes linecache tokenize pickle marshal urllib webbrowser pydoc zipimport codeop popen2 mp",
)
"""Modules that many others import, and that a program would reach through those."""
_POWERS: dict[str, ReachKind] = {
    **dict.fromkeys(
        word_set(
            "subprocess_shell subprocess_exec SubprocessProtocol start_new_process ProcessPoolExecutor",
            "breakpointhook pipe_pager pipepager run_process",
        ),
        "process",
    ),
    **dict.fromkeys(
        word_set(
            "create_datagram_endpoint create_server create_unix_server create_unix_connection open_unix_connection",
            "start_server start_unix_server connect_read_pipe connect_write_pipe connect_accepted_socket sock_connect",
            "sock_sendto sock_sendall getaddrinfo getnameinfo sendfile HTTPHandler SocketHandler DatagramHandler",
            "SMTPHandler SysLogHandler load_dataset fetch_openml get_rdataset read_clipboard read_gbq",
        ),
        "network",
    ),
    **dict.fromkeys(
        word_set(
            "get_type_hints ForwardRef get_annotations evaluate_forward_ref LambdaType FunctionType CodeType",
            "MethodType resolve_name loadTestsFromName loadTestsFromNames discover read_pickle load_module exec_module",
            "exec_ find_spec spec_from_file_location addsitedir load_lexer_from_file load_formatter_from_file rundocs",
            "runstring measure f2py ImportString import_string",
        ),
        "code",
    ),
    **dict.fromkeys(
        word_set(
            "modules currentframe getouterframes getinnerframes walk_stack walk_tb stack get_objects get_referrers",
            "get_referents getmodule getclosurevars attrgetter methodcaller f_builtins f_globals f_locals f_back",
            "f_code gi_frame gi_code cr_frame cr_code ag_frame ag_code tb_frame tb_next settrace setprofile",
            "getattr_static getmembers getmembers_static get_field get_original temp_original getter",
        ),
        "reflection",
    ),
    **dict.fromkeys(
        word_set(
            "FileHandler RotatingFileHandler TimedRotatingFileHandler WatchedFileHandler FileType TemporaryFile",
            "SpooledTemporaryFile TemporaryDirectory mkdtemp mktemp fileConfig dictConfig parents BaseRotatingHandler",
            "FrameSummary StackSummary warn_explicit formatwarning showwarning _Printer__filenames _Printer__lines",
        ),
        "files",
    ),
}
"""Functions and attributes of harmless modules, by which a program does what its imports do not say."""
_POWERFUL_KEYWORDS: dict[str, ReachKind] = {
    "eval_str": "code",
    "allow_pickle": "code",
    "filename": "files",
    "fromfile_prefix_chars": "files",
}
_REACHING_PACKAGES = word_set(
    "aver pip setuptools pkg_resources distutils _distutils_hack six git docker psutil trio anyio execnet nox tox",
    "IPython ipykernel jupyter_client selenium playwright pyppeteer curl_cffi treq ansible fsspec s3fs gcsfs",
    "smart_open celery ray huggingface_hub py virtualenv build poetry conda uv",
)
"""Packages that start programs, open connections or load code by purpose, and Aver, which has the keys."""
_MODULE_LIKE = _HARMLESS_MODULES | _DETOURS

_HARMLESS_PACKAGES = word_set(
    "numpy pandas scipy matplotlib seaborn sklearn networkx pytest hypothesis attr attrs pydantic dateutil pytz tzdata",
    "tomli tomli_w tomlkit yaml ruamel orjson ujson simplejson msgpack jsonschema markupsafe tabulate colorama",
    "termcolor tqdm more_itertools toolz cytoolz sortedcontainers packaging semver typing_extensions mypy_extensions",
    "regex chardet charset_normalizer unidecode pygments markdown mistune docutils faker babel humanize inflection",
    "freezegun deepdiff dirty_equals shapely pyproj xarray polars pyarrow numba statsmodels PIL cv2 skimage",
)
"""Packages in which a program finds nothing by which it reaches out, but for what other rules find."""

_SENDING_CALLS = word_set(
    "connect connect_ex create_connection open_connection send sendall sendto sendmail send_message send_file post",
    "upload upload_file put_object download download_file urlopen urlretrieve publish execute shell system spawn popen",
    "Popen ssh sftp scp ftp exec_command check_output check_call getoutput sendline interact serve_forever listen",
    "load_dataset from_pretrained call_command import_string import_module load_entry_point load_extension sympify",
    "parse_expr lambdify",
)
"""Functions that reach out by their names, of whatever object: where a program uses a package that is not known."""

_AMBIGUOUS_CALLS = word_set(
    "get put patch delete head request requests run call cmd command invoke start launch open load loads fetch",
    "retrieve query push pull clone submit login client Client session Session server Server Connection connection",
    "Request main cli whois resolve lookup dial stream subscribe emit notify alert tweet message mail",
)
"""Functions that may reach out by their names: where they are the unknown package's own."""

_HOST = lazy_pattern(
    r"\.?(?:[a-z0-9_-]{1,63}\.){1,8}[a-z]{2,24}(?::[0-9]{1,5})?(?:/\S{0,200})?"
    r"|(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?::[0-9]{1,5})?|[\w.+-]{1,80}@[\w.-]{1,80}",
    re.IGNORECASE,
)
_FILE_ENDINGS = word_set(
    "csv tsv json jsonl txt toml yaml yml ini cfg xml html css js ts md rst log dat npy npz parquet"
)


def scan_python_program(
    text: str,
    *,
    is_inside: Callable[[str], bool],
    may_read: Callable[[str], bool] | None = None,
    may_import: Callable[[str], bool] | None = None,
    is_own_module: Callable[[str], bool] = lambda name: False,
) -> tuple[Reach, ...]:
    """Return the places at which a Python program reaches out.

    `is_inside` says whether a path, as the program writes it, stays in the workspace and leads to nothing guarded.
    `may_read` says so of paths that may be read, if files outside of the workspace may be. `may_import` says so of
    directories that modules may be imported from, if not all inside are.
    `is_own_module` says whether a module of this name lies beside the program.
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
    # A program that adds a directory to those it imports from would run what lies there.
    extends = (may_read or may_import) is not None and any(_extends_imports(node) for node in ast.walk(tree))
    is_inside = (may_import if extends else may_read) or is_inside
    plain = _PlainUses()
    unknown = _find_unknown_names(tree, is_own_module)
    steps = reads_paths(text)
    for count, node in enumerate(ast.walk(tree)):
        if count >= NODES_MAX:
            found[Reach("unreadable", 0, f"more than {NODES_MAX} parts")] = None
            break
        plain.note(node)
        paths = (*judge_file_use(node, is_inside), *(judge_path_step(node, plain.is_base(node)) if steps else ()))
        runs = judge_test_run(node, plain.is_called(node), may_import or is_inside) if "main" in text else ()
        packages = _judge_unknown_use(node, unknown, plain) if unknown.packages or unknown.members else ()
        for kind, word in (*_judge_node(node, is_inside), *_judge_detour(node, plain), *paths, *runs, *packages):
            found[Reach(kind, getattr(node, "lineno", 0), word[:WORD_MAX])] = None
    return tuple(sorted(found, key=lambda reach: reach.line))[:FINDINGS_MAX]


def _extends_imports(node: ast.AST) -> bool:
    """Whether a part of a program names the directories that modules are imported from."""
    match node:
        case ast.Attribute(attr="path", value=ast.Name(id="sys")) | ast.Attribute(attr="__path__"):
            return True
        case ast.ImportFrom(module="sys") | ast.Name(id="__path__"):
            return True
    return False


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
                if name.name not in _ARCHIVE_MEMBERS.get(module, (name.name,)):
                    yield "code", f"from {module} import {name.name}"
                yield from _judge_name(name.name, node)
        case ast.Name():
            yield from _judge_name(node.id, node)
        case ast.Attribute():
            if isinstance(node.value, ast.Name) and node.value.id == "os" and node.attr not in _HARMLESS_OS:
                yield "process", f"os.{node.attr}"
            if isinstance(node.value, ast.Name) and node.attr not in _ARCHIVE_MEMBERS.get(node.value.id, (node.attr,)):
                yield "code", f"{node.value.id}.{node.attr}"
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
    if module in ("os", "sys") and alias not in (None, module):
        yield "reflection", f"import {module} as {alias}"
    if top in _REACHING_PACKAGES or (top in _ARCHIVE_MEMBERS and alias not in (None, module)):
        yield "code", f"import {module}"


class _UnknownNames(NamedTuple):
    """The names by which a program knows packages that Aver does not know: the packages, and what it takes of them."""

    packages: frozenset[str]
    members: frozenset[str]
    """`*` stands for all of a package."""
    is_own_module: Callable[[str], bool]

    def is_unknown_package(self, module: str) -> bool:
        top = module.partition(".")[0]
        is_known = top in sys.stdlib_module_names or top in _HARMLESS_PACKAGES
        return not is_known and not self.is_own_module(top)

    def is_member(self, node: ast.expr) -> bool:
        """Whether something is reached through such a package: `pkg.a`, `pkg.make().a`, or a name taken of it."""
        while isinstance(node, ast.Attribute | ast.Call | ast.Subscript):
            node = node.func if isinstance(node, ast.Call) else node.value
        named = node.id if isinstance(node, ast.Name) else ""
        return bool(named) and (named in self.packages or named in self.members or "*" in self.members)


def _find_unknown_names(tree: ast.Module, is_own_module: Callable[[str], bool]) -> _UnknownNames:
    packages: set[str] = set()
    members: set[str] = set()
    empty = _UnknownNames(frozenset(), frozenset(), is_own_module)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            named = [(name.asname or name.name.partition(".")[0], name.name) for name in node.names]
            packages.update(given for given, module in named if empty.is_unknown_package(module))
        elif isinstance(node, ast.ImportFrom) and not node.level and empty.is_unknown_package(node.module or ""):
            members.update(name.asname or name.name for name in node.names)
    return empty._replace(packages=frozenset(packages), members=frozenset(members))


def _judge_unknown_use(node: ast.AST, unknown: _UnknownNames, plain: _PlainUses) -> Iterator[tuple[ReachKind, str]]:
    """Yield uses by which a package that Aver does not know may reach out."""
    words: list[str] = []
    match node:
        case ast.ImportFrom() if not node.level and unknown.is_unknown_package(node.module or ""):
            words = [name.name for name in node.names if name.name in _SENDING_CALLS | _AMBIGUOUS_CALLS]
        case ast.Attribute():
            reaches = node.attr in _SENDING_CALLS or (node.attr in _AMBIGUOUS_CALLS and unknown.is_member(node))
            words = [node.attr] if reaches else []
        case ast.Call(func=ast.Name(id=name)) if "*" in unknown.members:
            words = [name] if name in _SENDING_CALLS | _AMBIGUOUS_CALLS else []
        case ast.Name(ctx=ast.Load()) if node.id in unknown.packages and not plain.is_base(node):
            words = [node.id]  # Under another name, or found by a computed one.
        case ast.Constant(value=str() as text) if _HOST.fullmatch(text.strip()):
            ending = text.strip().rpartition(".")[2].lower()
            if ending not in _FILE_ENDINGS and find_language(text.strip()) == "unknown":
                yield "network", text.strip()
    for word in words:
        yield "code", f"{word} of a package that Aver does not know"


class _PlainUses:
    """Notes the parts of a program that may name a module or a maker of files: a parent is noted before its parts."""

    def __init__(self) -> None:
        self._bases: set[int] = set()
        self._called: set[int] = set()

    def note(self, node: ast.AST) -> None:
        match node:
            case ast.Attribute():
                self._bases.add(id(node.value))
            case ast.Call():
                self._called.add(id(node.func))
                if isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "issubclass"):
                    self._allow_types(node.args[1:])
            case ast.arg() | ast.AnnAssign():
                self._allow_types([node.annotation])
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._allow_types([node.returns])

    def _allow_types(self, nodes: Iterable[ast.AST | None]) -> None:
        self._called.update(id(part) for node in nodes if node is not None for part in ast.walk(node))

    def is_base(self, node: ast.AST) -> bool:
        return id(node) in self._bases

    def is_called(self, node: ast.AST) -> bool:
        return id(node) in self._called


def _judge_detour(node: ast.AST, plain: _PlainUses) -> Iterator[tuple[ReachKind, str]]:
    """Yield ways to a module or function that go around its own name."""
    match node:
        case ast.Name(ctx=ast.Load()):
            if (node.id in ("os", "sys") or node.id in _ARCHIVE_MEMBERS) and not plain.is_base(node):
                yield "reflection", f"{node.id} handed on"
            if node.id in PATH_MAKERS and not plain.is_called(node) and not plain.is_base(node):
                yield "files", f"{node.id} under another name"
        case ast.Attribute():
            yield from _judge_attribute(node, plain)
        case ast.ImportFrom() if not node.level:
            is_library = (node.module or "").partition(".")[0] in sys.stdlib_module_names
            for name in node.names:
                yield from _judge_member(name.name, is_library)
                if name.name in PATH_MAKERS and name.asname not in (None, name.name):
                    yield "files", f"{name.name} under another name"
                if node.module == "sys" and name.name not in _HARMLESS_SYS:
                    yield "reflection", f"from sys import {name.name}"
                if name.name == "*" and is_library:
                    yield "reflection", f"from {node.module} import *"
        case ast.keyword() if node.arg in _POWERFUL_KEYWORDS:
            yield _POWERFUL_KEYWORDS[node.arg], node.arg
        case ast.MatchClass() if node.kwd_attrs:
            for attribute in node.kwd_attrs:
                yield from _judge_member(attribute, False)


def _judge_attribute(node: ast.Attribute, plain: _PlainUses) -> Iterator[tuple[ReachKind, str]]:
    base = node.value.id if isinstance(node.value, ast.Name) else ""
    root = node.value
    while isinstance(root, ast.Attribute):
        root = root.value
    yield from _judge_member(node.attr, isinstance(root, ast.Name) and root.id in _MODULE_LIKE)
    if base == "sys" and node.attr not in _HARMLESS_SYS:
        yield "reflection", f"sys.{node.attr}"
    is_free = not plain.is_called(node) and not plain.is_base(node)
    if node.attr in PATH_MAKERS and is_free and base in _MODULE_LIKE:
        yield "files", f"{node.attr} under another name"


def _judge_member(name: str, is_library: bool) -> Iterator[tuple[ReachKind, str]]:
    """Judge the name of something inside of something else. `is_library`: of a module of the standard library."""
    is_private = name.startswith("_") and not name.endswith("__")
    if name.strip("_") in _DETOURS and not name.startswith("__"):
        yield "reflection", f"{name} through another module"
    elif is_library and is_private:
        yield "reflection", name
    elif name in _POWERS:
        yield _POWERS[name], name


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
        else:
            named = str(node.args[1].value)  # type: ignore[attr-defined]
            is_known = named in _FILE_CHANGES or named in _NAMES or named in PATH_MAKERS
            if is_known or next(_judge_member(named, True), None) is not None:
                yield "reflection", f"getattr {named}"
    # `model.eval()` is harmless; a method of this name that gets a text evaluates it.
    if name in ("eval", "exec") and isinstance(called, ast.Attribute) and (node.args or node.keywords):
        yield "code", name
    # `Path.replace` moves a file and has one argument. `str.replace` has two.
    if name == "replace" and isinstance(called, ast.Attribute) and len(node.args) + len(node.keywords) == 1:
        yield "files", "replace"


def _judge_text(text: str, is_inside: Callable[[str], bool]) -> Iterator[tuple[ReachKind, str]]:
    if "://" in text:
        yield "network", text.strip()
    # Only a text without blanks in it is a path; prose in a message may have slashes.
    name = text.strip()
    looks_like_path = name.startswith((".", "~", "/")) or "/" in name
    if looks_like_path and len(name) > 1 and not any(mark.isspace() for mark in name) and not is_inside(name):
        yield "files", name
