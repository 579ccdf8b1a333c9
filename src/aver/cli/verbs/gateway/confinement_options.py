"""The options of the commands that confine an agent, and the contract that they use."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aver.cli.terminal import Screen
from aver.errors import Unavailable, install_advice

if TYPE_CHECKING:
    from aver.gateway.mediation.confined_run import ConfinedRun, RunPlan
    from aver.gateway.mediation.contract import CapsuleContract

SHOWN_MAX = 20
"""Failed checks that are printed one by one."""

MCP_PROBE = "gateway_mcp_act"
"""The kind of an assertion that an act over MCP works inside."""


def add_contract(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--contract", metavar="FILE", help="the capsule contract (default: the one that comes with Aver)"
    )


def read_contract(given: argparse.Namespace) -> tuple[CapsuleContract, str]:
    """Read the contract of `--contract`. Returns it with the name that verdicts give it."""
    from aver.files.regular import open_file
    from aver.gateway.mediation.contract import CONTRACT_MAX, CapsuleContract
    from aver.gateway.specs import CONTRACT, read_spec_bytes

    if given.contract is None:
        return CapsuleContract.parse(read_spec_bytes(CONTRACT)), CONTRACT
    with open_file(Path(given.contract)) as file:
        return CapsuleContract.parse(file.read(CONTRACT_MAX + 1), given.contract), given.contract


@contextmanager
def open_run(given: argparse.Namespace, **more: Any) -> Iterator[ConfinedRun]:
    """Open the gateway and its door for a confined agent. `more` are fields of the run's plan."""
    from aver.cli.verbs.gateway.act import open_command_gateway
    from aver.gateway.mediation.confined_run import RunPlan, open_confined_run
    from aver.gateway.mediation.enclosure import require_wrapper

    require_wrapper()  # Before anything is made in the home.
    contract, path = read_contract(given)
    if find_spec("mcp") is None and any(each["kind"] == MCP_PROBE for each in contract.document["assertions"]):
        raise Unavailable(
            "the contract wants the gateway's MCP server inside, and its packages are not installed",
            advice=install_advice("gateway"),
        )
    plan: RunPlan = RunPlan(contract=contract, contract_path=path, environment=dict(os.environ), **more)
    with open_command_gateway(given) as gateway, open_confined_run(gateway, plan) as run:
        yield run


def print_verdict(verdict: dict[str, Any], screen: Screen) -> None:
    """Print a verdict: its status, the counts, and each check that failed."""
    summary = verdict["summary"]
    counts = f"{summary['n_ok']} of {summary['n_assertions']} assertions, "
    counts += f"{summary['n_clauses_ok']} of {summary['n_clauses']} clauses hold"
    screen.print_line(screen.status_mark("passed" if verdict["ok"] else "failed"), f" {verdict['status']}: {counts}")
    failed = [each for each in (*verdict["results"], *verdict["clauses"]) if not each["ok"]]
    for each in failed[:SHOWN_MAX]:
        screen.print_wrapped(f"{each['id']}: {each['reason_code']}: {each['details']}", indent="  ")
    if len(failed) > SHOWN_MAX:
        screen.print_line(f"  and {len(failed) - SHOWN_MAX} more")
