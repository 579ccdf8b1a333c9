"""What the gate remembers of a session between two decisions, so that it need not read the session again.

A decision needs three things of its session's past: the newest sealed state, which of the last decisions refused which
action and when, and how often the tool has failed lately. Without a memory that is up to 50 verified records for each
decision. With it, a decision verifies the records since the last one: two, in the 5th decision as in the 500th.

The memory is one file of a session in `AVER_HOME/gate-sessions/` (0600, replaced all at once):

    {v: 1, of, count, hash, state_at, decisions: [[sequence, digest, refused, now, effects]], row, calls: [[at, tool,
     failed]], sha256}

    of          the ledger, its address, the tenant, the chain and the key ring that it was made with
    count, hash the head up to which the records were verified
    state_at    the record that holds the session's newest state; null where there is none
    row         the ledger's number of the newest record that was searched for tool calls

It is a memory and no evidence. The ledger's signed records always win:

* the record at `count` is read and verified again, and must have `hash`;
* the state itself is not in the file: it is read from the signed record that `state_at` names;
* a memory of another ring, of a longer chain, of another ledger, or one that is damaged in any way counts for nothing.
  The past is then read from the records, as if there had been no memory.

A person who can write in `AVER_HOME` can change the counts of denials and rates. That person could also use the key
there.

`require_valid_records` verifies the records that a decision rests on.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from aver import log
from aver.capsule.sealed import Sealed
from aver.clock import new_id
from aver.errors import AverError, IntegrityError
from aver.fast_dataclass import dataclass
from aver.files.regular import read_if_regular
from aver.ledger import Head, Ledger
from aver.verdict import ChainJudge, Rules

DIRECTORY = "gate-sessions"
VERSION = 1

SIZE_MAX = 1024 * 1024
"""Largest file that is read, in bytes. Ours have some 30 KiB at most."""

FILES_MAX = 1000
"""Sessions that are remembered. Beyond that, those that were not used for longest are forgotten."""

_KEYS = {"v", "of", "count", "hash", "state_at", "decisions", "row", "calls", "sha256"}


@dataclass(frozen=True, slots=True)
class PastDecision:
    """One of the session's last decisions."""

    sequence: int
    digest: str
    refused: bool
    now: str
    effects: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PastCall:
    """A recorded use of a tool."""

    at: str
    tool: str
    failed: bool


@dataclass(frozen=True, slots=True)
class SessionMemory:
    """What is remembered of one session. A new one remembers nothing."""

    count: int = 0
    hash: str | None = None
    state_at: int | None = None
    decisions: tuple[PastDecision, ...] = ()
    row: int = 0
    calls: tuple[PastCall, ...] = ()


def load_memory(ledger: Ledger, head: Head) -> SessionMemory:
    """Return what is remembered of the session whose decisions end at `head`. An empty memory where nothing fits."""
    try:
        raw = read_if_regular(_path(ledger, head.chain), SIZE_MAX)
        if raw is None:
            return SessionMemory()
        document = orjson.loads(raw)
        if not isinstance(document, dict) or document.keys() != _KEYS or document["v"] != VERSION:
            raise ValueError("it is not a document of this version")
        claimed = document.pop("sha256")
        if claimed != _digest(document):
            raise ValueError("it does not have its checksum")
        if document["of"] != _origin(ledger, head.chain):
            raise ValueError("it is of another ledger, or was made with other keys")
        memory = SessionMemory(
            count=int(document["count"]),
            hash=document["hash"],
            state_at=None if document["state_at"] is None else int(document["state_at"]),
            decisions=tuple(
                PastDecision(int(sequence), str(digest), bool(refused), str(now), tuple(map(str, effects)))
                for sequence, digest, refused, now, effects in document["decisions"]
            ),
            row=int(document["row"]),
            calls=tuple(PastCall(str(at), str(tool), bool(failed)) for at, tool, failed in document["calls"]),
        )
    except (AverError, KeyError, TypeError, ValueError, IndexError) as error:
        log.debug("gate", "what was remembered of %s is not used: %s", head.chain, error)
        return SessionMemory()
    # A longer chain than the ledger has: the ledger was put back. The caller compares `hash` for all others.
    return memory if memory.count <= head.count else SessionMemory()


def save_memory(ledger: Ledger, chain: str, memory: SessionMemory) -> None:
    """Write the memory of a session. Where that fails, the next decision reads the records again."""
    document: dict[str, Any] = {
        "v": VERSION,
        "of": _origin(ledger, chain),
        "count": memory.count,
        "hash": memory.hash,
        "state_at": memory.state_at,
        "decisions": [[d.sequence, d.digest, d.refused, d.now, list(d.effects)] for d in memory.decisions],
        "row": memory.row,
        "calls": [[call.at, call.tool, call.failed] for call in memory.calls],
    }
    path = _path(ledger, chain)
    # Not `files.atomic`: that waits for the disk. A torn file has not its checksum, and costs nothing but time.
    temporary = path.with_name(f".{path.name}.{new_id()}")
    with suppress(OSError, TypeError, ValueError):  # Also texts that JSON cannot hold.
        data = orjson.dumps({**document, "sha256": _digest(document)})
        if not path.parent.is_dir():
            path.parent.mkdir(mode=0o700)
        if not path.exists():  # Make room for a new one: forget the sessions that were not used for longest.
            files = sorted(path.parent.iterdir(), key=lambda file: file.lstat().st_mtime)
            for old in files[: max(len(files) - FILES_MAX + 1, 0)]:
                old.unlink(missing_ok=True)
        try:
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.replace(temporary, path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise


def _path(ledger: Ledger, chain: str) -> Path:
    name = _digest((ledger.id, ledger.tenant, chain))
    return ledger.config.home / DIRECTORY / f"{name[:32]}.json"


def _origin(ledger: Ledger, chain: str) -> str:
    """Return the digest of all that a memory is bound to. With other keys, what was verified may not hold any more."""
    return _digest((ledger.id, ledger.config.ledger, ledger.tenant, chain, ledger.keys.ring().to_dict()))


def _digest(value: Any) -> str:
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()


def require_valid_records(ledger: Ledger, chain: str, start: int, records: list[Sealed]) -> list[Sealed]:
    """Return the records if each has its hash, its signature, its place and its link. Raises `IntegrityError` if not.

    `start` is the number of the first record in its chain.
    """
    identity = {"name": chain, "ledger": ledger.id, "tenant": ledger.tenant}
    judge = ChainJudge(Rules(ledger.keys.ring()), chain=chain, start=start, identity=identity, needs_block=True)
    for record in records:
        judge.judge(record)
    # The first failure is the one to report: later ones often follow from it.
    broken = next((finding for finding in judge.finish().findings if finding.status == "failed"), None)
    if broken is not None:
        raise IntegrityError(broken.code, f"{broken.place}: {broken.words}", evidence=broken, advice="run: aver verify")
    return records
