"""What must hold of a session of a real client, whichever it is: all of it by the real commands and the real ledger."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from aver import open_ledger
from support.clients.rooms import STOLEN, Room, sealed_under
from support.clients.stub_server import StubServer

__all__ = ["agrees_with_transcript", "calls_by_hook", "failures_are_sealed", "nothing_got_out", "proved"]


def nothing_got_out(room: Room, stub: StubServer) -> None:
    """The command that was denied did not run, not even in part, and nobody asked for another machine."""
    assert not (room.workspace / STOLEN).exists()
    assert stub.refused_count == []


def calls_by_hook(tool: str, session: str, agent: str = "") -> dict[str, dict[str, Any]]:
    """What hooks sealed of calls: by the call's id, the call with its outcome. There was no transcript to rest on."""
    prefix = f"{tool}:{session}:"
    found: dict[str, dict[str, Any]] = {}
    with open_ledger() as ledger:
        for record in ledger.read(f"{tool}.{session}{agent and '.'}{agent}"):
            content = record.to_dict()
            environment = content["context"]["environment"]
            if environment["aver"]["kind"] != "call":
                continue
            assert "transcript" not in environment
            key = environment["aver"]["key"]
            assert key.startswith(prefix)
            found[key.removeprefix(prefix)] = {**content["execution"]["tool_calls"][0], "outcome": content["outcome"]}
    return found


def agrees_with_transcript(tool: str, session: str, calls: Collection[str]) -> None:
    """The transcript's account of each call is sealed as a child of the hook's, and is the same."""
    for call in calls:
        first = sealed_under(f"{tool}:{session}:{call}")
        child = sealed_under(f"{tool}:{session}:{call}:transcript")
        assert child["parent_id"] == first["id"]
        assert child["outcome"]["result"]["agrees"] is True, child["outcome"]["result"]
        assert child["context"]["environment"]["transcript"]["records"]


def failures_are_sealed(tool: str, session: str) -> None:
    """That hooks failed in a session is sealed in its chain, for each of its events."""
    with open_ledger() as ledger:
        summaries = [record.to_dict()["outcome"]["summary"] for record in ledger.read(f"{tool}.{session}")]
    for event in ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd"):
        assert any(words.startswith(f"hook {event} failed") for words in summaries), event


def proved(room: Room, tool: str, session: str, *, actions: int, denials: int) -> dict[str, Any]:
    """The session stands: held to its transcript, verified, listed and told. Gives how it is listed."""
    reconciled = room.told("reconcile", session)
    assert reconciled["status"] == "verified", reconciled["findings"]
    counts = reconciled["reconciled"]
    assert counts.pop("sealed_and_seen") > actions
    assert set(counts.values()) == {0}, counts

    verified = room.told("verify")
    assert verified["status"] == "verified", verified["findings"]

    (listed,) = room.told("sessions")["sessions"]
    assert (listed["tool"], listed["session"]) == (tool, session)
    assert (listed["actions"], listed["denials"], listed["unknown"]) == (actions, denials, 0)
    assert listed["verdict"]["status"] == "verified"
    assert min(listed["tokens_in"], listed["tokens_out"]) > 0
    return listed
