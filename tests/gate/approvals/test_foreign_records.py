"""Records that somebody else put into the store: nobody becomes an approver by them, and no past is rewritten."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import aver
from aver import Action, IntegrityError, Ledger, Refused, SeedSigner, ToolCall
from aver.gate.approvals import (
    ApprovalRequest,
    Person,
    approve,
    consume,
    deny,
    enrol_approver,
    find_person,
    load_request,
    load_request_state,
    load_roster,
    record_rotations,
    wait_for_answer,
)
from aver.gate.approvals.roster import ENROLMENT, Approver, enrolment_content
from aver.gate.call_decisions import find_decisions, gate_id_for
from aver.gate.facts.session import DIRECTORY, LOOK_BACK
from aver.keys import Statement, load_seed_signer, sign_statement
from aver.ledger.bundle import export_bundle, import_bundle
from aver.verdict import Verdict
from support.approvals import SHOWN, code_of, enrolled, opened, reseal_row, somebody
from support.tamper import Attacker

Content = dict[str, Any]


@pytest.fixture
def ledger(aver_home: Path) -> Iterator[Ledger]:
    with aver.open_ledger() as own:
        yield own


@pytest.fixture
def attacker(ledger: Ledger) -> Iterator[Attacker]:
    one = Attacker(ledger)
    yield one
    one.close()


def enrolment_of(ledger: Ledger, person: Person) -> Statement:
    """The statement by which a person enrols as the first. It needs the ledger's id, which every bundle has."""
    approver = Approver(person.identity, person.public, "passphrase")
    content = enrolment_content(approver, ledger=ledger.id, tenant=ledger.tenant, at="2026-01-01T00:00:00+00:00")
    return sign_statement(ENROLMENT, content, [person.signer])


def replace_enrolment(ledger: Ledger, attacker: Attacker, impostor: Person, signer: SeedSigner) -> None:
    """Put another person's key into the first record of the roster, sealed by `signer`."""
    statement = enrolment_of(ledger, impostor).to_dict()

    def change(content: Content) -> None:
        content["authority"]["chain"] = [statement]

    [record] = ledger.read("approvers.default")
    reseal_row(attacker, record, signer, change)


def failed_places(verdict: Verdict, check: str) -> list[tuple[str | None, int | None, str]]:
    return [
        (one.place.chain, one.place.sequence, one.code)
        for one in verdict.findings
        if (one.check, one.status) == (check, "failed")
    ]


def own_signer(ledger: Ledger, identity: str) -> SeedSigner:
    ledger.keys.create(identity)
    return load_seed_signer(ledger.keys.home / "keys" / f"{identity.replace(':', '-')}.0.key")


# --- the roster


def test_an_edit_of_the_store_does_not_replace_an_approvers_key(
    ledger: Ledger, ada: Person, request_: ApprovalRequest, attacker: Attacker
) -> None:
    mallory = somebody("ada")
    replace_enrolment(ledger, attacker, mallory, SeedSigner.generate())
    with pytest.raises(IntegrityError, match=r"chain approvers\.default, sequence 0") as refusal:
        load_roster(ledger)
    assert code_of(refusal) == "UNKNOWN_SIGNER"
    assert refusal.value.advice
    for attempt in (
        lambda: opened(ledger, gate_id="g2"),
        lambda: approve(ledger, request_, mallory, shown=SHOWN),
        lambda: enrol_approver(ledger, somebody("eve"), mallory),
        lambda: consume(ledger, request_, request_.digest),
    ):
        with pytest.raises(IntegrityError):
            attempt()
    outcome = wait_for_answer(ledger, request_, 0)
    assert (outcome.state, outcome.code) == ("denied", "UNKNOWN_SIGNER")
    verdict = ledger.verify()
    assert verdict.status == "failed"
    assert ("approvers.default", 0, "UNKNOWN_SIGNER") in failed_places(verdict, "approvals")


