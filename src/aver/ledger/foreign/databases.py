"""Read and judge the databases of other tools, agent-capsule and qp-capsule. Aver never writes to them.

agent-capsule keeps one SQLite file per session (`chains/<tool>/<session>.db`). Its table `capsules` has the signed text
in `canonical`. `meta.db` has a chain of heads. qp-capsule keeps one file, whose table `capsules` has the content as
JSON in `data`; Aver tries the possible canonical forms until one has the stored hash.

The signed content counts. The verifier compares the columns that repeat it (id, type, sequence, previous_hash,
session_id) with it; both tools use these columns without comparing them. Neither tool's file shows how many records
there once were; only agent-capsule's `meta.db` does, for finished sessions.

Files are opened read-only. Nothing is created beside them, unless SQLite must read an existing write-ahead log. Rows
are read from the table itself and never through an index, which may have other values. A database whose indexes and
table disagree fails, because other programs may read rows that were not verified here.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from typing import Any

from aver.capsule.json_reader import ELEMENT_MAX, Unreadable, canonical_forms
from aver.capsule.sealed import SEAL_KEYS, Sealed, content_hash
from aver.errors import BadInput, Unavailable
from aver.fast_dataclass import dataclass
from aver.files.regular import open_file
from aver.ledger.foreign.database_schema import STATEMENT_MAX, find_computation
from aver.ledger.foreign.seal_checks import check_companions, check_schema_size, check_seal_fields, unreadable_code
from aver.ledger.head import Head
from aver.ledger.key_history import retirements_by_time
from aver.ledger.meta_chain import HEADS_MAX, collect_heads, find_external_chains
from aver.ledger.seen_heads import META_CHAIN, check_head
from aver.verdict import ChainJudge, Finding, Place, Subject, Tally, Verdict, VerifyOptions, conclude
from aver.verdict.chain import UNREADABLE_MAX

SQLITE_MAGIC = b"SQLite format 3\x00"
WAL_VERSION = b"\x02\x02"
"""Bytes 18 and 19 of a database whose journal is a write-ahead log."""

VALUE_MAX = 2 * ELEMENT_MAX
"""Largest value that SQLite may return: the largest capsule and the rest of its row."""

_READER_ERRORS = frozenset(
    (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)
)
"""SQLite errors that are no evidence of damage to the file."""

COLUMNS_MAX = 100
"""Most columns of a table, and of a result. The tables of the known tools have some ten."""

PAGES_MAX = 2**28
"""Most pages of a database whose indexes are compared: a terabyte of usual pages. SQLite takes a bit of memory for each
page, also for those in a hole of the file; it allows 2**32 of them."""

CHAIN_NAME_MAX = 200
"""Most characters of a foreign name that a verdict repeats."""


@dataclass(frozen=True, slots=True)
class _DatabaseFormat:
    """A tool's table: the column with the content, the function that reads it, and the columns that repeat content."""

    tool: str
    content: str
    read: Callable[[bytes, list[str]], Sealed]
    copies: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class ForeignRecord:
    """A row: its tenant, the record or the error, and the values of the columns that repeat content."""

    tenant: str | None
    record: Sealed | BadInput
    copies: Mapping[str, Any]


def _record_from_document(text: bytes, seal: list[str]) -> Sealed:
    """The record in the canonical form that has the stored hash; or, if none has, in the first form, which fails."""
    first: bytes | None = None
    for form in canonical_forms(text):
        if content_hash(form) == seal[0]:
            return Sealed(form, *seal)
        first = first or form
    if first is None:
        raise Unreadable("the capsule has no form that can be hashed")
    return Sealed(first, *seal)


_COMMON_COPIES = {"id": ("id",), "sequence": ("sequence",), "previous_hash": ("previous_hash",)}
_FORMATS = (
    _DatabaseFormat("agent-capsule", "canonical", lambda text, seal: Sealed(text, *seal), _COMMON_COPIES),
    _DatabaseFormat(
        "qp-capsule",
        "data",
        _record_from_document,
        {**_COMMON_COPIES, "type": ("type",), "domain": ("domain",), "session_id": ("context", "session_id")},
    ),
)


# --- reading

TABLE = "capsules"


class ComputingSchema(Unreadable):
    """The schema of a database has an object that computes something. Nothing in it was evaluated."""


