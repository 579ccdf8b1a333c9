"""The home directory of the user who runs the tests. No test sees it, and none writes there.

`hide_real_home` runs before anything else in each process of pytest. It gives the process an empty home, and takes
away the variables that lead past a home. Worker processes inherit both from the process that started them.

Only pip and npm get the real home back (`real_environment`, `link_package_settings`): the settings of a registry and
the caches are there. `describe_real_home` tells what Aver has there; the run fails if a test has changed that.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path

HIDDEN = (
    *("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "APPDATA", "LOCALAPPDATA"),
    *("CLAUDE_CONFIG_DIR", "CLAUDE_PROJECT_DIR", "CODEX_HOME", "CLINE_DIR", "CLINE_MCP_SETTINGS_PATH"),
    *("SSH_AUTH_SOCK",),
)
"""The variables by which Aver, coding agents and other programs find what belongs to the user."""

_KEPT_IN = "PYTEST_AVER_REAL_HOME"
"""The variable that hands the hidden ones, as JSON, to worker processes."""

_MEMORY_IN = "PYTEST_AVER_MEMORY"
"""The variable that names the directory in memory to worker processes."""

MEMORY = Path("/dev/shm")
"""The file system in memory that Linux has."""

MEMORY_MIN = 1024 * 1024 * 1024
"""Bytes that must be free there. Containers often have 64 MiB."""

_PACKAGE_SETTINGS = (".config/pip", ".pip", ".netrc", ".cache/pip")


def hide_real_home() -> tempfile.TemporaryDirectory[str] | None:
    """Give this process an empty home. Returns the directory for homes, or None where a parent process has it."""
    if _KEPT_IN in os.environ:
        return None
    homes = tempfile.TemporaryDirectory(prefix="aver-test-homes-", ignore_cleanup_errors=True)
    hidden = {"HOME": str(Path.home())} | {name: os.environ.pop(name) for name in HIDDEN if name in os.environ}
    os.environ |= {_KEPT_IN: json.dumps(hidden), "HOME": homes.name}
    return homes


def make_memory_directory() -> Path | None:
    """Make a directory in memory, or name the one of the parent process. None where this machine has no room for one.

    A ledger syncs every commit, and a directory in memory has no disk to wait for. It takes a third of the CPU time off
    a test of the ledger, and more than half of the time on the clock.
    """
    if _MEMORY_IN in os.environ:
        return Path(os.environ[_MEMORY_IN]) if os.environ[_MEMORY_IN] else None
    has_room = os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= MEMORY_MIN
    made = tempfile.mkdtemp(prefix="aver-test-", dir=MEMORY) if has_room else ""
    os.environ[_MEMORY_IN] = made
    return Path(made) if made else None


def real_environment() -> dict[str, str]:
    """The environment with the real home, for pip and npm alone."""
    return {**os.environ, **json.loads(os.environ[_KEPT_IN])}


def real_home() -> Path:
    return Path(real_environment()["HOME"])


def link_package_settings(home: Path) -> None:
    """Let pip find the user's registry and cache from another home."""
    for name in _PACKAGE_SETTINGS:
        if (real_home() / name).exists():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).symlink_to(real_home() / name)


def describe_real_home() -> list[str]:
    """List what Aver has in the real home: its own directory, and its entries in the settings of coding agents."""
    from aver.agents.registry import client_names, load_client
    from aver.files.user_dirs import UserEnvironment
    from aver.install.hooks import read_hooks_state
    from aver.install.mcp_server import read_server_state

    # Without PATH, no coding agent is started to ask for its version.
    environment = {name: value for name, value in real_environment().items() if name != "PATH"}
    around = UserEnvironment(real_home(), environment)
    clients = [load_client(name) for name in client_names()]
    states = [state for one in clients for state in (*read_hooks_state(one, around), *read_server_state(one, around))]
    # A ledger may grow while the tests run, because a coding agent may be at work: only its existence counts.
    ledger = [str(path) for path in (real_home() / ".aver",) if path.exists()]
    return ledger + [f"{state.path}: {state.part} of {state.client} {state.state}" for state in states]
