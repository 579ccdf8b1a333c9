"""The agent's own user against the approvals: it has every file and the ledger's key, and not the passphrase.

Each attack runs as the user that owns the home, writes what it likes, and must not bring about that whoever waits is
told `approved`. Where a user of its own can be had (as root), the same is done to a home that it replaces whole, and
only a file that it cannot write stands against that.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aver import AverError, Capsule, IntegrityError, Ledger, Refused, Ring, open_ledger
from aver.capsule.aver_block import of_kind
from aver.capsule.model import Authority
from aver.capsule.model import Outcome as Result
from aver.gate.approvals import (
    ApprovalRequest,
    Person,
    approve,
    check_approvals,
    consume,
    deny,
    enrol_approver,
    find_person,
    open_request,
    record_vote,
    wait_for_answer,
)
from aver.gate.approvals.roster import ENROLMENT, Approver, enrolment_content
from aver.gate.approvals.vote import APPROVAL_PURPOSE, vote_content
from aver.keys import KeyStore, SeedSigner, Statement, load_seed_signer, sign_statement
from support.approvals import SHOWN, action, asking, code_of, enrolled, opened, somebody, with_settings, write_enrolment

PASSPHRASE = "correct horse battery"
SHOWN_DIGEST = "6" * 64


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which person:ada has a key under a passphrase and is enrolled. Made once: Argon2id takes its time."""
    home = tmp_path_factory.mktemp("prepared") / "home"
    with open_ledger(home=home) as ledger:
        ledger.keys.create("person:ada", passphrase=PASSPHRASE)
        ada = ledger.keys.unlock("person:ada", PASSPHRASE)
        enrol_approver(ledger, Person("person:ada", ada.public, "passphrase", ada))
    return home


@pytest.fixture
def home(prepared: Path, aver_home: Path) -> Path:
    shutil.copytree(prepared, aver_home)
    aver_home.chmod(0o700)
    return aver_home


@pytest.fixture
def gate(home: Path) -> Iterator[Ledger]:
    """The ledger as the process that waits has it open."""
    with open_ledger(home=home) as ledger:
        yield ledger


def forged_decision(request: ApprovalRequest, statement: Statement | None, **changed: Any) -> Capsule:
    """An `approval.decision` as we would write it, if we had a right to."""
    shown = {"blob": {"alg": "sha256", "digest": SHOWN_DIGEST, "size": len(SHOWN), "media": "text/plain"}}
    result = {
        "v": 1,
        "request": request.id,
        "digest": request.digest,
        "decision": "approve",
        "approver": "person:ada",
        "custody": "passphrase",
        "level": 1,
        "comment": "",
        "shown": shown,
        **changed,
    }
    chain = [] if statement is None else [statement.to_dict()]
    draft = Capsule(
        type="auth",
        parent_id=request.id,
        authority=Authority(type="human_approved", approver="person:ada", chain=chain),
        outcome=Result(status="success", result=result),
    )
    return of_kind(draft, "approval.decision", {"request": request.id})


def write_forged(home: Path, request: ApprovalRequest, statement: Statement | None, **changed: Any) -> None:
    """Seal it with the ledger's own key, from the file, and leave its blob out of the way of the ledger's checks."""
    with open_ledger(home=home) as ledger:
        from aver import Blob

        blob = Blob(SHOWN.encode(), "text/plain")
        changed.setdefault("shown", blob.reference)
        ledger.append(request.chain, forged_decision(request, statement, **changed), blobs=[blob])


def said_by(signer: Any, request: ApprovalRequest, identity: str = "person:ada", **changed: Any) -> Statement:
    from aver import Blob

    content = vote_content(request, "approve", identity, Blob(SHOWN.encode()).digest)
    return sign_statement(APPROVAL_PURPOSE, {**content, **changed}, [signer])


def rewrite(path: Path, change: Callable[[Any], None]) -> None:
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def edited(home: Path, *statements: str) -> None:
    """Change the ledger's file, past all that guards it."""
    connection = sqlite3.connect(home / "ledger.db")
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        connection.execute(f"DROP TRIGGER {name}")
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