def test_a_key_that_is_only_known_seals_nothing_that_counts(ledger: Ledger, ada: Person, attacker: Attacker) -> None:
    """Somebody whose bundles we verify is not one of us."""
    stranger = SeedSigner.generate()
    ledger.keys.trust(stranger.public)
    replace_enrolment(ledger, attacker, somebody("mallory"), stranger)
    with pytest.raises(IntegrityError, match="own ring"):
        load_roster(ledger)
    assert ledger.verify().check("approvals").status == "warning"


@pytest.mark.parametrize("identity", ["policy:p", "agent:bot"])
def test_another_key_of_the_ring_does_not_change_the_roster(
    identity: str, ledger: Ledger, ada: Person, attacker: Attacker
) -> None:
    replace_enrolment(ledger, attacker, somebody("mallory"), own_signer(ledger, identity))
    with pytest.raises(IntegrityError) as refusal:
        load_roster(ledger)
    assert code_of(refusal) == "KEY_MISMATCH"
    verdict = ledger.verify()
    assert verdict.status == "failed"
    assert ("approvers.default", 0) in {(one.place.chain, one.place.sequence) for one in verdict.findings}


def test_the_roster_has_the_keys_of_the_ring(ledger: Ledger, attacker: Attacker) -> None:
    """The roster was begun anew with the ledger's own key, which the agent may use as well."""
    ledger.keys.create("person:ada", passphrase="correct horse battery")
    ada = find_person(ledger.keys, "person:ada", lambda: "correct horse battery")
    enrolled(ledger, ada)
    assert load_roster(ledger).approvers["person:ada"].key == ada.public
    replace_enrolment(ledger, attacker, somebody("ada"), load_seed_signer(ledger.keys.home / "keys" / "ledger.0.key"))
    with pytest.raises(IntegrityError, match=r"chain approvers\.default, sequence 0: it gives") as refusal:
        load_roster(ledger)
    assert code_of(refusal) == "KEY_MISMATCH"
    assert failed_places(ledger.verify(), "approvals") == [("approvers.default", 0, "KEY_MISMATCH")]


@pytest.mark.more
def test_rotated_keys_are_keys_of_the_ring(ledger: Ledger) -> None:
    ledger.keys.create("person:ada", passphrase="correct horse battery")
    enrolled(ledger, find_person(ledger.keys, "person:ada", lambda: "correct horse battery"))
    ledger.keys.rotate("person:ada", passphrase="correct horse battery")
    assert load_roster(ledger).approvers
    assert record_rotations(ledger) == 1
    now = find_person(ledger.keys, "person:ada", lambda: "correct horse battery")
    assert load_roster(ledger).approvers["person:ada"].key == now.public
    ledger.keys.rotate("ledger")
    request = opened(ledger)
    approve(ledger, request, now, shown=SHOWN)
    assert consume(ledger, request, request.digest)
    assert ledger.verify().check("approvals").status == "passed"


def test_a_chain_that_is_marked_as_imported_is_not_ours(ledger: Ledger, ada: Person, attacker: Attacker) -> None:
    attacker.execute("UPDATE chains SET frozen = 1, origin = name WHERE name = 'approvers.default'")
    with pytest.raises(IntegrityError, match="imported") as refusal:
        load_roster(ledger)
    assert code_of(refusal) == "CHAIN_IDENTITY"
    assert "aver import --drop approvers.default" in refusal.value.advice


@pytest.mark.parametrize("takes_id", [True, False])
def test_an_imported_roster_makes_nobody_an_approver(takes_id: bool, ledger: Ledger, tmp_path: Path) -> None:
    """A stranger's ledger, which may have taken the id of this one: the id is in every bundle."""
    mallory = somebody("mallory")
    ledger.append("notes.a", aver.Capsule(type="tool"))
    with aver.open_ledger(home=tmp_path / "stranger") as stranger:
        if takes_id:
            store = Attacker(stranger)
            store.execute("UPDATE ledger SET value = ? WHERE name = 'id'", (ledger.id,))
            store.close()
    with aver.open_ledger(home=tmp_path / "stranger") as stranger:
        assert (stranger.id == ledger.id) == takes_id
        enrolled(stranger, mallory)
        request = opened(stranger)
        approve(stranger, request, mallory, shown=SHOWN)
        export_bundle(stranger, tmp_path / "bundle")
    if takes_id:
        with pytest.raises(Refused, match="made in this ledger"):
            import_bundle(ledger, tmp_path / "bundle")
    else:
        import_bundle(ledger, tmp_path / "bundle")
    assert load_roster(ledger).is_new
    with pytest.raises(Refused) as refusal:
        opened(ledger)
    assert code_of(refusal) == "NO_APPROVERS"
    assert not wait_for_answer(ledger, request, 0).allows


