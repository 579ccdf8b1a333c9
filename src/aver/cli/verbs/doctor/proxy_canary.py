"""The proxies' part of `aver doctor`: a canary through each proxy that a client's settings start.

The proxy gets the canary by the very command in the settings. It starts no server for it, and leaves no trace
(`aver.mcp.proxy.canary`).
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence

from aver.agents.registry import client_names, load_client
from aver.cli.clients import build_user_environment
from aver.cli.verbs.doctor.report import DoctorReport
from aver.clock import new_id
from aver.errors import AverError
from aver.install.proxied_servers import proxied_commands
from aver.install.proxy_variables import CANARY_VARIABLE
from aver.mcp.proxy.canary import canary_messages, find_canary_problem

PROXY_SECONDS = 60
"""How long a proxy may take for the test."""

WORDS_MAX = 400
"""Characters of a proxy's standard error that a report repeats."""


def try_proxies() -> Iterator[DoctorReport]:
    """Send a canary through every proxy in the settings of every client."""
    around = build_user_environment(None)
    for client in map(load_client, client_names()):
        try:
            commands = list(proxied_commands(client, around))
        except AverError as error:
            yield DoctorReport("problem", "proxy", f"{client.name}: {error.message}", error.advice)
            continue
        for name, words, more in commands:
            if why := _try_proxy(words, {**os.environ, **more}):
                advice = f"aver install {client.name} --only proxy"
                yield DoctorReport("problem", "proxy", f"{client.name}: the proxy before {name} fails: {why}", advice)
            else:
                yield DoctorReport("ok", "proxy", f"{client.name}: the proxy before {name} refuses the canary")


def _try_proxy(words: Sequence[str], environment: Mapping[str, str]) -> str:
    """Say why a proxy does not refuse the canary; empty where it does."""
    canary = f"canary-{new_id()}"
    try:
        done = subprocess.run(
            list(words),
            input=canary_messages(),
            capture_output=True,
            timeout=PROXY_SECONDS,
            check=False,
            cwd="/",
            env={**environment, CANARY_VARIABLE: canary},
        )
    except OSError as error:
        return f"{words[0]} cannot be run: {error.strerror}"
    except subprocess.TimeoutExpired:
        return f"it does not end within {PROXY_SECONDS} seconds after its input has ended"
    problem = find_canary_problem(done.stdout, canary)
    said = done.stderr.decode("utf-8", "replace").strip()[-WORDS_MAX:]
    return f"{problem}; it says: {said}" if problem and said else problem
