"""Taking the databases of other tools into a ledger: what agent-capsule keeps on a machine, or one database of it.

A directory is all that agent-capsule keeps: `chains/<tool>/<session>.db` and `meta.db`. It is judged as a whole first,
the sessions held to the latest entry of each in its meta chain, and refused where something in it fails. Then it is as
with bundles: chains are stored verbatim and frozen, under the names that they have after the import of a bundle that
the same tool exported. So importing both changes nothing.

The name of a single database tells the session where its directories are those of the tool; otherwise its first record
does. A database that several sessions share has one chain for each of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from aver.capsule.aver_block import chain_name, check_chain_name
from aver.capsule.sealed import Sealed
from aver.errors import BadInput, IntegrityError, NotFound
from aver.fast_dataclass import dataclass
from aver.files.regular import open_file
from aver.ledger.bundle.store_chain import ImportResult, PlannedImport, mark_existing, store_chains
from aver.ledger.foreign.databases import JUDGES, SQLITE_MAGIC, read_foreign_records
from aver.ledger.head import Head
from aver.ledger.ledger import Ledger
from aver.ledger.seen_heads import META_CHAIN
from aver.verdict import Judge, Subject, Verdict, VerifyOptions

__all__ = ["import_databases", "is_foreign_database"]

SIGNERS_KEPT = 1000
"""How many signers are noted by name."""

META_DATABASE = "meta.db"


@dataclass(slots=True)
class _DatabaseChain:
    """A chain in a database, as far as it was read."""

    path: Path
    tenant: str | None
    first: Sealed
    count: int = 0
    head: str | None = None


def is_foreign_database(path: Path) -> bool:
    """Whether another tool's database, or all that agent-capsule keeps, lies there."""
    return _find_judge(path) is not None


def import_databases(ledger: Ledger, path: Path, *, only: Iterable[str] | None = None) -> ImportResult:
    """Store the chains of a database or of all of an agent-capsule directory, or `only` those with these names."""
    path = Path(path)
    ring = ledger.keys.ring()
    verdict = _judge_path(path, VerifyOptions(ring, ledger.config.home))
    if verdict.first_bad is not None:
        raise IntegrityError(
            verdict.first_bad.code,
            f"nothing was imported, because {path.name} does not hold: {verdict.first_bad}",
            evidence=verdict,
            advice=f"see: aver verify {path}",
        )
    signers: set[str] = set()
    planned = [_plan_import(met) for database in _find_databases(path) for met in _read_chains(database, signers)]
    if only is not None:
        planned = _select_chains(planned, frozenset(only))
    stored = store_chains(ledger, [mark_existing(ledger, one) for one in planned])
    return ImportResult(stored, verdict, tuple(sorted(name for name in signers if not ring.lookup(name))))


def _judge_path(path: Path, terms: VerifyOptions) -> Verdict:
    judge = _find_judge(path)
    if judge is None:
        raise BadInput(f"{path} is no database of agent-capsule or qp-capsule, and no directory of agent-capsule")
    return judge.judge(_build_subject(path), terms)


def _find_judge(path: Path) -> Judge | None:
    try:
        subject = _build_subject(path)
    except NotFound:
        return None
    return next((judge for judge in JUDGES if judge.recognises(subject)), None)


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
    yield from sorted((path / "chains").glob("*/*.db"))
    if os.path.isfile(path / META_DATABASE):
        yield path / META_DATABASE


def _read_chains(database: Path, signers: set[str]) -> Iterator[_DatabaseChain]:
    met: _DatabaseChain | None = None
    for row in read_foreign_records(database):
        if isinstance(row.record, BadInput):
            raise row.record
        if met is None or row.tenant != met.tenant:
            if met is not None:
                yield met
            met = _DatabaseChain(database, row.tenant, row.record)
        met.count, met.head = met.count + 1, row.record.hash
        if len(signers) < SIGNERS_KEPT:
            signers.add(row.record.signed_by)
    if met is not None:
        yield met


def _plan_import(met: _DatabaseChain) -> PlannedImport:
    tool, session = _tool_and_session(met)
    if tool == META_CHAIN:
        identifier, name = META_CHAIN, chain_name("import", f"{met.first.hash[:16]}-{META_CHAIN}")
    else:
        identifier = f"{tool}-{session}"
        name = _local_name(tool, session)
    return PlannedImport(
        id=identifier,
        origin=identifier,
        name=name,
        head=Head("", "", identifier, met.count, met.head),
        read=_build_reader(met.path, met.tenant),
        blob=_refuse_blob,
    )


def _tool_and_session(met: _DatabaseChain) -> tuple[str, str]:
    """Tool and session of a chain."""
    content = met.first.to_dict()
    context: Any = content.get("context")
    told = context.get("session_id") if isinstance(context, dict) else None
    tool = str(content.get("domain") or "import")
    session = told if isinstance(told, str) and told else met.path.stem
    if met.tenant is not None:
        return tool, met.tenant
    if met.path.parent.parent.name == "chains":
        return met.path.parent.name, met.path.stem
    return tool, session


def _local_name(tool: str, session: str) -> str:
    try:
        return check_chain_name(f"{tool}.{session}")
    except BadInput:
        return chain_name("import", f"{tool}-{session}")


def _build_reader(path: Path, tenant: str | None) -> Callable[[], Iterator[Sealed | BadInput]]:
    return lambda: (row.record for row in read_foreign_records(path) if row.tenant == tenant)


def _refuse_blob(digest: str) -> bytes:
    raise NotFound(f"the blob {digest} is kept nowhere: other tools have none")


def _select_chains(planned: list[PlannedImport], only: frozenset[str]) -> list[PlannedImport]:
    for name in only:
        if not any(name in (one.id, one.name) for one in planned):
            raise NotFound(f"there is no chain {name} in it", advice="aver verify tells what is in it")
    return [one for one in planned if only & {one.id, one.name}]
