"""`aver gateway status`: asks every part of the gateway how it is."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from aver.cli.options import add_json
from aver.cli.terminal import Screen, print_json
from aver.errors import AverError, NotFound

if TYPE_CHECKING:
    from aver.config import Config
    from aver.gateway.parts.pinned_program import PinnedProgram

EXAMPLES = """\
  aver gateway status
  aver gateway status --json

exit code: 0 all parts answer and run the pinned program, which has the rules in force, or all are in one process;
1 otherwise."""

HEALTH_SECONDS = 5.0
"""How long a part may take to answer."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.config import load_config
    from aver.gateway.parts.entrance import is_apart
    from aver.gateway.parts.part_directories import PARTS, PartDirectories
    from aver.gateway.parts.pinned_program import PinnedProgram
    from aver.gateway.settings import read_gateway_settings

    config = load_config()  # Without the ledger: a new home has none yet, and parts of their own users none at all.
    settings = read_gateway_settings(config)
    directories = PartDirectories(config.home)
    apart = is_apart(config.home, settings)
    pinned = PinnedProgram.read(directories.program_path) if apart else None
    parts = [_ask_part(directories, settings, part) for part in PARTS] if apart else []
    words = "" if pinned is None else _find_rules_problem(config, pinned)
    is_well = not words and all(part["ok"] and pinned and part["program_id"] == pinned.program_id for part in parts)
    if given.json:
        print_json(
            {
                "deployment": "apart" if apart else "embedded",
                "program_id": None if pinned is None else pinned.program_id,
                "parts": parts,
                "rules_problem": words,
                "ok": is_well,
            }
        )
        return 0 if is_well else 1
    if pinned is None:
        screen.print_line("the gateway and its parts run in one process; aver gateway init makes parts that run apart")
        return 0
    screen.print_line(f"program {pinned.program_id}, pinned {pinned.pinned_at}")
    if words:
        screen.print_line(screen.status_mark("problem"), f" {'rules':<10}{words}")
    for part in parts:
        same = part["program_id"] == pinned.program_id
        mark = screen.status_mark("ok" if part["ok"] and same else "problem")
        words = part["problem"] or ("" if same else f"runs another program: {part['program_id']}")
        screen.print_line(mark, f" {part['part']:<10}{part['address']}  {words}")
    return 0 if is_well else 1


def _find_rules_problem(config: Config, pinned: PinnedProgram) -> str:
    """Say why the policy servers refuse every act: the rules and settings of this home are not the pinned ones."""
    from aver.check import open_ledger
    from aver.gate.ask import load_gate
    from aver.gateway.policy_server import name_program

    try:
        try:
            with open_ledger(create=False) as ledger:  # It says which rules outside of the home are trusted.
                gate = load_gate(config, "", ledger=ledger)
        except NotFound:
            gate = load_gate(config, "")
        if gate.bundle is not None and name_program(gate) == pinned.program_id:
            return ""
        words = "they do not load: see aver policy check" if gate.bundle is None else "they are not the pinned ones"
    except AverError as error:
        words = error.message
    return f"every act is POLICY_UNAVAILABLE: {words}; look at the change: aver gateway pin --dry-run"


def _ask_part(directories: Any, settings: Any, part: str) -> dict[str, Any]:
    """Return how a part is."""
    from aver.gateway.parts.part_directories import GATEWAY, LINK_TOKEN, read_link_token
    from aver.serving.part_client import PartClient

    address = directories.find_address(part, settings)
    found: dict[str, Any] = {"part": part, "address": str(address), "ok": False, "program_id": None, "problem": ""}
    try:
        own = directories.of(GATEWAY)
        token = read_link_token(own / (LINK_TOKEN if part == GATEWAY else f"{part}.token"))
        health = PartClient(address, token, HEALTH_SECONDS, part=part).get("/health")
        return {**found, "ok": health.get("part") == part, "program_id": health.get("program_id")}
    except AverError as error:
        return {**found, "problem": error.message}
