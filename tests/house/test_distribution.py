"""The distribution is named `aver-ledger`, and no text tells a person to install another one."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from support.source_tree import REPOSITORY

LEFT_OUT = {".git", ".venv", "venv", "build", "dist", "__pycache__", ".mypy_cache", ".ruff_cache", ".hypothesis"}
TEXTS = {".py", ".md", ".toml", ".yml", ".yaml", ".txt", ".json", ".sh", ".cfg", ""}

FORMER_NAMES = re.compile(r"""pip3?\s+install\b[^\n`]*[\s"']aver(?![\w./-])|(?<![\w.-])aver\[""")
"""`pip install aver`, also with options or quotes, and `aver[extra]`. `aver-ledger` is another word."""


def texts() -> Iterator[tuple[Path, str]]:
    for path in sorted(REPOSITORY.rglob("*")):
        parts = path.relative_to(REPOSITORY).parts
        if LEFT_OUT.intersection(parts) or any(part.endswith(".egg-info") for part in parts):
            continue
        if path.is_file() and path.suffix in TEXTS and path != Path(__file__):
            yield path, path.read_text("utf-8", "replace")


def test_the_pattern_finds_former_names_and_no_others() -> None:
    for text in ("pip install aver", "pip install 'aver'", 'pip install -U "aver[mcp]"', "needs aver[mcp]"):
        assert FORMER_NAMES.search(text), text
    for text in ("pip install aver-ledger", "pip install 'aver-ledger[mcp]'", "pip install .", "averages[0]"):
        assert not FORMER_NAMES.search(text), text


def test_no_text_names_another_distribution() -> None:
    found = [f"{path}: {hit[0]}" for path, text in texts() for hit in FORMER_NAMES.finditer(text)]
    assert found == []


def test_the_core_can_gate_seal_and_verify() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    names = {re.match(r"[A-Za-z0-9-]+", one)[0] for one in project["dependencies"]}
    core = {
        "PyNaCl",
        "orjson",
        "cryptography",
        "cedarpy",
        "tree-sitter",
        "tree-sitter-bash",
        "tomlkit",
        "jsonschema-rs",
        "h11",
    }
    assert project["name"] == "aver-ledger"
    assert names == core
    assert "policy" not in project["optional-dependencies"]
    assert project["scripts"] == {"aver": "aver.cli.main:main"}