# --- the attacks: each gets the home and the request that is waited for


def approve_without_a_statement(home: Path, request: ApprovalRequest) -> None:
    write_forged(home, request, None)


def sign_as_the_ledger(home: Path, request: ApprovalRequest) -> None:
    write_forged(home, request, said_by(load_seed_signer(home / "keys" / "ledger.0.key"), request))


def sign_with_a_key_of_its_own(home: Path, request: ApprovalRequest) -> None:
    write_forged(home, request, said_by(SeedSigner.generate(), request))


def sign_under_the_name_of_the_true_key(home: Path, request: ApprovalRequest) -> None:
    statement = said_by(SeedSigner.generate(), request)
    true_name = request.approvers["person:ada"].fingerprint
    write_forged(home, request, replace(statement, signatures=(replace(statement.signatures[0], by=true_name),)))


def put_another_key_into_the_ring(home: Path, request: ApprovalRequest) -> None:
    own = SeedSigner.generate()

    def change(ring: Any) -> None:
        for entry in ring["entries"]:
            if entry["identity"] == "person:ada":
                entry.update(public_key=own.public.ed25519, fingerprint=own.fingerprint)

    rewrite(home / "keyring.json", change)
    (home / "known_keys.json").write_text(json.dumps({own.fingerprint: own.public.ed25519}))
    write_forged(home, request, said_by(own, request))


def put_a_key_file_of_its_own_there(home: Path, request: ApprovalRequest) -> None:
    """With a passphrase that it knows, and the ring to match: the approver's own command would then sign with it."""
    other = KeyStore(home.with_name("other"))
    other.create("person:ada", passphrase="known to the agent")
    shutil.copy(other.home / "keys" / "person-ada.0.sealed.json", home / "keys" / "person-ada.0.sealed.json")
    entry = json.loads((other.home / "keyring.json").read_text())["entries"][0]

    def change(ring: Any) -> None:
        ring["entries"] = [entry if one["identity"] == "person:ada" else one for one in ring["entries"]]

    rewrite(home / "keyring.json", change)
    with open_ledger(home=home) as ledger:
        impostor = find_person(ledger.keys, "person:ada", lambda: "known to the agent")
        with pytest.raises(IntegrityError) as refusal:
            approve(ledger, request, impostor, shown=SHOWN)
        assert code_of(refusal) == "KEY_MISMATCH"
    write_forged(home, request, said_by(impostor.signer, request))


def enrol_itself(home: Path, request: ApprovalRequest) -> None:
    eve = somebody("eve")
    (home / "config.toml").write_text('[approvals]\napprovers = ["person:eve"]\nquorum = 1\n')
    with open_ledger(home=home) as ledger:
        approver = Approver("person:eve", eve.public, "passphrase")
        content = enrolment_content(approver, ledger=ledger.id, tenant="default", at="2026-01-01T00:00:00+00:00")
        ledger_key = load_seed_signer(home / "keys" / "ledger.0.key")
        statement = sign_statement(ENROLMENT, content, [eve.signer, ledger_key])
        draft = Capsule(type="auth", authority=Authority(chain=[statement.to_dict()]))
        ledger.append("approvers.default", of_kind(draft, "key.create"))
    write_forged(home, request, said_by(eve.signer, request, "person:eve"), approver="person:eve")


def rewrite_the_roster(home: Path, request: ApprovalRequest) -> None:
    """Throw the chain of enrolments away and begin it anew, as the first."""
    eve = somebody("ada")
    edited(
        home,
        "DELETE FROM records WHERE chain = (SELECT chain FROM chains WHERE name = 'approvers.default')",
        "DELETE FROM chains WHERE name = 'approvers.default'",
    )
    with open_ledger(home=home) as ledger:
        write_enrolment(ledger, eve)
    write_forged(home, request, said_by(eve.signer, request))


