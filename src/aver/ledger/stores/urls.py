"""Which store a ledger URL names, and how it is opened.

sqlite:///PATH, or PATH                     a file
postgresql://USER@HOST:PORT/DATABASE?...    a server, as PostgreSQL's own programs understand it; also postgres://
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from aver.capsule.canonical import has_surrogate
from aver.errors import BadInput
from aver.ledger.stores.protocol import Store
from aver.ledger.stores.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from aver.ledger.stores.postgres import PostgresStore

__all__ = ["is_on_server", "open_server", "open_store", "path_from_url", "server_sql"]

_SERVER_SCHEMES = ("postgresql://", "postgres://")
_URL_ADVICE = "use sqlite:///path/to/ledger.db or postgresql://host/database"


def is_on_server(url: str) -> bool:
    """Whether a ledger URL names a PostgreSQL server."""
    return url.startswith(_SERVER_SCHEMES)


def path_from_url(url: str) -> Path:
    """The file that a ledger URL, or a plain path, names."""
    path = Path(url.removeprefix("sqlite:///"))
    if not path.name or "\0" in url or has_surrogate(url):
        raise BadInput(f"{url!r} does not name a file", advice=_URL_ADVICE)
    if not url.startswith("sqlite:///") and "://" in url:
        raise BadInput(f"{url.partition('://')[0]}:// is not a ledger this Aver opens", advice=_URL_ADVICE)
    return path


def open_store(url: str, *, create: bool, timeout: float, facts: Mapping[str, str] | None = None) -> Store:
    """Open the store that a URL names, making it first if `create` and there is none.

    `facts` is what a store that is made says of itself, where it is to be a copy of another.
    """
    if is_on_server(url):
        return open_server(url, create=create, timeout=timeout, facts=facts)
    return SqliteStore.open(path_from_url(url), create=create, timeout=timeout, facts=facts)


def open_server(url: str, *, create: bool, timeout: float, facts: Mapping[str, str] | None = None) -> PostgresStore:
    """The same where the URL is known to name a server."""
    with _require_psycopg():
        from aver.ledger.stores.postgres import PostgresStore

    return PostgresStore.open(url, create=create, timeout=timeout, facts=facts)


def server_sql(what: Literal["setup", "roles"]) -> str:
    """The SQL with which its owner prepares a database: all of it, or the roles alone."""
    with _require_psycopg():
        from aver.ledger.stores.postgres.roles import roles_sql, setup_sql

    return setup_sql() if what == "setup" else roles_sql()


@contextmanager
def _require_psycopg() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise BadInput(
            f"a ledger on a PostgreSQL server needs psycopg, which cannot be loaded: {error}",
            advice="pip install 'aver[postgres]'",
        ) from error
