"""Trying out the hooks that are installed: each gets a canary, through the very command that its client runs."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal, NamedTuple

from aver.agents.registry import AGENTS, load_client, load_hook
from aver.cli.clients import build_user_environment
from aver.clock import new_id
from aver.config import Config
from aver.errors import AverError
from aver.hooks.failures import read_failures
from aver.hooks.selftest import canary_payload, success_message
from aver.install.hooks import installed_commands, read_hooks_state
from aver.text import plural

__all__ = ["HookFinding", "check_gate_rules", "check_unsealed_failures", "try_hooks"]

CANARY_TIMEOUT_SECONDS = 60
"""How long a hook may take here: as long as clients wait for it."""

MAX_PARALLEL = 8
"""Canaries in the air: each mostly waits for the disk."""

WORDS_MAX = 300
"""Characters of what a hook says that are shown."""


class HookFinding(NamedTuple):
    """What came of trying out one client's hooks."""

    status: Literal["ok", "warning", "problem"]
    subject: str
    words: str
    advice: str = ""


def try_hooks() -> Iterator[HookFinding]:
    """What comes of every client's hooks. Clients without any are passed over."""
    around = build_user_environment(None)
    for client in AGENTS:
        try:
            commands = list(installed_commands(load_client(client), around))
            still_to_do = [one.why for one in read_hooks_state(load_client(client), around) if one.why]
        except AverError as error:
            yield HookFinding("problem", "hooks", f"{client}: {error.message}", error.advice)
            continue
        failures = _find_failures(client, commands)
        for event, why in failures.items():
            yield HookFinding("problem", "hooks", f"{client} {event} does not work: {why}", f"aver install {client}")
        if commands and not failures:
            events = ", ".join(event for event, _ in commands)
            words = f"{client}: a canary went through each of {events}"
            # A canary shows that the command works. It does not see whether the client runs and heeds it.
            yield (
                HookFinding("warning", "hooks", "; ".join([words, *still_to_do]))
                if still_to_do
                else HookFinding("ok", "hooks", words)
            )
        elif commands:
            yield from (HookFinding("warning", "hooks", f"{client}: {why}") for why in still_to_do)


def check_gate_rules(config: Config) -> Iterator[HookFinding]:
    """Whether the gate has rules to decide by. A canary is judged by those that Aver brings, not by these."""
    from aver.gate.ask import load_gate

    gate = load_gate(config, "")
    if gate.bundle is None:
        words = f"every call that a hook asks about is denied: there are no rules to decide by: {gate.trouble}"
        yield HookFinding("problem", "hooks", words, "aver policy check tells more")


def check_unsealed_failures(home: Path) -> Iterator[HookFinding]:
    """Failures of hooks that are remembered and not sealed."""
    try:
        left = read_failures(home)
    except OSError as error:
        yield HookFinding("problem", "hooks", f"failures of hooks cannot be remembered: {error}", "move that away")
        return
    if left:
        newest = left[-1]
        words = f"{newest['tool']} {newest['event']} at {newest['at']}: {newest['why'][:WORDS_MAX]}"
        count = plural(len(left), "failure")
        yield HookFinding(
            "warning", "hooks", f"{count} of hooks, not sealed yet; {words}", "the next hook that works does"
        )


def _find_failures(client: str, commands: list[tuple[str, list[str]]]) -> dict[str, str]:
    """What is wrong with which event's hook."""
    with ThreadPoolExecutor(MAX_PARALLEL) as pool:
        troubles = pool.map(lambda one: _try_hook(client, *one), commands)
        return {event: why for (event, _), why in zip(commands, troubles, strict=True) if why}


def _try_hook(client: str, event: str, command: list[str]) -> str:
    """Why a hook does not work; empty where it does."""
    name = f"canary-{new_id()}"
    payload = json.dumps(canary_payload(name))
    words, given = ([*command, payload], "") if event == "notify" else (command, payload)
    try:
        done = subprocess.run(
            words, input=given, capture_output=True, text=True, timeout=CANARY_TIMEOUT_SECONDS, check=False, cwd="/"
        )
    except (OSError, UnicodeDecodeError) as error:
        return f"{command[-1]} cannot be run: {error}"
    except subprocess.TimeoutExpired:
        return f"it takes longer than {CANARY_TIMEOUT_SECONDS} seconds"
    if done.returncode != 0 or success_message(name) not in done.stderr:
        said = (done.stderr or done.stdout).strip()[-WORDS_MAX:]
        return f"exit code {done.returncode}, and it says: {said or 'nothing'}"
    if event in load_hook(client).gating and name not in done.stdout:
        return "what must be denied was not denied"
    return ""