@contextmanager
def _open_database(path: Path) -> Iterator[tuple[sqlite3.Connection, _DatabaseFormat]]:
    """Open a foreign database for reading, and recognise its tool.

    Raises `BadInput` if no known tool made it, and `ComputingSchema` if its schema computes something.
    """
    try:
        with _connect(path) as connection:
            # Before anything else: even to list the columns of a view, SQLite works through the view.
            is_named = connection.execute("SELECT 1 FROM sqlite_schema WHERE lower(name) = ?", (TABLE,)).fetchone()
            problem = find_computation(connection) if is_named else None
            if problem is not None:
                raise ComputingSchema(f"SQLite would evaluate expressions of its schema: {problem}")
            columns = _read_columns(connection) if is_named else frozenset()
            for tool in _FORMATS:
                if {tool.content, "hash", "signature", "sequence"} <= columns:
                    yield connection, tool
                    return
    except UnicodeDecodeError as error:
        raise Unreadable(f"{path} is damaged: its schema is not text") from error
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _READER_ERRORS:
            raise Unavailable(f"cannot read {path}: {error}", advice="close the program that writes it") from error
        raise Unreadable(f"{path} is damaged: {error}") from error
    raise BadInput(f"{path} is an SQLite database, but of no tool that Aver knows")


@contextmanager
def _connect(path: Path) -> Iterator[sqlite3.Connection]:
    """Connect by the first URI that works, with limits against a hostile file."""
    path = path.resolve()
    with open_file(path) as file:
        is_wal = file.read(20)[18:] == WAL_VERSION
    # With `immutable`, SQLite creates no file beside the database, but does not see an existing log.
    plain, immutable = f"{path.as_uri()}?mode=ro", f"{path.as_uri()}?mode=ro&immutable=1"
    uris = [immutable] if is_wal else [plain, immutable]
    check_schema_size(path)
    if check_companions(path) & {"-wal", "-journal"}:
        uris = [plain]  # The log or journal has a part of the content.
    failure: sqlite3.Error | None = None
    for uri in uris:
        try:
            connection = sqlite3.connect(uri, uri=True, isolation_level=None)
        except sqlite3.Error as error:
            failure = error
            continue
        try:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, VALUE_MAX)
            # SQLite parses the whole schema at the first statement, in time that grows with the square of the columns.
            connection.setlimit(sqlite3.SQLITE_LIMIT_COLUMN, COLUMNS_MAX)
            connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, STATEMENT_MAX)
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA cell_size_check = ON")
            # Text that is not UTF-8 must come back as exactly the bytes that are hashed.
            connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
            # SQLite opens the file at the first statement. An error here may go away with the next URI.
            try:
                connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            except sqlite3.OperationalError as error:
                failure = error
                continue
            yield connection
            return
        finally:
            connection.close()
    raise failure or sqlite3.OperationalError("unable to open")


def _read_columns(connection: sqlite3.Connection) -> set[str]:
    """The columns of the table `capsules`. `find_computation` has made sure that it is an ordinary one."""
    return {str(column[1]) for column in connection.execute("PRAGMA table_xinfo('capsules')") if column[6] == 0}


def _find_disagreement(path: Path) -> str | None:
    """The first problem that SQLite finds in the table or its indexes; None if there is none."""
    try:
        with _open_database(path) as (connection, _):
            if connection.execute("PRAGMA page_count").fetchone()[0] > PAGES_MAX:
                return f"it is too large to compare them: more than {PAGES_MAX} pages"
            found = connection.execute("PRAGMA integrity_check('capsules')").fetchone()
    except BadInput as error:
        return error.message
    return None if found is None or found[0] == "ok" else str(_printable_name(found[0]))


def _read_record(content: Any, seal: tuple[Any, ...], tool: _DatabaseFormat) -> Sealed | BadInput:
    try:
        if isinstance(content, str):
            content = content.encode("utf-8", "surrogateescape")
        if not isinstance(content, bytes):
            raise Unreadable(f"the column {tool.content} contains no text")
        if not all(value is None or isinstance(value, str) for value in seal):
            raise Unreadable("the parts of a seal are texts")
        return check_seal_fields(tool.read(content, [value or "" for value in seal]))
    except BadInput as error:
        return error


def _printable_name(tenant: Any) -> str | None:
    if tenant is None:
        return None
    text = str(tenant)[:CHAIN_NAME_MAX]
    return text if text.isprintable() else ascii(text)


def read_foreign_records(path: Path) -> Iterator[ForeignRecord]:
    """Every record in a foreign database, ordered by tenant and sequence."""
    with _open_database(path) as (connection, tool):
        columns = _read_columns(connection)
        copies = {name: path for name, path in tool.copies.items() if name in columns}
        wanted = ["tenant_id", tool.content, *SEAL_KEYS, *copies]
        listed = ", ".join(name if name in columns else f"NULL AS {name}" for name in wanted)
        tenant = "tenant_id, " if "tenant_id" in columns else ""
        # NOT INDEXED: read the table itself.
        for row in connection.execute(f"SELECT {listed} FROM capsules NOT INDEXED ORDER BY {tenant}sequence, rowid"):
            yield ForeignRecord(
                _printable_name(row[0]), _read_record(row[1], row[2:7], tool), dict(zip(copies, row[7:], strict=True))
            )


