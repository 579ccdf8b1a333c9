"""The settings of the gate: taken as written, or refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from aver.config import load_config
from aver.errors import BadInput
from aver.gate.decision import Thresholds
from aver.gate.settings import GateSettings, read_gate_settings


def settings(home: Path, text: str) -> GateSettings:
    home.mkdir(mode=0o700, exist_ok=True)
    (home / "config.toml").write_text(text, encoding="utf-8")
    return read_gate_settings(load_config(home=home))


def test_none_are_needed(tmp_path: Path) -> None:
    assert read_gate_settings(load_config(home=tmp_path)) == GateSettings()
    assert GateSettings().thresholds == Thresholds(0.05, None)


def test_all_of_them(tmp_path: Path) -> None:
    found = settings(
        tmp_path,
        '[gate]\npolicy = "rules"\npass_below = 0.1\nskip_above = 1\nmax_retries = 5\ntrusted_servers = ["files"]\n'
        '[gate.groups]\nreviewers = ["a", "b"]\n',
    )
    assert found == GateSettings(
        policy=tmp_path / "rules",
        thresholds=Thresholds(0.1, 1.0),
        max_retries=5,
        trusted=frozenset({"files"}),
        groups={"reviewers": frozenset({"a", "b"})},
    )


@pytest.mark.parametrize(
    "line",
    [
        "pass_bellow = 0.1",
        "pass_below = 5",
        "pass_below = nan",
        "pass_below = true",
        'pass_below = "0.1"',
        "pass_below = 0.5\nskip_above = 0.4",
        "skip_above = -0.1",
        "max_retries = 0",
        'caution = "loose"',
        "caution = true",
        'caution = ["strict"]',
        "max_retries = 2.5",
        'policy = ""',
        "policy = 3",
        'trusted_servers = "files"',
        "trusted_servers = [1]",
        "groups = []",
        'groups = { reviewers = "a" }',
    ],
)
def test_what_is_not_understood_is_refused_by_name(tmp_path: Path, line: str) -> None:
    with pytest.raises(BadInput, match=r"\[gate\]") as refused:
        settings(tmp_path, f"[gate]\n{line}\n")
    assert line.split()[0].rstrip("w") in refused.value.message or "skip_above" in refused.value.message
