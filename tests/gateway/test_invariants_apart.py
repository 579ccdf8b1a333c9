"""The safety invariants of `test_invariants`, held by parts that run as processes, one of which is killed at times."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule
from tests.gateway.test_invariants import ActMachine

from aver.gateway.acts.visit import Door
from aver.gateway.executor.commit_order import CommitOrder
from support.acts import Office, SetClock
from support.apart import ALL, Town, open_town

pytestmark = pytest.mark.more


NUMBERS = itertools.count()


class ApartMachine(ActMachine):
    """The same steps. The executor makes a mark for each effect before it acts: every mark must have been allowed.

    An act of which the file was changed after its PREVIEW is refused after its mark: it has no effect.
    """

    town: ClassVar[Town]

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.seen = {action_id for action_id, _ in self.done}
        self.suffix = f"-{next(NUMBERS)}"
        for path in self.town.workspace.iterdir():
            path.unlink()
        super().__init__()

    @property
    def done(self) -> list[tuple[str, str]]:
        marks = [record.to_dict()["outcome"]["result"] for record in self.town.ledger.find(kind="act.commit")]
        found = [(mark["action_id"], mark["request_sha256"]) for mark in marks]
        return [each for each in found if each[0] not in self.seen]

    @done.setter
    def done(self, value: list[tuple[str, str]]) -> None:
        """The base class begins with none. So does this one: marks of earlier examples do not count."""

    def effects(self) -> list[str]:
        """The acts that had an effect, by their outcomes."""
        results = [record.to_dict()["outcome"]["result"] for record in self.town.ledger.find(kind="act.outcome")]
        marked = {action_id for action_id, _ in self.done}
        done = [each["action_id"] for each in results if each["reason_code"] == "ALLOW"]
        return [action_id for action_id in done if action_id in marked]

    def count_effects(self) -> int:
        return len(self.effects())

    @invariant()
    def the_file_is_that_of_the_last_effect(self) -> None:
        """So an act that was refused after its mark changed nothing."""
        path, effects = self.town.workspace / "notes.txt", self.effects()
        assert path.exists() == bool(effects)
        assert not effects or path.read_text() == self.texts[effects[-1]]

    @invariant()
    def every_mark_without_an_effect_is_explained(self) -> None:
        results = [record.to_dict()["outcome"]["result"] for record in self.town.ledger.find(kind="act.outcome")]
        explained = {each["action_id"] for each in results if each["reason_code"] in ("ALLOW", "WORKSPACE_CHANGED")}
        assert {action_id for action_id, _ in self.done} <= explained

    def open(self) -> None:
        clock = SetClock()
        keys = {name: signer.public for name, signer in self.signers.items()}
        gateway = self.stack.enter_context(self.town.open(keys=keys, clock=clock))
        self.office = Office(gateway, clock)
        self.execute = gateway._executor.execute

        def keep(order: CommitOrder) -> dict[str, Any]:
            self.orders.append(order)
            return self.execute(order)

        gateway._executor = type("Kept", (), {"execute": staticmethod(keep)})()

    def check_records(self) -> None:
        """The clock of the gateway is not that of the parts here, so a verdict could not compare their times."""

    @rule(part=st.sampled_from(ALL))
    def kill_part(self, part: str) -> None:
        """Kill a part: nothing happens until it runs again."""
        self.town.end(part)
        before, orders = len(self.done), len(self.orders)
        answer = self.office.write(content="while a part is gone\n")
        assert answer["status"] == "DENY"
        assert len(self.done) == before
        # Its evidence is good, and no rule keeps what it is about.
        del self.orders[orders:]
        self.town.start(part)


@pytest.fixture(scope="module", autouse=True)
def town() -> Iterator[Town]:
    with open_town() as opened:
        opened.start(*ALL)
        ApartMachine.town = opened
        yield opened
        del ApartMachine.town


TestInvariantsApart = ApartMachine.TestCase
TestInvariantsApart.settings = settings(stateful_step_count=12, max_examples=6, deadline=None)


def test_two_previews_of_one_file_have_one_effect() -> None:
    """The second COMMIT is refused after its mark, because the file is no longer the one that was shown."""
    machine = ApartMachine()
    try:
        made = [machine.preview("agent:a", "s1", text, None) for text in ("one\n", "two\n")]
        door = Door(session=f"s1{machine.suffix}")
        codes = [
            machine.office.act("WriteWorkspaceFile", {"tx_id": each[0]}, caller="agent:a", door=door)["reason_code"]
            for each in made
        ]
        assert codes == ["ALLOW", "WORKSPACE_CHANGED"]
        assert (len(machine.done), machine.count_effects()) == (2, 1)
        machine.the_file_is_that_of_the_last_effect()
        machine.every_mark_without_an_effect_is_explained()
    finally:
        machine.teardown()
