"""Telling people that a request waits for them: by a message on the desktop, or by a command of their own.

    [approvals]
    notify = "desktop"                 the default: notify-send, or osascript on macOS; nothing without a desktop
    notify = "off"                     nobody is told
    notify = ["my-notifier", "-u"]     a program and its arguments

The program gets `AVER_REQUEST`, `AVER_DIGEST`, `AVER_EXPIRES` and `AVER_SUMMARY` in its environment, and the same as
one JSON object on its standard input. Secrets in the summary are masked.

Telling never delays a request, and never makes it fail. Aver runs the program without a shell, in a session of its own,
and does not wait for it. The desktop's own programs get a few seconds, if `timeout` is there to end them.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
from collections.abc import Sequence

from aver.capsule.masking.mask import mask
from aver.gate.approvals.request import ApprovalRequest
from aver.text import escape_invisible

DESKTOP_VARIABLES = ("DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS")
"""One of these is set if there is a desktop."""

DESKTOP_SECONDS = 10
"""Seconds for the desktop's own program. A desktop that hangs must not collect processes."""

TITLE = "Approval needed"

_APPLE_SCRIPT = (
    "on run argv",
    "display notification (item 1 of argv) with title (item 2 of argv)",
    "end run",
)
"""The texts come as arguments, so nothing in them is read as a script."""


def notify(request: ApprovalRequest, command: Sequence[str] | None, summary: str) -> bool:
    """Start the program that tells people. Returns False if there is none, or if it does not start.

    `command` is the person's own; None for the desktop's, empty for none.
    """
    # Imported here: it takes long to load, and hooks load this module.
    import subprocess

    variables = {
        "AVER_REQUEST": request.id,
        "AVER_DIGEST": request.digest,
        "AVER_EXPIRES": request.expires,
        "AVER_SUMMARY": escape_invisible(str(mask(summary).value)),
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
    # Somebody must wait for the child, or it stays as a zombie.
    threading.Thread(target=process.wait, name="aver-notify", daemon=True).start()
    return True


def _desktop_command(variables: dict[str, str]) -> list[str]:
    """Return the command that shows a message on the desktop; empty where there is no desktop, or no such program."""
    body = f"{variables['AVER_SUMMARY']}\naver approvals show {variables['AVER_REQUEST'][:8]}"
    if sys.platform == "darwin":
        program = shutil.which("osascript")
        lines = [part for line in _APPLE_SCRIPT for part in ("-e", line)]
        return [] if program is None else [program, *lines, body, TITLE]
    program = shutil.which("notify-send")
    if program is None or not any(os.environ.get(name) for name in DESKTOP_VARIABLES):
        return []
    limit = shutil.which("timeout")
    before = [] if limit is None else [limit, str(DESKTOP_SECONDS)]
    return [*before, program, "--app-name=aver", "--", TITLE, body]
