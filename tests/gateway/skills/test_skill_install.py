"""Installing a skill through the gateway, and acting as one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aver import SeedSigner
from aver.gateway.effect_settings import EffectSettings, SkillSettings
from aver.gateway.skills.skill_store import SkillStore
from aver.gateway.skills.workload_token import WORKLOAD_SECONDS, issue_workload_token
from support.acts import Office, open_office

SETTINGS = EffectSettings(skills=SkillSettings(ioc_domains=frozenset({"evil.example"})))


@pytest.fixture
def office(aver_home: Path, tmp_path: Path) -> Iterator[Office]:
    with open_office(tmp_path / "work", effects=SETTINGS) as opened:
        opened.enrol()
        yield opened


def bring(office: Office, tmp_path: Path, text: str = "# Notes\n") -> str:
    source = tmp_path / "notes"
    source.mkdir(exist_ok=True)
    (source / "SKILL.md").write_text(text)
    return SkillStore(office.ledger.config.home, SETTINGS.skills).add(source).digest


def install(office: Office, digest: str) -> dict[str, Any]:
    inputs = {"skill_id": "notes", "skill_digest": digest}
    answer = office.act("CommitSkillInstall", inputs)
    if answer["reason_code"] != "REQUIRE_CONFIRM":
        return answer
    office.approve(answer["data"]["approval"])
    return office.act("CommitSkillInstall", inputs)


def test_a_person_approves_and_the_skill_is_installed(office: Office, tmp_path: Path) -> None:
    digest = bring(office, tmp_path)
    asked = office.act("CommitSkillInstall", {"skill_id": "notes", "skill_digest": digest})
    assert asked["reason_code"] == "REQUIRE_CONFIRM"
    place = office.ledger.config.home / "gateway/skills/installed/notes"
    assert not place.exists()
    office.approve(asked["data"]["approval"])
    done = office.act("CommitSkillInstall", {"skill_id": "notes", "skill_digest": digest})
    assert done["reason_code"] == "ALLOW", done
    assert (place / "SKILL.md").read_text() == "# Notes\n"
    token = done["data"]["workload_token"]
    assert all(token.encode() not in record.canonical for record in office.ledger.read("gateway.s1"))
    assert office.ledger.verify().status == "verified"


def test_a_skill_acts_under_its_own_name(office: Office, tmp_path: Path) -> None:
    digest = bring(office, tmp_path)
    token = install(office, digest)["data"]["workload_token"]
    assert office.write("a.txt", workload_token=token)["reason_code"] == "ALLOW"
    *_, preview = office.ledger.find(kind="act.preview")
    assert preview.to_dict()["outcome"]["result"]["caller"] == f"skill:{digest}"
    assert office.ledger.verify().status == "verified"


def test_the_capabilities_of_the_skill_count(aver_home: Path, tmp_path: Path) -> None:
    callers = {"agent:writer": frozenset({"*"}), "skill:*": frozenset({"ReadWorkspaceFile"})}
    with open_office(tmp_path / "work", effects=SETTINGS, callers=callers) as office:
        office.enrol()
        token = install(office, bring(office, tmp_path))["data"]["workload_token"]
        assert office.write("a.txt", workload_token=token)["reason_code"] == "CAPABILITY_DENY"


def test_nobody_becomes_a_skill_by_its_name(office: Office) -> None:
    answer = office.write("a.txt", caller=f"skill:{'0' * 64}")
    assert answer["reason_code"] == "WORKLOAD_TOKEN_INVALID"


def test_tokens_that_do_not_count(office: Office, tmp_path: Path) -> None:
    digest, now = "0" * 64, office.clock()
    signer = office.ledger.keys.signer()
    good = issue_workload_token(signer, skill_digest=digest, session="s1", now=now)
    assert office.write("good.txt", workload_token=good)["reason_code"] == "ALLOW"
    bad = {
        "another session": issue_workload_token(signer, skill_digest=digest, session="s2", now=now),
        "expired": issue_workload_token(signer, skill_digest=digest, session="s1", now=now - WORKLOAD_SECONDS - 1),
        "another key": issue_workload_token(SeedSigner(b"\7" * 32), skill_digest=digest, session="s1", now=now),
        "another policy key": issue_workload_token(
            office.ledger.keys.signer("policy:0"), skill_digest=digest, session="s1", now=now
        ),
        "no digest": issue_workload_token(signer, skill_digest="x", session="s1", now=now),
        "changed": good[:-1] + ("A" if good[-1] != "A" else "B"),
        "padded": good + "=",
        "empty": "e30",
    }
    for name, token in bad.items():
        assert office.write("bad.txt", workload_token=token)["reason_code"] == "WORKLOAD_TOKEN_INVALID", name
    assert not (office.workspace / "bad.txt").exists()


def test_a_delegation_token_is_no_workload_token(office: Office) -> None:
    from support.act_ledgers import sign_token

    assert office.write("bad.txt", workload_token=sign_token())["reason_code"] == "WORKLOAD_TOKEN_INVALID"


def test_a_listed_host_blocks_the_skill_before_anybody_decides(office: Office, tmp_path: Path) -> None:
    answer = install(office, bring(office, tmp_path, "see https://evil.example\n"))
    assert answer["reason_code"] == "IOC_BLOCKED"
    assert not list(office.ledger.find(kind="gate.decision"))


def test_a_package_that_changes_after_the_preview_is_not_installed(office: Office, tmp_path: Path) -> None:
    digest = bring(office, tmp_path)
    inputs = {"skill_id": "notes", "skill_digest": digest}
    asked = office.act("CheckSkillInstallPolicy", inputs)
    office.approve(asked["data"]["approval"])
    (office.ledger.config.home / "gateway/skills/packages" / digest / "SKILL.md").write_text("changed")
    done = office.act("CommitSkillInstall", {"tx_id": asked["data"]["tx_id"], **inputs})
    assert done["reason_code"] == "EFFECT_FAILED", done
    assert not (office.ledger.config.home / "gateway/skills/installed/notes").exists()


def test_a_package_that_never_came_in(office: Office) -> None:
    assert install(office, "0" * 64)["reason_code"] == "BAD_REQUEST"
