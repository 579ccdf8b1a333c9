"""Follow transcripts as they grow.

`catch_up` reads one transcript to its end, once. `TranscriptWatcher` follows all transcripts that change from now on:
`run` waits for file events; `look` is one round and can be called directly. An event only says where to look, and the
follower finds the new records. So an extra event does no harm. A lost event does no harm either, because the watcher
compares the size and time of every transcript now and then (`FULL_LOOK_SECONDS`).

A transcript or directory that cannot be read is reported and tried again later; all others continue. If a transcript is
quiet for a while (`QUIET_SECONDS`), Aver seals how far it was read, closes its chain in `meta` and drops its follower.
A new follower continues when the transcript grows again.

`IngestCache` remembers the transcripts that were read to their end, in `AVER_HOME/ingested.json`:

    {"v": 1, "ledgers": {"<ledger id>/<tenant>": {"<path>|<session>|<agent>": "<stamp>"}}}

The cache only saves time. If it is lost or damaged, Aver reads every transcript again and seals nothing twice, because
the ledger knows what is sealed. A stamp is a file's size, time and inode, or a text from the adapter.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple

from aver.capsule.json_document import dump_document
from aver.capsule.json_reader import read_json
from aver.config import ensure_home
from aver.errors import AverError, Unavailable, install_advice
from aver.files.atomic import replace_file
from aver.files.user_dirs import UserEnvironment
from aver.ingest.contract import Adapter, TranscriptSource
from aver.ingest.draft import session_chain_name
from aver.ingest.json_lines import read_file_status
from aver.ingest.seal import SealReport, TranscriptFollower
from aver.ledger import Ledger

CACHE_NAME = "ingested.json"

CACHE_SIZE_MAX = 64 * 1024 * 1024
"""The largest cache file that Aver reads, in bytes. A larger one is not Aver's."""


def source_stamp(source: TranscriptSource) -> str:
    """Return a text that changes when the transcript changes; empty if there is none."""
    status = read_file_status(source.path)
    return source.stamp or ("" if status is None else f"{status.size}:{status.time_ns}:{status.inode}")


class IngestCache:
    """The transcripts that were read to their end, for one ledger and tenant."""

    def __init__(self, ledger: Ledger) -> None:
        self._path = ledger.config.home / CACHE_NAME
        self._name = f"{ledger.id}/{ledger.tenant}"
        self._read = self._load_ledgers().get(self._name, {})

    def is_read(self, source: TranscriptSource) -> bool:
        """Whether the transcript was read to its end, and has not changed since."""
        stamp = source_stamp(source)
        return bool(stamp) and self._read.get(_cache_key(source)) == stamp

    def note(self, source: TranscriptSource, stamp: str) -> None:
        """Note that the transcript was read to its end. Take the stamp before reading, so that later writes show."""
        self._read[_cache_key(source)] = stamp

    def save(self) -> None:
        """Write the cache. Two processes that write at once may lose the other's entries, which only costs time."""
        # Read the file again: another process may have written it since.
        merged = self._load_ledgers()
        merged[self._name] = {**merged.get(self._name, {}), **self._read}
        with suppress(OSError, AverError):
            ensure_home(self._path.parent)
            replace_file(self._path, dump_document({"v": 1, "ledgers": merged}))

    def _load_ledgers(self) -> dict[str, dict[str, Any]]:
        with suppress(OSError, AverError):
            if self._path.stat().st_size <= CACHE_SIZE_MAX:
                data = read_json(self._path.read_bytes())
                ledgers = data.get("ledgers") if isinstance(data, dict) and data.get("v") == 1 else None
                if isinstance(ledgers, dict) and all(isinstance(stamps, dict) for stamps in ledgers.values()):
                    return ledgers
        return {}


def _cache_key(source: TranscriptSource) -> str:
    return f"{Path(source.path)}|{source.session}|{source.agent}"


QUIET_SECONDS = 15 * 60.0
"""Seconds without a new record after which the watcher drops a follower."""

FULL_LOOK_SECONDS = 60.0
"""Seconds after which the watcher looks at every transcript, with or without events."""

OVER_SECONDS = 60 * 60.0
"""Seconds after the last change of a transcript from which its session counts as over."""

