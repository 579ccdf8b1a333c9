"""The address of a PostgreSQL ledger, and a pool of connections to it.

`Address` names the ledger without its password, and explains the server's errors. `Pool` replaces dead connections, and
lets no connection cross a fork.

The pool is `psycopg_pool`'s. It opens a connection when one is needed and keeps it for the next caller. It replaces a
lost connection, as long as `lock_timeout` lets the caller wait. Every connection resolves names in PostgreSQL's own
schema only, so that no other object is mistaken for ours. It fails if row security would hide a part of a table.

Every wait for an answer is limited: without a limit, a network that drops all packets would block its clients for ever.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import psycopg
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import TupleRow
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from aver.capsule.canonical import has_surrogate
from aver.config import hide_password
from aver.errors import BadInput, StoreDamaged, Unavailable
from aver.fast_dataclass import dataclass
from aver.log import debug

_DEFAULTS = {
    "application_name": "aver",
    "connect_timeout": "10",
    # Notice a server that disappeared without closing the connection after half a minute, not after two hours.
    "keepalives_idle": "15",
    "keepalives_interval": "5",
    "keepalives_count": "3",
}
"""Defaults that a URL may override."""

_SECRETS = ("password", "sslpassword")

_NO_ANSWER = "none"
_ADVICE: Mapping[str, str] = {
    _NO_ANSWER: "nothing was recorded; check that the server runs, and host, database, user and password in the URL",
    "42501": "this role lacks a right: see aver doctor, and aver doctor --roles-sql",
    "53100": "free some space on the server; nothing was recorded",
    "53300": "the server takes no more connections: raise max_connections, or use fewer processes",
    "53": "the server has run out of something; nothing was recorded",
    "57P03": "the server is starting or stopping; try again",
    "XX": "the server's data is damaged: see its log, and restore it from a copy",
}
"""Advice by the beginning of the SQLSTATE code."""

_DAMAGE_CODES = ("22", "42", "58P01", "XX")
"""Beginnings of SQLSTATE codes that come from the data itself: values, tables, files or pages that cannot be read."""

_ACCESS_CODES = frozenset({"42501"})
"""Codes of class 42 that are about the role, not about the tables."""

_CONNECT_ERROR_CODES: Mapping[str, str] = {
    "too many": "53300",
    "connection slots": "53300",
    "starting up": "57P03",
    "shutting down": "57P03",
}
"""A refused connection gives a message but no code; these words of the message stand for codes."""


class WriteConflict(Unavailable):
    """Nothing was written: another writer came first, or the connection was lost. Another attempt may succeed."""


@dataclass(frozen=True, slots=True)
class Address:
    """A ledger's address. `options` are libpq's and include the password; `name` may be shown."""

    url: str
    name: str
    options: Mapping[str, Any]

    def to_unavailable(self, error: psycopg.Error) -> Unavailable:
        """PostgreSQL's error as `Unavailable`, with advice."""
        text = self.error_text(error)
        words = f"the ledger {self.name} cannot be used: {text}"
        code = error.sqlstate or next((code for mark, code in _CONNECT_ERROR_CODES.items() if mark in text), _NO_ANSWER)
        advice = next((advice for start, advice in _ADVICE.items() if code.startswith(start)), "nothing was recorded")
        is_damage = code.startswith(_DAMAGE_CODES) and code not in _ACCESS_CODES
        return (StoreDamaged if is_damage else Unavailable)(words, advice=advice)

    def error_text(self, error: psycopg.Error) -> str:
        """The error's primary message. Its details could quote records, so they are left out, as are passwords."""
        while isinstance(error.__context__, psycopg.Error):
            error = error.__context__  # The first error is the cause; the later ones come from psycopg's cleanup.
        text = " ".join((error.diag.message_primary or str(error) or type(error).__name__).split())
        for secret in (self.options.get(name) for name in _SECRETS):
            if secret:
                text = text.replace(str(secret), "***")
        return hide_password(text)


def parse_address(url: str) -> Address:
    """Parse a URL as PostgreSQL's own programs do. Raises `BadInput`, whose text never contains the password."""
    problem = BadInput(
        f"{hide_password(url)!r} is not a URL that PostgreSQL understands",
        advice="use postgresql://user@host:5432/database; write other characters in it as %XX",
    )
    if "\0" in url or has_surrogate(url) or _has_unescaped_password(url):
        raise problem
    try:
        given = conninfo_to_dict(url)
    except (psycopg.Error, ValueError):
        raise problem from None
    host, port, database, user = (str(given.get(name) or "") for name in ("host", "port", "dbname", "user"))
    at = f"{user}@" if user else ""
    if host.startswith("/"):
        display_name = f"postgresql://{at}/{database}?host={host}"
    else:
        display_name = f"postgresql://{at}{host}{f':{port}' if port else ''}/{database}"
    return Address(url, display_name, {**_DEFAULTS, **given})


def _has_unescaped_password(url: str) -> bool:
    """Return whether a `/`, `?` or `#` in the password would make a part of it look like a database name."""
    authority, _, rest = re.sub("[?#]", "/", url.partition("://")[2]).partition("/")
    return ":" in authority and "@" not in authority and "@" in rest


