"""Base64 as all verifiers of Aver read it: groups of four characters, and signs only where the last group needs them.

Python's own reader takes signs after a text that needs none, such as `AAAA====`. A browser, and so the page's verifier,
does not.
"""

from __future__ import annotations

import base64


def decode_base64(text: str | bytes) -> bytes:
    """The bytes of a text. Raises `ValueError` if it is not base64."""
    data = text.encode("ascii") if isinstance(text, str) else text
    if len(data) % 4 or data.endswith(b"==="):
        raise ValueError("it ends with too few or too many signs")
    return base64.b64decode(data, validate=True)
