"""What the agents of these tests work on, and what must be found afterwards whichever library they are written in."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aver
from aver import AgentRuntime, Ledger
from aver.actions.action import text_hash, value_hash
from aver.gate.approvals import approve, recent_requests
from support.approvals import enrolled, somebody


@dataclass
class Workplace:
    place: Path
    run: AgentRuntime
    ledger: Ledger
    made: list[str] = field(default_factory=list)
    """The calls that were really made."""

    @property
    def notes(self) -> str:
        return str(self.place / "notes.txt")

    @property
    def missing(self) -> str:
        return str(self.place / "missing.txt")

    # --- tools, under names that the gate knows

    def read_file(self, path: str) -> str:
        """Read a file."""
        self.made.append(f"read {path}")
        return Path(path).read_text()

    def delete_file(self, path: str) -> str:
        """Delete a file."""
        self.made.append(f"delete {path}")
        Path(path).unlink()
        return "deleted"

    def think(self, about: str) -> str:
        """Do nothing but seal the run, so that what comes next cannot be recorded."""
        self.made.append(f"think {about}")
        self.run.finalize()
        return "sealed"

    @aver.tool(effects=["read"])
    def lookup_order(self, order: str) -> str:
        """Look an order up. The gate knows this tool by its declaration alone."""
        self.made.append(f"lookup {order}")
        return f"order {order}"

    # --- a human

    def enrol_ada(self) -> Any:
        ada = somebody("ada")
        enrolled(self.ledger, ada)
        self.ledger.keys.trust(ada.public)  # Otherwise the verifier cannot say whose approvals these are.
        return ada

    def approve_the_request(self, person: Any) -> None:
        (request,) = recent_requests(self.ledger)
        approve(self.ledger, request, person, shown="the call")

    def approve_when_asked(self, person: Any) -> None:
        while not list(recent_requests(self.ledger)):
            time.sleep(0.01)
        self.approve_the_request(person)

    # --- what was recorded

    @property
    def decisions(self) -> list[str]:
        records = self.ledger.read(f"gate.{self.run.run_id}")
        return [record.to_dict()["outcome"]["result"]["decision"] for record in records]

    def hold_to_one_read(self, library: str, call_id: str) -> None:
        """One call was made and recorded, under the decision that let it through."""
        assert self.made == [f"read {self.notes}"]
        (action,) = self.run.actions
        assert action.action_type == "tool_call"
        assert action.success is True
        assert action.instruction_hash == text_hash("call read_file")
        assert action.input_hash == value_hash({"path": self.notes})
        assert action.output_hash == text_hash("buy milk")
        assert (action.gate_decision, action.policy_verdict) == ("pass", "POLICY_ENFORCED")
        assert action.metadata == {"tool_name": "read_file", "tool_call_id": call_id, "library": library}
        assert self.decisions == ["pass"]

    def hold_to_a_refusal(self, told: str) -> None:
        """Nothing was done, the decision is sealed, and whoever reads `told` knows why."""
        assert self.made == []
        assert Path(self.notes).exists()
        assert self.run.actions == []
        assert self.decisions == ["human_review"]
        assert "deletes files" in told

    def hold_to_one_observed_deletion(self) -> None:
        """The deletion was made though the gate would have asked; its record and the verdict on the run say so."""
        assert self.made == [f"delete {self.notes}"]
        (action,) = self.run.actions
        assert (action.success, action.gate_decision, action.policy_verdict) == (True, "human_review", None)
        assert self.decisions == ["human_review"]
        self.run.finalize()
        verdict = self.run.verify()
        assert verdict.status == "verified", verdict.to_dict()
        assert verdict.check("gates").reason == "1 checked, 1 in the mode observe: nothing was held back"

    def hold_to_a_failure(self, kind: str, text: str) -> None:
        (action,) = self.run.actions
        assert self.made == [f"read {self.missing}"]
        assert action.success is False
        assert action.metadata is not None
        assert action.metadata["error"]["type"] == kind
        assert text in action.metadata["error"]["text"]
        assert action.gate_decision == "pass"

    def hold_to_a_sound_run(self) -> None:
        self.run.finalize()
        verdict = self.run.verify()
        assert verdict.status == "verified", verdict.to_dict()

    def hold_to_a_wait(self, means: str) -> str:
        """The only call waits for a person: it is no success and no failure. Returns the id of its record."""
        (action,) = self.run.actions
        assert action.metadata is not None
        assert means in action.metadata["waiting"]
        assert "error" not in action.metadata
        (record,) = self.ledger.find(kind="action")
        content = record.to_dict()
        assert content["outcome"]["status"] == "pending"
        assert "waits for a person" in content["outcome"]["summary"]
        return str(content["id"])

    def hold_to_an_answered_wait(self, waited: str) -> None:
        """The call was made after the person's answer, names the record of its wait, and nobody claims the answer."""
        *_, record = self.ledger.find(kind="action")
        content = record.to_dict()
        assert content["outcome"]["status"] == "success"
        assert content["context"]["environment"]["aver"]["refs"]["waited"] == waited
        self.run.finalize()
        verdict = self.run.verify()
        assert (verdict.status, verdict.first_bad) == ("qualified", None), verdict.to_dict()
        check = verdict.check("answers")
        assert (check.status, check.matters) == ("not_checked", True)
        assert "1 went on: the person's answers are not in these records" in check.reason
        assert self.run.actions[-1].policy_verdict == "POLICY_ENFORCED"
