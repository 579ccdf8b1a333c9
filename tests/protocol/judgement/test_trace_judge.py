"""Judging stored records: malformed ones, sealed by the right key, break the trace at their place and nothing else."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from aver.capsule.blobs import Blob
from aver.capsule.sealed import Sealed, seal
from aver.errors import AverError, NotFound
from aver.keys import Ring
from aver.protocol.events import OPERATOR
from aver.protocol.judgement.report import build_report
from aver.protocol.judgement.report_page import render_report_page
from aver.protocol.judgement.report_text import render_report_text
from aver.protocol.judgement.trace_facts import GateWord
from aver.protocol.judgement.trace_judge import TraceJudge
from aver.protocol.statements import SeenHead
from support.protocol_traces import TraceInMemory

DATA = {Blob(data).digest: data for data in (b"3 passed", b'{"tool":"pytest"}', b"{}")}
DAMAGES: tuple[Any, ...] = (None, [], {}, "x", -1, True, [[]], {"v": 1})


@pytest.fixture(scope="module")
def trace() -> TraceInMemory:
    """A whole trace: a claim, a challenge, a revision, an audit."""
    made = TraceInMemory()
    claim = made.claim(made.reach_claiming())
    challenge = made.challenge(claim.id)
    made.revise(claim.id)
    made.withdraw(challenge.id)
    made.conclude()
    made.audit()
    return made


def judge(trace: TraceInMemory, records: list[Sealed]) -> TraceJudge:
    """Judge records, and make the report in all its forms, as a verifier does."""
    found = TraceJudge(trace.place, trace.fold.trace, Ring.pin([trace.signers[OPERATOR].public]))
    found.take(records)

    def read_blob(digest: str) -> bytes:
        if digest not in DATA:
            raise NotFound("not here")
        return DATA[digest]

    def find_decision(name: str) -> GateWord | None:
        return None

    head = SeenHead(len(records), records[-1].hash)
    report = build_report(found.facts(head=head, profile="default", blob=read_blob, decision=find_decision))
    assert render_report_text(report.content, {})
    assert render_report_page(report.content, {})
    if found.broken is not None:
        assert report.status == "fail"
        assert report.content["first_broken"]["sequence"] == found.count
    return found


def paths(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(items):
        yield (*before, key)
        yield from paths(inner, (*before, key))


def damage(content: dict[str, Any], place: tuple[Any, ...], value: Any) -> dict[str, Any] | None:
    """The content with one part replaced; None if that changes nothing. `...` takes the part away."""
    damaged = copy.deepcopy(content)
    target: Any = damaged
    for key in place[:-1]:
        target = target[key]
    if value is ...:
        del target[place[-1]]
    elif target[place[-1]] == value and type(target[place[-1]]) is type(value):
        return None
    else:
        target[place[-1]] = value
    return damaged


def check_damages(trace: TraceInMemory, step: int) -> int:
    """Damage parts of every record, seal each anew by its own key, and judge. Returns how many were judged."""
    judged = number = 0
    for sequence, record in enumerate(trace.records):
        content = json.loads(record.canonical)
        signer = next(each for each in trace.signers.values() if each.fingerprint == record.signed_by)
        for place in paths(content):
            for value in (..., *DAMAGES):
                number += 1
                if number % step:
                    continue
                damaged = damage(content, place, value)
                try:
                    sealed = None if damaged is None else seal(damaged, signer)
                except (AverError, AttributeError, KeyError, TypeError):
                    continue  # It cannot even be sealed.
                if sealed is None:
                    continue
                found = judge(trace, [*trace.records[:sequence], sealed])
                judged += 1
                # Parts that mean nothing to the protocol may change. Then the trace holds, and only its bytes differ.
                assert found.broken is None or found.broken.sequence == sequence, (sequence, place, value)
                if place[:2] == ("outcome", "result") and value is ...:
                    assert found.broken is not None, (sequence, place)
    return judged


def test_an_honest_trace_holds(trace: TraceInMemory) -> None:
    found = judge(trace, trace.records)
    assert found.broken is None, found.words
    assert found.count == len(trace.records)
    assert found.audit is not None


@pytest.mark.more
def test_some_malformed_records(trace: TraceInMemory) -> None:
    assert check_damages(trace, 61) > 50


@pytest.mark.more
def test_many_malformed_records(trace: TraceInMemory) -> None:
    assert check_damages(trace, 3) > 1000


def test_every_order_of_two_events_but_their_own_breaks_the_trace(trace: TraceInMemory) -> None:
    for first in range(len(trace.records) - 1):
        records = list(trace.records)
        records[first], records[first + 1] = records[first + 1], records[first]
        found = judge(trace, records)
        assert found.broken is not None
        assert (found.broken.code, found.broken.sequence) == ("SEQUENCE_GAP", first)


def test_a_record_by_a_key_that_nobody_joined_by_is_nobodys(trace: TraceInMemory) -> None:
    for sequence, record in enumerate(trace.records[1:], 1):
        content = json.loads(record.canonical)
        stranger = TraceInMemory("stranger").signers["agent:critic"]
        content["context"]["environment"]["aver"]["by"] = stranger.fingerprint
        found = judge(trace, [*trace.records[:sequence], seal(content, stranger)])
        assert found.broken is not None
        assert (found.broken.code, found.broken.sequence) == ("ROLE_POLICY_VIOLATION", sequence)
