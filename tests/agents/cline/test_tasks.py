"""Cline: what was shown joined with what went to the model, by what they say and never by counting."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.agents.cline.api_calls import parse_xml_calls
from aver.agents.cline.task_parser import OPEN_MAX
from aver.agents.cline.tasks import ADAPTER, SERVERS
from aver.files.user_dirs import UserEnvironment
from aver.ingest.contract import AgentEvent, TranscriptSource, record_from_bytes
from aver.ledger import open_ledger
from support.agents import cline_tasks as tasks
from support.agents.cline_tasks import EDIT, MODEL, TASK, Task, surroundings, tasks_of, tool, whole
from support.agents.follow import Follower


@pytest.fixture
def around(tmp_path: Path) -> UserEnvironment:
    return surroundings(tmp_path)


@pytest.fixture(params=["native", "xml"])
def task(request: pytest.FixtureRequest, around: UserEnvironment) -> Task:
    return Task(tasks_of(around), native=request.param == "native")


@pytest.fixture
def native(around: UserEnvironment) -> Task:
    return Task(tasks_of(around))


def source_of(task: Task) -> TranscriptSource:
    path = task.write()
    return TranscriptSource(tool="cline", session=TASK, path=path, appends=False)


def deeds_of(task: Task) -> list[AgentEvent]:
    return Follower(ADAPTER, source_of(task)).all()


def calls(events: Iterable[AgentEvent]) -> list[AgentEvent]:
    return [event for event in events if event.what == "call"]


def the_call(task: Task) -> AgentEvent:
    (event,) = calls(deeds_of(task))
    assert event.call is not None
    return event


def one_call(
    task: Task, kind: str, sort: str, shown: Any, name: str, arguments: dict[str, Any], result: Any
) -> AgentEvent:
    task.begin()
    task.request()
    task.show(kind, sort, shown)
    task.call(name, arguments)
    if result is not None:
        task.result(result)
        task.request()
    return the_call(task)


# --- where


@pytest.mark.parametrize(
    ("platform", "below"),
    [
        ("linux", ".config"),
        ("darwin", "Library/Application Support"),
        ("win32", "AppData/Roaming"),
    ],
)
@pytest.mark.parametrize("editor", ["Code", "Code - Insiders", "Cursor", "VSCodium", "Windsurf"])
def test_tasks_are_found_in_every_editor(tmp_path: Path, platform: str, below: str, editor: str) -> None:
    around = surroundings(tmp_path, platform)
    storage = tmp_path / below / editor / "User" / "globalStorage" / "saoudrizwan.claude-dev" / "tasks"
    made = Task(storage)
    made.begin()
    path = made.write()
    (source,) = ADAPTER.locate(around)
    assert (source.tool, source.session, source.path, source.appends) == ("cline", TASK, path, False)
    assert storage in ADAPTER.places(around)


def test_tasks_on_servers_and_of_the_command_line_are_found(tmp_path: Path) -> None:
    around = surroundings(tmp_path)
    below = "data/User/globalStorage/saoudrizwan.claude-dev/tasks"
    for number, directory in enumerate(
        [*(tmp_path / name / below for name in SERVERS), tmp_path / ".cline/data/tasks"]
    ):
        made = Task(directory, str(number))
        made.begin()
        made.write()
    assert {source.session for source in ADAPTER.locate(around)} == {str(number) for number in range(len(SERVERS) + 1)}


def test_the_stamp_changes_with_any_of_the_files(native: Task, around: UserEnvironment) -> None:
    native.begin()
    native.write()
    (before,) = ADAPTER.locate(around)
    native.api.append({"role": "user", "content": "x"})
    native.write()
    (between,) = ADAPTER.locate(around)
    native.metadata()
    (after,) = ADAPTER.locate(around)
    assert len({before.stamp, between.stamp, after.stamp}) == 3


# --- the whole


def test_every_call_has_its_own_result(task: Task) -> None:
    """Browser and MCP calls stand between: in the public adapter `pytest` got the screenshot's result."""
    whole(task)
    events = deeds_of(task)
    told = {event.summary: event.call for event in calls(events) if event.call}
    assert list(told) == [
        "read_file: src/p.py (2 lines)",
        "browser_action: http://localhost:3000",
        "use_mcp_tool: db query",
        "replace_in_file: src/p.py (+2/-1)",
        "execute_command: pytest -q",
        "execute_command: rm -rf build",
    ]
    read, browser, mcp, edit, *_ = told.values()
    assert read.result == "1 | import os\n2 | old"
    assert browser.result["shown"]["currentUrl"] == "http://localhost:3000/"
    assert mcp.result == "one row"
    assert edit.result.startswith("The content was successfully saved to src/p.py.")
    failed, denied, passed = [event for event in calls(events) if "command" in event.summary]
    assert failed.call is not None
    assert failed.call.result["stdout"] == "..F\n1 failed"
    assert "1 failed" in failed.call.result["result"]
    assert denied.call is not None
    assert passed.call is not None
    assert passed.call.result == {"stdout": "3 passed", "result": "Command executed.\nOutput:\n3 passed"}
    if task.native:
        assert [event.key for event in calls(events)] == [f"toolu_{number}" for number in range(1, 8)]
    else:
        assert all(event.key.startswith("ts-") for event in calls(events))
        assert all(event.environment["called_by"] == "xml" for event in calls(events))


