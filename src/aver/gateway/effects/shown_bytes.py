"""Bytes in the answer to a caller: as text, or in base64 where they are no text."""

from __future__ import annotations

import base64


def show_bytes(data: bytes) -> dict[str, str]:
    """Return `encoding` and `content` of some bytes, for an answer in JSON."""
    try:
        return {"encoding": "utf-8", "content": data.decode()}
    except UnicodeDecodeError:
        return {"encoding": "base64", "content": base64.b64encode(data).decode("ascii")}
