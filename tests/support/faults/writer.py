"""A writer that is going to be killed: appends without end and says what was acknowledged.

    python writer.py NAME FIRST

Every record has an idempotency key of its own, NAME:NUMBER from FIRST on. A line `ack KEY HASH` is written to standard
output only after `append` or `append_many` has returned.
"""

from __future__ import annotations

import os
import sys

from aver import Blob, Capsule, Exists, open_ledger


def say(*lines: str) -> None:
    os.write(1, "".join(f"{line}\n" for line in lines).encode())


def main(name: str, first: int) -> None:
    number = first
    with open_ledger() as ledger:
        say("ready")
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


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
