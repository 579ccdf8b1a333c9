"""Deeds go into the ledger, each once, and with them what the transcript said, byte for byte.

`Follower` follows one transcript; `told` seals single deeds that hooks tell of. Both use the same keys, and the ledger
takes a key once: so a crash in the middle, a second watcher, or a hook and a watcher together make no duplicate, and
nobody has to remember how far they came. What a follower must know it reads from the chain itself.

Every capsule made from a transcript says in `environment.transcript`:

    file       the transcript's name
    records    [[place, sha256], ...]: the raw records that it rests on
    through    {count, digest}: how many records were read up to then, and the digest over all of them, so that also
               those are bound that say nothing of their own:
               d(0) is 32 zero bytes, d(n) = SHA-256(d(n-1) + SHA-256(record n))

What was recorded first stays as it is. Who comes later adds a child of it: a hook saw the call, and the transcript
tells what the model thought and what it cost; or a call was taken for lost, and its result came after all. The child
says whether both tell the same of the call.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from aver.capsule.sealed import Sealed
from aver.errors import BadInput, NotFound
from aver.ingest.contract import Adapter, Raw, Source
from aver.ingest.deed import Deed
from aver.ingest.drafting import TRANSCRIPT, Draft, chain_of, drafted, key_of, own_key
from aver.ingest.later import LEFT, bare, caused_by, child_of, deed_key, following, id_of, key_in, records_under
from aver.ledger import Ledger
from aver.values import dataclass

__all__ = ["Follower", "Mark", "Sealing", "mark_in", "next_digest"]

BATCH = 500
"""Drafts of one commit: then a durable write costs next to nothing for each."""

START = bytes(32)
"""The digest over no records."""

_PENDING = "OUTCOME_UNKNOWN"


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a transcript was read, and the digest over all of it."""

    count: int
    digest: str

    def to_dict(self) -> dict[str, Any]:
        return {"count": self.count, "digest": self.digest}


@dataclass(frozen=True, slots=True)
class Sealing:
    """What came of reading a transcript on."""

    records: int = 0
    sealed: int = 0
    children: int = 0
    """Added to what others had recorded before."""
    unknown: int = 0
    """Records of a sort that is not known; they are sealed raw."""
    notes: tuple[str, ...] = ()
    """What must not go unnoticed: the transcript was cut, or changed before where we had read."""

    def __add__(self, other: Sealing) -> Sealing:
        return Sealing(
            self.records + other.records,
            self.sealed + other.sealed,
            self.children + other.children,
            self.unknown + other.unknown,
            self.notes + other.notes,
        )


def next_digest(before: bytes, raw: Raw) -> bytes:
    return hashlib.sha256(before + bytes.fromhex(raw.sha256)).digest()


def mark_in(seen: Mapping[str, Any] | None) -> Mark | None:
    """How far a transcript was read, by what a capsule says of it."""
    through = None if seen is None else seen.get("through")
    if not isinstance(through, dict):
        return None
    count, digest = through.get("count"), through.get("digest")
    return Mark(count, digest) if isinstance(count, int) and isinstance(digest, str) else None


