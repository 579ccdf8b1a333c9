"""`aver gateway act`, as a person calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.aver_command import Aver, Ran

WRITE = json.dumps({"relpath": "a.txt", "content": "hello\n"})


class Desk:
    """The command in a workspace of its own."""

    def __init__(self, aver: Aver) -> None:
        self.aver = aver
        self.workspace = aver.directory / "work"
        self.workspace.mkdir()

    def act(self, intent: str, inputs: str, *options: str, **more: str) -> Ran:
        given = ("--inputs", inputs, "--workspace", str(self.workspace), *options)
        return self.aver("gateway", "act", intent, *given, **more)


@pytest.fixture
def desk(aver: Aver) -> Desk:
    return Desk(aver)


def test_an_act_is_carried_out_and_its_records_verify(desk: Desk) -> None:
    done = desk.act("WriteWorkspaceFile", WRITE, "--json")
    assert (done.code, done.json["reason_code"]) == (0, "ALLOW")
    assert (desk.workspace / "a.txt").read_text() == "hello\n"
    assert desk.aver("verify").code == 0


def test_the_answer_is_words_for_people(desk: Desk) -> None:
    done = desk.act("WriteWorkspaceFile", WRITE)
    assert done.code == 0
    assert "OK ALLOW" in done.out
    assert "wrote a.txt" in done.out


def test_a_preview_is_committed_by_another_command_of_the_session(desk: Desk) -> None:
    preview = desk.act("CheckWriteWorkspaceFile", WRITE, "--session", "s1", "--json").json
    assert not list(desk.workspace.iterdir())
    tx = json.dumps({"tx_id": preview["data"]["tx_id"]})
    elsewhere = desk.act("WriteWorkspaceFile", tx, "--session", "s2", "--json")
    assert (elsewhere.code, elsewhere.json["reason_code"]) == (5, "TX_SESSION_MISMATCH")
    assert desk.act("WriteWorkspaceFile", tx, "--session", "s1", "--json").json["reason_code"] == "ALLOW"
    again = desk.act("WriteWorkspaceFile", tx, "--session", "s1", "--json")
    assert (again.code, again.json["reason_code"]) == (5, "REPLAY_DENY")


def test_each_command_is_a_session_of_its_own_unless_it_names_one(desk: Desk) -> None:
    first, second = (desk.act("CheckWriteWorkspaceFile", WRITE, "--json").json["session"] for _ in range(2))
    assert first != second


def test_inputs_come_from_a_file_or_from_stdin(desk: Desk) -> None:
    path = desk.aver.directory / "inputs.json"
    path.write_text(WRITE)
    assert desk.act("WriteWorkspaceFile", f"@{path}").code == 0
    read = desk.aver(
        *("gateway", "act", "ReadWorkspaceFile", "--inputs", "-", "--workspace", str(desk.workspace), "--json"),
        stdin='{"relpath": "a.txt"}',
    )
    assert read.json["data"]["content"] == "hello\n"


@pytest.mark.parametrize(
    ("intent", "inputs", "options", "code"),
    [
        ("Nothing", "{}", (), "UNKNOWN_INTENT"),
        ("WriteWorkspaceFile", '{"relpath": "../a", "content": ""}', (), "WORKSPACE_PATH_BLOCKED"),
        ("WriteWorkspaceFile", WRITE, ("--constraints", '{"more": 1}'), "BAD_REQUEST"),
        ("RunCommand", '{"argv": ["rm", "-rf", "/"]}', (), "REQUIRE_CONFIRM"),
    ],
)
def test_a_denial_exits_with_five(desk: Desk, intent: str, inputs: str, options: tuple[str, ...], code: str) -> None:
    done = desk.act(intent, inputs, "--json", *options)
    assert (done.code, done.json["status"], done.json["reason_code"]) == (5, "DENY", code)
    assert not list(desk.workspace.iterdir())


@pytest.mark.parametrize("inputs", ["x", "[]", '{"relpath": "a", "relpath": "b"}', "@/nowhere"])
def test_inputs_that_are_no_object_are_bad_usage(desk: Desk, inputs: str) -> None:
    assert desk.act("ReadWorkspaceFile", inputs).code == 2


def test_a_workspace_that_is_none_is_bad_usage(desk: Desk, tmp_path: Path) -> None:
    done = desk.aver("gateway", "act", "ReadWorkspaceFile", "--inputs", "{}", "--workspace", tmp_path / "nowhere")
    assert done.code == 2


def test_insecure_mode_is_loud(desk: Desk) -> None:
    done = desk.act("WriteWorkspaceFile", WRITE, "--json", EXECUTOR_INSECURE_ALLOW="1")
    assert done.json["reason_code"] == "ALLOW_INSECURE"
    assert "EXECUTOR_INSECURE_ALLOW" in done.err
