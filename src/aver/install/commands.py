"""The command that starts this very Aver, for the settings of other programs, and how to tell it again."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

__all__ = ["aver_command", "hook_command", "is_hook_command"]


def aver_command() -> list[str]:
    """The command that starts this Aver. Never with the folder it is started in on the import path: a repository could
    bring an `aver.py`."""
    script = Path(sys.executable).with_name("aver")
    return [str(script)] if script.is_file() else [sys.executable, "-P", "-m", "aver"]


def hook_command(tool: str, event: str, environment: Mapping[str, str]) -> str:
    """What a tool's shell runs for a hook. A ledger's URL is not put there: it may hold a password."""
    words = shlex.join([*aver_command(), "hook", tool, event])
    home = environment.get("AVER_HOME")
    return f"AVER_HOME={shlex.quote(os.path.abspath(home))} {words}" if home else words


def is_hook_command(command: object, tool: str) -> bool:
    """Whether a command starts an Aver, this one or another, for a hook of this tool."""
    if not isinstance(command, str):
        return False
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    at = next((at for at, word in enumerate(words) if word == "hook" and words[at + 1 : at + 2] == [tool]), 0)
    return at > 0 and os.path.basename(words[at - 1]) == "aver"
