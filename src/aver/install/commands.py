"""The command that starts this Aver, for the settings of other programs, and how Aver recognises it there."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

__all__ = ["aver_command", "hook_command", "is_hook_command"]


def aver_command() -> list[str]:
    """Return the words of the command that starts this Aver.

    `-P` keeps the current folder off the import path: a repository could bring an `aver.py`.
    """
    script = Path(sys.executable).with_name("aver")
    return [str(script)] if script.is_file() else [sys.executable, "-P", "-m", "aver"]


def hook_command(tool: str, event: str, environment: Mapping[str, str]) -> str:
    """Return the shell command for a hook. It has AVER_HOME, but not AVER_LEDGER, which may hold a password."""
    words = shlex.join([*aver_command(), "hook", tool, event])
    home = environment.get("AVER_HOME")
    return f"AVER_HOME={shlex.quote(os.path.abspath(home))} {words}" if home else words


def is_hook_command(command: object, tool: str) -> bool:
    """Whether a command starts an Aver, this or another installation, for a hook of this agent."""
    if not isinstance(command, str):
        return False
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    at = next((at for at, word in enumerate(words) if word == "hook" and words[at + 1 : at + 2] == [tool]), 0)
    return at > 0 and os.path.basename(words[at - 1]) == "aver"
