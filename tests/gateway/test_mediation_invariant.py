"""The safety invariant 6 of the RFC, §8, held against random sequences of steps.

6. No act goes on in unverified mode without notice where a verified confinement was begun with, or is required.

The machine makes PREVIEWs and COMMITs through doors that are confined and doors that are not, while the operator
switches `require_capsule` on and off. No effect happens through an open door where the settings want a confinement, nor
for a PREVIEW that was made in one, nor through a confined door for a PREVIEW that was made outside. Every record says
which door its step came through.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, multiple, rule

from aver.gateway.acts.visit import Door
from aver.gateway.executor.executor import EffectDone, EffectOrder
from support.acts import open_office

DOORS = st.sampled_from(["verified", "unverified"])
TEXTS = st.sampled_from(["one\n", "two\n"])


class MediationMachine(RuleBasedStateMachine):
    previews = Bundle("previews")

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp())
        self.home_before = os.environ.get("AVER_HOME")
        os.environ["AVER_HOME"] = str(self.directory / "home")
        self.stack = ExitStack()
        self.done: list[str] = []
        self.doors: dict[str, str] = {}
        """The mode of the door through which each act was committed."""
        self.office = self.stack.enter_context(
            open_office(self.directory / "work", causes={"WriteWorkspaceFile": self.effect})
        )

    def effect(self, order: EffectOrder) -> EffectDone:
        self.done.append(order.action_id)
        return EffectDone("done", {})

    @property
    def is_required(self) -> bool:
        return self.office.gateway.settings.require_capsule

    @rule()
    def switch_requirement(self) -> None:
        """The operator changes the settings, of the gateway and of its executor."""
        gateway: Any = self.office.gateway
        gateway.settings = replace(gateway.settings, require_capsule=not self.is_required)
        gateway._executor._settings = gateway.settings

    def may_act(self, door: str, begun: str) -> bool:
        return door == begun and (door == "verified" or not self.is_required)

    @rule(target=previews, door=DOORS, text=TEXTS)
    def preview(self, door: Any, text: str) -> Any:
        answer = self.office.preview(content=text, door=Door(session="s1", mediation=door))
        if not self.may_act(door, door):
            assert answer["reason_code"] == "CAPSULE_REQUIRED"
            return multiple()
        assert answer["reason_code"] == "ALLOW", answer
        return answer["data"]["tx_id"], answer["data"]["action_id"], door

    @rule(made=previews, door=DOORS)
    def commit(self, made: Any, door: Any) -> None:
        tx_id, action_id, begun = made
        before = len(self.done)
        answer = self.office.commit(tx_id, door=Door(session="s1", mediation=door))
        if not self.may_act(door, begun):
            assert answer["reason_code"] == "CAPSULE_REQUIRED"
            assert len(self.done) == before
        elif answer["status"] == "OK":
            assert self.done[before:] == [action_id]
            self.doors[action_id] = door
        else:
            assert answer["reason_code"] in ("REPLAY_DENY", "TX_INVALID")

    @rule(door=DOORS, text=TEXTS)
    def act_at_once(self, door: Any, text: str) -> None:
        before = len(self.done)
        answer = self.office.write(content=text, door=Door(session="s1", mediation=door))
        assert (answer["status"] == "OK") is self.may_act(door, door), answer
        assert len(self.done) == before + (answer["status"] == "OK")
        if answer["status"] == "OK":
            self.doors[answer["data"]["action_id"]] = door

    def teardown(self) -> None:
        try:
            self.check_records()
        finally:
            self.stack.close()
            os.environ.pop("AVER_HOME", None)
            os.environ |= {} if self.home_before is None else {"AVER_HOME": self.home_before}
            shutil.rmtree(self.directory)

    def check_records(self) -> None:
        """Each effect was made once, and its mark and outcome say through which door."""
        assert sorted(self.done) == sorted(self.doors)
        records = [
            record.to_dict() for kind in ("act.commit", "act.outcome") for record in self.office.ledger.find(kind=kind)
        ]
        for content in records:
            action = content["outcome"]["result"]["action_id"]
            if content["outcome"]["result"].get("reason_code", "ALLOW") == "ALLOW":
                assert content["context"]["environment"]["gateway"]["mediation"] == self.doors[action]
        # No agent was really confined here, and no verdict says so: an auditor finds each step that claims it.
        claims = {
            record.id
            for kind in ("act.preview", "act.commit")
            for record in self.office.ledger.find(kind=kind)
            if record.to_dict()["context"]["environment"]["gateway"]["mediation"] == "verified"
        }
        verdict = self.office.ledger.verify()
        assert (verdict.status == "failed") is bool(claims)
        assert len({finding.place.sequence for finding in verdict.findings}) == len(claims)


TestMediationInvariant = MediationMachine.TestCase
TestMediationInvariant.settings = settings(stateful_step_count=12, deadline=None)