def test_the_story_is_told_in_order(native: Task) -> None:
    whole(native)
    events = deeds_of(native)
    assert [event.what for event in events] == [
        *("session", "prompt", "answer", "note", "call", "call", "call", "call", "call", "prompt", "call"),
        *("call", "answer"),
    ]
    session, prompt, answer = events[:3]
    assert (session.model, session.environment["cline_version"]) == (MODEL, "3.40.0")
    assert (prompt.text, prompt.title, prompt.at) == (
        *("Refactor the parser", "Refactor the parser"),
        "2024-05-29T16:26:41+00:00",
    )
    assert (answer.text, answer.thinking) == ("Let me look.", "I should read it first.")
    assert all(event.at for event in events[1:])
    assert all(event.model == MODEL for event in calls(events))
    assert all(event.environment["cwd"] == "/w/shop" for event in calls(events))
    last = calls(events)[-1]
    assert last.prompt is not None
    assert last.prompt.text == "Leave the build alone"
    assert (events[-1].text, events[-1].environment["has_changes"]) == ("Done.", True)
    assert events[3].environment["checkpoint"] == "9c1b77aa"
    assert events[-1].environment["checkpoint"] == "77aa"


def test_who_allowed_it(task: Task) -> None:
    whole(task)
    told = [(event.allowed.by, event.allowed.denied) for event in calls(deeds_of(task))]
    assert told == [
        ("autonomous", False),
        *[("human_approved", False)] * 4,
        ("unknown", True),
        ("autonomous", False),
    ]


def test_a_failed_command_is_a_failure_and_a_refused_one_did_not_happen(task: Task) -> None:
    whole(task)
    failed, denied, passed = [event for event in calls(deeds_of(task)) if "command" in event.summary]
    assert failed.call is not None
    assert (failed.call.ok, failed.call.error, failed.call.result["exit_code"]) == (False, "exit code 1", 1)
    assert failed.side_effects == ()
    assert denied.call is not None
    assert (denied.call.ok, denied.side_effects) == (False, ())
    assert passed.call is not None
    assert (passed.call.ok, passed.side_effects) == (True, ("ran pytest -q",))


def test_an_edit_is_a_real_diff(task: Task) -> None:
    whole(task)
    edit = next(event for event in calls(deeds_of(task)) if "replace" in event.summary)
    assert edit.call is not None
    assert edit.call.diff == "--- a/src/p.py\n+++ b/src/p.py\n@@ -12,1 +12,2 @@\n-old\n+new\n+newer\n"
    assert edit.side_effects == ("edited src/p.py",)


def test_heavy_things_are_told_by_digest(task: Task) -> None:
    whole(task)
    events = deeds_of(task)
    assert "A" * 200 not in repr(events)
    assert "line\nline" not in repr(events)
    browser = calls(events)[1]
    assert browser.call is not None
    shot = browser.call.result["shown"]["screenshot"]
    assert (shot["media"], shot["size"]) == ("image/webp", 4023)
    edit = calls(events)[3]
    assert edit.call is not None
    assert "bytes, sha256" in edit.call.result


def test_tokens_are_counted_once_for_each_request(native: Task) -> None:
    whole(native)
    counted = [event.tokens for event in deeds_of(native) if event.tokens]
    assert len(counted) == 8
    assert counted[0].native == {
        "tokensIn": 1200,
        "tokensOut": 340,
        "cacheWrites": 50,
        "cacheReads": 10,
        "cost": 0.0042,
    }
    assert (counted[0].input, counted[0].output, counted[0].cost_usd) == (1260, 340, 0.0042)
    assert counted[1].cost_usd == 0.001


def test_what_a_deed_rests_on_is_named(native: Task) -> None:
    whole(native)
    read = calls(deeds_of(native))[0]
    assert read.places == ("ui:4", "api:1", "api:2")


# --- joining


