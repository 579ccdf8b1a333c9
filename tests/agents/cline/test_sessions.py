"""Cline from version 4 on: its sessions, as they are rewritten from message to message."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.agents.cline.session_parser import SessionParser
from aver.agents.cline.tasks import ADAPTER
from aver.files.user_dirs import UserEnvironment
from aver.ingest.contract import AgentEvent, TranscriptSource, record_from_bytes
from aver.ingest.reconcile import reconcile
from aver.ingest.seal import TranscriptFollower as Sealer
from aver.ledger import open_ledger
from support.agents.follow import Follower

SESSION = "1785320464923_k3x9a"
MODEL = {"id": "claude-sonnet-4-5", "provider": "anthropic"}
METRICS = {"inputTokens": 1260, "outputTokens": 40, "cacheReadTokens": 50, "cacheWriteTokens": 10, "cost": 0.01}
PATCH = "*** Begin Patch\n*** Update File: http.py\n@@\n-a\n+b\n*** End Patch"


class Session:
    """A session that goes on."""

    def __init__(self, home: Path, name: str = SESSION, *, agent: str = "") -> None:
        self.directory = home / ".cline" / "data" / "sessions" / name
        self.directory.mkdir(parents=True, exist_ok=True)
        self.name, self.agent = name, agent
        self.messages: list[dict[str, Any]] = []
        self.read_manifest: dict[str, Any] = {
            "version": 1,
            "session_id": name,
            "source": "cli",
            "pid": 7,
            "started_at": "2026-07-29T10:21:04.923Z",
            "status": "completed",
            "interactive": True,
            "provider": "anthropic",
            "model": "claude-sonnet-4-5",
            "cwd": "/w/shop",
            "workspace_root": "/w/shop",
            "metadata": {"title": "Fix the parser"},
        }
        self.clock = 1785320464923

    def message(self, role: str, *blocks: dict[str, Any], **more: Any) -> None:
        self.clock += 500
        own = {"id": f"msg-{len(self.messages)}", "role": role, "content": list(blocks), "ts": self.clock}
        self.messages.append({**own, **more})

    def asked(self, text: str) -> None:
        self.message("user", {"type": "text", "text": f'<user_input mode="act">{text}</user_input>'})

    def answered(self, *blocks: dict[str, Any], **more: Any) -> None:
        self.message("assistant", *blocks, **{"modelInfo": MODEL, "metrics": METRICS, **more})

    def called(self, name: str, arguments: Any, result: Any, call: str = "toolu_1", **more: Any) -> None:
        self.answered({"type": "tool_use", "id": call, "name": name, "input": arguments})
        self.message("user", {"type": "tool_result", "tool_use_id": call, "name": name, "content": result, **more})

    def write(self) -> TranscriptSource:
        """The files as Cline writes them, and where they are."""
        own = {"version": 1, "updated_at": "2026-07-29T10:22:00Z", "agent": "lead", "sessionId": self.name}
        whole = {**own, "messages": self.messages, "system_prompt": "You are Cline."}
        path = self.directory / f"{self.agent or self.name}.messages.json"
        path.write_text(f"{json.dumps(whole, indent=2, ensure_ascii=False)}\n")
        (self.directory / f"{self.name}.json").write_text(f"{json.dumps(self.read_manifest, indent=2)}\n")
        around = UserEnvironment(self.directory.parents[3], {})
        return next(source for source in ADAPTER.locate(around) if source.path == path)


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path)


def deeds_of(session: Session) -> list[AgentEvent]:
    return Follower(ADAPTER, session.write()).all()


def the_call(session: Session) -> AgentEvent:
    [event] = [event for event in deeds_of(session) if event.what == "call"]
    assert event.call is not None
    return event


def op(query: str, result: Any = "", **more: Any) -> dict[str, Any]:
    return {"query": query, "result": result, "success": True, **more}


# --- where


@pytest.mark.parametrize(
    ("environment", "below"),
    [
        ({}, "home/.cline/data/sessions"),
        ({"CLINE_DIR": "own"}, "own/data/sessions"),
        ({"CLINE_DIR": "own", "CLINE_DATA_DIR": "data"}, "data/sessions"),
        ({"CLINE_DATA_DIR": "data", "CLINE_SESSION_DATA_DIR": "here"}, "here"),
    ],
)
def test_sessions_are_found(tmp_path: Path, environment: dict[str, str], below: str) -> None:
    around = UserEnvironment(tmp_path / "home", {name: str(tmp_path / path) for name, path in environment.items()})
    directory = tmp_path / below / SESSION
    directory.mkdir(parents=True)
    for name in (SESSION, "agent_7"):
        (directory / f"{name}.messages.json").write_text('{"messages": []}')
    (directory / f"{SESSION}.compaction.json").write_text("{}")
    found = {(source.session, source.agent) for source in ADAPTER.locate(around)}
    assert found == {(SESSION, ""), (SESSION, "agent_7")}
    assert tmp_path / below in list(ADAPTER.places(around))


# --- what is said


def test_a_session_is_told_in_its_order(session: Session) -> None:
    session.asked("Fix the parser\nand test it")
    session.answered(
        {"type": "thinking", "thinking": "Look first.", "signature": "Er4B"},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "toolu_1", "name": "read_files", "input": {"files": [{"path": "/w/shop/p.py"}]}},
    )
    read = {"type": "tool_result", "tool_use_id": "toolu_1", "name": "read_files", "content": [op("p.py", "1 | a")]}
    session.message("user", read)
    session.answered({"type": "text", "text": "Done."})
    events = deeds_of(session)
    assert [(event.what, event.summary) for event in events] == [
        ("session", "session of Cline: cli, completed"),
        ("note", "system prompt"),
        ("prompt", "prompt: Fix the parser and test it"),
        ("call", "read_files: /w/shop/p.py"),
        ("answer", "Done."),
    ]
    opened, _, prompt, call, answer = events
    assert (opened.title, opened.model, opened.environment["cwd"]) == ("Fix the parser", "claude-sonnet-4-5", "/w/shop")
    assert prompt.text == "Fix the parser\nand test it"
    assert call.call is not None
    told = {"query": "p.py", "output": "1 | a", "success": True}
    assert (call.key, call.call.ok, call.call.result) == ("toolu_1", True, told)
    assert (call.text, call.thinking, call.signatures) == ("I look.", "Look first.", ("Er4B",))
    assert call.prompt is not None
    assert (call.prompt.key, call.duration_ms, call.model) == (prompt.key, 500, "claude-sonnet-4-5")
    assert (call.places, answer.places) == (("message:1", "message:2"), ("message:3",))
    assert {event.allowed.by for event in events} == {"unknown"}, "nobody is said to have been asked"


def test_tokens_count_once_for_a_message(session: Session) -> None:
    session.answered(
        {"type": "tool_use", "id": "a", "name": "read_files", "input": {}},
        {"type": "tool_use", "id": "b", "name": "read_files", "input": {}},
    )
    session.message("user", *({"type": "tool_result", "tool_use_id": name, "content": "x"} for name in "ba"))
    tokens = [event.tokens for event in deeds_of(session) if event.tokens is not None]
    assert [(one.input, one.output, one.cost_usd) for one in tokens] == [(1260, 40, 0.01)]
    assert tokens[0].native == METRICS


@pytest.mark.parametrize(
    ("name", "arguments", "summary", "effects", "line"),
    [
        ("editor", {"path": "/w/a.py", "old_text": "x\ny", "new_text": "x\nz\nw"}, "(+2/-1)", "edited /w/a.py", "+w"),
        ("editor", {"path": "/w/n.py", "new_text": "a\nb\n"}, "(+2/-0)", "wrote /w/n.py", "--- /dev/null"),
        ("editor", {"path": "a.py", "new_text": "q", "insert_line": 7}, "(+1/-0)", "edited a.py", "@@ -6,0 +7,1 @@"),
        ("apply_patch", {"input": PATCH}, "(+1/-1)", "edited http.py", "+b"),
    ],
    ids=str.split("replaced created inserted patched"),
)  # fmt: skip
def test_an_edit_is_a_real_diff(
    session: Session, name: str, arguments: Any, summary: str, effects: str, line: str
) -> None:
    session.called(name, arguments, [op("x", "Edited")])
    event = the_call(session)
    assert event.summary.endswith(summary)
    assert event.side_effects == (effects,)
    assert event.call is not None
    assert line in (event.call.diff or "").splitlines()


def test_a_text_that_is_replaced_in_no_file_makes_one(session: Session) -> None:
    arguments = {"path": "/w/a.py", "old_text": "x\ny", "new_text": "x\nz"}
    session.called("editor", arguments, [op("edit:/w/a.py", "File created successfully at: /w/a.py")])
    event = the_call(session)
    assert event.summary.endswith("(+2/-0)")
    assert event.side_effects == ("wrote /w/a.py",)


@pytest.mark.parametrize(
    ("arguments", "told", "effects"),
    [
        ({"commands": ["ls -l", "pwd"]}, "ls -l; pwd", ("ran ls -l", "ran pwd")),
        ({"commands": [{"command": "git", "args": ["status"]}]}, "git status", ("ran git status",)),
        ({"command": "make", "args": ["test"]}, "make test", ("ran make test",)),
        ({"cmd": "true"}, "true", ("ran true",)),
    ],
)
def test_commands(session: Session, arguments: Any, told: str, effects: tuple[str, ...]) -> None:
    session.called("run_commands", arguments, [op("x", "out")])
    event = the_call(session)
    assert (event.summary, event.side_effects) == (f"run_commands: {told}", effects)


def test_a_command_that_failed_did_run(session: Session) -> None:
    failed = op("ls x", "[stderr]\nno", success=False, error="Command exited with code 2")
    session.called("run_commands", {"commands": ["echo hi", "ls x"]}, [op("echo hi", "hi\n"), failed])
    event = the_call(session)
    assert event.call is not None
    assert (event.call.ok, event.call.error) == (False, "Command exited with code 2")
    assert event.call.result == [op("echo hi", "hi\n"), failed]
    assert event.side_effects == ("ran echo hi", "ran ls x")


@pytest.mark.parametrize(
    ("result", "more", "error"),
    [
        ([op("a"), op("b", success=False, error="exit 1")], {}, "exit 1"),
        ("no such file", {"is_error": True}, "no such file"),
        ('{"error": "not allowed"}', {"is_error": True}, "not allowed"),
        ('{"query": "edit:a", "result": "", "success": false, "error": "text not found"}', {}, "text not found"),
        ([{"type": "text", "text": "x"}], {"is_error": True}, "the tool reported an error"),
    ],
)
def test_a_failure_is_a_failure(session: Session, result: Any, more: Any, error: str) -> None:
    session.called("editor", {"path": "a", "old_text": "x", "new_text": "y"}, result, **more)
    event = the_call(session)
    assert event.call is not None
    assert (event.call.ok, event.call.error, event.call.diff, event.side_effects) == (False, error, None, ())


@pytest.mark.parametrize("result", ['{"success": false, "error": "denied"}', [op("x", success=False, error="denied")]])
def test_the_answer_of_a_server_says_nothing_about_the_call(session: Session, result: Any) -> None:
    session.called("db__drop", {"table": "x"}, result)
    event = the_call(session)
    assert event.call is not None
    assert (event.call.ok, event.call.error) == (True, None)


def test_reasoning_that_is_not_kept_is_told_to_have_been(session: Session) -> None:
    session.answered({"type": "redacted_thinking", "data": "gAAA"}, {"type": "text", "text": "So."})
    answer = deeds_of(session)[-1]
    assert (answer.redacted, answer.signatures, answer.thinking) == (True, ("gAAA",), "")


def test_what_cline_says_in_the_models_place_is_a_failure(session: Session) -> None:
    session.answered({"type": "text", "text": "No key."}, metadata={"displayOnly": True, "displayRole": "error"})
    assert deeds_of(session)[-1].status == "failure"


def test_heavy_things_are_told_by_digest(session: Session) -> None:
    picture = {"type": "image", "data": "QUJD" * 200, "mediaType": "image/png"}
    session.message(
        "user", {"type": "text", "text": "see"}, picture, {"type": "file", "path": "/w/a", "content": "all"}
    )
    session.called("browser", {}, [picture])
    told = json.dumps([[event.result, event.call and event.call.result] for event in deeds_of(session)])
    assert "QUJD" not in told
    assert told.count("image/png") >= 2
    assert '"file": "/w/a"' in told
    assert '"all"' not in told


def test_what_is_not_known_is_kept(session: Session) -> None:
    session.answered({"type": "media", "media": {"x": 1}})
    session.message("user", {"type": "tool_result", "tool_use_id": "nobody", "content": "x"})
    session.messages.append({"role": "system", "content": "y"})
    session.messages.append({"role": "user", "content": {"type": "text", "text": "z"}})
    kept = [event for event in deeds_of(session) if event.what == "unknown"]
    assert [event.environment["unknown_record"] for event in kept] == [
        "assistant media",
        "the result of no known call",
        "message",
        "message",
    ]


def test_calls_that_are_called_alike_stay_apart(session: Session) -> None:
    for text in ("first", "second"):
        session.called("read_files", {"path": text}, text, call="call_0")
    session.answered({"type": "tool_use", "id": "call_0", "name": "read_files", "input": {"path": "third"}})
    session.answered({"type": "tool_use", "id": "call_0", "name": "read_files", "input": {"path": "fourth"}})
    calls = [event for event in deeds_of(session) if event.call is not None]
    assert [(event.key, event.call and event.call.result, event.status) for event in calls] == [
        ("call_0", "first", None),
        ("call_0~2", "second", None),
        ("call_0~3", None, "pending"),
        ("call_0~4", None, "pending"),
    ]


@pytest.mark.parametrize("order", [("a", "a", "a~2"), ("a~2", "a", "a")])
def test_a_call_cannot_take_the_key_that_another_is_given(session: Session, order: tuple[str, ...]) -> None:
    for number, call in enumerate(order):
        session.called("read_files", {"path": str(number)}, str(number), call=call)
    calls = [event for event in deeds_of(session) if event.call is not None]
    assert len({event.key for event in calls}) == len(order)


# --- as it goes on


def test_it_is_told_as_it_happens_and_the_same_as_afterwards(session: Session) -> None:
    session.read_manifest["status"] = "running"
    session.asked("go")
    follower = Follower(ADAPTER, session.write())
    told = follower.step()
    session.answered({"type": "tool_use", "id": "t1", "name": "read_files", "input": {}}, metrics=None)
    session.write()
    told += follower.step()
    session.messages[-1]["metrics"] = METRICS
    session.message("user", {"type": "tool_result", "tool_use_id": "t1", "content": "x"})
    session.answered({"type": "text", "text": "Nearly"}, metrics=None)
    session.write()
    told += follower.step()
    assert [event.what for event in told][-1] == "call", "the last answer may still be counted"
    session.messages[-1]["metrics"] = METRICS
    session.write()
    told += follower.step()
    session.read_manifest["status"] = "completed"
    session.write()
    told += follower.step()
    assert [event.what for event in told] == ["session", "note", "prompt", "call", "answer", "session"]
    assert [event.summary for event in told if event.what == "session"] == [
        "session of Cline: cli",
        "session of Cline: cli, completed",
    ]
    again = Follower(ADAPTER, session.write()).all()
    assert [event for event in again if event.what != "session"] == [event for event in told if event.what != "session"]
    assert follower.step() == []


def test_what_is_only_counted_or_named_anew_is_not_told_again(session: Session) -> None:
    session.asked("go")
    session.answered({"type": "text", "text": "Done."})
    follower = Follower(ADAPTER, session.write())
    first = follower.step()
    for message in session.messages:
        message |= {"id": "another", "ts": 1, "metrics": {**METRICS, "cost": 0.5}}
    session.write()
    assert follower.step() == []
    session.messages[1]["content"] = [{"type": "text", "text": "Something else."}]  # As after a checkpoint's restoring.
    session.write()
    [event] = follower.step()
    assert event.key not in {told.key for told in first}


def test_a_file_that_is_not_whole_gives_nothing_this_time(session: Session) -> None:
    session.asked("go")
    source = session.write()
    whole = source.path.read_bytes()
    follower = Follower(ADAPTER, source)
    source.path.write_bytes(whole[: len(whole) // 2])
    assert follower.step() == []
    source.path.write_bytes(whole)
    assert [event.what for event in follower.step()] == ["session", "note", "prompt"]
    source.path.unlink()
    assert follower.step() == []


def test_it_is_sealed_once_with_its_agents_and_reconciles(session: Session, tmp_path: Path) -> None:
    session.asked("go")
    session.called("spawn_agent", {"task": "look"}, "It is there.")
    session.answered({"type": "text", "text": "Done."})
    session.write()
    kid = Session(tmp_path, agent="agent_7")
    kid.asked("look")
    kid.called("run_commands", {"commands": ["ls"]}, [op("ls", "p.py")])  # With a call of the same id.
    kid.write()
    sources = list(ADAPTER.locate(UserEnvironment(tmp_path, {})))
    with open_ledger(tmp_path / "ledger.db", home=tmp_path / "aver") as ledger:
        for _ in range(2):
            for source in sources:
                sealer = Sealer(ledger, ADAPTER, source)
                sealer.step()
                sealer.end()
        chains = [name for name in ledger.chains() if name.startswith("cline.")]
        assert [ledger.head(name).count for name in chains] == [5, 3]
        verdict, counts = reconcile(ledger, ADAPTER, sources, chains)
        assert (verdict.status, counts.sealed_and_seen, counts.seen_not_sealed) == ("verified", 8, 0)
        session.read_manifest["metadata"]["title"] = "Another"
        session.write()
        assert reconcile(ledger, ADAPTER, sources, chains).counts.mismatched == 0, "Cline goes on rewriting it"
        session.messages[1]["content"][0]["input"] = {"task": "something else"}
        session.write()
        verdict, _ = reconcile(ledger, ADAPTER, sources, chains)
        assert verdict.first_bad is not None
        assert verdict.first_bad.code == "ARTIFACT_HASH_MISMATCH"


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
blocks = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "tool_use", "tool_result", "thinking", "image", "file", "new"])},
    optional=dict.fromkeys(("text", "id", "name", "input", "tool_use_id", "content", "thinking", "data"), anything),
)
messages = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant"]), "content": st.lists(blocks, max_size=4) | anything},
    optional=dict.fromkeys(("ts", "id", "metrics", "modelInfo"), anything),
)


@given(records=st.lists(messages | anything, max_size=6))
def test_whatever_a_session_says_it_is_read(records: list[Any]) -> None:
    turn = SessionParser(TranscriptSource(tool="cline", session="s", path=Path("s.messages.json"), appends=False))
    texts = [json.dumps(record).encode() for record in records]
    events = [
        event for index, text in enumerate(texts) for event in turn.feed(record_from_bytes(f"message:{index}", text))
    ]
    events += turn.finish()
    assert len({event.key for event in events}) == len(events)
