"""Many at once, in processes of their own: each word is recorded once, and one of them acts."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from aver import Ledger, Refused, open_ledger
from aver.gate.approvals import ApprovalRequest, Person, approve, consume, load_request_state, wait_for_answer
from support.approvals import SHOWN, enrolled, opened, somebody, with_settings


def at_once(*works: Callable[[Ledger], str]) -> list[str]:
    """Run each in a forked process with a ledger of its own, all starting together; what each says."""
    ready, go = os.pipe()
    pipes = []
    for work in works:
        reader, writer = os.pipe()
        if os.fork() == 0:
            signal.alarm(60)  # A child that hangs must not hang the tests.
            said = "crashed"
            try:
                os.close(go)
                os.read(ready, 1)
                with open_ledger() as ledger:
                    said = work(ledger)
            finally:
                os.write(writer, said.encode())
                os._exit(0)
        os.close(writer)
        pipes.append(reader)
    os.close(go)
    os.close(ready)
    said = []
    for reader in pipes:
        with os.fdopen(reader) as pipe:
            said.append(pipe.read())
        os.wait()
    return said


def approving(request: ApprovalRequest, person: Person) -> Callable[[Ledger], str]:
    def work(ledger: Ledger) -> str:
        try:
            return approve(ledger, request, person, shown=SHOWN).state
        except Refused as refusal:
            return refusal.code

    return work


def using(request: ApprovalRequest) -> Callable[[Ledger], str]:
    def work(ledger: Ledger) -> str:
        try:
            consume(ledger, request, request.digest)
        except Refused as refusal:
            return refusal.code
        return "used"

    return work


@pytest.mark.more
def test_the_same_person_in_five_places(ledger: Ledger, ada: Person, request_: ApprovalRequest) -> None:
    said = at_once(*[approving(request_, ada) for _ in range(5)])
    assert said.count("approved") == 1
    assert set(said) <= {"approved", "DECIDED", "ALREADY_DECIDED"}
    assert ledger.head(request_.chain).count == 2


@pytest.mark.more
def test_five_people_for_a_quorum_of_five(aver_home: Path) -> None:
    with with_settings(aver_home, "[approvals]\nquorum = 5\n") as ledger:
        people = [somebody(f"p{number}") for number in range(5)]
        enrolled(ledger, *people)
        request = opened(ledger)
        said = at_once(*[approving(request, person) for person in people])
        assert sorted(said) == ["approved", "pending", "pending", "pending", "pending"]
        assert len(load_request_state(ledger, request).approvals) == 5


def test_five_who_want_to_use_it(ledger: Ledger, ada: Person, request_: ApprovalRequest) -> None:
    approve(ledger, request_, ada, shown=SHOWN)
    said = at_once(*[using(request_) for _ in range(5)])
    assert sorted(said) == ["REPLAY", "REPLAY", "REPLAY", "REPLAY", "used"]


def test_one_waits_and_another_decides(ledger: Ledger, ada: Person, request_: ApprovalRequest) -> None:
    def waiting(own: Ledger) -> str:
        return wait_for_answer(own, request_, 60).state

    assert at_once(waiting, waiting, approving(request_, ada)) == ["approved", "approved", "approved"]


@pytest.mark.more
def test_five_open_the_same_request(ledger: Ledger, ada: Person) -> None:
    said = at_once(*[lambda own: opened(own).id for _ in range(5)])
    assert len(set(said)) == 1
    assert ledger.head("approvals.default").count == 1