def test_the_same_call_twice_has_each_its_result(task: Task) -> None:
    task.begin()
    for number in range(3):
        task.request()
        task.show("say", "tool", tool("readFile", "a.py"))
        task.call("read_file", {"path": "a.py"})
        task.result(f"version {number}")
    task.request()
    results = [event.call.result for event in calls(deeds_of(task)) if event.call]
    assert results == ["version 0", "version 1", "version 2"]


def test_older_versions_do_not_name_a_place_in_the_history(task: Task) -> None:
    whole(task)
    with_places = deeds_of(task)
    for message in task.ui:
        del message["conversationHistoryIndex"]
    without = deeds_of(task)
    assert [(event.key, event.call) for event in calls(without)] == [
        (event.key, event.call) for event in calls(with_places)
    ]
    assert [event.allowed for event in calls(without)] == [event.allowed for event in calls(with_places)]


def test_several_calls_of_one_message(native: Task) -> None:
    native.begin()
    native.request()
    for name in ("b.py", "a.py"):
        native.show("say", "tool", tool("readFile", name))
    native.api.append({"role": "assistant", "content": []})
    for name in ("a.py", "b.py"):
        use = {"type": "tool_use", "id": f"t-{name}", "name": "read_file", "input": {"path": f"/w/shop/{name}"}}
        native.api[-1]["content"].append(use)
        native.results.append({"type": "tool_result", "tool_use_id": f"t-{name}", "content": f"text of {name}"})
    native.request()
    told = {event.key: event.call.result for event in calls(deeds_of(native)) if event.call}
    assert told == {"t-b.py": "text of b.py", "t-a.py": "text of a.py"}


def test_a_call_that_nobody_was_shown_is_told_too(native: Task) -> None:
    native.begin()
    native.request()
    native.call("execute_command", {"command": "cat .env"})
    native.show("say", "clineignore_error", ".env")
    error = "Access to .env is blocked by the .clineignore file settings. You must try to continue."
    native.result(f"The tool execution failed with the following error:\n<error>\n{error}\n</error>")
    native.request()
    event = the_call(native)
    assert (event.key, event.environment["shown"]) == ("toolu_1", False)
    assert (event.allowed.by, event.allowed.reference, event.allowed.denied) == ("policy", ".clineignore", True)
    assert event.call is not None
    assert event.call.error == error
    assert event.prompt is not None
    assert event.prompt.text == "Refactor the parser"


def test_without_a_history_what_was_shown_is_told(native: Task) -> None:
    whole(native)
    path = native.write()
    path.with_name("api_conversation_history.json").unlink()
    events = Follower(ADAPTER, TranscriptSource(tool="cline", session=TASK, path=path, appends=False)).all()
    told = {event.summary: event for event in calls(events)}
    edit = told["editedExistingFile: src/p.py (+2/-1)"]
    assert (edit.allowed.by, edit.status) == ("unknown", "pending")
    ran = told["command: pytest -q"]
    assert ran.call is not None
    assert ran.call.result == {"stdout": "3 passed"}
    refused = told["command: rm -rf build"]
    assert refused.allowed.by == "unknown"
    assert refused.side_effects == ()


def test_a_call_without_a_result_is_told_at_the_end(task: Task) -> None:
    task.begin()
    task.request()
    task.show("ask", "command", "make deploy")
    task.call("execute_command", {"command": "make deploy"})
    follower = Follower(ADAPTER, source_of(task))
    assert calls(follower.step()) == []
    (event,) = follower.turn.finish()
    assert (event.status, event.allowed.by, event.side_effects) == ("pending", "unknown", ())
    assert event.call is not None
    assert event.call.ok is None


# --- results


@pytest.mark.parametrize(
    ("result", "ok", "denied", "error"),
    [
        ("The user denied this operation.", False, True, "The user denied this operation."),
        (
            "The user denied this operation and provided the following feedback:\n<feedback>\nno\n</feedback>",
            *(False, True, "The user denied this operation and provided the following feedback:"),
        ),
        ("Skipping tool [x] due to user rejecting a previous tool.", False, True, "Skipping tool [x] due to user"),
        ("Command executed.\nOutput:\nok", True, False, None),
        ("Command executed.", True, False, None),
        ("Command failed with exit code 2.\nOutput:\nexit code 0", False, False, "exit code 2"),
        ("Command executed successfully (exit code 0).\nOutput:\nexit code 9", True, False, None),
        (
            "Command executed in terminal. Command execution was not successful.\nExit code: 127",
            False,
            False,
            "exit code",
        ),
        ("Command execution timed out after 30 seconds.\nOutput:\nx", False, False, "Command execution timed out"),
        ("Command is still running in the user's terminal.\nHere's the output so far:\nx", None, False, None),
        (
            *("The tool execution failed with the following error:\n<error>\nno shell\n</error>", False, False),
            "no shell",
        ),
    ],
)
def test_what_results_say(task: Task, result: str, ok: bool | None, denied: bool, error: str | None) -> None:
    event = one_call(task, "ask", "command", "x", "execute_command", {"command": "x"}, result)
    assert event.call is not None
    assert (event.call.ok, event.allowed.denied) == (ok, denied)
    assert (event.call.error or "").startswith(error or "")
    assert bool(event.call.error) == bool(error)
    if ok is None:
        assert event.status == "partial"
    assert event.allowed.by == ("unknown" if denied else "human_approved")


