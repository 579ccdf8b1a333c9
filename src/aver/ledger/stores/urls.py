"""Open the store that a ledger URL names.

sqlite:///PATH, or PATH                     a file
postgresql://USER@HOST:PORT/DATABASE?...    a server, in the form of PostgreSQL's own programs; also postgres://
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from aver.capsule.canonical import has_surrogate
from aver.errors import BadInput, install_advice
from aver.ledger.stores.protocol import Store
from aver.ledger.stores.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from aver.ledger.stores.postgres import PostgresStore

_SERVER_SCHEMES = ("postgresql://", "postgres://")
_URL_ADVICE = "use sqlite:///path/to/ledger.db or postgresql://host/database"


def is_on_server(url: str) -> bool:
    """Return whether a ledger URL names a PostgreSQL server."""
    return url.startswith(_SERVER_SCHEMES)


def path_from_url(url: str) -> Path:
    """The file that a ledger URL or a plain path names. Raises `BadInput`."""
    path = Path(url.removeprefix("sqlite:///"))
    if not path.name or "\0" in url or has_surrogate(url):
        raise BadInput(f"{url!r} does not name a file", advice=_URL_ADVICE)
    if not url.startswith("sqlite:///") and "://" in url:
        raise BadInput(f"Aver cannot open {url.partition('://')[0]}:// ledgers", advice=_URL_ADVICE)
    return path


def open_store(url: str, *, create: bool, timeout: float, facts: Mapping[str, str] | None = None) -> Store:
    """Open the store that a URL names. Creates it if `create` and there is none.

    `facts` are the id and creation time of a new store that becomes a copy of another.
    """
    if is_on_server(url):
        return open_server(url, create=create, timeout=timeout, facts=facts)
    return SqliteStore.open(path_from_url(url), create=create, timeout=timeout, facts=facts)


def open_server(url: str, *, create: bool, timeout: float, facts: Mapping[str, str] | None = None) -> PostgresStore:
    """Like `open_store`, for the URL of a server."""
    with _require_psycopg():
        from aver.ledger.stores.postgres import PostgresStore

    return PostgresStore.open(url, create=create, timeout=timeout, facts=facts)


def server_sql(what: Literal["setup", "roles"]) -> str:
    """The SQL with which the owner of a database prepares it: everything, or only the roles."""
    with _require_psycopg():
        from aver.ledger.stores.postgres.health import roles_sql, setup_sql

    return setup_sql() if what == "setup" else roles_sql()


@contextmanager
def _require_psycopg() -> Iterator[None]:
    """Turn a failed import of psycopg into `BadInput` with advice."""
    try:
        yield
    except ImportError as error:
        raise BadInput(
            f"a ledger on a PostgreSQL server needs psycopg, which cannot be loaded: {error}",
            advice=install_advice("postgres"),
        ) from error
