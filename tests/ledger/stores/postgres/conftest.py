"""What the tests of the PostgreSQL store share: a database with a ledger in it, and its owner's view of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import psycopg
import pytest

from aver import Ledger, open_ledger


@pytest.fixture
def url(new_database: Callable[[], str], monkeypatch: pytest.MonkeyPatch) -> str:
    """A database with tables; `open_ledger()` opens it, too."""
    made = new_database()
    monkeypatch.setenv("AVER_LEDGER", made)
    return made


@pytest.fixture
def ledger(url: str) -> Iterator[Ledger]:
    with open_ledger() as opened:
        yield opened


@pytest.fixture
def owner(url: str) -> Iterator[psycopg.Connection]:
    """The superuser's own connection."""
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection
