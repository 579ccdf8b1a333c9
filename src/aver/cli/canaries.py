"""Trying out the hooks that are installed: each gets a canary, through the very command that its client runs."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal, NamedTuple

from aver.cli.clients import surroundings
from aver.cli.output import plural
from aver.clock import new_id
from aver.errors import AverError
from aver.home import Config
from aver.ingest.hooks.canary import canary_payload, went_through
from aver.ingest.hooks.failures import remembered
from aver.ingest.hooks.running import hook_of
from aver.install.hook_places import HOOK_CLIENTS
from aver.install.hooking import hooks_standing, installed_commands

__all__ = ["Finding", "not_sealed", "tried_out", "without_rules"]

SECONDS = 60
"""How long a hook may take here: as long as clients wait for it."""

AT_ONCE = 8
"""Canaries in the air: each mostly waits for the disk."""

WORDS_MAX = 300
"""Characters of what a hook says that are shown."""


class Finding(NamedTuple):
    """What came of trying out one client's hooks."""

    status: Literal["ok", "warning", "problem"]
    subject: str
    words: str
    advice: str = ""


def tried_out() -> Iterator[Finding]:
    """What comes of every client's hooks. Clients without any are passed over."""
    around = surroundings(None)
    for client in HOOK_CLIENTS:
        try:
            commands = list(installed_commands(client, around))
            still_to_do = [one.why for one in hooks_standing(client, around) if one.why]
        except AverError as error:
            yield Finding("problem", "hooks", f"{client}: {error.message}", error.advice)
            continue
        failures = _failures(client, commands)
        for event, why in failures.items():
            yield Finding("problem", "hooks", f"{client} {event} does not work: {why}", f"aver install {client}")
        if commands and not failures:
            events = ", ".join(event for event, _ in commands)
            words = f"{client}: a canary went through each of {events}"
            # A canary shows that the command works. It does not see whether the client runs and heeds it.
            yield (
                Finding("warning", "hooks", "; ".join([words, *still_to_do]))
                if still_to_do
                else Finding("ok", "hooks", words)
            )
        elif commands:
            yield from (Finding("warning", "hooks", f"{client}: {why}") for why in still_to_do)


def without_rules(config: Config) -> Iterator[Finding]:
    """Whether the gate has rules to decide by. A canary is judged by those that Aver brings, not by these."""
    from aver.gate.door import gate_of

    gate = gate_of(config, "")
    if gate.bundle is None:
        words = f"every call that a hook asks about is denied: there are no rules to decide by: {gate.trouble}"
        yield Finding("problem", "hooks", words, "aver policy check tells more")


def not_sealed(home: Path) -> Iterator[Finding]:
    """Failures of hooks that are remembered and not sealed."""
    try:
        left = remembered(home)
    except OSError as error:
        yield Finding("problem", "hooks", f"failures of hooks cannot be remembered: {error}", "move that away")
        return
    if left:
        newest = left[-1]
        words = f"{newest['tool']} {newest['event']} at {newest['at']}: {newest['why'][:WORDS_MAX]}"
        count = plural(len(left), "failure")
        yield Finding("warning", "hooks", f"{count} of hooks, not sealed yet; {words}", "the next hook that works does")


def _failures(client: str, commands: list[tuple[str, list[str]]]) -> dict[str, str]:
    """What is wrong with which event's hook."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        troubles = pool.map(lambda one: _trouble(client, *one), commands)
        return {event: why for (event, _), why in zip(commands, troubles, strict=True) if why}


def _trouble(client: str, event: str, command: list[str]) -> str:
    """Why a hook does not work; empty where it does."""
    name = f"canary-{new_id()}"
    payload = json.dumps(canary_payload(name))
    words, given = ([*command, payload], "") if event == "notify" else (command, payload)
    try:
        done = subprocess.run(words, input=given, capture_output=True, text=True, timeout=SECONDS, check=False, cwd="/")
    except (OSError, UnicodeDecodeError) as error:
        return f"{command[-1]} cannot be run: {error}"
    except subprocess.TimeoutExpired:
        return f"it takes longer than {SECONDS} seconds"
    if done.returncode != 0 or went_through(name) not in done.stderr:
        said = (done.stderr or done.stdout).strip()[-WORDS_MAX:]
        return f"exit code {done.returncode}, and it says: {said or 'nothing'}"
    if event in hook_of(client).gating and name not in done.stdout:
        return "what must be denied was not denied"
    return ""
