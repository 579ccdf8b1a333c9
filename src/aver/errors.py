"""The one tree of errors.

Every error that Aver raises on purpose is an `AverError` of one of four kinds. The kind says who has to act:

* `BadInput`       the input is wrong: the caller corrects it (exit code 2)
* `Refused`        Aver understood and does not do it; carries a reason code (exit code 5)
* `IntegrityError` evidence does not hold; carries that evidence (exit code 1)
* `Unavailable`    disk, lock, server or signer failed; nothing was recorded (exit code 3). Only after `OutcomeUnknown`
                   the records may have been kept

A message says what happened and where; `advice` says what to do next.
"""

from __future__ import annotations

import errno
from typing import Any


def install_advice(extra: str) -> str:
    """Return the command that brings the packages of an extra, as advice for an error."""
    return f"pip install 'aver-ledger[{extra}]', or in a checkout of Aver: pip install '.[{extra}]'"


class AverError(Exception):
    """The root. `message` is one sentence; `advice`, where there is any, is the next step."""

    exit_code = 4

    def __init__(self, message: str, *, advice: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice

    def __str__(self) -> str:
        return f"{self.message} ({self.advice})" if self.advice else self.message


class BadInput(AverError):
    """The input cannot be used."""

    exit_code = 2


class NotCanonical(BadInput):
    """A value has no canonical JSON form. `path` says which one, e.g. `outcome.metrics.loss`."""

    def __init__(self, message: str, *, path: str = "", advice: str = "") -> None:
        super().__init__(f"{path}: {message}" if path else message, advice=advice)
        self.problem = message
        self.path = path


class NotExact(BadInput):
    """A signed document is not written, byte for byte, as its maker writes it."""


class InvalidCapsule(BadInput):
    """A capsule breaks the rules for writing one. `category` and `field` name the first rule broken.

    Categories are those of the Capsule Protocol's conformance suite: `missing_field`, `wrong_type`,
    `invalid_value`, `chain_violation`, `integrity_violation`.
    """

    def __init__(self, category: str, field: str, message: str, *, advice: str = "") -> None:
        super().__init__(f"{field}: {message}" if field else message, advice=advice)
        self.category = category
        self.field = field


class NotFound(BadInput):
    """Nothing of that name is here."""


class Refused(AverError):
    """Aver understood the request and does not carry it out. Programs compare `code`."""

    exit_code = 5

    def __init__(self, code: str, message: str, *, advice: str = "") -> None:
        super().__init__(message, advice=advice)
        self.code = code


class Exists(Refused):
    """The idempotency key was used before, for `record`."""

    def __init__(self, key: str, record: Any) -> None:
        super().__init__("EXISTS", f"a record with the key {key!r} is already in the ledger")
        self.key = key
        self.record = record


class HeadMoved(Refused):
    """The chain is not where the caller thought; `expected` and `actual` are heads."""

    def __init__(self, expected: Any, actual: Any) -> None:
        super().__init__(
            "HEAD_MOVED",
            f"chain {actual.chain} has {actual.count} records, not {expected.count}, or another head",
            advice="read the head again and retry",
        )
        self.expected = expected
        self.actual = actual


class IntegrityError(AverError):
    """Evidence does not hold. `evidence` is what shows it."""

    exit_code = 1

    def __init__(self, code: str, message: str, *, evidence: Any = None, advice: str = "") -> None:
        super().__init__(message, advice=advice)
        self.code = code
        self.evidence = evidence


class Unavailable(AverError):
    """Disk, lock, server or signer failed. Aver did not do what the caller asked for."""

    exit_code = 3


class StoreDamaged(Unavailable):
    """The store was reached, and what it keeps cannot be read: its pages, rows or values are damaged.

    A verifier counts this as evidence. Every other `Unavailable` says nothing about the data, and may pass.
    """


_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.EIO})


def find_machine_fault(error: Exception) -> Unavailable | None:
    """The `Unavailable` for an exception in pure code that only the machine can have caused; None for all others.

    Pure code meets the system only where it loads a module for the first time.
    """
    if isinstance(error, MemoryError):
        return Unavailable("this process is out of memory", advice="nothing was decided; try again with more memory")
    if isinstance(error, ImportError) or (isinstance(error, OSError) and error.errno in _EXHAUSTED):
        return Unavailable(
            f"this process cannot load what it needs: {error}", advice="check the limits of this process"
        )
    return None


def is_outage(error: AverError) -> bool:
    """Whether the disk, server or machine failed, so that the error says nothing about the data."""
    return isinstance(error, Unavailable) and not isinstance(error, StoreDamaged)


class OutcomeUnknown(Unavailable):
    """A commit failed at its very end: the records may be in the ledger or not, and a crash may still decide it."""

    def __init__(self, message: str) -> None:
        super().__init__(
            f"{message}: it is not known whether the records were kept",
            advice="append again with the same key: it is recorded once, or you get the record that was kept",
        )


class NotRecorded(Unavailable):
    """An audited call could not be recorded. `__cause__` is the error behind it.

    Without `ran`, Aver could not seal the intent, and the call was not made. With `ran`, the call was made and returned
    `result`, but Aver could not seal its outcome: the ledger holds an intent without an outcome.
    """

    def __init__(self, message: str, *, ran: bool, result: Any = None, advice: str = "") -> None:
        super().__init__(message, advice=advice)
        self.ran = ran
        self.result = result
