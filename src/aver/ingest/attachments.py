"""Replace pictures and whole files inside records by their digest and size.

    {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo…"}
    {"type": "base64", "media_type": "image/png", "data": {"sha256": "9f86d0…", "size": 40213, "media": "image/png"}}

They would make a capsule unreadable, and they prove no more than their digest. The digest of the raw record is sealed
as well, so the original can still be checked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from typing import Any

IMAGE_URL_MIN = 256
"""The shortest data URL, in characters, that counts as a picture. Shorter ones are examples in texts."""

_IMAGE_URL_PREFIX = "data:image/"
_BASE64_KEYS = ("screenshot", "image_data", "imageData")


def digest_reference(text: str, media: str = "text/plain") -> dict[str, Any]:
    """Return the digest and size that replace a text."""
    data = text.encode("utf-8", "surrogatepass")
    return {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data), "media": media}


def replace_images(value: Any) -> Any:
    """Return the value with digest and size instead of each picture."""
    return replace_attachments(value, ())


def replace_attachments(value: Any, whole_files: Collection[str]) -> Any:
    """Return the value with digest and size instead of each picture and each text under one of these names."""
    if isinstance(value, dict):
        if value.get("type") in ("base64", "image") and isinstance(data := value.get("data"), str):
            return {
                **value,
                "data": digest_reference(data, str(value.get("media_type") or value.get("mediaType") or "image")),
            }
        return {name: _replace_member(name, item, whole_files) for name, item in value.items()}
    if isinstance(value, list):
        return [replace_attachments(item, whole_files) for item in value]
    if isinstance(value, str) and len(value) >= IMAGE_URL_MIN and value.startswith(_IMAGE_URL_PREFIX):
        return digest_reference(value, value[5:].partition(";")[0])
    return value


def _replace_member(name: str, item: Any, whole_files: Collection[str]) -> Any:
    if isinstance(item, str) and item:
        if name in whole_files:
            return digest_reference(item)
        if name in _BASE64_KEYS:
            return digest_reference(item, item[5:].partition(";")[0] if item.startswith(_IMAGE_URL_PREFIX) else "image")
    return replace_attachments(item, whole_files)
