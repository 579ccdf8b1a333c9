"""Cursor: its database read in place, each bubble once when it is final; transcripts where there is no database."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.agents.cursor.conversations import ADAPTER
from aver.agents.cursor.database import list_conversations
from aver.files.user_dirs import UserEnvironment
from aver.ingest.contract import AgentEvent, TranscriptSource, record_from_bytes
from aver.ledger import open_ledger
from support import memory_peaks as peaks
from support.agents import cursor_stores as stores
from support.agents.cursor_stores import (
    CONVERSATION,
    MODEL,
    Store,
    asked,
    called,
    database_of,
    line,
    said,
    surroundings,
    transcript,
)
from support.agents.follow import Follower


@pytest.fixture
def around(tmp_path: Path) -> UserEnvironment:
    return surroundings(tmp_path)


@pytest.fixture
def store(around: UserEnvironment) -> Iterable[Store]:
    opened = Store(database_of(around))
    yield opened
    opened.close()


def only(around: UserEnvironment) -> TranscriptSource:
    (source,) = ADAPTER.locate(around)
    return source


def deeds_of(around: UserEnvironment) -> list[AgentEvent]:
    return Follower(ADAPTER, only(around)).step()


def of(events: Iterable[AgentEvent], key: str) -> AgentEvent:
    (found,) = [event for event in events if event.key == key]
    return found


def call_of(around: UserEnvironment, store: Store, bubble: dict[str, Any]) -> AgentEvent:
    store.conversation(asked("u", "go"), bubble)
    return of(deeds_of(around), bubble["toolFormerData"]["toolCallId"])


# --- where


@pytest.mark.parametrize(
    ("platform", "below"),
    [
        ("linux", ".config/Cursor/User"),
        ("darwin", "Library/Application Support/Cursor/User"),
        ("win32", "AppData/Roaming/Cursor/User"),
    ],
)
def test_conversations_are_found_on_every_system(tmp_path: Path, platform: str, below: str) -> None:
    around = surroundings(tmp_path, platform)
    path = tmp_path / below / "globalStorage" / "state.vscdb"
    opened = Store(path)
    opened.conversation(asked("u", "hello"))
    opened.conversation(asked("v", "again"), identity="second")
    found = list(ADAPTER.locate(around))
    assert [(source.session, source.path, source.appends) for source in found] == [
        (CONVERSATION, path, False),
        ("second", path, False),
    ]
    assert path.parent in ADAPTER.places(around)
    opened.close()


def test_nothing_there_is_nothing_found(around: UserEnvironment) -> None:
    assert list(ADAPTER.locate(around)) == []
    database_of(around).parent.mkdir(parents=True)
    database_of(around).write_bytes(b"not a database at all, but long enough to look like one")
    assert list(ADAPTER.locate(around)) == []
    source = TranscriptSource(tool="cursor", session="x", path=database_of(around), appends=False)
    assert list(ADAPTER.read(source)()) == []


def test_a_subagent_has_a_chain_of_its_own_below_its_parent(around: UserEnvironment) -> None:
    opened = Store(database_of(around), headers=True)
    opened.conversation(
        asked("u", "look around"),
        called("t", "task_v2", {"subagent_type": "explore", "prompt": "look"}, {"agentId": "sub-1"}),
    )
    opened.conversation(asked("u", "look"), identity="sub-1")
    info = {"subagentInfo": {"parentComposerId": CONVERSATION, "toolCallId": "toolu_t"}}
    opened.connection.execute("INSERT INTO composerHeaders VALUES ('sub-1', 1, ?)", (json.dumps(info),))
    found = {(source.session, source.agent): source for source in ADAPTER.locate(around)}
    assert set(found) == {(CONVERSATION, ""), (CONVERSATION, "sub-1")}
    assert found[CONVERSATION, "sub-1"].launched_by == "toolu_t"
    launch = of(Follower(ADAPTER, found[CONVERSATION, ""]).step(), "toolu_t")
    assert launch.launched == "sub-1"
    assert launch.side_effects == ("delegated to explore",)
    assert [
        event.text for event in Follower(ADAPTER, found[CONVERSATION, "sub-1"]).step() if event.what == "prompt"
    ] == ["look"]
    opened.close()


# --- what they say


def test_a_conversation_is_told_in_its_order(around: UserEnvironment, store: Store) -> None:
    store.conversation(
        asked("b9", "run the tests", requestId="r1"),
        said("b2", thinking={"text": "run pytest first", "signature": "Eq"}, thinkingDurationMs=1200),
        called("b5", "run_terminal_cmd", {"command": "pytest -q"}, {"output": "5 passed", "exitCode": 0}),
        said("b1", "All **green**.", turnDurationMs=3400, tokenCount={"inputTokens": 800, "outputTokens": 120}),
    )
    session, prompt, thought, call, answer = deeds_of(around)
    assert (session.what, session.title, session.model) == ("session", "Fix the parser", MODEL)
    assert session.environment["git_branch"] == "main"
    assert "c2VjcmV0" not in repr(session)
    assert (prompt.what, prompt.key, prompt.text, prompt.at) == (
        *("prompt", "b9", "run the tests"),
        "2026-05-30T10:00:00+00:00",
    )
    assert prompt.environment["request_id"] == "r1"
    assert (thought.key, thought.thinking, thought.duration_ms, thought.signatures) == (
        *("b2", "run pytest first", 1200),
        ("Eq",),
    )
    assert (call.key, call.what, call.summary) == ("toolu_b5", "call", "run_terminal_cmd: pytest -q")
    assert call.call is not None
    assert call.call.arguments == {"command": "pytest -q"}
    assert call.call.result == {"stdout": "5 passed", "exit_code": 0}
    assert call.call.ok is True
    assert call.side_effects == ("ran pytest -q",)
    assert call.environment["context_window"]["tokenLimit"] == 200000
    assert call.model == MODEL
    assert call.places == (f"bubbleId:{CONVERSATION}:b5",)
    assert (answer.text, answer.environment["turn_duration_ms"]) == ("All **green**.", 3400)
    assert answer.tokens is not None
    assert (answer.tokens.input, answer.tokens.output) == (800, 120)
    assert call.tokens is None
    for event in (thought, call, answer):
        assert event.prompt is not None
        assert (event.prompt.key, event.prompt.text) == ("b9", "run the tests")
        assert event.environment["mode"] == "agent"


def test_text_beside_a_call_is_not_lost(around: UserEnvironment, store: Store) -> None:
    bubble = called("b", "read_file_v2", {"targetFile": "a.py"}, {"contents": "a\nb\n"}, text="I look first.")
    event = call_of(around, store, {**bubble, "thinking": {"text": "hm"}})
    assert (event.text, event.thinking, event.summary) == ("I look first.", "hm", "read_file_v2: a.py (2 lines)")
    assert event.call is not None
    assert event.call.result == {"contents": "a\nb\n"}


def test_reasoning_that_is_not_kept_is_told_to_have_been(around: UserEnvironment, store: Store) -> None:
    store.conversation(asked("u", "go"), said("b", thinking={"text": "", "signature": "Eq" * 400}), said("c", "ok"))
    event = of(deeds_of(around), "b")
    assert event.redacted
    assert event.signatures == ("Eq" * 400,)


@pytest.mark.parametrize(
    ("status", "more", "result", "error"),
    [
        ("error", {}, {}, None),
        ("completed", {"additionalData": {"status": "error"}}, {"output": "x"}, None),
        ("completed", {}, {"output": "1 failed", "exitCode": 1}, "exit code 1"),
        ("completed", {}, {"output": "", "exitCodeV2": 127, "stderr": "no such"}, "exit code 127"),
        ("cancelled", {}, None, "cancelled"),
        ("completed", {}, {"error": {"clientVisibleErrorMessage": "no file"}}, "no file"),
    ],
)
def test_a_failure_is_a_failure(
    around: UserEnvironment, store: Store, status: str, more: dict[str, Any], result: Any, error: str | None
) -> None:
    event = call_of(around, store, called("b", "run_terminal_cmd", {"command": "x"}, result, status=status, call=more))
    assert event.call is not None
    assert (event.call.ok, event.call.error) == (False, error)
    assert event.side_effects == ()
    assert not event.allowed.denied


@pytest.mark.parametrize(
    ("status", "more", "result"),
    [
        ("completed", {"userDecision": "rejected"}, {"output": ""}),
        ("rejected", {}, None),
        ("completed", {}, {"rejected": True}),
    ],
)
def test_what_was_rejected_did_not_happen(
    around: UserEnvironment, store: Store, status: str, more: dict[str, Any], result: Any
) -> None:
    bubble = called("b", "run_terminal_cmd", {"command": "rm -r x"}, result, status=status, call=more)
    event = call_of(around, store, bubble)
    assert (event.allowed.by, event.allowed.reference, event.allowed.denied) == (
        "unknown",
        "rejected by the user",
        True,
    )
    assert event.call is not None
    assert event.call.ok is False
    assert event.side_effects == ()


@pytest.mark.parametrize("result", [{"rejected": True, "output": "done"}, {"rejected": True, "exitCode": 0}])
def test_a_command_that_ran_was_not_rejected(around: UserEnvironment, store: Store, result: Any) -> None:
    event = call_of(around, store, called("b", "run_terminal_cmd", {"command": "rm -r x"}, result))
    assert (event.allowed.denied, event.side_effects) == (False, ("ran rm -r x",))


@pytest.mark.parametrize("tool", ["mcp_db_drop", "read_file", "codebase_search", "web_search"])
@pytest.mark.parametrize("result", [{"error": "denied"}, {"exitCode": 1}, {"success": False}, {"rejected": True}])
def test_the_content_of_a_file_or_an_answer_says_nothing_about_the_call(
    around: UserEnvironment, store: Store, tool: str, result: Any
) -> None:
    event = call_of(around, store, called("b", tool, {"path": "a.json"}, result))
    assert event.call is not None
    assert (event.allowed.denied, event.call.ok) == (False, True)


def test_a_server_cannot_make_its_call_look_rejected(around: UserEnvironment, store: Store) -> None:
    event = call_of(around, store, called("b", "mcp_db_drop", {"table": "x"}, {"rejected": True}))
    assert not event.allowed.denied
    assert event.call is not None
    assert event.call.ok


def test_a_column_that_is_computed_is_not_read(around: UserEnvironment) -> None:
    path = database_of(around)
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE cursorDiskKV (key TEXT AS ('composerData:' || hex(zeroblob(9))), value BLOB)")
        connection.execute("INSERT INTO cursorDiskKV VALUES ('{}')")
        connection.commit()
    assert list(ADAPTER.locate(around)) == []


def test_the_same_conversation_in_two_projects_is_two_transcripts(around: UserEnvironment, tmp_path: Path) -> None:
    path = transcript(around.home, [line("user", "one")])
    other = around.home / ".cursor" / "projects" / "0" / "agent-transcripts" / path.name
    other.parent.mkdir(parents=True)
    other.write_text(path.read_text())
    assert {source.path for source in ADAPTER.locate(around)} == {path, other}


def test_who_allowed_it_is_not_guessed(around: UserEnvironment, store: Store) -> None:
    """Cursor writes `accepted` where it asked nobody, and a dialog's option that nobody chose."""
    data = {
        "status": "success",
        "blockReason": "Not in allowlist: pytest",
        "reviewData": {"status": "Done", "selectedOption": "rejectAndTellWhatToDoDifferently"},
    }
    bubble = called("b", "run_terminal_cmd", {"command": "pytest"}, {"output": "ok", "exitCode": 0})
    bubble["toolFormerData"] |= {"userDecision": "accepted", "additionalData": data}
    event = call_of(around, store, bubble)
    assert (event.allowed.by, event.allowed.denied) == ("unknown", False)
    assert event.environment["block_reason"] == "Not in allowlist: pytest"
    assert event.call is not None
    assert event.call.ok


