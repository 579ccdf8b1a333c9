"""Import the databases of other tools into a ledger: a directory of agent-capsule, or a single database.

A directory of agent-capsule has `chains/<tool>/<session>.db` and `meta.db`. Aver verifies it as a whole first, compares
each session with its latest entry in the meta chain, and refuses the directory if a check fails. Then it stores the
chains as with bundles: verbatim and frozen, under the names that they get from a bundle of the same tool. Importing
both a bundle and the directory stores nothing twice.

The session of a single database comes from its path, if it lies in the tool's directories, and otherwise from its first
record. A database that several sessions share becomes one chain for each of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from aver.capsule.sealed import Sealed
from aver.errors import BadInput, IntegrityError, NotFound
from aver.fast_dataclass import dataclass
from aver.files.regular import open_file
from aver.ledger.bundle.import_ import ImportResult, PlannedImport, mark_existing, store_chains
from aver.ledger.foreign.databases import (
    SQLITE_MAGIC,
    is_agent_capsule_directory,
    is_foreign_database_file,
    judge_agent_capsule_directory,
    judge_foreign_database,
    read_foreign_records,
)
from aver.ledger.head import Head
from aver.ledger.imports.source import ImportSource, source_from_records
from aver.ledger.ledger import Ledger
from aver.ledger.seen_heads import META_CHAIN
from aver.verdict import Subject, Verdict, VerifyOptions

SIGNERS_KEPT = 1000
"""Most signers that are collected by name."""

META_DATABASE = "meta.db"


@dataclass(slots=True)
class _DatabaseChain:
    """The identity and the head of a chain in a database."""

    path: Path
    tenant: str | None
    first: Sealed
    count: int = 0
    head: str | None = None


def is_foreign_database(path: Path) -> bool:
    """Return whether the path is another tool's database, or a directory of agent-capsule."""
    return _find_judge(path) is not None


def import_databases(ledger: Ledger, path: Path, *, only: Iterable[str] | None = None) -> ImportResult:
    """Store the chains of a database or of an agent-capsule directory, or `only` those with these names.

    Raises `IntegrityError` with the verdict if a check fails, `Refused` if a chain cannot be stored here.
    """
    path = Path(path)
    ring = ledger.keys.ring()
    judge = _find_judge(path)
    if judge is None:
        raise BadInput(f"{path} is no database of agent-capsule or qp-capsule, and no directory of agent-capsule")
    verdict = judge(_build_subject(path), VerifyOptions(ring, ledger.config.home))
    if verdict.first_bad is not None:
        raise IntegrityError(
            verdict.first_bad.code,
            f"nothing was imported, because {path.name} does not verify: {verdict.first_bad}",
            evidence=verdict,
            advice=f"see: aver verify {path}",
        )
    signers: set[str] = set()
    chains = [chain for database in _find_databases(path) for chain in _read_chains(database, signers)]
    meta = next((chain.first for chain in chains if _tool_and_session(chain)[0] == META_CHAIN), None)
    source = source_from_records((chain.first for chain in chains), meta)
    planned = [_plan_import(chain, source) for chain in chains]
    if only is not None:
        chosen = frozenset(only)
        for name in chosen:
            if not any(name in (chain.id, chain.name) for chain in planned):
                raise NotFound(f"there is no chain {name} in it", advice="aver verify lists its chains")
        planned = [chain for chain in planned if chosen & {chain.id, chain.name}]
    stored = store_chains(ledger, [mark_existing(ledger, chain) for chain in planned])
    unknown = tuple(sorted(name for name in signers if not ring.lookup(name)))
    return ImportResult(source, stored, verdict, unknown)


def _find_judge(path: Path) -> Callable[[Subject, VerifyOptions], Verdict] | None:
    try:
        subject = _build_subject(path)
    except NotFound:
        return None
    if is_agent_capsule_directory(subject):
        return judge_agent_capsule_directory
    return judge_foreign_database if is_foreign_database_file(subject) else None


def _build_subject(path: Path) -> Subject:
    name = path.name or str(path)
    if os.path.isdir(path):
        return Subject(name, path=path, is_directory=True)
    with open_file(path) as file:
        return Subject(name, path=path, beginning=file.read(len(SQLITE_MAGIC)))


def _find_databases(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    # Sessions first: an interrupted import then lacks the meta chain, and not a session that meta names.
    yield from sorted((path / "chains").glob("*/*.db"))
    if os.path.isfile(path / META_DATABASE):
        yield path / META_DATABASE


def _read_chains(database: Path, signers: set[str]) -> Iterator[_DatabaseChain]:
    """The chains of a database. Adds their signers to `signers`."""
    chain: _DatabaseChain | None = None
    for row in read_foreign_records(database):
        if isinstance(row.record, BadInput):
            raise row.record
        # Rows come ordered by tenant: another tenant begins another chain.
        if chain is None or row.tenant != chain.tenant:
            if chain is not None:
                yield chain
            chain = _DatabaseChain(database, row.tenant, row.record)
        chain.count, chain.head = chain.count + 1, row.record.hash
        if len(signers) < SIGNERS_KEPT:
            signers.add(row.record.signed_by)
    if chain is not None:
        yield chain


def _plan_import(chain: _DatabaseChain, source: ImportSource) -> PlannedImport:
    tool, session = _tool_and_session(chain)
    identifier, name = (META_CHAIN, META_CHAIN) if tool == META_CHAIN else (f"{tool}-{session}", f"{tool}.{session}")
    return PlannedImport(
        id=identifier,
        origin=identifier,
        name=source.name_chain(name),
        source=source,
        head=Head("", "", identifier, chain.count, chain.head),
        first=chain.first,
        read=lambda: (row.record for row in read_foreign_records(chain.path) if row.tenant == chain.tenant),
        read_blob=_refuse_blob,
    )


def _tool_and_session(chain: _DatabaseChain) -> tuple[str, str]:
    """Tool and session of a chain, from its tenant, its path, or its first record."""
    content = chain.first.to_dict()
    context: Any = content.get("context")
    named = context.get("session_id") if isinstance(context, dict) else None
    tool = str(content.get("domain") or "import")
    session = named if isinstance(named, str) and named else chain.path.stem
    if chain.tenant is not None:  # One database of several sessions: its tenant is the session.
        return tool, chain.tenant
    if chain.path.parent.parent.name == "chains":
        return chain.path.parent.name, chain.path.stem
    return tool, session


def _refuse_blob(digest: str) -> bytes:
    raise NotFound(f"the blob {digest} is not here: other tools keep no blobs")
