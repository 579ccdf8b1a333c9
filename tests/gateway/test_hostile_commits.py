"""COMMITs by `tx_id`, and calls at once, that try to make more of what the user asked for."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aver.errors import Refused
from aver.gateway.calls.upstream import FunctionTools
from support.acts import Office, open_office

BOB = "bob@shop.example"


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    with open_office(tmp_path / "work") as opened:
        yield opened


def call(office: Office, session: str, intent: str, **inputs: Any) -> dict[str, Any]:
    return office.act(intent, inputs, door=office.gateway.door.__class__(session=session))


def preview(office: Office, session: str, tool: str, **arguments: Any) -> str:
    found = call(office, session, "CheckCallTool", server="desk", tool=tool, arguments=arguments)
    assert found["reason_code"] == "ALLOW", found
    return str(found["data"]["tx_id"])


def test_one_message_that_was_previewed_twice_is_sent_once(office: Office) -> None:
    sent: list[str] = []
    office.gateway.connect("desk", FunctionTools({"send_message": lambda to, text: sent.append(to)}))
    session = office.gateway.open_session(f"Send a message to {BOB}.").session
    made = [preview(office, session, "send_message", to=BOB, text="hi") for _ in range(3)]
    codes = [call(office, session, "CallTool", tx_id=each)["reason_code"] for each in made]
    assert codes == ["ALLOW", "REQUIRE_CONFIRM", "REQUIRE_CONFIRM"]
    assert sent == [BOB]
    assert office.ledger.verify().status == "verified"


def test_a_preview_ends_with_the_words_that_asked_for_it(office: Office) -> None:
    sent: list[str] = []
    office.gateway.connect("desk", FunctionTools({"send_message": lambda to, text: sent.append(to)}))
    session = office.gateway.open_session(f"Send a message to {BOB}.").session
    made = preview(office, session, "send_message", to=BOB, text="hi")
    office.gateway.open_session("Stop. Delete the draft, and do not send anything.", session=session)
    assert call(office, session, "CallTool", tx_id=made)["reason_code"] != "ALLOW"
    assert sent == []


def test_the_same_call_at_once_happens_once(office: Office) -> None:
    """All calls are judged before the first result comes."""
    sent: list[str] = []
    is_sent, goes_on = threading.Event(), threading.Event()

    def send(to: str, text: str) -> None:
        sent.append(to)
        if len(sent) == 1:
            is_sent.set()
            goes_on.wait()

    office.gateway.connect("desk", FunctionTools({"send_message": send}))
    session = office.gateway.open_session(f"Send a message to {BOB}.").session
    inputs = {"server": "desk", "tool": "send_message", "arguments": {"to": BOB, "text": "hi"}}
    first = threading.Thread(target=lambda: call(office, session, "CallTool", **inputs))
    first.start()
    is_sent.wait()
    try:
        assert call(office, session, "CallTool", **inputs)["reason_code"] == "REQUIRE_CONFIRM"
    finally:
        goes_on.set()
        first.join()
    assert sent == [BOB]


def test_a_call_that_failed_may_be_made_again(office: Office) -> None:
    sent: list[str] = []

    def send(to: str, text: str) -> None:
        sent.append(to)
        if len(sent) == 1:
            raise OSError("the line is busy")

    office.gateway.connect("desk", FunctionTools({"send_message": send}))
    session = office.gateway.open_session(f"Send a message to {BOB}.").session
    inputs = {"server": "desk", "tool": "send_message", "arguments": {"to": BOB, "text": "hi"}}
    preview(office, session, "send_message", to=BOB, text="hi")
    call(office, session, "CallTool", **inputs)
    assert call(office, session, "CallTool", **inputs)["reason_code"] == "ALLOW"
    assert call(office, session, "CallTool", **inputs)["reason_code"] == "REQUIRE_CONFIRM"


def test_a_call_of_which_nobody_knows_whether_it_happened_counts(office: Office) -> None:
    sent: list[str] = []

    def send(to: str, text: str) -> None:
        sent.append(to)
        raise Refused("OUTCOME_UNKNOWN", "no answer came")

    office.gateway.connect("desk", FunctionTools({"send_message": send}))
    session = office.gateway.open_session(f"Send a message to {BOB}.").session
    inputs = {"server": "desk", "tool": "send_message", "arguments": {"to": BOB, "text": "hi"}}
    assert call(office, session, "CallTool", **inputs)["reason_code"] == "OUTCOME_UNKNOWN"
    assert call(office, session, "CallTool", **inputs)["reason_code"] == "REQUIRE_CONFIRM"
    assert sent == [BOB]
