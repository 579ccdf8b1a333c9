"""Is what was sealed what the transcript says? And is it what became of the files?

`reconcile` reads the transcripts of a session again, from their beginning, and holds the sealed chain to them:

    sealed and seen    every raw record that the capsule rests on is still there, byte for byte
    mismatched         one of them says something else now, or the digest over all of them is another; but not one that
                       the tool goes on rewriting, such as the title and settings of a conversation
    sealed, not seen   one of them is gone, or a hook saw a call that the transcript does not have
    seen, not sealed   the transcript tells of something that no capsule tells of

What is new since the last record that was sealed is not sealed yet: a warning. A transcript that is gone as a whole is
one too: tools delete theirs, and what was sealed of it stands. Everything else that does not fit is a failure, named at
its place. The answer is a verdict: what verifying the chains gives, and the checks `transcript` and `git`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from aver.capsule.sealed import Sealed
from aver.errors import NotFound
from aver.ingest.committed import CHECK as GIT
from aver.ingest.committed import Touched, hold_to_git
from aver.ingest.contract import Adapter, Source
from aver.ingest.drafting import TRANSCRIPT, chain_of, key_of
from aver.ingest.later import deed_key, key_in, records_under
from aver.ingest.sealing import START, next_digest
from aver.ledger import Ledger
from aver.values import dataclass
from aver.verdict import Finding, Place, Tally, Verdict, joined
from aver.verdict.verdict import conclude, worst

__all__ = ["Counts", "Reconciled", "reconcile"]

CHECK = TRANSCRIPT


@dataclass(frozen=True, slots=True)
class Counts:
    """How many records, each counted once."""

    sealed_and_seen: int = 0
    seen_not_sealed: int = 0
    sealed_not_seen: int = 0
    mismatched: int = 0


class Reconciled(NamedTuple):
    """The verdict, and what it is made of."""

    verdict: Verdict
    counts: Counts


def reconcile(ledger: Ledger, adapter: Adapter, sources: Sequence[Source], chains: Sequence[str]) -> Reconciled:
    """Hold the chains of one session to its transcripts, and what they say of files to git."""
    total = _Total()
    sealed = [_record(chain, record) for chain in chains for record in ledger.read(chain)]
    tally = Tally(records=len(sealed))
    for source in sources:
        _hold(source, adapter, sealed, tally, total)
    _hold_hooks(sources, sealed, tally, total)
    for name in sorted(_files(sealed) - {source.file for source in sources}):
        words = f"the transcript {name} is not there any more; what was sealed of it stands"
        tally.add(Finding(CHECK, "warning", "ARTIFACT_MISSING", words, Place(source=name)))
    counts = Counts(total.fine, total.unsealed, total.unseen, total.mismatched)
    tally.did(CHECK, total.fine)
    tally.notes[CHECK] = f"{total.fine} sealed and seen"
    hold_to_git(_touched(sealed), tally)
    return Reconciled(_verdict(ledger, chains, tally), counts)


class _Record(NamedTuple):
    """Of a sealed record, what is compared: a session may have a hundred thousand of them."""

    chain: str
    sequence: int
    key: str
    """Of the deed that it tells of, or adds to."""
    is_call: bool
    seen: Mapping[str, Any] | None
    """On which raw records it rests; None where it rests on none: a hook made it."""
    otherwise: Sequence[Any]
    """What it tells otherwise than the record that it adds to."""
    directory: Any
    effects: Sequence[Any]
    at: str

    @property
    def place(self) -> Place:
        return Place(self.chain, self.sequence)


def _record(chain: str, sealed: Sealed) -> _Record:
    content = sealed.to_dict()
    return _Record(
        chain,
        content["sequence"],
        deed_key(key_in(content), chain),
        content["type"] == "tool",
        records_under(content),
        _otherwise(content["outcome"]["result"]),
        content["context"]["environment"].get("cwd"),
        content["outcome"]["side_effects"],
        str(content["trigger"]["timestamp"]),
    )


@dataclass(slots=True)
class _Total:
    fine: int = 0
    unsealed: int = 0
    unseen: int = 0
    mismatched: int = 0


class _Now(NamedTuple):
    """A transcript as it is now."""

    digests: Mapping[str, str]
    """By place."""
    through: Sequence[str]
    """After how many records which digest over all of them."""
    deeds: Mapping[tuple[str, str], int]
    """Chains and keys of what it tells of, and after how many records it was told."""
    unfinished: int
    """Bytes at its end that are no record."""


def _read(adapter: Adapter, source: Source) -> _Now:
    digests: dict[str, str] = {}
    deeds: dict[tuple[str, str], int] = {}
    digest, through = START, [START.hex()]
    turn, reader = adapter.turn(source), adapter.read(source)
    for raw in reader():
        digest = next_digest(digest, raw)
        through.append(digest.hex())
        digests[raw.place] = raw.sha256
        for deed in turn.take(raw):
            chain = chain_of(source.tool, source.session, deed.agent or source.agent)
            deeds.setdefault((chain, key_of(source.tool, source.session, deed.key)), len(through) - 1)
    return _Now(digests, through, deeds, reader.unfinished)


def _hold(source: Source, adapter: Adapter, sealed: Sequence[_Record], tally: Tally, total: _Total) -> None:
    """Hold what was sealed of one transcript to what it says now."""
    now = _read(adapter, source)
    newest = 0
    for record in _of_file(sealed, source):
        finding = _compared(source, adapter, record, now)
        if finding is None:
            total.fine += 1
        else:
            tally.add(finding)
            total.unseen += finding.code == "ARTIFACT_MISSING"
            total.mismatched += finding.code == "ARTIFACT_HASH_MISMATCH"
        newest = max(newest, _through(record)[0])
    known = _told_by(sealed, source, now)
    for name, at in now.deeds.items():
        if name not in known:
            total.unsealed += 1
            new = at > newest or not source.appends
            words = f"{name[1]} is in {source.file} and not sealed" + (" yet" if new else "")
            where = Place(source=f"{source.file}:{at}")
            tally.add(Finding(CHECK, "warning" if new else "failed", "NOT_SEALED", words, where))
    if now.unfinished:
        words = f"{source.file} ends with {now.unfinished} bytes that are no whole record, and not sealed"
        tally.add(Finding(CHECK, "warning", "NOT_SEALED", words, Place(source=source.file)))


def _told_by(sealed: Iterable[_Record], source: Source, now: _Now) -> set[tuple[str, str]]:
    """Of what a transcript tells, what is sealed: from it, or from another that has the very same records. What rests
    on other records under the same key is something else."""
    here = set(now.digests.values())
    elsewhere = ((record, {digest for _, digest in _pairs((record.seen or {}).get("records"))}) for record in sealed)
    alike = {(record.chain, record.key) for record, digests in elsewhere if digests and digests <= here}
    return alike | {(record.chain, record.key) for record in _of_file(sealed, source)}


def _compared(source: Source, adapter: Adapter, record: _Record, now: _Now) -> Finding | None:
    name = source.file
    seen = record.seen or {}
    for place, digest in _pairs(seen.get("records")):
        found = now.digests.get(place)
        if found is None:
            words = f"record {place} of {name}, on which it rests, is gone"
            return Finding(CHECK, "failed", "ARTIFACT_MISSING", words, record.place)
        if found != digest and not adapter.rewrites(place):
            words = f"record {place} of {name} says something else than when it was sealed"
            return Finding(CHECK, "failed", "ARTIFACT_HASH_MISMATCH", words, record.place)
    count, digest = _through(record)
    if not source.appends or not count:
        return None
    if count >= len(now.through):
        words = f"{name} had {count} records when it was sealed, and has {len(now.through) - 1}"
        return Finding(CHECK, "failed", "ARTIFACT_MISSING", words, record.place)
    if now.through[count] != digest:
        words = f"the first {count} records of {name} are not those that were there when it was sealed"
        return Finding(CHECK, "failed", "ARTIFACT_HASH_MISMATCH", words, record.place)
    return None


def _hold_hooks(sources: Sequence[Source], sealed: Sequence[_Record], tally: Tally, total: _Total) -> None:
    """What a hook saw must have come up in the transcript: then there is a child that says so, and what it says."""
    if not sources:
        return
    told = {record.key for record in sealed if record.seen is not None}
    for record in sealed:
        if set(record.otherwise) & _ASKED:
            total.mismatched += 1
            words = f"hook and transcript tell otherwise of {record.key}: {', '.join(map(str, record.otherwise))}"
            tally.add(Finding(CHECK, "warning", "ARTIFACT_HASH_MISMATCH", words, record.place))
        if not record.is_call or record.seen is not None or record.key in told:
            continue
        total.unseen += 1
        words = f"a hook saw {record.key}, and no transcript that was sealed tells of it"
        tally.add(Finding(CHECK, "warning", "ARTIFACT_MISSING", words, record.place))


def _verdict(ledger: Ledger, chains: Sequence[str], tally: Tally) -> Verdict:
    """The verdict on the chains themselves and on how they compare, in one."""
    if not chains:
        raise NotFound("nothing of this session is sealed", advice="aver ingest seals it")
    own = conclude("transcript", tally, expected=(CHECK, GIT))
    parts = {chain: ledger.verify(chain) for chain in chains}
    verdict = joined(chains[0], parts) if len(parts) > 1 else parts[chains[0]]
    checks = {check.name: check for check in (*verdict.checks, *own.checks)}
    findings = (*verdict.findings, *own.findings)
    return replace(
        verdict,
        subject=chains[0],
        status=worst([own.status, verdict.status]),
        checks=tuple(checks.values()),
        first_bad=next((finding for finding in findings if finding.status == "failed"), None),
        findings=findings,
    )


def _of_file(sealed: Iterable[_Record], source: Source) -> Iterator[_Record]:
    """The records that rest on this transcript. Those of subagents may stand in their parent's."""
    own = chain_of(source.tool, source.session, source.agent)
    for record in sealed:
        of_this = record.seen is not None and record.seen.get("file") == source.file
        if of_this and (record.chain == own or not source.agent):
            yield record


