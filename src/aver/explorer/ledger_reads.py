"""Reads from a ledger for the Explorer's API: records, blobs, places and keys, as documents.

Everything is given as it is stored, intact or not, because the page judges it. Each line of `read_records` has the
bytes that a bundle has for this record (`aver.ledger.bundle.layout.dump_capsule`). The one exception are bytes that are
not UTF-8, which no bundle can hold: `canonical_hex` has them instead of `canonical`.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any

import orjson

from aver.capsule.aver_block import check_chain_name
from aver.capsule.sealed import SEAL_KEYS, Sealed
from aver.errors import BadInput, IntegrityError, NotFound
from aver.keys import PublicKey, Ring, RingEntry
from aver.ledger import Ledger
from aver.ledger.bundle.layout import dump_capsule
from aver.ledger.lookup import locate

RECORDS_MAX = 1000
"""Records of one answer: as many as the ledger reads in one short transaction."""

ANSWER_MAX = 8 * 1024 * 1024
"""Bytes of one answer with records. The server has it in memory at once."""

REFERENCE_MAX = 512
"""Longest name that is looked up, in characters. Idempotency keys are shorter."""

_HEX64 = re.compile(r"[0-9a-f]{64}").fullmatch


@dataclass(frozen=True, slots=True)
class RecordLines:
    """Records of a chain, one on each line. `next_start` is where to go on; None at the end of what was asked for."""

    data: memoryview
    next_start: int | None


def read_records(ledger: Ledger, chain: str, start: int, stop: int | None) -> RecordLines:
    """The records of a chain from `start` up to `stop` or the present head, as far as one answer goes.

    Raises `NotFound` for a chain that is not there, and `IntegrityError` for a record that no answer can hold.
    """
    row = ledger.store.chain(ledger.tenant, check_chain_name(chain))
    if row is None:
        raise NotFound(f"there is no chain {chain} in this ledger")
    bound = row.count if stop is None else min(stop, row.count)
    end = min(start + RECORDS_MAX, bound)
    # One buffer that grows: a list of lines that is joined takes fresh memory twice, and so twice as long.
    data = bytearray()
    if start < end:
        with ledger.store.read_rows(row, start, end) as rows:
            for stored in rows:
                line = dump_line(stored.sealed)
                if len(data) + len(line) + 1 > ANSWER_MAX:
                    if not data:
                        raise _too_large_error(chain, stored.sequence)
                    end = int(stored.sequence)
                    break
                data += line
                data += b"\n"
    return RecordLines(memoryview(data), end if end < bound else None)


def dump_line(record: Sealed) -> bytes:
    """A record as the capsule of a bundle; with `canonical_hex` if its bytes are not text."""
    try:
        return dump_capsule(record)
    except UnicodeDecodeError:
        seal = {key: getattr(record, key) for key in SEAL_KEYS}
        return orjson.dumps({**seal, "canonical_hex": record.canonical.hex()})


def _too_large_error(chain: str, sequence: int) -> IntegrityError:
    words = (
        f"chain {chain}, sequence {sequence}: the record is larger than {ANSWER_MAX} bytes, which no record of Aver is"
    )
    return IntegrityError("SCHEMA_INVALID", words, advice="run: aver verify")


def read_blob(ledger: Ledger, digest: str) -> bytes:
    """The bytes that are stored under a digest, whether they have it or not. Raises `NotFound` or `BadInput`."""
    if _HEX64(digest) is None:
        raise BadInput("a blob is named by the 64 lower-case hex digits of its SHA-256")
    found = ledger.store.blob(ledger.tenant, digest)
    if found is None:
        raise NotFound(f"there is no blob {digest} in this ledger")
    return found.data


def find_place(ledger: Ledger, reference: str) -> dict[str, Any]:
    """Where a hash, id, key, URI, chain or the beginning of a session is. Raises `NotFound`, or `BadInput` if it may be
    several."""
    if not 0 < len(reference) <= REFERENCE_MAX:
        raise BadInput(f"a reference has 1 to {REFERENCE_MAX} characters")
    place = locate(ledger, reference)
    return {"chain": place.chain, "sequence": place.sequence, "fragment": place.fragment}


def dump_keys(ring: Ring) -> bytes:
    """The key list: our own keys and the known ones. The same ring always gives the same bytes.

    `origin` is `ring` for a key of this home, `published` for a known key of whose owner there is an entry, and `known`
    for any other. The last have no identity, purpose or time.
    """
    listed = [_describe_entry(entry, "ring") for entry in ring.entries]
    own = {entry.key.ed25519 for entry in ring.entries}
    published = {entry.key.ed25519: entry for entry in ring.published}
    for key in sorted(ring.known.values(), key=lambda known: known.ed25519):
        if key.ed25519 in published:
            listed.append(_describe_entry(published[key.ed25519], "published"))
        elif key.ed25519 not in own:
            listed.append(_describe_key(key))
    return orjson.dumps({"keys": listed})


def digest_keys(ring: Ring) -> str:
    """SHA-256 of the key list, as the link that the server prints has it."""
    return hashlib.sha256(dump_keys(ring)).hexdigest()


def _describe_entry(entry: RingEntry, origin: str) -> dict[str, Any]:
    return {**entry.to_dict(), "origin": origin}


def _describe_key(key: PublicKey) -> dict[str, Any]:
    return {
        "identity": None,
        "purpose": None,
        "epoch": None,
        "algorithm": key.algorithm,
        "fingerprint": key.fingerprint,
        "public_key": key.ed25519,
        "public_key_pq": key.ml_dsa_65,
        "created_at": None,
        "retired_at": None,
        "status": None,
        "statement": None,
        "origin": "known",
    }