def test_a_roster_whose_last_records_are_gone_is_not_believed(ledger: Ledger, ada: Person, attacker: Attacker) -> None:
    enrol_approver(ledger, somebody("ben"), ada)
    last = list(ledger.read("approvers.default"))[-1]
    attacker.execute("DELETE FROM records WHERE hash = ?", (last.hash,))
    with pytest.raises(IntegrityError) as refusal:
        load_roster(ledger)
    assert code_of(refusal) == "SEQUENCE_GAP"


def test_a_retired_key_of_the_ledger_seals_nothing_that_counts(
    ledger: Ledger, ada: Person, request_: ApprovalRequest, attacker: Attacker
) -> None:
    old = load_seed_signer(ledger.keys.home / "keys" / "ledger.0.key")
    ledger.keys.rotate("ledger")
    approve(ledger, request_, ada, shown=SHOWN)
    last = list(ledger.read(request_.chain))[-1]
    reseal_row(attacker, last, old, lambda content: None)
    with pytest.raises(IntegrityError) as refusal:
        load_request_state(ledger, request_)
    assert code_of(refusal) == "KEY_RETIRED"


def test_a_record_without_its_second_signature_does_not_count(aver_home: Path) -> None:
    """A key with an ML-DSA-65 half signs with both, so a seal without it was changed or forged."""
    aver_home.mkdir(mode=0o700)
    (aver_home / "config.toml").write_text("post_quantum = true\n")
    with aver.open_ledger() as ledger:
        enrolled(ledger, somebody("ada"))
        assert load_roster(ledger).approvers
        attacker = Attacker(ledger)
        attacker.execute("UPDATE records SET signature_pq = '' WHERE kind = 'key.create'")
        attacker.close()
        with pytest.raises(IntegrityError) as refusal:
            load_roster(ledger)
        assert code_of(refusal) == "SIG_MISSING"


# --- requests and answers


def test_a_request_of_somebody_else_is_not_shown_and_not_answered(
    ledger: Ledger, ada: Person, request_: ApprovalRequest, attacker: Attacker
) -> None:
    [record] = ledger.read(request_.chain)
    reseal_row(attacker, record, SeedSigner.generate(), lambda content: None)
    with pytest.raises(IntegrityError) as refusal:
        load_request(ledger, request_.id)
    assert code_of(refusal) == "UNKNOWN_SIGNER"
    assert not wait_for_answer(ledger, request_, 0).allows
    with pytest.raises(IntegrityError):  # It lies under the key of the next one.
        opened(ledger)
    assert failed_places(ledger.verify(), "approvals") == [(request_.chain, 0, "UNKNOWN_SIGNER")]


def test_a_denial_is_not_replaced_by_a_record_of_somebody_else(
    ledger: Ledger, ada: Person, request_: ApprovalRequest, attacker: Attacker
) -> None:
    ben = somebody("ben")
    enrol_approver(ledger, ben, ada)
    request = opened(ledger, gate_id="g2")
    approve(ledger, request, ada, shown=SHOWN)
    deny(ledger, request, ben, shown=SHOWN)
    last = list(ledger.read(request.chain))[-1]

    def change(content: Content) -> None:
        content["context"]["environment"]["aver"]["kind"] = "note"

    reseal_row(attacker, last, SeedSigner.generate(), change)
    assert wait_for_answer(ledger, request, 0).code == "UNKNOWN_SIGNER"
    with pytest.raises(IntegrityError):
        consume(ledger, request, request.digest)
    assert ledger.verify().status != "verified"


