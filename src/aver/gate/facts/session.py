"""The past of a session, as far as its next decision must know it.

`aver.gate.facts.session_state` says what that is, and how a decision changes it. This module reads it from the ledger.

Each decision's record carries this state as it is after the decision, so the next decision reads one record, however
long the session is. So does the record of a click (`gate.outcomes.clicks`), and that of a call which the client refused
(`gate.outcomes.refusals`). A decision that was refused without being judged carries none; then the one before it
counts. A person who approves a change looks at it, so the counting begins
anew there. Between two looks, a session gets through no more than risk would pass at once, in however many pieces.

Three counts come from the newest records: how often the same action was denied, what was tried within the last minute,
and how the tool has fared. Only records count that this ledger's own ring has sealed (`aver.gate.own_records`). Without
a memory, Aver verifies all decisions of the session from the first on, so that each is known to be of this chain. With
it, a decision verifies the records since the last one: two, in the 5th decision as in the 500th.

The memory is one file of a session in `AVER_HOME/gate-sessions/` (0600, replaced all at once):

    {v: 2, of, count, hash, state_at, state_hash, decisions: [[sequence, digest, refused, now, effects]], row,
     calls: [[at, tool, failed]], sha256}

    of          the ledger, its address, the tenant, the chain and the key ring that it was made with
    count, hash the head up to which the records were verified
    state_at    the record that holds the session's newest state, and `state_hash` its hash; null where there is none
    row         the ledger's number of the newest record that was searched for tool calls

A process that lives on keeps the memories of its sessions, too, and replaces a file only now and then: another process
then verifies some more records. A kept memory counts as the file does, and only as long as the file is the one that
this process wrote last.

It is a memory and no evidence. The ledger's signed records always win:

* the record at `count` is read and verified again, and must have `hash`;
* the state itself is not in the file: it is read from the signed record that `state_at` names, which must have
  `state_hash`. All records since then are verified again, so that no file can name an older state;
* a memory of another ring, of a longer chain, of another ledger, or one that is damaged in any way counts for nothing.
  The past is then read from the records, as if there had been no memory.

A person who can write in `AVER_HOME` can change the counts of denials and rates. That person could also use the key
there.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from aver import log
from aver.capsule.aver_block import TRACE_PREFIX, read_kind
from aver.capsule.sealed import Sealed
from aver.clock import new_id
from aver.errors import AverError, BadInput, IntegrityError
from aver.fast_dataclass import NamedTuple, dataclass
from aver.files.regular import read_if_regular
from aver.gate.action import Action, Facts
from aver.gate.call_decisions import STATE_OUTCOMES
from aver.gate.decision_record import DECISION_KIND, OUTCOME_KIND, RecordedDecision, decision_chain
from aver.gate.facts.session_state import EMPTY_SESSION
from aver.gate.own_records import OwnRecords
from aver.ledger import Head, Ledger

if TYPE_CHECKING:
    from aver.keys.ring import Ring

LOOK_BACK = 50
"""Newest records of a session's decisions that count for denials and rates; each was verified."""

OPEN_LOOK_BACK = 5
"""Newest records in which the session's newest state is looked for, to see whether the end of a call is open."""

USES_MAX = 200
"""Newest records that count for a tool's uses. A decision reads no more than so many at once."""

MINUTE = timedelta(minutes=1)
USES_SPAN = timedelta(minutes=30)
"""How far back a tool's uses count."""

DIRECTORY = "gate-sessions"
MEMORY_VERSION = 2

MEMORY_SIZE_MAX = 1024 * 1024
"""Largest file that is read, in bytes. Ours have some 30 KiB at most."""

MEMORIES_MAX = 1000
"""Sessions that are remembered. Beyond that, those that were not used for longest are forgotten."""

KEPT_MAX = 64
"""Sessions whose memory a process keeps. Beyond that it reads their files again."""

UNSAVED_MAX = 16
"""Records of a session by which its file may be behind the memory that a process keeps."""

_MEMORY_KEYS = {"v", "of", "count", "hash", "state_at", "state_hash", "decisions", "row", "calls", "sha256"}


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
    """The facts that Aver remembers of one session. A new session has none."""

    count: int = 0
    hash: str | None = None
    state_at: int | None = None
    state_hash: str | None = None
    decisions: tuple[PastDecision, ...] = ()
    row: int = 0
    calls: tuple[PastCall, ...] = ()


