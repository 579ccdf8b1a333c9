"""All targets."""

from __future__ import annotations

from fuzz import (
    agent_inputs,
    explorer_inputs,
    gateway_inputs,
    gateway_wire,
    mcp_inputs,
    parsers,
    protocol_inputs,
    stores,
    verbs,
)
from fuzz.target import Target

ALL: tuple[type[Target], ...] = (
    *stores.TARGETS,
    *parsers.TARGETS,
    *gateway_inputs.TARGETS,
    *gateway_wire.TARGETS,
    *protocol_inputs.TARGETS,
    *mcp_inputs.TARGETS,
    *agent_inputs.TARGETS,
    *explorer_inputs.TARGETS,
    *verbs.TARGETS,
)

BY_NAME = {target.name: target for target in ALL}