POOL_MAX = 8
"""Most connections of one process to one ledger. One of them writes; the others serve threads that read."""

GETCONN_TIMEOUT, RECONNECT_TIMEOUT = 0.5, 0.1
"""Seconds after which a waiting caller asks the pool again, and after which the pool gives up one connection attempt.
With its own pauses, which double each time, the pool would notice a server that is back only minutes later."""

_SESSION = """
SELECT set_config('search_path', 'pg_catalog, pg_temp', false),
       set_config('row_security', 'off', false),
       set_config('default_transaction_isolation', 'read committed', false)
"""

# The caller gets failed connections as an error; without this handler, the pool's warnings would go to stderr, too.
logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())

Result = TypeVar("Result")


class PoolConnection(psycopg.Connection[TupleRow]):
    """A connection that waits at most `patience` seconds for an answer; None means for ever."""

    patience: float | None = None
    may_write = False
    """Whether Aver has checked that no foreign trigger or rule runs when a record is added."""

    def wait(self, gen: PQGen[Result], interval: float = 0.1, timeout: float | None = None) -> Result:
        return super().wait(gen, interval, timeout=self.patience if timeout is None else timeout)


class _Connector:
    """Opens connections for the pool, and keeps the error of the last attempt."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self.failure: psycopg.Error | None = None
        self.spare: PoolConnection | None = None
        """The connection that was opened before the pool existed."""

    def connect(self, conninfo: str = "", **options: Any) -> PoolConnection:
        spare, self.spare = self.spare, None
        if spare is not None:
            return spare
        try:
            connection = PoolConnection.connect(
                conninfo, autocommit=True, client_encoding="UTF8", **self._address.options
            )
            connection.execute(_SESSION)
        except psycopg.Error as error:
            self.failure = error
            debug("ledger", "cannot connect to %s: %s", self._address.name, self._address.error_text(error))
            raise
        self.failure = None
        return connection


class Pool:
    """The connections of one process. A caller waits up to `timeout` seconds for a connection."""

    def __init__(self, address: Address, *, timeout: float) -> None:
        self._address = address
        self._timeout = timeout
        self._closed = False
        self._reset()

    def _reset(self) -> None:
        self._changed = threading.Condition()
        self._used = 0
        self._pool: ConnectionPool[PoolConnection] | None = None
        self._connector = _Connector(self._address)

    def connect_first(self) -> PoolConnection:
        """Open the first connection at once, to raise the reason if that fails. The pool takes it over later."""
        try:
            connection = self._connector.connect()
        except psycopg.Error as error:
            raise self._address.to_unavailable(error) from error
        self._connector.spare = connection
        return connection

    @contextmanager
    def connection(self, *, patience: float | None = None, within: float | None = None) -> Iterator[PoolConnection]:
        """Lend a connection that is not in a transaction. If it is in one when it comes back, it is closed."""
        within = self._timeout if within is None else within
        with self._changed:
            if self._closed:
                raise Unavailable("the ledger was closed")
            if self._pool is None:
                # Opened here and not at import or construction: its threads do not survive a fork.
                self._pool = ConnectionPool(
                    connection_class=cast(type[PoolConnection], self._connector),
                    min_size=0,
                    max_size=POOL_MAX,
                    num_workers=1,
                    reconnect_timeout=RECONNECT_TIMEOUT,
                    open=True,
                )
            pool = self._pool
            self._used += 1  # A fork waits until this is 0.
        try:
            connection = self._get_connection(pool, within)
            connection.patience = patience
            try:
                yield connection
            finally:
                if connection.pgconn.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                    connection.close()
                pool.putconn(connection)
        finally:
            with self._changed:
                self._used -= 1
                self._changed.notify_all()  # Wakes a fork that waits.

    def _get_connection(self, pool: ConnectionPool[PoolConnection], within: float) -> PoolConnection:
        deadline = time.monotonic() + within
        while True:
            try:
                return pool.getconn(timeout=min(GETCONN_TIMEOUT, max(deadline - time.monotonic(), 0.001)))
            except PoolClosed:
                raise Unavailable("the ledger was closed") from None
            except PoolTimeout:
                if time.monotonic() < deadline:
                    continue
            # The pool only says that time is up; the last failed attempt says why.
            failure = self._connector.failure
            if failure is not None:
                raise self._address.to_unavailable(failure) from failure
            raise Unavailable(
                f"all {POOL_MAX} connections to {self._address.name} have been busy for {within:g} seconds",
                advice="nothing was recorded; try again",
            )

    def close(self) -> None:
        self._closed = True
        with self._changed:
            self._close_all()

    def _close_all(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()
        spare, self._connector.spare = self._connector.spare, None
        if spare is not None:
            spare.close()

    def before_fork(self) -> None:
        """Wait for borrowed connections, then close every connection; see `forks`."""
        # Taken until after the fork, so that no thread borrows a connection meanwhile.
        self._changed.acquire()
        deadline = time.monotonic() + self._timeout
        self._changed.wait_for(lambda: self._used == 0, deadline - time.monotonic())
        self._close_all()

    def after_fork_in_parent(self) -> None:
        self._changed.release()

    def after_fork_in_child(self) -> None:
        self._reset()
