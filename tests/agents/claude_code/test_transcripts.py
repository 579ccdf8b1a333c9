"""Claude Code's transcripts: where they are, what the model does there, and whatever else may stand in them."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aver.agents.claude_code.transcripts import ADAPTER
from aver.files.user_dirs import UserEnvironment
from aver.ingest.contract import AgentEvent, TranscriptSource, record_from_bytes
from aver.ingest.seal import TranscriptFollower
from aver.ledger import open_ledger
from support.agents.claude_transcripts import (
    CWD,
    HUNK,
    SESSION,
    USAGE,
    Layout,
    Transcript,
    calls,
    deeds_in,
    deeds_of,
    session_at,
    sources_in,
    text,
    thinking,
    use,
    with_subagent,
)


@pytest.fixture
def transcript() -> Transcript:
    return Transcript()


# --- where transcripts are


@pytest.mark.parametrize("layout", ["directory", "beside", "inline"])
def test_a_subagent_has_deeds_of_its_own_wherever_its_records_stand(tmp_path: Path, layout: Layout) -> None:
    with_subagent(tmp_path, layout)
    sources = sources_in(tmp_path)
    told = [(source, event) for source in sources for event in deeds_of(source)]
    assert {source.session for source in sources} == {SESSION}
    main = [event for source, event in told if not source.agent and not event.agent]
    sub = [event for source, event in told if source.agent or event.agent]
    assert [event.what for event in sub] == ["prompt", "call", "answer"]
    assert [event.what for event in main] == ["prompt", "call", "answer"]
    assert calls(sub)["toolu_a1"].call is not None
    assert calls(sub)["toolu_a1"].prompt is not None
    assert calls(sub)["toolu_a1"].prompt.text == "Find total()"  # type: ignore[union-attr]
    assert main[-1].prompt is not None
    assert main[-1].prompt.text == "Make totals round half up"
    agents = {source.agent or event.agent for source, event in told} - {""}
    assert {calls(main)["toolu_task"].launched} == agents
    causes = {source.launched_by or event.cause for source, event in told if source.agent or event.agent}
    assert causes == ({""} if layout == "beside" else {"toolu_task"})
    assert calls(main)["toolu_task"].side_effects == ("delegated to Explore",)


def test_records_of_parallel_subagents_are_told_apart_by_their_parents(tmp_path: Path, transcript: Transcript) -> None:
    transcript.prompt("Go")
    transcript.message("m1", use("t1", "Task", prompt="one"), use("t2", "Task", prompt="two"))
    first = transcript.record(
        type="user", isSidechain=True, parentUuid=None, message={"role": "user", "content": "one"}
    )
    second = transcript.record(
        type="user", isSidechain=True, parentUuid=None, message={"role": "user", "content": "two"}
    )
    for name, parent in (("a", first), ("b", second)):
        transcript.message(f"m_{name}", text(f"said {name}"), isSidechain=True, parentUuid=parent)
    transcript.result("t2", "two is done")
    transcript.result("t1", "one is done")
    events = deeds_in(transcript, tmp_path)
    assert {(event.text, event.agent, event.cause) for event in events if event.what == "answer"} == {
        ("said a", first, "t1"),
        ("said b", second, "t2"),
    }
    assert (calls(events)["t1"].launched, calls(events)["t2"].launched) == (first, second)


def test_another_directory_can_be_named(tmp_path: Path, transcript: Transcript) -> None:
    transcript.prompt("Hello")
    transcript.write(tmp_path / "elsewhere" / "projects" / "-w" / "s1.jsonl")
    assert sources_in(tmp_path) == []
    found = sources_in(tmp_path, CLAUDE_CONFIG_DIR=str(tmp_path / "elsewhere"))
    assert [source.session for source in found] == ["s1"]
    around = UserEnvironment(tmp_path, {"CLAUDE_CONFIG_DIR": str(tmp_path / "elsewhere")})
    assert list(ADAPTER.places(around)) == [tmp_path / "elsewhere" / "projects"]


def test_a_transcript_of_a_subagent_is_found_once_its_first_line_is_whole(tmp_path: Path) -> None:
    agent = Transcript(agent="a1")
    agent.prompt("Look")
    path = tmp_path / ".claude" / "projects" / "-w" / "agent-a1.jsonl"
    Transcript().write(path, torn=agent.lines[0][:40])
    assert sources_in(tmp_path) == []
    agent.write(path)
    assert [(source.session, source.agent) for source in sources_in(tmp_path)] == [(SESSION, "a1")]
    path.write_bytes(b"nothing that we know\n")
    assert [(source.session, source.agent) for source in sources_in(tmp_path)] == [("agent-a1", "")]


def test_what_stands_beside_a_transcript_may_be_anything(tmp_path: Path) -> None:
    path = with_subagent(tmp_path, "directory")
    beside = path.with_suffix("") / "subagents" / "agent-a1646393.meta.json"
    for said in (b"", b"[]", b"{", b'{"toolUseId": 7}', b"\xff"):
        beside.write_bytes(said)
        assert [source.launched_by for source in sources_in(tmp_path)] == ["", ""]


def test_a_transcript_that_is_gone_reads_as_empty(tmp_path: Path, transcript: Transcript) -> None:
    path = session_at(tmp_path, transcript)
    (source,) = sources_in(tmp_path)
    path.unlink()
    assert deeds_of(source) == []


# --- what the model does


def test_a_call_is_told_with_what_was_said_and_thought_before_it(tmp_path: Path, transcript: Transcript) -> None:
    asked = transcript.prompt("Make totals round half up", permissionMode="acceptEdits", promptId="p1")
    transcript.message(
        "msg_1",
        thinking("Look first.", "S" * 400),
        text("I change it."),
        use("toolu_1", "Edit", file_path=f"{CWD}/sum.py", old_string="round", new_string="half_up"),
        stop_reason="tool_use",
    )
    transcript.result("toolu_1", "The file has been updated.", {"filePath": f"{CWD}/sum.py", "structuredPatch": [HUNK]})
    mode, prompt, event = deeds_in(transcript, tmp_path)
    assert (mode.what, mode.summary) == ("session", "permission mode: acceptEdits")
    assert (prompt.what, prompt.key, prompt.text) == ("prompt", asked, "Make totals round half up")
    assert event.call is not None
    assert event.prompt is not None
    assert event.prompt.key == asked
    assert (event.what, event.key, event.call.id, event.call.tool, event.call.ok) == (
        "call",
        "toolu_1",
        "toolu_1",
        "Edit",
        True,
    )
    assert event.summary == f"Edit: {CWD}/sum.py (+2/-1)"
    assert event.side_effects == (f"edited {CWD}/sum.py",)
    assert event.call.diff == (
        "--- a/w/shop/sum.py\n+++ b/w/shop/sum.py\n@@ -7,2 +7,3 @@\n def total(xs):\n-    return round(sum(xs))\n"
        "+    # half up\n+    return half_up(sum(xs))\n"
    )
    assert (event.text, event.thinking, event.signatures, event.redacted) == (
        "I change it.",
        "Look first.",
        ("S" * 400,),
        False,
    )
    assert event.at == "2026-05-31T09:00:02+00:00"
    assert event.duration_ms == 500
    assert event.model == "claude-opus-4-8"
    assert event.places == ("2", "3", "4", "5")
    assert (event.allowed.by, event.allowed.reference) == ("policy", "permission_mode=acceptEdits")
    assert dict(event.environment) == {
        "cwd": CWD,
        "git_branch": "main",
        "version": "2.1.197",
        "uuid": event.environment["uuid"],
        "parent_uuid": event.environment["parent_uuid"],
        "request_id": "req_msg_1",
        "user_type": "external",
        "message_id": "msg_1",
        "stop_reason": "tool_use",
        "permission_mode": "acceptEdits",
    }


def test_reasoning_without_its_text_is_redacted_and_keeps_its_signature(tmp_path: Path, transcript: Transcript) -> None:
    transcript.message("msg_1", thinking("", "Eq" * 300), {"type": "redacted_thinking", "data": "zz"}, text("Done."))
    (event,) = deeds_in(transcript, tmp_path)
    assert (event.what, event.text, event.thinking, event.redacted) == ("answer", "Done.", "", True)
    assert event.signatures == ("Eq" * 300, "zz")


def test_an_answer_is_told_when_the_message_is_over(tmp_path: Path, transcript: Transcript) -> None:
    turn = ADAPTER.parser(TranscriptSource(tool="claude-code", session=SESSION, path=tmp_path))
    transcript.message("msg_1", thinking("Hm."), text("It is done."), stop_reason="end_turn")
    transcript.message("msg_2", text("Nobody said why it stopped."))
    transcript.prompt("And now?")
    told = [
        [event.summary for event in turn.feed(record_from_bytes(str(n), line))]
        for n, line in enumerate(transcript.lines, 1)
    ]
    assert told == [[], ["It is done."], [], ["Nobody said why it stopped.", "prompt: And now?"]]


def test_a_message_is_counted_once_however_many_lines_it_has(tmp_path: Path, transcript: Transcript) -> None:
    transcript.message(
        "msg_1", thinking(""), text("Both."), use("t1", "Bash", command="a"), use("t2", "Bash", command="b")
    )
    transcript.result("t2", "")
    transcript.result("t1", "")
    transcript.message("msg_2", text("Done."), usage={"input_tokens": 1, "output_tokens": 2}, stop_reason="end_turn")
    counted = [event.tokens for event in deeds_in(transcript, tmp_path)]
    assert [None if tokens is None else (tokens.input, tokens.output) for tokens in counted] == [
        (20926, 96),
        None,
        (1, 2),
    ]
    assert counted[0] is not None
    assert counted[0].native == USAGE


def test_usage_that_grows_is_counted_to_its_last_value(tmp_path: Path, transcript: Transcript) -> None:
    """A call may be over, and be told, while the message that made it still goes on."""
    transcript.message("msg_1", use("t1", "Bash", command="a"), usage={"input_tokens": 5, "output_tokens": 1})
    transcript.result("t1", "")
    transcript.message("msg_1", use("t2", "Bash", command="b"), usage={"input_tokens": 5, "output_tokens": 40})
    transcript.result("t2", "")
    transcript.message("msg_1", text("."), usage={"input_tokens": 5, "output_tokens": 70}, stop_reason="end_turn")
    counted = [event.tokens for event in deeds_in(transcript, tmp_path)]
    assert [(tokens.input, tokens.output) for tokens in counted if tokens] == [(5, 1), (0, 39), (0, 30)]
    assert [dict(tokens.native) for tokens in counted if tokens][1:] == [{"output_tokens": 39}, {"output_tokens": 30}]


def test_text_between_calls_stays_with_the_call_that_follows(tmp_path: Path, transcript: Transcript) -> None:
    """Results may stand between the lines of one message."""
    transcript.message("msg_1", use("t1", "Bash", command="a"), text("Now b."))
    transcript.result("t1", "")
    transcript.message("msg_1", use("t2", "Bash", command="b"))
    transcript.result("t2", "")
    assert [(event.key, event.text) for event in deeds_in(transcript, tmp_path)] == [("t1", ""), ("t2", "Now b.")]


def test_a_call_without_a_result_is_told_at_the_end_and_may_still_get_one(tmp_path: Path) -> None:
    transcript = Transcript()
    transcript.message("msg_1", use("t1", "Bash", command="sleep 9"))
    turn = ADAPTER.parser(TranscriptSource(tool="claude-code", session=SESSION, path=tmp_path))
    assert list(turn.feed(record_from_bytes("1", transcript.lines[0]))) == []
    (event,) = turn.finish()
    assert event.call is not None
    assert (event.key, event.call.ok, event.status, event.side_effects) == ("t1", None, "pending", ())
    assert event.tokens is not None
    assert list(turn.finish()) == []
    transcript.result("t1", "woke up")
    (late,) = turn.feed(record_from_bytes("2", transcript.lines[1]))
    assert late.call is not None
    assert (late.key, late.call.ok, late.tokens) == ("t1", True, None)


def test_one_record_may_hold_a_whole_message(tmp_path: Path, transcript: Transcript) -> None:
    own = transcript.record(
        type="assistant",
        message={
            "id": "m",
            "content": [text("First."), use("t1", "Bash", command="a"), text("Last."), {"type": "new"}],
        },
    )
    transcript.result("t1", "")
    assert [(event.what, event.key, event.text) for event in deeds_in(transcript, tmp_path)] == [
        ("unknown", f"{own}:3", ""),
        ("call", "t1", "First."),
        ("answer", f"{own}:2", "Last."),
    ]


def test_the_program_in_the_place_of_the_model_is_no_model(tmp_path: Path, transcript: Transcript) -> None:
    usage = dict.fromkeys(USAGE, 0)
    transcript.message("m", text("API Error: 529"), model="<synthetic>", usage=usage, isApiErrorMessage=True)
    (event,) = deeds_in(transcript, tmp_path)
    assert (event.what, event.model, event.tokens, event.status) == ("answer", None, None, "failure")


# --- what no version has written yet, and what no version should write


def test_a_sort_that_is_not_known_is_kept_raw(tmp_path: Path, transcript: Transcript) -> None:
    own = transcript.record(type="marble", pieces=[1, 2])
    transcript.bare(nothing="at all")
    events = deeds_in(transcript, tmp_path)
    line = f"at-2-{hashlib.sha256(transcript.lines[1]).hexdigest()[:16]}"
    assert [(event.what, event.key, event.summary) for event in events] == [
        ("unknown", own, "unknown record: marble"),
        ("unknown", line, "unknown record: without a type"),
    ]
    assert events[0].result["pieces"] == [1, 2]


def test_a_torn_last_line_waits_for_its_end(tmp_path: Path, transcript: Transcript) -> None:
    transcript.prompt("One")
    transcript.prompt("Two")
    path = tmp_path / "s.jsonl"
    path.write_bytes(transcript.lines[0] + b"\n" + transcript.lines[1][:50])
    source = TranscriptSource(tool="claude-code", session="s", path=path)
    turn, read = ADAPTER.parser(source), ADAPTER.read(source)
    assert [event.text for record in read() for event in turn.feed(record)] == ["One"]
    path.write_bytes(b"\n".join(transcript.lines) + b"\n")
    assert [event.text for record in read() for event in turn.feed(record)] == ["Two"]


def test_a_line_that_is_too_large_is_kept_by_its_digest(
    tmp_path: Path, transcript: Transcript, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aver.ingest.json_lines.RECORD_MAX", 1024 * 1024)
    transcript.prompt("x" * 3 * 1024 * 1024)
    transcript.prompt("after")
    huge, after = deeds_in(transcript, tmp_path)
    digest = hashlib.sha256(transcript.lines[0]).hexdigest()
    assert (huge.what, huge.result) == ("unknown", {"sha256": digest, "size": len(transcript.lines[0])})
    assert after.text == "after"


def test_lines_that_are_no_records_are_kept(tmp_path: Path, transcript: Transcript) -> None:
    transcript.lines += [b"", b"{", b"\xff\xfe", b"[1]", b"7", b'{"type":"user","message":{"content":"\\ud800"}}']
    events = deeds_in(transcript, tmp_path)
    assert [event.what for event in events] == ["unknown"] * 5 + ["prompt"]
    assert [event.result for event in events[:5]] == [
        {"sha256": hashlib.sha256(b"").hexdigest(), "size": 0},
        "{",
        "��",
        [1],
        7,
    ]
    assert events[-1].text == "�"


def test_the_same_line_twice_has_two_keys(tmp_path: Path, transcript: Transcript) -> None:
    transcript.prompt("Again")
    transcript.message("m", use("t1", "Bash", command="ls"))
    transcript.lines += transcript.lines
    transcript.result("t1", "")
    transcript.lines.append(transcript.lines[-1])
    transcript.message("m2", use("t1", "Bash", command="rm"))
    events = deeds_in(transcript, tmp_path)
    assert [event.what for event in events] == ["prompt", "prompt", "call", "unknown", "unknown"]
    assert len({event.key for event in events}) == 5
    assert sum(event.tokens is not None for event in events) == 1


def test_keys_of_a_subagent_are_not_those_of_its_session(tmp_path: Path) -> None:
    main, agent = Transcript(), Transcript(agent="a1")
    for transcript in (main, agent):
        transcript.bare(type="strange")
        transcript.prompt("Go")
    path = session_at(tmp_path, main)
    agent.write(path.with_suffix("") / "subagents" / "agent-a1.jsonl")
    keys = [event.key for source in sources_in(tmp_path) for event in deeds_of(source)]
    assert len(set(keys)) == len(keys) == 4


def whole_session() -> Transcript:
    """One of everything."""
    transcript = Transcript()
    transcript.bare(type="permission-mode", permissionMode="default")
    transcript.prompt([text("<ide_selection>x</ide_selection>"), text("Go")], permissionMode="acceptEdits")
    transcript.message("m1", thinking(""), text("I do."), use("t1", "Edit", file_path="/w/a"), stop_reason="tool_use")
    transcript.result("t1", "ok", {"filePath": "/w/a", "structuredPatch": [HUNK], "originalFile": "z"})
    transcript.called("t2", "Bash", {"command": "ls"}, "a", {"stdout": "a", "stderr": ""})
    transcript.called("t3", "Bash", {"command": "ls"}, "Exit code 1\n", error=True)
    transcript.called("t4", "Read", {"file_path": "/w/a"}, "1\tx", {"type": "text", "file": {"content": "x"}})
    transcript.called("t5", "WebSearch", {"query": "q"}, "", {"results": [{"content": [{"url": "u"}]}]})
    transcript.called("t6", "Agent", {"prompt": "p"}, [text("f")], {"agentId": "a", "toolStats": {"linesAdded": 1}})
    transcript.called("t7", "NotebookEdit", {"notebook_path": "/w/n"}, "", {"original_file": "a", "updated_file": "b"})
    transcript.called("t8", "Glob", {"pattern": "*"}, "", {"filenames": [], "numFiles": 0})
    transcript.record(type="user", isSidechain=True, message={"role": "user", "content": "p"})
    transcript.message("m2", text("Aside."), isSidechain=True)
    transcript.attachment(type="hook_blocking_error", hookEvent="PreToolUse", toolUseID="t9")
    transcript.attachment(type="queued_command", prompt=[text("more")])
    transcript.record(type="system", subtype="compact_boundary", compactMetadata={"trigger": "auto"})
    transcript.bare(type="ai-title", aiTitle="Title")
    transcript.bare(type="summary", summary="Summary", leafUuid="x")
    transcript.prompt("<command-name>/exit</command-name>")
    transcript.message("m3", use("t9", "Bash", command="never"))
    return transcript


def test_reading_again_gives_the_same(tmp_path: Path) -> None:
    session_at(tmp_path, whole_session())
    (source,) = sources_in(tmp_path)
    first = deeds_of(source)
    assert first == deeds_of(source)
    assert {event.what for event in first} == {"session", "prompt", "call", "answer", "note"}


@pytest.mark.parametrize("layout", ["directory", "beside", "inline"])
def test_a_session_is_sealed_once_with_its_subagents(tmp_path: Path, layout: Layout) -> None:
    with_subagent(tmp_path, layout)
    with open_ledger(tmp_path / "ledger.db", home=tmp_path / "home") as ledger:
        for source in sources_in(tmp_path) * 2:
            TranscriptFollower(ledger, ADAPTER, source).step()
        (agent,) = {name for name in ledger.chains() if name not in ("meta", "keys", f"claude-code.{SESSION}")}
        main = [record.to_dict() for record in ledger.read(f"claude-code.{SESSION}")]
        sub = [record.to_dict() for record in ledger.read(agent)]
        assert ledger.verify().status in ("verified", "qualified")
    assert agent.startswith(f"claude-code.{SESSION}.")
    assert [content["type"] for content in main] == ["chat", "tool", "chat"]
    task = main[1]
    assert task["context"]["environment"]["subagent"]["chain"] == agent
    assert [content["outcome"]["summary"] for content in sub if content["type"] != "system"] == [
        "prompt: Find total()",
        "Bash: ls",
        "It is in sum.py.",
    ]
    assert task["id"] in {content["parent_id"] for content in sub}


def hold(lines: list[bytes]) -> list[AgentEvent]:
    """Whatever the lines are, they are read, and every event has a key of its own."""
    for agent in ("", "a1"):
        turn = ADAPTER.parser(TranscriptSource(tool="claude-code", session=SESSION, path=Path("x"), agent=agent))
        events = [
            event for number, line in enumerate(lines, 1) for event in turn.feed(record_from_bytes(str(number), line))
        ]
        events += turn.finish()
        assert all(event.key for event in events)
        # A call that was left behind comes once more with its late result.
        assert len({(event.key, event.status == "pending") for event in events}) == len(events)
        assert all(event.places for event in events)
    return events


NAMES = sorted(
    {name for line in whole_session().lines for name in json.loads(line)} | {"content", "id", "input", "name"}
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=12,
)
SORTS = ("user", "assistant", "system", "attachment", "summary", "mode", "permission-mode", "custom-title", "new")


@given(st.lists(JSON | st.fixed_dictionaries({"type": st.sampled_from(SORTS), "message": JSON, "attachment": JSON})))
@settings(deadline=None)
def test_any_json_is_read(values: list[Any]) -> None:
    hold([json.dumps(value).encode() for value in values])


@st.composite
def mutated(draw: st.DrawFn) -> list[bytes]:
    """The lines of a whole session, some of them with a value changed, dropped or doubled, wherever it stands."""
    lines = list(LINES)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(lines) - 1))
        holder = value = json.loads(lines[at])
        for _ in range(draw(st.integers(0, 5))):
            inner = [item for item in (holder.values() if isinstance(holder, dict) else holder) if item]
            inner = [item for item in inner if isinstance(item, dict | list)]
            if not inner:
                break
            holder = draw(st.sampled_from(inner))
        if not holder:
            continue
        place = draw(st.sampled_from(sorted(holder) if isinstance(holder, dict) else range(len(holder))))
        if draw(st.booleans()):
            holder[place] = draw(JSON)
        else:
            del holder[place]
        lines[at] = json.dumps(value).encode()
        if draw(st.booleans()):
            lines.insert(draw(st.integers(0, len(lines))), lines[at])
    return lines


LINES = whole_session().lines


@given(mutated())
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_change_to_a_session_is_read(lines: list[bytes]) -> None:
    hold(lines)


@given(st.lists(st.sampled_from(LINES), max_size=40), st.integers(0, 40))
@settings(deadline=None)
def test_any_order_is_read_and_tokens_are_counted_once(lines: list[bytes], cut: int) -> None:
    lines = [*lines, lines[0][:cut]] if lines else lines
    events = hold(lines)
    messages = {json.loads(line)["message"]["id"] for line in LINES if line in lines and b'"requestId"' in line}
    assert sum(event.tokens.output or 0 for event in events if event.tokens) == 96 * len(messages)


def test_a_session_in_two_projects_is_two_transcripts(tmp_path: Path) -> None:
    for project in ("a", "b"):
        transcript = Transcript()
        transcript.bare(type="custom-title", customTitle=project)
        transcript.write(tmp_path / ".claude" / "projects" / project / f"{SESSION}.jsonl")
    found = sources_in(tmp_path)
    assert [source.file for source in found] == [f"a/{SESSION}.jsonl", f"b/{SESSION}.jsonl"]
    assert len({event.key for source in found for event in deeds_of(source)}) == 2


def test_pipes_beside_transcripts_hang_nothing(tmp_path: Path) -> None:
    path = with_subagent(tmp_path, "directory")
    beside = path.with_suffix("") / "subagents" / "agent-a1646393.meta.json"
    beside.unlink()
    os.mkfifo(beside)
    os.mkfifo(tmp_path / ".claude" / "settings.json")
    os.mkfifo(path.with_name("agent-x.jsonl"))
    assert [source.launched_by for source in sources_in(tmp_path)] == ["", ""]
    assert ADAPTER.deletes_after(UserEnvironment(tmp_path, {})) == 30