class KeptMemory(NamedTuple):
    """A memory that this process keeps, and the file that it wrote last for that session."""

    ring: Ring
    """The ring by which `place` was made; another ring makes another one."""
    place: tuple[Path, str]
    """The file, and the digest of all that the memory is bound to."""
    stamp: tuple[int, ...] | None
    """The state of the file after it was written; None where it could not be."""
    saved: int
    """The count in the file."""
    memory: SessionMemory


_kept: dict[tuple[Path, str, str, str, str], KeptMemory] = {}
"""By home, ledger, its address, tenant and chain."""


def load_session_facts(ledger: Ledger, head: Head, action: Action, now: str) -> Facts:
    """Gather the facts about a session whose decisions end at `head`.

    Actions that belong to no session have no past. Raises `IntegrityError` if a record of the past is damaged.
    """
    if not action.session:
        return Facts(now=now)
    at = datetime.fromisoformat(now)
    since, calls_since = (at - MINUTE).isoformat(), (at - USES_SPAN).isoformat()
    # The memory saves time and is no evidence: the records since then are read and verified, and win.
    kept = _find_kept(ledger, head.chain)
    memory = load_memory(ledger, head, kept)
    newer: list[tuple[int, Sealed]] = []
    if action.tool:
        newer = ledger.find_newer(memory.row, session=action.session, since=calls_since, limit=USES_MAX)
    try:
        own = OwnRecords(ledger)
        memory = _add_new_calls(own, head.chain, memory, action.session, newer, calls_since)
        memory, state = _read_new_decisions(own, head, memory)
    except IntegrityError as error:
        words = f"the session's past cannot be trusted: {error.message}"
        raise IntegrityError(error.code, words, evidence=error.evidence, advice=error.advice) from error
    except (AttributeError, BadInput, KeyError, TypeError, ValueError) as error:
        words = f"the session's past cannot be understood: a decision in {head.chain} has not the form of one"
        raise IntegrityError("SCHEMA_INVALID", words, advice="run: aver verify") from error
    save_memory(ledger, head.chain, memory, kept)
    digest = action.digest if memory.decisions else ""  # An action without a digest is for `decide` to refuse.
    # Rules limit rates by `recent`, which counts the last minute.
    late = [past for past in memory.decisions if past.now >= since]
    uses = [call for call in memory.calls if call.tool == action.tool and call.at >= calls_since]
    return Facts(
        now=now,
        labels=frozenset(state["labels"]),
        changed=state["changed"],
        changed_files=tuple(state["changed_files"]),
        unseen=tuple(state.get("unseen") or ()),
        asked=tuple(state.get("asked") or ()),
        git=state.get("git") or {},
        denials=sum([past.digest == digest and past.refused for past in memory.decisions]),
        recent=dict(Counter([effect for past in late for effect in past.effects])),
        failures=sum([call.failed for call in uses]),
        uses=len(uses),
    )


def list_open_calls(ledger: Ledger, session: str) -> tuple[str, ...]:
    """Return the ids of the calls that the session's newest state has as asked about, with an open end.

    The record is not verified here: this only says whether a look for the ends of calls is worth while.
    """
    head = ledger.head(decision_chain(session))
    newest = list(ledger.read(head.chain, max(head.count - OPEN_LOOK_BACK, 0), head.count)) if head.count else []
    for record in reversed(newest):
        try:
            state = orjson.loads(record.canonical)["outcome"]["result"]["session"]
            return tuple(str(entry["call_id"]) for entry in state.get("asked", ()))
        except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError):
            continue  # A record without a state.
    return ()


def read_session_state(ledger: Ledger, head: Head) -> Mapping[str, Any]:
    """Return the state of the session whose decisions end at `head`. Raises `IntegrityError` if one is damaged."""
    kept = _find_kept(ledger, head.chain)
    memory, state = _read_new_decisions(OwnRecords(ledger), head, load_memory(ledger, head, kept))
    save_memory(ledger, head.chain, memory, kept)
    return state


# --- calls and decisions


