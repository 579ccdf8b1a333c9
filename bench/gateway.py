"""The gateway's rows of `make bench`: one act, embedded, beside three durable appends and two decisions.

    python bench/gateway.py             these rows alone

The act writes a small file: PREVIEW, COMMIT, effect, outcome. The floor is the work that no gateway could leave out:
the decision with its PREVIEW, the mark and the outcome are one durable append each, and two policy servers decide.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from measuring import Line, in_turns, table, timed
from sample import sample

import aver
from aver.agents.registry import provide_known_agents
from aver.gate.action import Facts
from aver.gate.ask import load_gate
from aver.gate.decide import decide
from aver.gateway.embedded_parts import open_embedded
from aver.gateway.gated_action import build_action
from aver.gateway.gateway import Door
from aver.gateway.request import BoundRequest
from aver.gateway.settings import read_gateway_settings

ACTS = 20
GROWTH = (100, 1000)
"""The acts of one session whose times are compared. `--long` compares the 100th with the 10,000th."""

CHAIN = "bench.floor"
INPUTS = {"relpath": "notes.txt", "content": "one line\n"}
DIFF = "--- /dev/null\n+++ b/notes.txt\n@@ -0,0 +1 @@\n+one line\n"


def bench_gateway(directory: Path, rounds: int, *, last: int = GROWTH[1]) -> list[Line]:
    provide_known_agents()
    home, workspace = directory / "gateway-home", directory / "gateway-work"
    workspace.mkdir(parents=True)
    with aver.open_ledger(directory / "gateway.db", home=home) as ledger:
        settings = read_gateway_settings(ledger.config)
        gateway = open_embedded(ledger, settings, workspace=str(workspace), session="bench", close=lambda: None)
        gate = load_gate(ledger.config, str(workspace), ledger)
        request = BoundRequest.bind("WriteWorkspaceFile", caller="bench", session="floor", inputs=INPUTS)
        action = build_action(request, action_id="a_floor", workspace=str(workspace), diff=DIFF)
        facts = Facts(now=aver.clock.now())
        number = iter(range(1_000_000))

        def floor() -> None:
            for _ in range(3):
                ledger.append(CHAIN, sample())
            decide(action, facts, gate)
            decide(action, facts, gate)

        def act(session: str = "bench") -> None:
            document = {
                "intent_id": "WriteWorkspaceFile",
                "inputs": {**INPUTS, "relpath": f"notes{next(number)}.txt"},
                "constraints": {},
                "caller": "bench",
            }
            answer = gateway.act(document, door=Door(session=session))
            if answer["reason_code"] != "ALLOW":
                raise SystemExit(f"the act was refused: {answer['summary']}")

        act()
        bare, ours = in_turns(rounds, timed(floor, ACTS), timed(act, ACTS))
        lines = [Line("PREVIEW + COMMIT, embedded", _ms(bare), _ms(ours), "–", f"{ours / bare:.2f} x floor", "≤ 1.5 x")]
        times = []
        for _ in range(last):
            began = time.perf_counter()
            act("growth")
            times.append(time.perf_counter() - began)
        early, late = (statistics.median(times[at - 50 : at]) for at in (GROWTH[0], last))
        words = f"  act {last:,} of a session beside act {GROWTH[0]}"
        lines.append(Line(words, _ms(early), _ms(late), "–", f"{late / early:.2f} x", "≤ 1.2 x"))
        gateway.close()
    return lines


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        print(table(bench_gateway(Path(name), 5, last=10_000 if "--long" in sys.argv else GROWTH[1])))
