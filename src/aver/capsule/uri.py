"""`capsule://` URIs, which name one record or one place in it.

    capsule://sha3_<64 hex>            by hash: the most portable
    capsule://<chain>/<sequence>       by place in a chain
    capsule://<chain>/sha3_<64 hex>    by hash, in a chain
    capsule://<uuid>                   by id

A fragment points into the record: `#reasoning`, `#reasoning/confidence`, `#execution/tool_calls/0`. Its first
segment is one of the capsule's keys. In a segment `~1` means `/` and `~0` means `~`; characters that a URI cannot hold
are percent-encoded. All else is refused: upper-case hex, leading zeros, empty segments, `.` and `..`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

from aver.capsule.model import TOP_LEVEL_KEYS
from aver.errors import BadInput, NotFound
from aver.fast_dataclass import dataclass
from aver.lazy_pattern import lazy_pattern

URI_MAX = 2048
"""Longest URI that is read, in characters."""

_SCHEME = "capsule://"
_HASH = lazy_pattern(r"[0-9a-f]{64}")
_UUID = lazy_pattern(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_CHAIN = lazy_pattern(r"[A-Za-z0-9._-]+")
_SEQUENCE = lazy_pattern(r"0|[1-9][0-9]{0,18}")
_SEGMENT = lazy_pattern(r"(?:[A-Za-z0-9._!$&'()*+,;=:@-]|~[01]|%[0-9A-Fa-f]{2})+")


@dataclass(frozen=True, slots=True)
class CapsuleURI:
    """A parsed URI. Exactly one of `hash`, `sequence` and `id` is set; `sequence` needs `chain`."""

    hash: str | None = None
    sequence: int | None = None
    id: str | None = None
    chain: str | None = None
    fragment: str | None = None

    @property
    def reference_type(self) -> str:
        return "hash" if self.hash is not None else "sequence" if self.sequence is not None else "id"

    def to_dict(self) -> dict[str, Any]:
        """The form that the conformance vectors of CPS use."""
        return {
            "scheme": "capsule",
            "chain": self.chain,
            "reference_type": self.reference_type,
            "hash_algorithm": None if self.hash is None else "sha3",
            "hash_value": self.hash,
            "sequence": self.sequence,
            "id": self.id,
            "fragment": self.fragment,
        }

    def __str__(self) -> str:
        if self.hash is not None:
            reference = f"sha3_{self.hash}"
        else:
            reference = str(self.sequence) if self.sequence is not None else str(self.id)
        chain = f"{self.chain}/" if self.chain is not None else ""
        fragment = f"#{self.fragment}" if self.fragment is not None else ""
        return f"{_SCHEME}{chain}{reference}{fragment}"


def parse_uri(text: str) -> CapsuleURI:
    """Parse a `capsule://` URI; `BadInput` if it is none. `str` of the result gives the text again."""
    if not text.startswith(_SCHEME):
        raise _bad_uri_error(text, f"it must begin with {_SCHEME}")
    if len(text) > URI_MAX:
        raise _bad_uri_error(text, f"it is longer than {URI_MAX} characters")
    rest, hash_sign, fragment = text.removeprefix(_SCHEME).partition("#")
    if hash_sign:
        _parse_fragment(text, fragment)
    chain, slash, reference = rest.partition("/")
    if not slash:
        chain, reference = "", rest
    elif not _CHAIN.fullmatch(chain):
        raise _bad_uri_error(text, f"{chain!r} is not a chain name")
    place = CapsuleURI(chain=chain or None, fragment=fragment if hash_sign else None)
    if reference.startswith("sha3_"):
        digest = reference.removeprefix("sha3_")
        if not _HASH.fullmatch(digest):
            raise _bad_uri_error(text, "a hash has 64 lower-case hex digits")
        return replace(place, hash=digest)
    if slash:
        if not _SEQUENCE.fullmatch(reference) or int(reference) >= 2**63:
            raise _bad_uri_error(text, f"{reference!r} is neither a sequence number nor a hash")
        return replace(place, sequence=int(reference))
    if not _UUID.fullmatch(reference):
        raise _bad_uri_error(
            text, f"{reference!r} is not a hash (sha3_…) or a UUID" if reference else "it names no record"
        )
    return replace(place, id=reference)


def resolve_fragment(content: Mapping[str, Any], fragment: str) -> Any:
    """The value that a fragment points to in a capsule's content. `NotFound` if there is none."""
    value: Any = content
    walked: list[str] = []
    for segment in _parse_fragment(fragment, fragment):
        walked.append(segment)
        if isinstance(value, Mapping) and segment in value:
            value = value[segment]
        elif isinstance(value, list) and _SEQUENCE.fullmatch(segment) and int(segment) < len(value):
            value = value[int(segment)]
        else:
            raise NotFound(f"this capsule has nothing at {'/'.join(walked)}")
    return value


def _parse_fragment(text: str, fragment: str) -> list[str]:
    segments = []
    for raw in fragment.split("/"):
        if not _SEGMENT.fullmatch(raw):
            raise _bad_uri_error(text, f"{raw!r} is not a fragment segment")
        try:
            segment = unquote(raw, errors="strict").replace("~1", "/").replace("~0", "~")
        except UnicodeDecodeError:
            raise _bad_uri_error(text, f"{raw!r} is not percent-encoded UTF-8") from None
        if segment in (".", ".."):
            raise _bad_uri_error(text, "a fragment cannot walk upwards")
        segments.append(segment)
    if segments[0] not in TOP_LEVEL_KEYS:
        raise _bad_uri_error(text, f"{segments[0]!r} is not a part of a capsule")
    return segments


def _bad_uri_error(text: str, why: str) -> BadInput:
    return BadInput(f"not a capsule URI: {text[:120]!r}: {why}")
