"""The safety invariants of `test_invariants` with a ledger on PostgreSQL, in one process and apart."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import ClassVar

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test
from tests.gateway.test_invariants import ActMachine
from tests.gateway.test_invariants_apart import ApartMachine

from support.apart import ALL, open_town


class PostgresMachine(ActMachine):
    """The same steps. Each run has a database of its own."""

    new_database: ClassVar[Callable[[], str]]

    def __init__(self) -> None:
        os.environ["AVER_LEDGER"] = type(self).new_database()
        super().__init__()

    def clean_up(self) -> None:
        super().clean_up()
        os.environ.pop("AVER_LEDGER", None)


@pytest.mark.more
def test_invariants_in_one_process(new_database: Callable[[], str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PostgresMachine, "new_database", staticmethod(new_database), raising=False)
    run_state_machine_as_test(PostgresMachine, settings=settings(stateful_step_count=12, max_examples=5, deadline=None))


@pytest.mark.long
def test_invariants_apart(new_database: Callable[[], str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AVER_LEDGER", new_database())
    with open_town() as town:
        town.start(*ALL)
        monkeypatch.setattr(ApartMachine, "town", town, raising=False)
        run_state_machine_as_test(
            ApartMachine, settings=settings(stateful_step_count=12, max_examples=5, deadline=None)
        )
