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
        ("RunCommand", '{"argv": ["git", "push"]}', (), "CAPABILITY_DENY"),
    ],
)
def test_a_denial_exits_with_five(desk: Desk, intent: str, inputs: str, options: tuple[str, ...], code: str) -> None:
    desk.aver.home.mkdir(mode=0o700)
    (desk.aver.home / "config.toml").write_text('[gateway.commands]\nallow = ["rm"]\n')
    done = desk.act(intent, inputs, "--json", *options)
    assert (done.code, done.json["status"], done.json["reason_code"]) == (5, "DENY", code)
    assert not list(desk.workspace.iterdir())


def test_the_output_of_a_command_is_printed_line_by_line(desk: Desk) -> None:
    desk.aver.home.mkdir(mode=0o700)
    (desk.aver.home / "config.toml").write_text('[gateway.commands]\nallow = ["cat"]\n')
    (desk.workspace / "lines.txt").write_text("one\ntwo\n")
    done = desk.act("RunCommand", '{"argv": ["cat", "lines.txt"]}')
    assert done.code == 0, done.out
    assert "  stdout\n    one\n    two\n" in done.out
    assert "\\x0a" not in done.out


def test_a_denial_names_each_reason_once(desk: Desk) -> None:
    inputs = json.dumps({"relpath": ".git/hooks/pre-commit", "content": "#!/bin/sh\n"})
    (first, *_) = desk.act("CheckWriteWorkspaceFile", inputs, "--json").json["data"]["reasons"]
    done = desk.act("CheckWriteWorkspaceFile", inputs)
    assert " ".join(done.out.split()).count(first) == 1


@pytest.mark.parametrize("verb", [("act", "ReadWorkspaceFile", "--inputs", "{}"), ("mcp",), ("run", "--", "true")])
def test_an_empty_name_of_a_session_is_bad_usage(desk: Desk, verb: tuple[str, ...]) -> None:
    done = desk.aver("gateway", verb[0], "--session", "", *verb[1:])
    assert (done.code, "the name is empty" in done.err) == (2, True), done.err


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


class TestSkills:
    """A package with a sign, which an agent asks to install."""

    @staticmethod
    def bring(desk: Desk) -> str:
        source = desk.aver.directory / "sk"
        (source / "tools").mkdir(parents=True)
        (source / "SKILL.md").write_text("# Notes\n")
        (source / "tools" / "run.sh").write_text("pip install thing\n")
        return str(desk.aver("gateway", "skill", "add", source, "--json").json["digest"])

    @pytest.mark.more
    def test_the_person_who_approves_sees_files_and_signs(self, desk: Desk) -> None:
        inputs = json.dumps({"skill_id": "notes", "skill_digest": self.bring(desk)})
        secret = {"stdin": "correct horse battery staple\n"}
        assert desk.aver("keys", "new", "person:ada", "--passphrase-fd", "0", **secret).code == 0
        assert desk.aver("approvals", "enrol", "person:ada", "--passphrase-fd", "0", **secret).code == 0
        asked = desk.act("CommitSkillInstall", inputs, "--json").json["data"]["approval"]
        shown = desk.aver("approvals", "show", asked).out
        assert "2 files" in shown
        assert "tools/run.sh  18 bytes" in shown
        assert "look: tools/run.sh: install: pip install" in shown
        told = desk.aver("approvals", "approve", asked, "--passphrase-fd", "0", **secret)
        assert (told.code, "look: tools/run.sh: install: pip install" in told.out) == (0, True), told
        assert desk.act("CommitSkillInstall", inputs, "--json").json["reason_code"] == "REQUIRE_CONFIRM", "new session"
        assert desk.aver("verify").code == 0

    def test_a_changed_package_does_not_hide_the_others(self, desk: Desk) -> None:
        digest = self.bring(desk)
        other = desk.aver.directory / "other"
        other.mkdir()
        (other / "SKILL.md").write_text("# Other\n")
        kept = desk.aver("gateway", "skill", "add", other, "--json").json["digest"]
        packages = desk.aver.home / "gateway/skills/packages"
        (packages / digest / "SKILL.md").write_text("# Changed\n")
        listed = desk.aver("gateway", "skill", "list")
        assert (listed.code, kept in listed.out) == (1, True)
        assert f"the package {digest} was changed" in listed.out
        assert str(packages) in listed.out
        found = desk.aver("gateway", "skill", "list", "--json").json
        assert ([each["digest"] for each in found["packages"]], len(found["damaged"])) == ([kept], 1)


@pytest.mark.parametrize("value", ["abc", "-1", "999999999", "0"])
@pytest.mark.parametrize("name", ["TX_TTL_S", "POLICY_MAC_TTL_S"])
def test_a_wrong_number_in_the_environment_is_refused(desk: Desk, name: str, value: str) -> None:
    done = desk.act("CheckWriteWorkspaceFile", WRITE, **{name: value})
    assert (done.code, name in done.err, repr(value) in done.err) == (2, True, True)