DEBOUNCE_MS, STEP_MS = 200, 50
"""The longest and the shortest time, in milliseconds, for which file events are collected."""

_SQLITE_SUFFIXES = ("-wal", "-shm", "-journal")
"""Endings of files that SQLite writes beside a database. A change of one is a change of the database."""

_SourceId = tuple[str, str, str, str]


class TranscriptUpdate(NamedTuple):
    """The result of reading one transcript."""

    source: TranscriptSource
    sealing: SealReport


def catch_up(
    ledger: Ledger, adapter: Adapter, source: TranscriptSource, stamps: IngestCache, *, is_final: bool = False
) -> SealReport:
    """Seal a transcript to its end. If it is over, its open calls are sealed as calls without an outcome.

    It is over with `is_final`, if a record or a hook says so, and if nothing was written for `OVER_SECONDS`.
    """
    # Before reading: a write during the reading then changes the stamp, and the next run reads again.
    stamp = source_stamp(source)
    follower = TranscriptFollower(ledger, adapter, source)
    done = follower.step()
    try:
        age = max(0.0, time.time() - os.stat(source.path).st_mtime)
    except OSError:
        age = float("inf")  # The transcript is gone, so nothing more will come.
    if is_final or age > OVER_SECONDS or follower.hear_end():
        done += follower.end()
    else:
        done += follower.rest()
        done += SealReport(waiting=follower.count_waiting())
    if not done.waiting:  # Otherwise the next run must look again, although the file has not changed.
        stamps.note(source, stamp)
    return done


def locate_sources(
    adapters: Iterable[Adapter], around: UserEnvironment, warn: Callable[[str], None]
) -> Iterator[tuple[Adapter, TranscriptSource]]:
    """Yield the transcripts of all agents. `warn` gets a line for an agent whose directory cannot be read."""
    for adapter in adapters:
        try:
            yield from ((adapter, source) for source in adapter.locate(around))
        except AverError as error:
            warn(f"{adapter.title}: {error.message}")


