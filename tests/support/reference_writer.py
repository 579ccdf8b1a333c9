"""Canonical JSON written out slowly and plainly, from the text of CPS 2 alone: the oracle for `canonical_bytes`."""

from __future__ import annotations

from typing import Any

SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def write(value: Any, path: tuple[str, ...] = ()) -> bytes:
    """The canonical bytes of a value. `path` tells where it stands, for the two fields that are floats (CPS 2.3)."""
    return _write(value, path).encode("utf-8")


def _write(value: Any, path: tuple[str, ...]) -> str:
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, int):
        return repr(float(value)) if path in _FLOAT_FIELDS else str(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, dict):
        members = [
            f"{_string(key)}:{_write(value[key], (*path, key))}"
            for key in sorted(value, key=lambda k: [ord(c) for c in k])
        ]
        return "{" + ",".join(members) + "}"
    return "[" + ",".join(_write(item, (*path, "[]")) for item in value) + "]"


_FLOAT_FIELDS = (("reasoning", "confidence"), ("reasoning", "options", "[]", "feasibility"))


def _string(text: str) -> str:
    return '"' + "".join(_character(character) for character in text) + '"'


def _character(character: str) -> str:
    if character in SHORT:
        return SHORT[character]
    return f"\\u{ord(character):04x}" if ord(character) < 0x20 else character
