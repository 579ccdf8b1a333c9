"""The first tier needs Python, make and the package index: no test of it reads what npm installs.

`support.node` holds this while the tests run, on every machine: with the page's parts installed and without. These
tests are of the first tier themselves, so they show that it does.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.node import PARTS, ROOT, WEB, find_node, run_page_sources
from support.page_verdicts import VERIFIER

NPM_WORD = re.compile(r"""["'/]node_modules["'/]""")


def import_in_node(path: Path) -> subprocess.CompletedProcess[str]:
    command = [find_node(), "--input-type=module", "-e", "await import(process.argv[1])", path.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def failure() -> str:
    """How the sources refuse a fixture of this module."""
    with pytest.raises(pytest.fail.Exception) as caught:
        run_page_sources("-e", "1")
    return str(caught.value)


def test_sources_of_the_page_refuse_a_test_of_this_tier(failure: str) -> None:
    assert "mark it `more`" in failure
    with pytest.raises(pytest.fail.Exception, match="mark it `more`"):
        run_page_sources("-e", "1")


@pytest.mark.more
def test_sources_of_the_page_run_for_the_next_tier() -> None:
    names = run_page_sources(
        "--input-type=module", "-e", "console.log(Object.keys(await import('./src/verify/json.ts')))"
    )
    assert "readJson" in names


@pytest.mark.parametrize("name", ["src/verify/json.ts", "node_modules/preact/package.json", "tests/judge_ledger.mjs"])
def test_node_refuses_them_by_any_other_way(name: str) -> None:
    done = import_in_node(WEB / name)
    assert done.returncode != 0
    assert "is not for every tier: use try_page_sources" in done.stderr


def test_node_runs_the_built_page() -> None:
    assert import_in_node(VERIFIER).returncode == 0


def find_readers() -> Iterator[str]:
    """The tests that name the directory of the page's parts by themselves."""
    for path in sorted((ROOT / "tests").rglob("*.py")):
        lines = path.read_text(encoding="utf-8").splitlines()
        if any(NPM_WORD.search(line) and re.search(r"\b(WEB|ROOT|REPOSITORY|web)\b", line) for line in lines):
            yield path.relative_to(ROOT / "tests").as_posix()


def find_users() -> Iterator[str]:
    """The modules of the first tier that import the path of the parts, or of one."""
    for path in sorted((ROOT / "tests").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if not re.search(r"\b(PARTS|AXE)\b", text) or "pytest.mark.browser" in text:
            continue
        imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
        names = {(node.module, one.name) for node in imports for one in node.names}
        if names & {("support.node", "PARTS"), ("support.browser_pages", "AXE")}:
            yield path.name


def test_only_tests_in_a_browser_read_them_in_python() -> None:
    assert list(find_readers()) == ["support/node.py"]
    assert set(find_users()) == {"browser_pages.py"}
    assert PARTS.parent == WEB