# --- edits

OLD, NEW = "a\nold\nb\n", "a\nnew\nnewer\nb\n"
WHOLE = "--- a/src/p.py\n+++ b/src/p.py\n@@ -1,3 +1,4 @@\n a\n-old\n+new\n+newer\n b\n"


@pytest.mark.parametrize(
    ("params", "result"),
    [
        ({"target_file": "src/p.py"}, {"diff": WHOLE}),
        ({"target_file": "src/p.py"}, {"patch": "@@ -1,3 +1,4 @@\n a\n-old\n+new\n+newer\n b"}),
        ({"file_path": "src/p.py", "unifiedDiff": WHOLE}, {}),
        (
            {"relativeWorkspacePath": "src/p.py"},
            {"diff": {"chunks": [{"diffString": " a\n-old\n+new\n+newer\n b", "oldStart": 1, "newStart": 1}]}},
        ),
        ({"file_path": "src/p.py", "old_string": OLD, "new_string": NEW}, {}),
        ({"path": "src/p.py", "edits": [{"old_string": OLD, "new_string": NEW}]}, "ok"),
    ],
    ids=["diff", "bare patch", "in the arguments", "chunks", "strings", "several"],
)
def test_an_edit_is_a_real_diff(around: UserEnvironment, store: Store, params: Any, result: Any) -> None:
    event = call_of(around, store, called("b", "edit_file", params, result))
    assert event.call is not None
    assert event.call.diff == WHOLE
    assert event.summary == "edit_file: src/p.py (+2/-1)"
    assert event.side_effects == ("edited src/p.py",)


