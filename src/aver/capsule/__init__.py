"""The record: its model, canonical bytes, seal and names. Pure: it opens no file and no socket."""

from aver.capsule.aver_block import chain_name, check_chain_name, of_kind, read_block, read_kind
from aver.capsule.blobs import CAPSULE_MAX, INLINE_MAX, Blob
from aver.capsule.canonical import ascii_json, canonical_bytes
from aver.capsule.model import (
    Authority,
    Capsule,
    Context,
    Execution,
    Option,
    Outcome,
    Reasoning,
    ToolCall,
    Trigger,
)
from aver.capsule.sealed import Sealed, Signature, Signer, content_hash, seal
from aver.capsule.uri import CapsuleURI, parse_uri, resolve_fragment
from aver.capsule.validate import validate

__all__ = [
    "CAPSULE_MAX",
    "INLINE_MAX",
    "Authority",
    "Blob",
    "Capsule",
    "CapsuleURI",
    "Context",
    "Execution",
    "Option",
    "Outcome",
    "Reasoning",
    "Sealed",
    "Signature",
    "Signer",
    "ToolCall",
    "Trigger",
    "ascii_json",
    "canonical_bytes",
    "chain_name",
    "check_chain_name",
    "content_hash",
    "of_kind",
    "parse_uri",
    "read_block",
    "read_kind",
    "resolve_fragment",
    "seal",
    "validate",
]
