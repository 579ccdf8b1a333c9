"""Bundles in which every field of every kind of record has a value that its reader does not expect.

A bundle gets many copies of its chains, each under a name of its own. Each record of a copy has one changed field, so
that its other fields still lead it into the view that would show it. Each record has the hash of its text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from aver.capsule.sealed import content_hash
from support.bundles import load, save

FieldPath = tuple[str | int, ...]
"""Where a field is, such as `("outcome", "status")`."""

HIDDEN = "a\u202eb\u200bc\x1b[31md\U000e0041\u3164<img src=x onerror=alert(1)><script>alert(2)</script>"
"""Characters that reorder, hide or colour text, and markup."""

VALUES = [
    '"constructor"',
    '"__proto__"',
    '"toString"',
    json.dumps(HIDDEN),
    '""',
    '"9999-99-99T99:99:99Z"',
    '"pl\\u3164ain\\u2800"',
    json.dumps("long " * 20_000),
    "9007199254740995",
    "-1e400",
    "1e-400",
    "123456789012345678901234567890",
    "null",
    "true",
    "[]",
    json.dumps([HIDDEN, 1, None, {"constructor": [HIDDEN]}]),
    "[" * 150 + "]" * 150,
    '{"__proto__": {"a": 1}, "constructor": "x", "toString": null, "": 2, ' + json.dumps(HIDDEN) + ": true}",
]
"""Values as JSON texts: Python could not write some of these numbers."""

ROUNDED = ["9007199254740996", "9,007,199,254,740,996", "1.2345678901234568e+29", "123,456,789,012,345,680", "Infinity"]
"""How JavaScript would write these numbers."""

LONGEST = 20
"""Records of a chain that are copied."""

NOWHERE = "a word that is in no name"
MARK = "the field to replace"


def list_fields(value: Any, here: FieldPath = ()) -> Iterator[FieldPath]:
    """Every field of a record; of a list, the first item's."""
    inner = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for name, item in inner:
        yield (*here, name)
        yield from list_fields(item, (*here, name))


def replace_text(text: str, path: FieldPath, value: str) -> str:
    """A JSON text with another value, given as a JSON text, in one of its fields."""
    content = json.loads(text)
    holder = content
    for name in path[:-1]:
        holder = holder[name]
    holder[path[-1]] = MARK
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).replace(json.dumps(MARK), value)


def kind_of(record: dict[str, Any]) -> str:
    return str(json.loads(record["canonical"])["context"]["environment"]["aver"]["kind"])


@dataclass
class Changes:
    """What is still to be changed: by kind of record, a field and its value. Each field gets `each` of the values."""

    each: int
    waiting: dict[str, dict[FieldPath, list[str]]] = field(default_factory=dict)
    turn: int = 0

    def add(self, record: dict[str, Any]) -> None:
        """Note the fields of a record that no other record of its kind has."""
        fields = self.waiting.setdefault(kind_of(record), {})
        for path in list_fields(json.loads(record["canonical"])):
            if path not in fields:
                # Each field begins with another value, so that fields that all kinds share meet all of them.
                fields[path] = list(islice(cycle(VALUES), self.turn % len(VALUES), self.turn % len(VALUES) + self.each))
                self.turn += self.each

    def apply(self, record: dict[str, Any]) -> dict[str, Any]:
        """The record with the next change of its kind; the record as it is if there is none."""
        fields = self.waiting[kind_of(record)]
        here = set(list_fields(json.loads(record["canonical"])))
        path = next((path for path, values in fields.items() if values and path in here), None)
        if path is None:
            return record
        return {**record, "canonical": replace_text(record["canonical"], path, fields[path].pop())}

    @property
    def left(self) -> int:
        return sum(len(values) for fields in self.waiting.values() for values in fields.values())


@dataclass(frozen=True)
class Family:
    """Chains that belong together, by a word that is in their names and ties their records to each other."""

    word: str
    chains: dict[str, list[dict[str, Any]]]

    def copy(self, number: int, changes: Changes) -> dict[str, list[dict[str, Any]]]:
        """The chains under other names, each record with one change."""
        word = f"{number:08x}"
        return {
            name.replace(self.word, word): relink(
                changes.apply({**record, "canonical": record["canonical"].replace(self.word, word)})
                for record in records
            )
            for name, records in self.chains.items()
        }


def relink(records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The records with the hashes of their texts, each linked to the one before, as far as its fields allow."""
    linked: list[dict[str, Any]] = []
    hashes: dict[str, str] = {}
    for record in records:
        canonical = record["canonical"]
        for before, now in hashes.items():
            canonical = canonical.replace(before, now)
        hashes = {record["hash"]: content_hash(canonical.encode())}
        linked.append({**record, "canonical": canonical, "hash": hashes[record["hash"]]})
    return linked


def read_families(bundle: Path, words: list[str]) -> list[Family]:
    """All chains of a bundle: by the words that tie some of them together, by request, and each other chain alone."""
    chains = {path.stem: load(path).get("capsules", [])[:LONGEST] for path in sorted(bundle.glob("*.json"))}
    families = [Family(word, {name: chains.pop(name) for name in list(chains) if word in name}) for word in words]
    for name, records in chains.items():
        requests = [record for record in records if kind_of(record) == "approval.request"]
        for request in requests:
            word = str(json.loads(request["canonical"])["id"])
            families.append(Family(word, {name: [record for record in records if word in record["canonical"]]}))
        if records and not requests:
            families.append(Family(NOWHERE, {name: records}))
    return families


def add_chains(bundle: Path, chains: dict[str, list[dict[str, Any]]]) -> None:
    """Write chains into a bundle, and list them in its index. A chain that is there already gets more records."""
    index = load(bundle / "index.json")
    listed = {claim["id"]: claim for claim in index["chains"]} | {"meta": index.get("meta") or {}}
    for name, records in chains.items():
        path = bundle / f"{name}.json"
        whole: dict[str, Any] = load(path) if path.exists() else {"id": name, "capsules": []}
        whole["capsules"] += records
        claim = {"length": len(whole["capsules"]), "head_hash": whole["capsules"][-1]["hash"]}
        whole.update(claim)
        if name not in listed:
            index["chains"].append(listed.setdefault(name, {"id": name, "tool": name.partition(".")[0]}))
        listed[name].update(claim)
        save(path, whole)
    save(bundle / "index.json", index)
