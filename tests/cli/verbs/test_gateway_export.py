"""`aver gateway export`, and what a stranger does with the file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.act_ledgers import PARTNER, Acts, open_acts, prepare_home
from support.aver_command import Aver


@pytest.fixture
def acts(aver_home: Path, tmp_path: Path) -> Iterator[Acts]:
    prepare_home(aver_home)
    with open_acts(aver_home, tmp_path / "work") as opened:
        yield opened


def test_the_command_writes_a_file_that_anyone_verifies(acts: Acts, aver: Aver, tmp_path: Path) -> None:
    path, keys = tmp_path / "act.json", tmp_path / "keys.json"
    home = {"AVER_HOME": str(acts.ledger.config.home)}
    ran = aver("gateway", "export", acts.ids["delegated"], "--out", path, **home)
    assert ran.code == 0, ran
    assert "aver keys export ledger policy:0 policy:1 --out keys.json" in ran.out
    assert f"--key keys.json --key {PARTNER.public.ed25519}" in ran.out
    assert aver("gateway", "export", acts.ids["delegated"], "--out", path, **home).code == 2
    ran = aver("gateway", "export", acts.ids["confirmed"], "--out", path, "--force", "--json", **home)
    assert ran.json["action_id"] == acts.ids["confirmed"]
    assert ran.json["keys"] == {
        "export": ["ledger", acts.person.public.ed25519, "policy:0", "policy:1"],
        "others": [],
    }
    assert aver("keys", "export", *ran.json["keys"]["export"], "--out", keys, **home).code == 0
    elsewhere = {"AVER_HOME": str(tmp_path / "elsewhere")}
    ran = aver("verify", path, "--key", keys, "--json", **elsewhere)
    assert (ran.code, ran.json["status"]) == (0, "verified"), ran.json
    assert aver("verify", path, "--key", path, **elsewhere).code == 2  # Keys that come with the act prove nothing.
    assert aver("gateway", "export", "a_nothing", "--out", tmp_path / "no.json", **home).code == 2
    assert not (tmp_path / "no.json").exists()