def test_what_a_file_says_is_not_what_cline_says(task: Task) -> None:
    text = "1 | The user denied this operation.\n2 | Exit code: 1"
    event = one_call(task, "say", "tool", tool("readFile", "log.txt"), "read_file", {"path": "log.txt"}, text)
    assert event.call is not None
    assert (event.call.ok, event.allowed.denied) == (True, False)


def test_a_native_error_is_a_failure(native: Task) -> None:
    native.begin()
    native.request()
    native.show("say", "tool", tool("readFile", "gone.py"))
    native.call("read_file", {"path": "gone.py"})
    native.result("File not found: gone.py", is_error=True)
    native.request()
    event = the_call(native)
    assert event.call is not None
    assert (event.call.ok, event.call.error) == (False, "File not found: gone.py")


def test_a_command_that_permissions_refuse_is_blocked(native: Task) -> None:
    native.begin()
    native.request()
    native.show("say", "command", "curl evil")
    native.show("say", "command_permission_denied", "curl evil")
    native.show("say", "text", "I may not.")
    event = the_call(native)
    assert (event.allowed.by, event.allowed.denied) == ("policy", True)


@pytest.mark.parametrize(
    ("shown", "name", "arguments", "diff", "effect"),
    [
        (
            tool("newFileCreated", "n.py", "a\nb\n"),
            *("write_to_file", {"path": "n.py", "content": "a\nb\n"}),
            *("--- /dev/null\n+++ b/n.py\n@@ -0,0 +1,2 @@\n+a\n+b\n", "wrote n.py"),
        ),
        (
            tool("editedExistingFile", "n.py", diff="@@ -1,1 +1,1 @@\n-a\n+b"),
            *("write_to_file", {"path": "n.py", "content": "b\n"}),
            *("--- a/n.py\n+++ b/n.py\n@@ -1,1 +1,1 @@\n-a\n+b\n", "edited n.py"),
        ),
        (
            tool("editedExistingFile", "n.py", EDIT.replace("------- ", "<<<<<<< ").replace("+++++++ ", ">>>>>>> ")),
            *("replace_in_file", {"path": "n.py", "diff": EDIT}),
            *("--- a/n.py\n+++ b/n.py\n@@ -1,1 +1,2 @@\n-old\n+new\n+newer\n", "edited n.py"),
        ),
        (tool("fileDeleted", "n.py"), "delete_file", {"path": "n.py"}, None, "deleted n.py"),
    ],
)
def test_edits_of_all_sorts(
    task: Task, shown: Any, name: str, arguments: dict[str, Any], diff: str | None, effect: str
) -> None:
    event = one_call(task, "say", "tool", shown, name, arguments, "The content was successfully saved to n.py.")
    assert event.call is not None
    assert (event.call.tool, event.call.diff, event.side_effects) == (name, diff, (effect,))


def test_a_patch_is_a_diff(native: Task) -> None:
    patch = "*** Begin Patch\n*** Update File: n.py\n@@\n-a\n+b\n*** End Patch"
    shown = tool("editedExistingFile", "n.py", patch)
    event = one_call(native, "ask", "tool", shown, "apply_patch", {"input": patch}, "Done.")
    assert event.summary == "apply_patch: n.py (+1/-1)"
    assert event.call is not None
    assert "-a\n+b\n" in (event.call.diff or "")


