"""Seal events of transcripts and hooks, each once, and bind the transcript's bytes.

`TranscriptFollower` seals one transcript; `seal_event` seals a single event that a hook reports. Both use the same
keys, and the ledger takes a key once. So a crash in the middle, a second watcher, or a hook beside a watcher make no
duplicate. A follower reads from the chain itself how far it came.

Every capsule made from a transcript has `environment.transcript`:

    file       the transcript's name
    records    [[place, sha256], ...]: the raw records from which the event was made
    through    {count, digest}: how many records were read up to then, and a digest over all of them. It also binds
               records that lead to no capsule: d(0) is 32 zero bytes, d(n) = SHA-256(d(n-1) + SHA-256(record n))

The first account of an event stays as it is. A later account becomes a child record. For example, a hook saw a call,
and the transcript adds the model's reasoning and its cost. Or a call seemed lost, and its result came later. The child
says whether both accounts agree.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, replace
from pathlib import PurePath
from typing import Any

from aver import log
from aver.capsule.sealed import Sealed
from aver.errors import AverError, BadInput, Exists, NotFound
from aver.fast_dataclass import NamedTuple, dataclass
from aver.gate.decision_record import decision_chain
from aver.ingest.child_records import (
    KEPT_FIELDS,
    base_event_key,
    build_child_record,
    has_same_account,
    hook_record_key,
    read_object,
    read_transcript_refs,
    record_id,
    record_key,
    strip_content,
    with_parent,
    with_parent_id,
)
from aver.ingest.contract import Adapter, AgentEvent, RawRecord, TranscriptSource
from aver.ingest.draft import (
    SESSION_ENDED,
    TRANSCRIPT,
    EventDraft,
    draft_event,
    event_key,
    link_decision,
    note_key,
    session_chain_name,
)
from aver.ledger import Ledger

BATCH_SIZE = 500
"""Drafts in one commit. With so many, the cost of a durable write does not matter."""

START_DIGEST = bytes(32)
"""The digest over no records."""

_OUTCOME_UNKNOWN = "OUTCOME_UNKNOWN"


@dataclass(frozen=True, slots=True)
class ReadMark:
    """How far a transcript was read, and the digest over all of it."""

    count: int
    digest: str

    def to_dict(self) -> dict[str, Any]:
        return {"count": self.count, "digest": self.digest}


@dataclass(frozen=True, slots=True)
class SealReport:
    """The result of reading a transcript further."""

    records: int = 0
    sealed: int = 0
    children: int = 0
    """Children that were added to records of other writers."""
    unknown: int = 0
    """Records of an unknown kind, which are sealed raw."""
    waiting: int = 0
    """Events that are not sealed yet, because more may belong to them."""
    notes: tuple[str, ...] = ()
    """Warnings: the transcript was cut, or changed before the place that was read already."""

    def __add__(self, other: SealReport) -> SealReport:
        return SealReport(*(one + more for one, more in zip(astuple(self), astuple(other), strict=True)))


def next_digest(before: bytes, raw: RawRecord) -> bytes:
    """Return the digest over all records, after one more: d(n) = SHA-256(d(n-1) + SHA-256(record n))."""
    return hashlib.sha256(before + bytes.fromhex(raw.sha256)).digest()


def read_mark(seen: Mapping[str, Any] | None) -> ReadMark | None:
    """Return how far a transcript was read, as a capsule says it."""
    through = None if seen is None else seen.get("through")
    if not isinstance(through, dict):
        return None
    count, digest = through.get("count"), through.get("digest")
    return ReadMark(count, digest) if isinstance(count, int) and isinstance(digest, str) else None


def name_apart(source: TranscriptSource, first: str) -> str:
    """Return the part of chain names for a transcript beside the session's own, by its name and first digest."""
    return f"other-{hashlib.sha256(f'{source.file}:{first}'.encode()).hexdigest()[:12]}"


def name_agent(agent: str, apart: str) -> str:
    return f"{agent}-{apart}" if agent and apart else agent or apart


