"""The file in /etc: it alone is in force, and one that the user could have written is refused."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

from aver import BadInput, Capsule, Ledger, Outcome, Refused
from aver.capsule.aver_block import of_kind
from aver.gate.approvals import Person, approve, consume, enrol_approver, load_approval_setup, load_request
from aver.gate.approvals.rules import approvals_to_toml, read_approval_rules, read_system_file
from support.approvals import SHOWN, code_of, enrolled, opened, somebody, with_settings

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a file that the user does not own")


def key_of(person: Person) -> str:
    return f'[keys."{person.identity}"]\npublic_key = "{person.public.ed25519}"\ncustody = "{person.custody}"\n'


@pytest.fixture
def system_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the file would be; nobody has written it yet. All above it belongs to whoever runs the tests."""
    path = tmp_path / "etc" / "approvals.toml"
    path.parent.mkdir()
    monkeypatch.setattr("aver.gate.approvals.rules.SYSTEM_FILE", path)
    return path


@AS_ROOT
def test_it_is_in_force_instead_of_everything_else(aver_home: Path, system_file: Path) -> None:
    ada, eve = somebody("ada"), somebody("eve")
    with with_settings(aver_home, '[approvals]\napprovers = ["person:eve"]\nexpires = 99\n') as ledger:
        enrolled(ledger, eve)
        system_file.write_text(f"quorum = 1\nexpires = 60\n{key_of(ada)}")
        now = load_approval_setup(ledger)
        assert (now.rules.expires, list(now.roster.approvers), now.roster.anchor) == (60, ["person:ada"], "system")
        request = opened(ledger)
        assert request.anchor == "system"
        with pytest.raises(Refused) as refusal:
            approve(ledger, request, eve, shown=SHOWN)
        assert code_of(refusal) == "NOT_LISTED"
        with pytest.raises(Refused) as refusal:
            enrol_approver(ledger, somebody("ben"), eve)
        assert code_of(refusal) == "SYSTEM_ROSTER"
        approve(ledger, request, ada, shown=SHOWN)
        consume(ledger, request, request.digest)


@AS_ROOT
def test_when_it_changes_what_was_pinned_counts_no_longer(ledger: Ledger, system_file: Path) -> None:
    ada, eve = somebody("ada"), somebody("eve")
    system_file.write_text(key_of(ada))
    request = opened(ledger)
    approve(ledger, request, ada, shown=SHOWN)
    system_file.write_text(key_of(eve))
    with pytest.raises(Refused) as refusal:
        consume(ledger, request, request.digest)
    assert code_of(refusal) == "NOT_APPROVED"


@AS_ROOT
def test_the_levels_are_those_of_the_file_whatever_a_request_says(ledger: Ledger, system_file: Path) -> None:
    """As in a request that somebody wrote into the ledger, and had a process load."""
    ada, ben = somebody("ada"), somebody("ben")
    system_file.write_text(f"quorum = 2\n{key_of(ada)}{key_of(ben)}")
    request = opened(ledger)
    content = {**request.content, "levels": [{"approvers": ["person:ada", "person:ben"], "quorum": 1, "after": 0}]}
    draft = of_kind(Capsule(type="auth", outcome=Outcome(status="pending", result=content)), "approval.request")
    ledger.append(request.chain, draft)
    weaker = load_request(ledger, draft.id)
    with pytest.raises(Refused) as refusal:
        approve(ledger, weaker, ada, shown=SHOWN)
    assert code_of(refusal) == "KEY_RETIRED"
    approve(ledger, request, ada, shown=SHOWN)
    assert approve(ledger, request, ben, shown=SHOWN).state == "approved"


@pytest.mark.sample(4)
@AS_ROOT
@pytest.mark.parametrize(
    "text",
    [
        "",
        "quorum = 1",
        "keys = 1",
        "[keys]",
        '[keys."person:ada"]\npublic_key = "00"\ncustody = "passphrase"',
        f'[keys."person:ada"]\npublic_key = "{"00" * 32}"\ncustody = "passphrase"',
        f'[keys."agent:ada"]\npublic_key = "{"ab" * 32}"\ncustody = "passphrase"',
        "not toml",
        "quorom = 1\n",
    ],
)
def test_a_mistake_in_it_is_an_error(text: str, ledger: Ledger, ada: Person, system_file: Path) -> None:
    """It must not be as if there were no such file."""
    with_key = f"{text}\n{key_of(ada)}" if text.startswith("quorom") else text
    system_file.write_text(with_key)
    with pytest.raises(BadInput):
        load_approval_setup(ledger)


@AS_ROOT
def test_a_key_is_one_persons(ledger: Ledger, ada: Person, system_file: Path) -> None:
    system_file.write_text(key_of(ada) + key_of(ada).replace("person:ada", "person:ben"))
    with pytest.raises(BadInput, match="two people"):
        load_approval_setup(ledger)


@AS_ROOT
@pytest.mark.parametrize("mode", [0o666, 0o664, 0o602])
def test_one_that_others_can_write_is_refused(mode: int, ledger: Ledger, ada: Person, system_file: Path) -> None:
    system_file.write_text(key_of(ada))
    system_file.chmod(mode)
    with pytest.raises(Refused) as refusal:
        load_approval_setup(ledger)
    assert code_of(refusal) == "UNSAFE_FILE"


@AS_ROOT
def test_one_in_a_directory_that_others_can_write_is_refused(ledger: Ledger, ada: Person, system_file: Path) -> None:
    system_file.write_text(key_of(ada))
    system_file.parent.chmod(0o777)
    with pytest.raises(Refused) as refusal:
        load_approval_setup(ledger)
    assert code_of(refusal) == "UNSAFE_FILE"
    system_file.parent.chmod(0o1777)
    assert load_approval_setup(ledger).roster.anchor == "system"


@pytest.mark.skipif(os.geteuid() == 0, reason="for root every file is its own")
def test_one_of_the_user_is_refused(ledger: Ledger, ada: Person, system_file: Path) -> None:
    system_file.write_text(key_of(ada))
    with pytest.raises(Refused) as refusal:
        load_approval_setup(ledger)
    assert code_of(refusal) == "UNSAFE_FILE"


def test_none_is_none(tmp_path: Path) -> None:
    assert read_system_file(tmp_path / "nothing") is None


SETTINGS: list[dict[str, Any]] = [
    {},
    {"approvers": ["person:ada"], "expires": 60, "notify": []},
    {"notify": ['te"ll', "\\", "\x7f", "é😀\t"], "levels": [{"approvers": ["person:ben"], "quorum": 1, "after": 5}]},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=range(len(SETTINGS)))
def test_what_is_in_force_can_be_written_as_such_a_file(settings: dict[str, Any], ledger: Ledger, ada: Person) -> None:
    rules = read_approval_rules(settings, "x")
    table = tomllib.loads(approvals_to_toml(rules, load_approval_setup(ledger).roster))
    assert table.pop("keys") == {"person:ada": {"public_key": ada.public.ed25519, "custody": "passphrase"}}
    assert read_approval_rules(table, "x") == rules