def _add_new_calls(
    own: OwnRecords, decisions: str, memory: SessionMemory, session: str, newer: list[tuple[int, Sealed]], since: str
) -> SessionMemory:
    """Return the memory with the session's tool calls in `newer` records. The chain of the decisions has none."""
    row, calls = memory.row, list(memory.calls)
    for row, record in newer:  # noqa: B007
        # An imported session may have the same id as this one. It happened elsewhere.
        if record.chain == decisions or own.is_imported(str(record.chain)):
            continue
        # Participants seal the events of a trace by their own keys, also of other homes. Events hold no tool calls.
        if str(record.chain).startswith(TRACE_PREFIX):
            continue
        record = own.require(record)  # The same record; it may be parsed already.
        try:
            content = record.content
            # A column led here, and columns are not signed.
            if content["context"]["session_id"] != session:
                continue
            made = content["execution"]["tool_calls"]
            calls += [PastCall(record.signed_at, str(call["tool"]), call["success"] is False) for call in made]
        except (AverError, KeyError, TypeError):
            continue  # Not a record of tool calls.
    return replace(memory, row=row, calls=tuple([call for call in calls if call.at >= since])[-USES_MAX:])


def _read_new_decisions(own: OwnRecords, head: Head, memory: SessionMemory) -> tuple[SessionMemory, Mapping[str, Any]]:
    """Verify the records since the last decision. Returns the memory up to `head`, and the session's state there.

    A memory that does not fit the records counts for nothing: then all records are read, from the first on.
    """
    # The record with the newest state is read again, and all since then: so no file decides which state is the newest.
    # Mostly it is the newest record that was verified before, or the one before that.
    recent_from = head.count - LOOK_BACK
    start = max(min(memory.count - 1, memory.state_at or 0), 0)
    decisions = [past for past in memory.decisions if past.sequence >= recent_from]
    holder: tuple[int, Sealed] | None = None
    for sequence, record in enumerate(own.read(head, start), start):
        # Its hash covers all records before it. A signature alone does not show that a record is of this chain.
        is_other = sequence == memory.count - 1 and record.hash != memory.hash
        if is_other or (sequence == memory.state_at and record.hash != memory.state_hash):
            return _read_new_decisions(own, head, _forget_decisions(memory, head.chain))
        if _holds_state(record):
            holder = sequence, record
        if sequence >= max(memory.count, recent_from) and record.kind == DECISION_KIND:
            decisions.append(_read_past_decision(sequence, record))
    if holder is None and start > 0:  # The memory names a record without a state.
        return _read_new_decisions(own, head, _forget_decisions(memory, head.chain))
    state = EMPTY_SESSION if holder is None else holder[1].content["outcome"]["result"]["session"]
    return replace(
        memory,
        count=head.count,
        hash=head.hash,
        state_at=None if holder is None else holder[0],
        state_hash=None if holder is None else holder[1].hash,
        decisions=tuple(decisions),
    ), state


def _holds_state(record: Sealed) -> bool:
    """Whether a verified record has the session's state: a decision, or what became known of a call after it."""
    content = record.content
    if read_kind(content) == OUTCOME_KIND:
        return content["outcome"]["result"].get("outcome") in STATE_OUTCOMES
    return read_kind(content) == DECISION_KIND and content["outcome"]["result"]["session"] is not None


def _read_past_decision(sequence: int, record: Sealed) -> PastDecision:
    decision = RecordedDecision.from_record(record, record.content)
    effects, at = tuple(decision.result["effects"] or ()), decision.result["facts"]["now"]
    return PastDecision(sequence, decision.digest, decision.refuses, at, effects)


def _forget_decisions(memory: SessionMemory, chain: str) -> SessionMemory:
    log.debug("gate", "the past of %s is read from its records", chain)
    return replace(memory, count=0, hash=None, state_at=None, state_hash=None, decisions=())


# --- the memory between two decisions


