"""The hooks and MCP servers of clients: each gets a canary, by the very command that its client runs."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from aver import __version__
from aver.agents.registry import AGENTS, client_names, load_client, load_hook
from aver.cli.clients import build_user_environment
from aver.cli.verbs.doctor.report import DoctorReport
from aver.clock import new_id
from aver.config import Config
from aver.errors import AverError, NotFound, install_advice
from aver.gate.changes import GateChange, find_newest_change
from aver.hooks.run import read_failures
from aver.hooks.selftest import canary_payload, success_message
from aver.install.hooks import installed_commands, read_hooks_state
from aver.install.mcp_server import server_commands
from aver.text import plural

CANARY_TIMEOUT_SECONDS = 60
"""How long a hook may take here: as long as clients wait for it."""

MAX_PARALLEL = 8
"""Canaries in the air: each mostly waits for the disk."""

WORDS_MAX = 300
"""Characters of what a hook says that are shown."""


def try_hooks() -> Iterator[DoctorReport]:
    """Test every client's hooks. Skip clients without hooks."""
    around = build_user_environment(None)
    for client in AGENTS:
        try:
            commands = list(installed_commands(load_client(client), around))
            still_to_do = [one.why for one in read_hooks_state(load_client(client), around) if one.why]
        except AverError as error:
            yield DoctorReport("problem", "hooks", f"{client}: {error.message}", error.advice)
            continue
        failures = _find_failures(client, commands)
        for event, why in failures.items():
            yield DoctorReport("problem", "hooks", f"{client} {event} does not work: {why}", f"aver install {client}")
        if commands and not failures:
            events = ", ".join(event for event, _ in commands)
            words = f"{client}: a test call passed each of {events}"
            # A canary shows that the command works. It does not see whether the client runs and heeds it.
            yield (
                DoctorReport("warning", "hooks", "; ".join([words, *still_to_do]))
                if still_to_do
                else DoctorReport("ok", "hooks", words)
            )
        elif commands:
            yield from (DoctorReport("warning", "hooks", f"{client}: {why}") for why in still_to_do)


def check_gate_rules(config: Config) -> Iterator[DoctorReport]:
    """Whether the gate has rules to decide by. A canary is judged by those that Aver brings, not by these."""
    from aver.gate.ask import load_gate
    from aver.gate.policy.canaries import CANARIES, find_passing_canaries
    from aver.hooks.settings import read_hook_settings
    from aver.ledger import open_ledger

    change = None
    try:
        with open_ledger(config.ledger, home=config.home, create=False) as ledger:
            gate = load_gate(config, "", ledger)
            change = find_newest_change(ledger)
    except NotFound:
        gate = load_gate(config, "")
    if gate.bundle is None:
        words = f"every call that a hook asks about is denied: there are no rules to decide by: {gate.trouble}"
        yield DoctorReport("problem", "gate", words, "run aver policy check")
    elif len(find_passing_canaries(gate)) == len(CANARIES):
        words = f"nobody is ever asked: under the rules in {gate.rules_at or 'force'} every harmful test action passes"
        yield DoctorReport("warning", "gate", words, "run aver policy check, and look at who wrote them")
    observing = [agent for agent in AGENTS if read_hook_settings(config, agent).mode == "observe"]
    if observing:
        words = f"mode observe for {', '.join(observing)}: decisions are sealed, and nothing is held back"
        yield DoctorReport("warning", "gate", words, "to hold back again: aver install CLIENT, or [gate] mode")
    if change is not None:
        yield _report_change(change)


def _report_change(change: GateChange) -> DoctorReport:
    """Say since when rules, settings and keys are as they are, and what changed then."""
    if change.is_first:
        return DoctorReport("ok", "gate", f"rules, settings and keys are unchanged since {change.at}")
    by = f" by {change.by}" if change.by else ""
    words = f"rules, settings or keys changed at {change.at}{by}: {change.words[:WORDS_MAX]}"
    more = [*(f"{name} passes since then" for name in change.opened), *change.loosened]
    if not more:
        return DoctorReport("ok", "gate", words)
    words = f"{words}; {'; '.join(more)[:WORDS_MAX]}"
    # A user who chose this by a command of Aver need not find out who did it.
    return (
        DoctorReport("ok", "gate", words)
        if change.by
        else DoctorReport("warning", "gate", words, "find out who changed them")
    )


SERVER_TIMEOUT_SECONDS = 30
"""How long an MCP server may take to answer for the first time."""

ANSWER_MAX = 1024 * 1024
"""Bytes of a server's first answer that are read."""

_INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "aver doctor", "version": __version__},
    },
}


def try_servers() -> Iterator[DoctorReport]:
    """Start every client's MCP server once, as the client does, and let it introduce itself."""
    around = build_user_environment(None)
    for client in map(load_client, client_names()):
        try:
            commands = server_commands(client, around)
        except AverError as error:
            yield DoctorReport("problem", "mcp", f"{client.name}: {error.message}", error.advice)
            continue
        for words, more in commands:
            why = _try_server(words, {**os.environ, **more})
            if why:
                text = f"{client.name}: the MCP server does not start: {why}"
                advice = f"aver install {client.name}, or {install_advice('mcp')}"
                yield DoctorReport("problem", "mcp", text, advice)
            else:
                yield DoctorReport("ok", "mcp", f"{client.name}: the MCP server starts and answers")


def _try_server(words: list[str], environment: dict[str, str]) -> str:
    """Why an MCP server does not work; empty where it answers `initialize`."""
    question = json.dumps(_INITIALIZE) + "\n"
    try:
        done = subprocess.run(
            words,
            input=question.encode(),
            capture_output=True,
            timeout=SERVER_TIMEOUT_SECONDS,
            check=False,
            cwd="/",
            env=environment,
        )
    except OSError as error:
        return f"{words[0]} cannot be run: {error.strerror}"
    except subprocess.TimeoutExpired:
        return f"it does not end within {SERVER_TIMEOUT_SECONDS} seconds after its input has ended"
    first = done.stdout[:ANSWER_MAX].split(b"\n", 1)[0]
    try:
        answer = json.loads(first)
        if answer["id"] == 1 and answer["result"]["serverInfo"]["name"]:
            return ""
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    said = done.stderr.decode("utf-8", "replace").strip()[-WORDS_MAX:]
    return f"exit code {done.returncode}, and it says: {said or 'nothing'}"


def check_unsealed_failures(home: Path) -> Iterator[DoctorReport]:
    """Failures of hooks that are remembered and not sealed."""
    try:
        left = read_failures(home)
    except OSError as error:
        yield DoctorReport("problem", "hooks", f"failures of hooks cannot be remembered: {error}", "move that away")
        return
    if left:
        newest = left[-1]
        words = f"{newest['tool']} {newest['event']} at {newest['at']}: {newest['why'][:WORDS_MAX]}"
        count = plural(len(left), "failure")
        advice = "mend the cause, if it lasts; the next hook that works seals them"
        yield DoctorReport("warning", "hooks", f"{count} of hooks, not sealed yet; {words}", advice)


def _find_failures(client: str, commands: list[tuple[str, list[str]]]) -> dict[str, str]:
    """Describe the problems of each event's hook."""
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
        return "the test call was not denied"
    return ""
