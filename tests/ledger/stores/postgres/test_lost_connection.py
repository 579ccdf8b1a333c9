"""A line that breaks in the middle of a commit: exactly once all the same, and never "not written" when it was."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from aver import Capsule, Entry, Ledger, Unavailable, open_ledger
from aver.ledger.bundle import export_bundle, import_bundle
from support.postgres_servers import Server
from support.postgres_wire import FAULTS, Fault, Wire

pytestmark = pytest.mark.more

CHAIN = "demo.wire"


@pytest.fixture
def wire(postgres: Server) -> Iterator[Wire]:
    with Wire(postgres.socket) as laid:
        yield laid


@pytest.fixture
def behind(url: str, wire: Wire, postgres: Server, aver_home: Path) -> Iterator[Ledger]:
    """The ledger by way of the wire, and impatient: an answer that does not come is given up after two seconds."""
    aver_home.mkdir(mode=0o700)
    (aver_home / "config.toml").write_text("lock_timeout = 1\n")
    database = url.partition("?")[0].rpartition("/")[2]
    with open_ledger(postgres.url(database, **wire.options)) as opened:
        yield opened


def stored(ledger: Ledger, chain: str = CHAIN) -> list[str]:
    return [record.hash for record in ledger.read(chain)]


@pytest.mark.sample(3)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("key", [None, "k"])
def test_a_lone_append(behind: Ledger, ledger: Ledger, wire: Wire, fault: Fault, key: str | None) -> None:
    behind.append(CHAIN, Capsule(type="tool"))
    wire.strike(fault)
    sealed = behind.append(CHAIN, Capsule(type="tool"), key=key)
    assert wire.happened.is_set()
    assert stored(ledger)[1:] == [sealed.hash]
    assert behind.append(CHAIN, Capsule(type="tool")).sequence == 2
    assert ledger.verify().status == "verified"


@pytest.mark.parametrize("fault", FAULTS)
def test_the_first_append_of_all(behind: Ledger, ledger: Ledger, wire: Wire, fault: Fault) -> None:
    """The chain, and the chain of keys, come into being in the very transaction whose answer is lost."""
    wire.strike(fault)
    sealed = behind.append(CHAIN, Capsule(type="tool"))
    assert stored(ledger) == [sealed.hash]
    assert len(stored(ledger, "keys")) == 1
    assert ledger.verify().status == "verified"


@pytest.mark.parametrize("fault", FAULTS)
def test_many_at_once(behind: Ledger, ledger: Ledger, wire: Wire, fault: Fault) -> None:
    behind.append(CHAIN, Capsule(type="tool"))
    wire.strike(fault)
    keys = [f"k{number}" for number in range(50)]
    sealed = behind.append_many(CHAIN, [Capsule(type="tool") for _ in keys], keys=keys)
    assert stored(ledger)[1:] == [record.hash for record in sealed]
    assert not any(record.existed for record in sealed)
    assert ledger.verify().status == "verified"


@pytest.mark.sample(3)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("count", [2, 20])
def test_several_chains_at_once(behind: Ledger, ledger: Ledger, wire: Wire, fault: Fault, count: int) -> None:
    """Few records travel with the commit, many before it. One of the chains comes into being by this call."""
    behind.append(CHAIN, Capsule(type="tool"))
    wire.strike(fault)
    chains = [CHAIN, "demo.new"] * (count // 2)
    sealed = behind.append_together([Entry(chain, Capsule(type="tool")) for chain in chains])
    assert wire.happened.is_set()
    assert stored(ledger)[1:] == [record.hash for record in sealed[::2]]
    assert stored(ledger, "demo.new") == [record.hash for record in sealed[1::2]]
    assert ledger.verify().status == "verified"


@pytest.mark.parametrize("fault", FAULTS)
def test_an_import(ledger: Ledger, behind: Ledger, wire: Wire, fault: Fault, tmp_path: Path) -> None:
    """Work that is done only once: it was done, or it fails and nothing of it is there."""
    with open_ledger(tmp_path / "theirs.db") as theirs:
        theirs.append_many("their.chain", [Capsule(type="tool") for _ in range(5)])
        bundle = export_bundle(theirs, tmp_path / "bundle", chains=["their.chain"]).path
    behind.append(CHAIN, Capsule(type="tool"))
    wire.strike(fault)
    if fault in ("cut before", "hold the commit"):
        with pytest.raises(Unavailable, match="nothing was recorded"):
            import_bundle(behind, bundle)
        assert not any(name.endswith("their.chain") for name in ledger.chains())
    import_bundle(behind, bundle)
    (imported,) = (name for name in ledger.chains() if name.endswith(".their.chain"))
    assert ledger.head(imported).count == 5
    assert ledger.verify().first_bad is None


def test_while_the_server_cannot_be_asked_it_is_not_known(behind: Ledger, ledger: Ledger, wire: Wire) -> None:
    behind.append(CHAIN, Capsule(type="tool"))
    wire.strike("cut after")
    wire.is_down = True
    with pytest.raises(Unavailable, match="cannot tell whether") as caught:
        behind.append(CHAIN, Capsule(type="tool"), key="k")
    assert "key or id" in caught.value.advice
    wire.is_down = False
    assert ledger.head(CHAIN).count == 2
    assert behind.get("k") is not None  # and the ledger works again


def test_dead_connections_are_replaced(behind: Ledger, wire: Wire) -> None:
    """Several of them, idle, and all dead at once."""
    behind.append(CHAIN, Capsule(type="tool"))
    start = threading.Barrier(6)

    def read() -> None:
        start.wait()
        for _ in range(5):
            list(behind.read(CHAIN))

    for _ in range(2):
        threads = [threading.Thread(target=read) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        wire.cut()
        assert behind.head(CHAIN).count == 1
    wire.cut()
    assert behind.append(CHAIN, Capsule(type="tool")).sequence == 1
    wire.cut()
    assert behind.verify().status == "verified"


def test_a_server_that_is_gone_fails_and_comes_back(behind: Ledger, wire: Wire) -> None:
    behind.append(CHAIN, Capsule(type="tool"))
    wire.is_down = True
    wire.cut()
    for call in (lambda: behind.append(CHAIN, Capsule(type="tool")), lambda: list(behind.read(CHAIN)), behind.verify):
        with pytest.raises(Unavailable) as caught:
            call()
        assert "127.0.0.1" in str(caught.value)
    wire.is_down = False
    assert behind.append(CHAIN, Capsule(type="tool")).sequence == 1
    assert behind.verify().status == "verified"
