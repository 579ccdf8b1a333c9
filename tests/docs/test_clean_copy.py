"""The README from a clean copy of the checkout, on a machine that has Python and make and nothing of ours."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from support.doc_pages import ROOT, run_page
from support.real_home import link_package_settings

LEFT_BEHIND = (".git", ".venv", "build", "dist", "*.egg-info", "__pycache__", ".*_cache", ".hypothesis")


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
