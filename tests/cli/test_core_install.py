"""Verbs in the core install: `pip install .` without an extra. Each works, or says which extra it needs."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from support.aver_command import Aver
from support.confinements import needs_wrapper
from support.source_tree import REPOSITORY

BARRIER = """
import sys
from importlib.machinery import PathFinder

ABSENT = frozenset({names!r})


class Barrier(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in ABSENT else super().find_spec(name, path, target)


sys.meta_path[sys.meta_path.index(PathFinder)] = Barrier
"""
"""Python loads it at its start, in this process and in its children: as if these packages were not installed."""

WRITE = ("gateway", "act", "WriteWorkspaceFile", "--inputs", '{"relpath": "a.txt", "content": "hi\\n"}')


def plain_name(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found is not None
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def core_distributions() -> set[str]:
    """The distributions that a core install brings: those of pyproject.toml, and all that they need."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    found: set[str] = set()
    left = [plain_name(each) for each in project["dependencies"]]
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += [plain_name(each) for each in metadata.requires(name) or () if "extra ==" not in each]
    return found


@pytest.fixture
def core(aver: Aver, tmp_path: Path) -> Aver:
    kept = {*core_distributions(), "aver-ledger", "pip", "setuptools"}
    names = sorted(
        name
        for name, owners in metadata.packages_distributions().items()
        if not kept.intersection(plain_name(owner) for owner in owners)
    )
    assert "mcp" in names
    barrier = tmp_path / "barrier"
    barrier.mkdir()
    (barrier / "sitecustomize.py").write_text(BARRIER.format(names=names))
    aver.environment["PYTHONPATH"] = str(barrier)
    return aver


def test_the_barrier_holds(core: Aver) -> None:
    words = [sys.executable, "-c", "import mcp"]
    done = subprocess.run(words, capture_output=True, text=True, env=core.environment, check=False)
    assert "No module named 'mcp'" in done.stderr


@pytest.mark.more
def test_parts_run_apart(core: Aver) -> None:
    assert core.process("gateway", "init").code == 0
    denied = core.process(*WRITE, "--json")
    assert (denied.code, denied.json["reason_code"]) == (5, "POLICY_UNAVAILABLE"), denied.err
    assert core.process("gateway", "status").code == 1
    up = core.started("gateway", "up", "--workspace", str(core.directory), stdin=subprocess.DEVNULL)
    try:
        assert up.stderr is not None
        words = b""
        while b"all parts run" not in words:
            line = up.stderr.readline()
            assert line, words
            words += line
        done = core.process(*WRITE, "--workspace", core.directory, "--json")
        assert (done.code, done.json["reason_code"]) == (0, "ALLOW"), done.err
        assert core.process("gateway", "status").code == 0
    finally:
        up.send_signal(signal.SIGTERM)
        up.communicate()
    assert up.returncode == 0


def test_a_gateway_elsewhere_is_asked(core: Aver) -> None:
    done = core.process(*WRITE, "--json", AVER_GATEWAY=f"unix:{core.directory}/none.sock")
    assert (done.code, done.json["reason_code"]) == (5, "EXECUTOR_UNAVAILABLE"), done.err


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ("gateway", ("gateway", "mcp")),
        ("gateway", ("proxy", "--name", "shop", "--http", "http://127.0.0.1:9/mcp")),
        pytest.param("gateway", ("gateway", "run", "--", "python3", "-c", "pass"), marks=needs_wrapper),
        pytest.param("gateway", ("gateway", "smoke", "--out", "report.json"), marks=needs_wrapper),
        ("mcp", ("mcp",)),
        ("explorer", ("serve",)),
    ],
)
def test_a_verb_that_needs_an_extra_names_it(core: Aver, extra: str, words: tuple[str, ...]) -> None:
    done = core.process(*words)
    assert done.code == 3, done.err
    assert f"pip install 'aver-ledger[{extra}]'" in done.err
    assert f"pip install '.[{extra}]'" in done.err
