"""A session: saying, racing, resuming, joining, keys."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from aver import SeedSigner, clock
from aver.capsule.blobs import Blob
from aver.errors import BadInput, IntegrityError, NotFound
from aver.ledger import Ledger, open_ledger
from aver.protocol.events import read_event
from aver.protocol.records.trace_files import save_seen_head
from aver.protocol.rules.step import EventRefused
from aver.protocol.session import ProtocolSession
from aver.protocol.statements import Join, sign_join
from support.protocol_sessions import OUTPUT, TASK, claim_count, open_session, reach_claiming, reach_executing
from support.tamper import unguarded

pytestmark = pytest.mark.both_stores


def test_a_session_goes_from_the_task_to_the_audit(tmp_path: Path) -> None:
    with open_session(tmp_path) as session:
        reach_claiming(session)
        claim = claim_count(session)
        challenge = session.critic.challenge(claim.id, "I count two")
        session.critic.withdraw(challenge.id, "I was wrong")
        session.executor.conclude("done")
        outcome = session.auditor.audit()
        assert outcome.status == "pass"
        assert session.state == "completed"
        names = [event.name for event in session.events]
        trace = session.trace
    with open_session(tmp_path, trace=trace) as again:
        assert [event.name for event in again.events] == names
        assert again.state == "completed"
        assert again.fold.claims[claim.id].standing == "settled"
        assert again.verify().status != "failed"


def test_every_event_is_a_record_of_its_own_kind_by_the_key_of_its_agent(tmp_path: Path) -> None:
    with open_session(tmp_path) as session:
        reach_claiming(session)
        records = list(session.ledger.read(session.chain))
        ring = session.ledger.keys.ring()
        for record, event in zip(records, session.events, strict=True):
            assert read_event(record) == event
            assert record.kind == f"protocol.{event.name}"
            identity = "ledger" if event.agent == "operator" else event.agent
            entry = ring.active(identity)
            assert entry is not None
            assert record.signed_by == entry.fingerprint
        assert session.chain == f"protocol.{session.trace}"


def test_a_session_needs_a_task_or_a_trace_that_is_there(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        open_session(tmp_path, trace="nothing")
    with pytest.raises(BadInput):
        open_session(tmp_path, task={"objective": ""})
    with pytest.raises(BadInput):
        open_session(tmp_path, task={"objective": "x", "unknown": 1})
    with pytest.raises(BadInput):
        open_session(tmp_path, trace="../escape", task=TASK)
    with pytest.raises(BadInput):
        open_session(tmp_path, profile="harsh")
    with open_session(tmp_path, task="count the tests") as session, pytest.raises(BadInput):
        open_session(tmp_path, trace=session.trace, task={"objective": "another"})


def test_the_profile_of_the_task_holds_unless_the_caller_names_one(tmp_path: Path) -> None:
    task = {**TASK, "policy_profile": "strict"}
    with open_session(tmp_path, task=task) as session:
        assert session.fold.profile == "strict"
    with open_session(tmp_path, task=task, profile="lenient") as session:
        assert session.fold.profile == "lenient"


def test_settings_become_bounds_and_a_task_may_only_tighten_them(tmp_path: Path, aver_home: Path) -> None:
    aver_home.mkdir(parents=True, exist_ok=True)
    (aver_home / "config.toml").write_text('[protocol]\nprofile = "strict"\nattempts = 2\nreview_from = "medium"\n')
    task = {**TASK, "max_tool_calls": 5, "time_budget_seconds": 60, "bounds": {"attempts": 1}}
    with open_session(tmp_path, task=task) as session:
        bounds = session.fold.bounds
        assert (session.fold.profile, bounds.attempts, bounds.review_from) == ("strict", 1, "medium")
        assert (bounds.tool_calls, bounds.time_budget) == (5, 60)
    for looser in ({"attempts": 3}, {"review_from": "high"}, {"evidence_min": 0}, {"nonsense": 1}):
        with pytest.raises(BadInput):
            open_session(tmp_path, task={**TASK, "bounds": looser})


def test_who_does_not_take_part_says_nothing(tmp_path: Path) -> None:
    with open_session(tmp_path) as session:
        payload = {"objective": "x", "assumptions": [], "required_tools": [], "expected_evidence": []}
        for agent in ("agent:mallory", "agent:critic", "operator", "person:ann"):
            with pytest.raises(EventRefused) as caught:
                session.say(agent, "proposal_created", payload)
            assert caught.value.code == "ROLE_POLICY_VIOLATION"
        with pytest.raises(BadInput):
            session.say("agent:planner", "proposal_eaten", payload)
        with pytest.raises(NotFound):
            session.view("agent:mallory")
        assert len(session.events) == 1


def test_a_view_shows_what_is_open_and_what_may_be_said(tmp_path: Path) -> None:
    with open_session(tmp_path) as session:
        assert session.view("agent:planner").may_say == ("proposal_created",)
        assert session.view("agent:critic").may_say == ()
        proposal = session.planner.propose("read the file")
        view = session.view("agent:critic")
        assert view.may_say == ("proposal_reviewed",)
        assert view.open["reviews"] == (proposal.id,)
        assert view.schemas["proposal_reviewed"]["title"] == "proposal_reviewed"
        session.critic.review(proposal.id, "approved", rationale="fine")
        intent = session.executor.intend(proposal.id, "count", {}, justification="to count")
        view = session.view("agent:executor")
        assert view.open["runs"] == (intent.id,)
        assert view.to_dict()["refs"]["tool_intent_signed"]["required"] == ["proposal"]


# --- several sessions


def test_who_loses_a_race_is_judged_anew(tmp_path: Path) -> None:
    with open_session(tmp_path) as first:
        with open_session(tmp_path, trace=first.trace) as second:
            proposal = first.planner.propose("one")
            second.planner.propose("two")  # It has not seen the first.
            second.critic.review(proposal.id, "approved", rationale="fine")
            first.executor.intend(proposal.id, "count", {}, justification="to count")
            first.abort("enough")
            with pytest.raises(EventRefused) as caught:
                second.planner.propose("three")
            assert caught.value.code == "STATE_VIOLATION"
        assert [event.sequence for event in first.events] == list(range(6))


def test_threads_share_a_session(tmp_path: Path) -> None:
    with open_session(tmp_path) as session:
        reach_executing(session)
        threads = [
            threading.Thread(target=lambda n=n: session.executor.record(f"a{n}", b"%d" % n, "text/plain"))
            for n in range(12)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        recorded = {event.payload["name"] for event in session.events if event.name == "artifact_recorded"}
        assert recorded == {f"a{n}" for n in range(12)}


def test_two_processes_may_begin_the_same_trace(tmp_path: Path) -> None:
    with open_session(tmp_path, trace="shared", task=TASK) as first:
        with open_session(tmp_path, trace="shared", task=TASK) as second:
            assert [event.id for event in second.events] == [event.id for event in first.events]


# --- histories that do not hold


def change_rationale(ledger: Ledger, chain: str, sequence: int) -> None:
    """Change the stored bytes of a review, and leave its hash."""
    record = next(ledger.read(chain, sequence))
    changed = record.canonical.replace(b"harmless", b"harmful!")
    assert changed != record.canonical
    attacker = unguarded(ledger)
    attacker.execute("UPDATE records SET canonical = ? WHERE hash = ?", (changed, record.hash))
    attacker.close()


def cut(ledger: Ledger, chain: str, count: int) -> None:
    """Cut a chain to its first records, and make its head row fit."""
    last = next(ledger.read(chain, count - 1)).hash if count else None
    attacker = unguarded(ledger)
    row = "(SELECT chain FROM chains WHERE name = ?)"
    attacker.execute(f"DELETE FROM records WHERE chain = {row} AND sequence >= ?", (chain, count))
    if count:
        attacker.execute("UPDATE chains SET count = ?, head = ? WHERE name = ?", (count, last, chain))
    else:
        attacker.execute("DELETE FROM chains WHERE name = ?", (chain,))
    attacker.close()


def test_a_changed_record_ends_the_trace(tmp_path: Path, ledger: Ledger) -> None:
    with open_session(tmp_path, ledger=ledger) as session:
        reach_claiming(session)
        trace, chain, count = session.trace, session.chain, len(session.events)
    change_rationale(ledger, chain, 2)
    with pytest.raises(IntegrityError) as caught:
        open_session(tmp_path, ledger=ledger, trace=trace)
    assert caught.value.code == "HASH_MISMATCH"
    assert "sequence 2" in caught.value.message
    last = list(ledger.read(chain))[-1]
    assert (last.kind, last.sequence) == ("protocol.session_failed", count)
    assert last.content["outcome"]["result"]["finding"]["sequence"] == 2
    with pytest.raises(IntegrityError):
        open_session(tmp_path, ledger=ledger, trace=trace)
    assert ledger.head(chain).count == count + 1  # Once is enough.


def test_a_running_session_refuses_a_history_that_lacks_what_it_has_seen(tmp_path: Path, ledger: Ledger) -> None:
    with open_session(tmp_path, ledger=ledger) as session:
        reach_executing(session)
        cut(ledger, session.chain, 2)
        with pytest.raises(IntegrityError) as caught:
            session.planner.propose("more")
        assert caught.value.code == "ROLLBACK"


def test_a_home_remembers_the_head_that_it_has_seen(tmp_path: Path, ledger: Ledger) -> None:
    with open_session(tmp_path, ledger=ledger) as session:
        reach_executing(session)
        trace, chain = session.trace, session.chain
    cut(ledger, chain, 2)
    with pytest.raises(IntegrityError) as caught:
        open_session(tmp_path, ledger=ledger, trace=trace)
    assert caught.value.code == "ROLLBACK"


def test_a_home_that_remembers_a_trace_does_not_begin_it_again(tmp_path: Path, ledger: Ledger) -> None:
    with open_session(tmp_path, ledger=ledger, trace="kept", task=TASK) as session:
        place, head = session.place, ledger.head(session.chain)
    save_seen_head(ledger.config.home, place, "kept", head)
    cut(ledger, "protocol.kept", 0)
    with pytest.raises((IntegrityError, NotFound)):
        open_session(tmp_path, ledger=ledger, trace="kept", task=TASK)


def test_an_event_by_a_key_that_did_not_join_does_not_count(tmp_path: Path, ledger: Ledger) -> None:
    with open_session(tmp_path, ledger=ledger) as session:
        proposal = session.planner.propose("one")
        record = list(ledger.read(session.chain))[-1]
        content: dict[str, Any] = record.to_dict()
        for name in ("at", "by", "v", "key"):
            content["context"]["environment"]["aver"].pop(name, None)
        content |= {"id": clock.new_id(), "sequence": 0, "previous_hash": None}
        content["context"]["environment"]["protocol"]["before"] = "reviewing"
        ledger.append(session.chain, content, signer=SeedSigner.generate())
        with pytest.raises(IntegrityError) as caught:
            session.critic.review(proposal.id, "approved", rationale="fine")
        assert caught.value.code in ("SIG_INVALID", "UNKNOWN_SIGNER")


def test_a_planner_cannot_append_a_review_past_the_session(tmp_path: Path, ledger: Ledger) -> None:
    """The store takes what any known key seals. The trace does not."""
    with open_session(tmp_path, ledger=ledger) as session:
        proposal = session.planner.propose("one")
        session.critic.review(proposal.id, "approved", rationale="fine")
        content: dict[str, Any] = list(ledger.read(session.chain))[-1].to_dict()
        for name in ("at", "by", "v", "key"):
            content["context"]["environment"]["aver"].pop(name, None)
        content |= {"id": clock.new_id(), "sequence": 0, "previous_hash": None}
        content["context"]["environment"]["protocol"]["before"] = "executing"
        ledger.append(session.chain, content, signer=ledger.keys.signer("agent:planner"))
        with pytest.raises(IntegrityError) as caught:
            session.catch_up()
        assert caught.value.code == "ROLE_POLICY_VIOLATION"


# --- keys


def test_a_rotated_key_joins_anew_by_itself(tmp_path: Path, ledger: Ledger) -> None:
    with open_session(tmp_path, ledger=ledger) as session:
        reach_executing(session)
        old = session.fold.participants["agent:planner"].key
        for _ in range(2):
            ledger.keys.rotate("agent:planner")
        session.planner.propose("another way")
        names = [event.name for event in session.events[-2:]]
        assert names == ["participant_joined", "proposal_created"]
        assert session.fold.participants["agent:planner"].key != old
        assert old.fingerprint in session.fold.retired
        trace = session.trace
    with open_session(tmp_path, ledger=ledger, trace=trace) as again:
        assert again.state == "executing"
        assert again.verify().status != "failed"


def test_the_holder_of_an_old_key_adds_nothing(tmp_path: Path, ledger: Ledger) -> None:
    with open_session(tmp_path, ledger=ledger) as session:
        reach_executing(session)
        with ledger.keys.signer("agent:planner").hold() as old:
            pass
        ledger.keys.rotate("agent:planner")
        ledger.record_keys()  # The ledger notes the heads at which the key ended.
        content: dict[str, Any] = list(ledger.read(session.chain))[1].to_dict()
        for name in ("at", "by", "v", "key"):
            content["context"]["environment"]["aver"].pop(name, None)
        content |= {"id": clock.new_id(), "sequence": 0, "previous_hash": None}
        content["context"]["environment"]["protocol"] |= {"before": "executing", "after": "executing"}
        ledger.append(session.chain, content, signer=old)
        with pytest.raises(IntegrityError) as caught:
            session.catch_up()
        assert caught.value.code == "KEY_RETIRED"


def test_a_running_session_ends_the_trace_that_it_finds_broken(tmp_path: Path, ledger: Ledger) -> None:
    with open_session(tmp_path, ledger=ledger) as session:
        with open_session(tmp_path, ledger=ledger, trace=session.trace) as other:
            reach_executing(other)
            change_rationale(ledger, session.chain, 2)
        with pytest.raises(IntegrityError):
            session.planner.propose("more")
        last = list(ledger.read(session.chain))[-1]
        assert last.kind == "protocol.session_failed"


def test_the_operators_rotated_key_joins_anew_by_itself(tmp_path: Path, ledger: Ledger) -> None:
    with open_session(tmp_path, ledger=ledger) as session:
        reach_executing(session)
        ledger.keys.rotate("ledger")
        session.join("agent:second", "auditor")
        session.abort("enough")
        names = [event.name for event in session.events[-3:]]
        assert names == ["participant_joined", "participant_joined", "session_aborted"]
        trace = session.trace
    with open_session(tmp_path, ledger=ledger, trace=trace) as again:
        assert again.state == "aborted"
        assert again.verify().status != "failed"


def test_participants_bring_their_own_joins(tmp_path: Path, ledger: Ledger) -> None:
    """The critic's key is in another home. Its statement names the trace, so the trace's id is known before."""
    from aver.protocol.records.draft import prepare_task
    from aver.protocol.statements import TracePlace, digest_json

    critic = SeedSigner.generate()
    place = TracePlace(ledger.id, ledger.tenant, "protocol.shared")
    join = Join(place, digest_json(prepare_task(TASK)), "default", "critic", "agent:carol", critic.public, clock.now())
    participants: dict[str, Any] = {
        "agent:planner": "planner",
        "agent:executor": "executor",
        "agent:carol": sign_join(critic, join),
    }
    with open_session(tmp_path, ledger=ledger, trace="shared", task=TASK, participants=participants) as session:
        carol = session.fold.participants["agent:carol"]
        assert (carol.held, carol.key) == ("elsewhere", critic.public)
        with pytest.raises(NotFound):
            _ = session.critic
    with pytest.raises(EventRefused) as caught:
        open_session(tmp_path, ledger=ledger, trace="another", task=TASK, participants=participants)
    assert caught.value.code == "REPLAY"


def test_one_home_holds_several_critics_and_each_speaks_for_itself(tmp_path: Path) -> None:
    agents = {f"agent:{role}": role for role in ("planner", "executor", "critic")} | {"agent:second": "critic"}
    with open_session(tmp_path, participants=agents) as session:
        proposal = session.planner.propose("one")
        review = {"verdict": "approved", "rationale": "fine", "risk": None, "conditions": []}
        session.critic.review(proposal.id, "approved", rationale="fine")
        assert session.state == "reviewing"
        session.say("agent:second", "proposal_reviewed", review, refs={"proposal": proposal.id})
        assert session.state == "executing"


def test_an_event_whose_artifact_is_not_there_is_refused(tmp_path: Path) -> None:
    with open_session(tmp_path) as session:
        reach_executing(session)
        payload = {"name": "ghost", "blob": Blob(b"never stored").reference}
        with pytest.raises(BadInput):
            session.say("agent:executor", "artifact_recorded", payload)
        session.say("agent:executor", "artifact_recorded", payload, artifacts=[Blob(b"never stored")])
        assert session.ledger.blob(Blob(b"never stored").digest) == b"never stored"


def test_a_session_closes_only_the_ledger_that_it_opened(tmp_path: Path, ledger: Ledger) -> None:
    with open_session(tmp_path, ledger=ledger) as session:
        chain = session.chain
    assert ledger.head(chain).count == 1
    with ProtocolSession(TASK, workspace=tmp_path) as other, open_ledger() as again:
        assert again.head(other.chain).count == 1


@pytest.mark.sample(4)
@pytest.mark.parametrize("size", [0, 9, 10**40, 8.0])
@pytest.mark.parametrize("is_brought", [True, False])
def test_a_reference_says_the_size_of_its_artifact(tmp_path: Path, size: Any, is_brought: bool) -> None:
    """One that does not would fail every later verdict on the ledger."""
    blob = Blob(OUTPUT, "text/plain")
    with open_session(tmp_path) as session:
        reach_claiming(session)
        payload = {"name": "copy", "blob": {"blob": {**blob.reference["blob"], "size": size}}}
        with pytest.raises(EventRefused) as caught:
            session.say("agent:executor", "artifact_recorded", payload, artifacts=[blob] if is_brought else [])
        assert caught.value.code == ("SCHEMA_INVALID" if isinstance(size, float) else "EVIDENCE_INVALID")
        assert session.verify().status == "qualified"
