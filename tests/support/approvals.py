"""People, actions and requests for the tests of approvals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aver import Ledger, SeedSigner, open_ledger
from aver.gate.action import Action
from aver.gate.approvals import ApprovalRequest, Person, enrol_approver, open_request
from aver.gate.decision import Decision, PolicyAnswer, Thresholds

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


def code_of(refusal: Any) -> str:
    return str(refusal.value.code)


def seals_hold(ledger: Ledger) -> bool:
    """Whether nothing is wrong with the ledger's records but what they say about approvals."""
    return all(check.status != "failed" for check in ledger.verify().checks if check.name != "approvals")
