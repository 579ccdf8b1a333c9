"""The address of a PostgreSQL ledger: parse its URL, name it without its password, and explain the server's errors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from aver.capsule.canonical import has_surrogate
from aver.config import hide_password
from aver.errors import BadInput, Unavailable
from aver.fast_dataclass import dataclass

__all__ = ["Address", "WriteConflict", "parse_address"]

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
        return Unavailable(words, advice=advice)

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
    return Address(url, _display_name(given), {**_DEFAULTS, **given})


def _has_unescaped_password(url: str) -> bool:
    """Return whether a `/`, `?` or `#` in the password would make a part of it look like a database name."""
    authority, _, rest = re.sub("[?#]", "/", url.partition("://")[2]).partition("/")
    return ":" in authority and "@" not in authority and "@" in rest


def _display_name(options: Mapping[str, Any]) -> str:
    host, port, database, user = (str(options.get(name) or "") for name in ("host", "port", "dbname", "user"))
    at = f"{user}@" if user else ""
    if host.startswith("/"):
        return f"postgresql://{at}/{database}?host={host}"
    return f"postgresql://{at}{host}{f':{port}' if port else ''}/{database}"
