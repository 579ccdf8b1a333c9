"""Compare a sealed session with its transcript and with git.

`reconcile` reads the transcripts of a session again, from their beginning, and compares the sealed chain with them:

    sealed and seen    every raw record of the capsule is still there, byte for byte
    mismatched         a raw record has other bytes now, or the digest over all of them differs. Records that the agent
                       keeps rewriting, such as a conversation's title and settings, are left out
    sealed, not seen   a raw record is gone, or a hook saw a call that the transcript does not have
    seen, not sealed   the transcript has an event that no capsule reports

Events after the last sealed record are not sealed yet: a warning. So are calls without a result. A transcript that is
gone as a whole is a warning too, because agents delete old ones; the sealed records stay valid. Every other difference
is a failure, named at its place. The result is the verdict on the chains, with two more checks: `transcript` and `git`.
A record that has not the form of a capsule is left out of the comparison, and both the verdict and this check say so.

The check `git` compares the files that were committed during the session with its sealed edits. Git can show that an
edit is missing: a file changed, and no sealed edit names it. It cannot show that an edit took place, because an edit
may have been undone or never committed. A session that ran commands may have changed any file. Then this check has no
finding about files that no edit names.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from aver.capsule.sealed import Sealed
from aver.errors import AverError, BadInput, NotFound
from aver.fast_dataclass import dataclass
from aver.files.user_dirs import UserEnvironment
from aver.gate.risk.history.git import open_git
from aver.gate.risk.history.repository import open_repository
from aver.ingest.child_records import (
    base_event_key,
    call_fields,
    has_same_paths,
    read_object,
    read_transcript_refs,
    record_key,
)
from aver.ingest.contract import Adapter, AgentEvent, TranscriptSource
from aver.ingest.draft import TRANSCRIPT, event_key, session_chain_name
from aver.ingest.seal import START_DIGEST, is_pending, name_agent, name_apart, next_digest
from aver.ledger import Ledger
from aver.text import plural
from aver.verdict import Finding, Place, Tally, Verdict, merge_verdicts
from aver.verdict.chain import make_printable
from aver.verdict.record import read_record
from aver.verdict.verdict import conclude, worst_status

TRANSCRIPT_CHECK = TRANSCRIPT


@dataclass(slots=True)
class ReconcileCounts:
    """The number of records with each result. Each record counts once."""

    sealed_and_seen: int = 0
    seen_not_sealed: int = 0
    sealed_not_seen: int = 0
    mismatched: int = 0


class Reconciliation(NamedTuple):
    """The verdict on a session, and the counts behind it."""

    verdict: Verdict
    counts: ReconcileCounts


def reconcile(
    ledger: Ledger, adapter: Adapter, sources: Sequence[TranscriptSource], chains: Sequence[str]
) -> Reconciliation:
    """Compare the chains of one session with its transcripts, and their edits with git."""
    total = ReconcileCounts()
    tally = Tally()
    sealed = [
        facts
        for chain in chains
        for place, record in enumerate(ledger.read(chain))
        if (facts := _read_record_facts(chain, place, record, tally)) is not None
    ]
    tally.records = len(sealed)
    for source in sources:
        _compare_transcript(source, adapter, sealed, tally, total)
    if sources:
        # A child record says that the transcript has the call that a hook reported. So calls without one are unseen.
        in_transcript = {record.key for record in sealed if record.seen is not None}
        for record in sealed:
            if texts := _list_differences(ledger, record):
                total.mismatched += 1
                words = f"hook and transcript differ about {record.key}: {'; '.join(texts)}"
                tally.add(Finding(TRANSCRIPT_CHECK, "warning", "ARTIFACT_HASH_MISMATCH", words, record.place))
            if record.is_call and record.seen is None and record.key not in in_transcript:
                total.sealed_not_seen += 1
                words = f"a hook saw {record.key}, but no sealed transcript contains it"
                tally.add(Finding(TRANSCRIPT_CHECK, "warning", "ARTIFACT_MISSING", words, record.place))
    files = (record.seen.get("file") for record in sealed if record.seen is not None)
    sealed_files = {name for name in files if isinstance(name, str)}
    for name in sorted(sealed_files - {source.file for source in sources}):
        words = f"the transcript {name} no longer exists; the sealed records stay valid"
        tally.add(Finding(TRANSCRIPT_CHECK, "warning", "ARTIFACT_MISSING", words, Place(source=name)))
    tally.count_done(TRANSCRIPT_CHECK, total.sealed_and_seen)
    tally.notes[TRANSCRIPT_CHECK] = f"{total.sealed_and_seen} sealed and seen"
    activity: FileActivity | None = None
    directories = [record.directory for record in sealed if record.directory]
    if directories:
        # Effects are lines such as `edited PATH` and `ran COMMAND`.
        split = [effect.split(" ", 1) for record in sealed for effect in record.effects]
        effects = [pair for pair in split if len(pair) == 2]
        paths = frozenset(path for verb, path in effects if verb in ("edited", "wrote", "deleted"))
        commands = sum(verb == "ran" for verb, _ in effects)
        times = sorted(record.at for record in sealed)
        activity = FileActivity(directories[-1], paths, commands, times[0], times[-1])
    check_git(activity, tally)
    return Reconciliation(_combine_verdicts(ledger, chains, tally), total)


def reconcile_session(
    ledger: Ledger, adapter: Adapter, around: UserEnvironment, session: str, chains: Sequence[str]
) -> Reconciliation:
    """Compare the chains of a session with all of its transcripts that the adapter finds on this machine."""
    sources = [source for source in adapter.locate(around) if source.session == session]
    return reconcile(ledger, adapter, sources, chains)


class _RecordFacts(NamedTuple):
    """The fields of a sealed record that are compared. Kept small: a session may have a hundred thousand records."""

    chain: str
    sequence: int
    key: str
    """The key of the event that the record reports or adds to."""
    is_call: bool
    seen: Mapping[str, Any] | None
    """Its raw records in the transcript; None if it has none, because a hook made it."""
    otherwise: Mapping[str, Any]
    """Of the fields in which the record differs from the one that it adds to, those of the request."""
    directory: str
    effects: Sequence[str]
    at: str

    @property
    def place(self) -> Place:
        return Place(self.chain, self.sequence)


def _read_record_facts(chain: str, place: int, sealed: Sealed, tally: Tally) -> _RecordFacts | None:
    """Read a record; None, and a finding, if its bytes are not a capsule. Values of a wrong type count as missing."""
    try:
        content = read_record(sealed.canonical)[0]
    except BadInput as error:
        words = f"the record cannot be compared: {error.message}"
        tally.add(Finding(TRANSCRIPT_CHECK, "failed", "SCHEMA_INVALID", make_printable(words), Place(chain, place)))
        return None
    outcome, directory = content["outcome"], read_object(content, "context", "environment").get("cwd")
    return _RecordFacts(
        chain,
        content["sequence"],
        base_event_key(record_key(content), chain),
        content["type"] == "tool",
        read_transcript_refs(content),
        _differing_fields(outcome.get("result")),
        directory if isinstance(directory, str) else "",
        _only_texts(outcome.get("side_effects")),
        str(content["trigger"].get("timestamp", "")),
    )


def _only_texts(values: Any) -> list[str]:
    return [value for value in values if isinstance(value, str)] if isinstance(values, list) else []


def _compare_transcript(
    source: TranscriptSource, adapter: Adapter, sealed: Sequence[_RecordFacts], tally: Tally, total: ReconcileCounts
) -> None:
    """Compare the sealed records of one transcript with its content now."""
    first = next(iter(adapter.read(source)()), None) if source.appends else None
    apart = "" if first is None else name_apart(source, first.sha256)
    own = session_chain_name(source.tool, source.session, name_agent(source.agent, apart))
    if any(record.chain == own for record in sealed) and apart:
        words = f"{source.file} is another transcript with the name of this session; its records are in {own}"
        tally.add(Finding(TRANSCRIPT_CHECK, "warning", "CHAIN_IDENTITY", words, Place(source=source.file)))
    else:
        apart, own = "", session_chain_name(source.tool, source.session, source.agent)

    def name_event(event: AgentEvent) -> tuple[str, str]:
        agent = name_agent(event.agent or source.agent, apart)
        chain = session_chain_name(source.tool, source.session, agent)
        return chain, event_key(source.tool, source.session, event.key)

    digests: dict[str, str] = {}
    events: dict[tuple[str, str], int] = {}
    digest, through = START_DIGEST, [START_DIGEST.hex()]
    turn, reader = adapter.parser(source), adapter.read(source)
    for raw in reader():
        digest = next_digest(digest, raw)
        through.append(digest.hex())
        digests[raw.place] = raw.sha256
        for event in turn.feed(raw):
            events.setdefault(name_event(event), len(through) - 1)
    newest = 0
    # The records of subagents may be in the parent's transcript.
    of_file = [
        record
        for record in sealed
        if (record.seen or {}).get("file") == source.file and (record.chain == own or not source.agent)
    ]
    for record in of_file:
        finding = _compare_record(source, adapter, record, digests, through)
        if finding is None:
            total.sealed_and_seen += 1
        else:
            tally.add(finding)
            total.sealed_not_seen += finding.code == "ARTIFACT_MISSING"
            total.mismatched += finding.code == "ARTIFACT_HASH_MISMATCH"
        newest = max(newest, _mark_or_zero(record)[0])
    # An event is sealed if a record was made from this transcript, or from a copy of it with the same raw records. A
    # record with the same key but other raw records is another event.
    here = set(digests.values())
    elsewhere = (
        (record, {digest for _, digest in _place_digests((record.seen or {}).get("records"))}) for record in sealed
    )
    alike = {(record.chain, record.key) for record, digests in elsewhere if digests and digests <= here}
    known = alike | {(record.chain, record.key) for record in of_file}
    for name, at in events.items():
        if name not in known:
            total.seen_not_sealed += 1
            new = at > newest or not source.appends
            words = f"{name[1]} is in {source.file} and not sealed" + (" yet" if new else "")
            where = Place(source=f"{source.file}:{at}")
            tally.add(Finding(TRANSCRIPT_CHECK, "warning" if new else "failed", "NOT_SEALED", words, where))
    # The parser holds these back until the conversation goes on or has ended.
    held = [event for event in turn.finish() if name_event(event) not in known]
    total.seen_not_sealed += len(held)
    calls = sum(is_pending(event) for event in held)
    for count, noun in ((calls, "call without a result"), (len(held) - calls, "record without an end")):
        if count:
            words = f"{source.file} has {plural(count, noun)}, not sealed yet: aver ingest --final seals what is there"
            tally.add(Finding(TRANSCRIPT_CHECK, "warning", "NOT_SEALED", words, Place(source=source.file)))
    if reader.unfinished:
        words = f"{source.file} ends with {reader.unfinished} bytes that are no whole record, and not sealed"
        tally.add(Finding(TRANSCRIPT_CHECK, "warning", "NOT_SEALED", words, Place(source=source.file)))


def _compare_record(
    source: TranscriptSource,
    adapter: Adapter,
    record: _RecordFacts,
    digests: Mapping[str, str],
    through: Sequence[str],
) -> Finding | None:
    """Compare a record with the digests of the raw records by place, and with those over the first n records."""
    name = source.file
    seen = record.seen or {}
    for place, digest in _place_digests(seen.get("records")):
        found = digests.get(place)
        if found is None:
            words = f"record {place} of {name}, on which it rests, is gone"
            return Finding(TRANSCRIPT_CHECK, "failed", "ARTIFACT_MISSING", words, record.place)
        if found != digest and not adapter.rewrites(place):
            words = f"record {place} of {name} says something else than when it was sealed"
            return Finding(TRANSCRIPT_CHECK, "failed", "ARTIFACT_HASH_MISMATCH", words, record.place)
    # The digest over all records up to this one also covers records that led to no capsule.
    count, digest = _mark_or_zero(record)
    if not source.appends or not count:
        return None
    if count >= len(through):
        words = f"{name} had {count} records when it was sealed, and has {len(through) - 1}"
        return Finding(TRANSCRIPT_CHECK, "failed", "ARTIFACT_MISSING", words, record.place)
    if through[count] != digest:
        words = f"the first {count} records of {name} are not those that were there when it was sealed"
        return Finding(TRANSCRIPT_CHECK, "failed", "ARTIFACT_HASH_MISMATCH", words, record.place)
    return None


def _combine_verdicts(ledger: Ledger, chains: Sequence[str], tally: Tally) -> Verdict:
    """Join the verdict on the chains with the findings of the comparison."""
    if not chains:
        raise NotFound("nothing of this session is sealed", advice="aver ingest seals it")
    own = conclude("transcript", tally, expected=(TRANSCRIPT_CHECK, GIT_CHECK))
    parts = {chain: ledger.verify(chain) for chain in chains}
    verdict = merge_verdicts(chains[0], parts) if len(parts) > 1 else parts[chains[0]]
    checks = {check.name: check for check in (*verdict.checks, *own.checks)}
    findings = (*verdict.findings, *own.findings)
    return replace(
        verdict,
        subject=chains[0],
        status=worst_status([own.status, verdict.status]),
        checks=tuple(checks.values()),
        first_bad=next((finding for finding in findings if finding.status == "failed"), None),
        findings=findings,
    )


_REQUEST_FIELDS = ("tool", "arguments")
"""The fields in which hook and transcript must agree. They write results in different ways, so results may differ."""

TEXT_MAX = 300
"""Characters of each of two texts that a finding shows."""


def _differing_fields(result: Any) -> Mapping[str, Any]:
    differs = _only_texts(result.get("differs")) if isinstance(result, dict) and "via" in result else ()
    return {name: read_object(result, "says").get(name) for name in _REQUEST_FIELDS if name in differs}


def _list_differences(ledger: Ledger, record: _RecordFacts) -> list[str]:
    """Return both texts of each field in which a child differs from the first account, but for absolute paths."""
    before: Mapping[str, Any] = {}
    with suppress(AverError):  # A damaged first record has a finding of its own.
        first = ledger.get(record.key) if record.otherwise else None
        before = {} if first is None else call_fields(read_record(first.canonical)[0])
    return [
        f"{name}: sealed first {ascii(before.get(name))[:TEXT_MAX]}, later {ascii(value)[:TEXT_MAX]}"
        for name, value in record.otherwise.items()
        if not has_same_paths(before.get(name), value, record.directory)
    ]


def _place_digests(records: Any) -> Iterator[tuple[str, str]]:
    for pair in records if isinstance(records, list) else ():
        if isinstance(pair, list) and len(pair) == 2:
            yield str(pair[0]), str(pair[1])


def _mark_or_zero(record: _RecordFacts) -> tuple[int, str]:
    through = (record.seen or {}).get("through")
    count = through.get("count") if isinstance(through, dict) else None
    # In Python, True is an int, and -1 the last place of a list.
    if not isinstance(through, dict) or type(count) is not int or count < 0:
        return 0, ""
    return count, str(through.get("digest"))


GIT_CHECK = "git"

COMMITS_MAX = 2000
"""The most commits that the check reads for one session."""


class FileActivity(NamedTuple):
    """A session's sealed edits and commands, and when they happened."""

    directory: str
    paths: frozenset[str]
    commands: int
    since: str
    until: str


