"""The safety invariants 1 to 4 of the RFC, §8, held against random sequences of honest and hostile steps.

1. No effect without two valid proofs and the right request hash.
2. No effect for an `action_id` that was used before.
3. No way around the binding of a PREVIEW by another caller or session.
4. None by another external principal or delegation.

The machine keeps what a PREVIEW bound, and every effect that happened. After each step all effects must have been
allowed: by a PREVIEW of the same caller, session, context and request, once.
"""

from __future__ import annotations

import copy
import os
import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule

from aver import SeedSigner, open_ledger
from aver.gateway.acts.visit import Door
from aver.gateway.delegation import sign_delegation
from aver.gateway.executor.commit_order import CommitOrder
from aver.gateway.executor.executor import EffectDone, EffectOrder
from aver.keys import PublicKey
from support.acts import open_office

CALLERS = st.sampled_from(["agent:a", "agent:b"])
SESSIONS = st.sampled_from(["s1", "s2"])
TEXTS = st.sampled_from(["one\n", "two\n"])
PRINCIPALS = st.sampled_from([None, "partner", "other"])


OF_OTHER_ORDERS = ("tx_id", "commit", "attestations", "decision", "external_principal", "delegation_jti")
"""The parts of an order that a hostile gateway may take from another one."""


class ActMachine(RuleBasedStateMachine):
    previews = Bundle("previews")
    suffix = ""
    """Stands behind the names of sessions, so that runs that share a ledger do not share a past."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp())
        self.home_before = os.environ.get("AVER_HOME")
        os.environ["AVER_HOME"] = str(self.directory / "home")
        self.stack = ExitStack()
        self.done: list[tuple[str, str]] = []
        self.bound: dict[str, tuple[str, str, dict[str, Any], str]] = {}
        self.texts: dict[str, str] = {}
        self.allowed: set[str] = set()
        self.signers = {name: SeedSigner.generate() for name in ("partner", "other")}
        self.orders: list[CommitOrder] = []
        self.open()

    def open(self) -> None:
        keys: dict[str, PublicKey] = {name: signer.public for name, signer in self.signers.items()}
        ledger = self.stack.enter_context(open_ledger())
        self.office = self.stack.enter_context(
            open_office(self.directory / "work", ledger, causes={"WriteWorkspaceFile": self.effect}, keys=keys)
        )
        # Whatever the gateway hands over is kept, for a hostile caller of the executor.
        executor: Any = self.office.gateway._executor
        execute, prepare = executor.execute, executor.prepare_commit

        def keep(order: CommitOrder) -> dict[str, Any]:
            self.orders.append(order)
            return execute(order)

        def keep_prepared(order: CommitOrder, *more: Any) -> Any:
            self.orders.append(order)
            return prepare(order, *more)

        self.execute = execute
        executor.execute, executor.prepare_commit = keep, keep_prepared

    def effect(self, order: EffectOrder) -> EffectDone:
        self.done.append((order.action_id, order.request.sha256))
        return EffectDone("done", {})

    def count_effects(self) -> int:
        return len(self.done)

    def teardown(self) -> None:
        try:
            self.check_records()
        finally:
            self.clean_up()

    def check_records(self) -> None:
        """Whatever was tried, an auditor finds records that hold."""
        verdict = self.office.ledger.verify()
        assert verdict.status in ("verified", "qualified", "empty"), verdict

    def clean_up(self) -> None:
        self.stack.close()
        if self.home_before is None:
            os.environ.pop("AVER_HOME", None)
        else:
            os.environ["AVER_HOME"] = self.home_before
        shutil.rmtree(self.directory)

    def constraints(self, principal: str | None, session: str, caller: str) -> dict[str, Any]:
        if principal is None:
            return {}
        token = sign_delegation(
            self.signers[principal],
            iss=principal,
            sub=caller,
            session=session,
            scope=("intent:Write*",),
            expires="2099-01-01T00:00:00+00:00",
            jti=f"dlg_{principal}_{session}_{caller[-1]}",
        )
        return {"external_principal": principal, "delegation_token": token}

    @rule(target=previews, caller=CALLERS, session=SESSIONS, text=TEXTS, principal=PRINCIPALS)
    def preview(self, caller: str, session: str, text: str, principal: str | None) -> Any:
        session += self.suffix
        answer = self.office.preview(
            content=text,
            caller=caller,
            door=Door(session=session),
            **self.constraints(principal, session, caller),
        )
        data = answer["data"]
        if answer["reason_code"] != "ALLOW":
            return multiple()
        self.bound[data["action_id"]] = (caller, session, {"principal": principal}, data["request_sha256"])
        self.texts[data["action_id"]] = text
        return data["tx_id"], data["action_id"], caller, session, text, principal

    @rule(
        made=previews,
        change=st.sampled_from(["nothing", "caller", "session", "principal", "text"]),
        other=st.data(),
    )
    def commit(self, made: Any, change: str, other: st.DataObject) -> None:
        """Commit a PREVIEW as it was, or with one thing changed."""
        tx_id, _, caller, session, content, principal = made
        bound, for_principal, text = [caller, session], principal, other.draw(st.sampled_from([None, content]))
        if change == "caller":
            caller = other.draw(CALLERS)
        elif change == "session":
            session = other.draw(SESSIONS) + self.suffix
        elif change == "principal":
            principal = other.draw(PRINCIPALS)
        elif change == "text":
            text = other.draw(TEXTS)
        inputs = {"tx_id": tx_id, **({} if text is None else {"relpath": "notes.txt", "content": text})}
        before = self.count_effects()
        answer = self.office.act(
            "WriteWorkspaceFile",
            inputs,
            caller=caller,
            door=Door(session=session),
            **self.constraints(principal, session, caller),
        )
        is_own = [caller, session] == bound and principal == for_principal and text in (None, content)
        if answer["status"] == "OK":
            assert is_own
            assert self.count_effects() == before + 1
        else:
            assert self.count_effects() == before
            if is_own:
                assert answer["reason_code"] in ("REPLAY_DENY", "TX_INVALID", "WORKSPACE_CHANGED")

    @rule(seconds=st.sampled_from([1, 20, 31, 130]))
    def wait(self, seconds: int) -> None:
        self.office.clock.ahead += seconds

    @rule(seconds=st.sampled_from([1, 45, 300]))
    def set_clock_back(self, seconds: int) -> None:
        self.office.clock.ahead -= seconds

    @rule(data=st.data())
    def attack_executor(self, data: st.DataObject) -> None:
        """Send the executor an order that the gateway made once, changed in one place."""
        if not self.orders:
            return
        order = data.draw(st.sampled_from(self.orders))
        document = copy.deepcopy(order.to_dict())
        change = data.draw(
            st.sampled_from(
                ["caller", "session", "action_id", "inputs", "share", "swap", "none", "bit", *OF_OTHER_ORDERS]
            )
        )
        if change in ("caller", "session", "action_id"):
            others = ["agent:a", "agent:b", f"s1{self.suffix}", f"s2{self.suffix}", "a_other"]
            document[change] = data.draw(st.sampled_from(others))
        elif change in OF_OTHER_ORDERS:
            other = data.draw(st.sampled_from(self.orders)).to_dict()
            document.pop(change, None)
            document |= {change: other[change]} if change in other else {}
        elif change == "inputs":
            document["inputs"]["content"] = "evil\n"
        elif change == "share" and document["commit"]:
            document["commit"]["policy1"] = document["commit"]["policy0"]
        elif change == "swap" and document["commit"]:
            shares = document["commit"]
            shares["policy0"], shares["policy1"] = shares["policy1"], shares["policy0"]
        elif change == "none":
            document["commit"] = None
        elif change == "bit" and document["commit"]:
            document["commit"]["policy0"]["outputs"]["allow_pre"] ^= 1
        before = len(self.done)
        answer = self.execute(CommitOrder.from_dict("WriteWorkspaceFile", document))
        if document != order.to_dict():
            assert answer["status"] == "DENY"
            assert len(self.done) == before

    @rule()
    def restart(self) -> None:
        """End the process's gateway and open another on the same ledger."""
        ahead = self.office.clock.ahead
        self.stack.close()
        self.stack = ExitStack()
        self.open()
        self.office.clock.ahead = ahead

    @invariant()
    def every_effect_was_allowed_once(self) -> None:
        ids = [action_id for action_id, _ in self.done]
        assert len(ids) == len(set(ids))
        for action_id, request_sha256 in self.done:
            assert self.bound[action_id][3] == request_sha256


TestInvariants = ActMachine.TestCase
TestInvariants.settings = settings(stateful_step_count=12, deadline=None)