class Follower:
    """Follows one transcript into the ledger."""

    def __init__(self, ledger: Ledger, adapter: Adapter, source: Source) -> None:
        self.source = source
        self.ended: bool
        """Whether the session is over, by its own account."""
        self._ledger = ledger
        self._adapter = adapter
        self._reader = adapter.read(source)
        self._known: dict[tuple[str, str], str] = {}
        """Chains and keys of what is sealed, and how: by a hook, while its outcome was unknown, or whole."""
        self._read_chains: set[str] = set()
        self._sealed_through: Mark | None = None
        """The last mark that we sealed, or found sealed."""
        self._last: Mark | None = None
        """The furthest mark of this transcript that was sealed before we began."""
        self._begin()
        self._look_at(chain_of(source.tool, source.session, source.agent))
        self._sealed_through = self._last

    def _begin(self) -> None:
        self.ended = False
        self._turn = self._adapter.turn(self.source)
        self._count, self._digest = 0, START
        self._digests: dict[str, str] = {}

    def step(self, told: Callable[[int], None] = lambda _: None) -> Sealing:
        """Seal what is new in the transcript. `told` is called with the number of records that were read."""
        done = Sealing()
        batch: list[_Due] = []
        records, anew = 0, False
        for raw in self._reader():
            if self._reader.started_anew and not anew:
                anew, done = True, done + self._replaced()
            records += 1
            self._count += 1
            self._digest = next_digest(self._digest, raw)
            self._digests[raw.place] = raw.sha256
            if self._last is not None:
                done += self._held_to_last()
            for deed in self._turn.take(raw):
                batch.append(self._due(deed))
                self.ended = self.ended or deed.ends_session
                self._forget(deed.places, raw)
            if len(batch) >= BATCH:
                done += self._flush(batch)
                told(records)
        if self._reader.started_anew and not anew:
            done += self._replaced()  # And nothing stands there now.
        done += self._flush(batch) + self._cut_short()
        told(records)
        return done + Sealing(records=records)

    def end(self) -> Sealing:
        """The session is over: seal what has no end, then as `rest`."""
        return self._flush([self._due(deed) for deed in self._turn.end()]) + self.rest()

    def rest(self) -> Sealing:
        """Nothing more comes for a while: seal how far the transcript was read, and close its chains."""
        done = Sealing()
        mark = self._mark()
        if self._count and self._sealed_through != mark:
            done = self._note(f"read:{mark.count}:{mark.digest[:32]}", "the transcript was read to here", mark)
        for chain in sorted(self._read_chains):
            if self._ledger.head(chain).count:
                self._ledger.close_chain(chain)
        return done

    # --- what is new

    def _due(self, deed: Deed) -> _Due:
        source = self.source
        agent = deed.agent or source.agent
        if agent != deed.agent or (source.launched_by and not deed.cause):
            deed = replace(deed, agent=agent, cause=deed.cause or source.launched_by)
        chain = chain_of(source.tool, source.session, agent)
        self._look_at(chain)
        return _Due(chain, key_of(source.tool, source.session, deed.key), deed, self._seen(deed.places))

    def _seen(self, places: Iterable[str]) -> dict[str, Any]:
        """What a capsule says of the transcript: the raw records that it rests on, and how far it was read."""
        return {
            "file": self.source.file,
            "records": [[place, self._digests[place]] for place in places if place in self._digests],
            "through": self._mark().to_dict(),
        }

    def _mark(self) -> Mark:
        return Mark(self._count, self._digest.hex())

    def _flush(self, batch: list[_Due]) -> Sealing:
        """Seal what is not sealed yet: one commit for each chain."""
        by_chain: dict[str, list[tuple[str, Draft]]] = {}
        unknown = 0
        for due in batch:
            for key, draft in self._drafts(due):
                by_chain.setdefault(due.chain, []).append((key, draft))
                unknown += due.deed.what == "unknown"
            if due.deed.launched:
                self._link(due, by_chain)
        batch.clear()
        done = Sealing(unknown=unknown)
        for chain, drafts in by_chain.items():
            done += self._append(chain, drafts)
        return done

    def _drafts(self, due: _Due) -> Iterator[tuple[str, Draft]]:
        """The draft of a deed, unless it is sealed; then what is to be added to it, unless that is."""
        name = (due.chain, due.key)
        state = self._known.get(name)
        if state is None:
            self._known[name] = "pending" if _is_pending(due.deed) else "whole"
            yield due.key, self._drafted(due)
        elif state == "hook" or (state == "pending" and not _is_pending(due.deed)):
            self._known[name] = "whole"
            if (first := self._sealed_in(due.chain, due.key)) is not None:
                yield _child(first, self._drafted(due))

    def _sealed_in(self, chain: str, key: str) -> Sealed | None:
        """What a chain has of a deed. Under its key alone, it may be that of another agent."""
        found = (self._ledger.get(name) for name in (key, f"{key}@{chain}"))
        return next((record for record in found if record is not None and record.chain == chain), None)

    def _drafted(self, due: _Due) -> Draft:
        draft = drafted(self.source.tool, self.source.session, due.deed, due.seen)
        if not due.deed.cause:
            return draft
        key = key_of(self.source.tool, self.source.session, due.deed.cause)
        cause = self._sealed_in(chain_of(self.source.tool, self.source.session), key) or self._ledger.get(key)
        return draft if cause is None else following(draft, cause)

    def _append(self, chain: str, drafts: list[tuple[str, Draft]]) -> Sealing:
        try:
            sealed = self._ledger.append_many(
                chain,
                [draft.capsule for _, draft in drafts],
                keys=[key for key, _ in drafts],
                blobs=[blob for _, draft in drafts for blob in draft.blobs],
            )
        except BadInput as error:
            return self._append_in_parts(chain, drafts, error)
        done = Sealing()
        new = children = 0
        for (key, draft), record in zip(drafts, sealed, strict=True):
            if not record.existed:
                seen = draft.capsule.context.environment.get(TRANSCRIPT)
                self._sealed_through = mark_in(seen) or self._sealed_through
                new += 1
                children += draft.capsule.parent_id is not None and key.endswith(_CHILDREN)
            elif record.chain not in (None, chain):
                # Some providers number calls from 0 in every agent: this is another's call of the same name.
                done += self._append(chain, [(f"{key}@{chain}", draft)])
            elif not key.endswith(_CHILDREN) and _leaves_open(record, draft):
                # A hook was faster than we knew, or another took the call for lost: the transcript tells the rest.
                done += self._append(chain, [_child(record, draft)])
        return done + Sealing(sealed=new - children, children=children)

    def _append_in_parts(self, chain: str, drafts: list[tuple[str, Draft]], error: BadInput) -> Sealing:
        """Find the one that cannot be sealed, and seal of it what can: one record must not stop all that follow."""
        if len(drafts) > 1:
            half = len(drafts) // 2
            return self._append(chain, drafts[:half]) + self._append(chain, drafts[half:])
        key, draft = drafts[0]
        if not draft.capsule.context.environment.keys() - LEFT:
            raise error
        return self._append(chain, [(key, bare(draft, error))])

    def _link(self, due: _Due, by_chain: dict[str, list[tuple[str, Draft]]]) -> None:
        """Tell the chain of a subagent which call launched it: that is known when the call came to its end."""
        agent, source = due.deed.launched, self.source
        chain = chain_of(source.tool, source.session, agent)
        key = f"{due.key}:launched"
        self._look_at(chain)
        if (chain, key) in self._known:
            return
        self._known[chain, key] = "whole"
        cause = self._sealed_in(due.chain, due.key)
        note = Deed(
            what="note",
            key="",
            summary=f"launched by {due.deed.call.tool if due.deed.call else 'a call'} of {source.tool}",
            at=due.deed.at,
            agent=agent,
            cause=due.deed.key,
        )
        draft = drafted(source.tool, source.session, note)
        if cause is None:  # It is in this very batch: by its draft's id.
            ids = [draft.capsule.id for key, draft in by_chain.get(due.chain, ()) if key == due.key]
            launcher = ids[0] if ids else None
        else:
            launcher = id_of(cause)
        if launcher is not None:
            by_chain.setdefault(chain, []).append((key, caused_by(draft, launcher)))

    def _forget(self, places: Iterable[str], newest: Raw) -> None:
        """Records that a deed rested on are not needed again; the newest may give more deeds."""
        for place in places:
            if place != newest.place:
                self._digests.pop(place, None)

    # --- what was sealed before

    def _look_at(self, chain: str) -> None:
        """Learn from a chain what of it is sealed."""
        if chain in self._read_chains:
            return
        self._read_chains.add(chain)
        try:
            records: Iterable[Sealed] = self._ledger.read(chain)
        except NotFound:
            return
        for record in records:
            content = record.to_dict()
            if key := key_in(content):
                self._known[chain, deed_key(key, chain)] = _state(content)
            seen = records_under(content)
            mark = mark_in(seen) if seen is not None and seen.get("file") == self.source.file else None
            if mark is not None and (self._last is None or mark.count > self._last.count):
                self._last = mark

    def _held_to_last(self) -> Sealing:
        """Whether what we read now is what was read before, once we have come as far."""
        last = self._last
        if last is None or last.count != self._count or not self.source.appends:
            return Sealing()
        self._last = None
        if last.digest == self._digest.hex():
            return Sealing()
        return self._note(f"changed:{last.digest[:32]}", f"{CHANGED}: its first {last.count} records", last)

    def _cut_short(self) -> Sealing:
        last = self._last
        if last is None or last.count <= self._count or not self.source.appends:
            return Sealing()
        self._last = None
        return self._note(f"cut:{last.digest[:32]}", f"{CUT}: it had {last.count} records, now {self._count}", last)

    def _replaced(self) -> Sealing:
        """The transcript is another now, or was cut while we followed it."""
        before = self._mark()
        if not before.count:
            return Sealing()
        self._begin()
        return self._note(f"cut:{before.digest[:32]}", f"{CUT}: it had {before.count} records and begins anew", before)

    def _note(self, key: str, words: str, mark: Mark) -> Sealing:
        source = self.source
        deed = Deed(what="note", key=key, summary=words, result=mark.to_dict(), agent=source.agent)
        chain = chain_of(source.tool, source.session, source.agent)
        draft = drafted(source.tool, source.session, deed, self._seen(()))
        loud = () if key.startswith("read:") else (f"{source.path}: {words}",)
        return replace(self._append(chain, [(own_key(source.tool, source.session, key), draft)]), notes=loud)


