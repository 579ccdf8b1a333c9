"""An agent with tools of its own: two are declared, one is not.

    python examples/declare_own_tools.py

`aver.tool` says what a tool does, so that the gate can judge its calls. The gate still finds secrets in the arguments
of a declared tool. Everything happens in a directory that is gone afterwards.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aver

ORDERS = {"17": "two lamps"}


@aver.tool(effects=["read"])
def lookup_order(order: str) -> str:
    """Look an order up."""
    return ORDERS.get(order, "no such order")


@aver.tool(effects=["network", "egress"])
def send_mail(to: str, text: str) -> str:
    """Send a mail: another machine gets it."""
    return f"sent to {to}"


def close_order(order: str) -> str:
    """Close an order. Nobody has declared what this does."""
    return ORDERS.pop(order)


def call(run: aver.AgentRuntime, tool: Callable[..., str], **arguments: Any) -> None:
    """Ask the gate about a call, make it if the gate allows that, and record it."""
    answer = run.gate(action_type="tool_call", tool=tool, arguments=arguments)
    if not answer["allows"]:
        print(f"{tool.__name__}: {answer['decision']}: {answer['reason'].partition(';')[0]}")
        return
    result = tool(**arguments)
    run.record_simple("tool_call", tool.__name__, arguments, result, gate_id=answer["gate_id"])
    print(f"{tool.__name__}: {answer['decision']}: {result}")


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory, "work")
        place.mkdir()
        with (
            aver.open_ledger(home=Path(directory, "home")) as ledger,
            aver.AgentRuntime(Path(directory, "run"), ledger=ledger, agent="shop", workspace=place) as run,
        ):
            call(run, lookup_order, order="17")
            call(run, send_mail, to="ada@example.org", text="Your lamps are on their way.")
            call(run, close_order, order="17")
            call(run, lookup_order, order="../.env")
            run.finalize()
            print("run:", run.verify().status)


if __name__ == "__main__":
    main()
