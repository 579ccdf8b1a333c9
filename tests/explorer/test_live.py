"""The live stream: what it tells first, what it tells when the ledger changes, and how a client comes back."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from aver import Capsule, Ledger, open_ledger
from aver.explorer import live
from aver.explorer.moments import Moments, compare_moments
from aver.gate.approvals import deny
from aver.ledger.stores.protocol import ChainRow
from support.approvals import SHOWN, enrolled, opened, somebody
from support.explorer_servers import API, ServedExplorer, serve

pytestmark = pytest.mark.both_stores

NextEvent = Callable[[], tuple[str, str, Any]]


@pytest.fixture
def served(filled: Ledger, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedExplorer]:
    monkeypatch.setattr(live, "LOOK_SECONDS", 0.05)
    with serve(filled) as running:
        yield running


def draft() -> Capsule:
    return Capsule(type="tool", trigger={"source": "test", "request": "run"})


def read_until(next_event: NextEvent, wanted: str) -> tuple[str, Any]:
    """The id and data of the next event of one name."""
    while True:
        name, event_id, data = next_event()
        if name == wanted:
            return event_id, data


def test_stream_begins_with_what_is_there(served: ServedExplorer) -> None:
    moment = served.get("chains")["moment"]
    with served.live() as next_event:
        events = {name: (event_id, data) for name, event_id, data in (next_event() for _ in range(3))}
    assert set(events) == {"heads", "approvals", "index"}
    assert events["heads"] == (moment, {"moment": moment, "changed": [], "gone": [], "reread": True})
    assert events["approvals"][1] == {"waiting": 0, "requests": [], "problem": None}


def test_new_records_are_told(served: ServedExplorer, filled: Ledger) -> None:
    with served.live() as next_event:
        read_until(next_event, "heads")
        # Another process writes: it has connections of its own.
        with open_ledger(create=False) as other:
            record = other.append("demo.new", draft())
        event_id, data = read_until(next_event, "heads")
        assert data["changed"] == [
            {"name": "demo.new", "count": 1, "head": record.hash, "frozen": False, "origin": None}
        ]
        assert (data["reread"], data["gone"], data["moment"]) == (False, [], event_id)
        filled.append("demo.new", draft())
        assert [chain["count"] for chain in read_until(next_event, "heads")[1]["changed"]] == [2]
    assert served.get("chains")["total"] == len(filled.chains())


def test_client_that_comes_back_gets_what_it_missed(served: ServedExplorer, filled: Ledger) -> None:
    with served.live() as next_event:
        last_id, _ = read_until(next_event, "heads")
    filled.append("demo.first", draft())
    filled.append("demo.second", draft())
    with served.live(last_id) as next_event:
        event_id, data = read_until(next_event, "heads")
        assert ({chain["name"] for chain in data["changed"]}, data["reread"]) == ({"demo.first", "demo.second"}, False)
    with served.live(event_id) as next_event:  # It has missed nothing.
        assert read_until(next_event, "heads") == (
            event_id,
            {"moment": event_id, "changed": [], "gone": [], "reread": False},
        )
    for unknown in ("0" * 32, "x", "%00"):
        with served.live(unknown) as next_event:
            assert read_until(next_event, "heads")[1]["reread"] is True


def test_moment_of_the_chains_can_be_resumed(served: ServedExplorer, filled: Ledger) -> None:
    """A page reads the chains first, and then asks for all that came after them."""
    moment = served.get("chains")["moment"]
    filled.append("demo.between", draft())
    with served.live(moment) as next_event:
        assert [chain["name"] for chain in read_until(next_event, "heads")[1]["changed"]] == ["demo.between"]


def test_many_changes_are_read_anew(served: ServedExplorer, filled: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "CHANGES_MAX", 1)
    moment = served.get("chains")["moment"]
    filled.append("demo.one", draft())
    filled.append("demo.two", draft())
    with served.live(moment) as next_event:
        assert read_until(next_event, "heads")[1] | {"moment": ""} == {
            "moment": "",
            "changed": [],
            "gone": [],
            "reread": True,
        }


def test_requests_for_approval_are_told(served: ServedExplorer, filled: Ledger) -> None:
    ada = somebody("ada")
    with served.live() as next_event:
        assert read_until(next_event, "approvals")[1]["waiting"] == 0
        enrolled(filled, ada)
        request = opened(filled)
        data: dict[str, Any] = {"waiting": 0}
        while not data["waiting"]:
            data = read_until(next_event, "approvals")[1]
        assert data == {"waiting": 1, "requests": [request.id], "problem": None}
        deny(filled, request, ada, shown=SHOWN)
        assert read_until(next_event, "approvals")[1]["waiting"] == 0


def test_quiet_stream_shows_that_it_lives(served: ServedExplorer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "COMMENT_SECONDS", 0.1)
    head = f"GET {API}live HTTP/1.1\r\nHost: localhost:{served.port}\r\n"
    head += f"Authorization: Bearer {served.server.token}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", served.port), timeout=60) as connection:
        connection.sendall(head.encode())
        received = b""
        while received.count(live.COMMENT) < 3:
            received += connection.recv(65536)
    assert b"content-type: text/event-stream" in received


@pytest.mark.sqlite
def test_stream_ends_when_the_ledger_is_gone(served: ServedExplorer, aver_home: Path) -> None:
    with served.live() as next_event:
        for _ in range(3):
            next_event()
        moved = (aver_home / "ledger.db").rename(aver_home / "elsewhere.db")
        with pytest.raises((EOFError, ValueError, OSError)):  # noqa: PT012 - the index may tell of its progress first
            while True:
                next_event()
    assert served.ask(f"{API}live").status == 503
    moved.rename(aver_home / "ledger.db")
    with served.live() as next_event:
        assert read_until(next_event, "heads")[1]["moment"]


@pytest.mark.sqlite
def test_server_ends_with_open_streams(filled: Ledger) -> None:
    with serve(filled) as served:
        with served.live() as next_event:
            next_event()
            served.server.stop()
            with suppress(EOFError, ValueError, OSError):
                while next_event():
                    pass
    assert served.server._uvicorn is not None
    assert served.server._uvicorn.started


@pytest.mark.sqlite
def test_moments_are_compared_and_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = Moments()
    first = moments.add([ChainRow(1, "default", "a.a", 1, "0" * 64), ChainRow(2, "default", "a.b", 1, "1" * 64)])
    assert (
        moments.add([ChainRow(1, "default", "a.a", 1, "0" * 64), ChainRow(2, "default", "a.b", 1, "1" * 64)]) == first
    )
    second = moments.add([ChainRow(1, "default", "a.a", 2, "2" * 64), ChainRow(3, "default", "a.c", 1, "3" * 64)])
    difference = compare_moments(first, second)
    assert [chain.name for chain in difference.changed] == ["a.a", "a.c"]
    assert difference.gone == ("a.b",)
    for number in range(100):
        moments.add([ChainRow(1, "default", "a.a", number, "4" * 64)])
    assert moments.find(first.id) is None


def test_mark_changes_with_every_commit(ledger: Ledger) -> None:
    ledger.append("demo.mark", draft())
    mark = ledger.store.change_mark()
    assert ledger.store.change_mark() == mark
    ledger.append("demo.mark", draft())
    second = ledger.store.change_mark()
    assert second != mark
    with open_ledger(create=False) as other:
        other.append("demo.mark", draft())
    assert ledger.store.change_mark() != second


@pytest.mark.sqlite
def test_rotated_key_is_told_and_the_server_goes_on(served: ServedExplorer, filled: Ledger) -> None:
    before = served.get("about")["keys_sha256"]
    with served.live() as next_event:
        read_until(next_event, "heads")
        filled.keys.rotate("ledger")
        filled.record_keys()
        assert {chain["name"] for chain in read_until(next_event, "heads")[1]["changed"]} == {"keys"}
    assert served.get("about")["keys_sha256"] != before
    assert [key["status"] for key in served.get("keys")["keys"]] == ["retired", "active"]


@pytest.mark.sqlite
def test_question_for_the_head_of_a_stream_ends(served: ServedExplorer) -> None:
    answer = served.ask(f"{API}live", "HEAD")
    assert (answer.status, answer.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")


@pytest.mark.sqlite
def test_defect_ends_the_stream_and_does_not_silence_it(
    served: ServedExplorer, filled: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served.live() as next_event:
        for _ in range(3):
            next_event()
        monkeypatch.setattr(filled.store, "change_mark", lambda: 1 / 0)
        with suppress(EOFError, ValueError, OSError):
            while next_event():
                pass
    answer = served.ask(f"{API}live")
    assert (answer.status, answer.document["message"]) == (503, "internal error: ZeroDivisionError")
    monkeypatch.undo()
    with served.live() as next_event:
        assert read_until(next_event, "heads")[1]["moment"]


def test_no_change_is_lost_between_two_events(served: ServedExplorer, filled: Ledger) -> None:
    """A writer appends as fast as it can. In the end, the changes that were told add up to what is there."""
    known = {chain["name"]: chain["count"] for chain in served.get("chains?limit=500")["chains"]}
    with served.live(served.get("chains")["moment"]) as next_event:
        for number in range(30):
            filled.append(f"demo.{number % 3}", draft())
        expected = {head.chain: head.count for head in filled.heads()}
        while known != expected:
            _, data = read_until(next_event, "heads")
            known |= {chain["name"]: chain["count"] for chain in data["changed"]}