# --- judging


@dataclass(slots=True)
class _ForeignChain:
    """The state of judging one tenant's chain in a database."""

    name: str
    judge: ChainJudge
    wanted: int = -1
    """The sequence number of the remembered head, whose hash is kept in `at_wanted`."""
    count: int = 0
    head: str | None = None
    at_wanted: str | None = None
    entries: dict[str, Head] = field(default_factory=dict)
    elsewhere: set[str] = field(default_factory=set)

    def judge_row(self, row: ForeignRecord) -> None:
        """Judge the next record, and compare its columns with its content."""
        tally = self.judge.tally
        if isinstance(row.record, BadInput):
            self.judge.unreadable(row.record.message, code=unreadable_code(row.record))
            self.count, self.head = self.count + 1, None
            return
        if self.count == self.wanted:
            self.at_wanted = row.record.hash
        failed_before = _count_failures(tally)
        content = self.judge.judge(row.record)
        if content is not None:
            tally.count_done("columns")
            # One finding for a record is enough: compare columns only if the record itself is good.
            for name, column in row.copies.items() if _count_failures(tally) == failed_before else ():
                value: Any = content
                for key in _COPY_PATHS[name]:
                    value = value.get(key)
                # In Python 1 == True == 1.0, so the types must agree, too.
                if column != value or type(column) is not type(value):
                    place = Place(self.name, content["sequence"])
                    words = f"the column {name} is not what was signed"
                    tally.add(Finding("columns", "failed", "COLUMN_MISMATCH", words, place))
                    break
            if self.name == META_CHAIN and len(self.entries) < HEADS_MAX:
                collect_heads(content, self.entries, ledger="", tenant="")
                self.elsewhere.update(chain for chain in find_external_chains(content) if chain in self.entries)
        self.count, self.head = self.count + 1, row.record.hash


def _count_failures(tally: Tally) -> int:
    return sum(count for (_, status, _), count in tally.counts.items() if status == "failed")


_COPY_PATHS = {name: path for tool in _FORMATS for name, path in tool.copies.items()}


def _judge_chains(
    path: Path, name: str, options: VerifyOptions, tally: Tally, wanted: Mapping[str, Head]
) -> Iterator[_ForeignChain]:
    """Judge the chains in a database, one after the other. An unreadable rest is reported at its place."""
    rules = options.rules(retirements_by_time(options.ring))
    chain: _ForeignChain | None = None
    tenant: str | None = None
    failed = 0
    try:
        for row in read_foreign_records(path):
            if options.tenant not in (None, row.tenant):
                continue
            if chain is None or row.tenant != tenant:
                if chain is not None:
                    failed += _count_failures(chain.judge.tally) > 0
                    yield _finish_chain(chain, tally)
                    if failed > UNREADABLE_MAX:
                        words = f"more than {UNREADABLE_MAX} chains failed; the rest was not read"
                        tally.add(Finding("schema", "failed", "NOT_READ", words, Place(name)))
                        return
                tenant = row.tenant
                label = name if tenant is None else f"{name}/{tenant}"
                head = wanted.get(label)
                chain = _ForeignChain(
                    label, ChainJudge(rules, chain=label), wanted=-1 if head is None else head.count - 1
                )
            chain.judge_row(row)
            if chain.judge.stops_reading():
                break
        wrong = _find_disagreement(path)
    except ComputingSchema as error:
        tally.count_done("store")
        tally.add(Finding("store", "failed", "SCHEMA_INVALID", error.message, Place(name)))
        return
    except BadInput as error:
        chain = chain or _ForeignChain(name, ChainJudge(rules, chain=name))
        chain.judge.unreadable(f"this record and all after it cannot be read: {error.message}")
        wrong = None
    if chain is not None:
        yield _finish_chain(chain, tally)
    tally.count_done("store")
    if wrong is not None:
        words = f"the database's indexes and tables disagree: {wrong}"
        tally.add(Finding("store", "failed", "SCHEMA_INVALID", words, Place(name)))


def _finish_chain(chain: _ForeignChain, tally: Tally) -> _ForeignChain:
    tally.merge(chain.judge.finish())
    tally.chains += 1
    return chain


def judge_foreign_database(subject: Subject, options: VerifyOptions) -> Verdict:
    tally = Tally()
    path = subject.path or Path()
    for _ in _judge_chains(path, str(_printable_name(path.stem)), options, tally, {}):
        pass
    tally.skip("meta", "nothing here shows how many records there once were", matters=False)
    return conclude(f"database {subject.name}", tally, level=options.level)