def test_files_that_are_kept_beside_the_bubble_become_a_diff(around: UserEnvironment, store: Store) -> None:
    """Newer versions name the file before and after; they are diffed and not put into the event."""
    before, after = stores.content(store, OLD), stores.content(store, NEW)
    result = {"beforeContentId": before, "afterContentId": after}
    store.conversation(asked("u", "go"), called("b", "edit_file_v2", {"relativeWorkspacePath": "src/p.py"}, result))
    event = of(deeds_of(around), "toolu_b")
    assert event.call is not None
    assert event.call.diff == WHOLE
    assert event.places == (before, after, f"bubbleId:{CONVERSATION}:b")


def test_a_patch_of_a_model_that_writes_such_is_a_diff(around: UserEnvironment, store: Store) -> None:
    patch = "*** Begin Patch\n*** Update File: p.py\n@@\n-a\n+b\n*** Add File: q.py\n+c\n*** End Patch"
    bubble = called("b", "apply_patch", {}, {"output": "Done"}, call={"rawArgs": patch})
    event = call_of(around, store, bubble)
    assert event.call is not None
    assert "--- a/p.py\n+++ b/p.py\n" in (event.call.diff or "")
    assert event.summary == "apply_patch (+2/-1)"
    assert event.side_effects == ("edited p.py", "wrote q.py")


def test_a_new_file_and_one_that_is_gone(around: UserEnvironment, store: Store) -> None:
    after = stores.content(store, "x\ny\n")
    store.conversation(
        asked("u", "go"),
        called("b", "edit_file_v2", {"relativeWorkspacePath": "n.py"}, {"afterContentId": after}),
        called("c", "edit_file_v2", {"relativeWorkspacePath": "m.py"}, {"afterContentId": "composer.content.gone"}),
        called("d", "delete_file", {"target_file": "o.py"}, {"fileDeletedSuccessfully": True}),
        called("e", "create_file", {"target_file": "p.py", "contents": "1\n"}, {}),
    )
    events = deeds_of(around)
    made, lost, deleted, created = (of(events, f"toolu_{name}") for name in "bcde")
    assert made.call is not None
    assert (made.call.diff or "").startswith("--- /dev/null\n+++ b/n.py\n@@ -0,0 +1,2 @@\n+x\n+y\n")
    assert lost.call is not None
    assert lost.call.diff is None
    assert deleted.side_effects == ("deleted o.py",)
    assert created.summary == "create_file: p.py (+1/-0)"
    assert created.side_effects == ("wrote p.py",)


