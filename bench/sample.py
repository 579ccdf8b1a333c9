"""The capsule that every row measures: 1.6 kB of canonical bytes, two options and one tool call."""

from __future__ import annotations

from dataclasses import replace

import aver
from aver.clock import new_id

BASE = aver.Capsule(
    type="tool",
    trigger=aver.Trigger(
        source="release-agent",
        request="Roll the web frontend out to the staging cluster and run the smoke tests",
        correlation_id="req-20261101-0042",
    ),
    context=aver.Context(
        agent_id="release-agent",
        session_id="session-42",
        environment={"cluster": "staging", "region": "eu-north-1", "flags": {"canary": True, "waves": [5, 25, 100]}},
    ),
    reasoning=aver.Reasoning(
        analysis="The image passed its tests, the error budget is whole, and the release window closes at five.",
        options=[
            aver.Option(
                id="opt_1",
                description="Roll out in three waves",
                pros=["small blast radius", "can stop at any wave"],
                cons=["takes twenty minutes"],
                feasibility=0.9,
                selected=True,
            ),
            aver.Option(
                id="opt_2",
                description="Roll out at once",
                pros=["done in two minutes"],
                cons=["a fault reaches everyone"],
                feasibility=0.6,
                rejection_reason="an error would hit every user before anyone saw it",
            ),
        ],
        selected_option="Roll out in three waves",
        reasoning="Waves cost time we have and limit harm we could not undo.",
        confidence=0.87,
        model="model-1",
    ),
    execution=aver.Execution(
        tool_calls=[
            aver.ToolCall(
                tool="kubectl_apply",
                arguments={"manifest": "web.yaml", "namespace": "staging"},
                result={"configured": ["deployment/web"], "replicas": 6},
                success=True,
                duration_ms=420,
            )
        ],
        duration_ms=512,
        resources_used={"tokens_in": 1200, "tokens_out": 310, "cost_usd": 0.0123},
    ),
    outcome=aver.Outcome(
        status="success",
        summary="deployment/web rolled out in three waves",
        side_effects=["deployment/web replicas: 4 -> 6"],
        metrics={"latency_ms": 512},
    ),
)


def sample() -> aver.Capsule:
    return replace(BASE, id=new_id())
