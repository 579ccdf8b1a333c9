"""Participants elsewhere: signed contributions count once, only in the trace they name, and after what they saw."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aver import SeedSigner, clock
from aver.capsule.blobs import Blob
from aver.errors import AverError, BadInput, Refused
from aver.ledger import Ledger
from aver.protocol.events import Event
from aver.protocol.records.draft import prepare_task
from aver.protocol.rules.step import EventRefused
from aver.protocol.session import ProtocolSession
from aver.protocol.statements import (
    ContributionFile,
    Join,
    SeenHead,
    TracePlace,
    digest_json,
    sign_contribution,
    sign_join,
)
from support.protocol_sessions import TASK, open_session

pytestmark = pytest.mark.both_stores

CAROL = SeedSigner(b"carol".ljust(32, b"."))
REVIEW = {"v": 1, "verdict": "approved", "rationale": "fine", "risk": None, "conditions": []}


def open_shared(ledger: Ledger, workspace: Path, trace: str = "shared", **more: Any) -> ProtocolSession:
    """A trace whose critic has its key in another home."""
    place = TracePlace(ledger.id, ledger.tenant, f"protocol.{trace}")
    join = Join(place, digest_json(prepare_task(TASK)), "default", "critic", "agent:carol", CAROL.public, clock.now())
    participants: dict[str, Any] = {
        "agent:planner": "planner",
        "agent:executor": "executor",
        "agent:auditor": "auditor",
        "agent:carol": sign_join(CAROL, join),
    }
    return open_session(workspace, ledger=ledger, trace=trace, task=TASK, participants=participants, **more)


@pytest.fixture
def session(ledger: Ledger, tmp_path: Path) -> Iterator[ProtocolSession]:
    with open_shared(ledger, tmp_path) as opened:
        yield opened


def review_by_carol(
    session: ProtocolSession, proposal: str, *, seen: SeenHead | None = None, **change: Any
) -> ContributionFile:
    """A review as carol would send it. `change` replaces parts of the event before it is signed."""
    head = session.fold.head
    assert head is not None
    event = Event(
        id=clock.new_id(),
        trace=session.trace,
        name="proposal_reviewed",
        role="critic",
        agent="agent:carol",
        payload=REVIEW,
        refs={"proposal": proposal},
    )
    event = event._replace(**change)
    return ContributionFile(sign_contribution(CAROL, session.place, event, seen or head), event.payload)


def code_of(session: ProtocolSession, contribution: Any) -> str:
    before = len(session.events)
    with pytest.raises(AverError) as caught:
        session.accept(contribution)
    assert len(session.events) == before
    return getattr(caught.value, "code", "BAD_INPUT")


def test_the_operator_seals_around_a_contribution(session: ProtocolSession) -> None:
    proposal = session.planner.propose("one")
    sent = review_by_carol(session, proposal.id)
    event = session.accept(sent.to_dict())
    assert (event.agent, event.after) == ("agent:carol", "executing")
    assert event.signer == session.fold.participants["operator"].key.fingerprint
    record = session.ledger.get(event.id)
    assert record is not None
    assert record.content["context"]["environment"]["aver"]["key"] == f"protocol-say:{event.id}"
    assert record.content["authority"]["chain"][0]["purpose"] == "protocol-event"
    assert session.verify().status != "failed"


def test_a_contribution_counts_once(session: ProtocolSession) -> None:
    proposal = session.planner.propose("one")
    sent = review_by_carol(session, proposal.id)
    session.accept(sent)
    assert code_of(session, sent) == "REPLAY"


def test_a_contribution_counts_only_in_the_trace_that_it_names(
    session: ProtocolSession, ledger: Ledger, tmp_path: Path
) -> None:
    proposal = session.planner.propose("one")
    sent = review_by_carol(session, proposal.id)
    with open_shared(ledger, tmp_path, "other") as other:
        other.planner.propose("one")
        assert code_of(other, sent) == "REPLAY"


def test_a_contribution_counts_only_after_a_head_of_this_history(session: ProtocolSession) -> None:
    proposal = session.planner.propose("one")
    count = len(session.events)
    for seen in (SeenHead(count, "0" * 64), SeenHead(count + 1, session.events[-1].hash), SeenHead(10**9, "0" * 64)):
        assert code_of(session, review_by_carol(session, proposal.id, seen=seen)) == "ROLLBACK"
    first = SeenHead(1, session.events[0].hash)
    assert session.accept(review_by_carol(session, proposal.id, seen=first)).name == "proposal_reviewed"


def test_nobody_changes_what_was_signed(session: ProtocolSession) -> None:
    proposal = session.planner.propose("one")
    other = session.planner.propose("two")
    sent = review_by_carol(session, proposal.id)
    rejected = {**REVIEW, "verdict": "rejected"}
    assert code_of(session, replace(sent, payload=rejected)) == "EVIDENCE_INVALID"
    document = sent.to_dict()
    for name, value in (("id", clock.new_id()), ("refs", {"proposal": other.id}), ("payload_sha256", "0" * 64)):
        forged = {**document, "statement": {**document["statement"], "content": {**document["statement"]["content"]}}}
        forged["statement"]["content"][name] = value
        assert code_of(session, forged) == "SIG_INVALID"


def test_only_the_participants_own_key_counts(session: ProtocolSession) -> None:
    proposal = session.planner.propose("one")
    head = session.fold.head
    assert head is not None
    event = Event(
        id=clock.new_id(),
        trace=session.trace,
        name="proposal_reviewed",
        role="critic",
        agent="agent:carol",
        payload=REVIEW,
        refs={"proposal": proposal.id},
    )
    mallory = SeedSigner.generate()
    forged = ContributionFile(sign_contribution(mallory, session.place, event, head), REVIEW)
    assert code_of(session, forged) == "SIG_INVALID"
    # The operator cannot say it in carol's name either.
    with pytest.raises(AverError):
        session.say("agent:carol", "proposal_reviewed", REVIEW, refs={"proposal": proposal.id})
    stranger = event._replace(agent="agent:dave")
    sent = ContributionFile(sign_contribution(mallory, session.place, stranger, head), REVIEW)
    assert code_of(session, sent) == "ROLE_POLICY_VIOLATION"


def test_a_contribution_of_another_role_is_refused(session: ProtocolSession) -> None:
    session.planner.propose("one")
    payload = {"v": 1, "objective": "two", "assumptions": [], "required_tools": [], "expected_evidence": []}
    for role in ("critic", "planner"):
        sent = review_by_carol(session, "x", name="proposal_created", payload=payload, refs={}, role=role)
        assert code_of(session, sent) == "ROLE_POLICY_VIOLATION"


def test_a_contribution_is_held_to_state_schema_and_secrets(session: ProtocolSession) -> None:
    proposal = session.planner.propose("one")
    bad = {**REVIEW, "verdict": "perhaps"}
    assert code_of(session, review_by_carol(session, proposal.id, payload=bad)) == "SCHEMA_INVALID"
    secret = {**REVIEW, "rationale": "password=hunter2hunter2"}
    assert code_of(session, review_by_carol(session, proposal.id, payload=secret)) == "SECRET_FOUND"
    session.abort("enough")
    assert code_of(session, review_by_carol(session, proposal.id)) == "STATE_VIOLATION"


def test_artifacts_travel_along_and_none_that_was_not_named(ledger: Ledger, tmp_path: Path) -> None:
    dave = SeedSigner.generate()
    with open_session(tmp_path, ledger=ledger) as session:
        fold = session.fold
        join = Join(session.place, fold.task_sha256, fold.profile, "executor", "agent:dave", dave.public, clock.now())
        session.accept(sign_join(dave, join).to_dict())
        proposal = session.planner.propose("one")
        session.critic.review(proposal.id, "approved", rationale="fine")
        blob = Blob(b"a log", "text/plain")
        head = session.fold.head
        assert head is not None
        event = Event(
            id=clock.new_id(),
            trace=session.trace,
            name="artifact_recorded",
            role="executor",
            agent="agent:dave",
            payload={"v": 1, "name": "log", "blob": blob.reference},
            refs={},
        )
        statement = sign_contribution(dave, session.place, event, head)
        without = ContributionFile(statement, event.payload)
        assert code_of(session, without) == "BAD_INPUT"
        extra = ContributionFile(statement, event.payload, (blob, Blob(b"a stowaway")))
        assert code_of(session, extra) == "BAD_INPUT"
        whole = ContributionFile(statement, event.payload, (blob,))
        again = ContributionFile.from_dict(whole.to_dict())
        assert again == whole
        session.accept(again)
        assert ledger.blob(blob.digest) == b"a log"


def test_a_session_signs_contributions_for_its_own_agents(session: ProtocolSession) -> None:
    """The home of a participant reads the trace, for example on a shared server, and sends what it says as a file."""
    payload = {"objective": "two", "assumptions": [], "required_tools": [], "expected_evidence": []}
    sent = session.contribute("agent:planner", "proposal_created", payload)
    assert session.accept(sent.to_dict()).agent == "agent:planner"
    with pytest.raises(EventRefused):
        session.contribute("agent:executor", "final_statement_signed", {"text": "x", "claims": [], "unmet": []})


@pytest.mark.more
def test_joins_count_once_and_nothing_else_is_accepted_bare(session: ProtocolSession) -> None:
    fold, eve = session.fold, SeedSigner.generate()
    join = Join(session.place, fold.task_sha256, fold.profile, "critic", "agent:eve", eve.public, clock.now())
    session.accept(sign_join(eve, join))
    assert code_of(session, sign_join(eve, join)) == "ROLE_POLICY_VIOLATION"
    usurper = join._replace(role="operator", agent="operator")
    assert code_of(session, sign_join(eve, usurper)) == "ROLE_POLICY_VIOLATION"
    sent = review_by_carol(session, clock.new_id())
    with pytest.raises(BadInput):
        session.accept(sent.statement)


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"v": 1},
        {"v": 2, "statement": {}, "payload": {}, "artifacts": []},
        {"v": 1, "statement": {}, "payload": [], "artifacts": []},
        {"v": 1, "statement": {}, "payload": {}, "artifacts": [{"media": "x", "data": "%%%"}]},
        {"v": 1, "statement": {}, "payload": {}, "artifacts": [{"media": "x\n", "data": ""}]},
        {"v": 1, "statement": [], "payload": {}, "artifacts": [1] * 10_000},
        {"v": 1, "purpose": "protocol-join", "content": {}, "signatures": []},
        {"v": 1, "purpose": "rotation", "content": {}, "signatures": []},
        {"v": 1, "purpose": "protocol-join", "content": {"agent": "\ud800"}, "signatures": []},
    ],
)
def test_hostile_documents_are_refused(session: ProtocolSession, document: Any) -> None:
    with pytest.raises((BadInput, Refused)):
        session.accept(document)


def list_places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every part of a document, by its path."""
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield (*path, key)
            yield from list_places(value[key], (*path, key))