class TranscriptFollower:
    """Follows one transcript into the ledger."""

    def __init__(self, ledger: Ledger, adapter: Adapter, source: TranscriptSource) -> None:
        self.source = source
        self.ended: bool
        """Whether a record says that the session is over."""
        self._heard = 0
        """How many records of the chain were searched for a hook's word that the client has ended the session."""
        self._client_ended = False
        self._ledger = ledger
        self._adapter = adapter
        self._reader = adapter.read(source)
        self._known: dict[tuple[str, str], str] = {}
        """How each event is sealed, by chain and key: by a hook, while its outcome was unknown, or whole."""
        self._read_chains: set[str] = set()
        self._sealed_through: ReadMark | None = None
        """The last mark that we sealed, or found sealed."""
        self._last: ReadMark | None = None
        """The furthest mark of this transcript that was sealed before we began."""
        self._other: ReadMark | None = None
        """The furthest mark of another transcript in this chain."""
        self._apart = ""
        """See `name_apart`; empty for the session's own transcript."""
        self._is_gated = False
        """Whether the gate has decided anything in this session. If not, no call needs a look-up."""
        self._reset()
        self._load_chain(self._chain())
        self._sealed_through = self._last
        if self._last is not None or not source.appends:
            self._other = None

    def _reset(self) -> None:
        self.ended = False
        self._turn = self._adapter.parser(self.source)
        self._count, self._digest = 0, START_DIGEST
        self._digests: dict[str, str] = {}

    def step(self) -> SealReport:
        """Seal the new part of the transcript."""
        done = SealReport()
        batch: list[_UnsealedEvent] = []
        # Looked up once for each step, because a look-up for every call would be slow.
        self._is_gated = self._ledger.head(decision_chain(self.source.session)).count > 0
        if self._other is not None:
            done += self._part(self._other)
        records, anew = 0, False
        for raw in self._reader():
            if self._reader.started_anew and not anew:
                anew, done = True, done + self._restart()
            records += 1
            self._count += 1
            self._digest = next_digest(self._digest, raw)
            self._digests[raw.place] = raw.sha256
            if self._last is not None:
                done += self._check_last_mark()
            for event in self._turn.feed(raw):
                batch.append(self._prepare_event(event))
                self.ended = self.ended or event.ends_session
                # Keep memory small: an event's records are not needed again. Only the newest may give more events.
                for place in event.places:
                    if place != raw.place:
                        self._digests.pop(place, None)
            if len(batch) >= BATCH_SIZE:
                done += self._seal_batch(batch)
        if self._reader.started_anew and not anew:
            done += self._restart()  # The new file has no complete record yet.
        done += self._seal_batch(batch) + self._check_not_cut()
        return done + SealReport(records=records)

    def end(self) -> SealReport:
        """End the session: seal the events that are still open, then do the same as `rest`."""
        return self._seal_batch([self._prepare_event(event) for event in self._turn.finish()]) + self.rest()

    def hear_end(self) -> bool:
        """Whether the last hook of the session said that the client has ended it. Reads what is new in the chain."""
        chain = self._chain()
        count = self._ledger.head(chain).count
        for record in self._ledger.read(chain, self._heard) if count > self._heard else ():
            content = record.to_dict()
            if read_transcript_refs(content) is None and not record_key(content).endswith(_CHILD_SUFFIXES):
                self._client_ended = read_object(content, "context", "environment").get(SESSION_ENDED) is True
        self._heard = count
        return self.ended or self._client_ended

    def count_waiting(self) -> int:
        """Count the events that `end` would seal. The follower is of no use afterwards."""
        due = [self._prepare_event(event) for event in self._turn.finish()]
        return sum(self._known.get((each.chain, each.key)) is None for each in due)

    def rest(self) -> SealReport:
        """Seal how far the transcript was read, and close its chains. Call this if nothing new comes for a while."""
        done = SealReport()
        mark = self._current_mark()
        if self._count and self._sealed_through != mark:
            done = self._seal_note(f"read:{mark.count}:{mark.digest[:32]}", "the transcript was read to here", mark)
        for chain in sorted(self._read_chains):
            if self._ledger.head(chain).count:
                self._ledger.close_chain(chain)
        return done

    # --- new events

    def _prepare_event(self, event: AgentEvent) -> _UnsealedEvent:
        source = self.source
        agent = name_agent(event.agent or source.agent, self._apart)
        if agent != event.agent or (source.launched_by and not event.cause):
            event = replace(event, agent=agent, cause=event.cause or source.launched_by)
        chain = session_chain_name(source.tool, source.session, agent)
        self._load_chain(chain)
        return _UnsealedEvent(
            chain, event_key(source.tool, source.session, event.key), event, self._transcript_refs(event.places)
        )

    def _transcript_refs(self, places: Iterable[str]) -> dict[str, Any]:
        """Build what a capsule says about the transcript: its raw records, and how far the transcript was read."""
        return {
            "file": self.source.file,
            "records": [[place, self._digests[place]] for place in places if place in self._digests],
            "through": self._current_mark().to_dict(),
        }

    def _current_mark(self) -> ReadMark:
        return ReadMark(self._count, self._digest.hex())

    def _seal_batch(self, batch: list[_UnsealedEvent]) -> SealReport:
        """Seal the events that are not sealed yet, in one commit for each chain."""
        by_chain: dict[str, list[tuple[str, EventDraft]]] = {}
        unknown = 0
        for due in batch:
            for key, draft in self._build_drafts(due):
                by_chain.setdefault(due.chain, []).append((key, draft))
                unknown += due.event.what == "unknown"
            if due.event.launched and not self._apart:
                self._link_subagent(due, by_chain)
        batch.clear()
        done = SealReport(unknown=unknown)
        for chain, drafts in by_chain.items():
            done += self._append(chain, drafts)
        return done

    def _build_drafts(self, due: _UnsealedEvent) -> Iterator[tuple[str, EventDraft]]:
        """Yield the draft of an event, or of the child that adds to its record; nothing if it is sealed whole."""
        name = (due.chain, due.key)
        state = self._known.get(name)
        if state is None:
            self._known[name] = "pending" if is_pending(due.event) else "whole"
            yield due.key, self._draft_with_parent(due)
        elif state == "hook" or (state == "pending" and not is_pending(due.event)):
            self._known[name] = "whole"
            if (first := self._find_sealed(due.chain, due.key)) is not None:
                yield _transcript_child(first, self._draft_with_parent(due))

    def _find_sealed(self, chain: str, key: str) -> Sealed | None:
        """Find the sealed record of an event. A record with the same key may belong to another agent."""
        found = (self._ledger.get(name) for name in (key, f"{key}@{chain}"))
        return next((record for record in found if record is not None and record.chain == chain), None)

    def _draft_with_parent(self, due: _UnsealedEvent) -> EventDraft:
        draft = draft_event(self.source.tool, self.source.session, due.event, due.seen)
        if self._is_gated:
            draft = link_decision(self._ledger, due.key, due.event, draft)
            _mark_session(self._ledger, self.source.session, due.key, draft)
        if not due.event.cause:
            return draft
        key = event_key(self.source.tool, self.source.session, due.event.cause)
        cause = self._find_sealed(session_chain_name(self.source.tool, self.source.session), key) or self._ledger.get(
            key
        )
        return draft if cause is None else with_parent(draft, cause)

    def _append(self, chain: str, drafts: list[tuple[str, EventDraft]]) -> SealReport:
        try:
            sealed = self._ledger.append_many(
                chain,
                [draft.capsule for _, draft in drafts],
                keys=[key for key, _ in drafts],
                blobs=[blob for _, draft in drafts for blob in draft.blobs],
            )
        except BadInput as error:
            # One bad record must not stop those after it. Halve the batch until the bad draft is alone.
            if len(drafts) > 1:
                half = len(drafts) // 2
                return self._append(chain, drafts[:half]) + self._append(chain, drafts[half:])
            key, draft = drafts[0]
            if not draft.capsule.context.environment.keys() - KEPT_FIELDS:
                raise error  # This is the reduced form already.
            return self._append(chain, [(key, strip_content(draft, error))])
        done = SealReport()
        new = children = 0
        for (key, draft), record in zip(drafts, sealed, strict=True):
            if not record.existed:
                seen = draft.capsule.context.environment.get(TRANSCRIPT)
                self._sealed_through = read_mark(seen) or self._sealed_through
                new += 1
                children += draft.capsule.parent_id is not None and key.endswith(_CHILD_SUFFIXES)
            elif record.chain not in (None, chain):
                # Another agent of the session has the key: some providers number the calls of each agent from 0.
                done += self._append(chain, [(f"{key}@{chain}", draft)])
            elif not key.endswith(_CHILD_SUFFIXES) and _is_incomplete(record, draft):
                # A hook or another follower sealed the event after `_load_chain`. The transcript adds the rest.
                done += self._append(chain, [_transcript_child(record, draft)])
        return done + SealReport(sealed=new - children, children=children)

    def _link_subagent(self, due: _UnsealedEvent, by_chain: dict[str, list[tuple[str, EventDraft]]]) -> None:
        """Record in a subagent's chain which call launched it. This is known when the call has ended."""
        agent, source = due.event.launched, self.source
        chain = session_chain_name(source.tool, source.session, agent)
        key = f"{due.key}:launched"
        self._load_chain(chain)
        if (chain, key) in self._known:
            return
        self._known[chain, key] = "whole"
        cause = self._find_sealed(due.chain, due.key)
        note = AgentEvent(
            what="note",
            key="",
            summary=f"launched by {due.event.call.tool if due.event.call else 'a call'} of {source.tool}",
            at=due.event.at,
            agent=agent,
            cause=due.event.key,
        )
        draft = draft_event(source.tool, source.session, note)
        if cause is None:  # The call may be in this batch. Then its draft already has its id.
            ids = [draft.capsule.id for key, draft in by_chain.get(due.chain, ()) if key == due.key]
            launcher = ids[0] if ids else None
        else:
            launcher = record_id(cause)
        if launcher is not None:
            by_chain.setdefault(chain, []).append((key, with_parent_id(draft, launcher)))

    # --- events that were sealed before

    def _load_chain(self, chain: str) -> None:
        """Read from a chain which events are sealed."""
        if chain in self._read_chains:
            return
        self._read_chains.add(chain)
        try:
            records: Iterable[Sealed] = self._ledger.read(chain)
        except NotFound:
            return
        # Later records win: a child record makes an event of a hook whole.
        for record in records:
            content = record.to_dict()
            if key := record_key(content):
                self._known[chain, base_event_key(key, chain)] = _seal_state(content)
            seen = read_transcript_refs(content)
            mark, file = read_mark(seen), str((seen or {}).get("file"))
            if mark is not None and file == self.source.file:
                self._last = max(self._last or mark, mark, key=lambda each: each.count)
            elif mark is not None and chain == self._chain() and PurePath(file).suffix == self.source.path.suffix:
                self._other = max(self._other or mark, mark, key=lambda each: each.count)

    def _chain(self) -> str:
        return session_chain_name(self.source.tool, self.source.session, name_agent(self.source.agent, self._apart))

    def _part(self, before: ReadMark) -> SealReport:
        """Give the transcript a chain of its own, unless it goes on where another one of the session stopped.

        A transcript that was moved or copied begins with the records that are sealed.
        """
        digest, number, first = START_DIGEST, 0, ""
        for number, raw in enumerate(self._adapter.read(self.source)(), 1):
            digest, first = next_digest(digest, raw), first or raw.sha256
            if number == before.count:
                break
        self._other = None if first else before  # Of an empty file, nothing is known yet.
        if not first or (number, digest.hex()) == (before.count, before.digest):
            return SealReport()
        self._read_chains.remove(self._chain())
        self._apart = name_apart(self.source, first)
        self._load_chain(self._chain())
        self._sealed_through = self._last
        return SealReport() if self._last else self._seal_note(f"other:{self._apart}", OTHER_NOTE, self._current_mark())

    def _check_last_mark(self) -> SealReport:
        """When we reach the last sealed mark, check that the transcript still has the same bytes up to there."""
        last = self._last
        if last is None or last.count != self._count or not self.source.appends:
            return SealReport()
        self._last = None
        if last.digest == self._digest.hex():
            return SealReport()
        return self._seal_note(f"changed:{last.digest[:32]}", f"{CHANGED_NOTE}: its first {last.count} records", last)

    def _check_not_cut(self) -> SealReport:
        last = self._last
        # Fewer records than at the last mark: the transcript was cut before this follower started.
        if last is None or last.count <= self._count or not self.source.appends:
            return SealReport()
        self._last = None
        return self._seal_note(
            f"cut:{last.digest[:32]}", f"{CUT_NOTE}: it had {last.count} records, now {self._count}", last
        )

    def _restart(self) -> SealReport:
        """Start again, because the transcript was cut or replaced, and seal a note about it."""
        before = self._current_mark()
        if not before.count:
            return SealReport()
        self._reset()
        return self._seal_note(
            f"cut:{before.digest[:32]}", f"{CUT_NOTE}: it had {before.count} records and begins anew", before
        )

    def _seal_note(self, key: str, words: str, mark: ReadMark) -> SealReport:
        source = self.source
        agent, chain = name_agent(source.agent, self._apart), self._chain()
        event = AgentEvent(what="note", key=key, summary=words, result=mark.to_dict(), agent=agent)
        draft = draft_event(source.tool, source.session, event, self._transcript_refs(()))
        # A `read:` note is routine. The others mean that somebody changed the transcript, so the user hears of them.
        loud = () if key.startswith("read:") else (f"{source.path}: {words}",)
        return replace(self._append(chain, [(note_key(source.tool, source.session, key), draft)]), notes=loud)


