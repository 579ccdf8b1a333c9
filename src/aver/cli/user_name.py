"""The name of the user of this machine, for texts that people read."""

from __future__ import annotations

import os


def find_user_name() -> str:
    """Return the name of the user, such as `user ada`. It proves nothing."""
    import getpass

    try:
        return f"user {getpass.getuser()}"
    except (KeyError, OSError):
        return f"user {os.getuid()}"
