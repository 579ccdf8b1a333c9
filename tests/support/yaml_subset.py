"""As much of YAML as the integrations are written in: mappings, lists, plain and quoted scalars, `|` blocks, `[a, b]`.

What is beyond that is refused, so that a file which this reads is one that every YAML reader reads in the same way.
"""

from __future__ import annotations

import re
from typing import Any

_PAIR = re.compile(r"([A-Za-z_][\w-]*):(?: (.*))?")
_PLAIN = re.compile(r"[^\s\-\[\]{}&*!|>'\"%@`#,:?][^#]*|[-\w./$^(][^#:]*")


def load(text: str) -> Any:
    lines = [(len(line) - len(line.lstrip(" ")), line.strip(), line) for line in text.split("\n")]
    value, rest = _block(lines, 0)
    assert all(not content or content.startswith("#") for _, content, _ in rest), rest[0]
    return value


Lines = list[tuple[int, str, str]]


def _skipped(lines: Lines) -> Lines:
    while lines and (not lines[0][1] or lines[0][1].startswith("#")):
        lines = lines[1:]
    return lines


def _block(lines: Lines, indent: int) -> tuple[Any, Lines]:
    lines = _skipped(lines)
    assert lines, "nothing follows"
    assert "\t" not in lines[0][2], lines[0]
    indent = lines[0][0]
    return _list(lines, indent) if lines[0][1].startswith("- ") else _mapping(lines, indent)


def _list(lines: Lines, indent: int) -> tuple[list[Any], Lines]:
    found = []
    while (lines := _skipped(lines)) and lines[0][0] == indent and lines[0][1].startswith("- "):
        _, content, _ = lines[0]
        inner = content[2:]
        if _PAIR.fullmatch(inner):
            value, lines = _mapping([(indent + 2, inner, " " * (indent + 2) + inner), *lines[1:]], indent + 2)
        else:
            value, lines = _scalar(inner), lines[1:]
        found.append(value)
    return found, lines


def _mapping(lines: Lines, indent: int) -> tuple[dict[str, Any], Lines]:
    found: dict[str, Any] = {}
    while (lines := _skipped(lines)) and lines[0][0] == indent and not lines[0][1].startswith("- "):
        pair = _PAIR.fullmatch(lines[0][1])
        assert pair, lines[0]
        key, value = pair[1], re.sub(r"\s+# .*", "", pair[2] or "") if not (pair[2] or "").startswith('"') else pair[2]
        assert key not in found, key
        lines = lines[1:]
        if value == "|":
            found[key], lines = _literal(lines, indent)
        elif value:
            found[key] = _scalar(value)
        else:
            found[key], lines = _block(lines, indent)
    return found, lines


def _literal(lines: Lines, indent: int) -> tuple[str, Lines]:
    body = []
    inner = lines[0][0]
    assert inner > indent
    while lines and (not lines[0][1] or lines[0][0] >= inner):
        body.append(lines[0][2][inner:])
        lines = lines[1:]
    return "\n".join(body).rstrip("\n") + "\n", lines


def _scalar(text: str) -> Any:
    if text.startswith("["):
        assert text.endswith("]"), text
        return [_scalar(part.strip()) for part in text[1:-1].split(",")]
    if text.startswith('"'):
        assert re.fullmatch(r'"[^"\\]*"', text), text
        return text[1:-1]
    assert ": " not in text, text
    assert " #" not in text, text
    assert text[0] not in "&*!|>'%@`{", text
    return {"true": True, "false": False}.get(text, text)
