"""An action as bytes, in the three forms that are hashed, each written once.

receipt    the canonical fields, which the receipt is the hash of
metadata   the canonical JSON of the metadata
sealed     the canonical JSON of all fourteen fields, as the action's capsule has them: metadata longer than
           `METADATA_INLINE` stand there as a reference to a blob of their canonical JSON

Metadata that look like such a reference themselves are refused: the sealed form would be that of two actions.
"""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import orjson

from aver.actions.action import AgentAction
from aver.actions.receipts import receipt_bytes
from aver.capsule.blobs import Blob, blob_references
from aver.capsule.canonical import plain_bytes
from aver.errors import BadInput, NotCanonical

__all__ = ["METADATA_INLINE", "METADATA_MAX", "ActionTexts", "metadata_blob", "referred_to", "texts_of"]

METADATA_INLINE = 8 * 1024
"""Canonical bytes of metadata inside a capsule; larger ones lie beside it."""

METADATA_MAX = 4 * 1024 * 1024
"""Canonical bytes of an action's metadata. What is larger belongs into a file, with its hash in the metadata."""

_NULL = b"null"


class ActionTexts(NamedTuple):
    """See the module's text."""

    receipt: bytes
    receipt_hash: str
    metadata: bytes
    score: bytes
    """The gate's score as Python writes it."""

    def line(self, action: AgentAction) -> bytes:
        """The action's line in `actions.jsonl`, without its line feed."""
        content = self._content(action, self.metadata)
        content["receipt_hash"] = self.receipt_hash
        content["canonical_fields"] = orjson.Fragment(self.receipt)
        return orjson.dumps(content)

    def sealed(self, action: AgentAction) -> bytes:
        """The action as it stands in its capsule."""
        metadata = self.metadata
        if len(metadata) > METADATA_INLINE:
            metadata = orjson.dumps(metadata_blob(metadata).reference, option=orjson.OPT_SORT_KEYS)
        return orjson.dumps(self._content(action, metadata), option=orjson.OPT_SORT_KEYS)

    def _content(self, action: AgentAction, metadata: bytes) -> dict[str, Any]:
        content = action.to_dict()
        content["metadata"] = orjson.Fragment(metadata)
        content["gate_score"] = orjson.Fragment(self.score)
        return content


def texts_of(action: AgentAction) -> ActionTexts:
    """The texts of an action; `BadInput` where its metadata are not JSON, or endless."""
    receipt = receipt_bytes(action)
    score = action.gate_score
    return ActionTexts(
        receipt,
        hashlib.sha256(receipt).hexdigest(),
        _NULL if action.metadata is None else _metadata(action.metadata),
        _NULL if score is None else repr(score).encode(),
    )


def metadata_blob(metadata: bytes) -> Blob:
    """What holds large metadata."""
    return Blob(metadata, "application/json")


def referred_to(metadata: Any) -> str | None:
    """The digest of the blob that holds the metadata, where they are only referred to."""
    if metadata is None or metadata.keys() != {"blob"}:
        return None
    return next((digest for digest, size in blob_references(metadata) if size > METADATA_INLINE), None)


def _metadata(metadata: Any) -> bytes:
    if referred_to(metadata) is not None:
        raise BadInput("metadata must not be a reference to a blob", advice="give it another key than 'blob' alone")
    try:
        data = plain_bytes(metadata)
    except NotCanonical as error:
        raise NotCanonical(error.problem, path=f"metadata.{error.path}".rstrip(".")) from error
    if len(data) > METADATA_MAX:
        raise BadInput(
            f"metadata has {len(data)} bytes, more than {METADATA_MAX}",
            advice="put its hash there, and keep the value elsewhere",
        )
    return data
