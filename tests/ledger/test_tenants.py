"""Tenants: nothing of one can be read, found, counted or blocked through another."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from aver import BadInput, Blob, Capsule, Ledger, NotFound, Sealed, open_ledger
from aver.ledger.ledger import list_tenants

pytestmark = pytest.mark.both_stores

CHAIN = "demo.same"
SECRET = Blob(b"the other tenant's secret")


@pytest.fixture
def alice() -> Iterator[Ledger]:
    with open_ledger(tenant="alice") as opened:
        yield opened


@pytest.fixture
def bob() -> Iterator[Ledger]:
    with open_ledger(tenant="bob") as opened:
        yield opened


@pytest.fixture
def secret(bob: Ledger) -> Sealed:
    draft = Capsule(type="tool", context={"session_id": "s"}, outcome={"result": SECRET.reference})
    return bob.append(CHAIN, draft, key="k", blobs=[SECRET])


def test_nothing_of_another_tenant_is_visible(alice: Ledger, bob: Ledger, secret: Sealed) -> None:
    bob.close_chain(CHAIN)
    assert alice.chains() == []
    assert alice.heads() == []
    assert alice.head(CHAIN).count == 0
    assert list(alice.find()) == []
    assert list(alice.find(session="s")) == []
    for reference in (secret.hash, secret.id, "k", secret.uri, f"capsule://{CHAIN}/0", f"capsule://{secret.id}"):
        assert alice.get(reference) is None
    for call in (lambda: alice.read(CHAIN), lambda: alice.blob(SECRET.digest), lambda: alice.verify(CHAIN)):
        with pytest.raises(NotFound):
            call()
    with pytest.raises(NotFound):
        alice.close_chain(CHAIN)
    assert alice.verify().status == "empty"
    assert alice.verify().records == 0


def test_a_blob_of_another_tenant_cannot_be_referred_to(alice: Ledger, secret: Sealed) -> None:
    """Otherwise a digest alone would tell whether someone else has the file."""
    with pytest.raises(BadInput):
        alice.append(CHAIN, Capsule(type="tool", outcome={"result": SECRET.reference}))


def test_the_same_names_and_keys_in_both(alice: Ledger, bob: Ledger, secret: Sealed) -> None:
    mine = alice.append(CHAIN, Capsule(type="tool", outcome={"result": SECRET.reference}), key="k", blobs=[SECRET])
    assert mine.sequence == 0
    assert mine.hash != secret.hash
    assert alice.get("k") == mine
    assert bob.get("k") == secret
    assert alice.verify().status == bob.verify().status == "verified"
    assert [len(list(ledger.find())) for ledger in (alice, bob)] == [2, 2]
    assert list_tenants() == ["alice", "bob"]


def test_the_same_record_id_in_both(alice: Ledger, bob: Ledger, secret: Sealed) -> None:
    alice.append(CHAIN, Capsule(type="tool", id=secret.id))
    assert alice.verify().status == bob.verify().status == "verified"


def test_a_fault_in_one_is_not_a_fault_in_the_other(alice: Ledger, bob: Ledger, secret: Sealed) -> None:
    from support.tamper import first_bad, unguarded

    alice.append(CHAIN, Capsule(type="tool"))
    unguarded(bob).execute("UPDATE records SET signature = '' WHERE hash = ?", (secret.hash,))
    assert first_bad(bob.verify()) == ("SIG_MISSING", CHAIN, 0)
    assert alice.verify().status == "verified"


def test_a_head_of_another_tenant_is_refused(alice: Ledger, bob: Ledger, secret: Sealed) -> None:
    with pytest.raises(BadInput):
        alice.append(CHAIN, Capsule(type="tool"), after=bob.head(CHAIN))
    alice.append(CHAIN, Capsule(type="tool"))
    with pytest.raises(BadInput):
        alice.verify(CHAIN, since=bob.head(CHAIN))


@pytest.mark.parametrize("tenant", ["", "a b", "../x", "é", "x" * 65, ".x", "a\x00", "a/b", "a'--"])
def test_bad_tenant_names(tenant: str) -> None:
    with pytest.raises(BadInput):
        open_ledger(tenant=tenant).close()
