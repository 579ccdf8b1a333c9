"""Where a user's other programs keep their settings and data.

Aver computes these paths from a `UserEnvironment` and never from the process itself. So a test, or an administrator
who looks after another user's account, can name another home.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from aver.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class UserEnvironment:
    """A user on a machine: home directory, environment variables, and the project, if settings of one are meant."""

    home: Path
    environment: Mapping[str, str]
    project: Path | None = None
    platform: str = sys.platform


def current_user_environment() -> UserEnvironment:
    """Return the user who runs this process."""
    return UserEnvironment(Path.home(), os.environ)


def user_data_dir(around: UserEnvironment, program: str) -> Path:
    """Where a desktop program such as `Code` or `Cursor` keeps what is the user's: settings, storage, state."""
    if around.platform == "darwin":
        base = around.home / "Library" / "Application Support"
    elif around.platform == "win32":
        base = Path(around.environment.get("APPDATA") or around.home / "AppData" / "Roaming")
    else:
        base = Path(around.environment.get("XDG_CONFIG_HOME") or around.home / ".config")
    return base / program / "User"