def judge_agent_capsule_directory(subject: Subject, options: VerifyOptions) -> Verdict:
    """The verdict on a directory of agent-capsule: each session's chain, compared with its meta chain."""
    home, tally = subject.path or Path(), Tally()
    remembered: dict[str, Head] = {}
    elsewhere: set[str] = set()
    if os.path.isfile(home / "meta.db"):
        for chain in _judge_chains(home / "meta.db", META_CHAIN, options, tally, {}):
            remembered.update(chain.entries)
            elsewhere |= chain.elsewhere
    recorded, grown, outside, failed = len(remembered), 0, 0, 0
    files: dict[tuple[int, int], Path] = {}
    for path in sorted((home / "chains").glob("*/*.db")):
        if failed > UNREADABLE_MAX:
            words = f"more than {UNREADABLE_MAX} chains failed; the rest was not read"
            tally.add(Finding("schema", "failed", "NOT_READ", words, Place()))
            break
        if (other := _find_same_file(path, files)) is not None:
            failed += 1
            words = (
                f"it is the same file as {_printable_name(f'{other.parent.name}/{other.name}')}, and was not read again"
            )
            place = Place(_printable_name(f"{path.parent.name}.{path.stem}"))
            tally.add(Finding("identity", "failed", "CHAIN_IDENTITY", words, place))
            continue
        failed_before = _count_failures(tally)
        for chain in _judge_chains(
            path, str(_printable_name(f"{path.parent.name}.{path.stem}")), options, tally, remembered
        ):
            head = remembered.pop(chain.name, None)
            if head is None:
                outside += 1
                continue
            actual = Head("", "", chain.name, chain.count, chain.head)
            grown += check_head(head, actual, chain.at_wanted, tally, check="meta", remembered="the meta chain")
        failed += _count_failures(tally) > failed_before
    # What is left in `remembered` has no database in this directory.
    away = [name for name in remembered if name in elsewhere]
    for name, head in remembered.items():
        if name not in elsewhere:
            check_head(head, None, None, tally, check="meta", remembered="the meta chain")
    if away:
        tally.skip("meta", f"{len(away)} chains are in databases outside this directory", matters=True)
    if recorded >= HEADS_MAX:
        tally.skip("meta", f"the meta chain records more than {HEADS_MAX} chains", matters=True)
    if recorded:
        compared = f"{recorded - len(away)} chains match their recorded heads"
        tally.notes["meta"] = f"{compared} ({grown} grown since, {outside} not recorded)"
    else:
        tally.skip("meta", "no session was finished and recorded", matters=False)
    return conclude(f"agent-capsule directory {home.absolute().name}", tally, level=options.level)


def _find_same_file(path: Path, files: dict[tuple[int, int], Path]) -> Path | None:
    """The path in `files` that leads to the same file. If there is none, this path is added.

    Each session has a database of its own. One large database under thousands of names would be read each time.
    """
    try:
        status = os.stat(path)
    except OSError:
        return None  # Reported where the database is opened.
    other = files.setdefault((status.st_dev, status.st_ino), path)
    return None if other == path else other


def read_single_chain(subject: Subject) -> Iterator[Sealed]:
    """The records of a database with one chain. Raises `BadInput` if it has several."""
    tenants = set()
    for row in read_foreign_records(subject.path or Path()):
        tenants.add(row.tenant)
        if len(tenants) > 1:
            raise BadInput(f"{subject.name} contains several chains", advice="verify it as a whole, or choose a tenant")
        if isinstance(row.record, BadInput):
            raise row.record
        yield row.record


def is_foreign_database_file(subject: Subject) -> bool:
    """Whether it is an SQLite file with the table of agent-capsule or qp-capsule."""
    if subject.path is None or not subject.beginning.startswith(SQLITE_MAGIC):
        return False
    # Outside the try: a pipe beside the database must be reported, not make the file look unknown.
    check_companions(subject.path)
    try:
        with _open_database(subject.path):
            return True
    except ComputingSchema:
        return True  # It has the table's name, and its verdict says why it fails.
    except Unreadable:
        return b"CREATE TABLE capsules" in subject.beginning  # A damaged one fails, instead of being unknown.
    except (BadInput, Unavailable):
        return False


def is_agent_capsule_directory(subject: Subject) -> bool:
    """Whether it is a directory with the meta chain of agent-capsule, or with one of its sessions."""
    if subject.path is None or not subject.is_directory:
        return False
    path = subject.path
    return os.path.isfile(path / "meta.db") or next((path / "chains").glob("*/*.db"), None) is not None
