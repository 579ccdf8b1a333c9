"""Opening requests: what they carry, that they are opened once, and what is not asked at all."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from aver import BadInput, Capsule, IntegrityError, Ledger, NotFound, Refused
from aver.capsule.aver_block import of_kind
from aver.capsule.canonical import canonical_bytes
from aver.capsule.model import Outcome
from aver.gate.approvals import ApprovalRequest, Person, find_request, load_request, open_request, recent_requests
from aver.gate.approvals.request import DIFF_MAX, read_request
from support.approvals import action, asking, code_of, enrolled, opened, somebody, with_settings


def test_a_request_carries_exactly_what_is_asked(ledger: Ledger, ada: Person) -> None:
    about = action("rm -rf build", diff="-a\n+b\n", session="s1", on_behalf_of="person:ben")
    request = open_request(ledger, about, asking(about))
    record = ledger.get(request.id)
    assert record is not None
    content = record.to_dict()
    assert (record.chain, record.kind, record.type) == ("approvals.default", "approval.request", "auth")
    assert content["outcome"]["status"] == "pending"
    assert content["context"]["session_id"] == "s1"
    assert content["authority"] == {
        "type": "policy",
        "approver": None,
        "policy_reference": "deletes",
        "chain": [],
        "escalation_reason": None,
    }
    assert request.read_action(ledger.blob) == about.to_dict()
    assert request.read_diff(None, about.to_dict()) == about.diff
    assert request.digest == about.digest == hashlib.sha256(canonical_bytes(request.content["action"])).hexdigest()
    assert request.content["beside"] == {"description": "", "session": "s1", "arguments": {}}
    assert request.content["risk"] == {"score": 0.25, "low": 0.125, "high": 0.5, "observations": 3}
    assert request.content["reasons"] == ["it deletes files"]
    assert request.approvers["person:ada"].key == ada.public
    assert load_request(ledger, request.id) == request


def test_no_data_is_no_risk_and_no_policy_no_rules(ledger: Ledger, ada: Person) -> None:
    about = action()
    request = open_request(ledger, about, asking(about, score=None, interval=None, policy=None))
    assert (request.content["risk"], request.content["rules"], request.content["bundle"]) == (None, [], None)


def test_what_is_large_lies_beside_it(ledger: Ledger, ada: Person) -> None:
    about = action(diff="+é\n" * 20_000, arguments={"content": "x" * 300_000, "odd": 2e-05})
    request = open_request(ledger, about, asking(about))
    apart = request.blob_digest("action")
    assert apart == about.digest
    exact = request.read_action(ledger.blob)
    assert exact == about.to_dict()
    beside = request.blob_digest("diff")
    assert beside is not None
    assert request.read_diff(ledger.blob(beside), exact) == about.diff
    assert ledger.verify().status == "verified"


def test_a_diff_that_is_not_unicode_is_kept_as_it_is(ledger: Ledger, ada: Person) -> None:
    about = action(diff="+\udcff\n")
    request = open_request(ledger, about, asking(about))
    beside = request.blob_digest("diff")
    assert beside is not None
    assert request.read_diff(ledger.blob(beside), about.to_dict()) == about.diff


def test_arguments_that_are_not_unicode_are_not_asked_about(ledger: Ledger, ada: Person) -> None:
    with pytest.raises(BadInput):
        opened(ledger, "rm \udcff")


def test_what_nobody_can_read_is_not_asked(ledger: Ledger, ada: Person) -> None:
    about = action(diff="x" * (DIFF_MAX + 1))
    with pytest.raises(BadInput, match="more than a person can review"):
        open_request(ledger, about, asking(about))


def test_the_decision_must_be_about_the_action(ledger: Ledger, ada: Person) -> None:
    with pytest.raises(Refused) as refusal:
        open_request(ledger, action("rm -rf /"), asking(action("ls")))
    assert code_of(refusal) == "DIGEST_MISMATCH"


@pytest.mark.parametrize("gate_id", ["", "x" * 200, "a b", "a\nb", "é"])
def test_a_gate_id_that_is_none(gate_id: str, ledger: Ledger, ada: Person) -> None:
    with pytest.raises(BadInput):
        opened(ledger, gate_id=gate_id)


def test_asking_again_is_the_same_request(ledger: Ledger, ada: Person) -> None:
    first = opened(ledger)
    assert opened(ledger) == first
    assert opened(ledger, gate_id="gate-2") != first
    assert opened(ledger, "ls") != first
    assert ledger.head(first.chain).count == 3


# --- who is asked


def test_where_nobody_is_enrolled_nothing_is_asked(ledger: Ledger) -> None:
    with pytest.raises(Refused) as refusal:
        opened(ledger)
    assert code_of(refusal) == "NO_APPROVERS"
    assert "enrol" in refusal.value.advice
    assert ledger.chains() == []


def test_only_those_in_the_settings_who_are_enrolled_too(aver_home: Path) -> None:
    settings = '[approvals]\napprovers = ["person:ben", "person:eve"]\n'
    with with_settings(aver_home, settings) as ledger:
        ada, ben = somebody("ada"), somebody("ben")
        enrolled(ledger, ada, ben)
        request = opened(ledger)
    assert request.levels[0].approvers == ("person:ben",)
    assert {name: one.key for name, one in request.approvers.items()} == {"person:ben": ben.public}


@pytest.mark.parametrize(
    "settings", ['approvers = ["person:eve"]', "quorum = 2", 'approvers = ["person:ada", "person:eve"]\nquorum = 2']
)
def test_too_few_are_as_good_as_none(settings: str, aver_home: Path) -> None:
    with with_settings(aver_home, f"[approvals]\n{settings}\n") as ledger:
        enrolled(ledger, somebody("ada"))
        with pytest.raises(Refused) as refusal:
            opened(ledger)
    assert code_of(refusal) == "NO_APPROVERS"


def test_a_mistake_in_the_settings_asks_nobody(aver_home: Path) -> None:
    with with_settings(aver_home, "[approvals]\nquorum = 2\nquorom = 3\n") as ledger:
        enrolled(ledger, somebody("ada"), somebody("ben"))
        with pytest.raises(BadInput, match="quorom"):
            opened(ledger)


def test_a_level_of_which_nobody_is_enrolled_stays_what_it_is(aver_home: Path) -> None:
    settings = """[approvals]
