"""The demo's sixth part: acts through the gateway, and a forged one.

An agent asks the gateway for effects on files of a small workspace. Two policy servers decide by the starter rules and
two rules of the demo. Allowed acts really happen. At the end somebody who has the ledger's key seals an act that
nobody decided about, and the verdict finds it.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

from aver import Authority, Capsule, Context, Outcome, Trigger, open_gateway, open_ledger
from aver.capsule.aver_block import of_kind
from aver.fast_dataclass import dataclass
from aver.gate.approvals import (
    GLANCE_LINES,
    approve,
    enrol_approver,
    find_person,
    load_request,
    load_request_state,
    render_request,
)
from aver.gateway.act_records import COMMIT_KIND, mark_key
from aver.gateway.acts.shown_act import new_action_id
from aver.gateway.gateway import Gateway
from aver.verdict import Verdict

SESSION = "shop-acts"
CHAIN = f"gateway.{SESSION}"
PERSON = "person:demo"

RULES = """\
@id("short-log")
@reason("the log has short lines only")
@patch("CLAMP_LEN 24")
permit (principal, action, resource is Aver::Path)
when { context.tool == "WriteWorkspaceFile" && resource.path like "*/log.txt" && resource.place == "workspace" };

@id("own-mail")
@reason("mail goes to the shop's own address only")
@code("RECIPIENT_NOT_ALLOWED")
forbid (principal, action, resource is Aver::Recipient)
unless { resource == Aver::Recipient::"orders@example.com" };
"""


@dataclass(frozen=True, slots=True)
class ActStep:
    """One act, the reason code that is expected, and the answer."""

    title: str
    expected: str
    answer: dict[str, Any]

    @property
    def is_expected(self) -> bool:
        return bool(self.answer["reason_code"] == self.expected)

    def to_dict(self) -> dict[str, Any]:
        found = {name: self.answer[name] for name in ("status", "reason_code", "summary")}
        return {"title": self.title, "as_expected": self.is_expected, **found}


def run_acts(home: Path, workspace: Path) -> Iterator[ActStep]:
    """Ask the gateway for one act after the other."""
    workspace.mkdir()
    (workspace / "old.txt").write_text("last year's prices\n")
    _write_rules(home)
    with (
        open_ledger(home / "ledger.db", home=home) as ledger,
        open_gateway(ledger, workspace=workspace, session=SESSION) as gateway,
    ):
        yield ActStep("write prices.txt", "ALLOW", _write(gateway, "prices.txt", "tea 4\n"))
        long_line = _write(gateway, "log.txt", "tea is four from today on\n")
        yield ActStep("write log.txt, cut to 24 characters", "ALLOW", long_line)
        yield ActStep(
            "send a message to a stranger",
            "RECIPIENT_NOT_ALLOWED",
            _act(gateway, "SendMessage", {"recipient": "eve@example.org", "text": "hello"}),
        )
        preview = _act(gateway, "CheckDeleteWorkspaceFile", {"relpath": "old.txt"})
        yield ActStep("delete old.txt", "REQUIRE_CONFIRM", preview)
        passphrase = secrets.token_hex(16)
        ledger.keys.create(PERSON, passphrase=passphrase)
        person = find_person(ledger.keys, PERSON, lambda: passphrase)
        enrol_approver(ledger, person)
        asked = _act(gateway, "DeleteWorkspaceFile", {"relpath": "old.txt"})
        request = load_request(ledger, asked["data"]["approval"])
        shown = render_request(
            request, request.read_action(ledger.blob), None, load_request_state(ledger, request), limit=GLANCE_LINES
        )
        approve(ledger, request, person, shown=shown.text)
        commit = {"tx_id": asked["data"]["tx_id"]}
        yield ActStep(f"the same, signed by {PERSON}", "ALLOW", _act(gateway, "DeleteWorkspaceFile", commit))
        yield ActStep("the same COMMIT once more", "REPLAY_DENY", _act(gateway, "DeleteWorkspaceFile", commit))


def forge_act(home: Path) -> Verdict:
    """Seal an act that nobody decided about, with the ledger's own key, and verify."""
    with open_ledger(home / "ledger.db", home=home, create=False) as ledger:
        done = next(record for record in ledger.read(CHAIN) if record.kind == COMMIT_KIND).to_dict()
        action_id = new_action_id()
        environment = {name: value for name, value in done["context"]["environment"].items() if name == "gateway"}
        forged = Capsule(
            type="tool",
            domain=done["domain"],
            parent_id=done["parent_id"],
            trigger=Trigger.from_dict({**done["trigger"], "correlation_id": action_id}),
            context=Context.from_dict({**done["context"], "environment": environment}),
            authority=Authority.from_dict(done["authority"]),
            outcome=Outcome.from_dict(
                {**done["outcome"], "result": {**done["outcome"]["result"], "action_id": action_id}}
            ),
        )
        ledger.append(CHAIN, of_kind(forged, COMMIT_KIND), key=mark_key(action_id))
        return ledger.verify()


def _write_rules(home: Path) -> None:
    """Put the starter rules and those of the demo into the home."""
    rules = home / "policy"
    rules.mkdir(parents=True, mode=0o700)
    for source in files("aver.gate.policy").joinpath("starter").iterdir():
        if source.name.endswith(".cedar"):
            (rules / source.name).write_bytes(source.read_bytes())
    (rules / "90-demo.cedar").write_text(RULES)
    (home / "config.toml").write_text('[gate]\npolicy = "policy"\n')


def _write(gateway: Gateway, relpath: str, content: str) -> dict[str, Any]:
    return _act(gateway, "WriteWorkspaceFile", {"relpath": relpath, "content": content})


def _act(gateway: Gateway, intent: str, inputs: dict[str, Any]) -> dict[str, Any]:
    return gateway.act({"intent_id": intent, "inputs": inputs, "constraints": {}, "caller": "agent:shop"})
