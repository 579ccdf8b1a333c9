"""A draft prepared for a chain: checked and written out, except for its place.

The ledger does all slow work that can fail before it takes its lock: validation, canonical form, moving large strings
into blobs. Under the lock it fills in sequence, link, time and signer, and computes one hash and one signature. The
bytes are exactly those of `canonical_bytes`; a property test checks this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from aver.capsule.aver_block import BLOCK_KEY, BLOCK_VERSION, check_draft_block, check_idempotency_key
from aver.capsule.blobs import CAPSULE_MAX, INLINE_MAX, Blob, move_large_texts, referenced_digests
from aver.capsule.canonical import canonical_json, needs_exact_writer
from aver.capsule.model import SECTIONS, TOP_LEVEL_KEYS, Capsule
from aver.capsule.sealed import Sealed, Signer, content_hash
from aver.capsule.validate import normalise_values, validate
from aver.errors import InvalidCapsule, NotCanonical
from aver.fast_dataclass import NamedTuple

_GAP = b"\x00"
"""Marks in the written draft where its place is filled in. JSON escapes this byte, so it occurs nowhere else."""
_FREE_DEPTH = 4
"""The deepest free-form field of a capsule is at this level: `execution.tool_calls[].arguments`."""


class PreparedDraft(NamedTuple):
    """A draft whose content has passed all checks."""

    id: str
    type: str
    session: str | None
    key: str | None
    block: Mapping[str, Any]
    text: tuple[bytes, ...]
    """The canonical text around its three gaps: Aver's block, `previous_hash` and `sequence`."""
    blobs: Sequence[Blob]
    blob_digests: frozenset[str]

    def seal(
        self,
        signer: Signer,
        *,
        at: str,
        sequence: int,
        previous_hash: str | None,
        chain: Mapping[str, str],
    ) -> Sealed:
        """Give the draft its place and seal it. `chain` is the chain's identity, written at sequence 0."""
        by = signer.fingerprint
        block = {**self.block, "at": at, "by": by}
        if sequence == 0:
            block["chain"] = chain
        to_block, to_link, to_sequence, end = self.text
        written = orjson.dumps(block, option=orjson.OPT_SORT_KEYS)
        link = orjson.dumps(previous_hash)
        canonical = b"".join((to_block, written, to_link, link, to_sequence, b"%d" % sequence, end))
        digest = content_hash(canonical)
        signature = signer.sign(digest)
        return Sealed(canonical, digest, signature.ed25519, signature.ml_dsa_65, at, by)


def prepare_draft(
    draft: Capsule | Mapping[str, Any], *, key: str | None = None, blobs: Sequence[Blob] = ()
) -> PreparedDraft:
    """Check a draft, and write out all of it that does not depend on its place. Raises `InvalidCapsule`."""
    for blob in blobs:
        blob.check()
    if not isinstance(draft, Capsule):
        # A plain dict needs a `type`; unknown keys are refused, others have defaults.
        if not isinstance(draft, Mapping):
            raise InvalidCapsule("wrong_type", "", "a draft must be a Capsule or an object")
        for name in draft:
            if name not in TOP_LEVEL_KEYS:
                raise InvalidCapsule("invalid_value", str(name), "is not a key of a capsule")
        if "type" not in draft:
            raise InvalidCapsule("missing_field", "type", "is missing")
        draft = Capsule(**draft)
    content = normalise_values(draft.to_dict())
    if content["sequence"] != 0 or content["previous_hash"] is not None:
        raise InvalidCapsule(
            "chain_violation",
            "sequence",
            "a draft has no place in a chain yet: leave sequence and previous_hash out",
        )
    validate(content)
    block = {"v": BLOCK_VERSION, **check_draft_block(content)}
    if key is not None:
        block["key"] = check_idempotency_key(key)
    parts = (*_write_segments(content), canonical_json(block))
    # The size lacks the few bytes that depend on the capsule's place.
    if sum(map(len, parts)) > INLINE_MAX:
        if len(parts[-1]) > INLINE_MAX:
            field = f"context.environment.{BLOCK_KEY}"
            raise InvalidCapsule("invalid_value", field, f"is larger than {INLINE_MAX} bytes")
        content, moved = move_large_texts(content)
        blobs = [*blobs, *moved]
        block = {**block, **content["context"]["environment"].get(BLOCK_KEY, {})}
        parts = (*_write_segments(content), canonical_json(block))
        size = sum(map(len, parts))
        if size > CAPSULE_MAX:
            raise InvalidCapsule(
                "invalid_value",
                "",
                f"the capsule has {size} bytes, more than {CAPSULE_MAX}",
                advice="pass large values as aver.Blob(...).reference with blobs=[...]",
            )
    return PreparedDraft(
        id=content["id"],
        type=content["type"],
        session=content["context"]["session_id"],
        key=key,
        block=block,
        text=parts[:-1],
        blobs=tuple(blobs),
        blob_digests=referenced_digests(content, parts),
    )


def _write_segments(content: dict[str, Any]) -> tuple[bytes, ...]:
    """The canonical text of a validated draft, split at its gaps."""
    # A validated section has only strings, flags, counts and scores outside its free-form fields. So only the
    # free-form fields are scanned for values that orjson would not write in canonical form.
    context, execution, outcome = content["context"], content["execution"], content["outcome"]
    free = [context["environment"], content["authority"]["chain"]]
    for option in content["reasoning"]["options"]:
        free.append(option["estimated_impact"])
    for call in execution["tool_calls"]:
        free += (call["arguments"], call["result"])
    free += (execution["resources_used"], outcome["result"], outcome["metrics"])
    # The marks stand where the place will be filled in: the written draft is cut at them.
    gap = orjson.Fragment(_GAP)
    whole = {**content, "previous_hash": gap, "sequence": gap}
    whole["context"] = {**context, "environment": {**context["environment"], BLOCK_KEY: gap}}
    try:
        if not needs_exact_writer(free, depth=_FREE_DEPTH):
            return tuple(orjson.dumps(whole, option=orjson.OPT_SORT_KEYS).split(_GAP))
    except (TypeError, ValueError, NotCanonical):
        pass
    canonical_json(content)  # For a value without a canonical form, this raises the error that names its place.
    whole.update({name: orjson.Fragment(canonical_json(content[name])) for name in SECTIONS if name != "context"})
    environment = {name: orjson.Fragment(canonical_json(value)) for name, value in context["environment"].items()}
    whole["context"] = {**context, "environment": {**environment, BLOCK_KEY: gap}}
    return tuple(orjson.dumps(whole, option=orjson.OPT_SORT_KEYS).split(_GAP))
