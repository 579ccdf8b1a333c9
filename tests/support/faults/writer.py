"""A writer that is going to be killed: appends without end and says what was acknowledged.

    python writer.py NAME FIRST [CALLS]

Every record has an idempotency key of its own, NAME:NUMBER from FIRST on. A line `ack KEY HASH` is written to standard
output only after `append`, `append_many` or `append_together` has returned. CALLS is `single`, for the first two of
these, or `together`.
"""

from __future__ import annotations

import os
import sys

from aver import Blob, Capsule, Entry, Exists, Ledger, open_ledger


def say(*lines: str) -> None:
    os.write(1, "".join(f"{line}\n" for line in lines).encode())


def append_single(ledger: Ledger, name: str, number: int) -> None:
    while True:
        chain = f"storm.{number % 3}"
        if number % 7 == 0:
            keys = [f"{name}:{number + index}" for index in range(5)]
            records = ledger.append_many(chain, [Capsule(type="tool") for _ in keys], keys=keys)
            say(*(f"ack {key} {record.hash}" for key, record in zip(keys, records, strict=True)))
            number += 5
            continue
        key = f"{name}:{number}"
        blob = Blob(f"{key} {'b' * 20_000}".encode())
        try:
            draft = Capsule(type="tool", outcome={"result": blob.reference})
            record = ledger.append(chain, draft, key=key, blobs=[blob])
        except Exists as exists:
            record = exists.record
        say(f"ack {key} {record.hash}")
        number += 1


def append_together(ledger: Ledger, name: str, number: int) -> None:
    """Three chains in each call, in an order that differs from writer to writer and from call to call."""
    number -= number % 3  # A writer that begins again makes the same calls as the one before.
    while True:
        keys = [f"{name}:{number + index}" for index in range(3)]
        blob = Blob(f"{keys} {'b' * 20_000}".encode())
        result = {"together": keys, "file": blob.reference}
        places = [(hash_of(name) + number // 3 + index * (1 + number % 2)) % 3 for index in range(3)]
        entries = [
            Entry(f"storm.{place}", Capsule(type="tool", outcome={"result": result}), key=key, blobs=[blob])
            for place, key in zip(places, keys, strict=True)
        ]
        try:
            records = ledger.append_together(entries)
        except Exists:
            found = [ledger.get(key) for key in keys]
            assert None not in found, f"the call of {keys} was written in part"
            records = [record for record in found if record is not None]
        say(*(f"ack {key} {record.hash}" for key, record in zip(keys, records, strict=True)))
        number += 3


def hash_of(name: str) -> int:
    return sum(name.encode())


if __name__ == "__main__":
    with open_ledger() as opened:
        say("ready")
        append = append_together if sys.argv[3:] == ["together"] else append_single
        append(opened, sys.argv[1], int(sys.argv[2]))