def test_subagents_have_a_scorecard(native: Task) -> None:
    native.begin()
    native.request()
    native.show("ask", "use_subagents", {"prompts": ["look here", "look there"]})
    status = {"total": 2, "completed": 1, "successes": 1, "failures": 0, "toolCalls": 4, "items": []}
    native.show("say", "subagent", {**status, "status": "running"})
    done = {**status, "status": "completed", "completed": 2, "successes": 2, "toolCalls": 9}
    native.show("say", "subagent", done)
    usage = {"source": "subagents", "tokensIn": 10, "tokensOut": 5, "cacheWrites": 0, "cacheReads": 0, "cost": 0.01}
    native.show("say", "subagent_usage", usage)
    native.call("use_subagents", {"prompts": ["look here", "look there"]})
    native.result("Both looked.")
    native.request()
    events = deeds_of(native)
    (event,) = calls(events)
    assert event.summary == "use_subagents [subagents: 2 of 2, 9 tool calls]"
    assert event.side_effects == ("delegated to 2 subagents",)
    assert event.call is not None
    assert event.call.result["shown"]["status"] == "completed"
    (spent,) = [one.tokens for one in events if one.summary == "subagent usage"]
    assert spent is not None
    assert spent.cost_usd == 0.01


def test_reasoning_that_is_only_in_the_history_is_told_with_its_signature(native: Task) -> None:
    native.begin()
    native.request()
    native.show("say", "tool", tool("readFile", "a.py"))
    native.call("read_file", {"path": "a.py"}, thinking="Read first.", signature="Er4B" * 300)
    native.result("x")
    native.request()
    native.show("say", "tool", tool("readFile", "b.py"))
    native.call("read_file", {"path": "b.py"}, signature="Zz" * 300)
    native.result("y")
    native.request()
    first, second = calls(deeds_of(native))
    assert (first.thinking, first.signatures, first.redacted) == ("Read first.", ("Er4B" * 300,), False)
    assert (second.thinking, second.signatures, second.redacted) == ("", ("Zz" * 300,), True)


def test_a_request_of_which_nothing_came_is_told(native: Task) -> None:
    native.begin()
    native.request(tokensOut=0, cost=0.5, cancelReason="user_cancelled")
    native.show("ask", "resume_task")
    native.request()
    native.show("say", "text", "Again.")
    events = deeds_of(native)
    cancelled = next(event for event in events if event.tokens)
    assert (cancelled.what, cancelled.status, cancelled.environment["cancel_reason"]) == (
        *("note", "failure"),
        "user_cancelled",
    )
    assert sum(event.tokens.cost_usd or 0 for event in events if event.tokens) == pytest.approx(0.5042)


def test_questions_plans_and_errors_are_told(native: Task) -> None:
    native.ui.append({"ts": 1, "type": "say", "say": "text", "text": "an old task"})
    native.show("ask", "plan_mode_respond", {"response": "First this.", "options": ["go"], "selected": "go"})
    native.show("ask", "followup", {"question": "Which one?", "options": ["a", "b"]})
    native.show("say", "user_feedback", "b")
    native.show("say", "user_feedback_diff", {"tool": "editedExistingFile", "path": "p.py", "diff": "@@ -1 +1 @@"})
    native.show("say", "error", "It broke")
    native.show("say", "sort_of_the_future", "?")
    old, plan, question, reply, changed, error, future = deeds_of(native)
    assert (old.what, old.text) == ("prompt", "an old task")
    assert (plan.text, plan.result) == ("First this.", {"options": ["go"], "selected": "go"})
    assert question.text == "Which one?"
    assert (reply.what, reply.text) == ("prompt", "b")
    assert changed.result["path"] == "p.py"
    assert (error.what, error.status, error.result) == ("note", "failure", "It broke")
    assert (future.what, future.environment["unknown_record"]) == ("unknown", "sort_of_the_future")


# --- as it happens


def test_it_is_told_as_it_happens_and_the_same_as_afterwards(task: Task, tmp_path: Path) -> None:
    """Written after every message and every step of the history, what is told is what is told at the end."""
    final = Task(tmp_path / "final", native=task.native)
    whole(final)
    live = Follower(ADAPTER, source_of(task))
    events: list[AgentEvent] = []
    task.metadata()
    api = iter(final.api)
    for message in final.ui:
        known = message["conversationHistoryIndex"] + 1
        while len(task.api) < known:
            task.api.append(next(api))
        task.ui.append({**message, "partial": True, "text": message.get("text", "")[:2]})
        task.write()
        events += live.step()
        task.ui[-1] = message
        task.write()
        events += live.step()
    task.api += list(api)
    task.write()
    events += live.step()
    events += live.turn.finish()
    after = Follower(ADAPTER, source_of(final)).all()
    assert sorted(events, key=lambda event: event.key) == sorted(after, key=lambda event: event.key)
    assert len(live.places) == len(set(live.places))


