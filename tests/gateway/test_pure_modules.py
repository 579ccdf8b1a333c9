"""The modules that judge evidence touch nothing: no file, no socket, no clock, no chance."""

from __future__ import annotations

import ast
import re

import pytest

import aver.gateway
from support.source_tree import SOURCE, imports_in, nodes_of

PURE = re.findall(r"^    ([a-z_/]+)  ", (aver.gateway.__doc__ or "").partition("are pure")[2], re.MULTILINE)
"""The modules that the package calls pure."""

IO_MODULES = {
    *("os", "pathlib", "sqlite3", "socket", "io", "tempfile", "shutil", "subprocess", "urllib", "http", "fcntl"),
    *("asyncio", "ssl", "threading", "multiprocessing", "time", "select", "signal", "random", "secrets", "uuid"),
}
ROOMS = {"capsule", "errors", "fast_dataclass", "gateway", "keys", "lazy_pattern", "log", "submodule", "text"}
"""The rooms that a pure module may use. `keys` has files, too: those modules are left out below."""

GRAMMAR = "aver.gate.policy.annotations"
"""The grammar of patches is the rules' own, and pure."""

KEY_MODULES = {"mac_keys", "public_key", "ring", "statement"}
PACKAGE_FILES = {"codes", "specs"}
"""These read files of the package itself, which are part of the program."""


def test_there_are_pure_modules() -> None:
    assert {"request", "proof/evidence", "proof/predicate", "proof/attestation"} <= set(PURE)


@pytest.mark.parametrize("name", PURE)
def test_a_pure_module_touches_nothing(name: str) -> None:
    path = SOURCE / "gateway" / f"{name}.py"
    for line, module in imports_in(path):
        where = f"{name}.py:{line} imports {module}"
        parts = module.split(".")
        assert parts[0] not in IO_MODULES, where
        assert module != "importlib.resources" or name in PACKAGE_FILES, where
        if parts[0] == "aver" and len(parts) > 1:
            assert parts[1] in ROOMS or module == GRAMMAR, where
            assert parts[1] != "gateway" or "/".join(parts[2:]) in PURE, where
            assert parts[1] != "keys" or parts[2] in KEY_MODULES, where
    calls = [node.func for node in nodes_of(path) if isinstance(node, ast.Call)]
    names = {call.id if isinstance(call, ast.Name) else getattr(call, "attr", "") for call in calls}
    assert names.isdisjoint({"open", "now", "utcnow", "today", "urandom", "read_text", "write_text", "write_bytes"})
