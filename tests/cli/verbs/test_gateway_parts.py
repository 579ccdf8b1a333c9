"""`aver gateway init`, `pin` and `status`, as a person calls them."""

from __future__ import annotations

import json

import pytest

from aver import open_ledger
from aver.gateway.parts.part_directories import PARTS
from support.aver_command import ONE_DRAFT, Aver

RULE = """
@id("no-secrets-file")
@reason("secrets stay where they are")
forbid (principal, action, resource) when { context has command && context.command like "*secrets*" };
"""


def test_init_pin_and_status(aver: Aver) -> None:
    done = aver("gateway", "init", "--json")
    assert done.code == 0
    assert done.json["parts"].keys() == set(PARTS)
    assert aver("gateway", "init").code == 5
    assert aver("gateway", "pin", "--json").json["changes"] == []
    status = aver("gateway", "status", "--json")
    assert (status.code, status.json["deployment"], status.json["ok"]) == (1, "apart", False)
    assert {part["part"] for part in status.json["parts"]} == set(PARTS)
    assert all("does not run" in part["problem"] for part in status.json["parts"])


def test_status_needs_no_ledger(aver: Aver) -> None:
    """A new home has none yet, and the first question of a person is how it is."""
    status = aver("gateway", "status")
    assert (status.code, "in one process" in status.out) == (0, True)
    assert not (aver.home / "ledger.db").exists()


def test_pin_shows_what_changed_and_gives_it_to_the_parts(aver: Aver) -> None:
    before = aver("gateway", "init", "--json").json["program_id"]
    (aver.home / "config.toml").write_text('[gate]\ncaution = "strict"\nmax_retries = 5\n')
    dry = aver("gateway", "pin", "--dry-run", "--json").json
    assert dry["before"] == before
    assert dry["changes"] == ['caution: "balanced" -> "strict"', "max_retries: 3 -> 5"]
    assert json.loads((aver.home / "gateway/program.json").read_text())["program_id"] == before
    pinned = aver("gateway", "pin").out
    assert "strict" in pinned
    assert "start the doors again" in pinned
    for place in ("", "policy0/", "policy1/", "executor/"):
        found = json.loads((aver.home / f"gateway/{place}program.json").read_text())
        assert found["program_id"] == dry["after"]
    pinned_at = json.loads((aver.home / "gateway" / "program.json").read_text())["pinned_at"]
    assert f"nothing has changed since {pinned_at}" in aver("gateway", "pin").out
    assert json.loads((aver.home / "gateway" / "program.json").read_text())["pinned_at"] == pinned_at


def test_a_rule_that_is_new_is_shown(aver: Aver) -> None:
    aver("gateway", "init")
    rules = aver.home / "policy"
    rules.mkdir()
    (rules / "own.cedar").write_text(RULE)
    (aver.home / "config.toml").write_text(f'[gate]\npolicy = "{rules}"\n')
    changes = aver("gateway", "pin", "--dry-run", "--json").json["changes"]
    assert "rules: own.cedar is new" in changes
    assert any(line.startswith('+@id("no-secrets-file")') for line in changes)


@pytest.mark.more
def test_status_tells_of_rules_that_are_not_pinned(aver: Aver) -> None:
    aver("gateway", "init")
    assert aver("gateway", "status", "--json").json["rules_problem"] == ""
    used = aver("policy", "init", "--use").out
    assert "aver gateway pin" in used
    with next((aver.home / "policy").glob("*.cedar")).open("a") as rules:
        rules.write(RULE)
    shown = aver("gateway", "status")
    assert (shown.code, "every act is POLICY_UNAVAILABLE" in shown.out) == (1, True)
    assert "not the pinned ones" in aver("gateway", "status", "--json").json["rules_problem"]
    aver("gateway", "pin")
    assert aver("gateway", "status", "--json").json["rules_problem"] == ""


def test_a_home_in_one_process(sealed: Aver) -> None:
    status = sealed("gateway", "status", "--json")
    assert (status.code, status.json["deployment"], status.json["parts"]) == (0, "embedded", [])
    assert sealed("gateway", "up").code == 2
    assert sealed("gateway", "pin").code == 2


def test_an_act_in_a_home_whose_parts_do_not_run_is_denied(aver: Aver) -> None:
    aver("gateway", "init")
    inputs = '{"relpath": "a.txt", "content": ""}'
    done = aver("gateway", "act", "WriteWorkspaceFile", "--inputs", inputs, "--json")
    assert (done.code, done.json["reason_code"]) == (5, "POLICY_UNAVAILABLE")
    assert not (aver.directory / "a.txt").exists()


class TestDoctor:
    @staticmethod
    def reports(aver: Aver) -> list[tuple[str, str]]:
        found = aver("doctor", "--json").json["reports"]
        return [(each["status"], each["words"]) for each in found if each["subject"] == "gateway"]

    def test_a_gateway_that_was_never_used_gets_no_canary(self, sealed: Aver) -> None:
        assert self.reports(sealed) == [("ok", "not in use yet")]
        assert not list((sealed.home / "keys").glob("policy*"))

    def test_a_canary_goes_through_preview(self, aver: Aver) -> None:
        (aver.directory / "work").mkdir()
        inputs = ("--inputs", '{"relpath": "a.txt"}', "--workspace", aver.directory / "work")
        aver("gateway", "act", "CheckReadWorkspaceFile", *inputs)
        [(status, words)] = self.reports(aver)
        assert (status, words) == ("ok", "parts in one process; both policy servers answered a PREVIEW: ALLOW")
        assert "act.preview" in aver("log", "gateway.aver-doctor", "--json").out

    def test_parts_that_do_not_run_are_a_problem(self, aver: Aver) -> None:
        aver("gateway", "init")
        aver.seal(ONE_DRAFT)
        canary, executor = self.reports(aver)
        assert canary[0] == executor[0] == "problem"
        assert "POLICY_UNAVAILABLE" in canary[1]
        assert "the executor" in executor[1]

    def test_insecure_mode_is_a_problem(self, aver: Aver) -> None:
        aver.environment["EXECUTOR_INSECURE_ALLOW"] = "1"
        assert self.reports(aver)[0][0] == "problem"


def test_a_change_of_the_gateways_settings_is_sealed(aver: Aver) -> None:
    (aver.directory / "work").mkdir()
    inputs = ("--inputs", '{"relpath": "a.txt"}', "--workspace", aver.directory / "work")
    aver("gateway", "act", "CheckReadWorkspaceFile", *inputs)
    (aver.home / "config.toml").write_text('[gateway]\nconfirm = "flag"\n')
    aver("gateway", "act", "CheckReadWorkspaceFile", *inputs)
    with open_ledger(home=aver.home) as ledger:
        *_, newest = ledger.read("gate.settings")
    result = newest.to_dict()["outcome"]["result"]
    assert result["what"] == ['setting gateway.confirm: not set became "flag"']
    assert result["loosened"] == ['gateway.confirm is "flag" now']
