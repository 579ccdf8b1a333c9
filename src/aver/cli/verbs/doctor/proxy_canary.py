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
from aver.config import Config
from aver.errors import AverError, NotFound
from aver.install.proxied_servers import NOT_BEHIND, TO_RUN, proxied_commands, read_proxies_state
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


def check_proxied_servers(config: Config) -> Iterator[DoctorReport]:
    """Warn where a client has servers that no proxy guards, and where nobody could approve a call through a proxy.

    A client without any proxy gets no warning: nobody has asked for one.
    """
    around = build_user_environment(None)
    has_proxy = False
    for client in map(load_client, client_names()):
        states = [state for state in read_proxies_state(client, around) if state.state != "unreadable"]
        if not any(state.state == "installed" for state in states):
            continue
        has_proxy = True
        for state in states:
            _, _, left = state.why.partition(NOT_BEHIND)
            left, _, command = left.partition(TO_RUN)
            if left:
                words = f"{client.name}: servers that are not behind the proxy, in {state.path}: {left}"
                advice = f"{command or f'aver install {client.name} --proxy'}, or guard them by hand"
                yield DoctorReport("warning", "proxy", words, advice)
    if has_proxy and not _has_approver(config):
        advice = "aver keys new person:NAME, then aver approvals enrol person:NAME"
        yield DoctorReport("warning", "proxy", "nobody can approve a call: no approver is enrolled", advice)


def _has_approver(config: Config) -> bool:
    from aver.check import open_ledger
    from aver.gate.approvals import load_approval_setup

    try:
        with open_ledger(home=config.home, create=False) as ledger:
            return bool(load_approval_setup(ledger).roster.approvers)
    except NotFound:  # A new home has no ledger yet.
        return False


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