# --- a session's past


@pytest.fixture
def ask(ledger: Ledger, tmp_path: Path) -> Callable[..., aver.Answer]:
    def ask_about(session: str = "s1", **more: Any) -> aver.Answer:
        given = {"type": "file_read", "tool": "Read", "files": ("src/a.py",), **more}
        return aver.ask(ledger, Action(session=session, workspace=str(tmp_path), **given))

    return ask_about


def test_a_decision_of_somebody_else_is_no_past(
    ledger: Ledger, ask: Callable[..., aver.Answer], attacker: Attacker
) -> None:
    """The session has seen a secret; a record without that, by a key of one's own, does not undo it."""
    record = ask(files=(".env",)).record
    assert record.to_dict()["outcome"]["result"]["session"]["labels"] == ["secret"]

    def change(content: Content) -> None:
        content["outcome"]["result"]["session"]["labels"] = []

    reseal_row(attacker, record, SeedSigner.generate(), change)
    answer = ask()
    assert not answer.allows
    assert "past cannot be trusted" in " ".join(answer.decision.reasons)
    assert ("gate.s1", 0, "UNKNOWN_SIGNER") in failed_places(ledger.verify(), "decisions")


COLUMNS = (
    "sequence, tenant, hash, signature, signature_pq, signed_at, signed_by, id, type, kind, session, at, canonical"
)
CHAIN = "(SELECT chain FROM chains WHERE name = '{}')"


@pytest.mark.more
@pytest.mark.parametrize("remembered", [True, False])
def test_the_past_of_another_session_is_not_put_in_its_place(
    remembered: bool, ledger: Ledger, ask: Callable[..., aver.Answer], attacker: Attacker, aver_home: Path
) -> None:
    """Each record is sealed by the ledger's own key and has the right number; it only lies in another chain."""
    for session, path in (("s1", ".env"), ("s2", "src/a.py")):
        for _ in range(2 * LOOK_BACK):
            ask(session, files=(path,))
    if not remembered:
        for file in (aver_home / DIRECTORY).iterdir():
            file.unlink()
    first, second = CHAIN.format("gate.s1"), CHAIN.format("gate.s2")
    attacker.run(
        [
            f"DELETE FROM records WHERE chain = {first} AND sequence > 0",
            f"INSERT INTO records (chain, {COLUMNS})"
            f" SELECT {first}, {COLUMNS} FROM records WHERE chain = {second} AND sequence > 0",
            "UPDATE chains SET head = (SELECT head FROM chains WHERE name = 'gate.s2') WHERE name = 'gate.s1'",
        ]
    )
    answer = ask()
    assert not answer.allows
    assert "past cannot be trusted" in " ".join(answer.decision.reasons)


def test_the_record_with_the_state_is_the_remembered_one(
    ledger: Ledger, ask: Callable[..., aver.Answer], attacker: Attacker, aver_home: Path
) -> None:
    """The newest records hold no state. The one that does is replaced by one of another session with its number."""
    for session, path in (("s1", ".env"), ("s2", "src/b.py")):
        for name in ("src/a.py", path):
            ask(session, files=(name,))
    (aver_home / "config.toml").write_text('[gate]\npolicy = "gone"\n')
    for _ in range(2):
        with aver.open_ledger() as other:
            aver.ask(other, Action(type="file_read", tool="Read", files=("a",), session="s1", workspace="/w"))
    (aver_home / "config.toml").unlink()
    [old], [other] = ledger.read("gate.s1", 1, 2), ledger.read("gate.s2", 1, 2)
    values = other.canonical, other.hash, other.signature, other.signed_by, other.signed_at, old.hash
    attacker.execute(
        "UPDATE records SET canonical = ?, hash = ?, signature = ?, signed_by = ?, signed_at = ? WHERE hash = ?", values
    )
    answer = ask()
    assert not answer.allows
    assert "past cannot be trusted" in " ".join(answer.decision.reasons)


