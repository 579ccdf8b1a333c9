"""The oracles: what no input may bring about.

1. Only an `AverError` leaves a parser, and no verb ends with "internal error".
2. A verdict that is not `failed` stands only for content of the honest thing: every record, line and value that the
   damaged thing shows is one of the original, at the same place.
3. A hook that could not read its payload never lets the agent go on as if it had been allowed.
4. Nothing that a terminal would obey is printed.

A broken oracle raises `Defect`. Time and memory are watched by the engines.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from aver.capsule.sealed import SEAL_KEYS
from aver.errors import AverError
from aver.verdict import Verdict

ACCEPTED = ("verified", "qualified")


class Defect(AssertionError):
    """An input broke a promise of Aver. The words begin with the promise."""


def call_parser(work: Callable[[], Any]) -> Any:
    """Call a parser. Returns None where it refuses the input as it should, and raises `Defect` for a crash."""
    try:
        return work()
    except AverError as error:
        if not str(error):
            raise Defect("a refusal without words") from error
        return None
    except (Defect, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise Defect(f"internal error: {type(error).__name__}: {error}") from error


def call_verify(work: Callable[[], Verdict]) -> Verdict | None:
    """Call a verification, and require a whole verdict of it. None where it refused the thing as none of its kind."""
    verdict = call_parser(work)
    if verdict is None:
        return None
    if verdict.status not in ("verified", "qualified", "failed", "empty"):
        raise Defect(f"a verdict of unknown status {verdict.status!r}")
    if verdict.status == "failed" and verdict.first_bad is None:
        raise Defect("a failed verdict that names no place")
    call_parser(lambda: json.dumps(verdict.to_dict()))
    for finding in verdict.findings:
        if "internal error" in str(finding):
            raise Defect(f"internal error in a finding: {finding}")
    return verdict


def require_same(accepted: Verdict | None, original: Mapping[Any, Any], shown: Mapping[Any, Any]) -> None:
    """Require that an accepted thing shows only what the original has, at the same places.

    A qualified verdict may leave out files that it names as no part of the thing.
    """
    if accepted is None or accepted.status not in ACCEPTED:
        return
    words = json.dumps(accepted.to_dict(), ensure_ascii=False) if accepted.status == "qualified" else ""
    for place, value in shown.items():
        file = place[0] if isinstance(place, tuple) else place
        if words and isinstance(file, str) and file not in original and file and file.split("/")[0] in words:
            continue
        if place not in original or original[place] != value:
            raise Defect(f"{accepted.status} with other content at {place!r}: {str(value)[:300]}")


# --- what a thing shows


def ledger_contents(path: Path) -> dict[Any, Any]:
    """Everything that a ledger shows, by its place, read from the tables without any of Aver's code."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        chains = connection.execute("SELECT chain, tenant, name, frozen, origin FROM chains NOT INDEXED").fetchall()
        names = {number: (tenant, name) for number, tenant, name, _, _ in chains}
        found: dict[Any, Any] = {
            ("chain", tenant, name): (frozen, origin) for _, tenant, name, frozen, origin in chains
        }
        for number, sequence, *record in connection.execute(
            "SELECT chain, sequence, tenant, hash, signature, signature_pq, signed_at, signed_by, id, type, kind, key,"
            " session, at, canonical FROM records NOT INDEXED"
        ):
            found["record", names.get(number), sequence] = record
        # Not their media types: each record names that of the values that it refers to.
        for tenant, digest, data in connection.execute("SELECT tenant, digest, data FROM blobs NOT INDEXED"):
            found["blob", tenant, digest] = data.encode("utf-8", "surrogateescape") if isinstance(data, str) else data
        found["ledger"] = connection.execute("SELECT * FROM ledger").fetchall()
    return found


def document_contents(files: Mapping[str, bytes]) -> dict[Any, Any]:
    """What the files of a thing say, as JSON values, whatever the writing. Other files are their bytes."""
    found: dict[Any, Any] = {}
    for name, data in files.items():
        try:
            found[name] = json.loads(data, object_pairs_hook=_refuse_twice)
        except (ValueError, RecursionError):
            found[name] = data
    return {place: _with_types(value) for place, value in found.items()}


CHAIN_CLAIMS = frozenset(
    {"id", "tool", "title", "length", "head_hash", "genesis_hash", "all_hashes_ok", "signed_by", "started_at"}
    | {"ended_at", "db_path", "origin"}
)
INDEX_CLAIMS = frozenset(
    {"chain_count", "capsule_count", "blobs", "ledger", "tenant", "part", "keys", "pq_keys", "public_key"}
    | {"fingerprint"}
)
"""What an index says about a chain and about the whole. `generated_at` and unknown members are no claims."""


def bundle_records(files: Mapping[str, bytes]) -> dict[Any, Any]:
    """The records of a bundle's chains by file and place, and its blobs."""
    found: dict[Any, Any] = {}
    for name, data in files.items():
        if name.startswith("blobs/"):
            found[name] = data
            continue
        value = _load_object(data)
        capsules = value.get("capsules")
        for place, record in enumerate(capsules if isinstance(capsules, list) else ()):
            is_object = isinstance(record, dict)
            read = {key: record.get(key) or "" for key in ("canonical", *SEAL_KEYS)} if is_object else record
            found[name, place] = _with_types(read)
    return found


def bundle_claims(files: Mapping[str, bytes]) -> dict[Any, Any]:
    """What the index and the chains' files claim, by place; and the whole signed heads."""
    found: dict[Any, Any] = {}
    index = _load_object(files.get("index.json", b""))
    chains = index.get("chains")
    places = [("index.json", "", index), ("index.json", "meta", index.get("meta"))]
    places += [("index.json", one.get("id"), one) for one in chains if isinstance(one, dict)] if chains else []
    places += [
        (name, "", _load_object(data)) for name, data in files.items() if name not in ("index.json", "head.json")
    ]
    for name, part, value in places:
        if isinstance(value, dict):
            known = INDEX_CLAIMS if value is index else CHAIN_CLAIMS
            claims = {key: item for key, item in value.items() if key in known and item is not None and item != ""}
            found |= {(name, str(part), key): _with_types(item) for key, item in claims.items()}
    found["head.json"] = statement_content(files.get("head.json", b""))
    return found


def statement_content(data: bytes) -> Any:
    """What a signed statement says. A signature that stands in it twice says no more."""
    value = _load_object(data)
    return _with_types({key: item for key, item in value.items() if key != "signatures"})


def _load_object(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data, object_pairs_hook=_refuse_twice)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _refuse_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) != len(pairs):
        raise ValueError("a key twice")
    return dict(pairs)


def _with_types(value: Any) -> Any:
    """A value that equals only itself: in Python, 1 equals 1.0 and True."""
    if isinstance(value, dict):
        return {key: _with_types(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_types(item) for item in value]
    return (type(value).__name__, str(value)) if isinstance(value, int | float) else value


# --- terminals

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def require_harmless_text(text: str) -> None:
    """Require that a terminal would obey nothing in an output."""
    if found := _CONTROL.search(text):
        around = text[max(found.start() - 40, 0) : found.end() + 40]
        raise Defect(f"a control character is printed: {around!r}")
