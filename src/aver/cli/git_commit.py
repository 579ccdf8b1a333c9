"""Committing one file to a git repository, and nothing else that may lie or be staged there.

git's plumbing is used, which makes the commit from the file's bytes and the tree before it: what others have staged
stays staged, and neither hooks nor filters nor any other program that the repository's settings name are run. No
network is used.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from aver.errors import BadInput, Unavailable

__all__ = ["commit_file"]

GIT_SETTINGS = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.untrackedCache": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "protocol.allow": "never",
}
"""What keeps git from running anything but itself, whatever the repository's own settings say."""

GIT_IDENTITY_PREFIXES = ("GIT_AUTHOR_", "GIT_COMMITTER_")
"""Of the environment: who commits. All else about git in it may be meant for another repository."""


def commit_file(repository: Path, name: Path, message: str) -> str | None:
    """Commit a file of the repository as it is now. Returns the commit; None if it is committed like that already."""
    git = _GitCommand(repository)
    parent = git.try_run("rev-parse", "--quiet", "--verify", "HEAD^{commit}")
    blob = git("hash-object", "-w", "--no-filters", "--", str((repository / name).absolute()))
    entry = f"100644,{blob},{git('rev-parse', '--show-prefix')}{name.as_posix()}"
    with tempfile.TemporaryDirectory(prefix="aver-commit-") as scratch:
        index = {"GIT_INDEX_FILE": str(Path(scratch) / "index")}
        git("read-tree", *([parent] if parent else ["--empty"]), **index)
        git("update-index", "--add", "--cacheinfo", entry, **index)
        tree = git("write-tree", **index)
    if parent and tree == git("rev-parse", f"{parent}^{{tree}}"):
        return None
    commit = git("commit-tree", tree, *(["-p", parent] if parent else []), "-m", message)
    # The index first: were it to lack the file, whoever commits next would take it out of the repository again.
    git("update-index", "--add", "--cacheinfo", entry)
    git("update-ref", "-m", f"aver checkpoint: {message}", "HEAD", commit, parent or "")
    return commit


class _GitCommand:
    """The git command in one repository, with nothing of the caller's environment that could lead it elsewhere."""

    def __init__(self, repository: Path) -> None:
        self._repository = repository
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("GIT_") or name.startswith(GIT_IDENTITY_PREFIXES)
        }
        self._environment = {**kept, "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
        self._command = ["git", "-C", str(repository), *_config_options(GIT_SETTINGS)]
        self._command += _config_options(dict.fromkeys(self._filter_settings(), ""))

    def _filter_settings(self) -> list[str]:
        """The settings that name filters. Even writing the index may run them, on files that have just been staged."""
        listed = self.try_run("config", "--null", "--name-only", "--get-regexp", r"^filter\.") or ""
        names = [name for name in listed.split("\0") if name]
        if any("=" in name or "\n" in name for name in names):
            words = f"a filter in the settings of {self._repository} has a name that cannot be turned off"
            raise BadInput(words, advice="rename it, or leave out --commit and commit by hand")
        return names

    def __call__(self, *arguments: str, **environment: str) -> str:
        """What git prints, without the line's end."""
        done = self._run(arguments, environment)
        if done.returncode != 0:
            words = done.stderr.decode("utf-8", "replace").strip().splitlines() or [f"it ended with {done.returncode}"]
            raise Unavailable(f"git {arguments[0]} in {self._repository}: {words[0]}", advice=_git_advice(words))
        return done.stdout.decode("utf-8", "replace").rstrip("\n")

    def try_run(self, *arguments: str) -> str | None:
        """The same, or None where git says no."""
        done = self._run(arguments, {})
        return done.stdout.decode("utf-8", "replace").rstrip("\n") if done.returncode == 0 else None

    def _run(self, arguments: tuple[str, ...], environment: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
        try:
            return subprocess.run(
                [*self._command, *arguments],
                env={**self._environment, **environment},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
            )
        except FileNotFoundError:
            raise BadInput("git is not installed", advice="install it, or leave out --commit") from None


def _config_options(settings: Mapping[str, str]) -> list[str]:
    return [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]


def _git_advice(words: list[str]) -> str:
    text = " ".join(words)
    if "user.email" in text or "identity" in text:
        return "git config user.name and user.email in that repository"
    if "index.lock" in text or "cannot lock ref" in text:
        return "somebody else is committing there; the checkpoint is written: commit it later"
    return "the checkpoint is written, and can be committed by hand"
