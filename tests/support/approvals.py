"""People, actions and requests for the tests of approvals."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from aver import Capsule, Ledger, Sealed, SeedSigner, clock, open_ledger
from aver.capsule.aver_block import BLOCK_KEY, of_kind
from aver.capsule.canonical import canonical_bytes
from aver.capsule.model import Authority, Outcome
from aver.capsule.sealed import content_hash
from aver.gate.action import Action, bound_content
from aver.gate.approvals import ApprovalRequest, Person, enrol_approver, load_approval_setup, open_request
from aver.gate.approvals.enrolment import approvers_chain
from aver.gate.approvals.request import REQUEST_KIND, add_seconds, build_request_content, read_request
from aver.gate.approvals.request_records import approvals_chain
from aver.gate.approvals.roster import ENROLMENT, Approver, enrolment_content
from aver.gate.approvals.rules import ApprovalLevel
from aver.gate.decision import Decision, PolicyAnswer, Thresholds
from aver.keys import sign_statement
from support.tamper import Attacker

SHOWN = "request 1\ndigest 2\n"
"""What somebody saw: any text will do where the text does not matter."""


def somebody(name: str, custody: Any = "passphrase") -> Person:
    """A person with a key that nobody else has."""
    signer = SeedSigner.generate()
    return Person(f"person:{name}", signer.public, custody, signer)


def action(command: str = "rm -rf build", **more: Any) -> Action:
    given = {"type": "shell_exec", "tool": "Bash", "arguments": {"command": command}, "caller": "builder", **more}
    return Action(**given)


def asking(about: Action, gate_id: str = "gate-1", **more: Any) -> Decision:
    """The gate's decision to ask a person about an action."""
    given: dict[str, Any] = {
        "decision": "human_review",
        "digest": about.digest,
        "score": 0.25,
        "interval": (0.125, 0.5),
        "observations": 3,
        "policy": PolicyAnswer("step_up", ("deletes",), "b" * 64),
        "reasons": ("it deletes files",),
        "gate_id": gate_id,
        "thresholds": Thresholds(),
        **more,
    }
    return Decision(**given)


def opened(ledger: Ledger, command: str = "rm -rf build", gate_id: str = "gate-1") -> ApprovalRequest:
    about = action(command)
    return open_request(ledger, about, asking(about, gate_id))


def with_settings(home: Path, text: str) -> Ledger:
    """A ledger whose settings say this of approvals."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    (home / "config.toml").write_text(text)
    return open_ledger(home=home)


def enrolled(ledger: Ledger, *people: Person) -> None:
    """Put people on the roster, each endorsed by the first."""
    first, *others = people
    enrol_approver(ledger, first)
    for other in others:
        enrol_approver(ledger, other, first)


def write_enrolment(ledger: Ledger, newcomer: Person, *endorsers: Person) -> Sealed:
    """Append the record of an enrolment with the ledger's key, without the checks of `enrol_approver`."""
    approver = Approver(newcomer.identity, newcomer.public, newcomer.custody)
    content = enrolment_content(approver, ledger=ledger.id, tenant=ledger.tenant, at=clock.now())
    statement = sign_statement(ENROLMENT, content, [person.signer for person in (newcomer, *endorsers)])
    draft = Capsule(
        type="auth",
        authority=Authority(type="human_approved", approver=newcomer.identity, chain=[statement.to_dict()]),
        outcome=Outcome(status="success", result={"identity": newcomer.identity, "at": content["at"]}),
    )
    return ledger.append(approvers_chain(ledger.tenant), of_kind(draft, "key.create"))


def code_of(refusal: Any) -> str:
    return str(refusal.value.code)


def seals_hold(ledger: Ledger) -> bool:
    """Whether nothing is wrong with the ledger's records but what they say about approvals."""
    return all(check.status != "failed" for check in ledger.verify().checks if check.name != "approvals")


def open_old_request(
    ledger: Ledger, gate_id: str = "gate-1", key: str = "", version: int = 1, about: Action | None = None
) -> ApprovalRequest:
    """A request as earlier versions of Aver opened it.

    With version 1 it wants the statement that names no request, with version 2 the one that does not cover the words.
    """
    about = about or action()
    setup = load_approval_setup(ledger)
    approvers = setup.roster.approvers
    content, blobs = build_request_content(
        about,
        asking(about, gate_id),
        expires=add_seconds(clock.now(), 3600),
        levels=(ApprovalLevel(tuple(approvers)),),
        approvers=approvers,
        anchor="ledger",
    )
    result = dict(content)
    if version == 1:
        for name in ("statement", "scope", "uses", "digest_version", "beside"):
            del result[name]
        result["action"] = about.to_dict()
    else:
        bound = bound_content(about.to_dict(), about.left_out, version)
        result |= {"action": bound, "digest_version": version, "statement": version}
    result["digest"] = about.compute_digest(version, about.left_out)
    draft = Capsule(type="auth", outcome=Outcome(status="pending", result=result))
    key = key or f"{REQUEST_KIND}:{gate_id}:{result['digest']}"
    record = ledger.append(approvals_chain(ledger.tenant), of_kind(draft, REQUEST_KIND), key=key, blobs=blobs)
    return read_request(record, ledger=ledger.id, tenant=ledger.tenant)


def copy_record(ledger: Ledger, record: Sealed, *, id: str = "", **changed: Any) -> Sealed:  # noqa: A002
    """Append what a record says to the chain of the same name for this ledger's tenant. It keeps its id by default."""
    content = record.to_dict()
    content.update(id=id or record.id, sequence=0, previous_hash=None)
    content["context"]["environment"][BLOCK_KEY] = {"kind": record.kind}
    content["outcome"]["result"].update(changed)
    domain = str(record.chain).partition(".")[0]
    return ledger.append(f"{domain}.{ledger.tenant}", Capsule.from_dict(content))


def reseal_row(
    attacker: Attacker, record: Sealed, signer: SeedSigner, change: Callable[[dict[str, Any]], None]
) -> None:
    """Replace a record in the store by a changed one that another key has sealed. Later links are left as they are."""
    content = record.to_dict()
    change(content)
    content["context"]["environment"][BLOCK_KEY]["by"] = signer.fingerprint
    canonical = canonical_bytes(content)
    digest = content_hash(canonical)
    values = (canonical, digest, signer.sign(digest).ed25519, signer.fingerprint, content["id"], record.hash)
    attacker.run(
        [
            (
                "UPDATE records SET canonical = ?, hash = ?, signature = ?, signature_pq = '', signed_by = ?, id = ?"
                " WHERE hash = ?",
                values,
            ),
            ("UPDATE chains SET head = ? WHERE head = ?", (digest, record.hash)),
        ]
    )