def test_what_is_kept_by_digest_is_held_to_it(around: UserEnvironment, store: Store) -> None:
    held = stores.blob(store, json.dumps({"output": "from a blob", "exitCode": 0}))
    forged = "agentKv:blob:" + "0" * 64
    store.put(forged, '{"output": "another"}')
    store.conversation(
        asked("u", "go"),
        called("b", "run_terminal_cmd", {"command": "x"}, held),
        called("c", "run_terminal_cmd", {"command": "y"}, forged),
    )
    events = deeds_of(around)
    good, bad = of(events, "toolu_b"), of(events, "toolu_c")
    assert good.call is not None
    assert good.call.result == {"stdout": "from a blob", "exit_code": 0}
    assert held in good.places
    assert bad.call is not None
    assert bad.call.result == forged


def test_heavy_things_are_told_by_digest(around: UserEnvironment, store: Store) -> None:
    picture = "data:image/png;base64," + "A" * 5000
    result = {"originalFile": "x" * 5000, "screenshots": [picture], "output": "y"}
    event = call_of(around, store, called("b", "browser", {"url": "http://localhost"}, result))
    assert event.call is not None
    assert event.call.result["originalFile"]["size"] == 5000
    assert event.call.result["screenshots"][0]["media"] == "image/png"
    assert "AAAA" not in repr(event)


def test_no_address_of_a_person(around: UserEnvironment, store: Store) -> None:
    store.conversation(asked("u", "go", userEmail="dev@example.org"), said("b", "ok"), userEmail="dev@example.org")
    assert "example.org" not in repr(deeds_of(around))


def test_tokens_count_once_for_a_message(around: UserEnvironment, store: Store) -> None:
    usage = {"usageUuid": "m1", "tokenCount": {"inputTokens": 9, "outputTokens": 3}}
    store.conversation(
        asked("u", "go"),
        called("b", "grep", {"pattern": "x"}, {}, **usage),
        called("c", "grep", {"pattern": "y"}, {}, **usage),
        said("d", "ok", tokenCount={"totalTokens": 812}),
    )
    counted = [event.tokens for event in deeds_of(around) if event.tokens]
    assert [tokens.native for tokens in counted] == [usage["tokenCount"], {"totalTokens": 812}]


# --- versions


def test_older_versions_keep_bubbles_in_the_conversation(around: UserEnvironment, store: Store) -> None:
    bubbles = (
        asked("u", "run"),
        said("n", thinking="as a plain text"),
        called("b", "run_terminal_cmd", {"command": "ls"}, {"output": "a", "exitCode": 0}),
        {"type": 2, "text": "without an id"},
    )
    value = json.dumps(stores.legacy(*bubbles))
    store.put(f"composerData:{CONVERSATION}", value)
    follower = Follower(ADAPTER, only(around))
    events = follower.step()
    assert [(event.what, event.key) for event in events][1:] == [
        *(("prompt", "u"), ("answer", "n"), ("call", "toolu_b"), ("answer", "3")),
    ]
    assert events[2].thinking == "as a plain text"
    records = {record.place: record.data for record in ADAPTER.read(only(around))()}
    assert records[f"composerData:{CONVERSATION}#b"].decode() in value


def test_what_is_not_known_is_kept(around: UserEnvironment, store: Store) -> None:
    store.conversation(asked("u", "go"), {"bubbleId": "x", "type": 7, "text": "what is this"}, said("b", "ok"))
    event = of(deeds_of(around), "x")
    assert (event.what, event.result["text"]) == ("unknown", "what is this")
    store.put(f"bubbleId:{CONVERSATION}:b", "{torn")
    store.put(f"bubbleId:{CONVERSATION}:u", "null")
    torn = of(deeds_of(around), "b")
    assert (torn.what, torn.result) == ("unknown", "{torn")


def test_ids_with_anything_in_them_are_keys(around: UserEnvironment, store: Store) -> None:
    bubble = called("b", "grep", {"pattern": "x"}, {}, call={"toolCallId": "call_1\nfc_2"})
    again = called("c", "grep", {"pattern": "y"}, {}, call={"toolCallId": "call_1\nfc_2"})
    store.conversation(asked("u", "go"), bubble, again)
    keys = [event.key for event in deeds_of(around)][2:]
    assert keys == ["call_1\nfc_2", f"at-bubbleId:{CONVERSATION}:c"]


# --- as it happens


def test_each_bubble_is_given_once_when_it_is_final(around: UserEnvironment, store: Store) -> None:
    running = called("b", "run_terminal_cmd", {"command": "make"}, status="running")
    store.conversation(asked("u", "go"), said("t", "I beg"), status="generating")
    follower = Follower(ADAPTER, only(around))
    assert [event.key for event in follower.step()][1:] == ["u"]  # The text may grow.
    store.conversation(asked("u", "go"), said("t", "I begin."), running, status="generating")
    (text,) = follower.step()
    assert text.text == "I begin."
    assert follower.step() == []
    quick = called("c", "grep", {"pattern": "x"}, {"n": 1})
    store.conversation(asked("u", "go"), said("t", "changed later"), running, quick, status="generating")
    assert [event.key for event in follower.step()] == ["toolu_c"]
    done = called("b", "run_terminal_cmd", {"command": "make"}, {"output": "built", "exitCode": 0})
    store.bubbles(done)  # Only the bubble is written, not the conversation.
    (call,) = follower.step()
    assert (call.key, call.call.result if call.call else None) == ("toolu_b", {"stdout": "built", "exit_code": 0})
    last = said("z", "Done.")
    store.conversation(asked("u", "go"), said("t"), done, quick, last, status="generating")
    assert follower.step() == []
    store.conversation(asked("u", "go"), said("t"), done, quick, last)
    assert [event.text for event in follower.step()] == ["Done."]
    assert follower.step() == []
    assert list(follower.turn.finish()) == []
    assert len(follower.places) == len(set(follower.places))