@pytest.mark.sqlite
def test_a_contribution_that_was_changed_in_any_part_is_refused(session: ProtocolSession) -> None:
    proposal = session.planner.propose("one")
    sent = review_by_carol(session, proposal.id).to_dict()
    tried = 0
    for path in list_places(sent):
        for value in (None, -1, 2**70, "x", "0" * 64, [], {}, ["a"], "\ud800", ...):
            changed = copy.deepcopy(sent)
            part: Any = changed
            for key in path[:-1]:
                part = part[key]
            if value is ...:
                del part[path[-1]]
            else:
                part[path[-1]] = value
            if changed != sent:
                tried += 1
                code_of(session, changed)
    assert tried > 250
    assert session.accept(sent).agent == "agent:carol"


def test_who_says_two_things_under_one_id_has_said_the_first(session: ProtocolSession) -> None:
    """Both are signed by the participant's own key. The trace keeps one, whoever brings the other, and when."""
    proposal = session.planner.propose("one")
    said = clock.new_id()
    rejection = {**REVIEW, "verdict": "rejected"}
    session.accept(review_by_carol(session, proposal.id, id=said))
    assert code_of(session, review_by_carol(session, proposal.id, id=said, payload=rejection)) == "REPLAY"
    # Under another id it is another word, and the latest counts. Both stay in the trace.
    session.accept(review_by_carol(session, proposal.id, payload=rejection))
    assert session.fold.proposals[proposal.id].reviews == {"agent:carol": "rejected"}
    verdicts = [event.payload["verdict"] for event in session.events if event.name == "proposal_reviewed"]
    assert verdicts == ["approved", "rejected"]


def test_an_operator_with_two_histories_can_use_a_contribution_in_one_of_them(
    session: ProtocolSession, ledger: Ledger, tmp_path: Path
) -> None:
    """Carol has seen one history. In the other, her word names a head that is not there."""
    proposal = session.planner.propose("one")
    seen = session.fold.head
    assert seen is not None
    other = replace(seen, hash="0" * 64)
    assert code_of(session, review_by_carol(session, proposal.id, seen=other)) == "ROLLBACK"
    assert (
        code_of(session, review_by_carol(session, proposal.id, seen=replace(seen, count=seen.count + 1))) == "ROLLBACK"
    )
    assert session.accept(review_by_carol(session, proposal.id, seen=seen)).agent == "agent:carol"
