"""Notifies people that a request waits for them. It never delays the request, and never makes it fail.

A configured command gets `AVER_REQUEST`, `AVER_DIGEST`, `AVER_EXPIRES` and `AVER_SUMMARY` in its environment, and the
same as one JSON object on its standard input. Aver runs it without a shell, in a session of its own, and does not wait
for it. Without a configured command Aver uses `notify-send`, if there is a desktop.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Sequence

from aver.gate.approvals.request import ApprovalRequest
from aver.text import escape_invisible

__all__ = ["notify"]

DESKTOP_VARIABLES = ("DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS")
"""One of these is set if there is a desktop."""


def notify(request: ApprovalRequest, command: Sequence[str] | None, summary: str) -> bool:
    """Start the command that notifies people. Returns False if there is none, or if it does not start."""
    # Imported here: it takes long to load, and hooks load this module.
    import subprocess

    variables = {
        "AVER_REQUEST": request.id,
        "AVER_DIGEST": request.digest,
        "AVER_EXPIRES": request.expires,
        "AVER_SUMMARY": escape_invisible(summary),
    }
    argv = _desktop_command(variables) if command is None else list(command)
    if not argv:
        return False
    # The message is far smaller than a pipe's buffer, so writing it never blocks.
    message = json.dumps({name.removeprefix("AVER_").lower(): value for name, value in variables.items()}) + "\n"
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **variables},
            start_new_session=True,
        )
    except (OSError, ValueError):
        return False
    try:
        if process.stdin is not None:
            process.stdin.write(message.encode("ascii"))
            process.stdin.close()
    except OSError:
        pass  # the command closed its input
    threading.Thread(target=process.wait, name="aver-notify", daemon=True).start()
    return True


def _desktop_command(variables: dict[str, str]) -> list[str]:
    program = shutil.which("notify-send")
    if program is None or not any(os.environ.get(name) for name in DESKTOP_VARIABLES):
        return []
    body = f"{variables['AVER_SUMMARY']}\naver approvals show {variables['AVER_REQUEST'][:8]}"
    return [program, "--app-name=aver", "--", "Approval needed", body]