def check_git(touched: FileActivity | None, tally: Tally) -> None:
    """Report the files that were committed during the session and that no sealed edit names."""
    if touched is None:
        tally.skip(GIT_CHECK, "no working directory is known", matters=False)
        return
    try:
        root, found = find_committed_files(touched.directory, touched.since, touched.until)
    except (AverError, OSError, ValueError) as error:
        tally.skip(GIT_CHECK, str(error), matters=False)
        return
    edited = {os.path.relpath(os.path.join(touched.directory, path), root) for path in touched.paths}
    tally.count_done(GIT_CHECK, len(found))
    tally.notes[GIT_CHECK] = (
        f"{len(found & edited)} of {len(found)} files committed during the session were edited by sealed calls"
    )
    if touched.commands:
        return  # A command can change any file, so a file without a sealed edit proves nothing.
    for path in sorted(found - edited):
        words = f"{path} was committed during the session, but no sealed call changed it"
        tally.add(Finding(GIT_CHECK, "warning", "NOT_SEALED", words, Place(source=path)))


def find_committed_files(directory: str, since: str, until: str) -> tuple[str, set[str]]:
    """Return the root of a directory's repository, and the files that commits between two times changed."""
    repository = open_repository(directory)
    with open_git(repository) as git:
        times = (f"--since={since}", f"--until={until}", f"--max-count={COMMITS_MAX}")
        commits = [line for lines in git.read_output("rev-list", *times, repository.head) for line in lines if line]
        options = ("--stdin", "--root", "-r", "-m", "--name-only", "--no-commit-id", "--no-renames")
        changed = git.read_output("diff-tree", *options, given=commits) if commits else ()
        return str(repository.root), {line for lines in changed for line in lines if line}