def test_what_is_being_written_is_not_final(native: Task) -> None:
    native.begin()
    native.show("say", "text", "half", partial=True)
    follower = Follower(ADAPTER, source_of(native))
    assert [event.what for event in follower.step()] == ["prompt"]
    native.request(tokensOut=0, cost=0)
    native.write()
    assert follower.step() == []  # What was cut off never becomes whole, and the request is not over.
    native.ui[-1]["text"] = json.dumps({"tokensIn": 1, "tokensOut": 2, "cost": 0.1})
    native.show("say", "text", "whole")
    native.write()
    (answer,) = follower.step()
    assert (answer.text, answer.tokens.output if answer.tokens else None) == ("whole", 2)


@pytest.mark.parametrize("torn", ["", "[", '[{"ts": 1', '[{"ts": 1}', '{"ts": 1}', "[1] trailing", "\x00\x00"])
@pytest.mark.parametrize("name", ["ui_messages.json", "api_conversation_history.json"])
def test_a_file_that_is_not_whole_gives_nothing_this_time(native: Task, torn: str, name: str) -> None:
    whole(native)
    source = source_of(native)
    follower = Follower(ADAPTER, source)
    kept = source.path.with_name(name).read_text()
    source.path.with_name(name).write_text(torn)
    assert follower.step() == []
    source.path.with_name(name).write_text(kept)
    assert len(follower.step()) > 10


def test_a_checkpoint_that_is_restored_cuts_the_list(native: Task) -> None:
    native.begin()
    native.request()
    native.show("say", "text", "one way")
    follower = Follower(ADAPTER, source_of(native))
    assert [event.text for event in follower.step()] == ["Refactor the parser", "one way"]
    del native.ui[-1]
    native.show("say", "text", "another way")
    native.write()
    (event,) = follower.step()
    assert (event.text, event.places) == ("another way", ("ui:2",))


def test_what_takes_the_place_of_a_call_does_not_take_its_result(task: Task) -> None:
    """After a checkpoint is restored, another message stands where the first call stood in the history."""
    task.begin()
    task.request()
    kept = len(task.ui), len(task.api)
    task.show("say", "command", "make")
    task.call("execute_command", {"command": "make"})
    task.result("Command executed.\nOutput:\nthe first")
    task.request()
    follower = Follower(ADAPTER, source_of(task))
    (first,) = calls(follower.step())
    del task.ui[kept[0] :], task.api[kept[1] :]
    task.show("say", "command", "make test")
    task.call("execute_command", {"command": "make test"})
    task.write()
    assert calls(follower.step()) == []
    task.result("Command executed.\nOutput:\nthe second")
    task.request()
    task.write()
    (second,) = calls(follower.step())
    assert first.call is not None
    assert second.call is not None
    assert first.call.result == {"result": "Command executed.\nOutput:\nthe first"}
    assert second.call.result == {"result": "Command executed.\nOutput:\nthe second"}


def test_two_messages_of_one_moment_have_two_keys(native: Task) -> None:
    native.begin()
    for text in ("one", "two"):
        native.show("say", "text", text)["ts"] = 5
    keys = [event.key for event in deeds_of(native)]
    assert keys[1:] == ["ts-5", "ts-5.ui:2"]


def test_later_output_of_a_command_is_not_lost(native: Task) -> None:
    native.begin()
    native.request()
    native.show("ask", "command", "serve")
    native.call("execute_command", {"command": "serve"})
    native.result("Command is still running in the user's terminal.")
    native.request()
    native.show("say", "command_output", "ready at last")
    native.show("say", "text", "It runs.")
    events = deeds_of(native)
    assert next(event.result for event in events if event.summary == "command output") == "ready at last"


def test_it_is_sealed(native: Task, tmp_path: Path) -> None:
    from aver.ingest.seal import TranscriptFollower as Sealer

    whole(native)
    source = source_of(native)
    with open_ledger(tmp_path / "ledger.db", home=tmp_path / "keys") as ledger:
        sealer = Sealer(ledger, ADAPTER, source)
        assert sealer.step().sealed == 13
        again = Sealer(ledger, ADAPTER, source)
        assert again.step().sealed == 0
        assert ledger.verify().status == "verified"


def test_a_task_that_goes_on_still_reconciles(native: Task, tmp_path: Path) -> None:
    """Cline adds to what it keeps of a task's surroundings; what was shown and said stays."""
    from aver.ingest.reconcile import reconcile
    from aver.ingest.seal import TranscriptFollower as Sealer

    whole(native)
    source = source_of(native)
    metadata = source.path.with_name("task_metadata.json")
    metadata.write_text('{"model_usage": [{"model_id": "one", "mode": "act"}]}')
    with open_ledger(tmp_path / "ledger.db", home=tmp_path / "keys") as ledger:
        for model in ("one", "two"):
            metadata.write_text(json.dumps({"model_usage": [{"model_id": model, "mode": "act"}]}))
            Sealer(ledger, ADAPTER, source).step()
        verdict, counts = reconcile(ledger, ADAPTER, [source], [f"cline.{TASK}"])
        assert (verdict.status, counts.mismatched) == ("verified", 0)


