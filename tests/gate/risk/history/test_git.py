"""Hostile repositories: nothing they name is ever run, and what cannot be read is said."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from aver.errors import BadInput, NotFound, Unavailable
from aver.gate.risk.history import git as git_module
from aver.gate.risk.history.commits import list_commits, read_changes
from aver.gate.risk.history.fixes import load_recent_fixes
from aver.gate.risk.history.git import open_git
from aver.gate.risk.history.learn import learn_history
from aver.gate.risk.history.repository import open_repository
from support.bench_modules import risk_report
from support.git_histories import DAY, Step, clean_environment, git, make_repository

BEGIN = 1_600_000_000


def lines(*numbers: int) -> str:
    return "".join(f"value = {number}\n" for number in numbers)


STEPS = [
    Step(BEGIN, "Begin", {"a.py": lines(*range(20)), ".gitattributes": "* diff=evil filter=evil merge=evil\n"}),
    Step(BEGIN + DAY, "Add more", {"a.py": lines(*range(30)), "b.bin": b"\0\1\2"}),
    Step(BEGIN + 2 * DAY, "Fix wrong value", {"a.py": lines(*range(25), 99, *range(26, 30))}),
    Step(BEGIN + 400 * DAY, "Go on", {"a.py": lines(*range(25), 99, *range(26, 31))}),
]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    make_repository(tmp_path / "r", STEPS)
    return tmp_path / "r"


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    """A program that leaves a mark when it is run."""
    directory = tmp_path / "trap"
    directory.mkdir()
    program = directory / "evil"
    program.write_text(f'#!/bin/sh\necho "$0 $@" >> {directory}/ran\n')
    program.chmod(0o755)
    return program


def has_run(trap: Path) -> bool:
    return (trap.parent / "ran").exists()


def everything(repository: Path) -> None:
    """All that Aver ever asks of a history."""
    learn_history(repository)
    risk_report.build_report(repository).to_text()
    load_recent_fixes(repository)
    with open_git(open_repository(repository)) as asked:
        assert [len(list(change.parts)) for change in read_changes(asked, list_commits(asked))] != []


def arm(repository: Path, trap: Path) -> None:
    """Name the program wherever a repository's own settings can name one."""
    evil = str(trap)
    hooks = trap.parent / "hooks"
    hooks.mkdir()
    names = ("post-index-change", "fsmonitor-watchman", "reference-transaction", "post-checkout", "pre-commit")
    for name in names:
        for directory in (hooks, repository / ".git" / "hooks"):
            shutil.copy(trap, directory / name)
    settings = {
        "core.fsmonitor": evil,
        "core.hooksPath": str(hooks),
        "core.pager": evil,
        "core.editor": evil,
        "core.sshCommand": evil,
        "core.gitProxy": evil,
        "core.askPass": evil,
        "core.alternateRefsCommand": evil,
        "core.attributesFile": str(trap.parent / "attributes"),
        "diff.external": evil,
        "diff.evil.command": evil,
        "diff.evil.textconv": evil,
        "diff.evil.xfuncname": "x",
        "filter.evil.clean": evil,
        "filter.evil.smudge": evil,
        "filter.evil.process": evil,
        "filter.evil.required": "true",
        "merge.evil.driver": evil,
        "interactive.diffFilter": evil,
        "pager.rev-list": evil,
        "pager.diff-tree": evil,
        "pager.blame": evil,
        "pager.log": evil,
        "alias.rev-list": f"!{evil}",
        "alias.diff-tree": f"!{evil}",
        "alias.blame": f"!{evil}",
        "gpg.program": evil,
        "gpg.ssh.program": evil,
        "log.showSignature": "true",
        "credential.helper": evil,
        "uploadpack.packObjectsHook": evil,
        "uploadpack.allowAnySHA1InWant": "true",
        "include.path": str(trap.parent / "included"),
        "protocol.allow": "always",
        "protocol.ext.allow": "always",
        "extensions.partialClone": "evil",
        "remote.evil.url": f"ext::{evil} %S",
        "remote.evil.promisor": "true",
        "remote.evil.uploadpack": evil,
        "blame.ignoreRevsFile": "/dev/zero",
        "core.repositoryFormatVersion": "1",
    }
    for name, value in settings.items():
        git(repository, "config", "--file", str(repository / ".git" / "config"), name, value)
    (trap.parent / "included").write_text(f'[diff]\n\texternal = {evil}\n[alias]\n\tx = "!{evil}"\n')
    (trap.parent / "attributes").write_text("* diff=evil filter=evil\n")
    (repository / ".git" / "info" / "attributes").write_text("* diff=evil filter=evil\n")