def test_a_call_that_never_ended_is_told_when_the_conversation_goes_on(around: UserEnvironment, store: Store) -> None:
    hung = called("b", "run_terminal_cmd", {"command": "server"}, status="running")
    store.conversation(asked("u", "start"), hung, asked("v", "stop"), said("w", "ok"))
    follower = Follower(ADAPTER, only(around))
    _, asked_first, event, *rest = follower.step()
    assert [each.key for each in (asked_first, *rest)] == ["u", "v", "w"]
    assert list(follower.turn.finish()) == []
    assert (event.key, event.status) == ("toolu_b", "pending")
    assert event.call is not None
    assert event.call.ok is None
    assert event.prompt is not None
    assert event.prompt.key == "u"
    store.bubbles(called("b", "run_terminal_cmd", {"command": "server"}, {"output": "bye", "exitCode": 0}))
    (late,) = follower.step()
    assert (late.key, late.prompt.key if late.prompt else "") == ("toolu_b", "u")
    again = of(deeds_of(around), "toolu_b")
    assert again.call == late.call
    assert again.prompt == late.prompt


def test_reading_again_gives_the_same(around: UserEnvironment, store: Store) -> None:
    bubbles = [asked("u", "go"), *(called(f"b{n}", "grep", {"pattern": str(n)}, {"n": n}) for n in range(5))]
    live = None
    for count in range(1, len(bubbles) + 1):
        store.conversation(*bubbles[:count], status="generating")
        live = live or Follower(ADAPTER, only(around))
        live.step()
    store.conversation(*bubbles)
    live = Follower(ADAPTER, only(around)).step()
    assert live == deeds_of(around)


def test_a_title_that_comes_later_is_told(around: UserEnvironment, store: Store) -> None:
    store.conversation(asked("u", "go"), name=None, status="generating")
    follower = Follower(ADAPTER, only(around))
    first, _ = follower.step()
    assert first.title is None
    store.conversation(asked("u", "go"), name="A good name", status="generating")
    (named,) = follower.step()
    assert (named.title, named.key != first.key) == ("A good name", True)
    store.conversation(asked("u", "go"), name="A good name", lastUpdatedAt=1, status="generating")
    assert follower.step() == []


# --- in place


BYTES_READ = f"""{peaks.PEAK}
import pathlib, sys
from aver.agents.cursor.conversations import ADAPTER
from aver.files.user_dirs import UserEnvironment
around = UserEnvironment(pathlib.Path(sys.argv[1]), {{}}, platform="linux")
def read():
    counts = pathlib.Path("/proc/self/io")
    return int(counts.read_text().split()[1]) if counts.exists() else 0
(source,) = ADAPTER.locate(around)
before = read()
(source,) = ADAPTER.locate(around)
turn = ADAPTER.parser(source)
events = [event for record in ADAPTER.read(source)() for event in turn.feed(record)]
print(len(events), read() - before, peak_kb())
"""


def beside(path: Path) -> set[str]:
    return {entry.name for entry in path.parent.iterdir()}


@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_a_database_that_nobody_has_open_is_left_as_it_is(around: UserEnvironment, journal: str) -> None:
    store = Store(database_of(around), journal=journal)
    store.conversation(asked("u", "go"), said("b", "ok"))
    store.close()
    before, content, status = beside(store.path), store.path.read_bytes(), store.path.stat()
    assert [event.key for event in deeds_of(around)][1:] == ["u", "b"]
    assert beside(store.path) == before == {"state.vscdb"}
    assert store.path.read_bytes() == content
    assert store.path.stat().st_mtime_ns == status.st_mtime_ns


def test_it_is_read_while_cursor_writes_it(around: UserEnvironment, store: Store) -> None:
    """What is only in the log is seen, an open transaction is not, and nothing is written."""
    store.conversation(asked("u", "go"), said("b", "ok"))
    names = ("state.vscdb", "state.vscdb-wal")
    assert beside(store.path) == {*names, "state.vscdb-shm"}
    before = [(store.path.parent / name).read_bytes() for name in names]
    store.connection.execute("BEGIN IMMEDIATE")
    follower = Follower(ADAPTER, only(around))
    assert [event.key for event in follower.step()][1:] == ["u", "b"]
    assert [(store.path.parent / name).read_bytes() for name in names] == before
    store.put(f"bubbleId:{CONVERSATION}:c", said("c", "not yet"))
    store.put(f"composerData:{CONVERSATION}", stores.composer([asked("u", ""), said("b"), said("c")]))
    assert follower.step() == []
    store.connection.execute("COMMIT")
    assert [event.text for event in follower.step()] == ["not yet"]
    store.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    store.conversation(asked("u", ""), said("b"), said("c"), said("d", "after the checkpoint"))
    assert [event.text for event in follower.step()] == ["after the checkpoint"]