def load_memory(ledger: Ledger, head: Head, kept: KeptMemory | None = None) -> SessionMemory:
    """Return what is remembered of the session whose decisions end at `head`. An empty memory where nothing fits.

    `kept` is the memory that this process keeps of the session, if it does.
    """
    if kept is not None:
        return kept.memory if kept.memory.count <= head.count else SessionMemory()
    try:
        path, origin = _locate_memory(ledger, head.chain)
        raw = read_if_regular(path, MEMORY_SIZE_MAX)
        if raw is None:
            return SessionMemory()
        document = orjson.loads(raw)
        if not isinstance(document, dict) or document.keys() != _MEMORY_KEYS or document["v"] != MEMORY_VERSION:
            raise ValueError("it is not a document of this version")
        claimed = document.pop("sha256")
        if claimed != _digest(document):
            raise ValueError("it does not have its checksum")
        if document["of"] != origin:
            raise ValueError("it is of another ledger, or was made with other keys")
        memory = SessionMemory(
            count=int(document["count"]),
            hash=document["hash"],
            state_at=None if document["state_at"] is None else int(document["state_at"]),
            state_hash=document["state_hash"],
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


def save_memory(ledger: Ledger, chain: str, memory: SessionMemory, kept: KeptMemory | None = None) -> None:
    """Keep the memory of a session, and write it now and then. Where that fails, another process reads the records.

    `kept` is the memory that this process kept of the session before.
    """
    key = _name_memory(ledger, chain)
    # A hook decides once and ends. So the first memory of a process is always written.
    if kept is not None and kept.saved <= memory.count < kept.saved + UNSAVED_MAX:
        _kept[key] = kept._replace(memory=memory)
        return
    ring = ledger.keys.ring()
    place = path, origin = _locate_memory(ledger, chain) if kept is None else kept.place
    _write_memory(path, origin, memory)
    if len(_kept) >= KEPT_MAX:
        _kept.clear()
    _kept[key] = KeptMemory(ring, place, _read_stamp(path), memory.count, memory)


def _name_memory(ledger: Ledger, chain: str) -> tuple[Path, str, str, str, str]:
    return ledger.config.home, ledger.id, ledger.config.ledger, ledger.tenant, chain


def _find_kept(ledger: Ledger, chain: str) -> KeptMemory | None:
    """Return the memory that this process keeps of a session; None where the file or the ring is another by now."""
    kept = _kept.get(_name_memory(ledger, chain))
    if kept is None or kept.stamp is None or kept.ring is not ledger.keys.ring():
        return None
    return kept if _read_stamp(kept.place[0]) == kept.stamp else None


def _read_stamp(path: Path) -> tuple[int, ...] | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _write_memory(path: Path, origin: str, memory: SessionMemory) -> None:
    document: dict[str, Any] = {
        "v": MEMORY_VERSION,
        "of": origin,
        "count": memory.count,
        "hash": memory.hash,
        "state_at": memory.state_at,
        "state_hash": memory.state_hash,
        "decisions": [[d.sequence, d.digest, d.refused, d.now, list(d.effects)] for d in memory.decisions],
        "row": memory.row,
        "calls": [[call.at, call.tool, call.failed] for call in memory.calls],
    }
    # Not `files.atomic`: that waits for the disk. A torn file has not its checksum, and costs nothing but time.
    temporary = path.with_name(f".{path.name}.{new_id()}")
    with suppress(OSError, TypeError, ValueError):  # Also texts that JSON cannot hold.
        data = orjson.dumps({**document, "sha256": _digest(document)})
        if not path.parent.is_dir():
            path.parent.mkdir(mode=0o700)
        if not path.exists():  # Make room for a new one: forget the sessions that were not used for longest.
            files = sorted(path.parent.iterdir(), key=lambda file: file.lstat().st_mtime)
            for old in files[: max(len(files) - MEMORIES_MAX + 1, 0)]:
                old.unlink(missing_ok=True)
        try:
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.replace(temporary, path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise


def _locate_memory(ledger: Ledger, chain: str) -> tuple[Path, str]:
    """Return the file of a session's memory, and the digest of all that the memory is bound to."""
    name = _digest((ledger.id, ledger.tenant, chain))
    # The ring is part of it: with other keys, what was verified may not hold any more.
    origin = _digest((ledger.id, ledger.config.ledger, ledger.tenant, chain, ledger.keys.ring().to_dict()))
    return ledger.config.home / DIRECTORY / f"{name[:32]}.json", origin


def _digest(value: Any) -> str:
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()
