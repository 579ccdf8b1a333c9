"""Base64 as all verifiers of Aver read it: whole groups of four characters, and signs only where the last one needs them.

Python's own reader takes signs after a text that needs none, such as `AAAA====`. A browser, and so the page's verifier,
does not.
"""

from __future__ import annotations

import base64


def decode_base64(text: str | bytes) -> bytes:
    """The bytes of a text. Raises `ValueError` if it is not base64."""
    if len(text) % 4 or text.endswith("===" if isinstance(text, str) else b"==="):
        raise ValueError("it ends with too few or too many signs")
    return base64.b64decode(text, validate=True)
