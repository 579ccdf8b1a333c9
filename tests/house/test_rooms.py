"""What each room may touch: files, databases, key files, the terminal. Read from the source."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from support.pending import hold_for_each
from support.source_tree import FILES, FOLDERS, imports_in, name_of, nodes_of, room_of, strings_in, tree_of

IO_MODULES = {
    *("os", "pathlib", "sqlite3", "socket", "io", "tempfile", "shutil", "subprocess", "urllib.request", "http"),
    *("fcntl", "asyncio", "ssl", "threading", "multiprocessing", "time", "select", "signal", "random", "secrets"),
}
IO_CALLS = {
    *("open", "read_text", "write_text", "write_bytes", "unlink", "mkdir", "iterdir", "glob", "stat", "exists"),
}
STARTS_PROCESSES = "verdict/parallel.py"
"""The one module of a pure room that may: it hands slices of a chain to processes."""


def modules_of(room: str) -> list[Path]:
    return [path for path in FILES if room_of(path) == room and name_of(path) != STARTS_PROCESSES]


def calls_in(path: Path) -> list[tuple[int, str]]:
    """Line and last name of everything that a file calls."""
    return [
        (node.lineno, node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", ""))
        for node in nodes_of(path)
        if isinstance(node, ast.Call)
    ]


@pytest.mark.parametrize("room", ["capsule", "verdict"])
def test_pure_rooms_touch_nothing(room: str) -> None:
    for path in modules_of(room):
        for line, module in imports_in(path):
            where = f"{name_of(path)}:{line}"
            if module == "pathlib" and path.name == "subject.py":
                continue  # A path as a value; the next test makes sure that nothing is opened by it.
            if room == "verdict" and path.name == "parallel.py" and module in ("os", "subprocess"):
                continue  # The one module of the judge that starts processes.
            assert module not in IO_MODULES, f"{where} imports {module}"
            assert module.split(".")[0] not in IO_MODULES - {"urllib.request"}, f"{where} imports {module}"
            if module == "importlib.resources":
                assert path.name == "verdict.py", where  # The codes are a file of the package.


@pytest.mark.parametrize("room", ["capsule", "verdict"])
def test_pure_rooms_open_nothing(room: str) -> None:
    for path in modules_of(room):
        for line, name in calls_in(path):
            assert name not in IO_CALLS, f"{name_of(path)}:{line} calls {name}"


@hold_for_each("files", FILES, name_of)
def test_print_only_in_the_command_line(path: Path) -> None:
    if room_of(path) != "cli":
        found = [f"{line}: {name}" for line, name in calls_in(path) if name in ("print", "input", "breakpoint")]
        assert found == [], name_of(path)


SQL_ROOMS = ("ledger/stores/", "ledger/foreign/", "agents/cursor/", "explorer/index/", "cli/verbs/demo/")
"""The stores, other tools' databases (read-only), Cursor's database, the Explorer's derived index, and the demo, which
tampers with its own copy."""
SQL = re.compile(
    r"\s*(SELECT\s.+\sFROM\s|INSERT\s+INTO\s|UPDATE\s+\w+\s+SET\s|DELETE\s+FROM\s|PRAGMA\s|CREATE\s+(TABLE|INDEX)\s"
    r"|DROP\s+(TABLE|TRIGGER|INDEX)\s|ALTER\s+TABLE\s|BEGIN\s+IMMEDIATE)",
    re.DOTALL,
)
SQL_DRIVERS = ("sqlite3", "psycopg", "psycopg_pool")
DRIVERS_ALLOWED = {"cli/verbs/doctor/checks.py": "reports which SQLite this is"}


@hold_for_each("files", FILES, name_of)
def test_sql_only_where_databases_are(path: Path) -> None:
    if name_of(path).startswith(SQL_ROOMS):
        return
    drivers = [f"{line}: {module}" for line, module in imports_in(path) if module.split(".")[0] in SQL_DRIVERS]
    statements = [f"{line}: {text[:60]!r}" for line, text in strings_in(path) if SQL.match(text)]
    assert statements == [], name_of(path)
    assert drivers == [] or name_of(path) in DRIVERS_ALLOWED, name_of(path)


def test_the_guard_knows_sql_when_it_sees_it() -> None:
    found = [text for path in FILES if "stores/sqlite/" in name_of(path) for _, text in strings_in(path)]
    assert sum(bool(SQL.match(text)) for text in found) > 20
    assert not SQL.match("Select the records FROM which to begin")


OTHER_ROOMS = [path for path in FILES if room_of(path) != "keys"]


@cache
def key_file_names() -> set[str]:
    """The names of key files, read from the source of `aver.keys`, so that a new one is guarded from its first day."""
    texts = {text for path in modules_of("keys") for _, text in strings_in(path)}
    names = {text for text in texts if re.fullmatch(r"[\w.-]*\w\.(?:json|seed|key|pub|pem|mac)", text)}
    return names - {"index.json"}  # That of a bundle, which holds public keys, too.


@hold_for_each("key files", OTHER_ROOMS, name_of)
def test_key_files_are_opened_by_keys_alone(path: Path) -> None:
    """Other rooms ask `aver.keys`: none of them has the name of a key file, or takes the functions that open one."""
    names = key_file_names()
    found = [f"{line}: {text}" for line, text in strings_in(path) if text.rpartition("/")[2] in names]
    found += [f"{line}: {module}" for line, module in imports_in(path) if module == "aver.keys.private_files"]
    assert found == [], name_of(path)


def test_the_guard_knows_the_key_files() -> None:
    assert {
        "keyring.json",
        "known_keys.json",
        "known_keys_pq.json",
        "sealed.json",
        "policy-0.mac",
        "policy-shared.mac",
    } <= key_file_names()


@hold_for_each("files", FILES, name_of)
def test_every_module_says_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(tree_of(path)), path


FOLDER_MAX = 16
"""Files in one folder, `__init__.py` not counted."""
LARGER_FOLDERS = {
    "cli/verbs": "one module for each verb, so that a verb is found by its name",
    "cli/verbs/gateway": "one module for each subcommand, for the same reason",
}


@hold_for_each("folders", FOLDERS, name_of)
def test_a_folder_can_be_taken_in_at_a_glance(folder: Path) -> None:
    files = [path.name for path in folder.glob("*.py") if path.name != "__init__.py"]
    assert len(files) <= FOLDER_MAX or name_of(folder) in LARGER_FOLDERS, sorted(files)


def test_importing_aver_costs_almost_nothing() -> None:
    script = "import sys, aver; print(sorted(m for m in sys.modules if m.split('.')[0] in {0}))"
    heavy = "{'orjson', 'nacl', 'cryptography', 'sqlite3', 'hashlib', 'asyncio'}"
    result = subprocess.run([sys.executable, "-c", script.format(heavy)], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
