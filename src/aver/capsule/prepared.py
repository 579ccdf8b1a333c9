"""A draft made ready for a chain: checked and written out, but for its place.

All the slow and fallible work (validation, canonical form, moving large strings into blobs) happens before the
ledger's lock is taken. What remains inside it is filling in sequence, link, time and signer, one hash and one
signature. The bytes are exactly those of `canonical_bytes` (a property test holds this).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from aver.capsule.blobs import CAPSULE_MAX, INLINE_MAX, Blob, blob_references, externalised
from aver.capsule.block import BLOCK, BLOCK_VERSION, check_key, draft_block
from aver.capsule.canonical import needs_exact_writer, plain_bytes
from aver.capsule.model import TOP_LEVEL_KEYS, Capsule
from aver.capsule.sealed import Sealed, content_hash
from aver.capsule.signing import Signer
from aver.capsule.validate import normalised, validate
from aver.errors import InvalidCapsule, NotCanonical

__all__ = ["Prepared", "prepare"]

_REFERENCE = b'"blob":{'
_FREE_DEPTH = 4
"""How deep in a capsule its free parts stand at most: `execution.tool_calls[].arguments`."""
_WRITTEN_OUT = ("authority", "execution", "outcome", "reasoning", "trigger")


class Prepared(NamedTuple):
    """A draft that cannot be refused any more for what it says."""

    id: str
    type: str
    session: str | None
    key: str | None
    block: Mapping[str, Any]
    content: Mapping[str, Any]
    environment: Mapping[str, Any]
    blobs: Sequence[Blob]
    blob_digests: frozenset[str]

    @property
    def kind(self) -> str:
        return str(self.block["kind"])

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
        content = {
            **self.content,
            "sequence": sequence,
            "previous_hash": previous_hash,
            "context": {**self.content["context"], "environment": {**self.environment, BLOCK: block}},
        }
        canonical = orjson.dumps(content, option=orjson.OPT_SORT_KEYS)
        digest = content_hash(canonical)
        signature = signer.sign(digest)
        return Sealed(canonical, digest, signature.ed25519, signature.ml_dsa_65, at, by)


def prepare(draft: Capsule | Mapping[str, Any], *, key: str | None = None, blobs: Sequence[Blob] = ()) -> Prepared:
    """Check a draft and write out all of it that does not depend on its place."""
    content = normalised(_as_capsule(draft).to_dict())
    if content["sequence"] != 0 or content["previous_hash"] is not None:
        raise InvalidCapsule(
            "chain_violation",
            "sequence",
            "a draft has no place in a chain yet: leave sequence and previous_hash out",
        )
    validate(content)
    block = {"v": BLOCK_VERSION, **draft_block(content)}
    if key is not None:
        block["key"] = check_key(key)
    sections, environment = _written(content)
    values, written_values = _kept_as_values(content, block)
    if _size((*sections.values(), *environment.values(), written_values), environment) > INLINE_MAX:
        if len(plain_bytes(block)) > INLINE_MAX:
            field = f"context.environment.{BLOCK}"
            raise InvalidCapsule("invalid_value", field, f"is larger than {INLINE_MAX} bytes")
        content, moved = externalised(content)
        blobs = [*blobs, *moved]
        block = {**block, **content["context"]["environment"].get(BLOCK, {})}
        sections, environment = _written(content)
        values, written_values = _kept_as_values(content, block)
        size = _size((*sections.values(), *environment.values(), written_values), environment)
        if size > CAPSULE_MAX:
            raise InvalidCapsule(
                "invalid_value",
                "",
                f"the capsule has {size} bytes, more than {CAPSULE_MAX}",
                advice="pass large values as aver.Blob(...).reference with blobs=[...]",
            )
    refers = _REFERENCE in b"".join((*sections.values(), *environment.values(), written_values))
    return Prepared(
        id=content["id"],
        type=content["type"],
        session=values["context"]["session_id"],
        key=key,
        block=block,
        content={**values, **{name: orjson.Fragment(part) for name, part in sections.items()}},
        environment={name: orjson.Fragment(part) for name, part in environment.items()},
        blobs=tuple(blobs),
        blob_digests=frozenset(digest for digest, _ in blob_references(content)) if refers or blobs else frozenset(),
    )


def _kept_as_values(content: Mapping[str, Any], block: Mapping[str, Any]) -> tuple[dict[str, Any], bytes]:
    """The few things that are written with the place, and their size now. Being here, they cannot fail there."""
    values = {name: content[name] for name in ("id", "type", "domain", "parent_id", "spec_version")}
    context = {name: content["context"][name] for name in ("agent_id", "session_id")}
    written = plain_bytes({**values, "context": {**context, "environment": {BLOCK: block}}})
    return {**values, "context": context}, written


def _as_capsule(draft: Capsule | Mapping[str, Any]) -> Capsule:
    """A draft given as a plain dict needs a `type`; all else has its default. A key that is none is a mistake."""
    if isinstance(draft, Capsule):
        return draft
    if not isinstance(draft, Mapping):
        raise InvalidCapsule("wrong_type", "", "a draft must be a Capsule or an object")
    for name in draft:
        if name not in TOP_LEVEL_KEYS:
            raise InvalidCapsule("invalid_value", str(name), "is not a key of a capsule")
    if "type" not in draft:
        raise InvalidCapsule("missing_field", "type", "is missing")
    return Capsule(**draft)


def _written(content: Mapping[str, Any]) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """The canonical bytes of each section, and of each value in the environment but Aver's own block.

    A validated section consists of strings, flags, counts and scores but for its free parts; only those need the
    walk that looks for values without a canonical form.
    """
    environment = {name: value for name, value in content["context"]["environment"].items() if name != BLOCK}
    try:
        if not needs_exact_writer([*_free_parts(content), environment], depth=_FREE_DEPTH):
            orjson.dumps(environment)
            return (
                {name: orjson.dumps(content[name], option=orjson.OPT_SORT_KEYS) for name in _WRITTEN_OUT},
                {name: orjson.dumps(value, option=orjson.OPT_SORT_KEYS) for name, value in environment.items()},
            )
    except (TypeError, ValueError, NotCanonical):
        pass  # What is wrong, and where, is found below.
    plain_bytes(content)
    return (
        {name: plain_bytes(content[name]) for name in _WRITTEN_OUT},
        {name: plain_bytes(value) for name, value in environment.items()},
    )


def _free_parts(content: Mapping[str, Any]) -> Iterator[Any]:
    """What a validated capsule holds besides strings, flags, counts and scores, outside its environment."""
    yield content["authority"]["chain"]
    for option in content["reasoning"]["options"]:
        yield option["estimated_impact"]
    for call in content["execution"]["tool_calls"]:
        yield call["arguments"]
        yield call["result"]
    yield content["execution"]["resources_used"]
    yield content["outcome"]["result"]
    yield content["outcome"]["metrics"]


def _size(parts: Iterable[bytes], names: Iterable[str]) -> int:
    """The canonical size, but for the few bytes that depend on the capsule's place."""
    return sum(map(len, parts)) + sum(map(len, names))