# --- XML


def test_xml_that_holds_its_own_marks_is_read() -> None:
    content = "<a>\n</content>\n</write_to_file> is text"
    text = f"First.\n<write_to_file>\n<path>x.md</path>\n<content>\n{content}\n</content>\n</write_to_file>"
    assert list(parse_xml_calls(text)) == [("write_to_file", {"path": "x.md", "content": content})]
    assert list(parse_xml_calls("<read_file>\n<path>a.py</path>")) == []
    assert list(parse_xml_calls("no call at all <b>bold</b>")) == []


# --- anything


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Task:
    made = Task(tmp_path_factory.mktemp("tasks"))
    whole(made)
    return made


@pytest.mark.more
@given(st.data())
def test_whatever_a_task_says_it_is_read(sample: Task, data: st.DataObject) -> None:
    ui, api = json.loads(json.dumps(sample.ui)), json.loads(json.dumps(sample.api))
    for values in (ui, api):
        for _ in range(data.draw(st.integers(0, 4))):
            at = data.draw(st.integers(0, len(values) - 1))
            if data.draw(st.booleans()) and isinstance(values[at], dict) and values[at]:
                values[at][data.draw(st.sampled_from(sorted(values[at])))] = data.draw(JSON)
            else:
                values[at] = data.draw(JSON | st.sampled_from(values))
    path = sample.directory / "ui_messages.json"
    path.write_text(json.dumps(ui))
    path.with_name("api_conversation_history.json").write_text(json.dumps(api))
    path.with_name("task_metadata.json").write_text(json.dumps(data.draw(JSON)))
    source = TranscriptSource(tool="cline", session=TASK, path=path, appends=False)
    events = Follower(ADAPTER, source).all()
    keys = [event.key for event in events]
    assert all(keys)
    assert len(keys) == len(set(keys))
    assert Follower(ADAPTER, source).all() == events


@given(st.lists(st.binary(max_size=60), max_size=4), st.sampled_from(["ui", "api", "metadata", "else"]))
def test_whatever_a_record_is_it_is_taken(data: list[bytes], sort: str) -> None:
    turn = ADAPTER.parser(TranscriptSource(tool="cline", session="s", path=Path("ui_messages.json"), appends=False))
    events = [
        event for number, one in enumerate(data) for event in turn.feed(record_from_bytes(f"{sort}:{number}", one))
    ]
    keys = [event.key for event in [*events, *turn.finish()]]
    assert all(keys)
    assert len(keys) == len(set(keys))


def test_the_writer_of_tasks_writes_what_cline_writes(native: Task) -> None:
    """What tests rest on: a shown call names the message before the one that holds it."""
    whole(native)
    shown = next(message for message in native.ui if message.get("say") == "tool")
    answer = native.api[shown["conversationHistoryIndex"] + 1]
    assert answer["content"][-1]["name"] == "read_file"
    assert tasks.TASK in str(native.directory)


DENIAL = "The user denied this operation."
IGNORED = "Access to a is blocked by the .clineignore file settings."
MCP = {"serverName": "db", "type": "use_mcp_tool", "toolName": "drop", "arguments": "{}"}
MCP_CALL = {"server_name": "db", "tool_name": "drop", "arguments": "{}"}


@pytest.mark.parametrize(
    ("kind", "sort", "shown", "name", "arguments", "words", "denied"),
    [
        ("say", "tool", tool("readFile", "a"), "read_file", {"path": "a"}, DENIAL, False),
        ("ask", "tool", tool("readFile", "a"), "read_file", {"path": "a"}, DENIAL, False),
        ("ask", "command", "x", "execute_command", {"command": "x"}, DENIAL, True),
        ("say", "command", "x", "execute_command", {"command": "x"}, DENIAL, False),
        ("say", "use_mcp_server", MCP, "use_mcp_tool", MCP_CALL, DENIAL, False),
        ("ask", "use_mcp_server", MCP, "use_mcp_tool", MCP_CALL, DENIAL, False),
        ("ask", "use_mcp_server", MCP, "use_mcp_tool", MCP_CALL, IGNORED, False),
        ("say", "tool", tool("readFile", "a"), "read_file", {"path": "a"}, IGNORED, False),
    ],
)
def test_what_was_not_asked_was_not_refused(
    native: Task, kind: str, sort: str, shown: Any, name: str, arguments: dict[str, Any], words: str, denied: bool
) -> None:
    event = one_call(native, kind, sort, shown, name, arguments, words)
    assert event.allowed.denied is denied


