"""Names of chains and keys: no id, however it was made, has those of another or of what Aver tells itself."""

from __future__ import annotations

import pytest

from aver.capsule.block import check_chain_name, check_key
from aver.ingest.drafting import chain_of, key_of, own_key

HOSTILE = ("", "../../x", "a.b", "a:b", "x" * 300, "meta", "keys", "a b", "\u202eü", "\n", "\ud800", "x-" + "0" * 32)


@pytest.mark.parametrize("name", HOSTILE)
def test_every_id_gives_a_chain_and_a_key(name: str) -> None:
    assert check_chain_name(chain_of("tool", name or "s", name)).count(".") <= 2
    assert check_key(key_of("tool", name, name))


def test_no_session_has_the_chain_of_another() -> None:
    long = "y" * 300
    pairs = [
        (session, agent) for session in (*HOSTILE[1:], "a", long) for agent in ("", "b", "b.c", *HOSTILE[1:], long)
    ]
    pairs += [(chain_of("tool", session, agent).partition(".")[2], "") for session, agent in pairs]
    assert len({chain_of("tool", *pair) for pair in pairs}) >= len(
        {pair for pair in pairs if pair[1] or "." in pair[0]}
    )
    assert chain_of("tool", "a.b") != chain_of("tool", "a", "b")
    assert chain_of("tool", chain_of("tool", long).partition(".")[2]) != chain_of("tool", long)


def test_no_id_gives_the_key_of_another_session() -> None:
    assert key_of("tool", "a:b", "c") != key_of("tool", "a", "b:c")
    digest = key_of("tool", "a", "x" * 300).rpartition(":")[2]
    assert key_of("tool", "a", digest) != key_of("tool", "a", "x" * 300)


@pytest.mark.parametrize("ending", [":transcript", ":hook", ":launched", "@tool.a.b", "@tool.a.b:transcript"])
def test_no_id_gives_a_key_under_which_something_is_added(ending: str) -> None:
    assert key_of("tool", "a", f"c1{ending}") != key_of("tool", "a", "c1") + ending


@pytest.mark.parametrize("name", ["read:1:00", "cut:00", "changed:00"])
def test_no_id_gives_a_key_of_what_aver_tells(name: str) -> None:
    assert key_of("tool", "a", name) != own_key("tool", "a", name)
