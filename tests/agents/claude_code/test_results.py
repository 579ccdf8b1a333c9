"""What came of Claude Code's calls, and who allowed them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from support.agents.claude_transcripts import (
    HUNK,
    Transcript,
    calls,
    deeds_in,
    one_call,
    text,
    use,
)


@pytest.fixture
def transcript() -> Transcript:
    return Transcript()


# --- what came of calls


def test_a_file_that_is_created_is_a_diff_from_nothing(tmp_path: Path, transcript: Transcript) -> None:
    data = {"type": "create", "filePath": "/w/a.py", "content": "a\nb\n", "structuredPatch": [], "originalFile": None}
    transcript.called("toolu_1", "Write", {"file_path": "/w/a.py", "content": "a\nb\n"}, "File created", data)
    event = one_call(transcript, tmp_path)
    assert event.summary == "Write: /w/a.py (+2/-0)"
    assert event.call is not None
    assert event.call.diff == "--- /dev/null\n+++ b/w/a.py\n@@ -0,0 +1,2 @@\n+a\n+b\n"
    assert event.side_effects == ("wrote /w/a.py",)


@pytest.mark.parametrize(
    ("tool", "arguments", "said", "data", "tally"),
    [
        ("MultiEdit", {"file_path": "/w/a"}, "", {"filePath": "/w/a", "structuredPatch": [HUNK, HUNK]}, " (+4/-2)"),
        (
            "MultiEdit",
            {"file_path": "/w/a", "edits": [{"old_string": "1", "new_string": "2\n3"}, {"old_string": "4"}]},
            "",
            None,
            " (+2/-1)",
        ),
        ("Edit", {"file_path": "/w/a", "old_string": "b", "new_string": ""}, "", None, " (+0/-1)"),
        ("Write", {"file_path": "/w/a", "content": "1\n2"}, "File created successfully at: /w/a", None, " (+2/-0)"),
        ("Write", {"file_path": "/w/a", "content": "1\n2"}, "The file /w/a has been updated.", None, ""),
        (
            "Write",
            {"file_path": "/w/a"},
            "",
            {"type": "update", "filePath": "/w/a", "structuredPatch": [HUNK]},
            " (+2/-1)",
        ),
        (
            "NotebookEdit",
            {"notebook_path": "/w/a"},
            "",
            {"original_file": "{\n1\n}", "updated_file": "{\n2\n3\n}", "notebook_path": "/w/a"},
            " (+2/-1)",
        ),
        ("NotebookEdit", {"notebook_path": "/w/a", "new_source": "x\ny"}, "", None, " (+2/-0)"),
        (
            "NotebookEdit",
            {"notebook_path": "/w/a", "edit_mode": "delete"},
            "",
            {"old_source": "x", "new_source": "x"},
            " (+0/-1)",
        ),
    ],
)
def test_an_edit_says_what_it_changed(
    tmp_path: Path, tool: str, arguments: dict[str, Any], said: str, data: Any, tally: str
) -> None:
    transcript = Transcript()
    transcript.called("toolu_1", tool, arguments, said, data)
    event = one_call(transcript, tmp_path)
    assert event.summary == f"{tool}: /w/a{tally}"
    assert event.call is not None
    assert (event.call.diff is not None) == bool(tally)


def test_the_whole_file_of_before_is_not_kept(tmp_path: Path, transcript: Transcript) -> None:
    data = {"filePath": "/w/a", "structuredPatch": [HUNK], "originalFile": "the whole file"}
    transcript.called("toolu_1", "Edit", {"file_path": "/w/a"}, "Updated.", data)
    assert "the whole file" not in repr(one_call(transcript, tmp_path))


def test_a_command_gives_both_streams_and_its_exit_code(tmp_path: Path, transcript: Transcript) -> None:
    data = {"stdout": "fine", "stderr": "warn", "interrupted": False, "isImage": False}
    transcript.called("toolu_1", "Bash", {"command": "make"}, "fine\nwarn", data)
    event = one_call(transcript, tmp_path)
    assert event.call is not None
    assert event.call.result == {"stdout": "fine", "stderr": "warn", "exit_code": 0}
    assert (event.call.ok, event.status, event.side_effects) == (True, None, ("ran make",))


def test_an_exit_code_that_was_interpreted_is_not_made_up(tmp_path: Path, transcript: Transcript) -> None:
    data = {"stdout": "", "stderr": "", "returnCodeInterpretation": "No matches found"}
    transcript.called("toolu_1", "Bash", {"command": "grep x y"}, "", data)
    event = one_call(transcript, tmp_path)
    assert event.call is not None
    assert event.call.result == data


def test_a_failed_command_is_a_failure(tmp_path: Path, transcript: Transcript) -> None:
    transcript.called("toolu_1", "Bash", {"command": "make"}, "Exit code 2\nout\nerr", "Error: Exit code 2", error=True)
    event = one_call(transcript, tmp_path)
    assert event.call is not None
    assert (event.call.ok, event.call.error) == (False, "Exit code 2")
    assert event.call.result == {"output": "out\nerr", "exit_code": 2}
    assert event.summary == "Bash: make (exit 2)"
    assert event.side_effects == ("ran make",)
    assert not event.allowed.denied


def test_a_command_that_never_ran_has_no_effect(tmp_path: Path, transcript: Transcript) -> None:
    said = "<tool_use_error>InputValidationError: Bash failed</tool_use_error>"
    transcript.called("toolu_1", "Bash", {"cmd": "make"}, said, error=True)
    event = one_call(transcript, tmp_path)
    assert event.call is not None
    assert (event.call.ok, event.call.error, event.side_effects) == (False, "InputValidationError: Bash failed", ())


def test_an_interrupted_command_is_partial(tmp_path: Path, transcript: Transcript) -> None:
    data = {"stdout": "half", "stderr": "", "interrupted": True}
    transcript.called("toolu_1", "Bash", {"command": "make"}, "half", data)
    event = one_call(transcript, tmp_path)
    assert event.call is not None
    assert (event.call.ok, event.status, event.summary) == (False, "partial", "Bash: make (interrupted)")
    assert event.side_effects == ("ran make",)
    assert "said_by" not in event.environment


@pytest.mark.parametrize(
    "said",
    [
        "[Request interrupted by user for tool use]",
        "half\n<error>Command was aborted before completion</error>",
    ],
)
def test_an_interruption_that_only_words_tell_is_noted(tmp_path: Path, transcript: Transcript, said: str) -> None:
    transcript.called("toolu_1", "Bash", {"command": "make"}, said, error=True)
    event = one_call(transcript, tmp_path)
    assert (event.status, event.summary, event.side_effects) == ("partial", "Bash: make (interrupted)", ("ran make",))
    assert event.environment["said_by"] == "words"


@pytest.mark.parametrize(
    "words",
    ["[Request interrupted by user for tool use]", "<error>Command was aborted before completion</error>"],
)
def test_a_command_that_prints_an_interruption_has_failed(tmp_path: Path, transcript: Transcript, words: str) -> None:
    transcript.called("toolu_1", "Bash", {"command": "make"}, f"Exit code 3\n{words}", error=True)
    event = one_call(transcript, tmp_path)
    assert event.call is not None
    assert (event.status, event.summary, event.side_effects) == (None, "Bash: make (exit 3)", ("ran make",))
    assert event.call.result == {"output": words, "exit_code": 3}


def test_a_command_in_the_background_is_not_over(tmp_path: Path, transcript: Transcript) -> None:
    data = {"stdout": "", "stderr": "", "interrupted": False, "backgroundTaskId": "b1"}
    transcript.called("toolu_1", "Bash", {"command": "serve"}, "Command running in background", data)
    event = one_call(transcript, tmp_path)
    assert event.call is not None
    assert (event.status, event.summary) == ("pending", "Bash: serve (in background: b1)")
    assert "exit_code" not in event.call.result


def test_reading_gives_content_and_number_of_lines(tmp_path: Path, transcript: Transcript) -> None:
    file = {"filePath": "/w/a", "content": "x\ny", "numLines": 2, "startLine": 5, "totalLines": 90}
    transcript.called("toolu_1", "Read", {"file_path": "/w/a"}, "", {"type": "text", "file": file})
    transcript.called("toolu_2", "Read", {"file_path": "/w/a"}, "     5→x\n     6→y")
    first, second = calls(deeds_in(transcript, tmp_path)).values()
    assert first.call is not None
    assert second.call is not None
    assert first.call.result == {"content": "x\ny", "lines": 2, "start_line": 5, "total_lines": 90}
    assert second.call.result == {"content": "     5→x\n     6→y", "lines": 2}
    assert first.summary == second.summary == "Read: /w/a (2 lines)"


def test_a_picture_is_kept_by_its_digest(tmp_path: Path, transcript: Transcript) -> None:
    data = {"type": "image", "file": {"base64": "QUJD", "type": "image/png", "originalSize": 3}}
    block = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}}
    transcript.called("toolu_1", "Read", {"file_path": "/w/p.png"}, [block], data)
    transcript.called("toolu_2", "mcp__browser__look", {}, [block], [block])
    transcript.prompt([text("What is this?"), block])
    events = deeds_in(transcript, tmp_path)
    digest = {"sha256": hashlib.sha256(b"QUJD").hexdigest(), "size": 4, "media": "image/png"}
    kept = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": digest}}
    first, second = calls(events).values()
    assert first.call is not None
    assert second.call is not None
    assert first.call.result["file"]["base64"] == digest
    assert second.call.result == [kept]
    assert (events[-1].text, events[-1].result) == ("What is this?", {"attached": [kept]})
    assert "QUJD" not in repr(events)


@pytest.mark.parametrize(
    ("tool", "arguments", "data", "result", "note"),
    [
        (
            "Glob",
            {"pattern": "*.py"},
            {"filenames": ["a.py"], "numFiles": 1, "durationMs": 12, "truncated": False},
            {"filenames": ["a.py"], "numFiles": 1, "durationMs": 12, "truncated": False},
            "Glob: *.py (1 file)",
        ),
        (
            "Grep",
            {"pattern": "x"},
            {"mode": "content", "numFiles": 0, "filenames": [], "content": "a:x", "numLines": 1},
            {"mode": "content", "numFiles": 0, "filenames": [], "content": "a:x", "numLines": 1},
            "Grep: x (1 line)",
        ),
        (
            "WebSearch",
            {"query": "half up"},
            {
                "query": "half up",
                "results": [{"content": [{"url": "https://a.example", "title": "A"}, {"title": "?"}]}, "In short"],
            },
            {"query": "half up", "urls": ["https://a.example"], "titles": ["A"], "text": "In short"},
            "WebSearch: half up (1 result)",
        ),
        (
            "WebFetch",
            {"url": "https://a.example", "prompt": "?"},
            {"bytes": 3, "code": 200, "codeText": "OK", "result": "abc", "durationMs": 12, "url": "https://a.example"},
            {"bytes": 3, "code": 200, "codeText": "OK", "result": "abc", "durationMs": 12, "url": "https://a.example"},
            "WebFetch: https://a.example (HTTP 200)",
        ),
        ("mcp__db__query", {"sql": "select 1"}, None, "seen", "mcp__db__query: select 1"),
        (
            "mcp__db__query",
            {"sql": "select 1"},
            {"n": 1},
            {"said": "seen", "data": {"n": 1}},
            "mcp__db__query: select 1",
        ),
    ],
)
def test_other_tools_keep_what_they_gave(
    tmp_path: Path, tool: str, arguments: dict[str, Any], data: Any, result: Any, note: str
) -> None:
    transcript = Transcript()
    transcript.called("toolu_1", tool, arguments, "seen", data)
    event = one_call(transcript, tmp_path)
    assert event.call is not None
    assert (event.call.result, event.summary, event.call.ok) == (result, note, True)
    if isinstance(data, dict) and "durationMs" in data:
        assert event.duration_ms == 12


def test_a_subagent_leaves_its_scorecard(tmp_path: Path, transcript: Transcript) -> None:
    data = {
        "status": "completed",
        "agentId": "a1",
        "agentType": "Explore",
        "prompt": "the whole prompt",
        "content": [text("Found it.")],
        "totalDurationMs": 8123,
        "totalTokens": 900,
        "totalToolUseCount": 9,
        "toolStats": {"editFileCount": 2, "linesAdded": 14, "linesRemoved": 3, "readCount": 4},
    }
    arguments = {"description": "Look", "prompt": "the whole prompt", "subagent_type": "Explore"}
    transcript.called("toolu_1", "Agent", arguments, [text("Found it.")], data)
    event = one_call(transcript, tmp_path)
    assert event.call is not None
    assert event.summary == "Agent: Look [Explore: 2 edits, +14/-3, 9 tool calls]"
    assert (event.launched, event.duration_ms, event.status) == ("a1", 8123, None)
    assert event.side_effects == ("delegated to Explore",)
    assert event.call.result["content"] == "Found it."
    assert "prompt" not in event.call.result


def test_a_subagent_may_work_on_in_the_background(tmp_path: Path, transcript: Transcript) -> None:
    data = {"isAsync": True, "status": "async_launched", "agentId": "a2", "description": "Look"}
    transcript.called("toolu_1", "Task", {"description": "Look", "subagent_type": "Plan"}, "launched", data)
    event = one_call(transcript, tmp_path)
    assert (event.summary, event.launched, event.status) == ("Task: Look [Plan: in background]", "a2", "pending")


def test_an_object_beside_two_results_belongs_to_neither(tmp_path: Path, transcript: Transcript) -> None:
    transcript.message("m", use("t1", "Bash", command="a"), use("t2", "Bash", command="b"))
    results = [{"type": "tool_result", "tool_use_id": name, "content": name} for name in ("t1", "t2")]
    transcript.prompt(results, toolUseResult={"stdout": "whose?", "stderr": ""})
    assert [event.call.result for event in deeds_in(transcript, tmp_path) if event.call] == [
        {"output": "t1"},
        {"output": "t2"},
    ]


def test_a_result_of_no_call_is_kept_raw(tmp_path: Path, transcript: Transcript) -> None:
    transcript.result("toolu_lost", "what was it?")
    (event,) = deeds_in(transcript, tmp_path)
    assert (event.what, event.result["content"]) == ("unknown", "what was it?")


# --- who allowed it


@pytest.mark.parametrize(
    ("mode", "by"),
    [
        *((mode, "policy") for mode in ("default", "acceptEdits", "plan", "dontAsk", "auto")),
        ("bypassPermissions", "autonomous"),
        ("somethingNew", "unknown"),
    ],
)
def test_a_mode_says_who_decides(tmp_path: Path, transcript: Transcript, mode: str, by: str) -> None:
    transcript.bare(type="permission-mode", permissionMode=mode)
    transcript.called("toolu_1", "Bash", {"command": "ls"}, "")
    event = one_call(transcript, tmp_path)
    assert (event.allowed.by, event.allowed.reference) == (by, f"permission_mode={mode}")


def test_without_a_mode_nobody_knows(tmp_path: Path, transcript: Transcript) -> None:
    transcript.called("toolu_1", "Bash", {"command": "ls"}, "")
    event = one_call(transcript, tmp_path)
    assert (event.allowed.by, event.allowed.reference) == ("unknown", None)


def test_a_call_is_judged_by_the_mode_it_was_made_under(tmp_path: Path, transcript: Transcript) -> None:
    transcript.prompt("Go", permissionMode="default")
    transcript.message("m", use("t1", "Bash", command="ls"))
    transcript.bare(type="permission-mode", permissionMode="bypassPermissions")
    transcript.bare(type="permission-mode", permissionMode="bypassPermissions")
    transcript.result("t1", "")
    events = deeds_in(transcript, tmp_path)
    assert calls(events)["t1"].allowed.reference == "permission_mode=default"
    assert [event.result for event in events if event.what == "session"] == [
        {"mode": "default", "before": None},
        {"mode": "bypassPermissions", "before": "default"},
    ]


REJECTED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the "
    "new_string was NOT written to the file). STOP what you are doing and wait for the user to tell you how to proceed."
)


WORDS_OF_REFUSAL = [
    (REJECTED, "unknown", "rejected by the user"),
    ("The user doesn't want to take this action right now. STOP", "unknown", "rejected by the user"),
    ("Permission for this tool use was denied. The user said: no", "unknown", "rejected by the user"),
    ("Permission for this tool use was denied. Try another", "unknown", None),
    ("PreToolUse:Write hook error: [x]: no", "policy", "hook=PreToolUse"),
    ("Hook PreToolUse:Write denied this tool", "policy", "hook=PreToolUse"),
    ("Permission to edit /w/a has been denied.", "policy", "Permission to edit /w/a has been denied."),
    (
        "Claude requested permissions to write to /w/a, but you haven't granted it yet.",
        "policy",
        "Claude requested permissions to write to /w/a, but you haven't granted it yet.",
    ),
]


@pytest.mark.parametrize("said", [REJECTED, "no", "Exit code 1\nno"])
@pytest.mark.parametrize("tool", ["Bash", "Write", "mcp__db__drop", "WebFetch"])
def test_what_was_refused_did_not_happen(tmp_path: Path, tool: str, said: str) -> None:
    transcript = Transcript()
    transcript.called("toolu_1", tool, {"command": "rm -r x"}, said, "User rejected tool use", error=True)
    event = one_call(transcript, tmp_path)
    assert event.call is not None
    assert (event.allowed.denied, event.status, event.call.ok) == (True, "blocked", False)
    assert (event.allowed.by, event.allowed.reference) == ("unknown", "rejected by the user")
    assert event.side_effects == ()
    assert event.summary == f"{tool}: rm -r x (denied)"
    assert "said_by" not in event.environment


@pytest.mark.parametrize(("said", "by", "reference"), WORDS_OF_REFUSAL)
def test_words_of_a_tool_that_returns_nothing_of_others_refuse_and_are_noted(
    tmp_path: Path, said: str, by: str, reference: str | None
) -> None:
    transcript = Transcript()
    transcript.called("toolu_1", "Write", {"file_path": "/w/a"}, said, f"Error: {said}", error=True)
    event = one_call(transcript, tmp_path)
    assert (event.allowed.denied, event.status, event.side_effects) == (True, "blocked", ())
    assert (event.allowed.by, event.allowed.reference) == (by, reference)
    assert event.environment["said_by"] == "words"


BLOCKED_DIRECTORY = "cd was blocked. For security, Claude Code may only change directories"


@pytest.mark.parametrize("words", [*(said for said, _, _ in WORDS_OF_REFUSAL), BLOCKED_DIRECTORY])
@pytest.mark.parametrize(
    "form",
    [
        "Exit code 1\n{}",
        "Error: Exit code 1\n{}",
        "{}",
        "{}\nmore",
        "\n{}",
        "some output\n{}",
        '{{"error": "{}"}}',
        "<tool_use_error>{}</tool_use_error>",
    ],
)
@pytest.mark.parametrize("tool", ["Bash", "PowerShell", "mcp__db__drop", "WebFetch", "Task", "Agent", "Grep", "Skill"])
def test_printed_words_refuse_nothing(tmp_path: Path, words: str, form: str, tool: str) -> None:
    transcript = Transcript()
    transcript.bare(type="permission-mode", permissionMode="default")
    said = form.format(words)
    transcript.called(
        "toolu_1", tool, {"command": "rm -rf /srv/data; echo …; exit 1"}, said, f"Error: {said}", error=True
    )
    event = one_call(transcript, tmp_path)
    assert event.call is not None
    assert (event.allowed.denied, event.status, event.call.ok) in [(False, None, False), (False, "partial", False)]
    assert "(denied)" not in event.summary
    if "Exit code 1" in form and tool in ("Bash", "PowerShell"):
        assert event.side_effects == ("ran rm -rf /srv/data; echo …; exit 1",)
        assert event.call.result["exit_code"] == 1
    elif tool in ("Bash", "PowerShell"):
        assert event.environment["said_by"] == "words"


@pytest.mark.parametrize("words", [BLOCKED_DIRECTORY, "String to replace not found: Permission to x was denied"])
@pytest.mark.parametrize("tool", ["Edit", "Read", "Write"])
def test_words_after_the_first_ones_refuse_nothing(tmp_path: Path, words: str, tool: str) -> None:
    for said in (words, f"File has changed.\n{REJECTED}", f"File has changed: {words}", f"  {REJECTED}"):
        transcript = Transcript()
        transcript.called("toolu_1", tool, {"file_path": "/w/a"}, said, f"Error: {said}", error=True)
        assert not one_call(transcript, tmp_path).allowed.denied, said


def test_words_of_refusal_in_a_result_refuse_nothing(tmp_path: Path, transcript: Transcript) -> None:
    transcript.called("toolu_1", "Bash", {"command": "cat log"}, REJECTED, {"stdout": REJECTED, "stderr": ""})
    transcript.called("toolu_2", "Bash", {"command": "cat log"}, f"Exit code 1\n{REJECTED}", error=True)
    assert [event.allowed.denied for event in deeds_in(transcript, tmp_path)] == [False, False]


def test_a_hook_that_refuses_is_named(tmp_path: Path, transcript: Transcript) -> None:
    transcript.message("m", use("t1", "Bash", command="rm"), use("t2", "Bash", command="ls"))
    for call, hook in (("t1", "PreToolUse"), ("t2", "PostToolUse")):
        transcript.attachment(
            type="hook_blocking_error",
            hookName=f"{hook}:Bash",
            hookEvent=hook,
            toolUseID=call,
            blockingError={"blockingError": "no"},
        )
    transcript.result("t1", "not here", error=True)
    transcript.result("t2", "not here", error=True)
    events = deeds_in(transcript, tmp_path)
    assert (calls(events)["t1"].allowed.by, calls(events)["t1"].allowed.reference) == ("policy", "hook=PreToolUse:Bash")
    assert (calls(events)["t1"].allowed.denied, calls(events)["t2"].allowed.denied) == (True, False)
    assert [event.summary for event in events if event.what == "note"] == [
        "hook blocking error: PreToolUse:Bash",
        "hook blocking error: PostToolUse:Bash",
    ]


def test_an_approval_is_told_only_where_it_is_shown(tmp_path: Path, transcript: Transcript) -> None:
    transcript.bare(type="permission-mode", permissionMode="plan")
    said = "User has approved your plan. You can now start coding."
    transcript.called("t1", "ExitPlanMode", {"plan": "1. do it"}, said, {"plan": "1. do it", "isAgent": False})
    edit = {"filePath": "/w/a", "structuredPatch": [HUNK], "userModified": True}
    transcript.called("t2", "Edit", {"file_path": "/w/a"}, "Updated.", edit)
    transcript.called("t3", "Edit", {"file_path": "/w/a"}, said, {**edit, "userModified": False})
    assert [event.allowed.by for event in calls(deeds_in(transcript, tmp_path)).values()] == [
        "human_approved",
        "human_approved",
        "policy",
    ]


@pytest.mark.parametrize(
    ("decision", "by", "reference"),
    [
        ({"decision": "accept", "source": "user_temporary"}, "human_approved", "permission_decision=user_temporary"),
        ({"decision": "accept", "source": "user_permanent"}, "human_approved", "permission_decision=user_permanent"),
        ({"decision": "accept", "source": "hook", "reasonType": "hook"}, "policy", "permission_decision=hook"),
        ({"decision": "accept", "source": "config", "reasonType": "rule"}, "policy", "permission_mode=default"),
        ({"decision": "accept", "source": "somebody new"}, "policy", "permission_mode=default"),
        ("accept", "policy", "permission_mode=default"),
    ],
)
def test_newer_versions_write_down_who_approved(tmp_path: Path, decision: Any, by: str, reference: str) -> None:
    transcript = Transcript()
    transcript.bare(type="permission-mode", permissionMode="default")
    streams = {"stdout": "a", "stderr": ""}
    transcript.called("toolu_1", "Bash", {"command": "ls"}, "a", streams, permissionDecision=decision)
    event = one_call(transcript, tmp_path)
    assert (event.allowed.by, event.allowed.reference, event.allowed.denied) == (by, reference, False)


@pytest.mark.parametrize(
    ("decision", "by", "reference"),
    [
        (
            {"decision": "reject", "source": "config", "reasonCode": "bashMiss:no-rule-match"},
            "policy",
            "permission_decision=bashMiss:no-rule-match",
        ),
        ({"decision": "reject", "source": "hook"}, "policy", "permission_decision=hook"),
        ({"decision": "reject", "source": "user_reject"}, "unknown", "rejected by the user"),
        (None, "unknown", "rejected by the user"),
    ],
)
def test_where_nobody_could_be_asked_no_user_refused(tmp_path: Path, decision: Any, by: str, reference: str) -> None:
    transcript = Transcript()
    more = {"toolDenialKind": "user-rejected", "permissionDecision": decision}
    transcript.called("toolu_1", "Bash", {"command": "rm x"}, "Not now.", error=True, **more)
    event = one_call(transcript, tmp_path)
    assert (event.allowed.by, event.allowed.reference, event.allowed.denied) == (by, reference, True)
    assert (event.status, event.side_effects, event.summary) == ("blocked", (), "Bash: rm x (denied)")


@pytest.mark.parametrize(
    "words",
    [
        "The user doesn't want to proceed with this tool use",
        "PreToolUse:mcp__db__drop hook error: no",
        "Permission to x was denied",
    ],
)
def test_a_server_cannot_make_its_call_look_refused(tmp_path: Path, transcript: Transcript, words: str) -> None:
    transcript.called("toolu_1", "mcp__db__drop", {"table": "x"}, words, f"Error: {words}", error=True)
    event = one_call(transcript, tmp_path)
    assert (event.allowed.denied, event.status) == (False, None)
    assert event.call is not None
    assert (event.call.ok, event.call.error) == (False, words)


def test_a_person_can_refuse_the_call_of_a_server(tmp_path: Path, transcript: Transcript) -> None:
    words = "The user doesn't want to proceed with this tool use. The tool use was rejected"
    transcript.called("toolu_1", "mcp__db__drop", {"table": "x"}, words, "User rejected tool use", error=True)
    event = one_call(transcript, tmp_path)
    assert (event.allowed.denied, event.status) == (True, "blocked")
