"""Which tools there are: ours, and those that packages bring."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path

import pytest

from aver.agents.registry import AGENTS, ENTRY_POINT_GROUP, load_adapter, load_adapters
from aver.errors import NotFound
from support.agents.jsonl_tool import ADAPTER as TICKER


@pytest.mark.parametrize("tool", AGENTS)
def test_ours_are_called_as_they_are_listed(tool: str) -> None:
    assert load_adapter(tool).tool == tool


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory in which a package may be installed."""
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in ("brings_ticker", "brings_thief", "brings_trouble"):
        sys.modules.pop(name, None)


def brought(packages: Path, name: str, program: str) -> None:
    (packages / f"{name}.py").write_text(program)
    told = packages / f"{name}-1.0.dist-info"
    told.mkdir()
    (told / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (told / "entry_points.txt").write_text(f"[{ENTRY_POINT_GROUP}]\n{name} = {name}:ADAPTER\n")
    assert any(one.metadata["Name"] == name for one in distributions(path=[str(packages)]))


def test_a_package_brings_a_tool(packages: Path) -> None:
    brought(packages, "brings_ticker", "from support.agents.jsonl_tool import ADAPTER\n")
    assert load_adapter("ticker") is TICKER
    assert [adapter.tool for adapter in load_adapters()] == [*AGENTS, "ticker"]


def test_one_that_cannot_be_used_is_told_of_and_harms_nobody(packages: Path) -> None:
    brought(packages, "brings_trouble", "raise RuntimeError('no')\n")
    brought(packages, "brings_thief", "from aver.agents.claude_code.transcripts import ADAPTER\n")
    told: list[str] = []
    assert [adapter.tool for adapter in load_adapters(told.append)] == list(AGENTS)
    assert sorted(words.split(" is ")[0].split(" cannot")[0] for words in told) == [
        "the adapter brings_thief",
        "the adapter brings_trouble",
    ]


def test_a_tool_that_nobody_knows() -> None:
    with pytest.raises(NotFound, match="no adapter for nothing"):
        load_adapter("nothing")
