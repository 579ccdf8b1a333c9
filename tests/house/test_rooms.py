"""Who may import whom, and what may be touched in which room: read from the source, lazy imports included."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import aver

SOURCE = Path(aver.__file__).parent
ORDER: list[set[str]] = [
    {"errors", "clock", "home", "surroundings", "values"},
    {"capsule"},
    {"keys"},
    {"verdict"},
    {"ledger"},
    {"gate"},
    {"actions", "gateway", "protocol", "ingest"},
    {"adapters", "events", "install"},
    {"check"},
    {"mcp", "explorer"},
    {"cli"},
]
RANK = {room: rank for rank, rooms in enumerate(ORDER) for room in rooms}
FOUNDATION = ORDER[0]
FILES = sorted(path for path in SOURCE.rglob("*.py"))


def room_of(path: Path) -> str:
    first = path.relative_to(SOURCE).parts[0]
    return first.removesuffix(".py")


def imports_in(path: Path) -> Iterator[tuple[int, str]]:
    """Every module a file imports, wherever in it: at the top, inside functions, under TYPE_CHECKING."""
    tree = ast.parse(path.read_text("utf-8"))
    package = ["aver", *path.relative_to(SOURCE).with_suffix("").parts]
    for node in ast.walk(tree):
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
        elif (
            isinstance(node, ast.Call)
            and getattr(node.func, "id", getattr(node.func, "attr", "")) in ("import_module", "__import__")
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            yield node.lineno, str(node.args[0].value)


def home_of(name: str) -> str:
    """The room of a public name that was imported from `aver` itself."""
    module = getattr(aver, name).__module__ if name != "__version__" else "aver.errors"
    return str(module).split(".")[1]


def modules_of(room: str) -> list[Path]:
    return [path for path in FILES if room_of(path) == room]


def test_every_room_is_known() -> None:
    assert {room_of(path) for path in FILES} - {"__init__", "__main__"} <= set(RANK)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_go_one_way(path: Path) -> None:
    room = room_of(path)
    if room in ("__init__", "__main__"):
        return
    for line, module in imports_in(path):
        parts = module.split(".")
        if parts[0] != "aver" or len(parts) == 1:
            continue
        other = parts[1] if parts[1] in RANK else home_of(parts[1])
        allowed = other == room or RANK[other] < RANK[room] or (other in FOUNDATION and room in FOUNDATION)
        assert allowed, f"{path.relative_to(SOURCE)}:{line} imports {module}"


def test_rooms_in_braces_do_not_import_each_other() -> None:
    for rooms in ORDER[1:]:
        for room in rooms:
            for path in modules_of(room):
                found = {module.split(".")[1] for _, module in imports_in(path) if module.startswith("aver.")}
                assert not (found & (rooms - {room})), path


IO_MODULES = {"os", "pathlib", "sqlite3", "socket", "io", "tempfile", "shutil", "subprocess", "urllib.request", "http"}
IO_MODULES |= {
    "fcntl",
    "asyncio",
    "ssl",
    "threading",
    "multiprocessing",
    "time",
    "select",
    "signal",
    "random",
    "secrets",
}


@pytest.mark.parametrize("room", ["capsule", "verdict"])
def test_pure_rooms_touch_nothing(room: str) -> None:
    for path in modules_of(room):
        for line, module in imports_in(path):
            where = f"{path.relative_to(SOURCE)}:{line}"
            if module in ("pathlib",) and "Path" in path.read_text() and path.name == "subject.py":
                continue  # a path as a value; the next test holds it to that
            assert module not in IO_MODULES, f"{where} imports {module}"
            assert module.split(".")[0] not in IO_MODULES - {"urllib.request"}, f"{where} imports {module}"
            if module == "importlib.resources":
                assert path.name == "codes.py", where


@pytest.mark.parametrize("room", ["capsule", "verdict"])
def test_pure_rooms_open_nothing(room: str) -> None:
    forbidden = {
        "open",
        "read_text",
        "write_text",
        "write_bytes",
        "unlink",
        "mkdir",
        "iterdir",
        "glob",
        "stat",
        "exists",
    }
    for path in modules_of(room):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
                assert name not in forbidden, f"{path.relative_to(SOURCE)}:{node.lineno} calls {name}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_print_only_in_the_command_line(path: Path) -> None:
    if room_of(path) == "cli":
        return
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in ("print", "input", "breakpoint"), f"{path}:{node.lineno}"


def test_sql_only_in_the_ledger() -> None:
    for path in FILES:
        if room_of(path) not in ("ledger", "ingest", "cli"):
            assert "sqlite3" not in {module for _, module in imports_in(path)}, path


def test_key_files_are_opened_by_keys_alone() -> None:
    for path in FILES:
        if room_of(path) not in ("keys", "home", "cli"):
            text = path.read_text("utf-8")
            assert '"keyring.json"' not in text, path
            assert '"known_keys.json"' not in text, path


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_every_module_says_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text("utf-8"))), path


def test_no_vague_names() -> None:
    for path in FILES:
        assert path.stem not in ("utils", "util", "helpers", "helper", "manager", "common", "misc"), path


def test_importing_aver_costs_almost_nothing() -> None:
    import subprocess
    import sys

    script = "import sys, aver; print(sorted(m for m in sys.modules if m.split('.')[0] in {0}))"
    heavy = "{'orjson', 'nacl', 'cryptography', 'sqlite3', 'hashlib', 'asyncio'}"
    result = subprocess.run([sys.executable, "-c", script.format(heavy)], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
