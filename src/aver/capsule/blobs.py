"""Large values, stored beside the record and bound into it by digest.

A capsule stays small enough to read: no string in it is longer than `INLINE_MAX` bytes, and the whole is not longer
than `CAPSULE_MAX`. A larger string in a free-form field (`arguments`, `result`, `environment`, ...) becomes

    {"blob": {"alg": "sha256", "digest": <64 hex>, "size": <bytes>, "media": <media type>}}

A larger string in a field that CPS defines as a string (`trigger.request`, `reasoning.analysis`, ...) is cut, and its
last line says so. Aver's block refers to the whole text under `whole`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from typing import Any

from aver.capsule.aver_block import BLOCK_KEY
from aver.capsule.canonical import has_surrogate
from aver.errors import BadInput
from aver.fast_dataclass import dataclass
from aver.lazy_pattern import lazy_pattern

INLINE_MAX = 16 * 1024
"""Longest string inside a capsule, in UTF-8 bytes."""

CAPSULE_MAX = 256 * 1024
"""Largest capsule, in canonical bytes."""

BLOB_MAX = 256 * 1024 * 1024
"""Largest blob, in bytes. Keep larger data elsewhere, and its digest in the record."""

EXCERPT_CHARS = 4 * 1024
"""How many characters of a cut text stay readable in the record."""

TEXT_MEDIA = "text/plain; charset=utf-8"
_DIGEST = lazy_pattern(r"[0-9a-f]{64}")
_BLOB_MARK = b'"blob":{'
_REFERENCE = lazy_pattern(
    rb'\{"blob":\{"alg":"sha256","digest":"([0-9a-f]{64})","media":"[^"\\]*","size":(0|[1-9][0-9]*)\}\}'
)
"""A reference in canonical text. Within a string of JSON a quote is escaped, so this matches no part of a string."""
_FREE_FORM_KEYS = frozenset(
    {"environment", "arguments", "resources_used", "metrics", "result", "estimated_impact", "chain"}
)


@dataclass(frozen=True, slots=True)
class Blob:
    """Bytes that a capsule refers to. Put `reference` in place of the value, and pass the blob to `append`."""

    data: bytes
    media: str = "application/octet-stream"
    _known_digest: str = field(default="", init=False, repr=False, compare=False)
    """The digest, once it was computed. The data cannot change."""

    def check(self) -> None:
        """Raise `BadInput` unless the blob can be stored."""
        if not isinstance(self.data, bytes):
            raise BadInput(f"a blob holds bytes, not {type(self.data).__name__}", advice="encode it first")
        if len(self.data) > BLOB_MAX:
            raise BadInput(
                f"a blob has at most {BLOB_MAX} bytes; this one has {len(self.data)}",
                advice="store it elsewhere, and put its digest into the record",
            )
        if not isinstance(self.media, str) or has_surrogate(self.media):
            raise BadInput("a blob's media type must be a text")

    @property
    def digest(self) -> str:
        if not self._known_digest:
            object.__setattr__(self, "_known_digest", hashlib.sha256(self.data).hexdigest())
        return self._known_digest

    @property
    def reference(self) -> dict[str, Any]:
        size = len(self.data)
        return {"blob": {"alg": "sha256", "digest": self.digest, "size": size, "media": self.media}}


def blob_references(value: Any) -> Iterator[tuple[str, int]]:
    """Digest and size of every blob that a value refers to."""
    for reference in blob_reference_dicts(value):
        yield reference["digest"], reference["size"]


def blob_reference_dicts(value: Any) -> Iterator[dict[str, Any]]:
    """Every reference to a blob in a value, unchanged. Its digest is 64 hex digits, its size an integer."""
    stack = [value]
    while stack:
        item = stack.pop()  # Never a string, as most values are.
        if isinstance(item, dict):
            reference = item.get("blob")
            if isinstance(reference, dict) and len(item) == 1 and reference.get("alg") == "sha256":
                digest, size = reference.get("digest"), reference.get("size")
                if isinstance(digest, str) and _DIGEST.fullmatch(digest) and type(size) is int:
                    yield reference
                    continue
            stack += [each for each in item.values() if type(each) is not str]
        elif isinstance(item, (list, tuple)):  # A union takes far longer.
            stack += [each for each in item if type(each) is not str]


def referenced_digests(content: Any, written: Iterable[bytes]) -> frozenset[str]:
    """The digests of the blobs that a draft refers to. `written` are the parts of its canonical text.

    A search of the bytes is much faster than a walk through the content. It is enough where every key `blob` that has
    an object belongs to a reference as Aver writes it: then both find the same.
    """
    marks, found = 0, list[tuple[bytes, bytes]]()
    for part in written:
        if _BLOB_MARK in part:
            marks += part.count(_BLOB_MARK)
            found += _REFERENCE.findall(part)
    if len(found) < marks:
        return frozenset(digest for digest, _ in blob_references(content))
    return frozenset(digest.decode("ascii") for digest, _ in found)


def written_digests(text: bytes) -> list[str]:
    """The digests of the references in a record's text, as far as they are written as Aver writes them."""
    return [digest.decode("ascii") for digest, _ in _REFERENCE.findall(text)] if _BLOB_MARK in text else []


