"""The guide to PostgreSQL, carried out on a server of its own; and that the page names what there is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from aver.ledger.stores.postgres.health import READER, WRITER
from aver.ledger.stores.postgres.pool import POOL_MAX
from aver.ledger.stores.postgres.store import OLDEST_VERSION
from support.doc_pages import DOCS, run_page
from support.postgres_servers import USER, Server, program, started

pytestmark = pytest.mark.more

PAGE = DOCS / "postgresql.md"


@pytest.fixture
def server() -> Iterator[Server]:
    """As whoever follows the guide has one: it syncs what it acknowledges."""
    server = started(fsync="on")
    yield server
    server.remove()


def test_the_guide_does_what_it_shows(server: Server, cwd: Path, environment: dict[str, str]) -> None:
    programs = str(Path(program("psql")).parent)
    path = f"{environment['PATH'].partition(os.pathsep)[0]}{os.pathsep}{programs}{os.pathsep}{environment['PATH']}"
    reached = {"PATH": path, "PGHOST": str(server.socket.parent), "PGUSER": USER}
    assert run_page(PAGE, cwd, {**environment, **reached}, place="server") > 0


def test_the_guide_names_the_roles_and_limits() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for told in (WRITER, READER, f"PostgreSQL {OLDEST_VERSION // 10000}", f"at most {POOL_MAX}"):
        assert told in text