class TranscriptWatcher:
    """Follows all transcripts. `warn` gets a line for each that cannot be read."""

    def __init__(
        self,
        ledger: Ledger,
        adapters: Iterable[Adapter],
        around: UserEnvironment,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._ledger = ledger
        self._adapters = list(adapters)
        self._around = around
        self._warn = warn
        self._followers: dict[_SourceId, TranscriptFollower] = {}
        self._stamps_seen: dict[_SourceId, str] = {}
        self._changed_at: dict[_SourceId, float] = {}
        self._by_path: dict[str, list[tuple[Adapter, TranscriptSource]]] = {}
        self._looked_at: float = 0.0
        self.stamps = IngestCache(ledger)

    def run(self, report: Callable[[TranscriptUpdate], None], stop: Event) -> None:
        """Follow transcripts until `stop` is set. `report` gets each update."""
        # An optional dependency, and slow to load. `look` works without it.
        try:
            from watchfiles import watch
        except ImportError:
            raise Unavailable(
                "following transcripts by file events needs the package watchfiles",
                advice=install_advice("watch"),
            ) from None
        try:
            for update in self.begin():
                report(update)
            while not stop.is_set():
                places = self.places()
                events = watch(
                    *places,
                    watch_filter=None,
                    debounce=DEBOUNCE_MS,
                    step=STEP_MS,
                    rust_timeout=int(FULL_LOOK_SECONDS * 1000 / 4),
                    yield_on_timeout=True,
                    stop_event=stop,
                    raise_interrupt=True,
                    ignore_permission_denied=True,
                )
                for changes in events if places else _tick(stop):
                    for update in self.look({path for _, path in changes}):
                        report(update)
                    if self.places() != places:
                        break  # An agent was used for the first time, so there is another directory to watch.
        finally:
            for update in self.rest(now=float("inf")):
                report(update)

    def places(self) -> list[Path]:
        """Return the agents' directories that exist."""
        named = {place for adapter in self._adapters for place in adapter.places(self._around)}
        return sorted(place for place in named if place.is_dir())

    def begin(self) -> Iterator[TranscriptUpdate]:
        """Continue the sessions that are in the ledger. Other sessions begin when their transcript changes."""
        known = {head.chain for head in self._ledger.heads()}
        self._locate_sources()
        for adapter, source in [pair for sources in self._by_path.values() for pair in sources]:
            identity = _source_id(source)
            self._stamps_seen[identity] = source_stamp(source)
            if session_chain_name(source.tool, source.session, source.agent) in known and not self.stamps.is_read(
                source
            ):
                yield self._seal_source(adapter, source)

    def look(self, paths: Iterable[str] = ()) -> Iterator[TranscriptUpdate]:
        """Seal the new part of the transcripts at these paths; of all transcripts, if that was not done for a while."""
        now = time.monotonic()
        changed = {_database_path(path) for path in paths}
        # Listing all transcripts is slow. Do it for a path that may be a new one, and after a while for lost events.
        if now - self._looked_at >= FULL_LOOK_SECONDS or any(self._is_new(path) for path in changed):
            self._looked_at = now
            self._locate_sources()
            changed |= self._by_path.keys()
        # One database has many sessions. The stamp of a source shows whether this session changed.
        for path in changed & self._by_path.keys():
            for adapter, source in self._by_path[path]:
                if self._stamps_seen.get(_source_id(source)) != source_stamp(source):
                    yield self._seal_source(adapter, source)
        yield from self.rest(now)

    def rest(self, now: float) -> Iterator[TranscriptUpdate]:
        """Drop the followers of transcripts that have been quiet for long."""
        for identity, at in list(self._changed_at.items()):
            follower = self._followers[identity]
            try:
                is_over = follower.hear_end()
                if now - at < QUIET_SECONDS and not is_over:
                    continue
                seen = TranscriptUpdate(follower.source, follower.end() if is_over else follower.rest())
            except AverError as error:
                seen = self._drop_follower(follower.source, error)
            else:
                del self._followers[identity], self._changed_at[identity]
                self.stamps.note(follower.source, self._stamps_seen.get(identity, ""))
            yield seen
        self.stamps.save()

    def _seal_source(self, adapter: Adapter, source: TranscriptSource) -> TranscriptUpdate:
        identity = _source_id(source)
        self._stamps_seen[identity] = source_stamp(source)  # Before reading, for the same reason as in `catch_up`.
        try:
            follower = self._followers.get(identity)
            if follower is None:
                follower = self._followers[identity] = TranscriptFollower(self._ledger, adapter, source)
            self._changed_at[identity] = time.monotonic()
            return TranscriptUpdate(source, follower.step())
        except AverError as error:
            return self._drop_follower(source, error)

    def _drop_follower(self, source: TranscriptSource, error: AverError) -> TranscriptUpdate:
        """Drop the follower, so that the next look reads again what was read but not sealed."""
        identity = _source_id(source)
        for kept in (self._followers, self._changed_at, self._stamps_seen):
            kept.pop(identity, None)
        return TranscriptUpdate(source, SealReport(notes=(f"{source.path}: {error.message}",)))

    def _is_new(self, path: str) -> bool:
        """Return whether a path may be an unknown transcript, or a database that several sessions share."""
        sources = self._by_path.get(path)
        return any(source.stamp for _, source in sources) if sources else path.endswith(_TRANSCRIPT_SUFFIXES)

    def _locate_sources(self) -> None:
        self._by_path = {}
        for adapter, source in locate_sources(self._adapters, self._around, self._warn):
            self._by_path.setdefault(str(source.path), []).append((adapter, source))


_TRANSCRIPT_SUFFIXES = (".jsonl", ".json", ".vscdb", ".db")
"""Endings of transcripts' names. Other new files are found by the next full look."""


def _source_id(source: TranscriptSource) -> _SourceId:
    return source.tool, source.session, source.agent, str(source.path)


def _database_path(path: str) -> str:
    return next((path.removesuffix(ending) for ending in _SQLITE_SUFFIXES if path.endswith(ending)), path)


def _tick(stop: Event) -> Iterator[set[tuple[object, str]]]:
    """Yield an empty set of changes now and then, while there is no directory to watch."""
    while not stop.wait(FULL_LOOK_SECONDS / 4):
        yield set()