CHANGED_NOTE = "the transcript was changed after it was sealed"
CUT_NOTE = "the transcript was cut or replaced after it was sealed"
OTHER_NOTE = "another transcript has the name of this session, so this one has a chain of its own"
_CHILD_SUFFIXES = (f":{TRANSCRIPT}", ":hook", ":launched")


class _UnsealedEvent(NamedTuple):
    chain: str
    key: str
    event: AgentEvent
    seen: Mapping[str, Any]


def is_pending(event: AgentEvent) -> bool:
    """Whether the event is a call whose outcome nobody knows."""
    return event.call is not None and event.call.ok is None and not event.allowed.denied


def _transcript_child(first: Sealed, draft: EventDraft) -> tuple[str, EventDraft]:
    """Return the child that the transcript adds to a record, and its key."""
    is_call = draft.capsule.type == "tool"
    added = build_child_record(first, draft, TRANSCRIPT) if is_call else with_parent(draft, first)
    return f"{record_key(first.to_dict())}:{TRANSCRIPT}", added


def _is_incomplete(first: Sealed, draft: EventDraft) -> bool:
    """Return whether a record lacks fields that a draft of the same event has."""
    state = _seal_state(first.to_dict())
    return state == "hook" or (state == "pending" and draft.capsule.outcome.error != _OUTCOME_UNKNOWN)


