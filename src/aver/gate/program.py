"""The program that decides: everything besides the action and the inputs that a decision follows from.

Two policy servers must decide by the same rules and settings, and a verifier must know by which. So a program has a
description, and its digest names it:

    {"schema", "files", "thresholds", "max_retries", "groups", "trusted", "caution", "tools", "effects_version"}

    schema, files    the schema of policies, and the rules by file name
    thresholds       {"pass_below", "skip_above"}
    groups, trusted  the groups of agents, and the MCP servers whose annotations are believed
    tools            the declarations of own tools
    effects_version  the version of the tables and readers that find what an action does

The digest is SHA-256 over the canonical bytes of that object.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from aver.capsule.canonical import canonical_bytes
from aver.errors import Unavailable

if TYPE_CHECKING:
    from aver.gate.decide import Gate
    from aver.gate.policy.bundle import PolicyBundle

KNOWN_MAX = 32
"""Programs whose digests are kept. A process decides by one or two, and is asked for each act."""

_known_digests: dict[tuple[str, bytes], str] = {}
"""Digests of programs, by the digest of the rules and the canonical settings."""


_last: list[tuple[Gate, str]] = []
"""The gate that was asked about last, and its digest: both policy servers of a process decide by the same one."""


def describe_program(gate: Gate) -> dict[str, Any]:
    """Describe the program of a gate, as JSON values. Raises `Unavailable` where the gate has no rules."""
    bundle = _require_bundle(gate)
    return {**bundle.to_dict(), **_describe_settings(gate)}


def program_digest(gate: Gate) -> str:
    """Return the digest of a gate's program. Raises `Unavailable` where the gate has no rules."""
    for known_gate, digest in _last:
        if known_gate is gate:
            return digest
    # The bundle has a digest of its own. So the rules, which are long, are hashed once and not for each act.
    key = (_require_bundle(gate).digest, canonical_bytes(_describe_settings(gate)))
    known = _known_digests.get(key)
    if known is None:
        known = hashlib.sha256(canonical_bytes(describe_program(gate))).hexdigest()
        if len(_known_digests) >= KNOWN_MAX:
            _known_digests.clear()
        _known_digests[key] = known
    _last[:] = [(gate, known)]
    return known


def _require_bundle(gate: Gate) -> PolicyBundle:
    if gate.bundle is None:
        raise Unavailable(f"there are no rules to decide by: {gate.trouble}", advice="run: aver policy check")
    return gate.bundle


def _describe_settings(gate: Gate) -> dict[str, Any]:
    return {
        "thresholds": gate.thresholds.to_dict(),
        "max_retries": gate.max_retries,
        "groups": {group: sorted(members) for group, members in gate.groups.items()},
        "trusted": sorted(gate.trusted),
        "caution": gate.caution,
        "tools": {name: dict(declared) for name, declared in gate.tools.items()},
        "effects_version": gate.known.effects_version,
    }
