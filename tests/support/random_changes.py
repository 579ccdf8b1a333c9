"""Random changes of JSON documents by hostile values, for tests that compare two readers."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 2**53, 2**63, 2**64, 10**30, 10**400),
    *(1.0, 0.1, 1e-7, 1e16, 1.5e300, -0.0),
    *("", "x", "0" * 64, "\u202e", "\ud800", "a\nb", "\u0000", "é😀", "person:x", "ledger"),
    *("2026-11-17T00:00:00+00:00", "2026-13-17T00:00:00+00:00"),
    *([], {}, [1], {"a": 1}, [[]], {"blob": {"alg": "sha256", "digest": "0" * 64, "size": 5, "media": "x"}}),
]


def list_paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from list_paths(item, (*path, key))


def change(document: Any, rng: random.Random) -> tuple[Any, str]:
    """A copy with one value replaced, removed or added, and the place of the change."""
    document = copy.deepcopy(document)
    path = rng.choice(list(list_paths(document)))
    holder = document
    for key in path[:-1]:
        holder = holder[key]
    value, choice = copy.deepcopy(rng.choice(VALUES)), rng.random()
    if choice < 0.7:
        holder[path[-1]] = value
    elif choice < 0.85:
        del holder[path[-1]]
    elif isinstance(holder, dict):
        holder[rng.choice(["extra", "v", "id"])] = value
    else:
        holder.append(value)
    return document, "/".join(map(str, path))
