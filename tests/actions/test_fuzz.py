"""Bytes that nobody meant: every member of a `.cap`, lines of actions and proofs, changed at random.

A verdict always comes, and it is never a good one.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aver
from aver.actions.proofs.inclusion import inclusion_document
from aver.actions.run_state import load_run_from_path
from support.many_cases import first_now
from support.runs import EVIDENCE_FILE, MEMBERS, SealedRun, judged, packed, unpacked, with_true_manifest

POSITIONS = st.integers(0, 2**31)
JUNK = st.sampled_from(
    [
        *(
            b"",
            b"\0",
            b"\n",
            b'"',
            b"{",
            b"}",
            b"[",
            b",",
            b"\\",
            b"\xff",
            b"\xed\xa0\x80",
            b"null",
            b"true",
            b"1e999",
            b"-0",
        ),
        *(b"NaN", b'"\\ud800"', b"9" * 400, b"[" * 300, b'{"a":1,"a":2}', b"0.1", b"x" * 70_000),
    ]
)


def mutated(data: bytes, draw: Any) -> bytes:
    """Some bytes replaced, removed, doubled or put in."""
    for _ in range(draw(st.integers(1, 3))):
        start = draw(POSITIONS) % (len(data) + 1)
        length = draw(st.sampled_from([0, 1, 2, 7, 64, 300]))
        piece = draw(JUNK | st.binary(max_size=4) | st.just(data[start : start + length] * 2))
        data = data[:start] + piece + data[start + length :]
    return data


@pytest.mark.more
@pytest.mark.parametrize("name", first_now([*MEMBERS, EVIDENCE_FILE], 2))
@settings(max_examples=40)
@given(data=st.data())
def test_members_of_a_cap(sealed_run: SealedRun, name: str, data: st.DataObject) -> None:
    members = sealed_run.members
    changed = mutated(members[name], data.draw)
    if changed == members[name]:
        return
    members = {**members, name: changed}
    assert judged(packed(members), sealed_run).status == "failed"
    if name != "manifest.json":
        assert judged(packed(with_true_manifest(members)), sealed_run).status == "failed"


@pytest.mark.more
@settings(max_examples=80)
@given(data=st.data())
def test_lines_of_actions(sealed_run: SealedRun, data: st.DataObject) -> None:
    lines = sealed_run.members["actions.jsonl"]
    changed = mutated(lines, data.draw)
    verdict = aver.verify(changed) if changed[:1] == b"{" else None
    if verdict is not None and b"action_id" in changed[:100]:
        assert verdict.status in ("failed", "qualified", "empty")


@pytest.mark.more
@settings(max_examples=80)
@given(data=st.data())
def test_proofs(sealed_run: SealedRun, data: st.DataObject) -> None:
    found = load_run_from_path(sealed_run.path)
    text = json.dumps(inclusion_document(found.actions, 4, found.seal)).encode()
    changed = mutated(text, data.draw)
    try:
        same = json.loads(changed) == json.loads(text)
    except (ValueError, RecursionError):
        same = False
    try:
        status = aver.verify(changed, keys=[sealed_run.key]).status
    except aver.BadInput:
        return  # It does not even begin like a proof.
    assert same or status == "failed"


@settings(max_examples=60)
@given(data=st.data())
def test_the_packed_bytes(sealed_run: SealedRun, data: st.DataObject) -> None:
    cap = sealed_run.cap
    changed = cap[:2] + mutated(cap[2:], data.draw)
    verdict = judged(changed, sealed_run)
    assert verdict.status == "failed" or unpacked(changed) == sealed_run.members
