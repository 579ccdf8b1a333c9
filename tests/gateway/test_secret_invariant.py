"""The safety invariant 5 of the RFC, §8, held against random sequences of honest and hostile steps.

5. No secret is given out as it is, but by `Declassify`, which a person approved.

The machine has secrets in files, at a guarded path, in results of tools and in their errors. It keeps every answer of
the gateway and every input of an effect. After each step no secret stands in any of them, but in the answer to a
`Declassify` that a person approved for that handle. At the end no record of the ledger has one.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule

from aver.errors import Refused
from aver.gate.approvals import Person
from aver.gateway.acts.visit import Door
from aver.gateway.calls.upstream import FunctionTools, UpstreamCall
from aver.gateway.executor.executor import EffectDone, EffectOrder
from support.acts import open_office

SECRETS = {
    "deploy.txt": "AKIA" + "IOSFODNN7EXAMPLE",
    ".env": "COLOUR=plain-but-at-a-guarded-path",
    "tool": "ghp_" + "a1B2" * 9,
    "error": "ghp_" + "c3D4" * 9,
}
"""A secret for each place. The words at the guarded path have no form of their own."""

CALLERS = st.sampled_from(["agent:a", "agent:b"])
SESSIONS = st.sampled_from(["s1", "s2"])
HANDLE = re.compile(r"h_[A-Za-z0-9_-]{22}")

CARRIERS: dict[str, Any] = {
    "SendMessage": {"recipient": "bob@example.com", "text": "the key is HANDLE, ok?"},
    "PostWebhook": {"domain": "example.com", "path": "/", "body": '{"a": "HANDLE"}'},
    "FetchResource": {"domain": "example.com", "resource_id": "x?y=HANDLE"},
    "RunCommand": {"argv": ["echo", "HANDLE"]},
    "CallTool": {"server": "desk", "tool": "get_key", "arguments": {"deep": [{"HANDLE": 1}]}},
    "FinalizeOutput": {"text": "It is HANDLE."},
    "DeleteWorkspaceFile": {"relpath": "HANDLE"},
}
"""Inputs by which a secret could leave."""


class Desk:
    """A server whose tools give secrets away: in a result, and in the words of an error."""

    def __init__(self, seen: list[str]) -> None:
        self._seen = seen
        self._tools = FunctionTools({"get_key": lambda **given: SECRETS["tool"], "get_error": lambda: None})
        self.find_tool, self.read = self._tools.find_tool, self._tools.read

    def call(self, call: UpstreamCall) -> Mapping[str, Any]:
        self._seen.append(json.dumps(call.arguments))
        if call.tool == "get_error":
            raise Refused("EFFECT_FAILED", f"the server says: bad token {SECRETS['error']}")
        return self._tools.call(call)


class SecretMachine(RuleBasedStateMachine):
    handles = Bundle("handles")

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp())
        self.home_before = os.environ.get("AVER_HOME")
        os.environ["AVER_HOME"] = str(self.directory / "home")
        self.stack = ExitStack()
        self.answers: list[str] = []
        self.effects: list[str] = []
        """The inputs of effects that lead out of the workspace, as JSON."""
        self.released: list[str] = []
        """The actions of answers that gave a secret out on purpose."""
        self.person: Person | None = None
        self.ahead = 0.0
        """Seconds by which the clock of handles is ahead. A person's answers have the time of the machine."""
        self.open()

    def open(self) -> None:
        self.office = self.stack.enter_context(open_office(self.directory / "work"))
        if self.person is None:
            self.person = self.office.enrol()
        self.office.person = self.person
        for name in ("deploy.txt", ".env"):
            (self.office.workspace / name).write_text(
                f"user ada\n{SECRETS[name]}\n" if name[0] != "." else SECRETS[name]
            )
        gateway: Any = self.office.gateway
        gateway._handles._clock = lambda: time.time() + self.ahead
        gateway.connect("desk", Desk(self.effects))
        # No effect of these tests leaves this machine: it is kept, as it would have been sent.
        for name in ("SendMessage", "PostWebhook", "FetchResource", "RunCommand", "DeleteWorkspaceFile"):
            gateway._executor._effects[name] = self.keep_effect

    def keep_effect(self, order: EffectOrder) -> EffectDone:
        self.effects.append(json.dumps(dict(order.inputs)))
        return EffectDone("done", {})

    def act(self, intent: str, inputs: dict[str, Any], caller: str, session: str, *, approves: bool) -> dict[str, Any]:
        """Send an act, have a person approve it where one is asked, and keep every answer."""
        for _ in range(2):
            answer = self.office.act(intent, inputs, caller=caller, door=Door(session=session))
            if intent == "Declassify" and answer["status"] == "OK":
                assert approves
                self.released.append(answer["data"]["action_id"])
            else:
                self.answers.append(json.dumps(answer))
            if answer["reason_code"] != "REQUIRE_CONFIRM" or not approves:
                break
            self.office.approve(answer["data"]["approval"])
        return answer

    @rule(target=handles, place=st.sampled_from(sorted(SECRETS)), caller=CALLERS, session=SESSIONS)
    def read(self, place: str, caller: str, session: str) -> Any:
        """Read a secret. The answer has a handle."""
        if place in ("tool", "error"):
            tool = "get_key" if place == "tool" else "get_error"
            inputs = {"server": "desk", "tool": tool, "arguments": {}}
            answer = self.act("CallTool", inputs, caller, session, approves=True)
        else:
            answer = self.act("ReadWorkspaceFile", {"relpath": place}, caller, session, approves=True)
        found = HANDLE.search(json.dumps([answer["summary"], answer["data"]]))
        return multiple() if found is None else (found[0], place, caller, session)

    @rule(
        held=handles, intent=st.sampled_from(sorted(CARRIERS)), caller=CALLERS, session=SESSIONS, approves=st.booleans()
    )
    def carry_out(self, held: Any, intent: str, caller: str, session: str, approves: bool) -> None:
        """Put a handle into the inputs of an effect. Nothing happens, whoever asks."""
        inputs = json.loads(json.dumps(CARRIERS[intent]).replace("HANDLE", held[0]))
        before = len(self.effects)
        answer = self.act(intent, inputs, caller, session, approves=approves)
        if self.is_known(held):
            assert answer["reason_code"] == "HIGH_HANDLE_BLOCKED"
            assert len(self.effects) == before

    def is_known(self, held: Any) -> bool:
        """Whether the gateway that runs now has given this handle out."""
        return any(True for _ in self.office.gateway._handles._find_own(held[0]))

    @rule(held=handles, caller=CALLERS, session=SESSIONS)
    def write_back(self, held: Any, caller: str, session: str) -> None:
        """Write a handle into a file. Only its own session and caller get the secret written."""
        answer = self.act(
            "WriteWorkspaceFile", {"relpath": "copy.txt", "content": f"{held[0]}\n"}, caller, session, approves=True
        )
        path = self.office.workspace / "copy.txt"
        has_secret = path.exists() and any(secret in path.read_text() for secret in SECRETS.values())
        assert not has_secret or (answer["reason_code"] == "ALLOW" and (caller, session) == held[2:])
        path.unlink(missing_ok=True)

    @rule(held=handles, caller=CALLERS, session=SESSIONS, approves=st.booleans())
    def declassify(self, held: Any, caller: str, session: str, approves: bool) -> None:
        inputs = {"handle": held[0], "purpose": "the user wants to see it"}
        answer = self.act("Declassify", inputs, caller, session, approves=approves)
        if answer["status"] == "OK":
            assert approves
            assert (caller, session) == held[2:]
            assert SECRETS[held[1]] in answer["data"]["value"]

    @rule(seconds=st.sampled_from([1, 300, 700]))
    def wait(self, seconds: int) -> None:
        self.ahead += seconds

    @rule()
    def restart(self) -> None:
        """End the gateway and open another. The values were in its memory alone."""
        self.stack.close()
        self.stack = ExitStack()
        self.open()

    @invariant()
    def no_secret_has_left(self) -> None:
        for text in (*self.answers, *self.effects):
            assert not any(secret in text for secret in SECRETS.values()), text
        self.answers.clear()

    def teardown(self) -> None:
        try:
            self.check_records()
        finally:
            self.stack.close()
            os.environ.pop("AVER_HOME", None)
            os.environ |= {} if self.home_before is None else {"AVER_HOME": self.home_before}
            shutil.rmtree(self.directory)

    def check_records(self) -> None:
        """No record has a secret, and each release has its record."""
        ledger = self.office.ledger
        given = [record.to_dict()["outcome"]["result"]["action_id"] for record in ledger.find(kind="act.declassify")]
        assert sorted(given) == sorted(self.released)
        for chain in ledger.chains():
            for record in ledger.read(chain):
                assert not any(secret.encode() in record.canonical for secret in SECRETS.values())
        assert ledger.verify().status in ("verified", "qualified", "empty")


TestSecretInvariants = SecretMachine.TestCase
TestSecretInvariants.settings = settings(stateful_step_count=12, deadline=None)