ERROR = "The tool execution failed with the following error:\n<error>\nFile not found\n</error>"
SKIPPED = "Skipping tool [read_file] due to user rejecting a previous tool."
NOT_EXECUTED = "Tool [read_file] was not executed because a tool has already been used in this message."
FOREIGN = [
    (tool("readFile", "a"), "read_file", {"path": "a"}),
    (tool("searchFiles", "a"), "search_files", {"path": "a"}),
    (tool("listFilesTopLevel", "a"), "list_files", {"path": "a"}),
    (tool("webFetch", "a"), "web_fetch", {"url": "a"}),
]


@pytest.mark.parametrize("kind", ["say", "ask"])
@pytest.mark.parametrize(("shown", "name", "arguments"), FOREIGN, ids=[name for _, name, _ in FOREIGN])
@pytest.mark.parametrize(
    "words",
    [
        *("Error: x", "[ERROR] x", "This operation could not be completed", "it could not be completed", IGNORED),
        *("The content\nThe user denied this operation.", "Command denied by CLINE_COMMAND_PERMISSIONS", "exit code 1"),
        *(f"1 | {DENIAL}", f"x\n{ERROR}", "Missing value for required parameter", "Command failed"),
    ],
)
def test_what_a_file_says_is_neither_a_refusal_nor_a_failure(
    native: Task, kind: str, shown: Any, name: str, arguments: dict[str, Any], words: str
) -> None:
    event = one_call(native, kind, "tool", shown, name, arguments, words)
    assert event.call is not None
    assert not event.allowed.denied
    assert event.call.ok is (None if words.startswith("This operation could") else True)


@pytest.mark.parametrize(("shown", "name", "arguments"), FOREIGN, ids=[name for _, name, _ in FOREIGN])
@pytest.mark.parametrize("words", [DENIAL, ERROR, SKIPPED, NOT_EXECUTED])
def test_a_foreign_text_in_the_form_of_a_refusal_leaves_the_outcome_open(
    native: Task, shown: Any, name: str, arguments: dict[str, Any], words: str
) -> None:
    event = one_call(native, "ask", "tool", shown, name, arguments, words)
    assert event.call is not None
    assert (event.call.ok, event.status, event.allowed.by, event.allowed.denied) == (None, "pending", "unknown", False)
    assert event.environment["said_by"] == "words"


@pytest.mark.parametrize("words", ["could not be completed", "was not executed because", "cannot be used in PLAN MODE"])
def test_the_content_of_a_file_that_was_written_undoes_nothing(native: Task, words: str) -> None:
    saved = f'The content was successfully saved to a.\n\n<final_file_content path="a">\n{words}\n</final_file_content>'
    shown = tool("newFileCreated", "a", f"{words}\n")
    event = one_call(native, "say", "tool", shown, "write_to_file", {"path": "a", "content": f"{words}\n"}, saved)
    assert event.call is not None
    assert (event.call.ok, event.side_effects) == (True, ("wrote a",))


def test_the_second_line_of_an_output_without_its_mark_is_no_exit_code(native: Task) -> None:
    result = "Command executed.\nDone.\nExit code: 9"
    event = one_call(native, "say", "command", "x", "execute_command", {"command": "x"}, result)
    assert event.call is not None
    assert event.call.ok is True


def test_only_cline_itself_says_that_a_path_is_ignored(native: Task) -> None:
    """The words alone may be the content of a file. Cline's own message, in the same request, is none."""
    native.begin()
    native.request()
    native.show("say", "clineignore_error", "other")
    native.call("read_file", {"path": "a"})
    native.result(IGNORED)
    native.request()
    native.show("say", "clineignore_error", "a")
    native.call("read_file", {"path": "a"})
    native.result(ERROR.replace("File not found", IGNORED))
    native.request()
    told = [(event.allowed.by, event.allowed.denied) for event in calls(deeds_of(native))]
    assert told == [("unknown", False), ("policy", True)]


def test_calls_that_never_come_to_an_end_are_given_out(native: Task) -> None:
    native.begin()
    for number in range(OPEN_MAX + 3):
        native.show("say", "tool", tool("readFile", f"p{number}"))
    path = native.write()
    turn = ADAPTER.parser(TranscriptSource(tool="cline", session=TASK, path=path, appends=False))
    records = [
        record_from_bytes(f"ui:{number}", json.dumps(message).encode()) for number, message in enumerate(native.ui)
    ]
    told = [event for record in records for event in turn.feed(record) if event.what == "call"]
    assert [event.call.arguments["path"] for event in told if event.call] == ["p0", "p1", "p2"]
