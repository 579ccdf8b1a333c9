"""Export and import of bundles. (Signatures first; bodies follow.)"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from aver.ledger.ledger import Ledger
from aver.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export wrote."""

    path: Path
    chains: int
    capsules: int
    blobs: int
    fingerprint: str
    """Of the key that signs this ledger now; empty where there is none."""


@dataclass(frozen=True, slots=True)
class ImportedChain:
    """One chain of a bundle: its name here and there. `existed`: it was here already, with the same records."""

    name: str
    origin: str
    count: int
    existed: bool


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did. `verdict` is what was found before anything was stored; `unknown_signers` fingerprints."""

    chains: tuple[ImportedChain, ...]
    verdict: Verdict
    unknown_signers: tuple[str, ...]


def export_bundle(
    ledger: Ledger,
    out: Path,
    *,
    chains: Iterable[str] | None = None,
    with_meta: bool = False,
    blobs: bool = True,
) -> Exported:
    """Write chains (default: all, and the meta chain) as a bundle into the directory `out`."""
    raise NotImplementedError


def import_bundle(ledger: Ledger, path: Path, *, only: Iterable[str] | None = None) -> Imported:
    """Store the chains of a bundle (or `only` those with these ids), verbatim and frozen."""
    raise NotImplementedError