def rewrite_the_request(home: Path, request: ApprovalRequest) -> None:
    """Put a request with a key of its own in the place of the one that is waited for, and approve that."""
    own = somebody("ada")
    edited(
        home,
        "DELETE FROM records WHERE chain = (SELECT chain FROM chains WHERE name = 'approvals.default')",
        "DELETE FROM chains WHERE name = 'approvals.default'",
    )
    content = json.loads(json.dumps(request.content))
    content["approvers"]["person:ada"]["public_key"] = own.public.ed25519
    with open_ledger(home=home) as ledger:
        draft = Capsule(id=request.id, type="auth", outcome=Result(status="pending", result=content))
        ledger.append(request.chain, of_kind(draft, "approval.request"))
    write_forged(home, request, said_by(own.signer, request))


def say_that_it_was_approved(home: Path, request: ApprovalRequest) -> None:
    """Records that only look like an end."""
    with open_ledger(home=home) as ledger:
        for word in ("approved", "human_approved", "pass"):
            ledger.append(request.chain, forged_decision(request, None, decision=word, shown=None, custody=None))


def guess_the_passphrase(home: Path, request: ApprovalRequest) -> None:
    with open_ledger(home=home) as ledger:
        for guess in ("password1", PASSPHRASE.upper()):
            with pytest.raises(Refused) as refusal:
                find_person(ledger.keys, "person:ada", lambda: guess)  # noqa: B023 - called at once
            assert code_of(refusal) == "BAD_PASSPHRASE"
        with pytest.raises(Refused) as refusal:
            ledger.keys.signer("person:ada")
        assert code_of(refusal) == "PASSPHRASE_NEEDED"


ATTACKS = [
    approve_without_a_statement,
    sign_as_the_ledger,
    sign_with_a_key_of_its_own,
    sign_under_the_name_of_the_true_key,
    put_another_key_into_the_ring,
    put_a_key_file_of_its_own_there,
    enrol_itself,
    rewrite_the_roster,
    rewrite_the_request,
    say_that_it_was_approved,
    guess_the_passphrase,
]


@pytest.mark.sample(8)
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_whoever_waits_is_not_told_that_it_was_approved(
    attack: Callable[[Path, ApprovalRequest], None], home: Path, gate: Ledger
) -> None:
    request = opened(gate)
    attack(home, request)
    outcome = wait_for_answer(gate, request, 0.2)
    assert not outcome.allows, outcome
    with pytest.raises((Refused, IntegrityError)):
        consume(gate, request, request.digest)
    with open_ledger(home=home) as later, pytest.raises((Refused, IntegrityError)):
        consume(later, request, request.digest)


def test_nor_if_the_files_were_changed_before_it_asked(home: Path, gate: Ledger) -> None:
    """The ring, the known keys, the key's own file: where ring and roster disagree, nobody is asked at all."""
    true_ring = (home / "keyring.json").read_bytes()
    for attack in (put_another_key_into_the_ring, put_a_key_file_of_its_own_there):
        attack(home, opened(gate, "ls", gate_id=f"before {attack.__name__}".replace(" ", "-")))
        with open_ledger(home=home) as ledger, pytest.raises(IntegrityError, match="the key ring has") as refusal:
            opened(ledger, "rm -rf /", gate_id=attack.__name__)
        assert code_of(refusal) == "KEY_MISMATCH"
        (home / "keyring.json").write_bytes(true_ring)


def test_nor_if_it_had_enrolled_itself_before(home: Path, gate: Ledger) -> None:
    enrol_itself(home, opened(gate, "ls"))
    with open_ledger(home=home) as ledger, pytest.raises(Refused) as refusal:
        opened(ledger, "rm -rf /")
    assert code_of(refusal) == "NO_APPROVERS"


@pytest.mark.parametrize("attack", [a for a in ATTACKS if a not in (guess_the_passphrase, say_that_it_was_approved)])
def test_the_verdict_tells_of_it(attack: Callable[[Path, ApprovalRequest], None], home: Path, prepared: Path) -> None:
    """An auditor who has the true keys, and a copy of what the agent's user left behind."""
    with open_ledger(home=home) as gate:
        request = opened(gate)
    attack(home, request)
    ring = KeyStore(prepared).ring()
    with open_ledger(home=home) as ledger:
        answers, enrolments = ledger.read("approvals.default"), ledger.read("approvers.default")
        tally = check_approvals(answers, ring, ledger=ledger.id, tenant="default", enrolments=enrolments)
        found = {finding.status for finding in tally.findings}
        assert found & {"failed", "not_checked"}, tally.findings