def test_another_process_sees_nothing_of_the_reading(around: UserEnvironment, store: Store) -> None:
    """Not even the index of the log is written, which readers of SQLite usually do."""
    store.conversation(asked("u", "go"), said("b", "ok"))
    files = [store.path.with_name(f"state.vscdb{suffix}") for suffix in ("", "-wal", "-shm")]
    before = [(file.read_bytes(), file.stat().st_mtime_ns) for file in files]
    command = [sys.executable, "-c", BYTES_READ, str(around.home)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stdout.split()[0] == "3"
    assert [(file.read_bytes(), file.stat().st_mtime_ns) for file in files] == before


def test_a_directory_that_cannot_be_written_does_not_matter(around: UserEnvironment) -> None:
    store = Store(database_of(around))
    store.conversation(asked("u", "go"))
    store.close()
    store.path.parent.chmod(0o500)
    try:
        assert [event.key for event in deeds_of(around)][1:] == ["u"]
    finally:
        store.path.parent.chmod(0o700)


def test_a_damaged_database_gives_nothing(around: UserEnvironment) -> None:
    store = Store(database_of(around))
    store.conversation(asked("u", "go" * 5000), said("b", "ok"))
    store.close()
    source = only(around)
    content = bytearray(store.path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    store.path.write_bytes(content)
    assert list(ADAPTER.read(source)()) == []
    assert list(ADAPTER.locate(around)) == []
    store.path.unlink()
    assert list(ADAPTER.read(source)()) == []


def _stamps(around: UserEnvironment) -> dict[str, str]:
    """What tells of each conversation whether it changed, but for the few that are looked at whatever happens."""
    return {source.session: source.stamp.partition(";")[0] for source in ADAPTER.locate(around)}


WRITES: list[Callable[[Store], object]] = [
    lambda store: store.bubbles(said("new"), conversation="c1"),
    lambda store: store.bubbles(said("b0", "changed"), conversation="c1"),
    lambda store: store.conversation(said("b0"), identity="c1"),
    lambda store: [
        store.connection.execute("DELETE FROM cursorDiskKV WHERE key = 'bubbleId:c2:b2'"),
        store.bubbles(said("new"), conversation="c1"),
    ],
    lambda store: [
        store.connection.execute("DELETE FROM cursorDiskKV WHERE key LIKE 'bubbleId:c2:%'"),
        store.bubbles(said("new"), said("newer"), conversation="c1"),
    ],
    lambda store: [
        store.connection.execute("DELETE FROM cursorDiskKV WHERE key LIKE 'bubbleId:c0:%'"),
        store.connection.execute("VACUUM"),
        store.bubbles(said("new"), conversation="c1"),
    ],
]


@pytest.mark.parametrize("write", WRITES, ids=str.split("new replaced again reused_number numbers_gone numbered_anew"))
def test_a_conversation_that_changed_is_noticed(
    around: UserEnvironment, store: Store, write: Callable[[Store], object]
) -> None:
    for name in ("c0", "c1", "c2"):
        store.conversation(said("b0"), said("b1"), identity=name)
    store.bubbles(said("b2"), conversation="c2")
    first = _stamps(around)
    assert _stamps(around) == first
    write(store)
    then = _stamps(around)
    assert then["c1"] != first["c1"]
    assert _stamps(around) == then


def test_another_database_in_its_place_is_looked_at_anew(around: UserEnvironment, store: Store) -> None:
    store.conversation(said("b0"), identity="c1")
    assert set(_stamps(around)) == {"c1"}
    store.close()
    store.path.rename(store.path.with_suffix(".old"))
    other = Store(database_of(around), journal="delete")
    other.conversation(said("b0"), said("b1"), identity="c2")
    other.close()
    assert set(_stamps(around)) == {"c2"}


@pytest.mark.more
def test_a_write_costs_what_is_new_and_not_what_is_there(store: Store) -> None:
    for name in range(20):
        store.conversation(*(said(f"b{number}") for number in range(200)), identity=f"c{name}")
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    store.connection.set_progress_handler(count, 100)
    whole, newest = list_conversations(store.connection)
    at_first, steps = steps, 0
    store.connection.set_progress_handler(None, 0)
    store.bubbles(said("new"), conversation="c7")
    store.connection.set_progress_handler(count, 100)
    then, _ = list_conversations(store.connection, newest)
    assert [name for name in whole if whole[name] != then[name]] == ["c7"]
    assert steps * 20 < at_first


@pytest.mark.long
@pytest.mark.skipif(not os.path.exists("/proc/self/io"), reason="counts what is read by /proc")
def test_a_gigabyte_beside_it_is_not_read(around: UserEnvironment) -> None:
    """Values of others, one of them larger than a record may be: of all that only the index is looked into."""
    store = Store(database_of(around))
    store.conversation(*(said(f"b{number}", "text " * 20) for number in range(50)))
    store.connection.execute("PRAGMA synchronous = OFF")
    for number in range(16):
        store.connection.execute("INSERT INTO cursorDiskKV VALUES (?, zeroblob(?))", (f"agentKv:blob:{number}", 2**26))
    for number in range(2000):
        store.put(f"bubbleId:other:{number}", "x" * 1000)
    store.close()
    size = store.path.stat().st_size
    assert size > 2**30
    names = beside(store.path)
    ran = subprocess.run(
        [sys.executable, "-c", BYTES_READ, str(around.home)], capture_output=True, text=True, check=True
    )
    events, read, memory_kb = map(int, ran.stdout.split())
    assert events == 51
    assert read < 4 * 2**20
    assert memory_kb < 200 * 1024
    assert beside(store.path) == names
    store.path.unlink()


def test_a_value_that_is_too_large_is_told_by_its_digest(
    around: UserEnvironment, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aver.agents.cursor.database.RECORD_MAX", 2000)
    store.conversation(asked("u", "go"), said("b", "x" * 5000), said("c", "ok"))
    event = of(deeds_of(around), "b")
    assert event.what == "unknown"
    assert event.result["size"] > 5000


# --- authorship


def test_authorship_is_told_once_for_each_state(around: UserEnvironment, store: Store) -> None:
    rows = [(CONVERSATION, "composer", "src/p.py", "r1")] * 3 + [(CONVERSATION, "human", "src/q.py", "r2")]
    path = stores.tracking(around.home, [*rows, ("other", "composer", "secret.py", "r9")], linked=True)
    stores.commit(path, "c0ffee", request="r1")
    stores.commit(path, "facade", request="r9")
    store.conversation(asked("u", "go"), said("b", "ok"), status="generating")
    follower = Follower(ADAPTER, only(around))
    assert not [event for event in follower.step() if event.key.startswith("authorship:")]
    store.conversation(asked("u", "go"), said("b", "ok"))
    first = follower.step()[-1]
    assert first.what == "session"
    assert first.result["lines_by_source"] == {"composer": 3, "human": 1}
    assert first.result["files"] == ["src/p.py", "src/q.py"]
    assert first.result["requests"] == ["r1", "r2"]
    assert [commit["commitHash"] for commit in first.result["commits"]] == ["c0ffee"]
    assert "example.org" not in repr(first)
    assert "secret" not in repr(first)
    assert follower.step() == []
    stores.tracking(around.home, [(CONVERSATION, "composer", "src/p.py", "r1")], linked=True)
    (second,) = follower.step()
    assert second.key.startswith("authorship:")
    assert second.key != first.key
    assert of(deeds_of(around), second.key) == second


def test_commits_of_the_machine_are_not_the_conversations(around: UserEnvironment, store: Store) -> None:
    """The table as Cursor writes it does not say whose a commit is: then none is listed."""
    path = stores.tracking(around.home, [(CONVERSATION, "composer", "p.py", "r1")])
    stores.commit(path, "c0ffee")
    store.conversation(asked("u", "go"))
    told = deeds_of(around)[-1]
    assert told.result["commits"] == []
    assert beside(path) == {path.name}


# --- transcripts


def test_a_conversation_without_a_database_is_read_from_its_transcript(around: UserEnvironment) -> None:
    use = {"type": "tool_use", "name": "Shell", "input": {"command": "ls"}}
    edit = {"type": "tool_use", "id": "call-7", "name": "StrReplace"}
    edit["input"] = {"path": "src/p.py", "old_string": OLD, "new_string": NEW}
    query = "<timestamp>2026-01-02T03:04:05.000Z</timestamp>\n<user_query>\ntidy up\n</user_query>"
    path = transcript(
        around.home,
        [
            line("user", query),
            line("assistant", "I look.", use, edit),
            line("user", {"type": "tool_result", "tool_use_id": "call-7", "content": "done"}),
            {"type": "turn_ended", "status": "success"},
            line("assistant", "Tidy."),
            '{"torn',
            {"type": "future", "x": 1},
        ],
    )
    source = only(around)
    assert (source.session, source.path, source.appends) == (CONVERSATION, path, True)
    prompt, edited, ran, ended, answer, torn, future = Follower(ADAPTER, source).step()
    assert (prompt.key[:5], prompt.text, prompt.at) == ("at-1-", "tidy up", "2026-01-02T03:04:05+00:00")
    assert (edited.key, edited.summary) == ("call-7", "StrReplace: src/p.py (+2/-1)")
    assert edited.call is not None
    assert (edited.call.ok, edited.call.diff, edited.places) == (True, WHOLE, ("2", "3"))
    assert (ran.key[:5], ran.key[-2:], ran.status, ran.text) == ("at-2-", ".1", "pending", "I look.")
    assert ran.call is not None
    assert (ran.call.tool, ran.call.arguments, ran.call.ok) == ("Shell", {"command": "ls"}, None)
    assert ran.side_effects == ()
    assert ran.prompt is not None
    assert ran.prompt.text == "tidy up"
    assert ended.summary == "turn ended: success"
    assert answer.text == "Tidy."
    assert (torn.what, torn.result) == ("unknown", '{"torn')
    assert future.environment["unknown_record"] == "future"


def test_a_conversation_is_never_read_from_both(around: UserEnvironment, store: Store) -> None:
    transcript(around.home, [line("user", "go")])
    transcript(around.home, [line("user", "look")], agent="sub-1")
    (fallback, sub) = ADAPTER.locate(around)
    assert (fallback.appends, sub.session, sub.agent) == (True, CONVERSATION, "sub-1")
    reader = ADAPTER.read(fallback)
    assert len(list(reader())) == 1
    store.conversation(asked("u", "go"))
    assert [(one.path, one.agent) for one in ADAPTER.locate(around)] == [(store.path, ""), (sub.path, "sub-1")]
    transcript(around.home, [line("user", "go"), line("assistant", "ok")])
    assert list(reader()) == []


# --- anything


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
SAMPLES = [
    asked("u", "go"),
    said("t", "hm", thinking={"text": "x"}),
    called("b", "edit_file", {"target_file": "p"}, {"diff": {"chunks": [{"diffString": "-a\n+b"}]}}),
    called("c", "run_terminal_cmd", {"command": "x"}, {"output": "y", "exitCode": 1}),
    called("d", "task", {"subagent_type": "x"}, {"agentId": "y"}, status="running"),
]


@st.composite
def mutated(draw: st.DrawFn) -> Any:
    """A bubble in which something is not what it should be."""
    value = json.loads(json.dumps(draw(st.sampled_from(SAMPLES))))
    at = value
    while isinstance(at, dict) and at:
        name = draw(st.sampled_from(sorted(at)))
        if not isinstance(at[name], dict) or draw(st.booleans()):
            at[name] = draw(JSON)
            break
        at = at[name]
    return value


ODD = [{**stores.legacy(), "conversation": 1.5}, {**stores.composer(()), "_v": 2**70}, {"conversation": {"a": 1}}]


@pytest.mark.parametrize("value", ODD, ids=["a number of bubbles", "a huge number", "an object of bubbles"])
def test_odd_conversations_are_read(around: UserEnvironment, store: Store, value: dict[str, Any]) -> None:
    store.bubbles(said("b", "ok"))
    headers = [{"bubbleId": "b", "type": 2}]
    store.put(f"composerData:{CONVERSATION}", value if "conversation" in value else {**value, HEADERS: headers})
    assert [event.what for event in deeds_of(around)] == ([] if "conversation" in value else ["session", "answer"])


HEADERS = "fullConversationHeadersOnly"


@pytest.mark.more
@given(st.lists(mutated() | JSON, max_size=8), JSON)
def test_whatever_a_conversation_says_it_is_read(
    tmp_path_factory: pytest.TempPathFactory, bubbles: Any, more: Any
) -> None:
    around = surroundings(tmp_path_factory.mktemp("home"))
    store = Store(database_of(around))
    headers = [{"bubbleId": f"k{number}", "type": 2} for number in range(len(bubbles))]
    for number, bubble in enumerate(bubbles):
        store.put(f"bubbleId:{CONVERSATION}:k{number}", json.dumps(bubble))
    store.put(
        f"composerData:{CONVERSATION}", json.dumps({**stores.composer(()), "fullConversationHeadersOnly": headers})
    )
    store.put("composerData:legacy", json.dumps({**stores.legacy(), "conversation": bubbles}))
    store.put("composerData:odd", json.dumps(more))
    for source in ADAPTER.locate(around):
        follower = Follower(ADAPTER, source)
        events = [*follower.step(), *follower.turn.finish()]
        keys = [event.key for event in events]
        assert all(keys)
        assert len(keys) == len(set(keys))
        again = Follower(ADAPTER, source)
        assert [*again.step(), *again.turn.finish()] == events
    store.close()


@given(st.lists(st.binary(max_size=40) | JSON.map(lambda value: json.dumps(value).encode()), max_size=6))
def test_whatever_a_transcript_says_it_is_read(lines: list[bytes]) -> None:
    turn = ADAPTER.parser(TranscriptSource(tool="cursor", session="s", path=Path("t.jsonl")))
    events = [
        event for number, data in enumerate(lines, 1) for event in turn.feed(record_from_bytes(str(number), data))
    ]
    keys = [event.key for event in [*events, *turn.finish()]]
    assert all(keys)
    assert len(keys) == len(set(keys))


def test_it_is_sealed(around: UserEnvironment, store: Store, tmp_path: Path) -> None:
    """All of it goes into a ledger, once."""
    from aver.ingest.seal import TranscriptFollower as Sealer

    store.conversation(*SAMPLES, said("z", "end"))
    with open_ledger(tmp_path / "ledger.db", home=tmp_path / "keys") as ledger:
        sealer = Sealer(ledger, ADAPTER, only(around))
        assert sealer.step().sealed == 7
        sealer.end()
        again = Sealer(ledger, ADAPTER, only(around))
        assert again.step().sealed == 0
        assert ledger.verify().status == "verified"


def test_a_conversation_that_goes_on_still_reconciles(around: UserEnvironment, store: Store, tmp_path: Path) -> None:
    """Its own value lists its bubbles, and so changes with each; that is no change to what was sealed."""
    from aver.ingest.reconcile import reconcile
    from aver.ingest.seal import TranscriptFollower as Sealer

    bubbles = [asked("u", "go"), said("b1", "one")]
    with open_ledger(tmp_path / "ledger.db", home=tmp_path / "keys") as ledger:

        def held() -> tuple[str, int]:
            verdict, counts = reconcile(ledger, ADAPTER, [only(around)], [f"cursor.{CONVERSATION}"])
            return verdict.status, counts.mismatched

        for name in ("Fix the parser", "Fix it all"):
            store.conversation(*bubbles, name=name)
            Sealer(ledger, ADAPTER, only(around)).step()
            assert held() == ("verified", 0)
            bubbles += [asked("u2", "more"), said("b2", "two")]
        store.conversation(asked("u", "go"), said("b1", "another"), name="Fix it all")
        assert held() == ("failed", 1)


def test_sqlite_is_as_this_module_needs_it() -> None:
    assert sqlite3.sqlite_version_info >= (3, 22)
