"""The same JSON in other bytes: what a carrier of a signed document can change without changing what it says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any


def rewrite(raw: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield documents with the content of `raw` and other bytes, each with the name of what was done."""
    text = raw.decode("utf-8")
    document = json.loads(text)
    found = {
        "a byte order mark": b"\xef\xbb\xbf" + raw,
        "a space before": b" " + raw,
        "a space behind": raw + b" ",
        "a line feed behind": raw.rstrip(b"\n") + b"\n\n",
        "CRLF": raw.replace(b"\n", b"\r\n"),
        "a space after the first brace": raw.replace(b"{", b"{ ", 1),
        "a tab": raw.replace(b":", b":\t", 1),
        "other indentation": json.dumps(document, indent=3, ensure_ascii=False).encode(),
        "no ASCII": json.dumps(document, indent=1, ensure_ascii=False).encode(),
        "a letter as its escape": _escape_letter(text).encode(),
        "a slash as its escape": text.replace("/", "\\/").encode(),
        "an escape in capitals": re.sub(r"(?<=\\u00)[0-9a-f]{2}", lambda found: found[0].upper(), text).encode(),
        "markup": re.sub(r"\\u003[ce]", lambda found: "<" if found[0][-1] == "c" else ">", text).encode(),
        "escaped markup": text.replace("<", "\\u003c").encode(),
        "a whole number with a fraction": _change_number(text, lambda digits: f"{digits}.0"),
        "a whole number with an exponent": _change_number(text, lambda digits: f"{digits}e0"),
        "a capital exponent": _change_number(text, lambda digits: f"{digits}E+0"),
        "a key twice": _repeat_key(text, document),
        "keys in reverse": _dump_like(text, _reverse(document)),
        "keys of what is inside in reverse": _dump_like(text, _reverse(document, own=False)),
        "keys sorted downwards": _dump_like(text, document, sort=True),
    }
    for name, other in found.items():
        if other != raw:
            yield name, other


def _escape_letter(text: str) -> str:
    """The first letter of the first string, by its number."""
    return re.sub(r'"([A-Za-z])', lambda found: f'"\\u{ord(found[1]):04x}', text, count=1)


def _change_number(text: str, change: Any) -> bytes:
    return re.sub(r"(?<=[:\s\[,])[0-9]+(?=[,\s}\]])", lambda found: change(found[0]), text, count=1).encode()


def _repeat_key(text: str, document: Any) -> bytes:
    if not isinstance(document, dict):
        return text.encode()
    key = next(iter(document))
    return text.replace("{", f"{{{json.dumps(key)}:{json.dumps(document[key])},", 1).encode()


def _reverse(value: Any, *, own: bool = True) -> Any:
    if isinstance(value, list):
        return [_reverse(item) for item in value]
    if not isinstance(value, dict):
        return value
    items = [(key, _reverse(item)) for key, item in value.items()]
    return dict(reversed(items) if own else items)


def _dump_like(text: str, document: Any, *, sort: bool = False) -> bytes:
    """Write a document with the white space of `text`, so that nothing but its order differs."""
    indent = 2 if text.startswith("{\n") else None
    space = (", ", ": ") if '": ' in text else (",", ":")
    is_ascii = text.isascii()
    if sort:
        document = dict(sorted(document.items(), reverse=True)) if isinstance(document, dict) else document
    written = json.dumps(document, indent=indent, separators=None if indent else space, ensure_ascii=is_ascii)
    written = written if "<" in text else written.replace("<", "\\u003c")
    return (written + ("\n" if text.endswith("\n") else "")).encode()
