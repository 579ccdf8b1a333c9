"""Changing a JSON document at one place, and drawing such changes at random.

A change is JSON itself, so that a corpus can keep it and a person can read it:

    {"path": ["capsules", 1, "id"], "do": "set", "value": 7}
    {"path": ["capsules"], "do": "swap", "at": 0, "with": 2}

A value `{"$raw": "1e999"}` is written as that text. So a change can write what `json` would not: numbers out of range,
a key twice, a lone surrogate.
"""

from __future__ import annotations

import copy
import json
from random import Random
from typing import Any

Change = dict[str, Any]

HEX = "0123456789abcdef" * 4

VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 1.5, -0.0, 2**53 + 1, 2**63, 2**64, -(2**63) - 1, 1e-9),
    *("", "x", "0", "é", "\u202e", "\x00", "\x1b[2J\x1b[31m", "../../x", "/etc/passwd", HEX, HEX.upper(), "0" * 64),
    *("f" * 128, "2026-11-17T00:00:00+00:00", "9999-99-99", "import.x.gate.default", "keys", "meta", "gate.default"),
    *({}, [], [[]], {"a": 1}, [None], ["x", 1], {"": ""}, {"blob": HEX}, {"__class__": "x"}),
    *({"$raw": "1e999"}, {"$raw": "NaN"}, {"$raw": "-0"}, {"$raw": "1.0"}, {"$raw": "4e0"}, {"$raw": '"\\ud800"'}),
    *({"$raw": "[" * 300 + "]" * 300}, {"$raw": "9" * 400}, {"$raw": '"\\u0000"'}, {"$raw": '{"a":1,"a":2}'}),
)
"""Values of wrong types, at the edges of ranges, and with meanings elsewhere."""

KEYS = ("id", "type", "hash", "sequence", "v", "kind", "keys", "tenant", "chain", "", "x", "\u00e9", "constructor")
"""Names for members that are added or renamed."""


def dump(value: Any) -> bytes:
    """A document as JSON, with raw texts as they are."""
    raw: list[str] = []

    def hide(part: Any) -> Any:
        if isinstance(part, dict):
            if set(part) == {"$raw"} and isinstance(part["$raw"], str):
                raw.append(part["$raw"])
                return f"@raw{len(raw) - 1}@"
            return {key: hide(item) for key, item in part.items()}
        return [hide(item) for item in part] if isinstance(part, list) else part

    text = json.dumps(hide(value), ensure_ascii=False, separators=(",", ":"))
    for number, piece in enumerate(raw):
        text = text.replace(f'"@raw{number}@"', piece)
    return text.encode("utf-8", "surrogatepass")


def apply_change(document: Any, change: Change) -> Any:
    """The document with one change. A change that does not fit the document leaves it as it is."""
    document = copy.deepcopy(document)
    path, do = list(change.get("path", ())), change.get("do")
    try:
        if do == "set" and not path:
            return change["value"]
        parent, last = _find(document, path[:-1]), path[-1] if path else None
        place = _find(document, path)
        if do == "set":
            parent[last] = change["value"]
        elif do == "delete":
            del parent[last]
        elif do == "rename":
            parent[change["to"]] = parent.pop(last)
        elif do == "graft":
            parent[last] = copy.deepcopy(_find(document, list(change["from"])))
        elif do == "twice":  # The key once more, with another value: readers differ in which of them they take.
            parent[last] = {"$raw": f"{dump(place).decode()},{json.dumps(str(last))}:{dump(change['value']).decode()}"}
        elif do == "insert" and isinstance(place, dict):
            place[change["key"]] = change["value"]
        elif do == "insert":
            place.insert(change["at"], change["value"])
        elif do == "repeat":
            place.insert(change["at"], copy.deepcopy(place[change["at"]]))
        elif do == "swap":
            place[change["at"]], place[change["with"]] = place[change["with"]], place[change["at"]]
        elif do == "cut":
            del place[change["at"] :]
        elif do == "flip":  # One character of a text.
            at = change["at"] % max(len(place), 1)
            parent[last] = place[:at] + change["put"] + place[at + 1 :]
    except (KeyError, IndexError, TypeError, AttributeError, ValueError):
        pass
    return document


def _find(document: Any, path: list[Any]) -> Any:
    for step in path:
        document = document[step]
    return document


def draw_change(document: Any, random: Random) -> Change:
    """A random change of a document, at a random place."""
    path: list[Any] = []
    place = document
    while isinstance(place, dict | list) and place and random.random() < 0.85:
        step: Any = random.choice(list(place)) if isinstance(place, dict) else random.randrange(len(place))
        path.append(step)
        place = place[step]
    value = random.choice(VALUES)
    choices: list[Change] = [{"do": "set", "value": value}]
    if path:
        choices += [{"do": "delete"}, {"do": "graft", "from": _draw_path(document, random)}]
        if isinstance(path[-1], str):
            choices += [{"do": "rename", "to": random.choice(KEYS)}, {"do": "twice", "value": value}]
    if isinstance(place, dict):
        choices.append({"do": "insert", "key": random.choice(KEYS), "value": value})
    if isinstance(place, list):
        at, other = random.randrange(len(place) + 1), random.randrange(len(place) + 1)
        choices += [{"do": "insert", "at": at, "value": value}, {"do": "repeat", "at": at}]
        choices += [{"do": "swap", "at": at, "with": other}, {"do": "cut", "at": at}]
    if isinstance(place, str) and place:
        put = random.choice(("", "0", "f", "é", "\x00", "\x1b", " "))
        choices += [{"do": "flip", "at": random.randrange(len(place)), "put": put}] * 2
    return {"path": path, **random.choice(choices)}


def _draw_path(document: Any, random: Random) -> list[Any]:
    path: list[Any] = []
    while isinstance(document, dict | list) and document and random.random() < 0.8:
        step: Any = random.choice(list(document)) if isinstance(document, dict) else random.randrange(len(document))
        path.append(step)
        document = document[step]
    return path
