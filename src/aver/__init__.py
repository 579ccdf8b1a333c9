"""Aver: gate what an AI agent is about to do, seal what it did, and let anyone prove it afterwards.

The names below are the public interface. They are loaded when first used, so that `import aver` costs almost
nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "aver.capsule": (
        *("Authority", "Blob", "Capsule", "CapsuleURI", "Context", "Execution", "Option", "Outcome", "Reasoning"),
        *("Sealed", "Signature", "Signer", "ToolCall", "Trigger", "ascii_json", "canonical_bytes", "chain_name"),
        *("of_kind", "parse_uri", "resolve_fragment", "seal", "validate"),
    ),
    "aver.capsule.masking.mask": ("Masked", "mask"),
    "aver.keys": ("KeyStore", "PublicKey", "Ring", "SeedSigner"),
    "aver.verdict": ("Check", "Finding", "Place", "Verdict"),
    "aver.ledger": ("Entry", "Head", "Ledger"),
    "aver.ledger.async_ledger": ("AsyncLedger",),
    "aver.ledger.bundle.export": ("export_bundle",),
    "aver.recording.asgi": ("AuditMiddleware",),
    "aver.recording.call": ("AuditedCall",),
    "aver.recording.decorator": ("audit",),
    "aver.recording.logging_handler": ("LedgerHandler",),
    "aver.recording.recorder": ("dropped_count",),
    "aver.recording.scope": ("audit_scope", "carry", "current"),
    "aver.recording.run": ("unfinished_intents",),
    "aver.gate.action": ("Action",),
    "aver.gate.ask": ("Answer", "ask"),
    "aver.gate.decision": ("Decision",),
    "aver.gate.own_tools": ("tool",),
    "aver.actions.action": ("AgentAction",),
    "aver.files.user_dirs": ("UserEnvironment",),
    "aver.ingest.contract": (
        *("AgentCall", "AgentEvent", "Permission", "Prompt", "Tokens", "build_unknown_event"),
        *("Adapter", "RawRecord", "RecordReader", "TranscriptParser", "TranscriptSource", "line_key"),
    ),
    "aver.ingest.json_lines": ("LineReader",),
    "aver.ingest.seal": ("TranscriptFollower",),
    "aver.ingest.foreign_json": ("parse_json",),
    "aver.gateway.gateway": ("Gateway",),
    "aver.gateway.calls.upstream": ("FunctionTools",),
    "aver.check": (
        *(
            "AgentRuntime",
            "ProtocolSession",
            "open_gateway",
            "open_ledger",
            "open_ledger_async",
            "run_protocol",
            "verify",
        ),
        "verify_with_key",
    ),
    "aver.protocol.view": ("Said", "View"),
    "aver.protocol.tools.standard_tools": ("protocol_tools",),
    "aver.errors": (
        *("AverError", "BadInput", "Exists", "HeadMoved", "IntegrityError", "InvalidCapsule", "NotCanonical"),
        *("NotFound", "NotRecorded", "OutcomeUnknown", "Refused", "Unavailable"),
    ),
}
_HOMES_WITH_GATE = ("aver.check", "aver.gate.ask")
"""Modules whose public names ask the gate, or make its decisions again."""
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Action",
    "Adapter",
    "AgentAction",
    "AgentCall",
    "AgentEvent",
    "AgentRuntime",
    "Answer",
    "AsyncLedger",
    "AuditMiddleware",
    "AuditedCall",
    "Authority",
    "AverError",
    "BadInput",
    "Blob",
    "Capsule",
    "CapsuleURI",
    "Check",
    "Context",
    "Decision",
    "Entry",
    "Execution",
    "Exists",
    "Finding",
    "FunctionTools",
    "Gateway",
    "Head",
    "HeadMoved",
    "IntegrityError",
    "InvalidCapsule",
    "KeyStore",
    "Ledger",
    "LedgerHandler",
    "LineReader",
    "Masked",
    "NotCanonical",
    "NotFound",
    "NotRecorded",
    "Option",
    "Outcome",
    "OutcomeUnknown",
    "Permission",
    "Place",
    "Prompt",
    "ProtocolSession",
    "PublicKey",
    "RawRecord",
    "Reasoning",
    "RecordReader",
    "Refused",
    "Ring",
    "Said",
    "Sealed",
    "SeedSigner",
    "Signature",
    "Signer",
    "Tokens",
    "ToolCall",
    "TranscriptFollower",
    "TranscriptParser",
    "TranscriptSource",
    "Trigger",
    "Unavailable",
    "UserEnvironment",
    "Verdict",
    "View",
    "__version__",
    "ascii_json",
    "ask",
    "audit",
    "audit_scope",
    "build_unknown_event",
    "canonical_bytes",
    "carry",
    "chain_name",
    "current",
    "dropped_count",
    "export_bundle",
    "line_key",
    "mask",
    "of_kind",
    "open_gateway",
    "open_ledger",
    "open_ledger_async",
    "parse_json",
    "parse_uri",
    "protocol_tools",
    "resolve_fragment",
    "run_protocol",
    "seal",
    "tool",
    "unfinished_intents",
    "validate",
    "verify",
    "verify_with_key",
]

if TYPE_CHECKING:
    from aver.actions.action import AgentAction
    from aver.capsule import (
        Authority,
        Blob,
        Capsule,
        CapsuleURI,
        Context,
        Execution,
        Option,
        Outcome,
        Reasoning,
        Sealed,
        Signature,
        Signer,
        ToolCall,
        Trigger,
        ascii_json,
        canonical_bytes,
        chain_name,
        of_kind,
        parse_uri,
        resolve_fragment,
        seal,
        validate,
    )
    from aver.capsule.masking.mask import Masked, mask
    from aver.check import (
        AgentRuntime,
        ProtocolSession,
        open_gateway,
        open_ledger,
        open_ledger_async,
        run_protocol,
        verify,
        verify_with_key,
    )
    from aver.errors import (
        AverError,
        BadInput,
        Exists,
        HeadMoved,
        IntegrityError,
        InvalidCapsule,
        NotCanonical,
        NotFound,
        NotRecorded,
        OutcomeUnknown,
        Refused,
        Unavailable,
    )
    from aver.files.user_dirs import UserEnvironment
    from aver.gate.action import Action
    from aver.gate.ask import Answer, ask
    from aver.gate.decision import Decision
    from aver.gate.own_tools import tool
    from aver.gateway.calls.upstream import FunctionTools
    from aver.gateway.gateway import Gateway
    from aver.ingest.contract import (
        Adapter,
        AgentCall,
        AgentEvent,
        Permission,
        Prompt,
        RawRecord,
        RecordReader,
        Tokens,
        TranscriptParser,
        TranscriptSource,
        build_unknown_event,
        line_key,
    )
    from aver.ingest.foreign_json import parse_json
    from aver.ingest.json_lines import LineReader
    from aver.ingest.seal import TranscriptFollower
    from aver.keys import KeyStore, PublicKey, Ring, SeedSigner
    from aver.ledger import Entry, Head, Ledger
    from aver.ledger.async_ledger import AsyncLedger
    from aver.ledger.bundle.export import export_bundle
    from aver.protocol.tools.standard_tools import protocol_tools
    from aver.protocol.view import Said, View
    from aver.recording.asgi import AuditMiddleware
    from aver.recording.call import AuditedCall
    from aver.recording.decorator import audit
    from aver.recording.logging_handler import LedgerHandler
    from aver.recording.recorder import dropped_count
    from aver.recording.run import unfinished_intents
    from aver.recording.scope import audit_scope, carry, current
    from aver.verdict import Check, Finding, Place, Verdict


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        other = {"canonicalize": "canonical_bytes(…)", "compute_hash": "seal(…).hash"}.get(name)
        hint = f": it is aver.{other}" if other else ""
        raise AttributeError(f"module 'aver' has no attribute {name!r}{hint}")
    if home in _HOMES_WITH_GATE:
        # The gate's room lies below the agents': here, where the rooms are put together, it gets what they know.
        import_module("aver.agents.registry").provide_known_agents()
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME_OF])
