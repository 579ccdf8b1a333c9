"""A pytest plugin that keeps everything the tests verify, with Aver's verdict on it, for a second verifier.

    AVER_CASES=DIR python -m pytest -p support.recorded_cases tests/ledger/bundle

For every file and directory that a test gives to `aver.verify`, DIR gets a copy `<n>/thing/<name>` and `<n>/case.json`.
For every ledger that a test verifies, it gets the bundle that would be exported at that moment:

    {"thing": "<name>", "ring": {"closed", "keys": [...]}, "require_pq": false, "verdict": {...}}

The second verifier has no keys of its own. So Aver judges the thing once more, with its own keys as known keys whose
owner has published their entries.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import shutil
from pathlib import Path
from typing import Any

from aver import Ledger, check
from aver.errors import AverError
from aver.keys import KeyStore, Ring
from aver.ledger.bundle import export_bundle
from aver.verdict import VerifyOptions

CASES = os.environ.get("AVER_CASES", "")

COPIED_MAX = 8 * 1024 * 1024
"""Bytes of a thing that is kept. Larger ones test limits of memory, which the page has tests of its own for."""

FORMATS = ("a bundle", "one chain of a bundle", "a .cap file", "a proof", "actions", "capsules")
"""The formats that the page judges, by their names in `aver.check`."""

_numbers = itertools.count()
_verify = check.verify


@functools.wraps(_verify)
def _verify_and_record(thing: Any = None, **options: Any) -> Any:
    path = _find_path(thing)
    if path is not None:
        _record(path, options)
    return _verify(thing, **options)


_verify_ledger = Ledger.verify


@functools.wraps(_verify_ledger)
def _verify_ledger_and_record(self: Ledger, *arguments: Any, **options: Any) -> Any:
    place = Path(CASES) / f"exported-{os.getpid()}-{next(_numbers)}"
    try:
        export_bundle(self, place)
        _record(place, {"home": self.config.home})
    except (AverError, OSError):
        pass  # A damaged ledger that cannot be exported is no case.
    shutil.rmtree(place, ignore_errors=True)
    return _verify_ledger(self, *arguments, **options)


if CASES:  # Other tests use this module's functions, and must not change what they test.
    check.verify = _verify_and_record  # type: ignore[assignment]
    Ledger.verify = _verify_ledger_and_record  # type: ignore[method-assign]


def _find_path(thing: Any) -> Path | None:
    if not isinstance(thing, str | os.PathLike):
        return None
    try:
        path = Path(thing)
        return path if path.is_file() or path.is_dir() else None
    except (OSError, ValueError):
        return None


def _record(path: Path, options: dict[str, Any]) -> None:
    """Judge a thing as a reader without a home does, and keep it with the verdict."""
    if options.get("level", "signature") != "signature" or options.get("checkpoints") or options.get("ledger"):
        return
    if path.name == "actions.jsonl" and (path.parent / "run.json").exists():
        return  # Aver judges the whole directory then, and the copy has one file of it.
    try:
        subject, found = check._identify(path, check.LedgerSource(None, check.home_dir(), None, check.open_ledger))
        if found is None or subject is None or found.name not in FORMATS:
            return
        keys = tuple(options.get("keys", ()))
        own = Ring.pin(keys) if keys else KeyStore(options.get("home") or check.home_dir()).ring()
        ring = publish(own)
        require_pq = bool(options.get("require_pq"))
        wanted = VerifyOptions(ring, check.home_dir(), require_pq=require_pq, examiners=check.EXAMINERS)
        whole = path.parent if path.name == "index.json" else path
        target = Path(CASES) / f"{os.getpid()}-{next(_numbers)}"
        if not _copy(whole, target / "thing"):
            return
        verdict = check._load(found.judge)(subject, wanted)
    except (AverError, OSError):
        return
    case = {
        "thing": whole.name or "thing",
        "test": os.environ.get("PYTEST_CURRENT_TEST", ""),
        "ring": describe(ring),
        "require_pq": require_pq,
        "verdict": verdict.to_dict(),
        "matters": [one.name for one in verdict.checks if one.matters],
    }
    (target / "case.json").write_text(json.dumps(case))


def publish(ring: Ring) -> Ring:
    """The same keys without any that this machine signs with."""
    entries = {entry.key.ed25519: entry for entry in (*ring.published, *ring.entries)}
    known = {entry.key.ed25519: entry.key for entry in entries.values()} | {
        key.ed25519: key for key in ring.known.values()
    }
    return Ring(known=known, closed=ring.closed, published=tuple(entries.values()))


def describe(ring: Ring) -> dict[str, Any]:
    entries = {entry.key.ed25519: entry.to_dict() for entry in ring.published}
    keys = [
        entries.get(key.ed25519) or {"public_key": key.ed25519, "public_key_pq": key.ml_dsa_65}
        for key in ring.known.values()
    ]
    return {"closed": ring.closed, "keys": keys}


def _copy(path: Path, target: Path) -> bool:
    """Copy a file or a directory as it is, links included; False if it is too large, or has a pipe or the like."""
    files = [path] if path.is_file() else list(path.rglob("*"))
    if any(not (one.is_file() or one.is_dir() or one.is_symlink()) for one in files):
        return False
    if sum(one.lstat().st_size for one in files) > COPIED_MAX or any(one.is_symlink() for one in files):
        return False
    if any(one.is_file() and one.stat().st_nlink > 1 for one in files):
        return False
    target.mkdir(parents=True)
    name = path.name or "thing"
    if path.is_dir():
        shutil.copytree(path, target / name, symlinks=True)
    else:
        shutil.copyfile(path, target / name)
    return True