approvers = ["person:eve"]
[[approvals.levels]]
approvers = ["person:ada"]
after = 60
"""
    with with_settings(aver_home, settings) as ledger:
        enrolled(ledger, somebody("ada"))
        request = opened(ledger)
    assert [(level.approvers, level.after) for level in request.levels] == [((), 0), (("person:ada",), 60)]


# --- records that somebody else wrote


def planted(ledger: Ledger, request: ApprovalRequest, gate_id: str, **changed: Any) -> None:
    """A request put there in advance, under the very key that the gate will use, by whoever holds the ledger's key."""
    content = {**request.content, "gate_id": gate_id, **changed}
    draft = Capsule(type="auth", outcome=Outcome(status="pending", result=content))
    key = f"approval.request:{gate_id}:{request.digest}"
    ledger.append(request.chain, of_kind(draft, "approval.request"), key=key)


def test_a_planted_request_with_other_approvers_is_refused(ledger: Ledger, request_: ApprovalRequest) -> None:
    eve = somebody("eve")
    own = {"public_key": eve.public.ed25519, "public_key_pq": "", "custody": "passphrase"}
    changes: list[dict[str, Any]] = [
        {"approvers": {"person:ada": own}},
        {
            "approvers": {**request_.content["approvers"], "person:eve": own},
            "levels": [{"approvers": ["person:ada", "person:eve"], "quorum": 1, "after": 0}],
        },
        {"digest": "0" * 64},
        {"expires": "2999-01-01T00:00:00+00:00"},
    ]
    for number, change in enumerate(changes):
        planted(ledger, request_, f"next-{number}", **change)
        with pytest.raises(Refused) as refusal:
            opened(ledger, gate_id=f"next-{number}")
        assert code_of(refusal) == "REQUEST_CHANGED", change


@pytest.mark.parametrize(
    "change",
    [
        {"v": 2},
        {"levels": []},
        {"levels": [{"approvers": ["person:ada"], "quorum": 0, "after": 0}]},
        {"levels": [{"approvers": ["person:ada", "person:ben"], "quorum": 1, "after": 0}]},
        {"approvers": {}},
        {"approvers": []},
        {"expires": "tomorrow"},
        {"digest": "x"},
        {"more": 1},
        {"statement": 1},
        {"statement": 2},
        {"statement": 4},
        {"digest_version": 2},
        {"statement": True},
        {"uses": 2},
        {"uses": 1.0},
        {"scope": "workspace"},
        {"scope": None},
    ],
    ids=str,
)
def test_what_is_no_request_is_none(change: dict[str, Any], ledger: Ledger, request_: ApprovalRequest) -> None:
    planted(ledger, request_, "next", **change)
    record = list(ledger.read(request_.chain))[-1]
    with pytest.raises(BadInput):
        read_request(record, ledger=ledger.id, tenant=ledger.tenant)
    assert [request.id for request in recent_requests(ledger)] == [request_.id]


def test_an_action_that_is_not_the_one_of_the_digest_is_not_shown(ledger: Ledger, request_: ApprovalRequest) -> None:
    planted(ledger, request_, "next", action={**request_.content["action"], "tool": "Harmless"})
    forged = list(recent_requests(ledger))[-1]
    with pytest.raises(IntegrityError):
        forged.read_action(ledger.blob)
    planted(ledger, request_, "next2", diff="+harmless\n")
    with pytest.raises(IntegrityError):
        list(recent_requests(ledger))[-1].read_diff(None, request_.content["action"])


# --- finding


def test_finding_by_the_beginning_of_an_id(ledger: Ledger, request_: ApprovalRequest) -> None:
    assert find_request(ledger, request_.id[:8]) == request_
    assert find_request(ledger, request_.id) == request_
    for name in ("", "abc", "../x", "g" * 8, "0" * 40):
        with pytest.raises(BadInput):
            find_request(ledger, name)
    other = "0000" if not request_.id.startswith("0000") else "1111"
    with pytest.raises(NotFound):
        find_request(ledger, other)


def test_a_record_of_another_chain_is_no_request(ledger: Ledger, ada: Person) -> None:
    record = next(ledger.read("approvers.default"))
    with pytest.raises(NotFound):
        load_request(ledger, record.id)