# --- approvals that were given, for something else


def test_an_approval_given_once_is_not_used_again(home: Path, gate: Ledger) -> None:
    ada = gate.keys.unlock("person:ada", PASSPHRASE)
    who = Person("person:ada", ada.public, "passphrase", ada)
    first = opened(gate, gate_id="g1")
    approve(gate, first, who, shown=SHOWN)
    consume(gate, first, first.digest)
    given = Statement.from_dict(list(gate.read(first.chain))[1].to_dict()["authority"]["chain"][0])

    again = opened(gate, gate_id="g2")
    write_forged(home, again, given)
    assert not wait_for_answer(gate, again, 0).allows
    with pytest.raises(Refused):
        record_vote(gate, again, given, shown=SHOWN, custody="passphrase")

    other = opened(gate, "rm -rf /", gate_id="g3")
    write_forged(home, other, given)
    assert not wait_for_answer(gate, other, 0).allows

    # A request forged to fit the statement: the same action and the same end. The statement names the first one.
    copy = of_kind(
        Capsule(type="auth", outcome=Result(status="pending", result=dict(first.content))), "approval.request"
    )
    gate.append(first.chain, copy)
    forged = replace(first, id=copy.id, hash=gate.head(first.chain).hash, sequence=gate.head(first.chain).count - 1)
    write_forged(home, forged, given)
    with pytest.raises(Refused) as refusal:
        consume(gate, forged, forged.digest)
    assert code_of(refusal) == "NOT_APPROVED"


def test_a_denial_that_is_cut_off_while_somebody_waits_still_denies(home: Path, gate: Ledger) -> None:
    """Seen once is remembered; and what is missing of what was seen is as bad as a denial."""
    from aver.gate.approvals.wait import _RequestWatch

    ben = somebody("ben")
    ada = gate.keys.unlock("person:ada", PASSPHRASE)
    who = Person("person:ada", ada.public, "passphrase", ada)
    enrol_approver(gate, ben, who)
    (home / "config.toml").write_text("[approvals]\nquorum = 2\n")
    with open_ledger(home=home) as ledger:
        request = opened(ledger)
        watch = _RequestWatch(ledger, request, 60)
        approve(ledger, request, who, shown=SHOWN)
        assert watch.look() is None
        edited(
            home,
            "DELETE FROM records WHERE kind = 'approval.decision'",
            f"UPDATE chains SET count = 1, head = '{request.hash}' WHERE name = 'approvals.default'",
        )
        outcome = watch.look()
        assert outcome is not None
        assert (outcome.state, outcome.code) == ("denied", "ROLLBACK")
        deny(ledger, request, ben, shown=SHOWN)


# --- a user of its own, and the whole home replaced

NOBODY = 65534


@pytest.fixture
def fixed(prepared: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A place that another user can reach, with a system file by root that names the true key of person:ada."""
    if os.geteuid() != 0:
        pytest.skip("only root can become the agent's user and own a file that it cannot write")
    place = Path(tempfile.mkdtemp(prefix="aver-hostile-"))
    place.chmod(0o755)
    system_file = place / "approvals.toml"
    key = KeyStore(prepared).ring().active("person:ada")
    assert key is not None
    system_file.write_text(f'[keys."person:ada"]\npublic_key = "{key.key.ed25519}"\ncustody = "passphrase"\n')
    monkeypatch.setattr("aver.gate.approvals.rules.SYSTEM_FILE", system_file)
    monkeypatch.setattr("aver.config.SYSTEM_CONFIG", place / "config.toml")
    home = place / "user" / "home"
    shutil.copytree(prepared, home)
    for path in (home.parent, home, *home.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    home.chmod(0o700)
    yield place
    shutil.rmtree(place)


def as_nobody(work: Callable[[], str]) -> str:
    """What `work` says when it runs as the agent's user."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # A child that hangs must not hang the tests.
        said = "crashed"
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            said = work()
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        finally:
            os.write(writer, said.encode()[:4000])
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader) as pipe:
        return pipe.read()


