"""Confinement: a command runs without network, and writes only in its workspace, in caches and temporary directories.

Tests and builds run code of the workspace, which may do anything that the person may do. Where `bwrap` (bubblewrap) is
installed, Aver can run them in namespaces of their own. A command that is confined

* has no network: no interface but a loopback of its own, and no abstract sockets of other programs;
* sees the whole file system, read-only, but for the workspace, the caches of package managers and the temporary
  directories;
* cannot change what is guarded at the top of the workspace, such as `.claude`, `.git/hooks` and `.git/config`;
* does not see Aver's home, `/run`, or the sockets in the temporary directories: a socket can be used on a read-only
  file system, and that of Docker, of an ssh agent or of a terminal multiplexer leads out;
* cannot change settings of the kernel, also if it runs as root;
* sees no other process, and ends with the program that started it.

It is no wall against the kernel's own defects, and it does not hide what the person can read: without network, what it
reads can leave only by what it writes.

    >>> confined_text("pytest -q", "/usr/bin/aver", "/work/shop")
    "/usr/bin/aver confine --workspace /work/shop -- 'pytest -q'"
"""

from __future__ import annotations

import os
import shlex
import stat
import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from aver.errors import BadInput, Unavailable
from aver.gate.effects.paths import build_path_roots, locate_path

CONFINABLE_EFFECTS = frozenset({"read", "arrange", "build", "scratch", "git-state", "write", "create"})
"""A command may be confined if it does nothing else. What needs more, such as the network, would only fail."""

WRAPPERS = ("/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap")
"""Where the wrapper may be. It is not looked for in PATH, which the workspace may have changed."""

TEMPORARY_DIRECTORIES = ("/tmp", "/var/tmp", "/dev/shm")

CACHE_DIRECTORIES = (
    *(
        ".cache",
        ".npm",
        ".yarn/berry/cache",
        ".pnpm-store",
        ".local/share/pnpm",
        ".bun/install/cache",
        "Library/Caches",
    ),
    *(
        ".cargo/registry",
        ".cargo/git",
        "go/pkg",
        ".m2/repository",
        ".gradle/caches",
        ".gradle/wrapper",
        ".gradle/daemon",
    ),
    *(".ivy2/cache", ".sbt", ".nuget/packages", ".composer/cache", ".gem", ".bundle/cache", ".hex", ".stack"),
)
"""Directories of package managers and compilers in the home that builds write to."""

