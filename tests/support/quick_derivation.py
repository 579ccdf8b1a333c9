"""A cheaper key derivation for keys under a passphrase, where a test is about something else.

Aver derives such a key with 256 MiB and 3 passes, which takes most of a second, on purpose. Tests use the least that
Aver reads back: 64 MiB and 2 passes. `tests/keys/test_store.py` derives as Aver does (`full_derivation`), and so does
the installed command when a test starts it cold.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from nacl.pwhash import argon2id

FULL = argon2id.OPSLIMIT_MODERATE, argon2id.MEMLIMIT_MODERATE


def derive_quickly() -> None:
    argon2id.OPSLIMIT_MODERATE, argon2id.MEMLIMIT_MODERATE = (
        argon2id.OPSLIMIT_INTERACTIVE,
        argon2id.MEMLIMIT_INTERACTIVE,
    )


@contextmanager
def full_derivation() -> Iterator[None]:
    """Derive keys as Aver does."""
    argon2id.OPSLIMIT_MODERATE, argon2id.MEMLIMIT_MODERATE = FULL
    yield
    derive_quickly()
