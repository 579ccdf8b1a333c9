"""The command in the arguments of a call, as one text for all agents.

Codex writes the same command in several forms:

>>> command_line({"cmd": "pytest -q"}) == command_line({"command": ["bash", "-lc", "pytest -q"]})
True
>>> command_line({"command": ["pytest", "-q"]})
'pytest -q'

Its transcript and its hook may use different forms for one call. So Aver compares both by this text.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any


def command_line(arguments: Mapping[str, Any]) -> str:
    """Return the command that a call runs, as a person writes it; empty if it runs none."""
    command = arguments.get("cmd") or arguments.get("command")
    if isinstance(command, str):
        return command
    if not isinstance(command, list) or not all(isinstance(word, str) for word in command):
        return ""
    if len(command) == 3 and command[1] in ("-lc", "-c"):
        return str(command[2])
    return shlex.join(command)
