"""Names of chains and keys: no id, however it was made, has those of another or of what Aver tells itself."""

from __future__ import annotations

import pytest

from aver.capsule.aver_block import check_chain_name, check_idempotency_key
from aver.ingest.draft import event_key, note_key, session_chain_name

HOSTILE = ("", "../../x", "a.b", "a:b", "x" * 300, "meta", "keys", "a b", "\u202eü", "\n", "\ud800", "x-" + "0" * 32)


@pytest.mark.parametrize("name", HOSTILE)
def test_every_id_gives_a_chain_and_a_key(name: str) -> None:
    assert check_chain_name(session_chain_name("tool", name or "s", name)).count(".") <= 2
    assert check_idempotency_key(event_key("tool", name, name))


def test_no_session_has_the_chain_of_another() -> None:
    long = "y" * 300
    pairs = [
        (session, agent) for session in (*HOSTILE[1:], "a", long) for agent in ("", "b", "b.c", *HOSTILE[1:], long)
    ]
    pairs += [(session_chain_name("tool", session, agent).partition(".")[2], "") for session, agent in pairs]
    assert len({session_chain_name("tool", *pair) for pair in pairs}) >= len(
        {pair for pair in pairs if pair[1] or "." in pair[0]}
    )
    assert session_chain_name("tool", "a.b") != session_chain_name("tool", "a", "b")
    assert session_chain_name("tool", session_chain_name("tool", long).partition(".")[2]) != session_chain_name(
        "tool", long
    )


def test_no_id_gives_the_key_of_another_session() -> None:
    assert event_key("tool", "a:b", "c") != event_key("tool", "a", "b:c")
    digest = event_key("tool", "a", "x" * 300).rpartition(":")[2]
    assert event_key("tool", "a", digest) != event_key("tool", "a", "x" * 300)


@pytest.mark.parametrize("ending", [":transcript", ":hook", ":launched", "@tool.a.b", "@tool.a.b:transcript"])
def test_no_id_gives_a_key_under_which_something_is_added(ending: str) -> None:
    assert event_key("tool", "a", f"c1{ending}") != event_key("tool", "a", "c1") + ending


@pytest.mark.parametrize("name", ["read:1:00", "cut:00", "changed:00"])
def test_no_id_gives_a_key_of_what_aver_tells(name: str) -> None:
    assert event_key("tool", "a", name) != note_key("tool", "a", name)