def _files(sealed: Iterable[_Record]) -> set[str]:
    found = (record.seen.get("file") for record in sealed if record.seen is not None)
    return {name for name in found if isinstance(name, str)}


_ASKED = {"tool", "arguments"}
"""What was asked for is written the same way by both; what came of it need not be."""


def _otherwise(result: Any) -> Sequence[Any]:
    differs = result.get("differs") if isinstance(result, dict) and "via" in result else None
    return differs if isinstance(differs, list) else ()


def _pairs(records: Any) -> Iterator[tuple[str, str]]:
    for pair in records if isinstance(records, list) else ():
        if isinstance(pair, list) and len(pair) == 2:
            yield str(pair[0]), str(pair[1])


def _through(record: _Record) -> tuple[int, str]:
    through = (record.seen or {}).get("through")
    count = through.get("count") if isinstance(through, dict) else None
    return (count, str(through.get("digest"))) if isinstance(through, dict) and isinstance(count, int) else (0, "")


def _touched(sealed: Sequence[_Record]) -> Touched | None:
    """What the session did to files, by its own capsules."""
    directories = [record.directory for record in sealed if isinstance(record.directory, str) and record.directory]
    if not directories:
        return None
    named = [effect.split(" ", 1) for record in sealed for effect in record.effects if isinstance(effect, str)]
    pairs = [pair for pair in named if len(pair) == 2]
    paths = frozenset(path for verb, path in pairs if verb in ("edited", "wrote", "deleted"))
    times = sorted(record.at for record in sealed)
    return Touched(directories[-1], paths, sum(verb == "ran" for verb, _ in pairs), times[0], times[-1])