def outcome_of(home: Path, attack: Callable[[Path, ApprovalRequest], None]) -> str:
    with open_ledger(home=home) as ledger:
        about = action("rm -rf /")
        request = open_request(ledger, about, asking(about, f"gate-{attack.__name__}"))
        with suppress(AverError):
            attack(home, request)
        return wait_for_answer(ledger, request, 0).state


@pytest.mark.more
def test_what_the_agents_user_cannot_write_stands_against_all_it_can(fixed: Path, prepared: Path) -> None:
    home = fixed / "user" / "home"
    true_key = KeyStore(prepared).unlock("person:ada", PASSPHRASE)
    own = SeedSigner.generate()

    def honest(home: Path, request: ApprovalRequest) -> None:
        with open_ledger(home=home) as ledger:
            approve(ledger, request, Person("person:ada", true_key.public, "passphrase", true_key), shown=SHOWN)

    def with_its_own_key(home: Path, request: ApprovalRequest) -> None:
        write_forged(home, request, said_by(own, request))

    def replaced_whole() -> str:
        """A new home: its own ledger, its own roster with itself on it as person:ada, its own settings."""
        shutil.rmtree(home)
        home.mkdir(mode=0o700)
        (home / "config.toml").write_text('[approvals]\napprovers = ["person:ada"]\n')
        with open_ledger(home=home) as ledger:
            ledger.keys.register("person:ada", own.public)
            with pytest.raises(Refused) as refusal:
                enrol_approver(ledger, Person("person:ada", own.public, "passphrase", own))
            assert code_of(refusal) == "SYSTEM_ROSTER"
        return outcome_of(home, with_its_own_key)

    def writes_the_file() -> str:
        for path in (fixed / "approvals.toml", fixed / "approvals.toml.new"):
            with suppress(PermissionError):
                path.write_text("keys = {}")
                return "written"
        with suppress(PermissionError):
            (fixed / "approvals.toml").unlink()
            return "removed"
        return "refused"

    # Load here what is loaded when first used: the agent's user may not read this interpreter's files.
    with open_ledger(home=fixed / "warm") as ledger:
        enrolled_request = open_request(ledger, action(), asking(action()))
        with_its_own_key(fixed / "warm", enrolled_request)
        wait_for_answer(ledger, enrolled_request, 0)
        ledger.keys.register("person:ada", own.public)

    assert as_nobody(lambda: outcome_of(home, honest)) == "approved"
    assert as_nobody(lambda: outcome_of(home, with_its_own_key)) == "timeout"
    assert as_nobody(lambda: outcome_of(home, rewrite_the_roster)) == "timeout"
    assert as_nobody(lambda: outcome_of(home, enrol_itself)) == "timeout"
    assert as_nobody(writes_the_file) == "refused"
    assert as_nobody(replaced_whole) == "timeout"


def test_without_such_a_file_a_home_that_is_replaced_whole_is_believed_and_the_verdict_elsewhere_is_not(
    prepared: Path, aver_home: Path
) -> None:
    """The limit, told in the documentation: who may approve is only as firm as what the agent cannot write."""
    impostor = somebody("ada")
    with with_settings(aver_home, "") as ledger:
        enrolled(ledger, impostor)
        request = opened(ledger)
        approve(ledger, request, impostor, shown=SHOWN)
        assert wait_for_answer(ledger, request, 0).allows
        consume(ledger, request, request.digest)
        chains = list(ledger.read("approvals.default")), list(ledger.read("approvers.default"))
    true_keys = KeyStore(prepared).ring()
    tally = check_approvals(chains[0], true_keys, ledger=request.ledger, tenant="default", enrolments=chains[1])
    assert [(finding.status, finding.code) for finding in tally.findings] == [("not_checked", "UNKNOWN_SIGNER")]
    pinned = Ring.pin([entry.key for entry in true_keys.entries])
    tally = check_approvals(chains[0], pinned, ledger=request.ledger, tenant="default", enrolments=chains[1])
    assert [(finding.status, finding.code) for finding in tally.findings] == [("not_checked", "UNKNOWN_SIGNER")]