def test_a_call_that_somebody_else_recorded_is_no_past(
    ledger: Ledger, ask: Callable[..., aver.Answer], attacker: Attacker
) -> None:
    execution = aver.Execution(tool_calls=[ToolCall(tool="Read", success=False)])
    draft = aver.Capsule(type="tool", context=aver.Context(session_id="s1"), execution=execution)
    record = ledger.append("claude-code.s1", draft)

    def change(content: Content) -> None:
        content["execution"]["tool_calls"] = []

    reseal_row(attacker, record, SeedSigner.generate(), change)
    answer = ask()
    assert not answer.allows
    assert "past cannot be trusted" in " ".join(answer.decision.reasons)


def test_a_call_of_another_session_is_none_of_this_one(
    ledger: Ledger, ask: Callable[..., aver.Answer], attacker: Attacker
) -> None:
    execution = aver.Execution(tool_calls=[ToolCall(tool="Read", success=True)])
    draft = aver.Capsule(type="tool", context=aver.Context(session_id="s2"), execution=execution)
    ledger.append("claude-code.s2", draft)
    attacker.execute("UPDATE records SET session = 's1' WHERE session = 's2'")
    assert ask().record.to_dict()["outcome"]["result"]["facts"]["uses"] == 0


def test_a_decision_of_somebody_else_gives_a_call_no_authority(
    ledger: Ledger, ask: Callable[..., aver.Answer], attacker: Attacker
) -> None:
    record = ask(call_id="claude-code:s1:toolu_1").record
    assert ledger.get(f"gate:{gate_id_for('claude-code:s1:toolu_1', 0)}") is not None
    assert len(find_decisions(ledger, "claude-code:s1:toolu_1")) == 1
    reseal_row(attacker, record, SeedSigner.generate(), lambda content: None)
    with pytest.raises(IntegrityError):
        find_decisions(ledger, "claude-code:s1:toolu_1")


# --- auditors


def test_an_auditor_with_another_ring_is_told_what_he_knows(
    ledger: Ledger, ada: Person, request_: ApprovalRequest, tmp_path: Path
) -> None:
    """Who verifies a copy of a ledger has other keys of his own. The ledger's records are not foreign to it."""
    approve(ledger, request_, ada, shown=SHOWN)
    consume(ledger, request_, request_.digest)
    key = ledger.keys.ring().active("ledger")
    assert key is not None
    with aver.open_ledger(home=tmp_path / "auditor") as other:
        other.append("notes.a", aver.Capsule(type="tool"))
        place = ledger.store.url
        verdict = aver.verify(ledger=place, home=tmp_path / "auditor")
        assert verdict.status == "qualified"
        assert failed_places(verdict, "approvals") == []
        for one in (key.key, ada.public):
            other.keys.trust(one)
        verdict = aver.verify(ledger=place, home=tmp_path / "auditor")
        assert verdict.check("approvals").status == "passed"


def test_another_machine_at_the_same_ledger_is_told_apart_from_a_stranger(ledger: Ledger, tmp_path: Path) -> None:
    """Two machines, each with a ring of its own, write to one store. A trusted key is named, and does not fail."""
    ada = somebody("ada")
    ledger.keys.trust(ada.public)
    ledger.append("notes.a", aver.Capsule(type="tool"))
    with aver.open_ledger(ledger.store.url, home=tmp_path / "west") as west:
        enrolled(west, ada)
        action = Action(type="shell_exec", tool="Bash", arguments={"command": "rm -r build"}, session="s1")
        request = aver.ask(west, action).request
        assert request is not None
        approve(west, request, ada, shown=SHOWN)
        assert aver.ask(west, action).allows
        key = west.keys.ring().active("ledger")
        assert key is not None
    with pytest.raises(IntegrityError):
        opened(ledger)
    assert ledger.verify().status == "failed"
    ledger.keys.trust(key.key)
    with pytest.raises(IntegrityError):
        opened(ledger)
    verdict = ledger.verify()
    assert {name: verdict.check(name).status for name in ("approvals", "decisions")} == {
        "approvals": "warning",
        "decisions": "warning",
    }
    assert verdict.status == "qualified"
