"""The effect of `FinalizeOutput`: the answer goes to the person who uses the agent.

The caller shows the text that it gets back, and no other. The record has its digest: the session's own transcript has
the text.
"""

from __future__ import annotations

import hashlib

from aver.gateway.executor.executor import EffectDone, EffectOrder


def release_answer(order: EffectOrder) -> EffectDone:
    """Return the answer that was judged, after the patch."""
    text = str(order.inputs["text"])
    data = text.encode("utf-8", "surrogatepass")
    found = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    return EffectDone("released the answer", {**found, "text": text}, recorded=found)
