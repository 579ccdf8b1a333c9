"""Acts through a gateway in one process: what is answered, what happens, and what is recorded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from aver.gateway.acts.visit import Door
from aver.gateway.effect_settings import CommandSettings, EffectSettings
from support.acts import Office, open_office
from support.aver_command import tampering


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    with open_office(tmp_path / "work") as opened:
        yield opened


def test_an_act_is_previewed_committed_and_recorded(office: Office) -> None:
    answer = office.write(content="one\n")
    assert (answer["status"], answer["reason_code"]) == ("OK", "ALLOW")
    assert (office.workspace / "notes.txt").read_text() == "one\n"
    assert office.kinds() == ["act.preview", "act.commit", "act.outcome"]
    assert office.ledger.verify().status == "verified"


def test_a_preview_answers_with_what_a_commit_needs_and_does_nothing(office: Office) -> None:
    answer = office.preview()
    assert answer["reason_code"] == "ALLOW"
    assert answer["data"].keys() >= {"tx_id", "action_id", "request_sha256", "allow_pre", "need_confirm", "patch"}
    assert (answer["data"]["allow_pre"], answer["data"]["need_confirm"]) == (1, 0)
    assert answer["data"]["commit_evidence"].keys() == {"policy0", "policy1"}
    assert not list(office.workspace.iterdir())
    assert office.kinds() == ["act.preview"]


def test_a_commit_by_tx_id_happens_once(office: Office) -> None:
    tx_id = office.preview()["data"]["tx_id"]
    assert office.commit(tx_id)["reason_code"] == "ALLOW"
    (office.workspace / "notes.txt").unlink()
    again = office.commit(tx_id)
    assert again["reason_code"] == "REPLAY_DENY"
    assert not (office.workspace / "notes.txt").exists()


def test_a_commit_in_another_process_of_the_ledger_uses_the_records_alone(tmp_path: Path) -> None:
    with open_office(tmp_path / "work") as first:
        tx_id = first.preview()["data"]["tx_id"]
    with open_office(tmp_path / "work") as second:
        assert second.commit(tx_id)["reason_code"] == "ALLOW"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"caller": "agent:other"}, "TX_CALLER_MISMATCH"),
        ({"door": Door(session="s2")}, "TX_SESSION_MISMATCH"),
    ],
)
def test_a_tx_is_bound_to_its_caller_and_session(office: Office, change: dict[str, object], code: str) -> None:
    tx_id = office.preview()["data"]["tx_id"]
    assert office.commit(tx_id, **change)["reason_code"] == code
    assert not list(office.workspace.iterdir())


def test_a_tx_expires(office: Office) -> None:
    tx_id = office.preview()["data"]["tx_id"]
    office.clock.ahead = office.gateway.settings.tx_ttl + 1
    assert office.commit(tx_id)["reason_code"] == "TX_INVALID"


def test_shares_that_are_too_old_are_replaced_by_fresh_ones(office: Office) -> None:
    tx_id = office.preview()["data"]["tx_id"]
    office.clock.ahead = office.gateway.settings.mac_ttl + 1
    assert office.commit(tx_id)["reason_code"] == "ALLOW"


@pytest.mark.parametrize(("kind", "code"), [("act.preview", "TX_INVALID"), ("gate.decision", "EXECUTOR_UNAVAILABLE")])
@pytest.mark.parametrize("change", ["canonical = replace(canonical, 'one', 'two')", "signature = 'aa'"])
def test_a_record_that_was_changed_between_preview_and_commit_is_found(
    office: Office, kind: str, code: str, change: str
) -> None:
    """The same process has sealed the record, and compares the stored bytes with its own."""
    tx_id = office.preview(content="one\n")["data"]["tx_id"]
    with tampering(office.ledger.config.home / "ledger.db") as store:
        assert store.execute(f"UPDATE records SET {change} WHERE kind = ?", (kind,)).rowcount == 1
    assert office.commit(tx_id)["reason_code"] == code
    assert not list(office.workspace.iterdir())


@pytest.mark.parametrize("tx_id", ["tx_nothing", "tx_00000000-0000-4000-8000-000000000000", "x", "tx_" + "a" * 36])
def test_an_unknown_tx_is_refused(office: Office, tx_id: str) -> None:
    assert office.commit(tx_id)["reason_code"] == "TX_INVALID"


def test_the_tx_of_another_intent_is_refused(office: Office) -> None:
    tx_id = office.preview()["data"]["tx_id"]
    assert office.act("ReadWorkspaceFile", {"tx_id": tx_id})["reason_code"] == "TX_INVALID"


def test_other_inputs_than_those_of_the_preview_do_not_happen(office: Office) -> None:
    tx_id = office.preview()["data"]["tx_id"]
    answer = office.act("WriteWorkspaceFile", {"tx_id": tx_id, "relpath": "notes.txt", "content": "two\n"})
    assert (answer["reason_code"], answer["data"]["detail"]) == ("BAD_COMMIT_PROOF", "bad_request_sha256")
    assert not list(office.workspace.iterdir())


def test_a_file_that_changed_since_the_preview_is_left_alone(office: Office) -> None:
    tx_id = office.preview()["data"]["tx_id"]
    (office.workspace / "notes.txt").write_text("by someone else\n")
    assert office.commit(tx_id)["reason_code"] == "WORKSPACE_CHANGED"
    assert (office.workspace / "notes.txt").read_text() == "by someone else\n"


@pytest.mark.parametrize(
    ("document", "code"),
    [
        ({"intent_id": "ReadWorkspaceFile", "inputs": {"relpath": "a"}, "constraints": {}}, "BAD_REQUEST"),
        (
            {"intent_id": "ReadWorkspaceFile", "inputs": {"relpath": "a"}, "constraints": {}, "caller": "c", "x": 1},
            "BAD_REQUEST",
        ),
        ({"intent_id": "ReadWorkspaceFile", "inputs": [], "constraints": {}, "caller": "c"}, "BAD_REQUEST"),
        (b'{"intent_id":"A","intent_id":"B","inputs":{},"constraints":{},"caller":"c"}', "BAD_REQUEST"),
        ({"intent_id": "Nothing", "inputs": {}, "constraints": {}, "caller": "c"}, "UNKNOWN_INTENT"),
        (
            {"intent_id": "ReadWorkspaceFile", "inputs": {"relpath": "../a"}, "constraints": {}, "caller": "c"},
            "WORKSPACE_PATH_BLOCKED",
        ),
        (
            {"intent_id": "ReadWorkspaceFile", "inputs": {"relpath": "a"}, "constraints": {"why": 1}, "caller": "c"},
            "BAD_REQUEST",
        ),
        (
            {
                "intent_id": "ReadWorkspaceFile",
                "inputs": {"relpath": "a"},
                "constraints": {"external_principal": "p"},
                "caller": "c",
            },
            "DELEGATION_REQUIRED",
        ),
    ],
)
def test_a_wrong_act_is_refused_and_recorded(office: Office, document: object, code: str) -> None:
    assert office.gateway.act(document)["reason_code"] == code
    (record,) = office.ledger.read("gateway.s1")
    assert record.to_dict()["outcome"]["result"]["reason_code"] == code


def test_capabilities_of_the_caller_are_looked_at(tmp_path: Path) -> None:
    with open_office(tmp_path / "work", callers={"agent:reader": frozenset({"Read*"})}) as office:
        assert office.write(caller="agent:reader")["reason_code"] == "CAPABILITY_DENY"
        assert office.write(caller="agent:unknown")["reason_code"] == "CAPABILITY_DENY"
        (office.workspace / "notes.txt").write_text("x")
        read = office.act("ReadWorkspaceFile", {"relpath": "notes.txt"}, caller="agent:reader")
        assert (read["reason_code"], read["data"]["content"]) == ("ALLOW", "x")


def test_a_door_admits_its_callers_alone(office: Office) -> None:
    door = Door(session="s1", callers=("agent:reader",))
    assert office.write(door=door)["reason_code"] == "INGRESS_CONFLICT"


def test_an_executor_without_the_effect_burns_nothing(aver_home: Path, tmp_path: Path) -> None:
    with open_office(tmp_path / "work", causes={}) as office:
        assert office.write()["reason_code"] == "EXECUTOR_UNAVAILABLE"
        assert "act.commit" not in office.kinds()


def test_a_link_out_of_the_workspace_is_not_followed(office: Office, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("s")
    (office.workspace / "in").symlink_to(outside)
    assert office.act("ReadWorkspaceFile", {"relpath": "in/secret.txt"})["status"] == "DENY"
    assert office.write("in/new.txt")["status"] == "DENY"
    assert not (outside / "new.txt").exists()


class TestConfirmation:
    def test_a_person_is_asked_about_a_deletion_and_the_same_act_meets_the_answer(self, office: Office) -> None:
        office.enrol()
        (office.workspace / "old.txt").write_text("x")
        asked = office.act("DeleteWorkspaceFile", {"relpath": "old.txt"})
        assert (asked["reason_code"], asked["data"]["need_confirm"]) == ("REQUIRE_CONFIRM", 1)
        assert office.act("DeleteWorkspaceFile", {"relpath": "old.txt"}, user_confirm=True)["status"] == "DENY"
        office.approve(asked["data"]["approval"])
        # Long after the tx has expired, the same act is carried out once.
        office.clock.ahead = 1000
        done = office.act("DeleteWorkspaceFile", {"relpath": "old.txt"})
        assert done["reason_code"] == "ALLOW"
        assert not (office.workspace / "old.txt").exists()
        (office.workspace / "old.txt").write_text("x")
        assert office.act("DeleteWorkspaceFile", {"relpath": "old.txt"})["reason_code"] == "REQUIRE_CONFIRM"
        assert office.ledger.verify().status == "verified"

    def test_a_commit_by_tx_id_uses_the_approval_that_came_meanwhile(self, office: Office) -> None:
        office.enrol()
        (office.workspace / "old.txt").write_text("x")
        asked = office.act("CheckDeleteWorkspaceFile", {"relpath": "old.txt"})
        commit = {"tx_id": asked["data"]["tx_id"]}
        assert office.act("DeleteWorkspaceFile", commit)["reason_code"] == "REQUIRE_CONFIRM"
        office.approve(asked["data"]["approval"])
        # Another PREVIEW finds the approval and does not spend it.
        assert office.act("CheckDeleteWorkspaceFile", {"relpath": "old.txt"})["data"]["need_confirm"] == 1
        assert office.act("DeleteWorkspaceFile", commit)["reason_code"] == "ALLOW"
        assert office.act("DeleteWorkspaceFile", commit)["reason_code"] != "ALLOW"

    @pytest.mark.sample(4)
    @pytest.mark.parametrize("content", [b"junk\n", b"\xff\x00", b""], ids=["text", "bytes", "empty"])
    @pytest.mark.parametrize("name", ["old.txt", ".env"])
    def test_an_approved_deletion_is_one_of_the_content_that_was_there(
        self, office: Office, name: str, content: bytes
    ) -> None:
        office.enrol()
        (office.workspace / name).write_bytes(content)
        asked = office.act("DeleteWorkspaceFile", {"relpath": name})
        office.approve(asked["data"]["approval"])
        (office.workspace / name).write_text("precious\n")
        again = office.act("DeleteWorkspaceFile", {"relpath": name})
        assert again["reason_code"] == "REQUIRE_CONFIRM"
        assert again["data"]["approval"] != asked["data"]["approval"]
        (office.workspace / name).write_bytes(content)
        assert office.act("DeleteWorkspaceFile", {"relpath": name})["reason_code"] == "ALLOW"
        assert office.ledger.verify().status == "verified"

    @pytest.mark.more
    def test_a_command_is_judged_again_when_its_script_has_changed(self, tmp_path: Path) -> None:
        effects = EffectSettings(commands=CommandSettings(allow=(("python3",),)))
        with open_office(tmp_path / "work", effects=effects) as office:
            office.enrol()
            script, run = office.workspace / "clean.py", {"argv": ["python3", "clean.py"]}
            script.write_text("print('clean')\n")
            shown = office.act("CheckRunCommand", run)
            assert shown["reason_code"] == "ALLOW"
            script.write_text("import subprocess\nsubprocess.run(['touch', 'stolen'])\n")
            asked = office.act("RunCommand", {"tx_id": shown["data"]["tx_id"]})
            assert asked["reason_code"] == "REQUIRE_CONFIRM"
            # A person approves this script. Another one is not approved by that.
            asked = office.act("RunCommand", run)
            office.approve(asked["data"]["approval"])
            script.write_text("import subprocess\nsubprocess.run(['touch', 'stolen', 'more'])\n")
            assert office.act("RunCommand", {"tx_id": asked["data"]["tx_id"]})["reason_code"] == "REQUIRE_CONFIRM"
            assert office.act("RunCommand", run)["reason_code"] == "REQUIRE_CONFIRM"
            assert not (office.workspace / "stolen").exists()
            script.write_text("import subprocess\nsubprocess.run(['touch', 'stolen'])\n")
            assert office.act("RunCommand", run)["reason_code"] == "ALLOW"
            assert office.ledger.verify().status == "verified"

    def test_a_denial_denies(self, office: Office) -> None:
        office.enrol()
        (office.workspace / "old.txt").write_text("x")
        asked = office.act("DeleteWorkspaceFile", {"relpath": "old.txt"})
        office.deny(asked["data"]["approval"])
        assert office.act("DeleteWorkspaceFile", {"relpath": "old.txt"})["status"] == "DENY"
        assert (office.workspace / "old.txt").exists()

    def test_an_approval_is_for_its_session_and_inputs_alone(self, office: Office) -> None:
        office.enrol()
        for name in ("old.txt", "other.txt"):
            (office.workspace / name).write_text("x")
        asked = office.act("DeleteWorkspaceFile", {"relpath": "old.txt"})
        office.approve(asked["data"]["approval"])
        assert office.act("DeleteWorkspaceFile", {"relpath": "other.txt"})["status"] == "DENY"
        elsewhere = office.act("DeleteWorkspaceFile", {"relpath": "old.txt"}, door=Door(session="s2"))
        assert elsewhere["reason_code"] == "REQUIRE_CONFIRM"

    def test_the_flag_counts_only_where_the_settings_say_so(self, tmp_path: Path) -> None:
        with open_office(tmp_path / "work", confirm="flag") as office:
            (office.workspace / "old.txt").write_text("x")
            assert office.act("DeleteWorkspaceFile", {"relpath": "old.txt"})["reason_code"] == "REQUIRE_CONFIRM"
            done = office.act("DeleteWorkspaceFile", {"relpath": "old.txt"}, user_confirm=True)
            assert done["reason_code"] == "ALLOW"


def test_servers_with_one_mac_key_are_believed_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("POLICY0_MAC_KEY", "POLICY1_MAC_KEY"):
        monkeypatch.setenv(name, "11" * 32)
    with open_office(tmp_path / "work") as office:
        answer = office.write()
        assert (answer["status"], answer["reason_code"]) == ("DENY", "EXECUTOR_UNAVAILABLE")
        assert "the same MAC key" in answer["summary"]
        assert not (office.workspace / "notes.txt").exists()


def test_insecure_mode_says_so_at_its_start_and_in_every_answer_and_record(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with open_office(tmp_path / "work", is_insecure=True) as office:
        assert "EXECUTOR_INSECURE_ALLOW is set: the executor acts without evidence" in caplog.messages
        assert office.write()["reason_code"] == "ALLOW_INSECURE"
        for record in office.ledger.read("gateway.s1"):
            assert record.to_dict()["context"]["environment"]["gateway"]["insecure"] is True


def test_a_write_of_the_content_that_is_there_passes(office: Office) -> None:
    """Agents write files again all the time. Nothing changes, so nobody need look at it."""
    assert office.write("a.py", "x = 1\n")["reason_code"] == "ALLOW"
    again = office.preview("a.py", "x = 1\n")
    surely = ["a change inside the workspace that is surely of low risk"]
    assert (again["reason_code"], again["data"]["reasons"]) == ("ALLOW", surely), again
    assert office.write("a.py", "x = 1\n")["reason_code"] == "ALLOW"
    assert office.ledger.verify().status == "verified"


def read_reasons(office: Office) -> list[str]:
    """The reasons of the newest decision."""
    return list([*office.ledger.find(kind="gate.decision")][-1].to_dict()["outcome"]["result"]["reasons"])


def test_a_new_empty_file_passes_as_a_small_edit(office: Office) -> None:
    assert office.write("__init__.py", "")["reason_code"] == "ALLOW"
    assert (office.workspace / "__init__.py").read_bytes() == b""
    assert not any("not shown" in reason for reason in read_reasons(office))
    assert office.ledger.verify().status == "verified"


def test_a_git_hook_whose_lines_are_shown_is_not_called_unshown(office: Office) -> None:
    assert office.preview(".git/hooks/pre-commit", "#!/bin/sh\n")["reason_code"] == "REQUIRE_CONFIRM"
    assert "the change has effects that its lines do not show" in read_reasons(office)
    assert "the change itself was not shown" not in read_reasons(office)


def test_a_preview_shows_its_evidence_and_tells_about_a_flag_that_does_not_count(office: Office) -> None:
    data = office.preview()["data"]
    assert [data["commit_evidence"][name]["server_id"] for name in ("policy0", "policy1")] == [0, 1]
    assert data["commit_evidence"]["policy0"]["request_sha256"] == data["request_sha256"]
    (office.workspace / "kept.txt").write_text("one\n" * 100)
    plain, flagged = (office.write("kept.txt", "", user_confirm=flag) for flag in (False, True))
    assert plain["reason_code"] == flagged["reason_code"] == "REQUIRE_CONFIRM"
    assert "user_confirm" not in plain["summary"]
    assert 'user_confirm counts only with confirm = "flag" under [gateway]' in flagged["summary"]
