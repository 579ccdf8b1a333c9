"""Attacks of an agent, and of a clock, on PREVIEW and COMMIT: each is refused with its code, and recorded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aver.gateway.calls.upstream import FunctionTools
from aver.gateway.delegation import sign_delegation
from aver.gateway.effect_settings import CommandSettings, EffectSettings, MailSettings
from support.act_ledgers import PARTNER, sign_token
from support.acts import CALLER, Office, open_office


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    with open_office(tmp_path / "work", keys={"partner": PARTNER.public}) as opened:
        yield opened


@pytest.mark.parametrize("intent", ["WriteWorkspaceFile", "CheckWriteWorkspaceFile", "DeleteWorkspaceFile"])
def test_a_path_through_a_link_is_blocked_at_preview_and_recorded(office: Office, tmp_path: Path, intent: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (office.workspace / "in").symlink_to(outside)
    inputs = {"relpath": "in/a.txt", **({"content": "x"} if "Write" in intent else {})}
    answer = office.act(intent, inputs)
    assert answer["reason_code"] == "WORKSPACE_PATH_BLOCKED"
    (record,) = office.ledger.read("gateway.s1")
    assert record.to_dict()["outcome"]["result"]["reason_code"] == "WORKSPACE_PATH_BLOCKED"


def test_a_preview_has_one_tx_id_and_no_other_name(office: Office) -> None:
    """The ledger also finds records by their hash, their key and their address."""
    tx_id = office.preview()["data"]["tx_id"]
    record = office.ledger.get(tx_id.removeprefix("tx_"))
    assert record is not None
    for name in (record.hash, f"capsule://gateway.s1/{record.sequence}", record.id.upper(), f"tx_{record.id}"):
        assert office.commit(f"tx_{name}")["reason_code"] == "TX_INVALID", name
    assert office.commit(tx_id)["reason_code"] == "ALLOW"


def test_no_record_of_another_kind_is_a_preview(office: Office) -> None:
    done = office.write()
    for record in [*office.ledger.read("gateway.s1"), *office.ledger.read("gate.s1")]:
        if record.kind != "act.preview":
            assert office.commit(f"tx_{record.id}")["reason_code"] == "TX_INVALID", record.kind
    assert office.commit(f"tx_act:{done['data']['action_id']}")["reason_code"] == "TX_INVALID"


@pytest.mark.parametrize("is_stored", [False, True])
def test_inputs_cannot_refer_to_values_of_the_ledger(office: Office, is_stored: bool) -> None:
    """In a record, an object of this form stands for a stored value that the agent has never seen."""
    digest = "0" * 64
    if is_stored:
        office.write("big.txt", "a line\n" * 5000)
        found = [blob for record in office.ledger.read("gateway.s1") for blob in blobs_in(record.to_dict())]
        digest = found[0]
    whole = {"alg": "sha256", "digest": digest, "size": 35_000, "media": "text/plain; charset=utf-8"}
    for reference in (whole, {name: whole[name] for name in ("digest", "media")}):
        arguments = {"deep": [{"blob": reference}]}
        answer = office.act("CallTool", {"server": "s", "tool": "t", "arguments": arguments})
        assert answer["reason_code"] == "BAD_REQUEST"
        assert office.kinds()[-1] == "act.preview"


@pytest.mark.parametrize(
    ("intent", "inputs"),
    [
        ("WriteWorkspaceFile", {"relpath": "a.txt", "content": "a line\n" * 150_000}),
        ("WriteWorkspaceFile", {"relpath": "a.txt", "content": "\n" * 600_000}),
        ("CallTool", {"server": "s", "tool": "t", "arguments": {str(number): {"a": 1} for number in range(20_000)}}),
        ("RunCommand", {"argv": ["echo", *["x" * 1000] * 100]}),
    ],
)
def test_an_act_that_is_too_large_to_judge_or_to_record_is_refused_and_recorded(
    office: Office, intent: str, inputs: dict[str, Any]
) -> None:
    """The gate cuts what it cannot read. A decision about a cut request would be called a forgery later."""
    answer = office.act(intent, inputs)
    assert answer["reason_code"] == "BAD_REQUEST", answer
    assert office.kinds() == ["act.preview"]
    assert office.ledger.verify().status == "verified"


@pytest.mark.parametrize(
    ("intent", "inputs"),
    [
        ("CheckWriteWorkspaceFile", {"relpath": "a.txt", "content": "a line\n" * 120_000}),
        ("CheckRunCommand", {"argv": ["ls", *(f"some/directory/file-{number}.txt" for number in range(1800))]}),
        ("CheckCallTool", {"server": "s", "tool": "t", "arguments": {"all": [f"/etc/{n}.conf" for n in range(3000)]}}),
        ("CheckMessagePolicy", {"recipient": "bob@example.com", "text": "password = " + "x" * 500_000}),
    ],
)
def test_a_large_act_within_the_limits_is_decided_and_its_records_hold(
    tmp_path: Path, intent: str, inputs: dict[str, Any]
) -> None:
    able = EffectSettings(commands=CommandSettings((("ls",),)), mail=MailSettings("localhost", "agent@example.com"))
    with open_office(tmp_path / "work", effects=able) as office:
        office.gateway.connect("s", FunctionTools({}))
        assert office.act(intent, inputs)["reason_code"] in ("ALLOW", "REQUIRE_CONFIRM", "POLICY_DENY")
        assert office.ledger.verify().status == "verified"


def blobs_in(content: dict[str, Any]) -> list[str]:
    from aver.capsule.blobs import blob_references

    return [digest for digest, _ in blob_references(content)]


class TestClock:
    """The clock jumps between PREVIEW and COMMIT."""

    @pytest.mark.parametrize("jump", [-86_400, -3600, 3600, 86_400])
    def test_a_jump_ends_the_preview(self, office: Office, jump: float) -> None:
        tx_id = office.preview()["data"]["tx_id"]
        office.clock.ahead = jump
        assert office.commit(tx_id)["reason_code"] == "TX_INVALID"
        assert not list(office.workspace.iterdir())
        # Whatever the clock says, the next act works, and the records hold.
        assert office.write()["reason_code"] == "ALLOW"
        assert office.ledger.verify().status == "verified"

    @pytest.mark.parametrize("jump", [-50, 50])
    def test_a_small_jump_costs_fresh_shares_alone(self, office: Office, jump: float) -> None:
        tx_id = office.preview()["data"]["tx_id"]
        office.clock.ahead = jump
        assert office.commit(tx_id)["reason_code"] == "ALLOW"
        assert office.commit(tx_id)["reason_code"] == "REPLAY_DENY"
        assert office.ledger.verify().status == "verified"

    def test_an_act_that_was_done_stays_done_when_the_clock_goes_back(self, office: Office) -> None:
        office.clock.ahead = 100
        tx_id = office.preview()["data"]["tx_id"]
        assert office.commit(tx_id)["reason_code"] == "ALLOW"
        office.clock.ahead = 45
        (office.workspace / "notes.txt").unlink()
        assert office.commit(tx_id)["reason_code"] == "REPLAY_DENY"
        assert not list(office.workspace.iterdir())


def test_another_token_with_the_same_jti_is_another_context(office: Office) -> None:
    """The hash has the jti alone. The record of the COMMIT has the token of the PREVIEW."""
    first = {"external_principal": "partner", "delegation_token": sign_token(scope=("intent:Write*",))}
    second = {**first, "delegation_token": sign_token(scope=("*",))}
    tx_id = office.preview(**first)["data"]["tx_id"]
    assert office.commit(tx_id, **second)["reason_code"] == "TX_AUTH_CONTEXT_MISMATCH"
    assert office.commit(tx_id, **first)["reason_code"] == "ALLOW"


def test_a_long_chain_of_tokens_is_the_same_at_commit(office: Office, tmp_path: Path) -> None:
    """Long parents are stored beside the record, and read back."""
    names = [f"intent:Write{'x' * 50}{number:03}" for number in range(60)]
    keys = {"partner": PARTNER.public, "middle": PARTNER.public}
    token, issuer = None, "partner"
    for step, subject in enumerate(["middle", "middle", CALLER]):
        token = sign_delegation(
            PARTNER,
            iss=issuer,
            sub=subject,
            session="s1",
            scope=("intent:Write*", *names),
            expires="2099-01-01T00:00:00+00:00",
            jti=f"dlg_{step}",
            parent=token,
        )
        issuer = "middle"
    assert token is not None
    assert len(token) > 20_000
    with open_office(tmp_path / "work", office.ledger, keys=keys) as second:
        given = {"external_principal": "partner", "delegation_token": token}
        tx_id = second.preview(**given)["data"]["tx_id"]
        assert second.commit(tx_id, **given)["reason_code"] == "ALLOW"