def _seal_state(content: Mapping[str, Any]) -> str:
    if read_transcript_refs(content) is None and content["type"] == "tool":
        return "hook"
    return "pending" if content["outcome"].get("error") == _OUTCOME_UNKNOWN else "whole"


def seal_event(ledger: Ledger, tool: str, session: str, event: AgentEvent) -> Sealed:
    """Seal an event that a hook reported. If it is sealed already, add the hook's account as a child.

    A second hook with the same account adds nothing.
    """
    key, chain = event_key(tool, session, event.key), session_chain_name(tool, session, event.agent)
    draft = link_decision(ledger, key, event, draft_event(tool, session, event))
    _mark_session(ledger, session, key, draft)
    try:
        return _append_or_add(ledger, chain, key, draft)
    except BadInput as error:  # The event does not fit into a capsule. Seal its reduced form.
        return _append_or_add(ledger, chain, key, strip_content(draft, error))


def _mark_session(ledger: Ledger, session: str, call_id: str, draft: EventDraft) -> None:
    """Seal that a session has seen a secret, where the result of its call has one. The call is recorded in any case."""
    if not draft.shows_secret:
        return
    from aver.gate.outcomes.shown_secrets import record_shown_secret  # Not above: hardly any result has a secret.

    try:
        record_shown_secret(ledger, session, call_id)
    except AverError as error:  # A damaged past: the next decision of the session finds it again, and refuses.
        log.debug("ingest", "the secret in the result of %s is not noted: %s", call_id, error.message)


def _append_or_add(ledger: Ledger, chain: str, key: str, draft: EventDraft) -> Sealed:
    for name in (key, f"{key}@{chain}"):  # The second, if another agent of the session has the first.
        try:
            return ledger.append(chain, draft.capsule, key=name, blobs=draft.blobs)
        except Exists as exists:
            first: Sealed = exists.record
            if first.chain == chain:
                break
    if draft.capsule.type == "tool" and read_transcript_refs(first.to_dict()) is not None:
        more = build_child_record(first, draft, "hook")
    elif has_same_account(first, draft):
        return first
    else:
        more = with_parent(draft, first)
    return ledger.append_many(chain, [more.capsule], keys=[hook_record_key(name, draft)], blobs=more.blobs)[0]
