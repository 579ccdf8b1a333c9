"""What the user and the program say in Claude Code's transcripts, told apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aver.agents.claude_code.messages import classify_user
from support.agents.claude_transcripts import (
    Transcript,
    deeds_in,
    text,
)


@pytest.fixture
def transcript() -> Transcript:
    return Transcript()


def test_all_words_are_the_prompt_and_what_an_editor_adds_is_not(tmp_path: Path, transcript: Transcript) -> None:
    opened = "<ide_opened_file>The user opened /w/a.py</ide_opened_file>"
    transcript.prompt([text(opened), text("Fix it."), text("And test it.")])
    transcript.prompt([text(opened)])
    transcript.called("t1", "Bash", {"command": "ls"}, "")
    prompt, context, call = deeds_in(transcript, tmp_path)
    assert (prompt.what, prompt.text, prompt.result) == ("prompt", "Fix it.\nAnd test it.", {"context": [opened]})
    assert (context.what, context.result) == ("note", {"context": [opened]})
    assert call.prompt is not None
    assert call.prompt.text == prompt.text


@pytest.mark.parametrize(
    ("content", "more"),
    [
        ("Continue from where you left off.", {"isMeta": True}),
        ("This session is being continued.", {"isCompactSummary": True, "isVisibleInTranscriptOnly": True}),
        ("<task-notification><task-id>b1</task-id></task-notification>", {"origin": {"kind": "task-notification"}}),
        ("<task-notification><task-id>b1</task-id></task-notification>", {}),
        ("<local-command-stdout>Set model</local-command-stdout>", {}),
        ("<bash-input>ls</bash-input>", {}),
        ("[Request interrupted by user for tool use]", {}),
    ],
)
def test_what_no_person_asked_is_no_prompt(tmp_path: Path, content: str, more: dict[str, Any]) -> None:
    transcript = Transcript()
    transcript.prompt("Go", origin={"kind": "human"})
    transcript.prompt(content, **more)
    transcript.message("m", text("Done."), stop_reason="end_turn")
    asked, note, answer = deeds_in(transcript, tmp_path)
    assert (asked.what, note.what, note.text) == ("prompt", "note", content)
    assert answer.prompt is not None
    assert answer.prompt.text == "Go"


def test_commands_of_a_person(tmp_path: Path, transcript: Transcript) -> None:
    transcript.prompt("Go")
    for command in ("/review", "/clear", "/exit"):
        transcript.prompt(f"<command-name>{command}</command-name>\n<command-args>src</command-args>")
    events = deeds_in(transcript, tmp_path)
    assert [(event.what, event.summary, event.ends_session) for event in events[1:]] == [
        ("prompt", "prompt: /review src", False),
        ("session", "conversation cleared", False),
        ("session", "ended by /exit", True),
    ]
    assert events[2].prompt is None


def test_bulky_context_is_summarised_and_commands_in_the_queue_are_not(tmp_path: Path, transcript: Transcript) -> None:
    words = "word " * 10_000
    transcript.prompt("Go")
    transcript.attachment(type="skill_listing", content=words)
    transcript.attachment(type="queued_command", prompt=words, commandMode="prompt")
    transcript.attachment(type="todo_reminder", content=[], itemCount=0)
    transcript.attachment(type="edited_text_file", filename="/w/a.py", snippet=words)
    transcript.prompt(words, isMeta=True)
    _, listing, queued, reminder, edited, meta = deeds_in(transcript, tmp_path)
    assert len(json.dumps(listing.result)) < 2000
    assert set(listing.result["is"]) == {"sha256", "size", "media", "begins"}
    assert (queued.what, queued.text) == ("note", words)
    assert reminder.result["is"] == {"type": "todo_reminder", "content": [], "itemCount": 0}
    assert (edited.summary, edited.result["snippet"]) == ("changed by others: /w/a.py", words)
    assert meta.text == ""
    assert meta.result["texts"][0]["size"] == len(words)


def test_what_the_program_tells(tmp_path: Path, transcript: Transcript) -> None:
    metadata = {"trigger": "auto", "preTokens": 155_000}
    transcript.record(
        type="system", subtype="compact_boundary", content="Conversation compacted", compactMetadata=metadata
    )
    transcript.record(type="system", subtype="api_error", level="error", error={"status": 529}, retryAttempt=1)
    transcript.record(type="system", subtype="informational", level="info", content="Look out")
    transcript.record(type="system", subtype="local_command", content="<command-name>/clear</command-name>")
    transcript.record(type="system", subtype="local_command", content="plain")
    transcript.record(type="system", subtype="turn_duration", durationMs=1)
    transcript.record(type="system", subtype="stop_hook_summary", hookCount=1, hookErrors=["bad"])
    transcript.attachment(type="hook_success", hookName="Stop", hookEvent="Stop", stdout="stopped\n", exitCode=0)
    transcript.attachment(type="hook_non_blocking_error", hookName="Stop", hookEvent="Stop", stderr="oops", exitCode=1)
    events = deeds_in(transcript, tmp_path)
    assert [(event.what, event.summary, event.status) for event in events] == [
        ("note", "conversation compacted (auto)", None),
        ("note", "api error", "failure"),
        ("note", "informational: Look out", None),
        ("session", "conversation cleared", None),
        ("note", "local command: plain", None),
        ("note", "stop hook summary", None),
        ("note", "hook success: Stop", None),
        ("note", "hook non blocking error: Stop", "failure"),
    ]
    assert events[0].result["compactMetadata"] == metadata
    assert events[5].result["hookErrors"] == ["bad"]
    assert events[6].result["stdout"] == "stopped\n"


def test_titles(tmp_path: Path, transcript: Transcript) -> None:
    transcript.bare(type="summary", summary="Of another session", leafUuid="elsewhere")
    (last,) = transcript.message("m", text("Done."), stop_reason="end_turn")
    transcript.bare(type="summary", summary="Rounding totals", leafUuid=last)
    transcript.bare(type="ai-title", aiTitle="Fix rounding")
    transcript.bare(type="custom-title", customTitle="Totals")
    transcript.bare(type="custom-title", customTitle="Totals")
    transcript.bare(type="ai-title", aiTitle="Fix rounding of totals")
    titles = [(event.text, event.title) for event in deeds_in(transcript, tmp_path) if event.what == "session"]
    assert titles == [
        ("Of another session", None),
        ("Rounding totals", "Rounding totals"),
        ("Fix rounding", "Fix rounding"),
        ("Totals", "Totals"),
        ("Fix rounding of totals", None),
    ]


def test_settings_are_told_when_they_change(tmp_path: Path, transcript: Transcript) -> None:
    for mode in ("normal", "normal", "other"):
        transcript.bare(type="mode", mode=mode)
    transcript.bare(type="pr-link", prNumber=7, prUrl="https://git.example/7")
    transcript.bare(type="queue-operation", operation="enqueue", content="later")
    transcript.bare(type="queue-operation", operation="remove", content="later")
    transcript.bare(type="file-history-snapshot", snapshot={})
    transcript.bare(type="ended-by-model")
    events = deeds_in(transcript, tmp_path)
    assert [(event.key[:4], event.summary) for event in events] == [
        ("at-1", "mode: normal"),
        ("at-3", "mode: other"),
        ("at-4", "pr-link: https://git.example/7"),
        ("at-6", "queue, remove: later"),
        ("at-8", "ended by the model"),
    ]
    assert events[-1].ends_session


def test_a_command_with_many_beginnings_of_arguments_is_read_at_once() -> None:
    text = "<command-name>/x</command-name>" + "<command-args>" * 200_000
    said = classify_user({}, text)
    assert said is not None
    assert said.summary == "prompt: /x"
    whole = classify_user({}, "<command-name>/x</command-name><command-args>y z</command-args>")
    assert whole is not None
    assert whole.summary == "prompt: /x y z"
