"""Telling people that something waits for them. It never delays and never fails what it tells of.

A configured command gets `AVER_REQUEST`, `AVER_DIGEST`, `AVER_EXPIRES` and `AVER_SUMMARY` in its environment, and the
same as one JSON object on its standard input. It is run without a shell, in a session of its own, and nobody waits
for it. Without one, `notify-send` tells the desktop, where there is a desktop and the program.
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
"""One of these is set where there is a desktop to tell."""


def notify(request: ApprovalRequest, command: Sequence[str] | None, summary: str) -> bool:
    """Start whatever tells people of a request. False where there is nothing to start, or it would not start."""
    import subprocess  # Here, because it takes long to load, and hooks load this module.

    told = {
        "AVER_REQUEST": request.id,
        "AVER_DIGEST": request.digest,
        "AVER_EXPIRES": request.expires,
        "AVER_SUMMARY": escape_invisible(summary),
    }
    argv = _desktop_command(told) if command is None else list(command)
    if not argv:
        return False
    # Far less than a pipe holds, so that writing it waits for nobody.
    message = json.dumps({name.removeprefix("AVER_").lower(): value for name, value in told.items()}) + "\n"
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **told},
            start_new_session=True,
        )
    except (OSError, ValueError):
        return False
    try:
        if process.stdin is not None:
            process.stdin.write(message.encode("ascii"))
            process.stdin.close()
    except OSError:
        pass  # It did not care to read.
    threading.Thread(target=process.wait, name="aver-notify", daemon=True).start()
    return True


def _desktop_command(told: dict[str, str]) -> list[str]:
    program = shutil.which("notify-send")
    if program is None or not any(os.environ.get(name) for name in DESKTOP_VARIABLES):
        return []
    body = f"{told['AVER_SUMMARY']}\naver approvals show {told['AVER_REQUEST'][:8]}"
    return [program, "--app-name=aver", "--", "Approval needed", body]
