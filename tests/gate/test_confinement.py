"""Confined commands: what they can do, and what they cannot. The tests with a real wrapper need bubblewrap."""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from aver.errors import BadInput, Unavailable
from aver.gate import confinement
from aver.gate.confinement import build_wrapped_command, confined_text, find_obstacles, find_wrapper, must_confine


def can_confine() -> bool:
    """Whether a wrapper is installed, and this system lets it make namespaces."""
    wrapper = find_wrapper()
    if wrapper is None:
        return False
    probe = [wrapper, "--unshare-all", "--ro-bind", "/", "/", "--", "/bin/true"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


needs_wrapper = pytest.mark.skipif(not can_confine(), reason="bubblewrap is not installed, or may not make namespaces")


class Place:
    """A workspace, a home and Aver's home, in which commands run confined."""

    def __init__(self, directory: Path) -> None:
        self.workspace, self.home, self.aver_home = directory / "work", directory / "home", directory / "home" / ".aver"
        for made in (self.workspace, self.home / ".cache", self.aver_home):
            made.mkdir(parents=True)
        self.environment = {"HOME": str(self.home), "PATH": os.environ["PATH"]}

    def run(self, command: str, **more: str) -> subprocess.CompletedProcess[str]:
        environment = {**self.environment, **more}
        wrapped = build_wrapped_command(command, self.workspace, aver_home=self.aver_home, environment=environment)
        return subprocess.run(
            wrapped, cwd=self.workspace, env=environment, capture_output=True, text=True, check=False, timeout=60
        )


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def no_temporary(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test's directories lie in a temporary one. Where that must not be writable, none is."""
    monkeypatch.setattr(confinement, "TEMPORARY_DIRECTORIES", ())


def test_only_code_of_the_workspace_is_confined() -> None:
    for effects in ({"build"}, {"read", "arrange", "build"}, {"build", "scratch", "git-state", "write", "create"}):
        assert must_confine(effects)
        assert find_obstacles(effects) == ()
    for effects in ({"build", "network"}, {"build", "locked-install"}, {"execute", "build"}, {"build", "loopback"}):
        assert must_confine(effects)
        assert len(find_obstacles(effects)) == 1
    for effects in (set[str](), {"read"}, {"arrange"}, {"locked-install"}):
        assert not must_confine(effects)


@pytest.mark.parametrize(
    ("named", "is_bound"),
    [("my-cache", True), (".cache/x/Caches", True), (".ssh", False), ("", False), (".config", False)],
)
def test_a_variable_opens_a_cache_and_no_other_directory(
    place: Place, monkeypatch: pytest.MonkeyPatch, named: str, is_bound: bool
) -> None:
    monkeypatch.setattr(confinement, "find_wrapper", lambda: "/usr/bin/bwrap")
    directory = place.home / named
    directory.mkdir(parents=True, exist_ok=True)
    environment = {**place.environment, "XDG_CACHE_HOME": str(directory)}
    words = build_wrapped_command("true", place.workspace, aver_home=place.aver_home, environment=environment)
    assert (["--bind", str(directory), str(directory)] in [words[at : at + 3] for at in range(len(words))]) == is_bound


@pytest.mark.parametrize("name", ["hooks", "config", "info", "modules", "worktrees"])
def test_what_git_runs_or_obeys_stays_read_only(place: Place, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(confinement, "find_wrapper", lambda: "/usr/bin/bwrap")
    path = place.workspace / ".git" / name
    path.mkdir(parents=True)
    words = build_wrapped_command("true", place.workspace, aver_home=place.aver_home, environment=place.environment)
    places = [at for at in range(len(words)) if words[at : at + 3] == ["--ro-bind", str(path), str(path)]]
    # After the mount that makes the whole of `.git` writable.
    assert places
    assert places[0] > words.index(str(place.workspace / ".git"))


@pytest.mark.parametrize(
    "command", ["pytest -q", "echo 'a b' \"$HOME\" > x; ls \\\n -l", "printf '%s' '\\''", "日本 ' \" $("]
)
def test_the_text_gives_the_shell_the_same_command(command: str) -> None:
    text = confined_text(command, "/opt/my tools/aver", "/work/my shop")
    assert shlex.split(text) == ["/opt/my tools/aver", "confine", "--workspace", "/work/my shop", "--", command]


def test_without_a_wrapper_nothing_is_confined(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confinement, "WRAPPERS", ("/nonexistent/bwrap",))
    assert find_wrapper() is None
    with pytest.raises(Unavailable, match="bwrap is not installed"):
        build_wrapped_command("true", place.workspace, aver_home=place.aver_home, environment=place.environment)


def test_a_wrapper_that_others_may_change_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o777)
    monkeypatch.setattr(confinement, "WRAPPERS", (str(program),))
    assert find_wrapper() is None


@needs_wrapper
@pytest.mark.parametrize("workspace", ["/", "home", "home/.aver", "."])
def test_a_workspace_that_holds_the_home_or_the_system_is_refused(place: Place, workspace: str) -> None:
    given = place.home.parent / workspace if workspace != "/" else Path("/")
    with pytest.raises(BadInput, match=r"cannot be confined|contains"):
        build_wrapped_command("true", given, aver_home=place.aver_home, environment=place.environment)


@needs_wrapper
def test_it_works_in_its_workspace(place: Place) -> None:
    (place.workspace / "a.txt").write_text("1\n")
    done = place.run("cat a.txt && mkdir -p build && echo 2 > build/b.txt && echo $AVER_CONFINED && exit 7")
    assert (done.stdout, done.returncode) == ("1\n1\n", 7)
    assert (place.workspace / "build" / "b.txt").read_text() == "2\n"


@needs_wrapper
@pytest.mark.usefixtures("no_temporary")
def test_it_writes_nowhere_else_but_in_caches(place: Place) -> None:
    outside = place.home / "notes.txt"
    outside.write_text("mine\n")
    done = place.run(f"echo c > ~/.cache/c; echo x > {outside}; rm -f {outside}; mv {outside} y; echo x > ~/.bashrc")
    assert (place.home / ".cache" / "c").read_text() == "c\n"
    assert outside.read_text() == "mine\n"
    assert not (place.home / ".bashrc").exists()
    assert done.stderr.count("Read-only") >= 3


@needs_wrapper
@pytest.mark.usefixtures("no_temporary")
def test_a_cache_that_leads_elsewhere_opens_nothing(place: Place) -> None:
    (place.home / ".npm").symlink_to(place.home)
    place.run("echo x > ~/.npm/.bashrc")
    assert not (place.home / ".bashrc").exists()


@needs_wrapper
def test_guarded_files_of_the_workspace_stay(place: Place) -> None:
    work = place.workspace
    for name in (".git/hooks", ".git/refs", ".claude", ".vscode"):
        (work / name).mkdir(parents=True)
    (work / ".git" / "config").write_text("[core]\n")
    (work / ".claude" / "settings.json").write_text("{}")
    place.run(
        "echo x > .git/hooks/pre-commit; echo x >> .git/config; echo x > .claude/settings.json; rm -rf .claude .vscode;"
        "mv .claude other; mv .git old; cp -r old .git; echo x > .git/hooks/post-commit; echo ok > .git/refs/r"
    )
    assert list((work / ".git" / "hooks").iterdir()) == []
    assert (work / ".git" / "config").read_text() == "[core]\n"
    assert (work / ".claude" / "settings.json").read_text() == "{}"
    assert (work / ".vscode").is_dir()
    assert (work / ".git" / "refs" / "r").read_text() == "ok\n"


@needs_wrapper
def test_avers_own_files_cannot_be_seen(place: Place) -> None:
    (place.aver_home / "key").write_text("secret")
    done = place.run(f"ls -A {place.aver_home}; cat {place.aver_home}/key; echo x > {place.aver_home}/key; ls -A /run")
    assert done.stdout == ""
    assert (place.aver_home / "key").read_text() == "secret"


@pytest.fixture
def listener() -> Iterator[int]:
    """A server on loopback; a confined command has another loopback."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        server.settimeout(0.2)
        stop = threading.Event()

        def serve() -> None:
            while not stop.is_set():
                try:
                    server.accept()[0].close()
                except TimeoutError:
                    continue

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        stop.set()
        thread.join()


def connecting(connection: str) -> str:
    """The text of a shell command that tries a connection and prints whether it was made."""
    program = f"""
import socket
try:
    {connection}
    print("connected")
except OSError:
    print("refused")
"""
    return f"{shlex.quote(sys.executable)} -c {shlex.quote(program)}"


def run_bare(command: str) -> str:
    return subprocess.run(command, shell=True, capture_output=True, text=True, check=False).stdout


@needs_wrapper
def test_it_has_no_network_and_not_the_hosts_loopback(place: Place, listener: int) -> None:
    program = connecting(f"socket.create_connection(('127.0.0.1', {listener}), 5)")
    assert run_bare(program) == "connected\n"
    assert place.run(program).stdout == "refused\n"


@needs_wrapper
def test_sockets_in_temporary_directories_are_hidden(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confinement, "TEMPORARY_DIRECTORIES", (str(tmp_path),))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mux").mkdir()
    with socket.socket(socket.AF_UNIX) as first, socket.socket(socket.AF_UNIX) as second:
        for server, name in ((first, "agent.sock"), (second, "mux/default")):
            server.bind(name)
            server.listen()
        for name in ("agent.sock", "mux/default"):
            program = connecting(f"socket.socket(socket.AF_UNIX).connect({str(tmp_path / name)!r})")
            assert run_bare(program) == "connected\n"
            assert place.run(program).stdout == "refused\n"


@needs_wrapper
def test_variables_that_lead_to_agents_are_gone(place: Place) -> None:
    done = place.run(
        'echo "$SSH_AUTH_SOCK|$DOCKER_HOST|$TMUX|$KEPT"', SSH_AUTH_SOCK="/x", DOCKER_HOST="y", TMUX="z", KEPT="k"
    )
    assert done.stdout == "|||k\n"


@needs_wrapper
def test_other_processes_cannot_be_signalled(place: Place) -> None:
    done = place.run(f"kill -0 {os.getpid()} && echo seen; ls /proc | grep -c '^[0-9]'")
    assert "seen" not in done.stdout
    assert int(done.stdout) < 10


@needs_wrapper
def test_too_many_entries_are_refused(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confinement, "ENTRIES_MAX", 3)
    for number in range(5):
        (place.workspace / f"{number}").touch()
    with pytest.raises(BadInput, match="too many"):
        build_wrapped_command("true", place.workspace, aver_home=place.aver_home, environment=place.environment)


@needs_wrapper
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may write to these files at all")
def test_root_cannot_change_the_kernel(place: Place) -> None:
    """Opened for writing and closed again: nothing is written, inside or outside."""
    code = "import os; os.close(os.open('/proc/sys/kernel/core_pattern', os.O_WRONLY))"
    assert place.run(f"{shlex.quote(sys.executable)} -c {shlex.quote(code)}").returncode != 0
    os.close(os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY))


def test_a_file_that_is_removed_meanwhile_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other programs work in temporary directories, too."""
    (tmp_path / "gone").write_text("x")
    monkeypatch.setattr(confinement, "TEMPORARY_DIRECTORIES", (str(tmp_path),))
    listed = list(confinement._scan(str(tmp_path)))
    (tmp_path / "gone").unlink()
    monkeypatch.setattr(confinement, "_scan", lambda directory: listed)
    assert list(confinement._list_sockets()) == []