def test_the_traps_are_live(repository: Path, trap: Path) -> None:
    """Without this the next test would prove nothing."""
    arm(repository, trap)
    command = ["git", "-C", str(repository), "log", "-p", "--ext-diff"]
    subprocess.run(command, capture_output=True, env=clean_environment(), check=False)
    assert has_run(trap)


def test_nothing_that_a_repository_names_is_run(repository: Path, trap: Path) -> None:
    arm(repository, trap)
    everything(repository)
    assert not has_run(trap)


def test_missing_objects_are_not_fetched(repository: Path, trap: Path) -> None:
    """git gets what a partial clone lacks from a remote, by whatever program the remote names."""
    blob = git(repository, "rev-parse", "HEAD:a.py").strip()
    arm(repository, trap)
    (repository / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    command = ["git", "-C", str(repository), "cat-file", "-p", blob]
    subprocess.run(command, capture_output=True, env=clean_environment(), check=False)
    assert has_run(trap)
    (trap.parent / "ran").unlink()
    assert learn_history(repository).unreadable >= 1
    assert not has_run(trap)


def test_the_environment_names_no_programs_either(
    repository: Path, trap: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (repository / "bin").mkdir()
    shutil.copy(trap, repository / "bin" / "git")
    shutil.copy(trap, tmp_path / "git")
    monkeypatch.chdir(tmp_path)
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(f"[diff]\n\texternal = {trap}\n[core]\n\tfsmonitor = {trap}\n")
    for name, value in {
        "GIT_EXTERNAL_DIFF": str(trap),
        "GIT_PAGER": str(trap),
        "PAGER": str(trap),
        "GIT_SSH_COMMAND": str(trap),
        "GIT_DIR": str(tmp_path / "nowhere"),
        "GIT_WORK_TREE": str(tmp_path),
        "GIT_EXEC_PATH": str(trap.parent),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "diff.external",
        "GIT_CONFIG_VALUE_0": str(trap),
        "GIT_CONFIG_PARAMETERS": f"'diff.external={trap}'",
        "GIT_TRACE": str(tmp_path / "traced"),
        "GIT_TRACE2_EVENT": str(tmp_path / "traced"),
        "GIT_PROXY_COMMAND": str(trap),
        "GIT_ASKPASS": str(trap),
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home),
        "PATH": f".::{repository / 'bin'}:{os.environ['PATH']}",
    }.items():
        monkeypatch.setenv(name, value)
    everything(repository)
    assert not has_run(trap)
    assert not (tmp_path / "traced").exists()


def test_reading_changes_nothing_in_the_repository(repository: Path) -> None:
    def seen() -> dict[str, tuple[int, int]]:
        return {
            str(path): (path.stat().st_mtime_ns, path.stat().st_size)
            for path in repository.rglob("*")
            if not path.is_dir()
        }

    before = seen()
    everything(repository)
    assert seen() == before


@pytest.mark.parametrize("name", ["config", "info/attributes", "index", "shallow", "commondir"])
def test_a_pipe_in_the_place_of_a_file_does_not_hang(name: str, repository: Path) -> None:
    path = repository / ".git" / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    if name in ("shallow", "commondir"):
        with pytest.raises(BadInput, match="not a regular file"):
            everything(repository)
    else:
        everything(repository)


@pytest.mark.parametrize("name", ["HEAD", "refs/heads/main"])
def test_a_pipe_in_the_place_of_a_ref_is_refused(name: str, repository: Path) -> None:
    path = repository / ".git" / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    with pytest.raises(BadInput, match="not a regular file"):
        open_repository(repository)


@pytest.mark.parametrize(
    "head",
    [
        *("ref: refs/../../../../etc/passwd\n", "ref: refs/heads/none\n", "ref: HEAD\n", "nonsense\n", "", "ref:\n"),
        *("0" * 39, "G" * 40, "ref: refs/heads/\x00\n", "ref: refs/heads/a\n" * 1000),
    ],
)
def test_heads_that_name_nothing(head: str, repository: Path) -> None:
    (repository / ".git" / "HEAD").write_text(head)
    with pytest.raises(BadInput):
        open_repository(repository)


def test_refs_that_go_round_in_a_circle(repository: Path) -> None:
    (repository / ".git" / "refs" / "heads" / "a").write_text("ref: refs/heads/b\n")
    (repository / ".git" / "refs" / "heads" / "b").write_text("ref: refs/heads/a\n")
    (repository / ".git" / "HEAD").write_text("ref: refs/heads/a\n")
    with pytest.raises(BadInput, match="names itself"):
        open_repository(repository)


def test_a_head_that_is_no_commit_here(repository: Path) -> None:
    (repository / ".git" / "HEAD").write_text("1" * 40 + "\n")
    with pytest.raises(BadInput, match="git cannot read"):
        learn_history(repository)


def test_no_repository(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    with pytest.raises(NotFound):
        open_repository(tmp_path / "plain")
    assert load_recent_fixes(tmp_path / "plain").note == ""


@pytest.mark.parametrize("words", ["", "gitdir: ", "gitdir: /nowhere", "x" * 10_000])
def test_a_git_file_that_points_nowhere(words: str, tmp_path: Path) -> None:
    (tmp_path / ".git").write_text(words)
    with pytest.raises(BadInput):
        open_repository(tmp_path)


# --- honest repositories of every build


def subjects(path: Path) -> list[str]:
    with open_git(open_repository(path)) as asked:
        return [commit.subject for commit in list_commits(asked)]


ALL = [step.message for step in STEPS]


def packed(repository: Path) -> Path:
    git(repository, "pack-refs", "--all")
    git(repository, "gc", "--quiet")
    return repository


def worktree(repository: Path) -> Path:
    git(repository, "worktree", "add", "--quiet", "-b", "side", str(repository.parent / "side"))
    return repository.parent / "side"


def bare(repository: Path) -> Path:
    git(repository, "clone", "--quiet", "--bare", str(repository), str(repository.parent / "bare.git"))
    return repository.parent / "bare.git"


def detached(repository: Path) -> Path:
    git(repository, "checkout", "--quiet", "--detach", "HEAD")
    return repository


def borrowing(repository: Path) -> Path:
    git(repository, "clone", "--quiet", "--shared", str(repository), str(repository.parent / "shared"))
    return repository.parent / "shared"


@pytest.mark.parametrize("build", [packed, worktree, bare, detached, borrowing], ids=lambda build: build.__name__)
def test_repositories_of_every_build(build: object, repository: Path) -> None:
    assert subjects(build(repository)) == ALL  # type: ignore[operator]


def test_sha256(tmp_path: Path) -> None:
    make_repository(tmp_path / "r", STEPS, options=["--object-format=sha256"])
    assert subjects(tmp_path / "r") == ALL
    assert learn_history(tmp_path / "r").failed == 1


def test_a_shallow_clone_ends_where_it_was_cut(repository: Path) -> None:
    clone = repository.parent / "shallow"
    git(repository, "clone", "--quiet", "--depth=2", f"file://{repository}", str(clone))
    assert subjects(clone) == ALL[-2:]
    assert learn_history(clone).commits == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_repository_of_another_owner(repository: Path) -> None:
    for path in (repository, *repository.rglob("*")):
        os.chown(path, 65534, 65534)
    assert subjects(repository) == ALL


# --- what git prints


def test_lines_are_cut_and_counted_as_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git_module, "LINE_MAX", 10)
    reading, writing = os.pipe()
    os.write(writing, b"one\n\ntwo\n" + b"x" * 100 + b"\nend\xff")
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        found = [line for rows in git_module._read_stream_lines(stream) for line in rows]
    assert found == ["one", "", "two", "x" * 100, "end\udcff"]


def test_a_line_that_never_ends_is_cut(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(git_module, "LINE_MAX", 1000)
    monkeypatch.setattr(git_module, "CHUNK", 100)
    (tmp_path / "out").write_bytes(b"y" * 50_000 + b"\nnext\n")
    with (tmp_path / "out").open("rb") as stream:
        found = [line for rows in git_module._read_stream_lines(stream) for line in rows]
    assert [len(line) for line in found] == [1000, 4]


def test_a_git_that_says_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git_module, "SILENCE_MAX", 0.05)
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as stream, pytest.raises(Unavailable, match="said nothing"):
        list(git_module._read_stream_lines(stream))
    os.close(writing)


def test_a_stream_that_is_left_early_leaves_no_process(repository: Path) -> None:
    with open_git(open_repository(repository)) as asked:
        stream = asked.read_output("cat-file", "--batch-all-objects", "--batch")
        next(stream)
        begun = children()
        stream.close()  # type: ignore[attr-defined]
        assert len(children()) == len(begun) - 1


def children() -> list[str]:
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
