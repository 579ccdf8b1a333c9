"""The command in the arguments of a call, in one spelling for all agents.

Codex gives a command as one text or as a list of words, and sometimes as a shell with `-c`. A call in its transcripts
and the question of its hook about the same call may differ in that, so both are compared by this text.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any


def command_line(arguments: Mapping[str, Any]) -> str:
    """The command that a call runs, as a person would write it; empty where it runs none."""
    command = arguments.get("cmd") or arguments.get("command")
    if isinstance(command, str):
        return command
    if not isinstance(command, list) or not all(isinstance(word, str) for word in command):
        return ""
    if len(command) == 3 and command[1] in ("-lc", "-c"):
        return str(command[2])
    return shlex.join(command)
