"""systemd units and the crontab: that their programs take them, and that Aver takes their command lines."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from aver.cli.main import VERBS
from aver.cli.options import Parser

ROOT = Path(__file__).resolve().parents[2]
UNITS = sorted((ROOT / "integrations" / "systemd").iterdir())
CRONTAB = ROOT / "integrations" / "cron" / "aver"
INSTALLED = "/usr/local/bin/aver"


def settings(unit: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in unit.read_text().splitlines():
        if line and not line.startswith(("#", "[")):
            key, value = line.split("=", 1)
            found.setdefault(key, []).append(value)
    return found


def accepted(arguments: list[str]) -> bool:
    """Whether Aver understands a command line. It raises where it does not."""
    verb = arguments[0]
    module = import_module(VERBS[verb][0])
    parser = Parser(prog=f"aver {verb}", summary=VERBS[verb][1], examples=module.EXAMPLES)
    module.add_arguments(parser)
    given = parser.parse_args(arguments[1:])
    return given is not None


@pytest.mark.parametrize("unit", [one for one in UNITS if one.suffix == ".service"], ids=lambda unit: unit.name)
def test_a_service_runs_a_command_that_aver_takes(unit: Path) -> None:
    (command,) = settings(unit)["ExecStart"]
    program, *arguments = shlex.split(command)
    assert program == INSTALLED
    assert accepted(arguments)
    assert settings(unit)["Environment"] == ["AVER_HOME=/var/lib/aver"]
    for option in ("--metrics", "--git"):
        if option in arguments:
            place = Path(arguments[arguments.index(option) + 1])
            writable = settings(unit)["ReadWritePaths"][0].split()
            assert str(place) in writable or str(place.parent) in writable


def test_every_timer_has_its_service() -> None:
    names = {unit.name for unit in UNITS}
    for unit in UNITS:
        if unit.suffix == ".timer":
            assert f"{unit.stem}.service" in names


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_takes_them_all(tmp_path: Path) -> None:
    command = str(Path(sys.executable).with_name("aver"))
    for unit in UNITS:
        (tmp_path / unit.name).write_text(unit.read_text().replace(INSTALLED, command))
    paths = [str(tmp_path / unit.name) for unit in UNITS]
    done = subprocess.run(["systemd-analyze", "verify", *paths], capture_output=True, text=True, check=False)
    ours = [line for line in done.stderr.splitlines() if str(tmp_path) in line or "aver-" in line]
    assert (done.returncode, ours) == (0, [])


def test_the_crontab_s_lines_run_what_aver_takes() -> None:
    lines = [line for line in CRONTAB.read_text().splitlines() if re.match(r"[0-9*]", line)]
    assert len(lines) == 3
    for line in lines:
        *when, user, command = line.split(None, 6)
        assert len(when) == 5
        assert all(re.fullmatch(r"\*|[0-9]{1,2}", part) for part in when)
        assert (user, "%" in command) == ("aver", False)  # cron takes a % for the end of a line.
        inner = re.fullmatch(r'out=\$\((aver .*) 2>&1\) \|\| echo "\$out"', command)
        assert inner, command
        assert accepted(shlex.split(inner[1])[1:])
