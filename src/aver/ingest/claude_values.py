"""Values in Claude Code's records: taken only if they are what they should be, and less of them where they are heavy.

Whole files as they were before an edit, and pictures in base64, are not kept: their size and digest are. Raw records
are sealed by their digests, so that these still bind what is left out here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aver.ingest.heavy import lightened, reference

__all__ = ["BULKY", "Json", "items", "light", "one_line", "summarised", "whole_number", "words"]

Json = Mapping[str, Any]

LINE_MAX = 160
"""Characters of one part of a line for a person."""

BULKY = 8 * 1024
"""Bytes, as JSON, of what the program adds by itself (lists of tools, reminders, files) that are kept whole."""

BEGINNING = 400
"""Characters of a bulky text that are shown."""

_WHOLE_FILES = ("originalFile", "original_file", "updated_file", "base64")


def words(value: Any) -> str:
    return value if isinstance(value, str) else ""


def items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def whole_number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def one_line(text: str) -> str:
    line = " ".join(text[: 4 * LINE_MAX].split())
    return line if len(line) <= LINE_MAX else f"{line[: LINE_MAX - 1]}…"


def light(value: Any) -> Any:
    """The value with digests in the place of whole files and pictures."""
    return lightened(value, _WHOLE_FILES)


def summarised(value: Any) -> Any:
    """What the program added by itself: whole if it is small, otherwise how it begins, its size and its digest."""
    import json  # Here, because a hook would pay for it and never needs it.

    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    if len(text) <= BULKY // 4 or len(text.encode("utf-8", "surrogatepass")) <= BULKY:
        return light(value)
    return {**reference(text), "begins": text[:BEGINNING]}
