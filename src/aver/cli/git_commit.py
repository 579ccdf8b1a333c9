"""Commits one file to a git repository and leaves everything else there as it is.

The commit is built with git's plumbing commands, from the file's bytes and the tree of the last commit:

1. write the file as a blob
2. build the new tree in a temporary index
3. make the commit
4. add the file to the real index, then move HEAD

So changes that other people have staged stay staged. git runs no hooks, no filters and no other program that the
repository's settings name, and it uses no network.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from aver.errors import BadInput, Unavailable

GIT_SETTINGS = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.untrackedCache": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "protocol.allow": "never",
}
"""Settings that keep git from running other programs. They override the repository's settings."""

GIT_IDENTITY_PREFIXES = ("GIT_AUTHOR_", "GIT_COMMITTER_")
"""Environment variables that are kept: they say who commits. Others may point to another repository."""


def commit_file(repository: Path, name: Path, message: str) -> str | None:
    """Commit one file as it is now. Returns the commit, or None if the last commit has the same content."""
    git = _GitCommand(repository)
    parent = git.try_run("rev-parse", "--quiet", "--verify", "HEAD^{commit}")
    # 1. The blob.
    blob = git("hash-object", "-w", "--no-filters", "--", str((repository / name).absolute()))
    entry = f"100644,{blob},{git('rev-parse', '--show-prefix')}{name.as_posix()}"
    # 2. The tree.
    with tempfile.TemporaryDirectory(prefix="aver-commit-") as scratch:
        index = {"GIT_INDEX_FILE": str(Path(scratch) / "index")}
        git("read-tree", *([parent] if parent else ["--empty"]), **index)
        git("update-index", "--add", "--cacheinfo", entry, **index)
        tree = git("write-tree", **index)
    if parent and tree == git("rev-parse", f"{parent}^{{tree}}"):
        return None
    # 3. The commit.
    commit = git("commit-tree", tree, *(["-p", parent] if parent else []), "-m", message)
    # 4. The index comes first. If it lacked the file, the next commit by anyone would delete the file again.
    git("update-index", "--add", "--cacheinfo", entry)
    git("update-ref", "-m", f"aver checkpoint: {message}", "HEAD", commit, parent or "")
    return commit


class _GitCommand:
    """Runs git in one repository. The caller's environment cannot lead it to another one."""

    def __init__(self, repository: Path) -> None:
        self._repository = repository
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("GIT_") or name.startswith(GIT_IDENTITY_PREFIXES)
        }
        self._environment = {**kept, "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
        self._command = ["git", "-C", str(repository), *_config_options(GIT_SETTINGS)]
        # The settings that name filters. git may run filters on staged files even when it writes the index.
        listed = self.try_run("config", "--null", "--name-only", "--get-regexp", r"^filter\.") or ""
        names = [name for name in listed.split("\0") if name]
        if any("=" in name or "\n" in name for name in names):
            words = f"a git filter of {self._repository} cannot be turned off: its name has = or a line break"
            raise BadInput(words, advice="rename it, or leave out --commit and commit by hand")
        self._command += _config_options(dict.fromkeys(names, ""))

    def __call__(self, *arguments: str, **environment: str) -> str:
        """Run git. Returns its output without the final line break; raises `Unavailable` if git fails."""
        done = self._run(arguments, environment)
        if done.returncode != 0:
            words = done.stderr.decode("utf-8", "replace").strip().splitlines() or [f"exit code {done.returncode}"]
            raise Unavailable(f"git {arguments[0]} in {self._repository}: {words[0]}", advice=_git_advice(words))
        return done.stdout.decode("utf-8", "replace").rstrip("\n")

    def try_run(self, *arguments: str) -> str | None:
        """Run git. Returns its output, or None if git fails."""
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
        return "set user.name and user.email with git config in that repository"
    if "index.lock" in text or "cannot lock ref" in text:
        return "another process is committing there; the checkpoint is written: commit it later"
    return "the checkpoint is written, and can be committed by hand"
