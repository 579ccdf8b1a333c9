"""What is this thing, and which room judges it: the `verify` that `aver` exports. (Signatures first; bodies follow.)"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aver.capsule.sealed import Sealed
from aver.keys import PublicKey
from aver.verdict import Level, Verdict


def verify(
    thing: Any = None,
    *,
    keys: Iterable[PublicKey | str] = (),
    level: Level = "signature",
    require_pq: bool = False,
    tenant: str | None = None,
    home: Path | None = None,
    ledger: str | Path | None = None,
) -> Verdict:
    """The verdict on anything. `ledger` (URL or path): where names are looked up instead of the default ledger.

    `NotFound` if nothing of that name is anywhere; `BadInput` if it is nothing that Aver knows.
    """
    raise NotImplementedError


def verify_with_key(
    sealed: Sealed | dict[str, Any] | str | bytes, key: PublicKey | str, *, require_pq: bool = False
) -> Verdict:
    """The verdict on one capsule, held to exactly one key."""
    raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Found:
    """What a reference names: one record (`record` is set), or one chain of records."""

    name: str
    record: Sealed | None
    chain: str | None
    fragment: str | None
    read: Callable[[], Iterator[Sealed]]
    """Its records in order, read afresh at each call."""


def resolve(
    thing: Any, *, tenant: str | None = None, home: Path | None = None, ledger: str | Path | None = None
) -> Found:
    """The one record or chain that `thing` names, for showing. Takes what `verify` takes, except whole ledgers."""
    raise NotImplementedError
