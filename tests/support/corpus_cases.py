"""The conformance corpus and the published vectors as cases for the page's verifier, each with its right answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).parents[1] / "conformance" / "corpus"
Case = tuple[str, dict[str, Any], Any]
"""A name, the case, and the answer."""


def _load(name: str) -> Any:
    return json.loads((CORPUS / f"{name}.json").read_text("utf-8"))


def _bytes_of(entry: dict[str, Any]) -> str:
    if "hex" in entry:
        return str(entry["hex"])
    return "".join(text * times for text, times in entry["parts"]).encode().hex()


def read_corpus() -> Iterator[Case]:
    """Every case of our own corpus that a verifier can be asked about."""
    for one in _load("canonical")["cases"]:
        case = {"sort": "canonical", "input": one["input"], "canonical": one["canonical"]}
        yield one["name"], case, [True, one["sha3_256"], True]
    reading = _load("reading")
    for one in reading["unreadable"]:
        yield one["name"], {"sort": "read", "hex": _bytes_of(one)}, one["code"]
    for one in reading["readable"]:
        yield one["name"], {"sort": "read", "hex": _bytes_of(one)}, True
    seals = _load("seals")
    for one in seals["cases"]:
        keys, require_pq = one.get("keys", seals["keys"]), one.get("require_pq", False)
        case = {"sort": "seal", "sealed": one["sealed"], "keys": keys, "requirePq": require_pq}
        yield one["name"], case, [one["status"], *([one["code"]] if one["code"] else [])]
    for one in _load("ed25519")["cases"]:
        yield one["name"], {"sort": "ed25519", **one}, [True, one["valid"], one["valid"]]
    passkeys = _load("passkeys")
    for one in passkeys["cases"]:
        statement = {"purpose": passkeys["purpose"], "content": passkeys["content"]}
        yield one["name"], {"sort": "passkey", **statement, **one}, one["valid"]


def read_vectors(folder: Path) -> Iterator[Case]:
    """The published vectors: the golden capsules, and the document as it is stored."""
    for name in ("golden-12-key.json", "golden-13-key.json"):
        for one in json.loads((folder / name).read_text("utf-8"))["fixtures"]:
            case = {"sort": "stored", "canonical": one["canonical_json"]}
            yield f"{name}: {one['name']}", case, [True, one["sha3_256_hash"]]
    stored = json.loads((folder / "stored-document.json").read_text("utf-8"))
    record = {"sealed": json.dumps(stored["sealed_record"]), "requirePq": False}
    key, other = stored["public_key_hex"], "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8"
    yield "stored document", {"sort": "seal", **record, "keys": [{"ed25519": key}]}, ["verified"]
    changed = {**record, "sealed": record["sealed"].replace('"sequence": 0', '"sequence": 1', 1)}
    assert changed != record
    yield "changed document", {"sort": "seal", **changed, "keys": [{"ed25519": key}]}, ["failed", "HASH_MISMATCH"]
    yield "another key", {"sort": "seal", **record, "keys": [{"ed25519": other}]}, ["qualified", "UNKNOWN_SIGNER"]
