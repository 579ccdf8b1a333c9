"""The README from a clean copy of the checkout, on a machine that has Python and make and nothing of ours."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from support.doc_pages import ROOT, run_page
from support.real_home import link_package_settings

LEFT_BEHIND = (
    *(".git", ".venv", ".demo", "node_modules", "build", "dist"),
    *("*.egg-info", "__pycache__", ".*_cache", ".hypothesis"),
)


@pytest.mark.more
def test_the_readme_in_a_clean_copy(tmp_path: Path, environment: dict[str, str]) -> None:
    copy = tmp_path / "checkout"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*LEFT_BEHIND))
    # The environment that the README makes comes first, once it exists. The package registry's settings are the user's,
    # and nothing else of the user's home is: the README installs hooks.
    link_package_settings(Path(environment["HOME"]))
    path = f"{copy / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    clean = {name: value for name, value in environment.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")}
    run_page(copy / "README.md", copy, {**clean, "PATH": path}, place="setup")
    assert (copy / ".venv" / "bin" / "aver").exists()
    assert (copy / "venv" / "bin" / "aver").exists()
    open_kept_demo(copy, clean)


def open_kept_demo(checkout: Path, environment: dict[str, str]) -> None:
    """Run the command that the demo prints last, with a browser that does nothing and at a free port."""
    ledger = {"AVER_HOME": ".demo/agents-home", "BROWSER": "true", "PYTHONUNBUFFERED": "1"}
    command = [str(checkout / ".venv" / "bin" / "aver"), "serve", "--open", "--port", "0"]
    with subprocess.Popen(
        command,
        cwd=checkout,
        env={**environment, **ledger},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as server:
        assert server.stdout is not None
        lines = iter(server.stdout.readline, "")
        printed = []
        for line in lines:
            printed.append(line)
            if "#token=" in line:
                break
        server.terminate()
    assert any("http://localhost:" in line for line in printed), printed
