"""Seal what an agent did, verify it, and see what a changed record looks like.

    python examples/seal_and_verify.py

Everything happens in a directory that is gone afterwards.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import aver

CHAIN = "demo.refactoring"


def intent(request: str) -> aver.Capsule:
    """What the agent is about to do, and why; sealed before it does it."""
    return aver.of_kind(
        aver.Capsule(
            type="agent",
            trigger=aver.Trigger(source="developer", request=request),
            context=aver.Context(agent_id="refactorer"),
            reasoning=aver.Reasoning(
                analysis="two call sites use the old name",
                options=[
                    aver.Option(id="rename", description="rename everywhere", feasibility=0.9, selected=True),
                    aver.Option(id="alias", description="keep an alias", rejection_reason="two names for one thing"),
                ],
                selected_option="rename",
                confidence=0.8,
            ),
        ),
        "audit.intent",
    )


def outcome(before: aver.Sealed) -> aver.Capsule:
    """What came of it, tied to the intent."""
    call = aver.ToolCall(tool="sed", arguments={"files": ["a.py", "b.py"]}, result="2 files", success=True)
    draft = aver.Capsule(
        type="tool",
        parent_id=before.id,
        context=aver.Context(agent_id="refactorer"),
        execution=aver.Execution(tool_calls=[call], duration_ms=12),
        outcome=aver.Outcome(status="success", summary="renamed in 2 files", side_effects=["wrote a.py", "wrote b.py"]),
    )
    return aver.of_kind(draft, "audit.outcome", refs={"intent": before.id})


def main() -> None:
    with tempfile.TemporaryDirectory() as directory, aver.open_ledger(home=Path(directory)) as ledger:
        before = ledger.append(CHAIN, intent("rename load() to read()"))
        after = ledger.append(CHAIN, outcome(before))
        verdict = ledger.verify(CHAIN)
        print(f"{verdict.subject}: {verdict.status}, {verdict.records} records")

        changed = after.canonical.replace(b"renamed in 2 files", b"renamed in 1 file ")
        forged = aver.Sealed(changed, after.hash, after.signature, signed_at=after.signed_at, signed_by=after.signed_by)
        active = ledger.keys.ring().active("ledger")
        assert active is not None
        print(aver.verify(forged, keys=[active.key]).first_bad)


if __name__ == "__main__":
    main()