CHANGED = "the transcript was changed after it was sealed"
CUT = "the transcript was cut or replaced after it was sealed"
_CHILDREN = (f":{TRANSCRIPT}", ":hook", ":launched")


class _Due(NamedTuple):
    chain: str
    key: str
    deed: Deed
    seen: Mapping[str, Any]


def _is_pending(deed: Deed) -> bool:
    return deed.call is not None and deed.call.ok is None and not deed.allowed.denied


def _child(first: Sealed, draft: Draft) -> tuple[str, Draft]:
    """What the transcript adds to a record, and the key of that. Where a hook told of a call by the name of what is
    none, that is all of it."""
    is_call = draft.capsule.type == "tool"
    added = child_of(first, draft, TRANSCRIPT) if is_call else following(draft, first)
    return f"{key_in(first.to_dict())}:{TRANSCRIPT}", added


def _leaves_open(first: Sealed, draft: Draft) -> bool:
    """Whether a record lacks what a draft of the same deed tells."""
    state = _state(first.to_dict())
    return state == "hook" or (state == "pending" and draft.capsule.outcome.error != _PENDING)


def _state(content: Mapping[str, Any]) -> str:
    if records_under(content) is None and content["type"] == "tool":
        return "hook"
    return "pending" if content["outcome"].get("error") == _PENDING else "whole"
