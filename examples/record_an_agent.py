"""Record what an agent does: intents before, outcomes after, reasoning in between, secrets masked.

    python examples/record_an_agent.py

Everything happens in a directory that is gone afterwards.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import defaultdict
from pathlib import Path

import aver

CHAIN = "demo.agent"


@aver.audit(chain=CHAIN, agent_id="deployer", type="agent")
async def deploy(service: str, token: str) -> str:
    """Decide, seal the reasons, act."""
    call = aver.current()
    call.reason(analysis="the new version passed its tests", model="some-model", confidence=0.9)
    call.option("deploy now", pros=["fixes the outage"], selected=True)
    call.option("deploy tonight", pros=["less traffic"], rejection_reason="the outage goes on until then")
    await call.seal_reasoning_async()
    await asyncio.gather(*(restart(service, number) for number in range(3)))
    call.tokens(tokens_in=900, tokens_out=120)
    return "deployed"


@aver.audit(chain=CHAIN, agent_id="deployer")
async def restart(service: str, number: int) -> str:
    """One of several effects; its record belongs to the call that caused it."""
    await asyncio.sleep(0)
    return f"{service}-{number} restarted"


async def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        with aver.open_ledger(home=Path(directory)) as ledger, aver.audit_scope(ledger=ledger, session_id="s-1"):
            cut_off = asyncio.create_task(deploy("web", token="s3cr3t-token"))
            while CHAIN not in ledger.chains():
                await asyncio.sleep(0.001)
            # What a crash would leave: an intent without an outcome.
            print("unfinished:", next(aver.unfinished_intents(ledger)).to_dict()["trigger"]["request"])
            print("result:", await cut_off)
            show(ledger)
            print("verdict:", ledger.verify().status)


def show(ledger: aver.Ledger) -> None:
    kinds = defaultdict(list)
    for record in ledger.read(CHAIN):
        content = record.to_dict()
        name = content["context"]["environment"].get("audit", {}).get("function", "deploy").rpartition(".")[2]
        kinds[name].append(record.kind)
        if record.sequence == 0:
            print("masked:", content["context"]["environment"]["masked"]["count"], "in", content["trigger"]["request"])
    print("deploy:", *kinds["deploy"])
    print("restart:", len(kinds["restart"]), "records under it")


if __name__ == "__main__":
    asyncio.run(main())