HIDDEN_VARIABLES = (
    *("SSH_AUTH_SOCK", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST", "XDG_RUNTIME_DIR", "TMUX"),
    *("DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY"),
)
"""Variables that only lead to sockets, which are hidden."""

_GIT_GUARDED = ("hooks", "config", "config.worktree", "info", "modules", "worktrees")
"""What git runs or obeys, also of submodules and other work trees. The rest must stay writable for `git commit`."""

ENTRIES_MAX = 10_000
"""Entries of the workspace's top, and of each temporary directory, that are looked at. More: not confined."""

SOCKETS_MAX = 500
"""Sockets in temporary directories that are hidden one by one. More: not confined."""


def must_confine(effects: Collection[str]) -> bool:
    """Whether a command with these effects runs code of the workspace, so that there is a reason to confine it."""
    return "build" in effects


def find_obstacles(effects: Collection[str]) -> tuple[str, ...]:
    """Return the effects for which a command cannot be confined."""
    return tuple(sorted(set(effects) - CONFINABLE_EFFECTS))


def find_wrapper() -> str | None:
    """Return the path of `bwrap`; None where it is not installed, or is a file that others may change."""
    for path in WRAPPERS:
        try:
            found = os.stat(path)
        except OSError:
            continue
        if stat.S_ISREG(found.st_mode) and found.st_mode & 0o111 and found.st_uid == 0 and not found.st_mode & 0o022:
            return path
    return None


def find_aver() -> str:
    """Return the path of the `aver` program that runs now, or else of the one beside this Python."""
    running = os.path.abspath(sys.argv[0])
    if os.path.basename(running) == "aver" and os.access(running, os.X_OK):
        return running
    return os.path.join(os.path.dirname(sys.executable), "aver")


def confined_text(command: str, aver: str, workspace: str) -> str:
    """Return the text of a shell command that runs `command` confined. `aver` is the path of the program."""
    return f"{shlex.quote(aver)} confine --workspace {shlex.quote(workspace)} -- {shlex.quote(command)}"


def build_wrapped_command(
    command: str, workspace: str | Path, *, aver_home: Path, environment: Mapping[str, str]
) -> list[str]:
    """Return the program and its arguments that run the text of a shell command confined.

    Looks at the disk: what can be hidden or kept depends on what is there. Raises `Unavailable` where there is no
    wrapper, and `BadInput` for a workspace that cannot be confined, because it holds the home or the system.
    """
    wrapper = find_wrapper()
    if wrapper is None:
        raise Unavailable(
            "commands cannot be confined here: bwrap is not installed", advice="install the package bubblewrap"
        )
    root = os.path.realpath(workspace)
    home = os.path.realpath(environment.get("HOME") or "/nonexistent")
    if not os.path.isdir(root):
        raise BadInput(f"there is no directory {root}", advice="name the workspace with --workspace")
    private = os.path.realpath(aver_home)
    for inner, name in ((home, "the home directory"), (private, "Aver's home"), ("/usr", "the system")):
        if Path(inner).is_relative_to(root):
            raise BadInput(f"the workspace {root} contains {name}, so a command cannot be confined to it")
    # The order matters: a later mount covers an earlier one.
    options = ["--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    options += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    for path in _list_kernel_files():
        options += ["--ro-bind", path, path]
    for directory in TEMPORARY_DIRECTORIES:
        if os.path.isdir(directory) and not os.path.islink(directory):
            options += ["--bind", directory, directory]
    for socket in _list_sockets():
        options += ["--ro-bind", "/dev/null", socket]
    for directory in ("/run", "/var/run"):
        if os.path.isdir(directory) and not os.path.islink(directory):
            options += ["--tmpfs", directory]
    for directory in _list_caches(home, environment):
        options += ["--bind", directory, directory]
    options += ["--bind", root, root]
    git = os.path.join(root, ".git")
    if os.path.isdir(git) and not os.path.islink(git):
        options += ["--bind", git, git]  # A mount cannot be renamed, and so not be replaced by another directory.
    for path in list_guarded(root, environment):
        options += ["--ro-bind", path, path]
    if os.path.isdir(private):
        options += ["--tmpfs", private]
    for name in HIDDEN_VARIABLES:
        options += ["--unsetenv", name]
    options += ["--setenv", "AVER_CONFINED", "1"]
    shell = "/bin/bash" if os.access("/bin/bash", os.X_OK) else "/bin/sh"
    return [wrapper, *options, "--", shell, "-c", command]


def _list_kernel_files() -> Iterator[str]:
    """Yield the files of `/proc` by which root changes the kernel. It needs no capability for that."""
    if os.geteuid() != 0:
        return
    for entry in _scan("/proc"):
        if not entry.name.isdecimal() and not entry.is_symlink() and (entry.is_dir() or os.access(entry.path, os.W_OK)):
            yield entry.path


def _list_caches(home: str, environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the caches that exist. A cache that is a link elsewhere would open that place, so it is left out."""
    # A project can set variables of its clients. Only the name of a cache opens no other directory for writing.
    named = environment.get("XDG_CACHE_HOME", "")
    named = named if "cache" in os.path.basename(named.rstrip("/")).lower() else ""
    for path in (*(os.path.join(home, name) for name in CACHE_DIRECTORIES), named):
        if os.path.isabs(path) and os.path.realpath(path) == path and os.path.isdir(path) and path not in ("/", home):
            yield path


def list_guarded(root: str, environment: Mapping[str, str]) -> Iterator[str]:
    """Yield what is guarded at the top of the workspace, and in `.git` what git runs or obeys."""
    roots = build_path_roots(root, environment)
    for entry in _scan(root):
        if entry.is_symlink():
            continue  # Where a link leads is mounted by its own rules.
        if entry.name == ".git" and entry.is_dir():
            yield from (path for name in _GIT_GUARDED if os.path.lexists(path := os.path.join(entry.path, name)))
        elif locate_path(entry.path, None, roots).classes:
            yield entry.path


def _list_sockets() -> Iterator[str]:
    """Yield the sockets in the temporary directories, and in the directories right below them."""
    count = 0
    for directory in TEMPORARY_DIRECTORIES:
        if not os.path.isdir(directory):
            continue
        for entry in _scan(directory):
            nested = _scan(entry.path) if entry.is_dir(follow_symlinks=False) else ()
            for found in (entry, *nested):
                try:
                    is_socket = stat.S_ISSOCK(found.stat(follow_symlinks=False).st_mode)
                except OSError:
                    continue  # It was removed meanwhile, so nothing must be hidden.
                if not is_socket:
                    continue
                count += 1
                if count > SOCKETS_MAX:
                    raise BadInput(
                        f"there are more than {SOCKETS_MAX} sockets in temporary directories", advice="remove old ones"
                    )
                yield found.path


def _scan(directory: str) -> list[os.DirEntry[str]]:
    """Return the entries of a directory; none where it cannot be read: then the command cannot read it either."""
    found: list[os.DirEntry[str]] = []
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                found.append(entry)
                if len(found) > ENTRIES_MAX:
                    raise BadInput(
                        f"{directory} has more than {ENTRIES_MAX} entries, too many to confine a command beside them"
                    )
    except OSError:
        return []
    return found
