"""What all tests share: a home of their own, a ledger in it, and how hard hypothesis tries."""

from __future__ import annotations

import gc
import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from aver import Ledger, open_ledger
from aver.agents.registry import provide_known_agents
from aver.ledger.bundle import export_bundle
from support.bundles import fill
from support.node import deny_page_sources, note_test
from support.quick_derivation import derive_quickly
from support.real_home import describe_real_home, hide_real_home, make_memory_directory

if TYPE_CHECKING:
    from support.postgres_servers import Server

REPOSITORY = Path(__file__).resolve().parent.parent

QUICK_ON_POSTGRES = frozenset({"test_append", "test_append_together", "test_tenants"})
"""Modules of tests for both stores that `make test`, too, runs on both."""

MORE_ON_POSTGRES = frozenset({"test_api", "test_live"})
"""Modules of which `make test-more` does."""

for name, examples in (("quick", 20), ("full", 100)):
    settings.register_profile(
        name,
        deadline=None,
        max_examples=examples,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large],
    )
settings.load_profile("quick")  # `make test-all` runs pytest with --hypothesis-profile=full.

HOMES = hide_real_home()  # None in worker processes of pytest: they get it from the process that started them.
PROCESS_HOME = Path.home()
MEMORY_HOMES = make_memory_directory()
BEFORE = describe_real_home() if HOMES else []
NUMBERS = itertools.count(1)

derive_quickly()
deny_page_sources()
provide_known_agents()  # As `aver` and `cli` do: some tests make a `Gate` when they are imported.


@pytest.fixture(autouse=True)
def user_home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty home directory. No test sees the settings of the user who runs it."""
    # Not below `tmp_path`, which most tests do without: pytest looks through all its directories to name the next one.
    place = PROCESS_HOME / f"{os.getpid()}-{next(NUMBERS)}"
    home = place / "user"
    home.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    yield home
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture(autouse=True)
def aver_home(request: pytest.FixtureRequest, user_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """No test sees the keys or the ledger of the user who runs it. Aver's directory does not exist yet.

    It is in memory, if there is room. Tests of faults, and those of the other tiers, have it on the disk.
    """
    place = user_home.parent
    marked = map(request.node.get_closest_marker, ("more", "long", "on_disk"))
    is_on_disk = "faults" in request.path.parts or any(marked)
    if MEMORY_HOMES is not None and not is_on_disk:
        place = MEMORY_HOMES / place.name
        place.mkdir()
    monkeypatch.setenv("AVER_HOME", str(place / "aver-home"))
    monkeypatch.delenv("AVER_LEDGER", raising=False)
    yield place / "aver-home"
    if place != user_home.parent:
        shutil.rmtree(place, ignore_errors=True)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "both_stores: runs on the embedded store and on a PostgreSQL server")
    config.addinivalue_line("markers", "on_disk: has Aver's home on the file system of `tmp_path`, never in memory")
    config.addinivalue_line("markers", "sqlite: among those, needs the embedded store's file")
    config.addinivalue_line("markers", "sample(count): of its cases, all but so many are for make test-all alone")


@pytest.hookimpl(tryfirst=True)  # Before pytest chooses by marks.
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of a test that carries `sample`, leave cases that are spread over all of them, and mark the others as long."""
    if config.pluginmanager.has_plugin("support.recorded_cases"):
        return  # It gives every case to the page's verifier.
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sample") and not item.get_closest_marker("long"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for found in cases.values():
        most = found[0].get_closest_marker("sample").args[0]
        chosen = {number * len(found) // most for number in range(most)}
        for number, item in enumerate(found):
            if number not in chosen:
                item.add_marker(pytest.mark.long)


@pytest.hookimpl(tryfirst=True)  # Before the fixtures of the module, too.
def pytest_runtest_setup(item: pytest.Item) -> None:
    note_test(item)


def pytest_collection_finish() -> None:
    gc.freeze()  # The tests themselves stay to the end: looking through them for garbage would be in vain.


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the run if a test has changed what Aver has in the real home."""
    if HOMES is None:
        return
    HOMES.cleanup()
    if MEMORY_HOMES is not None:
        shutil.rmtree(MEMORY_HOMES, ignore_errors=True)
    if changed := sorted(set(BEFORE) ^ set(describe_real_home())):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        lines = "\n".join(f"  {line}" for line in changed)
        session.config.get_terminal_writer().write(f"\nThe tests changed the home of the user:\n{lines}\n", red=True)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marked = metafunc.definition.get_closest_marker
    if marked("both_stores") and not marked("sqlite"):
        # A database for each test takes its time: `make test` does that for some, `make test-all` for all.
        module = metafunc.module.__name__.rpartition(".")[2]
        marks: Any = pytest.mark.more if module in MORE_ON_POSTGRES else pytest.mark.long
        marks = () if module in QUICK_ON_POSTGRES else marks
        metafunc.parametrize("kind_of_store", ["sqlite", pytest.param("postgres", marks=marks)], indirect=True)


@pytest.fixture(autouse=True)
def kind_of_store(request: pytest.FixtureRequest, aver_home: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Which store `open_ledger()` opens: a file in the home, or a database of the test's own."""
    kind = str(getattr(request, "param", "sqlite"))
    if kind == "postgres":
        new_database: Callable[[], str] = request.getfixturevalue("new_database")
        monkeypatch.setenv("AVER_LEDGER", new_database())
    return kind


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server. What it would lose in a power cut does not matter to tests that do not cut the power."""
    from support.postgres_servers import SERVER_ENV, Server, started

    if given := os.environ.get(SERVER_ENV):
        lent = Server(None, given)
        yield lent
        lent.drop_all()
        return
    server = started(fsync="off", max_connections="200")
    yield server
    server.remove()


@pytest.fixture
def new_database(postgres: Server) -> Iterator[Callable[[], str]]:
    """Makes databases with Aver's tables and nothing in them, and gives their URLs."""
    made: list[str] = []

    def make() -> str:
        made.append(postgres.lend())
        return postgres.url(made[-1])

    yield make
    for database in made:
        postgres.take_back(database)


@pytest.fixture
def new_ledger_url(request: pytest.FixtureRequest, kind_of_store: str, tmp_path: Path) -> Callable[[], str]:
    """Gives URLs of further ledgers in the same kind of store; they do not exist yet."""
    if kind_of_store == "postgres":
        made: Callable[[], str] = request.getfixturevalue("new_database")
        return made
    numbers = iter(range(1000))
    return lambda: str(tmp_path / f"further{next(numbers)}.db")


@pytest.fixture
def ledger(aver_home: Path) -> Iterator[Ledger]:
    with open_ledger() as opened:
        yield opened


@pytest.fixture
def filled(ledger: Ledger) -> Ledger:
    fill(ledger)
    return ledger


@pytest.fixture
def bundle(filled: Ledger, tmp_path: Path) -> Path:
    return export_bundle(filled, tmp_path / "bundle").path


@pytest.fixture
def other(tmp_path: Path, new_ledger_url: Callable[[], str]) -> Iterator[Ledger]:
    """A ledger of someone else, with keys of its own."""
    home = tmp_path / "other-home"
    home.mkdir()
    with open_ledger(new_ledger_url(), home=home) as opened:
        yield opened


@pytest.fixture(scope="session")
def vectors() -> Path:
    """The published vectors, which lie beside the repository and are never copied into it."""
    found = REPOSITORY.parent / "shared" / "vectors" / "cps"
    if not found.is_dir():
        pytest.skip(f"the published vectors of CPS are not at {found}; our own corpus in tests/conformance is run")
    return found