def record_references(content: Any, text: bytes) -> list[tuple[str, int]]:
    """Digest and size of every blob that a record refers to. `text` is its JSON, of which `content` was parsed.

    The text is searched where that finds the same as a walk through the content: every string `blob` in it is then the
    key of a reference as Aver writes it, and none is hidden behind an escape.
    """
    found = _REFERENCE.findall(text)
    if len(found) == text.count(b'"blob"') and b"\\u006" not in text:
        return [(digest.decode("ascii"), int(size)) for digest, size in found]
    return list(blob_references(content))


def move_large_texts(content: dict[str, Any]) -> tuple[dict[str, Any], list[Blob]]:
    """Return the content with its large strings replaced, and the blobs that hold them."""
    blobs: list[Blob] = []
    whole: dict[str, Any] = {}

    def replace_large(value: Any, path: str, free: bool) -> Any:
        if type(value) is str:
            # A character has at most four bytes, so that most strings need no encoding to be measured.
            if len(value) * 4 <= INLINE_MAX or len(data := value.encode("utf-8", "surrogatepass")) <= INLINE_MAX:
                return value
            blob = Blob(data, TEXT_MEDIA)
            blobs.append(blob)
            if free:
                return blob.reference
            whole[path] = blob.reference
            return f"{value[:EXCERPT_CHARS]}\n[cut here: {len(data)} bytes in all, sha256 {blob.digest}]"
        if isinstance(value, dict):
            return {
                key: replace_large(item, f"{path}.{key}" if path else key, free or key in _FREE_FORM_KEYS)
                for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [replace_large(item, f"{path}[{index}]", free) for index, item in enumerate(value)]
        return value

    content = replace_large(content, "", False)
    if whole:
        environment = content["context"]["environment"]
        block = {**environment.get(BLOCK_KEY, {}), "whole": whole}
        content["context"]["environment"] = {**environment, BLOCK_KEY: block}
    return content, blobs


def restore_large_texts(value: Any, blob: Callable[[str], bytes]) -> Any:
    """Put the long texts back into a value of a free-form field, as it was before `move_large_texts`.

    A reference that the writer itself had put there is replaced as well. So compare the result with a digest.
    """
    if isinstance(value, dict):
        reference = value.get("blob")
        if value.keys() == {"blob"} and isinstance(reference, dict) and reference.get("media") == TEXT_MEDIA:
            return blob(str(reference.get("digest"))).decode("utf-8", "surrogatepass")
        return {key: restore_large_texts(item, blob) for key, item in value.items()}
    return [restore_large_texts(item, blob) for item in value] if isinstance(value, list) else value
